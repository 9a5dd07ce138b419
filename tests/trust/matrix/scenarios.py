"""Who may use the datasets."""

import itertools
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from tests.trust.matrix.base import RESEARCHERS, Route
from training.dataset import DatasetLine
from training.records import Scenario
from webapp.scenarios import imports, services

NUMBERS = itertools.count()
SCENARIO = Scenario(
    id="pens",
    game="negotiation",
    seats=("Ann", "Ben"),
    settings={
        "deal": {
            "kind": "items",
            "items": [{"name": "pen", "count": 3}],
            "sides": [{"values": {"pen": 1}}, {"values": {"pen": 2}}],
        }
    },
)


def stored_version(owner: Any) -> Any:
    name = f"pens-{next(NUMBERS)}"
    return services.create_dataset(name=name, owner=owner, lines=[DatasetLine(scenario=SCENARIO)])


def dataset(owner: Any) -> dict[str, Any]:
    return {"name": stored_version(owner).dataset.name}


def version(owner: Any) -> dict[str, Any]:
    return {**dataset(owner), "number": 1}


def scenario(owner: Any) -> dict[str, Any]:
    return {**version(owner), "key": "pens"}


def waiting(owner: Any) -> dict[str, Any]:
    file = SimpleUploadedFile("own.jsonl", DatasetLine(scenario=SCENARIO).dumps().encode())
    made = imports.upload(owner=owner, format="jsonl", name=f"upload-{next(NUMBERS)}", files=[file])
    imports.read_import(pk=made.pk)
    return {"pk": made.pk}


ADMIN = ("admin",)
ROUTES = [
    Route("scenarios:list", RESEARCHERS),
    Route("scenarios:upload", RESEARCHERS),
    Route("scenarios:upload", RESEARCHERS, method="POST", data={"format": "jsonl", "name": "nothing"}),
    Route("scenarios:import", RESEARCHERS, ADMIN, make=waiting),
    Route("scenarios:import-drop", RESEARCHERS, ADMIN, method="POST", make=waiting),
    Route("scenarios:import-store", RESEARCHERS, ADMIN, method="POST", make=waiting),
    Route("scenarios:newest", RESEARCHERS, RESEARCHERS, make=dataset),
    Route("scenarios:delete", RESEARCHERS, ADMIN, method="POST", make=dataset),
    Route("scenarios:version", RESEARCHERS, RESEARCHERS, make=version),
    Route("scenarios:export", RESEARCHERS, RESEARCHERS, make=version),
    Route("scenarios:fork", RESEARCHERS, RESEARCHERS, method="POST", make=version, data={"name": "a-copy"}),
    Route("scenarios:scenario", RESEARCHERS, RESEARCHERS, make=scenario),
    Route("scenarios:edit", RESEARCHERS, ADMIN, make=scenario),
    Route("scenarios:edit", RESEARCHERS, ADMIN, method="POST", make=scenario, data={"preview": "1"}),
]
