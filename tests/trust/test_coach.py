"""A coach knows what its seat knows, and nobody else gets anything of its advice before the players are revealed.

Over every registered game: worlds that a seat must not tell apart give its coach the same requests, and a match with
advice gives everybody else the same pages, frames, answers of the API and refusals as one without.
"""

import pytest

from tests.games.play import random_move
from tests.games.worlds import CASES
from tests.trust.seated import moves_by_chance, play_on, seated, viewer_named
from tests.trust.test_non_interference import NOW
from tests.trust.test_worlds_at_the_table import Looker
from tests.trust.test_worlds_of_models import pairs
from training.games import REGISTRY
from training.records import ALL, SPECTATOR
from training.seeding import derive
from webapp.arena.models import Advice
from webapp.arena.play import coach, services
from webapp.serving.models import RemoteModel
from worker.advise import advise

pytestmark = pytest.mark.django_db(transaction=True)
MOST_STEPS = 6
SECRET = "canary-of-the-coach"


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch):
    monkeypatch.setattr(services, "database_now", lambda: NOW)
    monkeypatch.setattr(coach, "derive", lambda *_: 5)  # every match has seeds of its own


@pytest.fixture
def deployment(stub, deployment):
    stub.answer = f"Strategy: {SECRET}"
    RemoteModel.objects.update(open_to_players=True)
    return deployment


def advised(match, seat, user, value):
    """The advice that a seat gets at its turn; None if it has none."""
    now = services.fold(match)
    if seat not in now.due():
        return None
    row = coach.ask(match_id=match.pk, user=user, turn=now.turns[seat], coach=value)
    advise(row.pk)
    row.refresh_from_db()
    return row


def asked(match, pair, people, deployment, stub):
    """What a model and the game's script are asked, or answer, as the viewer's coach; the match keeps the model's."""
    user, before = people[pair.viewer], len(stub.requests)
    script = advised(match, pair.viewer, user, "scripted")
    if script is None:
        return None
    proposal = (script.text, script.why)
    script.delete()
    advised(match, pair.viewer, user, f"deployment:{deployment.pk}")
    return proposal, [{**request.body, "seed": 0} for request in stub.requests[before:]]


@pytest.mark.parametrize("pair", pairs(1))
def test_what_is_hidden_changes_nothing_that_a_coach_is_asked_or_a_script_advises(pair, deployment, stub):
    (first, people), (second, _) = (seated(scenario.with_seed(11)) for scenario in (pair.a, pair.b))
    for step in range(MOST_STEPS):
        game = services.fold(first).game
        if pair.until(game) or not game.to_act():
            break
        assert asked(first, pair, people, deployment, stub) == asked(second, pair, people, deployment, stub)
        moves = {seat: random_move(game, seat, derive(3, seat, step)) for seat in sorted(game.to_act())}
        others = pair.across(game, services.fold(second).game, moves)
        play_on(first, moves)
        play_on(second, others)
        for match in (first, second):
            match.refresh_from_db()


def test_coaches_of_these_worlds_are_asked(deployment, stub):
    """Else equal lists of nothing would prove nothing."""
    due = 0
    for parameter in pairs(1):
        (pair,) = parameter.values
        if pair.viewer in services.fold(seated(pair.a.with_seed(11))[0]).due():
            match, people = seated(pair.a.with_seed(11))
            proposal, requests = asked(match, pair, people, deployment, stub)
            assert requests
            assert proposal[0] or proposal[1]
            due += 1
    assert due, "no world begins with a turn of its viewer"


@pytest.mark.parametrize("game", sorted(REGISTRY))
def test_advice_changes_nothing_that_others_get_before_the_players_are_revealed(game, client_of, deployment, stub):
    scenario = CASES[game][0].with_seed(5)
    (with_coach, people), (without, _) = seated(scenario), seated(scenario)
    seat = min(services.fold(with_coach).due())
    viewers = [viewer for viewer in (*range(len(people)), SPECTATOR) if viewer != seat]
    users = {viewer: viewer_named(viewer, people) for viewer in viewers}
    lookers = [
        [Looker(match, user, viewer, client_of(user)) for viewer, user in users.items()]
        for match in (with_coach, without)
    ]
    for step in range(MOST_STEPS):
        moves = moves_by_chance(with_coach, derive(7, step))
        if not moves:
            break
        if row := advised(with_coach, seat, people[seat], f"deployment:{deployment.pk}"):
            assert row.text == SECRET
            if step == 0:
                assert SECRET in client_of(people[seat]).get(f"/play/{with_coach.pk}/").content.decode()
        seen = [[looker.look() for looker in each] for each in lookers]
        assert seen[0] == seen[1]
        assert SECRET not in str(seen)
        for match in (with_coach, without):
            play_on(match, moves)
            match.refresh_from_db()
    assert Advice.objects.filter(match=with_coach, text=SECRET).exists()
    rows = with_coach.rows.filter(viewer__in=[*viewers, seat, ALL]).values_list("message", flat=True)
    assert SECRET not in str(list(rows))
