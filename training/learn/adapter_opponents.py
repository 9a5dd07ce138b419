"""Opponents that are adapters of the run's base model: one engine and one copy of the weights for all of them.

They are past selves and phases of a run whose checkpoints hold adapters only, and named models that are plain LoRA
adapters of the same base. Where nobody is, there is no engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from training import bases, players
from training.config import RunConfig
from training.engines.adapters import LINEAR, Adapted, AdapterEngine, Lora, lora_of
from training.errors import OutsideError
from training.learn.policy import saves_adapter_only
from training.opponent_sections import SPEAKER
from training.players.base import PlayerFactory
from training.players.contestants import ContestantPool, folder_of

if TYPE_CHECKING:
    from training.engines.base import Engine


class AdapterOpponents:
    """The engine of a run's opponents that are adapters of its model, which is in the folder `base`."""

    def __init__(self, config: RunConfig, base: Path, contestants: ContestantPool) -> None:
        self._base, self._contestants = base, contestants
        self._full = bases.base_of(base).resolve()
        lora = config.learn.lora
        served = saves_adapter_only(config.model.base, config.learn) and lora is not None and {*lora.targets} <= LINEAR
        self._saved_rank = lora.rank if served and lora is not None else 0
        self._engine: AdapterEngine | None = None
        self._past: dict[str, Path] = {}
        self._most = 0
        self.named: dict[str, Path] = {}
        """The folders of named opponents that this engine plays, by their sources."""
        self.has_past = False
        """Whether this engine plays past selves."""

    def open(self, folders: Mapping[str, str], past: int) -> None:
        """Make the engine for those opponents that it can play, unless it is there; `past` selves at once."""
        self.has_past, self._most = bool(past and self._saved_rank), past
        local = {
            source: folder_of(named)
            for source, named in folders.items()
            if not (named == SPEAKER or players.known(named) or "://" in named)
        }
        adapters = {source: lora for source, folder in local.items() if (lora := self._lora(folder))}
        ranks = [lora.rank for lora in adapters.values()] + ([self._saved_rank] if self.has_past else [])
        self.named = {
            source: folder
            for source, folder in local.items()
            if source in adapters or (ranks and folder == self._full)  # the base itself needs no engine of its own
        }
        if ranks and self._engine is None:
            many = len(adapters) + (past if self.has_past else 0)
            self._engine = self._contestants.load(self._full, adapters=many, adapter_rank=max(ranks))

    def _lora(self, folder: Path) -> Lora | None:
        """Return the adapter in a folder, if it is a plain one of the same base."""
        same = bases.is_adapter(folder) and bases.base_of(folder).resolve() == self._full
        return lora_of(folder) if same else None

    async def ready(self, past: Mapping[str, Path]) -> dict[str, PlayerFactory]:
        """Load the named opponents and these past selves again; return all of them by policy."""
        if self._engine is None:
            return {}
        self._past = dict(past)
        policies = {**self.named, **past}
        for folder in policies.values():
            if not folder.is_dir():
                raise OutsideError(f"a seat of this run needs the model in {folder}, which is no longer there")
        adapters = {policy: folder for policy, folder in policies.items() if bases.is_adapter(folder)}
        await self._engine.load_adapters(adapters)
        factories = {}
        for policy in policies:
            engine: Engine = Adapted(self._engine, policy if policy in adapters else "")
            factories[policy] = self._contestants.seated(engine, self._base, policy)
        return factories

    async def player(self, policy: str, saved: Path | None = None) -> PlayerFactory:
        """Return the players of one opponent, with all adapters loaded again.

        A past self, which is `saved` in a folder, takes the place of another where as many are loaded as may be.
        """
        past = {name: folder for name, folder in self._past.items() if name != policy and folder.is_dir()}
        if saved is not None:
            past = {**dict([*past.items()][: self._most - 1]), policy: saved}
        return (await self.ready(past))[policy]

    async def close(self) -> None:
        """End the engine; `open` makes another."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.close()
