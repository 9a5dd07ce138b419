"""Listening and speaking on one small game, worked by hand: a crew of Ada and Cia, whose seat is fixed, and Ben.

Ada reports a body (turn 0, an action), all are asked, Ada speaks (turn 1), all are asked, Ben, the imposter, speaks
(turn 2), all are asked. Discount and λ are ½; a change in beliefs counts double.
"""

from dataclasses import replace

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.errors import BadInput
from training.learn.batch import batches
from training.learn.score import Rollout, give_credit, learnable, rows
from training.methods.listen_speak import ListenSpeakConfig
from training.methods.listen_speak.messages import belief_changes, message_turns
from training.methods.trajectories import turn_tokens
from training.records import Belief, Move, Scenario, SeatMove, Turn
from training.rewards import Score

ADA, BEN, CIA = range(3)
NAMES = ("Ada", "Ben", "Cia")
BELIEFS = {ADA: (0.2, 0.5, 0.4), CIA: (0.3, 0.4, 0.1)}
"""What the crew thinks of Ben before, between and after the two messages."""
NUMBERS = {"gamma": 0.5, "lam": 0.5, "speaking": 2.0}
VALUES = [
    [9, 0.4, 9, 9, 9, 0.2, 0.6, 9, 9, 9],  # read before turn 0 and before both tokens of turn 1
    [9, 9, -0.5, 0.25, 9, 9],
]
PENALTIES = [[0, 0, -0.3, -0.1, 0, 0, -0.1, -0.2, 0, 0], [0.0] * 6]


def beliefs(answers=BELIEFS, truth=("Ben",)):
    """The answers of every round; the traces of Ada's are 3, 4 and 5."""
    return tuple(
        Belief(
            seat=seat,
            after=1 + number,
            question="?",
            probabilities={"Ben": p, NAMES[2 - seat]: 1 - p},
            truth=truth,
            **({"trace": 3 + number, "span": (1, 3)} if seat == ADA and truth else {}),
        )
        for number in range(3)
        for seat, row in answers.items()
        for p in [row[number]]
    )


def game(*, asked=None, limited=True, penalties=PENALTIES, returns=(1.0, -1.0, 1.0), order=(ADA, ADA, BEN)):
    traces = [
        trace("..00..11..", ADA, choices={2: (2, 7), 3: (3,)} if limited else {}),
        trace("...22.", BEN),
        trace("....", CIA, policy="partner"),
        *(trace("...", ADA, prefix=(0, length)) for length in (6, 8, 10)),
    ]
    lists = [*VALUES, *([0.0] * len(trace.tokens) for trace in traces[2:])]
    paid = [*penalties, *([0.0] * len(trace.tokens) for trace in traces[2:])] if penalties else ()
    rewarded = scored(traces, dict(enumerate(returns)), {"token": lists}, rewards=[0.25, 0.0, 0.0], token_rewards=paid)
    move = Move(action="say")
    episode = rewarded.episode.model_copy(
        update={
            "scenario": Scenario(id="s", game="among_us", seats=NAMES),
            "moves": tuple(SeatMove(seat=seat, move=move) for seat in order),
            "turns": tuple(
                Turn(seat=seat, reply="", move=move, move_index=place, passed=True) for place, seat in enumerate(order)
            ),
            "beliefs": beliefs() if asked is None else asked,
        }
    )
    return replace(rewarded, episode=episode)


def credit(rewarded=None, **config):
    return ListenSpeakConfig(**{**NUMBERS, **config}).build().credit([rewarded or game()])[0].traces


# --- rewards ---


def test_advantages_by_hand():
    # Ada's steps: the report (.25, no penalty: it is no message), two tokens (−.1, and −.2 + 1 + 2·((.5+.4)−(.2+.3)))
    # δ3 = 1.6 − .6 = 1; δ2 = −.1 + 1·.6 − .2 = .3; δ1 = .25 + ½·.2 − .4 = −.05
    # A3 = 1; A2 = .3 + 1·½·1 = .8; A1 = −.05 + ½·½·.8 = .15; messages count a fifth
    # Ben's: 0 and −1 + 2·.4 for the doubt that he sowed; A2 = −.2 − .25 = −.45; A1 = .25 + .5 + ½·−.45 = .525
    ada, ben, cia, *_ = credit()
    assert ada.ppo == pytest.approx([0, 0, 0.15, 0.15, 0, 0, 0.16, 0.2, 0, 0])
    assert ben.ppo == pytest.approx([0, 0, 0, 0.105, -0.09, 0])
    assert ada.turn_advantages == pytest.approx({0: 0.15, 1: 0.9})
    assert ben.turn_advantages == pytest.approx({2: 0.0375})
    assert cia is None


def test_values_are_learned_where_they_are_read():
    ada, ben, *probes = credit()
    assert np.flatnonzero(ada.value_mask["token"]).tolist() == [1, 5, 6]
    assert ada.value_targets["token"][[1, 5, 6]] == pytest.approx([0.55, 1.0, 1.6])
    assert np.flatnonzero(ben.value_mask["token"]).tolist() == [2, 3]
    assert ben.value_targets["token"][[2, 3]] == pytest.approx([0.025, -0.2])
    assert not any(numbers.value_mask for numbers in probes if numbers)


def test_divergence_costs_at_actions_too_where_it_is_wanted():
    # the report now earns .25 − .4: δ1 = −.15 + .1 − .4 = −.45, A1 = −.45 + ¼·.8
    assert credit(kl_on="all")[0].ppo[[2, 3]] == pytest.approx([-0.25, -0.25])
    assert credit(game(penalties=()), kl_on="all")[0].ppo == pytest.approx(credit(game(penalties=()))[0].ppo)


def test_messages_are_not_discounted_and_actions_are():
    # without a critic, λ = 1: a report three steps before the end is discounted once, whatever the message's length
    flat = game(penalties=())
    flat = replace(flat, values={"token": [np.zeros_like(row) for row in flat.values["token"]]}, turn_rewards=[0, 0, 0])
    ada = credit(flat, variant="RL", lam=1.0, message_weight=1.0)[0]
    assert ada.ppo == pytest.approx([0, 0, 0.5, 0.5, 0, 0, 1, 1, 0, 0])


# --- which turns are messages, and what they changed ---


def messages(rewarded):
    return sorted(message_turns(rewarded.episode, turn_tokens(rewarded.episode)))


def test_messages_are_what_was_not_limited():
    assert messages(game()) == [1, 2]
    assert messages(game(asked=())) == [1, 2]


def test_without_limits_messages_are_what_stands_between_two_rounds_of_probes():
    assert messages(game(limited=False)) == [1, 2]
    assert messages(game(limited=False, asked=())) == []
    once = tuple(belief for belief in beliefs() if belief.after != 3)
    assert messages(game(limited=False, asked=once)) == [1]


def test_a_refused_try_is_what_the_seat_says_next():
    rewarded = game(limited=False)
    refused = Turn(seat=ADA, reply="", error="too long", passed=False)
    for first, expected in ((refused, [0, 1, 2]), (rewarded.episode.turns[0], [1, 2])):
        turns = (first, *rewarded.episode.turns[1:])
        assert messages(replace(rewarded, episode=rewarded.episode.model_copy(update={"turns": turns}))) == expected


def test_changes_by_hand():
    # the listeners' sums are .5, .9 and .5; Ben lowered it, which is what he is paid for
    assert belief_changes(game().episode) == pytest.approx({1: 0.4, 2: 0.4})
    # Cia is not asked after the last message: of the two sums only Ada's part counts, .5 and .4
    gone = tuple(belief for belief in beliefs() if (belief.seat, belief.after) != (CIA, 3))
    assert belief_changes(game(asked=gone).episode) == pytest.approx({1: 0.4, 2: 0.1})
    assert belief_changes(game(order=(ADA, ADA, CIA)).episode) == pytest.approx({1: 0.4, 2: -0.4})
    assert belief_changes(game(asked=()).episode) == {}
    assert belief_changes(game(asked=beliefs(truth=())).episode) == {}


def test_a_fixed_partner_listens_and_is_not_paid():
    alone = {ADA: BELIEFS[ADA]}
    # without Cia the message is worth .3 in place of .4: its last token earns .2 less
    assert credit(game(asked=beliefs(alone)))[0].ppo[7] == pytest.approx(0.2 * 0.8)


def test_what_the_tool_seat_says_is_nobodys_message():
    assert belief_changes(game(order=(ADA, 3, BEN)).episode) == pytest.approx({2: 0.4})


# --- listening and the world model ---


def test_weights_of_answers_and_observations_by_hand():
    # three answers of two tokens; five tokens were read after turns: 11 in all; 3·11/3 and 1·11/5
    ada, ben, _, *probes = credit()
    assert [numbers.nll.tolist() for numbers in probes] == [[0, 11, 11]] * 3
    assert ada.nll == pytest.approx([0, 0, 0, 0, 2.2, 2.2, 0, 0, 2.2, 2.2])
    assert ben.nll == pytest.approx([0, 0, 0, 0, 0, 2.2])


def test_each_part_of_the_loss_has_its_own_weight():
    """With −log π of 1, 2, 3 … at the tokens in order: three times the mean per answer, half the mean per token."""
    group = [game(), game(asked=())]  # the second game has no answers, which changes nothing about their mean
    score = Score({}, (True,) * 3)
    rollouts = [Rollout(number, each.episode, score, scored=each) for number, each in enumerate(group)]
    learnable(rollouts)
    give_credit(rollouts, ListenSpeakConfig(world_model=0.5).build())
    total = 0.0
    for batch in batches(rows(rollouts), 10**6, "token_mean"):
        cost = 1.0 + batch.targets.double()  # of token t it is t + 1
        total += float((batch.streams["nll_weight"] * batch.streams["nll"] * cost).sum())
    # each answer has the tokens 1 and 2 and costs 2 + 3; read were 4, 5, 8, 9 by Ada and 5 by Ben, in both games
    assert total == pytest.approx(3.0 * 5 + 0.5 * (5 + 6 + 9 + 10 + 6) / 5)


def test_who_is_asked_without_a_right_answer_learns_nothing_from_it():
    assert credit(game(asked=beliefs(truth=())))[3:] == [None] * 3


# --- variants ---


@pytest.mark.parametrize(
    "variant, ppo, answers, observations, paid",
    [
        ("base", False, False, False, False),
        ("L", False, True, True, False),
        ("RL", True, False, True, False),
        ("RL+L", True, True, True, False),
        ("RL+L+S", True, True, True, True),
    ],
)
def test_variants(variant, ppo, answers, observations, paid):
    traces = credit(variant=variant)
    assert (traces[0] is not None and traces[0].ppo is not None) == ppo
    assert (traces[3] is not None) == answers
    assert (traces[0] is not None and traces[0].nll is not None) == observations
    if ppo:  # the message's last token: ⅕ of 1, or of 1 less 2·.4
        assert traces[0].ppo[7] == pytest.approx(0.2 if paid else 0.04)
    needs = ListenSpeakConfig(variant=variant).build().needs
    assert (needs.critic, needs.probes) == (("token",) if ppo else (), variant != "base")


def test_without_pay_for_messages_no_belief_matters_to_the_policy():
    sure = {ADA: (0.9, 0.1, 0.5), CIA: (0.0, 1.0, 0.3)}
    for config in ({"variant": "RL+L"}, {"variant": "RL"}, {"speaking": 0.0}):
        rows = [credit(game(asked=beliefs(answers)), **config) for answers in (BELIEFS, sure)]
        for first, second in zip(*rows, strict=True):
            assert (first is None) == (second is None)
            if first is not None:
                assert np.array_equal(first.ppo, second.ppo) if first.ppo is not None else second.ppo is None
    assert not np.array_equal(credit()[0].ppo, credit(game(asked=beliefs(sure)))[0].ppo)


def test_a_game_without_discussions_has_nothing_to_hear():
    traces = credit(game(asked=()))
    assert traces[3:] == [None] * 3
    assert traces[0].ppo == pytest.approx(credit(game(asked=()), variant="RL")[0].ppo)


def test_what_learns_nothing_is_refused():
    with pytest.raises(BadInput, match="base is the model as it is") as error:
        ListenSpeakConfig(variant="base").check(-1.0, 1)
    assert error.value.where == "variant"
    with pytest.raises(BadInput, match="learns nothing"):
        ListenSpeakConfig(variant="L", listening=0, world_model=0).check(-1.0, 1)
    ListenSpeakConfig(variant="RL", listening=0, world_model=0).check(-1.0, 1)
