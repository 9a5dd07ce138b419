"""Strategies as text: what a strategist is asked, what it wrote, and what its speaker reads.

A ReAct player writes a strategy and its reply in one answer. Source: "EPO: Explicit Policy Optimization for Strategic
Reasoning in LLMs via Reinforcement Learning", eq. 1 and 2, and table 8. Pure functions that raise nothing, but for
`name_move`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from training.errors import IllegalMove
from training.games.actions import body, clean, read_args, write
from training.records import SPECTATOR, Action, Message, Move, Observation
from training.text.messages import Chat, news
from training.text.parsing import split_private

ADVICE = "strategy"
"""The channel of the lines by which a speaker reads strategies."""
ADVISES = "Your strategist advises: "
"""What each of these lines begins with."""
REMEMBERS = "Your earlier strategy: "
"""What the line begins with by which a ReAct player without a memory reads what it wrote."""
BRIEFING = Message(
    author=None,
    text="You have a strategist. Before each of your replies you read its advice, which nobody else can read. Follow "
    "it where it helps you; you may also ignore it.",
    channel=ADVICE,
)
"""The first of these lines."""


class Form(Protocol):
    """How a strategy is written: `label`, a colon, and at most `words` words; if `react`, followed by the reply."""

    @property
    def label(self) -> str:
        """What it begins with."""

    @property
    def words(self) -> int:
        """The number of words that its speaker reads."""

    @property
    def react(self) -> bool:
        """Whether the same answer holds strategy and reply."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy as the speaker reads it; `formed` says whether it was written in the form that was asked for."""

    text: str
    formed: bool


def read_strategy(reply: str, form: Form) -> Strategy:
    """Return the strategy in a reply: its first line after the label, or the whole first line where there is none.

    Only its first `form.words` words count. Private reasoning is left out.
    """
    public, _ = split_private(reply)
    first, _, rest = public.strip().partition("\n")
    labelled = _labelled(first, form)
    words = clean(first if labelled is None else labelled).split()
    formed = _plainly(first, form) and 0 < len(words) <= form.words and not rest.strip()
    return Strategy(" ".join(words[: form.words]), formed)


def split_strategy(answer: str, form: Form) -> tuple[Strategy, str]:
    """Return the strategy in a ReAct player's answer, and the reply after it; without a strategy the whole answer.

    The strategy is the first line with the label, of which the first `form.words` words count. What stands before it is
    reasoning, which the reply holds as private text, and so are further lines with the label. A label may stand in
    markup or after list marks. Other lines after it are the reply, also those after a label that stands alone.
    """
    public, private = split_private(_with_lines_after_thoughts(answer, form))
    lines = public.strip().splitlines()
    places = [number for number, line in enumerate(lines) if _labelled(line, form) is not None]
    if not places:
        return Strategy("", formed=False), answer
    first = places[0]
    words = clean(_labelled(lines[first], form) or "").split()
    formed = len(places) == 1 and _plainly(lines[first], form) and 0 < len(words) <= form.words
    after = "\n".join(line for number, line in enumerate(lines[first:], first) if number not in places).strip()
    before = "\n".join(lines[:first]).strip()
    thoughts = "\n".join(part for part in (private, before, *(lines[place] for place in places[1:])) if part)
    reply = f"<think>\n{thoughts}\n</think>\n\n{after}" if thoughts else after
    return Strategy(" ".join(words[: form.words]), formed), reply


_MARKS = r"(?:[^\w\n]|_|\d{1,2}[.)])*"
"""Punctuation, markup, and the numbers of a list, as in `1. **`."""
_MARKUP = "*_`~"
"""What closes after a label, or after its line."""


def _label(form: Form) -> str:
    """Return the pattern of a label up to the end of its colon, as in `Strategy:`, `- **Strategy 2**:`."""
    return rf"{_MARKS}{re.escape(form.label)}(?:\s*\d{{1,2}})?(?:[^\w\n:：]|_)*[:：]"


def _labelled(line: str, form: Form) -> str | None:
    """Return what follows the label, None where the line does not begin with it."""
    match = re.match(_label(form), line, re.IGNORECASE)
    return line[match.end() :].strip().strip(_MARKUP).strip() if match else None


def _plainly(line: str, form: Form) -> bool:
    """Whether the line begins with the label as it was asked for, without markup."""
    return re.match(rf"\s*{re.escape(form.label)}\s*:", line, re.IGNORECASE) is not None


def _with_lines_after_thoughts(answer: str, form: Form) -> str:
    """Return the answer in which a label that directly follows private text begins a line, as people would read it."""
    return re.sub(rf"(<[\s/]*think(?:ing)?\s*>)(?={_label(form)})", r"\1\n", answer, flags=re.IGNORECASE)


def line_of(strategy: str) -> Message:
    """Return the line by which a speaker reads a strategy."""
    return Message(author=None, text=f"{ADVISES}{strategy or 'nothing'}", channel=ADVICE)


def advice(observation: Observation) -> tuple[str, Observation]:
    """Return the newest strategy that an observation of a speaker holds, empty if none, and the game's observation."""
    strategies = [message.text for message in observation.messages if message.channel == ADVICE]
    game_messages = tuple(message for message in observation.messages if message.channel != ADVICE)
    return (strategies[-1].removeprefix(ADVISES) if strategies else ""), observation.model_copy(
        update={"messages": game_messages}
    )


def asks_strategist(observation: Observation, name: str, form: Form) -> Observation:
    """Return the observation with the task of the strategist of the seat called `name` after the rules."""
    return _with_task(
        observation,
        f"You are the strategist of {name} and do not speak yourself. {name} reads what you write, and nobody else "
        f"does. Before each reply of {name} write one line, '{form.label}: ' and then one phrase or sentence of at "
        f"most {form.words} words: what to do next. Give no reasons, repeat no earlier line, and do not write what "
        f"{name} is to say.",
    )


def asks_react(observation: Observation, form: Form, *, reasons: bool = False) -> Observation:
    """Return the observation with the task of a player that writes strategies and replies; `reasons` asks for both."""
    reasoning = "First reason step by step about what helps you in the long run. Then write " if reasons else "Write "
    return _with_task(
        observation,
        f"Every answer of yours has a strategy and a reply. {reasoning}one line, '{form.label}: ' and then one phrase "
        f"or sentence of at most {form.words} words: what to do next; repeat no earlier one. After it, on a new line, "
        "write your reply. Only the reply counts as what you say; nobody else reads what stands before it.",
    )


def _with_task(observation: Observation, task: str) -> Observation:
    rules, *rest = observation.messages
    asked = (rules.model_copy(update={"text": f"{rules.text}\n\n{task}"}), *rest)
    return observation.model_copy(update={"messages": asked})


def strategist_news(observation: Observation, heard: int, name: str, names: Sequence[str], form: Form) -> list[Chat]:
    """Return what the strategist of the seat called `name` has not read yet; `heard` as in `news`.

    It reads what its seat is shown, and its seat's replies as those of all others.
    """
    return news(asks_strategist(observation, name, form), heard, SPECTATOR, names)


def name_move(move: Move, actions: Sequence[Action]) -> str:
    """Return the strategy that names a move, as `propose food 2, water 1`; `named_move` of it is the move's reply.

    Raises `StopIteration` for a move that is not among the actions.
    """
    action = next(action for action in actions if action.name == move.action)
    rest = body(action, move.args) if action.args else move.text if action.bare else ""
    return clean(f"{action.name.replace('_', ' ')} {rest}")


def named_move(strategy: str, actions: Sequence[Action]) -> str:
    """Return the reply that makes the move which a strategy names, empty if it names none.

    A strategy names a move by the name of an offered action with its arguments, as `propose food 2, water 1`.
    """
    text = clean(strategy)
    for action in sorted(actions, key=lambda action: -len(action.name)):
        name = action.name.replace("_", " ")
        if not text.lower().startswith(name):
            continue
        rest = text[len(name) :].lstrip(" :")
        try:
            args = read_args(action, rest) if action.args else {}
            return write(action, args, "" if action.args or action.text == "none" else rest)
        except (IllegalMove, ValueError):
            continue
    return ""
