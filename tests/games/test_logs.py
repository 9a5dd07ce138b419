"""Trust 44: what any release stored of a game replays to the same end."""

import pytest

from tests.games import logs
from tests.games.cases.strategic import strategic
from training.games import REGISTRY
from training.reading import split_seat_metrics

STORED = logs.stored()
NAMES = [f"{release}-{game}-{at}" for at, (release, game, _) in enumerate(STORED)]


CHANGED = (
    "what a release stored must replay to the same end; if no release had this game, delete its file in "
    "tests/golden/logs and run python -m tests.games.logs --write"
)


def in_the_present_form(line):
    """The end of a stored line. The first lines name a seat's numbers `won_0`, and discount wins in Werewolf."""
    end = line["end"]
    if "seat_metrics" in end:
        return end
    metrics, by_seat = split_seat_metrics(end["metrics"], len(line["scenario"]["seats"]))
    returns = end["returns"]
    if line["scenario"]["game"] == "werewolf":
        assert set(returns.values()) <= {0, 0.75, 1}
        returns = {seat: float(value > 0) for seat, value in returns.items()}
    seat_metrics = {str(seat): by_seat[seat] for seat in sorted(by_seat)}
    return {**end, "returns": returns, "metrics": metrics, "seat_metrics": seat_metrics}


@pytest.mark.parametrize("line", [line for *_, line in STORED], ids=NAMES)
def test_a_stored_game_ends_as_it_did(line):
    expected, replayed = in_the_present_form(line), logs.replayed(line)
    metrics = {name: replayed["metrics"].get(name) for name in expected["metrics"]}  # a later release may count more
    of_seats = {
        seat: {name: replayed["seat_metrics"][seat].get(name) for name in values}
        for seat, values in expected["seat_metrics"].items()
    }
    assert {**replayed, "metrics": metrics, "seat_metrics": of_seats} == expected, CHANGED


@pytest.mark.parametrize("game", REGISTRY)
def test_this_release_has_stored_every_game(game):
    lines = [line for release, name, line in STORED if (release, name) == (logs.release(), game)]
    assert lines, "python -m tests.games.logs --write"
    assert all(line["scenario"]["game"] == game and line["moves"] for line in lines)


def test_what_is_stored_is_not_written_again(tmp_path):
    kept = tmp_path / "hanabi.jsonl"
    kept.write_text("as it was")
    assert {path.stem for path in logs.write(tmp_path)} == set(REGISTRY) - {"hanabi"}
    assert kept.read_text() == "as it was"
    assert logs.write(tmp_path) == []


def test_another_end_is_found():
    """Else equal ends would prove nothing: with the cards dealt the other way round, the other seat wins."""
    line = logs.recorded(strategic("kuhn_poker", fixed=[2, 0]))
    swapped = {**line, "scenario": strategic("kuhn_poker", fixed=[0, 2]).to_dict()}
    assert logs.replayed(line) == line["end"]
    assert logs.replayed(swapped)["said"] == line["end"]["said"]
    assert logs.replayed(swapped)["returns"] != line["end"]["returns"]
    with pytest.raises(AssertionError, match="not over"):
        logs.replayed({**line, "moves": line["moves"][:-1]})
