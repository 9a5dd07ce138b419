"""Every sentence of the society, generated from the settings, with one example of each action for its reader."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from training.games.actions import clean, how_to, tag
from training.games.prose import listed
from training.games.qa_society.settings import ASKER, QaSocietySettings, tool_of
from training.records import Action, Seat

Names = Sequence[str]


@dataclass(frozen=True, slots=True)
class Reply:
    """What a seat gave control up with: an answer or a hedge with its text, or nothing (`kind` is None)."""

    seat: Seat
    kind: Literal["answer", "hedge"] | None
    text: str = ""


# --- the first message -----------------------------------------------------------------------------------------------


def opening(settings: QaSocietySettings, names: Names, brief: str, actions: Sequence[Action]) -> str:
    """Return the rules with one reader's private `brief`, its actions, and an example of each."""
    parts = [_story(settings, names), _rules(settings, names[ASKER]), brief]
    if actions:
        parts += [f"How to act:\n{how_to(actions)}", _examples(settings, actions)]
    return "\n\n".join(part for part in parts if part)


def _story(settings: QaSocietySettings, names: Names) -> str:
    asker, helpers = names[ASKER], names[ASKER + 1 :]
    if not settings.asking:
        return f"{asker} answers a question in a few words."
    order = "" if len(helpers) == 1 else " each, and answer one after the other"
    return (
        f"{asker} answers a question in a few words. First {asker} may ask {listed(helpers)}, who can search a "
        f"corpus{order}."
    )


def _rules(settings: QaSocietySettings, asker: str) -> str:
    receiver, efforts = (
        ("All get the same score:", "Asks and searches") if settings.asking else ("The score is", "Searches")
    )
    cost = f", minus {settings.cost:g} for each search" if settings.cost else ""
    return (
        "An answer says that its author is sure, a hedge that it is a guess; both are scored alike. "
        f"{receiver} the words that {asker}'s answer shares with the right one (F1, from 0 to 1){cost}.\n"
        f"{efforts}: at most {settings.effort}; one more ends the game. Moves in all: at most {settings.turn_limit}. "
        "When a limit ends the game, the latest answer or hedge counts, whoever gave it."
    )


def brief(settings: QaSocietySettings, names: Names, seat: Seat) -> str:
    """Return what a seat alone may know."""
    tool = tool_of(settings, seat)
    search = f"You can search the corpus {tool}." if tool else "You have no search."
    if not settings.asking:
        return f"You are {names[seat]}. {search}"
    if seat != ASKER:
        return f"You are {names[seat]}. {search} {names[ASKER]} reads your answer or hedge, not what you find."
    who = "with each helper's name and corpus" if settings.deanon else "without names, sorted as text"
    return f"You are {names[seat]}. {search} The helpers' answers and hedges reach you {who}."


def everything(settings: QaSocietySettings, names: Names) -> str:
    """Return the brief for viewers who may see everything."""
    tools = [
        f"{name} can search the corpus {tool}."
        for seat, name in enumerate(names)
        if (tool := tool_of(settings, seat)) is not None
    ]
    return "\n".join([*tools, f"Right answers: {'; '.join(clean(answer) for answer in settings.answers)}"])


_EASY = "Which chemical element has the symbol W?"
_HARD = "In which year did the first trams run in Riga?"
_EXAMPLES = {"ask": (_HARD, ""), "search": (_HARD, ""), "answer": (_EASY, "tungsten"), "hedge": (_HARD, "1882")}
_FRIENDS = {"answer": (("answer", "tungsten"), ("hedge", "tin")), "hedge": (("hedge", "1882"), ("hedge", "1889"))}
_HELPERS = (("Zoe", "atlas"), ("Ian", "press"))
_POOR = "Riga: The capital of Latvia lies at the mouth of the Daugava."


def _examples(settings: QaSocietySettings, actions: Sequence[Action]) -> str:
    """Return one example of each action, in the form in which its reader meets the question and its evidence."""
    offered = {action.name for action in actions}
    lines = ["Examples:"]
    for action in actions:
        question, text = _EXAMPLES[action.name]
        reply = tag(action, {argument.name: text for argument in action.args})
        lines += [asked(question), *_seen(settings, action.name, offered), f"You write: {reply}"]
    return "\n".join(lines)


def _seen(settings: QaSocietySettings, action: str, offered: Collection[str]) -> list[str]:
    """Return the evidence in the example of an action: two replies for the asker, a useless passage before a hedge."""
    if "ask" in offered:
        replies = zip(_FRIENDS.get(action, ()), _HELPERS, strict=False)
        return [_friend(kind, text, *(helper if settings.deanon else ())) for (kind, text), helper in replies]
    return [retrieval([_POOR])] if action == "hedge" and "search" in offered else []


# --- what happens ----------------------------------------------------------------------------------------------------


def asked(question: str) -> str:
    """Return the line with the question."""
    return f"Question: {question}"


def evidence(settings: QaSocietySettings, names: Names, replies: Iterable[Reply]) -> str:
    """Return the helpers' replies as the asker reads them, one a line.

    Without names they are sorted as text, so that their order depends on nothing but what they say.
    """
    if not settings.deanon:
        return "\n".join(sorted(_friend(reply.kind, reply.text) for reply in replies))
    return "\n".join(
        _friend(reply.kind, reply.text, names[reply.seat], str(tool_of(settings, reply.seat))) for reply in replies
    )


def _friend(kind: str | None, text: str, *helper: str) -> str:
    """Return the line of one reply, with the name and the corpus of the helper where they are shown."""
    who = f" ({', '.join(helper)})" if helper else ""
    return f"FRIEND_{kind.upper()}{who}: {text}" if kind else f"FRIEND_SILENT{who}"


def retrieval(passages: Collection[str]) -> str:
    """Return the evidence of a search, one passage a line."""
    return "\n".join(f"RETRIEVAL: {passage}" for passage in passages) or "RETRIEVAL: nothing was found."


def failure(why: str) -> str:
    """Return the line of a search that failed."""
    return f"RETRIEVAL: the search failed: {why}."


VERBS = {"answer": "answers", "hedge": "hedges", None: "does not answer"}
"""What a seat does that gives control up, by the kind of its reply."""


# --- the end ---------------------------------------------------------------------------------------------------------


def over(why: str, final: Reply | None) -> str:
    """Return the last line, which everybody reads."""
    if final is None or final.kind is None:
        return f"{why} There is no final answer."
    return f"{why} The final answer: {final.text}"


def score(settings: QaSocietySettings, final: Reply | None, f1: float, searches: int, result: float) -> str:
    """Return how the game was scored, for viewers who may see everything."""
    final_answer = f"The final answer is {final.text!r}" if final else "There is no final answer"
    right = " or ".join(repr(clean(answer)) for answer in settings.answers)
    return f"{final_answer}; right is {right}. F1 {f1:.2f}, searches {searches}: the return is {result:.2f}."
