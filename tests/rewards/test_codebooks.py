"""The shipped codebooks have the dimensions and ranges of the literature; a malformed codebook is refused."""

import hashlib
import json

import pytest

from training.errors import BadInput
from training.games.werewolf.roles import ORDER, team
from training.labels.codebooks import BEHAVIOURS, CODEBOOKS, CONDUCT, SOTOPIA, Codebook, LabelType


def test_the_seven_dimensions_and_their_ranges():
    assert {d.name: (d.low, d.high) for d in SOTOPIA.labels} == {
        "goal": (0, 10),
        "believability": (0, 10),
        "knowledge": (0, 10),
        "secret": (-10, 0),
        "social_rules": (-10, 0),
        "relationship": (-5, 5),
        "financial": (-5, 5),
    }
    # By hand: (0 + 0 + 0 - 10 - 10 - 5 - 5) / 7 and (10 + 10 + 10 + 0 + 0 + 5 + 5) / 7.
    assert SOTOPIA.mean_range() == pytest.approx((-30 / 7, 40 / 7))


def test_the_five_dimensions():
    assert len(CONDUCT.labels) == 5
    assert {(d.low, d.high) for d in CONDUCT.labels} == {(0, 10)}


def test_wolves_are_asked_three_questions_and_everybody_else_of_a_village_two():
    for role in ORDER:
        asked = [label_type.name for label_type in BEHAVIOURS.of(role).labels]
        assert asked == (
            ["identity_concealment", "voting_manipulation", "team_collaboration"]
            if team(role) == "wolves"
            else ["protecting_power_roles", "recognising_deception"]
        )
    assert all(label_type.yes_no for label_type in BEHAVIOURS.labels)


def test_a_role_that_nothing_is_asked_about_is_refused():
    assert SOTOPIA.of("") == SOTOPIA == SOTOPIA.of("werewolf")
    assert not BEHAVIOURS.asks("")
    with pytest.raises(BadInput, match="asks nothing about imposter"):
        BEHAVIOURS.of("imposter")


def test_yes_or_no_is_1_or_0_and_nothing_between():
    first = BEHAVIOURS.labels[0]
    assert [first.number(value) for value in (0, 1)] == [False, True]
    assert [CONDUCT.labels[0].number(value) for value in (0, 2.5, 10)] == [0, 2.5, 10]
    for label_type, value in ((first, 0.5), (first, 2), (first, -1), (CONDUCT.labels[0], 10.1)):
        with pytest.raises(BadInput, match="choose a value"):
            label_type.number(value)
    with pytest.raises(BadInput, match="no ends of a scale"):
        LabelType.from_dict(first.to_dict() | {"low": 0, "high": 2})


def test_strategic_commitment_is_about_promises():
    """OMAR, section 4.1.3: “whether the player uses promises or future commitments to facilitate cooperation”."""
    asked = next(label_type for label_type in CONDUCT.labels if label_type.name == "strategic_commitment")
    assert "promises" in asked.definition
    assert "plan" not in asked.definition


TEXTS = {
    ("sotopia", 1): "e12bdfea7693d6cc",
    ("fine-grained", 2): "803395b24ca9bb6a",
    ("werewolf-behaviours", 1): "07914736126fc9e3",
}
"""How the hash of each version's text begins: judgments name a version, so what it says never changes."""


def test_a_text_that_changes_has_another_version():
    assert {
        (codebook.name, codebook.version): hashlib.sha256(
            json.dumps(codebook.to_dict(), sort_keys=True).encode()
        ).hexdigest()[:16]
        for codebook in CODEBOOKS.values()
    } == TEXTS


@pytest.mark.parametrize("codebook", CODEBOOKS.values(), ids=lambda r: r.name)
def test_a_codebook_survives_json_and_marks_both_ends(codebook):
    assert Codebook.from_dict(codebook.to_dict()) == codebook
    for label_type in codebook.labels:
        if label_type.numeric:
            assert set(label_type.bounds) <= {value for value, _ in label_type.meanings}


@pytest.mark.parametrize(
    "change, says",
    [
        ({"low": 10, "high": 0}, "below"),
        ({"anchors": [{"value": 11, "text": "x"}]}, "outside the scale"),
        ({"name": "Goal!"}, "pattern"),
        ({"high": float("nan")}, "finite"),
    ],
)
def test_a_wrong_dimension_is_refused(change, says):
    data = SOTOPIA.to_dict()
    data["labels"][0].update(change)
    with pytest.raises(BadInput, match=says):
        Codebook.from_dict(data)


def test_a_repeated_dimension_is_refused():
    data = SOTOPIA.to_dict()
    data["labels"][1]["name"] = "goal"
    with pytest.raises(BadInput, match="share a name"):
        Codebook.from_dict(data)
