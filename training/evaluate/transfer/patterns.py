"""Counts two patterns in private reasoning: awareness of one's own role, and attribution of intent to another agent.

The paper (MARS, section 4.4 and table 2) shows examples of each and counts nothing. Here a fixed list of phrases is
counted: a role that the agent says is its own ("as the negative side"), and a state of mind of another agent ("maybe
the assistant is not sure"). Phrases miss what is said in other words, and find some that mean something else; a single
model's rate is the rate without other agents.

Private reasoning is the text in <think>. A reply without it reasons in the text before its answer, which other agents
read. Raises nothing.
"""

from __future__ import annotations

import re

from training.evaluate.transfer.answers import Kind, find
from training.reading import Record
from training.text.parsing import split_private

_ROLES = (
    r"(?:affirmative|negative)(?:[ -]side)?|(?:first|second)[- ](?:move )?(?:player|mover)|player [0-9]"
    r"|debater|judge|moderator|assistant|user[ _-]?proxy|mark [xo]"
)
_ROLE_PHRASE = r"as|being|i am|i'm|i play|my role(?: here)? is|assigned|i (?:need|have) to (?:act|argue)(?: as| for)"
_ROLE = re.compile(rf"\b(?:{_ROLE_PHRASE})\s+(?:as\s+|to be\s+)?(?:the\s+|an?\s+)?(?:{_ROLES})\b", re.IGNORECASE)

_OTHERS = (
    r"(?:the|my) (?:assistant|user(?:[ _-]?proxy)?|opponent|partner|team-?mate|collaborator|judge|moderator|debater"
    r"|other (?:side|player|agent|debater)|(?:affirmative|negative)(?:[ -]side)?)|player [0-9]"
)
_MIND = (
    r"(?:(?:might|may|could|would|must) )?(?:probably |likely |possibly )?(?:"
    r"(?:is|are|be|was|were|seems?|sounds?)(?: to be)?(?: probably| likely)? (?:not sure|unsure|uncertain|confident"
    r"|confused|convinced|trying|hinting|implying|suggesting|signal+ing|bluffing|hiding)"
    r"|wants?|intends?|thinks?|believes?|expects?|hopes?|doubts?|hints?)"
)
_TO_ME = r"they (?:(?:might|may|probably|must) )?(?:want|expect|need|are asking|are telling|are hinting) (?:me|us)"
_INTENT = re.compile(rf"\b(?:(?:{_OTHERS}) {_MIND}|{_TO_ME})\b", re.IGNORECASE)


class Reasoning(Record):
    """The reasoning of one reply: whether it was in <think>, and which patterns it shows."""

    think: bool
    role: bool
    intent: bool


def reasoning(reply: str, kind: Kind, letters: str) -> Reasoning:
    """Return the patterns in a reply to a question of the given kind."""
    public, private = split_private(reply)
    text = " ".join((private or public[: find(public, kind, letters).begin]).split())
    return Reasoning(think=bool(private), role=bool(_ROLE.search(text)), intent=bool(_INTENT.search(text)))
