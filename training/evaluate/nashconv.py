"""The distance of a Kuhn or Leduc poker policy from an equilibrium: OpenSpiel's NashConv, computed exactly.

A language model's policy is its probability of each legal answer directly after the seat's observation, without
reasoning: of the whole answer, normalised over the legal ones, or as constrained decoding samples it. Raises `BadInput`
for another game or an unknown policy, and the errors of the engine.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Protocol

import pyspiel

from training import bases
from training.engines.trie import Trie
from training.games import make, replay
from training.games.actions import write
from training.games.openspiel.equilibria import Policy
from training.games.openspiel.game import OpenSpielGame
from training.games.prose import NAMES
from training.players.strategic import POKERS
from training.players.table import SOLVED, solution
from training.records import Move, Observation, Scenario, Seat, SeatMove
from training.suites import check_solvable
from training.text.messages import Chat, chat

SEATS = NAMES[:2]
OnProgress = Callable[[int, int], None]
"""Called after each information state with (number scored, number of states)."""


class Scorer(Protocol):
    """The part of an engine that is used here."""

    async def score(self, prefix: Sequence[int], continuations: Sequence[Sequence[int]]) -> list[float]:
        """Return log p(continuation | prefix) for each continuation."""


class ChatTokens(Protocol):
    """The part of a tokenizer with a chat template that is used here."""

    @property
    def end_id(self) -> int:
        """The token that ends a reply."""

    def prompt(self, messages: Sequence[Chat]) -> list[int]:
        """Return the tokens of a conversation."""

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text."""


@dataclass(frozen=True, slots=True)
class Point:
    """One information state: the seat to act, its observation, and OpenSpiel's numbers of the legal actions."""

    seat: Seat
    observation: Observation
    actions: tuple[int, ...]

    def answers(self) -> list[str]:
        """Return every legal answer as text, without reasoning."""
        (action,) = self.observation.actions
        return [write(action, {"choice": choice}) for choice in action.args[0].choices]


def points(game: str) -> dict[str, Point]:
    """Return every information state of a game by OpenSpiel's string; raise `BadInput` for another game."""
    check_solvable(game, "game")
    states: dict[str, Point] = {}
    for deal in _deals(game):
        scenario = Scenario(id=game, game=game, settings={"fixed": deal}, seats=SEATS)
        states |= {where: point for where, point in _walk(scenario, ()) if where not in states}
    return states


def _deals(game: str) -> Iterator[list[int]]:
    """Yield every order in which the cards can be dealt."""
    first = make(Scenario(id=game, game=game, seats=SEATS))
    assert isinstance(first, OpenSpielGame)
    deck, count = first.view.deck(), first.view.draws()
    for cards in product(deck, repeat=count):
        if all(cards.count(card) <= deck[card] for card in cards):
            yield list(cards)


def _walk(scenario: Scenario, moves: tuple[SeatMove, ...]) -> Iterator[tuple[str, Point]]:
    """Yield the information states reachable after `moves`, parents before children."""
    game = replay(scenario, moves)
    assert isinstance(game, OpenSpielGame)
    for seat in game.to_act():
        observation = game.observe(seat)
        state = game.state
        yield state.information_state_string(seat), Point(seat, observation, tuple(state.legal_actions()))
        for choice in observation.actions[0].args[0].choices:
            move = Move(action="answer", args={"choice": choice})
            yield from _walk(scenario, (*moves, SeatMove(seat=seat, move=move)))


async def model_policy(
    states: Mapping[str, Point],
    engine: Scorer,
    tokens: ChatTokens,
    on_progress: OnProgress = lambda done, of: None,
    *,
    constrained: float | None = None,
) -> Policy:
    """Return a model's policy: softmax over the legal answers of log p(answer and its end).

    With `constrained`, it is the policy that constrained decoding samples from at this temperature.
    """
    done = 0

    async def answer_probabilities(point: Point) -> dict[int, float]:
        prefix = tokens.prompt(chat(point.observation, point.seat, SEATS))
        answers = [(*tokens.encode(answer), tokens.end_id) for answer in point.answers()]
        if constrained is None:
            chances = _softmax(await engine.score(prefix, answers))
        else:
            chances = await constrained_probabilities(engine, prefix, answers, constrained)
        nonlocal done
        done += 1
        on_progress(done, len(states))
        return dict(zip(point.actions, chances, strict=True))

    policies = await asyncio.gather(*(answer_probabilities(point) for point in states.values()))
    return dict(zip(states, policies, strict=True))


async def constrained_probabilities(
    engine: Scorer, prefix: Sequence[int], answers: Sequence[tuple[int, ...]], temperature: float
) -> list[float]:
    """Return the probability of each answer where only the tokens that continue one of them can be sampled.

    At a place with several of them it is softmax(log p / temperature) over these. What is scored is each answer up to
    such a token: the part that they share is a constant of the softmax.
    """
    trie = Trie(answers)
    starts = {answer[:place] for answer in answers for place in range(len(answer))}
    places = [(start, allowed) for start in sorted(starts) if len(allowed := trie.allowed(start)) > 1]
    scores = iter(await engine.score(prefix, [(*start, token) for start, allowed in places for token in allowed]))
    chances: dict[tuple[int, ...], float] = {}
    for start, allowed in places:
        chosen = _softmax([next(scores) / temperature for _ in allowed])
        chances |= {(*start, token): chance for token, chance in zip(allowed, chosen, strict=True)}
    return [math.prod(chances.get(answer[: end + 1], 1.0) for end in range(len(answer))) for answer in answers]


def _softmax(scores: Sequence[float]) -> list[float]:
    weights = [math.exp(score - max(scores)) for score in scores]
    return [weight / sum(weights) for weight in weights]


def uniform(states: Mapping[str, Point]) -> Policy:
    """Return the policy that chooses uniformly among the legal answers."""
    return {where: dict.fromkeys(point.actions, 1 / len(point.actions)) for where, point in states.items()}


def named_policy(name: str, game: str, states: Mapping[str, Point]) -> Policy | None:
    """Return the policy of `random`, `nash` or `cfr`, None for a model; raise `BadInput` if it does not play `game`."""
    if name == "random":
        return uniform(states)
    return solution(name, game, "policy").policy if name in SOLVED else None


def measure(game: str, policy: Policy) -> dict[str, float]:
    """Return NashConv (the sum of both seats' gains from a best response), half of it, and the first seat's value."""
    kind = POKERS[game]
    loaded = kind(kind.model(), SEATS).load()
    table = pyspiel.TabularPolicy({where: list(choices.items()) for where, choices in policy.items()})
    nash_conv: float = pyspiel.nash_conv(loaded, table)
    value = pyspiel.expected_returns(loaded.new_initial_state(), table, -1, True)[0]
    return {"nash_conv": nash_conv, "exploitability": nash_conv / 2, "value": value}


async def _score_model(
    path: Path,
    states: Mapping[str, Point],
    engine: str,
    device: str,
    dtype: str,
    on_progress: OnProgress,
    constrained: float | None,
) -> Policy:
    from training import engines
    from training.engines.local.loading import load_tokenizer
    from training.text.template import ChatTokenizer

    model = engines.make(engine, path, dtype=dtype, device=device)
    try:
        tokens = ChatTokenizer(load_tokenizer(path))
        return await model_policy(states, model, tokens, on_progress, constrained=constrained)
    finally:
        await model.close()


def run(
    game: str,
    source: str,
    *,
    engine: str,
    device: str,
    dtype: str,
    on_progress: OnProgress,
    constrained: float | None = None,
) -> dict[str, Any]:
    """Measure a policy by name, or a model by folder or registered name; return the game, the policy and the numbers.

    A model takes seconds for Kuhn poker and minutes for Leduc; `on_progress` is called after every state. `constrained`
    is that of `model_policy`.
    """
    states = points(game)
    policy = named_policy(source, game, states)
    if policy is None:
        path = bases.resolve(source)
        policy = asyncio.run(_score_model(path, states, engine, device, dtype, on_progress, constrained))
    return {"game": game, "policy": source, "states": len(states), **measure(game, policy)}
