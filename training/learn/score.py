"""From episodes to scored episodes and credit: rewards, measured log-probabilities and values, the method's credit.

An episode that could not be scored (`JudgeError` and its kin) becomes an error record and takes no part in the step.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from training.errors import OutsideError
from training.learn.batch import Item
from training.learn.critic import Critic
from training.learn.forward import measure
from training.learn.policy import Policy
from training.learn.update import BadStep
from training.methods import Method
from training.records import LEARNER, Episode, EpisodeCredit, ErrorRecord, Needs, ScoredEpisode, Seat
from training.rewards import Reward, Score
from training.seeding import derive

if TYPE_CHECKING:
    from training.records import Floats


@dataclass(slots=True)
class Rollout:
    """One episode on its way through a step; `score` None = it has an error. `items` are by index of the trace.

    `policies` are who sat at each seat, by name; empty where the learner held all of them.
    """

    number: int
    episode: Episode
    score: Score | None = None
    items: dict[int, Item] | None = None
    scored: ScoredEpisode | None = None
    credit: EpisodeCredit | None = None
    policies: tuple[str, ...] = ()

    @property
    def learners(self) -> frozenset[Seat]:
        """The seats that the learner held."""
        return frozenset(
            seat
            for seat in range(len(self.episode.scenario.seats))
            if not self.policies or self.policies[seat] == LEARNER
        )


async def score(
    episodes: Sequence[Episode], reward: Reward, seed: int, step: int, *, seen: Callable[[], None] = lambda: None
) -> list[Rollout]:
    """Score every episode that ended well; the others keep their error. `seen` is called after each."""

    async def one(number: int, episode: Episode) -> Rollout:
        if episode.error is not None:
            return Rollout(number, episode)
        try:
            found = await reward.score(episode, derive(seed, "reward", step, number))
        except OutsideError as error:
            record = ErrorRecord(kind=error.kind, message=str(error))
            return Rollout(number, episode.model_copy(update={"error": record, "metrics": {}}))
        finally:
            seen()
        return Rollout(number, episode, found)

    return list(await asyncio.gather(*(one(number, episode) for number, episode in enumerate(episodes))))


def learnable(played: Sequence[Rollout]) -> list[Item]:
    """Set and return the items of the learner's traces, in order."""
    found: list[Item] = []
    for one in played:
        traces = one.episode.traces if one.score is not None else ()
        one.items = {
            number: Item(trace, (one.number, trace.seat))
            for number, trace in enumerate(traces)
            if trace.policy == LEARNER and any(trace.mask)
        }
        found += one.items.values()
    return found


def measured(
    played: Sequence[Rollout], policy: Policy, needs: Needs, *, old: bool, beat: Callable[[int], None]
) -> list[Item]:
    """Forward passes before credit: values and, where wanted, the trainer's and the reference's log-probabilities.

    Sets `scored` on every episode with a score; returns the items. A number that is not finite raises `BadStep`.
    """
    items = learnable(played)
    learn = policy.learn
    values = measure(policy, items, old=old or learn.kl == "k1", reference=learn.reads_reference, beat=beat)
    by_item = {id(item): found for item, found in zip(items, values, strict=True)}
    for item in items:
        known = [row for row in (item.old, item.reference, *by_item[id(item)].values()) if row is not None]
        if not all(np.isfinite(row).all() for row in known):
            raise BadStep("a log-probability or value is not finite")
    for one in played:
        if one.score is not None and one.items is not None:
            one.scored = _scored(one, one.score, one.items, by_item, needs, learn.kl_coef if learn.kl == "k1" else 0.0)
    return items


def _scored(
    one: Rollout,
    score: Score,
    items: dict[int, Item],
    values: dict[int, dict[str, Floats]],
    needs: Needs,
    penalty: float,
) -> ScoredEpisode:
    traces = range(len(one.episode.traces))
    zeros = [np.zeros(len(trace.tokens)) for trace in one.episode.traces]
    per_head = {h: [values[id(items[i])][h] if i in items else zeros[i] for i in traces] for h in needs.critic}
    old = [items[i].old if i in items else None for i in traces]
    paid = [_penalty(items[i], penalty) if i in items else zeros[i] for i in traces] if penalty else []
    return ScoredEpisode(
        episode=one.episode,
        returns=score.returns,
        turn_rewards=score.turn_rewards,
        passed=score.passed,
        logprobs=[zeros[i] if row is None else row for i, row in enumerate(old)],
        values=per_head,
        token_rewards=paid,
    )


def _penalty(item: Item, coefficient: float) -> Floats:
    """Return −coefficient·(log π − log π_ref) at sampled tokens: the divergence as a reward, token by token."""
    if item.old is None or item.reference is None:
        raise BadStep("the penalty needs the reference's log-probabilities")
    return -coefficient * (item.old - item.reference)


def give_credit(played: Sequence[Rollout], method: Method) -> None:
    """Let the method credit its groups; set `credit` on episodes and items. A number not finite raises `BadStep`."""
    groups: dict[object, list[Rollout]] = {}
    for one in played:
        if one.scored is not None:
            groups.setdefault(_group(one, method.needs), []).append(one)
    for group in groups.values():
        credits_ = method.credit([one.scored for one in group if one.scored is not None])
        for one, credit in zip(group, credits_, strict=True):
            one.credit = credit
            for number, item in (one.items or {}).items():
                if (trace := credit.traces[number]) is not None:
                    arrays = [
                        a
                        for a in (trace.ppo, trace.reinforce, trace.nll, *trace.value_targets.values())
                        if a is not None
                    ]
                    if not all(np.isfinite(array).all() for array in arrays):
                        raise BadStep("an advantage or value target is not finite")
                    item.credit = trace


def begin_critic(played: Sequence[Rollout], critic: Critic, method: Method) -> None:
    """Let a critic that was never fitted predict the mean of each head's targets, in these episodes and from now on.

    A head's targets may depend on another head's values (a token's on its turn's), so this takes one pass per head.
    The method's state stays as it was.
    """
    state = copy.deepcopy(method.state_dict())
    for _ in critic.names:
        give_credit(played, method)
        method.load_state_dict(copy.deepcopy(state))
        targets: dict[str, list[Floats]] = {}
        for item in (item for one in played for item in (one.items or {}).values()):
            for head, mask in item.credit.value_mask.items():
                targets.setdefault(head, []).append(item.credit.value_targets[head][mask])
        means = {head: float(np.concatenate(rows).mean()) for head, rows in targets.items() if sum(map(len, rows))}
        critic.begin(means)
        for one in played:
            if one.scored is not None:
                constant = {
                    h: [np.full_like(row, means.get(h, 0.0)) for row in rows] for h, rows in one.scored.values.items()
                }
                one.scored = replace(one.scored, values=constant)


def _group(one: Rollout, needs: Needs) -> object:
    scenario = one.episode.scenario
    if needs.group == "conversation":
        return one.number
    return (scenario.id, scenario.seed) if needs.group == "start" else scenario.game
