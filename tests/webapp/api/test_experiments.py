"""Experiments over the REST API: the same numbers and rights as on the pages, also by the client."""

import hashlib
import json

import pytest

from tests.webapp.api.calling import Caller
from tests.webapp.experiments import making
from webapp.api.shapes import ArmOut, ExperimentOut, QuestionOut
from webapp.experiments import export, results
from webapp.experiments.forms import STATED, STOPPING, TEXTS, QuestionForm

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment(researcher):
    made = making.opened(researcher, preregistration="H1: nothing.", per_arm=2)
    for _ in range(4):
        making.completed(made)
    return made


def test_an_experiment_is_listed_and_read(experiment, researcher):
    call = Caller(researcher)
    (line,) = call.get("experiments", q="framing").json()["items"]
    assert (line["id"], line["begun"], line["completed"]) == (experiment.pk, 4, 4)
    assert call.get("experiments", state="draft").json()["items"] == []
    design = call.get(f"experiments/{experiment.pk}").json()
    assert [arm["name"] for arm in design["arms"]] == ["arm 1", "arm 2"]
    assert design["arms"][0]["players"] == making.ALONE
    assert hashlib.sha256(design["preregistration"].encode()).hexdigest() == design["preregistration_sha256"]
    assert "code_completed" not in design


def test_the_design_has_whatever_its_forms_state():
    """But for what concerns the recruitment platform alone."""
    stated = {
        ExperimentOut: {*TEXTS, *STOPPING},
        ArmOut: {*STATED, "game", "players", "aliases", "rules"},
        QuestionOut: {*QuestionForm.base_fields},
    }
    for shape, fields in stated.items():
        assert not fields - set(shape.model_fields), f"{shape.__name__} in webapp/api/shapes.py lacks these"


def test_results_and_exports_are_those_of_the_pages(experiment, researcher):
    call = Caller(researcher)
    answer = call.get(f"experiments/{experiment.pk}/results").json()
    assert answer == json.loads(json.dumps(results.compute(experiment).to_dict()))
    assert [arm["groups"] for arm in answer["arms"]] == [2, 2]
    lines = b"".join(call.get(f"experiments/{experiment.pk}/export").streaming_content).decode().splitlines()
    assert lines == list(export.json_lines(experiment, researcher))
    table = b"".join(call.get(f"experiments/{experiment.pk}/export", form="csv").streaming_content).decode()
    assert table.splitlines()[0] == ",".join(export.columns(experiment))
    assert len(table.splitlines()) == 5
    assert call.get(f"experiments/{experiment.pk}/export", form="xls").status_code == 422


def test_ids_of_the_platform_are_the_owners(researcher, other_researcher, admin):
    made = making.opened(researcher, making.PAIR)
    making.come(made, "P-1")
    ids = {}
    for user in (researcher, admin):
        (line,) = b"".join(Caller(user).get(f"experiments/{made.pk}/export").streaming_content).decode().splitlines()
        ids[user.username] = json.loads(line)["external_id"]
    assert ids == {researcher.username: "P-1", admin.username: ""}
    for path in ("", "/results", "/export"):
        assert Caller(other_researcher).get(f"experiments/{made.pk}{path}").status_code == 404
