"""The opponents of a run: the pool, engines for frozen weights, remote connections, players without a model.

Past versions of the learner share `rollout.past_loaded` engines; every named model has its own engine. Raises
`BadInput` for an unknown source, and for a saved step that is not on this machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from training import bases, players
from training.config import RunConfig
from training.engines.base import Engine
from training.errors import BadInput
from training.players.base import PlayerFactory
from training.players.contestants import Contestant, ContestantPool, check
from training.records import Scenario
from training.rollout.pool import Pool, past_policy
from training.run_sections import MIRROR, PAST
from training.rundir import RunDir


class Opponents:
    """All opponents that a run's games may be played with. `device` is where their engines sample."""

    def __init__(self, config: RunConfig, run_dir: RunDir, starts: Sequence[Scenario], device: str) -> None:
        rollout = config.rollout
        self.pool = Pool(
            config.opponents,
            config.seed,
            save_every=config.learn.save_every,
            saved=rollout.past_saved,
            loaded=rollout.past_loaded,
            pfsp=config.league.pfsp if config.league.every else "none",
        )
        self._run_dir = run_dir
        _check(config, starts)
        self._base = bases.resolve(config.model.base)
        self._contestants = ContestantPool(config.engine, config.sampling, device)
        self._named: dict[str, Contestant] = {
            source: self._contestants.open(source, source) for source in self.pool.sources
        }
        engines = rollout.past_loaded if self.pool.uses_past else 0
        self._past: list[Engine] = [self._contestants.load(self._base) for _ in range(engines)]

    async def ready(self, step: int) -> Mapping[str, PlayerFactory]:
        """Load the weights of the opponents that may be drawn in training step `step`; return them by name.

        Weights are loaded again for every step, because a resumed run does not have the engines' caches of earlier
        steps.
        """
        factories = {source: contestant.player for source, contestant in self._named.items()}
        await self._contestants.reload()
        for engine, saved in zip(self._past, self.pool.past(step), strict=False):
            await engine.load_weights(self._run_dir.checkpoint_of(saved) if saved else self._base)
            policy = past_policy(saved)
            factories[policy] = self._contestants.seated(engine, self._base, policy)
        return factories

    async def one(self, policy: str) -> PlayerFactory:
        """Return the players of one opponent, with its weights loaded again; `policy` is its name in the pool.

        A past self takes the place of one that `ready` has loaded.
        """
        if policy in self._named:
            await self._contestants.reload()
            return self._named[policy].player
        saved = int(policy.removeprefix(PAST))
        await self._past[0].load_weights(self._run_dir.checkpoint_of(saved) if saved else self._base)
        return self._contestants.seated(self._past[0], self._base, policy)

    async def aclose(self) -> None:
        """Close all engines and connections, even if closing one of them fails."""
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._contestants.aclose)
            for engine in self._past:
                stack.push_async_callback(engine.close)


def _check(config: RunConfig, starts: Sequence[Scenario]) -> None:
    """Raise `BadInput` for an opponent that does not exist or cannot play one of the run's games."""
    games = {start.game: start for start in starts}
    for place, opponent in enumerate(config.opponents):
        if opponent.source in (MIRROR, PAST):
            continue
        try:
            check(opponent.source)
            for start in games.values() if players.known(opponent.source) else ():
                players.make(opponent.source, start, 0)
        except BadInput as error:
            raise BadInput(error.why, f"opponents.{place}.source") from error
