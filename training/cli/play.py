"""`python -m training play`: plays games between named players without a local model, deterministic by seed."""

from __future__ import annotations

import asyncio
import os
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from training import dataset, players, samples
from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.games import REGISTRY, lookup, make
from training.games.prose import listed
from training.records import Episode, Scenario
from training.rollout import Job, RolloutPolicy, collect
from training.seeding import seeded
from training.store import dumps


def main(arguments: Namespace) -> dict[str, Any]:
    """Play the games and return their summary; raise `BadInput`, before the first game, for invalid arguments."""
    names = tuple(name.strip() for name in arguments.players.split(","))
    starts = _starts(arguments.game, arguments.scenarios, len(names))
    for scenario in starts:
        _check(scenario, names)
    for path in filter(None, (arguments.out, arguments.dataset)):
        _check_new(path)
    if arguments.out is not None and arguments.out == arguments.dataset:
        raise BadInput("--out and --dataset are two files", str(arguments.out))
    policies = {name: partial(players.make, name) for name in names}
    jobs = list(_jobs(starts, names, arguments.episodes, arguments.seed))
    rules = RolloutPolicy(seed=arguments.seed, retries=arguments.retries, on_refused=arguments.on_refused)
    began = time.perf_counter()
    episodes = asyncio.run(collect(jobs, policies, lanes=arguments.lanes, rules=rules))
    seconds = time.perf_counter() - began
    if arguments.out is not None:
        _write(arguments.out, (dumps(episode.to_dict()) for episode in episodes))
    if arguments.dataset is not None:
        _write(arguments.dataset, (line.dumps() for line in _lines(starts, episodes, names)))
    facts = {"game": arguments.game, "players": list(names), "seed": arguments.seed}
    return {**facts, **summary(episodes), "seconds": seconds}


def _jobs(starts: Sequence[Scenario], names: tuple[str, ...], episodes: int, seed: int) -> Iterator[Job]:
    """Cycle through the scenarios; a scenario without a seed gets a new one in each cycle."""
    for at in range(episodes):
        repeat, place = divmod(at, len(starts))
        yield Job(at, seeded(starts[place], seed, repeat), names)


def summary(episodes: Sequence[Episode]) -> dict[str, Any]:
    """Return counts and means: `returns` has one mean for each seat (None where no game of it had a result).

    `seat_metrics` has one mapping for each seat.
    """
    whole = [episode for episode in episodes if episode.error is None]
    seats = len(episodes[0].scenario.seats)
    return {
        "episodes": len(episodes),
        "errors": len(episodes) - len(whole),
        "returns": [_mean([episode.returns[seat] for episode in whole]) for seat in range(seats)],
        "forfeits": sum(int(episode.metrics["forfeits"]) for episode in whole),
        "metrics": _means([episode.metrics for episode in whole]),
        "seat_metrics": [_means([episode.seat_metrics.get(seat, {}) for episode in whole]) for seat in range(seats)],
    }


def _means(rows: Sequence[Mapping[str, float]]) -> dict[str, float | None]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: _mean([row.get(name) for row in rows]) for name in names}


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def _starts(game: str, path: Path | None, players: int) -> list[Scenario]:
    """Return the file's scenarios; without a file, the samples for this number of players."""
    seats = lookup(game).players[0]
    if path is None and game in REGISTRY:
        available = samples.for_game(game)
        sizes = sorted({len(start.seats) for start in available})
        if players not in sizes:
            need = listed(map(str, sizes), "or")
            raise BadInput(f"the samples of {game} are for {need} players, not {players}", "--players")
        return [start for start in available if len(start.seats) == players]
    if path is None:  # a game outside the registry has no samples, and a single scenario
        return [Scenario(id=game, game=game, seats=tuple(f"Player {seat + 1}" for seat in range(seats)))]
    if not path.is_file():
        raise BadInput("no such file", str(path))
    scenarios = [line.scenario for line in dataset.read(path)]
    if not scenarios:
        raise BadInput("the file contains no scenario", str(path))
    if other := next((scenario for scenario in scenarios if scenario.game != game), None):
        raise BadInput(f"scenario {other.id} is of the game {other.game}, not {game}", str(path))
    return scenarios


def _check(scenario: Scenario, names: Sequence[str]) -> None:
    """Raise `BadInput` unless these players can play the scenario."""
    try:
        make(scenario)
    except BadInput as error:
        raise BadInput(error.why, f"scenario {scenario.id}: {error.where}") from error
    if len(names) != len(scenario.seats):
        raise BadInput(f"scenario {scenario.id} needs {len(scenario.seats)} players, not {len(names)}", "--players")
    for seat, name in enumerate(names):
        players.make(name, scenario, seat)


def _check_new(path: Path) -> None:
    """Raise `BadInput` unless a file can be created at `path`, before hours of games are played."""
    if path.exists():
        raise BadInput("the file exists already; choose another name", str(path))
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise BadInput("the file cannot be created: its folder does not exist, or is not writable", str(path))


def _lines(starts: Sequence[Scenario], episodes: Sequence[Episode], names: Sequence[str]) -> Iterator[DatasetLine]:
    """Yield each played scenario with its games as conversations, except those with an error."""
    source = f"played by {', '.join(dict.fromkeys(names))}"
    conversations: dict[str, list[Conversation]] = {}
    for episode in episodes:
        if episode.error is None:
            conversations.setdefault(episode.scenario.id, []).append(Conversation(source=source, episode=episode))
    for start in starts:
        if games := conversations.get(start.id):
            yield DatasetLine(scenario=start, conversations=tuple(games))


def _write(path: Path, lines: Iterable[str]) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in lines)


def show(result: dict[str, Any]) -> str:
    """Return the result in a few lines."""
    returns = ", ".join("not scored" if mean is None else f"{mean:.3f}" for mean in result["returns"])
    sides = " against ".join(result["players"])
    lines = [
        f"{result['episodes']} games of {result['game']} in {result['seconds']:.1f} s: {sides}",
        f"mean return per seat: {returns}",
        f"forfeits: {result['forfeits']}, errors: {result['errors']}",
    ]
    lines += [f"{name}: {mean:.3f}" for name, mean in result["metrics"].items() if mean is not None]
    for seat, metrics in enumerate(result["seat_metrics"]):
        lines += [f"{name} of seat {seat}: {mean:.3f}" for name, mean in metrics.items() if mean is not None]
    return "\n".join(lines)
