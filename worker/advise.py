"""Asks a coach for the advice that a person at a table has requested, and stores its answer or why there is none."""

from __future__ import annotations

import asyncio
import logging

from training import players
from training.errors import BadInput, IllegalMove, OutsideError, WindowFull
from training.games.actions import body
from training.players.advised import remote_strategist
from training.records import Observation
from training.text.parsing import parse
from training.text.strategies import read_strategy
from webapp.arena.play import coach, moves
from webapp.arena.play.coach import SECONDS, Question
from webapp.arena.play.model_seats import SAMPLING
from webapp.serving import services as serving
from webapp.serving.models import Deployment
from worker.play import ready_model

logger = logging.getLogger(__name__)


def advise(advice_id: int) -> None:
    """Claim the request and answer it; do nothing if another worker has it or it was answered."""
    question = coach.claim(advice_id=advice_id)
    if question is None:
        return
    try:
        text = asyncio.run(_answer(question))
    except TimeoutError:
        coach.fail(question=question, why=coach.NO_ANSWER)
    except WindowFull:
        coach.fail(question=question, why=coach.TOO_LONG)
    except (OutsideError, BadInput, IllegalMove) as error:
        logger.info("the coach of advice %s failed: %s", advice_id, error)
        # what a model's server says, and where it is, is for those who run it, not for players
        coach.fail(question=question, why=str(error) if question.deployment is None else coach.UNUSABLE)
    else:
        coach.keep(question=question, text=text)


async def _answer(question: Question) -> str:
    """Return what the coach writes: a model's strategy, or the move that a player without a model would make."""
    if question.deployment is None:
        script = players.make(question.scripted, question.scenario, question.seat)
        reply = await script.act(question.seat, question.observation, question.seed)
        return _described(reply.text, question.observation)
    async with asyncio.timeout(SECONDS):
        return await _ask(question, await ready_model(question.deployment))


def _described(reply: str, observation: Observation) -> str:
    """Return the move of a reply as the table's form calls it, such as `Propose a split: food 2, water 1`."""
    move, _ = parse(reply, observation)
    action = next(action for action in observation.actions if action.name == move.action)
    words = body(action, move.args) if action.args else move.text if action.bare else ""
    return f"{moves.label(action)}: {words}" if words else moves.label(action)


async def _ask(question: Question, deployment: Deployment) -> str:
    model, form, names = serving.chat_model(deployment, timeout_s=SECONDS), question.form, question.scenario.seats
    try:
        strategist = remote_strategist(model, SAMPLING, names, form, question.earlier)
        reply = await strategist.act(question.seat, question.observation, question.seed)
    finally:
        await model.close()
    return reply.strategy if form.react else read_strategy(reply.text, form).text
