"""Rows with branches: their layout by hand, and the same loss and gradients as whole sequences in rows of their own."""

import numpy as np
import pytest
import torch

from tests.learn.test_update import make
from tests.methods.episodes import trace
from tests.toy_models import write_random_llama
from training.attempts.progress import Progress
from training.learn.batch import Item, batches, cut
from training.learn.rows import layout, packed, padded
from training.learn.update import Updater
from training.records import Trace, TraceCredit
from training.rundir import AttemptDir

PASS = 10_000


def probe(tokens, prefix, trajectory=(0, 0), nll=()):
    zeros = (0,) * len(tokens)
    branch = Trace(
        seat=0,
        tokens=tuple(tokens),
        mask=zeros,
        turn=tuple(-1 for _ in tokens),
        logprobs=zeros,
        prefix=None if prefix is None else (0, prefix),
    )
    return Item(branch, trajectory, TraceCredit(nll=np.array(nll, dtype=float) if len(nll) else None))


def test_a_row_is_a_trace_and_its_branches_each_behind_its_prefix():
    head, first, second = Item(trace("..0"), (0, 0)), probe([7, 8], 1), probe([9], 3)
    head.branches = [first, second]
    alone = Item(trace("..00"), (1, 0))
    parts = packed([head, alone])
    # the branches begin where the longer of the two traces ends
    assert [(part.row, part.first, part.prefix) for part in parts] == [(0, 0, 0), (0, 4, 1), (0, 6, 3), (1, 0, 0)]
    assert padded(parts).tolist() == [[0, 1, 2, 0, 7, 8, 9], [0, 1, 2, 3, 0, 0, 0]]
    assert [part.before(np.array([0, 1])).tolist() for part in parts[1:3]] == [[0, 4], [2, 6]]
    positions, seen = layout(parts)
    assert positions.tolist() == [[0, 1, 2, 3, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6]]
    assert seen.shape == (2, 1, 3, 7)  # from there on
    assert seen[0, 0].int().tolist() == [
        [1, 0, 0, 0, 1, 0, 0],  # the first token, and itself
        [1, 0, 0, 0, 1, 1, 0],
        [1, 1, 1, 0, 0, 0, 1],  # the whole trace, without padding and without the other branch
    ]
    assert seen[1, 0].any(dim=1).all(), "a row of padding that sees nothing would not be a number"
    assert layout(packed([alone])) is None
    assert (head.width, alone.width) == (6, 4)
    assert [len(group) for group in cut([head, alone], 14)] == [2]  # two rows of 4 + 3
    assert [len(group) for group in cut([head, alone], 13)] == [1, 1]
    long = Item(trace("." * 8), (2, 0))
    assert cut([alone, long, head], 1) == [[head], [long], [alone]]


def learning(seed=4):
    """Two trajectories with sampled tokens; behind their prefixes five questions, one answered at its first token."""
    rng = np.random.default_rng(seed)
    draw = lambda count: rng.integers(3, 250, count).tolist()
    heads = []
    for number, mark in enumerate(("...000..11..2", "..00..1")):
        masked = trace(mark)
        masked = masked.model_copy(
            update={"tokens": tuple(draw(len(mark))), "logprobs": tuple(-2.0 * m for m in masked.mask)}
        )
        credit = TraceCredit(
            ppo=rng.normal(size=len(mark)) * np.array(masked.mask),
            nll=np.where(rng.random(len(mark)) < 0.3, rng.random(len(mark)), 0.0),
            value_targets={"turn": rng.normal(size=len(mark)), "token": rng.normal(size=len(mark))},
            value_mask={"turn": rng.random(len(mark)) < 0.5, "token": rng.random(len(mark)) < 0.5},
        )
        heads.append(Item(masked, (number, 0), credit))
    heads[0].branches = [
        probe(draw(4), 3, nll=[0, 0, 1, 0.5]),
        probe(draw(6), 12, nll=[0, 0, 0, 0, 0, 2]),
        probe(draw(2), 13, nll=[0.25, 1]),
    ]
    heads[1].branches = [probe(draw(3), 1, (1, 0), nll=[0, 1, 1]), probe(draw(9), 7, (1, 0), nll=[0] * 8 + [1])]
    return heads


def unpacked(heads):
    """The same credit on whole sequences, each with its prefix repeated, as rows of their own."""
    for head in heads:
        yield Item(head.trace, head.trajectory, head.credit)
        for branch in head.branches:
            start = branch.trace.prefix[1]
            whole = probe(head.trace.tokens[:start] + branch.trace.tokens, None, branch.trajectory)
            whole.credit = TraceCredit(nll=np.concatenate([np.zeros(start), branch.credit.nll]))
            yield whole


def gradients(policy, items, how, tmp_path, size=PASS):
    updater = Updater(policy, 0)
    policy.model.zero_grad()
    for batch in batches(items, size, how):
        updater._loss(batch, on=True, single=True, share=1.0).backward()
    return {name: p.grad.clone() for name, p in policy.trained.items() if p.grad is not None}, updater._totals


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base") / "model"))


@pytest.mark.parametrize("how", ["token_mean", "turn_mean"])
@pytest.mark.parametrize(
    "settings",
    [{}, {"recompute": True}, {"lora": None}, {"lora": None, "recompute": True}, {"critic": {"features": "start"}}],
    ids=str,
)
def test_a_packed_row_teaches_what_rows_of_their_own_teach(base, settings, how, tmp_path):
    settings = {"critic_backbone": "lora" in settings, **settings}
    policy = make(base, **settings)
    wanted, apart = gradients(policy, list(unpacked(learning())), how, tmp_path)
    got, together = gradients(policy, learning(), how, tmp_path)
    assert got.keys() == wanted.keys()
    assert any(gradient.abs().max() > 1e-3 for gradient in wanted.values())
    for name, gradient in wanted.items():
        torch.testing.assert_close(got[name], gradient, rtol=1e-4, atol=1e-5)
    assert together == pytest.approx(apart, rel=1e-4, abs=1e-6)
    in_two, _ = gradients(policy, learning(), how, tmp_path, size=12)  # each row is a pass
    for name, gradient in wanted.items():
        torch.testing.assert_close(in_two[name], gradient, rtol=1e-4, atol=1e-5)


def test_every_token_of_a_packed_row_has_the_log_probability_of_its_whole_sequence(base):
    policy = make(base)
    heads = learning()
    [batch] = batches(heads, PASS, "token_mean")
    with torch.no_grad():
        logp, _ = policy.logprobs(
            policy.hidden(batch.ids, layout=batch.layout)[batch.rows, batch.before], batch.targets
        )
    expected = []
    for item in unpacked(heads):  # the model's own logits, without masks, positions or batches
        ids = torch.tensor(item.trace.tokens)[None]
        with torch.no_grad():
            table = torch.log_softmax(policy.inner(input_ids=ids).logits[0] / policy.temperature, -1)
        expected += [table[at - 1, ids[0, at]] for at in np.flatnonzero(item.scored())]
    assert len(expected) == len(logp)
    torch.testing.assert_close(logp, torch.stack(expected), rtol=1e-5, atol=1e-5)


def test_an_update_learns_from_a_branch_alone(base, tmp_path):
    """Only a probe has credit: after some updates its answer is likelier, whoever wrote the trace."""
    policy = make(base, heads=(), lr=1e-2)
    head = Item(trace("....0"), (0, 0))
    head.branches = [probe([40, 41, 42], 4, nll=[0, 1, 1])]

    def likelihood():
        [batch] = batches([head], PASS, "token_mean")
        with torch.no_grad():
            hidden = policy.hidden(batch.ids, layout=batch.layout)
            return float(policy.logprobs(hidden[0, [5, 6]], torch.tensor([41, 42]))[0].sum())

    before, updater = likelihood(), Updater(policy, 0)
    updater.rates(1)
    progress = Progress(AttemptDir(tmp_path / "attempt"), steps=1)
    for step in range(1, 6):
        metrics = updater.run([[head]], step, progress)
    assert metrics["nll_loss"] > 0
    assert metrics["ppo_loss"] == 0
    assert likelihood() > before + 0.5
    assert head.branches[0].entropy[0] == 0 < head.branches[0].entropy[1]
