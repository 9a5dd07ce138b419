"""Moves: one service, and one row per move, for every sender and after repeated requests."""

from datetime import timedelta

import pytest
from django.db import connection, transaction

from tests.webapp.arena.conftest import negotiation
from training import samples
from training.errors import BadInput, IllegalMove
from training.records import ALL, SPECTATOR, Move
from webapp.arena.live import client_state, fragments
from webapp.arena.models import DueSeat, Match, ViewerRow
from webapp.arena.play import services, statements
from webapp.arena.setup import links, tables, waiting_room
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving

pytestmark = pytest.mark.django_db


def say(match, seat, text, step=None):
    step = Match.objects.get(pk=match.pk).step if step is None else step
    return services.submit(match_id=match.pk, seat=seat, step=step, move=Move(action="talk", text=text))


def log(match, viewer):
    rows = ViewerRow.objects.filter(match=match, viewer=viewer).order_by("number")
    return [(row.number, row.message["author"], row.message["text"]) for row in rows]


def test_a_move_reaches_every_viewer_under_its_own_numbers(two_people):
    say(two_people, 0, "hello Ben")
    for viewer in (0, 1, SPECTATOR, ALL):
        rows = log(two_people, viewer)
        assert [number for number, *_ in rows] == [1, 2, 3]
        assert rows[2] == (3, 0, "hello Ben")


def test_a_resent_move_is_answered_with_what_is_stored(two_people):
    first = say(two_people, 0, "hello", step=0)
    again = say(two_people, 0, "something else", step=0)
    assert again.pk == first.pk
    assert two_people.moves.count() == 1
    assert log(two_people, 1)[-1][2] == "hello"


@pytest.mark.parametrize(
    "seat, step, move, why",
    [
        (1, 0, Move(action="talk", text="hi"), "not your turn"),
        (0, 3, Move(action="talk", text="hi"), "moved on"),
        (0, 0, Move(action="accept"), "not possible now"),
        (0, 0, Move(action="propose", args={"food": 9, "water": 0, "firewood": 0}), "0 to 3"),
    ],
)
def test_a_move_that_is_not_possible_changes_nothing(two_people, seat, step, move, why):
    before = [log(two_people, viewer) for viewer in (0, 1, SPECTATOR, ALL)]
    with pytest.raises(IllegalMove, match=why):
        services.submit(match_id=two_people.pk, seat=seat, step=step, move=move)
    assert [log(two_people, viewer) for viewer in (0, 1, SPECTATOR, ALL)] == before
    assert two_people.moves.count() == 0


def test_a_form_is_for_the_turn_whose_actions_it_offers(two_people):
    """The other moved between the reading of the match and that of its moves."""
    read = Match.objects.get(pk=two_people.pk)
    say(two_people, 0, "hello")
    state = client_state.read(read, 1)
    assert (read.step, state.turn, state.your_turn) == (0, 0, True)
    assert 'name="turn" value="0"' in fragments.contents(state)["act"]


def test_a_form_carries_the_seats_own_turns_not_the_steps_of_the_game(two_people):
    """How many steps there were would tell what others did in secret, such as a witch at night."""
    for seat in (0, 1, 0, 1):
        say(two_people, seat, "well")
    state = client_state.read(Match.objects.get(pk=two_people.pk), 0)
    assert state.turn == 2
    sitting = statements.sitting_of(two_people.pk, two_people.seats.get(seat=0).user_id, timedelta(minutes=1))
    assert [sitting.step_of(turn) for turn in (0, 1, 2)] == [0, 2, 4]
    with pytest.raises(IllegalMove, match="moved on"):
        sitting.step_of(3)


def test_the_end_is_written_down(two_people):
    deal = Move(
        action="propose",
        args={"food": 2, "water": 1, "firewood": 0},
        text="<propose>food 2, water 1, firewood 0</propose>",
    )
    services.submit(match_id=two_people.pk, seat=0, step=0, move=deal)
    services.submit(match_id=two_people.pk, seat=1, step=1, move=Move(action="accept", text="<accept/>"))
    two_people.refresh_from_db()
    assert two_people.state == Match.State.FINISHED
    # Ann keeps 2 food (5 each) and 1 water (4): 14 of 36; Ben gets 1 food (3), 2 water (4), 3 firewood (5): 26 of 36.
    assert two_people.returns == {"0": pytest.approx(14 / 36), "1": pytest.approx(26 / 36)}
    assert two_people.seat_metrics["0"] == {"points": 14}
    assert not two_people.due.exists()
    with pytest.raises(IllegalMove, match="not running"):
        say(two_people, 0, "too late", step=2)


def test_a_joint_step_shows_nothing_until_all_have_moved(player, ben):
    from tests.webapp.arena.conftest import dialogue

    places = [tables.Place(user=player), tables.Place(user=ben)]
    match = tables.create(host=player, start=tables.Start(dialogue(order="simultaneous")), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    before = log(match, 1)
    services.submit(match_id=match.pk, seat=0, step=0, move=Move(action="speak", text="may I?"))
    assert log(match, 1) == before
    assert list(match.due.values_list("seat", flat=True)) == [1]
    services.submit(match_id=match.pk, seat=1, step=0, move=Move(action="speak", text="good day"))
    assert [text for _, _, text in log(match, 1)[len(before) :]][:2] == ["good day", "may I?"]
    assert [text for _, _, text in log(match, 0)[len(before) :]][:2] == ["may I?", "good day"]
    assert sorted(match.due.values_list("seat", flat=True)) == [0, 1]


def test_strangers_sit_under_neutral_names_also_where_a_rule_makes_them_strangers(player, ben):
    friends = next(start for start in samples.load("dialogues") if start.id == "dog")
    places = [tables.Place(user=player), tables.Place(user=ben)]
    names = {}
    for relationship in (0, 3):
        start = tables.Start(friends, rules={"relationship": relationship})
        match = tables.create(host=player, start=start, places=places)
        names[relationship] = [seat.name for seat in match.seats.order_by("seat")]
        assert services.scenario_of(match).seats == tuple(names[relationship])
    assert names == {0: ["Person A", "Person B"], 3: list(friends.seats)}


def test_a_silent_seat_gets_its_default_as_a_time_out(two_people):
    due = two_people.due.get()
    assert services.time_out(due_id=due.pk) is None  # not late yet
    DueSeat.objects.update(deadline=services.database_now() - timedelta(seconds=1))
    stored = services.time_out(due_id=due.pk)
    assert stored.move["origin"] == "timeout"
    assert services.time_out(due_id=due.pk) is None
    assert [due.seat for due in two_people.due.all()] == [1]
    assert log(two_people, 1)[-1][2] == "Ann says nothing."


def test_every_game_ends_when_all_are_silent(two_people):
    from webapp.arena import clock

    for _ in range(6):
        DueSeat.objects.update(deadline=services.database_now() - timedelta(seconds=1))
        assert clock.time_out() == 1
    two_people.refresh_from_db()
    assert two_people.state == Match.State.FINISHED
    assert {move.move["origin"] for move in two_people.moves.all()} == {"timeout"}


def test_giving_up_loses(two_people):
    from training.games.base import FORFEIT

    services.submit(match_id=two_people.pk, seat=0, step=0, move=FORFEIT)
    two_people.refresh_from_db()
    assert two_people.state == Match.State.FINISHED
    assert two_people.returns["0"] == 0


def test_a_rematch_is_the_same_scenario_with_another_draw(player, two_people):
    services.abort(match_id=two_people.pk, why="enough")
    two_people.refresh_from_db()
    before, after = (services.scenario_of(m) for m in (two_people, tables.again(match=two_people, host=player)))
    assert after.seed != before.seed
    assert after.with_seed(before.seed) == before


def test_a_rematch_that_is_not_over_is_the_one_they_get(player, ben, two_people):
    services.abort(match_id=two_people.pk, why="enough")
    first = tables.again(match=two_people, host=player)
    assert tables.again(match=two_people, host=player) == first
    assert tables.again(match=two_people, host=ben) != first
    services.abort(match_id=first.pk, why="enough")
    assert tables.again(match=two_people, host=player) != first


def test_a_rematch_needs_models_that_are_open_to_its_host(player, researcher):
    checkpoint = Checkpoint.objects.create(name="shut", kind="base", base="x", path="/nowhere")
    places = [tables.Place(deployment=serving.of_checkpoint(checkpoint)), tables.Place(user=player)]
    match = tables.create(host=researcher, start=tables.Start(negotiation()), places=places)
    services.abort(match_id=match.pk, why="enough")
    with pytest.raises(BadInput, match="not everything at this table is open to you") as refused:
        tables.again(match=match, host=player)
    assert "model" not in str(refused.value), "who has not rated the game is not told what sat there"
    assert Match.objects.count() == 1
    assert tables.again(match=match, host=researcher).host == researcher
    Checkpoint.objects.update(open_to_players=True)
    assert tables.again(match=match, host=player).host == player


def test_a_link_that_is_replaced_while_it_is_claimed_is_refused(player, ben, monkeypatch):
    places = [tables.Place(user=player), tables.Place()]
    match = tables.create(host=player, start=tables.Start(negotiation()), places=places)
    token = links.invite(match=match, number=1)
    link = links.find_link(token)
    links.invite(match=match, number=1)
    monkeypatch.setattr(links, "find_link", lambda token: link)
    with pytest.raises(BadInput, match="replaced"):
        links.claim(token=token, user=ben, shown_name="")


@pytest.mark.django_db(transaction=True)
def test_the_plans_of_a_move_outlive_a_migration_that_adds_a_column(two_people):
    for _ in range(5):
        with transaction.atomic():
            statements.lock(two_people.pk, 0, 0, services.database_now)
    names = ("arena_match", "arena_matchseat")
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT string_agg(statement, '') FROM pg_prepared_statements")
            (plans,) = cursor.fetchone()
            assert all(f"FROM {name} WHERE" in plans for name in names)
            for name in names:
                cursor.execute(f"ALTER TABLE {name} ADD COLUMN later integer")
        with transaction.atomic():
            assert statements.lock(two_people.pk, 0, 0, services.database_now).match == two_people
    finally:
        with connection.cursor() as cursor:
            for name in names:
                cursor.execute(f"ALTER TABLE {name} DROP COLUMN IF EXISTS later")
