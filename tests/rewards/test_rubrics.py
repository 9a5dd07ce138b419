"""The shipped rubrics have the dimensions and ranges of the literature; a malformed rubric is refused."""

import pytest

from training.errors import BadInput
from training.rewards.rubrics import CONDUCT, RUBRICS, SOTOPIA, Rubric


def test_the_seven_dimensions_and_their_ranges():
    assert {d.name: (d.low, d.high) for d in SOTOPIA.dimensions} == {
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
    assert len(CONDUCT.dimensions) == 5
    assert {(d.low, d.high) for d in CONDUCT.dimensions} == {(0, 10)}


@pytest.mark.parametrize("rubric", RUBRICS.values(), ids=lambda r: r.name)
def test_a_rubric_survives_json_and_marks_both_ends(rubric):
    assert Rubric.from_dict(rubric.to_dict()) == rubric
    for dimension in rubric.dimensions:
        assert {dimension.low, dimension.high} <= {anchor.value for anchor in dimension.anchors}


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
    data["dimensions"][0].update(change)
    with pytest.raises(BadInput, match=says):
        Rubric.from_dict(data)


def test_a_repeated_dimension_is_refused():
    data = SOTOPIA.to_dict()
    data["dimensions"][1]["name"] = "goal"
    with pytest.raises(BadInput, match="share a name"):
        Rubric.from_dict(data)
