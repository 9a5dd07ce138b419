"""Who may use the judgments."""

from typing import Any

from django.utils import timezone

from tests.trust.matrix.base import ANNOTATORS, EVERYONE, MEMBERS, NOBODY, RESEARCHERS, Route
from tests.trust.matrix.scenarios import version as dataset_version
from tests.webapp.judgments.make import FIVES, annotate, finished_match, people_queue, version
from tests.webapp.judgments.make import rated as rated_by
from tests.webapp.runs.making import make_run
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Classifier, CodebookVersion, Invitation, Judgment, Target
from webapp.judgments.queues import invitations
from webapp.judgments.rating import services as rating
from webapp.judgments.search import services as searches
from webapp.serving.models import RemoteModel


def queue(owner: Any) -> dict[str, Any]:
    return {"pk": people_queue(owner=owner, match=finished_match(host=owner)).pk}


def assigned(owner: Any) -> dict[str, Any]:
    made = people_queue(owner=owner, match=finished_match(host=owner))
    made.annotators.set([owner])
    return {"pk": made.pk}


def disputed(owner: Any) -> dict[str, Any]:
    """A target that an annotator has judged, who is no longer to judge the others."""
    made = people_queue(owner=owner, match=finished_match(host=owner))
    target = made.targets.with_games().first()
    assert target is not None
    annotate(target=target, by=owner, values=FIVES)
    made.annotators.clear()
    rated_by(target.match, owner)
    return {"pk": made.pk, "target_id": target.pk}


def codebook(owner: Any) -> dict[str, Any]:
    return {"name": CodebookVersion.objects.get(codebook__name="sotopia").codebook.name}


def codebook_version(owner: Any) -> dict[str, Any]:
    return {**codebook(owner), "number": 1}


def judge(owner: Any) -> dict[str, Any]:
    remote = RemoteModel.objects.create(name="far", address="http://127.0.0.1:9/v1", model="m", added_by=owner)
    return {"pk": codebooks.add_judge(name="a judge", remote=remote, temperature=0).pk}


def saved_search(owner: Any) -> dict[str, Any]:
    return {"pk": searches.save(owner=owner, name="lies", query="label=deception").pk}


def trained(owner: Any) -> dict[str, Any]:
    return {"run_id": make_run(owner).pk}


def played(owner: Any) -> dict[str, Any]:
    return {"pk": finished_match(host=owner).pk}


def rated(owner: Any) -> dict[str, Any]:
    """A finished match whose host has rated the other seat: who sat there is no secret any more."""
    match = finished_match(host=owner)
    rating.rate(
        by=match.seats.get(user=owner), version=version(), values={1: FIVES}, guesses={1: rating.Answer(person=False)}
    )
    return {"pk": match.pk}


def not_to_be_scored(arguments: dict[str, Any]) -> dict[str, Any]:
    """The body that says so of the queue's first seat."""
    return {"target": Target.objects.filter(queue=arguments["pk"]).order_by("position")[0].pk, "unscored": "1"}


def classifier(owner: Any) -> dict[str, Any]:
    name = f"moves-{Classifier.objects.count()}"
    made = Classifier.objects.create(name=name, owner=owner, codebook_version=version("negotiation-moves"))
    return {"name": made.name}


def of_an_annotator(owner: Any) -> dict[str, Any]:
    return {**queue(owner), "user_id": owner.pk}


def with_invitation(owner: Any) -> dict[str, Any]:
    made = people_queue(owner=owner, match=finished_match(host=owner))
    row = Invitation.objects.create(queue=made, token_sha256="0" * 64, created_by=owner, expires_at=timezone.now())
    return {"pk": made.pk, "invitation_id": row.pk}


def by_invitation(owner: Any) -> dict[str, Any]:
    made = people_queue(owner=owner, match=finished_match(host=owner))
    return {"token": invitations.invite(queue=made, by=owner)}


def gold_judged(owner: Any) -> dict[str, Any]:
    """A gold target that its owner has judged and decided."""
    made = people_queue(owner=owner, match=finished_match(host=owner))
    target = made.targets.with_games().order_by("position")[0]
    annotate(target=target, by=owner, values=FIVES)
    decided = Judgment.objects.create(
        target=target, author=owner, codebook_version=made.codebook_version, seat=target.seat, match=target.match,
        decides=True,
    )  # fmt: skip
    assert decided.decides
    made.targets.filter(pk=target.pk).update(gold=True)
    return {"pk": made.pk, "target_id": target.pk}


ADMIN = ("admin",)
BY_RULE = {"source": "rule:claims"}
ROUTES = [
    Route("judgments:own_queues", MEMBERS),
    Route("judgments:queue-state", RESEARCHERS, ADMIN, method="POST", make=queue, data={"to": "pause"}),
    Route("judgments:queue-games", RESEARCHERS, ADMIN, make=queue),
    Route("judgments:queue-games", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-annotators", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-annotator", RESEARCHERS, ADMIN, method="POST", make=of_an_annotator, data={"do": "pass"}),
    Route("judgments:queue-invite", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-uninvite", RESEARCHERS, ADMIN, method="POST", make=with_invitation),
    Route("judgments:queue-unskip", ANNOTATORS, NOBODY, method="POST", make=assigned, data=not_to_be_scored),
    Route("judgments:queue-leave", ANNOTATORS, NOBODY, method="POST", make=assigned),
    Route("judgments:gold-answer", ANNOTATORS, NOBODY, make=gold_judged),
    Route("judgments:invitation", MEMBERS, MEMBERS, make=by_invitation),
    Route("judgments:invitation", MEMBERS, MEMBERS, method="POST", make=by_invitation),
    Route("judgments:list", ANNOTATORS),
    Route("judgments:queue-new", RESEARCHERS),
    Route("judgments:queue-new", RESEARCHERS, method="POST", data={"name": "a queue"}),
    Route("judgments:queue", RESEARCHERS, RESEARCHERS, make=queue),
    Route("judgments:queue-retry", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-cancel", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-delete", RESEARCHERS, ADMIN, method="POST", make=queue),
    Route("judgments:queue-export", RESEARCHERS, RESEARCHERS, method="POST", make=queue, data={"name": "judged"}),
    Route("judgments:agreement", RESEARCHERS, RESEARCHERS, make=queue),
    Route("judgments:truth", RESEARCHERS, RESEARCHERS, make=queue),
    Route("judgments:judges", RESEARCHERS, RESEARCHERS, make=queue),
    Route("judgments:export-disagreements", RESEARCHERS, RESEARCHERS, method="POST", make=queue),
    Route("judgments:decisions", RESEARCHERS, ADMIN, make=queue),
    Route("judgments:decide", RESEARCHERS, ADMIN, make=disputed),
    Route("judgments:decide", RESEARCHERS, ADMIN, method="POST", make=disputed, data={"unscored": "1", "note": "cut"}),
    Route("judgments:gold", RESEARCHERS, ADMIN, method="POST", make=disputed),
    Route("judgments:queue-labels", RESEARCHERS, RESEARCHERS, make=queue),
    Route("judgments:suggestions", RESEARCHERS, ADMIN, make=queue),
    Route("judgments:suggest", RESEARCHERS, ADMIN, method="POST", make=queue, data=BY_RULE),
    Route("judgments:suggestions-delete", RESEARCHERS, ADMIN, method="POST", make=queue, data=BY_RULE),
    Route("judgments:classifiers", RESEARCHERS),
    Route("judgments:classifier-new", RESEARCHERS),
    Route("judgments:classifier-new", RESEARCHERS, method="POST", data={"name": "moves"}),
    Route("judgments:classifier", RESEARCHERS, RESEARCHERS, make=classifier),
    Route("judgments:classifier-retry", RESEARCHERS, ADMIN, method="POST", make=classifier),
    Route("judgments:classifier-delete", RESEARCHERS, ADMIN, method="POST", make=classifier),
    Route("judgments:annotate", ANNOTATORS, NOBODY, make=assigned),
    Route("judgments:annotate", ANNOTATORS, NOBODY, method="POST", make=assigned, data=not_to_be_scored),
    Route("judgments:annotator-settings", MEMBERS),
    Route("judgments:annotator-settings", MEMBERS, method="POST", data={"break_minutes": "30"}),
    Route("judgments:own_judgments", ANNOTATORS, NOBODY, make=assigned),
    Route("judgments:of-version", RESEARCHERS, RESEARCHERS, make=dataset_version),
    Route("judgments:codebook-new", RESEARCHERS),
    Route("judgments:codebook-new", RESEARCHERS, method="POST", data={"title": "Fairness"}),
    Route("judgments:codebook", ANNOTATORS, ANNOTATORS, make=codebook_version),
    Route("judgments:codebook-edit", RESEARCHERS, RESEARCHERS, make=codebook),
    Route(
        "judgments:codebook-edit", RESEARCHERS, RESEARCHERS, method="POST", make=codebook, data={"title": "Fairness"}
    ),
    Route("judgments:judge-new", ADMIN),
    Route("judgments:judge-new", ADMIN, method="POST", data={"name": "a judge"}),
    Route("judgments:judge-delete", ADMIN, ADMIN, method="POST", make=judge),
    Route("judgments:of-match", ANNOTATORS, ADMIN, make=rated),
    Route("judgments:of-run", RESEARCHERS, RESEARCHERS, make=trained),
    Route("judgments:suggested-of-run", RESEARCHERS, RESEARCHERS, make=trained),
    Route("judgments:search", RESEARCHERS),
    Route("judgments:search-file", RESEARCHERS),
    Route("judgments:save-search", RESEARCHERS, method="POST", data={"name": "lies", "query": "label=deception"}),
    Route("judgments:forget-search", RESEARCHERS, NOBODY, method="POST", make=saved_search),
    Route("judgments:rate", EVERYONE, NOBODY, make=played),
    Route("judgments:rate", EVERYONE, NOBODY, method="POST", make=played, data={"guess1-person": "yes"}),
]
