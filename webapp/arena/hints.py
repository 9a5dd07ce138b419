"""Hints to whoever watches a match: "look". They may be lost; a socket also looks by itself every few seconds."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterable
from functools import cache

from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from training.records import Viewer
from webapp.core.circuit import CIRCUIT

logger = logging.getLogger(__name__)
SEND_WITHIN = 0.5


def group(match_id: int) -> str:
    """The channel-layer group of everybody who looks at a match."""
    return f"arena.{match_id}"


def send(match_id: int, viewers: Iterable[Viewer]) -> None:
    """Tell these viewers' sockets to look, once the current transaction commits. Redis being away breaks nothing."""
    told = tuple(viewers)
    transaction.on_commit(lambda: _send_now(match_id, told), robust=True)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The loop of this process that sends hints: connections belong to a loop, and a new one for each hint is slow."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="hints", daemon=True).start()
    return loop


def _send_now(match_id: int, viewers: tuple[Viewer, ...]) -> None:
    if not CIRCUIT.closed:
        return
    sent = asyncio.run_coroutine_threadsafe(_group_send(match_id, viewers), _loop())
    try:
        sent.result(SEND_WITHIN)
    except (RedisError, OSError) as error:
        sent.cancel()
        CIRCUIT.failed(error)
        logger.warning("hints of match %s not sent, the sockets will look by themselves: %s", match_id, error)


async def _group_send(match_id: int, viewers: tuple[Viewer, ...]) -> None:
    """One message for all: each socket knows whether it is meant."""
    await get_channel_layer().group_send(group(match_id), {"type": "look", "viewers": viewers})
