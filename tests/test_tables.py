"""CSV files: cells that a spreadsheet would run as formulas are text."""

import csv
import io

import pytest

from training.tables import ROWS, cell, written


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", "\r=1", "＝1"])
def test_a_text_that_begins_as_a_formula_gets_an_apostrophe(text: str) -> None:
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("value", [-1, -0.5, 3, "run 1", "a=b", ""])
def test_numbers_and_other_texts_stay(value: object) -> None:
    assert cell(value) == value


def test_a_table_is_written_in_pieces_and_read_again() -> None:
    rows = [[number, f"name, {number}", None] for number in range(2 * ROWS + 1)]
    pieces = list(written(["=id", "name", "empty"], rows))
    assert len(pieces) == 3
    read = list(csv.reader(io.StringIO("".join(pieces), newline="")))
    assert read[0] == ["'=id", "name", "empty"]
    assert read[1:] == [[str(number), f"name, {number}", ""] for number in range(2 * ROWS + 1)]
