"""The evaluations of a league: every so many steps the newest checkpoint plays its past selves and all other opponents.

All pairs play the same starts. The table of results is kept in every checkpoint, as `league.json` in the attempt, and
as events; the games are episodes of the step. Raises `BadInput` for roles that too few starts have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from training.config import RunConfig
from training.errors import BadInput
from training.games import lookup, make
from training.learn import report
from training.learn.opponents import Opponents
from training.learn.scenarios import MixtureSampler, ScenarioSampler
from training.opponent_sections import MIRROR, PAST, Opponent, with_roles
from training.records import Episode, Scenario, Seat
from training.rollout import Job, RolloutPolicy, rollout
from training.rollout.league import Cell, Table, bounds, mean_result, read, seats_title
from training.rollout.pool import column, past_policy
from training.run_sections import MOST_GAMES
from training.seeding import derive
from training.store import write_json

if TYPE_CHECKING:
    from pathlib import Path

    from training.learn.trainer import Trainer
    from training.players.base import PlayerFactory, Reply
    from training.rundir import RunDir


DRAWS = 100
"""Most starts that are drawn for each game of an evaluation: what a game deals may leave a start without the roles."""
Seating = tuple[Scenario, tuple[Seat, ...]]
"""A start with the seats of the checkpoint in the row."""


@dataclass(frozen=True, slots=True)
class Side:
    """The learner's seats in some entries of the pool, with its seatings in an evaluation, and the opponents there."""

    learner: str
    seatings: tuple[Seating, ...]
    named: tuple[str, ...]
    past: bool

    @property
    def mirrored(self) -> bool:
        """Whether the games of one against another are also those of the other against the one."""
        return self.learner == "one" and all(len(start.seats) == 2 for start, _ in self.seatings)


@dataclass(frozen=True, slots=True)
class Match:
    """One game: its job, and the seats of the checkpoint in the row and of the opponent in the column."""

    job: Job
    row: tuple[Seat, ...]
    column: tuple[Seat, ...]


class Pair:
    """A checkpoint and an opponent with their games, which are numbered from `first`."""

    def __init__(self, side: Side, row: int, opponent: str, first: int) -> None:
        self.side, self.row, self.opponent = side, row, opponent
        self.matches = [self._match(first + at, *seating) for at, seating in enumerate(side.seatings)]

    def _match(self, number: int, start: Scenario, seats: tuple[Seat, ...]) -> Match:
        everywhere = range(len(start.seats))
        policies = tuple(past_policy(self.row) if seat in seats else self.opponent for seat in everywhere)
        return Match(Job(number, start, policies), seats, tuple(seat for seat in everywhere if seat not in seats))


class Counter:
    """Reports the progress of an evaluation; raises `StopRequested` once somebody asks to stop."""

    def __init__(self, trainer: Trainer, games: int) -> None:
        self._progress, self._games, self._replies = trainer.progress, 0, 0
        self._progress.phase("evaluating", done=0, of=games)

    def game(self) -> None:
        """Count one game."""
        self._games += 1
        self._progress.check()
        self._progress.beat(done=self._games)

    def reply(self, reply: Reply) -> None:
        """Count one reply."""
        self._replies += 1
        self._progress.check()
        self._progress.beat(replies=self._replies)


class League:
    """The league of a run; without `league.every` it does nothing."""

    def __init__(self, config: RunConfig, starts: MixtureSampler, opponents: Opponents) -> None:
        self.config, self.opponents = config, opponents
        self.sides = list(_sides(config, starts)) if config.league.every else []
        self.scale = bounds(starts.scenarios)

    @property
    def table(self) -> Table:
        """The results so far."""
        return self.opponents.pool.table

    def due(self, step: int) -> bool:
        """Return whether the games after `step` are still to be played."""
        every = self.config.league.every
        return bool(every) and step % every == 0 and all(cell.after != step for cell in self.table)

    async def play(self, trainer: Trainer) -> None:
        """Play the games of the present weights; enter, store and report their results."""
        step, first = trainer.step, MOST_GAMES
        pairs: list[Pair] = []
        for side, row, opponent in self._meetings(step):
            pairs.append(Pair(side, row, opponent, first))
            first += len(pairs[-1].matches)
        if not pairs:  # the start has only itself to play
            return
        done = Counter(trainer, first - MOST_GAMES)
        episodes = [await self._played(trainer, pair, done) for pair in pairs]
        cells = [cell for pair, ended in zip(pairs, episodes, strict=True) for cell in self._cells(step, pair, ended)]
        for pair, ended in zip(pairs, episodes, strict=True):
            for match, episode in zip(pair.matches, ended, strict=True):
                _store(trainer, pair, match, episode)
        self.table.add(cells)
        trainer.progress.event("league", step=step, cells=[cell.to_dict() for cell in cells])
        # last: an attempt that is killed before it leaves the evaluation to the next one, which reports it again
        write_json(trainer.progress.attempt.league, {"version": 1, "cells": self.table.to_list()})

    def _meetings(self, step: int) -> Iterator[tuple[Side, int, str]]:
        """Yield the pairs of an evaluation: the side, the checkpoint in the row, and the opponent.

        Where one seat meets one other, the games of two checkpoints count for both. Otherwise they meet in both roles.
        The newest meets itself, unless that result is certain to be that of a draw.
        """
        saved = [each for each in self.opponents.pool.saved(step + 1) if each != step]
        drawn = all(lookup(part.game).zero_sum for part in self.config.parts)
        for side in self.sides:
            for name in side.named:
                yield side, step, name
            for each in saved if side.past else ():
                yield side, step, past_policy(each)
                if not side.mirrored:
                    yield side, each, past_policy(step)
            if side.past and not (side.mirrored and drawn):
                yield side, step, past_policy(step)

    async def _played(self, trainer: Trainer, pair: Pair, done: Counter) -> list[Episode]:
        """Return the episodes of a pair; the learner's engine starts anew, so that earlier games round nothing."""
        settings = self.config.rollout
        seed = derive(self.config.seed, "league")
        rules = RolloutPolicy(seed, trainer.step, settings.retries, settings.on_refused, settings.probes)
        await trainer.sync(trainer.step)
        newest = past_policy(trainer.step)
        players: dict[str, PlayerFactory] = {newest: trainer.context.player}
        for name in {past_policy(pair.row), pair.opponent} - {newest}:
            players[name] = await self.opponents.players_of(name)
        jobs = [match.job for match in pair.matches]
        lanes = min(settings.lanes or len(jobs), len(jobs))
        episodes: dict[int, Episode] = {}
        async for job, episode in rollout(
            jobs, players, lanes=lanes, rules=rules, tool=trainer.context.tool, on_reply=done.reply
        ):
            episodes[job.number] = episode
            done.game()
        return [episodes[job.number] for job in jobs]

    def _cells(self, step: int, pair: Pair, episodes: Sequence[Episode]) -> Iterator[Cell]:
        """Yield the cell of a pair with a result, and that of the other checkpoint where the games count for both."""
        results: dict[tuple[str, int], list[tuple[float, float]]] = {}
        for match, episode in zip(pair.matches, episodes, strict=True):
            returns = {seat: value for seat, value in episode.returns.items() if value is not None}
            if episode.error is None and len(returns) == len(episode.scenario.seats):
                start = match.job.scenario
                mine, theirs = (mean_result(start, returns, seats, self.scale) for seats in (match.row, match.column))
                results.setdefault((start.id, start.seed), []).append((mine, theirs))
        if not results:
            return
        games = sum(map(len, results.values()))
        cell = Cell(
            step=pair.row,
            opponent=column(pair.opponent),
            learner=pair.side.learner,
            results=tuple(fmean(mine for mine, _ in rows) for rows in results.values()),
            others=tuple(fmean(theirs for _, theirs in rows) for rows in results.values()),
            low=self.scale[0],
            high=self.scale[1],
            games=games,
            errors=len(episodes) - games,
            after=step,
            first=pair.matches[0].job.number,
        )
        yield cell
        if pair.side.mirrored and pair.opponent not in (*pair.side.named, past_policy(pair.row)):
            swapped = {"step": int(pair.opponent.removeprefix(PAST)), "opponent": past_policy(pair.row)}
            yield cell.model_copy(update={**swapped, "results": cell.others, "others": cell.results})

    # --- going on ---

    def state_dict(self) -> list[dict[str, Any]]:
        """Return the table."""
        return self.table.to_list()

    def restore(self, data: Sequence[Any], run_dir: RunDir, folder: Path, step: int) -> None:
        """Read the table of a checkpoint in `folder`, and the results after `step`, which came once it was saved.

        They are those of the attempt that saved it, or of a later one that began from it.
        """
        self.table.add(Table.from_list(data))
        for number in reversed(run_dir.attempts()):
            files = run_dir.attempt(number)
            cells = [cell for cell in read(files) if cell.after == step]
            if cells:
                self.table.add(cells)
            if cells or files.root in folder.parents:
                return


def _sides(config: RunConfig, starts: MixtureSampler) -> Iterator[Side]:
    """Yield the sides of the run's opponents; raise `BadInput` for one that too few starts have."""
    entries: dict[str, list[tuple[int, Opponent]]] = {}
    for place, entry in enumerate(config.opponents):
        if entry.source != MIRROR:
            entries.setdefault(seats_title(entry.learner), []).append((place, entry))
    for learner, members in entries.items():
        place, entry = members[0]
        chosen = _seatings(config, starts, entry, f"opponents.{place}.learner")
        named: dict[str, str] = {}
        for place, member in members:
            if member.source != PAST and named.setdefault(column(member.source), member.source) != member.source:
                why = f"another opponent is called {column(member.source)} as well: the table could not tell them apart"
                raise BadInput(why, f"opponents.{place}.source")
        yield Side(learner, chosen, tuple(named.values()), any(member.source == PAST for _, member in members))


def _store(trainer: Trainer, pair: Pair, match: Match, episode: Episode) -> None:
    """Append one game to the episodes of the step, in a file of its own kind."""
    seats = {"a": match.row, "b": match.column}
    league = {"step": pair.row, "opponent": column(pair.opponent), "learner": pair.side.learner}
    file = trainer.progress.attempt.league_games(trainer.step)
    number = match.job.number
    report.write_evaluated(trainer.progress, trainer.step, number, episode, seats, {"league": league}, file=file)


def _seatings(config: RunConfig, starts: MixtureSampler, entry: Opponent, where: str) -> tuple[Seating, ...]:
    """Return the seatings of an evaluation: whole starts, until there are `league.games`.

    Starts without the learner's roles, or without a seat for the opponent, are left out.
    """
    sampler = _fitting(config, starts, entry)
    chosen: list[Seating] = []
    for place in range(DRAWS * config.league.games):
        start = sampler.start(place)
        chosen += [(start, seats) for seats in _seats(entry, start)]
        if len(chosen) >= config.league.games:
            return tuple(chosen)
    why = f"of {DRAWS * config.league.games} starts only {len(chosen)} seat the learner ({seats_title(entry.learner)})"
    raise BadInput(f"{why} and an opponent: an evaluation has {config.league.games} games", where)


def _fitting(config: RunConfig, starts: MixtureSampler, entry: Opponent) -> MixtureSampler:
    """Return the sampler of the starts that fit, each part of the mixture with the share that they have in it."""
    seed = derive(config.seed, "league")
    parts, weights = [], []
    for part, weight in zip(starts.parts, starts.weights, strict=True):
        if fitting := [scenario for scenario in part.scenarios if _seats(entry, scenario)]:
            parts.append(ScenarioSampler(fitting, seed, shuffle=part.shuffle))
            weights.append(weight * len(fitting) / len(part.scenarios))
    return MixtureSampler(parts, weights)


def _seats(entry: Opponent, start: Scenario) -> list[tuple[Seat, ...]]:
    """Return the learner's seats in each game of a start: every single one in turn, or those with its roles."""
    count = len(start.seats)
    if entry.learner == "one":
        return [(seat,) for seat in range(count)] if count > 1 else []
    seats = with_roles(entry.learner, make(start).roles())
    return [tuple(sorted(seats))] if 0 < len(seats) < count else []
