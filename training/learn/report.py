"""What a step leaves behind in numbers and files: its line of metrics, and its episodes with credit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from training.learn.progress import Progress, rounded
from training.learn.score import Played

if TYPE_CHECKING:
    from training.records import Episode, Floats, Seat


def outcome_metrics(played: Sequence[Played]) -> dict[str, float]:
    """Return what happened in a step's games: rewards, shares of turns, and the mean of each of the game's metrics.

    `failing` is the share of turns that failed legality or a quality filter; `parse_rate` is the games' own, else the
    share of legal turns.
    """
    good = [one for one in played if one.score is not None]
    found = {"episodes": float(len(good)), "errors": float(len(played) - len(good))}
    if not good:
        return found
    names = {name for one in good for name in one.episode.metrics}
    means = {
        name: _mean([o.episode.metrics[name] for o in good if name in o.episode.metrics]) for name in sorted(names)
    }
    returns: dict[int, list[float]] = {}
    for one in good:
        for seat, value in (one.score.returns if one.score else {}).items():
            returns.setdefault(seat, []).append(value)
    legal = [turn.passed for one in good for turn in one.episode.turns]
    passed = [ok for one in good if one.score for ok in one.score.passed]
    sampled = sum(sum(trace.mask) for one in good for trace in one.episode.traces)
    return {
        "parse_rate": _mean(legal),
        **means,
        **found,
        "reward": _mean([value for values in returns.values() for value in values]),
        **{f"reward_{seat}": _mean(values) for seat, values in sorted(returns.items())},
        "turns": len(legal) / len(good),
        "failing": 1 - _mean(passed) if passed else 0.0,
        "branches": float(sum(trace.parent is not None for one in good for trace in one.episode.traces)),
        "reply_tokens": sampled / max(1, len(legal)),
        "sampled_tokens": float(sampled),
        "trace_tokens": float(sum(len(trace.tokens) for one in good for trace in one.episode.traces)),
    }


def credit_metrics(played: Sequence[Played]) -> dict[str, float]:
    """Return the advantages' mean and spread, and how much of its targets' variance each value head explains."""
    advantages: list[Floats] = []
    targets: dict[str, list[Floats]] = {}
    errors: dict[str, list[Floats]] = {}
    for one in played:
        for number, item in (one.items or {}).items():
            if item.credit.ppo is not None:
                advantages.append(item.credit.ppo[item.sampled])
            for head, mask in item.credit.value_mask.items():
                target = item.credit.value_targets[head][mask]
                values = one.scored.values[head][number][mask] if one.scored else target
                targets.setdefault(head, []).append(target)
                errors.setdefault(head, []).append(target - values)
    found = {}
    if advantages:
        every = np.concatenate(advantages)
        found = {"advantage_mean": float(every.mean()), "advantage_std": float(every.std())}
    for head, parts in targets.items():
        spread = float(np.concatenate(parts).var())
        if spread > 1e-12:
            found[f"explained_variance_{head}"] = 1 - float(np.concatenate(errors[head]).var()) / spread
    return found


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([float(value) for value in values]))


def write_episodes(progress: Progress, step: int, played: Sequence[Played]) -> None:
    """Append every episode of the step, failed ones too, with what was learned from it."""
    for one in played:
        progress.episode(step, one.number, _record(one), summary(one.episode, one.score.returns if one.score else {}))


def _record(one: Played) -> dict[str, Any]:
    record: dict[str, Any] = {"version": 1, "episode": one.episode.to_dict(), "returns": {}, "credit": []}
    if one.score is None:
        return record
    record["returns"] = {str(seat): value for seat, value in one.score.returns.items()}
    record["turn_rewards"], record["passed"] = list(one.score.turn_rewards), list(one.score.passed)
    record["judgments"] = [judgment.to_dict() for judgment in one.score.judgments]
    record["credit"] = [_credit(one, number) for number in range(len(one.episode.traces))]
    return record


def _credit(one: Played, number: int) -> dict[str, Any] | None:
    """Return one trace's credit, one number a token; a value belongs to the state *before* its token."""
    item = (one.items or {}).get(number)
    if item is None or one.scored is None:
        return None
    values = {head: rounded(np.concatenate([[0.0], rows[number][:-1]])) for head, rows in one.scored.values.items()}
    found: dict[str, Any] = {"values": values, "turn_advantages": _by_turn(item.credit.turn_advantages)}
    streams = {"advantages": item.credit.ppo, "reinforce": item.credit.reinforce, "nll": item.credit.nll}
    streams |= {"logprobs": item.old, "reference": item.reference, "entropy": item.entropy}
    return found | {name: rounded(stream) for name, stream in streams.items() if stream is not None}


def _by_turn(advantages: Mapping[int, float]) -> dict[str, float]:
    return {str(turn): round(advantage, 5) for turn, advantage in advantages.items()}


def summary(episode: Episode, returns: Mapping[Seat, float]) -> dict[str, Any]:
    """Return what the index says of an episode, and lists show without opening its record."""
    return {
        "scenario": episode.scenario.id,
        "returns": {str(seat): value for seat, value in returns.items()},
        "turns": len(episode.turns),
        "refused": sum(not turn.passed for turn in episode.turns),
        "metrics": episode.metrics,
        "error": episode.error.to_dict() if episode.error else None,
    }
