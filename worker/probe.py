"""Asks the models of a finished match what they believed, and stores what they name.

A question that fails only loses its answer; it is asked again when somebody requests the match's beliefs.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from channels.db import database_sync_to_async
from django.db import connection

from training.engines.base import ChatMessage
from training.errors import BadInput, OutsideError, RemoteModelError, WindowFull
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
MOST_FAILURES = 3
"""A model that gives no answer so often in a row is not asked again: each question may take two minutes."""


def probe(match_id: int) -> None:
    """Ask all questions that have no answer yet, of models that are ready, and store each answer as it comes.

    Do nothing while another worker asks about this match.
    """
    with _claimed(match_id) as claimed:
        match = Match.objects.filter(pk=match_id).first() if claimed else None  # it may have been deleted
        if match is not None:
            asked = [each for each in probes.unanswered(match) if model_seats.can_be_asked(each.deployment)]
            asyncio.run(_ask_all(asked))


@contextmanager
def _claimed(match_id: int) -> Iterator[bool]:
    """Yield whether no other worker asks about this match; the database ends the claim of one that dies."""
    name = [f"probe {match_id}"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", name)
        [claimed] = cursor.fetchone()
    try:
        yield claimed
    finally:
        if claimed:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", name)


async def _ask_all(asked: Sequence[Question]) -> None:
    """Ask each question and store what is answered; a model that stops answering is left alone."""
    slots = asyncio.Semaphore(AT_ONCE)
    failures: Counter[int] = Counter()

    async def ask(question: Question) -> None:
        async with slots:
            model = question.deployment.pk
            if failures[model] >= MOST_FAILURES:
                return
            try:
                reply = await _ask(question)
            except (OutsideError, BadInput, TimeoutError) as error:
                failures[model] += not isinstance(error, WindowFull)
                where = (question.match_id, question.seat, question.step)
                logger.info("match %s seat %s did not say what it believed at step %s: %s", *where, error)
                return
            failures[model] = 0
            await database_sync_to_async(probes.keep)(question=question, reply=reply)

    await asyncio.gather(*map(ask, asked))


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
