"""Hints to a match's viewers that something has changed. They may be lost: sockets also poll every few seconds.

For the sockets of this process, the committing thread reads what has changed and sends the time of this read along.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from functools import cache, partial

from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from training.records import Viewer
from webapp.core.circuit import CIRCUIT

logger = logging.getLogger(__name__)
SEND_WITHIN = 0.5
GIVE_WAY = 0.002
"""A pause after each viewer's read, in which their sockets send the frame: threads share one core."""

Reader = Callable[[int, Viewer], float | None]
"""Reads a match for the sockets of a viewer in this process; returns the time of the read, None without sockets.

It must not wait for another thread: the person who has moved waits for it.
"""
_readers: list[Reader] = []


def reader(function: Reader) -> Reader:
    """Register a reader: its thread and connection are those of the commit, which saves the sockets their own."""
    _readers.append(function)
    return function


def group(match_id: int) -> str:
    """The channel-layer group of a match's viewers."""
    return f"arena.{match_id}"


def watchers(match_id: int) -> str:
    """The group of a match's spectator chat, separate from the match's group, in which the players are."""
    return f"arena.{match_id}.watchers"


def send_to_watchers(match_id: int) -> None:
    """Hint spectators' sockets to refresh the chat after the current transaction commits."""
    message = {"type": "changed"}
    transaction.on_commit(lambda: _send_now(watchers(match_id), message, [message]), robust=True)


def send(match_id: int, viewers: Iterable[Viewer]) -> None:
    """Hint these viewers' sockets to refresh after the current transaction commits. Redis may be unavailable.

    In this process, the viewers get the hint one after the other, in this order.
    """
    recipients = tuple(viewers)
    message = {"type": "changed", "viewers": recipients}
    transaction.on_commit(lambda: _send_now(group(match_id), message, _read(match_id, recipients)), robust=True)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process that sends hints. Connections belong to a loop, so all hints share one."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="hints", daemon=True).start()
    return loop


def _read(match_id: int, viewers: Iterable[Viewer]) -> Iterator[Mapping[str, object]]:
    """Read for each viewer that has sockets in this process; yield the hint to these sockets."""
    for viewer in viewers:
        for read in _readers:
            if (read_at := _read_alone(read, match_id, viewer)) is not None:
                yield {"type": "changed", "viewers": (viewer,), "read_at": read_at}
                time.sleep(GIVE_WAY)


def _read_alone(read: Reader, match_id: int, viewer: Viewer) -> float | None:
    """The time of a read; infinity if it fails, so that the sockets read themselves."""
    try:
        return read(match_id, viewer)
    except Exception:  # the root of this viewer's read: the other viewers and processes still get their hint
        logger.exception("match %s could not be read for viewer %s", match_id, viewer)
        return math.inf


def _send_now(group_name: str, message: Mapping[str, object], here: Iterable[Mapping[str, object]]) -> None:
    """Send the messages `here` to the sockets of this process, and `message` to those of other processes."""
    layer = get_channel_layer()
    for local in here:
        layer.send_local(group_name, local)
    if CIRCUIT.closed:
        future = asyncio.run_coroutine_threadsafe(_group_send(group_name, message), _loop())
        future.add_done_callback(partial(_check, group_name))


def _check(group_name: str, future: Future[None]) -> None:
    """Open the circuit after a failure; nobody waits for a hint."""
    if isinstance(error := future.exception(), (RedisError, OSError)):
        CIRCUIT.failed(error)
        logger.warning("hints to %s not sent, the sockets will poll: %s", group_name, error)
    elif error is not None:
        raise error


async def _group_send(group_name: str, message: Mapping[str, object]) -> None:
    """Send one message to the group; each socket checks whether its viewer is listed."""
    async with asyncio.timeout(SEND_WITHIN):
        await get_channel_layer().group_send(group_name, message)
