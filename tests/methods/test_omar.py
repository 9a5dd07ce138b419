"""OMAR's credit against numbers worked by hand, one episode at a time."""

import numpy as np
import pytest
from pydantic import ValidationError

from tests.methods.episodes import scored, trace
from training.errors import BadInput
from training.methods import advantages
from training.methods.omar import OmarConfig, hierarchical

# one seat, two turns: prompt, turn 0 (two tokens), observation, turn 2 (one token); turn 1 is the other seat's
LAYOUT = "..00.2"
TURN = [[9, 0.2, 9, 9, 0.5, 9]]  # read at position 1 (before turn 0) and 4 (before turn 2)
TOKEN = [[9, 0.1, 0.3, 9, 0.2, 9]]  # positions 1 and 2 (before the tokens at 2 and 3), 4 (before the token at 5)


def credit_of(episode, **config):
    [credit] = OmarConfig(**config).build().credit([episode])
    return credit.traces[0]


def test_default_form_by_hand():
    # the same numbers as `test_hierarchical_by_hand`: A = .7, .5; tokens .6, .4 and .3
    credit = credit_of(scored([trace(LAYOUT)], {0: 1.0}, {"turn": TURN, "token": TOKEN}))
    assert credit.ppo == pytest.approx([0, 0, 0.6, 0.4, 0, 0.3])
    assert credit.turn_advantages == pytest.approx({0: 0.7, 2: 0.5})
    # turn head: A + V before each turn = .9 and 1.0
    assert credit.value_mask["turn"].tolist() == [False, True, False, False, True, False]
    assert credit.value_targets["turn"][[1, 4]] == pytest.approx([0.9, 1.0])
    # token head: the token-level return is the pseudo-reward, .7 in turn 0 and .5 in turn 2
    assert credit.value_mask["token"].tolist() == [False, True, True, False, True, False]
    assert credit.value_targets["token"][[1, 2, 4]] == pytest.approx([0.7, 0.7, 0.5])


def test_paper_form_by_hand():
    # one head; V_0 is read at position 3 (after turn 0) = .2, V_2 at position 5 = .5: A = .7, .5 as above
    values = [[9, 0.1, 0.3, 0.2, 0.2, 0.5]]
    episode = scored([trace(LAYOUT)], {0: 1.0}, {"shared": values})
    credit = credit_of(episode, critic_heads="one", turn_value="last_token")
    assert credit.ppo == pytest.approx([0, 0, 0.6, 0.4, 0, 0.3])
    # every position before a token is regressed on the token-level return, the last position of a turn on A itself
    assert credit.value_mask["shared"].tolist() == [False, True, True, True, True, True]
    assert credit.value_targets["shared"][1:] == pytest.approx([0.7, 0.7, 0.7, 0.5, 0.5])


def test_flat_by_hand():
    # three steps, R = 1 on the last, values .1 .3 .2, γ .9, λ .5 (γλ = .45)
    # δ3 = .8, δ2 = .9·.2 − .3 = −.12, δ1 = .9·.3 − .1 = .17; A3 = .8, A2 = .24, A1 = .278
    credit = credit_of(scored([trace(LAYOUT)], {0: 1.0}, {"token": TOKEN}), advantage="flat", gamma=0.9, lam=0.5)
    assert credit.ppo == pytest.approx([0, 0, 0.278, 0.24, 0, 0.8])
    assert credit.value_targets["token"][[1, 2, 4]] == pytest.approx([0.378, 0.54, 1.0])
    assert credit.turn_advantages == pytest.approx({0: 0.259, 2: 0.8})


def test_turn_only_by_hand():
    episode = scored([trace(LAYOUT)], {0: 1.0}, {"turn": TURN})
    credit = credit_of(episode, advantage="turn_only")
    assert credit.ppo == pytest.approx([0, 0, 0.7, 0.7, 0, 0.5])
    assert set(credit.value_targets) == {"turn"}
    assert OmarConfig(advantage="turn_only").build().needs.critic == ("turn",)


def test_group_relative_to_the_conversation():
    # seats 0 and 1 got 1.0 and 0.4, mean .7
    episode = scored([trace("..00"), trace("..1", seat=1)], {0: 1.0, 1: 0.4})
    method = OmarConfig(advantage="group_relative").build()
    [credit] = method.credit([episode])
    assert credit.traces[0].ppo == pytest.approx([0, 0, 0.3, 0.3])
    assert credit.traces[1].ppo == pytest.approx([0, 0, -0.3])
    assert method.needs.critic == ()
    assert method.needs.group == "conversation"


def test_group_relative_to_the_same_role_in_replays():
    # seat 0 got 1 and 0 in the two replays of start (s, 0); the episode of another start stands alone
    episodes = [
        scored([trace(".0")], {0: 1.0, 1: 5.0}),
        scored([trace(".0")], {0: 0.0, 1: 7.0}),
        scored([trace(".0")], {0: 9.0, 1: 0.0}, start=("s", 1)),
    ]
    method = OmarConfig(advantage="group_relative", baseline="role").build()
    assert method.needs.group == "start"
    assert [credit.traces[0].ppo[1] for credit in method.credit(episodes)] == pytest.approx([0.5, -0.5, 0.0])


def test_process_and_token_rewards_enter_the_recursion():
    # r_0 = .5 process − .3 paid at its tokens = .2, r_2 = 1; values 0; γ_turn .5: A_2 = 1, A_0 = .2 + .5 = .7
    # tokens of turn 0: −.1 and −.2 where they were paid, the rest of .7 (1.0) on the last: A = .7, .8
    zeros = {"turn": [[0] * 6], "token": [[0] * 6]}
    paid = [[0, 0, -0.1, -0.2, 0, 0]]
    episode = scored([trace(LAYOUT)], {0: 1.0}, zeros, rewards=[0.5, 0, 0], token_rewards=paid)
    credit = credit_of(episode, gamma_turn=0.5)
    assert credit.turn_advantages == pytest.approx({0: 0.7, 2: 1.0})
    assert credit.ppo == pytest.approx([0, 0, 0.7, 0.8, 0, 1.0])
    flat = credit_of(episode, advantage="flat", filter="off")
    # as one sequence: rewards −.1, .5 − .2, 1 → to go 1.2, 1.3, 1
    assert flat.ppo == pytest.approx([0, 0, 1.2, 1.3, 0, 1.0])


FAILED = {"passed": [False, True, True]}


def test_filter_off_changes_nothing():
    values = {"turn": TURN, "token": TOKEN}
    assert credit_of(scored([trace(LAYOUT)], {0: 1.0}, values, **FAILED), filter="off").ppo == pytest.approx(
        [0, 0, 0.6, 0.4, 0, 0.3]
    )


def test_filter_zero_is_the_papers():
    values = {"turn": TURN, "token": TOKEN}
    credit = credit_of(scored([trace(LAYOUT)], {0: 1.0}, values, **FAILED), filter="zero")
    assert credit.ppo == pytest.approx([0, 0, -0.1, -0.3, 0, 0.3])
    assert credit.turn_advantages == pytest.approx({0: 0.0, 2: 0.5})
    assert credit.value_targets["turn"][[1, 4]] == pytest.approx([0.9, 1.0])  # before filtering
    assert credit.value_targets["token"][[1, 2]] == pytest.approx([0.0, 0.0])  # after it


def test_filter_min_never_rewards_a_failing_turn():
    # A_0 = .7 → 0; with token values −.1, −.3 the token advantages would be +.1, +.3: clamped to 0
    negative = {"turn": TURN, "token": [[9, -0.1, -0.3, 9, 0.2, 9]]}
    credit = credit_of(scored([trace(LAYOUT)], {0: 1.0}, negative, **FAILED))
    assert credit.ppo == pytest.approx([0, 0, 0, 0, 0, 0.3])
    # a failing turn of a lost game keeps its blame: R = −1: A_2 = −1.5, A_0 = −.45 − .2 + ... = −1.1
    lost = credit_of(scored([trace(LAYOUT)], {0: -1.0}, {"turn": TURN, "token": TOKEN}, **FAILED))
    assert lost.turn_advantages == pytest.approx({0: -1.1, 2: -1.5})
    assert lost.ppo[2:4] == pytest.approx([-1.2, -1.4])


@pytest.mark.parametrize("rule, expected", [("min", [0.0, 0.0]), ("zero", [0.0, 0.0]), ("off", [0.9, 0.7])])
def test_filter_in_the_flat_form(rule, expected):
    credit = credit_of(scored([trace(LAYOUT)], {0: 1.0}, {"token": TOKEN}, **FAILED), advantage="flat", filter=rule)
    assert credit.ppo[2:4] == pytest.approx(expected)


def test_a_seat_eliminated_early_keeps_a_share_of_its_win():
    # both seats win; the game eliminated seat 0 before the final round
    zeros = {"turn": [[0, 0]] * 2, "token": [[0, 0]] * 2}
    traces = [trace(".0"), trace(".1", seat=1)]
    metrics = {0: {"eliminated": 1.0}, 1: {"eliminated": 0.0}}
    episode = scored(traces, {0: 1.0, 1: 1.0}, zeros, seat_metrics=metrics)

    def rewards(**config):
        [credit] = OmarConfig(**config).build().credit([episode])
        return [row.ppo[1] for row in credit.traces]

    assert OmarConfig().to_dict()["elimination_discount"] == 0.75
    assert rewards() == pytest.approx([0.75, 1.0])
    assert rewards(elimination_discount=0.5) == pytest.approx([0.5, 1.0])
    assert rewards(advantage="group_relative") == pytest.approx([-0.125, 0.125])  # mean .875


def test_elimination_does_not_make_a_loss_smaller():
    zeros = {"turn": [[0, 0]], "token": [[0, 0]]}
    episode = scored([trace(".0")], {0: -1.0}, zeros, seat_metrics={0: {"eliminated": 1.0}})
    assert credit_of(episode).ppo[1] == pytest.approx(-1.0)


def test_training_computes_through_hierarchical_gae(monkeypatch):
    calls = []

    def double(*arguments, **options):
        calls.append(options)
        turns, tokens = advantages.hierarchical_gae(*arguments, **options)
        return turns, [2 * row for row in tokens]

    monkeypatch.setattr(hierarchical, "hierarchical_gae", double)
    credit = credit_of(scored([trace(LAYOUT)], {0: 1.0}, {"turn": TURN, "token": TOKEN}))
    assert credit.ppo == pytest.approx([0, 0, 1.2, 0.8, 0, 0.6])
    assert [options["filter"] for options in calls] == ["min"]


@pytest.mark.parametrize(
    "form, kind",
    [
        ("hierarchical", "Hierarchical"),
        ("flat", "Flat"),
        ("turn_only", "TurnOnly"),
        ("group_relative", "GroupRelative"),
    ],
)
def test_every_form_is_a_class_of_its_own_module(form, kind):
    method = OmarConfig.from_dict({"name": "omar", "advantage": form}).build()
    assert (type(method).__name__, type(method).__module__) == (kind, f"training.methods.omar.{form}")


def test_whitening_is_over_the_batch_and_before_the_filter():
    zeros = {"turn": [[0, 0]], "token": [[0, 0]]}
    episodes = [scored([trace(".0")], {0: float(r)}, zeros, passed=[r != 3], start=("s", r)) for r in (1, 2, 3)]
    method = OmarConfig(whiten=True).build()
    assert method.needs.group == "game"
    credit = method.credit(episodes)
    spread = np.sqrt(2 / 3)
    assert [c.traces[0].ppo[1] for c in credit] == pytest.approx([-1 / spread, 0.0, 0.0])
    assert [c.traces[0].value_targets["turn"][0] for c in credit] == pytest.approx([1, 2, 3])


def test_only_the_learner_gets_credit_and_branches_continue_the_seat():
    # turn 0 is in the first trace, turn 2 in a branch that repeats the prompt; the frozen seat's trace gets nothing
    first, branch = trace(".0"), trace("...2", parent=(0, 1))
    other = trace(".1", seat=1, policy="frozen")
    values = {"turn": [[0.2, 9], [9, 9, 0.5, 9], [0, 0]], "token": [[0, 0], [0, 0, 0, 0], [0, 0]]}
    [credit] = OmarConfig().build().credit([scored([first, branch, other], {0: 1.0, 1: 1.0}, values)])
    assert credit.traces[0].ppo == pytest.approx([0, 0.7])
    assert credit.traces[1].ppo == pytest.approx([0, 0, 0, 0.5])
    assert credit.traces[2] is None


def test_sampled_tokens_need_something_before_them():
    with pytest.raises(ValueError, match="start or break off wrongly"):
        credit_of(scored([trace("0.")], {0: 1.0}, {"turn": [[0, 0]], "token": [[0, 0]]}))


def test_two_heads_at_the_turns_end_are_refused():
    with pytest.raises(ValidationError, match="baseline for: its advantage vanishes"):
        OmarConfig(turn_value="last_token")
    with pytest.raises(ValidationError, match="its advantage vanishes"):
        OmarConfig(advantage="turn_only", turn_value="last_token")
    with pytest.raises(BadInput, match="different targets") as caught:
        OmarConfig.from_dict({"critic_heads": "one"})
    assert caught.value.where == "turn_value"


def test_zero_is_refused_where_rewards_may_be_negative():
    OmarConfig(filter="zero").check(0.0, 1)
    OmarConfig(filter="min").check(-1.0, 1)
    with pytest.raises(BadInput, match="reward failing") as caught:
        OmarConfig(filter="zero").check(-0.5, 1)
    assert caught.value.where == "filter"


def test_a_replay_baseline_needs_replays():
    with pytest.raises(BadInput, match="at least 2 games"):
        OmarConfig(advantage="group_relative", baseline="role").check(0.0, 1)


def test_no_state():
    method = OmarConfig().build()
    method.load_state_dict(method.state_dict())
    with pytest.raises(ValueError, match="no state"):
        method.load_state_dict({"x": 1})
