"""What a turn itself earns, beside its game's result: for its form and for its length.

Source: MARS, §3.3 and eq. 4; the sizes are settings of `RewardSection`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from training.records import Episode
from training.reward_section import RewardSection

PerTurn = tuple[float, ...]
"""One number per `Episode.turns`."""


def malformed(episode: Episode, section: RewardSection) -> PerTurn:
    """Return `section.malformed` for every reply that does not parse or is not legal."""
    return tuple(0.0 if turn.passed else section.malformed for turn in episode.turns)


def well_formed(episode: Episode, section: RewardSection) -> PerTurn:
    """Return `section.well_formed` for every legal reply."""
    return tuple(section.well_formed if turn.passed else 0.0 for turn in episode.turns)


def length(episode: Episode, section: RewardSection) -> PerTurn:
    """Return what every reply earns for its length in tokens; 0 where a reply has no tokens."""
    tokens = Counter(
        turn
        for trace in episode.traces
        for turn, sampled in zip(trace.turn, trace.mask, strict=True)
        if sampled and turn >= 0
    )
    return tuple(
        of_length(tokens[at], section) if tokens[at] and turn.passed else 0.0 for at, turn in enumerate(episode.turns)
    )


def of_length(tokens: int, section: RewardSection) -> float:
    """Return what a reply of so many tokens earns: α·min(0, s) as a penalty, α·max(0, s) as a bonus.

    s = 1 − (tokens − length_min) / (length_max − length_min): 1 at length_min, 0 at length_max, below 0 beyond.
    """
    slack = 1 - (tokens - section.length_min) / (section.length_max - section.length_min)
    return section.length_coef * (min(0.0, slack) if section.length == "penalty" else max(0.0, slack))


def parts(episode: Episode, section: RewardSection) -> Mapping[str, PerTurn]:
    """Return the components that the section switches on, by name."""
    switched_on: dict[str, tuple[bool, Callable[[Episode, RewardSection], PerTurn]]] = {
        "malformed": (section.malformed != 0, malformed),
        "well_formed": (section.well_formed != 0, well_formed),
        "length": (section.length != "none", length),
    }
    return {name: component(episode, section) for name, (on, component) in switched_on.items() if on}


def lowest(section: RewardSection, longest: int, of_labels: float = 0.0) -> float:
    """Return the least that one turn may earn by its form and length; `longest` bounds a reply, in tokens.

    `of_labels` is the least that a legal turn earns beside.
    """
    return min(section.malformed, of_labels + (of_length(longest, section) if section.length == "penalty" else 0.0))
