"""The quality rules against shares counted by hand, and what they let pass in an episode."""

import pytest

from tests.rewards.samples import dialogue, episode, negotiation
from training.reward_section import RewardSection
from training.rewards.rules import copied_share, fit, repeated_share, scripts


@pytest.mark.parametrize(
    "text, share",
    [
        ("", 0),
        ("a b c a b c", 0.25),  # abc bca cab abc: one of four occurred before
        ("no no no no no no", 0.75),  # four triples, all alike
        ("one two three four five six seven", 0),
        ("no no no", 0),  # too short to say
        ("yes <propose>no no no no no no no no</propose> then", 0),  # a tag is no speech
    ],
)
def test_repeated_share(text, share):
    assert repeated_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    "text, share",
    [
        ("a b c d e f g h", 1.0),
        ("A, b. c d e f g h!", 1.0),
        ("a b c d e f x y", 0.5),  # abcde and bcdef of four runs
        ("h g f e d c b a", 0),
        ("a b c d e f", 0),  # two runs: too short to say
    ],
)
def test_copied_share(text, share):
    assert copied_share(text, "the rules: a b c d e f g h") == pytest.approx(share)


def test_scripts():
    assert scripts("Grüße 12 – ok!") == {"LATIN"}
    assert scripts("да 你 a") == {"CYRILLIC", "CJK", "LATIN"}


def judged(*replies, **section):
    return fit(episode(negotiation(), *replies), RewardSection(**section))


def test_each_rule_fails_its_own_turn_only():
    loop = "we can share " * 8
    assert judged("Hello, what do you need?", loop, "你好你好", "Food, please.") == (True, False, False, True)
    assert judged(loop, repetition=1.0) == (True,)
    assert judged("你好", scripts=False) == (True,)
    assert judged("你好", "你好") == (False, False)  # what failed does not make it anybody's language


def test_copying_the_instructions_fails():
    scenario = negotiation()
    from training.games import make

    rules = make(scenario).observe(0).messages[0].text
    copied = " ".join(rules.split()[:40])
    assert fit(episode(scenario, copied), RewardSection(repetition=1.0)) == (False,)
    assert fit(episode(scenario, copied), RewardSection(repetition=1.0, overlap=1.0)) == (True,)


def test_a_writing_system_that_occurred_before_passes():
    scenario = dialogue(scene="Они говорят по-русски.")
    assert fit(episode(scenario, "Привет!", "Hello!"), RewardSection()) == (True, True)


def test_a_malformed_reply_fails_unless_form_is_off():
    refused = episode(negotiation(), ("<propose>", "cannot be read"), "Hello")
    assert fit(refused, RewardSection()) == (False, True)
    assert fit(refused, RewardSection(format=False)) == (True, True)
