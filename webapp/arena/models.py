"""Matches at the table: seats, moves, each viewer's own rows, guest links and work that is due.

Reads are QuerySet methods; every write is a function of `webapp.arena.play.services` or `webapp.arena.setup.tables`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Count, Exists, F, OuterRef, Q

from training.games import lookup
from training.records import Scenario
from webapp.arena import opponents

if TYPE_CHECKING:
    from webapp.accounts.models import User


MATCH_SORTS = {"age": "-created_at", "game": "game", "state": "state", "host": "host__username"}
"""How a list of matches can be sorted; the newest come first by themselves."""


class MatchQuerySet(models.QuerySet["Match"]):
    """Reads of matches."""

    def visible_to(self, user: User) -> MatchQuerySet:
        """Matches of which this person may see something; anything else is not there.

        Their own (at a seat, or as host), what an annotation queue assigns to them, and, for members, tables with a
        free seat and what the host opened. Guests see the one match they were let in to; admins see all. Nobody sees
        the rematch of a game before they have rated it.
        """
        reachable = self.without_unrated_rematches(user)
        if user.is_admin:
            return reachable
        seated = Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user))
        if user.is_guest:
            return reachable.filter(seated)
        assigned = Exists(Match.objects.assigned_to(user).filter(pk=OuterRef("pk")))
        opened = Q(visibility__in=[Match.Visibility.OPEN, Match.Visibility.PUBLIC])
        free = Q(state=Match.State.OPEN) & Exists(MatchSeat.objects.free().filter(match=OuterRef("pk")))
        return reachable.filter(Q(host=user) | opened | Q(free) | seated | assigned)

    def without_unrated_rematches(self, user: User) -> MatchQuerySet:
        """Without tables that were set up again after a game that this person has yet to rate or judge.

        Who asked for such a table, and who was there at once, would tell them who sat at the one before.
        """
        return self.exclude(Exists(Match.objects.untold_to(user).filter(pk=OuterRef("swapped_from"))))

    def of(self, user: User) -> MatchQuerySet:
        """Matches at which this person sits or which they host."""
        return self.filter(Q(host=user) | Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user)))

    def waiting(self) -> MatchQuerySet:
        """Tables with a seat that anybody may take."""
        return self.filter(state=Match.State.OPEN).filter(Exists(MatchSeat.objects.free().filter(match=OuterRef("pk"))))

    def open_to_watch(self, user: User) -> MatchQuerySet:
        """Running games of others that this person may watch."""
        opened = [Match.Visibility.OPEN, Match.Visibility.PUBLIC]
        running = self.filter(state=Match.State.RUNNING, visibility__in=opened)
        return running.exclude(host=user).exclude(Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user)))

    def listed(self) -> MatchQuerySet:
        """Matches that their hosts made public, running or finished."""
        return self.filter(visibility=Match.Visibility.PUBLIC, state__in=[Match.State.RUNNING, Match.State.FINISHED])

    def assigned_to(self, user: User) -> MatchQuerySet:
        """Matches that an annotation queue gives this person to judge, as long as everybody there agrees to it."""
        return self.exportable().filter(targets__queue__annotators=user) if user.is_annotator else self.none()

    def exportable(self) -> MatchQuerySet:
        """Finished matches that were played by who sat there, none of whom said no to their use."""
        asked = MatchSeat.objects.filter(match=OuterRef("pk"))
        refused = asked.filter(Q(consent=False) | Q(kind=MatchSeat.Kind.PERSON, consent=None))
        return self.filter(state=Match.State.FINISHED, rated=True).exclude(Exists(refused))

    def untold_to(self, user: User) -> MatchQuerySet:
        """Finished matches of which this person is not told yet who or what sat there.

        A player first says what they took the others for, or asks to see it without a vote; an annotator who did not
        play first judges every seat assigned to them.
        """
        sat = MatchSeat.objects.filter(match=OuterRef("pk"), user=user)
        withheld = Q(Exists(sat.filter(guesses__isnull=True, game_rating__isnull=True)))
        if user.is_annotator:
            assigned = Match.objects.filter(pk=OuterRef("pk"), targets__queue__annotators=user)
            judged = Count("targets__judgments", filter=Q(targets__judgments__author=user), distinct=True)
            unjudged = assigned.annotate(given=Count("targets", distinct=True), judged=judged)
            withheld |= ~Q(Exists(sat)) & Q(Exists(unjudged.filter(judged__lt=F("given"))))
        return self.filter(withheld, state=Match.State.FINISHED)

    def matching(self, *, game: str = "", state: str = "") -> MatchQuerySet:
        """Matches of this game and in this state; an empty value filters nothing."""
        chosen = {"game": game, "state": state}
        return self.filter(**{name: value for name, value in chosen.items() if value})

    def with_seats(self) -> MatchQuerySet:
        """With what a list of tables shows."""
        seats = MatchSeat.objects.select_related("user", "deployment__checkpoint", "deployment__remote")
        return self.select_related("host").prefetch_related(models.Prefetch("seats", seats.order_by("seat")))


class Match(models.Model):
    """One game at the table. Its state is `replay(scenario, moves)`; nothing else is stored of it."""

    class State(models.TextChoices):
        OPEN = "open", "waiting for players"
        RUNNING = "running"
        FINISHED = "finished"
        ABORTED = "aborted"

    class Visibility(models.TextChoices):
        PRIVATE = "private", "players only"
        OPEN = "open", "anyone signed in may watch"
        PUBLIC = "public", "listed with its replay"

    host = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="hosted_matches")
    game = models.CharField(max_length=40)
    scenario = models.JSONField(help_text="The Scenario played.")
    source = models.ForeignKey(
        "scenarios.StoredScenario", null=True, blank=True, on_delete=models.SET_NULL, related_name="matches"
    )
    state = models.CharField(max_length=8, choices=State, default=State.OPEN)
    visibility = models.CharField(max_length=7, choices=Visibility, default=Visibility.PRIVATE)
    deadline_s = models.PositiveIntegerField(help_text="Seconds a seat has for a move.")
    step = models.PositiveIntegerField(default=0, help_text="Completed steps of the game.")
    returns = models.JSONField(default=dict)
    metrics = models.JSONField(default=dict)
    seat_metrics = models.JSONField(default=dict)
    roles = models.JSONField(default=list, help_text="Each seat's role, once it is over; empty without roles.")
    step_until = models.DateTimeField(
        null=True, blank=True, help_text="When the time for this step is up for every seat whose player is awake."
    )
    aborted_why = models.CharField(max_length=400, blank=True)
    swapped_from = models.ForeignKey("self", null=True, blank=True, on_delete=models.SET_NULL, related_name="rematches")
    rules = models.JSONField(default=dict, help_text="Settings that its host chose; it is on no ladder then.")
    shuffled = models.BooleanField(default=False, help_text="Whether the names at the seats were drawn by chance.")
    join_hash = models.CharField(max_length=64, null=True, blank=True, unique=True, help_text="Of the table's link.")
    paused_at = models.DateTimeField(null=True, blank=True)
    rated = models.BooleanField(default=True, help_text="False keeps it out of ratings and exports.")
    unrated_why = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    objects = MatchQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["state", "-created_at"]), models.Index(fields=["visibility", "-created_at"])]

    def __str__(self) -> str:
        return f"match {self.pk}"

    @property
    def title(self) -> str:
        """What lists call it: the scenario, as its game names it."""
        return lookup(self.game).label(Scenario.from_dict(self.scenario))

    @property
    def game_title(self) -> str:
        """The game's name for people."""
        return lookup(self.game).title

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or the other."""
        return self.state in {self.State.FINISHED, self.State.ABORTED}


class MatchSeatQuerySet(models.QuerySet["MatchSeat"]):
    """Reads of seats."""

    def free(self) -> MatchSeatQuerySet:
        """Seats that anybody signed in may take; a seat with a guest link is kept for its guest."""
        return self.filter(kind=MatchSeat.Kind.OPEN, guest_link__isnull=True)


class MatchSeat(models.Model):
    """Who sits where; a guest is a user, too. `consent` None: not asked yet; False keeps the match out of exports."""

    class Kind(models.TextChoices):
        PERSON = "person"
        MODEL = "model"
        SCRIPTED = "scripted"
        OPEN = "open"

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="seats")
    seat = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=80)
    kind = models.CharField(max_length=8, choices=Kind)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="match_seats"
    )
    deployment = models.ForeignKey(
        "serving.Deployment", null=True, blank=True, on_delete=models.PROTECT, related_name="match_seats"
    )
    scripted = models.CharField(max_length=40, blank=True)
    consent = models.BooleanField(null=True, blank=True)
    consented_at = models.DateTimeField(null=True, blank=True)
    ready = models.BooleanField(default=False)
    seen_at = models.DateTimeField(null=True, blank=True, help_text="When the person was last known to be there.")
    stand_in = models.BooleanField(default=False, help_text="A scripted player moves for whoever sat here.")

    objects = MatchSeatQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["match", "seat"], name="seat_once"),
            models.UniqueConstraint(fields=["match", "user"], name="user_sits_once"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"

    @property
    def by_worker(self) -> bool:
        """Whether a worker moves for this seat."""
        return self.stand_in or self.kind in {self.Kind.MODEL, self.Kind.SCRIPTED}

    @property
    def who(self) -> str:
        """Who or what sits here, for the lobby and for the reveal."""
        if self.kind == self.Kind.PERSON and self.user is not None:
            return f"{self.user.shown_name}, then a stand-in" if self.stand_in else self.user.shown_name
        if self.kind == self.Kind.MODEL and self.deployment is not None:
            return str(self.deployment)
        if self.kind == self.Kind.SCRIPTED:
            return opponents.title(self.scripted)
        return "nobody yet"


class GuestLink(models.Model):
    """An invitation to one seat. The token is shown once and stored hashed; a POST claims it, once."""

    seat = models.OneToOneField(MatchSeat, on_delete=models.CASCADE, related_name="guest_link")
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True, blank=True)


class MatchMove(models.Model):
    """One move, in the order received. A resent or late move finds the stored one."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="moves")
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    seat = models.PositiveSmallIntegerField()
    move = models.JSONField()
    private = models.TextField(blank=True, help_text="A model's reasoning; shown to nobody while the game runs.")
    took_s = models.FloatField(null=True, blank=True, help_text="Seconds that a person took for it; empty otherwise.")
    attempts = models.JSONField(
        default=list, help_text="Refused replies and failures before it: [{reply, error, after}]."
    )
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["match", "step", "seat"], name="move_once"),
            models.UniqueConstraint(fields=["match", "number"], name="move_number_once"),
        ]
        indexes = [models.Index(fields=["-id"], condition=Q(took_s__isnull=False), name="move_took")]


class SeatBelief(models.Model):
    """What a model answered, aside, to the game's probe at one step; shown after the game to who may know of models."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="beliefs")
    step = models.PositiveIntegerField(help_text="Completed steps of the game when it was asked.")
    seat = models.PositiveSmallIntegerField()
    question = models.TextField()
    choices = models.JSONField()
    truth = models.JSONField(help_text="The right choices; empty if none is.")
    answer = models.TextField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "step", "seat"], name="belief_once")]


class ViewerRow(models.Model):
    """One log line that one viewer may see, under that viewer's own sequence number (from 1)."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="rows")
    viewer = models.SmallIntegerField(help_text="A seat, or -1 spectator, -2 everything.")
    number = models.PositiveIntegerField()
    message = models.JSONField(help_text="A training.records.Message.")
    step = models.PositiveIntegerField(default=0, help_text="Completed steps of the game when it was written.")
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "viewer", "number"], name="viewer_number_once")]


class DueSeat(models.Model):
    """A seat that must move: the work itself. The clock plays the default at `deadline`; `claimed_until` is a lease."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="due")
    seat = models.PositiveSmallIntegerField()
    step = models.PositiveIntegerField()
    deadline = models.DateTimeField(null=True, blank=True, help_text="Empty while its model is starting.")
    claimed_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    hint_at = models.DateTimeField(
        null=True, blank=True, db_index=True, help_text="When a worker is told again; empty for people."
    )
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="A worker's move is made no sooner; empty for people."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "seat"], name="due_once")]
        indexes = [models.Index(fields=["deadline"])]
