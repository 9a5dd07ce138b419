"""The model of a step: every number worked by hand."""

from dataclasses import replace

import pytest

from bench import step_model, step_tables, step_time
from bench.step_model import Costs, Layout, Work

WORK = Work(conversations=8, turns=2, sampled=10, read=4, learned=500, longest=1.5)
COSTS = Costs(
    decode_step=2, decode_token=0.5, read_token=0.25, running=4, learn_token=0.001, batch=1000, update=3,
    collective_bytes=8, within=0.5, between=1, weights=10, load=0.2, send=0.1, turn=0.25, credit=0.5, fixed=1,
)  # fmt: skip


@pytest.mark.parametrize(
    "count, seconds",
    [
        (1, 88),  # 8 conversations, of which 4 at once: 20 decoding steps of 2 s, and 8 · (10 · 0.5 + 4 · 0.25)
        (2, 54),  # 4 conversations: the longest has 15 steps; 30 + 4 · 6
        (3, 48),  # the busiest has 3 of them
        (100, 36),  # one each: the longest conversation stays
    ],
)
def test_engines_decode_at_least_the_longest_conversation(count, seconds):
    assert step_model.engines(WORK, COSTS, count) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "ranks, overlapped, seconds",
    [
        (1, False, 7),  # 3 + 4 micro-batches of 1 s
        (2, False, 9),  # 3 + 2 rounds of 1 s and of 8 · 1/2 · 0.5 s
        (2, True, 7),  # 3 + 2 rounds of 2 s
        (3, True, 3 + 2 * 8 / 3),  # 4 micro-batches are 2 rounds; 8 · 2/3 · 0.5 = 8/3
        (16, False, 10.75),  # over nodes: 16 micro-batches of 250 tokens, one round of 0.25 + 8 · 15/16 · 1
    ],
)
def test_micro_batches_are_whole_and_ranks_wait_for_each_other(ranks, overlapped, seconds):
    assert step_model.learning(WORK, replace(COSTS, overlapped=overlapped), ranks) == pytest.approx(seconds)


def test_weights_are_sent_to_every_further_node():
    layouts = (Layout(6, 2), Layout(22, 2, nodes=3), Layout(8, 16, nodes=3))  # the ranks of the last fill two nodes
    assert [step_model.sync(COSTS, layout) for layout in layouts] == pytest.approx([2, 4, 3])


def test_a_step_is_the_sum_without_a_lag_and_the_slower_side_with_one():
    parts = step_model.step(WORK, COSTS, Layout(2, 2))
    assert (parts.engines, parts.driver, parts.learning, parts.sync, parts.credit, parts.fixed) == pytest.approx(
        (54, 4, 9, 2, 4, 1)
    )
    assert parts.alternating == pytest.approx(70)
    assert parts.overlapping == pytest.approx(56)  # 54 + 2, and not 9 + 2 + 4 + 1
    slow = replace(parts, driver=80)
    assert slow.alternating == pytest.approx(96)
    assert slow.overlapping == pytest.approx(84)  # the driver plays and credits: 80 + 4


def test_what_limits_a_step_is_what_it_gains_most_from():
    def limit(gpus=4, **changed):
        return step_model.limit(WORK, replace(COSTS, **changed), gpus, lag=True)

    # three engines and a rank: 48 s of sampling, of which 30 are the longest conversation's steps, and 2 of sync
    assert limit() == ("the longest conversation", pytest.approx(18 + 2))
    assert limit(decode_step=0.2) == ("decoding", pytest.approx(7 + 2 + 4 + 1))  # 3 + 18 + 2 become as long as learning
    assert limit(turn=5) == ("driver", pytest.approx(48 + 2))  # 80 + 4
    # a driver of 36 + 4 s is next, without either
    assert limit(turn=2.25) == ("the longest conversation or decoding", pytest.approx(40))
    assert limit(gpus=24, send=100)[0] == "sync"
    # two engines and two ranks, 54 + 2; without it one of the ranks is an engine
    assert limit(learn_token=0.02) == ("micro-batches", pytest.approx(48 + 2))


def test_layouts_leave_an_engine_and_a_lag_needs_two_gpus():
    assert list(step_model.layouts(1)) == [Layout(1, 1, shared=True)]
    assert list(step_model.layouts(4)) == [Layout(3, 1), Layout(2, 2), Layout(1, 3)]
    assert {layout.nodes for layout in step_model.layouts(12)} == {2}
    shared = step_model.step(WORK, COSTS, Layout(1, 1, shared=True))
    assert step_model.seconds(shared, Layout(1, 1, shared=True), lag=True) == shared.alternating


@pytest.mark.parametrize(
    "rate, gpus",
    [(lambda gpus: gpus, None), (lambda gpus: min(gpus, 32), 32), (lambda gpus: min(gpus, 47), 32), (lambda _: 1, 8)],
)
def test_the_number_from_which_another_gpu_gives_less_than_half(rate, gpus):
    assert step_model.knee(rate) == gpus


def test_the_least_number_within_a_hundredth_of_the_highest_rate():
    assert step_model.enough(lambda gpus: min(gpus, 100), most=200) == 99


def test_costs_are_recovered_from_steps_that_they_make():
    def made(games):  # 24 tokens of each of `games` conversations; 0.1 s per decoding step, 0.01 s per token
        return {
            "episodes": games, "turns": 4, "sampled_tokens": 24 * games, "trace_tokens": 200 * games,
            "sampling": 2.4 + 0.24 * games, "learning": 2 + 0.5 * games, "sync": 0.5, "rest": 0.1 + 0.05 * games,
        }  # fmt: skip

    work, costs = step_time.fit([made(4), made(4), made(24)], batch=8192, size=100)
    assert (work.turns, work.sampled, work.learned) == (4, 24, 200)
    assert (costs.decode_step, costs.decode_token) == pytest.approx((0.1, 0.01))
    assert (costs.update, costs.learn_token) == pytest.approx((2, 0.0025))
    assert (costs.fixed, costs.credit, costs.load) == pytest.approx((0.1, 0.05, 0.005))


def test_the_table_for_gpus_has_a_row_for_each_number():
    driver = {"turn_s": 0.0007, "request_s": 0.0003, "credit_s": 0.01, "work": {"trace_tokens": 4096}}
    costs = step_tables.costs(driver)
    assert (costs.turn, costs.credit) == pytest.approx((0.001, 0.02))  # for traces of 8,192 tokens
    strong, weak = step_tables.strong(costs), step_tables.weak(costs)
    for table in (strong, weak):
        assert [row.gpus for row in table.rows] == list(step_tables.GPUS)
        assert all(row.layout.ranks + row.layout.engines == max(2, row.gpus) for row in table.rows)
        assert all(row.lag_1_s <= row.lag_0_s for row in table.rows)
        assert all(row.unlimited_rate >= row.rate for row in table.rows)
    assert [row.work.conversations for row in weak.rows][:3] == [64, 512, 2048]
    # 2 bytes of 4,022,468,096 parameters, twice to and from a GPU at 25 GB/s and once to the store at 5 GB/s
    assert strong.rows[1].parts.sync == pytest.approx(2 * 4.022468096 * (2 / 25 + 1 / 5))


def test_of_layouts_that_are_as_fast_with_a_lag_the_fastest_without_is_chosen():
    """A driver of 90 s hides all that four GPUs do; without a lag, two ranks spare 20 s of learning."""
    work = Work(conversations=1, turns=1, sampled=1, read=0, learned=4)
    costs = Costs(decode_step=1, decode_token=0, learn_token=10, batch=1, turn=90)
    learning = {ranks: step_model.learning(work, costs, ranks) for ranks in (1, 2, 3)}
    assert learning == {1: 40, 2: 20, 3: 20}
    layout, _ = step_model.best(work, costs, 4, lag=True)
    assert layout.ranks == 2
