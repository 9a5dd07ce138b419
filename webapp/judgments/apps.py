"""Registration of the judgments app.

After every migrate, the codebooks that come with Parley are loaded, and what searches read of judged games is stored
where it is missing. Judgments that come with a stored dataset become rows, and files of labels are read under the
codebooks.
"""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from training.labels.codebooks import Codebook
from webapp.arena.signals import consent_withdrawn
from webapp.runs.signals import classifier_named
from webapp.scenarios.signals import WaitingQueue, awaited, codebook_wanted, version_closed, version_stored


def _load_codebooks(**_options: Any) -> None:
    from webapp.judgments.codebooks.services import load_codebooks

    load_codebooks()


def _remember_games(**_options: Any) -> None:
    from webapp.judgments.search.games import index_missing

    index_missing()


def _store_judgments(*, version: Any, **_options: Any) -> None:
    from webapp.judgments.datasets.imported import store_judgments

    store_judgments(version)


def _awaited(*, conversations: Any, user: Any, **_options: Any) -> dict[int, WaitingQueue]:
    from webapp.judgments.models import Target

    return Target.objects.awaited_by(user).among(conversations)


def _codebook(*, name: str, number: int | None, **_options: Any) -> Codebook:
    from webapp.judgments.models import CodebookVersion

    return CodebookVersion.objects.named(name, number).record()


def _withdraw_match(*, match: Any, **_options: Any) -> None:
    from webapp.judgments.withdrawing import withdraw_match

    withdraw_match(match=match)


def _forget_version(*, version: Any, **_options: Any) -> None:
    from webapp.judgments.withdrawing import forget_version

    forget_version(version=version)


def _classifier(*, name: str, **_options: Any) -> Any:
    from webapp.judgments.models import Classifier
    from webapp.judgments.suggesting.withdrawn import has_withdrawn

    classifier = Classifier.objects.ready().filter(name=name).first()
    return None if classifier is None else (classifier.info, has_withdrawn(classifier))


class JudgmentsConfig(AppConfig):
    """Codebooks, judgments and queues."""

    name = "webapp.judgments"
    label = "judgments"

    def ready(self) -> None:
        """Load the codebooks once the tables are there, and follow the datasets and the players' consent."""
        post_migrate.connect(_load_codebooks, sender=self)
        post_migrate.connect(_remember_games, sender=self)
        version_stored.connect(_store_judgments, dispatch_uid="judgments.imported")
        classifier_named.connect(_classifier, dispatch_uid="judgments.classifier")
        awaited.connect(_awaited, dispatch_uid="judgments.awaited")
        codebook_wanted.connect(_codebook, dispatch_uid="judgments.codebook")
        consent_withdrawn.connect(_withdraw_match, dispatch_uid="judgments.withdrawn")
        version_closed.connect(_forget_version, dispatch_uid="judgments.closed")
