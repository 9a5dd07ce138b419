"""Finds the roles that a player claims in a speech by patterns; other wordings are missed."""

from __future__ import annotations

import re
from typing import cast

from training.games.werewolf.settings import Role

ROLE_WORD = "(villager|werewolf|seer|witch|hunter|guard|doctor)"
CLAIM = re.compile(
    rf"\b(?:(?:I am|I'm|I’m|I was)\s+(?:the|your|an?)\s+(?:\w+\s+)?{ROLE_WORD}|as (?:the|your) {ROLE_WORD},? I)\b",
    re.IGNORECASE,
)
"""A speaker's claim to a role, which is the first or the second group."""
_NEGATED = re.compile(r"\b(?:if|not|say|says|think|thinks|said)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"[^.!?]+")


def claimed(speech: str) -> frozenset[Role]:
    """Return the roles that the speaker claims, in clauses that are not negated or hypothetical."""
    roles: set[Role] = set()
    for sentence in _SENTENCE.findall(speech):
        negated = _NEGATED.search(sentence)
        for match in CLAIM.finditer(sentence):
            if negated is None or match.start() < negated.start():
                roles.add(cast("Role", (match.group(1) or match.group(2)).lower()))
    return frozenset(roles)
