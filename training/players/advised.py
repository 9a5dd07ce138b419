"""A seat of two voices: a strategist writes a strategy before every reply, and a speaker, which reads it, moves.

Source: "EPO: Explicit Policy Optimization for Strategic Reasoning in LLMs via Reinforcement Learning", eq. 1 and 2.
The strategist reads what its seat is shown and its own earlier strategies. The speaker reads the game and all
strategies, and need not follow them. Nobody else reads a strategy. Both raise what their players raise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.games.actions import clean
from training.players.base import Player, Reply
from training.players.model import ModelPlayer
from training.records import SPECTATOR, Action, Message, Observation, Seat, Trace
from training.run_sections import SpeakerSection
from training.seeding import derive
from training.text.messages import Chat, news
from training.text.parsing import split_private
from training.text.refusals import with_lines

ADVICE = "strategy"
"""The channel of the lines by which a speaker reads strategies."""
ADVISES = "Your strategist advises: "
"""What each of these lines begins with."""
BRIEFING = (
    "You have a strategist. Before each of your replies you read its advice, which nobody else can read. Follow it "
    "where it helps you; you may also ignore it."
)
__all__ = ["AdvisedPlayer", "Strategist", "Strategy", "advice", "read_strategy"]


@dataclass(frozen=True, slots=True)
class Strategy:
    """A strategy as the speaker reads it; `formed` says whether it was written in the form that was asked for."""

    text: str
    formed: bool


def read_strategy(reply: str, form: SpeakerSection) -> Strategy:
    """Return the strategy in a reply: its first line after the label, or the whole first line where there is none.

    Only its first `form.words` words count. Private reasoning is left out.
    """
    public, _ = split_private(reply)
    first, _, rest = public.strip().partition("\n")
    labelled = re.match(rf"\s*{form.label}\s*:\s*", first, re.IGNORECASE)
    words = clean(first[labelled.end() :] if labelled else first).split()
    formed = labelled is not None and 0 < len(words) <= form.words and not rest.strip()
    return Strategy(" ".join(words[: form.words]), formed)


def advice(observation: Observation) -> tuple[str, Observation]:
    """Return the newest strategy that an observation of a speaker holds, empty if none, and the game's observation."""
    told = [message.text for message in observation.messages if message.channel == ADVICE]
    own = tuple(message for message in observation.messages if message.channel != ADVICE)
    return (told[-1].removeprefix(ADVISES) if told else ""), observation.model_copy(update={"messages": own})


def _task(name: str, form: SpeakerSection) -> str:
    """Return what a strategist is told after the rules."""
    return (
        f"You are the strategist of {name} and do not speak yourself. {name} reads what you write, and nobody else "
        f"does. Before each reply of {name} write one line, '{form.label}: ' and then one phrase or sentence of at "
        f"most {form.words} words: what to do next. Give no reasons, repeat no earlier line, and do not write what "
        f"{name} is to say."
    )


class Strategist(ModelPlayer):
    """A `ModelPlayer` whose replies are strategies, in the form of `form`; it reads its seat's replies as all others'.

    Its keyword arguments are those of `ModelPlayer`.
    """

    def __init__(self, *arguments: Any, form: SpeakerSection, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.form = form

    def _news(self, observation: Observation) -> list[Chat]:
        rules, *rest = observation.messages
        task = f"{rules.text}\n\n{_task(self._names[self._seat], self.form)}"
        asked = (rules.model_copy(update={"text": task}), *rest)
        return news(observation.model_copy(update={"messages": asked}), self._heard, SPECTATOR, self._names)

    def _choices(self, actions: Sequence[Action], seed: int) -> tuple[tuple[int, ...], ...]:
        """Return no list: a strategy is free text."""
        return ()


class AdvisedPlayer:
    """One seat of one episode."""

    def __init__(self, strategist: Strategist, speaker: Player) -> None:
        self._strategist, self._speaker = strategist, speaker
        self._told: list[tuple[int, tuple[Message, ...]]] = []
        self._formed = 0

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Return the speaker's reply, with the strategy that it was given."""
        form = self._strategist.form
        written = await self._strategist.act(seat, observation, derive(seed, "strategist"))
        strategy = read_strategy(written.text, form)
        self._formed += strategy.formed
        self._told = self._told or [(1, (Message(author=None, text=BRIEFING, channel=ADVICE),))]
        line = Message(author=None, text=f"{ADVISES}{strategy.text or 'nothing'}", channel=ADVICE)
        self._told.append((len(observation.messages), (line,)))
        reply = await self._speaker.act(seat, with_lines(observation, self._told), derive(seed, "speaker"))
        return Reply(reply.text, written.tokens + reply.tokens, strategy.text)

    def traces(self) -> tuple[Trace, ...]:
        """Return the traces of both, the strategist's first."""
        own, theirs = self._strategist.traces(), self._speaker.traces()
        moved = (
            trace
            if trace.parent is None
            else trace.model_copy(update={"parent": (trace.parent[0] + len(own), trace.parent[1])})
            for trace in theirs
        )
        return (*own, *moved)

    def totals(self) -> Mapping[str, float]:
        """Return what the strategist measures of its strategies, and how many were in the form asked for."""
        return {**self._strategist.totals(), "strategies_formed": float(self._formed)}
