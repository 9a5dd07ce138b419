"""Stores every payload wherever text of people, models and files is kept."""

import json
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from tests.browser.payloads import PAYLOADS
from tests.webapp.arena.conftest import dialogue, negotiation
from tests.webapp.judgments.make import annotate, finished_match, version
from tests.webapp.runs.making import RECORD, make_episode, make_run, village
from training.dataset import DatasetLine
from training.labels.codebooks import CODEBOOKS
from training.records import Scenario
from training.rewards.judge import Cost, Verdict
from webapp.accounts.models import User
from webapp.arena.setup import links, tables, waiting_room
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import JudgeModel, Judgment, Queue
from webapp.judgments.queues import services as queues
from webapp.ladder import log
from webapp.ladder.models import Fit, Standing
from webapp.runs.models import Attempt, Checkpoint, Event, Metric, Run
from webapp.runs.views.lists import PAGE as RUNS_A_PAGE
from webapp.scenarios.imports import upload
from webapp.scenarios.services import create_dataset
from webapp.scenarios.views import PAGE as SCENARIOS_A_PAGE
from webapp.serving import services as serving
from webapp.serving.models import RemoteModel

ALL = len(PAYLOADS)
TEXT = "\n".join(PAYLOADS)
LINKS = 4
LONGEST_REASON = 2000
RATED = "leduc_poker"
"""The game whose ladder is planted."""


def _fitting(texts: Iterable[str], characters: int = LONGEST_REASON) -> list[str]:
    """Those that fit into one text, one a line, from the first on; longer ones are passed over."""
    chosen: list[str] = []
    for text in texts:
        if len("\n".join([*chosen, text])) <= characters:
            chosen.append(text)
    return chosen


def _by_page(address: str, a_page: int) -> list[tuple[str, int]]:
    """A list's pages with how many payloads stand on each."""
    return [(f"{address}?page={1 + at // a_page}", min(a_page, ALL - at)) for at in range(0, ALL, a_page)]


def everywhere() -> dict[str, Any]:
    """Plant; returns pages as (address, least number of payloads to be read there), runs, a match and guest links."""
    rosa, pia, ben = (User.objects.get(username=name) for name in ("rosa", "pia", "ben"))
    runs = [_run(rosa, number, text) for number, text in enumerate(PAYLOADS)]
    with transaction.atomic():
        game = finished_match(rosa, partner=ben)
        pages = [*_datasets(rosa), *_run_pages(runs), *_judgments(rosa, game), *_ladder()]
        match = tables.create(
            host=pia,
            start=tables.Start(dialogue(turn_limit=60, max_chars=len(TEXT))),
            places=[tables.Place(user=pia), tables.Place(user=ben)],
            deadline_s=3000,
            consent=True,
        )
        waiting_room.answer_consent(match=match, user=ben, agreed=True)
        guests = [_link(rosa) for _ in range(LINKS)]
    return {"pages": pages, "runs": [run.pk for run in runs[:6]], "match": match.pk, "links": guests}


def _datasets(owner: User) -> list[tuple[str, int]]:
    lines = []
    for number, text in enumerate(PAYLOADS):
        scene = dialogue()
        settings = {**scene.settings, "scenario": text}
        settings["participants"] = [
            {"profile": {"occupation": text[:500], "secret": text}, "goal": text} for _ in settings["participants"]
        ]
        lines.append(DatasetLine(scenario=Scenario(**{**dict(scene), "id": f"scene-{number}", "settings": settings})))
    create_dataset(name="payloads", owner=owner, lines=lines, title=PAYLOADS[0], source=TEXT[:300], licence=PAYLOADS[2])
    from django.core.files.uploadedfile import SimpleUploadedFile

    broken = upload(
        owner=owner,
        format="jsonl",
        name="broken-payloads",
        files=[SimpleUploadedFile("own.jsonl", "\n".join(json.dumps({text: text}) for text in PAYLOADS).encode())],
        source=PAYLOADS[4],
        licence=PAYLOADS[5],
    )
    scene = "/datasets/payloads/v1/scenarios/scene-3/"
    from webapp.scenarios.imports import read_import

    read_import(pk=broken.pk)
    return [
        ("/datasets/", 1),
        *_by_page("/datasets/payloads/v1/", SCENARIOS_A_PAGE),
        (scene, 1),
        (f"{scene}edit/", 1),
        (f"/datasets/imports/{broken.pk}/", 1),
        ("/runs/new/", 0),
    ]


def _run(owner: User, number: int, text: str) -> Run:
    """A run called by a payload, with an attempt, a log, events, metrics and a conversation full of them."""
    run = make_run(owner, name=text[:120], state="failed", error=text, step=2, steps=4)
    if number == 1:
        run.state = "running"
        run.save()
    attempt = Attempt.objects.create(
        run=run, number=1, fence=1, lease_until="2100-01-01T00:00Z", log=TEXT, host=text[:200], phase=text[:40],
        status={"phase": text}, progressed_at=Now(),
    )  # fmt: skip
    Event.objects.create(run=run, attempt=attempt, at=Now(), kind="warning", data={"why": text})
    for step in (1, 2):
        values = {"reward": step / 10, f"own/{text}": 1.0}
        Metric.objects.create(run=run, step=step, fence=1, at=Now(), values=values)
    if number < LINKS:
        make_episode(run, record=_record(text))
        Checkpoint.objects.create(
            name=text[:120], kind="full", run=run, step=2, base="tiny", path=f"nowhere/{number}", open_to_players=True
        )
    return run


def _record(text: str) -> dict[str, Any]:
    record = deepcopy(RECORD)
    record["episode"]["scenario"]["seats"] = [text, f"{text} too"]
    for turn, body in zip(record["episode"]["turns"], (TEXT, text), strict=True):
        turn["reply"] = turn["private"] = body
        if turn["move"]:
            turn["move"]["text"] = body
        else:
            turn["error"] = body
    return record


def _village() -> dict[str, Any]:
    """The record of a game of many seats: speeches, roles, and what a seat was asked aside with what it answered."""
    asked = [(PAYLOADS[0], dict.fromkeys(PAYLOADS, 1 / ALL)), (TEXT, {"Ada": 1.0})]
    beliefs = [
        {"after": 2, "seat": 0, "question": question, "probabilities": answers, "truth": [PAYLOADS[1]]}
        for question, answers in asked
    ]
    record = village(beliefs=beliefs, roles=PAYLOADS[:6])
    speeches = [move["move"] for move in record["episode"]["moves"] if move["move"]["action"] == "speak"]
    for move, text in zip(speeches, PAYLOADS, strict=False):
        move["text"] = text
    return record


def _run_pages(runs: list[Run]) -> list[tuple[str, int]]:
    make_episode(runs[LINKS], record=_village())
    many = f"/runs/{runs[LINKS].pk}/conversations/1/0/"
    tabs = [f"/runs/{run.pk}/{tab}" for run in runs[:LINKS] for tab in ("log/", "configuration/", "lineage/")]
    talks = [f"/runs/{run.pk}/conversations/1/0/" for run in runs[:LINKS]]
    checkpoint = Checkpoint.objects.get(run=runs[2]).pk
    return [
        ("/", 1),
        *_by_page("/runs/", RUNS_A_PAGE),
        *((f"/runs/{run.pk}/", 1) for run in runs),
        *((tab, 1) for tab in tabs),
        *((talk, ALL) for talk in talks),
        *((f"{talk}tokens/", 1) for talk in talks),
        (many, 6),
        (f"{many}replay/", ALL),
        (f"{many}replay/?viewer=0", ALL),
        (f"{many}replay/?viewer=-1", 5),
        ("/checkpoints/", LINKS),
        (f"/checkpoints/{checkpoint}/", 1),
        (f"/play/new/?checkpoint={checkpoint}", 1),
        ("/deployments/", LINKS),
    ]


def _judgments(owner: User, game: Any) -> list[tuple[str, int]]:
    labels = [label_type.to_dict() for label_type in CODEBOOKS["fine-grained"].labels]
    for label_type, text in zip(labels, PAYLOADS, strict=False):
        label_type["title"], label_type["definition"] = text[:80], text
    codebooks.save_codebook(name="payloads", title=PAYLOADS[6], labels=labels, by=owner)
    codebook = version("payloads")
    queue = queues.create_queue(
        name=PAYLOADS[7][:120], owner=owner, codebook_version=codebook, matches=[game], annotators=[owner]
    )
    other = queues.create_queue(
        name=PAYLOADS[8][:120], owner=owner, codebook_version=codebook, matches=[game], annotators=[owner]
    )
    reasons = [_fitting(PAYLOADS), _fitting(reversed(PAYLOADS))]
    for target, reason in zip(other.targets.all(), reasons, strict=True):
        annotate(target=target, by=owner, values=None, reason="\n".join(reason))
    assert Judgment.objects.filter(queue=other).count() == 2
    watched = finished_match(User.objects.get(username="otto"), partner=User.objects.get(username="ben"))
    type(watched).objects.filter(pk=watched.pk).update(visibility="public")
    judged = _judged_by_a_model(owner, watched)
    return [
        ("/judgments/", 3),
        ("/judgments/codebooks/payloads/v1/", len(labels)),
        ("/judgments/codebooks/payloads/edit/", 0),
        (f"/judgments/queues/{queue.pk}/annotate/", len(labels)),
        (f"/judgments/queues/{other.pk}/", len({*reasons[0], *reasons[1]})),
        (f"/judgments/queues/{judged.pk}/", ALL),
        (f"/judgments/matches/{watched.pk}/", ALL),
        (f"/play/{watched.pk}/replay/?viewer=-2", 0),
        ("/judgments/queues/new/", 0),
    ]


def _judged_by_a_model(owner: User, game: Any) -> Queue:
    """One seat that a judge model scored, with a reason for each label type, and one that it could not, with why."""
    remote = RemoteModel.objects.create(
        name=PAYLOADS[9][:120], address="http://127.0.0.1:9/v1", model=PAYLOADS[10][:200], added_by=owner
    )
    judge = JudgeModel.objects.create(name=PAYLOADS[11][:120], remote=remote)
    codebook = version("payloads")
    made = queues.create_queue(name=PAYLOADS[12], owner=owner, codebook_version=codebook, matches=[game], judge=judge)
    names = [label_type["name"] for label_type in codebook.labels]
    verdict = Verdict(
        codebook=codebook.record(),
        seat=0,
        values={label_type["name"]: label_type["low"] for label_type in codebook.labels},
        reasons={name: "\n".join(PAYLOADS[at :: len(names)]) for at, name in enumerate(names)},
        prompt_sha256="0" * 64,
        cost=Cost(calls=1),
    )
    scored, unscored = made.targets.order_by("position")
    queues.record_verdict(target=scored, verdict=verdict)
    queues.record_verdict(target=unscored, verdict=None, why=TEXT)
    return made


def _ladder() -> list[tuple[str, int]]:
    """A ladder of models that are called by payloads, with such roles."""
    worth = {"mean": 1.0, "low": 0.0, "high": 2.0}
    Fit.objects.filter(game=RATED).delete()  # the site may have rated games that other tests played
    fit = Fit.objects.create(
        game=RATED,
        matches=9,
        seen=log.seen(log.numbers(RATED)),  # or the site would fit this ladder anew
        fitted_at=Now(),
        roles=dict.fromkeys(PAYLOADS[:6], worth),
    )
    for rank, checkpoint in enumerate(Checkpoint.objects.filter(path__startswith="nowhere/").order_by("pk"), 1):
        Standing.objects.create(
            fit=fit, who=f"model:{rank}", kind="model", deployment=serving.of_checkpoint(checkpoint), rank=rank,
            rating=1000.0, low=900.0, high=1100.0, games=9, won=4.5, played=9, moves=9,
            roles={text: [9, 4.5] for text in PAYLOADS[:6]}, against={"model:1": [9, 4.5]},
        )  # fmt: skip
    return [(f"/ladder/?game={RATED}", 6)]


def _link(host: User) -> str:
    match = tables.create(
        host=host, start=tables.Start(negotiation()), places=[tables.Place(user=host), tables.Place()], consent=True
    )
    return f"/play/guest/{links.invite(match=match, number=1)}/"
