"""The shared data types: scenarios, moves, traces, episodes, credit, judgments.

Everything that is written to disk is a frozen pydantic model that refuses unknown fields; `Scenario` and `Episode`
carry a format version. `training.reading` reads them. What only lives inside one training step (`ScoredEpisode`,
`EpisodeCredit`) is a dataclass over numpy arrays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from training.reading import Record, Version, split_seat_metrics
from training.views import Line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

Seat = int
"""0..n-1 are the players; n is the tool seat, through which facts from outside enter a game."""
Viewer = int
"""A seat, or SPECTATOR (what the public may know), or ALL (everything; never a player)."""
SPECTATOR: Viewer = -1
ALL: Viewer = -2

_TAGS = re.compile(r"<(\w+)>.*?</\1>|<\w+/>", re.DOTALL)
"""Actions in the text of a message."""
LEARNER = "learner"
"""The policy name of traces that receive credit."""


class Scenario(Record):
    """One start of a game: `training.games.make(scenario)` needs nothing else.

    `seats` are the display names, one per player; `settings` are validated by the game's own settings model.
    """

    version: Version = 1
    id: str = Field(min_length=1, max_length=200)
    game: str = Field(max_length=100)
    settings: dict[str, Any] = Field(default_factory=dict)
    seats: tuple[Annotated[str, Field(max_length=200)], ...] = Field(min_length=1, max_length=100)
    seed: int = Field(
        default=0,
        ge=0,
        lt=2**63,
        description="Seed of all randomness in the game. 0: a new seed is drawn for every game.",
    )

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if len(set(self.seats)) != len(self.seats):
            raise ValueError("two seats share a display name")
        return self

    @property
    def tool_seat(self) -> Seat:
        """The seat through which a tool (judge, search) moves."""
        return len(self.seats)

    def with_seed(self, seed: int) -> Scenario:
        """Return another start of the same scenario; starts that share id and seed form a same-start set."""
        return self.model_copy(update={"seed": seed})


class Argument(Record):
    """One argument of an action: an integer in [low, high], one of `choices`, or free text.

    `marked` choices are written in angle brackets, `<BET>`; a game names all it ever offers in `GameSpec.marks`. With
    `open`, other values are legal as well, and the game says what comes of them; `choices` are those that work, and
    where there are none, no button or list offers the action. One of `prepositions` may stand before the value instead
    of the name; a command is written with the first: `take mug 1 from shelf 2`.
    """

    name: str
    kind: Literal["integer", "choice", "text"]
    choices: tuple[str, ...] = ()
    low: int = 0
    high: int = 0
    marked: bool = False
    open: bool = False
    prepositions: tuple[str, ...] = ()


class Action(Record):
    """A legal action of a seat, declared as data, from which the parser's grammar and the table's buttons are made.

    A reply performs it by the tag `<name>…</name>`; the one action with `bare` is performed by a reply without a tag.
    `text` says whether speech beside the tag belongs to the move; `private` words beside it are the seat's reasoning,
    which nobody else reads. With `verbs` it is a command as well: a reply without a tag performs it if it begins with
    one of them. The first verb makes its canonical form, in which nothing stands beside it.
    """

    name: str
    args: tuple[Argument, ...] = ()
    text: Literal["none", "optional", "required", "private"] = "optional"
    bare: bool = False
    label: str = ""
    verbs: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _commands_stand_alone(self) -> Self:
        if self.verbs and self.text not in ("none", "private"):
            raise ValueError(f"{self.name} is a command: no text for others can stand beside it")
        return self


class Message(Record):
    """One line of a viewer's log. `author` is None for the lines of the game itself.

    Only moves of origin `seat` have that seat as author; the game reports defaults, time-outs and forfeits. In a joint
    step a viewer's own message comes before the others'. `text` is what a model reads, `lines` what a person reads of
    the same; empty where only a model needs the message.
    """

    author: Seat | None
    text: str
    channel: str = "public"
    lines: tuple[Line, ...] = ()

    @classmethod
    def upgrade(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read messages written before they had lines: words of seats, and sentences of the game.

        Messages of several paragraphs were written for models alone. Tags are left out, with what they hold.
        """
        text, author = data.get("text"), data.get("author")
        if "lines" in data or not isinstance(text, str):
            return data
        speech = "" if "\n\n" in text else _TAGS.sub("", text).strip()
        kind = "news" if author is None else "speech"
        return {**data, "lines": [{"kind": kind, "text": speech, "seat": author}] if speech else []}


class Observation(Record):
    """Everything that a viewer has been shown, in order, and its legal actions.

    `messages` only grows from one observation to the next; its first message is the rules and the viewer's private
    brief. `actions` is empty unless the viewer is to act. `max_chars` and `max_words` bound free text; 0 = no bound.
    """

    messages: tuple[Message, ...]
    actions: tuple[Action, ...] = ()
    max_chars: int = 0
    max_words: int = 0


class Probe(Record):
    """A question to a seat outside the game: it enters no log, and its answer does not affect the game.

    `truth` are the right choices, which the seat does not see; empty where there is no right answer. `replies` are the
    replies that give the choices, in their order, such as the tag of a vote; empty where a choice is its own reply.
    """

    question: str
    choices: tuple[str, ...] = Field(min_length=2)
    truth: tuple[str, ...] = ()
    replies: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _a_reply_for_each_choice(self) -> Self:
        if self.replies and len(self.replies) != len(self.choices):
            raise ValueError(f"{len(self.choices)} choices need as many replies, not {len(self.replies)}")
        return self


class Belief(Record):
    """A seat's answer to a probe: the probability of every choice, after `after` moves of the episode.

    `trace` is the index into `Episode.traces` of the branch with the question and the right choice as the reply, whose
    tokens are those of `span` (start, stop) there. Both are None without a right choice, a local model or an end.
    """

    seat: Seat
    after: int = Field(ge=0)
    question: str
    probabilities: dict[str, float]
    truth: tuple[str, ...] = ()
    trace: int | None = Field(default=None, ge=0, exclude_if=lambda trace: trace is None)
    span: tuple[int, int] | None = Field(default=None, exclude_if=lambda span: span is None)

    @property
    def right(self) -> float:
        """The probability of the right choices together."""
        return sum(self.probabilities.get(choice, 0.0) for choice in self.truth)


Origin = Literal["seat", "default", "forfeit", "timeout", "tool"]
ArgValue = int | str


class Move(Record):
    """The action of a seat. `text` is its public part: the reply with its tag, without private reasoning.

    Origins: `seat` = chosen; `default` = refusals used up; `timeout` = the deadline; `forfeit` = resigned, or refusals
    used up where that forfeits; `tool` = a fact from outside.
    """

    action: str
    args: dict[str, ArgValue] = Field(default_factory=dict)
    text: str = ""
    origin: Origin = "seat"


class SeatMove(Record):
    """One entry of an episode's flat move list, in the order received."""

    seat: Seat
    move: Move


class Turn(Record):
    """One attempt of a seat to move, refused or not. `passed` = parsed and legal.

    Exactly one of `move` and `error` is set. `private` is the text inside <think>, never shown to others. `move_index`
    is the place in `Episode.moves` that this attempt filled, None for a refused one. `strategy` is what the seat's
    strategist wrote for the attempt, which only the seat reads; empty for a seat without a strategist.
    """

    seat: Seat
    reply: str
    private: str = ""
    move: Move | None = None
    move_index: int | None = None
    error: str | None = None
    passed: bool
    strategy: str = Field(default="", exclude_if=lambda strategy: not strategy)

    @classmethod
    def upgrade(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the fields that earlier files carry and no code reads."""
        return {name: value for name, value in data.items() if name not in {"voice", "reward"}}


class Trace(Record):
    """One growing token sequence of one seat. No token is encoded twice.

    All four sequences have one entry per token. `mask` is 1 where the token was sampled; `turn` is the index into
    `Episode.turns` for sampled tokens, -1 elsewhere; `logprobs` are the engine's, of the sampling distribution
    (temperature applied), 0 where mask is 0. A branch names its `parent` as (index into `Episode.traces`, length): it
    repeats its parent's first `length` tokens with mask 0, since the parent counts those that were sampled. A probe's
    trace names a `prefix` in the same form, and its tokens come after those: it repeats none of them. The trace that it
    names has no prefix of its own.
    `policy` is the policy that sampled: only `LEARNER` traces receive credit. `versions` are (position, step) in order:
    from that position on, tokens were sampled with the learner's weights after that training step; empty where
    versions are not counted. `choices` are the ids among which a token was sampled, by position, the token among them:
    there the policy is renormalised over these ids, in `logprobs` and in the trainer alike; at all other positions it
    is over the whole vocabulary. A branch repeats its parent's. A move that was drawn at random, not sampled, has at
    each of its tokens that id alone, with log-probability 0.
    """

    seat: Seat
    policy: str = LEARNER
    parent: tuple[int, int] | None = None
    tokens: tuple[int, ...]
    mask: tuple[int, ...]
    turn: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[tuple[int, int], ...] = Field(default=(), exclude_if=lambda versions: not versions)
    choices: dict[int, tuple[int, ...]] = Field(default_factory=dict, exclude_if=lambda choices: not choices)
    prefix: tuple[int, int] | None = Field(default=None, exclude_if=lambda prefix: prefix is None)

    @classmethod
    def upgrade(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the field that earlier files carry and no code reads."""
        return {name: value for name, value in data.items() if name != "voice"}

    def sampled_by(self) -> tuple[int | None, ...]:
        """Return after which step the weights were that sampled each token; None = not sampled, or not counted."""
        steps: list[int | None] = [None] * len(self.tokens)
        for position, step in self.versions:
            steps[position:] = [step] * (len(steps) - position)
        return tuple(step if sampled else None for step, sampled in zip(steps, self.mask, strict=True))

    @model_validator(mode="after")
    def _same_length(self) -> Self:
        if not len(self.tokens) == len(self.mask) == len(self.turn) == len(self.logprobs):
            raise ValueError("tokens, mask, turn and logprobs differ in length")
        for position, ids in self.choices.items():
            if not 0 <= position < len(self.tokens) or self.tokens[position] not in ids:
                raise ValueError(f"choices: position {position} has no token among {list(ids)[:10]}")
        if self.parent is not None and self.prefix is not None:
            raise ValueError("a trace has a parent, whose tokens it repeats, or a prefix, whose tokens it does not")
        return self


ProcessState = Literal["starting", "serving", "loading", "lost"]


class ProcessStatus(Record):
    """What one process of a run does at present; its driver makes this from what it last heard of it.

    `state`: starting, serving, loading (weights) or lost. `device`: `cpu`, or `cuda` with the numbers of its node's
    GPUs. `requests` are in flight (None: it is no engine); `waiting_s` is how long the process has had work without
    progress, `silent_s` how long it has not been heard, both in seconds. `cores` is the CPU time that it uses in a
    second, `gpu_busy` the share of time in which its GPUs compute (a mean; None: unknown). Memory and CPU time are with
    those of its worker processes. `restarts` counts how often it was started again.
    """

    name: str
    node: str = ""
    pid: int = 0
    device: str = "cpu"
    state: ProcessState = "starting"
    doing: str = ""
    requests: int | None = None
    waiting_s: float = 0.0
    silent_s: float = 0.0
    rss_bytes: int = 0
    gpu_bytes: int = 0
    cores: float = 0.0
    gpu_busy: float | None = None
    restarts: int = 0


class ErrorRecord(Record):
    """Why an episode has no result: a failure outside the model, never a reward."""

    kind: str
    message: str


class Episode(Record):
    """One played game. `returns[seat]` None = needs a judge. With `error` set nothing of it is scored or learned.

    An imported or exported conversation is an Episode without traces. `metrics` are numbers of the whole game and
    `seat_metrics` those of each seat, such as `eliminated`: 1 if the seat was eliminated before the final round, else
    0. `roles` has one name per seat, as the game reports them at its end; empty where the game has no roles. `earned`
    is the part of the returns that the game gave before its end, by the index into `turns` of the attempt that it
    counts for: the seat's latest at that time, or its first. Empty for games that pay at their end alone.
    """

    version: Version = 1
    scenario: Scenario
    moves: tuple[SeatMove, ...] = ()
    turns: tuple[Turn, ...] = ()
    traces: tuple[Trace, ...] = ()
    returns: dict[Seat, float | None] = Field(default_factory=dict)
    metrics: dict[str, float] = Field(default_factory=dict)
    seat_metrics: dict[Seat, dict[str, float]] = Field(default_factory=dict)
    roles: tuple[str, ...] = ()
    beliefs: tuple[Belief, ...] = ()
    earned: dict[int, float] = Field(default_factory=dict, exclude_if=lambda earned: not earned)
    error: ErrorRecord | None = None

    @classmethod
    def upgrade(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read records written before `seat_metrics` existed: they name a seat's numbers `won_0`, `won_1`, …."""
        scenario, metrics = data.get("scenario"), data.get("metrics")
        seats = scenario.get("seats") if isinstance(scenario, Mapping) else None
        if "seat_metrics" in data or not isinstance(metrics, Mapping) or not isinstance(seats, list | tuple):
            return data
        metrics, seat_metrics = split_seat_metrics(metrics, len(seats))
        return {**data, "metrics": metrics, "seat_metrics": seat_metrics}

    def player(self, seat: Seat) -> str:
        """Return whom a seat's games count for where games are compared: the same seat of the same game."""
        return f"{self.scenario.game}/{seat}"

    @model_validator(mode="after")
    def _probes_have_their_places(self) -> Self:
        for number, trace in enumerate(self.traces):
            if trace.prefix is not None:
                index, length = trace.prefix
                before = self.traces[index] if 0 <= index < len(self.traces) else None
                if before is None or before.seat != trace.seat or before.prefix or not 0 < length <= len(before.tokens):
                    raise ValueError(f"traces.{number}: its prefix is no beginning of a whole trace of its seat")
        for number, belief in enumerate(self.beliefs):
            if belief.trace is not None and belief.span is not None:
                tokens = self.traces[belief.trace].tokens if belief.trace < len(self.traces) else ()
                if not 0 <= belief.span[0] < belief.span[1] <= len(tokens):
                    raise ValueError(f"beliefs.{number}: its span is not in its trace")
        return self


LabelValue = bool | float | str | tuple[str, ...] | tuple[int, ...] | None
"""The value of a label, by the kind of its type (`training.labels.codebooks`): yes or no, a number on a scale, one
option, several options, a ranking, or a text; None where the place is all that is said, as of a span.
"""


class Label(Record):
    """One label of a game: its type's name, its value, and its place.

    Without a place it is about the whole game. `turn` and `other_turn` are indices into the game's moves; `start` and
    `end` are characters of the turn's text (Unicode code points, `end` exclusive). `reason` is its author's.
    """

    label: str
    value: LabelValue = None
    seat: Seat | None = None
    turn: int | None = Field(default=None, ge=0)
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)
    other_turn: int | None = Field(default=None, ge=0)
    reason: str = ""

    @property
    def words(self) -> str:
        """The value as people read it."""
        match self.value:
            case None:
                return "marked"
            case bool():
                return "yes" if self.value else "no"
            case int() | float():
                return f"{self.value:g}"
            case tuple():
                return ", ".join(map(str, self.value))
            case text:
                return text

    @property
    def place(self) -> tuple[int | None, ...]:
        """What tells places of one label type apart."""
        return (self.seat, self.turn, self.start, self.end, self.other_turn)


class Judgment(Record):
    """One author's labels of one seat (None: of the whole game) under one version of a codebook.

    `labels` None = could not be judged, for `reason`; else `reason` is the author's comment. `judged_at` is when the
    author last saved it, in ISO 8601 with an offset. `seconds` is how long the author took. `suggestions_shown`: the
    author saw suggestions of a model or rule first. `unsure`: the author marked it so. `decides`: an adjudicator's
    decision over the other authors' judgments. These five are not written where they are unknown or false.
    """

    version: Version = 1
    codebook: str
    codebook_version: int
    episode: str
    seat: Seat | None = None
    author: str
    prompt_sha256: str = ""
    labels: tuple[Label, ...] | None = None
    reason: str = ""
    judged_at: str = Field(default="", exclude_if=lambda text: not text)
    seconds: float | None = Field(default=None, ge=0, exclude_if=lambda value: value is None)
    suggestions_shown: bool = Field(default=False, exclude_if=lambda value: not value)
    unsure: bool = Field(default=False, exclude_if=lambda value: not value)
    decides: bool = Field(default=False, exclude_if=lambda value: not value)

    @classmethod
    def upgrade(cls, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read judgments written when codebooks were called rubrics and every value was a number about a seat."""
        if "rubric" not in data:
            return data
        moved = {"rubric", "rubric_version", "values", "reasons", "turn", "span"}
        kept = {name: value for name, value in data.items() if name not in moved}
        values, reasons = data.get("values"), data.get("reasons") or {}
        labels = None
        if isinstance(values, Mapping):
            labels = [
                {"label": name, "value": value, "seat": data.get("seat"), "reason": reasons.get(name, "")}
                for name, value in values.items()
            ]
        return {
            **kept, "codebook": data["rubric"], "codebook_version": data.get("rubric_version"), "labels": labels,
        }  # fmt: skip

    @property
    def numbers(self) -> dict[str, float] | None:
        """The values of scales, and of yes (1) and no (0), that are about `seat`; None = could not be judged."""
        return None if self.labels is None else numbers_by_seat(self.labels).get(self.seat, {})


def numbers_by_seat(labels: Iterable[Label]) -> dict[Seat | None, dict[str, float]]:
    """Return the values of labels that are numbers, or yes (1) and no (0), by seat (None: the game) and label type.

    Labels of turns are not among them.
    """
    numbers: dict[Seat | None, dict[str, float]] = {}
    for label in labels:
        if label.turn is None and isinstance(label.value, bool | int | float):
            numbers.setdefault(label.seat, {})[label.label] = float(label.value)
    return numbers


@dataclass(frozen=True, slots=True)
class Needs:
    """What a method requires from rollout and trainer.

    `critic` names the value heads; `group` is what one call of `credit` receives: the seats of one conversation,
    all episodes of a same-start set, or all episodes of a game in the batch. `probes` turns the game's probes on; a run
    in which no game has any is then refused. A method that can do without leaves it out, and uses those that
    `rollout.probes` asks for. `imitates`: credit is of the stream `nll` alone, so that nothing is measured before it
    and only traces with credit are read. `alone`: each seat plays by itself, without communication (`GameSpec.alone`).
    `arguments`: episodes come with `ScoredEpisode.arguments`. `offline`: the method may also learn from what a teacher
    has written; `taught`: only from that, so that a run without a teacher is refused. `centred`: its advantages are
    meant to have a mean near 0, so that the watchdog looks for a drift.
    """

    critic: tuple[str, ...] = ()
    group: Literal["conversation", "start", "game"] = "conversation"
    probes: bool = False
    imitates: bool = False
    alone: bool = False
    arguments: bool = False
    offline: bool = False
    taught: bool = False
    centred: bool = True


@dataclass(frozen=True, slots=True)
class ScoredEpisode:
    """An episode with all inputs of credit assignment.

    `returns` are what a seat receives at the end of the episode, and `turn_rewards` what its attempts receive, with
    what the game gave before its end: together they are a seat's whole reward. `turn_rewards` and `passed` have one
    entry per `episode.turns`; `passed` is legality and every quality filter.
    `logprobs[i]` and `values[head][i]` belong to `episode.traces[i]`, one entry per token, 0 in traces without sampled
    tokens: `logprobs[i][t]` is the trainer's log-probability of token t; `values[head][i][p]` is read from the hidden
    state after token p, so the value *before* token t is at p = t - 1. `token_rewards[i][t]` is the reward of token t
    itself (such as a KL penalty); empty when there are none. `arguments[i][t]` tells whether token t is an argument of
    the action of its turn, such as the text of an answer, rather than its tag; empty where the method does not need it.
    """

    episode: Episode
    returns: Mapping[Seat, float]
    turn_rewards: Sequence[float]
    passed: Sequence[bool]
    logprobs: Sequence[Floats] = ()
    values: Mapping[str, Sequence[Floats]] = field(default_factory=dict)
    token_rewards: Sequence[Floats] = ()
    arguments: Sequence[Bools] = ()


@dataclass(frozen=True, slots=True)
class TraceCredit:
    """Credit of one trace; every array has one entry per token of the trace.

    `ppo` and `reinforce` are advantages, read at sampled tokens only (None: the term is off). `nll` are weights on
    any token (0: not in the term). No term reads a token that was forced, the only one allowed.
    `value_targets[head][p]` counts where `value_mask[head][p]`. `turn_advantages` maps an index into `episode.turns` to
    that turn's advantage, for display.
    """

    ppo: Floats | None = None
    reinforce: Floats | None = None
    nll: Floats | None = None
    value_targets: Mapping[str, Floats] = field(default_factory=dict)
    value_mask: Mapping[str, Bools] = field(default_factory=dict)
    turn_advantages: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EpisodeCredit:
    """Credit of one episode: one entry per trace, None where a trace receives none (other policies)."""

    traces: Sequence[TraceCredit | None]
