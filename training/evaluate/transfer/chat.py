"""The form `chat`: AutoGen's assistant and a user proxy, run by a script in AutoGen's own environment.

The script (`autogen_chat.py`) calls the endpoint with the client of its library, which follows no redirects; a remote
address is checked before it starts, but not at every call. Raises `BadInput` without the environment; whatever the
script fails to answer is the error of its question.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from pathlib import Path

from training.errors import BadInput
from training.evaluate.transfer.endpoint import Endpoint
from training.evaluate.transfer.forms import ROUNDS
from training.evaluate.transfer.questions import Question
from training.evaluate.transfer.transcript import AgentReply, Transcript, seeds
from training.reading import Record

SCRIPT = Path(__file__).with_name("autogen_chat.py")
ENVIRONMENT = Path(__file__).resolve().parents[3] / ".venv-autogen"
PACKAGES = ("autogen-agentchat", "autogen-core", "autogen-ext", "openai")
CALLS = 2 * ROUNDS - 1
"""The assistant has the first and the last word."""
LONGEST_LINE = 2**26

ASSISTANT = """You are a helpful assistant. Solve the user's task step by step, in words and without code, and check \
your solution. End every reply with your present answer in the form that the task asks for. When everything is done, \
write TERMINATE at the end of your reply."""
USER_PROXY = """You are the user's proxy: you have given the assistant a task, and you read its solution. If it is \
complete and you are convinced of the answer, reply TERMINATE. Otherwise say what the assistant should check or do."""


class _Chat(Record):
    """A line that the script writes."""

    id: str
    replies: tuple[AgentReply, ...]
    ended: str
    error: str


def python() -> Path:
    """Return the environment's Python; raise `BadInput` where it is not installed."""
    path = ENVIRONMENT / "bin" / "python"
    if not path.exists():
        raise BadInput("`chat` needs AutoGen's environment, which `make autogen` builds", "--form")
    return path


def versions() -> dict[str, str]:
    """Return the versions of the packages that run the chat."""
    from importlib.metadata import distributions

    folders = [str(folder) for folder in ENVIRONMENT.glob("lib/python*/site-packages")]
    installed = {each.metadata["Name"].lower().replace("_", "-"): each.version for each in distributions(path=folders)}
    return {name: installed[name] for name in PACKAGES if name in installed}


async def hold(
    questions: Sequence[Question], endpoint: Endpoint, *, seed: int, lanes: int, log: Path
) -> AsyncGenerator[Transcript, None]:
    """Yield the transcript of each question as its chat ends; the script's messages go to `log`."""
    with log.open("wb") as messages:
        process = await asyncio.create_subprocess_exec(
            str(python()),
            "-P",  # without the script's folder on the path, whose modules are of another environment
            str(SCRIPT),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=messages,
            env={"AUTOGEN_CHAT_KEY": endpoint.key, "PATH": "/usr/bin:/bin"},
            limit=LONGEST_LINE,
        )
    try:
        waiting = {question.id: question for question in questions}
        sending = asyncio.create_task(_send(process, _lines(questions, endpoint, seed, lanes)))
        assert process.stdout is not None
        async for line in process.stdout:
            chat = _Chat.from_dict(json.loads(line))
            waiting.pop(chat.id, None)
            yield _transcript(chat)
        code = await process.wait()
        await sending
        for question in waiting.values():
            yield Transcript(question=question.id, replies=(), error=f"AutoGen's script ended with code {code}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _lines(questions: Sequence[Question], endpoint: Endpoint, seed: int, lanes: int) -> bytes:
    sampling = endpoint.sampling.model_dump(include={"max_tokens", "temperature", "top_p", "top_k"})
    limits = {"timeout_s": endpoint.remote.timeout_s, "retries": endpoint.remote.retries, "lanes": lanes}
    head = {"address": endpoint.remote.address, "model": endpoint.remote.model, **sampling, **limits}
    chats = (
        {
            "id": question.id,
            "task": question.prompt(),
            "assistant": ASSISTANT,
            "user_proxy": USER_PROXY,
            "seeds": seeds(seed, "chat", question, CALLS),
        }
        for question in questions
    )
    return b"".join(json.dumps(line).encode() + b"\n" for line in (head, *chats))


async def _send(process: asyncio.subprocess.Process, lines: bytes) -> None:
    assert process.stdin is not None
    with suppress(BrokenPipeError, ConnectionResetError):  # a script that died is reported by its exit code
        process.stdin.write(lines)
        await process.stdin.drain()
    process.stdin.close()


def _transcript(chat: _Chat) -> Transcript:
    """The last reply of the assistant is scored, also where the user proxy ended the chat."""
    replies = [reply.text for reply in chat.replies if reply.agent == "assistant"]
    error = chat.error or ("" if replies else "the assistant was not asked")
    return Transcript(
        question=chat.id,
        replies=chat.replies,
        final=replies[-1] if replies and not error else "",
        ended="" if error else chat.ended,
        error=error,
    )
