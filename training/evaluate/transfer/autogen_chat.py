"""Runs chats between AutoGen's assistant and a user proxy: JSON lines in, JSON lines out; needs nothing of Parley.

    .venv-autogen/bin/python autogen_chat.py < chats.jsonl

The first line names the endpoint: `{"address", "model", "max_tokens", "temperature", "top_p", "top_k", "timeout_s",
"retries", "lanes"}`; its key is the environment variable AUTOGEN_CHAT_KEY. Every further line is a chat: `{"id",
"task", "assistant", "user_proxy", "seeds"}`, with both agents' system messages and a seed for each call. The user proxy
sends the task, then both speak in turn until one of them says TERMINATE, or until there is no seed for another call.
For every chat, as it ends, one line is written: `{"id", "replies": [{"agent", "text", "prompt_tokens",
"completion_tokens"}], "ended", "error"}`, in which `ended` is the agent that said TERMINATE, `limit`, or empty after an
error.

Agents do not read each other's private text: what stands in <think> or <thinking>, before a </think> that was not
opened, or after a <think> that is not closed.
"""

import asyncio
import json
import logging
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core.models import AssistantMessage, CreateResult, LLMMessage, ModelInfo, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from openai import DefaultAsyncHttpxClient

KEY = "AUTOGEN_CHAT_KEY"
END = "TERMINATE"
ASSISTANT, USER_PROXY = "assistant", "user_proxy"
THINK = re.compile(r"<\s*+(/?)\s*+think(?:ing)?\s*>", re.IGNORECASE)
PLAIN = ModelInfo(
    vision=False, function_calling=False, json_output=False, family="unknown", structured_output=False
)  # any model behind an OpenAI-compatible address: text in, text out


def public(text: str) -> str:
    """Return the text that other agents read: the same as in the other forms, whose code cannot be imported here."""
    pieces: list[str] = []
    depth, position = 0, 0
    for tag in THINK.finditer(text):
        if depth == 0:
            pieces.append(text[position : tag.start()])
            if tag[1]:
                pieces.clear()
        depth = max(0, depth - 1) if tag[1] else depth + 1
        position = tag.end()
    if depth == 0:
        pieces.append(text[position:])
    return " ".join(pieces).strip()


class Recorder(OpenAIChatCompletionClient):
    """The client of one agent in one chat: appends every reply to `replies`, and takes the next seed for each call."""

    def __init__(self, agent: str, seeds: Sequence[int], replies: list[dict[str, Any]], **options: Any) -> None:
        super().__init__(**options)
        self._agent, self._seeds, self._replies = agent, seeds, replies

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return a reply without its private part; an agent's own messages are the assistant's of its conversation."""
        sent = [
            AssistantMessage(content=message.content, source=message.source)
            if isinstance(message, UserMessage) and message.source == self._agent and isinstance(message.content, str)
            else message
            for message in messages
        ]
        seed = {"seed": self._seeds[len(self._replies)]}
        result = await super().create(sent, **{**options, "extra_create_args": seed})
        text = result.content if isinstance(result.content, str) else ""
        self._replies.append(
            {
                "agent": self._agent,
                "text": text,
                "prompt_tokens": result.usage.prompt_tokens,
                "completion_tokens": result.usage.completion_tokens,
            }
        )
        return result.model_copy(update={"content": public(text)})


def team(chat: dict[str, Any], endpoint: dict[str, Any], replies: list[dict[str, Any]]) -> RoundRobinGroupChat:
    """Return the two agents with what ends their chat."""
    options = {
        "base_url": endpoint["address"],
        "api_key": os.environ.get(KEY) or "none",
        "model": endpoint["model"],
        "model_info": PLAIN,
        "include_name_in_message": False,
        "extra_body": {"top_k": endpoint["top_k"]} if endpoint["top_k"] else None,
        "timeout": endpoint["timeout_s"],
        "max_retries": endpoint["retries"],
        # only the address itself has been checked: no redirect is followed, and no proxy taken from the environment
        "http_client": DefaultAsyncHttpxClient(follow_redirects=False, trust_env=False),
        **{name: endpoint[name] for name in ("temperature", "top_p", "max_tokens")},
    }
    agents = [
        AssistantAgent(name, Recorder(name, chat["seeds"], replies, **options), system_message=chat[name])
        for name in (ASSISTANT, USER_PROXY)
    ]
    longest = MaxMessageTermination(len(chat["seeds"]) + 1)  # the task is a message, too
    end_mentioned = TextMentionTermination(END, sources=[ASSISTANT, USER_PROXY])
    return RoundRobinGroupChat(agents, termination_condition=end_mentioned | longest)


async def hold(chat: dict[str, Any], endpoint: dict[str, Any]) -> dict[str, Any]:
    """Hold one chat; what goes wrong in the library is its `error`."""
    replies: list[dict[str, Any]] = []
    task = TextMessage(content=chat["task"], source=USER_PROXY)
    try:
        result = await team(chat, endpoint, replies).run(task=task)
    except Exception as error:  # noqa: BLE001  (the root of a chat: the library raises RuntimeError for any failure)
        why = (str(error).splitlines() or [""])[0] or type(error).__name__
        return {"id": chat["id"], "replies": replies, "ended": "", "error": without_key(why)[:500]}
    return {"id": chat["id"], "replies": replies, "ended": ender(result), "error": ""}


def without_key(text: str) -> str:
    """Return `text` without the endpoint's key, which a server may echo."""
    key = os.environ.get(KEY, "")
    return text.replace(key, "[key]") if key else text


def ender(result: TaskResult) -> str:
    """Return who ended a chat."""
    last = result.messages[-1]
    return last.source if isinstance(last, TextMessage) and END in last.content else "limit"


async def main() -> None:
    """Hold the chats of standard input, `lanes` at once; what libraries print goes to standard error."""
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.disable()  # failures are in the results, and the library's log would repeat what a server echoes
    endpoint, *chats = (json.loads(line) for line in sys.stdin if line.strip())
    lanes = asyncio.Semaphore(endpoint["lanes"])

    async def report(chat: dict[str, Any]) -> None:
        async with lanes:
            print(json.dumps(await hold(chat, endpoint)), file=results, flush=True)

    await asyncio.gather(*map(report, chats))


if __name__ == "__main__":
    asyncio.run(main())
