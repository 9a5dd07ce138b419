"""Every component, and every game's table from every place at any step of a game between scripted players.

The pages are made by the templates of the site. Nothing is stored, and no match is read.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from itertools import count

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.timezone import now
from django.views.decorators.http import require_GET

from training.errors import ParseError
from training.games import REGISTRY, GameSpec, lookup, make
from training.players import make as make_player
from training.records import ALL, SPECTATOR, Move, Scenario, Seat, SeatMove, Viewer
from training.samples import for_game
from training.text.parsing import parse
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play.services import MatchState, catch_up
from webapp.core.http import integer
from webapp.core.templatetags.zones import AVATARS
from webapp.runs.episodes.viewer import log_rows
from webapp.styleguide import labels

LONGEST = 2000
"""Moves of a game that does not end."""
SHOWN = 6
"""Samples of a game."""
SOCKET = re.compile(r' hx-ext="ws" ws-connect="[^"]*"')
"""What would connect the page of a table to a match."""


@require_GET
def components(request: HttpRequest) -> HttpResponse:
    """Tokens and small parts: seats, icons, buttons, states, notes, a conversation to label."""
    context = {
        "seats": range(AVATARS),
        "icons": ICONS,
        "states": STATES,
        "moods": ("", "night", "day", "vote", "over"),
        **labels.context(request.GET),
    }
    return render(request, "styleguide/components.html", context)


@require_GET
def tables(request: HttpRequest) -> HttpResponse:
    """A list of all games and their samples."""
    return render(request, "styleguide/tables.html", {"games": _games(), "steps": range(1, 12)})


@require_GET
def table(request: HttpRequest, game: str, sample: int) -> HttpResponse:
    """A table from the place `?viewer=` after `?step=` joint steps, or at the `end`; `?open=1` before the game."""
    scenarios = dict(_games()).get(lookup(game).title, [])
    if not 0 <= sample < len(scenarios):
        raise Http404
    scenario = scenarios[sample][2].with_seed(integer(request, "seed", 1, 0, 9999))
    viewer = VIEWERS.get(request.GET.get("viewer", ""), integer_or(request, "viewer"))
    step = LONGEST if request.GET.get("step") == "end" else integer_or(request, "step")
    if viewer >= len(scenario.seats):
        raise Http404
    state = _played(scenario, step)
    html = _page(request, scenario, viewer, state, before=request.GET.get("open") == "1")
    return HttpResponse(SOCKET.sub("", html))


VIEWERS = {"spectator": SPECTATOR, "all": ALL}
"""Places that are no seats."""
STATES = ("queued", "running", "stopping", "succeeded", "stopped", "failed")
ICONS = re.findall(r'symbol id="(\w+)"', (settings.BASE_DIR / "static/icons.svg").read_text(encoding="utf-8"))


def integer_or(request: HttpRequest, name: str) -> int:
    """A number in the query, 0 for a word."""
    return int(text) if (text := request.GET.get(name, "0")).isdigit() else 0


def _games() -> list[tuple[str, list[tuple[str, int, Scenario]]]]:
    """Each game with its samples, as (game, number, scenario)."""
    shown = []
    for spec in REGISTRY.values():
        scenarios = [*(for_game(spec.name)[:SHOWN] if spec.samples else ()), *_starts(spec)]
        shown.append((spec.title, [(spec.name, number, scenario) for number, scenario in enumerate(scenarios)]))
    return shown


def _starts(spec: GameSpec) -> list[Scenario]:
    """The default starts with the fewest and the most seats."""
    starts = [spec.start(seats) for seats in sorted(set(spec.players))] if spec.start else []
    return [start for start in starts if start is not None]


def _played(scenario: Scenario, steps: int) -> MatchState:
    """The state after so many joint steps between scripted players; never more than `LONGEST`."""
    state = MatchState(make(scenario))
    with asyncio.Runner() as runner:
        for step in count():
            if step == steps or step > LONGEST or not state.game.to_act():
                return state
            seats = sorted(state.game.to_act())
            moves = [SeatMove(seat=seat, move=_move(runner, state, seat, step)) for seat in seats]
            catch_up(state, moves)
    return state


def _move(runner: asyncio.Runner, state: MatchState, seat: Seat, step: int) -> Move:
    """The move of the game's scripted player, else a random one; the default where neither can be read."""
    game = state.game
    if seat == game.scenario.tool_seat:
        return game.default(seat)
    name = "scripted" if lookup(game.scenario.game).script else "random"
    seen = game.observe(seat)
    reply = runner.run(make_player(name, game.scenario, seat).act(seat, seen, step))
    try:
        return parse(reply.text, seen)[0]
    except ParseError:
        return game.default(seat)


def _page(request: HttpRequest, scenario: Scenario, viewer: Viewer, state: MatchState, *, before: bool) -> str:
    """The page of a match that is not stored."""
    over = not state.game.to_act()
    match = Match(pk=0, game=scenario.game, scenario=scenario.to_dict(), deadline_s=120, step=state.step)
    match.state = Match.State.OPEN if before else Match.State.FINISHED if over else Match.State.RUNNING
    match.task = "0" if len(scenario.seats) == 1 else ""
    match.coaching = False
    match.returns = {str(seat): value for seat, value in state.game.returns().items()}
    seats = [
        MatchSeat(pk=seat, match=match, seat=seat, name=name, kind=MatchSeat.Kind.PERSON, consent=True)
        for seat, name in enumerate(scenario.seats)
    ]
    for seat in seats:
        seat.invited = False  # type: ignore[attr-defined]
    until = now() + timedelta(seconds=90)
    match.step_until = until
    facts = client_state.Facts(match, seats, dict.fromkeys(range(len(seats)), until), now())
    page_state = client_state.build(facts, viewer, None if before else state)
    page_state = replace(page_state, rights=client_state.Rights(hosting=viewer == 0))
    rows = [] if before else log_rows(state.game, viewer)
    context = {
        "match": match,
        "state": page_state,
        "parts": fragments.page(page_state),
        "rows": fragments.rows_html(page_state, rows),
        "marker": fragments.marker(len(rows), now().isoformat()),
        "coaches": [],
    }
    return render(request, "arena/table.html", context).content.decode()
