"""The pages before and during a game: lobby, new table, consent, guest link, the table itself."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth import login
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from training.errors import BadInput, IllegalMove
from training.games import REGISTRY, lookup
from webapp.accounts import guests
from webapp.accounts.models import User
from webapp.accounts.permissions import current_user, everyone, get_or_404, members
from webapp.arena import access
from webapp.arena.live import client_state, fragments
from webapp.arena.models import MATCH_SORTS, Match, MatchSeat
from webapp.arena.play import coach, hosting, human_moves, services
from webapp.arena.setup import alone, finding, links, scenarios, waiting_room
from webapp.arena.setup.forms import GuestName, NewTable
from webapp.arena.watching import fragments as watching
from webapp.arena.watching import notable
from webapp.core.http import integer, render_page
from webapp.core.sorting import Order

PER_PAGE = 30
NOTABLE = 3
"""Finished games that the lobby shows in a picture."""
ORDERS = {"age": "newest first", "-age": "oldest first", "game": "by game", "state": "by state", "host": "by host"}


def visible_match(request: HttpRequest, match_id: int) -> Match:
    """The match, if it is visible to this user; else 404."""
    return get_or_404(Match.objects.visible_to(current_user(request)).select_related("host"), pk=match_id)


def hosted_match(request: HttpRequest, match_id: int) -> Match:
    """The match, if this user hosts it (or is an admin); else 404."""
    user = current_user(request)
    matches = Match.objects.visible_to(user)
    return get_or_404(matches if user.is_admin else matches.filter(host=user), pk=match_id)


@require_GET
@members
def lobby(request: HttpRequest) -> HttpResponse:
    """The games to play, open tables, the user's own matches, and finished games that are worth a look."""
    user = current_user(request)
    listed = Match.objects.without_spoilers(user).with_seats().order_by("-created_at")
    waiting, yours, running = listed.waiting().not_of(user), listed.of(user), listed.open_to_watch(user)
    offers = finding.offers(user)
    public = listed.listed().filter(state=Match.State.FINISHED)  # running ones are among those to watch
    context = {
        "waiting": access.lines(waiting[:PER_PAGE], user),
        "mine": access.lines(yours[:10], user),
        "running": access.lines(running[:PER_PAGE], user),
        "public": access.lines(public[:5], user),
        "alone": alone.games(),
        "offers": offers,
        "somebody_waited": finding.somebody_waited(offers),
        "notable": notable.games(user, most=NOTABLE),
    }
    return render(request, "arena/lobby.html", context)


@require_GET
@members
def matches(request: HttpRequest) -> HttpResponse:
    """All matches of the user, or all public ones, filtered and sorted by the query string."""
    user = current_user(request)
    own_only = request.GET.get("of") == "me"
    filters = {name: request.GET.get(name, "")[:40] for name in ("game", "state")}
    order = Order.requested(request, "age")
    listed = Match.objects.without_spoilers(user)
    selected = (listed.of(user) if own_only else listed.listed()).matching(**filters)
    paginator = Paginator(order.apply(selected.with_seats(), MATCH_SORTS, "age"), PER_PAGE)
    page = paginator.get_page(integer(request, "page", 1, 1))
    states = (
        Match.State.choices if own_only else [(s.value, s.label) for s in (Match.State.RUNNING, Match.State.FINISHED)]
    )
    context = {"page": page, "lines": access.lines(page, user), "own": own_only, "chosen": filters, "order": str(order)}
    context |= {"games": REGISTRY.values(), "states": states, "orders": ORDERS, "filtered": any(filters.values())}
    return render_page(request, "arena/matches.html", context, "results")


@require_http_methods(["GET", "POST"])
@members
def new(request: HttpRequest) -> HttpResponse:
    """Set up a table. `?game=`, `?seats=`, `?checkpoint=` (the opponent) and `?scenario=` set initial values."""
    user = current_user(request)
    stored_id = integer(request, "scenario", 0)
    stored = scenarios.stored_for(user, stored_id) if stored_id else None
    if stored_id and stored is None:
        raise Http404
    game = stored.game if stored else request.POST.get("game") or request.GET.get("game") or next(iter(REGISTRY))
    if not stored and game not in REGISTRY:
        raise Http404
    if len(stored.data["seats"]) == 1 if stored else lookup(game).players[1] == 1:
        return redirect(f"{reverse('arena:alone')}?{urlencode({'game': game, **request.GET.dict()})}")
    checkpoint = integer(request, "checkpoint", 0) or None
    data = request.POST if request.method == "POST" and request.POST.get("consent") else None
    seats = integer(request, "seats", 0, 0, 99)
    form = NewTable(data, user=user, game=game, checkpoint=checkpoint, stored=stored, seats=seats)
    if checkpoint and not any(model.pk == checkpoint for model in form.players.checkpoints):
        raise Http404
    if data is not None and form.is_valid():
        try:
            match = form.make(consent=request.POST.get("consent") == "yes")
        except BadInput as error:
            form.blame(error)
        else:
            return redirect("arena:table", match.pk)
    status = 400 if form.errors or form.rules.errors else 200
    return render(request, "arena/new.html", {"form": form, "spec": lookup(game), "stored": stored}, status=status)


@never_cache
@require_GET
@everyone
def table(request: HttpRequest, match_id: int) -> HttpResponse:
    """The table from the user's viewpoint; players who have not answered about consent are asked first."""
    match = visible_match(request, match_id)
    user = current_user(request)
    seat = access.own_seat(match, user)
    hosting.note_presence(match_id=match.pk, user=user)
    if seat is not None and seat.consent is None and match.state == Match.State.OPEN:
        return redirect("arena:consent", match.pk)
    return table_page(request, match)


def table_page(
    request: HttpRequest, match: Match, *, problem: str = "", draft: str = "", not_asked: str = "", status: int = 200
) -> HttpResponse:
    """Render the table; `problem` is why a move sent by form was refused, and `not_asked` why no coach was asked.

    A game that cannot be made any more, such as one whose catalogue is gone, has a page that says why.
    """
    user = current_user(request)
    viewer = access.viewer_of(match, user)
    rows = client_state.rows_after(match, viewer, 0)
    try:
        state = client_state.read(match, viewer, user)
    except BadInput as error:
        context = {"match": match, "why": error.why, "hosting": user.is_admin or match.host_id == user.pk}
        return render(request, "arena/unplayable.html", context, status=409)
    context = {
        "match": match,
        "state": state,
        "parts": fragments.page(state),
        "rows": fragments.rows_html(state, rows),
        "marker": fragments.marker(rows[-1].number if rows else 0, services.database_now().isoformat()),
        "problem": problem,
        "draft": draft,
        "not_asked": not_asked,
        "watching": watching.context(match, user),
        "coaches": coach.coaches(user, match.game) if state.yours is not None and match.coaching else [],
    }
    return render(request, "arena/table.html", context, status=status)


@require_POST
@everyone
def move(request: HttpRequest, match_id: int) -> HttpResponse:
    """Make a move sent by form, for browsers without a socket."""
    match = visible_match(request, match_id)
    try:
        human_moves.play(match_id=match.pk, user=current_user(request), data=request.POST.dict())
    except (BadInput, IllegalMove) as error:
        match.refresh_from_db()
        draft = request.POST.get("text", "")
        return table_page(request, match, problem=human_moves.explain(error), draft=draft, status=400)
    return redirect("arena:table", match.pk)


@require_POST
@everyone
def ask_coach(request: HttpRequest, match_id: int) -> HttpResponse:
    """Ask a coach for advice at the user's turn."""
    match = visible_match(request, match_id)
    try:
        coach.ask_by_form(match_id=match.pk, user=current_user(request), data=request.POST.dict())
    except (BadInput, IllegalMove) as error:
        match.refresh_from_db()
        return table_page(request, match, not_asked=coach.explain(error), status=400)
    return redirect("arena:table", match.pk)


@require_POST
@members
def sit(request: HttpRequest, match_id: int) -> HttpResponse:
    """Take a free seat."""
    match = visible_match(request, match_id)
    try:
        waiting_room.take_seat(match=match, user=current_user(request))
    except BadInput as error:
        messages.error(request, f"You are not seated: {error.why}.")
    return redirect("arena:table", match.pk)


@require_POST
@everyone
def leave(request: HttpRequest, match_id: int) -> HttpResponse:
    """Leave the table before the game begins."""
    match = visible_match(request, match_id)
    user = current_user(request)
    try:
        waiting_room.leave(match=match, user=user)
    except BadInput as error:
        messages.error(request, f"You did not leave the table: {error.why}.")
        return redirect("arena:table", match.pk)
    return render(request, "arena/left.html") if user.is_guest else redirect("arena:lobby")


@require_http_methods(["GET", "POST"])
@everyone
def consent(request: HttpRequest, match_id: int) -> HttpResponse:
    """Ask for consent to store and use the match; consent can be withdrawn here later."""
    match = visible_match(request, match_id)
    user = current_user(request)
    seat = access.own_seat(match, user)
    if seat is None:
        raise Http404
    answer = request.POST.get("consent")
    if request.method == "GET" or answer not in {"yes", "no"}:
        context = {"match": match, "seat": seat, "spec": lookup(match.game)}
        return render(request, "arena/consent.html", context, status=200 if request.method == "GET" else 400)
    try:
        waiting_room.answer_consent(match=match, user=user, agreed=answer == "yes")
    except BadInput as error:
        messages.error(request, f"Nothing was changed: {error.why}.")
    return redirect("arena:table", match.pk)


@require_POST
@members
def invite(request: HttpRequest, match_id: int, number: int) -> HttpResponse:
    """Reserve an empty seat for a guest and show the link once."""
    match = hosted_match(request, match_id)
    try:
        token = links.invite(match=match, number=number)
    except BadInput as error:
        messages.error(request, f"There is no link: {error.why}.")
        return redirect("arena:table", match.pk)
    link = request.build_absolute_uri(reverse("arena:guest", args=[token]))
    return render(request, "arena/invited.html", {"match": match, "link": link, "seat": match.seats.get(seat=number)})


@require_POST
@members
def open_link(request: HttpRequest, match_id: int) -> HttpResponse:
    """Create a link to the table and show it once."""
    match = hosted_match(request, match_id)
    try:
        token = links.open_link(match=match)
    except BadInput as error:
        messages.error(request, f"There is no link: {error.why}.")
        return redirect("arena:table", match.pk)
    address = request.build_absolute_uri(reverse("arena:join", args=[token]))
    return render(request, "arena/invited.html", {"match": match, "link": address, "seat": None})


@require_POST
@members
def close(request: HttpRequest, match_id: int) -> HttpResponse:
    """End the table as its host."""
    match = hosted_match(request, match_id)
    waiting_room.close(match=match)
    return redirect("arena:table", match.pk)


@require_http_methods(["GET", "POST"])
def guest(request: HttpRequest, token: str) -> HttpResponse:
    """A guest link: opening it only shows a page, posting takes the seat."""
    link = links.find_link(token)
    if link is None:
        raise Http404
    used = link.claimed_at is not None or link.seat.match.state != Match.State.OPEN
    return _invitation(request, link.seat.match, partial(links.claim, token=token), seat=link.seat, used=used)


@require_http_methods(["GET", "POST"])
def join(request: HttpRequest, token: str) -> HttpResponse:
    """A table's link: opening it only shows a page, posting takes the next free seat."""
    match = links.find_table(token)
    if match is None:
        raise Http404
    used = match.state != Match.State.OPEN or not match.seats.free().exists()
    return _invitation(request, match, partial(links.join, token=token), seat=None, used=used)


def _invitation(
    request: HttpRequest,
    match: Match,
    sit_down: Callable[..., tuple[MatchSeat, User]],
    *,
    seat: MatchSeat | None,
    used: bool,
) -> HttpResponse:
    """The page of a link; posting it seats the signed-in user, else a new guest.

    A guest of another table becomes a new guest. A guest of this table does not, or could take all its seats.
    """
    user = request.user if isinstance(request.user, User) else None
    if user is not None and user.is_guest and not match.seats.filter(user=user).exists():
        user = None
    form = GuestName(request.POST or None, initial={"shown_name": "Guest"})
    problem = ""
    if request.method == "POST" and (user is not None or form.is_valid()):
        if user is None and guests.is_throttled(request):
            return render(request, "429.html", status=429)
        try:
            seat_taken, person = sit_down(user=user, shown_name=form.cleaned_data["shown_name"] if user is None else "")
        except BadInput as error:
            problem = error.why
        else:
            if user is None:
                login(request, person)
            return redirect("arena:table", seat_taken.match_id)
    context = {
        "form": form,
        "match": match,
        "seat": seat,
        "spec": lookup(match.game),
        "known": user,
        "seated": user is not None and match.seats.filter(user=user).exists(),
        "used": used,
        "problem": problem,
    }
    return render(request, "arena/guest.html", context, status=400 if problem or form.errors else 200)
