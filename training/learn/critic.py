"""The critic: value heads on hidden states, with normalised features and targets on a running scale.

Three kinds (`learn.critic.kind`). `ridge` solves a ridge regression on the moments of the recent steps after every
step, in closed form. `linear` and `mlp` descend the squared error of the step's targets with AdamW. Every head
predicts in the units of its targets, and the mean target until it has been fitted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from training.learn.ranks import ALONE, DistContext

if TYPE_CHECKING:
    from torch import Tensor

    from training.run_sections import CriticSection, LearnSection

ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Strengths of the ridge penalty, on features and rows of variance 1: what one step's rows weigh against the prior."""
UNTRIED = 30.0
"""The strength used until a further step has shown which one predicts best: the games of one step say little."""
SMALL = 1e-6
"""Least variance of a feature as a share of the mean variance: a feature that never moved must not explode later."""
MOST_FEATURES = 1024
"""Widest input of a ridge head: its moments take 8·1024² bytes = 8 MiB, and a solution about a second of one core."""

Rows = tuple["Tensor", "Tensor"]
"""Features (N, H) and targets (N,) of one head, from this rank's part of one training step."""


def _scale(variance: Tensor) -> Tensor:
    """Return 1/standard deviation per feature, bounded for features that hardly vary."""
    return (variance + SMALL * variance.mean() + 1e-12).rsqrt()


class RidgeHead(nn.Module):
    """Least squares with an L2 penalty on standardised features, from moments that fade by `decay` per step.

    The strength of the penalty is the one whose earlier solutions predicted the following steps best, the mean alone
    included; those predictions are out of sample because each step is predicted before it is added. Buffers are
    float64, so that a restored head continues bit for bit.

    States longer than K = `MOST_FEATURES` are standardised by the first step's statistics and projected at random to
    K numbers. Ridge regression depends on inner products of states alone, and their relative error is about 1/√K
    (Johnson and Lindenstrauss, 1984). Memory, whatever the length H: 8·K² bytes of moments, and 4·K·H of projection.
    """

    count: Tensor
    mean_x: Tensor
    mean_y: Tensor
    sum_x: Tensor
    sum_y: Tensor
    sum_xy: Tensor
    cross: Tensor
    solutions: Tensor
    errors: Tensor
    chosen: Tensor
    centre: Tensor
    spread: Tensor
    projection: Tensor

    def __init__(self, size: int, decay: float) -> None:
        super().__init__()
        self.decay = decay
        self.projected = size > MOST_FEATURES
        width = min(size, MOST_FEATURES)
        zeros = {"count": (), "mean_y": (), "sum_x": (width,), "sum_y": (), "cross": (width, width), "sum_xy": (width,)}
        zeros |= {"mean_x": (width,), "solutions": (len(ALPHAS) + 1, width), "errors": (len(ALPHAS) + 1,)}
        for name, shape in zeros.items():
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("chosen", torch.tensor(ALPHAS.index(UNTRIED)))
        if self.projected:
            self.register_buffer("centre", torch.zeros(size))
            self.register_buffer("spread", torch.ones(size))
            # the same numbers in every process, so a checkpoint does without them
            directions = torch.randn(size, width, generator=torch.Generator().manual_seed(0)) / width**0.5
            self.register_buffer("projection", directions, persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Return values (…) of states (…, H)."""
        dtype = states.dtype
        weight, mean = self.solutions[self.chosen], self.mean_x
        constant = self.mean_y
        if self.projected:  # one vector of length H in place of the projection of every state
            constant = constant - mean @ weight
            weight, mean = self.spread * (self.projection @ weight.to(self.projection.dtype)), self.centre
        return (states - mean.to(dtype)) @ weight.to(dtype) + constant.to(dtype)

    def begin(self, mean: float) -> None:
        """Predict `mean` until the first fit."""
        self.mean_y.fill_(mean)

    @torch.no_grad()
    def fit(self, states: Tensor, targets: Tensor, ranks: DistContext = ALONE) -> None:
        """Add one step's rows, choose the strength of the penalty, and solve again, on all ranks alike."""
        x, y = self._features(states, ranks).double(), targets.double()
        if self.count > 0:
            predictions = (x - self.mean_x) @ self.solutions.T + self.mean_y
            self.errors.mul_(self.decay).add_(ranks.sum(((predictions - y[:, None]) ** 2).sum(0)))
            self.chosen.fill_(int(self.errors.argmin()))
        added = {"count": y.new_tensor(float(len(y))), "sum_x": x.sum(0), "sum_y": y.sum()}
        for name, moment in (added | {"cross": x.T @ x, "sum_xy": x.T @ y}).items():
            getattr(self, name).mul_(self.decay).add_(ranks.sum(moment))
        self._solve()

    def _features(self, states: Tensor, ranks: DistContext) -> Tensor:
        """Return what is regressed on, (N, min(H, K)), for states (N, H); the first call sets the scale of states."""
        if not self.projected:
            return states
        if self.count == 0:
            count = ranks.count(len(states))
            self.centre.copy_(ranks.sum(states.sum(0)) / count)
            self.spread.copy_(_scale(ranks.sum(((states - self.centre) ** 2).sum(0)) / count))
        return ((states - self.centre) * self.spread) @ self.projection

    def _solve(self) -> None:
        count = self.count
        self.mean_x.copy_(self.sum_x / count)
        self.mean_y.copy_(self.sum_y / count)
        covariance = self.cross / count - torch.outer(self.mean_x, self.mean_x)
        slope = self.sum_xy / count - self.mean_x * self.mean_y
        scale = _scale(covariance.diagonal().clamp(min=0))
        values, vectors = torch.linalg.eigh(scale[:, None] * covariance * scale)
        projected = vectors.T @ (scale * slope)
        for place, alpha in enumerate(ALPHAS):  # the last solution stays zero: the mean alone
            self.solutions[place] = scale * (vectors @ (projected / (values.clamp(min=0) + alpha)))


class GradientHead(nn.Module):
    """A linear layer, or two with ReLU between, on standardised features; outputs in standard deviations of targets.

    When the targets' running mean and deviation change, the last layer is rescaled so that no prediction changes
    (PopArt: van Hasselt et al., 2016).
    """

    count: Tensor
    sum_x: Tensor
    squares: Tensor
    sum_y: Tensor
    squares_y: Tensor
    mean_x: Tensor
    scale_x: Tensor
    mean_y: Tensor
    deviation_y: Tensor

    def __init__(self, size: int, decay: float, hidden: int) -> None:
        super().__init__()
        self.decay = decay
        for name, shape in {"count": (), "sum_x": (size,), "squares": (size,), "sum_y": (), "squares_y": ()}.items():
            self.register_buffer(name, torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("mean_x", torch.zeros(size))
        self.register_buffer("scale_x", torch.ones(size))
        self.register_buffer("mean_y", torch.zeros(()))
        self.register_buffer("deviation_y", torch.ones(()))
        self.last = nn.Linear(hidden or size, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)
        self.net = nn.Sequential(*([nn.Linear(size, hidden), nn.ReLU()] if hidden else []), self.last)

    def normalised(self, states: Tensor) -> Tensor:
        """Return values (…) of states (…, H) in standard deviations from the mean target."""
        output: Tensor = self.net((states - self.mean_x) * self.scale_x).squeeze(-1)
        return output

    def forward(self, states: Tensor) -> Tensor:
        """Return values (…) of states (…, H)."""
        return self.mean_y + self.deviation_y * self.normalised(states)

    def begin(self, mean: float) -> None:
        """Predict `mean` until the first fit."""
        self.mean_y.fill_(mean)

    @torch.no_grad()
    def observe(self, states: Tensor, targets: Tensor, ranks: DistContext = ALONE) -> None:
        """Add one step's rows to the running statistics, on all ranks alike."""
        x, y = states.double(), targets.double()
        first = not bool(self.count > 0)
        added = {"count": y.new_tensor(float(len(y))), "sum_x": x.sum(0), "squares": (x**2).sum(0)}
        for name, moment in (added | {"sum_y": y.sum(), "squares_y": (y**2).sum()}).items():
            getattr(self, name).mul_(self.decay).add_(ranks.sum(moment))
        mean = self.sum_x / self.count
        self.mean_x.copy_(mean)
        self.scale_x.copy_(_scale((self.squares / self.count - mean**2).clamp(min=0)))
        mean_y = self.sum_y / self.count
        deviation = (self.squares_y / self.count - mean_y**2).clamp(min=1e-12).sqrt()
        if not first:  # before the first fit there is nothing to preserve but the constant
            self.last.bias.copy_((self.deviation_y * self.last.bias + self.mean_y - mean_y) / deviation)
            self.last.weight.mul_(self.deviation_y / deviation)
        self.mean_y.copy_(mean_y)
        self.deviation_y.copy_(deviation)


class Critic(nn.Module):
    """The value heads of a run by name. `size` is the length of a hidden state."""

    def __init__(self, names: Sequence[str], size: int, learn: LearnSection, seed: int = 0) -> None:
        super().__init__()
        self.learn, self.section = learn, learn.critic
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.heads = nn.ModuleDict({name: _head(size, learn.critic) for name in names})
        self.names = tuple(names)
        """The names of the heads that are in use."""
        weights = list(self.parameters())
        self.optimizer: torch.optim.AdamW | None = None
        if weights:
            self.optimizer = torch.optim.AdamW(weights, lr=learn.lr, betas=learn.betas, weight_decay=0.0)

    def __bool__(self) -> bool:
        """Return whether any head is in use."""
        return len(self.names) > 0

    def use(self, names: Sequence[str]) -> None:
        """Read these heads only from now on; the others stay as they are."""
        self.names = tuple(names)

    @property
    def unfitted(self) -> tuple[str, ...]:
        """The names of the heads in use that have never been fitted."""
        return tuple(name for name in self.names if not bool(self._head(name).count > 0))

    @property
    def fitted(self) -> bool:
        """Whether every head in use has been fitted at least once."""
        return not self.unfitted

    def value(self, name: str, states: Tensor) -> Tensor:
        """Return the values (…) of one head at states (…, H), in the units of its targets."""
        values: Tensor = self.heads[name](states.float())
        return values

    def begin(self, means: Mapping[str, float]) -> None:
        """Let the heads predict these constants until their first fit."""
        for name, mean in means.items():
            self._head(name).begin(mean)

    def fit(self, rows: Mapping[str, Rows], rate: float, ranks: DistContext = ALONE) -> dict[str, float]:
        """Learn from one step's rows; return `critic_grad_norm`, where there are gradients (mean over the passes).

        Heads are the same on all ranks; each rank has rows of the same heads, which may be none.
        """
        counts = {name: ranks.count(len(targets)) for name, (_, targets) in rows.items()}
        rows = {name: each for name, each in rows.items() if counts[name]}
        for name, (states, targets) in rows.items():
            head = self.heads[name]
            if isinstance(head, RidgeHead):
                head.fit(states, targets, ranks)
            elif isinstance(head, GradientHead):
                head.observe(states, targets, ranks)
        return self._descend(rows, counts, rate, ranks) if self.optimizer and rows else {}

    def _descend(
        self, rows: Mapping[str, Rows], counts: Mapping[str, int], rate: float, ranks: DistContext
    ) -> dict[str, float]:
        assert self.optimizer is not None, "only heads with gradients descend"
        self.optimizer.param_groups[0]["lr"] = rate
        norm = 0.0
        for _ in range(self.learn.critic_passes):
            self.optimizer.zero_grad(set_to_none=True)
            for name, (states, targets) in rows.items():
                head = self._head(name)
                normalised_targets = (targets.float() - head.mean_y) / head.deviation_y
                errors = (head.normalised(states.float()) - normalised_targets) ** 2
                (0.5 * errors.sum() / counts[name]).backward()
            for parameter in self.parameters():
                if parameter.grad is not None:
                    ranks.sum(parameter.grad)
            norm += float(nn.utils.clip_grad_norm_(self.parameters(), self.learn.max_grad_norm))
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return {"critic_grad_norm": norm / self.learn.critic_passes}

    def _head(self, name: str) -> Any:
        return self.heads[name]


def _head(size: int, section: CriticSection) -> RidgeHead | GradientHead:
    decay = 1 - 1 / section.memory
    if section.kind == "ridge":
        return RidgeHead(size, decay)
    return GradientHead(size, decay, section.hidden if section.kind == "mlp" else 0)
