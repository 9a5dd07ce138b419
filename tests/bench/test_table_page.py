"""What the bench of the tables' pages counts as within its limits."""

import pytest

from bench import table_page
from training.games import REGISTRY

ROW = {"screen": "wide", "game": "kuhn_poker", "moves": 2, "shift": 0.01, "input_ms": 40, "sent_kb": 70, "raw_kb": 250}


def test_the_worst_table_is_reported():
    rows = [{**ROW, "sideways_px": 0}, {**ROW, "sideways_px": 0, "shift": 0.049, "input_ms": 200, "sent_kb": 150.0}]
    result = table_page.summary(rows)
    assert result["worst"] == {"shift": 0.049, "input_ms": 200, "sent_kb": 150.0, "sideways_px": 0}
    assert result["ok"] is True
    assert "worst: shift 0.049, input 200 ms, 150.0 KB, sideways 0 px" in table_page.show(result)


@pytest.mark.parametrize("worse", [{"shift": 0.05}, {"input_ms": 208}, {"sent_kb": 150.1}, {"sideways_px": 1}])
def test_each_limit_counts(worse):
    assert table_page.summary([{**ROW, "sideways_px": 0}, {**ROW, "sideways_px": 0, **worse}])["ok"] is False


def test_every_game_is_measured_and_negotiation_in_both_forms():
    games = [scenario.game for scenario in table_page.table_scenarios()]
    assert set(games) == set(REGISTRY)
    assert games.count("negotiation") == 2
