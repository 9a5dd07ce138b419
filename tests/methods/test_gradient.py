"""The expected policy gradient of OMAR's credit, by enumeration of whole games, against the true policy gradient.

A game: two turns of two tokens over two symbols, with a random reply of the world between them, so 32 ways to play.
The policy is a table of logits, one pair per prefix. A critic is a table too, and *converged* means that every entry
is the probability-weighted mean of the targets that `credit` itself gives out.
"""

import itertools

import numpy as np
import pytest

from tests.methods.episodes import scored, trace
from training.methods.omar import OmarConfig

LAYOUT = ".00.11"
WAYS = [(0, *rest) for rest in itertools.product((0, 1), repeat=5)]
SAMPLED = (1, 2, 4, 5)
EXACT = {"gamma_turn": 1.0, "lam_turn": 1.0, "gamma": 1.0, "lam": 1.0}
PAPER = {"critic_heads": "one", "turn_value": "last_token"}


def softmax(logits):
    weights = np.exp(logits - np.max(logits))
    return weights / weights.sum()


class World:
    """A random game, a random policy, and everything that can happen in it."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        prefixes = {way[:k] for way in WAYS for k in range(1, 6)}
        self.logits = {prefix: rng.normal(size=2) for prefix in sorted(prefixes)}
        self.rewards = {way: float(rng.normal()) for way in WAYS}
        self.chance = {way: self.probability(way) for way in WAYS}

    def probability(self, way):
        return float(np.prod([softmax(self.logits[way[:t]])[way[t]] for t in range(1, 6)]))

    def episodes(self, critic):
        heads = {head: {way: [table[way[: p + 1]] for p in range(6)] for way in WAYS} for head, table in critic.items()}
        return [
            scored([trace(LAYOUT)], {0: self.rewards[way]}, {head: [by[way]] for head, by in heads.items()})
            for way in WAYS
        ]

    def gradient(self, weight):
        """Σ P(way) Σ_t weight(way, t) ∇ log π(token t | prefix), as one vector over all logits of sampled tokens."""
        total = {prefix: np.zeros(2) for prefix in self.logits if len(prefix) in SAMPLED}
        for way in WAYS:
            for t in SAMPLED:
                prefix = way[:t]
                score = np.eye(2)[way[t]] - softmax(self.logits[prefix])
                total[prefix] += self.chance[way] * weight(way, t) * score
        return np.concatenate(list(total.values()))

    def true_gradient(self):
        return self.gradient(lambda way, t: self.rewards[way])

    def expected_gradient(self, method, critic):
        credit = dict(zip(WAYS, (method.credit([e])[0].traces[0].ppo for e in self.episodes(critic)), strict=True))
        return self.gradient(lambda way, t: credit[way][t])


def blank(heads):
    return {head: {way[:k]: 0.0 for way in WAYS for k in range(1, 7)} for head in heads}


def converged(world, method):
    """Iterate the critic to the mean of its own targets; after some rounds halfway, so that any form settles."""
    critic = blank(method.needs.critic)
    for round_ in range(400):
        sums = {head: {prefix: [0.0, 0.0] for prefix in table} for head, table in critic.items()}
        for way, episode in zip(WAYS, world.episodes(critic), strict=True):
            credit = method.credit([episode])[0].traces[0]
            for head, targets in credit.value_targets.items():
                for p in np.flatnonzero(credit.value_mask[head]):
                    entry = sums[head][way[: p + 1]]
                    entry[0] += world.chance[way] * targets[p]
                    entry[1] += world.chance[way]
        change = 0.0
        for head, table in critic.items():
            for prefix, (target, mass) in sums[head].items():
                step = (1.0 if round_ < 20 else 0.5) * (target / mass - table[prefix]) if mass else 0.0
                table[prefix] += step
                change = max(change, abs(step))
        if change < 1e-13:
            return critic
    raise AssertionError("the critic did not settle")


def refused(**config):
    """A method whose configuration the validation refuses: two heads, the turn's value at its end."""
    return OmarConfig.model_construct(
        **OmarConfig().model_dump() | EXACT | {"turn_value": "last_token"} | config
    ).build()


def ratio_and_cosine(gradient, true):
    return float(gradient @ true / (true @ true)), float(
        gradient @ true / np.linalg.norm(gradient) / np.linalg.norm(true)
    )


SEEDS = [pytest.param(seed, id=f"game{seed}") for seed in range(5)]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("lam_turn, lam", [(1.0, 1.0), (0.7, 1.0), (0.0, 1.0), (0.7, 0.6)])
def test_default_form_is_unbiased_with_a_converged_critic(seed, lam_turn, lam):
    world, method = World(seed), OmarConfig(**EXACT | {"lam_turn": lam_turn, "lam": lam, "filter": "off"}).build()
    gradient = world.expected_gradient(method, converged(world, method))
    assert gradient == pytest.approx(world.true_gradient(), abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_default_form_is_unbiased_for_any_critic_at_lambda_one(seed):
    world, method = World(seed), OmarConfig(**EXACT).build()
    rng = np.random.default_rng(100 + seed)
    critic = {head: {k: float(rng.normal()) for k in table} for head, table in blank(method.needs.critic).items()}
    assert world.expected_gradient(method, critic) == pytest.approx(world.true_gradient(), abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_turn_decay_makes_earlier_turns_count_less(seed):
    # of two turns with γ_turn = .9 the first has .9 of its true gradient: the estimate is biased
    world, method = World(seed), OmarConfig(**EXACT | {"gamma_turn": 0.9}).build()
    gradient, true = world.expected_gradient(method, converged(world, method)), world.true_gradient()
    lengths = [len(prefix) for prefix in world.logits if len(prefix) in SAMPLED for _ in range(2)]
    share = np.where(np.array(lengths) < 3, 0.9, 1.0)
    assert gradient == pytest.approx(share * true, abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_flat_and_hierarchical_give_the_same_credit_at_lambda_one(seed):
    # with converged critics both are R − E[R | prefix] in every game: the same variance, not only the same mean
    world, credits_ = World(seed), []
    for form in ("hierarchical", "flat"):
        method = OmarConfig(**EXACT | {"advantage": form, "filter": "off"}).build()
        episodes = world.episodes(converged(world, method))
        credits_.append(np.array([method.credit([episode])[0].traces[0].ppo for episode in episodes]))
    assert credits_[0] == pytest.approx(credits_[1], abs=1e-10)


@pytest.mark.parametrize("seed", SEEDS)
def test_paper_form_is_half_the_true_gradient(seed):
    world, method = World(seed), OmarConfig(**EXACT | PAPER).build()
    gradient = world.expected_gradient(method, converged(world, method))
    ratio, cosine = ratio_and_cosine(gradient, world.true_gradient())
    assert ratio == pytest.approx(0.5, abs=1e-9)
    assert cosine == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_heads_at_the_turns_end_learn_nothing(seed):
    world, method = World(seed), refused()
    assert method.needs.critic == ("turn", "token")
    gradient = world.expected_gradient(method, converged(world, method))
    assert gradient == pytest.approx(np.zeros_like(gradient), abs=1e-10)
    assert np.linalg.norm(world.true_gradient()) > 0.1


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("ablation", ["flat", "turn_only"])
def test_ablations_with_a_critic_are_unbiased(seed, ablation):
    world, method = World(seed), OmarConfig(**EXACT | {"advantage": ablation}).build()
    gradient = world.expected_gradient(method, converged(world, method))
    assert gradient == pytest.approx(world.true_gradient(), abs=1e-10)


def bandit(method, *, steps, seed):
    """One turn of one token; action 1 pays 1, action 0 nothing. Return P(best) after sampled policy gradient steps."""
    rng, logits = np.random.default_rng(seed), np.array([1.0, 0.0])
    for _ in range(steps):
        chance = softmax(logits)
        critic = _settled_bandit_critic(method, chance)
        gradient = np.zeros(2)
        for action in rng.choice(2, size=16, p=chance):
            values = {head: [[before, after[action]]] for head, (before, after) in critic.items()}
            credit = method.credit([scored([trace(".0")], {0: float(action)}, values)])[0].traces[0]
            gradient += credit.ppo[1] * (np.eye(2)[action] - chance) / 16
        logits += 0.5 * gradient
    return softmax(logits)[1]


def _settled_bandit_critic(method, chance):
    critic = {head: [0.0, [0.0, 0.0]] for head in method.needs.critic}
    for _ in range(60):
        before = dict.fromkeys(critic, 0.0)
        for action in (0, 1):
            values = {head: [[entry[0], entry[1][action]]] for head, entry in critic.items()}
            credit = method.credit([scored([trace(".0")], {0: float(action)}, values)])[0].traces[0]
            for head in critic:
                if credit.value_mask[head][0]:
                    before[head] += chance[action] * credit.value_targets[head][0]
                if credit.value_mask[head][1]:
                    critic[head][1][action] += 0.5 * (credit.value_targets[head][1] - critic[head][1][action])
        for head, entry in critic.items():
            entry[0] += 0.5 * (before[head] - entry[0])
    return critic


@pytest.mark.parametrize("form", [{}, PAPER], ids=["default", "paper"])
def test_bandit_finds_the_best_action(form):
    assert bandit(OmarConfig(**EXACT | form).build(), steps=100, seed=0) > 0.9


def test_bandit_with_two_heads_at_the_end_stays_where_it_was():
    assert bandit(refused(), steps=100, seed=0) == pytest.approx(softmax(np.array([1.0, 0.0]))[1], abs=1e-6)
