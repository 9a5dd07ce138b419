"""One training step's updates: gradients are accumulated over micro-batches, checked, clipped, and applied.

Raises `BadStep` when a loss, log-probability or gradient is not finite, and `StopRequested` on a request to stop; in
both cases the weights and the optimizer are as they were before the step.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import nn

from training.errors import ParleyError
from training.learn import losses
from training.learn.batch import Batch, Item, batches, updates
from training.learn.policy import Policy
from training.learn.ranks import whole
from training.seeding import derive

if TYPE_CHECKING:
    from torch import Tensor

    from training.run_sections import LearnSection


class Signals(Protocol):
    """What an update tells of its progress, and what may end it; `Progress` is one."""

    def beat(self, **facts: Any) -> None:
        """Report progress."""

    def check(self) -> None:
        """Raise `StopRequested` if a stop was requested."""


class BadStep(ParleyError):
    """Something in a step is not a finite number; nothing of the step was kept."""


def learning_rate(learn: LearnSection, step: int, steps: int) -> float:
    """Return the learning rate at step `step` (from 1) of the `steps` in which the policy learns.

    It rises linearly over `warmup` steps, then follows the schedule. Where `learn.anneal` says so, both are updates of
    one step.
    """
    if step <= learn.warmup:
        return learn.lr * step / learn.warmup
    share = (step - 1 - learn.warmup) / max(1, steps - learn.warmup)
    if learn.schedule == "linear":
        return learn.lr * (1 - share)
    if learn.schedule == "cosine":
        return learn.lr * 0.5 * (1 + math.cos(math.pi * share))
    return learn.lr


class Updater:
    """Holds the policy's optimizer, and lets the critic learn once a step from the states that the updates read.

    Of several ranks each is given the same items and reads its part of every update.
    """

    def __init__(self, policy: Policy, seed: int) -> None:
        self.policy, self.learn, self.seed, self.ranks = policy, policy.learn, seed, policy.ranks
        self.weights = list(policy.trained.values())
        self.optimizer = torch.optim.AdamW(
            self.weights, lr=self.learn.lr, betas=self.learn.betas, weight_decay=self.learn.weight_decay
        )
        self._before = 0
        self._totals: dict[str, float] = {}
        self._rows: dict[str, list[tuple[Tensor, Tensor]]] = {}  # by head: states and targets of the step
        self._read_items: set[int] = set()  # ids of the items whose states are among them

    def begin(self, learn: LearnSection, before: int) -> None:
        """Go on by other settings after training step `before`, from which warm-up and schedule count.

        The optimizer keeps its states. `learn.steps` are the steps by these settings.
        """
        self.learn = self.policy.learn = learn
        self._before = before

    def policy_on(self, step: int) -> bool:
        """Return whether the policy learns in this step; while the critic warms up it does not."""
        return not self.policy.critic or step - self._before > self.learn.critic_warmup

    def rates(self, step: int) -> tuple[float, float]:
        """Set the policy's learning rate of a training step; return it and the critic's, which `fit` sets."""
        warm = self.learn.critic_warmup if self.policy.critic else 0
        passed = step - self._before - warm
        rate = learning_rate(self.learn, passed, self.learn.steps - warm) if passed > 0 else 0.0  # anneal = "run"
        critic = self.learn.critic_lr if self.learn.critic_lr is not None else 10 * self.learn.lr
        self.optimizer.param_groups[0]["lr"] = rate
        return rate, critic

    def plan(self, items: Sequence[Item], step: int) -> list[list[Item]]:
        """Return the items of each update of the step, over all epochs."""
        seeds = [derive(self.seed, "updates", step, epoch) for epoch in range(self.learn.epochs)]
        sizes = (self.learn.tokens_per_update, self.learn.trajectories_per_update)
        return [group for seed in seeds for group in updates(items, sizes[0], seed, sizes[1])]

    def run(self, plan: Sequence[Sequence[Item]], step: int, progress: Signals) -> dict[str, float]:
        """Apply the updates of one step; return its metrics."""
        rate, critic = self.rates(step)
        backup = self._keep() if len(plan) > 1 or self.learn.restart else None
        single = len(plan) == 1 or all(item.old is None for group in plan for item in group)
        self._totals = {}
        self._note("updates", float(len(plan)))
        self._rows.clear()
        self._read_items.clear()
        try:
            if self.learn.restart:
                self.policy.restart()
                self.optimizer.state.clear()
            for number, group in enumerate(plan):
                if self.learn.anneal == "step" and self.policy_on(step):
                    rate = learning_rate(self.learn, number + 1, len(plan))
                    self.optimizer.param_groups[0]["lr"] = rate
                self._note("lr", rate / len(plan))
                self._update(group, step, single=single, progress=progress, share=1 / len(plan))
                progress.beat(done=number + 1, of=len(plan))
            self._fit_critic(critic)
        except ParleyError:
            self.optimizer.zero_grad(set_to_none=True)
            self._take_back(backup)
            raise
        return self.ranks.totals(self._totals, largest=("gap_max",))

    def _update(self, group: Sequence[Item], step: int, *, single: bool, progress: Signals, share: float) -> None:
        self.optimizer.zero_grad(set_to_none=True)
        cut = batches(group, self.learn.tokens_per_batch, self.learn.aggregate, self.ranks.world)
        for batch, counts in self.ranks.deal(cut):
            one = (batch if counts else batch.silenced()).to(self.policy.device)
            with self.ranks.together():
                loss = self._loss(one, on=self.policy_on(step), single=single, share=share)
                progress.check()  # only here: the other ranks wait for this one's part of the weights
                if not bool(torch.isfinite(loss)):
                    raise BadStep("the loss is not finite")
            if loss.requires_grad:
                (loss * self.ranks.world).backward()  # FSDP averages gradients over the ranks
            progress.beat()
        if any(p.grad is not None for p in self.weights):
            norm = float(whole(nn.utils.clip_grad_norm_(self.weights, self.learn.max_grad_norm)))
            if not math.isfinite(norm):
                raise BadStep("grad_norm is not finite")
            self._note("grad_norm", norm * share)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        # also what other ranks have read: in a later epoch it may come to this one
        self._read_items.update(id(part) for item in group for part in (item, *item.branches))

    def _fit_critic(self, rate: float) -> None:
        """Let the critic learn from the step's states, which the policy's updates have computed."""
        critic, none = self.policy.critic, self.policy.no_states()
        rows = {}
        for name in critic.names:
            states, targets = zip(*self._rows.get(name, [none]), strict=True)
            rows[name] = (torch.cat(states), torch.cat(targets))
        self._rows.clear()
        for name, number in critic.fit(rows, rate, self.ranks).items():
            self._note(name, number)
        if critic.optimizer:
            self._note("critic_lr", rate)

    def _loss(self, batch: Batch, *, on: bool, single: bool, share: float) -> Tensor:
        """Return the batch's part of the update's loss; on = the policy learns, too."""
        policy, learn = self.policy, self.learn
        with torch.set_grad_enabled(on):
            hidden = policy.hidden(batch.ids, layout=batch.layout)
            before = hidden[0, batch.before]
            grad = on and learn.ent_coef > 0
            logp, entropy = policy.logprobs(before, batch.targets, choices=batch.choices, entropy_grad=grad)
        finite = bool(torch.isfinite(logp).all())
        old = logp.detach() if single else batch.streams["old"]
        terms = self._policy_terms(batch, logp, old, share)
        terms["entropy_bonus"] = -learn.ent_coef * (batch.streams["sampled_weight"] * entropy).sum()
        if self._read_items.isdisjoint(map(id, batch.items)):
            batch.note_entropy(entropy)
        self._add("entropy", (batch.streams["sampled_weight"] * entropy.detach()).sum(), share)
        loss = torch.stack(list(terms.values())).sum() if on else hidden.new_zeros((), dtype=torch.float32)
        with torch.set_grad_enabled(on and learn.critic_backbone):
            value_loss = self._value_loss(batch, hidden, share)
        loss = loss + learn.vf_coef * value_loss
        if not finite:  # only here: the other ranks wait where the starting model is read
            raise BadStep("a log-probability is not finite")
        self._add("loss", loss.detach(), share)
        return loss

    def _value_loss(self, batch: Batch, hidden: Tensor, share: float) -> Tensor:
        """Return the value loss, and keep the states that the critic is fitted to; each trace counts once a step."""
        critic, total = self.policy.critic, hidden.new_zeros((), dtype=torch.float32)
        if not batch.values and not (critic and self.ranks.many):  # other ranks may read the starting model
            return total
        features = self.policy.features(batch.ids, hidden, batch.layout)
        fresh = self._read_items.isdisjoint(map(id, batch.items))
        for name, (at, targets, weights) in batch.values.items():
            states = features[0, at]
            if fresh:
                self._rows.setdefault(name, []).append((states.detach().float(), targets))
            error = (weights * losses.value(critic.value(name, states), targets)).sum()
            self._add(f"value_loss_{name}", error.detach(), share)
            total = total + error
        return total

    def _policy_terms(self, batch: Batch, logp: Tensor, old: Tensor, share: float) -> dict[str, Tensor]:
        learn, streams = self.learn, batch.streams
        engine = torch.where(streams["engine"].isnan(), old, streams["engine"])  # a teacher's text was not sampled
        correction = losses.importance_weight(old, engine, learn.importance_cap, learn.importance_outlier)
        capped = (old - engine).exp() > learn.importance_cap
        surrogate, clipping = losses.ppo_clip(logp, old, streams["ppo"], learn.clip, learn.dual_clip)
        terms = {
            "ppo_loss": (streams["ppo_weight"] * correction * surrogate).sum(),
            "reinforce_loss": (
                streams["reinforce_weight"] * correction * losses.reinforce(logp, streams["reinforce"])
            ).sum(),
            "nll_loss": (streams["nll_weight"] * losses.nll(logp, streams["nll"])).sum(),
        }
        sampled = streams["sampled_weight"]
        counted = sampled > 0
        if learn.kl in ("k2", "k3") and learn.kl_coef > 0:
            distance = losses.kl(learn.kl, logp[counted], streams["reference"][counted])
            terms[f"kl_loss_{learn.kl}"] = learn.kl_coef * (sampled[counted] * distance).sum()
        for name, term in terms.items():
            self._add(name, term.detach(), share)
        ratio = (logp.detach() - old)[counted]
        gap = (old - engine)[counted].abs()
        self._add("clipfrac", (streams["ppo_weight"] * clipping).sum(), share)
        self._add("approx_kl", (sampled[counted] * (ratio.exp() - 1 - ratio)).sum(), share)
        self._add("importance", (sampled[counted] * correction[counted]).sum(), share)
        self._add("capped", (sampled * capped).sum(), share)
        if learn.importance_outlier:
            self._add("masked", (sampled * (correction == 0)).sum(), share)
        self._add("gap_mean", (sampled[counted] * gap).sum(), share)
        self._totals["gap_max"] = max(self._totals.get("gap_max", 0.0), float(gap.max()) if len(gap) else 0.0)
        if batch.items and bool(streams["reference"][counted].isfinite().all()):
            self._add(
                "kl",
                (sampled[counted] * losses.kl("k3", logp.detach()[counted], streams["reference"][counted])).sum(),
                share,
            )
        return terms

    def _note(self, name: str, value: float) -> None:
        """Add what all ranks know alike, so that the sum over the ranks has it once."""
        if self.ranks.first:
            self._add(name, value, 1.0)

    def _add(self, name: str, value: Tensor | float, share: float) -> None:
        self._totals[name] = self._totals.get(name, 0.0) + float(value) * share

    def _keep(self) -> tuple[list[Tensor], dict[str, object]]:
        return [p.detach().clone() for p in self.weights], copy.deepcopy(self.optimizer.state_dict())

    @torch.no_grad()
    def _take_back(self, backup: tuple[list[Tensor], dict[str, object]] | None) -> None:
        if backup is not None:
            for parameter, old in zip(self.weights, backup[0], strict=True):
                parameter.copy_(old)
            self.optimizer.load_state_dict(backup[1])
