"""Queues of targets, and who judges them."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Case, Count, Exists, F, OuterRef, Q, Subquery, Value, When
from django.db.models.functions import MD5, Cast, Coalesce, Concat, Now

from training.labels.codebooks import Codebook as CodebookRecord
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments.models.codebooks import CodebookVersion, JudgeModel
from webapp.judgments.models.judged import SITE_SOURCE, ConsentedQuerySet, JudgedGame, role_at, source_in_sql
from webapp.scenarios.models import StoredConversationQuerySet
from webapp.scenarios.signals import WaitingQueue

QUEUE_SORTS = {
    "name": "name",
    "codebook": "codebook_version__codebook__name",
    "scored": "targets_scored",
    "left": "targets_left",
    "seats": "targets_all",
    "owner": "owner__username",
    "age": "-created_at",
}
"""The columns by which a list of queues can be sorted; a minus in front: the largest first."""
LEASE = timedelta(minutes=15)
"""How long a worker may take for one target before another tries it."""


class QueueQuerySet(models.QuerySet["Queue"]):
    """Reads of queues."""

    def visible_to(self, user: User) -> QueueQuerySet:
        """Researchers see every queue, others those in which they may judge."""
        return self if user.is_researcher else self.annotated_by(user)

    def annotated_by(self, user: User) -> QueueQuerySet:
        """Queues in which this person may judge: those that name them.

        Whoever does not have the role of an annotator judges in queues whose invitation they accepted, only.
        """
        named = self.filter(annotators=user)
        if user.is_annotator:
            return named
        invited = Queue.objects.filter(pk=OuterRef("pk"), invitations__accepted_by=user)
        return self.none() if user.is_guest else named.filter(Exists(invited))

    def assigned_to(self, user: User, *, unfinished: bool = False) -> QueueQuerySet:
        """The queues in which this person may judge, newest first, with `left`: how many targets are open for them.

        `unfinished`: only those in which something is left.
        """
        waiting = Target.objects.open_for(user).filter(queue=OuterRef("pk")).order_by().values("queue")
        left = Coalesce(Subquery(waiting.annotate(number=Count("pk")).values("number")), 0)
        queues = self.annotated_by(user).annotate(left=left).order_by("-created_at")
        return queues.filter(left__gt=0) if unfinished else queues

    def changeable_by(self, user: User) -> QueueQuerySet:
        """Researchers change their own queues, admins all."""
        if user.is_admin:
            return self
        return self.filter(owner=user) if user.is_researcher else self.none()

    def matching(self, *, text: str = "", by: str = "", left: bool = False) -> QueueQuerySet:
        """Queues whose name contains the text or whose owner is it, judged by `people`, a `model` or a `rule`,
        unfinished.
        """
        queues = self.filter(Q(name__icontains=text) | Q(owner__username__iexact=text)) if text else self
        if by in {"people", "model"}:
            queues = queues.filter(judge__isnull=by == "people", rule="")
        elif by == "rule":
            queues = queues.exclude(rule="")
        return queues.filter(Exists(Target.objects.filter(queue=OuterRef("pk"), state="pending"))) if left else queues

    def described(self) -> QueueQuerySet:
        """With owner, judge and codebook."""
        return self.select_related("owner", "judge", "codebook_version__codebook")

    def listed(self) -> QueueQuerySet:
        """With what a list shows: `described`, and the counts `targets_all`, `targets_scored`, `targets_unscored`,
        `targets_left`, withdrawn games among them.
        """
        counts = {
            name: Coalesce(Subquery(_number_of(Target.everything.filter(state=state))), 0)
            for name, state in (("scored", "scored"), ("unscored", "unscored"), ("left", "pending"))
        }
        queues = self.annotate(**{f"targets_{name}": count for name, count in counts.items()})
        all_states = F("targets_scored") + F("targets_unscored") + F("targets_left")
        return queues.annotate(targets_all=all_states).described()


class Queue(models.Model):
    """A set of targets to be judged under one codebook version: by people, by one judge model, or by a rule.

    A judgment that was last saved before `exported_at` is part of a dataset that its owner or an admin exported, and no
    longer changes. Of people's queues, a paused one offers nothing until it is resumed, and a closed one never again.

    Every annotator judges every target; with `overlap`, that many judge each: those to whom it was assigned
    (`PREASSIGNED`), or those who open it first and for whom it is then reserved for `reserve_minutes` (`FIRST_COME`).
    With `max_overlap`, a target whose annotators disagree is judged by one more until that many have judged it.
    Targets of batches above `batches_open` wait. Annotators judge `qualification_items` gold targets first, and the
    others once they answered the share `qualification_threshold` of those right.
    """

    class State(models.TextChoices):
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    class Assignment(models.TextChoices):
        FIRST_COME = "first_come", "first come"
        PREASSIGNED = "preassigned", "shared out among the annotators"

    class Order(models.TextChoices):
        """Which targets are offered first."""

        POSITION = "position", "in the order of the queue"
        RANDOM = "random", "in a random order of each annotator"
        DISAGREEMENT = "disagreement", "those on which annotators disagree"
        UNCERTAINTY = "uncertainty", "those of whose suggestions the model is least sure"

    name = models.CharField(max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="queues")
    codebook_version = models.ForeignKey(CodebookVersion, on_delete=models.PROTECT, related_name="queues")
    judge = models.ForeignKey(JudgeModel, null=True, blank=True, on_delete=models.PROTECT, related_name="queues")
    rule = models.CharField(max_length=60, blank=True, help_text="The name of a rule; see webapp.judgments.rules.")
    state = models.CharField(max_length=6, choices=State, default=State.OPEN)
    annotators = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="annotation_queues")
    excluded = models.JSONField(
        default=list, help_text="Seats that the codebook asks nothing about, one line per game."
    )
    overlap = models.PositiveSmallIntegerField(null=True, blank=True)
    max_overlap = models.PositiveSmallIntegerField(null=True, blank=True)
    assignment = models.CharField(max_length=12, choices=Assignment, default=Assignment.FIRST_COME)
    reserve_minutes = models.PositiveSmallIntegerField(default=30)
    order = models.CharField(max_length=12, choices=Order, default=Order.RANDOM)
    batch_size = models.PositiveSmallIntegerField(null=True, blank=True)
    batches_open = models.PositiveSmallIntegerField(null=True, blank=True, help_text="Empty: all.")
    qualification_items = models.PositiveSmallIntegerField(default=0)
    qualification_threshold = models.FloatField(default=0.8)
    gold_feedback = models.BooleanField(default=True, help_text="Annotators see the right labels of gold targets.")
    shows_hidden = models.BooleanField(
        default=False, help_text="Annotators may read roles, private information and the board."
    )
    shows_suggestions = models.BooleanField(default=False)
    selection = models.JSONField(default=dict, help_text="The filter over games that chose the targets.")
    exported_at = models.DateTimeField(null=True, blank=True, help_text="When it was last exported.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = QueueQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


def _number_of(targets: models.QuerySet[Target]) -> models.QuerySet[Any, Any]:
    """The number of those targets that an outer queue has."""
    rows = targets.filter(queue=OuterRef("pk")).order_by().values("queue")
    return rows.annotate(number=Count("pk")).values("number")


class TargetQuerySet(ConsentedQuerySet["Target"]):
    """Reads of targets."""

    def for_models(self) -> TargetQuerySet:
        """Targets that wait for a judge model and that no worker holds."""
        free = Q(claimed_until=None) | Q(claimed_until__lt=Now())
        return self.filter(free, state=Target.State.PENDING, queue__judge__isnull=False)

    def open_for(self, user: User) -> TargetQuerySet:
        """Targets of open queues that are offered to this person now, in the order in which they are.

        Left out are closed batches, what they have judged or put aside, what is reserved for others or judged by
        enough, and, before they have qualified, all but gold targets. Gold targets are offered to everybody.
        """
        unjudged = self._unjudged_by(user)
        if unjudged.query.is_empty():
            return unjudged
        assignments = Assignment.objects.filter(target=OuterRef("pk"), annotator=user)
        qualifications = Qualification.objects.filter(queue=OuterRef("queue"), annotator=user)
        passed = Q(queue__qualification_items=0) | Exists(qualifications.filter(passed=True))
        in_training = Q(gold=True) & ~Exists(qualifications.failed())
        preassigned = Q(queue__assignment=Queue.Assignment.PREASSIGNED) & Exists(assignments)
        room = Q(queue__assignment=Queue.Assignment.FIRST_COME) & (
            Q(Exists(assignments.reserved())) | Q(required__gt=_judgments() + _reservations(besides=user))
        )
        opened = Q(queue__batches_open=None) | Q(batch__lte=F("queue__batches_open"))
        offered = unjudged.filter(
            opened,
            ~Exists(assignments.exclude(skipped="")),
            passed | in_training,
            Q(gold=True) | Q(required=None) | preassigned | room,
            queue__state=Queue.State.OPEN,
        )
        return _in_order_of(offered, user)

    def awaited_by(self, user: User) -> TargetQuerySet:
        """Targets that this person may still come to judge, whether or not they are offered now.

        Also those of paused queues and closed batches, those put aside, and of first-come targets all that are not
        judged by enough; so also of shared-out ones where one more annotator may be asked. What others said of their
        seats is withheld from this person.
        """
        unjudged = self._unjudged_by(user)
        if unjudged.query.is_empty():
            return unjudged
        assignments = Assignment.objects.filter(target=OuterRef("pk"), annotator=user)
        few = Q(required__gt=_judgments())
        one_more = Q(queue__max_overlap__isnull=False) & few
        preassigned = Q(queue__assignment=Queue.Assignment.PREASSIGNED) & (Q(Exists(assignments)) | one_more)
        room = Q(queue__assignment=Queue.Assignment.FIRST_COME) & (Q(Exists(assignments.reserved())) | few)
        unjudged = unjudged.exclude(queue__state=Queue.State.CLOSED)
        return unjudged.filter(Q(gold=True) | Q(required=None) | preassigned | room).order_by("queue", "position")

    def skipped_by(self, user: User) -> TargetQuerySet:
        """Targets that this person put aside and has not judged, with `why`, the latest first."""
        assignments = Assignment.objects.filter(target=OuterRef("pk"), annotator=user).exclude(skipped="")
        skipped = self._unjudged_by(user).exclude(queue__state=Queue.State.CLOSED).filter(Exists(assignments))
        why, at = Subquery(assignments.values("skipped")), Subquery(assignments.values("created_at"))
        return skipped.annotate(why=why, skipped_at=at).order_by("-skipped_at")

    def _unjudged_by(self, user: User) -> TargetQuerySet:
        """Targets of the queues in which this person may judge, without those that they judged, and without matches
        of which a player refused that they are judged.

        Whether a queue names them at all is read at once: nearly every page excludes these targets, most readers have
        none, and without them the conditions of its queries are built and planned in a fraction of the time.
        """
        if not Queue.objects.filter(annotators=user).exists():
            return self.none()
        judgments: Any = Target._meta.get_field("judgments").related_model
        own = judgments.everything.filter(author=user, decides=False, target__isnull=False)
        judged = own.order_by().values("target")  # read once, before judgments are counted
        named = self.filter(queue__judge=None, queue__annotators=user)
        if not user.is_annotator:
            named = named.filter(queue__in=Queue.objects.annotated_by(user).values("pk"))
        agreed = Exists(Match.objects.exportable().filter(pk=OuterRef("match")))
        return named.exclude(pk__in=judged).filter(Q(match=None) | agreed)

    def judged_by(self, user: User) -> TargetQuerySet:
        """Targets that this person has judged, in order."""
        return self.filter(judgments__author=user, judgments__decides=False).order_by("queue", "position")

    def with_games(self) -> TargetQuerySet:
        """Load what reading the judged game needs."""
        return self.select_related(
            "match", "episode__run", "conversation__scenario__version__dataset", "queue__codebook_version__codebook"
        )

    def with_links(self) -> TargetQuerySet:
        """Load what a link to the judged game needs, and neither its moves nor its results."""
        rows = self.select_related("match", "episode__run", "conversation__scenario__version__dataset")
        return rows.defer(
            "episode__summary", "conversation__data", "conversation__judgments", "conversation__scenario__data"
        )

    def among(self, conversations: StoredConversationQuerySet) -> dict[int, WaitingQueue]:
        """Return those of the conversations that are a game of these targets, or a copy of one, each with a queue."""
        rows = self.order_by("-queue").values_list(
            "queue", "queue__name", "conversation__episode_sha256", source_in_sql(F)
        )
        queues: dict[str, WaitingQueue] = {}
        for pk, name, digest, source in rows.distinct():
            names = [digest] * (digest is not None) + [source] * bool(re.fullmatch(SITE_SOURCE, source))
            queues |= dict.fromkeys(names, WaitingQueue(pk, name))
        if not queues:
            return {}
        same = conversations.filter(Q(episode_sha256__in=queues) | Q(source__in=queues))
        return {
            pk: queues.get(digest) or queues[source]
            for pk, digest, source in same.values_list("pk", "episode_sha256", "source")
        }


_TargetReads = models.Manager.from_queryset(TargetQuerySet)


class TargetManager(_TargetReads):
    """Targets whose game may be judged."""

    def get_queryset(self) -> TargetQuerySet:  # type: ignore[override]
        """Return the targets of games to whose use nobody withdrew consent."""
        return TargetQuerySet(self.model, using=self._db).consented()

    def locked(self, pk: int) -> Target | None:
        """Lock the row of a target until the transaction ends, and return it; None if its game may not be judged.

        Consent is read after the row is locked: a withdrawal that held the lock has ended by then, and one that waits
        for it applies to everything that is stored under this lock.
        """
        list(Target.everything.select_for_update().filter(pk=pk).values_list("pk"))
        return self.filter(pk=pk).first()


class Target(models.Model):
    """One seat (null: all) of one match, of one episode of a run or of one imported conversation, in a queue.

    `state` is the progress of the judge model or of the annotators. `required` is how many annotators are to judge it
    (None: all); of those that are offered next, the highest `priority` comes first. The labels of a `gold` target are
    known: it has a judgment that decides.
    """

    class State(models.TextChoices):
        PENDING = "pending"
        SCORED = "scored"
        UNSCORED = "unscored", "could not be scored"

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="targets")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="targets")
    episode = models.ForeignKey(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="targets"
    )
    conversation = models.ForeignKey(
        "scenarios.StoredConversation", null=True, blank=True, on_delete=models.CASCADE, related_name="targets"
    )
    seat = models.PositiveSmallIntegerField(null=True, blank=True)
    turns = models.JSONField(
        null=True, blank=True, help_text="Of a game: the moves that can be labelled as turns, once it was judged."
    )
    position = models.PositiveIntegerField()
    batch = models.PositiveSmallIntegerField(default=1)
    required = models.PositiveSmallIntegerField(null=True, blank=True)
    priority = models.FloatField(default=0)
    gold = models.BooleanField(default=False)
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    claimed_until = models.DateTimeField(null=True, blank=True)

    objects = TargetManager()
    everything = TargetQuerySet.as_manager()
    """Those of withdrawn games, too."""

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "position"], name="target_position_once"),
            models.UniqueConstraint(fields=["id", "queue"], name="target_with_queue"),  # judgments refer to both
            models.CheckConstraint(
                condition=Q(match__isnull=False, episode__isnull=True, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=False, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=True, conversation__isnull=False),
                name="target_is_one_game",
            ),
        ]
        indexes = [
            models.Index(fields=["state", "claimed_until"]),
            models.Index(fields=["queue", "state"], name="target_state_in_queue"),
        ]
        ordering = ["queue", "position"]  # keys are given at random

    @property
    def game(self) -> JudgedGame:
        """The judged match, episode or conversation."""
        game = self.match or self.episode or self.conversation
        assert game is not None, "a constraint of the table"
        return game

    def codebook(self) -> CodebookRecord:
        """Return what the queue's codebook asks about this target. For targets loaded `with_games`."""
        record = self.queue.codebook_version.record()
        return record if self.seat is None else record.of(role_at(self.game, self.seat))


def _in_order_of(rows: TargetQuerySet, user: User) -> TargetQuerySet:
    """Sort by queue, and in each by its order; what is reserved for this person comes first."""
    reserved = Assignment.objects.filter(target=OuterRef("pk"), annotator=user).reserved()
    by_priority = Q(queue__order__in=[Queue.Order.DISAGREEMENT, Queue.Order.UNCERTAINTY])
    drawn = MD5(Concat(Cast("pk", models.TextField()), Value(f" {user.pk}"), output_field=models.TextField()))
    return rows.order_by(
        "queue",
        Case(When(Exists(reserved), then=0), default=1),
        Case(When(by_priority, then=-F("priority")), default=0.0),
        Case(When(queue__order=Queue.Order.POSITION, then=Value("")), default=drawn, output_field=models.TextField()),
        "position",
    )


def _judgments() -> Coalesce:
    """How many judgments a target of an outer query has, without a decision."""
    rows = Target.everything.filter(pk=OuterRef("pk"), judgments__decides=False).order_by().values("pk")
    return Coalesce(Subquery(rows.annotate(number=Count("judgments")).values("number")), 0)


def _reservations(besides: User) -> Coalesce:
    """For how many others a target of an outer query is reserved."""
    rows = Assignment.objects.filter(target=OuterRef("pk")).reserved().exclude(annotator=besides)
    return Coalesce(Subquery(rows.values("target").annotate(number=Count("pk")).values("number")), 0)


class AssignmentQuerySet(models.QuerySet["Assignment"]):
    """Reads of assignments."""

    def reserved(self) -> AssignmentQuerySet:
        """Reservations that have not expired."""
        return self.filter(expires_at__gt=Now(), skipped="")

    def unjudged(self) -> AssignmentQuerySet:
        """Assignments whose annotator has not judged the target."""
        done = Target.objects.filter(
            pk=OuterRef("target"), judgments__author=OuterRef("annotator"), judgments__decides=False
        )
        return self.filter(~Exists(done))


class Assignment(models.Model):
    """A target that an annotator is to judge: reserved until `expires_at`, or without end (None).

    `skipped` is why the annotator put it aside; it is then no longer reserved.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="assignments")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="assignments")
    expires_at = models.DateTimeField(null=True, blank=True)
    skipped = models.CharField(max_length=300, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = AssignmentQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["target", "annotator"], name="assignment_once")]


class QualificationQuerySet(models.QuerySet["Qualification"]):
    """Reads of qualifications."""

    def failed(self) -> QualificationQuerySet:
        """Of annotators who failed, and whom the owner has not allowed another try."""
        return self.filter(passed=False, by_owner=False)


class Qualification(models.Model):
    """Whether an annotator may judge more of a queue than its gold targets: by `right`, the share of `items` that they
    answered right, or by its owner. Not passed by its owner: another try, with the gold targets judged from then on.
    """

    queue = models.ForeignKey(Queue, on_delete=models.CASCADE, related_name="qualifications")
    annotator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="qualifications")
    passed = models.BooleanField()
    right = models.FloatField(default=0)
    items = models.PositiveSmallIntegerField(default=0)
    by_owner = models.BooleanField(default=False)
    decided_at = models.DateTimeField(auto_now=True)

    objects = QualificationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["queue", "annotator"], name="qualification_once")]
