"""The base class of players of strategic games, which rebuild the game's state from the observed moves.

This module never reads the scenario's seed or its configured deal: a seat knows only its observation.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from random import Random

import pyspiel

from training.errors import BadInput
from training.games import make
from training.games.actions import write
from training.games.openspiel.game import OpenSpielGame
from training.games.openspiel.kuhn_poker import KuhnPoker
from training.games.openspiel.leduc_poker import LeducPoker
from training.games.openspiel.poker import Poker, rank
from training.games.openspiel.view import View
from training.players.base import Reply
from training.records import Observation, Scenario, Seat, Trace
from training.seeding import rng

_CHOSEN = re.compile(r"<answer><?([^<>]*)>?</answer>")
_UNCHOSEN = re.compile(r".* makes no choice, so this is played: <answer><?([^<>]*)>?</answer>")
_TURN = "Information of Turn-"
_PRIVATE_CARD = re.compile(r"your card is (\w+ \(\w\))")
_PUBLIC = re.compile(r"the public card is (\w+ \(\w\))")
POKERS: dict[str, type[Poker]] = {view.game: view for view in (KuhnPoker, LeducPoker)}


class StrategicPlayer(ABC):
    """One seat of a strategic game that answers with a choice alone, deterministic by observation and seed."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        self.scenario = scenario
        self.seat = seat

    async def act(self, seat: Seat, observation: Observation, seed: int) -> Reply:
        """Answer with a choice; raise `BadInput` where none is offered."""
        if not observation.actions:
            raise BadInput("a player was asked for a move, and no action is possible", f"seat {seat}")
        (action,) = observation.actions
        return Reply(write(action, {"choice": self.choose(observation, rng(seed, "strategist"))}))

    def traces(self) -> tuple[Trace, ...]:
        """Return no traces: this player samples no tokens."""
        return ()

    @abstractmethod
    def choose(self, observation: Observation, chance: Random) -> str:
        """Return the choice."""


def newest_turn(observation: Observation) -> str:
    """Return the text of the game's newest turn message to the seat; refusals may follow it."""
    return next((m.text for m in reversed(observation.messages) if m.author is None and m.text.startswith(_TURN)), "")


def played_choices(observation: Observation) -> Iterator[tuple[Seat | None, str]]:
    """Yield (seat, choice) of every observed move; the seat is None if the game played a default for it.

    The moves may include refused attempts of the player's own seat, which were illegal when they were made.
    """
    for message in observation.messages[1:]:
        form = _UNCHOSEN if message.author is None else _CHOSEN
        if match := form.fullmatch(message.text.strip()):
            yield message.author, match.group(1)


def follow(view: View, state: pyspiel.State, observation: Observation) -> Iterator[pyspiel.State]:
    """Apply the observed moves to `state`; yield it at every chance node, where the caller applies the outcome."""
    for author, choice in played_choices(observation):
        if state.is_terminal():
            return
        player = state.current_player()
        actions = {text.lower(): action for text, action in view.choices(state, player).items()}
        if author in (None, player) and choice.lower() in actions:
            state.apply_action(actions[choice.lower()])
            if state.is_chance_node():
                yield state


def observed_game(scenario: Scenario, observation: Observation) -> OpenSpielGame:
    """Return a game without chance or hidden state after the observed moves."""
    game = make(scenario)
    assert isinstance(game, OpenSpielGame)
    for _ in follow(game.view, game.state, observation):
        raise AssertionError("a game without chance came to chance")
    return game


def poker_state(scenario: Scenario, seat: Seat, observation: Observation) -> pyspiel.State:
    """Return a Kuhn or Leduc poker state in the information set of `seat`; the opponent's card is arbitrary."""
    kind = POKERS[scenario.game]
    view = kind(kind.model.model_validate(scenario.settings), scenario.seats)
    private, public = _named_rank(_PRIVATE_CARD, observation), _named_rank(_PUBLIC, observation)
    assert private is not None
    other = next(dealt for dealt in range(3) if dealt not in (private, public))
    state = view.load().new_initial_state()
    for dealt in (private, other) if seat == 0 else (other, private):
        state.apply_action(dealt)
    for action in view.settings.opening:
        _turn_up(state, public)
        state.apply_action(action)
    _turn_up(state, public)
    for waiting in follow(view, state, observation):
        _turn_up(waiting, public)
    return state


def _turn_up(state: pyspiel.State, public: int | None) -> None:
    if state.is_chance_node():
        assert public is not None
        state.apply_action(public)


def _named_rank(pattern: re.Pattern[str], observation: Observation) -> int | None:
    """Return the rank of the card that the newest turn message names, or None."""
    match = pattern.search(newest_turn(observation))
    return rank(match.group(1)) if match else None
