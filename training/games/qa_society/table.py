"""A society as people see it: the question, the replies and passages that a seat has read, and the score."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from training.games.actions import clean
from training.games.prose import listed
from training.games.qa_society.settings import ASKER, QaSocietySettings, tool_of
from training.games.qa_society.words import Names, Reply
from training.records import Seat
from training.views import Brief, Line, Passage, Passages, news

SAYS = {"answer": "is sure", "hedge": "guesses", None: "does not answer"}
"""What a seat does that gives control up, by the kind of its reply."""


def question(text: str) -> Passages:
    """Return the question as a card."""
    return Passages(title="The question", passages=(Passage(title="", text=text),))


def story(settings: QaSocietySettings, names: Names, seat: Seat | None) -> str:
    """Return who answers and who can be asked; a seat that answers alone, which has no brief, also reads its search."""
    asker, helpers = names[ASKER], names[ASKER + 1 :]
    if settings.asking:
        return f"{asker} answers the question. First {asker} may ask {listed(helpers)}, who can search."
    if seat is None:
        return f"{asker} answers the question alone."
    return f"Answer the question in a few words. {_search(settings, seat)}"


def rules(settings: QaSocietySettings, names: Names) -> tuple[str, ...]:
    """Return the rules for people."""
    asker = names[ASKER]
    helped = f"When {asker} asks, every helper replies once, one after the other, and may search before."
    cost = f", less {settings.cost:g} for each search" if settings.cost else ""
    everybody = "All get" if settings.asking else f"{asker} gets"
    efforts = "asks and searches" if settings.asking else "searches"
    lines = (
        f"{asker} answers the question in a few words.",
        helped if settings.asking else "",
        "An answer says that its author is sure, a hedge that it is a guess; both are scored alike.",
        f"{everybody} 0 to 1 for the words that the final answer shares with the right one{cost}.",
        f"There are at most {settings.effort} {efforts} and {settings.turn_limit} moves.",
        "When a limit ends the game, the latest reply counts, whoever gave it.",
    )
    return tuple(line for line in lines if line)


def _search(settings: QaSocietySettings, seat: Seat) -> str:
    tool = tool_of(settings, seat)
    return f"You can search the corpus {tool}." if tool else "You have no search."


def brief(settings: QaSocietySettings, names: Names, seat: Seat) -> Brief:
    """Return what a seat alone may know."""
    search = _search(settings, seat)
    if not settings.asking:
        return Brief(title="You answer alone", text=(search,), emblem="point")
    if seat != ASKER:
        sees_replies = f"{names[ASKER]} reads your reply, not what you find."
        return Brief(title="You help", text=(search, sees_replies), emblem="hint")
    who = "who said it, with which corpus" if settings.deanon else "not who said it"
    return Brief(title="You answer", text=(search, f"You read what the helpers say, {who}."), emblem="point")


def ask(settings: QaSocietySettings, seat: Seat, *, informed: bool) -> str:
    """Return what a seat is to do now; `informed`: it has read replies, or the result of a search."""
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


def replies(settings: QaSocietySettings, names: Names, answers: Iterable[Reply]) -> tuple[Passage, ...]:
    """Return the helpers' replies as the asker reads them; without names they are sorted as text.

    A title is read after the name of who replies, or says that some helper does.
    """
    if settings.deanon:
        return tuple(
            Passage(title=f"({tool_of(settings, reply.seat)}) {SAYS[reply.kind]}", text=reply.text, by=reply.seat)
            for reply in answers
        )
    shown = (Passage(title=f"A helper {SAYS[reply.kind]}", text=reply.text) for reply in answers)
    return tuple(sorted(shown, key=lambda passage: (passage.title, passage.text)))


def results(passages: Collection[str], why: str) -> tuple[Passage, ...]:
    """Return the passages of a search, or one that says that it failed, and why, or found nothing.

    A passage's title stands before its first colon.
    """
    if why:
        return (Passage(title="", text=f"The search failed: {why.removesuffix('.')}."),)
    parts = [passage.partition(": ") for passage in passages]
    shown = tuple(Passage(title=head if text else "", text=text or head) for head, _, text in parts)
    return shown or (Passage(title="", text="Nothing was found."),)


def evidence(names: Names, seat: Seat, passages: tuple[Passage, ...], *, sees_replies: bool, mine: bool) -> Passages:
    """Return the replies (`sees_replies`) or passages that a seat read, titled for itself (`mine`) or for others."""
    if sees_replies:
        return Passages(title="What the helpers say" if mine else f"What {names[seat]} was told", passages=passages)
    return Passages(title="What your search found" if mine else f"What {names[seat]} found", passages=passages)


def lines(names: Names, passages: Iterable[Passage]) -> tuple[Line, ...]:
    """Return replies or passages as lines of the log."""
    shown: list[Line] = []
    for passage in passages:
        title = passage.title if passage.by is None else f"{names[passage.by]} {passage.title}"
        shown += news(": ".join(part for part in (title, passage.text) if part))
    return tuple(shown)


# --- the end ---------------------------------------------------------------------------------------------------------


def moment(settings: QaSocietySettings, names: Names, end: str, final: Reply | None, seat: Seat) -> str:
    """Return what ended the game, for everybody: a limit, or what `seat` did in the last move."""
    counts = "; the latest reply counts" if final else ""
    if end == "effort":
        return f"No {'ask or search' if settings.asking else 'search'} was left{counts}."
    if end == "length":
        return f"No move was left{counts}."
    if end == "forfeit":
        return f"{names[seat]} gave up."
    did = {"answer": "was sure of the answer", "hedge": "guessed", None: "did not answer"}
    return f"{names[seat]} {did[final.kind if final else None]}."


def headline(final: Reply | None) -> str:
    """Return the final answer, for everybody."""
    return _sentence(f"The final answer: {final.text}") if final else "There is no final answer."


def verdict(settings: QaSocietySettings, final: Reply | None, f1: float) -> str:
    """Return whether the final answer is right, for viewers who may see everything."""
    right = listed((clean(answer) for answer in settings.answers), "or")
    if final is None:
        return _sentence(f"There is no final answer. Right is: {right}")
    if f1 == 1:
        return _sentence(f"The final answer is right: {final.text}")
    how = f"shares {f1:.0%} with the right one" if f1 else "is wrong"
    return f"{_sentence(f'The final answer {how}: {final.text}')} {_sentence(f'Right is: {right}')}"


def score(f1: float, searches: int, result: float) -> str:
    """Return the score and its parts, for viewers who may see everything."""
    cost = f" for the answer, less {f1 - result:.2f} for {searches} search{'' if searches == 1 else 'es'}"
    return f"The score is {result:.2f}{f': {f1:.2f}{cost}' if searches else ''}."


def _sentence(text: str) -> str:
    """Return `text` with a full stop, unless it ends with punctuation."""
    return text if text[-1] in ".!?" else f"{text}."
