"""What is due here: games whose log is not the one that was last fitted."""

from __future__ import annotations

from training.games import REGISTRY
from webapp.core import queue
from webapp.core.clock import register
from webapp.ladder import services

EVERY_SECONDS = 30


@register("ladder.refit", every=EVERY_SECONDS)
def tell_workers() -> int:
    """Send the hint of every game that has to be fitted anew; the fit itself is a worker's."""
    stale = [game for game in REGISTRY if services.stale(game)]
    for game in stale:
        queue.publish(queue.RATE, game, expires=EVERY_SECONDS)
    return len(stale)
