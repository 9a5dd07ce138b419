"""Messages to groups: at once within a process, over Redis between processes, and never twice."""

import asyncio
import threading

import pytest
from django.conf import settings

from webapp.core.layers import GroupLayer

pytestmark = pytest.mark.usefixtures("databases")
GROUP = "arena.1"
HINT = {"type": "changed", "viewers": [0, 1]}
UNREACHABLE = ["redis://127.0.0.1:1"]


def layer(hosts=None):
    return GroupLayer(hosts=hosts or settings.CHANNEL_LAYERS["default"]["CONFIG"]["hosts"], prefix="test")


async def joined(layer):
    channel = await layer.new_channel()
    await layer.group_add(GROUP, channel)
    return channel


async def heard(layer, channel, seconds=0.5):
    """The next message; None if none comes in time."""
    try:
        return await asyncio.wait_for(layer.receive(channel), seconds)
    except TimeoutError:
        return None


async def test_a_thread_reaches_the_sockets_of_its_process_without_redis():
    here = layer(UNREACHABLE)
    channel = await here.new_channel()
    here._get_layer().groups[here._get_layer()._get_group_channel_name(GROUP)] = {channel}
    sender = threading.Thread(target=here.send_local, args=(GROUP, HINT))
    sender.start()
    assert await heard(here, channel) == HINT
    sender.join()


async def test_a_message_through_redis_reaches_other_processes_alone():
    here, elsewhere = layer(), layer()
    ours, theirs = await joined(here), await joined(elsewhere)
    await here.group_send(GROUP, HINT)
    assert await heard(elsewhere, theirs, 5) == HINT
    assert await heard(here, ours) is None
    await elsewhere.group_send(GROUP, HINT)
    assert await heard(here, await joined(here), 5) == HINT


async def test_a_socket_that_left_its_group_hears_nothing():
    here = layer()
    channel = await joined(here)
    await here.group_discard(GROUP, channel)
    here.send_local(GROUP, HINT)
    assert await heard(here, channel) is None
