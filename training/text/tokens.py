"""One seat's growing token trace: observation tokens (mask 0) between sampled tokens (mask 1), never re-encoded.

Each prompt is the trace so far. The tokens that the template adds after a reply (its end, the new messages, the next
header) are the difference of two renderings. A branch begins where the earlier text changes: the template drops an
earlier <think> block or renders the past differently, or the window is full and the oldest messages are dropped.
Raises `EngineError` when not even the newest messages fit the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from training.engines.base import Sample
from training.engines.trie import Trie
from training.errors import EngineError
from training.records import LEARNER, Seat, Trace
from training.text.template import ChatTokenizer, placeholder

if TYPE_CHECKING:
    from training.text.messages import Chat

KEPT_SHARE = 0.75
"""Share of the prompt's room that stays filled when old messages are dropped; the rest is free for new messages."""


def shared_start(first: Sequence[int], second: Sequence[int]) -> int:
    """Return how many tokens two sequences have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


@dataclass(slots=True)
class _Branch:
    """A growing trace; `parent` is (index of a branch in the builder, length of the shared start)."""

    parent: tuple[int, int] | None = None
    tokens: list[int] = field(default_factory=list)
    mask: list[int] = field(default_factory=list)
    turn: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[tuple[int, int]] = field(default_factory=list)
    choices: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def copy(self) -> _Branch:
        lists = (self.tokens[:], self.mask[:], self.turn[:], self.logprobs[:], self.versions[:])
        return _Branch(self.parent, *lists, dict(self.choices))

    def observe(self, tokens: Sequence[int]) -> None:
        self.tokens.extend(tokens)
        self.mask.extend([0] * len(tokens))
        self.turn.extend([-1] * len(tokens))
        self.logprobs.extend([0.0] * len(tokens))

    def sampled(self, sample: Sample, turn: int, choices: Trie | None) -> None:
        if sample.version is not None and (not self.versions or self.versions[-1][1] != sample.version):
            self.versions.append((len(self.tokens), sample.version))
        if choices is not None:
            self.choices.update(enumerate(choices.along(sample.tokens), len(self.tokens)))
        self.tokens.extend(sample.tokens)
        self.mask.extend([1] * len(sample.tokens))
        self.turn.extend([turn] * len(sample.tokens))
        self.logprobs.extend(sample.logprobs)


@dataclass(frozen=True, slots=True)
class _Line:
    """One message of the conversation; `reply` is the number of a sampled reply of the seat, None for others."""

    message: Chat
    reply: int | None = None

    def with_placeholder(self) -> Chat:
        """Return the message with a placeholder for a sampled reply."""
        if self.reply is None:
            return self.message
        return {"role": "assistant", "content": placeholder(self.reply)}


class TraceBuilder:
    """Builds the traces of one seat: `prompt` with the new messages, then `record` with the sample.

    `window` bounds a prompt plus `reserve`, the most tokens a reply may take; None = no bound.
    """

    def __init__(
        self,
        chat: ChatTokenizer,
        *,
        seat: Seat,
        policy: str = LEARNER,
        window: int | None = None,
        reserve: int = 0,
    ) -> None:
        self.chat = chat
        self.replies = 0
        self._seat, self._policy = seat, policy
        self.window, self.reserve = window, reserve
        self._lines: list[_Line] = []
        self._branches: list[_Branch] = []
        self._rendered = ""

    def prompt(self, new: Sequence[Chat]) -> list[int]:
        """Add the messages since the last reply; return the prompt, which is the newest trace so far."""
        self._lines.extend(_Line(self.chat.neutral_message(message)) for message in new)
        rendered = self._render()
        added = self._added(rendered)
        if added is not None and self._fits(len(self._branches[-1].tokens) + len(added)):
            self._branches[-1].observe(added)
        else:
            whole = self._whole()
            self._branch(whole if self._fits(len(whole)) else self._forget())
            rendered = self._render()
        self._rendered = rendered
        return list(self._branches[-1].tokens)

    def branch(self, new: Sequence[Chat], reply: int) -> list[int] | None:
        """Return the prompt that `prompt` would return, with room for `reply` tokens, without changing the builder.

        Returns None if not even the newest messages fit the window.
        """
        saved = self._lines, self._branches, self._rendered, self.reserve
        self._lines, self.reserve = list(self._lines), reply
        self._branches = [*self._branches[:-1], *(branch.copy() for branch in self._branches[-1:])]
        try:
            return self.prompt(new)
        except EngineError:
            return None
        finally:
            self._lines, self._branches, self._rendered, self.reserve = saved

    def record(self, sample: Sample, choices: Trie | None = None) -> str:
        """Add a reply that was sampled from the last prompt; return it as text.

        Raises `EngineError` for a reply that is none of the `choices`.
        """
        if len(sample.tokens) != len(sample.logprobs):
            raise EngineError(f"{len(sample.tokens)} sampled tokens came with {len(sample.logprobs)} log-probabilities")
        text = self.chat.decode(sample.tokens)
        self._branches[-1].sampled(sample, self.replies, choices)
        self._lines.append(_Line({"role": "assistant", "content": self.chat.neutral(text)}, self.replies))
        self.replies += 1
        return text

    def traces(self) -> tuple[Trace, ...]:
        """Return the traces so far; turns are numbers of the seat's replies, parents are indices into this tuple."""
        return tuple(
            Trace(
                seat=self._seat,
                policy=self._policy,
                parent=branch.parent,
                tokens=tuple(branch.tokens),
                mask=tuple(branch.mask),
                turn=tuple(branch.turn),
                logprobs=tuple(branch.logprobs),
                versions=tuple(branch.versions),
                choices=branch.choices,
            )
            for branch in self._branches
        )

    def _render(self) -> str:
        return self.chat.render([line.with_placeholder() for line in self._lines])

    def _whole(self) -> list[int]:
        return self.chat.encode(self.chat.render([line.message for line in self._lines]))

    def _fits(self, length: int) -> bool:
        return self.window is None or length <= self.window - self.reserve

    def _added(self, rendered: str) -> list[int] | None:
        """Return the tokens that follow the last reply, or None if the trace must branch."""
        last = next((line for line in reversed(self._lines) if line.reply is not None), None)
        if not self._branches or last is None or last.reply is None:
            return None
        if self.chat.drops_thinking and "</think>" in last.message["content"]:
            return None
        before, _, after = rendered.rpartition(placeholder(last.reply))
        if before != self._rendered:
            return None
        tokens = self.chat.encode(after)
        branch = self._branches[-1]
        ended = branch.mask[-1] == 1 and bool(tokens) and branch.tokens[-1] == tokens[0]
        return tokens[1:] if ended else tokens  # a sample may already hold the template's end of turn

    def _branch(self, tokens: list[int]) -> None:
        parent, choices = None, dict[int, tuple[int, ...]]()
        if self._branches:
            shared = shared_start(tokens, self._branches[-1].tokens)
            parent = (len(self._branches) - 1, shared)
            choices = {at: ids for at, ids in self._branches[-1].choices.items() if at < shared}
        self._branches.append(_Branch(parent=parent, choices=choices))
        self._branches[-1].observe(tokens)

    def _forget(self) -> list[int]:
        """Drop the oldest messages after the first until the prompt fits; return the remaining ones as tokens."""
        lines, room = self._lines, (self.window or 0) - self.reserve
        opener = "user" if lines[0].message["role"] == "system" else "assistant"
        newest = max((at for at, line in enumerate(lines) if line.reply is not None), default=0) + 1
        starts = [at for at in range(2, newest + 1) if at < len(lines) and lines[at].message["role"] == opener]
        for bound in (room * KEPT_SHARE, room):
            for start in starts:
                self._lines = [lines[0], *lines[start:]]
                tokens = self._whole()
                if len(tokens) <= bound:
                    return tokens
        self._lines = lines
        raise EngineError(f"not even the newest messages fit the {room} tokens that the window leaves for a prompt")
