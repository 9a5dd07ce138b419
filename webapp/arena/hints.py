"""Hints to whoever watches a match: "look". They may be lost; a socket also looks by itself every few seconds."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.db import transaction
from redis.exceptions import RedisError

from training.records import Viewer

logger = logging.getLogger(__name__)


def group(match_id: int, viewer: Viewer) -> str:
    """The channel-layer group of one viewer of one match."""
    return f"arena.{match_id}.{viewer}"


def send(match_id: int, viewers: Iterable[Viewer]) -> None:
    """Tell these viewers' sockets to look, once the current transaction commits. Redis being away breaks nothing."""
    told = tuple(viewers)
    transaction.on_commit(lambda: _send_now(match_id, told), robust=True)


def _send_now(match_id: int, viewers: tuple[Viewer, ...]) -> None:
    try:
        async_to_sync(_group_send)(match_id, viewers)
    except (RedisError, OSError) as error:
        logger.warning("hints of match %s not sent, the sockets will look by themselves: %s", match_id, error)


async def _group_send(match_id: int, viewers: tuple[Viewer, ...]) -> None:
    layer = get_channel_layer()
    for viewer in viewers:
        await layer.group_send(group(match_id, viewer), {"type": "look"})
