"""Labels as rewards: what turns earn, and which turns pass, by a classifier of turns or a judge's values of seats.

A classifier reads the words of the moves, with those before where it learned to; an attempt that was refused has no
label. What a classifier is wrong about is learned as well: every label comes with its measured agreement with people.
Raises `BadInput` for a label that its classifier or codebook does not have, and `JudgeError` where the judge could not
score.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from training.errors import BadInput
from training.labels import codebooks
from training.labels.codebooks import Codebook
from training.labels.info import ClassifierInfo
from training.labels.turns import spoken
from training.records import Episode, Judgment, Seat
from training.reward_section import LabelReward, RewardSection
from training.rewards.base import Reward, Score
from training.rewards.judge import Judge, Verdict, transcript_of
from training.seeding import derive

PREFIX = "label_"
"""How the part of a reward is called that a label gives, before the label's name."""


class Labeller(Protocol):
    """A classifier whose model is in this process or in others (`training.labels.labellers`)."""

    @property
    def info(self) -> ClassifierInfo:
        """What the classifier says of itself."""

    async def label(self, texts: Sequence[str], dialogues: Sequence[Hashable] | None = None) -> Any:
        """Return the probability (n, L) of each label in each turn."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How well a label's source agrees with people: `measure` is F1 or κ, None if nobody measured it.

    `warning` says why the label should not be trusted; empty where the agreement is high enough.
    """

    label: str
    source: str
    use: str
    weight: float
    measure: str
    agreement: float | None
    low: float | None = None
    high: float | None = None
    warning: str = ""


def measured(entry: LabelReward, least: float, info: ClassifierInfo | None = None) -> Measured:
    """Return the agreement of a label's source, with a warning below `least`; `info` is that of its classifier."""
    f1 = None
    if info is not None and (agreement := info.agreement_of(entry.label)) is not None:
        f1 = agreement.f1
    value = entry.agreement if f1 is None else f1.share
    measure = "F1" if entry.classifier else "κ or α"
    who = "the classifier" if entry.classifier else "the judge"
    warning = ""
    if value is None:
        warning = f"how well {who} agrees with people on {entry.label} is not known"
    elif value < least:
        warning = f"{who} agrees too little with people on {entry.label}: {measure} {value:.2f}, less than {least:g}"
    return Measured(
        label=entry.label,
        source=entry.source,
        use=entry.use,
        weight=entry.weight,
        measure=measure,
        agreement=value,
        low=None if f1 is None else f1.low,
        high=None if f1 is None else f1.high,
        warning=warning,
    )


def codebook_of(name: str) -> Codebook:
    """Return a codebook that comes with Parley, or that of a file; raise `BadInput`."""
    if name in codebooks.CODEBOOKS:
        return codebooks.CODEBOOKS[name]
    if not name.endswith(".toml"):
        raise BadInput(f"unknown codebook {name!r}: name a file or one of {', '.join(codebooks.CODEBOOKS)}", "codebook")
    return codebooks.load(Path(name))


def check(entry: LabelReward) -> None:
    """Raise `BadInput` for a label that a judge cannot score under its codebook."""
    if entry.codebook:
        codebook = codebook_of(entry.codebook)
        codebook.type_of(entry.label)
        if not codebook.scores_seats:
            raise BadInput(f"a judge scores seats by numbers, of which {codebook.name} has others too", "codebook")


def lowest(section: RewardSection) -> tuple[float, float]:
    """Return the least that labels give to a turn, and to a seat's return; at most 0."""
    least = {"turn": 0.0, "seat": 0.0}
    for entry in section.labels:
        if entry.use == "reward":
            least[entry.per] += min(0.0, entry.weight)
    return least["turn"], least["seat"]


class Labelled:
    """Wraps a reward: adds what labels give to turns and returns, and filters turns by them.

    `labellers` are the classifiers by the name that the section gives them.
    """

    def __init__(
        self, inner: Reward, section: RewardSection, labellers: Mapping[str, Labeller], judge: Judge | None
    ) -> None:
        for place, entry in enumerate(section.labels):
            where = f"reward.labels.{place}"
            try:
                check(entry)
                if entry.classifier:
                    labellers[entry.classifier].info.place_of(entry.label)
            except BadInput as error:
                raise BadInput(error.why, f"{where}.{error.where}") from error
            if entry.codebook and judge is None:
                raise BadInput("this label needs a judge: give its address and model", "judge")
        self.inner, self.section, self.labellers, self.judge = inner, section, dict(labellers), judge

    async def score(self, episode: Episode, seed: int) -> Score:
        """Score by the inner reward, then by the labels."""
        score = await self.inner.score(episode, seed)
        seen = await self._seen(episode)
        verdicts = await self._verdicts(episode, derive(seed, "labels"))
        returns, passed = dict(score.returns), list(score.passed)
        parts, seat_parts = dict(score.parts), dict(score.seat_parts)
        for entry in self.section.labels:
            name = f"{PREFIX}{entry.label}"
            if entry.use != "reward":
                flags = seen[entry.classifier, entry.label]
                passed = [ok and flag == (entry.use == "require") for ok, flag in zip(passed, flags, strict=True)]
            elif entry.per == "turn":
                parts[name] = tuple(entry.weight * flag for flag in seen[entry.classifier, entry.label])
            else:
                by_seat = _of_verdicts(entry, verdicts) if entry.codebook else _shares(entry, episode, seen)
                seat_parts[name] = {seat: entry.weight * value for seat, value in by_seat.items()}
                returns = {seat: value + seat_parts[name].get(seat, 0.0) for seat, value in returns.items()}
        judgments = (*score.judgments, *self._records(verdicts, episode))
        return replace(
            score, returns=returns, passed=tuple(passed), parts=parts, seat_parts=seat_parts, judgments=judgments
        )

    async def _seen(self, episode: Episode) -> dict[tuple[str, str], tuple[bool, ...]]:
        """Return for each classifier and label whether each of the episode's turns has the label."""
        places = spoken(episode.moves)
        texts = [episode.moves[place].move.text for place in places]
        seen: dict[tuple[str, str], tuple[bool, ...]] = {}
        for name in dict.fromkeys(entry.classifier for entry in self.section.labels if entry.classifier):
            labeller = self.labellers[name]
            labels, thresholds = labeller.info.labels, labeller.info.thresholds
            columns: list[Sequence[float]] = [()] * len(labels)
            if texts:
                rows = await labeller.label(texts, ["episode"] * len(texts))
                columns = list(zip(*rows, strict=True))
            for label, threshold, column in zip(labels, thresholds, columns, strict=True):
                having = {place for place, value in zip(places, column, strict=True) if value >= threshold}
                seen[name, label] = tuple(turn.passed and turn.move_index in having for turn in episode.turns)
        return seen

    async def _verdicts(self, episode: Episode, seed: int) -> dict[str, list[Verdict]]:
        """Return what the judge says under each codebook of every seat that the codebook asks about."""
        names = list(dict.fromkeys(entry.codebook for entry in self.section.labels if entry.codebook))
        if not names or self.judge is None:
            return {}
        transcript, judge = transcript_of(episode.scenario, episode.moves), self.judge
        roles = episode.roles or ("",) * len(episode.scenario.seats)

        async def under(name: str) -> list[Verdict]:
            codebook = codebook_of(name)
            asked = [(seat, role) for seat, role in enumerate(roles) if codebook.asks(role)]
            calls = (
                judge.score(transcript, codebook.of(role), seat, seed=derive(seed, name, seat)) for seat, role in asked
            )
            return list(await asyncio.gather(*calls))

        return dict(zip(names, await asyncio.gather(*map(under, names)), strict=True))

    def _records(self, verdicts: Mapping[str, Sequence[Verdict]], episode: Episode) -> list[Judgment]:
        if self.judge is None or not verdicts:
            return []
        target = transcript_of(episode.scenario, episode.moves).target
        return [verdict.judgment(self.judge.name, target) for rows in verdicts.values() for verdict in rows]


def _shares(entry: LabelReward, episode: Episode, seen: Mapping[tuple[str, str], Sequence[bool]]) -> dict[Seat, float]:
    """Return the share of each seat's spoken turns that have the label; seats without such turns are left out."""
    places = set(spoken(episode.moves))
    flags: dict[Seat, list[bool]] = {}
    for turn, flag in zip(episode.turns, seen[entry.classifier, entry.label], strict=True):
        if turn.move_index in places:
            flags.setdefault(turn.seat, []).append(flag)
    return {seat: sum(row) / len(row) for seat, row in flags.items()}


def _of_verdicts(entry: LabelReward, verdicts: Mapping[str, Sequence[Verdict]]) -> dict[Seat, float]:
    """Return the judge's value of each seat, from 0 to 1 over its label's scale."""
    low, high = codebook_of(entry.codebook).type_of(entry.label).bounds
    return {
        verdict.seat: (verdict.values[entry.label] - low) / (high - low)
        for verdict in verdicts[entry.codebook]
        if entry.label in verdict.values
    }
