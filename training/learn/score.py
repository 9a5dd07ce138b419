"""From episodes to scored episodes and credit: rewards, measured log-probabilities and values, the method's credit.

An episode that could not be scored (`JudgeError` and its kin) becomes an error record and takes no part in the step.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from training.errors import OutsideError
from training.learn.arguments import argument_masks
from training.learn.batch import Item
from training.learn.learner import Learners
from training.learn.update import BadStep, Signals
from training.methods import Method
from training.opponent_sections import TEACHER
from training.records import LEARNER, Episode, EpisodeCredit, ErrorRecord, Needs, ScoredEpisode, Seat
from training.rewards import Reward, Score
from training.seeding import derive

if TYPE_CHECKING:
    from training.records import Floats
    from training.run_sections import LearnSection


@dataclass(slots=True)
class Rollout:
    """One episode on its way through a step; `score` None = it has an error. `items` are by index of the trace.

    `policies` are the names of the policies by seat; empty where the learner plays all of them.
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
        """The learner's seats, those included that a teacher played in its place."""
        return frozenset(
            seat
            for seat in range(len(self.episode.scenario.seats))
            if not self.policies or self.policies[seat] in (LEARNER, TEACHER)
        )


async def score(
    episodes: Sequence[Episode],
    reward: Reward,
    seed: int,
    step: int,
    *,
    known: Mapping[int, Score] | None = None,
    on_scored: Callable[[int, Score | None], None] = lambda number, score: None,
) -> list[Rollout]:
    """Score every episode that ended well; the others keep their error.

    `known` are scores from an earlier attempt, by the episode's number. `on_scored` is called with the number and the
    score of each other episode, None where it could not be scored.
    """
    earlier = known or {}

    async def scored(number: int, episode: Episode) -> Rollout:
        if episode.error is not None:
            return Rollout(number, episode)
        if number in earlier:
            return Rollout(number, episode, earlier[number])
        result: Score | None = None
        try:
            result = await reward.score(episode, derive(seed, "reward", step, number))
        except OutsideError as error:
            record = ErrorRecord(kind=error.kind, message=str(error))
            return Rollout(number, episode.model_copy(update={"error": record, "metrics": {}}))
        finally:
            on_scored(number, result)
        return Rollout(number, episode, result)

    return list(await asyncio.gather(*(scored(number, episode) for number, episode in enumerate(episodes))))


def learnable(rollouts: Sequence[Rollout]) -> list[Item]:
    """Set the items of the learner's traces; return those in which it sampled, in order."""
    items: list[Item] = []
    for rollout in rollouts:
        traces = rollout.episode.traces if rollout.score is not None else ()
        rollout.items = {
            number: Item(
                trace,
                (rollout.number, trace.seat),
                player=rollout.episode.player(trace.seat),
                offline=bool(rollout.policies) and rollout.policies[trace.seat] == TEACHER,
            )
            for number, trace in enumerate(traces)
            if trace.policy == LEARNER
        }
        items += [item for item in rollout.items.values() if item.sampled.any()]
    return items


def rows(rollouts: Sequence[Rollout], *, imitates: bool = False) -> list[Item]:
    """Return what the updates read once there is credit, in order, each item with the branches that it carries.

    A trace takes part if the learner sampled in it or a method gave its tokens `nll` credit; of a method that only
    imitates, those with credit. One that continues a prefix of another is a branch of that one, which is then read
    whether or not it has credit itself.
    """
    read: list[Item] = []
    for rollout in rollouts:
        items = rollout.items or {}
        for item in items.values():
            item.branches = []
        heads: set[int] = set()
        for number, item in items.items():
            if not (item.mask("nll").any() if imitates else item.learns):
                continue
            if item.trace.prefix is None:
                heads.add(number)
            else:
                heads.add(item.trace.prefix[0])
                items[item.trace.prefix[0]].branches.append(item)
        read += [items[number] for number in sorted(heads)]
    return read


async def measured(
    rollouts: Sequence[Rollout],
    learners: Learners,
    needs: Needs,
    learn: LearnSection,
    *,
    old: bool,
    progress: Signals,
) -> list[Item]:
    """Forward passes before credit: values and, where wanted, the trainer's and the reference's log-probabilities.

    Sets `scored` on every episode with a score; returns the items in which the learner sampled, the only ones that are
    measured. A number that is not finite raises `BadStep`.
    """
    items = learnable(rollouts)
    old = (old and not needs.imitates) or learn.kl == "k1"
    values = await learners.measure(items, old=old, reference=learn.reads_reference, progress=progress)
    by_item = {id(item): by_head for item, by_head in zip(items, values, strict=True)}
    for item in items:
        present = [row for row in (item.old, item.reference, *by_item[id(item)].values()) if row is not None]
        if not all(np.isfinite(row).all() for row in present):
            raise BadStep("a log-probability or value is not finite")
    for rollout in rollouts:
        if rollout.score is not None and rollout.items is not None:
            rollout.scored = _scored(
                rollout, rollout.score, rollout.items, by_item, needs, learn.kl_coef if learn.kl == "k1" else 0.0
            )
            if needs.arguments:
                decode = partial(learners.tokenizer.decode, skip_special_tokens=True)
                rollout.scored = replace(rollout.scored, arguments=argument_masks(rollout.episode, decode))
    return items


def _scored(
    rollout: Rollout,
    score: Score,
    items: dict[int, Item],
    values: dict[int, dict[str, Floats]],
    needs: Needs,
    penalty: float,
) -> ScoredEpisode:
    items = {number: item for number, item in items.items() if id(item) in values}
    traces = range(len(rollout.episode.traces))
    zeros = [np.zeros(len(trace.tokens)) for trace in rollout.episode.traces]
    per_head = {h: [values[id(items[i])][h] if i in items else zeros[i] for i in traces] for h in needs.critic}
    old = [items[i].old if i in items else None for i in traces]
    paid = [_penalty(items[i], penalty) if i in items else zeros[i] for i in traces] if penalty else []
    return ScoredEpisode(
        episode=rollout.episode,
        returns=score.at_end(rollout.episode),
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


def give_credit(rollouts: Sequence[Rollout], method: Method) -> None:
    """Let the method credit its groups; set `credit` on episodes and items. A number not finite raises `BadStep`."""
    groups: dict[object, list[Rollout]] = {}
    for rollout in rollouts:
        if rollout.scored is not None:
            groups.setdefault(_group(rollout, method.needs), []).append(rollout)
    for group in groups.values():
        credits_ = method.credit([rollout.scored for rollout in group if rollout.scored is not None])
        for rollout, credit in zip(group, credits_, strict=True):
            rollout.credit = credit
            for number, item in (rollout.items or {}).items():
                if (trace := credit.traces[number]) is not None:
                    arrays = [
                        a
                        for a in (trace.ppo, trace.reinforce, trace.nll, *trace.value_targets.values())
                        if a is not None
                    ]
                    if not all(np.isfinite(array).all() for array in arrays):
                        raise BadStep("an advantage or value target is not finite")
                    item.credit = trace


def begin_critic(rollouts: Sequence[Rollout], unfitted: Sequence[str], method: Method) -> dict[str, float]:
    """Let heads that were never fitted predict the mean of their targets in these episodes; return the means by head.

    A head's targets may depend on another head's values (a token's on its turn's), so this takes one pass per head.
    Fitted heads and the method's state stay as they were.
    """
    state, means = copy.deepcopy(method.state_dict()), dict[str, float]()
    for _ in unfitted:
        give_credit(rollouts, method)
        method.load_state_dict(copy.deepcopy(state))
        targets: dict[str, list[Floats]] = {}
        for item in (item for rollout in rollouts for item in (rollout.items or {}).values()):
            for head, mask in item.credit.value_mask.items():
                targets.setdefault(head, []).append(item.credit.value_targets[head][mask])
        means = {h: float(np.concatenate(targets[h]).mean()) for h in unfitted if sum(map(len, targets.get(h, ())))}
        for rollout in rollouts:
            if rollout.scored is not None:
                constant = {
                    h: [np.full_like(row, means.get(h, 0.0)) if h in unfitted else row for row in rows]
                    for h, rows in rollout.scored.values.items()
                }
                rollout.scored = replace(rollout.scored, values=constant)
    return means


def _group(rollout: Rollout, needs: Needs) -> object:
    scenario = rollout.episode.scenario
    if needs.group == "conversation":
        return rollout.number
    return (scenario.id, scenario.seed) if needs.group == "start" else scenario.game
