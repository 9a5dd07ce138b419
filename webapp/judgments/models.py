"""Rubrics, judgments by people and models, queues of what waits to be judged, and guesses after a game.

Reads are QuerySet methods; writes are functions of `webapp.judgments.services`.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.functions import Now

from training.rewards.rubrics import Rubric as RubricRecord
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.runs.models import PlayedEpisode

QUEUE_SORTS = {
    "name": "name",
    "rubric": "rubric_version__rubric__name",
    "scored": "targets_scored",
    "left": "targets_left",
    "seats": "targets_all",
    "owner": "owner__username",
    "age": "-created_at",
}
"""The columns by which a list of queues can be sorted; a minus in front: the largest first."""
LEASE = timedelta(minutes=15)
"""How long a worker may take for one target before another tries it."""


class Rubric(models.Model):
    """A named line of rubric versions; those that come with Parley have no owner and are changed by admins."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="rubrics"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name

    def newest(self) -> RubricVersion:
        """Return the version with the highest number; every rubric has one. Uses prefetched versions."""
        return max(self.versions.all(), key=lambda version: version.number)


class RubricVersion(models.Model):
    """One immutable state of a rubric: its dimensions as `training.rewards.rubrics` writes them."""

    rubric = models.ForeignKey(Rubric, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    dimensions = models.JSONField(help_text="[{name, title, low, high, question, anchors: [{value, text}]}]")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["rubric", "number"], name="rubric_number_once")]

    def __str__(self) -> str:
        return f"{self.rubric} v{self.number}"

    def record(self) -> RubricRecord:
        """Return it as judges and exports read it."""
        return RubricRecord(name=self.rubric.name, version=self.number, title=self.title, dimensions=self.dimensions)


class JudgeModel(models.Model):
    """A remote model that may judge, with the temperature it is asked at."""

    name = models.CharField(max_length=120, unique=True)
    remote = models.ForeignKey("serving.RemoteModel", on_delete=models.PROTECT, related_name="judges")
    temperature = models.FloatField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class QueueQuerySet(models.QuerySet["Queue"]):
    """Reads of queues."""

    def visible_to(self, user: User) -> QueueQuerySet:
        """Researchers see every queue, annotators those that name them."""
        if user.is_researcher:
            return self
        return self.filter(annotators=user) if user.is_annotator else self.none()

    def assigned_to(self, user: User, *, unfinished: bool = False) -> QueueQuerySet:
        """The queues that name this person as an annotator, newest first, with `left`: what they have not judged.

        `unfinished`: only those in which something is left.
        """
        done = Exists(Judgment.objects.filter(target=OuterRef("targets"), author=user))
        left = Count("targets", filter=~done, distinct=True)
        found = self.filter(annotators=user).annotate(left=left).order_by("-created_at")
        return found.filter(left__gt=0) if unfinished else found

    def changeable_by(self, user: User) -> QueueQuerySet:
        """Researchers change their own queues, admins all."""
        if user.is_admin:
            return self
        return self.filter(owner=user) if user.is_researcher else self.none()

    def matching(self, *, text: str = "", by: str = "", left: bool = False) -> QueueQuerySet:
        """Queues whose name or owner holds the text, judged by `people` or a `model`, with seats left to be judged."""
        found = self.filter(Q(name__icontains=text) | Q(owner__username__iexact=text)) if text else self
        if by in {"people", "model"}:
            found = found.filter(judge__isnull=by == "people")
        return found.filter(Exists(Target.objects.filter(queue=OuterRef("pk"), state="pending"))) if left else found

    def listed(self) -> QueueQuerySet:
        """With the counts of a list: `targets_all`, `targets_scored`, `targets_unscored`, `targets_left`."""
        return self.select_related("owner", "judge", "rubric_version__rubric").annotate(
            targets_all=Count("targets", distinct=True),
            targets_scored=Count("targets", filter=Q(targets__state="scored"), distinct=True),
            targets_unscored=Count("targets", filter=Q(targets__state="unscored"), distinct=True),
            targets_left=Count("targets", filter=Q(targets__state="pending"), distinct=True),
        )


class Queue(models.Model):
    """A set of targets to be judged under one rubric version: by people, or by one judge model."""

    name = models.CharField(max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="queues")
    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="queues")
    judge = models.ForeignKey(JudgeModel, null=True, blank=True, on_delete=models.PROTECT, related_name="queues")
    annotators = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="annotation_queues")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = QueueQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


class TargetQuerySet(models.QuerySet["Target"]):
    """Reads of targets."""

    def for_models(self) -> TargetQuerySet:
        """Targets that wait for a judge model and that no worker holds."""
        free = Q(claimed_until=None) | Q(claimed_until__lt=Now())
        return self.filter(free, state=Target.State.PENDING, queue__judge__isnull=False)

    def open_for(self, user: User) -> TargetQuerySet:
        """Targets of people's queues that are assigned to this person and that they have not judged yet, in order."""
        mine = Judgment.objects.filter(target=OuterRef("pk"), author=user)
        assigned = self.filter(queue__judge=None, queue__annotators=user)
        return assigned.exclude(Exists(mine)).order_by("queue", "position")

    def with_games(self) -> TargetQuerySet:
        """With what reading the judged game needs."""
        return self.select_related("match", "episode__run", "queue__rubric_version__rubric")


class Target(models.Model):
    """One seat of one match or of one episode of a run, in a queue. `state` is a model's, or the people's, progress."""

    class State(models.TextChoices):
        PENDING = "pending"
        SCORED = "scored"
        UNSCORED = "unscored", "could not be scored"

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="targets")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="targets")
    episode = models.ForeignKey(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="targets"
    )
    seat = models.PositiveSmallIntegerField()
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    claimed_until = models.DateTimeField(null=True, blank=True)

    objects = TargetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "position"], name="target_position_once"),
            models.CheckConstraint(
                condition=Q(match__isnull=False, episode__isnull=True) | Q(match__isnull=True, episode__isnull=False),
                name="target_is_match_or_episode",
            ),
        ]
        indexes = [models.Index(fields=["state", "claimed_until"])]

    def asked(self) -> RubricRecord:
        """Return what the queue's rubric asks about this seat. For targets loaded `with_games`."""
        game = self.match or self.episode
        assert game is not None, "a constraint of the table"
        return self.queue.rubric_version.record().of(role_at(game, self.seat))


def role_at(game: Match | PlayedEpisode, seat: int) -> str:
    """Return the role that a seat of a finished game held; empty in a game without roles."""
    roles = game.roles if isinstance(game, Match) else game.summary.get("roles")
    return str(roles[seat]) if roles else ""


class JudgmentQuerySet(models.QuerySet["Judgment"]):
    """Reads of judgments."""

    def readable_by(self, user: User) -> JudgmentQuerySet:
        """Annotators read their own; researchers what others said, too, but of a seat that they have yet to judge, and
        of a match of which they are not told yet who sat there.
        """
        if not user.is_researcher:
            return self.filter(author=user) if user.is_annotator else self.none()
        unjudged = Exists(Target.objects.open_for(user).filter(pk=OuterRef("target")))
        untold = Exists(Match.objects.untold_to(user).filter(pk=OuterRef("match")))
        return self.exclude(unjudged).filter(Q(author=user) | ~untold)

    def scored(self) -> JudgmentQuerySet:
        """Those with values."""
        return self.filter(values__isnull=False)

    def of_queue(self, queue: Queue) -> JudgmentQuerySet:
        """Those of a queue in the order of its targets, with authors and what names the game."""
        found = self.filter(target__queue=queue).with_authors().select_related("target__episode")
        return found.order_by("target__position", "pk")

    def with_authors(self) -> JudgmentQuerySet:
        """With what an export or a result names."""
        return self.select_related("rubric_version__rubric", "author", "author_seat", "judge").order_by("pk")


class Judgment(models.Model):
    """One author's values for one seat of a game under one rubric version. `values` null = could not score."""

    rubric_version = models.ForeignKey(RubricVersion, on_delete=models.PROTECT, related_name="judgments")
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    episode = models.ForeignKey(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="judgments"
    )
    seat = models.PositiveSmallIntegerField()
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="judgments"
    )
    author_seat = models.ForeignKey(
        "arena.MatchSeat",
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="judgments",
        help_text="The seat from which somebody rated after the game.",
    )
    judge = models.ForeignKey(JudgeModel, null=True, blank=True, on_delete=models.PROTECT, related_name="judgments")
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    values = models.JSONField(null=True, blank=True)
    reasons = models.JSONField(default=dict, help_text="A judge model's sentence for each dimension.")
    reason = models.TextField(blank=True, help_text="Why it could not be scored, or a person's comment.")
    cost = models.JSONField(default=dict, help_text="Calls and tokens of the judge model.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = JudgmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["target", "author"], name="one_judgment_a_person_and_target"),
            models.UniqueConstraint(fields=["author_seat", "seat", "rubric_version"], name="one_rating_a_seat"),
        ]

    @property
    def by(self) -> str:
        """Who judged, as exports name it: the judge model, or a number that stands for a person."""
        if self.judge is not None:
            return f"model:{self.judge.remote.model}"
        return f"person:{self.author_id}"


class Guess(models.Model):
    """'Person or model?': what one player thought of another seat after the game."""

    by = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guesses")
    about = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guessed")
    person = models.BooleanField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["by", "about"], name="guess_once")]
