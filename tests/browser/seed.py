"""Rows for browser tests, stored by a process of the installation: `python -m tests.browser.seed`.

Each line of its input is a JSON list of a function here and its arguments; the answer is a line with what the test
needs to know, as JSON. What is made in one transaction is over before a worker or the clock can look at it.
"""

import json
import sys
import time
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import django

PEOPLE = {"rosa": "researcher", "otto": "researcher", "pia": "player", "ben": "player", "anna": "annotator"}
NOT_PAGES = {  # fragments of pages, files and data: their pages are visited
    "healthz",
    "docs",  # another program's pages, which test_docs.py visits
    "docs-file",
    "home:running",
    "home:palette",
    "home:tour",
    "runs:live",
    "runs:metrics",
    "runs:event-files",
    "runs:curves-csv",
    "runs:list-csv",
    "runs:comparison-csv",
    "runs:calibration-rows",
    "runs:download",
    "arena:picture",
    "arena:animation",
    "scenarios:export",
    "corpora:export",
    "experiments:export",
    "judgments:search-file",
    "api:openapi-json",
    "api:api-root",
}


def people() -> list[str]:
    """One person of each role, and a second researcher and player."""
    from tests.browser.visitor import PASSWORD
    from webapp.accounts.models import User

    for name, role in PEOPLE.items():
        user = User(username=name, role=role)
        user.set_password(PASSWORD)
        user.save()
    return list(PEOPLE)


def models() -> int:
    """Offer what has been prepared at once; the clock does it every now and then."""
    from webapp.runs.services import register_bases

    return register_bases()


def pages() -> list[dict[str, str]]:
    """Every page that the routes know, with an object of the demo user's behind it where it shows one."""
    from django.db import transaction
    from django.urls import reverse

    from tests.trust.routes import ROUTES
    from webapp.accounts.models import User

    owner = User.objects.get(username="demo")
    names = {route.name for route in ROUTES}
    assert names >= NOT_PAGES, f"not routes any more: {NOT_PAGES - names}"
    pages = []
    for route in ROUTES:
        if route.method != "GET" or route.kind != "page" or route.name in NOT_PAGES:
            continue
        with transaction.atomic():
            arguments = route.make(owner) if route.make else {}
            _hold_leases()
        pages.append({"name": route.name, "address": reverse(route.name, kwargs=arguments)})
    return pages


def _hold_leases() -> None:
    """Give attempts that no worker has claimed a lease of hours: else they lapse, and a worker trains for minutes."""
    from django.db.models.functions import Now

    from webapp.runs.models import Attempt

    Attempt.objects.live().filter(worker="").update(lease_until=Now() + timedelta(hours=9))


def _attempt(run: object, status: dict[str, object], silent_s: float, number: int = 1, **fields: object) -> None:
    """An attempt that reported this status so many seconds ago; nobody takes its lease away."""
    from django.db.models.functions import Now

    from webapp.runs.models import Attempt

    attempt = {"worker": "nobody", "host": "elsewhere", "lease_until": Now() + timedelta(hours=1)}
    progress = {"phase": status["phase"], "status": status, "progressed_at": Now() - timedelta(seconds=silent_s)}
    Attempt.objects.create(run=run, number=number, fence=number, state="running", **attempt, **progress, **fields)


def deduction() -> dict[str, str]:
    """What a run and its games say of a game of deduction: its pages."""
    from tests.trust.matrix.runs import deduced, discussed
    from tests.webapp.arena.deduction import crew_match
    from tests.webapp.runs.making import make_crew_suite
    from webapp.accounts.models import User

    rosa = User.objects.get(username="rosa")
    suites = [make_crew_suite(rosa, model, rate).pk for model, rate in (("RL", 0.4), ("RL+L", 0.55), ("RL+L+S", 0.7))]
    spoken = discussed(rosa)
    return {
        "by role": "/runs/{run_id}/by-role/".format(**deduced(rosa)),
        "conversation": "/runs/{run_id}/conversations/{step}/{number}/".format(**spoken),
        "replay": "/runs/{run_id}/conversations/{step}/{number}/replay/".format(**spoken),
        "suite": f"/runs/{suites[0]}/evaluation/",
        "comparison": "/runs/compare/?" + "&".join(f"run={pk}" for pk in suites),
        "match": f"/play/{crew_match(rosa).pk}/replay/?viewer=-2",
    }


def silent_run() -> int:
    """A running run whose process said something 90 seconds ago."""
    from django.db.models.functions import Now

    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Metric

    run = make_run(User.objects.get(username="rosa"), name="silent", state="running", steps=10, step=2)
    _attempt(run, {"phase": "sampling"}, silent_s=90)
    for step in (1, 2):
        Metric.objects.create(run=run, step=step, fence=1, at=Now(), values={"reward": step / 10, "step_s": 2.0})
    return run.pk


def interrupted() -> int:
    """A running run, which no worker of this site takes, whose first attempt has written steps 1 to 6."""
    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User

    owner = User.objects.get(username="rosa")
    run = make_run(owner, name="interrupted", queue="train-gpu", state="queued", steps=10)
    _attempt_from(run.pk, 0, range(1, 7), reward=0.1)
    return run.pk


def resumed(run: str) -> int:
    """Its second attempt, which goes on after step 3 and has written steps 4 and 5."""
    from django.db import transaction

    from webapp.runs import attempts
    from webapp.runs.models import Attempt

    with transaction.atomic():
        first = Attempt.objects.get(run=int(run))
        attempts.give_back(attempt=first, exit_code=1, why="it crashed")
        _attempt_from(int(run), 3, (4, 5), reward=0.9)
    return int(run)


def resumed_further(run: str) -> int:
    """Steps 6 and 7 of its second attempt."""
    from webapp.runs.models import Attempt

    _record(Attempt.objects.get(run=int(run), number=2), (6, 7), reward=0.9)
    return int(run)


def _attempt_from(run: int, start_step: int, steps: Iterable[int], *, reward: float) -> None:
    from django.db.models.functions import Now

    from webapp.runs import attempts
    from webapp.runs.models import Attempt

    attempt = attempts.claim(run_id=run, worker="nobody", host="elsewhere")
    assert attempt is not None
    attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=start_step, code_version="")
    _record(attempt, steps, reward=reward)
    Attempt.objects.filter(pk=attempt.pk).update(lease_until=Now() + timedelta(hours=1))


def spread_run() -> int:
    """A running run on processes of two nodes, as its heartbeat tells of them: busy, idle, restarted and lost ones."""
    from tests.webapp.runs.making import make_run
    from training.records import ProcessStatus
    from webapp.accounts.models import User

    run = make_run(User.objects.get(username="rosa"), name="spread", state="running", steps=10, step=2)
    ranks = [
        ProcessStatus(
            name=f"learner {number}",
            node="gpu-node-01.cluster.example",
            pid=40_000 + number,
            device=f"cuda:{number}",
            state="serving",
            doing="learning",
            waiting_s=41.5,
            rss_bytes=9_000_000_000,
            gpu_bytes=61_000_000_000,
            cores=1.04,
            gpu_busy=0.87,
        )
        for number in range(2)
    ]
    engines = [
        ProcessStatus(
            name=f"engine {number}",
            node="gpu-node-02.cluster.example",
            pid=50_000 + number,
            device=f"cuda:{number}",
            state=state,
            doing="sampling" if number else "",
            requests=32 * number,
            waiting_s=3.0 * number,
            rss_bytes=5_000_000_000,
            gpu_bytes=70_000_000_000,
            restarts=number,
        )
        for number, state in enumerate(("serving", "serving", "lost"))
    ]
    starting = ProcessStatus(name="engine 3", doing="starting", requests=0)
    processes = [each.to_dict() for each in (*ranks, *engines, starting)]
    late = ["the clock of node gpu-node-02.cluster.example is 12 s behind this machine's"]
    status = {"phase": "sampling", "at": time.time(), "processes": processes, "warnings": late}
    _attempt(run, status, silent_s=0, pid=30_000)
    return run.pk


def tokens() -> str:
    """The page of a conversation's tokens, more than a screen has room for."""
    from tests.webapp.runs.making import RECORD, make_episode, make_run
    from webapp.accounts.models import User

    (trace,), (credit,) = RECORD["episode"]["traces"], RECORD["credit"]
    long = {**trace, **{key: 150 * trace[key] for key in ("tokens", "mask", "turn", "logprobs")}}
    longer = {"advantages": 150 * credit["advantages"], "logprobs": 150 * credit["logprobs"]}
    record = RECORD | {"episode": RECORD["episode"] | {"traces": [long]}, "credit": [credit | longer | {"values": {}}]}
    run = make_run(User.objects.get(username="rosa"), name="long", base="none")
    make_episode(run, record=record)
    return f"/runs/{run.pk}/conversations/1/0/tokens/"


def chatty_run() -> int:
    """A running run whose second attempt has printed more than a screen, after a rank of the first one died."""
    from django.utils.timezone import now

    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Event

    run = make_run(User.objects.get(username="rosa"), name="chatty", state="running", steps=10, step=4)
    first = run.attempts.create(number=1, fence=1, state="ended", exit_code=1, lease_until=now())
    why = "learner rank 0 (process 5754 on gpu-node-01) died while learning"
    Event.objects.create(run=run, attempt=first, at=now(), kind="interrupted", data={"why": why, "died": True})
    log = "\n".join(f"step {number} of 200: reward 0.1" for number in range(1, 201))
    status = {"phase": "starting", "at": time.time()}
    _attempt(run, status, silent_s=0, number=2, pid=30_000, start_step=4, log=log)
    return run.pk


def _record(attempt: Any, steps: Iterable[int], *, reward: float) -> None:
    from webapp.runs import attempts
    from webapp.runs.batches import Batch

    lines = [{"step": step, "at": time.time(), "reward": reward} for step in steps]
    attempts.record(attempt=attempt, batch=Batch(metrics=lines, offsets={"metrics": max(steps)}))


def head_to_head() -> int:
    """A running head-to-head: 3 of 12 conversations in the minute since its first."""
    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User

    run = make_run(User.objects.get(username="rosa"), name="before against after", kind="eval", state="running")
    _attempt(run, {"phase": "sampling", "at": time.time(), "since": time.time() - 60, "done": 3, "of": 12}, silent_s=0)
    return run.pk


def head_to_head_over(run: str) -> int:
    """Its end, as a worker stores it."""
    from tests.webapp.runs.test_running import RESULT
    from webapp.runs import attempts
    from webapp.runs.models import Attempt

    attempts.finish(attempt=Attempt.objects.get(run=int(run)), state="succeeded", exit_code=0, result=RESULT)
    return int(run)


def ended_run(metric: str = "reward") -> int:
    """A run that is over, with one metric of two steps."""
    from django.db.models.functions import Now

    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Metric

    run = make_run(User.objects.get(username="rosa"), name="ended", state="succeeded", steps=2, step=2)
    for step in (1, 2):
        Metric.objects.create(run=run, step=step, fence=1, at=Now(), values={metric: step / 10})
    return run.pk


def curves() -> int:
    """A run that is over, with several metrics of twenty steps; its KL divergence is never above zero."""
    from django.db.models.functions import Now

    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Metric

    run = make_run(User.objects.get(username="rosa"), name="curves", state="succeeded", steps=20, step=20)
    for step in range(1, 21):
        rates = {"reward": (step * 7 % 5) / 5, "agreement": step / 20, "parse_rate": 1.0}
        values = {**rates, "loss": 10 / step, "kl": -0.1}
        Metric.objects.create(run=run, step=step, fence=1, at=Now(), values=values)
    return run.pk


def seeds() -> list[int]:
    """Three runs that differ in their seed."""
    from django.db.models.functions import Now

    from tests.webapp.runs.making import CONFIG, make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Metric

    owner = User.objects.get(username="rosa")
    made = [make_run(owner, name=f"seed {n}", state="succeeded", config={**CONFIG, "seed": n}) for n in range(3)]
    for n, run in enumerate(made):
        for step in range(1, 11):
            Metric.objects.create(run=run, step=step, fence=1, at=Now(), values={"reward": (step + n) / 10})
    return [run.pk for run in made]


def listed(prefix: str) -> list[int]:
    """Three runs of rosa's that are over, whose names begin with `prefix`, with metrics of five steps."""
    from django.db.models.functions import Now

    from tests.webapp.runs.making import CONFIG, make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Metric

    owner, made = User.objects.get(username="rosa"), []
    for n, state in enumerate(("succeeded", "stopped", "failed")):
        config = {**CONFIG, "seed": 40 + n}
        run = make_run(owner, name=f"{prefix} {n}", state=state, config=config, steps=5, step=5, key_metric=0.5 + n)
        for step in range(1, 6):
            values = {"reward": (step + n) / 10, "parse_rate": 0.75}
            Metric.objects.create(run=run, step=step, fence=1, at=Now(), values=values)
        made.append(run.pk)
    return made


SWEPT = [(lr, method) for lr in (1e-5, 3e-5, 1e-4) for method in ("flat", "hierarchical")]
"""Learning rate and advantage of each trial of `swept`."""


def swept(name: str) -> dict[str, int]:
    """A sweep of rosa's whose six trials are over: the reward rises with the learning rate, and its last trial is the
    best. With a run that can be swept, for which no worker is there.
    """
    from django.db.models.functions import Now

    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User
    from webapp.runs.models import Metric
    from webapp.runs.sweeps.models import Sweep, Trial

    owner = User.objects.get(username="rosa")
    fields = [["learn.lr", "1e-5, 3e-5, 1e-4"], ["method.advantage", "flat, hierarchical"]]
    sweep = Sweep.objects.create(name=name, search="grid", metric="reward", goal="max", owner=owner, fields=fields)
    for number, (lr, advantage) in enumerate(SWEPT, 1):
        run = make_run(owner, name=f"{name} {number}", group=name, state="succeeded", steps=2, step=2)
        for step in (1, 2):
            values = {"reward": number * step / 20}
            Metric.objects.create(run=run, step=step, fence=1, at=Now(), values=values)
        Trial.objects.create(
            sweep=sweep, run=run, number=number, values={"learn.lr": lr, "method.advantage": advantage}
        )
    return {"sweep": sweep.pk, "run": make_run(owner, name=f"{name} source", queue="train-gpu").pk}


def ends(name: str, owner: str) -> int:
    """A run whose process fails now, as its worker stores it."""
    from tests.webapp.runs.making import make_run
    from webapp.accounts.models import User
    from webapp.runs import attempts
    from webapp.runs.models import Attempt

    row = make_run(User.objects.get(username=owner), name=name, state="running")
    _attempt(row, {"phase": "sampling"}, silent_s=0)
    attempts.finish(attempt=Attempt.objects.get(run=row), state="failed", exit_code=1, error="out of memory")
    return row.pk


def invitation() -> str:
    """A guest link to the first seat of a table with a scripted player: once the guest agrees, it is their turn."""
    from tests.webapp.arena.conftest import negotiation
    from webapp.accounts.models import User
    from webapp.arena.setup import links, tables

    places = [tables.Place(), tables.Place(scripted="scripted")]
    host = User.objects.get(username="pia")
    match = tables.create(host=host, start=tables.Start(negotiation()), places=places, deadline_s=600)
    return f"/play/guest/{links.invite(match=match, number=0)}/"


def bargain(kind: str) -> str:
    """A table at which pia and a scripted player divide `items`, some with `long names`, or bargain about a `price`."""
    from tests.games.cases.negotiation import price
    from tests.webapp.arena.conftest import negotiation
    from webapp.accounts.models import User
    from webapp.arena.setup import tables

    pia = User.objects.get(username="pia")
    places = [tables.Place(user=pia), tables.Place(scripted="scripted")]
    scenario = price() if kind == "price" else negotiation()
    if kind == "long names":
        text = scenario.model_dump_json()
        longer = {"food": "ornaments", "water": "binoculars", "Ann": "Elisabeth", "Ben": "Bartholomew"}
        for short, name in longer.items():
            text = text.replace(f'"{short}"', f'"{name}"')
        scenario = type(scenario).model_validate_json(text)
    match = tables.create(host=pia, start=tables.Start(scenario), places=places, deadline_s=600, consent=True)
    return f"/play/{match.pk}/"


def game_of(game: str, number: str) -> str:
    """A table at which pia has the first seat of a case of a game, and has not answered about consent; the others are
    scripted where the game has a script."""
    from tests.games.worlds import CASES
    from training.games import lookup
    from training.records import Scenario
    from webapp.accounts.models import User
    from webapp.arena.setup import tables

    cases = CASES[game] if game in CASES else [Scenario(id=game, game=game, seats=("Ada", "Ben"))]
    scenario = cases[int(number)].with_seed(1)
    pia = User.objects.get(username="pia")
    other = tables.Place(scripted="scripted" if lookup(game).script else "random")
    places = [tables.Place(user=pia), *[other] * (len(scenario.seats) - 1)]
    return f"/play/{tables.create(host=pia, start=tables.Start(scenario), places=places, deadline_s=600).pk}/"


def judging() -> str:
    """The page at which anna judges the four seats of two games."""
    from django.db import transaction

    from tests.webapp.judgments.make import finished_match, version
    from webapp.accounts.models import User
    from webapp.judgments.queues import services as queues

    rosa, anna = (User.objects.get(username=name) for name in ("rosa", "anna"))
    with transaction.atomic():
        matches = [finished_match(rosa) for _ in range(2)]
    made = queues.create_queue(
        name="two games", owner=rosa, codebook_version=version(), matches=matches, annotators=[anna]
    )
    return f"/judgments/queues/{made.pk}/annotate/"


def refuse_consent(target: str) -> None:
    """The host refuses the use of the game of a target, which somebody may have open."""
    from webapp.arena.setup import waiting_room
    from webapp.judgments.models import Target

    match = Target.objects.get(pk=target).match
    assert match is not None
    waiting_room.answer_consent(match=match, user=match.host, agreed=False)


def village() -> dict[str, str]:
    """A queue in which anna judges what two villages with werewolves did; rosa has judged them. Its two pages."""
    from django.db import transaction

    from tests.webapp.judgments.make import annotate, rated, version, village_match
    from webapp.accounts.models import User
    from webapp.judgments.queues import services as queues

    rosa, anna = (User.objects.get(username=name) for name in ("rosa", "anna"))
    with transaction.atomic():
        matches = [rated(village_match(rosa, seed=seed), rosa) for seed in (1, 15)]
        made = queues.create_queue(
            name="villages", owner=rosa, codebook_version=version("werewolf-behaviours"), matches=matches,
            annotators=[rosa, anna], how=queues.QueueSettings(order="position"),
        )  # fmt: skip
        for target in made.targets.with_games():
            names = [label_type.name for label_type in target.codebook().labels]
            values = {name: (target.seat + place) % 2 == 1 for place, name in enumerate(names)}
            annotate(target=target, by=rosa, values=values)
    return {"annotate": f"/judgments/queues/{made.pk}/annotate/", "queue": f"/judgments/queues/{made.pk}/"}


def turns_to_label(name: str = "talks") -> dict[str, str]:
    """A queue of a dataset of two conversations whose turns and words anna is to label; its two pages."""
    from tests.webapp.judgments.make import conversation, conversation_queue, imported
    from webapp.accounts.models import User
    from webapp.judgments.codebooks import services as codebooks

    rosa, anna = (User.objects.get(username=name) for name in ("rosa", "anna"))
    labels = [
        {"name": "fair", "title": "Fair", "kind": "yes_no", "about": "game", "definition": "Was the deal fair?"},
        {
            "name": "offer", "title": "Offer", "kind": "yes_no", "about": "turn", "definition": "An offer.",
            "required": False, "key": "o",
        },
        {"name": "number", "title": "Number", "kind": "span", "about": "span", "definition": "A number."},
        {"name": "answers", "title": "Answers", "kind": "relation", "about": "pair", "definition": "It answers."},
    ]  # fmt: skip
    guideline = "Mark every *offer*."
    codebooks.save_codebook(name="moves", title="Moves", labels=labels, guideline=guideline, by=rosa)
    stored = imported(rosa, conversation(1), conversation(2), name=name)
    made = conversation_queue(rosa, stored, [anna], codebook="moves")
    return {"annotate": f"/judgments/queues/{made.pk}/annotate/", "queue": f"/judgments/queues/{made.pk}/"}


def annotators_day(name: str = "day") -> dict[str, str]:
    """A queue of four conversations for anna, in order, with values and suggestions; she wants a break every minute."""
    from tests.webapp.judgments.make import conversation, conversation_queue, imported
    from training.records import Label
    from webapp.accounts.models import User
    from webapp.judgments.codebooks import services as codebooks
    from webapp.judgments.models import AnnotatorSettings, Queue, Suggestion

    rosa, anna = (User.objects.get(username=name) for name in ("rosa", "anna"))
    options = [{"name": "pens", "title": "Pens"}, {"name": "other", "title": "Other"}]
    what = {"definition": "It answers."}
    labels = [
        {"name": "fair", "title": "Fair", "kind": "scale", "about": "game", "low": 0, "high": 5, "definition": "Fair?"},
        {
            "name": "best", "title": "Best", "kind": "ranking", "about": "game", "required": False,
            "definition": "The turns, the best first.",
        },
        {
            "name": "tone", "title": "Tone", "kind": "scale", "about": "turn", "low": 0, "high": 3, "key": "t",
            "definition": "How warm?", "required": False,
        },
        {"name": "claim", "title": "Claim", "kind": "span", "about": "span", "key": "c", "definition": "A claim."},
        {"name": "threat", "title": "Threat", "kind": "span", "about": "span", "key": "h", "definition": "A threat."},
        {
            "name": "about", "title": "About", "kind": "one_of", "about": "span", "options": options,
            "when": {"label": "claim"}, "definition": "What it is about.",
        },
        {"name": "answers", "title": "Answers", "kind": "relation", "about": "pair", "key": "a", **what},
    ]  # fmt: skip
    codebooks.save_codebook(name="day", title="Day", labels=labels, guideline="Mark every *claim*.", by=rosa)
    stored = imported(rosa, *(conversation(number) for number in range(1, 5)), name=name)
    made = conversation_queue(rosa, stored, [anna], codebook="day")
    made.order, made.shows_suggestions = Queue.Order.POSITION, True
    made.save()
    second = made.targets.order_by("position")[1]
    for label, kind, score in (
        (Label(label="claim", turn=0, start=0, end=3), "span", 0.9),
        (Label(label="tone", turn=1, value=3.0), "scale", 0.6),
        (Label(label="threat", turn=1, start=0, end=4), "span", 0.3),
        (Label(label="fair", value=4.0), "scale", None),
    ):
        Suggestion.of(label, kind, target=second, source="rule:example", score=score).save()
    AnnotatorSettings.objects.update_or_create(user=anna, defaults={"break_minutes": 1, "keys": {}})
    return {"annotate": f"/judgments/queues/{made.pk}/annotate/", "queue": str(made.pk)}


def judged_day(queue: str) -> list[dict[str, Any]]:
    """What was stored in this queue, in the order of its targets."""
    from webapp.judgments.models import Assignment, Judgment, Queue

    made = Queue.objects.get(pk=int(queue))
    rows: list[dict[str, Any]] = []
    for target in made.targets.order_by("position"):
        judgment = Judgment.objects.filter(target=target).first()
        aside = Assignment.objects.filter(target=target).first()
        labels = (
            []
            if judgment is None
            else [
                [row.name, row.record().to_dict()["value"], row.suggestion_id is not None]
                for row in judgment.labels.all()
            ]
        )
        rows.append({
            "judgments": Judgment.objects.filter(target=target).count(), "labels": sorted(labels, key=str),
            "unsure": judgment is not None and judgment.unsure,
            "shown": judgment is not None and judgment.suggestions_shown,
            "changes": 0 if judgment is None else len(judgment.history),
            "skipped": "" if aside is None else aside.skipped,
        })  # fmt: skip
    return rows


def compared() -> dict[str, str]:
    """An imported dataset that a model, a rater and rosa have judged, and that anna is to judge; its pages."""
    from django.db import transaction

    from tests.webapp.judgments.make import (
        FIVES,
        annotate,
        conversation,
        conversation_queue,
        finished_match,
        imported,
        outside,
    )
    from webapp.accounts.models import User

    rosa, anna, pia = (User.objects.get(username=name) for name in ("rosa", "anna", "pia"))

    def values(number: int) -> dict[str, float]:
        return {name: float((number + place) % 8 + 2) for place, name in enumerate(FIVES)}

    rows = []
    for number in range(6):
        model = [outside("gpt-4", seat, values(number + seat)) for seat in (0, 1)]
        rater = outside("rater 7", 0, values(number + number % 2))
        rows.append(conversation(number, (*model, rater, outside("rater 7", 1, None, reason="too short"))))
    stored = imported(rosa, *rows, name="compared")
    queue = conversation_queue(rosa, stored, [rosa, anna])
    for target in queue.targets.all():
        annotate(target=target, by=rosa, values=values(target.conversation.position + target.seat))
    annotate(target=queue.targets.order_by("position")[0], by=anna, values=values(1))
    with transaction.atomic():  # no worker moves for the scripted seat in between
        match = finished_match(pia)
    return {
        "dataset": "/judgments/datasets/compared/v1/", "queue": f"/judgments/queues/{queue.pk}/",
        "annotate": f"/judgments/queues/{queue.pk}/annotate/", "own": f"/judgments/queues/{queue.pk}/own/",
        "rate": f"/judgments/rate/{match.pk}/",
    }  # fmt: skip


def disputed(name: str = "disputed") -> dict[str, str]:
    """A queue of rosa's whose six games two people and a judge model labelled, not alike; the pages of its results."""
    from tests.webapp.judgments.disputes import disputed_queue
    from webapp.accounts.models import User

    rosa, anna = (User.objects.get(username=name) for name in ("rosa", "anna"))
    queue = disputed_queue(rosa, anna, name)
    pages = {name: f"/judgments/queues/{queue.pk}/{name}/" for name in ("agreement", "decisions", "truth", "judges")}
    return {**pages, "decide": f"{pages['decisions']}{queue.targets.earliest('position').pk}/"}


def behaviours() -> dict[str, str]:
    """A run of rosa's, in whose later games somebody says what they need, and a queue of its games under the codebook
    of claims; their pages.
    """
    from tests.games.cases.negotiation import items
    from tests.webapp.judgments.make import version
    from tests.webapp.runs.making import RECORD, make_episode, make_run
    from webapp.accounts.models import User
    from webapp.judgments.queues import services as queues

    rosa = User.objects.get(username="rosa")
    run, episodes = make_run(rosa, name="said-what-they-need"), []
    for step, text in ((1, "Hello."), (5, "Hello. I need food most.")):
        for number in range(3):
            moves = [{"seat": 0, "move": {"action": "talk", "args": {}, "text": text, "origin": "seat"}}]
            episode = {**RECORD["episode"], "scenario": items().to_dict(), "moves": moves, "turns": [], "traces": []}
            episodes.append(make_episode(run, step, number, {**RECORD, "episode": episode, "credit": []}))
    queue = queues.create_queue(
        name="what is claimed", owner=rosa, codebook_version=version("claims"), episodes=episodes,
        annotators=[User.objects.get(username="anna")],
    )  # fmt: skip
    return {"queue": f"/judgments/queues/{queue.pk}/", "run": f"/judgments/runs/{run.pk}/"}


def classifier() -> str:
    """A classifier of rosa's that is ready, of which only what it states is there; its page."""
    from tests.rewards.test_labels import INFO
    from tests.webapp.judgments.make import version
    from webapp.accounts.models import User
    from webapp.judgments.models import Classifier

    Classifier.objects.create(
        name="moves", owner=User.objects.get(username="rosa"), codebook_version=version("negotiation-moves"),
        state="ready", folder="classifiers/1-1", accuracy=INFO.to_dict(),
    )  # fmt: skip
    return "/judgments/classifiers/moves/"


def silent_match(seconds: str) -> dict[str, Any]:
    """A match in which pia, who begins, has these seconds for her one move, and a script makes the other; it is over
    after both. With the deadline and a key of hers."""
    from django.db import transaction

    from tests.webapp.arena.conftest import negotiation
    from webapp.accounts.models import User
    from webapp.accounts.services import create_key
    from webapp.arena.setup import tables

    pia = User.objects.get(username="pia")
    key = create_key(user=pia, name="restart")[1]
    places = [tables.Place(user=pia), tables.Place(scripted="scripted")]
    with transaction.atomic():
        match = tables.create(
            host=pia,
            start=tables.Start(negotiation(turn_limit=2)),
            places=places,
            deadline_s=int(seconds),
            consent=True,
        )
    return {"match": match.pk, "deadline": match.due.get().deadline.timestamp(), "key": key}


def origins(match: str) -> list[list[Any]]:
    """Seat and origin of every move of a match."""
    from webapp.arena.models import MatchMove

    moves = MatchMove.objects.filter(match_id=int(match)).order_by("number")
    return [[move.seat, move.move["origin"]] for move in moves]


def judged_match() -> str:
    """The replay of a game of two steps that a judge model has scored, with a reason for each value."""
    from django.db import transaction

    from tests.webapp.judgments.make import finished_match, judged_by_a_model
    from webapp.accounts.models import User

    with transaction.atomic():
        match = finished_match(User.objects.get(username="pia"))
        judged_by_a_model(User.objects.get(username="rosa"), match, reason="because of {}")
    return f"/play/{match.pk}/replay/"


def payloads() -> dict[str, Any]:
    """Every payload wherever text is kept; returns pages with the least number of payloads that each must show."""
    from tests.browser import planting

    return planting.everywhere()


def main() -> None:
    """Answer until the end of input; a function that fails ends the process."""
    from django.db import connections

    django.setup()
    for line in sys.stdin:
        function, *arguments = json.loads(line)
        print(json.dumps(globals()[function](*arguments)), flush=True)  # noqa: T201 (read by the test)
        connections.close_all()


if __name__ == "__main__":
    main()
