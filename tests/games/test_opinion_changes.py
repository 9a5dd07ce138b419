"""Whose opinion changed after whose speech: small discussions by hand, and the games that have them."""

from tests.games.cases.werewolf import dealt
from training.analysis import OpinionChange
from training.games import make
from training.games.opinion_changes import DiscussionLog
from training.records import ALL
from training.text.parsing import parse

ANN, BEN, CY, DAN = range(4)
NAMES = ("Ann", "Ben", "Cy", "Dan")


def changes(*events):
    """(speaker, voter, target, before) of every change of a day: speeches as (seat, text), ballots as dictionaries."""
    log = DiscussionLog(NAMES)
    log.begin("Day 1")
    for step, event in enumerate(events, 1):
        if isinstance(event, dict):
            log.vote(step, event)
        else:
            log.say(step, *event)
    zones = log.analysis()
    return [(each.speaker, each.voter, each.target, each.before) for zone in zones for each in zone.changes]


def test_a_vote_for_whom_another_has_named_is_a_change():
    assert changes((ANN, "It was Cy!"), {BEN: CY, CY: None, DAN: ANN}) == [(ANN, BEN, CY, None)]


def test_who_named_them_before_has_not_changed():
    assert changes((BEN, "cy lies."), (ANN, "Yes, Cy."), {BEN: CY, ANN: CY}) == [(BEN, ANN, CY, None)]


def test_whom_the_voter_named_before_is_stated():
    assert changes((BEN, "Dan?"), (ANN, "No: Cy."), {BEN: CY}) == [(ANN, BEN, CY, DAN)]


def test_who_speaks_for_a_change_and_votes_otherwise_has_not_changed():
    assert changes((ANN, "Cy."), (BEN, "Right, Cy."), (DAN, "Ann!"), {BEN: ANN}) == [(DAN, BEN, ANN, CY)]


def test_everybody_who_had_named_them_is_counted_once():
    speeches = (ANN, "Cy."), (DAN, "Cy too."), (ANN, "Cy, I say."), (BEN, "Dan and Cy?"), (CY, "Cy is me.")
    assert changes(*speeches, {BEN: CY}) == [(ANN, BEN, CY, None), (DAN, BEN, CY, None)]


def test_words_said_at_once_follow_nothing():
    log = DiscussionLog(NAMES)
    log.begin("Day 1")
    for seat in (ANN, BEN):
        log.say(1, seat, "Cy.")
    log.vote(2, {ANN: CY, BEN: CY})
    assert log.analysis()[0].changes == ()


def test_in_a_run_off_only_a_new_vote_is_a_change():
    first = {ANN: CY, BEN: DAN}
    assert changes((ANN, "Cy or Dan."), first, (DAN, "Cy!"), {BEN: CY}) == [(ANN, BEN, DAN, None), (DAN, BEN, CY, DAN)]
    assert changes((ANN, "Cy or Dan."), first, (CY, "Dan!"), {BEN: DAN}) == [(ANN, BEN, DAN, None)]


def test_a_new_day_begins_anew_and_a_part_of_a_word_is_no_name():
    log = DiscussionLog(NAMES)
    log.begin("Day 1")
    log.say(1, ANN, "Cy.")
    log.begin("Day 2")
    log.say(2, DAN, "Cyan is my colour.")
    log.vote(3, {BEN: CY})
    assert log.analysis()[0].changes == ()
    assert DiscussionLog(NAMES).analysis() == (), "nobody has voted"


def test_werewolf_says_whose_opinion_changed_after_whose_speech_once_it_is_over():
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
    voters = [seat for seat in range(2, 4) if seat in {change.voter for change in zone.changes}]
    assert voters
    assert all(
        change
        == OpinionChange(
            when="Day 1", step=change.step, speaker=1, text="Ada is strange.", voter=change.voter, target=0
        )
        for change in zone.changes
    )
    assert "not evidence of a cause" in zone.method
