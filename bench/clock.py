"""Divides a training step's seconds among its parts: calls are timed by patching, without changes to measured code."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

REST = "rest"
WHOLE = "sampling"
"""A part that is not divided further: the forward passes of sampling belong to it."""


def now() -> float:
    """Return the time in seconds, after waiting for the GPU to finish its queued work."""
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.synchronize()
    return time.perf_counter()


class Clock:
    """Seconds by part, which sum to the time from `start` to `stop`. A nested part's time is not in its parent's."""

    def __init__(self, now: Callable[[], float] = now) -> None:
        self._now = now
        self.start()

    def start(self) -> None:
        """Reset all parts and start counting."""
        self._seconds: dict[str, float] = {}
        self._open = [REST]
        self._since = self._now()

    def stop(self) -> dict[str, float]:
        """Return the seconds by part."""
        self._count()
        return dict(self._seconds)

    def enter(self, part: str) -> None:
        """Begin a part."""
        if self._open[-1] == WHOLE:
            part = WHOLE
        else:
            self._count()
        self._open.append(part)

    def leave(self) -> None:
        """End the innermost part."""
        if self._open[-2] != WHOLE:
            self._count()
        self._open.pop()

    def timed(self, call: Callable[..., Any], part: str) -> Callable[..., Any]:
        """Return `call` with its seconds counted to `part`."""

        @functools.wraps(call)
        def counted(*args: Any, **kwargs: Any) -> Any:
            self.enter(part)
            try:
                return call(*args, **kwargs)
            finally:
                self.leave()

        return counted

    def _count(self) -> None:
        at, part = self._now(), self._open[-1]
        self._seconds[part] = self._seconds.get(part, 0.0) + at - self._since
        self._since = at


@contextmanager
def watched(clock: Clock, *calls: tuple[Any, str, str]) -> Iterator[None]:
    """Time `calls` (owner, name, part), all backward passes and all optimizers while the block runs."""
    everywhere = ((torch.autograd, "backward", "backward"), (nn.utils, "clip_grad_norm_", "optimizer"))
    with ExitStack() as stack:
        for owner, name, part in (*calls, *everywhere):
            stack.enter_context(patch.object(owner, name, clock.timed(getattr(owner, name), part)))
        stack.callback(register_optimizer_step_pre_hook(lambda *_: clock.enter("optimizer")).remove)
        stack.callback(register_optimizer_step_post_hook(lambda *_: clock.leave()).remove)
        yield
