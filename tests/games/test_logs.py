"""Trust 44: what any release stored of a game replays to the same end."""

import pytest

from tests.games import logs
from tests.games.cases.strategic import strategic
from training.games import REGISTRY

STORED = logs.stored()
NAMES = [f"{release}-{game}-{at}" for at, (release, game, _) in enumerate(STORED)]


@pytest.mark.parametrize("line", [line for *_, line in STORED], ids=NAMES)
def test_a_stored_game_ends_as_it_did(line):
    expected, found = line["end"], logs.replayed(line)
    metrics = {name: found["metrics"].get(name) for name in expected["metrics"]}  # a later release may count more
    assert {**found, "metrics": metrics} == expected


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
