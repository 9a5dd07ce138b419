"""The task that has an engine judge the moves of a finished match."""

from celery import shared_task
from django.db import close_old_connections

from webapp.arena.play import analyses
from webapp.core.queue import ANALYSE


@shared_task(name=ANALYSE.name)
def analyse_match(match_id: int) -> None:
    """Judge the moves and keep the result for the pages that wait for it."""
    try:
        analyses.compute(match_id=match_id)
    except Exception:
        analyses.fail(match_id=match_id)
        raise
    finally:
        close_old_connections()
