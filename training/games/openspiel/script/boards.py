"""A script for tic-tac-toe and Connect Four: win at once, leave the other no winning move, else prefer the middle."""

from __future__ import annotations

from random import Random

import pyspiel

from training.games.actions import write
from training.games.openspiel.boards import MARKS
from training.players.scripted import Script, pick
from training.players.strategic import observed_game
from training.records import Observation, Scenario, Seat

WINS = ("This makes my line, so I win at once.", "My line is complete with this one.")
BLOCKS = (
    "{other} could win with the next mark, so I must stop that here.",
    "I have to be careful: only this way {other} cannot win next.",
)
LOST = ("{other} has more than one way to win, so I can only hope.",)
MIDDLE = ("Nobody can win next, so I take the best place: the nearer to the middle, the more lines.",)
CORNER = ("Nobody can win next and the centre is gone, so a corner is best: it has three lines.",)
EDGE = ("Nobody can win next; what is left are edges.",)


class BoardScript(Script):
    """Looks two moves ahead."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        self._scenario = scenario

    def answer(self, observation: Observation, chance: Random) -> str:
        game = observed_game(self._scenario, observation)
        choices = {action: text for text, action in game.view.choices(game.state, self.seat).items()}
        action, why = self._best(game.state, list(choices), chance)
        words = pick(chance, why).format(other=f"the other player with {MARKS[1 - self.seat]}")
        return write(observation.actions[0], {"choice": choices[action]}, f"{words[:1].upper()}{words[1:]}")

    def _best(self, state: pyspiel.State, legal: list[int], chance: Random) -> tuple[int, tuple[str, ...]]:
        """Return the move, and wordings of its reason."""
        for action in legal:
            if _wins(state, action, self.seat):
                return action, WINS
        safe = [action for action in legal if not _lets_win(state.child(action), 1 - self.seat)]
        worth = _worth(state)
        best = max(worth[action] for action in safe or legal)
        action = chance.choice([action for action in safe or legal if worth[action] == best])
        if not safe:
            return action, LOST
        if len(safe) < len(legal):
            return action, BLOCKS
        return action, MIDDLE if worth is CONNECT_FOUR else {3: MIDDLE, 2: CORNER, 1: EDGE}[worth[action]]


TIC_TAC_TOE = (2, 1, 2, 1, 3, 1, 2, 1, 2)
"""Value of each cell: centre, corner, edge."""
CONNECT_FOUR = (0, 1, 2, 3, 2, 1, 0)


def _worth(state: pyspiel.State) -> tuple[int, ...]:
    return TIC_TAC_TOE if state.get_game().get_type().short_name == "tic_tac_toe" else CONNECT_FOUR


def _wins(state: pyspiel.State, action: int, seat: Seat) -> bool:
    after = state.child(action)
    return bool(after.is_terminal() and after.player_return(seat) > 0)


def _lets_win(state: pyspiel.State, seat: Seat) -> bool:
    return not state.is_terminal() and any(_wins(state, action, seat) for action in state.legal_actions())
