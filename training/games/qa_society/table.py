"""A society as people see it: the question, what a seat was told or has found, and how the answer did."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from training.games.actions import clean
from training.games.prose import listed
from training.games.qa_society.settings import ASKER, QaSocietySettings, tool_of
from training.games.qa_society.words import Names, Reply
from training.records import Seat
from training.views import Brief, Line, Passage, Passages

SAYS = {"answer": "is sure", "hedge": "guesses", None: "does not answer"}
"""What a seat does that gives control up, by the kind of its reply."""


def question(text: str) -> Passages:
    """Return the question as a card."""
    return Passages(title="The question", passages=(Passage(title="", text=text),))


def rules(settings: QaSocietySettings, names: Names) -> tuple[str, ...]:
    """Return the rules for people."""
    asker, helpers = names[ASKER], names[ASKER + 1 :]
    asks = f"{asker} may first ask {listed(helpers)}, who can search." if settings.asking else ""
    cost = f", minus {settings.cost:g} for each search" if settings.cost else ""
    efforts = "asks and searches" if settings.asking else "searches"
    lines = (
        f"{asker} answers a question in a few words.",
        asks,
        "An answer says that its author is sure, a hedge that it is a guess; both are scored alike.",
        f"The score is the words that the final answer shares with the right one, from 0 to 1{cost}.",
        f"There are at most {settings.effort} {efforts} and {settings.turn_limit} moves.",
        "When a limit ends the game, the latest reply counts.",
    )
    return tuple(line for line in lines if line)


def brief(settings: QaSocietySettings, names: Names, seat: Seat) -> Brief:
    """Return what a seat alone may know."""
    tool = tool_of(settings, seat)
    search = f"You can search the corpus {tool}." if tool else "You have no search."
    if not settings.asking:
        return Brief(title="You answer alone", text=(search,))
    if seat != ASKER:
        return Brief(title="You help", text=(search, f"{names[ASKER]} reads your reply, not what you find."))
    who = "with their names and corpora" if settings.deanon else "without names, sorted as text"
    return Brief(title="You answer", text=(search, f"The helpers' replies reach you {who}."))


def ask(settings: QaSocietySettings, seat: Seat, *, informed: bool) -> str:
    """Return what a seat is to do now; `informed`: it has read replies or passages."""
    if settings.asking and seat == ASKER:
        return "Answer, hedge, or ask again." if informed else "Ask the helpers, or answer at once."
    if tool_of(settings, seat):
        return "Answer, hedge, or search again." if informed else "Search, or answer at once."
    return "Answer if you are sure, else hedge."


def deed(action: str, text: str) -> str:
    """Return what a seat does, read after its name."""
    return {
        "ask": "asks the helpers",
        "search": "searches",
        "answer": f"answers: {text}",
        "hedge": f"guesses: {text}",
    }.get(action, "")


def replies(settings: QaSocietySettings, names: Names, given: Iterable[Reply]) -> tuple[Passage, ...]:
    """Return the helpers' replies as the asker reads them; without names they are sorted as text."""
    shown = []
    for reply in given:
        name = f"{names[reply.seat]}, who searches {tool_of(settings, reply.seat)}," if settings.deanon else "A helper"
        by = reply.seat if settings.deanon else None
        shown.append(Passage(title=f"{name} {SAYS[reply.kind]}", text=reply.text or "–", by=by))
    return tuple(shown if settings.deanon else sorted(shown, key=lambda passage: (passage.title, passage.text)))


def found(passages: Collection[str]) -> tuple[Passage, ...]:
    """Return the passages of a search; a title stands before the first colon."""
    parts = [passage.partition(": ") for passage in passages]
    return tuple(Passage(title=head if text else "", text=text or head) for head, _, text in parts)


def told(passages: Iterable[Passage]) -> tuple[Line, ...]:
    """Return replies or passages as lines of the log."""
    return tuple(
        Line(kind="news", text=f"{passage.title}: {passage.text}" if passage.title else passage.text)
        for passage in passages
    )


def right(settings: QaSocietySettings) -> str:
    """Return the right answers as part of a sentence."""
    return " or ".join(clean(answer) for answer in settings.answers)
