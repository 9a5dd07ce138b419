"""Trust 16 at every game's table, and where many move at once: a faulty model holds up nobody.

The model's server is a stub on loopback; all other seats are people.
"""

import time
from datetime import timedelta

import pytest

from tests.games.worlds import CASES
from tests.stub import BAD_JSON, Drip, Hang, Huge, Status
from tests.trust.seated import match_with_a_model
from training.games import REGISTRY, make
from webapp.arena.models import Match
from webapp.arena.play import model_seats, services
from worker import play as playing

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]
VILLAGE = CASES["werewolf"][2]
"""Six who all speak at the same time by day."""


def others_move(match, seats):
    """Play the default for all other seats; return the stored moves."""
    now = services.fold(match)
    return {
        seat: services.submit(match_id=match.pk, seat=seat, step=now.step, move=now.game.default(seat)).pk
        for seat in sorted(seats)
    }


@pytest.mark.parametrize("game", REGISTRY)
def test_a_fault_costs_a_seat_one_move_in_every_game(game, stub, deployment):
    scenario = CASES[game][0].with_seed(5)
    start = make(scenario)
    seat, *others = sorted(start.to_act())
    match = match_with_a_model(scenario, seat, deployment)
    stub.answer = Status(500)
    playing.play(match.due.get(seat=seat).pk)
    stored = match.moves.get(step=0, seat=seat)
    assert stored.move == start.default(seat).to_dict()
    assert [bool(attempt["error"]) for attempt in stored.attempts] == [True] * (1 + model_seats.RETRIES)
    assert len(stub.requests) == 1 + model_seats.RETRIES
    others_move(match, others)
    match.refresh_from_db()
    assert match.step == 1


def test_an_error_with_a_nul_is_stored_without_it(stub, deployment):
    scenario = CASES["negotiation"][0].with_seed(5)
    (seat,) = make(scenario).to_act()
    match = match_with_a_model(scenario, seat, deployment)
    stub.answer = Status(500, "no\x00thing")
    playing.play(match.due.get(seat=seat).pk)
    errors = [attempt["error"] for attempt in match.moves.get(step=0, seat=seat).attempts]
    assert errors == ["stub at 127.0.0.1: status 500: no\ufffdthing"] * (1 + model_seats.RETRIES)


def by_day(match, model):
    """Play on until the model is to move at the same time as four or more others."""
    while True:
        match.refresh_from_db()
        due = services.fold(match).due()
        if model in due and len(due) > 4:
            return due
        assert match.state == Match.State.RUNNING
        others_move(match, due)


@pytest.mark.serial
@pytest.mark.parametrize(
    "fault", [Hang(), Drip(0.05), Huge(), BAD_JSON, Status(500)], ids=lambda fault: type(fault).__name__
)
def test_a_fault_in_a_joint_step_of_many_takes_nobodys_move_or_time(fault, stub, deployment):
    match = match_with_a_model(VILLAGE.with_seed(5), 2, deployment)
    due = by_day(match, 2)
    step = match.step
    deadline = services.database_now() + timedelta(seconds=3)
    match.due.update(deadline=deadline)
    early, last = sorted(due - {2})[:-1], max(due - {2})
    moved = others_move(match, early)
    stub.answer = fault
    began = time.monotonic()
    playing.play(match.due.get(seat=2).pk)
    assert time.monotonic() - began < 5, "deadline + 2 s"
    stored = match.moves.get(step=step, seat=2)
    late = isinstance(fault, Hang | Drip)
    assert stored.move["origin"] == ("timeout" if late else "default")
    assert len(stub.requests) <= 1 + model_seats.RETRIES
    assert {seat: match.moves.get(step=step, seat=seat).pk for seat in early} == moved
    match.refresh_from_db()
    assert (match.step, match.due.get().seat, match.due.get().deadline) == (step, last, deadline)
    others_move(match, {last})
    match.refresh_from_db()
    assert match.step == step + 1
    assert match.due.exists()
