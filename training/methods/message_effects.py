"""What each message of a discussion changed in the beliefs of those who heard it. Pure functions over episodes.

Nothing here knows a game: a message is a move that stands alone between two rounds of probes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import TypedDict

from training.records import Belief, Episode, Seat

ITSELF = "itself"
"""The listener's role in `by_roles` where a speaker is asked what its own message changed."""


@dataclass(frozen=True, slots=True)
class MessageEffect:
    """One message: its place in `Episode.moves`, its speaker, and every listener's probability of the truth.

    Listeners are the seats that were asked, with a right answer, both before and after the message, whichever policy
    plays them; the speaker may be one of them. `truth` are the right answers.
    """

    place: int
    speaker: Seat
    truth: frozenset[str]
    before: dict[Seat, float]
    after: dict[Seat, float]

    @property
    def changes(self) -> dict[Seat, float]:
        """The change of every listener's probability, from -1 to 1."""
        return {seat: self.after[seat] - value for seat, value in self.before.items()}


def message_effects(episode: Episode) -> list[MessageEffect]:
    """Return the messages between two rounds of probes, in the order of the moves, without those of the tool seat."""
    rounds: dict[int, dict[Seat, Belief]] = {}
    for belief in episode.beliefs:
        if belief.truth:
            rounds.setdefault(belief.after, {})[belief.seat] = belief
    effects = []
    for place, before in sorted(rounds.items()):
        after = rounds.get(place + 1)
        if after is None or (speaker := episode.moves[place].seat) >= len(episode.scenario.seats):
            continue
        listeners = sorted(before.keys() & after.keys())
        truth = frozenset(name for belief in (*before.values(), *after.values()) for name in belief.truth)
        rows = [{seat: row[seat].right for seat in listeners} for row in (before, after)]
        effects.append(MessageEffect(place, speaker, truth, *rows))
    return effects


class RoleEffect(TypedDict):
    """The mean change in a listener's probability by a message, in one game. `n` counts messages and listeners."""

    speaker: str
    listener: str
    n: int
    mean: float


def by_roles(episode: Episode) -> list[RoleEffect]:
    """Return the effects of an episode by the roles of speaker and listener; empty for a game without roles."""
    if not episode.roles:
        return []
    changes: dict[tuple[str, str], list[float]] = {}
    for effect in message_effects(episode):
        for seat, change in effect.changes.items():
            listener = ITSELF if seat == effect.speaker else episode.roles[seat]
            changes.setdefault((episode.roles[effect.speaker], listener), []).append(change)
    return [
        {"speaker": speaker, "listener": listener, "n": len(values), "mean": fmean(values)}
        for (speaker, listener), values in sorted(changes.items())
    ]


def per_message(episodes: Iterable[Episode]) -> dict[str, float]:
    """Return the mean over messages of what each changed in the sum over its listeners, as `belief_change/role`."""
    sums: dict[str, list[float]] = {}
    for episode in episodes:
        for effect in message_effects(episode) if episode.roles else ():
            if effect.before:  # somebody heard it who was asked
                name = f"belief_change/{episode.roles[effect.speaker]}"
                sums.setdefault(name, []).append(sum(effect.changes.values()))
    return {name: fmean(values) for name, values in sorted(sums.items())}
