"""The analysis of a finished match: computed in the request, or by a worker where an engine takes seconds for it.

A worker's analysis is cached for a day. Without a cache or a worker there is no such analysis, and where the engine
fails there is none for ten minutes; nothing else depends on it.
"""

from __future__ import annotations

from django.core.cache import cache
from pydantic import ValidationError

from training.analysis import ANALYSIS, AnalysisZone
from training.errors import BadInput, IllegalMove
from training.games import lookup
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.core import queue

KEPT_S = 24 * 3600
ASKED_S = 60
"""A worker that has not answered by then is asked again: its task may be lost."""
PAUSE_S = 600
"""How long no worker is asked again after a failure."""
ASKED, FAILED = "asked", "failed"

Analysis = tuple[AnalysisZone, ...]


def of_match(match: Match) -> Analysis | None:
    """Return the analysis of a match that is over; None while a worker makes it."""
    if not lookup(match.game).analysed_by_worker:
        return _made(match)
    try:
        stored = cache.get(_key(match.pk))
        return None if stored is None else ANALYSIS.validate_json(stored)
    except ValidationError:  # an earlier release wrote it
        return None


def request(match: Match) -> bool:
    """Ask a worker for the analysis unless one has been asked; return whether one is at work.

    After a failure no worker is asked for a while: the engine would most likely fail again.
    """
    if not cache.add(_state_key(match.pk), ASKED, ASKED_S):
        return bool(cache.get(_state_key(match.pk)) != FAILED)
    if queue.publish(queue.ANALYSE, match.pk, expires=ASKED_S):
        return True
    cache.delete(_state_key(match.pk))
    return False


def fail(*, match_id: int) -> None:
    """Note that the analysis of a match has failed, so that pages do not wait for it."""
    cache.set(_state_key(match_id), FAILED, PAUSE_S)


def compute(*, match_id: int) -> None:
    """Make the analysis of a match that is over, and keep it."""
    match = Match.objects.filter(pk=match_id).first()
    if match is not None and match.over:
        cache.set(_key(match.pk), ANALYSIS.dump_json(_made(match)).decode(), KEPT_S)


def _key(match_id: int) -> str:
    return f"analysis:{match_id}"


def _state_key(match_id: int) -> str:
    return f"{_key(match_id)}:state"


def _made(match: Match) -> Analysis:
    """Return what the game says of its moves; nothing for a match that cannot be replayed any more."""
    try:
        return services.fold(match).game.analysis()
    except (BadInput, IllegalMove):
        return ()
