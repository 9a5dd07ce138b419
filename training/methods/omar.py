"""OMAR: one model plays every seat, and a seat's final reward becomes credit on turns, then on tokens.

Source: "One Model, All Roles", §3.2 (hierarchical advantage) and §4.3 (quality filter). `docs/methods/omar.md` lists
where the estimator departs from the paper and why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field, ValidationInfo, field_validator

from training.errors import BadInput
from training.methods import advantages
from training.methods.base import MethodConfig
from training.methods.credit_builder import CreditBuilder
from training.methods.trajectories import SeatTrajectory, lines
from training.records import EpisodeCredit, Needs, ScoredEpisode, Seat

if TYPE_CHECKING:
    from training.records import Floats

TURN, TOKEN, SHARED = "turn", "token", "shared"


class OmarConfig(MethodConfig):
    """How OMAR turns a seat's reward into credit. The defaults are the unbiased form."""

    name: Literal["omar"] = Field(default="omar", description="The method: self-play with a hierarchical advantage.")
    advantage: Literal["hierarchical", "flat", "turn_only", "group_relative"] = Field(
        default="hierarchical",
        description="hierarchical: turns first, then tokens inside each turn. Ablations: flat (one long sequence), "
        "turn_only (every token gets its turn's advantage), group_relative (reward minus a group's mean, no critic).",
    )
    critic_heads: Literal["two", "one"] = Field(
        default="two",
        description="two: separate value heads for turns and tokens. one: a single head, as in the paper.",
    )
    turn_value: Literal["before", "last_token"] = Field(
        default="before",
        validate_default=True,
        description="Where a turn's value is read: before its first token, or (the paper, with one head) after its "
        "last token.",
    )
    gamma_turn: float = Field(
        default=0.9, ge=0, le=1, description="Turn decay: the discount from one turn to the next."
    )
    lam_turn: float = Field(
        default=1.0, ge=0, le=1, description="GAE's λ from turn to turn; 1 trusts rewards, 0 the critic."
    )
    gamma: float = Field(default=1.0, ge=0, le=1, description="Discount from token to token inside a turn.")
    lam: float = Field(default=1.0, ge=0, le=1, description="GAE's λ from token to token inside a turn.")
    filter: Literal["off", "zero", "min"] = Field(
        default="min",
        description="What a turn that fails the quality filters may earn. min: nothing above 0. zero: exactly 0 (the "
        "paper; only where rewards cannot be negative). off: as any other turn.",
    )
    whiten: bool = Field(
        default=False, description="Shift and scale advantages to mean 0, variance 1 over the step's batch."
    )
    elimination_discount: float = Field(
        default=0.75,
        ge=0,
        le=1,
        description="Share of its reward that a seat keeps if it was eliminated before the last round.",
    )
    baseline: Literal["conversation", "role"] = Field(
        default="conversation",
        description="For group_relative: the mean over the seats of the same conversation, or over the same seat in "
        "all replays of the same start.",
    )

    @field_validator("turn_value")
    @classmethod
    def _heads_fit(cls, value: str, info: ValidationInfo) -> str:
        heads, advantage = info.data.get("critic_heads"), info.data.get("advantage")
        hierarchical = advantage == "hierarchical"
        if value == "last_token" and (advantage == "turn_only" or (hierarchical and heads == "two")):
            raise ValueError(
                "a turn head of its own, read after the turn, learns the outcome of the very turn it should be a "
                "baseline for: its advantage vanishes as it improves. Use turn_value = before"
                + (", or critic_heads = one" if hierarchical else "")
            )
        if hierarchical and heads == "one" and value == "before":
            raise ValueError(
                "one head cannot hold the turn's value and its first token's at the same position: they have different "
                "targets. Use turn_value = last_token (the paper's form), or critic_heads = two"
            )
        return value

    def build(self) -> Omar:
        """Return the method."""
        return Omar(self)

    def check(self, reward_low: float, replays: int) -> None:
        """Refuse `zero` where rewards may be negative, and a replay baseline without replays."""
        if self.filter == "zero" and reward_low < 0:
            raise BadInput(
                f"rewards may fall to {reward_low:g}, and an advantage of 0 would then reward failing; use min",
                "filter",
            )
        if self.advantage == "group_relative" and self.baseline == "role" and replays < 2:
            raise BadInput("a mean over replays needs at least 2 games per scenario", "baseline")


@dataclass(frozen=True, slots=True)
class _Part:
    """One seat's line in one episode, with the advantage of each turn (None where tokens are one sequence)."""

    scored: ScoredEpisode
    episode: int
    line: SeatTrajectory
    by_turn: Floats | None
    by_token: tuple[Floats, ...] = ()


class Omar:
    """The method itself; it keeps nothing from one step to the next."""

    def __init__(self, config: OmarConfig) -> None:
        self.config = config
        self.turn_head, self.token_head = _heads(config)
        heads = dict.fromkeys(head for head in (self.turn_head, self.token_head) if head)
        self.needs = Needs(critic=tuple(heads), group=_group(config))

    def credit(self, group: Sequence[ScoredEpisode]) -> list[EpisodeCredit]:
        """Return credit on the sampled tokens of every learning seat, and targets for the value heads."""
        pages = [CreditBuilder(scored) for scored in group]
        parts = self._parts(group)
        raw = [part.by_turn if part.by_turn is not None else np.concatenate(part.by_token) for part in parts]
        used = advantages.whitened(raw) if self.config.whiten else raw
        for part, before, after in zip(parts, raw, used, strict=True):
            write = self._write_tokens if part.by_turn is None else self._write_turns
            write(pages[part.episode], part, before, after)
        return [page.credit() for page in pages]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: there is no state."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Accept the empty state."""
        if state:
            raise ValueError("omar keeps no state")

    def _parts(self, group: Sequence[ScoredEpisode]) -> list[_Part]:
        results = [self._results(scored) for scored in group]
        cards = [lines(scored, result) for scored, result in zip(group, results, strict=True)]
        if self.config.advantage == "group_relative":
            return _group_relative(group, results, cards, by_role=self.config.baseline == "role")
        make = self._flat if self.config.advantage == "flat" else self._turn_level
        return [
            make(scored, i, line) for i, (scored, card) in enumerate(zip(group, cards, strict=True)) for line in card
        ]

    def _results(self, scored: ScoredEpisode) -> dict[Seat, float]:
        """Return each seat's reward; one that was eliminated early (seat metric `eliminated`) keeps a share."""
        metrics = scored.episode.seat_metrics
        keep = self.config.elimination_discount
        return {
            seat: reward * (keep if metrics.get(seat, {}).get("eliminated", 0.0) > 0 else 1.0)
            for seat, reward in scored.returns.items()
        }

    def _turn_level(self, scored: ScoredEpisode, episode: int, line: SeatTrajectory) -> _Part:
        config = self.config
        values = self._turn_values(scored, line)
        by_turn = advantages.gae(line.rewards.tolist(), values.tolist(), config.gamma_turn, config.lam_turn)
        return _Part(scored, episode, line, by_turn)

    def _turn_values(self, scored: ScoredEpisode, line: SeatTrajectory) -> Floats:
        heads = scored.values[self.turn_head]
        if self.config.turn_value == "last_token":
            return np.array([turn.after(heads) for turn in line.turns])
        return np.array([float(turn.before(heads)[0]) for turn in line.turns])

    def _flat(self, scored: ScoredEpisode, episode: int, line: SeatTrajectory) -> _Part:
        """GAE over the seat's own tokens as one sequence; observation tokens are no steps."""
        values = [turn.before(scored.values[self.token_head]) for turn in line.turns]
        rewards = [_spread(scored, line, k) for k in range(len(line.turns))]
        sequence = advantages.gae(
            np.concatenate(rewards).tolist(), np.concatenate(values).tolist(), self.config.gamma, self.config.lam
        )
        cuts = np.cumsum([len(value) for value in values])[:-1]
        return _Part(scored, episode, line, None, tuple(np.split(sequence, cuts)))

    def _write_turns(self, page: CreditBuilder, part: _Part, raw: Floats, used: Floats) -> None:
        """Put turn advantages on tokens, through the token level where the form has one."""
        config, scored = self.config, part.scored
        for k, turn in enumerate(part.line.turns):
            credit = _filtered(float(used[k]), part.line.passed[k], config.filter)
            page.turn(turn.trace, turn.index, credit)
            if config.advantage == "hierarchical":
                values = turn.before(scored.values[self.token_head])
                own = turn.on(scored.token_rewards).tolist() if scored.token_rewards else None
                tokens = advantages.token_gae(credit, values.tolist(), config.gamma, config.lam, own)
                page.value(self.token_head, turn.trace, slice(turn.first - 1, turn.stop - 1), tokens + values)
            else:
                tokens = np.full(turn.stop - turn.first, credit)
            page.ppo(turn.trace, slice(turn.first, turn.stop), self._clamped(tokens, part.line.passed[k]))
        if self.turn_head:
            self._turn_targets(page, part, raw)

    def _turn_targets(self, page: CreditBuilder, part: _Part, raw: Floats) -> None:
        """The turn value is regressed on the turn's return; the paper's single head, after the turn, on A_k itself."""
        values = self._turn_values(part.scored, part.line)
        for turn, advantage, value in zip(part.line.turns, raw, values, strict=True):
            at_end = self.config.turn_value == "last_token"
            place = turn.stop - 1 if at_end else turn.first - 1
            paper = at_end and self.turn_head == SHARED
            page.value(self.turn_head, turn.trace, slice(place, place + 1), advantage if paper else advantage + value)

    def _write_tokens(self, page: CreditBuilder, part: _Part, raw: Floats, used: Floats) -> None:
        """Put the advantages of one long sequence on its tokens; a failing turn is filtered token by token."""
        start = 0
        for k, turn in enumerate(part.line.turns):
            stop = start + turn.stop - turn.first
            values = turn.before(part.scored.values[self.token_head])
            tokens = self._clamped(used[start:stop], part.line.passed[k])
            page.value(self.token_head, turn.trace, slice(turn.first - 1, turn.stop - 1), raw[start:stop] + values)
            page.ppo(turn.trace, slice(turn.first, turn.stop), tokens)
            page.turn(turn.trace, turn.index, float(tokens.mean()))
            start = stop

    def _clamped(self, tokens: Floats, passed: bool) -> Floats:
        if passed or self.config.filter == "off":
            return tokens
        if self.config.filter == "min":
            return np.minimum(tokens, 0.0)
        return np.zeros_like(tokens) if self.config.advantage == "flat" else tokens


def _heads(config: OmarConfig) -> tuple[str, str]:
    """Return the names of the heads read at turns and at tokens; empty where the form has none."""
    if config.advantage == "hierarchical":
        return (SHARED, SHARED) if config.critic_heads == "one" else (TURN, TOKEN)
    return {"flat": ("", TOKEN), "turn_only": (TURN, ""), "group_relative": ("", "")}[config.advantage]


def _group(config: OmarConfig) -> Literal["conversation", "start", "game"]:
    if config.whiten:
        return "game"
    return "start" if config.advantage == "group_relative" and config.baseline == "role" else "conversation"


def _filtered(advantage: float, passed: bool, rule: str) -> float:
    if passed or rule == "off":
        return advantage
    return 0.0 if rule == "zero" else min(advantage, 0.0)


def _spread(scored: ScoredEpisode, line: SeatTrajectory, k: int) -> Floats:
    """Return turn k's reward laid on its tokens: what was paid at a token stays there, the rest is on the last."""
    turn = line.turns[k]
    own = turn.on(scored.token_rewards).copy() if scored.token_rewards else np.zeros(turn.stop - turn.first)
    own[-1] += line.rewards[k] - own.sum()
    return own


def _group_relative(
    group: Sequence[ScoredEpisode],
    results: Sequence[dict[Seat, float]],
    cards: Sequence[list[SeatTrajectory]],
    *,
    by_role: bool,
) -> list[_Part]:
    """Every turn of a seat gets the seat's whole reward minus the mean of its peers."""
    totals = []
    for result, card in zip(results, cards, strict=True):
        own = {line.seat: float(line.rewards.sum()) for line in card}
        totals.append({seat: own.get(seat, reward) for seat, reward in result.items()})
    replays: dict[tuple[str, int, Seat], list[float]] = {}
    for scored, total in zip(group, totals, strict=True):
        for seat, reward in total.items():
            replays.setdefault((scored.episode.scenario.id, scored.episode.scenario.seed, seat), []).append(reward)
    parts = []
    for i, (scored, card) in enumerate(zip(group, cards, strict=True)):
        scenario = scored.episode.scenario
        for line in card:
            peers = replays[scenario.id, scenario.seed, line.seat] if by_role else list(totals[i].values())
            relative = totals[i][line.seat] - float(np.mean(peers))
            parts.append(_Part(scored, i, line, np.full(len(line.turns), relative)))
    return parts
