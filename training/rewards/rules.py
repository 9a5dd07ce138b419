"""The reward's scale, and the quality filter without a model: format, repetition, copied instructions, unexpected
writing systems.

It reads the model's replies (`Turn.reply`) without the tags of structured moves. Source: OMAR §4.3; the measures and
thresholds are Parley's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from training.games import make
from training.records import Episode, Seat
from training.reward_section import RewardSection
from training.rewards import components
from training.rewards.base import Reward, Score

Settings: TypeAlias = Mapping[str, Any]
Bounds = tuple[float, float]
REPEAT_WORDS = 3
COPY_WORDS = 5
FEWEST = 4
"""Least number of word groups for a share; in shorter replies, repetition is normal."""

_TAG = re.compile(r"<(\w+)>.*?</\1>|</?\w+>", re.DOTALL)
_WORD = re.compile(r"\w+")


def _words(text: str) -> list[str]:
    return _WORD.findall(_TAG.sub(" ", text).lower())


def _groups(words: Sequence[str], size: int) -> list[tuple[str, ...]]:
    return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]


def repeated_share(text: str) -> float:
    """Return the share of word triples that occurred before in the same text, in [0, 1)."""
    groups = _groups(_words(text), REPEAT_WORDS)
    return 1 - len(set(groups)) / len(groups) if len(groups) >= FEWEST else 0.0


def copied_share(text: str, source: str) -> float:
    """Return the share of five-word sequences that also occur in `source`, in [0, 1]."""
    groups = _groups(_words(text), COPY_WORDS)
    if len(groups) < FEWEST:
        return 0.0
    source_groups = set(_groups(_words(source), COPY_WORDS))
    return sum(group in source_groups for group in groups) / len(groups)


def scripts(text: str) -> set[str]:
    """Return the writing systems of the letters in `text`, by the first word of their Unicode names."""
    return {unicodedata.name(letter, "?").split()[0] for letter in set(text) if letter.isalpha()}


def fit(episode: Episode, section: RewardSection) -> tuple[bool, ...]:
    """Return for every turn whether it passes the rules."""
    game = make(episode.scenario)
    opening = [
        "\n".join(message.text for message in game.observe(seat).messages)
        for seat in range(len(episode.scenario.seats))
    ]
    allowed = scripts(" ".join([*opening, *episode.scenario.seats]))
    verdicts = []
    for turn in episode.turns:
        used = scripts(turn.reply)
        passes = (
            (turn.passed or not section.format)
            and repeated_share(turn.reply) <= section.repetition
            and copied_share(turn.reply, opening[turn.seat]) <= section.overlap
            and (used <= allowed or not section.scripts)
        )
        allowed |= used if passes else set()
        verdicts.append(passes)
    return tuple(verdicts)


def factor(section: RewardSection, bounds: Bounds) -> float:
    """Return the reward of one unit of what the inner reward measures, whose range is `bounds`."""
    span = {"unit": 1.0, "span": section.span}.get(section.scale)
    return 1.0 if span is None else span / (bounds[1] - bounds[0])


def scaled(section: RewardSection, value: float, bounds: Bounds) -> float:
    """Return the reward of a seat's return: as it is, from 0 to 1, or multiplied so that its range is `span`."""
    return (value - (bounds[0] if section.scale == "unit" else 0.0)) * factor(section, bounds)


class Ruled:
    """Wraps a reward: scales it, adds what turns earn by their form and length, and filters turns by the rules.

    `bounds` returns the range of the inner reward for a game's settings. If `format` is off, a malformed reply does
    not fail the filter.
    """

    def __init__(self, inner: Reward, section: RewardSection, bounds: Callable[[Settings], Bounds]) -> None:
        self.inner = inner
        self.section = section
        self.bounds = bounds

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score by the inner reward, then scale, add the turns' own rewards, and filter."""
        score = await self.inner.score(episode, seed)
        bounds, section = self.bounds(episode.scenario.settings), self.section
        returns = score.returns if section.forfeit == "win" else _without_gain(episode, score.returns)
        paid = {name: tuple(value * factor(section, bounds) for value in row) for name, row in score.parts.items()}
        return replace(
            score,
            returns={seat: scaled(section, value, bounds) for seat, value in returns.items()},
            parts={**paid, **components.parts(episode, section)},
            passed=fit(episode, section),
        )


def _without_gain(episode: Episode, returns: Mapping[Seat, float]) -> Mapping[Seat, float]:
    """Return the returns with 0 for every seat that did not forfeit, if one did."""
    forfeited = {entry.seat for entry in episode.moves if entry.move.origin == "forfeit"}
    return {seat: value if seat in forfeited or not forfeited else 0.0 for seat, value in returns.items()}
