"""RemoteModel: a ChatModel over any OpenAI-compatible address, by the openai client.

Every failure (unreachable, slow, too large, malformed, refused) raises `RemoteModelError` after at most two retries; a
wrong configuration raises `BadInput`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from weakref import WeakKeyDictionary

import httpx2
from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI
from pydantic import BaseModel, Field, ValidationError

from training.engines.base import ChatMessage, ChatReply, Sampling
from training.engines.remote.addresses import AllowList
from training.engines.remote.config import Parameter, RemoteConfig, secret_from_environment
from training.engines.remote.transport import GuardedTransport, Refused
from training.errors import BadInput, RemoteModelError, WindowFull
from training.reading import explain

T = TypeVar("T")
PATIENCE_S = 4.0
"""Longest wait in seconds before a retry; without it, a server's Retry-After could request two minutes."""

TOO_LONG = re.compile(r"context.?(length|window|size)|max_new_tokens", re.IGNORECASE)
"""Error texts for a prompt that is too long: the code of OpenAI, and the messages of vLLM, llama.cpp and TGI."""


@dataclass(slots=True)
class _Lane:
    """The resources of one event loop: the client with its connections, and the limit of concurrent calls."""

    client: AsyncOpenAI
    slots: asyncio.Semaphore


class RemoteModel:
    """A chat model at an address of the allow-list; several event loops may use it, also concurrently."""

    def __init__(
        self,
        config: RemoteConfig,
        *,
        allowed: AllowList | None = None,
        secret: Callable[[str], str] = secret_from_environment,
    ) -> None:
        self.config = config
        self._allowed = AllowList.from_environment() if allowed is None else allowed
        self._base = self._allowed.check(config.address, config.secret)
        self._secret = secret
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()

    async def reply(self, messages: Sequence[ChatMessage], sampling: Sampling, seed: int | None = None) -> ChatReply:
        """Answer a chat; raise `RemoteModelError` without a usable answer, `WindowFull` if the chat is too long."""
        parameters = self.parameters(sampling, seed)

        async def complete(client: AsyncOpenAI) -> ChatReply:
            raw = await client.chat.completions.with_raw_response.create(
                model=self.config.model,
                messages=[{"role": m.role, "content": m.content} for m in messages],  # type: ignore[misc]
                **parameters,
            )
            return _Answer.model_validate_json(raw.content).to_reply()

        return await self._ask(complete, "a chat completion")

    async def score(self, messages: Sequence[ChatMessage], choices: Sequence[str]) -> list[float]:
        """Return the log-probability of each choice as the whole reply to a chat, at temperature 1.

        Only Parley's own server answers; from others this raises `RemoteModelError`, as for any failure.
        """
        chat = [{"role": message.role, "content": message.content} for message in messages]
        body = {"model": self.config.model, "messages": chat, "choices": list(choices)}

        async def score(client: AsyncOpenAI) -> list[float]:
            raw = await client.post("/choices", cast_to=httpx2.Response, body=body)
            return _Scores.model_validate_json(raw.content).logprobs

        scores = await self._ask(score, "numbers")
        if len(scores) != len(choices):
            raise RemoteModelError(f"{self.config.model} at {self._base.host}: not as many numbers as choices")
        return scores

    async def _ask(self, send: Callable[[AsyncOpenAI], Awaitable[T]], wanted: str) -> T:
        """Return what `send` returns; raise `RemoteModelError` unless that is `wanted`, `WindowFull` if too long."""
        key = self._secret(self.config.secret) if self.config.secret else ""
        failure = RemoteModelError
        lane = self._lane()
        bound = self.config.timeout_s + self.config.retries * (self.config.timeout_s + PATIENCE_S)
        try:
            async with lane.slots, asyncio.timeout(bound):
                return await send(lane.client.with_options(api_key=key or "none"))
        except (APITimeoutError, TimeoutError):
            why = f"no complete answer within {self.config.timeout_s:g} s"
        except APIStatusError as error:
            # the key is removed before cutting, so that no half of it remains
            why = f"status {error.status_code}: {_without(key, error.response.text)[:200]}"
            if error.status_code in (400, 413) and TOO_LONG.search(error.response.text[:2000]):
                failure = WindowFull
        except (APIConnectionError, APIError) as error:
            why = f"cannot connect: {error.__cause__ or error}"
        except Refused as error:
            why = str(error)
        except ValidationError as error:
            where, reason = explain(error)
            why = f"not {wanted}: {where or 'body'}: {reason}"
        # Raised outside the handlers, so that no chained error carries a server's echo of the key into a log.
        raise failure(f"{self.config.model} at {self._base.host}: {_without(key, why)}")

    def parameters(self, sampling: Sampling, seed: int | None) -> dict[str, Any]:
        """Return the request parameters of `sampling` that the address accepts; raise `BadInput` if out of range."""
        if not (0 <= sampling.temperature <= 2 and 0 < sampling.top_p <= 1 and 1 <= sampling.max_tokens <= 100_000):
            raise BadInput("temperature 0–2, top_p above 0 and at most 1, max_tokens 1–100,000", "sampling")
        values: dict[Parameter, Any] = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "max_tokens": sampling.max_tokens,
            "max_completion_tokens": sampling.max_tokens,
            "stop": list(sampling.stop[:4]) or None,
            "seed": seed,
        }
        parameters: dict[str, Any] = {k: v for k, v in values.items() if k in self.config.accepts and v is not None}
        if "top_k" in self.config.accepts and sampling.top_k > 0:
            parameters["extra_body"] = {"top_k": sampling.top_k}
        if self.config.json_object:
            parameters["response_format"] = {"type": "json_object"}
        return parameters

    async def close(self) -> None:
        """Close the connections of the running event loop; the model stays usable."""
        if lane := self._lanes.pop(asyncio.get_running_loop(), None):
            await lane.client.close()

    def _lane(self) -> _Lane:
        loop = asyncio.get_running_loop()
        if (lane := self._lanes.get(loop)) is None:
            transport = GuardedTransport(self._allowed, self.config.timeout_s, self.config.max_bytes)
            client = AsyncOpenAI(
                api_key="none",
                base_url=str(self._base),
                max_retries=self.config.retries,
                timeout=self.config.timeout_s,
                http_client=httpx2.AsyncClient(transport=transport, follow_redirects=False, trust_env=False),
            )
            lane = self._lanes[loop] = _Lane(client, asyncio.Semaphore(self.config.concurrency))
        return lane


class _Message(BaseModel):
    content: str | None = None


class _Choice(BaseModel):
    message: _Message


class _Usage(BaseModel):
    prompt_tokens: int = Field(default=0, ge=0)
    completion_tokens: int = Field(default=0, ge=0)


class _Answer(BaseModel):
    """The fields of a completion that are read; servers differ in the others."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None

    def to_reply(self) -> ChatReply:
        usage = self.usage or _Usage()
        return ChatReply(self.choices[0].message.content or "", usage.prompt_tokens, usage.completion_tokens)


class _Scores(BaseModel):
    """The log-probabilities of choices, none of them above 0."""

    logprobs: list[Annotated[float, Field(le=0, allow_inf_nan=False)]]


def _without(key: str, text: str) -> str:
    """Return `text` on one line without the key, which a server may echo, and without NUL, which no database stores."""
    return " ".join((text.replace(key, "[key]") if key else text).replace("\x00", "\ufffd").split())
