"""Finding a game at once: beside a person who waits, else against a model that is ready, else a scripted player.

In a game for more than two, others can join during a countdown, at whose end bots take the seats that are still empty.
Guests play alone, and against small models only: they need no account, so nobody answers for what they use.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import transaction

from training import bases
from training.games import REGISTRY, GameSpec, lookup
from webapp.accounts.models import User
from webapp.arena import opponents
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import scenarios, speakers, tables, waiting_room, waiting_times
from webapp.arena.setup.tables import Place
from webapp.arena.setup.waiting_times import NOBODY_WAITED, WaitingTime
from webapp.serving.models import Deployment

WAITS_WITHIN = timedelta(minutes=1)
"""A host who was seen within this time is still waiting at the table."""
LARGE = 2
"""At tables with more seats, seats and names are drawn, and others can join during a countdown."""
COUNTDOWN_S = 20
"""Seconds during which others can join."""
SMALL = 500_000_000
"""Most parameters of a model that guests may play against."""


@dataclass(frozen=True)
class Offer:
    """What playing a game now means: `table` waits with a free seat, else `model` plays, else a scripted player."""

    spec: GameSpec
    table: Match | None
    model: Deployment | None
    counts_down: bool = False
    waiting: WaitingTime = NOBODY_WAITED

    @property
    def against(self) -> str:
        """Who plays, as part of a sentence. It does not say what sits at a table that waits."""
        if self.table is not None:
            return f"{self.table.host.shown_name} is waiting at a table"
        if self.counts_down:
            return f"others can join for {COUNTDOWN_S} s; then bots take the empty seats"
        beside = "with" if self.spec.cooperative else "against"
        if self.model is not None:
            return f"{beside} {self.model}"
        title = opponents.title(opponents.substitute(self.spec.name))
        others = scenarios.usual_size(self.spec.name) - 1
        return f"{beside} {title}" if others == 1 else f"with {others} {title.removeprefix('a ')}s"


def games() -> list[GameSpec]:
    """The games for several players that can begin at once: those with a scenario of the project's own."""
    return [spec for spec in REGISTRY.values() if spec.players[1] > 1 and scenarios.usual_size(spec.name) > 1]


def offers(user: User) -> list[Offer]:
    """What every game offers to this user now."""
    if user.is_guest:
        return guest_offers()
    waiting = {match.game: match for match in _waiting(user)}
    model = _ready(user)
    waited = waiting_times.by_game()
    return [
        Offer(
            spec,
            waiting.get(spec.name),
            model,
            counts_down=_is_large(spec.name),
            waiting=waited.get(spec.name, NOBODY_WAITED),
        )
        for spec in games()
    ]


def somebody_waited(offers: Iterable[Offer]) -> bool:
    """Whether people recently waited for each other in any of these games."""
    return any(offer.waiting.seconds for offer in offers)


def guest_offers() -> list[Offer]:
    """What every game offers to a guest now."""
    small = [entry.name for entry in bases.REGISTRY.values() if entry.parameters <= SMALL]
    ready = Deployment.objects.open_to_players().filter(checkpoint__base__in=small, state=Deployment.State.READY)
    model = ready.named().order_by("-pk").first()
    return [Offer(spec, None, model) for spec in games()]


def _waiting(user: User) -> list[Match]:
    """Open tables of other people who are still there, the newest first; of several of a game the oldest comes last."""
    now = services.database_now()
    attended = Match.objects.filter(seats__user__isnull=False, seats__seen_at__gte=now - WAITS_WITHIN).values("pk")
    tables_of_others = Match.objects.without_spoilers(user).waiting().not_of(user).filter(pk__in=attended)
    tables_of_others = tables_of_others.exclude(countdown_ends_at__lte=now)
    return list(tables_of_others.select_related("host").order_by("-created_at"))


def _ready(user: User) -> Deployment | None:
    """The newest model that is open to this user and answers now."""
    ready = Deployment.objects.visible_to(user).filter(state=Deployment.State.READY)
    return ready.named().order_by("-pk").first()


def _is_large(game: str) -> bool:
    return scenarios.usual_size(game) > LARGE


def asks_first(user: User | None, game: str) -> bool:
    """Whether `play_now` needs the answer about consent: no seat of a table that counts down waits for one."""
    return user is not None and not user.is_guest and _is_large(game)


@transaction.atomic
def play_now(*, user: User, game: str, consent: bool | None = None) -> Match:
    """Seat this user in a game: at a table that waits, else at a new one, which begins after the answer about consent.

    `consent` is the answer, where `asks_first`; the new table of such a game then counts down. A guest who has not
    answered about consent at a table of this game yet gets that table again. Raises `BadInput` if the user has too many
    tables, or somebody else took the seat.
    """
    spec = lookup(game)
    unanswered = Match.objects.filter(host=user, game=game, state=Match.State.OPEN)
    if user.is_guest and (before := unanswered.order_by("-pk").first()):
        return before
    offer = next(offer for offer in offers(user) if offer.spec.name == spec.name)
    if offer.table is not None:
        waiting_room.take_seat(match=offer.table, user=user, consent=consent)
        return offer.table
    seed = tables.new_seed()
    start = scenarios.draw(scenarios.SAMPLE, user, game, seed, scenarios.usual_size(game))
    if offer.counts_down:
        return tables.create(
            host=user,
            start=replace(start, countdown=tables.Countdown(COUNTDOWN_S, offer.model)),
            places=[Place(user=user), *[Place()] * (len(start.scenario.seats) - 1)],
            consent=consent,
            shuffled=True,
        )
    place = (
        speakers.place_of(offer.model, speakers.AS_TRAINED, user)
        if offer.model is not None
        else Place(scripted=opponents.substitute(game))
    )
    others = [place] * (len(start.scenario.seats) - 1)
    return tables.create(host=user, start=start, places=[Place(user=user), *others], shuffled=_is_large(game))
