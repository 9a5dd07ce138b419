"""What a method writes is what the trainer receives, stream by stream."""

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.learn.batch import Item
from training.methods.credit_builder import CreditBuilder

TRACES = [trace("..00.1"), trace(".2", seat=1)]  # sampled: positions 2, 3 and 5 of the first trace


def written(*calls):
    builder = CreditBuilder(scored(TRACES, {0: 0.0, 1: 0.0}))
    for name, *arguments in calls:
        getattr(builder, name)(*arguments)
    return builder.credit().traces


@pytest.mark.parametrize("stream", ["ppo", "reinforce", "nll"])
def test_a_stream_is_written_alone(stream):
    first, second = written((stream, 0, slice(2, 4), np.array([0.5, -1.0])), (stream, 0, slice(5, 6), 2.0))
    others = {"ppo", "reinforce", "nll"} - {stream}
    assert getattr(first, stream) == pytest.approx([0, 0, 0.5, -1.0, 0, 2.0])
    assert all(getattr(first, other) is None for other in others)
    assert (first.value_targets, first.value_mask, first.turn_advantages) == ({}, {}, {})
    assert second is None


@pytest.mark.parametrize("stream, read", [("ppo", [2, 3, 5]), ("reinforce", [2, 3, 5]), ("nll", [1, 4])])
def test_the_loss_reads_advantages_where_tokens_were_sampled_and_weights_where_they_are_set(stream, read):
    first, _ = written((stream, 0, slice(1, 2), 1.0), (stream, 0, slice(4, 5), 0.5))
    assert np.flatnonzero(Item(TRACES[0], (0, 0), first).mask(stream)).tolist() == read


def test_streams_stand_side_by_side_and_the_last_value_counts():
    first, second = written(
        ("ppo", 0, slice(2, 4), 1.0),
        ("ppo", 0, slice(3, 4), 0.25),
        ("nll", 0, slice(4, 5), 3.0),
        ("reinforce", 1, slice(1, 2), -1.0),
    )
    assert first.ppo == pytest.approx([0, 0, 1, 0.25, 0, 0])
    assert first.nll == pytest.approx([0, 0, 0, 0, 3, 0])
    assert first.reinforce is None
    assert (second.ppo, second.nll) == (None, None)
    assert second.reinforce == pytest.approx([0, -1])


def test_value_targets_count_where_they_were_written():
    first, _ = written(
        ("value", "turn", 0, slice(1, 2), 0.0),
        ("value", "token", 0, slice(1, 3), np.array([0.5, 0.75])),
    )
    assert first.ppo is None
    assert first.value_mask["turn"].tolist() == [False, True, False, False, False, False]
    assert first.value_mask["token"].tolist() == [False, True, True, False, False, False]
    assert first.value_targets["token"] == pytest.approx([0, 0.5, 0.75, 0, 0, 0])


def test_turn_advantages_are_by_index_of_the_turn():
    first, second = written(("turn", 0, 1, 0.5), ("turn", 0, 0, -0.5), ("turn", 1, 2, 1.0))
    assert first.turn_advantages == {0: -0.5, 1: 0.5}
    assert second.turn_advantages == {2: 1.0}
    assert second.ppo is None


def test_values_must_fit_their_tokens():
    builder = CreditBuilder(scored(TRACES, {0: 0.0, 1: 0.0}))
    with pytest.raises(ValueError, match="broadcast"):
        builder.ppo(0, slice(2, 4), np.zeros(3))
