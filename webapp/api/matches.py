"""Matches over the API: set up a table, sit down at one, read it, move. The services are those of the table's pages."""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest
from ninja import Router, Status
from ninja.pagination import LimitOffsetPagination, paginate

from training.errors import BadInput
from training.games import GameSpec, lookup
from training.records import ALL
from webapp.accounts.models import User
from webapp.accounts.permissions import get_or_404
from webapp.api.access import caller
from webapp.api.shapes import AdviceIn, AdviceOut, MatchIn, MatchLineOut, MatchOut, MoveIn, MoveOut, PlaceIn, SeatIn
from webapp.arena import access, opponents
from webapp.arena.live import client_state
from webapp.arena.models import Advice, Match, MatchMove, MatchQuerySet, MatchSeat
from webapp.arena.play import coach, hosting, human_moves
from webapp.arena.setup import scenarios, speakers, tables, waiting_room
from webapp.serving import services as serving

router = Router(tags=["matches"])


def match_as_seen(match: Match, user: User) -> dict[str, object]:
    """Return a match as this person sees it: rows, actions, and the result and players once those are revealed."""
    viewer = access.viewer_of(match, user)
    state = client_state.read(match, viewer, user)
    revealed = ALL in access.viewpoints(match, user)
    players_shown = revealed and access.players_revealed(match, user)
    return {
        "id": match.pk,
        "game": match.game,
        "state": match.state,
        "turn": state.turn,
        "seats": [_seat(chair.seat, revealed=players_shown or chair.you, you=chair.you) for chair in state.chairs],
        "messages": [{"number": row.number, **row.message} for row in client_state.rows_after(match, viewer, 0)],
        "actions": list(state.observation.actions),
        "max_chars": state.observation.max_chars,
        "deadline": state.deadline,
        "returns": match.returns if revealed else None,
        "advice": list(coach.visible(match, viewer, revealed=players_shown)),
    }


def _seat(seat: MatchSeat, *, revealed: bool, you: bool) -> dict[str, object]:
    return {
        "seat": seat.seat, "name": seat.name, "you": you,
        "kind": seat.kind if revealed else None, "who": seat.who if revealed else None,
    }  # fmt: skip


@router.get("", response=list[MatchLineOut])
@paginate(LimitOffsetPagination)
def list_matches(request: HttpRequest, state: str = "") -> MatchQuerySet:
    """Matches that the caller may see, newest first."""
    matches = Match.objects.visible_to(caller(request)).order_by("-pk")
    return matches.filter(state=state) if state else matches


@router.post("", response={201: MatchOut})
def create_match(request: HttpRequest, data: MatchIn) -> Status[dict[str, object]]:
    """Set up a table. The game begins at once if all seats are taken and everybody has answered about consent."""
    user = caller(request)
    if user.is_guest:
        raise Http404
    spec = lookup(data.game)
    start = _drawn(data, user)
    if data.shuffled and spec.players[1] == 2:
        raise BadInput("where two sit, the names belong to the scenario", "shuffled")
    places = [_place(place, user, spec) for place in data.places]
    match = tables.create(
        host=user,
        start=replace(start, rules=data.rules),
        places=tables.at_drawn_seats(places, start.scenario.seed) if data.shuffled else places,
        shuffled=data.shuffled,
        visibility=data.visibility,
        deadline_s=data.deadline_s,
        coaching=data.coaching,
        consent=data.consent,
    )
    match.refresh_from_db()
    return Status(201, match_as_seen(match, user))


def _drawn(data: MatchIn, user: User) -> tables.Start:
    kind, _, rest = data.scenario.partition(":")
    number = rest.isascii() and rest.isdigit() and len(rest) < 19
    if kind not in {"sample", "version", "stored"} or (kind != "sample" and not number):
        raise BadInput("must be sample, version:ID or stored:ID", "scenario")
    return scenarios.draw(data.scenario, user, data.game, tables.new_seed(), len(data.places))


def _place(place: PlaceIn, user: User, spec: GameSpec) -> tables.Place:
    if place.me + (place.checkpoint is not None) + bool(place.scripted) > 1:
        raise BadInput("a place is for you, a checkpoint or a scripted player, not for several", "places")
    if place.checkpoint is not None:
        model = serving.find(f"checkpoint:{place.checkpoint}", user=user)
        if model is None:
            raise BadInput(f"there is no checkpoint {place.checkpoint}", "places")
        return speakers.place_of(model, place.speaker, user)
    if place.speaker:
        raise BadInput("only a checkpoint has a speaker", "places")
    if place.scripted and place.scripted not in (names := opponents.names(spec)):
        raise BadInput(f"a scripted player of this game is called {' or '.join(names)}", "places")
    return tables.Place(user=user if place.me else None, scripted=place.scripted)


def _match(request: HttpRequest, pk: int) -> Match:
    return get_or_404(Match.objects.visible_to(caller(request)).select_related("host"), pk=pk)


@router.get("/{int:pk}", response=MatchOut)
def get_match(request: HttpRequest, pk: int) -> dict[str, object]:
    """A match as the caller sees it."""
    match = _match(request, pk)
    hosting.note_presence(match_id=match.pk, user=caller(request))
    return match_as_seen(match, caller(request))


@router.post("/{int:pk}/seat", response=MatchOut)
def take_seat(request: HttpRequest, pk: int, data: SeatIn) -> dict[str, object]:
    """Take the first free seat and answer about consent; who sits there already keeps their seat.

    The game begins once every seat is taken and everybody has answered and, where asked, is ready.
    """
    match, user = _match(request, pk), caller(request)
    if user.is_guest:
        raise Http404
    waiting_room.take_seat(match=match, user=user, consent=data.consent)
    match.refresh_from_db()
    return match_as_seen(match, user)


@router.post("/{int:pk}/ready", response=MatchOut)
def say_ready(request: HttpRequest, pk: int) -> dict[str, object]:
    """Say that the caller is ready, at a table of more than two seats that waits for it."""
    match, user = _match(request, pk), caller(request)
    if access.own_seat(match, user) is None:
        raise Http404
    waiting_room.say_ready(match=match, user=user)
    match.refresh_from_db()
    return match_as_seen(match, user)


@router.post("/{int:pk}/moves", response=MoveOut)
def make_move(request: HttpRequest, pk: int, data: MoveIn) -> MatchMove:
    """Make the caller's move."""
    match = _match(request, pk)
    fields = {f"{data.action}.{name}": str(value) for name, value in data.args.items()}
    form = {"turn": str(data.turn), "action": data.action, "text": data.text, **fields}
    return human_moves.play(match_id=match.pk, user=caller(request), data=form)


@router.post("/{int:pk}/advice", response=AdviceOut)
def ask_for_advice(request: HttpRequest, pk: int, data: AdviceIn) -> Advice:
    """Ask a coach for advice at the caller's turn; the answer is in the match once it is there."""
    match = _match(request, pk)
    return coach.ask(match_id=match.pk, user=caller(request), turn=data.turn, coach=data.coach)
