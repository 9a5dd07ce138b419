"""Which turns of an episode are messages, and what each message changed in the beliefs of those who heard it.

Nothing here knows a game: messages are recognised by how they were sampled or by the probes around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from training.methods.advantages import belief_rewards
from training.methods.message_effects import message_effects
from training.methods.trajectories import TurnTokens
from training.records import Episode, Seat


def message_turns(episode: Episode, turns: Mapping[Seat, Sequence[TurnTokens]]) -> frozenset[int]:
    """Return which of the learner's turns are messages, as indices into `Episode.turns`; the others are actions.

    With constrained decoding a message is a turn of which no token was limited. Where no token of these turns was
    limited, it is a turn whose move is the only one between two rounds of probes; a refused try is classified like the
    seat's next accepted turn.
    """
    free = {turn.index: _free(episode, turn) for row in turns.values() for turn in row}
    if not all(free.values()):
        return frozenset(index for index, unlimited in free.items() if unlimited)
    asked = {belief.after for belief in episode.beliefs}
    messages: set[int] = set()
    for row in turns.values():
        between = False
        for turn in reversed(row):
            place = episode.turns[turn.index].move_index
            if place is not None:
                between = {place, place + 1} <= asked
            if between:
                messages.add(turn.index)
    return frozenset(messages)


def _free(episode: Episode, turn: TurnTokens) -> bool:
    choices = episode.traces[turn.trace].choices
    return not any(position in choices for position in range(turn.first, turn.stop))


def belief_changes(episode: Episode) -> dict[int, float]:
    """Return the change of beliefs in the truth by each move between two rounds of probes, by place in `Episode.moves`.

    It is the change of the sum over all seats that were asked, with a right answer, in both rounds, whichever policy
    plays them; the speaker may be one of them. It counts negative if the right answer is the name of the speaker.
    """
    names = episode.scenario.seats
    changes: dict[int, float] = {}
    for effect in message_effects(episode):
        imposters = [seat for seat, name in enumerate(names) if name in effect.truth]
        rows = [[row.get(seat, 0.0) for seat in range(len(names))] for row in (effect.before, effect.after)]
        [changes[effect.place]] = belief_rewards(rows, [effect.speaker], imposters, [set(effect.before)])
    return changes
