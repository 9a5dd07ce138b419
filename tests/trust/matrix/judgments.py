"""Who may use the judgments."""

from typing import Any

from tests.trust.matrix.base import ANNOTATORS, EVERYONE, NOBODY, RESEARCHERS, Route
from tests.webapp.judgments.make import finished_match, people_queue
from webapp.judgments.models import RubricVersion


def queue(owner: Any) -> dict[str, Any]:
    return {"pk": people_queue(owner=owner, match=finished_match(host=owner)).pk}


def assigned(owner: Any) -> dict[str, Any]:
    made = people_queue(owner=owner, match=finished_match(host=owner))
    made.annotators.set([owner])
    return {"pk": made.pk}


def rubric(owner: Any) -> dict[str, Any]:
    return {"name": RubricVersion.objects.get(rubric__name="sotopia").rubric.name}


def rubric_version(owner: Any) -> dict[str, Any]:
    return {**rubric(owner), "number": 1}


def played(owner: Any) -> dict[str, Any]:
    return {"pk": finished_match(host=owner).pk}


ADMIN = ("admin",)
ROUTES = [
    Route("judgments:list", ANNOTATORS),
    Route("judgments:queue-new", RESEARCHERS),
    Route("judgments:queue", RESEARCHERS, RESEARCHERS, make=queue),
    Route("judgments:queue-retry", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-export", RESEARCHERS, RESEARCHERS, method="POST", make=queue, data={"name": "judged"}),
    Route("judgments:annotate", ANNOTATORS, NOBODY, make=assigned),
    Route("judgments:rubric-new", RESEARCHERS),
    Route("judgments:rubric", ANNOTATORS, ANNOTATORS, make=rubric_version),
    Route("judgments:rubric-edit", RESEARCHERS, RESEARCHERS, make=rubric),
    Route("judgments:judge-new", ADMIN),
    Route("judgments:rate", EVERYONE, NOBODY, make=played),
]
