"""Clock step of the ladder: refit games whose log has changed."""

from __future__ import annotations

from training.games import REGISTRY
from webapp.core import queue
from webapp.core.clock import register
from webapp.ladder import services

EVERY_SECONDS = 30


@register("ladder.refit", every=EVERY_SECONDS)
def tell_workers() -> int:
    """Send a hint for every game that must be refitted; a worker does the fit."""
    stale = [game for game in REGISTRY if services.stale(game)]
    for game in stale:
        queue.publish(queue.RATE, game, expires=EVERY_SECONDS)
    return len(stale)
