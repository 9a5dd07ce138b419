"""How often a run is tried again."""

import pytest

from tests.webapp.runs.making import make_checkpoint, make_run
from webapp.runs import attempts

pytestmark = pytest.mark.django_db
DIED_BEFORE = None
"""Of an attempt that died before it started."""


def test_a_worker_that_is_shut_down_is_no_death_of_its_runs(researcher):
    run = make_run(researcher, state="queued", steps=0)
    for died in (True, False, True, False, False):
        attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
        attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=0, code_version="")
        attempts.give_back(attempt=attempt, exit_code=1, why="why", died=died)
        run.refresh_from_db()
        assert run.state == "queued"
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    attempts.give_back(attempt=attempt, exit_code=1, why="why")
    run.refresh_from_db()
    assert run.state == "failed"


@pytest.mark.parametrize(
    "starts, saved, state",
    [
        ([10, 10, 10], 10, "failed"),
        ([10, 10, 10], 20, "queued"),
        ([0, 10, 10], 10, "queued"),
        ([10, DIED_BEFORE, DIED_BEFORE], 10, "failed"),
        ([10, DIED_BEFORE, DIED_BEFORE], 20, "queued"),
        ([DIED_BEFORE] * 3, 10, "failed"),
        ([DIED_BEFORE] * 2, 10, "queued"),
    ],
)
def test_three_attempts_in_a_row_without_a_new_checkpoint_fail_a_run(researcher, starts, saved, state):
    run = make_run(researcher, state="queued", steps=0)
    make_checkpoint(run, step=saved)
    for start in starts:
        attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
        if start is not DIED_BEFORE:
            attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=start, code_version="")
        attempts.give_back(attempt=attempt, exit_code=1, why="it died")
    run.refresh_from_db()
    assert run.state == state
