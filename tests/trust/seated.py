"""Matches with a person at every seat and one who watches: what tests over every registered game sit down at."""

from typing import Any

import pytest

from tests.games.play import random_move
from tests.games.worlds import CASES
from training.errors import BadInput, IllegalMove
from training.games import make
from training.records import SPECTATOR, Move, Scenario
from training.seeding import derive
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.play import human_moves, services
from webapp.arena.setup import tables, waiting_room
from webapp.serving.models import Deployment


def somebody(name: str) -> User:
    return User.objects.get_or_create(username=name, role="player")[0]


def people_of(scenario: Scenario) -> list[User]:
    return [somebody(f"person-{number}") for number in range(len(scenario.seats))]


def seated(scenario: Scenario) -> tuple[Match, list[User]]:
    """A running match with a person at every seat, open to spectators; the first person is the host."""
    people = people_of(scenario)
    return _begun(scenario, people[0], [tables.Place(user=user) for user in people]), people


def match_with_a_model(scenario: Scenario, seat: int, deployment: Deployment, **voices: Any) -> Match:
    """A running match with a model at one seat and people at all others; `voices` are the place's form and speaker."""
    places = [tables.Place(user=user) for user in people_of(scenario)]
    places[seat] = tables.Place(deployment=deployment, **voices)
    return _begun(scenario, somebody("host"), places)


def _begun(scenario: Scenario, host: User, places: list[tables.Place]) -> Match:
    match = tables.create(host=host, start=tables.Start(scenario), places=places, visibility="open")
    for place in places:
        if place.user is not None:
            waiting_room.answer_consent(match=match, user=place.user, agreed=True)
    match.refresh_from_db()
    if match.state == Match.State.OPEN:
        waiting_room.fill(match=match)
        match.refresh_from_db()
    return match


def viewer_named(viewer: int, people: list[User]) -> User:
    """Who looks from there."""
    return somebody("watcher") if viewer == SPECTATOR else people[viewer]


def moves_by_chance(match: Match, seed: int = 3) -> dict[int, Move]:
    """The moves of the current step as chance has them; empty when the game is over."""
    now = services.fold(match)
    return {seat: random_move(now.game, seat, derive(seed, seat, now.step)) for seat in sorted(now.due())}


def play_on(match: Match, moves: dict[int, Move]) -> None:
    """Make one step's moves, in seat order."""
    match.refresh_from_db()
    step = match.step
    for seat, move in sorted(moves.items()):
        services.submit(match_id=match.pk, seat=seat, step=step, move=move)


def silent(scenario: Scenario) -> list[tuple[int, Move]]:
    """The moves of a game at which nobody ever says anything, by seat within each step."""
    game, late_moves = make(scenario), []
    while game.to_act():
        moves = {seat: game.default(seat) for seat in sorted(game.to_act())}
        late = {
            seat: move if seat == scenario.tool_seat else move.model_copy(update={"origin": "timeout"})
            for seat, move in moves.items()
        }
        late_moves += late.items()
        game.step(late)
    return late_moves


def shortest(game: str) -> Scenario:
    """The case of a game that is over soonest when all are silent."""
    return min(CASES[game], key=lambda scenario: len(silent(scenario)))


def refusals(match: Match, viewer: int, user: User) -> list[str]:
    """The refusals that this person reads: a move out of turn, an unknown move, a wrong choice."""
    now = services.fold(match)
    turn = str(now.turns[viewer])
    closed = [a for a in now.game.observe(viewer).actions if any(not arg.open and arg.kind != "text" for arg in a.args)]
    forms = [{}, {"turn": "999", "action": "fly"}, {"turn": turn, "action": "fly"}]
    forms += [{"turn": turn, "choice": f"{name}:up"} for name in ("fly", *(a.name for a in closed))]
    messages = []
    for form in forms:
        with pytest.raises((BadInput, IllegalMove)) as refusal:
            human_moves.play(match_id=match.pk, user=user, data=form)
        messages.append(human_moves.explain(refusal.value))
    return messages
