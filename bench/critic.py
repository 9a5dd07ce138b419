"""The critic: how well hidden states predict a seat's return, and how much of that the value heads reach step by step.

The conversations are those of a dataset, read as traces, or those that a run has played. Each turn's state is the
hidden state before its first token. Its target is the discounted sum of what the seat earns from this turn on, as in
training. `bound` is the R² of a linear probe: ridge regression on the states of the other folds' scenarios
(cross-validated, strength chosen inside each fold). It is no upper limit: another regression, or more conversations,
may explain more. `reached` feeds the conversations step by step, in several orders and as they were played, and
predicts each step before learning from it, as training does. Both are R² against the mean of what was learned from.
States are computed once with a frozen model; in a run they change with the policy.
"""

from __future__ import annotations

import gzip
import hashlib
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from bench.recorded_conversations import conditions, device, use_threads
from training import bases, dataset
from training.engines.local.loading import load_merged, load_tokenizer
from training.errors import BadInput
from training.learn.critic import Critic
from training.methods.advantages import gae
from training.methods.trajectories import seat_trajectories
from training.records import LEARNER, Episode, ScoredEpisode, Trace
from training.run_sections import LearnSection
from training.rundir import RunDir
from training.seeding import rng
from training.store import loads, sha256
from training.text.conversations import traces
from training.text.template import ChatTokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from transformers import PreTrainedModel

    Floats = NDArray[np.float64]

HEAD = "turn"
FOLDS = 5
STRENGTHS = tuple(10.0 ** (power / 2) for power in range(-4, 9))
KINDS: dict[str, dict[str, Any]] = {
    "ridge": {"critic": {"kind": "ridge"}},
    "linear": {"critic": {"kind": "linear"}, "critic_lr": 1e-3, "critic_passes": 16},
    "mlp": {"critic": {"kind": "mlp"}, "critic_lr": 1e-3, "critic_passes": 16},
}


@dataclass(frozen=True, slots=True)
class States:
    """One row per turn: features (N, H), targets (N,), and the numbers of the turn's scenario and conversation."""

    features: Floats
    targets: Floats
    scenario: NDArray[np.int64]
    conversation: NDArray[np.int64]


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the probe's R², and the scores of every kind of head."""
    threads = use_threads(arguments.threads)
    states = cached(arguments)
    count = len(np.unique(states.conversation))
    if count < 2 * arguments.batch:
        raise BadInput(f"{count} conversations are fewer than two steps of {arguments.batch}", "--batch")
    if (starts := len(np.unique(states.scenario))) < 2 * FOLDS:
        raise BadInput(f"{starts} scenarios cannot be held out in {FOLDS} parts of at least two", "FILE")
    reached = {}
    for kind in KINDS:
        rows = [stepwise(states, kind, arguments.batch, order) for order in range(arguments.orders)]
        as_played = stepwise(states, kind, arguments.batch, None)
        reached[kind] = {**summary(rows), "orders": rows, "as_played": summary([as_played]) | {"steps": as_played}}
    return {
        "measurement": "critic",
        "conditions": conditions(arguments, threads),
        "dataset": {"file": arguments.dataset.name, "sha256": digest(arguments.dataset)},
        "conversations": count,
        "turns": len(states.targets),
        "gamma_turn": arguments.gamma,
        "batch": arguments.batch,
        "bound": bound(states),
        "reached": reached,
    }


def cached(arguments: Namespace) -> States:
    """Return the states from the folder `--cache`, after computing them if they are missing there."""
    if arguments.cache is None:
        return compute(arguments)
    key = f"{digest(arguments.dataset)} {arguments.model} {arguments.dtype} {arguments.conversations} {arguments.gamma}"
    file: Path = arguments.cache / f"states-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npz"
    if not file.exists():
        arguments.cache.mkdir(parents=True, exist_ok=True)
        states = compute(arguments)
        np.savez(file, **asdict(states))
    with np.load(file) as arrays:
        return States(**arrays)


@torch.no_grad()
def compute(arguments: Namespace) -> States:
    """Return the states before every turn of the first conversations."""
    folder = bases.resolve(arguments.model)
    chat = ChatTokenizer(load_tokenizer(folder))
    model = load_merged(folder, arguments.dtype).to(device())
    features, targets, scenarios, conversations = [], [], [], []
    numbers: dict[str, int] = {}
    for count, scored in enumerate(islice(played(arguments.dataset, chat), arguments.conversations)):
        number = numbers.setdefault(scored.episode.scenario.id, len(numbers))
        traces = scored.episode.traces
        hidden = [_hidden(model, trace) if trace.policy == LEARNER and any(trace.mask) else None for trace in traces]
        for trajectory in seat_trajectories(scored, scored.returns):
            earned = gae(trajectory.rewards.tolist(), [0.0] * len(trajectory.turns), arguments.gamma, 1.0)
            for turn, target in zip(trajectory.turns, earned, strict=True):
                states = hidden[turn.trace]
                assert states is not None, "trajectories are the learner's"
                features.append(states[turn.first - 1])
                targets.append(float(target))
                scenarios.append(number)
                conversations.append(count)
    if not features:
        raise BadInput("no negotiation with a result and turns", str(arguments.dataset))
    return States(np.stack(features), np.array(targets), np.array(scenarios), np.array(conversations))


def _hidden(model: PreTrainedModel, trace: Trace) -> Floats:
    ids = torch.tensor([trace.tokens], device=device())
    states: Floats = model.base_model(input_ids=ids, use_cache=False).last_hidden_state[0].double().cpu().numpy()
    return states


def played(path: Path, chat: ChatTokenizer) -> Iterator[ScoredEpisode]:
    """Yield the conversations of a dataset, or those of a run directory in the order in which they were played.

    Both seats of a dataset's conversations count, in a run's those of the learner, in a head-to-head's those of both
    models.
    """
    if not path.is_dir():
        for line in dataset.read_game(path, "negotiation"):
            for conversation in line.conversations:
                episode = conversation.episode
                yield from _scored(episode.model_copy(update={"traces": traces(episode, chat)}), {})
        return
    for episodes in _files(path):
        with gzip.open(episodes) as file:
            for record in map(loads, file):
                yield from _scored(Episode.from_dict(record["episode"]), record)


def _files(path: Path) -> list[Path]:
    """Return a dataset's file, or a run's files of episodes by step, each as the newest attempt has it."""
    if not path.is_dir():
        return [path]
    run = RunDir(path)
    files = {file.name: file for number in run.attempts() for file in run.attempt(number).index.parent.glob("*.gz")}
    return [files[name] for name in sorted(files)]


def digest(path: Path) -> str:
    """Return the hash of a dataset's bytes, or that of the hashes of a run's files of episodes."""
    hashes = [sha256(file) for file in _files(path)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def _scored(episode: Episode, record: Mapping[str, Any]) -> Iterator[ScoredEpisode]:
    """Yield the episode with its rewards, unless it failed or a seat has no result."""
    results = record.get("returns") or episode.returns
    returns = {int(seat): value for seat, value in results.items() if value is not None}
    if episode.error or len(returns) < len(episode.scenario.seats):
        return
    if all(trace.policy != LEARNER for trace in episode.traces):
        relabelled = tuple(trace.model_copy(update={"policy": LEARNER}) for trace in episode.traces)
        episode = episode.model_copy(update={"traces": relabelled})
    count = len(episode.turns) or len(episode.moves)
    yield ScoredEpisode(
        episode=episode,
        returns=returns,
        turn_rewards=tuple(record.get("turn_rewards", (0.0,) * count)),
        passed=(True,) * count,
    )


def bound(states: States) -> dict[str, Any]:
    """Return the cross-validated R² of a linear probe, with a 95 % interval over scenarios.

    The jackknife leaves out scenarios of the sums of squares and does not fit the probe again.
    """
    groups = np.unique(states.scenario)
    errors = np.zeros((len(groups), 2))
    for fold in range(FOLDS):
        held_out = np.isin(states.scenario, groups[fold::FOLDS])
        predictions = _best_ridge(states, ~held_out, states.features[held_out])
        rows = zip(states.scenario[held_out], states.targets[held_out], predictions, strict=True)
        mean = states.targets[~held_out].mean()
        for scenario, target, prediction in rows:
            errors[np.searchsorted(groups, scenario)] += ((target - prediction) ** 2, (target - mean) ** 2)
    return interval(errors) | {"folds": FOLDS, "by_scenario": errors.round(6).tolist()}


def interval(errors: Floats) -> dict[str, float]:
    """Return 1 − Σ squared errors/Σ squared deviations and its 95 % interval (delete-one jackknife, Student's t).

    `errors` has one row per scenario: its squared errors, and its squared deviations from the mean.
    """
    from scipy import stats

    total, count = errors.sum(0), len(errors)
    left_out = 1 - (total[0] - errors[:, 0]) / (total[1] - errors[:, 1])
    spread = float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))
    margin = spread * float(stats.t.ppf(0.975, count - 1))
    r2 = float(1 - total[0] / total[1])
    return {"r2": r2, "low": r2 - margin, "high": r2 + margin, "scenarios": count}


def _best_ridge(states: States, training: NDArray[np.bool_], wanted: Floats) -> Floats:
    """Fit on the rows of `training` with the strength that best predicts held-out scenarios among them."""
    x, y, groups = states.features[training], states.targets[training], states.scenario[training]
    names = np.unique(groups)
    errors = np.zeros(len(STRENGTHS))
    for fold in range(FOLDS):
        inner = np.isin(groups, names[fold::FOLDS])
        errors += ((_ridge(x[~inner], y[~inner], x[inner], STRENGTHS) - y[inner]) ** 2).sum(1)
    best = STRENGTHS[int(errors.argmin())]
    return _ridge(x, y, wanted, (best,)).ravel()


def _ridge(x: Floats, y: Floats, wanted: Floats, strengths: Sequence[float]) -> Floats:
    """Return the predictions at `wanted`, (strengths, rows), of ridge regression on standardised features."""
    mean, scale = x.mean(0), x.std(0) + 1e-9
    left, values, right = np.linalg.svd((x - mean) / scale, full_matrices=False)
    projected, inputs = left.T @ (y - y.mean()), ((wanted - mean) / scale) @ right.T
    shrunk = [values / (values**2 + strength * len(y)) * projected for strength in strengths]
    return np.array(y.mean() + np.array(shrunk) @ inputs.T)


def stepwise(states: States, kind: str, batch: int, order: int | None) -> list[list[float]]:
    """Return, for every step but the first, squared errors and squared deviations of conversations not seen before.

    Deviations are those from the mean target of earlier steps, so that R² compares with the probe's. `order` shuffles
    the scenarios; None leaves the conversations as they were played.
    """
    learn = LearnSection.from_dict(KINDS[kind])
    critic = Critic((HEAD,), states.features.shape[1], learn, order or 0)
    scenarios = list(np.unique(states.scenario))
    if order is not None:
        rng(order, "critic").shuffle(scenarios)
    of_each = {number: np.unique(states.conversation[states.scenario == number]) for number in scenarios}
    played_order = (
        sorted(np.unique(states.conversation)) if order is None else [c for s in scenarios for c in of_each[s]]
    )
    steps: list[list[float]] = []
    seen = np.zeros(0)
    for start in range(0, len(played_order) - batch + 1, batch):
        chosen = np.isin(states.conversation, played_order[start : start + batch])
        x = torch.from_numpy(states.features[chosen]).float()
        targets = states.targets[chosen]
        if len(seen):
            with torch.no_grad():
                errors = targets - critic.value(HEAD, x).double().numpy()
            steps.append([round(float((row**2).sum()), 6) for row in (errors, targets - seen.mean())])
        critic.fit({HEAD: (x, torch.from_numpy(targets).float())}, learn.critic_lr or 10 * learn.lr)
        seen = np.concatenate([seen, targets])
    return steps


def summary(orders: Sequence[Sequence[Sequence[float]]]) -> dict[str, Any]:
    """Return R² pooled over the orders: of steps 2 to 5, of all after step 5, and the lowest of five such in a row."""
    sums = np.array(orders).sum(0)  # (steps, 2), from step 2 on
    late = sums[4:]
    fives = [_r2(late[at : at + 5]) for at in range(len(late) - 4)]
    return {
        "steps_2_to_5": _r2(sums[:4]),
        "after_step_5": _r2(late) if len(late) else None,
        "lowest_five_steps": min(fives) if fives else None,
    }


def _r2(sums: Floats) -> float:
    errors, deviations = sums.sum(0)
    return float(1 - errors / deviations)


def show(result: dict[str, Any]) -> str:
    """Return the probe's R², and one line per kind of head."""
    limit = result["bound"]
    lines = [
        f"{result['conversations']} conversations, {result['turns']} turns, {result['batch']} conversations per step",
        f"best regression, held out: R² {limit['r2']:.3f} ({limit['low']:.3f} to {limit['high']:.3f})",
    ]
    for kind, scores in result["reached"].items():
        parts = [f"{name.replace('_', ' ')} {value:.3f}" for name in _SHOWN if (value := scores[name]) is not None]
        lines.append(f"{kind}: {', '.join(parts)}")
    return "\n".join(lines)


_SHOWN = ("steps_2_to_5", "after_step_5", "lowest_five_steps")
