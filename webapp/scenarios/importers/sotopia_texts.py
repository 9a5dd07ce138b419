"""Parses the texts in which SOTOPIA writes a played episode: the context, the turns, and a judge's comments.

A text that does not have the expected form raises `BadInput` with the part that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from training.errors import BadInput
from training.records import Move, Seat

UNKNOWN = "Unknown"
"""The text in an agent's context for a background or a goal that the agent does not know."""

MOST_ANDS = 8
"""Places at which a line of two participants may be split; their names may contain the word."""

_SCENARIO = re.compile(r"^Scenario: ", re.MULTILINE)
_PARTICIPANTS = re.compile(r"^Participants: ([^\n]+)$", re.MULTILINE)
_TURN = re.compile(r"^Turn #(\d+)[,:]?(?:[ \t]+|$)", re.MULTILINE)
_PERSON = re.compile(
    r"[^\n]{0,200}? is an? (?P<age>\d{1,3})-year-old (?P<gender>\w+) (?P<occupation>[^.]+)\. "
    r"(?:(?P<pronouns>\w+/\w+) pronouns\.)?\s*(?P<public>.*)",
    re.DOTALL,
)
_VALUES = "Personality and values description:"
_COMMENTS = re.compile(r"^Agent (\d+) comments:\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Context:
    """The scene with both participants; a background or a goal is empty where the text says `Unknown` or nothing."""

    scenario: str
    names: tuple[str, str]
    backgrounds: tuple[str, str]
    goals: tuple[str, str]


def parse_context(text: str) -> Context:
    """Return the context in which an episode was played, as a judge or an agent read it."""
    begin = _SCENARIO.search(text)
    header = _PARTICIPANTS.search(text, begin.end() + 1) if begin is not None else None
    if begin is None or header is None:
        raise BadInput("the text has no lines 'Scenario:' and 'Participants:'")
    names = _names(header[1].strip(), text)
    labels = [(name, kind) for kind in ("background", "goal") for name in names]
    parts = _labelled(text[header.end() :], labels)
    backgrounds, goals = ([parts.get((name, kind), "") for name in names] for kind in ("background", "goal"))
    scenario = text[begin.end() : header.start()].strip()
    return Context(scenario, names, (backgrounds[0], backgrounds[1]), (goals[0], goals[1]))


def _names(participants: str, text: str) -> tuple[str, str]:
    words = participants.split(" and ", MOST_ANDS)
    for cut in range(1, len(words)):
        first, second = " and ".join(words[:cut]), " and ".join(words[cut:])
        if f"{first}'s goal:" in text and f"{second}'s goal:" in text:
            return first, second
    raise BadInput(f"expected two participants with a goal each, not {participants[:80]!r}")


def _labelled(text: str, labels: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return what follows each label such as `Ada Berg's goal:`, up to the next label or the first turn."""
    text = re.split(r"^(?:Conversation Starts:|Turn #\d+)", text, maxsplit=1, flags=re.MULTILINE)[0]
    places = [(text.find(f"{name}'s {kind}:"), (name, kind)) for name, kind in labels]
    present = sorted((place, label) for place, label in places if place >= 0)
    ends = [place for place, _ in present[1:]] + [len(text)]
    parts = {}
    for (place, (name, kind)), end in zip(present, ends, strict=True):
        words = text[place + len(f"{name}'s {kind}:") : end].strip()
        parts[name, kind] = "" if words == UNKNOWN else words
    return parts


def profile(name: str, background: str) -> dict[str, Any]:
    """Return the settings of a participant's profile; what has another form than SOTOPIA's is public information."""
    background, _, secret = background.partition(f"{name.partition(' ')[0]}'s secrets:")
    background, _, values = background.partition(_VALUES)
    texts = {"personality_and_values": values.strip(), "secret": secret.strip()}
    person = _PERSON.fullmatch(background.strip())
    if person is None:
        return {**texts, "public_info": background.strip()}
    return {
        **texts,
        "age": int(person["age"]),
        "gender": person["gender"],
        "occupation": person["occupation"].strip(),
        "pronouns": person["pronouns"] or "",
        "public_info": person["public"].strip(),
    }


def closeness(context: Context, seat: Seat) -> int:
    """Return the relationship's code from what an agent's own context states about the other one.

    SOTOPIA shows friends and closer people the personality, acquaintances the public part, and strangers nothing.
    """
    other = context.backgrounds[1 - seat]
    if _VALUES in other:
        return 3
    return 2 if _PERSON.fullmatch(other) else 1 if other else 0


def split_turns(text: str) -> list[str]:
    """Return the text of each turn of a judge's prompt; turns are numbered one by one, from 0 or 1."""
    marks: list[re.Match[str]] = []
    for mark in _TURN.finditer(text):
        if (int(mark[1]) == int(marks[-1][1]) + 1) if marks else int(mark[1]) in (0, 1):
            marks.append(mark)
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    turns = [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    if turns:
        turns[-1] = turns[-1].removesuffix(",").strip()
    return turns


def attributed(turn: str, names: tuple[str, str], due: Seat) -> tuple[Seat, Move]:
    """Return seat and move of a turn; an empty turn is the `due` seat's move `none`."""
    if not turn:
        return due, Move(action="none")
    for seat, name in enumerate(names):
        if turn.startswith(f"{name} "):
            return seat, move_of(turn.removeprefix(name).strip())
    raise BadInput(f"a turn of neither participant: {turn[:80]!r}")


def move_of(text: str) -> Move:
    """Return the move that a text such as `said: "…"`, `[action] …` or `left the conversation` describes."""
    if text in ("did nothing", 'said: ""'):
        return Move(action="none")
    if text.rstrip(".") == "left the conversation":
        return Move(action="leave")
    if text.startswith('said: "') and text.endswith('"'):
        return Move(action="speak", text=text[len('said: "') : -1])
    for label, action in (("[non-verbal communication]", "nonverbal"), ("[action]", "action")):
        if text.startswith(label) and text != label:
            return Move(action=action, args={"what": text.removeprefix(label).strip()})
    raise BadInput(f"a turn that is no action of SOTOPIA: {text[:80]!r}")


def reasons_of(reasoning: str, agent: int, names: Mapping[str, str]) -> dict[str, str]:
    """Return a judge's comments about agent 1 or 2 by our dimension; `names` maps SOTOPIA's dimensions to ours."""
    parts = _COMMENTS.split(reasoning)
    blocks = dict(zip(parts[1::2], parts[2::2], strict=True))
    lines = re.split(rf"^({'|'.join(map(re.escape, names))}):", blocks.get(str(agent), ""), flags=re.MULTILINE)
    return {names[name]: text.strip() for name, text in zip(lines[1::2], lines[2::2], strict=True) if text.strip()}
