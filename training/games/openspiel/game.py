"""Adapts OpenSpiel's games to the `Game` protocol: state, legality, chance and returns are OpenSpiel's.

Invalid settings raise `BadInput`; illegal moves raise `IllegalMove` and change nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from training.analysis import AnalysisZone
from training.errors import BadInput
from training.games.actions import tag
from training.games.log import LoggedGame, check_names, read_settings
from training.games.openspiel.settings import OpenSpielSettings
from training.games.openspiel.view import View, pays
from training.records import ALL, SPECTATOR, Action, Argument, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Line, TableView, news

FORM = (
    "Each turn you are shown the state and your legal choices. Think if you like, then end with exactly one of them: "
    "{example}. Nobody else reads what you write before it. A reply without a legal choice is refused."
)
UNCHOSEN = "{name} makes no choice, so this is played: {tag}"


@lru_cache(maxsize=4096)
def answer(choices: tuple[str, ...], marked: bool) -> Action:
    """Return the single action of these games, the choice of a legal action."""
    chosen = Argument(name="choice", kind="choice", choices=choices, marked=marked)
    return Action(name="answer", args=(chosen,), text="private", label="Choose")


class OpenSpielGame(LoggedGame):
    """One game in progress."""

    def __init__(self, view: Callable[[OpenSpielSettings, Sequence[str]], View], scenario: Scenario) -> None:
        model = getattr(view, "model", OpenSpielSettings)
        settings = read_settings(model, scenario)
        check_names(scenario, "")
        super().__init__(scenario, max_chars=0)
        self.view = view(settings, scenario.seats)
        self._chance = rng(scenario.seed, "openspiel", "chance")
        self._fixed = _fixed(settings.fixed, self.view)
        self._turns = [0] * len(self.names)
        self._loser: Seat | None = None
        self._forfeited: set[Seat] = set()
        played = self.view.load()
        self._pays = pays(played)
        self.state = played.new_initial_state()
        self._begin(settings)
        self._choices: dict[str, int] = {}
        self._open()

    def _begin(self, settings: OpenSpielSettings) -> None:
        """Deal the cards and play the opening."""
        self._draw()
        for place, action in enumerate(settings.opening):
            if self.state.is_terminal() or action not in self.state.legal_actions():
                raise BadInput(f"move {action} is not legal at that point", f"settings.opening.{place}")
            self.state.apply_action(action)
            self._draw()
        if self.state.is_terminal():
            raise BadInput("the opening ends the game", "settings.opening")
        if not self.view.deck() and next(self._fixed, None) is not None:
            raise BadInput("more outcomes are given than chance has before the first move", "settings.fixed")

    def _draw(self) -> bool:
        """Apply outcomes of chance until a seat must move; return whether there were any."""
        drawn = False
        while self.state.is_chance_node():
            outcomes, weights = zip(*self.state.chance_outcomes(), strict=True)
            outcome = next(self._fixed, None)
            if outcome is None:
                outcome = self._chance.choices(outcomes, weights)[0]
            elif outcome not in outcomes:
                raise BadInput(f"chance cannot bring {outcome} then", "settings.fixed")
            self.state.apply_action(outcome)
            drawn = True
        return drawn

    def _open(self) -> None:
        """Show everybody the rules, then show the first seat its turn."""
        self._ready()
        choices = self._offered(self.state.current_player())[0].args[0].choices
        example = tag(answer(choices, self.view.marked), {"choice": choices[0]})
        rules = self.view.rules()
        self._log.brief(
            {seat: f"{rules}\n\n{self.view.brief(seat)}\n{FORM.format(example=example)}" for seat in self._log.players},
            channel="private",
        )
        self._log.brief({SPECTATOR: rules, ALL: rules})
        self._tell_state()
        self._tell_turn()

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        over = self._loser is not None or self.state.is_terminal()
        return frozenset() if over else frozenset({self.state.current_player()})

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return (answer(tuple(self._choices), self.view.marked),)

    def default(self, seat: Seat) -> Move:
        """Return the first legal choice in OpenSpiel's order: the first empty cell, PASS, FOLD or CALL."""
        return Move(action="answer", args={"choice": next(iter(self._choices), "")}, origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        if self.to_act():
            return dict.fromkeys(self._log.players)
        return dict(enumerate(self._result()))

    def earned(self) -> Mapping[Seat, float]:
        return dict(enumerate(self._result())) if self._pays else {}

    def in_reach(self) -> Mapping[Seat, float]:
        return dict(enumerate(self._result())) if self.view.keeps else {}

    def _result(self) -> Sequence[float]:
        if self._loser is not None:
            return self.view.forfeit(self.state, self._loser)
        return [float(value) for value in self.state.returns()]

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        """Return who is to act; if moves are hidden, each seat knows only whether it acts itself."""
        sees = self.view.public or viewer in (ALL, self.scenario.tool_seat)
        return self.to_act() if sees else self.to_act() & {viewer}

    def metrics(self) -> Mapping[str, float]:
        if self.to_act():
            return {}
        result = self._result()
        return {
            "turns": float(sum(self._turns)),
            "forfeit": float(self._loser is not None or bool(self._forfeited)),
            "even": float(len(set(result)) == 1),
            "joint_return": float(sum(result)),
        }

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        if self.to_act():
            return {}
        result = self._result()
        even = len(set(result)) == 1
        return {seat: {"win": float(value == max(result) and not even)} for seat, value in enumerate(result)}

    def show(self, viewer: Viewer) -> TableView:
        """Return the table as the view of the game draws it."""
        acts = viewer in self.to_act()
        chosen = {action: text for text, action in self._choices.items()} if acts else {}
        return TableView(
            zones=self.view.zones(self.state, viewer, chosen),
            phase=self.view.phase(self.state) if self.to_act() else "",
            ask=self.view.ask(self.state, viewer) if acts else "",
            rules=self.view.guide(),
            brief=self.view.private(self.state, viewer) if viewer in self._log.players else None,
            mood="" if self.to_act() else "over",
            headline="" if self.to_act() else self._headline(viewer),
            moment="" if self.to_act() else self._moment(),
        )

    def _headline(self, viewer: Viewer) -> str:
        """Return how the game ended for a viewer."""
        return self.view.headline(self.state, self._result(), viewer)

    def analysis(self) -> tuple[AnalysisZone, ...]:
        """Return what a solver or an engine says of the moves of an ended game."""
        return () if self.to_act() else self.view.analysis(self.state)

    def _moment(self) -> str:
        """Return what ended the game."""
        return self.view.moment(self.state) if self._loser is None else f"{self.names[self._loser]} gave up."

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return self.view.deed(self.state, seat, self._choices[str(move.args["choice"])])

    # --- one turn ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        if move.origin == "forfeit":
            self._give_up(seat)
        else:
            self._play(seat, move)
        while self.to_act() and (seat := self.state.current_player()) in self._forfeited:
            self._play(seat, self.default(seat))
        self._tell_turn() if self.to_act() else self._tell_end()

    def _give_up(self, seat: Seat) -> None:
        """End a game of two; with more seats, the seat plays defaults from now on."""
        self._log.tell(f"{self.names[seat]} gives up the game.")
        if len(self.names) == 2:
            self._turns[seat] += 1
            self._loser = seat
        else:
            self._forfeited.add(seat)

    def _play(self, seat: Seat, move: Move) -> None:
        self._turns[seat] += 1
        self._tell_move(seat, move)
        self.state.apply_action(self._choices[str(move.args["choice"])])
        if self._draw():
            self._tell_state()
        self._ready()

    def _ready(self) -> None:
        """List the legal choices of the seat to move."""
        self._choices = {}
        if not self.state.is_terminal():
            self._choices = self.view.choices(self.state, self.state.current_player())

    def _tell_move(self, seat: Seat, move: Move) -> None:
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)}, None if self.view.public else ())
        else:
            action = self._offered(seat)[0]
            text = UNCHOSEN.format(name=self.names[seat], tag=tag(action, move.args))
            line = Line(kind="deed", seat=seat, text=f"{self._deed(seat, action, move)} (no choice was made)")
            self._log.tell(text, None if self.view.public else {seat}, lines=(line,))

    def _tell_state(self) -> None:
        """Show the state after chance to viewers who do not play."""
        states = {viewer: self.view.state(self.state, viewer) for viewer in (SPECTATOR, ALL)}
        self._log.brief({viewer: text for viewer, text in states.items() if text})

    def _tell_turn(self) -> None:
        seat = self.state.current_player()
        legal = ", ".join(f"<{choice}>" if self.view.marked else choice for choice in self._choices)
        text = (
            f"Information of Turn-{self._turns[seat] + 1}:\nIt is your turn.\n\n"
            f"GAME STATE:\n{self.view.state(self.state, seat)}\n\nLEGAL ACTIONS:\n{legal}"
        )
        self._log.brief({seat: text}, channel="private")

    def _tell_end(self) -> None:
        showdown = "" if self._loser is not None else self.view.showdown(self.state)
        result = self._result()
        if len(set(result)) == 1:
            result_line = f"The game is over; everybody has {result[0]:g}."
        else:
            scores = ", ".join(f"{name} {value:g}" for name, value in zip(self.names, result, strict=True))
            result_line = f"The game is over: {scores}."
        moment = () if self._loser is not None else news(self._moment())
        self._log.tell(f"{showdown} {result_line}".strip(), lines=(*moment, *news(self._headline(SPECTATOR))))


def _fixed(outcomes: Sequence[int], view: View) -> Iterator[int]:
    """Return the stated outcomes of chance, checked against the deck if the game has one."""
    deck = view.deck()
    if deck:
        if len(outcomes) > view.draws():
            raise BadInput(f"at most {view.draws()} cards are drawn in a game", "settings.fixed")
        if over := Counter(outcomes) - deck:
            raise BadInput(f"the deck does not have that many of {sorted(over)}", "settings.fixed")
    return iter(outcomes)
