"""Who is shown to be writing: the seats that everybody knows to be due in a conversation, whoever sits there."""

from datetime import UTC, datetime

import pytest

from tests.games.cases.werewolf import dealt
from tests.games.play import steps
from tests.games.worlds import CASES, WORLDS
from training.games import lookup, make
from training.records import SPECTATOR
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play.services import MatchState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TALKS = [name for name in CASES if lookup(name).focus == "talk"]


def state_of(game, viewer, *, kind=MatchSeat.Kind.PERSON, paused_at=None):
    """A running match of this game from one viewpoint, with this kind at every seat; nothing is stored."""
    scenario = game.scenario
    match = Match(pk=1, game=scenario.game, scenario=scenario.to_dict(), state=Match.State.RUNNING, deadline_s=60)
    match.paused_at = paused_at
    seats = [MatchSeat(match=match, seat=seat, name=name, kind=kind) for seat, name in enumerate(scenario.seats)]
    for seat in seats:
        seat.invited = False
    facts = client_state.Facts(match, seats, dict.fromkeys(sorted(game.to_act()), NOW), NOW)
    return client_state.build(facts, viewer, MatchState(game))


def writing(game, viewer, **options):
    return {chair.number for chair in state_of(game, viewer, **options).speaking}


@pytest.mark.parametrize("name", TALKS)
def test_players_see_the_same_seats_writing(name):
    """Each but itself, at every step of a game: so nobody learns from it who acts in secret."""
    for scenario in CASES[name]:
        game, seats = make(scenario.with_seed(1)), range(len(scenario.seats))
        for _ in steps(game, 1):
            shown = {viewer: writing(game, viewer) for viewer in seats}
            everybody = set().union(*shown.values())
            assert everybody <= game.to_act()
            if len(seats) > 2:
                assert shown == {viewer: everybody - {viewer} for viewer in seats}


@pytest.mark.parametrize(
    "pair", [pair for name in TALKS for pair in WORLDS.get(name, [])], ids=lambda pair: f"{pair.a.game}: {pair.name}"
)
def test_games_that_a_viewer_must_not_tell_apart_show_the_same(pair):
    a, b = make(pair.a.with_seed(2)), make(pair.b.with_seed(2))
    for moves in steps(a, 2):
        if pair.until(a):
            return
        assert writing(a, pair.viewer) == writing(b, pair.viewer)
        b.step(pair.across(a, b, moves))


def test_a_village_shows_who_speaks_by_day_and_nobody_at_night_or_in_a_vote():
    roles = ("werewolf", "werewolf", "seer", "villager", "villager", "villager")
    game, phases = make(dealt(*roles, day_limit=2, spectator_delay=0)), set()
    for _ in steps(game, 5):
        phase = game.show(3).phase
        phases.add("night" if phase.startswith("Night") else game.show(3).mood)
        for viewer in (*range(len(roles)), SPECTATOR):
            if phase.startswith("Night") or "vote" in phase:
                assert writing(game, viewer) == set(), (phase, viewer)
            elif game.show(3).mood == "day" and len(game.to_act()) == 1:
                assert writing(game, viewer) == game.to_act() - {viewer}, (phase, viewer)
    assert phases >= {"night", "day", "vote"}


def test_a_meeting_shows_who_speaks_and_the_rooms_show_nobody():
    speeches = 0
    for scenario in CASES["among_us"]:
        game = make(scenario.with_seed(3))
        for _ in steps(game, 3):
            view = game.show(0)
            for viewer in (*range(len(scenario.seats)), SPECTATOR):
                expected = game.to_act() - {viewer} if view.mood == "day" else set()
                assert writing(game, viewer) == expected, view.phase
            speeches += view.mood == "day"
    assert speeches > 0


def test_a_person_and_a_model_look_the_same_and_a_paused_game_shows_nobody():
    (scenario, *_) = CASES["dialogue"]
    game = make(scenario)
    (due,) = game.to_act()
    parts = [
        fragments.contents(state_of(game, 1 - due, kind=kind))["typing"]
        for kind in (MatchSeat.Kind.PERSON, MatchSeat.Kind.MODEL, MatchSeat.Kind.SCRIPTED)
    ]
    assert parts[0] == parts[1] == parts[2]
    assert f"seat-{due}" in parts[0]
    assert fragments.contents(state_of(game, due))["typing"] == ""
    assert writing(game, 1 - due, paused_at=NOW) == set()
