"""The opponents of a run: the pool, engines for frozen weights, remote connections, players without a model.

Opponents that are adapters of the run's base model share one engine, and so one copy of its weights
(`training.learn.adapter_opponents`). Of the others, past versions of the learner share `rollout.past_loaded` engines,
and every named model has its own. Raises `BadInput` for an unknown source, and for a saved step that is not on this
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from training import bases, phases, players
from training.config import RunConfig
from training.engines.adapters import AdapterEngine
from training.engines.base import Engine
from training.errors import BadInput
from training.games import make
from training.learn.adapter_opponents import AdapterOpponents
from training.opponent_sections import MIRROR, PAST, PHASE, START, TEACHER, Opponent, of_learner
from training.players.base import Player, PlayerFactory
from training.players.contestants import Contestant, ContestantPool, check
from training.records import Scenario
from training.rollout.pool import Pool, check_seats, fits, past_policy
from training.rundir import RunDir

if TYPE_CHECKING:
    from pathlib import Path

    from training.text.template import ChatTokenizer


class Opponents:
    """All opponents that a run's games may be played with. `device` is where their engines sample."""

    def __init__(self, config: RunConfig, run_dir: RunDir, starts: Sequence[Scenario], device: str) -> None:
        self.config, self._run_dir = config, run_dir
        _check(config, starts)
        self._starts = tuple({start.game: start for start in starts}.values())
        self._base = bases.resolve(config.model.base)
        self._contestants = ContestantPool(config.engine, config.sampling, device, config.speaker)
        self._named: dict[str, Contestant] = {}
        self._past: list[Engine] = []
        self._adapters = AdapterOpponents(config, self._base, self._contestants)
        self._teacher: PlayerFactory | None = None

    def place(self, make: Callable[..., AdapterEngine]) -> None:
        """Let `make` make all engines that are opened from now on, as `engines.make` does."""
        self._contestants.make = make

    def open(self, config: RunConfig) -> None:
        """Open the opponents of the run, or of a phase with the configuration `config`, and its teacher.

        Those that are open already stay so.

        Raises `BadInput` for one that is gone.
        """
        rollout = config.rollout
        self.pool = Pool(
            config.opponents,
            config.seed,
            save_every=config.learn.save_every,
            saved=rollout.past_saved,
            loaded=rollout.past_loaded,
            pfsp=config.league.pfsp if config.league.every else "none",
            lag=config.cluster.lag,
        )
        folders = {source: self._folder(source) for source in self.pool.sources}
        self._adapters.open(folders, rollout.past_loaded if self.pool.uses_past else 0)
        self._named = {
            source: self._named.get(source) or self._contestants.open(folder, source)
            for source, folder in folders.items()
            if source not in self._adapters.named
        }
        self._teacher = self._contestants.teacher(config.teacher) if config.teacher.source else None
        self._contestants.check_choices(self._starts)
        engines = rollout.past_loaded if self.pool.uses_past and not self._adapters.has_past else 0
        self._past += [self._contestants.load(self._base) for _ in range(engines - len(self._past))]

    def model_player(self, engine: Engine, tokenizer: ChatTokenizer, scenario: Scenario, **named: Any) -> Player:
        """Return a model at one seat, with the run's speaker where it has one; see `ContestantPool.model_player`."""
        return self._contestants.model_player(engine, tokenizer, scenario, **named)

    async def go_on(self, config: RunConfig) -> None:
        """Close the engines that the phase of `config` does not need, then open its opponents."""
        sources = {source for entry in config.opponents for source in entry.sources.values()}
        if PAST not in sources:
            for engine in self._past:
                await engine.close()
            self._past.clear()
        kept = {self._folder(source) for source in sources if source in self._named}
        kept |= {config.teacher.source} - {""}
        self._named = {source: contestant for source, contestant in self._named.items() if source in sources}
        await self._contestants.close_except(kept)
        await self._adapters.close()
        self.open(config)

    def _folder(self, source: str) -> str:
        """Return what a source names: the folder of the learner as it was, others as they are."""
        if source != START and not source.startswith(PHASE):
            return source
        try:
            return str(folder_of(self.config, self._run_dir, source) or self._base)
        except BadInput as error:
            raise BadInput(f"{source!r} cannot play: {error.why}", error.where) from error

    async def ready(self, step: int) -> Mapping[str, PlayerFactory]:
        """Load the weights of the opponents that may be drawn in training step `step`; return them by name.

        Weights are loaded again for every step, because a resumed run does not have the engines' caches of earlier
        steps.
        """
        factories = {source: contestant.player for source, contestant in self._named.items()}
        factories |= {TEACHER: self._teacher} if self._teacher else {}
        await self._contestants.reload()
        past = self.pool.past(step)
        if self._adapters.has_past:
            return factories | await self._adapters.ready({past_policy(saved): self._saved(saved) for saved in past})
        factories |= await self._adapters.ready({})
        for engine, saved in zip(self._past, past, strict=False):
            await engine.load_weights(self._saved(saved))
            policy = past_policy(saved)
            factories[policy] = self._contestants.seated(engine, self._base, policy)
        return factories

    def _saved(self, step: int) -> Path:
        """Return the folder of the learner as it was after a step."""
        return self._run_dir.checkpoint_of(step) if step else self._base

    async def players_of(self, policy: str) -> PlayerFactory:
        """Return the players of one opponent, with its weights loaded again; `policy` is its name in the pool.

        A past self takes the place of one that `ready` has loaded.
        """
        if policy in self._named:
            await self._contestants.reload()
            return self._named[policy].player
        if policy in self._adapters.named:
            return await self._adapters.player(policy)
        saved = self._saved(int(policy.removeprefix(PAST)))
        if self._adapters.has_past:
            return await self._adapters.player(policy, saved)
        await self._past[0].load_weights(saved)
        return self._contestants.seated(self._past[0], self._base, policy)

    async def aclose(self) -> None:
        """Close all engines and connections, even if closing one of them fails."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._contestants.aclose)
            stack.push_async_callback(self._adapters.close)
            for engine in self._past:
                stack.push_async_callback(engine.close)


def folder_of(config: RunConfig, run_dir: RunDir, source: str) -> Path | None:
    """Return the checkpoint of `phase NAME`, None for `start`; raise `BadInput` if it is not on this machine."""
    step = phases.end_of(config.phases, source)
    return run_dir.checkpoint_of(step) if step else None


def _check(config: RunConfig, starts: Sequence[Scenario]) -> None:
    """Raise `BadInput` for a player that does not exist or cannot play one of the run's games or roles."""
    games = {start.game: start for start in starts}
    for where, source in config.sources():
        if of_learner(source):
            continue
        try:
            check(source)
            for start in games.values() if players.known(source) else ():
                players.make(source, start, 0)
        except BadInput as error:
            raise BadInput(error.why, where) from error
    for where, opponent in config.entries():
        if opponent.source != MIRROR:
            _check_seats(opponent, where, starts)


def _check_seats(opponent: Opponent, where: str, starts: Sequence[Scenario]) -> None:
    """Raise `BadInput` for roles that no start has, and where a partner or an ally would take somebody's only seat."""
    roles = [(start, make(start).roles()) for start in starts]
    fitting = [(start, of_start) for start, of_start in roles if fits(opponent, of_start)]
    if not fitting:
        known = sorted({role for _, of_start in roles for role in of_start})
        has = f"the starts have {', '.join(known)}" if known else "the starts have no roles"
        raise BadInput(f"nobody has the learner's roles ({', '.join(opponent.learner)}); {has}", f"{where}.learner")
    if opponent.learner != "one" and all({*of_start} <= {*opponent.learner} for _, of_start in fitting):
        raise BadInput("the learner would play every seat, so nobody opposes: leave a role out", f"{where}.learner")
    for start, of_start in fitting:
        check_seats(opponent, start, of_start, where)
