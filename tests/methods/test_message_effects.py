"""What messages change in beliefs: who is counted, and the means by role, on the game of `test_listen_speak`.

Ada and Cia, the crew, are asked before and after a message of Ada's (move 1) and one of Ben's, the imposter (move 2):
Ada says .2, .5, .4 and Cia .3, .4, .1.
"""

import pytest

from tests.methods.test_listen_speak import ADA, BEN, CIA, beliefs, game
from training.methods.message_effects import by_roles, message_effects, per_message

ROLES = ("crewmate", "imposter", "crewmate")


def episode(roles=ROLES, **fields):
    return game(**fields).episode.model_copy(update={"roles": roles})


def row(speaker, listener, mean, n=1):
    return {"speaker": speaker, "listener": listener, "n": n, "mean": pytest.approx(mean)}


def test_every_listener_has_its_own_change():
    first, second = message_effects(episode())
    assert (first.place, first.speaker, first.truth) == (1, ADA, {"Ben"})
    assert (first.before, first.after) == ({ADA: 0.2, CIA: 0.3}, {ADA: 0.5, CIA: 0.4})
    assert (second.place, second.speaker) == (2, BEN)
    assert second.changes == pytest.approx({ADA: -0.1, CIA: -0.3})


def test_who_is_asked_only_once_has_heard_nothing():
    once = tuple(belief for belief in beliefs() if (belief.seat, belief.after) != (CIA, 3))
    first, second = message_effects(episode(asked=once))
    assert set(first.before) == {ADA, CIA}
    assert second.changes == pytest.approx({ADA: -0.1})


def test_questions_without_a_right_answer_change_nothing():
    assert message_effects(episode(asked=beliefs(truth=()))) == []


def test_a_tool_has_no_message():
    assert [effect.place for effect in message_effects(episode(order=(ADA, 3, BEN)))] == [2]


def test_means_by_role_in_a_game():
    assert by_roles(episode()) == [
        row("crewmate", "crewmate", 0.1), row("crewmate", "itself", 0.3), row("imposter", "crewmate", -0.2, n=2),
    ]  # fmt: skip
    assert by_roles(episode(roles=())) == []


def test_means_over_the_messages_of_a_step():
    # a second game without Cia's last answer: Ben's two messages change the sums by -.4 and -.1, Ada's by .4 twice
    once = tuple(belief for belief in beliefs() if (belief.seat, belief.after) != (CIA, 3))
    games = [episode(), episode(asked=once), episode(roles=())]
    assert per_message(games) == pytest.approx({"belief_change/crewmate": 0.4, "belief_change/imposter": -0.25})
    nobody = [belief for belief in beliefs() if (belief.seat, belief.after) in {(ADA, 1), (CIA, 2)}]
    assert per_message([episode(asked=tuple(nobody))]) == {}, "nobody was asked both before and after"
