"""Who turned to whom after whose words: small discussions by hand, and the games that have them."""

from tests.games.cases.werewolf import dealt
from training.analysis import Turn
from training.games import make
from training.games.persuasion import Talk
from training.records import ALL
from training.text.parsing import parse

ANN, BEN, CY, DAN = range(4)
NAMES = ("Ann", "Ben", "Cy", "Dan")


def turns(*events):
    """(speaker, voter, target, before) of every turn of one day: speeches as (seat, text), ballots as dictionaries."""
    talk = Talk(NAMES)
    talk.begin("Day 1")
    for step, event in enumerate(events, 1):
        if isinstance(event, dict):
            talk.vote(step, event)
        else:
            talk.say(step, *event)
    return [(turn.speaker, turn.voter, turn.target, turn.before) for zone in talk.analysis() for turn in zone.turns]


def test_a_vote_for_whom_another_has_named_is_a_turn():
    assert turns((ANN, "It was Cy!"), {BEN: CY, CY: None, DAN: ANN}) == [(ANN, BEN, CY, None)]


def test_who_named_them_before_has_not_turned():
    assert turns((BEN, "cy lies."), (ANN, "Yes, Cy."), {BEN: CY, ANN: CY}) == [(BEN, ANN, CY, None)]


def test_whom_the_voter_named_before_is_said():
    assert turns((BEN, "Dan?"), (ANN, "No: Cy."), {BEN: CY}) == [(ANN, BEN, CY, DAN)]


def test_who_turns_by_words_and_votes_otherwise_has_not_turned():
    assert turns((ANN, "Cy."), (BEN, "Right, Cy."), (DAN, "Ann!"), {BEN: ANN}) == [(DAN, BEN, ANN, CY)]


def test_everybody_who_had_named_them_is_counted_once():
    said = (ANN, "Cy."), (DAN, "Cy too."), (ANN, "Cy, I say."), (BEN, "Dan and Cy?"), (CY, "Cy is me.")
    assert turns(*said, {BEN: CY}) == [(ANN, BEN, CY, None), (DAN, BEN, CY, None)]


def test_words_said_at_once_follow_nothing():
    talk = Talk(NAMES)
    talk.begin("Day 1")
    for seat in (ANN, BEN):
        talk.say(1, seat, "Cy.")
    talk.vote(2, {ANN: CY, BEN: CY})
    assert talk.analysis()[0].turns == ()


def test_in_a_run_off_only_a_new_vote_is_a_turn():
    first = {ANN: CY, BEN: DAN}
    assert turns((ANN, "Cy or Dan."), first, (DAN, "Cy!"), {BEN: CY}) == [(ANN, BEN, DAN, None), (DAN, BEN, CY, DAN)]
    assert turns((ANN, "Cy or Dan."), first, (CY, "Dan!"), {BEN: DAN}) == [(ANN, BEN, DAN, None)]


def test_a_new_day_begins_anew_and_a_part_of_a_word_is_no_name():
    talk = Talk(NAMES)
    talk.begin("Day 1")
    talk.say(1, ANN, "Cy.")
    talk.begin("Day 2")
    talk.say(2, DAN, "Cyan is my colour.")
    talk.vote(3, {BEN: CY})
    assert talk.analysis()[0].turns == ()
    assert Talk(NAMES).analysis() == (), "nobody has voted"


def test_werewolf_says_who_turned_after_whose_words_once_it_is_over():
    game = make(dealt("werewolf", "villager", "villager", "villager", wolf_talk=0, last_words="nobody", order="seat"))
    replies = {"Ben": "Ada is strange.", "Cleo": "I agree."}
    while game.to_act():
        assert game.analysis() == ()
        phase, moves = game.show(ALL).phase, {}
        for seat in game.to_act():
            text = replies.get(game.names[seat], "") if "discussion" in phase else ""
            text = "<vote>Ada</vote>" if "vote" in phase and seat else text
            moves[seat] = parse(text, game.observe(seat))[0] if text else game.default(seat)
        game.step(moves)
    (zone,) = game.analysis()
    voters = [seat for seat in range(2, 4) if seat in {turn.voter for turn in zone.turns}]
    assert voters
    assert all(
        turn == Turn(when="Day 1", step=turn.step, speaker=1, text="Ada is strange.", voter=turn.voter, target=0)
        for turn in zone.turns
    )
    assert "not evidence of a cause" in zone.method
