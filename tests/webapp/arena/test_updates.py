"""What a move reads: little while only the game moves on, everything once anything else has changed."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from training.errors import BadInput, IllegalMove
from training.records import Move, SeatMove
from webapp.accounts.models import User
from webapp.arena.live.feed import ClientVersions, MatchFeed
from webapp.arena.models import Match, MatchMove
from webapp.arena.play import hosting, services, statements

pytestmark = pytest.mark.django_db(transaction=True)


def talk(match: Match, step: int, text: str = "The food is what I need.") -> MatchMove:
    return services.submit(match_id=match.pk, seat=step % 2, step=step, move=Move(action="talk", text=text))


TALK = Move(action="talk", text="The food is what I need.")


def unreadable(*_: object) -> Move:
    raise BadInput("this form has no move")


def statements_of(read: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        read()
    return len([query for query in captured if query["sql"] not in {"BEGIN", "COMMIT"}])


def test_a_move_of_somebody_else_is_read_in_two_statements(two_people: Match) -> None:
    feed = MatchFeed(two_people.pk, 1)
    feed.see()
    talk(two_people, 0)
    assert statements_of(feed.see) == 2, "what is new, and the time"
    assert feed.see().rows[-1].message["text"] == "The food is what I need."


def pause(match: Match) -> None:
    hosting.pause(match=match)


def replace(match: Match) -> None:
    hosting.replace(match=match, number=0)


def ask_a_coach(match: Match) -> None:
    match.advice.create(step=0, seat=1, after=1, coach="an adviser", text="Ask for food.", asked_at=match.created_at)


def refuse(match: Match) -> None:
    match.seats.filter(seat=1).update(consent=False)


def abort(match: Match) -> None:
    services.abort(match_id=match.pk, why="the host left")


@pytest.mark.parametrize("change", [pause, replace, ask_a_coach, refuse, abort])
def test_any_other_change_is_seen_at_the_next_look(
    monkeypatch: pytest.MonkeyPatch, ben: User, two_people: Match, change: Callable[[Match], None]
) -> None:
    feed = MatchFeed(two_people.pk, 1)
    before = feed.see().frame_for(ben, ClientVersions(0))[1]
    change(two_people)
    now = services.database_now()
    monkeypatch.setattr(services, "database_now", lambda: now)  # the clock of the frame
    seen, fresh = feed.see(), MatchFeed(two_people.pk, 1).see()
    assert seen.stamp != before.stamp
    assert seen.frame_for(ben, ClientVersions(0)) == fresh.frame_for(ben, ClientVersions(0))


def test_the_state_of_a_move_that_was_not_committed_is_not_kept(two_people: Match) -> None:
    talk(two_people, 0)
    with transaction.atomic():
        talk(two_people, 1, "this is rolled back")
        transaction.set_rollback(True)
    talk(two_people, 1, "this is not")
    assert [row.message["text"] for row in two_people.rows.filter(viewer=0).order_by("number")][-1] == "this is not"
    assert services.fold(two_people).game.observe(0).messages[-1].text == "this is not"


def test_moves_of_another_process_are_caught_up_with(two_people: Match, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(two_people, 0)
    with monkeypatch.context() as other_process:
        other_process.setattr(services, "STATES", services.RecentStates())
        talk(two_people, 1, "from elsewhere")
    talk(two_people, 2, "and on")
    texts = [row.message["text"] for row in two_people.rows.filter(viewer=0).order_by("number")]
    assert texts[-2:] == ["from elsewhere", "and on"]
    with pytest.raises(IllegalMove):
        talk(two_people, 5)


def test_whoever_waited_for_the_lock_goes_on_from_the_state_that_was_kept_meanwhile(
    two_people: Match, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each of those who move in the same step would replay the whole game under the lock."""
    talk(two_people, 0)
    created_at, state = services.STATES.take(two_people.pk)
    real = statements.lock
    assert created_at is not None
    assert state is not None
    kept = state

    def lock(*arguments: Any) -> statements.Locked:
        locked = real(*arguments)
        services.STATES.keep(two_people, kept)  # by the thread whose move held the lock
        return locked

    monkeypatch.setattr(statements, "lock", lock)
    monkeypatch.setattr(services, "make", None)  # a game that is made anew fails
    talk(two_people, 1, "and on")
    monkeypatch.undo()
    assert services.fold(two_people).moves == kept.moves == 2
    assert [row.message["text"] for row in two_people.rows.filter(viewer=0).order_by("number")][-1] == "and on"
    assert services.STATES.take(two_people.pk) == (created_at, kept)


def paused(match: Match) -> None:
    hosting.pause(match=match)
    talk(match, 2)


def resent(match: Match) -> None:
    """Another move in the step of a stored one, as from a tab that did not get the answer."""
    assert services.submit(match_id=match.pk, seat=1, step=1, move=TALK).move["text"] == "more"
    raise IllegalMove("it was stored already")


@pytest.mark.parametrize(
    "refused",
    [
        lambda match: talk(match, 5),  # the game has moved on
        lambda match: services.submit(match_id=match.pk, seat=1, step=2, move=TALK),  # another seat's turn
        lambda match: services.submit(match_id=match.pk, seat=0, step=2, move=Move(action="fly")),
        lambda match: services.submit(match_id=match.pk, seat=0, step=2, move=unreadable),
        paused,
        resent,
    ],
)
def test_a_refused_move_does_not_cost_the_next_one_a_replay(
    two_people: Match, monkeypatch: pytest.MonkeyPatch, refused: Callable[[Match], None]
) -> None:
    """Else anybody could make every move replay the whole game, by sending what is refused."""
    talk(two_people, 0)
    talk(two_people, 1, "more")
    with monkeypatch.context() as replays:
        replays.setattr(services, "make", None)  # a game that is made anew fails
        with pytest.raises((IllegalMove, BadInput)):
            refused(two_people)
        Match.objects.update(paused_at=None)
        talk(two_people, 2, "and on")
    assert services.STATES.take(two_people.pk)[1].moves == services.fold(two_people).moves == 3


def test_a_state_with_moves_that_are_rolled_back_after_a_refusal_is_not_kept(two_people: Match) -> None:
    talk(two_people, 0)
    with transaction.atomic():
        talk(two_people, 1, "this is rolled back")
        with pytest.raises(IllegalMove, match="not your turn"):
            services.submit(match_id=two_people.pk, seat=1, step=2, move=TALK)
        transaction.set_rollback(True)
    talk(two_people, 1, "this is not")
    assert services.fold(two_people).game.observe(0).messages[-1].text == "this is not"


def test_only_so_many_states_are_kept(two_people: Match) -> None:
    states, state = services.RecentStates(), services.fold(two_people)
    for number in range(services.RecentStates.MOST + 1):
        states.keep(Match(pk=number, created_at=two_people.created_at), state)
    assert states.take(0) == (None, None)
    assert states.take(1) == (two_people.created_at, state)
    assert states.take(1) == (None, None), "whoever takes a state owns it"


def test_a_state_of_another_match_with_the_same_number_is_not_used(two_people: Match) -> None:
    """As after a backup was restored beneath a running process."""
    talk(two_people, 0)
    earlier = services.fold(two_people)
    talk(two_people, 1, "more")
    other = Match(pk=two_people.pk, created_at=two_people.created_at - timedelta(days=1))
    services.STATES.keep(other, services.catch_up(earlier, [SeatMove(seat=1, move=Move(action="talk", text="else"))]))
    talk(two_people, 2, "and on")
    assert [row.message["text"] for row in two_people.rows.filter(viewer=0).order_by("number")][-2:] == [
        "more",
        "and on",
    ]
    assert services.STATES.take(two_people.pk)[1].moves == 3
