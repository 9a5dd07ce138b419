"""The rule by which a request finds its engine, by hand: blocks are 16 tokens."""

from training.engines import affinity
from training.engines.affinity import Affinity

RULES = list(range(32))
ANN, BOB = [*RULES, *range(100, 132)], [*RULES, *range(200, 232)]


def test_a_prompt_goes_where_most_of_it_was_read():
    rule = Affinity(3)
    rule.read(0, RULES)
    rule.read(1, ANN)
    rule.read(2, BOB)
    idle = {0: 0, 1: 0, 2: 0}
    assert rule.choose([*ANN, 1, 2], idle) == 1
    assert rule.choose([*BOB, 1, 2], idle) == 2
    assert rule.choose([*RULES, *range(300, 332)], idle) == 0, "all have read the rules: the first of equals"
    assert rule.choose(list(range(50, 90)), {0: 2, 1: 1, 2: 2}) == 1, "none has read it: the one with fewest requests"
    assert rule.choose(ANN[:15], {0: 1, 1: 1, 2: 0}) == 2, "less than a block counts for nothing"


def test_a_busy_engine_gets_no_more_than_a_quarter_above_its_share():
    rule = Affinity(2)
    rule.read(0, ANN)
    assert rule.choose(ANN, {0: 4, 1: 3}) == 0  # 8 with this one: at most 1.25 * 8 / 2 = 5 on one
    assert rule.choose(ANN, {0: 5, 1: 2}) == 1  # it would be its sixth
    assert rule.choose(ANN, {0: 1, 1: 0}) == 0  # 2 with this one: at most 1.25, which is 2


def test_an_engine_that_may_not_be_chosen_is_not():
    rule = Affinity(2)
    rule.read(0, ANN)
    assert rule.choose(ANN, {1: 7}) == 1


def test_equal_blocks_behind_others_are_no_prefix():
    rule = Affinity(2)
    rule.read(0, [*range(16), *range(500, 516)])
    rule.read(1, [*range(16)])
    assert rule.choose([*range(16, 32), *range(500, 516)], {0: 1, 1: 0}) == 1


def test_what_was_forgotten_draws_no_more():
    rule = Affinity(2)
    rule.read(1, ANN)
    assert rule.choose(ANN, {0: 0, 1: 0}) == 1
    rule.forget(1)
    assert rule.choose(ANN, {0: 0, 1: 0}) == 0


def test_memory_is_bounded_and_drops_what_was_used_least_lately(monkeypatch):
    monkeypatch.setattr(affinity, "REMEMBERED", 4)
    rule = Affinity(2)
    rule.read(1, ANN)  # 4 blocks
    rule.read(1, BOB)  # 2 blocks of it are new, and those of the rules are used again
    assert rule.choose(BOB, {0: 0, 1: 0}) == 1
    rule.read(0, RULES)
    assert rule.choose(ANN, {0: 0, 1: 0}) == 0, "both know the rules, and neither knows more"


def test_conversations_that_begin_alike_spread_over_the_engines():
    """40 conversations with the same rules, all in flight: after the first few, every engine has read the rules."""
    rule, loads = Affinity(4), dict.fromkeys(range(4), 0)
    for index in range(40):
        prompt = [*RULES, *[1000 + index] * 16]
        engine = rule.choose(prompt, loads)
        rule.read(engine, prompt)
        loads[engine] += 1
    assert max(loads.values()) <= 13  # ceil(1.25 * 40 / 4)
    assert min(loads.values()) >= 9


def test_what_was_read_under_an_adapter_is_of_use_under_the_same_one_alone():
    rule = Affinity(2)
    rule.read(1, RULES, "a")
    assert rule.choose(RULES, {0: 0, 1: 0}, "a") == 1
    assert rule.choose(RULES, {0: 0, 1: 0}, "b") == 0
    assert rule.choose(RULES, {0: 0, 1: 0}) == 0
