"""The channel layer of the sockets: groups over Redis, and a socket's own channel in its process.

Only groups are sent to. Channels subscribes to the own channel of every socket before the socket may open, so that a
Redis that hangs would keep sockets from opening.
"""

from __future__ import annotations

import asyncio
import uuid

from channels_redis.pubsub import RedisPubSubChannelLayer


class GroupLayer(RedisPubSubChannelLayer):
    """Redis's publish and subscribe for groups; `send` to a single channel reaches nobody."""

    async def new_channel(self, prefix: str = "specific.") -> str:
        """Return the name of a new channel of this process, without asking Redis."""
        layer = self._get_layer()
        name = f"{layer.prefix}{prefix}{uuid.uuid4().hex}"
        layer.channels[name] = asyncio.Queue()
        return name
