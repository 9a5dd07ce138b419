"""Metric groups, titles, explanations, and data in the format of the page's script."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from webapp.runs.models import Run
from webapp.runs.querysets import OVER

GROUPS: dict[str, dict[str, str]] = {
    "Outcome": {
        "reward": "Reward",
        "agreement": "Agreement rate",
        "parse_rate": "Parse rate",
        "legal_rate": "Legal move rate",
        "constrained": "Replies limited to legal moves",
        "unlisted": "Replies where legal moves were too many to list",
        "random_moves": "Moves drawn at random",
        "joint_points": "Joint points",
        "efficiency": "Efficiency",
        "failing": "Failing turns",
        "silent": "Silent messages",
        "waits": "Decisions to wait",
        "belief_change": "Change in beliefs per message",
        "turns": "Turns per game",
        "reply_tokens": "Tokens per reply",
    },
    "Learning": {
        "loss": "Loss",
        "kl": "KL divergence from the reference",
        "entropy": "Entropy",
        "discarded": "Probability mass removed by top-p and top-k",
        "clipfrac": "Clip fraction",
        "approx_kl": "Approximate KL of the update",
        "grad_norm": "Gradient norm",
        "advantage_mean": "Mean advantage",
        "advantage_std": "Advantage, standard deviation",
        "value_r2_turn": "Value R², turns",
        "value_r2_token": "Value R², tokens",
        "explained_variance_turn": "Explained variance, turns",
        "explained_variance_token": "Explained variance, tokens",
        "importance": "Mean importance weight",
        "capped": "Capped importance weights",
        "masked": "Tokens left out as outliers",
        "lr": "Learning rate",
        "phase": "Phase of training",
    },
    "Distance from an equilibrium": {
        "nashconv/kuhn_poker": "NashConv, Kuhn poker",
        "exploitability/kuhn_poker": "Exploitability, Kuhn poker",
        "nashconv/leduc_poker": "NashConv, Leduc poker",
        "exploitability/leduc_poker": "Exploitability, Leduc poker",
    },
    "Machine": {
        "sampling_tokens_per_s": "Sampling, tokens/s",
        "learning_tokens_per_s": "Learning, tokens/s",
        "step_s": "Step, s",
        "sampling_s": "Sampling, s",
        "learning_s": "Learning, s",
        "sync_s": "Sync, s",
        "gap_max": "Log-probability gap of sampler and trainer, max",
        "lag": "Policy lag, steps",
        "lag_max": "Largest policy lag, steps",
        "versions": "Versions of the weights in a game, mean",
        "gap_mean": "Log-probability gap of sampler and trainer, mean",
    },
}
EXPLANATIONS = {
    "constrained": "Share of replies that were sampled among the seat's legal moves (sampling.constrain). The others "
    "have free text, or too many legal moves to list.",
    "unlisted": "Share of replies that were sampled freely because the seat had more than 256 legal moves.",
    "random_moves": "Share of replies that were drawn uniformly among the seat's legal moves (rollout.random_moves). "
    "Nothing is learned from them.",
    "silent": "Share of the messages in meetings that were missing or had fewer than three letters or digits.",
    "waits": "Share of the decisions in rooms that were to wait.",
    "belief_change": "Change per message in the listeners' probabilities of the right answer to probes, summed over "
    "listeners. Above zero, messages of this role move beliefs towards the truth; below zero, away from it.",
    "discarded": "Mean probability mass that top-p and top-k removed before a token was sampled. "
    "The loss does not account for it: the larger it is, the more the trained policy differs from the sampled one.",
}
"""What a number means, where its title does not say enough."""
TITLES = {name: title for members in GROUPS.values() for name, title in members.items()}
ROLES, OTHER = "By role", "Other"


def title(name: str) -> str:
    """A metric's title, followed by its role if it has one; unknown metrics are titled by their name."""
    if name in TITLES:
        return TITLES[name]
    stem, _, role = name.partition("/")
    words = TITLES.get(stem, stem.replace("_", " "))
    return f"{words}, {role}" if role else words


def in_order(names: Iterable[str]) -> list[str]:
    """The names in the order of the groups, then unknown ones in alphabetical order."""
    present = set(names)
    ordered = [name for name in TITLES if name in present]
    return ordered + sorted(present - set(ordered))


def groups(names: Iterable[str], title: str = "") -> list[dict[str, Any]]:
    """The groups, restricted to metrics in `names`, with an explanation where there is one; with a title, one group."""
    if title:
        return [{"title": title, "metrics": [_described(name) for name in names]}]
    present = set(names)
    listed = [
        {"title": group, "metrics": [_described(n) for n in members if n in present]}
        for group, members in GROUPS.items()
    ]
    for group, of_role in ((ROLES, True), (OTHER, False)):
        names_left = sorted(name for name in present - set(TITLES) if ("/" in name) == of_role)
        listed.append({"title": group, "metrics": [_described(name) for name in names_left]})
    return [group for group in listed if group["metrics"]]


def _described(name: str) -> dict[str, str]:
    return {"name": name, "title": title(name), "explanation": EXPLANATIONS.get(name.partition("/")[0], "")}


def phases(run: Run) -> list[tuple[str, int]]:
    """The phases of a run, each with the last training step before it."""
    made = run.config.get("phases", ())
    starts = accumulate((phase["steps"] for phase in made), initial=0)
    return [(phase["name"], start) for phase, start in zip(made, starts, strict=False)]


def columns(run: Run, since: int, attempt: int) -> dict[str, Any]:
    """The metrics above a step as columns: steps, and for each name a list with null where a step lacks it.

    `from` is the step above which the client must discard its data: attempts after number `attempt`, the client's last
    known one, have rewritten the metrics above their start steps.
    """
    started = run.attempts.filter(pid__isnull=False).order_by("number")  # without a process it supersedes nothing
    attempts = list(started.values_list("number", "start_step"))
    from_step = min([since, *(start for number, start in attempts if number > attempt)])
    rows = run.metrics.since(from_step)
    names = in_order({name for _, _, values in rows for name in values})
    return {
        "run": run.pk,
        "state": run.state,
        "over": run.state in OVER,
        "from": from_step,
        "steps": [step for step, _, _ in rows],
        "series": {name: [values.get(name) for _, _, values in rows] for name in names},
        "titles": {name: title(name) for name in names},
        "groups": groups(names),
        "attempts": [{"number": number, "start": start} for number, start in attempts],
        "phases": [{"name": name, "start": start} for name, start in phases(run)],
    }
