"""Forward passes without gradient, before credit is given: values, log-probabilities, the reference's, per token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from training.learn.batch import Item, cut
from training.learn.choices import choices_at
from training.learn.policy import Policy
from training.learn.rows import packed, padded

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from training.records import Floats


@torch.no_grad()
def measure(
    policy: Policy,
    items: Sequence[Item],
    *,
    old: bool,
    reference: bool,
    beat: Callable[[int], None] = lambda tokens: None,
) -> list[dict[str, Floats]]:
    """Return each item's values by head, read after every token; set `old` and `reference` where requested.

    The items have no branches: those are read when they learn, and here nothing of them is asked for.
    `beat` is called with the number of tokens of each pass; an exception that it raises ends the work.
    """
    values: dict[int, dict[str, Floats]] = {id(item): {} for item in items}
    for group in cut(items, policy.learn.tokens_per_batch):
        ids = padded(packed(group)).to(policy.device)
        if old or policy.critic:
            hidden = policy.hidden(ids)
            states = policy.features(ids, hidden) if policy.critic else hidden
            for head in policy.critic.names:
                for item, row in zip(group, _numbers(policy.critic.value(head, states)), strict=True):
                    values[id(item)][head] = row[: len(item)]
            if old:
                for item, row in zip(group, _sampled(policy, group, ids, hidden), strict=True):
                    item.old = row
        if reference:
            with policy.as_reference() as model:
                hidden = policy.hidden(ids, model)
                for item, row in zip(group, _sampled(policy, group, ids, hidden, model), strict=True):
                    item.reference = row
        beat(sum(len(item) for item in group))
    return [values[id(item)] for item in items]


def _sampled(
    policy: Policy, group: Sequence[Item], ids: Tensor, hidden: Tensor, model: PreTrainedModel | None = None
) -> list[Floats]:
    """Return per item the log-probabilities of its sampled tokens, 0 elsewhere (and at forced tokens)."""
    places = [np.flatnonzero(item.mask("sampled")) for item in group]
    rows = torch.from_numpy(np.repeat(np.arange(len(group)), [len(at) for at in places])).to(ids.device)
    at = torch.from_numpy(np.concatenate(places)).to(ids.device)
    choices = choices_at([item.trace for item in group], places)
    on_device = None if choices is None else choices.to(ids.device)
    logp, _ = policy.logprobs(hidden[rows, at - 1], ids[rows, at], choices=on_device, model=model)
    logprobs = [np.zeros(len(item)) for item in group]
    for row, where, part in zip(
        logprobs, places, np.split(_numbers(logp), np.cumsum([len(p) for p in places])[:-1]), strict=True
    ):
        row[where] = part
    return logprobs


def _numbers(tensor: Tensor) -> Floats:
    numbers: Floats = tensor.double().cpu().numpy()
    return numbers
