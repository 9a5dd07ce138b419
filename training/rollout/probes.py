"""Keeps what probes asked of local models as traces of the episode, so that a method can give the answers credit.

A probe's trace has the tokens of the question and of the right answer alone: what the seat had read until then is the
prefix, tokens of another trace of the seat. That is looked for once the game is over, when the seat's own trace has
nearly everything that its probes had read. Pure functions over records.
"""

from __future__ import annotations

from collections.abc import Sequence

from training.players.base import Answer
from training.records import Belief, Seat, Trace
from training.text.tokens import shared_start


def with_branches(
    beliefs: Sequence[Belief], answers: Sequence[Answer], traces: Sequence[Trace]
) -> tuple[list[Belief], tuple[Trace, ...]]:
    """Return the beliefs with their traces, which come after `traces` in the episode; each has an answer.

    The first probe of a seat that has no trace (it never moved) is the prefix of its later ones.
    """
    linked: list[Belief] = []
    branches: list[Trace] = []
    whole: dict[Seat, list[int]] = {}
    for number, trace in enumerate(traces):
        whole.setdefault(trace.seat, []).append(number)
    for belief, answer in zip(beliefs, answers, strict=True):
        if not answer.tokens:
            linked.append(belief)
            continue
        present, number = (*traces, *branches), len(traces) + len(branches)
        prefix = _prefix(answer, [(place, present[place].tokens) for place in whole.get(belief.seat, ())])
        if prefix is None:
            whole.setdefault(belief.seat, []).append(number)
        read = 0 if prefix is None else prefix[1]
        branches.append(_branch(belief.seat, answer, prefix, read))
        span = (answer.reply - read, len(answer.tokens) - read)
        linked.append(belief.model_copy(update={"trace": number, "span": span}))
    return linked, tuple(branches)


def _prefix(answer: Answer, candidates: Sequence[tuple[int, Sequence[int]]]) -> tuple[int, int] | None:
    """Return the trace that shares most of what was read before the reply, and how much; None if there is none."""
    read = answer.tokens[: answer.reply]
    shared = [(place, shared_start(read, tokens)) for place, tokens in candidates]
    longest = max(shared, key=lambda pair: pair[1], default=(0, 0))
    return longest if longest[1] else None


def _branch(seat: Seat, answer: Answer, prefix: tuple[int, int] | None, read: int) -> Trace:
    tokens = answer.tokens[read:]
    nothing = (0,) * len(tokens)
    return Trace(
        seat=seat,
        policy=answer.policy,
        prefix=prefix,
        tokens=tokens,
        mask=nothing,
        turn=(-1,) * len(tokens),
        logprobs=(0.0,) * len(tokens),
    )
