"""The channel layer of the sockets: groups over Redis; the channel of a single socket is local to its process.

Messages are sent only to groups. By default, Channels subscribes to the channel of every socket in Redis before the
socket opens, so that no socket could open while Redis hangs. Sockets of the sending process get a message immediately;
the copy that returns from Redis is dropped.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer, RedisPubSubLoopLayer

SENDER = "sender"


class GroupLayer(RedisPubSubChannelLayer):
    """Redis publish/subscribe for groups; `send` to a single channel reaches nobody."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._process = uuid.uuid4().hex

    async def new_channel(self, prefix: str = "specific.") -> str:
        """Return the name of a new channel of this process, without a request to Redis."""
        layer = self._get_layer()
        name = f"{layer.prefix}{prefix}{uuid.uuid4().hex}"
        layer.channels[name] = asyncio.Queue()
        return name

    async def group_send(self, group: str, message: Mapping[str, Any]) -> None:
        """Send to the sockets of other processes; those of this process get it from `send_local`."""
        await self._get_layer().group_send(group, {**message, SENDER: self._process})

    def send_local(self, group: str, message: Mapping[str, Any]) -> None:
        """Send to the sockets of this process, from any thread and without Redis."""
        data = self.serialize(dict(message))
        for loop, layer in list(self._layers.items()):
            if layer.groups and not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, layer, group, data)

    async def receive(self, channel: str) -> dict[str, Any]:
        """Return the next message of a channel, skipping copies of this process's messages from Redis."""
        while True:
            message: dict[str, Any] = await self._get_layer().receive(channel)
            if message.pop(SENDER, None) != self._process:
                return message


def _deliver(layer: RedisPubSubLoopLayer, group: str, data: bytes) -> None:
    for channel in layer.groups.get(layer._get_group_channel_name(group), ()):  # noqa: SLF001  (the key of `groups`)
        if channel in layer.channels:
            layer.channels[channel].put_nowait(data)
