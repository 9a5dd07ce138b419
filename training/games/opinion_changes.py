"""Whose opinion changed after whose speech, in games whose players discuss and then vote.

A discussion is one list of speeches and ballots, in order. It shows a sequence, never a cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten

from training.analysis import OpinionChange, OpinionChanges
from training.records import Seat
from training.views import Line

EXCERPT = 140
"""The number of characters shown of a speech."""
METHOD = (
    "A change of opinion is recorded when a voter names a person, or votes for them, for the first time since the "
    "discussion began or since the voter's last vote in it, and finally votes for them. It is counted for every "
    "speaker who had named that person since then, whether to accuse or to defend them. This is a sequence of events, "
    "not evidence of a cause."
)


@dataclass(frozen=True, slots=True)
class Speech:
    """What a seat said in public in a game step, and whom it named."""

    step: int
    seat: Seat
    text: str
    named: frozenset[Seat]


@dataclass(frozen=True, slots=True)
class Ballot:
    """The votes of one game step; None is a vote for nobody."""

    step: int
    votes: Mapping[Seat, Seat | None]


@dataclass(slots=True)
class Discussion:
    """What was said and how everybody voted, under a title."""

    title: str
    events: list[Speech | Ballot] = field(default_factory=list)


class DiscussionLog:
    """The discussions of a game, recorded as they happen."""

    def __init__(self, names: Sequence[str]) -> None:
        self._patterns = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE) for name in names]
        self.discussions: list[Discussion] = []

    def begin(self, title: str) -> None:
        """Begin a discussion; earlier speeches no longer count."""
        self.discussions.append(Discussion(title))

    def say(self, step: int, seat: Seat, text: str) -> None:
        """Add a speech; speeches before the first discussion are left out."""
        named = frozenset(other for other, name in enumerate(self._patterns) if other != seat and name.search(text))
        self._add(Speech(step, seat, text, named))

    def vote(self, step: int, votes: Mapping[Seat, Seat | None]) -> None:
        """Add a ballot."""
        self._add(Ballot(step, dict(votes)))

    def _add(self, event: Speech | Ballot) -> None:
        if self.discussions:
            self.discussions[-1].events.append(event)

    def analysis(self) -> tuple[OpinionChanges, ...]:
        """Return all changes of opinion, in order; nothing if nobody ever voted."""
        if not any(isinstance(event, Ballot) for each in self.discussions for event in each.events):
            return ()
        changes = tuple(change for each in self.discussions for change in changes_of(each))
        return (OpinionChanges(title="Changes of opinion after speeches", method=METHOD, changes=changes),)


def spoken(lines: Sequence[Line]) -> str:
    """Return what a seat said in a move, without what it did."""
    return " ".join(line.text for line in lines if line.kind == "speech")


def changes_of(discussion: Discussion) -> Iterator[OpinionChange]:
    """Yield the changes of opinion in a discussion, ballot by ballot."""
    for at, ballot in enumerate(discussion.events):
        if isinstance(ballot, Ballot):
            for voter, target in sorted(ballot.votes.items()):
                if target is not None:
                    yield from _changes(discussion, discussion.events[: at + 1], voter, target)


def _changes(
    discussion: Discussion, events: Sequence[Speech | Ballot], voter: Seat, target: Seat
) -> Iterator[OpinionChange]:
    """Yield a voter's changes to the target for which it voted in the last of these events, one for each speaker."""
    votes = [event for event in events[:-1] if isinstance(event, Ballot) and event.votes.get(voter) is not None]
    since = votes[-1].step if votes else -1
    if votes and votes[-1].votes[voter] == target:  # the voter has stayed with this person
        return
    stances = [(event.step, seat) for event in events for seat in _stances(event, voter)]
    changed = min(step for step, seat in stances if seat == target and step > since)
    earlier = [seat for step, seat in stances if step < changed and seat != target]
    speakers: dict[Seat, Speech] = {}
    for event in events:
        if isinstance(event, Speech) and since < event.step < changed and target in event.named and event.seat != voter:
            speakers.setdefault(event.seat, event)
    for speech in speakers.values():
        yield OpinionChange(
            when=discussion.title,
            step=speech.step,
            speaker=speech.seat,
            text=shorten(speech.text, EXCERPT, placeholder=" …"),
            voter=voter,
            target=target,
            before=earlier[-1] if earlier else None,
        )


def _stances(event: Speech | Ballot, seat: Seat) -> list[Seat]:
    """Return whom a seat named or voted for in an event."""
    if isinstance(event, Speech):
        return sorted(event.named) if event.seat == seat else []
    vote = event.votes.get(seat)
    return [] if vote is None else [vote]
