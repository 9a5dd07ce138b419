"""The whole loss against a second, plain implementation; micro-batches; what a bad or interrupted step leaves."""

import math

import numpy as np
import pytest
import torch

from tests.toy_models import write_random_llama
from training.attempts.progress import Progress, StopRequested
from training.learn import policy as policies
from training.learn.batch import Item, batches
from training.learn.forward import measure
from training.learn.update import BadStep, Updater, learning_rate
from training.records import Trace, TraceCredit
from training.run_sections import LearnSection
from training.rundir import AttemptDir


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base") / "model"))


@pytest.fixture
def progress(tmp_path):
    return Progress(AttemptDir(tmp_path / "attempt"), steps=1)


def make(base, heads=("turn", "token"), **learn):
    settings = {
        "lora": {"rank": 4},
        "critic_warmup": 0,
        "kl": "none",
        "kl_measured": False,
        "max_grad_norm": 1e9,
        "lr": 1e-2,
    }
    settings |= {"critic": {"kind": "linear"}, "critic_passes": 1, **learn}
    policy = policies.load(base, heads, LearnSection.from_dict(settings), seed=1, temperature=0.8, device="cpu")
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in (*policy.trained.values(), *policy.critic.parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.03)
    return policy


LAYOUTS = ("..000..22.", ".0.2222", "...11")


def items(seed=0, heads=("turn", "token")):
    rng = np.random.default_rng(seed)
    items = []
    for number, layout in enumerate(LAYOUTS):
        turn = tuple(-1 if mark == "." else int(mark) for mark in layout)
        mask = tuple(int(t >= 0) for t in turn)
        logprobs = tuple(float(-rng.random() - 4.5) if on else 0.0 for on in mask)
        trace = Trace(
            seat=0, tokens=tuple(rng.integers(3, 250, len(layout)).tolist()), mask=mask, turn=turn, logprobs=logprobs
        )
        where = {head: rng.random(len(layout)) < 0.5 for head in heads}
        credit = TraceCredit(
            ppo=rng.normal(size=len(layout)) * mask,
            reinforce=rng.normal(size=len(layout)) * mask,
            nll=np.where(rng.random(len(layout)) < 0.3, rng.random(len(layout)), 0.0),
            value_targets={head: rng.normal(size=len(layout)) for head in heads},
            value_mask=where,
        )
        items.append(Item(trace, (number, 0), credit))
    return items


def second_opinion(policy, batch_items, learn, *, old, reference):
    """The loss of `training/learn/losses.py` token by token, in plain torch, one trace at a time, from full logits."""
    ppo, reinforce, nll, kl, entropy = [], [], [], [], []
    squared = {"turn": [], "token": []}
    for item, old_row, ref_row in zip(batch_items, old, reference, strict=True):
        ids = torch.tensor(item.trace.tokens)[None]
        out = policy.inner(input_ids=ids, output_hidden_states=True)
        states, table = out.hidden_states[-1][0], torch.log_softmax(out.logits[0] / policy.temperature, -1)
        for t in range(1, len(item)):
            logp = table[t - 1, item.trace.tokens[t]]
            if item.trace.mask[t]:
                advantage, ratio = float(item.credit.ppo[t]), (logp - old_row[t]).exp()
                clipped = min(max(ratio.item(), 1 - learn.clip), 1 + learn.clip)
                candidates = [ratio * advantage, torch.tensor(clipped * advantage)]
                surrogate = min(candidates, key=lambda value: value.item())
                if learn.dual_clip and advantage < 0 and learn.dual_clip * advantage > surrogate.item():
                    surrogate = torch.tensor(learn.dual_clip * advantage)
                correction = min(math.exp(old_row[t] - item.trace.logprobs[t]), learn.importance_cap)
                ppo.append(-surrogate * correction)
                reinforce.append(-float(item.credit.reinforce[t]) * logp * correction)
                kl.append(0.5 * (logp - ref_row[t]) ** 2)
                entropy.append(-(table[t - 1].exp() * table[t - 1]).sum())
            if item.credit.nll[t] != 0:
                nll.append(-float(item.credit.nll[t]) * logp)
        for head, errors in squared.items():
            for p in np.flatnonzero(item.credit.value_mask[head]):
                errors.append(
                    0.5
                    * (policy.critic.heads[head].last(states[p].detach())[0] - item.credit.value_targets[head][p]) ** 2
                )
    mean = lambda values: torch.stack([torch.as_tensor(v, dtype=torch.float32) for v in values]).mean()
    values = learn.vf_coef * (mean(squared["turn"]) + mean(squared["token"]))
    return mean(ppo) + mean(reinforce) + mean(nll) + learn.kl_coef * mean(kl) - learn.ent_coef * mean(entropy) + values


def snapshot(updater):
    tensors = [p.detach().clone() for p in (*updater.weights, *updater.policy.critic.state_dict().values())]
    moments = {k: {n: v.clone() for n, v in e.items()} for k, e in updater.optimizer.state_dict()["state"].items()}
    return tensors, moments


def same(first, second):
    assert all(torch.equal(a, b) for a, b in zip(first[0], second[0], strict=True))
    assert first[1].keys() == second[1].keys()
    for key, entries in first[1].items():
        assert all(torch.equal(value, second[1][key][name]) for name, value in entries.items())


@pytest.mark.parametrize("dual_clip", [None, 1.4])
def test_the_loss_against_a_second_implementation(base, dual_clip):
    learn = {"kl": "k2", "kl_coef": 0.3, "ent_coef": 0.2, "dual_clip": dual_clip}
    policy, some = make(base, **learn), items()
    measure(policy, some, old=True, reference=True)
    rng = np.random.default_rng(7)
    for item in some:  # as after an earlier update: ratios on both sides of the clip
        item.old = item.old + rng.normal(size=len(item)) * 0.4
    updater = Updater(policy, seed=0)
    parts = batches(some, 16, "token_mean")
    assert len(parts) > 1
    loss = sum(updater._loss(batch, on=True, single=False, share=1.0) for batch in parts)
    rows = {"old": [i.old for i in some], "reference": [i.reference for i in some]}
    expected = second_opinion(policy, some, policy.learn, **rows)
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    for ours, theirs in zip(
        torch.autograd.grad(loss, updater.weights), torch.autograd.grad(expected, updater.weights), strict=True
    ):
        torch.testing.assert_close(ours, theirs, atol=2e-4, rtol=2e-3)


@pytest.mark.parametrize("aggregate", ["token_mean", "turn_mean"])
def test_micro_batches_change_nothing_but_memory(base, progress, aggregate):
    results = []
    for size in (64, 10_000):
        policy = make(base, tokens_per_batch=size, aggregate=aggregate, weight_decay=0.1)
        updater = Updater(policy, seed=0)
        many = [item for seed in range(6) for item in items(seed)]
        for number, item in enumerate(many):
            item.trajectory = (number, 0)
        metrics = updater.run(updater.plan(many, 1), 1, progress)
        results.append((snapshot(updater)[0], metrics))
    for small, large in zip(results[0][0], results[1][0], strict=True):
        torch.testing.assert_close(small, large, atol=1e-4, rtol=1e-3)
    assert results[0][1]["loss"] == pytest.approx(results[1][1]["loss"], rel=1e-4)
    assert results[0][1]["grad_norm"] == pytest.approx(results[1][1]["grad_norm"], rel=1e-3)


def test_one_update_starts_at_ratio_one_and_logs_the_gap(base, progress):
    policy, some = make(base), items()
    updater = Updater(policy, seed=0)
    measure(policy, some, old=True, reference=False)
    gaps = [abs(o - e) for i in some for o, e, m in zip(i.old, i.trace.logprobs, i.trace.mask, strict=True) if m]
    metrics = updater.run(updater.plan(some, 1), 1, progress)
    assert metrics["clipfrac"] == 0
    assert metrics["approx_kl"] == 0
    assert metrics["gap_mean"] == pytest.approx(np.mean(gaps), rel=1e-3)
    assert metrics["gap_max"] == pytest.approx(np.max(gaps), rel=1e-3)
    assert metrics["updates"] == 1


def test_several_updates_and_epochs(base, progress):
    policy, some = make(base, epochs=3, tokens_per_update=10), items()
    updater = Updater(policy, seed=0)
    measure(policy, some, old=True, reference=False)
    plan = updater.plan(some, 1)
    assert len(plan) == 9  # no two traces fit one update, so each stands alone, in three epochs
    metrics = updater.run(plan, 1, progress)
    assert metrics["updates"] == 9
    assert metrics["approx_kl"] > 0  # the policy moved away from what it was before the step


def test_a_schedule_may_begin_anew_in_every_step(base, progress):
    """Three updates of one trajectory each: the rate rises in the first, then falls as a cosine over the other two."""
    settings = {"anneal": "step", "warmup": 1, "schedule": "cosine", "lr": 0.04, "steps": 99}
    policy = make(base, heads=(), trajectories_per_update=1, **settings)
    some = [item for number, item in enumerate(items(heads=())) if setattr(item, "trajectory", (number, 0)) is None]
    updater, rates = Updater(policy, seed=0), []
    measure(policy, some, old=True, reference=False)
    updater.optimizer.register_step_pre_hook(lambda optimizer, *_: rates.append(optimizer.param_groups[0]["lr"]))
    for step in (1, 5):
        metrics = updater.run(updater.plan(some, step), step, progress)
        assert metrics["lr"] == pytest.approx((0.04 + 0.04 + 0.02) / 3)
    assert rates == pytest.approx([0.04, 0.04, 0.02] * 2)


def test_what_nobody_sampled_has_no_gap_to_a_sampler(base, progress):
    """It is learned as if the policy itself had sampled it."""
    policy, some = make(base), items()
    updater, wanted = Updater(policy, seed=0), items()
    for item in some:
        item.offline = True
    metrics = updater.run(updater.plan(some, 1), 1, progress)
    assert (metrics["gap_mean"], metrics["gap_max"], metrics["capped"]) == (0, 0, 0)
    assert metrics["importance"] == pytest.approx(1)
    policy = make(base)
    measure(policy, wanted, old=True, reference=False)
    for item in wanted:
        item.trace = item.trace.model_copy(update={"logprobs": tuple(item.old.tolist())})
    sampled = Updater(policy, seed=0)
    loss = sampled.run(sampled.plan(wanted, 1), 1, progress)["reinforce_loss"]
    assert loss == pytest.approx(metrics["reinforce_loss"], rel=1e-6)


def test_the_policy_waits_while_the_critic_warms_up(base, progress):
    policy, some = make(base, critic_warmup=2, critic_lr=0.5), items()
    updater = Updater(policy, seed=0)
    before = [p.clone() for p in updater.weights], [p.clone() for p in policy.critic.parameters()]
    metrics = updater.run(updater.plan(some, 1), 1, progress)
    assert metrics["lr"] == 0
    assert "grad_norm" not in metrics
    assert all(torch.equal(a, b) for a, b in zip(before[0], updater.weights, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(before[1], policy.critic.parameters(), strict=True))
    assert updater.run(updater.plan(some, 3), 3, progress)["lr"] == policy.learn.lr
    assert not all(torch.equal(a, b) for a, b in zip(before[0], updater.weights, strict=True))


def test_the_value_loss_reaches_the_layers_only_if_asked(base, progress):
    for backbone in (False, True):
        policy, some = make(base, critic_backbone=backbone), items()
        for item in some:
            item.credit = TraceCredit(value_targets=item.credit.value_targets, value_mask=item.credit.value_mask)
        updater = Updater(policy, seed=0)
        metrics = updater.run(updater.plan(some, 1), 1, progress)
        assert (metrics["grad_norm"] > 0) == backbone
        assert metrics["critic_grad_norm"] > 0


def poisoned(kind, base):
    """A policy and items of which one number is bad; the good ones come first."""
    policy, some = make(base, tokens_per_update=10), items()
    measure(policy, some, old=True, reference=False)
    last = Updater(policy, seed=0).plan(some, 1)[-1][0]
    if kind == "advantage":
        last.credit.ppo[np.flatnonzero(last.trace.mask)[0]] = np.nan
    elif kind == "target":
        last.credit.value_mask["turn"][1], last.credit.value_targets["turn"][1] = True, np.inf
    elif kind == "old log-prob":
        last.old[:] = np.nan
    return policy, some


@pytest.mark.parametrize("kind", ["advantage", "target", "old log-prob"])
def test_a_bad_number_changes_nothing_even_after_good_updates(base, progress, kind):
    policy, some = poisoned(kind, base)
    updater = Updater(policy, seed=0)
    measured_plan = updater.plan(some, 1)
    assert len(measured_plan) == 3
    before = snapshot(updater)
    with pytest.raises(BadStep, match="not finite"):
        updater.run(measured_plan, 1, progress)
    same(before, snapshot(updater))
    assert all(p.grad is None for p in updater.weights)


def test_a_bad_gradient_changes_nothing(base, progress):
    policy, some = make(base), items()
    updater = Updater(policy, seed=0)
    updater.run(updater.plan(some, 1), 1, progress)
    before = snapshot(updater)
    handle = updater.weights[0].register_hook(lambda grad: grad * torch.inf)
    with pytest.raises(BadStep, match="grad_norm is not finite"):
        updater.run(updater.plan(some, 2), 2, progress)
    handle.remove()
    same(before, snapshot(updater))


def test_a_bad_log_probability_changes_nothing(base, progress):
    policy, some = make(base), items()
    updater = Updater(policy, seed=0)
    before = snapshot(updater)
    policy.temperature = float("nan")
    with pytest.raises(BadStep, match="log-probability is not finite"):
        updater.run(updater.plan(some, 1), 1, progress)
    same(before, snapshot(updater))


@pytest.mark.parametrize("lora", [{"rank": 4}, None])
@pytest.mark.parametrize("updates", [0, 10])
def test_a_restart_learns_from_the_starting_model_whatever_was_learned_before(base, progress, lora, updates):
    """The second step, on other games, ends where a first step on them does: no moments of the first are left."""
    settings = {"lora": lora, "restart": True, "tokens_per_update": updates, "critic": {"kind": "linear"}, "kl": "none"}
    section = LearnSection.from_dict({**settings, "kl_measured": False, "critic_warmup": 0, "lr": 1e-2})

    def learned(*steps):
        policy = policies.load(base, [], section, seed=1, temperature=0.8, device="cpu")
        updater = Updater(policy, seed=0)
        for seed in steps:
            updater.run(updater.plan(items(seed, heads=()), 1), 1, progress)
        return snapshot(updater)

    start = snapshot(Updater(policies.load(base, [], section, seed=1, temperature=0.8, device="cpu"), seed=0))
    once, after_another = learned(5), learned(3, 5)
    same(once, after_another)
    assert not all(torch.equal(a, b) for a, b in zip(once[0], start[0], strict=True))


def test_a_bad_restart_keeps_what_was_learned_before(base, progress):
    policy, some = make(base, restart=True), items()
    updater = Updater(policy, seed=0)
    updater.run(updater.plan(some, 1), 1, progress)
    before = snapshot(updater)
    some[0].credit.ppo[2] = np.inf
    with pytest.raises(BadStep, match="not finite"):
        updater.run(updater.plan(some, 2), 2, progress)
    same(before, snapshot(updater))


def test_stopping_in_the_middle_of_a_step_takes_it_back(base, progress):
    policy, some = make(base, tokens_per_update=10), items()
    measure(policy, some, old=True, reference=False)
    updater = Updater(policy, seed=0)
    before, plan = snapshot(updater), updater.plan(some, 1)
    original, calls = updater.optimizer.step, []
    updater.optimizer.step = lambda: (original(), calls.append(1), len(calls) == 2 and progress.stop("enough"))
    with pytest.raises(StopRequested, match="enough"):
        updater.run(plan, 1, progress)
    assert len(calls) == 2
    same(before, snapshot(updater))


def test_learning_rates_by_hand():
    flat = LearnSection(lr=1.0, warmup=4)
    assert [learning_rate(flat, s, 12) for s in (1, 2, 4, 5, 12)] == pytest.approx([0.25, 0.5, 1.0, 1.0, 1.0])
    linear = flat.model_copy(update={"schedule": "linear"})
    assert [learning_rate(linear, s, 12) for s in (5, 7, 12)] == pytest.approx([1.0, 0.75, 0.125])
    cosine = flat.model_copy(update={"schedule": "cosine"})
    assert [learning_rate(cosine, s, 12) for s in (5, 9)] == pytest.approx([1.0, 0.5])


def test_the_schedule_ends_with_the_run_however_long_the_critic_warmed_up(base):
    # 10 steps, the policy learns in the last 6: 1 of warm-up, then 5 in equal parts
    updater = Updater(make(base, lr=1.0, steps=10, critic_warmup=4, warmup=1, schedule="linear"), seed=0)
    rates = [updater.rates(step) for step in (4, 5, 6, 7, 10)]
    assert [policy for policy, _ in rates] == pytest.approx([0.0, 1.0, 1.0, 0.8, 0.2])
    assert [critic for _, critic in rates] == [10.0] * 5
    assert [group["lr"] for group in updater.optimizer.param_groups] == pytest.approx([0.2])


def test_rates_of_a_phase_count_from_its_start(base):
    updater = Updater(make(base, lr=1.0, steps=10, critic_warmup=0), 0)
    phase = updater.learn.model_copy(
        update={"lr": 2.0, "warmup": 2, "schedule": "linear", "steps": 6, "critic_warmup": 2}
    )
    updater.begin(phase, before=10)
    # two steps of the critic's warm-up, two of the rate's, then two of the line from 2 to 0
    assert [updater.rates(step)[0] for step in range(11, 17)] == pytest.approx([0.0, 0.0, 1.0, 2.0, 2.0, 1.0])
    assert [updater.policy_on(step) for step in range(11, 15)] == [False, False, True, True]
    updater.policy.critic.use(())  # a method that needs no value has nothing to wait for
    assert updater.policy_on(11)


def test_more_passes_of_the_critic_fit_its_heads_and_leave_the_policy_alone(base, progress):
    once, often = make(base, critic_lr=1e-3), make(base, critic_lr=1e-3, critic_passes=6)
    for policy in (once, often):
        Updater(policy, 0).run([items()], 1, progress)
    assert all(torch.equal(p, often.trained[name]) for name, p in once.trained.items())

    # a second implementation: AdamW on linear layers over standardised features and targets of the step's rows
    plain = make(base)
    heads = {name: plain.critic.heads[name].last for name in ("turn", "token")}
    optimizer = torch.optim.AdamW(
        [p for head in heads.values() for p in head.parameters()], lr=1e-3, betas=plain.learn.betas, weight_decay=0.0
    )
    [whole] = list(batches(items(), 10_000, "token_mean"))
    with torch.no_grad():
        hidden = plain.hidden(whole.ids, layout=whole.layout)
    rows = {name: (hidden[0, at], targets) for name, (at, targets, _) in whole.values.items()}
    for _ in range(6):
        optimizer.zero_grad()
        for name, (states, targets) in rows.items():
            variance = states.var(0, unbiased=False)
            features = (states - states.mean(0)) / (variance + 1e-6 * variance.mean()).sqrt()
            wanted = (targets - targets.mean()) / targets.std(unbiased=False)
            (0.5 * (heads[name](features).squeeze(-1) - wanted) ** 2).mean().backward()
        optimizer.step()
    for name, expected in heads.items():
        torch.testing.assert_close(often.critic.heads[name].last.weight, expected.weight, rtol=1e-3, atol=1e-6)
        assert not torch.equal(once.critic.heads[name].last.weight, expected.weight)


def test_every_trace_counts_once_in_the_critic_however_often_the_policy_reads_it(base, progress):
    policy, some = make(base, epochs=3, tokens_per_update=10, critic={"kind": "ridge"}), items()
    measure(policy, some, old=True, reference=False)
    updater = Updater(policy, seed=0)
    updater.run(updater.plan(some, 1), 1, progress)
    for name in ("turn", "token"):
        assert policy.critic.heads[name].count == sum(item.credit.value_mask[name].sum() for item in some)
