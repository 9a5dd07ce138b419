"""Small scored episodes written by hand: tokens, where they were sampled, and the values of a critic."""

import numpy as np

from training.records import Episode, Move, Scenario, ScoredEpisode, Trace, Turn


def trace(layout, seat=0, **more):
    """`layout` is a string of turns: '.' observes, a digit is a token of that turn (index into Episode.turns)."""
    turn = tuple(-1 if mark == "." else int(mark) for mark in layout)
    mask = tuple(int(index >= 0) for index in turn)
    zeros = tuple(0.0 for _ in layout)
    return Trace(seat=seat, tokens=tuple(range(len(layout))), mask=mask, turn=turn, logprobs=zeros, **more)


def scored(
    traces,
    returns,
    values=None,
    *,
    passed=None,
    rewards=None,
    token_rewards=(),
    seat_metrics=None,
    start=("s", 0),
    beliefs=(),
):
    """A scored episode; `values` maps a head to one list per trace."""
    traces = tuple(traces)
    count = 1 + max(index for row in traces for index in row.turn)
    seats = {index: row.seat for row in traces for index in row.turn if index >= 0}
    move = Move(action="say")
    turns = tuple(Turn(seat=seats.get(i, 0), reply="", move=move, passed=True) for i in range(count))
    scenario = Scenario(id=start[0], game="negotiation", seats=("A", "B"), seed=start[1])
    return ScoredEpisode(
        episode=Episode(
            scenario=scenario, turns=turns, traces=traces, seat_metrics=seat_metrics or {}, beliefs=beliefs
        ),
        returns=returns,
        turn_rewards=rewards or [0.0] * count,
        passed=passed or [True] * count,
        values={head: [np.array(v, dtype=float) for v in lists] for head, lists in (values or {}).items()},
        token_rewards=[np.array(t, dtype=float) for t in token_rewards],
    )
