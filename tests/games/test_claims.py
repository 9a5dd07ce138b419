"""Claims in table talk against games that are played by hand."""

import pytest

from tests.games.cases.negotiation import items, price
from tests.games.cases.werewolf import dealt
from tests.games.test_among_us import to_meeting
from training.games import make
from training.games.talk import sentences
from training.records import ALL
from training.text.parsing import parse

ROLES = ("werewolf", "seer", "witch", "villager", "villager")


def go(game, **replies):
    """One joint step: by name, what each seat replies; who is not named stays silent."""
    moves = {}
    for seat in game.to_act():
        text = replies.get(game.names[seat])
        moves[seat] = parse(text, game.observe(seat))[0] if text else game.default(seat)
    game.step(moves)


def village(day=1):
    """Ada the wolf attacks Dan, Ben the seer looks at Ada, Cleo the witch saves Dan; on the first day Ben is voted out.

    In the second night Cleo poisons Eve.
    """
    game = make(dealt(*ROLES, last_words="nobody", wolf_win="parity"))
    go(game, Ada="<kill>Dan</kill>", Ben="<inspect>Ada</inspect>")
    go(game, Cleo="<save/>")
    if day == 2:
        while "vote" not in game.show(ALL).phase:
            go(game)
        go(game, Ada="<vote>Ben</vote>", Cleo="<vote>Ben</vote>", Dan="<vote>Ada</vote>", Eve="<vote>Ben</vote>")
        go(game, Ada="<kill>Dan</kill>")
    return game


def checked(game, name, text):
    """What is claimed, with verdict and the quoted words."""
    claims = game.claims(game.names.index(name), text)
    return [(claim.kind, claim.statement, claim.verdict, text[claim.start : claim.end]) for claim in claims]


@pytest.mark.parametrize(
    "speaker, text, expected",
    [
        ("Ben", "I am the seer.", [("role", "Ben is the seer", "true", "I am the seer")]),
        ("Ada", "Trust me, I'm not the wolf!", [("role", "Ada is not a werewolf", "false", "I'm not the wolf")]),
        ("Cleo", "I’m just a villager.", [("role", "Cleo is a villager", "false", "I’m just a villager")]),
        ("Cleo", "I'm town.", [("role", "Cleo is not a werewolf", "true", "I'm town")]),
        ("Ada", "I AM INNOCENT", [("role", "Ada is not a werewolf", "false", "I AM INNOCENT")]),
        ("Ben", "Claiming Seer.", [("role", "Ben is the seer", "true", "Claiming Seer")]),
        ("Dan", "ada is a werewolf", [("other's role", "Ada is a werewolf", "true", "ada is a werewolf")]),
        (
            "Dan",
            "Ben isn't mad. Ben was not a wolf.",
            [("other's role", "Ben is not a werewolf", "true", "Ben was not a wolf")],
        ),
        (
            "Ben",
            "I inspected Ada last night and she is a werewolf.",
            [
                ("other's role", "Ada is a werewolf", "true", "I inspected Ada last night and she is a werewolf"),
                (
                    "result",
                    "Ben inspected Ada and saw a werewolf",
                    "true",
                    "I inspected Ada last night and she is a werewolf",
                ),
            ],
        ),
        (
            "Ada",
            "I checked Dan: not a wolf",
            [
                ("other's role", "Dan is not a werewolf", "true", "I checked Dan: not a wolf"),
                ("result", "Ada inspected Dan and saw no werewolf", "false", "I checked Dan: not a wolf"),
            ],
        ),
        (
            "Ben",
            "I inspected Ada last night and got Werewolf.",
            [
                ("other's role", "Ada is a werewolf", "true", "I inspected Ada last night and got Werewolf"),
                (
                    "result",
                    "Ben inspected Ada and saw a werewolf",
                    "true",
                    "I inspected Ada last night and got Werewolf",
                ),
            ],
        ),
        ("Cleo", "I saved Dan last night.", [("deed", "Cleo saved Dan in night 1", "true", "I saved Dan")]),
        ("Cleo", "I saved Eve.", [("deed", "Cleo saved Eve", "false", "I saved Eve")]),
        (
            "Ada",
            "I didn't inspect anyone.",
            [("deed", "Ada did not inspect anybody", "true", "I didn't inspect anyone")],
        ),
    ],
)
def test_claims_of_a_first_day(speaker, text, expected):
    assert checked(village(), speaker, text) == expected


@pytest.mark.parametrize(
    "text, verdict",
    [
        ("I voted for Ben.", "true"),
        ("I voted for Ben yesterday.", "true"),
        ("I voted for Eve.", "false"),
        ("Dan voted for me.", "true"),
        ("Eve voted for me.", "false"),
    ],
)
def test_votes_of_an_earlier_day(text, verdict):
    assert [claim[2] for claim in checked(village(day=2), "Ada", text)] == [verdict]


@pytest.mark.parametrize(
    "text",
    [
        "Are you the seer?",
        "I think Ada is a wolf.",
        "Ada is a wolf, I think.",
        "Maybe Ada is a wolf.",
        "If I am the seer, Ada is a wolf.",
        "Ben says Ada is a wolf.",
        "I agree with Ben that Ada is a wolf.",
        'Ben wrote "I am the seer".',
        "Ben wrote ‘I am the seer’.",
        "I do not say that I am the witch.",
        "Ada is a wolf or a fool.",
        "It's unlikely that Ada was the seer.",
        "I will vote for Ada.",
        "I'm the seer's best friend.",
        "Ada is a wolf hunter.",
        "Who is the seer",
        "Ada claiming Seer is strange.",
        "Ada's red check is good.",
        "",
    ],
)
def test_what_is_no_claim(text):
    assert checked(village(), "Dan", text) == []


def test_a_speech_in_quotation_marks_quotes_nobody():
    assert [claim[1] for claim in checked(village(), "Ben", '"I am the seer."')] == ["Ben is the seer"]


def test_names_with_spaces_and_full_stops_are_whole_names():
    scenario = dealt(*ROLES).model_copy(update={"seats": ("Dr. No", "Ann", "Ann Lee", "Dan", "Eve")})
    game = make(scenario)
    assert [claim[1] for claim in checked(game, "Dan", "Dr. No is a wolf. Ann Lee is the witch.")] == [
        "Dr. No is a werewolf",
        "Ann Lee is the witch",
    ]


@pytest.mark.parametrize(
    "speaker, text, expected",
    [
        ("Ben", "I am not the imposter.", [("role", "Ben is not the imposter", "false")]),
        ("Ada", "I'm a crewmate", [("role", "Ada is not the imposter", "true")]),
        ("Ada", "Ben is the imposter", [("other's role", "Ben is the imposter", "true")]),
        ("Ada", "It is Dan.", [("other's role", "Dan is the imposter", "false")]),
        (
            "Eva",
            "I saw Ben kill Cleo in room (1,0) in round 3.",
            [("sighting", "Eva saw Ben kill Cleo in the Arsenal in round 3", "true")],
        ),
        ("Ada", "I saw Ben kill Cleo.", [("sighting", "Ada saw Ben kill Cleo", "false")]),
        (
            "Eva",
            "in round 3 I was in the Arsenal with Ben.",
            [
                ("company", "Eva was with Ben in the Arsenal in round 3", "true"),
                ("place", "Eva was in the Arsenal in round 3", "true"),
            ],
        ),
        (
            "Ada",
            "I was in room (0,0) alone.",
            [("company", "Ada was alone in the Canteen", "false"), ("place", "Ada was in the Canteen", "true")],
        ),
        ("Ada", "In round 3 I was in room (1,0)", [("place", "Ada was in the Arsenal in round 3", "false")]),
        ("Ada", "Dan was with me.", [("company", "Dan was with Ada", "true")]),
        ("Eva", "I saw Ben leave room (0,0).", [("sighting", "Eva saw Ben leave the Canteen", "false")]),
        ("Ada", "I saw Ben leave room (0,0).", [("sighting", "Ada saw Ben leave the Canteen", "true")]),
        (
            "Ada",
            "I saw Ben leave room (0,0) shortly before.",
            [("sighting", "Ada saw Ben leave the Canteen", "unknowable")],
        ),
        ("Ada", "Eva says she was in room (1,0).", []),
        ("Ada", "I suspect Ben.", []),
    ],
)
def test_claims_of_a_meeting(speaker, text, expected):
    """Ben, Cleo and Eva leave together; Ada and Dan wait and see it. Ben kills Cleo before Eva's eyes."""
    assert [claim[:3] for claim in checked(to_meeting(), speaker, text)] == expected


FIRST, SECOND = items().seats


@pytest.mark.parametrize(
    "text, expected",
    [
        ("I need food the most.", [("priority", "needs food most", "true")]),
        ("I think oil is my top priority.", [("priority", "needs oil most", "false")]),
        ("My lowest priority is oil", [("priority", "needs oil least", "true")]),
        ("Tent pegs are my second priority", [("priority", "needs tent pegs second most", "true")]),
        ("Food is not my highest priority", [("priority", "does not need food most", "false")]),
        ("I need oil more than food", [("priority", "needs oil more than food", "false")]),
        ("I need food most, what about you?", [("priority", "needs food most", "true")]),
        ("I need food and oil", [("need", "needs food", "true"), ("need", "needs oil", "true")]),
        ("we don't need any food", [("need", "does not need food", "false")]),
        ("I don't need oil.", [("need", "does not need oil", "unknowable")]),
        ("If I need food, you get oil.", []),
        ("You need food most.", []),
        ("I need 2 food.", []),
        ("Do you need oil most?", []),
        ("Can I have the food?", []),
    ],
)
def test_claims_about_items(text, expected):
    """Food, tent pegs and oil are worth 5, 4 and 3 points to the speaker."""
    name = FIRST
    assert [claim[:3] for claim in checked(make(items()), name, text)] == [
        (kind, f"{name} {statement}", verdict) for kind, statement, verdict in expected
    ]


def test_points_and_targets():
    claims = checked(make(items()), SECOND, "Food is worth 5 points to me.")
    assert [claim[:3] for claim in claims] == [("value", f"a unit of food is worth 5 to {SECOND}", "false")]
    claims = checked(make(price()), FIRST, "My target is $180")
    assert [claim[:3] for claim in claims] == [("value", f"the target of {FIRST} is 180", "true")]


def test_an_item_that_is_worth_nothing_is_not_needed():
    sides = [{"values": {"food": 0, "tent pegs": 4, "oil": 3}}, {"values": {"food": 2, "tent pegs": 1, "oil": 9}}]
    assert [c[2] for c in checked(make(items(sides)), FIRST, "I need food. I don't need food.")] == ["false", "true"]


def test_sentences_keep_their_places():
    text = 'Dr. No is here! Is he? He said "go".\nYes'
    parts = [(part.start, len(part.text)) for part in sentences(text, ("Dr. No",))]
    assert [text[start : start + length].strip() for start, length in parts] == [
        "Dr. No is here",
        'He said "go"',
        "Yes",
    ]
