"""Every game that checks claims keeps the contract of `ClaimCheckingGame`."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.games.play import everything, steps
from tests.games.worlds import CASES
from training.games import REGISTRY, ClaimCheckingGame, make

CHECKING = [
    (name, scenario)
    for name in REGISTRY
    for scenario in CASES.get(name, [])
    if isinstance(make(scenario), ClaimCheckingGame)
]
checking = pytest.mark.parametrize("name, scenario", CHECKING, ids=[f"{n}-{i}" for i, (n, _) in enumerate(CHECKING)])
WORDS = (
    *(
        "I am",
        "I'm not",
        "is",
        "was",
        "the",
        "a",
        "not",
        "seer",
        "werewolf",
        "villager",
        "imposter",
        "crewmate",
        "food",
    ),
    *("I need", "most", "my top priority", "I saved", "I voted for", "and", "in room (0,0)", "I was", "with", "alone"),
    *("I inspected", "in round 1", "I saw", "kill", "leave", ".", "?", ",", '"', "‘", "’", "'", "if", "worth 3 to me"),
)


def lines(names):
    """Sentences of the words of claims, and any text."""
    return st.one_of(st.text(), st.lists(st.sampled_from((*WORDS, *names)), max_size=14).map(" ".join))


def test_the_games_with_something_to_check_are_known():
    assert {name for name, _ in CHECKING} == {"negotiation", "werewolf", "among_us"}


@checking
@given(seed=st.integers(0, 2**31), data=st.data())
@settings(max_examples=5, deadline=None)
def test_claims_lie_in_the_text_and_change_nothing(name, scenario, seed, data):
    game = make(scenario.with_seed(seed))
    for number, _ in enumerate(steps(game, seed)):
        if number % 7 == 0:
            text = data.draw(lines(game.names))
            before = everything(game)
            for seat in range(len(game.names)):
                claims = game.claims(seat, text)
                assert claims == game.claims(seat, text)
                for claim in claims:
                    assert 0 <= claim.start < claim.end <= len(text)
                    assert text[claim.start : claim.end].strip()
                    assert claim.verdict in ("true", "false", "unknowable")
                    assert claim.kind
                    assert claim.statement
                    assert claim.why.startswith("the engine: ")
                assert [claim.start for claim in claims] == sorted(claim.start for claim in claims)
            assert everything(game) == before


@checking
@given(seed=st.integers(0, 2**31))
@settings(max_examples=5, deadline=None)
def test_a_sentence_about_a_role_is_true_of_the_engines_role_alone(name, scenario, seed):
    game = make(scenario.with_seed(seed))
    roles = set(game.roles())
    for seat, role in enumerate(game.roles()):
        for said in roles:
            (claim,) = game.claims(seat, f"Hello. I am the {said}.")
            assert (claim.kind, claim.verdict) == ("role", "true" if said == role else "false")
            (claim,) = game.claims(seat, f"I'm not the {said}!")
            assert (claim.kind, claim.verdict) == ("role", "false" if said == role else "true")
