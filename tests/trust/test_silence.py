"""Trust 15: clocks belong to the server. Every game ends though nobody moves, and a time-out stays one."""

import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tests.elsewhere import database_address
from tests.games.worlds import CASES
from tests.trust.seated import seated, shortest, silent
from training.games import REGISTRY, replay
from training.records import SeatMove
from webapp.arena import clock
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.core.models import Heartbeat

ROOT = Path(__file__).resolve().parents[2]


def overdue(match, seconds=-1.0):
    """Have the seats that are due now run out of time in so many seconds."""
    match.due.update(deadline=services.database_now() + timedelta(seconds=seconds))


@pytest.mark.django_db
@pytest.mark.parametrize("game", REGISTRY)
def test_a_game_ends_by_time_outs_alone(game):
    scenario = shortest(game)
    expected = silent(scenario)
    match, _ = seated(scenario)
    while match.state == Match.State.RUNNING:
        late = match.due.count()
        assert late > 0, "somebody must be due, or it would never end"
        overdue(match)
        assert clock.time_out() == late
        match.refresh_from_db()
    assert match.state == Match.State.FINISHED
    stored = [(entry.seat, entry.move) for entry in services.moves_of(match)]
    assert sorted(stored, key=str) == sorted(expected, key=str)
    ended = replay(scenario, [SeatMove(seat=seat, move=move) for seat, move in expected])
    assert match.returns == {str(seat): value for seat, value in ended.returns().items()}
    assert {move.origin for seat, move in stored if seat != scenario.tool_seat} == {"timeout"}


@pytest.mark.django_db
@pytest.mark.parametrize("game", REGISTRY)
def test_the_same_move_in_time_is_no_time_out(game):
    """The first seat makes in one match the very move that silence makes for it in the other."""
    matches = [seated(shortest(game))[0] for _ in range(2)]
    start = services.fold(matches[0])
    seat = min(start.due())
    services.submit(match_id=matches[0].pk, seat=seat, step=0, move=start.game.default(seat))
    for match in matches:
        match.due.filter(step=0).update(deadline=services.database_now())
    assert clock.time_out() == 2 * len(start.due()) - 1
    stored = [match.moves.get(step=0, seat=seat).move for match in matches]
    assert [move["origin"] for move in stored] == ["default", "timeout"]
    assert stored[0] == {**stored[1], "origin": "default"}
    assert clock.time_out() == 0, "the next step has a clock of its own"


def start_clock():
    """A clock of its own process, once it ticks."""
    environment = os.environ | {"DATABASE_URL": database_address()}
    started = subprocess.Popen([sys.executable, "manage.py", "clock"], cwd=ROOT, env=environment)
    ends = time.monotonic() + 30
    while not Heartbeat.objects.filter(detail__pid=started.pid).exists():
        assert started.poll() is None
        assert time.monotonic() < ends, "the clock does not tick"
        time.sleep(0.05)
    return started


@pytest.mark.serial
@pytest.mark.django_db(transaction=True)
def test_deadlines_survive_a_restart_in_the_middle_of_a_joint_step():
    """Six of a village: the clock is killed while one wolf has moved, and the deadline passes with none running."""
    match, _ = seated(CASES["werewolf"][0])
    overdue(match, 3600)
    killed = start_clock()
    waiting = services.fold(match)
    moved = min(waiting.due())
    services.submit(match_id=match.pk, seat=moved, step=0, move=waiting.game.default(moved))
    due = set(match.due.values_list("seat", flat=True))
    assert due == waiting.due() - {moved} != set()
    killed.kill()
    killed.wait()
    overdue(match, 0.1)
    time.sleep(0.3)
    assert match.moves.count() == 1, "no clock runs"
    second = start_clock()
    try:
        ends = time.monotonic() + 2
        while match.moves.filter(step=0).count() <= len(due):
            assert time.monotonic() < ends, "deadline + 2 s"
            time.sleep(0.05)
    finally:
        second.terminate()
        second.wait(10)
    origins = {move.seat: move.move["origin"] for move in match.moves.filter(step=0)}
    assert origins == dict.fromkeys(due, "timeout") | {moved: "default"}
    match.refresh_from_db()
    assert (match.state, match.step) == (Match.State.RUNNING, 1)
    assert match.due.exclude(deadline__gt=services.database_now()).count() == 0
