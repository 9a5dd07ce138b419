"""One turn of a model or scripted player: ask, parse, and retry at most twice, before the deadline.

The seat always moves by its deadline: with the model's move, else with the game's default.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from channels.db import database_sync_to_async
from django.db import DatabaseError

from training import players
from training.engines.base import ChatModel
from training.errors import BadInput, IllegalMove, OutsideError
from training.players.advised import AdvisedPlayer, remote_strategist
from training.players.base import Player
from training.players.react import ReActPlayer
from training.players.remote import RemotePlayer
from webapp.arena.play import model_seats
from webapp.arena.play.model_seats import SAMPLING, Answering, Claim
from webapp.serving import services as serving
from webapp.serving.models import Deployment
from worker.search import search

logger = logging.getLogger(__name__)
RENEW_SECONDS = model_seats.LEASE.total_seconds() / 3
PAUSE_SECONDS = 0.3


def play(due_id: int) -> None:
    """Claim the seat and make its move; do nothing if another worker has it or nothing is due.

    Where the tool seat is due, that is a search.
    """
    claim = model_seats.claim(due_id=due_id)
    if claim is None:
        search(due_id)
        return
    began = time.monotonic()
    answering, late = asyncio.run(_answer(claim))
    time.sleep(max(0.0, claim.wait - (time.monotonic() - began)))
    try:
        model_seats.answer(answering=answering, late=late)
    except IllegalMove as error:  # the match ended, or the clock was faster
        logger.info("match %s seat %s: %s", claim.match_id, claim.seat, error)


async def _answer(claim: Claim) -> tuple[Answering, bool]:
    """Ask until there is a move, no retry is left, or the time is up (the second value)."""
    answering, ready = Answering(claim), claim.deployment is None
    renewing = asyncio.create_task(_renew(claim))
    try:
        async with asyncio.timeout(claim.seconds):
            model = None if claim.deployment is None else await ready_model(claim.deployment)
            speaker = None if claim.speaker is None else await ready_model(claim.speaker)
            ready = True
            async with _client(model, claim) as strategist, _client(speaker, claim) as voice:
                while not answering.done:
                    answering = await _ask(_player(answering, strategist, voice), answering)
    except TimeoutError:
        if not ready:  # a failure of the site, not of the model
            return answering.failed("the model did not start in time"), False
        return answering.failed("no answer in time"), True
    except BadInput as error:  # an address that is no longer allowed, or a game without a script
        return answering.failed(str(error)), False
    finally:
        renewing.cancel()
    return answering, False


async def ready_model(deployment: Deployment) -> Deployment:
    """Return the model once it can be asked, as it is then."""
    read = database_sync_to_async(model_seats.ready_model, thread_sensitive=False)
    model: Deployment | None = deployment if model_seats.can_be_asked(deployment) else None
    while model is None:
        await asyncio.sleep(PAUSE_SECONDS)
        model = await read(deployment.pk)
    return model


async def _ask(player: Player, answering: Answering) -> Answering:
    claim = answering.claim
    try:
        reply = await player.act(claim.seat, answering.observation(), claim.seed + len(answering.attempts))
    except OutsideError as error:
        await asyncio.sleep(PAUSE_SECONDS)
        return answering.failed(str(error))
    return answering.answered(reply.text, reply.strategy)


@asynccontextmanager
async def _client(deployment: Deployment | None, claim: Claim) -> AsyncIterator[ChatModel | None]:
    """A model's client for this turn, with the rest of the turn's time for each answer; None for no model."""
    if deployment is None:
        yield None
        return
    model = serving.chat_model(deployment, timeout_s=claim.seconds)
    try:
        yield model
    finally:
        await model.close()


def _player(answering: Answering, model: ChatModel | None, voice: ChatModel | None) -> Player:
    """The player of one try: a player without a model, a model alone, or a strategist with its speaker, the `voice`."""
    claim, form = answering.claim, answering.claim.form
    names = claim.scenario.seats
    if model is None:
        return players.make(claim.scripted, claim.scenario, claim.seat)
    if form is None:
        return RemotePlayer(model, SAMPLING, names)
    strategist = remote_strategist(model, SAMPLING, names, form, answering.earlier)
    if isinstance(strategist, ReActPlayer):
        return strategist
    speaker = (
        players.make(form.source, claim.scenario, claim.seat) if voice is None else RemotePlayer(voice, SAMPLING, names)
    )
    return AdvisedPlayer(strategist, speaker, answering.earlier)


async def _renew(claim: Claim) -> None:
    """Renew the claim while waiting for the answer. A lost claim needs no handling: the answer is refused then."""
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            await database_sync_to_async(model_seats.renew, thread_sensitive=False)(claim=claim)
        except DatabaseError as error:
            logger.warning("match %s: the claim was not renewed: %s", claim.match_id, error)
