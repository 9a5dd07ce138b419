"""Classifiers that learned from a game to whose use consent was withdrawn: they go on labelling, and are flagged."""

from __future__ import annotations

from training.dataset import DatasetLine, episode_hash
from webapp.judgments.models import Classifier
from webapp.scenarios.models import StoredConversation, Withdrawal


def names_of(lines: list[DatasetLine]) -> list[list[str]]:
    """Return the source and the hash of every game, by which a withdrawn one is recognised."""
    games = (game for line in lines for game in line.conversations)
    return [[game.source, episode_hash(game.episode.to_dict())] for game in games]


def has_withdrawn(classifier: Classifier) -> bool:
    """Whether a game that it learned from was withdrawn since. A classifier of an earlier release does not know."""
    games = [game for source in classifier.trained_on.get("sources", ()) for game in source.get("names", ())]
    if not games:
        return False
    sources, hashes = zip(*games, strict=True)
    copies = StoredConversation.objects.filter(withdrawn_at__isnull=False, episode_sha256__in=hashes)
    return Withdrawal.objects.filter(dataset_name="", source__in=sources).exists() or copies.exists()
