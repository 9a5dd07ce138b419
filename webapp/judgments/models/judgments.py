"""Judgments by people, models and rules with their labels, and what models and rules suggest."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Prefetch, Q

from training.records import Label as LabelRecord
from training.records import numbers_by_seat
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.judgments.models.codebooks import CodebookVersion, JudgeModel
from webapp.judgments.models.judged import ConsentedQuerySet, JudgedGame, of_same_seat
from webapp.judgments.models.queues import Queue, Target
from webapp.scenarios.models import StoredConversation


class JudgmentQuerySet(ConsentedQuerySet["Judgment"]):
    """Reads of judgments."""

    def readable_by(self, user: User) -> JudgmentQuerySet:
        """People read their own judgments; researchers read all but those that would prejudice them.

        Withheld from a researcher are judgments of a seat that they have yet to judge, and of a match in which they
        played and have neither rated the others nor asked to see who they were.
        """
        if not user.is_researcher:
            return self.filter(author=user)
        rows, unrated = self.not_awaited_by(user), Match.objects.unrevealed_at_once(user)
        if unrated.query.is_empty():
            return rows
        return rows.filter(Q(author=user) | ~Exists(unrated.filter(pk=OuterRef("match"))))

    def not_awaited_by(self, user: User | None) -> JudgmentQuerySet:
        """All but others' judgments of seats that this person has yet to judge in any queue; without a person, all."""
        awaited = Target.objects.none() if user is None else Target.objects.awaited_by(user)
        if awaited.query.is_empty():
            return self
        return self.filter(Q(author=user) | ~of_same_seat(awaited))

    def saying(self, text: str) -> JudgmentQuerySet:
        """Judgments whose comment, or a label's reason or text, contains the text."""
        said = Label.objects.filter(judgment=OuterRef("pk")).filter(Q(reason__icontains=text) | Q(text__icontains=text))
        return self.filter(Q(reason__icontains=text) | Exists(said))

    def scored(self) -> JudgmentQuerySet:
        """Judgments with labels: those of targets that could be scored."""
        return self.filter(unscored=False)

    def deciding(self) -> JudgmentQuerySet:
        """Decisions of adjudicators, and the judgments of targets without one: what counts as the truth."""
        decided = Judgment.objects.filter(target=OuterRef("target"), decides=True)
        return self.filter(Q(decides=True) | ~Exists(decided))

    def with_labels(self) -> JudgmentQuerySet:
        """Load the labels, in the order of their places."""
        return self.prefetch_related("labels")

    def of_queue(self, queue: Queue) -> JudgmentQuerySet:
        """Those of a queue in the order of its targets, with authors and games; each game is loaded once."""
        conversations = StoredConversation.objects.select_related("scenario__version__dataset")
        read = conversations.defer("judgments", "scenario__data")
        games = Prefetch("target__conversation", read), "target__match", "target__episode__run"
        judgments = self.filter(queue=queue).with_authors().select_related("target__queue")
        return judgments.prefetch_related(*games).order_by("target__position", "pk")

    def outside(self) -> JudgmentQuerySet:
        """Judgments that came with imported conversations."""
        return self.exclude(outside_author="")

    def with_authors(self) -> JudgmentQuerySet:
        """Load the labels, and what exports and results name."""
        rows = self.select_related("codebook_version__codebook", "author", "author_seat", "judge__remote")
        return rows.with_labels().order_by("pk")


_JudgmentReads = models.Manager.from_queryset(JudgmentQuerySet)


class JudgmentManager(_JudgmentReads):
    """Judgments of games that may be judged: what pages, results, exports and the API read."""

    def get_queryset(self) -> JudgmentQuerySet:  # type: ignore[override]
        """Return the judgments of games to whose use nobody withdrew consent."""
        return JudgmentQuerySet(self.model, using=self._db).consented()


class Judgment(models.Model):
    """One author's labels of one seat of a game (null: of all) under one codebook version.

    `unscored`: the author could not judge it, and `reason` says why; else `reason` is the author's comment.

    The author is a person (`author`), a player who rated the others after the game (`author_seat`), a judge model of
    this site (`judge`), a `rule`, or a name that came with an imported conversation (`outside_author`).
    """

    codebook_version = models.ForeignKey(CodebookVersion, on_delete=models.PROTECT, related_name="judgments")
    target = models.ForeignKey(Target, null=True, blank=True, on_delete=models.CASCADE, related_name="judgments")
    queue = models.ForeignKey(
        Queue,
        null=True,
        editable=False,
        on_delete=models.CASCADE,
        related_name="judgments",
        db_index=False,  # an index below begins with it
        help_text="That of its target: a queue's judgments are read without their targets.",
    )
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
    decides = models.BooleanField(
        default=False, help_text="An adjudicator's decision over the other judgments; `reason` is their note."
    )
    unsure = models.BooleanField(default=False, help_text="The author marked it as unsure.")
    seconds = models.FloatField(null=True, blank=True, help_text="How long the author took.")
    suggestions_shown = models.BooleanField(default=False)
    cost = models.JSONField(default=dict, help_text="Calls and tokens of the judge model.")
    history = models.JSONField(default=list, help_text="Earlier answers of its author: [{labels, reason, at}].")
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(
        null=True, blank=True, help_text="When its author last saved it; empty if an import does not say."
    )

    objects = JudgmentManager()
    everything = JudgmentQuerySet.as_manager()
    """Those of withdrawn games, too."""

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["target", "author"], condition=Q(decides=False), name="one_judgment_a_person_and_target"
            ),
            models.UniqueConstraint(fields=["target"], condition=Q(decides=True), name="one_decision_a_target"),
            models.UniqueConstraint(
                fields=["target", "rule"], condition=~Q(rule=""), name="one_judgment_a_rule_and_target"
            ),
            models.UniqueConstraint(fields=["author_seat", "seat", "codebook_version"], name="one_rating_a_seat"),
            models.UniqueConstraint(
                fields=["conversation", "seat", "codebook_version", "outside_author", "decides"],
                condition=~Q(outside_author=""),
                nulls_distinct=False,
                name="one_outside_judgment_a_seat",
            ),
        ]  # migration 0020 adds a foreign key (target, queue) to the target with its queue
        indexes = [
            models.Index(  # a queue's judgments are counted without their rows
                fields=["queue", "author", "id"],
                include=["target", "match", "conversation", "decides", "unscored", "seconds", "updated_at"],
                name="judgment_in_queue",
            ),
        ]

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Store it; a new one is in the queue of its target."""
        if self._state.adding:
            self.queue_id = None if self.target is None else self.target.queue_id
        super().save(*args, **kwargs)

    @property
    def game(self) -> JudgedGame:
        """The judged match, episode or conversation."""
        game = self.match or self.episode or self.conversation
        assert game is not None, "every judgment is about a game"
        return game

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
        """The name on pages of an author who has no account; `webapp.judgments.naming` names people."""
        if self.outside_author or self.rule:
            return self.outside_author or f"the rule {self.rule}"
        return self.judge.name if self.judge is not None else "a person"


class LabelRow(models.Model):
    """The columns of a `training.records.Label`. A text stands in `text`, every other value in `value`."""

    name = models.CharField(max_length=40, help_text="The label type's name in its codebook version.")
    value = models.JSONField(null=True, blank=True)
    text = models.TextField(blank=True)
    seat = models.PositiveSmallIntegerField(null=True, blank=True)
    turn = models.PositiveIntegerField(null=True, blank=True)
    start = models.PositiveIntegerField(null=True, blank=True)
    end = models.PositiveIntegerField(null=True, blank=True)
    other_turn = models.PositiveIntegerField(null=True, blank=True)
    reason = models.TextField(blank=True)

    class Meta:
        abstract = True

    @classmethod
    def of(cls, record: LabelRecord, kind: str, **fields: Any) -> Self:
        """Return the row of a record whose type is of this kind, not stored yet; `fields` are its other columns."""
        is_text = kind == "text"
        return cls(
            name=record.label,
            value=None if is_text else record.value,
            text=str(record.value) if is_text else "",
            seat=record.seat,
            turn=record.turn,
            start=record.start,
            end=record.end,
            other_turn=record.other_turn,
            reason=record.reason,
            **fields,
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


class Label(LabelRow):
    """One label of a judgment. `suggestion` is what its author accepted or, if it has another value, corrected."""

    judgment = models.ForeignKey(Judgment, on_delete=models.CASCADE, related_name="labels")
    suggestion = models.ForeignKey(
        "judgments.Suggestion", null=True, blank=True, on_delete=models.SET_NULL, related_name="labels"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["judgment", "name", "seat", "turn", "start", "end", "other_turn"],
                nulls_distinct=False,
                name="label_place_once",
            ),
        ]
        indexes = [
            models.Index(fields=["name"], name="label_name"),
            models.Index(fields=["judgment"], condition=~Q(reason="") | ~Q(text=""), name="label_with_words"),
            models.Index(  # a search for a label that was said to be there reads nothing else of it
                fields=["name", "-judgment", "id"], include=["seat", "turn"], condition=Q(value=True), name="label_yes"
            ),
        ]
        ordering = ["pk"]


class Suggestion(LabelRow):
    """A label that a model or rule suggests for a target; it is not a judgment and not in results.

    `source` says who suggests: `rule:`, `classifier:` or `judge:` with a name. `score` is its probability from 0 to 1;
    None where the source gives none.
    """

    target = models.ForeignKey(Target, on_delete=models.CASCADE, related_name="suggestions")
    source = models.CharField(max_length=120)
    score = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["target", "source", "name", "seat", "turn", "start", "end", "other_turn"],
                nulls_distinct=False,
                name="suggestion_place_once",
            ),
        ]
        ordering = ["pk"]
