"""One turn of a seat at which no person sits: asked, read, asked again at most twice, never late.

Whatever happens, the seat moves by its deadline: with the model's move, else with the game's default. Once a model has
moved, it is asked aside what the game wants to know; if that fails nothing is missing but the answer.
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
from training.engines.base import Sampling
from training.errors import BadInput, IllegalMove, OutsideError
from training.players.base import Player
from training.players.remote import RemotePlayer
from training.records import Probe
from webapp.arena.play import model_seats, probes
from webapp.arena.play.model_seats import SAMPLING, Answering, Claim
from webapp.serving import services as serving
from webapp.serving.models import Deployment

logger = logging.getLogger(__name__)
RENEW_SECONDS = model_seats.LEASE.total_seconds() / 3
PAUSE_SECONDS = 0.3


def play(due_id: int) -> None:
    """Claim the seat and make its move; does nothing if somebody else has it, or nothing is due."""
    held = model_seats.claim(due_id=due_id)
    if held is None:
        return
    probe = probes.probe_of(held)  # before the move: what it asks about is the game as the seat saw it
    began = time.monotonic()
    answering, late = asyncio.run(_answer(held))
    time.sleep(max(0.0, held.wait - (time.monotonic() - began)))
    try:
        model_seats.answer(answering=answering, late=late)
    except IllegalMove as error:  # the match ended, or the clock was faster
        logger.info("match %s seat %s: %s", held.match_id, held.seat, error)
        return
    if answering.move is not None and probe is not None:
        _ask_aside(held, probe)


def _ask_aside(held: Claim, probe: Probe) -> None:
    """Put a probe to the model at the seat and keep its answer, if there is a usable one in time."""
    try:
        reply = asyncio.run(_aside(held, probe))
    except (OutsideError, BadInput, TimeoutError) as error:
        logger.info("match %s seat %s did not say what it believes: %s", held.match_id, held.seat, error)
        return
    probes.keep(held=held, probe=probe, reply=reply)


async def _aside(held: Claim, probe: Probe) -> str:
    async with (
        asyncio.timeout(probes.SECONDS),
        _player(held, held.deployment, probes.SAMPLING, probes.SECONDS) as player,
    ):
        return (await player.act(held.seat, probes.observation(held, probe), held.seed)).text


async def _answer(held: Claim) -> tuple[Answering, bool]:
    """Ask until there is a move, the tries are used up, or the time is up (the second value)."""
    answering, ready = Answering(held), held.deployment is None
    renewing = asyncio.create_task(_renew(held))
    try:
        async with asyncio.timeout(held.seconds):
            model = await _ready(held)
            ready = True
            async with _player(held, model, SAMPLING, held.seconds) as player:
                while not answering.done:
                    answering = await _ask(player, answering)
    except TimeoutError:
        if not ready:  # a fault of the site, which is not to count as the model's
            return answering.failed("the model did not start in time"), False
        return answering.failed("no answer in time"), True
    except BadInput as error:  # an address that is not allowed any more, a game without a script
        return answering.failed(str(error)), False
    finally:
        renewing.cancel()
    return answering, False


async def _ready(held: Claim) -> Deployment | None:
    """The model that plays the seat, once it can be asked; None for a seat without a model."""
    if held.deployment is None:
        return None
    read = database_sync_to_async(model_seats.ready_model, thread_sensitive=False)
    model: Deployment | None = held.deployment if model_seats.can_be_asked(held.deployment) else None
    while model is None:
        await asyncio.sleep(PAUSE_SECONDS)
        model = await read(held.deployment.pk)
    return model


async def _ask(player: Player, answering: Answering) -> Answering:
    held = answering.held
    try:
        reply = await player.act(held.seat, answering.observation(), held.seed + len(answering.attempts))
    except OutsideError as error:
        await asyncio.sleep(PAUSE_SECONDS)
        return answering.failed(str(error))
    return answering.heard(reply.text)


@asynccontextmanager
async def _player(
    held: Claim, deployment: Deployment | None, sampling: Sampling, seconds: float
) -> AsyncIterator[Player]:
    """Whoever plays the seat, for this one turn; a model has so many seconds for each answer."""
    if deployment is None:
        yield players.make(held.scripted, held.scenario, held.seat)
        return
    model = serving.chat_model(deployment, timeout_s=seconds)
    try:
        yield RemotePlayer(model, sampling, held.scenario.seats)
    finally:
        await model.close()


async def _renew(held: Claim) -> None:
    """Keep the claim while the answer is awaited; losing it changes nothing here, for a late answer is refused."""
    while True:
        await asyncio.sleep(RENEW_SECONDS)
        try:
            await database_sync_to_async(model_seats.renew, thread_sensitive=False)(held=held)
        except DatabaseError as error:
            logger.warning("match %s: the claim was not renewed: %s", held.match_id, error)
