"""Where tokens stand in an episode: turns, what was observed after them, and answers to probes, by hand."""

import pytest

from tests.methods.episodes import scored, trace
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import observed_tokens, probe_answers, turn_tokens
from training.records import Belief


def places(episode):
    return {
        seat: [(turn.index, turn.trace, turn.where.start, turn.where.stop) for turn in ranges]
        for seat, ranges in observed_tokens(episode).items()
    }


def test_what_a_seat_observes_after_each_of_its_turns():
    # seat 0 reads two tokens, speaks (turn 0), reads three, speaks (2), reads one; seat 1 ends with its turn 1
    episode = scored([trace("..00...2."), trace("...11", seat=1)], {0: 1.0}).episode
    assert places(episode) == {0: [(0, 0, 4, 7), (2, 0, 8, 9)], 1: []}


def test_turns_that_follow_each_other_have_nothing_between_them():
    assert places(scored([trace(".00112.3")], {0: 1.0}).episode) == {0: [(2, 0, 6, 7)]}


def test_a_branch_goes_on_from_its_own_turns_alone():
    # the branch writes turn 0 anew, as text that it reads: nothing follows turn 0, and turn 2 is followed by one token
    episode = scored([trace("..00"), trace("......22.", parent=(0, 1))], {0: 1.0}).episode
    assert places(episode) == {0: [(2, 1, 8, 9)]}


def test_other_policies_and_probes_are_no_observations():
    probe = trace("....", prefix=(0, 3))
    episode = scored([trace("..00."), trace("..1.", seat=1, policy="past 3"), probe], {0: 1.0}).episode
    assert places(episode) == {0: [(0, 0, 4, 5)]}
    assert list(turn_tokens(episode)) == [0]


def test_answers_to_probes_name_their_tokens():
    traces = [trace("..00."), trace("....", prefix=(0, 3)), trace("...", seat=1, prefix=(3, 1)), trace("..1", seat=1)]
    traces[2:] = [trace.model_copy(update={"policy": "past 3"}) for trace in traces[2:]]

    def belief(seat, after, **more):
        return Belief(seat=seat, after=after, question="?", probabilities={"A": 0.2, "B": 0.5, "C": 0.3}, **more)

    beliefs = (
        belief(0, 0),  # no choice was right
        belief(0, 1, truth=("A", "C"), trace=1, span=(2, 4)),
        belief(1, 1, truth=("A",), trace=2, span=(1, 3)),  # another policy's
        belief(1, 2, truth=("B",)),  # asked of a remote model, or in a game that failed
    )
    game = scored(traces, {0: 1.0})
    [answer] = probe_answers(game.episode.model_copy(update={"beliefs": beliefs}))
    assert (answer.seat, answer.after, answer.trace, answer.where) == (0, 1, 1, slice(2, 4))
    assert answer.right == pytest.approx(0.5)
    builder = CreditBuilder(game)
    builder.nll(answer.trace, answer.where, 3.0)
    credit = builder.credit()
    assert credit.traces[1].nll.tolist() == [0, 0, 3, 3]
    assert credit.traces[0] is None
