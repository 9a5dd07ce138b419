"""What players say they are: the roles claimed in a speech, by patterns; other wordings are missed."""

from __future__ import annotations

import re

from training.games.werewolf.settings import Role

_CLAIM = re.compile(
    r"\b(?:I am|I'm|I’m|me,|I was|as)\s+(?:the|your|a|an)\s+(?:\w+\s+)?"
    r"(villager|werewolf|seer|witch|hunter|guard|doctor)\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(r"\b(?:if|not|say|says|think|thinks|said)\b[^.!?]*$", re.IGNORECASE)


def claimed(speech: str) -> frozenset[Role]:
    """Return the roles that the speaker says it has."""
    found: set[Role] = set()
    for match in _CLAIM.finditer(speech):
        before = speech[: match.start()]
        if not _NEGATED.search(before):
            found.add(match.group(1).lower())  # type: ignore[arg-type]
    return frozenset(found)
