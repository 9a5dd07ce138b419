"""What was said about a question, and its score. A failed call is an error of its question, never a wrong answer.

Everything is plain data; raises nothing but `RemoteModelError` in `Conversation.ask`.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.engines.base import ChatMessage, ChatModel, Sampling
from training.evaluate.transfer.answers import Rule, find
from training.evaluate.transfer.patterns import Reasoning, reasoning
from training.evaluate.transfer.questions import Question
from training.reading import Record
from training.seeding import derive
from training.text.parsing import split_private


class AgentReply(Record):
    """One reply of an agent, its private part included, with its cost in tokens (0 prompt tokens = not reported)."""

    agent: str
    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class Transcript(Record):
    """All replies to one question. `final` is the text that is scored, `ended` says what ended the conversation.

    With an `error` the conversation has no answer, and `final` and `ended` are empty.
    """

    question: str
    replies: tuple[AgentReply, ...]
    final: str = ""
    ended: str = ""
    error: str = ""


class Scored(Record):
    """A transcript with its score: the extracted answer, the rule that found it, and whether it is right.

    `correct` is None after an error. `reasoning` describes the private reasoning of each reply.
    """

    transcript: Transcript
    gold: str
    answer: str | None
    rule: Rule
    correct: bool | None
    reasoning: tuple[Reasoning, ...]


def score(question: Question, transcript: Transcript) -> Scored:
    """Score a transcript by exact match; an answer that cannot be extracted is not correct, an error has no score."""
    answer = find(split_private(transcript.final)[0], question.kind, question.letters)
    correct = answer.value is not None and question.accepts(answer.value)
    return Scored(
        transcript=transcript,
        gold=question.gold,
        answer=answer.value,
        rule=answer.rule,
        correct=None if transcript.error else correct,
        reasoning=tuple(reasoning(reply.text, question.kind, question.letters) for reply in transcript.replies),
    )


def seeds(seed: int, form: str, question: Question, count: int) -> list[int]:
    """Return the seeds of the first `count` calls of one conversation, 31 bits each."""
    return [derive(seed, form, question.id, call) % 2**31 for call in range(count)]


class Conversation:
    """Asks a model, call after call, and keeps the replies."""

    def __init__(self, model: ChatModel, sampling: Sampling, seeds: Sequence[int]) -> None:
        self.replies: list[AgentReply] = []
        self._model, self._sampling, self._seeds = model, sampling, seeds

    async def ask(self, agent: str, messages: Sequence[ChatMessage]) -> str:
        """Return the agent's reply without its private part; raise `RemoteModelError` if there is none."""
        answer = await self._model.reply(messages, self._sampling, self._seeds[len(self.replies)])
        self.replies.append(
            AgentReply(
                agent=agent,
                text=answer.text,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
            )
        )
        return split_private(answer.text)[0].strip()
