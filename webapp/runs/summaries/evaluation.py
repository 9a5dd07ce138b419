"""A head-to-head's report: both models by name, a verdict, a forest plot, and titled rows.

Results of earlier versions may lack `scenarios` or titles in their conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from training.evaluate import verdict as verdicts
from training.evaluate.intervals import CAUTION, ENOUGH
from webapp.core.forest import Interval, Mark, mark_of, reach_of
from webapp.runs.models import Run
from webapp.runs.summaries import bars, comparing, curves

MODELS = ("a", "b")
GROUPS = (*MODELS, "difference")
NAMES: dict[str, tuple[str, str]] = {
    "points": ("Points", "The points of the model's seats, as the game counts them."),
    "return": ("Return", "The game's result as training counts it: in negotiation, a share of what could be reached."),
    "won": ("Games won", "Share of games that the model's side wins."),
    "wolves_win": ("Wolves win", "Share of games that the werewolves win, whoever plays them."),
    "agreement": ("Agreement", "Share of conversations that end with a deal."),
    "efficiency": ("Efficiency", "Joint points as a share of the most that both together could earn."),
    "joint_points": ("Joint points", "What both seats earn together."),
    "pareto": ("Pareto-optimal deals", "Share of conversations with a deal that no other improves for both."),
    "nash_product": ("Nash product", "Product of both gains over no deal, each as a share of the seat's maximum."),
    "parse_rate": ("Parse rate", "Share of replies that could be parsed as a move."),
    "legal_rate": ("Legal move rate", "Share of replies that were a legal move."),
    "failing": ("Failing replies", "Share of replies that fail a quality filter."),
    "defaults": ("Default moves", "Moves per conversation that the game made after refused replies."),
    "forfeits": ("Forfeits", "Seats per conversation that gave up after refused replies."),
    "survived": ("Survival", "Share of seats that live to the end of the game."),
    "votes_on_wolves": ("Votes on wolves", "Share of votes that are for a werewolf."),
    "reply_tokens": ("Tokens per reply", "Mean length of a sampled reply."),
    "turns": ("Turns", "Turns per conversation."),
    "attempts": ("Replies, including refused", "Replies per conversation, refused ones included."),
    "cut": ("Cut replies", "Share of replies that reached the longest length."),
    "sotopia.mean": ("Social score", "Mean of the seven SOTOPIA dimensions, as the judge scored them."),
}  # fmt: skip
"""Title and help of a number, without its role."""


@dataclass(frozen=True)
class Row:
    """One metric: title, help, both models' intervals (None: unknown), their difference and its mark in the plot."""

    name: str
    title: str
    help: str
    models: tuple[Interval | None, ...]
    difference: Interval | None
    mark: Mark | None


def title_of(name: str) -> str:
    """Return the plain name of a number: `won/werewolf` is "Games won as werewolf"."""
    stem, _, role = name.partition("/")
    title = NAMES[stem][0] if stem in NAMES else curves.title(stem).capitalize()
    return f"{title} as {role}" if role else title


def help_of(name: str) -> str:
    """Return one sentence on what a metric counts; empty for metrics defined by a game."""
    return NAMES.get(name.partition("/")[0], ("", ""))[1]


def column_of(name: str) -> str:
    """Return the title of a number from a head-to-head during training: `a.won/werewolf`, `conversations`."""
    group, _, number = name.partition(".")
    owner = {"a": "learner", "b": "opponent", "difference": "difference", "shared": ""}.get(group)
    if not number or owner is None:
        return title_of(name)
    return f"{title_of(number)}, {owner}" if owner else title_of(number)


def models(run: Run) -> tuple[str, str]:
    """Return distinct names of both models: from the result, else from the run."""
    conditions = (run.result or {}).get("conditions", {})
    checkpoints = (run.start_checkpoint, run.opponent_checkpoint)
    first, second = (
        conditions.get(key, {}).get("title") or (str(checkpoint) if checkpoint else run.base)
        for key, checkpoint in zip(MODELS, checkpoints, strict=True)
    )
    return verdicts.distinct(first, second)


def _repeats(name: str, summary: Mapping[str, Any]) -> bool:
    """Return whether a role's number is that of the whole model, which then plays this role alone."""
    whole = name.partition("/")[0]
    return whole != name and all(
        summary.get(group, {}).get(name) == summary.get(group, {}).get(whole) for group in GROUPS
    )


def of_run(run: Run) -> dict[str, Any] | None:
    """Return the page context of a run's head-to-head; None if it has no result yet."""
    if not run.result or "summary" not in run.result:
        return None
    summary = run.result["summary"]
    social = bars.of_summary(summary)
    social_names = {bar.name for rows in social.values() for bar in rows}
    names = {name for group in GROUPS for name in summary.get(group, {})} - social_names
    names = {name for name in names if not _repeats(name, summary)}
    count = verdicts.scenarios(summary)
    return {
        "models": models(run),
        "verdict": verdict(run),
        "rows": rows_of(summary, names),
        "social": social,
        "shared": [(title_of(name), help_of(name), cell) for name, cell in sorted(summary.get("shared", {}).items())],
        "conversations": summary.get("conversations"),
        "used": summary.get("used"),
        "scenarios": count,
        "method": run.result.get("conditions", {}).get("intervals", ""),
        "caution": CAUTION if count is not None and 0 < count < ENOUGH else "",
        "unscored": summary.get("unscored") or {},
        "common": run.result.get("conditions", {}).get("common", {}).get("title", ""),
        "conditions": list(comparing.flat(run.result.get("conditions", {}))),
    }


def rows_of(summary: Mapping[str, Any], names: Iterable[str]) -> list[Row]:
    """Return the rows of these metrics: decisive ones first, then by title."""
    differences = summary.get("difference", {})
    shares = [reach_of(differences[name]) for name in names if name in differences and verdicts.is_share(name)]
    widest = max(shares, default=0.0)

    def row(name: str) -> Row:
        difference = differences.get(name)
        reach = widest if verdicts.is_share(name) else reach_of(difference)
        values = tuple(summary.get(model, {}).get(name) for model in MODELS)
        return Row(name, title_of(name), help_of(name), values, difference, mark_of(difference, reach))

    return [row(name) for name in sorted(names, key=lambda name: (_rank(name), title_of(name)))]


def _rank(name: str) -> int:
    if name.startswith("won/"):
        return -1
    keys = list(verdicts.KEYS)
    return keys.index(name) if name in keys else len(keys)


def verdict(run: Run) -> str:
    """Return the sentence on a run's head-to-head; empty without a result."""
    side = run.config.get("evaluate", {}).get("side") or ()
    return verdicts.verdict((run.result or {}).get("summary", {}), models(run), side)
