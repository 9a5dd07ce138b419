"""Log-probabilities of continuations after a prefix by a Transformers model, for `Engine.score`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from transformers import DynamicCache

from training.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor


@torch.no_grad()
def summed_logprobs(
    model: Any, prefix: list[int], continuations: list[list[int]], window: int, stored: Tensor | None = None
) -> list[float]:
    """Return log p(continuation | prefix) summed over tokens, 0 for an empty one.

    The prefix is computed once, then all continuations as one batch; `stored` are the keys and values of its first
    tokens [layers, 2, heads, tokens, size]. Raises `EngineError` if the longest does not fit `window` tokens.
    """
    scored = [index for index, tokens in enumerate(continuations) if tokens]
    sums = [0.0] * len(continuations)
    if not scored:
        return sums
    longest = max(len(tokens) for tokens in continuations)
    if len(prefix) + longest > window:
        raise EngineError(f"{len(prefix)} + {longest} tokens do not fit a window of {window}")
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(() if stored is None else stored):
        cache.update(keys.unsqueeze(0), values.unsqueeze(0), layer)
    new = torch.tensor([prefix[cache.get_seq_length() :]], device=model.device)
    output = model(input_ids=new, past_key_values=cache, use_cache=True)
    output.past_key_values.batch_repeat_interleave(len(scored))
    ids = torch.tensor(
        [continuations[index] + [0] * (longest - len(continuations[index])) for index in scored],
        device=model.device,
    )
    rest = model(input_ids=ids, past_key_values=output.past_key_values, use_cache=True).logits
    first = output.logits[:, -1:].expand(len(scored), -1, -1)
    logprobs = torch.cat((first, rest[:, :-1]), dim=1).float().log_softmax(-1)
    picked = logprobs.gather(2, ids.unsqueeze(2)).squeeze(2).double()
    for row, index in enumerate(scored):
        sums[index] = float(picked[row, : len(continuations[index])].sum())
    return sums
