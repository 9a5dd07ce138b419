"""Log-probabilities in chunks against the plain computation; the reference; memory."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.toy_models import write_random_llama
from training.bases import ModelInfo
from training.errors import BadInput
from training.learn import checkpoint
from training.learn import policy as policies
from training.learn.choices import Choices
from training.learn.head import logprobs
from training.run_sections import LearnSection


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base") / "model"))


def make(base, heads=("turn",), **learn):
    settings = {"lora": {"rank": 4}, "logits_chunk": 7, "threads": 1, **learn}
    section = LearnSection.from_dict(settings)
    return policies.load(base, heads, section, seed=1, temperature=learn.pop("temperature", 1.0), device="cpu")


def with_busy_adapters(policy):
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in policy.trained.values():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.05)
    return policy


IDS = torch.arange(60).reshape(2, 30) + 5


@pytest.mark.parametrize("lora", [{"rank": 4}, False])
def test_a_critic_that_reads_the_start_reads_the_same_after_the_policy_has_changed(base, lora):
    policy = make(base, lora=lora, kl="none", kl_measured=False, critic={"features": "start"})
    before = policy.features(IDS, policy.hidden(IDS))
    torch.testing.assert_close(before, policy.hidden(IDS).detach())
    with_busy_adapters(policy)
    assert not torch.allclose(policy.hidden(IDS), before, atol=0.1)
    features = policy.features(IDS, policy.hidden(IDS))
    torch.testing.assert_close(features, before)
    assert not features.requires_grad


def plain(policy, temperature):
    """All logits at once, by the model's own forward."""
    logits = policy.inner(input_ids=IDS).logits[:, :-1] / temperature
    table = torch.log_softmax(logits, -1)
    logp = table.gather(-1, IDS[:, 1:, None]).squeeze(-1)
    return logp.reshape(-1), -(table.exp() * table).sum(-1).reshape(-1)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_give_what_full_logits_give(base, temperature, chunk):
    policy = with_busy_adapters(make(base, logits_chunk=chunk))
    policy.temperature = temperature
    hidden = policy.hidden(IDS)[:, :-1].reshape(-1, 64)
    logp, entropy = policy.logprobs(hidden, IDS[:, 1:].reshape(-1))
    expected, expected_entropy = plain(policy, temperature)
    torch.testing.assert_close(logp, expected, atol=2e-5, rtol=0)
    torch.testing.assert_close(entropy, expected_entropy, atol=2e-5, rtol=0)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("entropy_grad", [False, True])
def test_chunks_give_the_same_gradient(base, temperature, entropy_grad):
    policy = with_busy_adapters(make(base))
    policy.temperature = temperature
    weight = torch.linspace(-1, 1, 58)
    grads = []
    for form in (
        lambda: policy.logprobs(
            policy.hidden(IDS)[:, :-1].reshape(-1, 64), IDS[:, 1:].reshape(-1), entropy_grad=entropy_grad
        ),
        lambda: plain(policy, temperature),
    ):
        policy.model.zero_grad()
        logp, entropy = form()
        ((weight * logp).sum() + (0.3 * entropy.sum() if entropy_grad else 0)).backward()
        grads.append([p.grad.clone() for p in policy.trained.values()])
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("certainty", [0.9, 0.99, 0.999, 0.9999])
def test_the_slope_in_bfloat16_of_a_nearly_certain_token(certainty):
    # the reference is the plain derivative in float64: W_y - sum_v p_v W_v over the same (bfloat16) weights
    generator = torch.Generator().manual_seed(0)
    vocabulary, size = 512, 64
    weight = torch.randn(vocabulary, size, generator=generator).bfloat16()
    targets = torch.arange(20)
    direction = weight[targets].double()
    others = torch.logsumexp(torch.randn(20, vocabulary, generator=generator), -1)  # about what the rest adds up to
    scale = (others + torch.tensor(certainty).logit()) / (direction**2).sum(-1)
    hidden = (direction * scale[:, None]).bfloat16().requires_grad_()
    layer = torch.nn.Linear(size, vocabulary, bias=False).requires_grad_(False)
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    logp, _ = logprobs(layer, hidden, targets, temperature=1.0, chunk=7)
    logp.sum().backward()

    exact = hidden.detach().double().requires_grad_()
    table = torch.log_softmax(exact @ weight.double().T, -1)
    table.gather(-1, targets[:, None]).sum().backward()
    assert (table.gather(-1, targets[:, None]).exp() > 0.5).all()
    error = (hidden.grad.double() - exact.grad).norm(dim=-1) / exact.grad.norm(dim=-1)
    assert error.max() < 0.15  # what rounding the logits to bfloat16 costs


def test_full_weights_learn_through_the_head_too(base):
    policy = make(base, lora=None)
    logp, _ = policy.logprobs(policy.hidden(IDS)[:, :-1].reshape(-1, 64), IDS[:, 1:].reshape(-1))
    logp.sum().backward()
    ours = policy.inner.get_output_embeddings().weight.grad.clone()
    policy.model.zero_grad()
    plain(policy, 1.0)[0].sum().backward()
    torch.testing.assert_close(ours, policy.inner.get_output_embeddings().weight.grad, atol=2e-4, rtol=1e-4)


ALLOWED = {0: (6, 5), 3: (9,), 9: (15, 2, 200), 10: (16, 7, 30, 41), 40: (47, 5), 57: (64, 1, 3)}
"""By position among the 58 targets, the token itself first; at position 3 nothing else was allowed."""


def allowed_as_tensors():
    """The same as the learner holds it: rows filled up by an id of their own."""
    ids = [(*ids, *ids[:1] * (4 - len(ids))) for ids in ALLOWED.values()]
    return Choices(torch.tensor(list(ALLOWED)), torch.tensor(ids))


def plain_among(policy, temperature):
    """Position by position: a softmax of the few allowed logits where there are choices, else of all logits."""
    logits = policy.inner(input_ids=IDS).logits[:, :-1].reshape(58, -1) / temperature
    targets, logp, entropy = IDS[:, 1:].reshape(-1), [], []
    for row in range(58):
        ids = torch.tensor(ALLOWED.get(row, range(logits.shape[1])))
        chances = torch.softmax(logits[row, ids], 0)
        logp.append(chances[ids == targets[row]].squeeze().log())
        entropy.append(-(chances * chances.log()).sum())
    return torch.stack(logp), torch.stack(entropy)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
@pytest.mark.parametrize("chunk", [1, 7, 1000])
@pytest.mark.parametrize("way", ["frozen head", "frozen head with entropy", "all weights", "no gradient"])
def test_among_choices_against_a_softmax_of_the_allowed_logits(base, temperature, chunk, way):
    policy = with_busy_adapters(make(base, logits_chunk=chunk, lora=None if way == "all weights" else {"rank": 4}))
    policy.temperature = temperature
    weight, entropy_grad = torch.linspace(-1, 1, 58), way == "frozen head with entropy"

    def ours():
        hidden = policy.hidden(IDS)[:, :-1].reshape(-1, 64)
        choices = allowed_as_tensors()
        return policy.logprobs(hidden, IDS[:, 1:].reshape(-1), choices=choices, entropy_grad=entropy_grad)

    if way == "no gradient":
        with torch.no_grad():
            for actual, expected in zip(ours(), plain_among(policy, temperature), strict=True):
                torch.testing.assert_close(actual, expected, atol=2e-5, rtol=0)
        return
    results = []
    for form in (ours, lambda: plain_among(policy, temperature)):
        policy.model.zero_grad()
        logp, entropy = form()
        ((weight * logp).sum() + (0.3 * entropy.sum() if entropy_grad else 0)).backward()
        grads = [p.grad.clone() for p in policy.trained.values() if p.grad is not None]
        results.append((logp.detach(), entropy.detach(), *grads))
    assert len(results[0]) > 10
    for actual, expected in zip(*results, strict=True):
        torch.testing.assert_close(actual, expected, atol=2e-4, rtol=2e-4)
    assert results[0][0][3] == 0  # nothing else was allowed
    assert results[0][1][3] == 0


@pytest.mark.parametrize("entropy_grad", [False, True])
def test_a_forced_token_has_no_gradient(base, entropy_grad):
    policy = with_busy_adapters(make(base))
    hidden = policy.hidden(IDS)[:, :-1].reshape(-1, 64)
    logp, entropy = policy.logprobs(
        hidden, IDS[:, 1:].reshape(-1), choices=allowed_as_tensors(), entropy_grad=entropy_grad
    )
    (slope,) = torch.autograd.grad(logp[3] + (entropy[3] if entropy_grad else 0), hidden)
    assert not slope.any()


class Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation makes."""

    def __init__(self):
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        output = function(*args, **(kwargs or {}))
        for tensor in output if isinstance(output, tuple | list) else [output]:
            if isinstance(tensor, torch.Tensor):
                self.size = max(self.size, tensor.numel())
        return output


@pytest.mark.parametrize("entropy_grad", [False, True])
@pytest.mark.parametrize("limited", [False, True])
def test_logits_are_never_larger_than_a_chunk_nor_kept(base, entropy_grad, limited):
    policy = with_busy_adapters(make(base))
    hidden = policy.hidden(IDS)[:, :-1].reshape(-1, 64).repeat(8, 1)
    targets, vocabulary, kept = IDS[:, 1:].reshape(-1).repeat(8), len(policy.inner.get_output_embeddings().weight), []
    with Largest() as largest:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
            choices = allowed_as_tensors() if limited else None
            logp, entropy = policy.logprobs(hidden, targets, choices=choices, entropy_grad=entropy_grad)
        (logp.sum() + entropy.sum()).backward(inputs=[hidden])
    states = len(targets) * 64
    assert states < len(targets) * vocabulary / 4  # so that all logits at once would be noticed
    assert largest.size <= max(7 * vocabulary, states)
    assert max([0, *kept]) <= states


def test_padding_on_the_right_changes_nothing(base):
    policy = with_busy_adapters(make(base))
    long, short = policy.hidden(IDS), policy.hidden(IDS[:, :11])
    torch.testing.assert_close(long[:, :11], short, atol=1e-5, rtol=0)


def test_the_reference_is_the_start_whatever_was_learned(base):
    policy = make(base)
    start = policy.hidden(IDS).detach()
    with_busy_adapters(policy)
    with torch.no_grad():
        assert (policy.hidden(IDS) - start).abs().max() > 1e-3
        with policy.as_reference() as model:
            torch.testing.assert_close(policy.hidden(IDS, model), start)


def test_full_weights_keep_a_copy_only_where_it_is_read(base):
    policy = make(base, lora=None)
    with torch.no_grad():
        start = policy.hidden(IDS)
        for parameter in policy.trained.values():
            parameter.add_(0.01)
        with policy.as_reference() as model:
            torch.testing.assert_close(policy.hidden(IDS, model), start)
    with (
        pytest.raises(BadInput, match="no copy of the starting model"),
        make(base, lora=None, kl="none", kl_measured=False).as_reference(),
    ):
        pass


@pytest.mark.parametrize("lora", [{"rank": 4}, False])
def test_the_reference_is_the_checkpoint_that_is_named(base, tmp_path, lora):
    policy = make(base, lora=lora)
    start = policy.hidden(IDS).detach()
    with torch.no_grad():
        for parameter in policy.trained.values():
            parameter.add_(0.01)
        at_end = policy.hidden(IDS)
        info = ModelInfo(name="end", base="toy", parent=base)
        checkpoint.write(
            tmp_path / "end", policy.model, policy.tokenizer, info, checkpoint.TrainerState(1, {}, policy.tensors())
        )
        for parameter in policy.trained.values():
            parameter.add_(0.02)
        current = policy.hidden(IDS)
        for folder, expected in ((tmp_path / "end", at_end), (None, start)):
            policy.refer(folder)
            with policy.as_reference() as model:
                torch.testing.assert_close(policy.hidden(IDS, model), expected)
            torch.testing.assert_close(policy.hidden(IDS), current)  # the policy is where it was
        assert min((at_end - start).abs().max(), (current - at_end).abs().max()) > 1e-3


def test_heads_that_read_the_start_read_it_whatever_the_reference(base, tmp_path):
    policy = make(base, lora=None, critic={"features": "start"})
    with torch.no_grad():
        start = policy.hidden(IDS)
        for parameter in policy.trained.values():
            parameter.add_(0.01)
        info = ModelInfo(name="end", base="toy", parent=base)
        checkpoint.write(
            tmp_path / "end", policy.model, policy.tokenizer, info, checkpoint.TrainerState(1, {}, policy.tensors())
        )
        policy.refer(tmp_path / "end")
        torch.testing.assert_close(policy.features(IDS, policy.hidden(IDS)), start)


def test_adapters_on_a_checkpoint_of_adapters_start_from_its_merged_weights(base, tmp_path):
    from training.learn import models

    first = with_busy_adapters(make(base))
    (tmp_path / "first").mkdir()
    info = ModelInfo(name="first", base="toy", parent=base)
    models.save(first.model, first.tokenizer, tmp_path / "first", info, adapter_only=True)
    second = make(str(tmp_path / "first"))
    with torch.no_grad():
        torch.testing.assert_close(second.hidden(IDS), first.hidden(IDS), atol=1e-4, rtol=1e-4)
        with second.as_reference() as model:
            torch.testing.assert_close(second.hidden(IDS, model), first.hidden(IDS), atol=1e-4, rtol=1e-4)


def test_only_adapters_on_a_registered_model_are_saved_alone(base):
    with_adapters, full = LearnSection(), LearnSection(lora=None)
    assert policies.saves_adapter_only("tiny", with_adapters)
    assert not policies.saves_adapter_only(base, with_adapters), "no other machine has this folder"
    assert not policies.saves_adapter_only("tiny", full)


def test_bfloat16_computes_in_bfloat16_and_learns_in_float32(base):
    policy = with_busy_adapters(make(base, dtype="bfloat16", autocast=True))
    hidden = policy.hidden(IDS)
    assert hidden.dtype == torch.bfloat16
    assert {p.dtype for p in policy.trained.values()} == {torch.float32}
    logp, _ = policy.logprobs(hidden[:, :-1].reshape(-1, 64), IDS[:, 1:].reshape(-1))
    assert logp.dtype == torch.float32
    exact, _ = plain(with_busy_adapters(make(base)), 1.0)
    assert (logp - exact).abs().mean() < 0.1
    assert policy.critic.value("turn", hidden).dtype == torch.float32


def test_recomputed_activations_give_the_same_gradient(base):
    grads = []
    for recompute in (False, True):
        policy = with_busy_adapters(make(base, recompute=recompute))
        policy.hidden(IDS).pow(2).sum().backward()
        grads.append([p.grad for p in policy.trained.values()])
    for plain_grad, recomputed in zip(*grads, strict=True):
        torch.testing.assert_close(plain_grad, recomputed)


def test_restore_refuses_what_does_not_fit(base):
    policy, other = make(base), make(base, lora={"rank": 8})
    with pytest.raises(BadInput, match="does not fit"):
        policy.restore(other.tensors())
    busy = with_busy_adapters(make(base))
    policy.restore(busy.tensors())
    assert all(torch.equal(a, b) for a, b in zip(policy.trained.values(), busy.trained.values(), strict=True))


def test_a_checkpoint_with_value_heads_of_the_earlier_form_still_loads(base, caplog):
    former = {name: t for name, t in with_busy_adapters(make(base)).tensors().items() if name.startswith("adapter.")}
    former |= {"heads.turn.weight": torch.ones(1, 64), "heads.turn.bias": torch.ones(1)}
    policy = make(base)
    policy.restore(former)
    assert all(torch.equal(p, former[f"adapter.{name}"]) for name, p in policy.trained.items())
    assert not policy.critic.fitted
    assert "earlier version" in caplog.text
    with pytest.raises(BadInput, match="does not fit"):
        policy.restore({name: t for name, t in former.items() if not name.startswith("heads.")})
