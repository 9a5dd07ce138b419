"""Asks the models of a finished match what they believed, and stores what they name.

A question that fails only loses its answer; it is asked again when somebody requests the match's beliefs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from training.engines.base import ChatMessage
from training.errors import BadInput, OutsideError, RemoteModelError
from training.players.remote import RemotePlayer
from training.text.messages import chat
from webapp.arena.models import Match
from webapp.arena.play import model_seats, probes
from webapp.arena.play.probes import SAMPLING, SECONDS, Question
from webapp.serving import services as serving

if TYPE_CHECKING:
    from training.engines.remote.chat import RemoteModel

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


async def _replies(asked: Sequence[Question]) -> list[str | dict[str, float] | None]:
    """Return the reply to each question, or the probability of each choice; None where there is neither."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def ask(question: Question) -> str | dict[str, float] | None:
        async with slots:
            try:
                return await _ask(question)
            except (OutsideError, BadInput, TimeoutError) as error:
                where = (question.match_id, question.seat, question.step)
                logger.info("match %s seat %s did not say what it believed at step %s: %s", *where, error)
                return None

    return await asyncio.gather(*map(ask, asked))


async def _ask(question: Question) -> str | dict[str, float]:
    """Ask a model of our own for probabilities, any other, or one whose server has none, for the choice."""
    model = serving.chat_model(question.deployment, timeout_s=SECONDS)
    try:
        if question.deployment.remote_id is None and (known := await _score(model, question)) is not None:
            return known
        async with asyncio.timeout(SECONDS):
            player = RemotePlayer(model, SAMPLING, question.scenario.seats)
            return (await player.act(question.seat, question.named, question.seed)).text
    finally:
        await model.close()


async def _score(model: RemoteModel, question: Question) -> dict[str, float] | None:
    """Return the probability of each choice; None from a server that does not score, or for too long a chat."""
    messages = [ChatMessage(**message) for message in chat(question.asked, question.seat, question.scenario.seats)]
    try:
        logprobs = await model.score(messages, question.probe.replies or question.probe.choices)
    except RemoteModelError as error:
        logger.info("match %s: %s", question.match_id, error)
        return None
    return probes.shares(logprobs, question.probe)
