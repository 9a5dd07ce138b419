"""Judging of one target by a judge model; after failed retries it is recorded as "could not score", never as zero.

Numbers about a seat are asked for one by one. Under any other codebook the judge lists labels, and reads turns as
annotators do, in whole games with what only some saw.
"""

from __future__ import annotations

import asyncio

from training.engines.base import Sampling
from training.engines.remote.config import RemoteConfig
from training.errors import BadInput, IllegalMove, JudgeError
from training.games import replay
from training.records import ALL
from training.rewards.judge import Judge, Labelled, Verdict, transcript_of, transcript_with
from training.rewards.labelling import Question, TurnWords
from training.rewards.prompts import Line
from webapp.judgments import games
from webapp.judgments.models import JudgeModel, Target
from webapp.judgments.queues import services as queues

TIMEOUT_S = 120.0
MOST_TOKENS = 4000
"""Of an answer: the labels of a game may be many."""


def judge_target(pk: int) -> None:
    """Score a target if it waits for its model and no other worker has claimed it. Safe to call twice."""
    claimed = queues.claim(pk=pk)
    if claimed is None:
        return
    target = Target.objects.with_games().select_related("queue__judge__remote").filter(pk=pk).first()
    if target is None:  # cancelled
        return
    try:
        verdict = ask(_judge_of(target), target)
    except (JudgeError, BadInput, IllegalMove) as error:  # the last where the present rules do not allow its moves
        queues.record_verdict(target=target, verdict=None, why=str(error)[:2000])
    else:
        queues.record_verdict(target=target, verdict=verdict)


def _judge_of(target: Target) -> JudgeModel:
    assert target.queue.judge is not None, "only targets of a judge model are claimed"
    return target.queue.judge


def ask(model: JudgeModel, target: Target) -> Verdict | Labelled:
    """Return a judge model's answer for a target, a seat or a whole game, under the queue's codebook.

    Raises `JudgeError` without a usable answer, and the errors of reading the game.
    """
    game = games.judgeable(target)
    codebook, seat = target.codebook(), target.seat
    question = None if codebook.scores_seats else question_of(target, game)

    async def judged(judge: Judge) -> Verdict | Labelled:
        try:
            if question is not None:
                return await judge.label(question, seed=target.pk)
            assert seat is not None, "targets of a codebook about seats are seats"
            transcript = transcript_of(game.scenario, game.moves)
            return await judge.score(transcript, codebook, seat, seed=target.pk)
        finally:
            await judge.close()

    return asyncio.run(judged(judge_client(model)))


def question_of(target: Target, game: games.GameRecord) -> Question:
    """Return what is asked about a target whose labels are more than numbers of a seat."""
    shown = game.turn_lines(hidden=True)
    opening = replay(game.scenario, ()).observe(ALL).messages
    lines = [Line(-1, None, message.text) for message in opening if not message.lines]  # the rules and private sides
    lines += [
        Line(-1, None, f"{line.who}: {line.text}" if line.who else line.text)
        if line.turn is None
        else Line(line.turn, line.who, line.text)
        for line in shown
    ]
    turns = {
        line.turn: TurnWords(game.moves[line.turn].seat, line.text, line.places)
        for line in shown
        if line.turn is not None
    }
    transcript = transcript_with(game.scenario.seats, lines)
    return Question(target.codebook(), transcript, turns, games.roles(target.game), target.seat)


def judge_client(judge: JudgeModel) -> Judge:
    """Return a client for this judge; raise `BadInput` if its address is not allowed (any more)."""
    from training.engines.remote.chat import RemoteModel as Client  # the openai client is slow to import

    remote = judge.remote
    config = RemoteConfig(
        address=remote.address, model=remote.model, secret=remote.secret_name, timeout_s=TIMEOUT_S, retries=2,
        json_object=True,
    )  # fmt: skip
    sampling = Sampling(temperature=judge.temperature, max_tokens=MOST_TOKENS)
    return Judge(Client(config), judge.name, sampling=sampling)
