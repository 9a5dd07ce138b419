"""The numbers of one form over all questions, and how forms differ on the same questions.

Accuracy is over the questions without an error, an answer that could not be extracted counts as wrong; tokens are those
of all questions. Intervals are at 95 % over questions (`training.evaluate.intervals`). Raises nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from training.evaluate.intervals import Interval, interval, paired
from training.evaluate.transfer.answers import Rule
from training.evaluate.transfer.patterns import Reasoning
from training.evaluate.transfer.transcript import Scored
from training.reading import Record


class Tokens(Record):
    """Tokens that the server read and wrote, each prompt counted whole; per correct answer None without one."""

    prompt: int
    completion: int
    per_question: float
    per_correct: float | None


class Pattern(Record):
    """A pattern in the private reasoning: replies that show it, and the share of questions with such a reply."""

    replies: int
    questions: Interval | None


class FormResult(Record):
    """The numbers of one form. `found` counts questions without an error by the rule that found their answer, `ended`
    by what ended their conversation. `cut` replies reached the limit of tokens, `think` replies reasoned in <think>.
    `cut` and `tokens` are None where the server did not report all tokens.
    """

    questions: int
    errors: int
    correct: int
    unparsed: int
    accuracy: Interval | None
    found: Mapping[Rule, int]
    ended: Mapping[str, int]
    replies: int
    cut: int | None
    tokens: Tokens | None
    think: int
    role: Pattern
    intent: Pattern


def summarise(scored: Sequence[Scored], max_tokens: int) -> FormResult:
    """Return the numbers of a form."""
    whole = [each for each in scored if each.correct is not None]
    replies = [reply for each in scored for reply in each.transcript.replies]
    correct = sum(bool(each.correct) for each in whole)
    reported = bool(replies) and all(reply.prompt_tokens for reply in replies)
    prompt, completion = sum(r.prompt_tokens for r in replies), sum(r.completion_tokens for r in replies)
    tokens = Tokens(
        prompt=prompt,
        completion=completion,
        per_question=(prompt + completion) / len(scored),
        per_correct=(prompt + completion) / correct if correct else None,
    )
    return FormResult(
        questions=len(scored),
        errors=len(scored) - len(whole),
        correct=correct,
        unparsed=sum(each.answer is None for each in whole),
        accuracy=interval([float(bool(each.correct)) for each in whole]) if whole else None,
        found=Counter(each.rule for each in whole),
        ended=Counter(each.transcript.ended for each in whole),
        replies=len(replies),
        cut=sum(reply.completion_tokens >= max_tokens for reply in replies) if reported else None,
        tokens=tokens if reported else None,
        think=sum(reasoning.think for each in scored for reasoning in each.reasoning),
        role=_pattern(whole, lambda reasoning: reasoning.role),
        intent=_pattern(whole, lambda reasoning: reasoning.intent),
    )


def _pattern(scored: Sequence[Scored], shows: Callable[[Reasoning], bool]) -> Pattern:
    counts = [sum(map(shows, each.reasoning)) for each in scored]
    return Pattern(replies=sum(counts), questions=interval([float(count > 0) for count in counts]) if counts else None)


def differences(forms: Mapping[str, Sequence[Scored]]) -> dict[str, Interval]:
    """Return the accuracy of each further form minus that of the first, over the questions that both answered."""
    first, *others = forms
    leads = {f"{form} - {first}": _lead(forms[form], forms[first]) for form in others}
    return {name: lead for name, lead in leads.items() if lead is not None}


def _lead(first: Sequence[Scored], second: Sequence[Scored]) -> Interval | None:
    a, b = (
        {s.transcript.question: float(s.correct) for s in each if s.correct is not None} for each in (first, second)
    )
    both = [question for question in a if question in b]
    return paired([a[question] for question in both], [b[question] for question in both]) if both else None
