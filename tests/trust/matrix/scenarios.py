"""Who may use the datasets."""

import itertools
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from tests.trust.matrix.base import RESEARCHERS, Route
from training.dataset import Conversation, DatasetLine
from training.records import Episode, Scenario
from webapp.scenarios import imports, services
from webapp.scenarios.models import StoredConversation

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


def conversation(owner: Any) -> dict[str, Any]:
    """A scenario with a conversation."""
    line = DatasetLine(scenario=SCENARIO, conversations=(Conversation(source="s", episode=Episode(scenario=SCENARIO)),))
    stored = services.create_dataset(name=f"talks-{next(NUMBERS)}", owner=owner, lines=[line])
    return {"name": stored.dataset.name, "number": 1, "key": "pens"}


def its_conversation(arguments: dict[str, Any]) -> dict[str, Any]:
    """The body that names it."""
    rows = StoredConversation.objects.filter(scenario__version__dataset__name=arguments["name"])
    return {"conversation": rows.get().pk}


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
    Route("scenarios:withdraw", RESEARCHERS, ADMIN, method="POST", make=conversation, data=its_conversation),
    Route("scenarios:edit", RESEARCHERS, ADMIN, make=scenario),
    Route("scenarios:edit", RESEARCHERS, ADMIN, method="POST", make=scenario, data={"preview": "1"}),
]
