"""Pages after a game: the result with hidden information, the replay from allowed viewpoints, the rematch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from training.errors import BadInput, IllegalMove
from training.games import lookup
from training.labels.rated import rated_after
from training.records import ALL, SPECTATOR, Seat, Viewer
from training.views import TableView
from webapp.accounts.permissions import current_user, everyone, members
from webapp.arena import access
from webapp.arena.live import client_state
from webapp.arena.models import Advice, Match, MatchMove, MatchSeat
from webapp.arena.pages import alone
from webapp.arena.pages.views import visible_match
from webapp.arena.play import coach, model_seats, probes, services
from webapp.arena.setup import tables
from webapp.arena.setup.alone import again as begin_again
from webapp.arena.watching import fragments as watching
from webapp.core import queue
from webapp.core.http import integer, render_page
from webapp.runs.episodes import viewer
from webapp.runs.episodes.beliefs import BeliefPoint
from webapp.runs.episodes.discussions import SpokenMove, discussions
from webapp.serving import services as serving

ASIDE = (
    "After the game, models were asked what they believed at each of these points. Where no probabilities are known, "
    "the choice that a model named counts as certain. People and scripted players were not asked."
)


@require_GET
@everyone
def replay(request: HttpRequest, match_id: int) -> HttpResponse:
    """The log of one viewpoint up to one step, once the game is over: the number of steps would reveal secrets."""
    match = visible_match(request, match_id)
    if match.state == Match.State.OPEN:
        raise Http404
    user = current_user(request)
    if not match.over or access.of_experiment(match, user):
        return redirect("arena:table", match.pk)
    allowed = access.viewpoints(match, user)
    place = viewer.requested_viewpoint(request.GET.get("viewer", ""), allowed)
    step = integer(request, "step", match.step, 0, match.step)
    revealed = access.players_revealed(match, user)
    answers = probes.believed(match) if place == ALL and revealed else []
    view = _view(match, allowed, place, step, answers=answers)
    context = {
        "match": match,
        "view": view,
        "beliefs_note": ASIDE if view.believed else "",
        # called by the whole page only: it replays the match, which every click in the viewer would wait for
        "unasked": lambda: place == ALL and revealed and any(True for _ in probes.unanswered(match)),
        "answered": bool(answers),
        "revealed": revealed,
        "analysed": access.sees_analysis(match, user),
        "judged": access.shows_judgments(match, user),
        "watching": lambda: watching.context(match, user),  # by the whole page only
        "playing": access.own_seat(match, user) is not None,
        "behind": _behind(match, step) if place == ALL and revealed else [],
        "advised": _advised(
            match, place, step, everybody=place == ALL and revealed, viewer_seat=access.own_seat(match, user)
        ),
    }
    return render_page(request, "arena/replay.html", context, block="replay")


def _view(
    match: Match, allowed: Sequence[Viewer], place: Viewer, step: int, *, answers: Sequence[BeliefPoint]
) -> viewer.ReplayView:
    """A match from one viewpoint at one step: the stored log, with the table replayed from its moves.

    A match whose moves cannot be replayed has no table.
    """
    names, roles = match.scenario["seats"], list(match.roles)
    titles = [role.replace("_", " ") for role in roles]
    try:
        view = services.fold(match, steps=step).game.show(place)
    except (BadInput, IllegalMove):
        view = TableView()
    return viewer.ReplayView(
        names=names,
        viewpoints=allowed,
        viewer=place,
        step=step,
        steps=match.step,
        view=view,
        rows=[row for row in client_state.rows_after(match, place, 0) if row.step <= step],
        roles=viewer.named_roles(names, roles) if ALL in allowed and (place == ALL or step == match.step) else [],
        has_roles=ALL in allowed and bool(roles),
        discussions=discussions(answers, _spoken(match), names, titles) if answers else (),
        **viewer.belief_layers(answers, names, titles, step),
    )


def _spoken(match: Match) -> list[SpokenMove]:
    """The moves that are the only ones of their game step."""
    by_step: dict[int, list[MatchMove]] = defaultdict(list)
    for move in match.moves.order_by("number"):
        by_step[move.step].append(move)
    return [SpokenMove(step + 1, row[0].seat, row[0].move["text"]) for step, row in by_step.items() if len(row) == 1]


def _advised(
    match: Match, place: Viewer, step: int, *, everybody: bool, viewer_seat: MatchSeat | None
) -> dict[Seat, Advice]:
    """What coaches advised before this step, by seat: to everybody, or to the user's seat from its own viewpoint."""
    seats = coach.at_step(match, step - 1) if step else {}
    return {
        seat: row
        for seat, row in seats.items()
        if everybody or (viewer_seat is not None and seat == viewer_seat.seat == place)
    }


def _behind(match: Match, step: int) -> list[MatchMove]:
    """The moves of this step with strategy, reasoning, refusals and origin, which only the all-seeing view shows."""
    return list(match.moves.filter(step=step - 1).order_by("number")) if step else []


@require_POST
@members
def beliefs(request: HttpRequest, match_id: int) -> HttpResponse:
    """Ask the models of a finished match what they believed, for a user who may see their beliefs."""
    match, user = visible_match(request, match_id), current_user(request)
    visible = ALL in access.viewpoints(match, user) and access.players_revealed(match, user)
    if match.state != Match.State.FINISHED or not visible:
        raise Http404
    models = set(probes.model_seats_of(match).values())
    cold = {model for model in models if not model_seats.can_be_asked(model)}
    serving.request_all(deployments=models - cold)  # they are in use
    try:
        ready = [serving.request(deployment=model, by=user) for model in cold]
    except BadInput as error:
        messages.error(request, str(error))
        return redirect(f"{reverse('arena:replay', args=[match.pk])}?viewer={ALL}")
    if not all(ready):
        messages.warning(request, "A model is being started: ask again in a moment.")
    elif queue.publish(queue.PROBE, match.pk):
        messages.success(request, "The models are being asked: reload this page in a moment.")
    else:
        messages.error(request, "The models were not asked because no worker can be reached: ask again later.")
    return redirect(f"{reverse('arena:replay', args=[match.pk])}?viewer={ALL}")


@require_GET
@everyone
def result(request: HttpRequest, match_id: int) -> HttpResponse:
    """The outcome, the hidden information, the players, and a link to the rating form."""
    match = visible_match(request, match_id)
    user = current_user(request)
    if not match.over or access.of_experiment(match, user):
        return redirect("arena:table", match.pk)
    if match.task and access.players_revealed(match, user):
        return alone.result(request, match)
    reveals = ALL in access.viewpoints(match, user)
    seat = access.own_seat(match, user)
    state = client_state.folded(match)
    knows, codebook = access.chose_seats(match, user), rated_after(match.game)
    context = {
        "match": match,
        "asks": seat is not None and access.asks_about_others(match, seat.seat, codebook, knows=knows),
        "analysed": access.sees_analysis(match, user),
        "spec": lookup(match.game),
        "bounds": lookup(match.game).range_of(match.scenario["settings"]),
        "mine": seat,
        "reveals": reveals,
        "revealed": access.players_revealed(match, user),
        "may_repeat": access.players_revealed(match, user) or knows,
        "following": match.rematches.visible_to(user).filter(state=Match.State.OPEN).order_by("pk").first(),
        "lines": _lines(match, state if reveals else None, reveals=reveals),
        "advice": _advice(match, seat, revealed=reveals and access.players_revealed(match, user)),
        "metrics": _metrics(match) if reveals else {},
        "view": client_state.view_of(state, access.viewer_of(match, user)),
    }
    return render(request, "arena/result.html", context)


def _advice(match: Match, seat: MatchSeat | None, *, revealed: bool) -> list[dict[str, Any]]:
    """What coaches advised, in the order of the game, with the move that followed: to the user's seat, or to all."""
    names = match.scenario["seats"]
    texts = {(move.step, move.seat): move.move["text"] for move in match.moves.all()}
    rows = coach.visible(match, SPECTATOR if seat is None else seat.seat, revealed=revealed).exclude(text="")
    return [
        {"row": row, "name": names[row.seat], "move": texts.get((row.step, row.seat), "")} for row in reversed(rows)
    ]


def _metrics(match: Match) -> dict[str, float]:
    """The match's nonzero metrics, with readable titles and names instead of seat numbers."""
    seats = match.scenario["seats"]
    rows = [(name, "", value) for name, value in match.metrics.items()]
    rows += [
        (name, f" of {seats[int(seat)]}", value)
        for seat, metrics in match.seat_metrics.items()
        for name, value in metrics.items()
    ]
    return {
        name.replace("end_", "ended by ").replace("_", " ") + of: value for name, of, value in sorted(rows) if value
    }


def _lines(match: Match, state: services.MatchState | None, *, reveals: bool) -> list[dict[str, Any]]:
    """One entry per seat: its result, and (if allowed) its private information and role.

    `state` is None where nothing is revealed, and where the game cannot be replayed any more.
    """
    origins: dict[Seat, list[str]] = defaultdict(list)
    briefs = [state.game.show(seat).brief for seat in range(len(match.scenario["seats"]))] if state else []
    for seat, move in match.moves.values_list("seat", "move"):
        origins[seat].append(move["origin"])
    return [
        {
            "seat": seat,
            "role": match.roles[seat.seat] if reveals and match.roles else "",
            "value": match.returns.get(str(seat.seat)),
            "brief": briefs[seat.seat] if reveals and briefs else None,
            "moves": len(origins[seat.seat]),
            "late": origins[seat.seat].count("timeout"),
            "fallen": origins[seat.seat].count("default"),
        }
        for seat in match.seats.named().order_by("seat")
    ]


@require_POST
@members
def again(request: HttpRequest, match_id: int) -> HttpResponse:
    """Set up a rematch of the same scenario; with `swapped` (the default) all players move by one seat.

    With one seat, it is the same task.
    """
    match = visible_match(request, match_id)
    user = current_user(request)
    if not match.task and match.host_id != user.pk and access.own_seat(match, user) is None and not user.is_admin:
        raise Http404
    try:
        swapped = request.POST.get("swapped", "1") == "1"
        alike = partial(tables.again, match=match, host=user, swapped=swapped)
        following = begin_again(match=match, user=user) if match.task else alike()
    except BadInput as error:
        messages.error(request, f"No new table was made: {error.why}.")
        return redirect("arena:table", match.pk)
    return redirect("arena:table", following.pk)
