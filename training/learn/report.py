"""What a step leaves behind in numbers and files: its line of metrics, and its episodes with credit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from training.attempts.progress import Progress, rounded
from training.learn.score import Rollout
from training.methods.message_effects import by_roles, per_message
from training.opponent_sections import TEACHER
from training.records import LEARNER
from training.rollout.pool import column, title
from training.rollout.roles import Numbers, by_role, seat_numbers

if TYPE_CHECKING:
    from pathlib import Path

    from training.records import Episode, Floats, Judgment, Seat


def outcome_metrics(rollouts: Sequence[Rollout], *, by_game: bool = False) -> dict[str, float]:
    """Return what happened in a step's games: rewards, shares of turns, and the mean of each of the game's metrics.

    Rewards and shares of turns are those of the learner's seats; `failing` is the share of its turns that failed
    legality or a quality filter. Numbers of a role are `name/role`; with `by_game` all numbers come once more for
    every game, as `game.name`.
    """
    good = [rollout for rollout in rollouts if rollout.score is not None]
    metrics = {"episodes": float(len(good)), "errors": float(len(rollouts) - len(good))}
    if not good:
        return metrics
    metrics |= _of_games([rollout.episode for rollout in good]) | _of_learner(good) | _by_opponent(good)
    if by_game:
        for game in sorted({rollout.episode.scenario.game for rollout in rollouts}):
            of_game = [rollout for rollout in rollouts if rollout.episode.scenario.game == game]
            metrics |= {f"{game}.{name}": value for name, value in outcome_metrics(of_game).items()}
    return metrics


def _of_games(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return the mean of every number of the games and of each seat (`won_3`), what messages changed in beliefs, and
    how many tokens the games took.
    """
    rows = [episode.metrics | _by_seat(episode) for episode in episodes]
    names = sorted({name for row in rows for name in row})
    means = {name: _mean(row[name] for row in rows if name in row) for name in names}
    traces = [trace for episode in episodes for trace in episode.traces]
    return {
        **means,
        **per_message(episodes),
        "turns": _mean(len(episode.turns) for episode in episodes),
        "branches": float(sum(trace.parent is not None for trace in traces)),
        "sampled_tokens": float(sum(sum(trace.mask) for trace in traces)),
        "trace_tokens": float(sum(len(trace.tokens) for trace in traces)),
    }


def _by_seat(episode: Episode) -> dict[str, float]:
    """Return the seats' numbers as a line of metrics names them: a line is flat, one name for each curve."""
    return {f"{name}_{seat}": value for seat, values in episode.seat_metrics.items() for name, value in values.items()}


def _of_learner(good: Sequence[Rollout]) -> dict[str, float]:
    """Return rewards and shares of turns of the learner's seats, and all numbers of a seat by role.

    `reward` is a seat's return; what its turns earn is beside it, each component as the sum over a seat's turns. A
    component of the return itself, such as a label's, is beside it, too.
    """
    returns: dict[int, list[float]] = {}
    seated: list[tuple[Episode, dict[Seat, Numbers]]] = []
    legal: list[bool] = []
    passed: list[bool] = []
    parts: dict[str, list[float]] = {}
    sampled = 0
    for rollout in good:
        episode, score = rollout.episode, rollout.score
        if score is None:
            continue
        numbers, seats = seat_numbers(episode, score.passed), sorted(rollout.learners & score.returns.keys())
        seated.append((episode, {seat: numbers[seat] | {"reward": score.returns[seat]} for seat in seats}))
        for seat in seats:
            returns.setdefault(seat, []).append(score.returns[seat])
            for name, row in score.parts.items():
                earned = [value for turn, value in zip(episode.turns, row, strict=True) if turn.seat == seat]
                parts.setdefault(name, []).append(sum(earned))
            for name, values in score.seat_parts.items():
                parts.setdefault(name, []).append(values.get(seat, 0.0))
        turns = [at for at, turn in enumerate(episode.turns) if turn.seat in rollout.learners]
        legal += [episode.turns[at].passed for at in turns]
        passed += [score.passed[at] for at in turns]
        sampled += sum(sum(trace.mask) for trace in episode.traces if trace.seat in rollout.learners)
    metrics = by_role(seated) | {
        "reward": _mean(value for values in returns.values() for value in values),
        **{f"reward_{seat}": _mean(values) for seat, values in sorted(returns.items())},
        **{f"reward_{name}": _mean(values) for name, values in parts.items()},
        "failing": 1 - _mean(passed) if passed else 0.0,
        "reply_tokens": sampled / max(1, len(legal)),
    }
    if legal:
        by_seat = [(rollout.episode.seat_metrics, seat) for rollout in good for seat in rollout.learners]
        unread = sum(numbers.get(seat, {}).get("unread", 0.0) for numbers, seat in by_seat)
        metrics |= {"parse_rate": 1 - unread / len(legal), "legal_rate": _mean(legal)}
    return metrics


def _by_opponent(good: Sequence[Rollout]) -> dict[str, float]:
    """Return the learner's mean reward and the number of games against each opponent, all past versions as one."""
    rewards: dict[str, list[float]] = {}
    for rollout in good:
        for policy in {policy for policy in rollout.policies if policy not in (LEARNER, TEACHER)}:
            values = [
                value
                for seat, value in (rollout.score.returns if rollout.score else {}).items()
                if seat in rollout.learners
            ]
            rewards.setdefault(title(policy), []).append(_mean(values))
    return {
        key: value
        for name, values in sorted(rewards.items())
        for key, value in ((f"reward_against {name}", _mean(values)), (f"games_against {name}", float(len(values))))
    }


def credit_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Return the advantages' mean and spread, also by role, and what each value head knows of its targets.

    A token's advantage is the sum over both policy terms of the loss, which push it together. `explained_variance` is
    1 − Var(error)/Var(target), which a constant error leaves as it is; `value_r2` is 1 − mean squared
    error/Var(target), which counts it.
    """
    advantages: list[Floats] = []
    by_role: dict[str, list[Floats]] = {}
    targets: dict[str, list[Floats]] = {}
    errors: dict[str, list[Floats]] = {}
    for rollout in rollouts:
        for number, item in (rollout.items or {}).items():
            streams = [stream for stream in (item.credit.ppo, item.credit.reinforce) if stream is not None]
            if streams and item.sampled.any():
                advantages.append(np.sum(streams, axis=0)[item.sampled])
                if rollout.episode.roles:
                    by_role.setdefault(rollout.episode.roles[item.trace.seat], []).append(advantages[-1])
            for head, mask in item.credit.value_mask.items():
                target = item.credit.value_targets[head][mask]
                values = rollout.scored.values[head][number][mask] if rollout.scored else target
                targets.setdefault(head, []).append(target)
                errors.setdefault(head, []).append(target - values)
    metrics = {}
    if advantages:
        every = np.concatenate(advantages)
        metrics = {"advantage_mean": float(every.mean()), "advantage_std": float(every.std())}
    metrics |= {f"advantage_mean/{role}": float(np.concatenate(rows).mean()) for role, rows in sorted(by_role.items())}
    for head, rows in targets.items():
        variance, error = float(np.concatenate(rows).var()), np.concatenate(errors[head])
        if variance > 1e-12:
            metrics[f"explained_variance_{head}"] = 1 - float(error.var()) / variance
            metrics[f"value_r2_{head}"] = 1 - float((error**2).mean()) / variance
    return metrics


def _mean(values: Iterable[float]) -> float:
    return float(np.mean([float(value) for value in values]))


def write_episodes(progress: Progress, step: int, rollouts: Sequence[Rollout]) -> None:
    """Append every episode of the step, failed ones too, with what was learned from it."""
    for rollout in rollouts:
        progress.episode(
            step,
            rollout.number,
            _record(rollout),
            summary(rollout.episode, rollout.score.returns if rollout.score else {})
            | {"policies": [column(policy) for policy in rollout.policies]},
        )


def write_evaluated(
    progress: Progress,
    step: int,
    number: int,
    episode: Episode,
    seats: Mapping[str, Sequence[Seat]],
    facts: Mapping[str, Any] | None = None,
    *,
    judgments: Sequence[Judgment] = (),
    file: Path | None = None,
) -> None:
    """Append an episode of an evaluation, from which nothing is learned; `seats` are those of each contestant.

    `facts` are added to its summary; `file` is written instead of the step's.
    """
    returns = {seat: value for seat, value in episode.returns.items() if value is not None}
    contestants = {name: list(places) for name, places in seats.items()}
    record = {
        "version": 1,
        "episode": episode.to_dict(),
        "returns": {str(seat): value for seat, value in returns.items()},
        "credit": [],
        "judgments": [judgment.to_dict() for judgment in judgments],
        "seats": contestants,
    }
    about = summary(episode, returns) | {"seats": contestants, **(facts or {})}
    progress.episode(step, number, record, about, file)


def _record(rollout: Rollout) -> dict[str, Any]:
    record: dict[str, Any] = {"version": 1, "episode": rollout.episode.to_dict(), "returns": {}, "credit": []}
    if rollout.score is None:
        return record
    record["returns"] = {str(seat): value for seat, value in rollout.score.returns.items()}
    record["turn_rewards"], record["passed"] = list(rollout.score.turn_rewards), list(rollout.score.passed)
    record["judgments"] = [judgment.to_dict() for judgment in rollout.score.judgments]
    record["credit"] = [_credit(rollout, number) for number in range(len(rollout.episode.traces))]
    return record


def _credit(rollout: Rollout, number: int) -> dict[str, Any] | None:
    """Return one trace's credit, one number per token; a value belongs to the state *before* its token."""
    item = (rollout.items or {}).get(number)
    if item is None or not item.learns or rollout.scored is None:
        return None
    heads = rollout.scored.values if item.sampled.any() else {}
    values = {head: rounded(np.concatenate([[0.0], rows[number][:-1]])) for head, rows in heads.items()}
    credit: dict[str, Any] = {"values": values, "turn_advantages": _by_turn(item.credit.turn_advantages)}
    streams = {"advantages": item.credit.ppo, "reinforce": item.credit.reinforce, "nll": item.credit.nll}
    streams |= {"logprobs": item.old, "reference": item.reference, "entropy": item.entropy}
    return credit | {name: rounded(stream) for name, stream in streams.items() if stream is not None}


def _by_turn(advantages: Mapping[int, float]) -> dict[str, float]:
    return {str(turn): round(advantage, 5) for turn, advantage in advantages.items()}


def summary(episode: Episode, returns: Mapping[Seat, float]) -> dict[str, Any]:
    """Return what the index says of an episode, and lists show without opening its record."""
    return {
        "scenario": episode.scenario.id,
        "seed": episode.scenario.seed,
        "returns": {str(seat): value for seat, value in returns.items()},
        "turns": len(episode.turns),
        "refused": sum(not turn.passed for turn in episode.turns),
        "metrics": episode.metrics,
        "seat_metrics": {str(seat): values for seat, values in episode.seat_metrics.items()},
        "roles": list(episode.roles),
        "message_effects": by_roles(episode),
        "error": episode.error.to_dict() if episode.error else None,
    }
