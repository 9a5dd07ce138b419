"""The judge client: it scores a transcript under a codebook and returns values within their scales, or `JudgeError`.

An unscored seat has a state of its own (`Judgment.labels` is None, with a reason), never a zero or a default. An answer
is valid only if it is one JSON object of the requested form, about the requested target, with every value in range;
otherwise the judge is asked again, a bounded number of times. Labels of other kinds than numbers of a seat are asked
for as in `training.rewards.labelling`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from training.engines.base import ChatMessage, ChatModel, Sampling
from training.errors import BadInput, JudgeError, OutsideError
from training.games import replay
from training.labels.codebooks import Codebook
from training.reading import explain
from training.records import ALL, Episode, Judgment, Label, Message, Scenario, Seat, SeatMove
from training.rewards import labelling
from training.rewards.prompts import (
    Line,
    Transcript,
    codebook_messages,
    critical_messages,
    goal_messages,
    prompt_sha256,
    quality_messages,
    quote,
)
from training.seeding import derive

AGAIN = "Your answer could not be used: {why}. Answer again with only the JSON object that was asked for."

_FENCED = re.compile(r"\A(?:<think>.*?</think>)?\s*(?:```(?:json)?\s*)?(\{.*\})\s*(?:```)?\s*\Z", re.DOTALL)


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Value(_Strict):
    value: float
    reason: str = ""


class _Scores(_Strict):
    target: str
    seat: int
    values: dict[str, _Value]


class _TurnVerdict(_Strict):
    turn: int
    passed: bool
    reason: str = ""


class _Quality(_Strict):
    target: str
    seat: int
    turns: list[_TurnVerdict]


class _Critical(_Strict):
    target: str
    seat: int
    indexes: list[int]
    reasoning: str = ""


class _Goals(_Strict):
    target: str
    reached: list[bool]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of judging: calls, and tokens as counted by the server."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judge's numbers for one seat, each on its label type's scale (yes is 1) and with a reason."""

    codebook: Codebook
    seat: Seat
    values: dict[str, float]
    reasons: dict[str, str]
    prompt_sha256: str
    cost: Cost

    @property
    def mean(self) -> float:
        """The mean over the label types."""
        return sum(self.values.values()) / len(self.values)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The values as labels of the seat."""
        return tuple(
            Label(
                label=name,
                value=self.codebook.type_of(name).number(value),
                seat=self.seat,
                reason=self.reasons.get(name, ""),
            )
            for name, value in self.values.items()
        )

    def judgment(self, author: str, episode: str) -> Judgment:
        """Return the record of this verdict."""
        return Judgment(
            codebook=self.codebook.name,
            codebook_version=self.codebook.version,
            episode=episode,
            seat=self.seat,
            author=author,
            prompt_sha256=self.prompt_sha256,
            labels=self.labels,
        )


@dataclass(frozen=True, slots=True)
class Labelled:
    """A judge's labels of a game, or of a seat of it."""

    labels: tuple[Label, ...]
    prompt_sha256: str
    cost: Cost


def transcript_of(scenario: Scenario, moves: Iterable[SeatMove]) -> Transcript:
    """Return all messages of a game in order, including private briefs."""
    return transcript_from(scenario, replay(scenario, moves).observe(ALL).messages)


def transcript_from(scenario: Scenario, messages: Sequence[Message]) -> Transcript:
    """Return the transcript of the messages of the viewer ALL."""
    lines = tuple(
        Line(i, None if m.author is None else _name(scenario, m.author), m.text) for i, m in enumerate(messages)
    )
    return transcript_with(scenario.seats, lines)


def transcript_with(seats: tuple[str, ...], lines: Sequence[Line]) -> Transcript:
    """Return the transcript of these lines; it is identified by its texts."""
    return Transcript(_target(seats, lines), seats, tuple(lines))


def turns_of(episode: Episode) -> Transcript:
    """Return a transcript of an episode's attempts as the models wrote them; line numbers are indices into `turns`."""
    opening = replay(episode.scenario, ()).observe(ALL).messages
    lines = [Line(-1, None, message.text) for message in opening if message.author is None]
    lines += [Line(i, _name(episode.scenario, turn.seat), turn.reply) for i, turn in enumerate(episode.turns)]
    return transcript_with(episode.scenario.seats, lines)


def _name(scenario: Scenario, seat: Seat) -> str:
    return scenario.seats[seat] if seat < len(scenario.seats) else "tool"


def _target(seats: Sequence[str], lines: Iterable[Line]) -> str:
    text = "\n".join([*map(quote, seats), *(quote(line.text) for line in lines)])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Parsed = TypeVar("Parsed", _Scores, _Quality, _Critical, _Goals, labelling.Answer)


class Judge:
    """A chat model that judges. `name` is the author of its judgments; `attempts` bounds the calls for one target.

    `spent` is the cost of all calls, including those with unusable answers.
    """

    def __init__(self, model: ChatModel, name: str, *, sampling: Sampling | None = None, attempts: int = 3) -> None:
        self.model = model
        self.name = name
        self.sampling = sampling or Sampling(temperature=0.0, max_tokens=1500)
        self.attempts = attempts
        self.spent = Cost()

    async def close(self) -> None:
        """Close the model's connections; the judge stays usable."""
        await self.model.close()

    async def score(self, transcript: Transcript, codebook: Codebook, seat: Seat, *, seed: int = 0) -> Verdict:
        """Return one value per label_type about one seat; raise `JudgeError` without a usable answer."""
        messages = codebook_messages(codebook, transcript, seat)

        def check(answer: _Scores) -> None:
            _same_target(answer, transcript, seat)
            _in_range(answer, codebook)

        answer, cost = await self._ask(messages, _Scores, check, seed)
        return Verdict(
            codebook=codebook,
            seat=seat,
            values={d.name: answer.values[d.name].value for d in codebook.labels},
            reasons={d.name: answer.values[d.name].reason[:1000] for d in codebook.labels},
            prompt_sha256=prompt_sha256(messages),
            cost=cost,
        )

    async def label(self, question: labelling.Question, *, seed: int = 0) -> Labelled:
        """Return the labels of a game, or of a seat, under any codebook; raise `JudgeError` without a usable answer."""
        messages = labelling.messages(question)

        def check(answer: labelling.Answer) -> None:
            labelling.labels_of(answer, question)

        answer, cost = await self._ask(messages, labelling.Answer, check, seed)
        return Labelled(labelling.labels_of(answer, question), prompt_sha256(messages), cost)

    async def judgment(
        self, transcript: Transcript, codebook: Codebook, seat: Seat, *, episode: str, seed: int = 0
    ) -> Judgment:
        """Return a judgment with values, or with None and the reason why the seat could not be scored."""
        try:
            verdict = await self.score(transcript, codebook, seat, seed=seed)
        except JudgeError as error:
            return Judgment(
                codebook=codebook.name,
                codebook_version=codebook.version,
                episode=episode,
                seat=seat,
                author=self.name,
                reason=str(error),
            )
        return verdict.judgment(self.name, episode)

    async def quality(self, episode: Episode, *, seed: int = 0) -> list[bool]:
        """Return for every turn whether it is fit to learn from, with one call per seat; raise `JudgeError`.

        Refused replies are not sent to the judge and count as fit; the rules decide about them.
        """
        fit = [True] * len(episode.turns)
        transcript = turns_of(episode)
        for seat in range(len(episode.scenario.seats)):
            numbers = [i for i, turn in enumerate(episode.turns) if turn.seat == seat and turn.passed]
            if not numbers:
                continue

            def check(answer: _Quality, seat: Seat = seat, numbers: list[int] = numbers) -> None:
                _same_target(answer, transcript, seat)
                if sorted(verdict.turn for verdict in answer.turns) != numbers:
                    raise ValueError("turns: give each of the asked turns exactly once")

            messages = quality_messages(transcript, seat, numbers)
            answer, _ = await self._ask(messages, _Quality, check, derive(seed, "quality", seat))
            for verdict in answer.turns:
                fit[verdict.turn] = verdict.passed
        return fit

    async def critical(self, episode: Episode, seat: Seat, score: float, *, seed: int = 0) -> list[int]:
        """Return the indices of the seat's turns whose strategies were critical to its goal, in order.

        `score` is what the seat achieved. An answer that lists a strategy twice, or one that there is not, is unusable.
        Raises `JudgeError`.
        """
        turns = [index for index, turn in enumerate(episode.turns) if turn.seat == seat and turn.strategy]
        transcript = turns_of(episode)

        def check(answer: _Critical) -> None:
            _same_target(answer, transcript, seat)
            if len({*answer.indexes}) < len(answer.indexes):
                raise ValueError("indexes: list each strategy once")
            if not all(1 <= index <= len(turns) for index in answer.indexes):
                raise ValueError(f"indexes: there are strategies 1 to {len(turns)} and no others")

        strategies = [episode.turns[index].strategy for index in turns]
        messages = critical_messages(transcript, seat, strategies, score)
        answer, _ = await self._ask(messages, _Critical, check, derive(seed, "critical"))
        return sorted(turns[index - 1] for index in answer.indexes)

    async def goals(self, transcript: Transcript, *, seed: int = 0) -> set[Seat]:
        """Return the seats whose goals are reached by now; raise `JudgeError`."""

        def check(answer: _Goals) -> None:
            if answer.target != transcript.target or len(answer.reached) != len(transcript.seats):
                raise ValueError(f"target must be {transcript.target}, with one truth value per participant")

        answer, _ = await self._ask(goal_messages(transcript), _Goals, check, derive(seed, "goals"))
        return {seat for seat, reached in enumerate(answer.reached) if reached}

    async def _ask(
        self, messages: list[ChatMessage], form: type[Parsed], check: Callable[[Parsed], None], seed: int
    ) -> tuple[Parsed, Cost]:
        """Ask until an answer is valid. The judge reads the reason why an answer was unusable, but not the answer."""
        cost, why, conversation = Cost(), "", list(messages)
        for attempt in range(self.attempts):
            try:
                reply = await self.model.reply(conversation, self.sampling, derive(seed, "judge", attempt) % 2**31)
            except OutsideError as error:
                raise JudgeError(f"could not score: {error}") from error
            step = Cost(1, reply.prompt_tokens, reply.completion_tokens)
            cost, self.spent = cost + step, self.spent + step
            try:
                answer = form.model_validate(_object(reply.text))
                check(answer)
            except ValidationError as error:
                why = explain(error)[1]  # the message alone: the field's path may be the transcript's words
            except ValueError as error:
                why = str(error)
            else:
                return answer, cost
            again = ChatMessage(role="user", content=f"{messages[-1].content}\n\n{AGAIN.format(why=why)}")
            conversation = [*messages[:-1], again]
        raise JudgeError(f"could not score: no usable answer in {self.attempts} attempts; the last: {why}")


def _object(text: str) -> dict[str, Any]:
    """Return the single JSON object in `text`; thoughts before it and a code fence are ignored."""
    if not (match := _FENCED.match(text.strip())):
        raise ValueError("not one JSON object")
    try:
        data = json.loads(match[1], object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    assert isinstance(data, dict), "the pattern admits an object only"
    return data


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key appears twice")
    return dict(pairs)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _same_target(answer: _Scores | _Quality | _Critical, transcript: Transcript, seat: Seat) -> None:
    if (answer.target, answer.seat) != (transcript.target, seat):
        raise ValueError(f"target and seat must be {transcript.target} and {seat}")


def _in_range(answer: _Scores, codebook: Codebook) -> None:
    if answer.values.keys() != {label_type.name for label_type in codebook.labels}:
        raise ValueError("values: give exactly the dimensions that were asked for")
    for label_type in codebook.labels:
        try:
            label_type.number(answer.values[label_type.name].value)
        except BadInput as error:
            raise ValueError(f"values.{label_type.name}: not {label_type.scale}") from error
