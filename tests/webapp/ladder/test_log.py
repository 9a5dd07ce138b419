"""Which matches count, and the data that is read from them."""

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.webapp.judgments.make import finished_match
from tests.webapp.ladder.make import model, played
from training.run_sections import SpeakerSection
from webapp.arena.models import Match
from webapp.arena.setup import waiting_room
from webapp.judgments.rating import services as rating
from webapp.ladder import log, services
from webapp.ladder.models import Standing

pytestmark = pytest.mark.django_db
FAILED = {"reply": "", "error": "the server is away", "after": 3}
GARBLED = {"reply": "<propse>", "error": "unknown action", "after": 3}


def read():
    return log.read(log.numbers("negotiation"))


def players():
    return [tuple(seat.who for seat in match.seats) for match in read()]


def test_people_models_and_scripts_have_one_name_each(researcher, player, good):
    played(player, good, returns=(0.7, 0.3), host=researcher)
    played("scripted", player, returns=(0.2, 0.8), host=researcher)
    person, machine = f"person:{player.pk}", f"model:{good.pk}"
    assert players() == [(person, machine), ("scripted:scripted", person)]
    assert [[seat.value for seat in match.seats] for match in read()] == [[0.7, 0.3], [0.2, 0.8]]


def test_a_model_is_another_player_with_each_speaker(researcher, player, good):
    speaker = model("speaker")
    form = SpeakerSection(source=f"deployment:{speaker.pk}").to_dict()
    played(player, {"deployment": good, "speaker": speaker, "form": form}, returns=(1.0, 0.0), host=researcher)
    for source in ("self", "follower:60"):
        advised = {"deployment": good, "form": SpeakerSection(source=source).to_dict()}
        played(player, advised, returns=(1.0, 0.0), host=researcher)
    played(player, good, returns=(1.0, 0.0), host=researcher)
    names = [f"model:{good.pk}{voice}" for voice in (f"+{speaker.pk}", "+self", "+follower:60", "")]
    assert [who for _, who in players()] == names
    services.refit(game="negotiation")
    rows = {row.who: row for row in Standing.objects.named().filter(deployment=good)}
    assert [rows[name].name for name in names] == [
        "good, advising speaker",
        "good, with strategies of its own",
        "good, advising a follower of strategies (60)",
        "good",
    ]
    assert rows[names[0]].speaker == speaker
    speaker.checkpoint.open_to_players = False
    speaker.checkpoint.save()
    seen = Standing.objects.visible_to(player).filter(deployment=good)
    assert set(seen.values_list("who", flat=True)) == {*names[1:]}


def test_a_match_that_was_played_is_read_as_the_table_wrote_it(player):
    match = finished_match(player)
    Match.objects.update(ended_at=timezone.now() - log.HELD_BACK)
    (log_match,) = read()
    assert log_match.id == match.pk
    assert {str(n): seat.value for n, seat in enumerate(log_match.seats)} == match.returns
    assert [seat.moves for seat in log_match.seats] == [1, 1]


def test_in_a_game_of_sides_it_counts_which_side_has_won(player, good, researcher):
    """Returns of one side may differ: in Among Us by the tasks that each has done."""
    played(player, good, returns=(1.2, 1.05), host=researcher, seat_metrics={"0": {"won": 1.0}, "1": {"won": 1.0}})
    played(player, good, returns=(-1.0, 1.05), host=researcher, seat_metrics={"0": {"won": 0.0}, "1": {"won": 1.0}})
    played(player, good, returns=(None, None), host=researcher, seat_metrics={"0": {"won": 0.0}, "1": {"won": 1.0}})
    assert [[seat.value for seat in match.seats] for match in read()] == [[1.0, 1.0], [0.0, 1.0], [None, None]]


def test_what_is_not_over_or_was_aborted_does_not_count(researcher, player, good):
    for state in (Match.State.OPEN, Match.State.RUNNING, Match.State.ABORTED):
        played(player, good, returns=(1.0, 0.0), host=researcher, state=state)
    assert players() == []


def test_a_match_leaves_the_log_when_somebody_takes_their_yes_back(researcher, player, good):
    match = played(player, good, returns=(1.0, 0.0), host=researcher)
    assert len(players()) == 1
    waiting_room.answer_consent(match=match, user=player, agreed=False)
    assert players() == []


def test_a_match_in_which_somebody_else_moved_for_a_seat_does_not_count(researcher, player, good):
    played(player, good, returns=(1.0, 0.0), host=researcher, rated=False, unrated_why="a stand-in moved for Ann")
    assert players() == []


def test_a_match_by_rules_that_its_host_chose_does_not_count(researcher, player, good):
    played(player, good, returns=(1.0, 0.0), host=researcher, rules={"turn_limit": 2})
    assert players() == []


def test_guests_have_no_name_and_a_match_among_guests_rates_nobody(researcher, player, person, good):
    ann, ben = person("guest", "guest-a"), person("guest", "guest-b")
    played(ann, ben, returns=(1.0, 0.0), host=researcher)
    played(player, ann, returns=(1.0, 0.0), host=researcher)
    assert players() == [("", ""), (f"person:{player.pk}", "")]
    assert [match.games() for match in read()] == [set(), set()]


def test_games_played_as_a_guest_stay_a_guests_after_an_account_was_made(client, researcher, player, person):
    """Or a host would collect points from any number of own guests, of which each makes an account in the end."""
    guest = person("guest", "guest-a")
    before = played(player, guest, returns=(1.0, 0.0), host=researcher)
    client.force_login(guest)
    fields = {"username": "ingrid", "password1": "a long pass phrase", "password2": "a long pass phrase"}
    assert client.post(reverse("account_signup"), fields).status_code == 302
    after = played(player, guest, returns=(1.0, 0.0), host=researcher, started_at=timezone.now())
    member = (f"person:{player.pk}", f"person:{guest.pk}")
    assert {match.id: tuple(seat.who for seat in match.seats) for match in read()} == {
        before.pk: (f"person:{player.pk}", ""),
        after.pk: member,
    }


def test_a_match_of_an_experiment_does_not_count(researcher, player, good):
    played(player, good, returns=(1.0, 0.0), host=researcher, shown_as="unknown")
    assert players() == []


def test_a_match_is_void_when_a_models_server_never_answered(researcher, player, good):
    kept = played(player, good, returns=(1.0, 0.0), host=researcher, moves=[(1, "default", [GARBLED, GARBLED, FAILED])])
    played(player, good, returns=(1.0, 0.0), host=researcher, moves=[(1, "default", [FAILED, FAILED, FAILED])])
    assert [match.id for match in read()] == [kept.pk]


def test_moves_are_counted_by_origin(researcher, player, good):
    moves = [
        (0, "seat", []),
        (1, "timeout", [FAILED]),
        (0, "seat", []),
        (1, "default", [GARBLED] * 3),
        (0, "forfeit", []),
    ]
    played(player, good, returns=(0.0, 1.0), host=researcher, moves=moves)
    (match,) = read()
    first, second = match.seats
    assert (first.moves, first.default, first.timeout, first.forfeit) == (3, 0, 0, 1)
    assert (second.moves, second.default, second.timeout, second.forfeit) == (2, 1, 1, 0)


def test_a_game_that_nobody_has_scored_is_no_game(researcher, player, good):
    played(player, good, returns=(None, None), host=researcher)
    assert [match.games() for match in read()] == [set()]


def test_the_log_takes_the_same_queries_however_long_it_is(researcher, player, good, django_assert_num_queries):
    for count in (1, 5):
        for number in range(count):
            played(player, model(f"m{count}{number}"), returns=(1.0, 0.0), host=researcher, moves=[(0, "seat", [])])
        matches = log.numbers("negotiation")
        with django_assert_num_queries(4):
            log.read(matches)


def test_a_player_who_asked_who_it_was_without_rating_holds_no_match_back(player):
    match = finished_match(player)
    assert log.numbers("negotiation") == []
    rating.reveal_unrated(by=match.seats.get(user=player))
    assert log.numbers("negotiation") == [match.pk]
