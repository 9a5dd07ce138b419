"""Every format of labels writes the same bytes twice, says of each judgment what is known, and reads what it wrote."""

import csv
import io
import json

import pytest

from tests.labels.exchange.make import CODEBOOK, LABELS, judged, judgment, labelled, line
from training.errors import BadInput
from training.labels.exchange import FORMATS, format_named
from training.records import Label

SAID = judgment(
    judged_at="2026-03-01T10:00:00+00:00", seconds=12.5, suggestions_shown=True, unsure=True, decides=True,
    reason="hard to say",
)  # fmt: skip
GAMES = [
    line(
        judged(SAID, judgment("model:m", LABELS[:2], prompt_sha256="0" * 64), judgment("person:2", None, reason="cut")),
        judged(judgment("rule:lies", (Label(label="scale_seat", value=1.0, seat=0),), seat=0), source="file:2"),
        judged(judgment("person:2", ()), source="file:3"),
    )
]
every_format = pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)


def written(fmt, lines=GAMES):
    return "".join(fmt.write(CODEBOOK, labelled(*lines)))


@every_format
def test_the_same_labels_are_the_same_bytes(fmt):
    assert written(fmt) == written(fmt) != written(fmt, GAMES[:0])


@every_format
def test_a_file_is_written_piece_by_piece(fmt):
    """What is written of the first game does not depend on reading the last one."""
    read = []

    def games():
        for number in range(600):
            read.append(number)
            yield judged(judgment(labels=LABELS), source=f"file:{number}")

    (many,) = labelled(line())
    pieces = fmt.write(CODEBOOK, [type(many)(many.scenario, games())])
    while len(next(pieces)) < 500:
        pass
    assert len(read) < 10


@every_format
def test_every_kind_of_label_about_every_place_survives(fmt, tmp_path):
    path = tmp_path / "labels"
    path.write_text(written(fmt), encoding="utf-8", newline="")
    if fmt.read is None:
        return
    assert list(fmt.read(path, CODEBOOK)) == list(GAMES[0].conversations)


def _of_csv(text):
    return [
        (row["author"], row["codebook"], int(row["codebook_version"]), row["judged_at"], row["seconds"],
         row["suggestions_shown"], row["unsure"], row["decides"], row["scored"], row["comment"])
        for row in csv.DictReader(io.StringIO(text, newline=""))
    ]  # fmt: skip


def _of_w3c(text):
    return [
        (item["creator"]["nickname"], item["codebook"], item["codebookVersion"], item.get("created", ""),
         str(item.get("seconds", "")), *(str(item[name]).lower() for name in
         ("suggestionsShown", "unsure", "decides", "scored")))
        for item in json.loads(text)["first"]["items"]
    ]  # fmt: skip


def test_a_table_and_annotations_say_who_judged_when_and_how():
    expected = ("person:1", "every-kind", 3, "2026-03-01T10:00:00+00:00", "12.5", "true", "true", "true", "true")
    assert set(_of_csv(written(FORMATS["csv"]))) >= {
        (*expected, "hard to say"),
        ("person:2", "every-kind", 3, "", "", "false", "false", "false", "false", "cut"),
        ("person:2", "every-kind", 3, "", "", "false", "false", "false", "true", ""),
    }
    assert set(_of_w3c(written(FORMATS["w3c"]))) >= {
        expected, ("person:2", "every-kind", 3, "", "", "false", "false", "false", "false"),
    }  # fmt: skip


def test_an_unknown_format_is_refused_with_the_known_ones():
    with pytest.raises(BadInput, match=f"unknown format 'xml'; known: {', '.join(FORMATS)}"):
        format_named("xml")
