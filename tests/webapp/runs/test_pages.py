"""The pages of runs: what they show, what they refuse, and that text from models is never markup."""

import io
import json
import re
import time
import zipfile

import pytest
from django.urls import reverse

from tests.webapp.runs.making import RECORD, make_checkpoint, make_episode, make_run
from training.config import RunConfig
from training.errors import BadInput
from training.event_files import TO_WANDB
from webapp.runs import attempts, batches, services
from webapp.runs.models import Checkpoint, Run
from webapp.runs.querysets import SORTS
from webapp.runs.summaries import evaluation

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(researcher, client_of):
    client = client_of(researcher)

    def get(name, *args, query="", **headers):
        return client.get(reverse(f"runs:{name}", args=args) + query, headers=headers)

    get.client = client
    return get


def body(response):
    assert response.status_code in {200, 286}, response.status_code
    return response.content.decode()


@pytest.fixture
def live_run(researcher):
    """A run in the middle of training, as a worker has left it a moment ago."""
    run = make_run(researcher, state="queued", steps=20)
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=0, code_version="abc")
    now = time.time()
    lines = [
        {
            "step": n,
            "at": now + 2 * n,
            "reward": n / 10,
            "kl": 0.1,
            "sampling_tokens_per_s": 100.0,
            "odd": 1.0,
            "sync_s": 1,
        }
        for n in range(1, 6)
    ]
    attempts.record(attempt=attempt, batch=batches.Batch(metrics=lines, offsets={"metrics.jsonl": 1}, log="hello\n"))
    attempts.beat(attempt=attempt, status={"phase": "sampling", "at": now - 90, "steps": 20, "done": 3, "of": 16})
    run.refresh_from_db()
    return run


def test_the_list_filters_and_sorts_and_its_address_says_so(page, researcher):
    make_run(researcher, name="alpha", state="failed", key_metric=0.2)
    make_run(researcher, name="beta", state="succeeded", key_metric=0.9)
    make_run(researcher, name="served", kind="serve")
    everything = body(page("list"))
    assert "alpha" in everything
    assert "beta" in everything
    assert "served" not in everything
    kinds = everything.split('<select name="kind">')[1].split("</select>")[0]
    assert re.findall(r'<option value="(\w*)"[^>]*>([^<]*)', kinds) == [
        ("", "all"),
        ("train", "self-play training"),
        ("sft", "cold start"),
        ("eval", "evaluation"),
        ("suite", "evaluation suite"),
    ]
    assert "beta" not in body(page("list", query="?state=failed"))
    assert "alpha" not in body(page("list", query="?q=bet"))
    up = body(page("list", query="?sort=metric"))
    down = body(page("list", query="?sort=-metric"))
    assert up.index("alpha") < up.index("beta")
    assert down.index("beta") < down.index("alpha")
    assert "No run matches" in body(page("list", query="?state=queued"))


@pytest.mark.parametrize("name", [*SORTS, *(f"-{name}" for name in SORTS), "nonsense"])
def test_every_column_sorts(page, researcher, name):
    make_run(researcher)
    assert "made" in body(page("list", query=f"?sort={name}"))


def test_an_empty_list_names_the_next_step(page):
    assert "Start a quick trial" in body(page("list"))
    assert "There is no checkpoint yet" in body(page("checkpoints"))


def test_htmx_gets_the_rows_only(page, researcher):
    make_run(researcher)
    part = body(page("list", **{"hx-request": "true"}))
    assert "made" in part
    assert "<html" not in part


def test_the_header_states_the_progress(page, live_run):
    shown = body(page("detail", live_run.pk))
    assert "No progress for 1 min" in shown
    assert "in phase sampling" in shown
    assert "3 of 16" in shown
    assert "<dd>100</dd>" in shown
    assert "<dd>about 30 s</dd>" in shown, "15 steps of 2 s are left"


def test_the_header_lists_the_processes_of_a_run_that_has_several(page, live_run):
    assert "Processes" not in body(page("live", live_run.pk))
    attempt = live_run.attempts.get()
    rank = {
        "name": "learner 0", "node": "<b>here", "pid": 7, "state": "serving", "doing": "learning", "waiting_s": 75.0,
        "rss_bytes": 3 * 2**30, "gpu_bytes": 5 * 2**30, "cores": 1.26, "gpu_busy": 0.87, "restarts": 2,
        "device": "cuda:0",
    }  # fmt: skip
    lost = {"name": "engine 0", "state": "lost", "doing": ""}
    off = "the clock of node n2 <b> (10.0.0.6) is 40 s behind"
    attempt.status |= {"processes": [rank, lost], "warnings": [off]}
    attempt.save(update_fields=["status"])
    shown = " ".join(body(page("live", live_run.pk)).split())
    for text in (
        "learner 0",
        "restarted&nbsp;2&nbsp;×",
        "Activity",
        "Last progress",
        "Host memory",
        "learning",
        "1 min 15 s ago",
        "3.0 GB",
        "5.0 GB",
        ">1.3<",
        "87 %",
        "&lt;b&gt;here",
        "<strong>lost</strong>",
        "<strong>Warning:</strong> the clock of node n2 &lt;b&gt; (10.0.0.6) is 40 s behind",
    ):
        assert text in shown, text
    attempt.status |= {"processes": [rank | {"gpu_busy": None}]}
    attempt.save(update_fields=["status"])
    assert " %" not in body(page("live", live_run.pk)).split("Host memory")[1], "its use of the GPU is unknown"
    attempt.status |= {"processes": [{"name": "x", "of": "another release"}]}
    attempt.save(update_fields=["status"])
    assert "Processes" not in body(page("live", live_run.pk))


UNKNOWN = '<span aria-hidden="true">—</span><span class="unseen">{}</span>'


def test_a_process_without_figures_has_no_zeros_and_one_that_has_just_progressed_says_so(page, live_run):
    busy = {"name": "engine 0", "node": "n1", "pid": 7, "state": "serving", "doing": "sampling", "requests": 3}
    idle = {"name": "learner 0", "node": "n1", "pid": 8, "state": "serving", "doing": "waiting for the driver"}
    used = {"rss_bytes": 2**30, "device": "cuda:0", "gpu_busy": 0.0}
    attempt = live_run.attempts.get()
    attempt.status |= {
        "processes": [{"name": "engine 1", "doing": "starting", "requests": 0}, busy | used, idle | {"rss_bytes": 1}]
    }
    attempt.save(update_fields=["status"])
    _, starting, sampling, waiting = " ".join(body(page("live", live_run.pk)).split()).split('<th scope="row">')
    assert starting.count(UNKNOWN.format("starting")) == 8
    assert "bytes" not in starting
    for text in ("0 s ago", ">0.0<", "1.0 GB", "0 %", "0 bytes"):
        assert text in sampling.replace("\xa0", " "), text
    assert UNKNOWN.format("no work") in waiting
    assert UNKNOWN.format("not an engine") in waiting
    attempt.status |= {"processes": [{"name": "engine 1", "doing": "loading the model", "rss_bytes": 2**30}]}
    attempt.save(update_fields=["status"])
    assert "no GPU" not in body(page("live", live_run.pk)), "it reports its memory before its device is known"
    assert waiting.count(UNKNOWN.format("no GPU")) == 2


def test_processes_that_the_configuration_states_are_listed_before_they_run(page, live_run):
    attempt = live_run.attempts.get()
    attempt.status = {"phase": "loading"}
    attempt.save(update_fields=["status"])
    cluster = {"learners": 1, "engines": 2}
    Run.objects.filter(pk=live_run.pk).update(config={**live_run.config, "cluster": cluster})
    shown = body(page("live", live_run.pk))
    assert [name in shown for name in ("learner 0", "learner 1", "engine 1")] == [True, False, True]
    Run.objects.filter(pk=live_run.pk).update(config={**live_run.config, "cluster": cluster | {"engines": 0}})
    assert "Processes" not in body(page("live", live_run.pk)), "the number is chosen when they start"


def test_a_resumed_run_shows_nothing_of_the_attempt_that_has_ended(page, live_run):
    live_run.attempts.update(state="ended")
    Run.objects.filter(pk=live_run.pk).update(state="stopped")
    over = body(page("live", live_run.pk))
    assert "<dd>100</dd>" in over, "the speed of a run that is over is its last one"
    services.resume_run(run=live_run)
    for state, step in (("queued", "queued"), ("starting", "claimed"), ("running", "with a heartbeat")):
        if step == "claimed":
            second = attempts.claim(run_id=live_run.pk, worker="w:2:2", host="here")
        if step == "with a heartbeat":
            attempts.started(attempt=second, pid=2, pid_started=1.0, start_step=4, code_version="")
            attempts.beat(attempt=second, status={"phase": "sampling", "at": time.time(), "steps": 20})
        shown = body(page("live", live_run.pk))
        assert f'state-{state}"' in shown
        assert "No progress" not in shown
        assert shown.count(UNKNOWN.format("no step yet")) == 2, "tokens per second, time left"
        assert shown.count(UNKNOWN.format("not reported yet")) == (0 if state == "running" else 2), "phase, progress"
    line = {"step": 5, "at": time.time(), "learning_tokens_per_s": 70.0}
    attempts.record(attempt=second, batch=batches.Batch(metrics=[line], offsets={}))
    assert "<dd>70</dd>" in body(page("live", live_run.pk))


def test_columns_of_gpus_are_left_out_once_every_process_has_reported_another_device(page, live_run):
    attempt = live_run.attempts.get()
    unknown = {"name": "engine 0", "requests": 0}
    cpu = {"name": "learner 0", "node": "n1", "pid": 7, "state": "serving"}
    for processes, shown in (
        ([unknown, cpu], True),
        ([unknown | {"node": "n1", "pid": 8}, cpu], False),
        ([unknown | {"restarts": 1}, cpu], False),
        ([unknown | {"state": "lost"}, cpu], False),
        ([unknown | {"pid": 8, "device": "cuda:0"}, cpu], True),
    ):
        attempt.status |= {"processes": processes}
        attempt.save(update_fields=["status"])
        table = body(page("live", live_run.pk))
        cells = table.split("<tbody>")[1].split("</tbody>")[0].count("<td")
        assert ("GPU memory" in table, cells) == (shown, 2 * (9 if shown else 7)), processes


def test_the_table_of_processes_says_where_the_driver_is(page, live_run):
    attempt = live_run.attempts.get()
    attempt.status |= {"processes": [{"name": "engine 0"}]}
    attempt.save(update_fields=["status"])
    assert "The driver is process 1 on here." in body(page("live", live_run.pk))
    live_run.attempts.update(pid=None)
    assert "The driver is starting." in body(page("live", live_run.pk))


def test_the_header_and_the_curves_name_the_phases(page, live_run):
    assert "<dt>Training phase</dt>" not in body(page("detail", live_run.pk))
    phases = [{"name": "<b>L", "steps": 2}, {"name": "RL", "steps": 3}, {"name": "turns", "steps": 15}]
    Run.objects.filter(pk=live_run.pk).update(config={**live_run.config, "phases": phases})
    for step, shown in (
        (0, "&lt;b&gt;L (1 of 3)"),
        (1, "&lt;b&gt;L (1 of 3)"),
        (2, "RL (2 of 3)"),
        (20, "turns (3 of 3)"),
    ):
        Run.objects.filter(pk=live_run.pk).update(step=step)
        assert f"<dt>Training phase</dt><dd>{shown}</dd>" in body(page("live", live_run.pk))
    assert "RL after step 2, turns after step 5" in body(page("detail", live_run.pk, query="?tab=curves"))
    data = json.loads(body(page("metrics", live_run.pk)))
    assert data["phases"] == [{"name": "<b>L", "start": 0}, {"name": "RL", "start": 2}, {"name": "turns", "start": 5}]


def test_the_header_asks_on_until_the_run_is_over(page, live_run):
    assert page("live", live_run.pk).status_code == 200
    Run.objects.filter(pk=live_run.pk).update(state="succeeded")
    assert page("live", live_run.pk).status_code == 286
    assert "every 2s" not in body(page("detail", live_run.pk))


def test_the_buttons_are_replaced_only_when_the_state_has_changed(page, live_run):
    assert "hx-swap-oob" not in body(page("live", live_run.pk, query="?state=running"))
    assert "hx-swap-oob" in body(page("live", live_run.pk, query="?state=starting"))


def test_metrics_come_as_columns_and_only_the_new_ones(page, live_run):
    data = json.loads(body(page("metrics", live_run.pk)))
    assert data["steps"] == [1, 2, 3, 4, 5]
    assert data["series"]["reward"] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert [group["title"] for group in data["groups"]] == ["Outcome", "Learning", "Machine", "Other"]
    later = json.loads(body(page("metrics", live_run.pk, query="?since=3&attempt=1")))
    assert (later["from"], later["steps"]) == (3, [4, 5])
    for wrong in ("?since=x", "?since=1&attempt=x"):
        assert page("metrics", live_run.pk, query=wrong).status_code == 404


def resumed(run, number, start_step):
    """A further attempt that has begun at a step."""
    Run.objects.filter(pk=run.pk).update(state="queued")
    run.attempts.update(state="lapsed")
    attempt = attempts.claim(run_id=run.pk, worker=f"w:{number}:{number}", host="here")
    attempts.started(attempt=attempt, pid=number, pid_started=1.0, start_step=start_step, code_version="")
    return attempt


def learned(attempt, *steps):
    lines = [{"step": step, "at": 1e9, "reward": 0.5} for step in steps]
    attempts.record(attempt=attempt, batch=batches.Batch(metrics=lines, offsets={}))


def test_after_a_resume_the_curve_forgets_what_was_superseded(page, live_run):
    resumed(live_run, 2, start_step=3)
    data = json.loads(body(page("metrics", live_run.pk, query="?since=5&attempt=1")))
    assert (data["from"], data["steps"]) == (3, [])
    assert data["attempts"] == [{"number": 1, "start": 0}, {"number": 2, "start": 3}]


def test_a_curve_that_slept_through_attempts_forgets_what_all_of_them_superseded(page, live_run):
    learned(resumed(live_run, 2, start_step=2), 3, 4)
    learned(resumed(live_run, 3, start_step=4), 5, 6, 7)
    asleep = json.loads(body(page("metrics", live_run.pk, query="?since=5&attempt=1")))
    assert (asleep["from"], asleep["steps"]) == (2, [3, 4, 5, 6, 7])
    awake = json.loads(body(page("metrics", live_run.pk, query="?since=6&attempt=3")))
    assert (awake["from"], awake["steps"]) == (6, [7])


def test_an_attempt_without_a_process_supersedes_nothing_yet(page, live_run):
    Run.objects.filter(pk=live_run.pk).update(state="queued")
    live_run.attempts.update(state="lapsed")
    second = attempts.claim(run_id=live_run.pk, worker="w:2:2", host="here")
    before = json.loads(body(page("metrics", live_run.pk, query="?since=5&attempt=1")))
    assert (before["from"], len(before["attempts"])) == (5, 1)
    attempts.started(attempt=second, pid=2, pid_started=2.0, start_step=3, code_version="")
    assert json.loads(body(page("metrics", live_run.pk, query="?since=5&attempt=1")))["from"] == 3


def test_many_points_are_thinned_but_the_newest_and_the_bad_stay(researcher, live_run):
    from webapp.runs.models import Metric

    rows = [Metric(run=live_run, step=n, fence=1, at="2026-01-01T00:00:00Z", values={}) for n in range(6, 5004)]
    rows[7 - 6].values = {"bad_steps": 1.0}
    Metric.objects.bulk_create(rows)
    steps = [step for step, _, _ in live_run.metrics.since(-1, limit=1000)]
    assert steps == [6, 7, *range(12, 5004, 6), 5003]


def test_a_conversation_reads_as_a_dialogue(page, researcher):
    episode = make_episode(make_run(researcher))
    listed = body(page("conversations", episode.run_id))
    assert "Step 1, no. 0" in listed
    assert "has this outcome" in body(page("conversations", episode.run_id, query="?outcome=error"))
    shown = body(page("conversation", episode.run_id, 1, 0))
    for text in (
        "hello",
        "think of it",
        "&lt;deal&gt;",
        "this tag is not closed",
        "refused",
        "advantage 0.8",
        "Ann",
        "Bob",
    ):
        assert text in shown


def test_tokens_are_tinted_by_advantage(page, researcher):
    episode = make_episode(make_run(researcher, base="none"))
    shown = body(page("tokens", episode.run_id, 1, 0))
    assert 'class="tk masked" title="read, not sampled · id 1"' in shown
    assert (
        'class="tk up-4" title="advantage +0.800 · log-prob -0.250 · trainer -0.260 · value (token) 0.500 · id 2"'
        in shown
    )
    assert 'class="tk down-2" title="advantage -0.400' in shown
    assert "<span>turn 0</span> <span>advantage 0.8</span>" in shown


def test_a_strategy_stands_before_what_its_seat_said(page, researcher):
    record = json.loads(json.dumps(RECORD))
    record["episode"]["turns"][0]["strategy"] = "ask for <b>food</b> first"
    episode = make_episode(make_run(researcher), record=record)
    shown = body(page("conversation", episode.run_id, 1, 0))
    said = record["episode"]["moves"][0]["move"]["text"]
    assert shown.count("Strategy, private to this seat") == 1
    assert shown.index("ask for &lt;b&gt;food&lt;/b&gt; first") < shown.index(f'<p class="utterance">{said}')


def test_a_conversation_whose_file_is_gone_is_not_found(page, researcher):
    from django.core.files.storage import default_storage

    episode = make_episode(make_run(researcher))
    default_storage.delete(episode.file)
    assert page("conversation", episode.run_id, 1, 0).status_code == 404


def test_text_from_a_model_is_never_markup(page, researcher):
    payload = "<img src=x onerror=alert(1)><script>alert(1)</script>{{ 7|add:7 }}"
    record = json.loads(
        json.dumps(RECORD).replace('"hello"', json.dumps(payload)).replace('"Ann"', json.dumps(payload))
    )
    run = make_run(researcher, name=payload, error=payload)
    make_episode(run, record=record)
    for name, args in (
        ("list", ()),
        ("detail", (run.pk,)),
        ("conversations", (run.pk,)),
        ("conversation", (run.pk, 1, 0)),
        ("tokens", (run.pk, 1, 0)),
        ("configuration", (run.pk,)),
        ("lineage", (run.pk,)),
        ("log", (run.pk,)),
    ):
        shown = body(page(name, *args))
        assert "<img src=x" not in shown, name
        assert "<script>alert" not in shown, name
        assert "{{ 7|add:7 }}" in shown, name


def test_the_log_shows_the_attempt_that_is_asked_for(page, live_run):
    assert "hello" in body(page("log", live_run.pk))
    assert "no such attempt" in body(page("log", live_run.pk, query="?attempt=7"))
    assert "<html" not in body(page("log", live_run.pk, **{"hx-request": "true"}))


def test_only_the_log_that_is_shown_is_loaded(page, live_run):
    resumed(live_run, 2, start_step=3)
    resumed(live_run, 3, start_step=3)
    answer = page("log", live_run.pk, query="?attempt=1")
    assert "hello" in body(answer)
    loaded = [attempt.number for attempt in answer.context["attempts"] if "log" not in attempt.get_deferred_fields()]
    assert loaded == [1]


def test_a_model_server_is_read_here_and_stopped_with_its_deployment(page, researcher):
    server, run = make_run(researcher, kind="serve", state="running"), make_run(researcher)
    shown = body(page("log", server.pk))
    assert reverse("serving:list") in shown
    for name in ("stop", "resume", "delete"):
        assert reverse(f"runs:{name}", args=[server.pk]) not in shown, name
        assert reverse(f"runs:{name}", args=[run.pk]) in body(page("log", run.pk)), name
    assert "?clone=" not in shown
    for name in ("stop", "resume", "delete"):
        assert page.client.post(reverse(f"runs:{name}", args=[server.pk])).status_code == 404, name
    for action in ("stop", "delete"):
        page.client.post(reverse("runs:bulk"), {"action": action, "run": [server.pk]})
    assert Run.objects.get(pk=server.pk).stop_asked_at is None
    assert page("compare", query=f"?run={run.pk}&run={server.pk}").status_code == 302


@pytest.mark.parametrize("work", [services.stop_run, services.resume_run, services.delete_run])
def test_a_run_that_was_deleted_meanwhile_is_refused(researcher, work):
    run = make_run(researcher)
    Run.objects.filter(pk=run.pk).delete()
    with pytest.raises(BadInput, match="it has been deleted"):
        work(run=run)


def test_stopping_a_run_that_is_being_deleted_is_refused_with_a_reason(page, researcher, monkeypatch):
    run = make_run(researcher)

    def deleted(*, run):
        raise BadInput("it has been deleted", run.name)

    monkeypatch.setattr(services, "stop_run", deleted)
    answer = page.client.post(reverse("runs:stop", args=[run.pk]), follow=True)
    assert "it has been deleted" in answer.content.decode()


def test_a_checkpoint_that_was_deleted_meanwhile_stays_so(researcher):
    checkpoint = make_checkpoint(make_run(researcher))
    for _ in range(2):
        services.delete_checkpoint(checkpoint=checkpoint)
    assert Checkpoint.objects.count() == 0


def test_the_configuration_says_what_each_field_means(page, researcher):
    shown = body(page("configuration", make_run(researcher).pk))
    assert "Peak learning rate of the policy." in shown


def test_a_method_that_is_not_installed_has_the_meanings_of_no_other(page, researcher):
    run = make_run(researcher)
    for name in ("gone", ["mars"]):
        run.config = {**run.config, "method": {"name": name, "gamma": 0.5}}
        run.save()
        shown = body(page("configuration", run.pk))
        section = shown[shown.index("<h3>method</h3>") :].split("</table>")[0]
        assert re.findall(r"<code>(.*?)</code>", section) == ["method"]
        assert "0.5" in section
        assert re.findall(r'<td class="quiet">(.*?)</td>', section) == ["How outcomes become credit."]


def test_the_configuration_is_in_the_order_of_the_schema(page, researcher):
    made = RunConfig(name="made", model={"base": "tiny"}, method={"name": "mars"}).to_dict()
    unknown = {"a": 1, **made, "method": {"a": 2, **made["method"]}}
    run = make_run(researcher, config=unknown)
    run.refresh_from_db()
    assert list(run.config) != list(made), "the database has an order of its own"
    shown = body(page("configuration", run.pk)).split("Started by")[1]
    assert re.findall("<h3>(.*)</h3>", shown) == [*made, "a"]
    (method,) = re.findall("<h3>method</h3>(.*?)</table>", shown, re.DOTALL)
    assert re.findall("<code>(.*?)</code>", method) == [*made["method"], "a"]


def test_a_comparison_shows_where_configurations_differ(page, researcher):
    first, two = make_run(researcher, name="one"), make_run(researcher, name="two")
    Run.objects.filter(pk=two.pk).update(config={**two.config, "seed": 7, "note": None})
    shown = body(page("compare", query=f"?run={first.pk}&run={two.pk}"))
    assert "<code>seed</code>" in shown
    assert "None" not in shown.split("<tbody>")[1].split("</tbody>")[0]
    assert "<code>learn.lr</code>" not in shown
    assert page("compare", query=f"?run={first.pk}").status_code == 302


def test_too_many_runs_are_not_compared_in_part(page, researcher):
    query = "?" + "&".join(f"run={make_run(researcher).pk}" for _ in range(9))
    answer = page.client.get(reverse("runs:compare") + query, follow=True)
    assert "Select two to 8 runs to compare, not 9." in answer.content.decode()


def test_a_head_to_head_shows_intervals_for_both_sides(page, researcher):
    first = {"mean": 0.5, "low": 0.4, "high": 0.6, "n": 10}
    result = {
        "summary": {
            "a": {"points": first},
            "b": {},
            "difference": {"points": first},
            "shared": {"agreement": first},
            "conversations": 100,
            "used": 98,
            "unscored": {"sotopia": 3},
        },
        "conditions": {"seed": 0},
    }
    run = make_run(researcher, kind="eval", result=result)
    attempt = run.attempts.create(number=1, fence=1, lease_until="2026-01-01T00:00:00Z")
    run.events.create(attempt=attempt, kind="evaluation", data={"step": 0, "points": 0.5}, at="2026-01-01T00:00:00Z")
    shown = body(page("evaluation", run.pk))
    assert "During training" not in shown
    for text in ("98 of 100", "[0.4, 0.6]", "sotopia: could not be scored", "Agreement"):
        assert text in shown


def head_to_head_of(researcher, difference, scenarios=40, **config):
    """A head-to-head with these differences, of two models that have names."""
    estimates = {
        name: {"mean": m, "low": low, "high": high, "n": scenarios} for name, (m, low, high) in difference.items()
    }
    summary = {"a": estimates, "b": estimates, "difference": estimates, "shared": {}, "conversations": 2 * scenarios,
               "used": 2 * scenarios, "scenarios": scenarios, "errors": {}, "scored": {}, "unscored": {}}  # fmt: skip
    conditions = {"a": {"title": "omar step 30"}, "b": {"title": "cold <start>"}}
    run = make_run(researcher, kind="eval", result={"summary": summary, "conditions": conditions})
    if config:
        Run.objects.filter(pk=run.pk).update(config={**run.config, "evaluate": config})
    return run


@pytest.mark.parametrize(
    "difference, scenarios, verdict",
    [
        ({"points": (0.02, -0.03, 0.07)}, 40,
         ("No difference of omar step 30 and cold &lt;start&gt; in points is shown: "
          "0.02 ± 0.05 points (95 %) over 40 scenarios.")),
        ({"points": (0.0, 0.0, 0.0)}, 40,
         "The difference of omar step 30 and cold &lt;start&gt; in points is the same over 40 scenarios: 0."),
        ({"points": (6.0, 4.0, 8.0), "won": (0.0, -1.0, 1.0)}, 40,
         "omar step 30 is better than cold &lt;start&gt; in points, by 6.0 ± 2.0 points (95 %) over 40 scenarios."),
        ({"return": (-0.2, -0.35, -0.1)}, 12,
         "cold &lt;start&gt; is better than omar step 30 in return, by 0.20 [0.10, 0.35] (95 %) over 12 scenarios."),
        ({"won/werewolf": (0.18, 0.08, 0.28), "won": (0.5, 0.4, 0.6)}, 60,
         ("omar step 30 is better than cold &lt;start&gt; in games won as werewolf, by 18 ± 10 percentage points "
          "(95 %) over 60 scenarios.")),
    ],
)  # fmt: skip
def test_a_verdict_names_both_models(page, researcher, difference, scenarios, verdict):
    run = head_to_head_of(researcher, difference, scenarios, side=["werewolf"])
    shown = body(page("evaluation", run.pk))
    assert verdict in shown
    assert ("fewer than 30" in shown) == (scenarios < 30)
    assert "cold <start>" not in shown


def test_models_of_the_same_name_are_distinguished(page, researcher):
    run = make_run(researcher, kind="eval", result={"summary": {"a": {}, "b": {}, "difference": {}}})
    shown = body(page("evaluation", run.pk))
    for place in ("(measured)", "(opponent)"):
        assert f"{run.base} {place}" in shown


def test_the_plot_draws_shares_on_one_axis_around_zero(page, researcher):
    run = head_to_head_of(
        researcher, {"won": (0.25, 0.0, 0.5), "parse_rate": (-0.1, -0.2, 0.0), "turns": (4.0, 2.0, 8.0)}
    )
    marks = {row.name: row.mark for row in evaluation.of_run(run)["rows"]}
    # half a plot, less its margin, is 95: for the widest share 0.5, and for turns their own 8
    assert (marks["won"].low, marks["won"].mean, marks["won"].high) == (100, 147.5, 195)
    assert (marks["parse_rate"].low, marks["parse_rate"].mean, marks["parse_rate"].high) == (62, 81, 100)
    assert (marks["turns"].low, marks["turns"].high) == (123.8, 195)
    shown = body(page("evaluation", run.pk))
    assert 'x1="62.0" x2="100.0"' in shown
    assert "Share of replies that could be parsed as a move." in shown
    assert "style=" not in shown.split('class="forest"')[1].split("</figure>")[0]


def test_numbers_of_the_only_role_are_not_repeated(researcher):
    def numbers(**values):
        return {
            name.replace("_as_", "/"): {"mean": v, "low": v - 0.1, "high": v + 0.1, "n": 9}
            for name, v in values.items()
        }

    both = numbers(won=0.5, won_as_wolf=0.5, tasks=0.2, tasks_as_wolf=0.3)
    summary = {"a": both, "b": both, "difference": numbers(won=0, won_as_wolf=0, tasks=0, tasks_as_wolf=0)}
    run = make_run(researcher, kind="eval", result={"summary": summary})
    assert {row.name for row in evaluation.of_run(run)["rows"]} == {"won", "tasks", "tasks/wolf"}


def test_a_runs_page_opens_on_the_tab_that_has_something(page, researcher):
    def tab(run, query=""):
        shown = body(page("detail", run.pk, query=query)).split('class="tabs"')[1].split("</nav>")[0]
        return shown.split('aria-current="page">')[1].split("<")[0]

    assert tab(head_to_head_of(researcher, {"points": (1.0, 0.5, 1.5)})) == "Evaluation"
    assert tab(make_run(researcher, kind="eval", state="running")) == "Evaluation"
    assert tab(make_run(researcher, kind="eval", state="failed", error="no model")) == "Log"
    failed = make_run(researcher, state="failed", error="no model")
    assert tab(failed) == "Log"
    assert tab(failed, "?tab=curves") == "Curves"
    running = make_run(researcher, state="running")
    assert tab(running) == "Curves"
    attempt = running.attempts.create(number=1, fence=1, lease_until="2026-01-01T00:00:00Z")
    running.events.create(
        attempt=attempt, kind="evaluation", data={"step": 2, "a.points": 5}, at="2026-01-01T00:00:00Z"
    )
    assert tab(running) == "Evaluation"
    shown = body(page("detail", running.pk))
    assert "Points, learner" in shown


def trained(researcher, difference, **fields):
    """A training run whose last checkpoint met its own start."""
    head_to_head = head_to_head_of(researcher, difference)
    result, config = head_to_head.result, {**head_to_head.config, "evaluate": {"at_end": True}}
    run = make_run(researcher, steps=20, step=20, result=result, **{"state": "succeeded", **fields})
    Run.objects.filter(pk=run.pk).update(config=config)
    attempt = run.attempts.create(number=1, fence=1, lease_until="2026-01-01T00:00:00Z")
    run.events.create(attempt=attempt, kind="evaluation", data={"step": 20, "a.points": 5}, at="2026-01-01T00:00:00Z")
    return Run.objects.get(pk=run.pk)


def test_a_training_run_shows_its_last_head_to_head_in_words_and_as_a_picture(page, researcher):
    run = trained(researcher, {"points": (6.0, 4.0, 8.0)})
    sentence = "omar step 30 is better than cold &lt;start&gt; in points, by 6.0 ± 2.0 points (95 %) over 40 scenarios."
    shown = body(page("detail", run.pk))  # where a run that has a result opens
    assert shown.count(sentence) == 1
    plot = shown.split('class="forest"')[1].split("</figure>")[0]
    assert 'aria-label="Points: 6, from 4 to 8"' in plot
    assert "During training" not in shown  # one line that says the same again
    others = [body(page("detail", run.pk, query="?tab=curves")), body(page("live", run.pk)), body(page("log", run.pk))]
    for tab in others:
        assert tab.count(sentence) == 1
        assert reverse("runs:evaluation", args=[run.pk]) in tab
    attempt = run.attempts.get()
    run.events.create(attempt=attempt, kind="evaluation", data={"step": 10, "a.points": 3}, at="2026-01-01T00:00:00Z")
    assert "During training" in body(page("evaluation", run.pk))


def test_a_run_without_a_result_says_when_its_head_to_head_follows(page, researcher):
    run = trained(researcher, {"points": (6.0, 4.0, 8.0)}, state="running")
    run.events.all().delete()
    Run.objects.filter(pk=run.pk).update(result=None)
    assert "The head-to-head follows the last training step" in body(page("evaluation", run.pk))
    assert 'class="verdict"' not in body(page("live", run.pk))
    Run.objects.filter(pk=run.pk).update(state="failed", error="the head-to-head after the last step failed: no memory")
    shown = body(page("evaluation", run.pk))
    assert "Resume the run: its head-to-head follows the last training step" in shown
    assert "It failed: the head-to-head after the last step failed: no memory" in shown


def test_a_head_to_head_with_a_judge_shows_both_sides_as_bars_on_each_scale(page, researcher):
    def around(mean):
        return {"mean": mean, "low": mean - 0.5, "high": mean + 0.5, "n": 10}

    summary = {
        "a": {"fine-grained.compromise_seeking": around(7.5), "sotopia.secret": around(-2.5), "points": around(12.5)},
        "b": {"fine-grained.compromise_seeking": around(5.0)},
        "difference": {"fine-grained.compromise_seeking": around(2.5)},
        "conversations": 2, "used": 2,
    }  # fmt: skip
    run = make_run(researcher, kind="eval", result={"summary": summary, "conditions": {}})
    plain, *social = body(page("evaluation", run.pk)).split("<h3>")
    assert "points" in plain
    assert "compromise_seeking" not in plain
    five, seven = social[:2]
    keeping = 'value="0.75" max="1" aria-label="Keeping the secret, tiny (measured), on its scale"'
    assert keeping in seven  # -2.5 of -10 to 0
    assert seven.count("<progress") == 1
    for shown in (
        "Compromise seeking", "0 to 10", "[7.0, 8.0]",
        'value="0.75" max="1" aria-label="Compromise seeking, tiny (measured)',
        "[4.5, 5.5]", 'value="0.5" max="1" aria-label="Compromise seeking, tiny (opponent)', "[2.0, 3.0]",
    ):  # fmt: skip
        assert shown in five


def test_several_runs_are_stopped_deleted_or_compared(page, researcher, other_researcher):
    mine, waiting = make_run(researcher), make_run(researcher, state="queued")
    foreign = make_run(other_researcher)
    address = reverse("runs:bulk")
    ticked = [mine.pk, waiting.pk, foreign.pk]
    stopped = page.client.post(address, {"action": "stop", "run": ticked}, follow=True)
    assert "1 not changed: they belong to somebody else." in stopped.content.decode()
    assert Run.objects.get(pk=waiting.pk).state == "stopped"
    assert page.client.post(address, {"action": "compare", "run": ticked})["Location"].endswith(f"run={foreign.pk}")
    page.client.post(address, {"action": "delete", "run": ticked})
    assert list(Run.objects.all()) == [foreign]
    assert page.client.post(address, {"action": "burn", "run": ticked}).status_code == 404


def test_a_checkpoint_page_shows_where_it_comes_from(page, researcher):
    base = Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="/nowhere")
    run = make_run(researcher)
    parent = make_checkpoint(run, step=5, parent=base)
    child = make_checkpoint(run, step=10, parent=parent)
    shown = body(page("checkpoint", parent.pk))
    tree = shown.split('<ul class="tree">')[1]
    assert tree.index(">tiny<") < tree.index(str(parent)) < tree.index(str(child))
    assert "Play against it" in shown
    assert f"?checkpoint={parent.pk}" in shown


def test_a_checkpoint_page_shows_what_it_scored_with_intervals(page, researcher):
    checkpoint, other = (make_checkpoint(make_run(researcher), step=step, name=f"c{step}") for step in (1, 2))
    summary = {"a": {"points": {"mean": 0.5, "low": 0.4, "high": 0.6}}, "used": 98,
             "difference": {"points": {"mean": 0.1, "low": -0.05, "high": 0.25}}}  # fmt: skip
    common = {"kind": "eval", "start_checkpoint": checkpoint}
    make_run(researcher, name="held", opponent_checkpoint=other, result={"summary": summary}, **common)
    make_run(researcher, name="to be held", state="queued", **common)
    shown = body(page("checkpoint", checkpoint.pk))
    for text in ("[0.4, 0.6]", "[-0.05, 0.25]", ">98<", ">c2<", "to be held"):
        assert text in shown


def test_the_opponents_page_shows_the_head_to_head_with_the_sign_reversed(page, researcher):
    a, b = make_checkpoint(make_run(researcher), name="c1"), make_checkpoint(make_run(researcher), name="c2")
    summary = {"a": {"points": {"mean": 0.5, "low": 0.4, "high": 0.6}}, "used": 98,
             "b": {"points": {"mean": 0.375, "low": 0.25, "high": 0.45}},
             "difference": {"points": {"mean": 0.125, "low": -0.05, "high": 0.35}}}  # fmt: skip
    make_run(
        researcher, kind="eval", start_checkpoint=a, opponent_checkpoint=b, name="held", result={"summary": summary}
    )
    shown = body(page("checkpoint", b.pk)).split("<h2>Head-to-heads</h2>")[1]
    for text in (">held<", ">c1<", "0.375", "[0.25, 0.45]", "-0.125", "[-0.35, 0.05]"):
        assert text in shown
    assert ">c2<" not in shown.split("</table>")[0]


def test_a_checkpoint_can_be_served_from_its_page(page, researcher):
    from webapp.serving.models import Deployment

    checkpoint = make_checkpoint(make_run(researcher))
    address = reverse("serving:serve", args=[checkpoint.pk])
    assert address in body(page("checkpoint", checkpoint.pk))
    assert page.client.post(address).status_code == 302
    Deployment.objects.update(state="ready")
    shown = body(page("checkpoint", checkpoint.pk))
    assert address not in shown
    assert "Served: ready" in shown


def test_the_notice_of_a_base_model_is_shown_for_all_its_descendants(page, researcher, tmp_path):
    said = "dequantised from 4 bits"
    base = Checkpoint.objects.create(name="smollm2-135m", kind="base", base="smollm2-135m", path="/nowhere")
    run = make_run(researcher, base="smollm2-135m", result={"summary": {"used": 1}, "conditions": {}}, kind="eval")
    trained = make_checkpoint(run, base="smollm2-135m", parent=base)
    for checkpoint in (base, trained):
        assert said in body(page("checkpoint", checkpoint.pk))
    assert said in body(page("evaluation", run.pk))
    plain = make_checkpoint(make_run(researcher), name="c2", base="qwen2.5-0.5b")
    assert "needs download" not in body(page("checkpoint", plain.pk))
    (tmp_path / "parley.json").write_text(json.dumps({"name": "own", "base": "own", "note": "rounded to 3 bits"}))
    base = Checkpoint.objects.create(name="own", kind="base", base="own", path=str(tmp_path))
    assert "rounded to 3 bits" in body(page("checkpoint", base.pk))


def test_a_result_says_of_each_side_what_has_to_be_said(page, researcher):
    conditions = {"a": {"note": "dequantised from 4 bits"}, "b": {"note": "pretrained on scripted players"}}
    run = make_run(researcher, kind="eval", result={"summary": {"used": 2}, "conditions": conditions})
    head = body(page("evaluation", run.pk)).split("<tbody>")[0]
    assert "tiny (measured): dequantised from 4 bits." in head
    assert "tiny (opponent): pretrained on scripted players." in head


def test_a_checkpoint_downloads_as_a_zip(page, researcher):
    import io
    import zipfile

    checkpoint = make_checkpoint(make_run(researcher), name="run-x-step-5")
    response = page("download", checkpoint.pk)
    archive = zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content)))
    assert archive.testzip() is None
    assert {name: archive.read(name) for name in archive.namelist()} == {
        "config.json": b"{}",
        "model.safetensors": b"weights",
    }


def test_a_checkpoint_whose_folder_is_gone_is_not_found(page, researcher):
    from webapp.core import files

    checkpoint = make_checkpoint(make_run(researcher), name="run-y-step-5")
    files.delete_folder(checkpoint.path)
    assert page("download", checkpoint.pk).status_code == 404


@pytest.mark.parametrize(
    "query, names",
    [
        ("", ["c", "b", "a"]),
        ("?sort=-age", ["a", "b", "c"]),
        ("?sort=name", ["a", "b", "c"]),
        ("?sort=-reward", ["b", "a", "c"]),
        ("?sort=step", ["c", "a", "b"]),
        ("?sort=run", ["c", "b", "a"]),
        ("?sort=nonsense", ["c", "b", "a"]),
        ("?sort=name&q=A", ["a", "b", "c"]),
        ("?q=b&kind=full", ["b"]),
        ("?base=other", []),
    ],
)
def test_checkpoints_are_filtered_and_sorted_by_their_address(page, researcher, query, names):
    run = make_run(researcher, name="a run")
    for name, step, metrics in (("a", 10, {"reward": 0.5}), ("b", 20, {"reward": 2}), ("c", 5, {})):
        make_checkpoint(run, name=name, step=step, metrics=metrics)
    answer = page("checkpoints", query=query)
    assert [checkpoint.name for checkpoint in answer.context["page"]] == names
    assert ("No checkpoint matches" in body(answer)) == (not names)


def test_players_see_open_checkpoints_only(player, client_of, researcher):
    run = make_run(researcher)
    make_checkpoint(run, step=1, name="shut", base="in-secret")
    opened = make_checkpoint(run, step=2, name="ajar", open_to_players=True)
    client = client_of(player)
    listed = client.get(reverse("runs:checkpoints")).content.decode()
    assert "ajar" in listed
    assert "shut" not in listed
    assert "in-secret" not in listed, "not even as a choice of the filter"
    shown = client.get(reverse("runs:checkpoint", args=[opened.pk])).content.decode()
    assert "Download" not in shown
    assert "Lineage" not in shown


def test_where_a_checkpoint_comes_from_and_what_it_scores_is_for_researchers(page, player, client_of, researcher):
    run = make_run(researcher, name="my own run")
    made = make_checkpoint(run, step=21, name="b", open_to_players=True, metrics={"reward": 0.875}, sha256="e" * 64)
    better = make_checkpoint(run, step=22, name="a", open_to_players=True, metrics={"reward": 0.9})
    client, first, every = client_of(player), reverse("runs:checkpoint", args=[made.pk]), reverse("runs:checkpoints")
    for address, hidden in ((first, ["my own run", "0.875", "e" * 64]), (every, ["my own run", "0.875"])):
        theirs, researchers = (who.get(address).content.decode() for who in (client, page.client))
        assert [text for text in [*hidden, "Saved"] if text in theirs] == []
        assert [text for text in [*hidden, "Saved"] if text not in researchers] == []
        assert "21" in theirs
    for hidden in ("reward", "-reward", "age", "-age", "run"):
        order = [checkpoint.name for checkpoint in client.get(f"{every}?sort={hidden}").context["page"]]
        assert order == (["b", "a"] if hidden.startswith("-") else ["a", "b"]), "sorted by name instead"
    assert [c.name for c in page("checkpoints", query="?sort=reward").context["page"]] == [made.name, better.name]


def test_sharing_opens_and_closes(page, researcher):
    checkpoint = make_checkpoint(make_run(researcher))
    for value, expected in (("1", True), ("0", False)):
        page.client.post(reverse("runs:share", args=[checkpoint.pk]), {"open": value})
        checkpoint.refresh_from_db()
        assert checkpoint.open_to_players is expected


def test_deleting_what_is_used_says_by_what(page, researcher):
    checkpoint = make_checkpoint(make_run(researcher))
    user = make_run(researcher, name="needs it", start_checkpoint=checkpoint)
    response = page.client.post(reverse("runs:delete-checkpoint", args=[checkpoint.pk]), follow=True)
    assert f"still used by run {user}" in response.content.decode()
    assert Checkpoint.objects.filter(pk=checkpoint.pk).exists()


def test_a_checkpoint_that_was_only_served_can_be_deleted_with_its_run(page, researcher):
    run = make_run(researcher)
    checkpoint = make_checkpoint(run)
    server = make_run(researcher, kind="serve", state="running", start_checkpoint=checkpoint)
    answer = page.client.post(reverse("runs:delete", args=[run.pk]), follow=True)
    assert "it is being served: stop its deployment first" in answer.content.decode()
    assert Run.objects.count() == 2
    Run.objects.filter(pk=server.pk).update(state="stopped")
    page.client.post(reverse("runs:delete", args=[run.pk]))
    assert (Run.objects.count(), Checkpoint.objects.count()) == (0, 0)


def test_a_run_that_is_alive_is_not_deleted(page, live_run):
    response = page.client.post(reverse("runs:delete", args=[live_run.pk]), follow=True)
    assert "stop it first" in response.content.decode()
    assert Run.objects.filter(pk=live_run.pk).exists()


@pytest.mark.parametrize("action", ["stop", "resume", "pin", "archive"])
def test_a_button_returns_to_the_page_on_which_it_was_pressed(page, researcher, action):
    run, other = make_run(researcher, state="failed"), make_run(researcher, state="failed")
    first, button = reverse("runs:detail", args=[run.pk]), reverse(f"runs:{action}", args=[run.pk])

    def after(came):
        return page.client.post(button, headers={"referer": came} if came else {})["Location"]

    for tab in (reverse("runs:log", args=[run.pk]) + "?attempt=2", f"{first}?tab=curves", first):
        assert after(f"http://testserver{tab}") == tab
    for elsewhere in (
        "",
        "http://[",
        "http://testserver/runs/",
        f"http://testserver{first}../{other.pk}/",
        f"http://testserver{reverse('runs:detail', args=[other.pk])}",
        f"http://testserver//elsewhere.example{first}",
    ):
        assert after(elsewhere) == first
    assert after(f"https://elsewhere.example{first}?tab=curves") == f"{first}?tab=curves", "on this site"


def test_resuming_a_run_that_succeeded_is_refused(page, researcher):
    run = make_run(researcher, state="succeeded")
    response = page.client.post(reverse("runs:resume", args=[run.pk]), follow=True)
    assert "only a stopped or failed run can be resumed" in response.content.decode()
    assert services.stop_run(run=run) == "succeeded"


def test_the_metrics_are_offered_as_an_event_file(page, live_run, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    address = reverse("runs:event-files", args=[live_run.pk])
    assert f'href="{address}"' in body(page("detail", live_run.pk))
    response = page("event-files", live_run.pk)
    assert response["Content-Type"] == "application/zip"
    assert response["Content-Disposition"].startswith("attachment")
    with zipfile.ZipFile(io.BytesIO(b"".join(response.streaming_content))) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    assert (tmp_path / str(live_run.pk) / "to_wandb.py").read_bytes() == TO_WANDB.read_bytes()
    reader = EventAccumulator(str(tmp_path / str(live_run.pk))).Reload()
    events = reader.Scalars("reward")
    assert [event.step for event in events] == [1, 2, 3, 4, 5]
    assert [event.value for event in events] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5])


def test_after_an_alarm_the_page_offers_the_last_good_checkpoint(page, live_run):
    run = live_run
    assert "Continue from checkpoint" not in body(page("detail", run.pk))
    checkpoint = make_checkpoint(run, step=8)
    alarm = {"step": 13, "why": "entropy collapse", "checkpoint": 8}
    run.events.create(attempt=run.attempts.get(), at=run.created_at, kind="watchdog", data=alarm)
    shown = body(page("detail", run.pk))
    assert f"?clone={run.pk}&amp;checkpoint={checkpoint.pk}" in shown
    assert "Continue from checkpoint 8" in shown
    assert "entropy collapse" in shown
    form = body(page("new", query=f"?clone={run.pk}&checkpoint={checkpoint.pk}"))
    assert f'<option value="{checkpoint.pk}" selected>' in form
