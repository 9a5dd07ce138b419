"""Packed rows: their layout by hand, and the numbers and gradients of whole sequences in passes of their own."""

import numpy as np
import pytest
import torch

from tests.learn.test_update import make
from tests.methods.episodes import trace
from tests.toy_models import write_random_llama
from training.attempts.progress import Progress
from training.learn.batch import Item, batches, cut
from training.learn.forward import measure
from training.learn.rows import layout, packed, token_ids
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


def test_a_row_is_traces_each_before_its_branches():
    head, first, second = Item(trace("..0"), (0, 0)), probe([7, 8], 1), probe([9], 3)
    head.branches = [first, second]
    alone = Item(trace("..00"), (1, 0))
    parts = packed([alone, head])
    assert [(part.first, part.start, part.prefix) for part in parts] == [(0, 0, 0), (4, 4, 0), (7, 4, 1), (9, 4, 3)]
    assert token_ids(parts).tolist() == [[0, 1, 2, 3, 0, 1, 2, 7, 8, 9]]
    # the first token of a branch is predicted from the last of its prefix, in column 4 and 6
    assert [part.before(np.array([0, 1])).tolist() for part in parts[2:]] == [[4, 7], [6, 9]]
    positions, segments = layout(parts)
    assert positions.tolist() == [[0, 1, 2, 3, 0, 1, 2, 1, 2, 3]]
    assert segments.lengths == (4, 6)
    assert segments.bounds.tolist() == [0, 4, 10]
    assert segments.masks[0] is None
    assert segments.masks[1].int().tolist() == [
        [
            [
                [1, 0, 0, 1, 0, 0],  # the first token, and itself
                [1, 0, 0, 1, 1, 0],
                [1, 1, 1, 0, 0, 1],  # the whole trace, without the other branch
            ]
        ]
    ]
    assert (head.width, alone.width) == (6, 4)
    assert [len(group) for group in cut([head, alone], 10)] == [2]
    assert [len(group) for group in cut([head, alone], 9)] == [1, 1]


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
    """The same credit on whole sequences, each with its prefix repeated."""
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
def test_a_packed_row_teaches_what_passes_of_their_own_teach(base, settings, how, tmp_path):
    settings = {"critic_backbone": "lora" in settings, **settings}
    policy = make(base, **settings)
    wanted, apart = gradients(policy, list(unpacked(learning())), how, tmp_path, size=1)  # each sequence is a pass
    got, together = gradients(policy, learning(), how, tmp_path)
    assert got.keys() == wanted.keys()
    assert any(gradient.abs().max() > 1e-3 for gradient in wanted.values())
    for name, gradient in wanted.items():
        torch.testing.assert_close(got[name], gradient, rtol=1e-4, atol=1e-5)
    assert apart.pop("kl") == 0, "of passes without a sampled token; of the others no reference is known"
    assert together == pytest.approx(apart, rel=1e-4, abs=1e-6)
    in_two, _ = gradients(policy, learning(), how, tmp_path, size=24)  # two passes
    for name, gradient in wanted.items():
        torch.testing.assert_close(in_two[name], gradient, rtol=1e-4, atol=1e-5)


def test_every_token_of_a_packed_row_has_the_log_probability_of_its_whole_sequence(base):
    policy = make(base)
    heads = learning()
    [batch] = batches(heads, PASS, "token_mean")
    with torch.no_grad():
        logp, _ = policy.logprobs(policy.hidden(batch.ids, layout=batch.layout)[0, batch.before], batch.targets)
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


@pytest.mark.parametrize("autocast", [False, True])
def test_what_credit_reads_is_that_of_separate_passes(base, autocast):
    """Values at every token, log-probabilities and those of the reference, of seven traces in one row."""
    policy = make(base, autocast=autocast)
    with torch.no_grad():
        for number, parameter in enumerate([*policy.trained.values(), *policy.critic.parameters()]):
            parameter.add_(0.01 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(number)))
    rows = [item for seed in (1, 2, 3) for item in unpacked(learning(seed)) if item.sampled.any()]
    lengths = sum(map(len, rows))
    together, passes = measure(policy, rows, old=True, reference=True), []
    numbers = [(item.old, item.reference) for item in rows]
    apart = [measure(policy, [item], old=True, reference=True)[0] for item in rows]
    measure(policy, rows, old=False, reference=False, beat=passes.append)
    assert passes == [lengths], "tokens are counted, and there are no others"
    near = 0.05 if autocast else 1e-5
    for item, (old, reference), values, expected in zip(rows, numbers, together, apart, strict=True):
        assert np.ptp(item.old[item.mask("sampled")]) > 0
        np.testing.assert_allclose(old, item.old, atol=near)
        np.testing.assert_allclose(reference, item.reference, atol=near)
        assert not np.allclose(item.old, item.reference, atol=1e-4)
        for head in ("turn", "token"):
            assert len(values[head]) == len(item)
            assert np.ptp(values[head]) > 0.01
            np.testing.assert_allclose(values[head], expected[head], atol=near)
