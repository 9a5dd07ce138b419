"""The shipped codebooks have the dimensions and ranges of the literature; a malformed codebook is refused."""

import hashlib
import json

import pytest

from training.errors import BadInput
from training.games.werewolf.roles import ORDER, team
from training.labels.codebooks import BEHAVIOURS, CODEBOOKS, CONDUCT, SOTOPIA, Codebook, LabelType
from training.records import Judgment, Label


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
    ("negotiation-moves", 1): "0857a3e14d981c48",
    ("among-us-talk", 1): "09b98e79ad94136d",
    ("claims", 1): "6535152227b427e1",
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
        if codebook.scores_seats:
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


# --- labels of a codebook -------------------------------------------------------------------------------------------


TALK = Codebook.from_dict(
    {
        "name": "talk",
        "version": 1,
        "title": "Talk",
        "labels": [
            {"name": "lied", "title": "Lied", "kind": "yes_no", "about": "seat", "definition": "Did it lie?"},
            {
                "name": "why", "title": "Why", "kind": "one_of", "about": "seat", "definition": "What for?",
                "options": [{"name": "gain", "title": "Gain"}, {"name": "fun", "title": "Fun"}],
                "when": {"label": "lied", "equals": True},
            },
            {
                "name": "tone", "title": "Tone", "kind": "many_of", "about": "turn", "definition": "How?",
                "options": [{"name": "warm", "title": "Warm"}, {"name": "calm", "title": "Calm"}],
            },
            {"name": "claim", "title": "Claim", "kind": "span", "about": "span", "definition": "A claim."},
            {
                "name": "doubt", "title": "Doubt", "kind": "span", "about": "span", "definition": "A doubt.",
                "overlap": True,
            },
            {
                "name": "true", "title": "True", "kind": "yes_no", "about": "span", "definition": "Is the claim true?",
                "when": {"label": "claim"},
            },
            {"name": "breaks", "title": "Breaks", "kind": "relation", "about": "pair", "definition": "Breaks it."},
            {"name": "best", "title": "Best", "kind": "ranking", "about": "game", "definition": "The best.",
             "required": False},
            {"name": "note", "title": "Note", "kind": "text", "about": "game", "definition": "A note.",
             "required": False},
        ],
    }
)  # fmt: skip
LIED = Label(label="lied", value=True, seat=0)
WHY = Label(label="why", value="gain", seat=0)
CLAIM = Label(label="claim", turn=2, start=0, end=5)
FITTING = (
    LIED,
    WHY,
    Label(label="tone", value=("warm", "calm"), turn=1),
    CLAIM,
    Label(label="true", value=False, turn=2, start=0, end=5),
    Label(label="breaks", turn=4, other_turn=2),
    Label(label="best", value=(4, 2)),
    Label(label="note", value="Odd."),
)


def test_labels_of_every_kind_fit():
    TALK.check(FITTING)
    assert Judgment.from_dict(judgment(FITTING).to_dict()).labels == FITTING, "each value keeps its type in JSON"


def judgment(labels):
    return Judgment(codebook="talk", codebook_version=1, episode="e", seat=0, author="a", labels=labels)


MISFITS = {
    "an unknown type": ([Label(label="luck", value=1.0, seat=0)], "luck", "no label of this name"),
    "a number for yes": ([LIED.model_copy(update={"value": 1.0})], "lied", "choose a value"),
    "another option": ([LIED, WHY.model_copy(update={"value": "fame"})], "why", "one of gain, fun"),
    "an option twice": ([Label(label="tone", value=("warm", "warm"), turn=1)], "tone", "choose a value"),
    "no condition": ([Label(label="lied", value=False, seat=0), WHY], "why", "only where lied"),
    "no place": ([Label(label="lied", value=True)], "lied", "about a seat has seat"),
    "another place": ([Label(label="claim", turn=2)], "claim", "about a span has end, start, turn"),
    "a value of a span": ([CLAIM.model_copy(update={"value": True})], "claim", "the place is the label"),
    "an empty span": ([Label(label="claim", turn=2, start=5, end=5)], "claim", "ends after its start"),
    "an overlap": ([CLAIM, Label(label="claim", turn=2, start=4, end=9)], "claim", "overlap in turn 3 at character 5"),
    "a nested span": ([CLAIM, Label(label="claim", turn=2, start=1, end=2)], "claim", "overlap in turn 3"),
    "the same twice": ([LIED, LIED.model_copy(update={"value": False})], "lied", "two of these labels"),
    "a turn and itself": ([Label(label="breaks", turn=2, other_turn=2)], "breaks", "another turn"),
    "a text that is empty": ([Label(label="note", value=" ")], "note", "a text"),
    "a ranking of words": ([Label(label="best", value=("a",))], "best", "numbers of turns"),
}


@pytest.mark.parametrize("labels, where, why", MISFITS.values(), ids=MISFITS)
def test_a_label_that_does_not_fit_is_refused_with_its_place(labels, where, why):
    with pytest.raises(BadInput, match=why) as refused:
        TALK.check(labels, whole=False)
    assert refused.value.where == where


def test_a_type_says_in_words_what_it_is_about_and_when_it_applies():
    shown = {each.name: (each.summary, str(each.when) if each.when else "") for each in TALK.labels}
    assert shown["lied"] == ("a seat: yes or no", "")
    assert shown["why"] == ("a seat: one of gain, fun", "lied is yes")
    assert shown["true"] == ("words of a turn: yes or no", "claim was marked")
    assert shown["breaks"] == ("two turns", "")


def test_what_is_required_is_required_where_its_condition_holds():
    TALK.check([Label(label="lied", value=False, seat=0)])
    with pytest.raises(BadInput, match="one of gain, fun"):
        TALK.check([LIED])
    with pytest.raises(BadInput, match="yes or no"):
        TALK.check([])


def test_spans_of_a_type_may_overlap_where_it_says_so_and_in_other_turns():
    TALK.check(
        [Label(label="doubt", turn=2, start=0, end=5), Label(label="doubt", turn=2, start=3, end=9)], whole=False
    )
    TALK.check([CLAIM, Label(label="claim", turn=3, start=0, end=5)], whole=False)
    TALK.check([CLAIM, Label(label="claim", turn=2, start=5, end=9)], whole=False)
    TALK.check([CLAIM, Label(label="doubt", turn=2, start=0, end=5)], whole=False)


TYPES = {
    "an unknown condition": ({"when": {"label": "luck"}}, "names no label type before it"),
    "a condition on itself": ({"when": {"label": "lied", "equals": True}}, "names no label type before it"),
    "options": ({"options": [{"name": "a", "title": "A"}, {"name": "b", "title": "B"}]}, "has no options"),
    "anchors": ({"anchors": [{"value": 0, "text": "x"}]}, "no anchors"),
    "a span about a seat": ({"kind": "span"}, "about a span"),
    "overlap": ({"overlap": True}, "only spans overlap"),
    "a value about a span": ({"about": "span"}, "names its label type in `when`"),
    "a key": ({"key": "É"}, "pattern"),
}


@pytest.mark.parametrize("change, why", TYPES.values(), ids=TYPES)
def test_a_label_type_that_makes_no_sense_is_refused(change, why):
    data = TALK.to_dict()
    data["labels"][0].update(change)
    with pytest.raises(BadInput, match=why):
        Codebook.from_dict(data)


def test_two_types_with_one_key_are_refused():
    data = TALK.to_dict()
    data["labels"][0]["key"] = data["labels"][3]["key"] = "c"
    with pytest.raises(BadInput, match="have the key c"):
        Codebook.from_dict(data)


def test_a_judgment_of_an_earlier_release_is_read():
    """As 0.2 wrote it: values were numbers, and 1 was yes."""
    older = {
        "rubric": "werewolf-behaviours", "rubric_version": 1, "episode": "e", "seat": 2, "author": "person:1",
        "values": {"identity_concealment": 1.0}, "reasons": {"identity_concealment": "as a seer"},
    }  # fmt: skip
    record = Judgment.from_dict(older)
    assert (record.codebook, record.codebook_version, record.numbers) == (
        "werewolf-behaviours", 1, {"identity_concealment": 1.0},
    )  # fmt: skip
    assert BEHAVIOURS.upgraded(record).labels == (
        Label(label="identity_concealment", value=True, seat=2, reason="as a seer"),
    )
    unscored = Judgment.from_dict({**older, "values": None, "reason": "too short"})
    assert (unscored.labels, unscored.reason) == (None, "too short")


@pytest.mark.parametrize("codebook", CODEBOOKS.values(), ids=lambda codebook: codebook.name)
def test_the_labels_of_a_shipped_codebook_look_different(codebook):
    """By colour, or by the underline where colours repeat."""
    if not codebook.scores_seats:
        looks = [(label_type.colour, label_type.shape) for label_type in codebook.labels]
        assert len(set(looks)) == len(looks)
