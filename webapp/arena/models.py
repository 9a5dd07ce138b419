"""Matches at the table: seats, moves, each viewer's own rows, guest links and work that is due.

Reads are QuerySet methods; every write is a function of `webapp.arena.play` or `webapp.arena.setup`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models
from django.db.models import Exists, OuterRef, Q
from django.utils.functional import cached_property

from training.games import REGISTRY, lookup
from training.records import Message, Scenario
from training.views import Line
from webapp.arena import opponents
from webapp.arena.watching.models import ChatMessage, ChatMute, ChatReport, FormerPlayer  # noqa: F401 (models of this app)

if TYPE_CHECKING:
    from webapp.accounts.models import User
    from webapp.serving.models import Deployment


MATCH_SORTS = {"age": "-created_at", "game": "game", "state": "state", "host": "host__username"}
"""How a list of matches can be sorted; the newest come first by themselves."""


def _awaited_targets(user: User) -> Any:
    """Targets of an outer match that this user has yet to judge. One call reads whether there are any queues to ask."""
    targets: Any = Match._meta.get_field("targets").related_model
    return targets.objects.awaited_by(user).filter(match=OuterRef("pk"))


def _unrevealed_seats(user: User) -> MatchSeatQuerySet:
    """Seats of this user in matches whose other players are not yet revealed to them."""
    unrated = Q(guesses=None, game_rating=None, match__task="", match__state=Match.State.FINISHED)
    in_experiment = Q(match__state__in=[Match.State.FINISHED, Match.State.ABORTED]) & ~Q(match__shown_as="")
    return MatchSeat.objects.filter(unrated | in_experiment, user=user)  # its debriefing says who they were


def _unrevealed_to(user: User, awaited: Any) -> Q:
    """The condition of `MatchQuerySet.unrevealed_to`, with the user's awaited targets."""
    condition = Q(Exists(_unrevealed_seats(user).filter(match=OuterRef("pk"))))
    if not awaited.query.is_empty():
        seated = Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user))
        condition |= Q(Exists(awaited), state=Match.State.FINISHED) & ~Q(seated)
    return condition


class MatchQuerySet(models.QuerySet["Match"]):
    """Reads of matches."""

    def visible_to(self, user: User) -> MatchQuerySet:
        """Matches that are visible to this user.

        These are matches they play or host, matches an annotation queue assigns to them and, for members, tables with a
        free seat and matches opened by their host. Guests see only the match they joined; admins see all. Nobody sees
        spoilers.
        """
        reachable = self.without_spoilers(user)
        if user.is_admin:
            return reachable
        seated = Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user))
        if user.is_guest:
            return reachable.filter(seated)
        assigned = Exists(Match.objects.in_queues_of(user).filter(pk=OuterRef("pk")))
        opened = Q(visibility__in=[Match.Visibility.OPEN, Match.Visibility.PUBLIC])
        free = Q(state=Match.State.OPEN) & Exists(MatchSeat.objects.free().filter(match=OuterRef("pk")))
        return reachable.filter(Q(host=user) | opened | Q(free) | seated | assigned)

    def without_spoilers(self, user: User) -> MatchQuerySet:
        """Exclude games of others that this user has yet to judge blind, rematches of games that they have yet to rate
        or judge, and solutions of the task they work on.

        The players of a rematch would reveal the players of the previous game.
        """
        awaited = _awaited_targets(user)
        unrevealed = Match.objects.filter(_unrevealed_to(user, awaited), pk=OuterRef("swapped_from"))
        matches = self.exclude(Exists(unrevealed)).without_solutions(user)
        if not awaited.query.is_empty():
            seated = Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user))
            blind = Exists(awaited.filter(queue__shows_hidden=False)) & ~Q(host=user) & ~seated
            matches = matches.exclude(blind)
        return matches

    def without_solutions(self, user: User) -> MatchQuerySet:
        """Exclude others' plays of a task that this user has begun and not ended."""
        seats = MatchSeat.objects.filter(user=user)
        begun = seats.filter(match__task=OuterRef("task"), match__state__in=[Match.State.OPEN, Match.State.RUNNING])
        return self.exclude(~Q(task="") & Exists(begun) & ~Exists(seats.filter(match=OuterRef("pk"))))

    def of(self, user: User) -> MatchQuerySet:
        """Matches that this user plays or hosts."""
        return self.filter(Q(host=user) | Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user)))

    def not_of(self, user: User) -> MatchQuerySet:
        """Matches that this user neither plays nor hosts."""
        return self.exclude(host=user).exclude(Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user)))

    def waiting(self) -> MatchQuerySet:
        """Open tables with a free seat."""
        return self.filter(state=Match.State.OPEN).filter(Exists(MatchSeat.objects.free().filter(match=OuterRef("pk"))))

    def open_to_watch(self, user: User) -> MatchQuerySet:
        """Running games of others that this user may watch."""
        opened = [Match.Visibility.OPEN, Match.Visibility.PUBLIC]
        return self.not_of(user).filter(state=Match.State.RUNNING, visibility__in=opened)

    def listed(self) -> MatchQuerySet:
        """Matches that their hosts made public, running or finished."""
        return self.filter(visibility=Match.Visibility.PUBLIC, state__in=[Match.State.RUNNING, Match.State.FINISHED])

    def assigned_to(self, user: User) -> MatchQuerySet:
        """Matches that an annotation queue assigns to this user, as long as all players consent.

        Without those that they have yet to judge in a queue that hides roles, private information and the ending.
        """
        return self.in_queues_of(user).exclude(Exists(_awaited_targets(user).filter(queue__shows_hidden=False)))

    def in_queues_of(self, user: User) -> MatchQuerySet:
        """The same, also those that they have yet to judge."""
        return self.exportable().filter(targets__queue__annotators=user) if user.is_annotator else self.none()

    def exportable(self) -> MatchQuerySet:
        """Finished, rated matches in which no player refused consent."""
        refused = MatchSeat.objects.refusing().filter(match=OuterRef("pk"))
        return self.filter(state=Match.State.FINISHED, rated=True).exclude(Exists(refused))

    def judgeable_by(self, user: User) -> MatchQuerySet:
        """Exportable matches that this user may have judged: of a running experiment, its owner and admins only.

        Judgments by others could reach its participants, or bring them there as annotators.
        """
        running = Q(experiment_group__isnull=False, experiment_group__arm__experiment__closed_at=None)
        matches = self.exportable()
        return matches if user.is_admin else matches.exclude(running & ~Q(host=user))

    def unrevealed_to(self, user: User) -> MatchQuerySet:
        """Finished matches whose players are not yet revealed to this user.

        A player must first guess who the others were, or skip the guess, unless they played alone; an annotator who
        did not play must first judge every assigned seat.
        """
        return self.filter(_unrevealed_to(user, _awaited_targets(user)))

    def unrevealed_at_once(self, user: User, *, awaits: bool = True) -> MatchQuerySet:
        """The same; whether there can be any is read at once. `awaits`: False if it is known that they judged all.

        Most readers await nothing and have rated what they played: conditions that leave these matches out of many
        judgments are then empty, and are built, planned and checked in a fraction of the time.
        """
        awaited = _awaited_targets(user) if awaits else self.none()
        if awaited.query.is_empty() and not _unrevealed_seats(user).exists():
            return self.none()
        return self.filter(_unrevealed_to(user, awaited))

    def named(self, text: str) -> MatchQuerySet:
        """Matches with this number, or whose game's title or host's name contains the text.

        The names and texts of a scenario are not searched: they may say what a viewer must not know.
        """
        games = [spec.name for spec in REGISTRY.values() if text.casefold() in spec.title.casefold()]
        named = Q(game__in=games) | Q(host__username__icontains=text, host__first_name="")
        digits = text.removeprefix("match").strip()
        return self.filter(named | Q(pk=int(digits)) if digits.isdecimal() and len(digits) < 19 else named)

    def undisclosed_to(self, user: User) -> MatchQuerySet:
        """Matches of others that this user has yet to judge: a change of the ladder could reveal their players."""
        is_player = Exists(MatchSeat.objects.filter(match=OuterRef("pk"), user=user))
        return self.unrevealed_to(user).exclude(is_player)

    def matching(self, *, game: str = "", state: str = "") -> MatchQuerySet:
        """Matches of this game and in this state; an empty value filters nothing."""
        filters = {"game": game, "state": state}
        return self.filter(**{name: value for name, value in filters.items() if value})

    def with_seats(self) -> MatchQuerySet:
        """Prefetch what a list of tables shows."""
        seats = MatchSeat.objects.named().order_by("seat")
        return self.select_related("host").prefetch_related(models.Prefetch("seats", seats))


class Match(models.Model):
    """One game at the table. Its state is `replay(scenario, moves)`; nothing else is stored of it."""

    class State(models.TextChoices):
        OPEN = "open", "waiting for players"
        RUNNING = "running"
        FINISHED = "finished"
        ABORTED = "aborted"

    class ShownAs(models.TextChoices):
        PERSON = "person", "a person"
        MODEL = "model", "a model"
        UNKNOWN = "unknown", "a person or a model"
        COMPUTER = "computer", "a computer player"

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
    task = models.CharField(
        max_length=64,
        blank=True,
        db_index=True,
        help_text="Hash of what is played at a table with one seat: plays with the same hash are of the same task.",
    )
    beside = models.ForeignKey(
        "self",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="companions",
        help_text="The person's play of the same task with which this play of a model is compared.",
    )
    rules = models.JSONField(default=dict, help_text="Settings that its host chose; it is on no ladder then.")
    shuffled = models.BooleanField(default=False, help_text="Whether the names at the seats were drawn by chance.")
    shown_as = models.CharField(
        max_length=8,
        choices=ShownAs,
        blank=True,
        help_text="In an experiment, what players read of each other; its own pages come before and after.",
    )
    next_path = models.CharField(max_length=200, blank=True, help_text="In an experiment, where its players go next.")
    join_hash = models.CharField(max_length=64, null=True, blank=True, unique=True, help_text="Of the table's link.")
    paused_at = models.DateTimeField(null=True, blank=True)
    coaching = models.BooleanField(default=True, help_text="Whether players may ask a coach.")
    countdown_s = models.PositiveIntegerField(
        null=True, blank=True, help_text="Seconds of its countdown, which ends with filled seats; empty without one."
    )
    countdown_ends_at = models.DateTimeField(
        null=True, blank=True, db_index=True, help_text="When its countdown ends; empty while none runs."
    )
    countdown_stopped = models.BooleanField(
        default=False, help_text="Whether its host stopped the countdown: the next answer does not start it again."
    )
    countdown_model = models.ForeignKey(
        "serving.Deployment",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The model that fills empty seats; a player without a model if it is empty.",
    )
    countdown_alias = models.CharField(
        max_length=40, blank=True, help_text="By which the countdown's model was chosen, if by one."
    )
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
        """The title in lists: the scenario's label."""
        return lookup(self.game).label(Scenario.from_dict(self.scenario))

    @property
    def game_title(self) -> str:
        """The game's title."""
        return lookup(self.game).title

    @property
    def hides_seats(self) -> bool:
        """Whether nobody sees before the game which seats are taken, since it would say how many players are bots.

        It holds for everybody who could sit down, and for the host, at a table that draws the seats and counts down;
        also once the countdown has been stopped.
        """
        return self.shuffled and self.countdown_s is not None

    @property
    def over(self) -> bool:
        """Whether the match is finished or aborted."""
        return self.state in {self.State.FINISHED, self.State.ABORTED}


class MatchSeatQuerySet(models.QuerySet["MatchSeat"]):
    """Reads of seats."""

    def free(self) -> MatchSeatQuerySet:
        """Seats that any signed-in user may take: none of an experiment; a seat with a guest link is its guest's."""
        return self.filter(kind=MatchSeat.Kind.OPEN, guest_link__isnull=True, match__shown_as="")

    def refusing(self) -> MatchSeatQuerySet:
        """Seats whose player refused consent, or has not answered: their match is not used."""
        return self.filter(Q(consent=False) | Q(kind=MatchSeat.Kind.PERSON, consent=None))

    def named(self) -> MatchSeatQuerySet:
        """Load what the names of the players need."""
        return self.select_related("user", *MatchSeat.NAMES)


class MatchSeat(models.Model):
    """One seat and its player. Guests are users, too. `consent`: None if not answered; False excludes the match from
    exports.

    The model of a seat with a `form` writes strategies: for the `speaker`, for the player without a model that the form
    names, or for itself, where the form's source is `self`.
    """

    MODELS = ("deployment", "speaker")
    """The fields with the models that play at the seat."""
    NAMES = ("deployment__checkpoint", "deployment__remote", "speaker__checkpoint", "speaker__remote")
    """What the names of these models need."""

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
    speaker = models.ForeignKey(
        "serving.Deployment",
        null=True,
        blank=True,
        on_delete=models.PROTECT,
        related_name="spoken_seats",
        help_text="The model that speaks and moves, where the seat's own only advises it.",
    )
    alias = models.CharField(max_length=40, blank=True, help_text="By which its model was chosen, if by one.")
    form = models.JSONField(
        default=dict, help_text="How the seat's model writes strategies, a SpeakerSection; empty if it writes none."
    )
    scripted = models.CharField(max_length=40, blank=True)
    consent = models.BooleanField(null=True, blank=True)
    consented_at = models.DateTimeField(null=True, blank=True)
    ready = models.BooleanField(default=False)
    seen_at = models.DateTimeField(null=True, blank=True, help_text="When the person was last known to be there.")
    stand_in = models.BooleanField(default=False, help_text="A scripted player moves for whoever sat here.")
    original_kind = models.CharField(
        max_length=8, choices=Kind, blank=True, help_text="The kind of player before a stand-in took over."
    )
    barred = models.BooleanField(default=False, help_text="Whether the person may not take the seat back.")
    notice = models.CharField(max_length=200, blank=True, help_text="What the facilitator of an experiment tells it.")

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
    def deployments(self) -> list[Deployment]:
        """The models that play here: the seat's own, then its speaker."""
        return [model for model in (self.deployment, self.speaker) if model is not None]

    def dismiss_models(self) -> list[str]:
        """Take the models from the seat, without saving; return the names of the changed fields."""
        self.deployment, self.speaker, self.form, self.alias = None, None, {}, ""
        return [*self.MODELS, "form", "alias"]

    @property
    def who(self) -> str:
        """The player's name, for the lobby and the reveal."""
        if self.kind == self.Kind.PERSON and self.user is not None:
            return f"{self.user.shown_name}, then a stand-in" if self.stand_in else self.user.shown_name
        if self.kind == self.Kind.MODEL and self.deployment is not None:
            name = f"{self.deployment} (as {self.alias})" if self.alias else str(self.deployment)
            return opponents.with_voice(name, str(self.speaker or ""), self.form.get("source", ""))
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
    """One move, in the order received. Resending a move returns the stored one."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="moves")
    number = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    seat = models.PositiveSmallIntegerField()
    move = models.JSONField()
    private = models.TextField(blank=True, help_text="A model's reasoning; shown to nobody while the game runs.")
    strategy = models.TextField(blank=True, help_text="Its seat's; shown to nobody while the game runs.")
    after = models.PositiveIntegerField(
        null=True, blank=True, help_text="Messages of the game that its seat had read; empty without a strategist."
    )
    took_s = models.FloatField(null=True, blank=True, help_text="Seconds that a person took for it; empty otherwise.")
    attempts = models.JSONField(
        default=list,
        help_text="Refused replies and failures before it: [{reply, error, after}], with a strategist also strategy.",
    )
    received_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["match", "step", "seat"], name="move_once"),
            models.UniqueConstraint(fields=["match", "number"], name="move_number_once"),
        ]
        indexes = [models.Index(fields=["-id"], condition=Q(took_s__isnull=False), name="move_took")]


class SeatBelief(models.Model):
    """A model's answer to the game's probe at one step; shown after the game to users who may know the models."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="beliefs")
    step = models.PositiveIntegerField(help_text="Completed steps of the game when it was asked.")
    seat = models.PositiveSmallIntegerField()
    question = models.TextField()
    choices = models.JSONField()
    truth = models.JSONField(help_text="The right choices; empty if none is.")
    answer = models.TextField()
    probabilities = models.JSONField(null=True, help_text="Of each choice; empty where only the answer is known.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "step", "seat"], name="belief_once")]


class Advice(models.Model):
    """What a coach advised a person at one step; private to their seat until the players are revealed.

    It is asked for until `text` or `why` is set.
    """

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="advice")
    step = models.PositiveIntegerField(help_text="Completed steps of the game when it was asked for.")
    seat = models.PositiveSmallIntegerField()
    turn = models.PositiveIntegerField(default=0, help_text="The seat's turn, from 0.")
    after = models.PositiveIntegerField(help_text="Messages that the seat had read.")
    deployment = models.ForeignKey(
        "serving.Deployment", null=True, blank=True, on_delete=models.SET_NULL, related_name="advice"
    )
    scripted = models.CharField(max_length=40, blank=True, help_text="The player without a model that advises.")
    coach = models.CharField(max_length=200, help_text="The coach's name.")
    text = models.TextField(blank=True)
    why = models.CharField(max_length=400, blank=True, help_text="Why there is none.")
    tries = models.PositiveSmallIntegerField(default=1)
    asked_at = models.DateTimeField()
    claimed = models.BooleanField(default=False, help_text="Whether a worker asks the coach.")
    took_s = models.FloatField(null=True, blank=True, help_text="Seconds from the question to the answer.")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "step", "seat"], name="advice_once")]
        verbose_name_plural = "advice"

    def __str__(self) -> str:
        return f"advice of {self.coach} in match {self.match_id}"


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

    @cached_property
    def lines(self) -> Sequence[Line]:
        """What people read of the message; nothing where only models need it."""
        return Message.from_dict(self.message).lines


class DueSeat(models.Model):
    """A seat that must move. The clock plays the default at `deadline`; `claimed_until` is a worker's lease."""

    match = models.ForeignKey(Match, on_delete=models.CASCADE, related_name="due")
    seat = models.PositiveSmallIntegerField()
    step = models.PositiveIntegerField()
    deadline = models.DateTimeField(null=True, blank=True, help_text="Empty while its model is starting.")
    claimed_until = models.DateTimeField(null=True, blank=True)
    fence = models.PositiveIntegerField(default=0)
    hint_at = models.DateTimeField(
        null=True, blank=True, db_index=True, help_text="When a worker is notified again; empty for people."
    )
    not_before = models.DateTimeField(
        null=True, blank=True, help_text="A worker's move is made no sooner; empty for people."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["match", "seat"], name="due_once")]
        indexes = [models.Index(fields=["deadline"])]
