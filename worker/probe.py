"""Asks the models of a finished match what they believed, and stores what they name.

A question that fails only loses its answer; it is asked again when somebody requests the match's beliefs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from training.errors import BadInput, OutsideError
from training.players.remote import RemotePlayer
from webapp.arena.models import Match
from webapp.arena.play import model_seats, probes
from webapp.arena.play.probes import SAMPLING, SECONDS, Question
from webapp.serving import services as serving

logger = logging.getLogger(__name__)
AT_ONCE = 8


def probe(match_id: int) -> None:
    """Ask all questions that have no answer yet, of models that are ready, and store the answers."""
    match = Match.objects.filter(pk=match_id).first()  # it may have been deleted
    if match is None:
        return
    asked = [question for question in probes.unanswered(match) if model_seats.can_be_asked(question.deployment)]
    for question, reply in zip(asked, asyncio.run(_replies(asked)), strict=True):
        if reply is not None:
            probes.keep(question=question, reply=reply)


async def _replies(asked: Sequence[Question]) -> list[str | None]:
    """Return the reply to each question; None where there is none."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(question: Question) -> str | None:
        async with slots:
            try:
                return await _ask(question)
            except (OutsideError, BadInput, TimeoutError) as error:
                where = (question.match_id, question.seat, question.step)
                logger.info("match %s seat %s did not say what it believed at step %s: %s", *where, error)
                return None

    return await asyncio.gather(*map(ask, asked))


async def _ask(question: Question) -> str:
    model = serving.chat_model(question.deployment, timeout_s=SECONDS)
    try:
        async with asyncio.timeout(SECONDS):
            player = RemotePlayer(model, SAMPLING, question.scenario.seats)
            return (await player.act(question.seat, question.observation, question.seed)).text
    finally:
        await model.close()
