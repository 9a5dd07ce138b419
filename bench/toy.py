"""The toy of the miniature: K turns of T tokens, and one token of the first turn decides the whole reward.

The reward is 1 if the second token of turn 1 is the right action of `actions`, else 0. All later tokens are noise that
a form of credit must learn to ignore. Credit, batches and loss are the project's own (`methods.omar`, `learn.batch`,
`learn.losses`); the model is a small recurrent network that policy and value heads share.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from training.learn import losses
from training.learn.batch import Item, batches
from training.methods import Method
from training.methods.omar import OmarConfig
from training.records import Episode, Move, Scenario, ScoredEpisode, Trace, Turn

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

DECIDES, RIGHT = 1, 0
"""Place of the deciding token within turn 1, and the action that is right there."""


@dataclass(frozen=True, slots=True)
class Toy:
    """The size of the task and of one run. `reach` is compared with the mean reward of the last `window` steps."""

    turns: int = 8
    tokens: int = 4
    actions: int = 8
    episodes: int = 32
    hidden: int = 48
    lr: float = 3e-3
    critic_lr: float = 3e-3
    critic_warmup: int = 10
    vf_coef: float = 0.5
    reach: float = 0.9
    window: int = 5
    most_steps: int = 1500

    @property
    def pattern(self) -> tuple[int, ...]:
        """The turn of each position: -1 for an observation, then the turn's tokens."""
        return tuple(k if t else -1 for k in range(self.turns) for t in range(self.tokens + 1))


class Net(nn.Module):
    """A GRU over tokens with a policy head and linear value heads that start at zero."""

    def __init__(self, toy: Toy, heads: tuple[str, ...]) -> None:
        super().__init__()
        self.embed = nn.Embedding(toy.actions + 1, toy.hidden)
        self.trunk = nn.GRU(toy.hidden, toy.hidden, batch_first=True)
        self.policy = nn.Linear(toy.hidden, toy.actions)
        self.heads = nn.ModuleDict({name: nn.Linear(toy.hidden, 1) for name in heads})
        for parameter in self.heads.parameters():
            nn.init.zeros_(parameter)

    def states(self, ids: Tensor) -> Tensor:
        """Return the state after each token, (B, L, H)."""
        states: Tensor = self.trunk(self.embed(ids))[0]
        return states

    def logp(self, states: Tensor) -> Tensor:
        """Return log-probabilities of the actions after each state, (…, A)."""
        return torch.log_softmax(self.policy(states), dim=-1)


def steps_to_reach(config: OmarConfig, seed: int, toy: Toy) -> int | None:
    """Return the training steps until the mean reward is `reach`, or None if `most_steps` are not enough."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        method = config.build()
        net = Net(toy, method.needs.critic)
        heads = list(net.heads.parameters())
        trunk = [p for name, p in net.named_parameters() if not name.startswith("heads.")]
        groups = [{"params": trunk, "lr": toy.lr}] + ([{"params": heads, "lr": toy.critic_lr}] if heads else [])
        optimizer = torch.optim.Adam(groups)
        recent: deque[float] = deque(maxlen=toy.window)
        for step in range(1, toy.most_steps + 1):
            warm = bool(heads) and step <= toy.critic_warmup
            recent.append(_step(net, method, optimizer, toy, learn=not warm))
            if len(recent) == toy.window and float(np.mean(recent)) >= toy.reach:
                return step
    return None


def _step(net: Net, method: Method, optimizer: torch.optim.Optimizer, toy: Toy, *, learn: bool) -> float:
    """Play a batch, credit it, update; return its mean reward."""
    ids, logps, states = _play(net, toy)
    rewards = (ids[:, 1 + DECIDES] == RIGHT).double().numpy()
    values = {name: head(states).squeeze(-1).detach().double().numpy() for name, head in net.heads.items()}
    scored = [_scored(toy, n, ids[n], logps[n], float(rewards[n]), values) for n in range(toy.episodes)]
    items = [Item(episode.episode.traces[0], (n, 0)) for n, episode in enumerate(scored)]
    for n, episode in enumerate(scored):
        (credit,) = method.credit([episode])
        trace_credit = credit.traces[0]
        assert trace_credit is not None, "the toy has one learning trace per episode"
        items[n].credit = trace_credit
    _update(net, optimizer, items, toy, learn=learn)
    return float(rewards.mean())


@torch.no_grad()
def _play(net: Net, toy: Toy) -> tuple[Tensor, NDArray[np.float64], Tensor]:
    """Return token ids (B, L), their log-probabilities (0 for observations) and the states after them."""
    memory: Tensor | None = None
    ids: list[Tensor] = []
    logps: list[Tensor] = []
    states: list[Tensor] = []
    for turn in toy.pattern:
        if turn < 0:
            token = torch.full((toy.episodes,), toy.actions)
            logp = torch.zeros(toy.episodes)
        else:
            policy = net.logp(states[-1])
            token = torch.multinomial(policy.exp(), 1).squeeze(1)
            logp = policy.gather(1, token[:, None]).squeeze(1)
        state, memory = net.trunk(net.embed(token)[:, None], memory)
        ids.append(token)
        logps.append(logp)
        states.append(state[:, 0])
    return torch.stack(ids, 1), torch.stack(logps, 1).double().numpy(), torch.stack(states, 1)


_SCENARIO = Scenario(id="toy", game="toy", seats=("learner",))
_MOVE = Move(action="say")


def _scored(
    toy: Toy, n: int, ids: Tensor, logps: NDArray[np.float64], reward: float, values: dict[str, NDArray[np.float64]]
) -> ScoredEpisode:
    """Return one episode as the trainer would pass it to a method."""
    trace = Trace(
        seat=0,
        tokens=tuple(ids.tolist()),
        mask=tuple(int(turn >= 0) for turn in toy.pattern),
        turn=toy.pattern,
        logprobs=tuple(logps.tolist()),
    )
    turns = tuple(Turn(seat=0, reply="", move=_MOVE, passed=True) for _ in range(toy.turns))
    return ScoredEpisode(
        episode=Episode(scenario=_SCENARIO, turns=turns, traces=(trace,), returns={0: reward}),
        returns={0: reward},
        turn_rewards=(0.0,) * toy.turns,
        passed=(True,) * toy.turns,
        logprobs=[logps],
        values={name: [rows[n]] for name, rows in values.items()},
    )


def _update(net: Net, optimizer: torch.optim.Optimizer, items: list[Item], toy: Toy, *, learn: bool) -> None:
    """Do one optimizer step on the project's loss over the batch."""
    optimizer.zero_grad(set_to_none=True)
    for batch in batches(items, 1_000_000, "token_mean"):
        states = net.states(batch.ids.view(len(batch.items), -1)).flatten(0, 1)  # games are of one length
        loss = states.new_zeros(())
        if learn:
            every = net.logp(states[batch.before])
            logp = every.gather(1, batch.targets[:, None]).squeeze(1)
            surrogate, _ = losses.ppo_clip(logp, logp.detach(), batch.streams["ppo"], 0.2)
            loss = (batch.streams["ppo_weight"] * surrogate).sum()
        for name, (at, targets, weights) in batch.values.items():
            prediction = net.heads[name](states[at]).squeeze(-1)
            loss = loss + toy.vf_coef * (weights * losses.value(prediction, targets)).sum()
        loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
