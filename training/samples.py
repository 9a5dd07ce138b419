"""The sample scenarios of all games, as JSONL files that their games name in `GameSpec.samples`.

`load` raises `BadInput` for an unknown name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from functools import cache
from pathlib import Path

from training.errors import BadInput
from training.games import REGISTRY, lookup
from training.records import Scenario
from training.store import dumps, read_lines


def names() -> tuple[str, ...]:
    """Return the names of all samples, in the order of the games."""
    return tuple(_files())


def _files() -> dict[str, Path]:
    """Return the files by the name of the sample; of two files with one name the first game's counts."""
    files: dict[str, Path] = {}
    for spec in REGISTRY.values():
        for file in spec.samples:
            files.setdefault(file.stem, file)
    return files


def path(name: str) -> Path:
    """Return the JSONL file of one sample; raise `BadInput` if there is none of that name."""
    files = _files()
    if name not in files:
        raise BadInput(f"no sample is called {name!r}; there are: {', '.join(files)}", "sample")
    return files[name]


def load(name: str) -> tuple[Scenario, ...]:
    """Return the scenarios of one sample, in the order of the file."""
    return _read_file(path(name))


@cache
def _read_file(file: Path) -> tuple[Scenario, ...]:
    return tuple(Scenario.from_dict(line) for line, _ in read_lines(file))


def for_game(game: str) -> tuple[Scenario, ...]:
    """Return all samples of one game; raise `BadInput` for a game without any."""
    files = lookup(game).samples
    if not files:
        games = sorted(spec.name for spec in REGISTRY.values() if spec.samples)
        raise BadInput(f"there are no samples of {game!r}; there are of: {', '.join(games)}", "game")
    return tuple(scenario for file in files for scenario in _read_file(file) if scenario.game == game)


CORPORA = Path(__file__).parent / "samples" / "corpora"


def corpora() -> dict[str, Path]:
    """Return by name the small corpora in which the sample questions of `qa_society` can be searched."""
    return {file.stem: file for file in sorted(CORPORA.glob("*.jsonl"))}


def check_indexes(searched: Iterable[str], indexed: Collection[str]) -> None:
    """Raise `BadInput` unless each corpus that is `searched` is `indexed` or comes with the samples."""
    for corpus in searched:
        if corpus not in indexed and corpus not in corpora():
            why = f"no index is named for the corpus {corpus[:80]!r}; name one, such as {corpus[:80]} = 'NAME'"
            raise BadInput(why, "search.indexes")


def write(game: str, folder: Path) -> Path:
    """Write all samples of one game into `folder`, as one file named by its hash; return it."""
    return write_scenarios(for_game(game), folder)


def write_scenarios(scenarios: Iterable[Scenario], folder: Path) -> Path:
    """Write scenarios into `folder`, as one file named by its hash; return it."""
    text = "".join(dumps(scenario.to_dict()) + "\n" for scenario in scenarios)
    path = folder / f"{hashlib.sha256(text.encode()).hexdigest()}.jsonl"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path
