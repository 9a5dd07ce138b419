"""The sampling interfaces: an Engine works on tokens, a ChatModel on messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from training.reading import Record
from training.sections import Dtype

if TYPE_CHECKING:
    from torch import Tensor

LONGEST_REPLY = 32768
"""Largest number of tokens of one reply, in configurations and in Parley's server."""


class Sampling(Record):
    """How replies are sampled. The policy is softmax(logits / temperature) over the whole vocabulary.

    With `constrain`, a reply is sampled among the seat's legal moves where these can be listed, and the policy is
    renormalised over the tokens that continue one of them.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 128
    stop: tuple[str, ...] = ()
    constrain: bool = False


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One prompt as token ids with a seed; equal requests give equal samples if the engine is deterministic.

    `choices` are the replies that may be sampled, each with the stop token at its end; empty = any. At every place the
    policy is renormalised over the tokens that continue one of them; top-p, top-k and stop strings have no effect.
    `adapter` names one that the engine was given (`training.engines.adapters`); empty = the weights as they are.
    """

    prompt: Sequence[int]
    sampling: Sampling
    seed: int
    stop_token_ids: tuple[int, ...] = ()
    choices: tuple[tuple[int, ...], ...] = ()
    adapter: str = ""


@dataclass(frozen=True, slots=True)
class Sample:
    """The sampled ids (a stop token included) with the log-probability of each under the sampling distribution.

    `finish`: `stop` = a stop token or string; `length` = `max_tokens` or the model's window.
    `discarded` = mean probability mass that top-p and top-k removed. `version` is that of the weights which sampled all
    of the tokens; None = weights that came without one.
    """

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Literal["stop", "length"]
    discarded: float = 0.0
    version: int | None = None


Weights = Path | Iterable[tuple[str, "Tensor"]]
"""A checkpoint folder, or an iterator of (Hugging Face parameter name, tensor) over merged weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineOptions:
    """Options that all engines share.

    `device`: cpu | cuda. `window`: longest prompt and reply together, in tokens; 0 = the model's. `max_running`:
    requests decoded at once. `cache_gib`: memory for keys and values, in GiB. `choices`: requests may have choices.
    `adapters`: most adapters at once, of at most `adapter_rank`; with any, the engine keeps its weights.
    `tensor_parallel`: GPUs, or on CPU groups of cores, over which vLLM splits the model and the cache; each has
    `cache_gib` of its own. `cores`: on CPU the cores of this process alone, which those groups share; none = any.
    """

    dtype: Dtype = "float32"
    device: str = "cpu"
    window: int = 0
    max_running: int = 64
    cache_gib: float = 1.0
    choices: bool = False
    adapters: int = 0
    adapter_rank: int = 64
    tensor_parallel: int = 1
    cores: tuple[int, ...] = ()


class Engine(Protocol):
    """Samples tokens from one policy and batches requests. Every failure raises `EngineError`."""

    async def sample(self, request: SampleRequest) -> Sample:
        """Sample one continuation of `request.prompt`."""

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return log p(continuation | prefix) at temperature 1, summed over its tokens, for each continuation."""

    async def load_weights(self, weights: Weights, version: int | None = None) -> None:
        """Replace the policy's weights once running requests have ended; later ones use them.

        Nothing is kept of what was read before. `version` names the weights in the samples that they give.
        """

    async def close(self) -> None:
        """Free the engine's resources; may be called twice."""


class ChatMessage(Record):
    """One message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A remote model's answer with its cost in tokens."""

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0


class ChatModel(Protocol):
    """A model behind an OpenAI-compatible API: messages in, text out. Failures raise `RemoteModelError`."""

    async def reply(self, messages: Sequence[ChatMessage], sampling: Sampling, seed: int | None = None) -> ChatReply:
        """Answer a chat."""

    async def close(self) -> None:
        """Close the connections of the running event loop; may be called twice."""
