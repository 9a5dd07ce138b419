"""The page of a run that is still running: how far it is, about how long it takes, and its result without a reload."""

import re
import time

import pytest
from django.urls import reverse

from tests.webapp.runs.making import in_turns, make_checkpoint, make_run
from webapp.runs import attempts, batches
from webapp.runs.models import Attempt, Run
from webapp.runs.summaries import pulse

pytestmark = pytest.mark.django_db
ESTIMATE = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 10}
RESULT = {
    "summary": {"a": {"points": ESTIMATE}, "b": {"points": ESTIMATE}, "difference": {"points": ESTIMATE}, "shared": {},
                "conversations": 12, "used": 12, "scenarios": 6, "errors": {}, "scored": {}, "unscored": {}},
    "conditions": {},
}  # fmt: skip


@pytest.fixture
def get(researcher, client_of):
    client = client_of(researcher)

    def get(name, run, query="", **headers):
        return client.get(reverse(f"runs:{name}", args=[run.pk]) + query, headers=headers)

    return get


def begun(owner, **fields):
    """A run that a worker has begun, with its attempt."""
    run = make_run(owner, **{"state": "queued", "steps": 0, **fields})
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=0, code_version="")
    return run, attempt


def said(attempt, phase="sampling", **facts):
    """The process reports a phase that began a minute ago."""
    now = time.time()
    attempts.beat(attempt=attempt, status={"phase": phase, "at": now, "since": now - 60, **facts})


def with_judge(run):
    Run.objects.filter(pk=run.pk).update(config={**run.config, "evaluate": {**run.config["evaluate"], "judge": True}})


def text(response):
    return response.content.decode()


def shown_by(response):
    """The query string with which the page asks on."""
    return "?shown=" + re.search(r'name="shown" value="([^"]*)"', text(response))[1]


def test_a_running_head_to_head_says_how_far_it_is_and_asks_on(researcher, get):
    run, attempt = begun(researcher, kind="eval")
    assert "The models are being loaded" in text(get("evaluation", run))
    said(attempt, done=3, of=12)
    for name in ("evaluation", "detail"):
        page = text(get(name, run))
        assert "<strong>3 of 12</strong> conversations; about 3 min left" in page, "9 of 20 s each"
        assert f'hx-get="{reverse("runs:evaluation", args=[run.pk])}"' in page
        assert "reload" not in page


def test_a_head_to_head_becomes_its_result(researcher, get):
    run, attempt = begun(researcher, kind="eval")
    said(attempt, done=3, of=12)
    first = get("evaluation", run, **{"hx-request": "true"})
    assert first.status_code == 200
    assert "<html" not in text(first)
    shown = shown_by(first)
    assert get("evaluation", run, shown, **{"hx-request": "true"}).status_code == 204, "nothing new"
    said(attempt, done=4, of=12)
    assert "4 of 12" in text(get("evaluation", run, shown, **{"hx-request": "true"}))
    attempts.finish(attempt=attempt, state="succeeded", exit_code=0, result=RESULT)
    last = get("evaluation", run, shown, **{"hx-request": "true"})
    assert last.status_code == 286, "nothing is asked any more"
    assert "12 of 12 conversations count" in text(last)
    assert 'class="verdict"' not in text(get("live", run, "?tab=evaluation")), "the tab says it"
    assert 'hx-trigger="every 3s"' not in text(get("evaluation", run))


def test_a_training_run_shows_new_evaluations_only(researcher, get):
    run, attempt = begun(researcher, steps=20)
    said(attempt, done=1, of=2)
    shown = shown_by(get("evaluation", run))
    said(attempt, done=2, of=2)
    assert get("evaluation", run, shown, **{"hx-request": "true"}).status_code == 204
    run.events.create(attempt=attempt, kind="evaluation", data={"step": 5, "a.points": 3.25}, at="2026-01-01T00:00:00Z")
    assert "3.25" in text(get("evaluation", run, shown, **{"hx-request": "true"}))


def test_head_to_heads_of_weights_that_are_gone_are_not_shown(researcher, get):
    run, attempt = begun(researcher, steps=20)
    for step in (5, 10, 15):
        numbers = {"step": step, "a.points": step + 0.5}
        run.events.create(attempt=attempt, kind="evaluation", data=numbers, at="2026-01-01T00:00:00Z")
    attempts.give_back(attempt=attempt, exit_code=1, why="it crashed")
    second = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    assert "15.5<" in text(get("evaluation", run)), "the second attempt has not begun"
    attempts.started(attempt=second, pid=2, pid_started=1.0, start_step=10, code_version="")
    assert [data["step"] for data in run.evaluations()] == [5, 10]
    assert "15.5<" not in text(get("evaluation", run))
    numbers = {"step": 15, "a.points": 14.5}
    run.events.create(attempt=second, kind="evaluation", data=numbers, at="2026-01-01T00:00:00Z")
    page = text(get("evaluation", run))
    assert ("15.5<" in page, "14.5<" in page) == (False, True)


@pytest.mark.parametrize(
    "phase, facts, judge, left",
    [
        ("sampling", {"done": 3, "of": 12}, False, "about 3 min"),
        ("sampling", {"done": 3, "of": 12}, True, ""),  # how long the judge takes is unknown
        ("scoring", {"done": 6, "of": 12}, True, "about 1 min"),
        ("sampling", {"done": 0, "of": 12}, False, ""),
        ("sampling", {"done": 3, "of": 12, "since": None}, False, ""),  # written by an earlier release
        ("loading", {}, False, ""),
    ],
)
def test_the_time_left_of_a_head_to_head_is_shown_where_it_is_known(researcher, get, phase, facts, judge, left):
    run, attempt = begun(researcher, kind="eval")
    if judge:
        with_judge(run)
    said(attempt, phase, **facts)
    header = text(get("live", run))
    assert ("<dt>Time left</dt>" in header) == bool(left)
    assert f"<dt>Time left</dt><dd>{left}</dd>" in header or not left


def time_left(response):
    """What the header says of the time left, read aloud."""
    (words,) = re.findall(r"<dt>Time left</dt><dd>(.*?)</dd>", text(response), re.DOTALL)
    return re.sub(r"<[^>]*>|\n", "", words)


def metrics(attempt, *times):
    """One training step at each of these seconds."""
    lines = [{"step": step, "at": at, "reward": 0.5} for step, at in times]
    attempts.record(attempt=attempt, batch=batches.Batch(metrics=lines, offsets={}))


def test_the_parent_of_a_checkpoint_is_the_one_that_its_phase_began_with(researcher):
    names = [("listen", ""), ("crew", ""), ("imposter", "phase listen")]
    made = [{"name": name, "steps": 2, "begin": begin, "opponents": []} for name, begin in names]
    run, attempt = begun(researcher, game="among_us", config=in_turns(researcher, made).config)
    facts = {"kind": "full", "path": "p", "sha256": "0" * 64}
    saved = [{**facts, "step": step, "name": f"c{step}"} for step in (2, 4, 5, 6)]
    attempts.record(attempt=attempt, batch=batches.Batch(checkpoints=saved, offsets={}))
    parents = {each.step: each.parent and each.parent.step for each in run.checkpoints.select_related("parent")}
    assert parents == {2: None, 4: 2, 5: 2, 6: 5}


def test_the_time_left_of_training_counts_from_this_attempt(researcher, get):
    run, attempt = begun(researcher, steps=20)
    said(attempt)
    assert time_left(get("live", run)) == "—no step yet"
    metrics(attempt, (1, 1000.0), (2, 1120.0))
    assert "<dd>about 36 min</dd>" in text(get("live", run)), "18 steps of 120 s"
    Run.objects.filter(pk=run.pk).update(state="queued")
    run.attempts.update(state="lapsed")
    second = attempts.claim(run_id=run.pk, worker="w:2:2", host="here")
    assert time_left(get("live", run)) == "—no step yet", "the speed of an attempt that has ended is not shown"
    attempts.started(attempt=second, pid=2, pid_started=1.0, start_step=2, code_version="")
    said(second)
    assert time_left(get("live", run)) == "—no step yet"
    metrics(second, (3, 90_000.0))
    assert time_left(get("live", run)) == "—no estimate", "the night between two attempts is not a step's time"
    metrics(second, (4, 90_060.0))
    assert "<dd>about 16 min</dd>" in text(get("live", run)), "16 steps of 60 s"


def test_after_the_last_step_the_time_left_is_that_of_the_head_to_head(researcher, get):
    run, attempt = begun(researcher, steps=2)
    metrics(attempt, (1, 1000.0), (2, 1120.0))
    said(attempt, "evaluating", done=2, of=8)
    assert "<dd>about 3 min</dd>" in text(get("live", run)), "6 of 30 s each"


def test_a_head_to_head_after_the_last_step_waits_for_no_step(researcher, get):
    run, attempt = begun(researcher, steps=3)
    metrics(attempt, (1, 1000.0), (2, 1120.0), (3, 1240.0))
    attempts.give_back(attempt=attempt, exit_code=1, why="it crashed")
    second = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    attempts.started(attempt=second, pid=2, pid_started=1.0, start_step=3, code_version="")
    said(second, "evaluating", done=0, of=8)
    assert time_left(get("live", run)) == "—no estimate"
    assert "no step yet" not in text(get("live", run))


def lapse(attempt):
    Attempt.objects.filter(pk=attempt.pk).update(lease_until="2026-01-01T00:00:00Z")
    assert attempts.lapse_overdue() == 1


@pytest.mark.parametrize(
    "end, why",
    [(lambda attempt: attempts.give_back(attempt=attempt, exit_code=1, why="it crashed"), "it crashed"),
     (lapse, "the worker w:1:1 was silent for ")],
)  # fmt: skip
@pytest.mark.parametrize("number", [2, 3])
def test_an_attempt_says_what_ended_the_last_one_and_where_it_continues(researcher, get, end, why, number):
    run, attempt = begun(researcher, steps=20)
    metrics(attempt, (1, 1000.0), (2, 1120.0), (3, 1240.0))
    end(attempt)
    second = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    if number > 2:
        attempts.renumber(attempt=second, number=number)
    note = f"<strong>Attempt 1 was interrupted</strong>: {why}"
    waiting = text(get("live", run))
    assert note in waiting
    assert f"Attempt {number} is starting." in waiting
    attempts.started(attempt=second, pid=2, pid_started=1.0, start_step=2, code_version="")
    waiting = text(get("live", run))
    assert note in waiting
    assert f"Attempt {number} continues from step 2." in waiting
    metrics(second, (3, 2000.0))
    assert "was interrupted" not in text(get("live", run))


def test_steps_that_are_read_after_an_attempt_are_not_taken_for_its_own(researcher):
    """Between the two reads the process starts at step 3 and its attempt gets steps 1 to 3 of the one before."""
    run, attempt = begun(researcher, steps=20)
    attempts.give_back(attempt=attempt, exit_code=1, why="it crashed")
    second = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    before = Attempt.objects.get(pk=second.pk)
    attempts.started(attempt=second, pid=2, pid_started=1.0, start_step=3, code_version="")
    metrics(second, (1, 1000.0), (2, 1120.0), (3, 1240.0))
    rows = list(run.metrics.values_list("step", "at", "values", "fence"))
    assert pulse.of_attempt(rows, before) == []


def test_the_empty_evaluation_leads_to_the_setting_and_to_a_head_to_head(researcher, get, client_of):
    run = make_run(researcher)
    checkpoint = make_checkpoint(run)
    page = text(get("evaluation", run))
    assert "evaluate.every" not in page
    setting = f"{reverse('runs:new')}?clone={run.pk}&amp;section=evaluate"
    measure = f"{reverse('runs:new')}?preset=eval&amp;checkpoint={checkpoint.pk}"
    assert f'href="{setting}#section-evaluate">“evaluate · every”</a>' in page
    assert f'href="{measure}"' in page
    form = text(client_of(researcher).get(setting.replace("&amp;", "&")))
    section = form[form.index('<details id="section-evaluate"') :]
    assert section.startswith('<details id="section-evaluate" open')
    assert ">evaluate · every</label>" in section[: section.index("</details>")]
