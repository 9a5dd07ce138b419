"""Codebooks, judgments by people and models, queues of targets, and ratings after a game.

Reads are QuerySet methods; writes are functions of the `services` beside the pages that need them.
"""

from webapp.judgments.models.annotators import AnnotatorSettings, Invitation
from webapp.judgments.models.classifiers import Classifier, SuggestionRun, SuggestionRunQuerySet
from webapp.judgments.models.codebooks import Codebook, CodebookVersion, JudgeModel
from webapp.judgments.models.judged import SITE_SOURCE, JudgedGame, of_same_seat, role_at, source_of
from webapp.judgments.models.judgments import Judgment, JudgmentQuerySet, Label, Suggestion
from webapp.judgments.models.queues import (
    LEASE,
    QUEUE_SORTS,
    Assignment,
    Qualification,
    Queue,
    QueueQuerySet,
    Target,
    TargetQuerySet,
)
from webapp.judgments.models.ratings import GameRating, Guess
from webapp.judgments.models.searches import LabelledGame, SavedSearch

__all__ = [
    "LEASE",
    "QUEUE_SORTS",
    "SITE_SOURCE",
    "AnnotatorSettings",
    "Assignment",
    "Classifier",
    "Codebook",
    "CodebookVersion",
    "GameRating",
    "Guess",
    "Invitation",
    "JudgeModel",
    "JudgedGame",
    "Judgment",
    "JudgmentQuerySet",
    "Label",
    "LabelledGame",
    "Qualification",
    "Queue",
    "QueueQuerySet",
    "SavedSearch",
    "Suggestion",
    "SuggestionRun",
    "SuggestionRunQuerySet",
    "Target",
    "TargetQuerySet",
    "of_same_seat",
    "role_at",
    "source_of",
]
