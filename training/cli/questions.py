"""`python -m training questions`: questions with known answers, put to one model, a debate, or a chat of two agents."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import Any

from training.engines.base import Sampling
from training.evaluate.intervals import Interval
from training.evaluate.transfer import run
from training.evaluate.transfer.report import FormResult

FAILED = 1


def main(arguments: Namespace) -> dict[str, Any]:
    """Put the questions and return the result; the exit code is 1 if a form has no answer to any question."""
    sampling = Sampling(
        temperature=arguments.temperature,
        top_p=arguments.top_p,
        top_k=arguments.top_k,
        max_tokens=arguments.max_tokens,
    )
    plan = run.Plan(
        path=arguments.file,
        model=arguments.model,
        forms=[form.strip() for form in arguments.form.split(",")],
        folder=arguments.dir,
        limit=arguments.limit,
        seed=arguments.seed,
        sampling=sampling,
        engine=arguments.engine,
        lanes=arguments.lanes,
    )
    result = run.run(plan, _print_progress)
    failed = any(form["accuracy"] is None for form in result["forms"].values())
    return {**result, "dir": str(arguments.dir)} | ({"exit": FAILED} if failed else {})


def _print_progress(form: str, done: int, of: int) -> None:
    """Print the progress: on a terminal in place, elsewhere about twenty lines per form."""
    if sys.stderr.isatty():
        print(f"\r{form}: {done} of {of} questions", end="\n" if done == of else "", file=sys.stderr, flush=True)
    elif done == of or done % max(1, of // 20) == 0:
        print(f"{form}: {done} of {of} questions", file=sys.stderr, flush=True)


def show(result: dict[str, Any]) -> str:
    """Return a few lines for each form, then the differences."""
    lines = []
    for name, data in result["forms"].items():
        form = FormResult.from_dict(data)
        accuracy = "no answer" if form.accuracy is None else _interval(form.accuracy)
        patterns = f"{form.role.replies} name their own role, {form.intent.replies} another's intent"
        lines += [
            f"{name}: accuracy {accuracy}",
            f"  {form.correct} right, {form.unparsed} unparsed, {form.errors} errors of {form.questions} questions",
            f"  {form.replies} replies{_cut(form)}; {_tokens(form)}",
            f"  reasoning: {patterns}, {form.think} are in <think>",
        ]
    lines += [f"{name}: {_interval(Interval.from_dict(data))}" for name, data in result["differences"].items()]
    return "\n".join([*lines, f"written to {result['dir']}"])


def _interval(estimate: Interval) -> str:
    return f"{estimate.mean:.3f} [{estimate.low:.3f}, {estimate.high:.3f}] n = {estimate.n}"


def _cut(form: FormResult) -> str:
    return "" if form.cut is None else f", {form.cut} of them cut off"


def _tokens(form: FormResult) -> str:
    if form.tokens is None:
        return "the server did not report tokens"
    correct = "" if form.tokens.per_correct is None else f", {form.tokens.per_correct:.0f} per right answer"
    return f"{form.tokens.per_question:.0f} tokens per question{correct}"
