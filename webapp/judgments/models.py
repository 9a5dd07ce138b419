"""Codebooks, judgments by people and models, queues of targets, and ratings after a game.

Reads are QuerySet methods; writes are functions of `webapp.judgments.services`.
"""

from __future__ import annotations

import re
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.db.models import Count, Exists, F, Func, OuterRef, Q, TextField, Value
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import IsNull

from training.labels.codebooks import Codebook as CodebookRecord
from training.records import Label as LabelRecord
from training.records import numbers_by_seat
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation, StoredConversationQuerySet
from webapp.scenarios.signals import WaitingQueue

JudgedGame = Match | PlayedEpisode | StoredConversation
"""What can be judged: a finished match, an episode of a run, or an imported conversation."""
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
SITE_SOURCE = r"^(match:[0-9]+|run:[0-9]+/[0-9]+/[0-9]+)$"
"""What `source_of` returns."""


def source_of(game: Match | PlayedEpisode) -> str:
    """Return the name of a game of this site in datasets: the `source` of the conversations that copy it."""
    if isinstance(game, Match):
        return f"match:{game.pk}"
    return f"run:{game.run_id}/{game.step}/{game.number}"


class _Joined(Func):
    """Texts and numbers as one text; NULL if one of them is, which `Concat` takes for an empty text."""

    template, arg_joiner, output_field = "(%(expressions)s)", " || ", TextField()


def _source(row: type[F]) -> Coalesce:
    """Return `source_of` the game of a target or judgment in SQL; of a conversation, the source that it came with."""
    match = _Joined(Value("match:"), row("match"))
    parts = row("episode__run"), Value("/"), row("episode__step"), Value("/"), row("episode__number")
    return Coalesce(match, _Joined(Value("run:"), *parts), row("conversation__source"), output_field=TextField())


class CodebookQuerySet(models.QuerySet["Codebook"]):
    """Reads of codebooks."""

    def visible_to(self, user: User) -> CodebookQuerySet:
        """Return what this person may read: researchers all, others none outside of their queues."""
        return self if user.is_researcher else self.none()

    def matching(self, text: str) -> CodebookQuerySet:
        """Return codebooks whose name or title contains the text, by name."""
        return self.filter(Q(name__icontains=text) | Q(title__icontains=text)).order_by("name")


class Codebook(models.Model):
    """A named line of codebook versions; those that come with Parley have no owner and are changed by admins."""

    name = models.SlugField(max_length=80, unique=True)
    title = models.CharField(max_length=200)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="codebooks"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    objects = CodebookQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name

    def newest(self) -> CodebookVersion:
        """Return the version with the highest number; every codebook has one. Uses prefetched versions."""
        return max(self.versions.all(), key=lambda version: version.number)


class CodebookVersion(models.Model):
    """One immutable state of a codebook: its label types as `training.labels.codebooks` writes them."""

    codebook = models.ForeignKey(Codebook, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    title = models.CharField(max_length=200)
    guideline = models.TextField(blank=True, help_text="For annotators, in Markdown.")
    labels = models.JSONField(help_text="Label types; see `training.labels.codebooks.LabelType`.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["codebook", "number"], name="codebook_number_once")]

    def __str__(self) -> str:
        return f"{self.codebook} v{self.number}"

    def record(self) -> CodebookRecord:
        """Return it as judges and exports read it."""
        return CodebookRecord.from_dict(
            {
                "name": self.codebook.name,
                "version": self.number,
                "title": self.title,
                "guideline": self.guideline,
                "labels": self.labels,
            }
        )


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
        queues = self.filter(annotators=user).annotate(left=left).order_by("-created_at")
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

    def listed(self) -> QueueQuerySet:
        """With the counts of a list: `targets_all`, `targets_scored`, `targets_unscored`, `targets_left`."""
        return self.select_related("owner", "judge", "codebook_version__codebook").annotate(
            targets_all=Count("targets", distinct=True),
            targets_scored=Count("targets", filter=Q(targets__state="scored"), distinct=True),
            targets_unscored=Count("targets", filter=Q(targets__state="unscored"), distinct=True),
            targets_left=Count("targets", filter=Q(targets__state="pending"), distinct=True),
        )


class Queue(models.Model):
    """A set of targets to be judged under one codebook version: by people, by one judge model, or by a rule.

    A judgment that was last saved before `exported_at` is part of a dataset that its owner or an admin exported, and no
    longer changes.
    """

    name = models.CharField(max_length=120)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="queues")
    codebook_version = models.ForeignKey(CodebookVersion, on_delete=models.PROTECT, related_name="queues")
    judge = models.ForeignKey(JudgeModel, null=True, blank=True, on_delete=models.PROTECT, related_name="queues")
    rule = models.CharField(max_length=60, blank=True, help_text="The name of a rule; see webapp.judgments.rules.")
    annotators = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="annotation_queues")
    left_out = models.JSONField(
        default=list, help_text="Seats that the codebook asks nothing about, one line per game."
    )
    exported_at = models.DateTimeField(null=True, blank=True, help_text="When it was last exported.")
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
        judged = Judgment.objects.filter(target=OuterRef("pk"), author=user)
        assigned = self.filter(queue__judge=None, queue__annotators=user)
        return assigned.exclude(Exists(judged)).order_by("queue", "position")

    def judged_by(self, user: User) -> TargetQuerySet:
        """Targets that this person has judged, in order."""
        judged = Judgment.objects.filter(target=OuterRef("pk"), author=user)
        return self.filter(Exists(judged)).order_by("queue", "position")

    def with_games(self) -> TargetQuerySet:
        """Load what reading the judged game needs."""
        return self.select_related(
            "match", "episode__run", "conversation__scenario__version__dataset", "queue__codebook_version__codebook"
        )

    def among(self, conversations: StoredConversationQuerySet) -> dict[int, WaitingQueue]:
        """Return those of the conversations that are a game of these targets, or a copy of one, each with a queue."""
        rows = self.order_by("-queue").values_list("queue", "queue__name", "conversation__episode_sha256", _source(F))
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


class Target(models.Model):
    """One seat (null: all) of one match, of one episode of a run or of one imported conversation, in a queue.

    `state` is the progress of the judge model or of the annotators.
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
    state = models.CharField(max_length=8, choices=State, default=State.PENDING)
    claimed_until = models.DateTimeField(null=True, blank=True)

    objects = TargetQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["queue", "position"], name="target_position_once"),
            models.CheckConstraint(
                condition=Q(match__isnull=False, episode__isnull=True, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=False, conversation__isnull=True)
                | Q(match__isnull=True, episode__isnull=True, conversation__isnull=False),
                name="target_is_one_game",
            ),
        ]
        indexes = [models.Index(fields=["state", "claimed_until"])]

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


def role_at(game: JudgedGame, seat: int) -> str:
    """Return the role of a seat in a finished game; empty in a game without roles."""
    if isinstance(game, Match):
        roles = game.roles
    elif isinstance(game, PlayedEpisode):
        roles = game.summary.get("roles")
    else:
        roles = game.data.get("roles")
    return str(roles[seat]) if roles and seat < len(roles) else ""


def of_same_seat(rows: models.QuerySet[Target] | models.QuerySet[Judgment]) -> Q:
    """The condition that one of these targets or judgments is about the same seat of the same game as an outer row, or
    that one of both is about the whole game.

    Two queues over one game have two targets of a seat. A game may be judged as the match or the episode that was
    played, and as each of the conversations that copy it: those have its `source_of`, or the same scenario and moves.
    """
    rows = rows.filter(Q(seat=OuterRef("seat")) | Q(seat=None) | Q(IsNull(OuterRef("seat"), True)))
    copies = rows.filter(conversation__episode_sha256=OuterRef("conversation__episode_sha256"))
    named = rows.alias(source=_source(F)).filter(source__regex=SITE_SOURCE, source=_source(OuterRef))
    return Q(Exists(copies)) | Q(Exists(named))


class JudgmentQuerySet(models.QuerySet["Judgment"]):
    """Reads of judgments."""

    def readable_by(self, user: User) -> JudgmentQuerySet:
        """Annotators read their own judgments; researchers read all but those that would prejudice them.

        Withheld from a researcher are judgments of a seat that they have yet to judge, and of a match in which they
        played and have neither rated the others nor asked to see who they were.
        """
        if not user.is_researcher:
            return self.filter(author=user) if user.is_annotator else self.none()
        unrated = Exists(Match.objects.unrevealed_to(user).filter(pk=OuterRef("match")))
        return self.not_awaited_by(user).filter(Q(author=user) | ~unrated)

    def not_awaited_by(self, user: User | None) -> JudgmentQuerySet:
        """All but others' judgments of seats that this person has yet to judge in any queue; without a person, all."""
        if user is None:
            return self
        return self.filter(Q(author=user) | ~of_same_seat(Target.objects.open_for(user)))

    def saying(self, text: str) -> JudgmentQuerySet:
        """Judgments whose comment, or a label's reason or text, contains the text."""
        said = Label.objects.filter(judgment=OuterRef("pk")).filter(Q(reason__icontains=text) | Q(text__icontains=text))
        return self.filter(Q(reason__icontains=text) | Exists(said))

    def scored(self) -> JudgmentQuerySet:
        """Judgments with labels: those of targets that could be scored."""
        return self.filter(unscored=False)

    def with_labels(self) -> JudgmentQuerySet:
        """Load the labels, in the order of their places."""
        return self.prefetch_related("labels")

    def of_queue(self, queue: Queue) -> JudgmentQuerySet:
        """Those of a queue in the order of its targets, with authors and what names the game."""
        judgments = self.filter(target__queue=queue).with_authors()
        copies = "target__conversation__scenario__version__dataset"
        games = judgments.select_related("target__match", "target__episode", copies)
        return games.order_by("target__position", "pk")

    def outside(self) -> JudgmentQuerySet:
        """Judgments that came with imported conversations."""
        return self.exclude(outside_author="")

    def with_authors(self) -> JudgmentQuerySet:
        """Load the labels, and what exports and results name."""
        rows = self.select_related("codebook_version__codebook", "author", "author_seat", "judge__remote")
        return rows.with_labels().order_by("pk")


class Judgment(models.Model):
    """One author's labels of one seat of a game (null: of all) under one codebook version.

    `unscored`: the author could not judge it, and `reason` says why; else `reason` is the author's comment.

    The author is a person (`author`), a player who rated the others after the game (`author_seat`), a judge model of
    this site (`judge`), a `rule`, or a name that came with an imported conversation (`outside_author`).
    """

    codebook_version = models.ForeignKey(CodebookVersion, on_delete=models.PROTECT, related_name="judgments")
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    episode = models.ForeignKey(
        "runs.PlayedEpisode", null=True, blank=True, on_delete=models.CASCADE, related_name="judgments"
    )
    conversation = models.ForeignKey(
        "scenarios.StoredConversation", null=True, blank=True, on_delete=models.CASCADE, related_name="judgment_rows"
    )
    seat = models.PositiveSmallIntegerField(null=True, blank=True)
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
    rule = models.CharField(max_length=60, blank=True, help_text="The name of a rule; see webapp.judgments.rules.")
    outside_author = models.CharField(
        max_length=200, blank=True, help_text="The author's name in the imported file; not an account of this site."
    )
    prompt_sha256 = models.CharField(max_length=64, blank=True)
    unscored = models.BooleanField(default=False, help_text="The author could not score it.")
    reason = models.TextField(blank=True, help_text="Why it could not be scored, or a comment.")
    cost = models.JSONField(default=dict, help_text="Calls and tokens of the judge model.")
    history = models.JSONField(default=list, help_text="Earlier answers of its author: [{labels, reason, at}].")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(
        null=True, blank=True, help_text="When its author last saved it; empty if an import does not say."
    )

    objects = JudgmentQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["target", "author"], name="one_judgment_a_person_and_target"),
            models.UniqueConstraint(
                fields=["target", "rule"], condition=~Q(rule=""), name="one_judgment_a_rule_and_target"
            ),
            models.UniqueConstraint(fields=["author_seat", "seat", "codebook_version"], name="one_rating_a_seat"),
            models.UniqueConstraint(
                fields=["conversation", "seat", "codebook_version", "outside_author"],
                condition=~Q(outside_author=""),
                nulls_distinct=False,
                name="one_outside_judgment_a_seat",
            ),
        ]

    def records(self) -> tuple[LabelRecord, ...] | None:
        """Return the labels as records; None for a target that could not be scored. Uses prefetched labels."""
        return None if self.unscored else tuple(label.record() for label in self.labels.all())

    @property
    def numbers(self) -> dict[str, float] | None:
        """The values of scales, and of yes (1) and no (0), about its seat or, without one, its game, by label type.

        None for a target that could not be scored. Uses prefetched labels.
        """
        return self.numbers_by_seat().get(self.seat)

    def numbers_by_seat(self) -> dict[int | None, dict[str, float] | None]:
        """Return the same for every seat that was judged, and for its game (None). Uses prefetched labels."""
        records = self.records()
        return {self.seat: None} if records is None else {self.seat: {}, **numbers_by_seat(records)}

    @property
    def by(self) -> str:
        """Who judged, for programs: `model:` or `rule:` with its name, `person:` with the account's number, or an
        outside name.
        """
        if self.outside_author:
            return self.outside_author
        if self.rule:
            return f"rule:{self.rule}"
        return f"person:{self.author_id}" if self.judge is None else f"model:{self.judge.remote.model}"

    @property
    def author_kind(self) -> str:
        """What kind of author judged, in words."""
        if self.outside_author:
            return "named in the import"
        if self.rule:
            return "rule"
        return "person" if self.judge_id is None else "judge model"

    @property
    def shown_author(self) -> str:
        """The author's name on pages."""
        if self.outside_author or self.rule:
            return self.outside_author or f"the rule {self.rule}"
        if self.judge is not None:
            return self.judge.name
        if self.author_seat is not None:
            return f"{self.author_seat.name}, at the table"
        return self.author.username if self.author is not None else "a deleted account"


class Label(models.Model):
    """One label of a judgment: see `training.records.Label`. A text stands in `text`, every other value in `value`."""

    judgment = models.ForeignKey(Judgment, on_delete=models.CASCADE, related_name="labels")
    name = models.CharField(max_length=40, help_text="The label type's name in the judgment's codebook version.")
    value = models.JSONField(null=True, blank=True)
    text = models.TextField(blank=True)
    seat = models.PositiveSmallIntegerField(null=True, blank=True)
    turn = models.PositiveIntegerField(null=True, blank=True)
    start = models.PositiveIntegerField(null=True, blank=True)
    end = models.PositiveIntegerField(null=True, blank=True)
    other_turn = models.PositiveIntegerField(null=True, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgment", "name", "seat", "turn", "start", "end", "other_turn"],
                nulls_distinct=False,
                name="label_place_once",
            ),
        ]
        indexes = [models.Index(fields=["name"], name="label_name")]
        ordering = ["pk"]

    @classmethod
    def of(cls, judgment: Judgment, record: LabelRecord, kind: str) -> Label:
        """Return the row of a record whose type is of this kind, not stored yet."""
        is_text = kind == "text"
        return cls(
            judgment=judgment,
            name=record.label,
            value=None if is_text else record.value,
            text=str(record.value) if is_text else "",
            seat=record.seat,
            turn=record.turn,
            start=record.start,
            end=record.end,
            other_turn=record.other_turn,
            reason=record.reason,
        )

    def record(self) -> LabelRecord:
        """Return the label as a record."""
        return LabelRecord(
            label=self.name,
            value=tuple(self.value) if isinstance(self.value, list) else self.text or self.value,
            seat=self.seat,
            turn=self.turn,
            start=self.start,
            end=self.end,
            other_turn=self.other_turn,
            reason=self.reason,
        )


class Guess(models.Model):
    """'Person or model?': what one player thought of another seat after the game, and whether it was sure.

    `sure` is None for guesses of earlier releases, which did not ask.
    """

    by = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guesses")
    about = models.ForeignKey("arena.MatchSeat", on_delete=models.CASCADE, related_name="guessed")
    person = models.BooleanField()
    sure = models.BooleanField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["by", "about"], name="guess_once")]


class GameRating(models.Model):
    """How a player closed the rating of a game, once: with a vote, or by asking who it was without one."""

    by = models.OneToOneField("arena.MatchSeat", on_delete=models.CASCADE, related_name="game_rating")
    voted = models.BooleanField(help_text="False: the other seats were revealed without a vote, which is refused now.")
    created_at = models.DateTimeField(auto_now_add=True)
