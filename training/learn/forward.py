"""Forward passes without gradient, before credit is given: values, log-probabilities, the reference's, per token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from training.learn.batch import Item, cut
from training.learn.choices import choices_at
from training.learn.policy import Policy
from training.learn.rows import layout, packed, token_ids

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from training.learn.rows import PackedTrace
    from training.records import Floats


@torch.no_grad()
def measure(
    policy: Policy,
    items: Sequence[Item],
    *,
    old: bool,
    reference: bool,
    beat: Callable[[int], None] = lambda tokens: None,
) -> list[dict[str, Floats] | None]:
    """Return each item's values by head, read after every token; set `old` and `reference` where requested.

    Of several ranks each reads its part, and returns None for the others' items. The items have no branches: those are
    read when they learn, and here nothing of them is asked for. `beat` is called with the number of tokens of each
    pass; an error that it raises ends the work on all ranks.
    """
    ranks = policy.ranks
    values: dict[int, dict[str, Floats]] = {}
    for group, counts in ranks.deal(cut(items, policy.learn.tokens_per_batch, ranks.world)):
        parts = packed(group)
        ids, row = token_ids(parts).to(policy.device), layout(parts).to(policy.device)
        noted = parts if counts else []
        values |= {id(part.item): {} for part in noted}
        if old or policy.critic:
            hidden = policy.hidden(ids, layout=row)
            states = policy.features(ids, hidden, row) if policy.critic else hidden
            for head in policy.critic.names:
                read = _numbers(policy.critic.value(head, states[0]))
                for part in noted:
                    values[id(part.item)][head] = read[part.columns]
            if old:
                for part, logprobs in zip(noted, _sampled(policy, parts, ids, hidden), strict=False):
                    part.item.old = logprobs
        if reference:
            with policy.as_reference() as model:
                hidden = policy.hidden(ids, model, row)
                for part, logprobs in zip(noted, _sampled(policy, parts, ids, hidden, model), strict=False):
                    part.item.reference = logprobs
        with ranks.together():
            beat(ids.shape[1] if counts else 0)
    return [values.get(id(item)) for item in items]


def _sampled(
    policy: Policy, parts: Sequence[PackedTrace], ids: Tensor, hidden: Tensor, model: PreTrainedModel | None = None
) -> list[Floats]:
    """Return for each part the log-probabilities of its sampled tokens, 0 elsewhere (and at forced tokens)."""
    places = [np.flatnonzero(part.item.mask("sampled")) for part in parts]
    at = np.concatenate([part.first + each for part, each in zip(parts, places, strict=True)])
    columns = torch.from_numpy(at).to(ids.device)
    choices = choices_at([part.item.trace for part in parts], places)
    on_device = None if choices is None else choices.to(ids.device)
    logp, _ = policy.logprobs(hidden[0, columns - 1], ids[0, columns], choices=on_device, model=model)
    logprobs = [np.zeros(len(part.item)) for part in parts]
    for row, where, sampled in zip(
        logprobs, places, np.split(_numbers(logp), np.cumsum([len(p) for p in places])[:-1]), strict=True
    ):
        row[where] = sampled
    return logprobs


def _numbers(tensor: Tensor) -> Floats:
    numbers: Floats = tensor.double().cpu().numpy()
    return numbers
