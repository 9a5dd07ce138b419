"""An OpenAI-compatible server over the Transformers engine, for machines without vLLM: chat completions, one model.

`/v1/choices`, which OpenAI does not have, answers how likely each of some replies is as the whole reply to a chat.

    python -m training.engines.serving.server FOLDER --host 127.0.0.1 --port 8100 --name parley

Prompts are the tokens that training renders. A wrong request is answered 400, one without the key 401 (`KeyGuard`).
"""

from __future__ import annotations

import argparse
import json
import secrets
import time
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError

from training.engines.base import LONGEST_REPLY, ChatMessage, Engine, EngineOptions, SampleRequest, Sampling
from training.engines.serving.guard import KeyGuard, Receive, Scope, Send
from training.errors import BadInput, ParleyError
from training.reading import Record, explain
from training.text.messages import Chat
from training.text.template import ChatTokenizer

LARGEST = 1_000_000

StopText = Annotated[str, Field(min_length=1)]


def _listed(stop: object) -> object:
    """OpenAI's `stop` is one text, several, or none."""
    return () if stop is None else (stop,) if isinstance(stop, str) else stop


class ChatRequest(Record):
    """The supported fields of OpenAI's request; others are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    model: str = ""
    temperature: float = Field(default=1.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=-1, le=LARGEST)  # vLLM's extension: 0 or -1 keeps every token
    max_tokens: int = Field(default=256, ge=1, le=LONGEST_REPLY)
    stop: Annotated[tuple[StopText, ...], BeforeValidator(_listed)] = Field(default=(), max_length=4)
    seed: int | None = Field(default=None, ge=0, lt=2**63)
    return_token_ids: bool = False


class ChoicesRequest(Record):
    """A chat, and the replies to it of which the log-probabilities are wanted."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    messages: tuple[ChatMessage, ...] = Field(min_length=1)
    choices: tuple[Annotated[str, Field(min_length=1, max_length=1000)], ...] = Field(min_length=1, max_length=100)
    model: str = ""


class Server:
    """The ASGI application. `window` is the engine's largest number of tokens in prompt and reply together."""

    def __init__(self, engine: Engine, chat: ChatTokenizer, name: str, *, window: int) -> None:
        self._engine, self._chat, self._name, self._window = engine, chat, name, window

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope, receive)
        data = json.dumps(body).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, dict[str, Any]]:
        if scope["path"] == "/health":
            return 200, {}
        if (scope["method"], scope["path"]) == ("GET", "/v1/models"):
            return 200, {"object": "list", "data": [{"id": self._name, "object": "model"}]}
        if scope["method"] != "POST" or scope["path"] not in ("/v1/chat/completions", "/v1/choices"):
            return 404, _error("there is only /v1/chat/completions, /v1/choices, /v1/models and /health")
        try:
            if scope["path"] == "/v1/choices":
                return 200, await self._score(ChoicesRequest.model_validate_json(await _body(receive)))
            return 200, await self._complete(ChatRequest.model_validate_json(await _body(receive)))
        except ValidationError as error:
            where, why = explain(error)
            return 400, _error(f"{where}: {why}")
        except BadInput as error:
            return 400, _error(str(error))
        except ParleyError as error:
            return 500, _error(str(error))

    def _prompt(self, request: ChatRequest | ChoicesRequest, reply: int) -> list[int]:
        """Return a chat's tokens; raise `BadInput` for another model, or if a reply of this length does not fit."""
        if request.model and request.model != self._name:
            raise BadInput(f"this server knows {self._name} only", "model")
        prompt = self._chat.prompt([Chat(role=m.role, content=m.content) for m in request.messages])
        if len(prompt) + reply > self._window:
            raise BadInput(
                f"this model's maximum context length is {self._window} tokens; the prompt has {len(prompt)} and "
                f"{reply} were asked for",
                "messages",
            )
        return prompt

    async def _score(self, request: ChoicesRequest) -> dict[str, Any]:
        replies = [[*self._chat.encode(choice), self._chat.end_id] for choice in request.choices]
        if (total := sum(map(len, replies))) > self._window:  # they are read side by side, each token beside all others
            raise BadInput(f"they have {total} tokens together, more than {self._window}", "choices")
        return {"logprobs": await self._engine.score(self._prompt(request, max(map(len, replies))), replies)}

    async def _complete(self, request: ChatRequest) -> dict[str, Any]:
        prompt = self._prompt(request, request.max_tokens)
        sampling = Sampling(
            temperature=request.temperature,
            top_p=request.top_p,
            top_k=max(0, request.top_k),
            max_tokens=request.max_tokens,
            stop=request.stop,
        )
        seed = secrets.randbits(62) if request.seed is None else request.seed
        sample = await self._engine.sample(SampleRequest(prompt, sampling, seed, self._chat.stop_ids))
        text = self._chat.decode(sample.tokens)
        end = min((at for stop in request.stop if (at := text.find(stop)) >= 0), default=None)
        message = {"role": "assistant", "content": text[:end]}
        finish = sample.finish if end is None else "stop"
        choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": finish}
        used = {"prompt_tokens": len(prompt), "completion_tokens": len(sample.tokens)}
        answer: dict[str, Any] = {
            "id": f"chat-{secrets.token_hex(8)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": self._name,
            "choices": [choice],
            "usage": {**used, "total_tokens": sum(used.values())},
        }
        if request.return_token_ids:
            answer["prompt_token_ids"], choice["token_ids"] = prompt, list(sample.tokens)
        return answer


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error"}}


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > LARGEST:
            raise BadInput(f"the request is larger than {LARGEST} bytes")
    return body


def main() -> None:
    """Serve until SIGTERM."""
    import uvicorn

    from training.engines.local.loading import load_tokenizer
    from training.engines.local.transformers import TransformersEngine

    parser = argparse.ArgumentParser(description="Serve one model over HTTP, the way OpenAI's API does.")
    parser.add_argument("folder")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8100)
    parser.add_argument("--name", default="parley")
    parser.add_argument("--max-running", type=int, default=16, help="requests answered at once")
    arguments = parser.parse_args()
    import torch

    cuda = torch.cuda.is_available()
    options = EngineOptions(
        dtype="bfloat16" if cuda else "float32", device="cuda" if cuda else "cpu", max_running=arguments.max_running
    )
    engine = TransformersEngine(arguments.folder, options)
    chat = ChatTokenizer(load_tokenizer(arguments.folder))
    server = KeyGuard(Server(engine, chat, arguments.name, window=engine.window))
    uvicorn.run(
        server, host=arguments.host, port=arguments.port, log_level="warning", lifespan="off", server_header=False
    )


if __name__ == "__main__":
    main()
