"""From traces with credit to padded batches that fit the memory: what one forward pass sees.

An `Item` is one trace with everything the loss reads, token by token. `updates` groups items into optimiser updates,
`batches` cuts an update into forward passes of bounded size; the weights of every term are set over the whole update,
so that it makes no difference how it is cut.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from training.learn.choices import Choices, choices_at
from training.learn.losses import Aggregate, averaging
from training.records import Trace, TraceCredit

if TYPE_CHECKING:
    from torch import Tensor

    from training.records import Bools, Floats

Term = Literal["ppo", "reinforce", "nll", "sampled"]
TERMS: tuple[Term, ...] = ("ppo", "reinforce", "nll", "sampled")


@dataclass(slots=True)
class Item:
    """One trace; all arrays have one entry per token. `trajectory` identifies the seat's trajectory: episode and seat;
    `player` which trajectories are of the same player: game and seat.

    `old` are the trainer's log-probabilities before the update, `reference` those of the starting model; None where
    they are not needed. `entropy` is the policy's before each token, in nats, from the first pass of the update.
    """

    trace: Trace
    trajectory: tuple[int, int]
    credit: TraceCredit = field(default_factory=TraceCredit)
    old: Floats | None = None
    reference: Floats | None = None
    entropy: Floats | None = None
    player: tuple[str, int] = ("", 0)

    def __len__(self) -> int:
        return len(self.trace.tokens)

    @property
    def sampled(self) -> Bools:
        """Where the learner sampled among several tokens.

        A forced token, the only one that was allowed, has log-probability 0 and gradient 0 whatever the weights. No
        term reads it and no average counts it: else the size of a step would depend on how many tokens the fixed text
        around a choice has.
        """
        places = np.asarray(self.trace.mask, dtype=bool)
        places[self.forced] = False
        return places

    @property
    def forced(self) -> list[int]:
        """The positions at which a single token was allowed."""
        return [position for position, ids in self.trace.choices.items() if len(ids) == 1]

    def mask(self, term: Term) -> Bools:
        """Return where a term of the loss reads this trace; the first token has nothing before it and is never read."""
        stream = {"ppo": self.credit.ppo, "reinforce": self.credit.reinforce, "nll": self.credit.nll}.get(term)
        if term == "sampled":
            places = self.sampled
        elif stream is None:
            return np.zeros(len(self), dtype=bool)
        else:
            places = stream != 0 if term == "nll" else self.sampled
        places = places.copy()
        places[:1] = False
        places[self.forced] = False
        return places

    def scored(self) -> Bools:
        """Return where a log-probability is needed at all."""
        return self.mask("ppo") | self.mask("reinforce") | self.mask("nll") | self.mask("sampled")


@dataclass(frozen=True, slots=True)
class Batch:
    """One forward pass. `ids` are (B, L), padded on the right; `rows`, `at` pick the N scored tokens, in row order.

    `streams[name]` are (N,) float32 tensors; `values[head]` = (rows, positions, targets, weights) of the M places
    where a value is learned. `items` are what the rows were made from. `choices` are the allowed ids of those of the N
    tokens whose decoding was limited, None where none was.
    """

    ids: Tensor
    rows: Tensor
    at: Tensor
    streams: Mapping[str, Tensor]
    values: Mapping[str, tuple[Tensor, Tensor, Tensor, Tensor]]
    items: tuple[Item, ...]
    choices: Choices | None = None

    @property
    def targets(self) -> Tensor:
        """The scored tokens' ids, (N,)."""
        return self.ids[self.rows, self.at]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on `device`."""
        return Batch(
            self.ids.to(device),
            self.rows.to(device),
            self.at.to(device),
            {name: stream.to(device) for name, stream in self.streams.items()},
            {head: tuple(t.to(device) for t in parts) for head, parts in self.values.items()},  # type: ignore[misc]
            self.items,
            choices=None if self.choices is None else self.choices.to(device),
        )

    def note_entropy(self, entropy: Tensor) -> None:
        """Keep the entropy (N,) at the scored tokens with the items that have none yet."""
        rows, at = self.rows.cpu().numpy(), self.at.cpu().numpy()
        values = entropy.detach().double().cpu().numpy()
        for row, item in enumerate(self.items):
            if item.entropy is None:
                item.entropy = np.zeros(len(item))
                item.entropy[at[rows == row]] = values[rows == row]


def updates(items: Sequence[Item], tokens: int, seed: int) -> list[list[Item]]:
    """Return the items in an order drawn from `seed`, cut into updates of about `tokens` tokens (0 = one update).

    No update has fewer than half of them, unless all items together have: it would be a full-size optimizer step on
    little evidence, so a small group joins the one before it (the first joins the second).
    """
    order = list(items)
    random.Random(seed).shuffle(order)
    groups: list[list[Item]] = [[]]
    size = 0
    for item in order:
        if tokens and groups[-1] and size + len(item) > tokens:
            groups.append([])
            size = 0
        groups[-1].append(item)
        size += len(item)
    merged: list[list[Item]] = []
    for group in groups:
        if merged and min(_tokens(group), _tokens(merged[-1])) < tokens / 2:
            merged[-1] += group
        elif group:
            merged.append(group)
    return merged


def _tokens(group: Sequence[Item]) -> int:
    return sum(len(item) for item in group)


def cut(items: Sequence[Item], tokens: int) -> list[list[Item]]:
    """Return the items, long ones first, in groups whose padded size is at most `tokens` (a longer trace is alone)."""
    groups: list[list[Item]] = []
    for item in sorted(items, key=len, reverse=True):
        if groups and (len(groups[-1]) + 1) * len(groups[-1][0]) <= tokens:
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def batches(items: Sequence[Item], tokens: int, how: Aggregate) -> list[Batch]:
    """Return the forward passes of one update; the weights of each term add up to 1 over all of them."""
    weights: dict[int, dict[str, Floats]] = {id(item): {} for item in items}
    for term in TERMS:
        rows = averaging(
            [item.mask(term) for item in items],
            [item.trace.turn for item in items],
            [item.trajectory for item in items],
            how,
            [item.player for item in items],
        )
        for item, row in zip(items, rows, strict=True):
            weights[id(item)][term] = row
    heads = sorted({head for item in items for head in item.credit.value_mask})
    counts = {h: sum(int(i.credit.value_mask[h].sum()) for i in items if h in i.credit.value_mask) for h in heads}
    return [_pad(group, weights, counts) for group in cut(items, tokens)]


def padded(group: Sequence[Item]) -> Tensor:
    """Return the token ids of the items, (B, L), zeros on the right."""
    ids = torch.zeros((len(group), max(len(item) for item in group)), dtype=torch.long)
    for row, item in enumerate(group):
        ids[row, : len(item)] = torch.tensor(item.trace.tokens)
    return ids


def _pad(group: Sequence[Item], weights: Mapping[int, Mapping[str, Floats]], counts: Mapping[str, int]) -> Batch:
    scored = [np.flatnonzero(item.scored()) for item in group]
    at = np.concatenate(scored)
    rows = np.repeat(np.arange(len(group)), [len(places) for places in scored])
    streams: dict[str, list[Floats]] = {}
    for item, places in zip(group, scored, strict=True):
        for name, stream in _streams(item, weights[id(item)]).items():
            streams.setdefault(name, []).append(stream[places])
    return Batch(
        padded(group),
        torch.from_numpy(rows),
        torch.from_numpy(at),
        {name: torch.from_numpy(np.concatenate(parts)).float() for name, parts in streams.items()},
        {head: _values(group, head, count) for head, count in counts.items() if count},
        tuple(group),
        choices=choices_at([item.trace for item in group], scored),
    )


def _streams(item: Item, weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return every per-token number the loss reads; what an item lacks is 0 with weight 0 (or NaN: not known)."""
    zeros, unknown = np.zeros(len(item)), np.full(len(item), np.nan)
    credit = item.credit
    return {
        "ppo": zeros if credit.ppo is None else credit.ppo,
        "reinforce": zeros if credit.reinforce is None else credit.reinforce,
        "nll": zeros if credit.nll is None else credit.nll,
        "engine": np.asarray(item.trace.logprobs, dtype=np.float64),
        "old": unknown if item.old is None else item.old,
        "reference": unknown if item.reference is None else item.reference,
        **{f"{term}_weight": row for term, row in weights.items()},
    }


def _values(group: Sequence[Item], head: str, count: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, places, targets = [], [], []
    for row, item in enumerate(group):
        if head not in item.credit.value_mask:
            continue
        at = np.flatnonzero(item.credit.value_mask[head])
        rows.append(np.full(len(at), row))
        places.append(at)
        targets.append(item.credit.value_targets[head][at])
    none = np.zeros(0)
    at = np.concatenate([*places, none.astype(np.int64)])
    return (
        torch.from_numpy(np.concatenate([*rows, none.astype(np.int64)])),
        torch.from_numpy(at),
        torch.from_numpy(np.concatenate([*targets, none])).float(),
        torch.full((len(at),), 1.0 / count),
    )
