"""Numbers of seats and roles, against numbers counted by hand."""

import pytest

from training.records import Episode, Move, Scenario, SeatMove, Trace, Turn
from training.rollout.roles import by_role, seat_numbers

SCENARIO = Scenario(id="x", game="g", seats=("A", "B", "C"))
SAID = Move(action="say", text="hi")


def turn(seat, legal=True):
    return (
        Turn(seat=seat, reply="hi", move=SAID, move_index=0, passed=True)
        if legal
        else Turn(seat=seat, reply="?", error="no", passed=False)
    )


def trace(seat, sampled):
    return Trace(
        seat=seat, tokens=(1,) * 6, mask=(0,) * (6 - sampled) + (1,) * sampled, turn=(-1,) * 6, logprobs=(0,) * 6
    )


def episode(roles=("wolf", "villager", "villager"), **changes):
    metrics = {seat: {"won": float(seat > 0), "unread": float(seat == 0)} for seat in range(3)}
    turns = (turn(0), turn(0, legal=False), turn(0, legal=False), turn(1), turn(2), turn(2))
    moves = (SeatMove(seat=0, move=SAID), SeatMove(seat=1, move=Move(action="say", origin="default")))
    defaults = {
        "metrics": {"days": 2},
        "seat_metrics": metrics,
        "turns": turns,
        "moves": moves,
        "roles": roles,
        "traces": (trace(0, 3), trace(2, 4)),
    }
    return Episode(scenario=SCENARIO, **{**defaults, **changes})


def test_a_seats_numbers_by_hand():
    numbers = seat_numbers(episode(), passed=(True, False, False, False, True, False))
    wolf = {"won": 0, "parse_rate": 2 / 3, "legal_rate": 1 / 3, "failing": 2 / 3, "reply_tokens": 1}
    assert numbers[0] == pytest.approx({**wolf, "forfeits": 0, "defaults": 0})
    assert numbers[1] == pytest.approx(
        {"won": 1, "parse_rate": 1, "legal_rate": 1, "failing": 1, "forfeits": 0, "defaults": 1}
    )
    assert numbers[2]["reply_tokens"] == 2
    assert numbers[2]["failing"] == 0.5


def test_the_mean_over_the_seats_with_a_role():
    first, other = (
        episode(),
        episode(roles=("villager", "wolf", "seer"), seat_metrics={0: {"won": 0.0}, 1: {"won": 1.0}}),
    )
    means = by_role((episode, seat_numbers(episode)) for episode in (first, other))
    assert means["won/wolf"] == 0.5  # lost once, won once
    assert means["won/villager"] == pytest.approx(2 / 3)  # won twice, lost once
    assert "won/seer" not in means  # the second game does not say
    assert means["reply_tokens/seer"] == 2
    only = by_role([(first, {0: seat_numbers(first)[0]})])
    assert {name.partition("/")[2] for name in only} == {"wolf"}


def test_no_roles_no_numbers_by_role():
    plain = episode(roles=())
    assert by_role([(plain, seat_numbers(plain))]) == {}
