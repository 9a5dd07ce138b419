"""Who may use the REST API, by key."""

from functools import partial
from typing import Any

from tests.trust.matrix import corpora, experiments, judgments, scenarios
from tests.trust.matrix.base import ANNOTATORS, EVERYONE, MEMBERS, METHODS, NOBODY, RESEARCHERS, Route
from tests.trust.matrix.judgments import queue
from tests.webapp.judgments.make import finished_match
from tests.webapp.runs.making import make_checkpoint, make_run
from webapp.runs.models import Checkpoint, Run

ADMIN = ("admin",)
api = partial(Route, kind="api")


def run(owner: Any) -> dict[str, Any]:
    made = Run.objects.create(kind="train", name="a run", owner=owner, queue="train-cpu", config={}, state="stopped")
    return {"pk": made.pk}


def checkpoint(owner: Any) -> dict[str, Any]:
    made = Checkpoint.objects.create(name=f"base-{owner.pk}", kind="base", base="x", path="x")
    return {"reference": made.pk}


def written(owner: Any) -> dict[str, Any]:
    return {"reference": make_checkpoint(make_run(owner, state="stopped")).pk}


def match(owner: Any) -> dict[str, Any]:
    return {"pk": finished_match(host=owner).pk}


def dataset(owner: Any) -> dict[str, Any]:
    return {"name": scenarios.stored_version(owner).dataset.name}


def export(owner: Any) -> dict[str, Any]:
    return {**dataset(owner), "number": 1}


def queue_to_pause(owner: Any) -> dict[str, Any]:
    return {**queue(owner), "to": "pause"}


TABLE = {"game": "negotiation", "places": [{"me": True}, {"scripted": "scripted"}], "consent": True}
ROUTES = [
    Route("api:openapi-json", (), public=True),
    *(Route("api:api-root", (), public=True, status=404, method=name) for name in METHODS),  # nothing is there
    api("api:list_datasets", RESEARCHERS),
    api("api:get_dataset", RESEARCHERS, RESEARCHERS, make=dataset),
    api("api:export_version", RESEARCHERS, RESEARCHERS, make=export),
    api("api:list_corpora", RESEARCHERS),
    api("api:upload_corpus", RESEARCHERS, method="POST"),
    api("api:get_corpus", RESEARCHERS, ADMIN, make=corpora.corpus),
    api("api:delete_corpus", RESEARCHERS, ADMIN, method="DELETE", make=corpora.corpus),
    api("api:build_index", RESEARCHERS, ADMIN, method="POST", make=corpora.stopped),
    api("api:search_corpus", RESEARCHERS, ADMIN, make=corpora.corpus),
    api("api:export_corpus", RESEARCHERS, ADMIN, make=corpora.corpus),
    api("api:list_experiments", RESEARCHERS),
    *(
        api(f"api:{name}", RESEARCHERS, ADMIN, make=experiments.running)
        for name in ("get_experiment", "get_results", "export_experiment")
    ),
    api("api:list_runs", RESEARCHERS),
    api("api:start_run", RESEARCHERS, method="POST", data={"config": {}}),
    api("api:get_run", RESEARCHERS, RESEARCHERS, make=run),
    api("api:get_metrics", RESEARCHERS, RESEARCHERS, make=run),
    api("api:get_league", RESEARCHERS, RESEARCHERS, make=run),
    api("api:get_calibration", RESEARCHERS, RESEARCHERS, make=run),
    api("api:stop_run", RESEARCHERS, ADMIN, method="POST", make=run),
    api("api:resume_run", RESEARCHERS, ADMIN, method="POST", make=run),
    api("api:delete_run", RESEARCHERS, ADMIN, method="DELETE", make=run),
    api("api:list_checkpoints", EVERYONE),
    api("api:get_checkpoint", RESEARCHERS, RESEARCHERS, make=checkpoint),
    api("api:download_checkpoint", RESEARCHERS, RESEARCHERS, make=written),
    api("api:list_matches", EVERYONE),
    api("api:create_match", MEMBERS, method="POST", data=TABLE),
    api("api:get_match", EVERYONE, ADMIN, make=match),
    api("api:take_seat", MEMBERS, ADMIN, method="POST", make=match, data={"consent": True}),
    api("api:say_ready", EVERYONE, NOBODY, method="POST", make=match),
    api("api:ask_for_advice", EVERYONE, ADMIN, method="POST", make=match, data={"turn": 0, "coach": "scripted"}),
    api("api:make_move", EVERYONE, ADMIN, method="POST", make=match, data={"turn": 0, "action": "accept"}),
    api("api:list_judgments", ANNOTATORS),
    api("api:export_labels", RESEARCHERS, RESEARCHERS, make=judgments.queue),
    api("api:list_targets", ANNOTATORS),
    api("api:agreement", RESEARCHERS, RESEARCHERS, make=queue),
    api("api:truth", RESEARCHERS, RESEARCHERS, make=queue),
    api("api:calibration", RESEARCHERS, RESEARCHERS, make=queue),
    api("api:list_decisions", RESEARCHERS, ADMIN, make=queue),
    api("api:list_queues", RESEARCHERS),
    api("api:make_queue", RESEARCHERS, method="POST", data={"name": "q", "codebook": "fine-grained"}),
    api("api:get_queue", RESEARCHERS, RESEARCHERS, make=queue),
    api("api:list_queue_targets", RESEARCHERS, ADMIN, make=queue),
    api("api:list_assignments", RESEARCHERS, ADMIN, make=queue),
    api("api:change_queue", RESEARCHERS, ADMIN, method="POST", make=queue_to_pause),
    api("api:decide", NOBODY, method="POST", data={"target": 0}),
    # the target is in the body: whose it may be is tested with the API itself
    api("api:add_judgment", NOBODY, method="POST", data={"target": 0}),
    api("api:import_dataset", RESEARCHERS, method="POST"),
]
