"""RemoteModel: a ChatModel over any OpenAI-compatible address, by the openai client.

Every failure (unreachable, slow, too large, malformed, refused) raises `RemoteModelError` after at most two retries; a
wrong configuration raises `BadInput`. Secrets are named, never stored: the name is looked up at the moment of a call.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import httpx2
from pydantic import BaseModel, Field, ValidationError, field_validator

from training.engines.addresses import AllowList, GuardedTransport, Refused
from training.engines.base import ChatMessage, ChatReply, Sampling
from training.errors import BadInput, RemoteModelError
from training.records import Record, explain

if TYPE_CHECKING:
    from openai import AsyncOpenAI

Parameter = Literal["temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "stop", "seed"]

PATIENCE_S = 4.0
"""Most seconds of waiting before a retry; a server's Retry-After may ask the client for two minutes."""

SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*_API_KEY")


def check_secret_name(name: str) -> str:
    """Return `name`; raise `ValueError` unless it is empty or looks like `SOMETHING_API_KEY`.

    The form of the name keeps a configuration from sending some other variable, such as a database password, away.
    """
    if name and not SECRET_NAME.fullmatch(name):
        raise ValueError("give the name of an environment variable that ends in _API_KEY, never the key itself")
    return name


def secret_from_environment(name: str) -> str:
    """Return the key that is called `name`; raise `BadInput` if the name is malformed or not set."""
    try:
        check_secret_name(name)
    except ValueError as error:
        raise BadInput(str(error), "secret") from error
    if not (key := os.environ.get(name, "")):
        raise BadInput(f"the environment variable {name} is not set", "secret")
    return key


class RemoteConfig(Record):
    """How to reach one remote model.

    `accepts` names the sampling parameters that are sent; everything else is left out. `timeout_s` bounds one attempt
    as a whole, from name resolution to the last byte. `json_object` asks the server for a JSON object.
    """

    address: str = Field(min_length=1, max_length=500, description="Base address, such as https://host.example/v1")
    model: str = Field(min_length=1, max_length=200, description="The model's name at that address")
    secret: str = Field(default="", description="Name of the environment variable that holds the key; empty: none")
    timeout_s: float = Field(default=60.0, gt=0, le=600)
    retries: int = Field(default=2, ge=0, le=2)
    max_bytes: int = Field(default=1_000_000, ge=1_000, le=8_000_000)
    concurrency: int = Field(default=8, ge=1, le=256, description="Calls in flight at once")
    accepts: tuple[Parameter, ...] = ("temperature", "top_p", "max_tokens", "stop", "seed")
    json_object: bool = False

    _secret_is_a_name = field_validator("secret")(check_secret_name)


@dataclass(slots=True)
class _Lane:
    """What belongs to one event loop: the client with its connections, and the limit of calls in flight."""

    client: AsyncOpenAI
    slots: asyncio.Semaphore


class RemoteModel:
    """A chat model at an address of the allow-list; usable from several event loops, one after the other or at once."""

    def __init__(
        self,
        config: RemoteConfig,
        *,
        allowed: AllowList | None = None,
        secret: Callable[[str], str] = secret_from_environment,
    ) -> None:
        self.config = config
        self._allowed = AllowList.from_environment() if allowed is None else allowed
        self._base = self._allowed.check(config.address)
        self._secret = secret
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Lane] = WeakKeyDictionary()

    async def reply(self, messages: Sequence[ChatMessage], sampling: Sampling, seed: int | None = None) -> ChatReply:
        """Answer a chat; raise `RemoteModelError` if no usable answer came."""
        from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError

        parameters = self.parameters(sampling, seed)
        key = self._secret(self.config.secret) if self.config.secret else ""
        lane = self._lane()
        bound = self.config.timeout_s + self.config.retries * (self.config.timeout_s + PATIENCE_S)
        try:
            async with lane.slots, asyncio.timeout(bound):
                raw = await lane.client.with_options(api_key=key or "none").chat.completions.with_raw_response.create(
                    model=self.config.model,
                    messages=[{"role": m.role, "content": m.content} for m in messages],  # type: ignore[misc]
                    **parameters,
                )
                answer = _Answer.model_validate_json(raw.content)
        except (APITimeoutError, TimeoutError):
            why = f"no complete answer within {self.config.timeout_s:g} s"
        except APIStatusError as error:
            why = f"status {error.status_code}: {error.response.text[:200]}"
        except (APIConnectionError, APIError) as error:
            why = f"cannot connect: {error.__cause__ or error}"
        except Refused as error:
            why = str(error)
        except ValidationError as error:
            where, reason = explain(error)
            why = f"not a chat completion: {where or 'body'}: {reason}"
        else:
            return answer.to_reply()
        # Raised outside the handlers, so that no chained error carries a server's echo of the key into a log.
        raise RemoteModelError(f"{self.config.model} at {self._base.host}: {_without(key, why)}")

    def parameters(self, sampling: Sampling, seed: int | None) -> dict[str, Any]:
        """Return what is sent of `sampling`: only what the address accepts; raise `BadInput` if out of range."""
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
        sent: dict[str, Any] = {k: v for k, v in values.items() if k in self.config.accepts and v is not None}
        if "top_k" in self.config.accepts and sampling.top_k > 0:
            sent["extra_body"] = {"top_k": sampling.top_k}
        if self.config.json_object:
            sent["response_format"] = {"type": "json_object"}
        return sent

    async def close(self) -> None:
        """Close the connections of the running event loop; the model stays usable."""
        if lane := self._lanes.pop(asyncio.get_running_loop(), None):
            await lane.client.close()

    def _lane(self) -> _Lane:
        from openai import AsyncOpenAI

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
    """What is read of a completion; servers differ in everything else."""

    choices: list[_Choice] = Field(min_length=1)
    usage: _Usage | None = None

    def to_reply(self) -> ChatReply:
        usage = self.usage or _Usage()
        return ChatReply(self.choices[0].message.content or "", usage.prompt_tokens, usage.completion_tokens)


def _without(key: str, text: str) -> str:
    """Return `text` on one line without the key, which a server may echo."""
    return " ".join((text.replace(key, "[key]") if key else text).split())
