"""Conversations as traces: a seat's own messages become sampled tokens (mask 1), all others observation tokens.

Raises `BadInput` for a conversation that its game refuses, and `EngineError` for one with messages that do not fit the
window.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from training.engines.base import Sample
from training.errors import BadInput, IllegalMove
from training.games import advance, make
from training.games.actions import canonical, clean
from training.records import LEARNER, Episode, Move, Observation, Seat, Trace, Turn
from training.text.messages import Chat, news
from training.text.strategies import Form, asks_react, strategist_news
from training.text.template import ChatTokenizer
from training.text.tokens import TraceBuilder


class _Reader:
    """Builds the trace of one seat from a conversation."""

    def __init__(self, builder: TraceBuilder, seat: Seat, names: Sequence[str], form: Form | None) -> None:
        self.places: list[int] = []
        self.builder = builder
        self._seat, self._names, self._form = seat, names, form
        self._heard = 0

    def say(self, observation: Observation, text: str, place: int) -> None:
        chat = self.builder.chat
        tokens = (*chat.encode(chat.neutral(text)), chat.end_id)
        self.builder.reserve = len(tokens)
        self.builder.prompt(self._news(observation))
        self._heard = len(observation.messages)
        self.builder.record(Sample(tokens, (0.0,) * len(tokens), "stop"))
        self.places.append(place)

    def _news(self, observation: Observation) -> list[Chat]:
        if self._form is None:
            return news(observation, self._heard, self._seat, self._names)
        if self._form.react:
            return news(asks_react(observation, self._form), self._heard, self._seat, self._names)
        return strategist_news(observation, self._heard, self._names[self._seat], self._names, self._form)

    def traces(self, start: int) -> list[Trace]:
        collected = []
        for trace in self.builder.traces():
            turns = tuple(-1 if index < 0 else self.places[index] for index in trace.turn)
            parent = None if trace.parent is None else (trace.parent[0] + start, trace.parent[1])
            collected.append(trace.model_copy(update={"turn": turns, "parent": parent}))
        return collected


def traces(
    episode: Episode,
    chat: ChatTokenizer,
    *,
    seats: Collection[Seat] | None = None,
    policy: str = LEARNER,
    window: int | None = None,
    form: Form | None = None,
) -> tuple[Trace, ...]:
    """Return the traces of the players' `seats` (None = all) of a conversation, as if they had been sampled.

    Only moves of origin `seat` become sampled tokens. `turn` is an index into `episode.turns`, or into `episode.moves`
    if the conversation has no turns. Log-probabilities are 0. Conversations longer than `window` continue in a branch.
    With `form` they are the traces of the seats' strategists, in which the strategies of the moves are sampled; of a
    form `react` strategy and reply are, without private reasoning.
    """
    game = make(episode.scenario)
    names = episode.scenario.seats
    turns = {turn.move_index: (at, turn) for at, turn in enumerate(episode.turns) if turn.move_index is not None}
    included = range(len(names)) if seats is None else sorted(seats)
    readers = {
        seat: _Reader(TraceBuilder(chat, seat=seat, policy=policy, window=window), seat, names, form)
        for seat in included
    }
    pending: dict[Seat, Move] = {}
    for index, entry in enumerate(episode.moves):
        reader = readers.get(entry.seat)
        if reader is not None and entry.move.origin == "seat":
            observation = game.observe(entry.seat)
            place, turn = turns.get(index, (index, None))
            if form is None:
                reader.say(observation, _reply_text(entry.move, turn, observation), place)
            elif turn is not None and turn.strategy:
                reply = f"\n{_reply_text(entry.move, None, observation)}" if form.react else ""
                reader.say(observation, f"{form.label}: {turn.strategy}{reply}", place)
        try:
            pending = advance(game, pending, entry)
        except IllegalMove as error:
            raise BadInput(str(error), f"moves.{index}") from error
    collected: list[Trace] = []
    for reader in readers.values():
        collected += reader.traces(len(collected))
    return tuple(collected)


def _reply_text(move: Move, turn: Turn | None, observation: Observation) -> str:
    """Return a seat's reply: its private reasoning, if it was recorded, then its move as text."""
    action = next((action for action in observation.actions if action.name == move.action), None)
    text = move.text or ("" if action is None else canonical(action, move.args))
    if turn is None or not turn.private:
        return text
    if action is not None and action.text == "private" and not action.verbs:
        return f"{clean(turn.private)} {text}"
    return f"<think>\n{turn.private}\n</think>\n\n{text}"
