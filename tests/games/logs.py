"""Golden logs: games as a release stored them, and how each ended; `python -m tests.games.logs --write` adds more.

One file a release and game, one line a case of the game: scenario, moves, end. A stored file is never written again:
its matches may lie in somebody's database. `end` holds what a later release must still make of them: results, roles,
numbers, how many lines every viewer was shown and what they heard seats say. The game's own words may change.
"""

import hashlib
import sys
import tomllib
from pathlib import Path

from tests.games.play import played, viewers
from tests.games.worlds import CASES
from training.games import REGISTRY, replay
from training.records import Scenario, SeatMove
from training.store import dumps, read_lines

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "golden" / "logs"
SEED = 44


def release():
    """The release that the code at hand is going to be."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


def end(game):
    """What a game came to, without a word of its own."""
    heard = {viewer: game.observe(viewer).messages for viewer in viewers(game.scenario)}
    lines = [(viewer, line) for viewer, messages in heard.items() for line in messages]
    speeches = [(viewer, line.author, line.channel, line.text) for viewer, line in lines if line.author is not None]
    return {
        "returns": {str(seat): value for seat, value in game.returns().items()},
        "roles": list(game.roles()),
        "metrics": dict(game.metrics()),
        "seat_metrics": {str(seat): dict(metrics) for seat, metrics in game.seat_metrics().items()},
        "lines": {str(viewer): len(messages) for viewer, messages in heard.items()},
        "said": hashlib.sha256(dumps(speeches).encode()).hexdigest(),
    }


def recorded(scenario):
    """One line: a game that was played by chance."""
    game, flat = played(scenario, SEED)
    return {"scenario": game.scenario.to_dict(), "moves": [entry.to_dict() for entry in flat], "end": end(game)}


def replayed(line):
    """What the code at hand makes of a stored line."""
    game = replay(Scenario.from_dict(line["scenario"]), [SeatMove.from_dict(entry) for entry in line["moves"]])
    assert not game.to_act(), "the game is not over"
    return end(game)


def stored():
    """Every stored line as (release, game, line)."""
    paths = sorted(FOLDER.glob("*/*.jsonl"))
    return [(path.parent.name, path.stem, line) for path in paths for line, _ in read_lines(path)]


def write(folder):
    """Write the logs of this release that are not there yet; return their paths."""
    paths = [folder / f"{name}.jsonl" for name in REGISTRY]
    missing = [path for path in paths if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        with path.open("x", encoding="utf-8") as file:
            file.writelines(f"{dumps(recorded(scenario))}\n" for scenario in CASES[path.stem])
    return missing


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tests.games.logs --write")
    written = write(FOLDER / release())
    sys.stdout.write("".join(f"{path.relative_to(ROOT)}\n" for path in written) or "nothing is missing\n")
