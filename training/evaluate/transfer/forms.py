"""The forms in which questions are put that need nothing but a chat model: `single`, and `debate` with a judge.

`debate` follows MAD (Liang et al. 2023, arXiv:2305.19118): an affirmative and a negative side speak in turn, after each
round a moderator may decide on an answer, and if it never does, a judge lists the answers and decides.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import islice

from training.engines.base import ChatMessage
from training.evaluate.transfer.questions import Question
from training.evaluate.transfer.transcript import Conversation
from training.text.parsing import split_private

ROUNDS = 3
"""Rounds of a debate, and of a chat of assistant and user proxy, as in MASLab's configurations of MAD and AutoGen."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The text that is scored, and what ended the conversation."""

    final: str
    by: str


Form = Callable[[Question, Conversation], Awaitable[Ending]]
"""Holds one conversation about a question; raises `RemoteModelError` when a reply fails."""


def _system(text: str) -> ChatMessage:
    return ChatMessage(role="system", content=text)


def _user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


async def single(question: Question, conversation: Conversation) -> Ending:
    """Ask one model once."""
    return Ending(await conversation.ask("model", [_user(question.prompt())]), "reply")


DEBATER = """You are the {side} side of a debate between two sides, affirmative and negative. You need not agree with \
each other: the aim is to find the correct answer. The topic of the debate:
{topic}"""
OPENING = "Give your answer to the topic, and your reasons."
OBJECTION = """The affirmative side argues:
{said}

You disagree with this answer. Give your own answer and your reasons."""
REPLY = """The other side argues:
{said}

Do you agree? Give your reasons and your answer."""

MODERATOR = """You moderate a debate of two sides, affirmative and negative, about this topic:
{topic}
After each round you compare their answers and decide which one is correct, if either is."""
ROUND = """Round {number} of the debate has ended.

The affirmative side argues:
{affirmative}

The negative side argues:
{negative}

Is one answer clearly to be preferred? Then the debate ends with the answer that you think is correct; otherwise it \
goes on, and the answer is empty. Reply with a JSON object alone:
{{"preference": "yes or no", "side": "affirmative or negative", "reason": "", "answer": ""}}"""
CANDIDATES = """The affirmative side argues:
{affirmative}

The negative side argues:
{negative}

Which answers are proposed? List them without reasons."""
DECISION = """Now decide: {topic}
Reply with a JSON object alone, with the answer that you think is correct: {{"reason": "", "answer": ""}}"""


async def debate(question: Question, conversation: Conversation) -> Ending:
    """Let two sides debate until a moderator prefers an answer; otherwise a judge decides on their opening answers."""
    topic = question.prompt()
    sides = {side: [_system(DEBATER.format(side=side, topic=topic))] for side in ("affirmative", "negative")}
    moderator = [_system(MODERATOR.format(topic=topic))]

    async def speak(agent: str, memory: list[ChatMessage], text: str) -> str:
        memory.append(_user(text))
        reply = await conversation.ask(agent, memory)
        memory.append(ChatMessage(role="assistant", content=reply))
        return reply

    opening: dict[str, str] = {}
    negative = ""
    for number in range(1, ROUNDS + 1):
        first = number == 1
        heard = OPENING if first else REPLY.format(said=negative)
        affirmative = await speak("affirmative", sides["affirmative"], heard)
        heard = (OBJECTION if first else REPLY).format(said=affirmative)
        negative = await speak("negative", sides["negative"], heard)
        arguments = {"affirmative": affirmative, "negative": negative}
        opening = opening or arguments
        verdict = await speak("moderator", moderator, ROUND.format(number=number, **arguments))
        if answer := answer_in(verdict):
            return Ending(answer, "moderator")
    judge = [_system(MODERATOR.format(topic=topic))]
    await speak("judge", judge, CANDIDATES.format(**opening))
    decision = await speak("judge", judge, DECISION.format(topic=topic))
    answer = answer_in(decision)
    return Ending(decision if answer is None else answer, "judge")


_DECODER = json.JSONDecoder(strict=False, parse_float=str, parse_int=str, parse_constant=str)  # numbers as written
_BACKSLASH = re.compile(r'(\\(?:["\\/n]|u[0-9A-Fa-f]{4}|[bfrt](?![A-Za-z])))|\\')
_OBJECT = re.compile(r"\{(?=\s*[\"}])")
MOST_OBJECTS = 1000
"""How many objects of a reply are tried: each one that is not closed costs as much as the rest of the reply is long."""
"""A backslash in JSON: an escape, as its group, or one that begins a command of LaTeX."""


def answer_in(reply: str) -> str | None:
    r"""Return the field `answer` of the first JSON object in a reply that has one; None if there is none.

    It is empty if the reply says that no answer is preferred. Commands of LaTeX need no second backslash:
    `"\boxed{72}"` is not read as a backspace and `oxed{72}`.
    """
    text = _BACKSLASH.sub(lambda match: match[1] or r"\\", split_private(reply)[0])
    for brace in islice(_OBJECT.finditer(text), MOST_OBJECTS):
        try:
            data, _ = _DECODER.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(data, dict) and isinstance(answer := data.get("answer", False), str | None):
            undecided = re.match(r"\s*(?:no|false)\b", str(data.get("preference", "yes")), re.IGNORECASE)
            written = "" if undecided or answer is None else answer.strip()
            return written.encode(errors="replace").decode()  # half of a pair of surrogates cannot be stored
    return None


FORMS: dict[str, tuple[Form, int]] = {"single": (single, 1), "debate": (debate, 3 * ROUNDS + 2)}
"""Each form with the largest number of calls of one conversation."""
