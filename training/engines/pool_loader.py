"""What the engines of a pool load: weights, adapters, folders of weights and other models, the same in each.

All of it runs on the pool's thread. Engines load while no request begins, and once their running ones have ended; what
they loaded is kept for those that start later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training.cluster.supervisor import Process
from training.cluster.worker import RemoteError
from training.engines.affinity import Affinity
from training.engines.slots import Gone, Slot
from training.errors import EngineError, ParleyError


@dataclass(slots=True)
class LoadedModel:
    """What an engine of a model is made with, as by `engines.make`, and what it loaded since."""

    name: str
    model: str | Path
    options: dict[str, Any]
    folder: Path | None = None
    adapters: dict[str, Path] = field(default_factory=dict)


Processes = list[tuple[Slot, Process]]
"""Engines, each with the process that it had when the list was made."""


class PoolLoader:
    """Loads the same into all engines of a pool; `model` is what they are made with first.

    `call(slot, process, method, *arguments)` calls a method of `EngineActor` in a process; it raises `Gone` if that has
    ended. `announce()` is called whenever engines serve again.
    """

    def __init__(
        self,
        slots: list[Slot],
        affinity: Affinity,
        model: LoadedModel,
        call: Callable[..., Coroutine[Any, Any, Any]],
        announce: Callable[[], None],
    ) -> None:
        self._slots, self._affinity, self._call, self._announce = slots, affinity, call, announce
        self._models = {"": model}  # by key
        self._lock = asyncio.Lock()
        self._weights: list[Any] = []  # references to the chunks of the newest weights
        self._incomplete = ""
        self._filling = False  # while weights arrive, for which requests wait
        self._ending: asyncio.Future[None] | None = None  # kept here, since the loop itself keeps no task alive
        self.version: int | None = None
        """The version of the newest weights, also while the engines load them; None = the model's own, or not named."""

    @property
    def incomplete(self) -> str:
        """Why the weights of the engines are incomplete; empty if they are complete, or while new ones arrive."""
        return "" if self._filling else self._incomplete

    async def load_weights(self, next_chunk: Callable[[], Awaitable[Any]], version: int | None) -> None:
        """Let the engines load new weights by references to their chunks, the last of which is followed by None.

        The references are kept for engines that start later. Wherever this is cancelled, what it began is ended, too.
        """
        targets = await self._take_lock()
        failure: RemoteError | None = RemoteError(EngineError("the rest of the weights did not come"))
        try:
            self._weights.clear()
            self.version = version
            self._incomplete, self._filling = "the weights are incomplete", True
            await self._call_all(targets, "begin_weights", version)
            while (chunk := await next_chunk()) is not None:
                self._weights.append(chunk)
                await self._call_all(targets, "take", chunk)
            failure = None
        finally:  # an engine that does not hear of the end would wait for the next chunk for ever
            self._ending = asyncio.ensure_future(self._end_weights(targets, failure))
            await asyncio.shield(self._ending)

    async def _end_weights(self, targets: Processes, failure: RemoteError | None) -> None:
        """Wait until the engines have the weights; let them serve, and release the lock."""
        try:
            await self._call_all(targets, "end_weights", failure)
            if failure is not None:  # also if all engines that began are gone
                raise failure.error
            self._incomplete = ""
        except ParleyError as error:
            self._incomplete = f"the weights are incomplete: {error}"
            self._weights.clear()
            if failure is None:
                raise
        finally:
            self._filling = False
            self._release(targets)

    async def open_model(self, key: str, model: LoadedModel) -> None:
        """Make a model's engines, also in processes that start later."""
        async with self._loading() as targets:
            try:
                await self._call_all(targets, "open_model", key, model.name, model.model, model.options)
            except BaseException:  # some may have made it
                await self._call_all(targets, "close_model", key)
                raise
            self._models[key] = model

    async def close_model(self, key: str) -> None:
        """End a model's engines; do nothing if they are ended."""
        async with self._loading() as targets:
            if self._models.pop(key, None):
                await self._call_all(targets, "close_model", key)

    async def load_adapters(self, key: str, adapters: dict[str, Path]) -> None:
        """Let all engines of a model load adapters, also those that start later."""
        async with self._loading() as targets:
            await self._call_all(targets, "load_adapters", key, adapters)
            self._models[key].adapters = adapters

    async def load_folder(self, key: str, folder: Path) -> None:
        """Let all engines of a model load the weights of a folder, also those that start later."""
        async with self._loading() as targets:
            await self._call_all(targets, "load_folder", key, folder)
            self._models[key].folder = folder

    async def restore(self, slot: Slot, limit_s: float) -> None:
        """Load into a process that has started what the others have, and let it serve; `TimeoutError` after a limit.

        Raises `Gone` if the process has ended, also while others were loading.
        """
        process = slot.process
        async with self._lock:
            await asyncio.wait_for(self._restore(slot), limit_s)
            if process is None or slot.process is not process:
                raise Gone(f"{slot} is gone")
            slot.state = "serving"

    async def _restore(self, slot: Slot) -> None:
        if self._weights:
            await self._call(slot, slot.process, "begin_weights", self.version)
            for chunk in self._weights:
                await self._call(slot, slot.process, "take", chunk)
            await self._call(slot, slot.process, "end_weights")
        for key, model in self._models.items():
            if key:
                await self._call(slot, slot.process, "open_model", key, model.name, model.model, model.options)
            if model.folder:
                await self._call(slot, slot.process, "load_folder", key, model.folder)
            if model.adapters:
                await self._call(slot, slot.process, "load_adapters", key, model.adapters)

    @asynccontextmanager
    async def _loading(self) -> AsyncIterator[Processes]:
        """Let the engines that serve load something, while no request begins."""
        targets = await self._take_lock()
        try:
            yield targets
        finally:
            self._release(targets)

    async def _take_lock(self) -> Processes:
        """Take the lock of what engines have to load; return those that serve, which do so no longer."""
        await self._lock.acquire()
        targets = [(slot, slot.process) for slot in self._slots if slot.process and slot.state == "serving"]
        for slot, _ in targets:
            slot.state = "loading"
            self._affinity.forget(slot.index)
        return targets

    def _release(self, targets: Processes) -> None:
        for slot, process in targets:
            if slot.state == "loading" and slot.process is process:
                slot.state = "serving"
        self._lock.release()
        self._announce()

    async def _call_all(self, targets: Processes, method: str, *arguments: Any) -> None:
        """Call these engines, and drop from the list those that are gone: they load everything once they restart."""
        calls = (self._call(slot, process, method, *arguments) for slot, process in targets)
        results = await asyncio.gather(*calls, return_exceptions=True)
        pairs = list(zip(targets, results, strict=True))
        targets[:] = [process for process, result in pairs if not isinstance(result, Gone)]
        for _, result in pairs:
            if isinstance(result, BaseException) and not isinstance(result, Gone):
                raise result
