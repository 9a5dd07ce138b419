"""From traces with credit to packed rows that fit the memory: what one forward pass sees.

An `Item` is one trace with everything the loss reads, token by token. `updates` groups items into optimiser updates,
`batches` cuts an update into forward passes of bounded size; the weights of every term are set over the whole update,
so that it makes no difference how it is cut. The items of a pass form one row (`training.learn.rows`).
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from training.learn.choices import Choices, choices_at
from training.learn.losses import Aggregate, averaging
from training.learn.rows import Layout, PackedTrace, layout, packed, token_ids
from training.records import Trace, TraceCredit

if TYPE_CHECKING:
    from torch import Tensor

    from training.records import Bools, Floats

Term = Literal["ppo", "reinforce", "nll", "sampled"]
TERMS: tuple[Term, ...] = ("ppo", "reinforce", "nll", "sampled")


@dataclass(slots=True)
class Item:
    """One trace; all arrays have one entry per token. `trajectory` identifies the seat's trajectory: episode and seat;
    `player` which trajectories are of the same player (`Episode.player`).

    `old` are the trainer's log-probabilities before the update, `reference` those of the reference; None where
    they are not needed. `entropy` is the policy's before each token, in nats, from the first pass of the update.
    `branches` are the items whose traces come after a prefix of this one; they stand behind it in the row. `offline`:
    nobody sampled the trace, which is a teacher's text, so that the sampler's log-probabilities are not known.
    """

    trace: Trace
    trajectory: tuple[int, int]
    credit: TraceCredit = field(default_factory=TraceCredit)
    old: Floats | None = None
    reference: Floats | None = None
    entropy: Floats | None = None
    player: str = ""
    branches: list[Item] = field(default_factory=list)
    offline: bool = False

    def __len__(self) -> int:
        return len(self.trace.tokens)

    @property
    def width(self) -> int:
        """The number of tokens that it has in a row: its own, and those of its branches."""
        return len(self) + sum(len(branch) for branch in self.branches)

    @property
    def sampled(self) -> Bools:
        """Where the learner sampled among several tokens.

        A forced token, the only one that was allowed, has log-probability 0 and gradient 0 whatever the weights. No
        term reads it and no average counts it: else the size of a step would depend on how many tokens the fixed text
        around a choice has.
        """
        return np.asarray(self.trace.mask, dtype=bool) & self._free

    @property
    def _free(self) -> Bools:
        """Where more than one token was allowed."""
        places = np.ones(len(self), dtype=bool)
        places[[position for position, ids in self.trace.choices.items() if len(ids) == 1]] = False
        return places

    @property
    def learns(self) -> bool:
        """Whether an update reads the trace: for what the learner sampled, or for text that it is to imitate."""
        return bool(self.sampled.any() or self.mask("nll").any())

    def mask(self, term: Term) -> Bools:
        """Return where a term of the loss reads this trace; a token with nothing before it is never read."""
        stream = {"ppo": self.credit.ppo, "reinforce": self.credit.reinforce, "nll": self.credit.nll}.get(term)
        if stream is None and term != "sampled":
            return np.zeros(len(self), dtype=bool)
        places = (stream != 0) & self._free if term == "nll" and stream is not None else self.sampled
        if self.trace.prefix is None:
            places[:1] = False
        return places

    def scored(self) -> Bools:
        """Return where a log-probability is needed at all."""
        return self.mask("ppo") | self.mask("reinforce") | self.mask("nll") | self.mask("sampled")


@dataclass(frozen=True, slots=True)
class Batch:
    """One forward pass over a packed row. `ids` are (1, T); `at` are the columns of the N scored tokens, in order.

    `before` are the columns of the states from which these tokens are predicted. `streams[name]` are (N,) float32
    tensors; `values[head]` = (columns, targets, weights) of the M positions with a value target. `items` are what the
    row was made from, each followed by its branches. `choices` are the allowed ids of those of the N tokens whose
    decoding was limited, None where none was.
    """

    ids: Tensor
    at: Tensor
    before: Tensor
    streams: Mapping[str, Tensor]
    values: Mapping[str, tuple[Tensor, Tensor, Tensor]]
    items: tuple[Item, ...]
    layout: Layout
    choices: Choices | None = None

    @property
    def targets(self) -> Tensor:
        """The scored tokens' ids, (N,)."""
        return self.ids[0, self.at]

    def to(self, device: torch.device) -> Batch:
        """Return the batch on `device`."""
        return Batch(
            self.ids.to(device),
            self.at.to(device),
            self.before.to(device),
            {name: stream.to(device) for name, stream in self.streams.items()},
            {head: tuple(t.to(device) for t in parts) for head, parts in self.values.items()},  # type: ignore[misc]
            self.items,
            self.layout.to(device),
            None if self.choices is None else self.choices.to(device),
        )

    def silenced(self) -> Batch:
        """Return the batch with weight 0 for every term, without values: its gradients are zero."""
        streams = {
            name: torch.zeros_like(stream) if name.endswith("_weight") else stream
            for name, stream in self.streams.items()
        }
        return replace(self, streams=streams, values={}, items=())

    def note_entropy(self, entropy: Tensor) -> None:
        """Keep the entropy (N,) at the scored tokens with the items that have none yet."""
        if not self.items:
            return
        values = entropy.detach().double().cpu().numpy()
        scored = [item.scored() for item in self.items]
        parts = np.split(values, np.cumsum([int(places.sum()) for places in scored])[:-1])
        for item, places, part in zip(self.items, scored, parts, strict=True):
            if item.entropy is None:
                item.entropy = np.zeros(len(item))
                item.entropy[places] = part


def updates(items: Sequence[Item], tokens: int, seed: int, trajectories: int = 0) -> list[list[Item]]:
    """Return the items in an order drawn from `seed`, cut into updates of about `tokens` tokens (0 = one update).

    With `trajectories` they are cut into updates of so many trajectories instead, each of which stays whole. No update
    has fewer than half of that, unless all items together have: it would be a full-size optimizer step on little
    evidence, so a small group joins the one before it (the first joins the second).
    """
    if trajectories:
        whole: dict[tuple[int, int], list[Item]] = {}
        for item in items:
            whole.setdefault(item.trajectory, []).append(item)
        units, sizes, most = list(whole.values()), [1] * len(whole), trajectories
    else:
        units, sizes, most = [[item] for item in items], [item.width for item in items], tokens
    order = list(range(len(units)))
    random.Random(seed).shuffle(order)
    groups: list[tuple[int, list[Item]]] = [(0, [])]
    for place in order:
        size, group = groups[-1]
        if most and group and size + sizes[place] > most:
            size, group = 0, []
            groups.append((size, group))
        groups[-1] = (size + sizes[place], [*group, *units[place]])
    return _merged(groups, most)


def _merged(groups: Sequence[tuple[int, list[Item]]], most: int) -> list[list[Item]]:
    """Return the groups, each of a size, without those of less than half of `most`: each joins the one before it."""
    merged: list[tuple[int, list[Item]]] = []
    for size, group in groups:
        if merged and min(size, merged[-1][0]) < most / 2:
            before, earlier = merged.pop()
            merged.append((before + size, [*earlier, *group]))
        elif group:
            merged.append((size, group))
    return [group for _, group in merged]


def cut(items: Sequence[Item], tokens: int, ranks: int = 1) -> list[list[Item]]:
    """Return the items in groups of at most `tokens` tokens, branches included (a longer item is alone).

    Each joins the first group with room for it, long ones first, so that the groups are full and therefore few. For
    several `ranks`, which wait for each other, groups are as even as can be, and as many for each rank if there are
    items enough; the largest come first.
    """
    longest_first = sorted(items, key=lambda item: item.width, reverse=True)
    groups = full = _full(longest_first, tokens)
    if ranks > 1 and full:
        count = -(-len(full) // ranks) * ranks
        while not (groups := _even(longest_first, tokens, count)):
            count += ranks
    return groups


def _full(longest_first: Sequence[Item], tokens: int) -> list[list[Item]]:
    groups: list[list[Item]] = []
    rooms: list[int] = []
    for item in longest_first:
        place = next((n for n, room in enumerate(rooms) if item.width <= room), len(groups))
        if place == len(groups):
            groups.append([])
            rooms.append(tokens)
        groups[place].append(item)
        rooms[place] -= item.width
    return groups


def _even(longest_first: Sequence[Item], tokens: int, count: int) -> list[list[Item]]:
    """Return at most `count` groups, where each item joins the smallest; none where one would exceed `tokens`."""
    heap: list[tuple[int, int, list[Item]]] = [(0, number, []) for number in range(count)]
    for item in longest_first:
        size, number, group = heap[0]
        if group and size + item.width > tokens:
            return []
        heapq.heapreplace(heap, (size + item.width, number, [*group, item]))
    return [group for _, _, group in sorted(heap, key=lambda each: (-each[0], each[1])) if group]


def batches(items: Sequence[Item], tokens: int, how: Aggregate, ranks: int = 1) -> list[Batch]:
    """Return the forward passes of one update; the weights of each term add up to 1 over all of them. See `cut`."""
    everything = [part for item in items for part in (item, *item.branches)]
    weights: dict[int, dict[str, Floats]] = {id(item): {} for item in everything}
    for term in TERMS:
        rows = averaging(
            [item.mask(term) for item in everything],
            [item.trace.turn for item in everything],
            [item.trajectory for item in everything],
            how,
            [item.player for item in everything],
        )
        for item, row in zip(everything, rows, strict=True):
            weights[id(item)][term] = row
    heads = sorted({head for item in everything for head in item.credit.value_mask})
    counts = {h: sum(int(i.credit.value_mask[h].sum()) for i in everything if h in i.credit.value_mask) for h in heads}
    return [_pack(group, weights, counts) for group in cut(items, tokens, ranks)]


def _pack(group: Sequence[Item], weights: Mapping[int, Mapping[str, Floats]], counts: Mapping[str, int]) -> Batch:
    parts = packed(group)
    scored = [np.flatnonzero(part.item.scored()) for part in parts]
    streams: dict[str, list[Floats]] = {}
    for part, places in zip(parts, scored, strict=True):
        for name, stream in _streams(part.item, weights[id(part.item)]).items():
            streams.setdefault(name, []).append(stream[places])
    return Batch(
        token_ids(parts),
        torch.from_numpy(np.concatenate([part.first + places for part, places in zip(parts, scored, strict=True)])),
        torch.from_numpy(np.concatenate([part.before(places) for part, places in zip(parts, scored, strict=True)])),
        {name: torch.from_numpy(np.concatenate(each)).float() for name, each in streams.items()},
        {head: _values(parts, head, count) for head, count in counts.items() if count},
        tuple(part.item for part in parts),
        layout(parts),
        choices_at([part.item.trace for part in parts], scored),
    )


def _streams(item: Item, weights: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return every per-token number the loss reads; what an item lacks is 0 with weight 0 (or NaN: not known)."""
    zeros = np.zeros(len(item))
    unknown = np.full(len(item), np.nan) if item.sampled.any() else zeros  # of text that nobody sampled none is read
    credit = item.credit
    return {
        "ppo": zeros if credit.ppo is None else credit.ppo,
        "reinforce": zeros if credit.reinforce is None else credit.reinforce,
        "nll": zeros if credit.nll is None else credit.nll,
        "engine": np.full(len(item), np.nan) if item.offline else np.asarray(item.trace.logprobs, dtype=np.float64),
        "old": unknown if item.old is None else item.old,
        "reference": unknown if item.reference is None else item.reference,
        **{f"{term}_weight": row for term, row in weights.items()},
    }


def _values(parts: Sequence[PackedTrace], head: str, count: int) -> tuple[Tensor, Tensor, Tensor]:
    columns, targets = [np.zeros(0, dtype=np.int64)], [np.zeros(0)]
    for part in parts:
        if head in part.item.credit.value_mask:
            at = np.flatnonzero(part.item.credit.value_mask[head])
            columns.append(part.first + at)
            targets.append(part.item.credit.value_targets[head][at])
    at = np.concatenate(columns)
    return (
        torch.from_numpy(at),
        torch.from_numpy(np.concatenate(targets)).float(),
        torch.full((len(at),), 1.0 / count),
    )
