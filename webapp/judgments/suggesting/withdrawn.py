"""Classifiers that learned from a game to whose use consent was withdrawn: they go on labelling, and are flagged."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from training.dataset import DatasetLine, episode_hash
from webapp.judgments.models import Classifier
from webapp.scenarios.models import StoredConversation, Withdrawal


def names_of(lines: list[DatasetLine]) -> list[list[str]]:
    """Return the source and the hash of every game, by which a withdrawn one is recognised."""
    games = (game for line in lines for game in line.conversations)
    return [[game.source, episode_hash(game.episode.to_dict())] for game in games]


def has_withdrawn(classifier: Classifier) -> bool:
    """Whether a game that it learned from was withdrawn since. A classifier of an earlier release does not know."""
    return bool(flagged([classifier]))


def flagged(classifiers: Iterable[Classifier]) -> list[Classifier]:
    """Those of them that learned from a game that was withdrawn since."""
    games = [(classifier, _games(classifier)) for classifier in classifiers]
    every = set().union(*(each for _, each in games))
    if not every:
        return []
    sources, hashes = zip(*every, strict=True)
    withdrawals = Withdrawal.objects.filter(dataset_name="", source__in=sources)
    copies = StoredConversation.objects.filter(withdrawn_at__isnull=False, episode_sha256__in=hashes)
    gone = {*withdrawals.values_list("source", flat=True), *copies.values_list("episode_sha256", flat=True)}
    return [classifier for classifier, each in games if any(gone.intersection(game) for game in each)]


def _games(classifier: Classifier) -> set[tuple[str, str]]:
    """The source and the hash of every game that it learned from."""
    sources: list[dict[str, Any]] = classifier.trained_on.get("sources", [])
    return {(name, episode) for source in sources for name, episode in source.get("names", ())}
