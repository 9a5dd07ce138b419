"""Experiments, their arms and questions; participants, the slots that they hold, and the groups that play together.

Reads are QuerySet methods. Writes are functions: `design` for what a researcher states, `participation` for what a
participant does, `grouping` for the waiting room and `facilitating` for what a facilitator does during an experiment.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator, URLValidator
from django.db import models
from django.db.models import Count, Q
from django.utils.text import capfirst

from training.games import GameSpec, lookup
from webapp.accounts.models import User, new_token
from webapp.arena.models import Match, MatchSeat

PERSON = "person"
"""The player of an arm's seat that is a participant; all others are choices of `webapp.arena.setup.players.Players`."""
SHORTEST_WAIT_S = 20
"""Seconds that a table without other participants holds back by default, so that its wait resembles one for people."""
SORTS = {"age": "-created_at", "title": "title", "state": "state", "owner": "owner__username"}
"""How the list of experiments can be sorted."""


class ExperimentQuerySet(models.QuerySet["Experiment"]):
    """Reads of experiments."""

    def visible_to(self, user: User) -> ExperimentQuerySet:
        """Researchers see their own experiments, administrators all, nobody else any."""
        if user.is_admin:
            return self
        return self.filter(owner=user) if user.is_researcher else self.none()

    def counted(self) -> ExperimentQuerySet:
        """With the number of participants who have begun (`begun`) and completed (`completed`)."""
        done = Q(participants__outcome=Participant.Outcome.COMPLETED)
        return self.select_related("owner").annotate(
            begun=Count("participants"), completed=Count("participants", filter=done)
        )


class Experiment(models.Model):
    """A study with arms. Everything that a participant reads is fixed while it is not a draft."""

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="experiments")
    title = models.CharField(max_length=200, help_text="Participants do not see it.")
    state = models.CharField(max_length=6, choices=State, default=State.DRAFT)
    token = models.CharField(max_length=64, unique=True, default=new_token, editable=False)
    consent_text = models.TextField("consent", help_text="What participants agree to before anything is stored.")
    debriefing = models.TextField(
        blank=True,
        help_text="Shown at the end, above who the other players really were. Required where an arm shows partners as "
        "something that they are not.",
    )
    preregistration = models.TextField(
        "pre-registration",
        blank=True,
        help_text="Hypotheses, outcomes and planned analysis. Opening the experiment fixes it and states its hash.",
    )
    preregistration_sha256 = models.CharField(max_length=64, blank=True, editable=False)
    per_arm = models.PositiveIntegerField(
        "participants per arm",
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(10_000)],
        help_text="The experiment closes once every arm has as many complete ones. Empty: no such limit.",
    )
    closes_at = models.DateTimeField(
        "closes on", null=True, blank=True, help_text="When it closes in any case (UTC). Empty: no such date."
    )
    repeats = models.PositiveSmallIntegerField(
        "places of each arm in a block",
        default=2,
        validators=[MinValueValidator(1), MaxValueValidator(20)],
        help_text="Arms are assigned in permuted blocks: each block has every arm as often as this, in random order.",
    )
    seed = models.PositiveBigIntegerField(
        default=0, validators=[MaxValueValidator(2**62)], help_text="The blocks are drawn by it."
    )
    wait_seconds = models.PositiveIntegerField(
        "longest wait",
        default=300,
        validators=[MinValueValidator(10), MaxValueValidator(3600)],
        help_text="Seconds in the waiting room, after which the arm's outcome of waiting applies.",
    )
    shortest_wait_s = models.PositiveIntegerField(
        "shortest wait",
        default=SHORTEST_WAIT_S,
        validators=[MaxValueValidator(600)],
        help_text="Seconds in the waiting room before any game begins. A partner who is there at once may be taken for "
        "a machine.",
    )
    code_completed = models.CharField("code when complete", max_length=60, blank=True)
    code_waited = models.CharField("code when no group could be formed", max_length=60, blank=True)
    code_attention = models.CharField("code after a failed attention check", max_length=60, blank=True)
    code_removed = models.CharField(
        "code when removed by the facilitator",
        max_length=60,
        blank=True,
        help_text="Empty: whoever is removed reads that they should ask the researchers about payment.",
    )
    completion_url = models.CharField(
        "completion address",
        max_length=400,
        blank=True,
        validators=[URLValidator(["https"])],
        help_text="The platform's page to which participants return; {code} stands for their code.",
    )
    id_parameter = models.CharField("parameter of the participant's id", max_length=40, default="PROLIFIC_PID")
    study_parameter = models.CharField("parameter of the study's id", max_length=40, default="STUDY_ID")
    session_parameter = models.CharField("parameter of the session's id", max_length=40, default="SESSION_ID")
    requires_id = models.BooleanField(
        "require the platform's id", default=False, help_text="Refuses a link without the participant's id."
    )
    created_at = models.DateTimeField(auto_now_add=True)
    opened_at = models.DateTimeField(null=True, blank=True, editable=False)
    closed_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ExperimentQuerySet.as_manager()

    def __str__(self) -> str:
        return self.title

    @property
    def is_draft(self) -> bool:
        """Whether its design can still be changed."""
        return self.state == self.State.DRAFT


class Arm(models.Model):
    """One condition: a game with scenario and rules, who plays each seat, what people read of their partners."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="arms")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=60)
    game = models.CharField(max_length=40)
    scenario = models.CharField(max_length=40, help_text="A choice of `webapp.arena.setup.scenarios`.")
    players = models.JSONField(help_text="The player of each seat: `person`, or a choice of `Players`.")
    aliases = models.JSONField(
        default=dict, help_text="The aliases by which players were chosen: {'checkpoint:12': 'best'}."
    )
    rules = models.JSONField(default=dict, help_text="Settings of the game that replace those of the scenario.")
    deadline_s = models.PositiveIntegerField(help_text="Seconds for a move.")
    shown_as = models.CharField(max_length=8, choices=Match.ShownAs)
    fallback = models.CharField(
        max_length=40, blank=True, help_text="Who takes the empty seats after the longest wait; empty: nobody."
    )
    problem = models.CharField(max_length=400, blank=True, help_text="Why its last table was not made.")
    problem_since = models.DateTimeField(null=True, blank=True, help_text="Since when no table could be made.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="arm_name_once")]
        ordering = ["position", "pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def spec(self) -> GameSpec:
        """The game."""
        return lookup(self.game)

    @property
    def people(self) -> int:
        """How many participants play at one table."""
        return list(self.players).count(PERSON)

    @property
    def may_show_people(self) -> bool:
        """Whether participants read of the other players that they are people, or may be."""
        return self.shown_as in {Match.ShownAs.PERSON, Match.ShownAs.UNKNOWN}

    @property
    def begins_at_once(self) -> bool:
        """Whether a table needs no second participant, and its only participant may take the other players for people.

        Without a shortest wait, such a table begins as soon as its participant is there.
        """
        return self.people == 1 and len(self.players) > 1 and self.may_show_people

    @property
    def fallback_shows(self) -> bool:
        """Whether the longest wait ends with a fallback player whom participants may take for a person."""
        return bool(self.fallback) and self.people > 1 and self.may_show_people

    @property
    def misleads(self) -> bool:
        """Whether its design misinforms participants about other players.

        Stand-ins for people who leave are not part of the design; the list below every debriefing names them.
        """
        others = {PERSON} if self.people > 1 else set()
        others |= {player for player in (*self.players, self.fallback) if player and player != PERSON}
        is_so = {
            Match.ShownAs.PERSON: lambda player: player == PERSON,
            Match.ShownAs.MODEL: _is_model,
            Match.ShownAs.UNKNOWN: lambda player: player == PERSON or _is_model(player),
            Match.ShownAs.COMPUTER: lambda player: player != PERSON,
        }[Match.ShownAs(self.shown_as)]
        return not all(is_so(player) for player in others)


def _is_model(player: str) -> bool:
    return player.partition(":")[0] in {"checkpoint", "deployment"}


class Question(models.Model):
    """One item of a questionnaire. With a right answer it is an attention check."""

    class Part(models.TextChoices):
        BEFORE = "before", "before the game"
        AFTER = "after", "after the game"

    class Kind(models.TextChoices):
        LIKERT = "likert", "scale with labels"
        NUMBER = "number", "number"
        CHOICE = "choice", "choice"
        TEXT = "text", "free text"

    class OnWrong(models.TextChoices):
        NOTE = "note", "note it, and go on"
        END = "end", "end the participation with the code of the attention check"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="questions")
    part = models.CharField(max_length=6, choices=Part)
    position = models.PositiveSmallIntegerField()
    name = models.SlugField(max_length=30, help_text="The column of the export, such as trust.")
    text = models.CharField("question", max_length=500)
    kind = models.CharField(max_length=6, choices=Kind, default=Kind.LIKERT)
    options = models.JSONField(default=list, help_text="Labels of the scale from 1 up, or the choices.")
    low = models.FloatField("smallest number", null=True, blank=True)
    high = models.FloatField("largest number", null=True, blank=True)
    required = models.BooleanField(default=True)
    right = models.CharField("right answer", max_length=200, blank=True)
    on_wrong = models.CharField("a wrong answer", max_length=4, choices=OnWrong, default=OnWrong.NOTE)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "name"], name="question_name_once")]
        ordering = ["part", "position", "pk"]

    def __str__(self) -> str:
        return self.name

    def is_right(self, answer: Any) -> bool:
        """Whether an answer passes the attention check; True for a question that is none."""
        return not self.right or str(answer).strip().casefold() == self.right.strip().casefold()


class Group(models.Model):
    """Participants who play one match together: the unit of the analysis."""

    arm = models.ForeignKey(Arm, on_delete=models.CASCADE, related_name="groups")
    match = models.OneToOneField("arena.Match", on_delete=models.PROTECT, related_name="experiment_group")
    filled = models.BooleanField(default=False, help_text="Whether the arm's fallback sits where somebody was missing.")
    broken_why = models.CharField(max_length=60, blank=True, help_text="Why it is replaced by another group.")
    created_at = models.DateTimeField(auto_now_add=True)


class ParticipantQuerySet(models.QuerySet["Participant"]):
    """Reads of participants."""

    def under_way(self) -> ParticipantQuerySet:
        """Participants whose participation has not ended."""
        return self.filter(outcome="")

    def listed(self) -> ParticipantQuerySet:
        """With what a list of participants shows, in the order in which they came."""
        return self.select_related("arm", "group__match", "user").order_by("pk")

    def exportable(self) -> ParticipantQuerySet:
        """Those who have not withdrawn, with what an export needs, in the order in which they came."""
        seats = MatchSeat.objects.order_by("seat")
        matches = models.Prefetch("group__match__seats", seats)
        kept = self.exclude(outcome=Participant.Outcome.WITHDRAWN)
        return kept.select_related("arm", "group__match").prefetch_related(matches).order_by("pk")


class Participant(models.Model):
    """One person in an experiment. `outcome` is empty until the participation ends."""

    class Stage(models.TextChoices):
        BEFORE = "before", "questions before"
        WAIT = "wait", "waiting room"
        PLAY = "play", "playing"
        AFTER = "after", "questions after"
        DEBRIEFING = "debriefing"
        DONE = "done"

    class Outcome(models.TextChoices):
        COMPLETED = "completed"
        ATTENTION = "attention", "failed an attention check"
        WAITED = "waited", "no group formed"
        LEFT = "left"
        REMOVED = "removed", "removed by the facilitator"
        WITHDRAWN = "withdrawn", "withdrew consent"

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="participants")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="participations")
    arm = models.ForeignKey(Arm, null=True, blank=True, on_delete=models.CASCADE, related_name="participants")
    group = models.ForeignKey(Group, null=True, blank=True, on_delete=models.SET_NULL, related_name="participants")
    external_id = models.CharField(max_length=200, blank=True)
    id_hash = models.CharField(max_length=64, blank=True, help_text="Of `external_id`; it stays after a withdrawal.")
    study_id = models.CharField(max_length=200, blank=True)
    session_id = models.CharField(max_length=200, blank=True)
    resume_token_hash = models.CharField(
        max_length=64, blank=True, help_text="Of the random number of the consent page, until a page has been shown."
    )
    stage = models.CharField(max_length=10, choices=Stage, default=Stage.BEFORE)
    outcome = models.CharField(max_length=9, choices=Outcome, blank=True)
    may_reuse = models.BooleanField(default=False, help_text="Whether their moves may be exported and train models.")
    answers = models.JSONField(default=dict, help_text="By the name of the question.")
    failed = models.JSONField(default=list, help_text="Names of the attention checks with a wrong answer.")
    times = models.JSONField(default=dict, help_text="When each stage began, in ISO 8601, and `ended`.")
    code = models.CharField(max_length=60, blank=True)
    visible = models.BooleanField(default=False, help_text="Whether their page was in the foreground when last seen.")
    seen_at = models.DateTimeField(null=True, blank=True)
    waiting_since = models.DateTimeField(null=True, blank=True)
    left_at = models.DateTimeField(null=True, blank=True, help_text="When they were last found to have left.")
    returns = models.PositiveSmallIntegerField(default=0, help_text="How often they came back after that.")
    notice = models.CharField(max_length=200, blank=True, help_text="What the facilitator tells them.")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ParticipantQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["experiment", "user"], name="participates_once"),
            models.UniqueConstraint(
                fields=["experiment", "id_hash"], condition=~Q(id_hash=""), name="external_id_once"
            ),
        ]
        indexes = [models.Index(fields=["experiment", "stage"])]

    def __str__(self) -> str:
        return f"participant {self.pk}"

    @property
    def where(self) -> str:
        """Their stage or outcome in words."""
        return capfirst(self.get_outcome_display() if self.outcome else self.get_stage_display())


class Slot(models.Model):
    """One place of an arm in the random order of assignment. A slot whose participant left is given away again."""

    experiment = models.ForeignKey(Experiment, on_delete=models.CASCADE, related_name="slots")
    number = models.PositiveIntegerField()
    arm = models.ForeignKey(Arm, on_delete=models.CASCADE, related_name="slots")
    participant = models.OneToOneField(
        Participant, null=True, blank=True, on_delete=models.SET_NULL, related_name="slot"
    )

    class Meta:
        constraints = [models.UniqueConstraint(fields=["experiment", "number"], name="slot_number_once")]
        ordering = ["number"]
