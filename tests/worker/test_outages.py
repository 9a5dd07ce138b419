"""A run whose database or storage is away, slow or busy: its process continues, and nothing is lost."""

import time

import pytest
from django.db import OperationalError

from training.rundir import RunDir
from webapp.runs import attempts
from worker import tail
from worker.supervise import supervise

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process]


def steps(run):
    return list(run.metrics.order_by("step").values_list("step", flat=True))


def test_a_log_that_always_grows_holds_nothing_up(make_run, quick, monkeypatch):
    run = make_run(steps=12)
    log, record, in_a_row = RunDir(quick.RUNS_ROOT / str(run.pk)).attempt(1).log, attempts.record, []

    def recorded(**fields):
        in_a_row.append(len(in_a_row))
        assert len(in_a_row) < 20
        with log.open("a") as file:
            file.write("more\n")
        record(**fields)

    monkeypatch.setattr(attempts, "record", recorded)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, steps(run)) == ("succeeded", list(range(1, 13)))


def test_the_lease_is_renewed_while_much_is_stored(make_run, background, monkeypatch):
    """Of the attempt itself and of an earlier one: each takes longer than the lease of two seconds."""
    record = attempts.record

    def recorded(**fields):
        time.sleep(0.2)
        record(**fields)

    run = make_run(steps=14, crash_at=7)
    supervise(run.pk)
    run.attempts.update(offsets={})  # as if nothing had been stored
    monkeypatch.setattr(attempts, "record", recorded)
    monkeypatch.setattr(tail, "LINES", 1)
    thread = background(run)
    while thread.is_alive():
        assert attempts.lapse_overdue() == 0
        time.sleep(0.1)
    run.refresh_from_db()
    assert (run.state, run.attempts.count(), steps(run)) == ("succeeded", 2, list(range(1, 15)))


@pytest.mark.parametrize("write", ["started", "record"])
def test_an_outage_of_the_database_does_not_end_the_process(make_run, quick, monkeypatch, write):
    """It lasts longer than a process may be without progress, and ends before the process does."""
    quick.RUN_STALL_MINUTES = 1.5 / 60
    run, do = make_run(steps=40, seconds=0.1), getattr(attempts, write)
    begin = time.monotonic()

    def during_an_outage(**fields):
        if time.monotonic() - begin < 3.0:
            raise OperationalError("the connection is closed")
        return do(**fields)

    monkeypatch.setattr(attempts, write, during_an_outage)
    supervise(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempts.count(), steps(run)) == ("succeeded", 1, list(range(1, 41)))
