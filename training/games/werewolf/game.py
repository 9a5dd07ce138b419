"""Werewolf as a state machine: a generator plays the phases, yields joint steps and receives their moves.

Invalid settings raise `BadInput`; illegal moves raise `IllegalMove` and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from training.analysis import OpinionChanges
from training.errors import BadInput
from training.games.actions import tag
from training.games.base import CheckedStatement
from training.games.log import LoggedGame, check_names, elimination, read_settings
from training.games.opinion_changes import spoken
from training.games.werewolf import table, words
from training.games.werewolf.actions import NOBODY, TARGET, aimed
from training.games.werewolf.board import circle
from training.games.werewolf.checks import checked
from training.games.werewolf.claims import claimed
from training.games.werewolf.day import day, morning
from training.games.werewolf.night import night
from training.games.werewolf.roles import Team, team
from training.games.werewolf.settings import WerewolfSettings
from training.games.werewolf.village import OVER, Plan, Step, Village
from training.records import ALL, SPECTATOR, Action, Move, Probe, Scenario, Seat, Viewer
from training.views import TableView


class Werewolf(LoggedGame):
    """A village of 3 to 12 seats."""

    def __init__(self, scenario: Scenario) -> None:
        settings = read_settings(WerewolfSettings, scenario)
        _check_seats(scenario, settings)
        super().__init__(scenario, settings.max_chars, settings.max_words)
        self.settings = settings
        self.village = Village(scenario, settings)
        self._log = self.village.log
        self._claims = dict.fromkeys(range(len(self.names)), 0)
        self._asking = False
        self._forfeited: set[Seat] = set()
        self._open()
        self._story = self._tell_story()
        self._step: Step | None = next(self._story)

    def _open(self) -> None:
        """Show each viewer the rules with the roles that it may know."""
        names, roles = self.names, self.village.roles
        briefs = [words.brief(names, roles, seat) for seat in range(len(names))]
        self._log.brief({s: words.opening(self.settings, names, brief) for s, brief in enumerate(briefs)}, "private")
        public = words.opening(self.settings, names, "")
        self._log.brief({SPECTATOR: public, ALL: f"{public}\n\n{words.cast(names, roles)}"})

    def _tell_story(self) -> Plan:
        """Play nights and days until somebody has won."""
        v = self.village
        team: Team | None = None
        while not team:
            v.day += 1
            dead = yield from night(v)
            yield from morning(v, dead)
            if not v.winner():
                yield from day(v)
            team = v.winner() or ("village" if v.day == self.settings.day_limit else None)
        v.finish(team)

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        return frozenset(self._step.offers) - self._forfeited if self._step else frozenset()

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return self._step.offers[seat] if self._step else ()

    def default(self, seat: Seat) -> Move:
        """Return the last offered action with nobody as target: silence, no vote, no potion."""
        action = self._offered(seat)[-1]
        args = {arg.name: arg.low if arg.kind == "integer" else NOBODY for arg in action.args}
        return Move(action=action.name, args=args, origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        v = self.village
        if not v.won:
            return dict.fromkeys(range(len(self.names)))
        return {seat: float(team(role) == v.won) for seat, role in enumerate(v.roles)}

    def metrics(self) -> Mapping[str, float]:
        v = self.village
        if not v.won:
            return {}
        return {
            "days": float(v.day),
            "wolves_win": float(v.won == "wolves"),
            "village_wins": float(v.won == "village"),
            "at_day_limit": float(v.winner() is None),
        }

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        v = self.village
        return {seat: self._metrics_of(seat) for seat in range(len(v.roles))} if v.won else {}

    def _metrics_of(self, seat: Seat) -> dict[str, float]:
        """Return one seat's metrics in an ended game; a round is a night and the following day."""
        v = self.village
        metrics = {
            "won": float(team(v.roles[seat]) == v.won),
            "survived": float(seat not in v.died),
            "claims": float(self._claims[seat]),
            **{name: float(counts[seat]) for name, counts in v.counts.items()},
        }
        return metrics | elimination(v.died.get(seat), v.day)

    def roles(self) -> tuple[str, ...]:
        return self.village.roles

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        """Return who acts: in public steps all players know, at night each seat knows only whether it acts itself.

        To others, who gave up seems to act where it would: when they saw it stop would tell whether it acts at night.
        """
        if viewer in (ALL, self.scenario.tool_seat) or viewer in self.village.ghosts:
            return self.to_act()
        live = viewer != SPECTATOR or not self.settings.spectator_delay
        if self._step and self._step.public and live:
            return frozenset(self._step.offers) - (self._forfeited & {viewer})
        return self.to_act() & {viewer}

    def show(self, viewer: Viewer) -> TableView:
        """Return the circle of seats with the role card of a player."""
        v = self.village
        offered = self._offered(viewer) if viewer in self.to_act() else ()
        speaking = self.acting(viewer) if self._step and self._step.speech else ()
        phase = v.snapshot(viewer).phase
        return TableView(
            zones=(circle(v, viewer, offered, speaking),),
            phase="" if phase == OVER else phase,
            mood=table.mood(phase),
            ask=table.ask(v, offered),
            story=table.story(self.settings),
            rules=table.rules(self.settings),
            brief=table.brief(v, viewer) if viewer in range(len(self.names)) else None,
            headline=table.headline(v, viewer),
            moment=table.moment(v),
        )

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        """Return a bid; the game's next sentence announces all other moves."""
        return f"bids {move.args['level']} for the floor" if action.name == "bid" else ""

    def probes(self) -> Mapping[Seat, Probe]:
        """Return, before and after each speech, a question to each living player: its vote if it was now.

        Wolves know the truth, so no answer of theirs is right.
        """
        v = self.village
        if not self._asking or v.won:
            return {}
        wolves = set(v.named(v.having("werewolf")))
        probes = {}
        for seat in v.alive:
            if seat in self._forfeited:
                continue
            others = v.named(v.others({seat}))
            truth = () if self.names[seat] in wolves else tuple(name for name in others if name in wolves)
            replies = tuple(tag(aimed("vote", others), {TARGET: name}) for name in others)
            probes[seat] = Probe(question=words.PROBE, choices=others, truth=truth, replies=replies)
        return probes

    def analysis(self) -> tuple[OpinionChanges, ...]:
        """Return whose opinion changed after whose speech, by what everybody heard."""
        return self.village.discussions.analysis() if self.village.won else ()

    def claims(self, seat: Seat, text: str) -> list[CheckedStatement]:
        """Return the claims of roles and deeds in a text. For readers who may see everything."""
        return checked(self.village, seat, text)

    # --- one step ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        step = self._step
        assert step is not None
        self.village.steps = self._steps
        chosen = {seat: self._reply(seat, move) for seat, move in moves.items() if move.origin == "seat"}
        self._log.say(chosen, step.hearers, step.channel)
        for seat, move in moves.items():
            if move.origin == "forfeit":
                self._forfeited.add(seat)
                self.village.tell_one(seat, words.GIVEN_UP, f"{self.names[seat]} gives up.")
            elif move.origin != "seat":
                self.village.tell_one(seat, words.NO_ANSWER, f"{self.names[seat]} gives no answer.")
        if step.speech:
            for seat, reply in chosen.items():
                self._claims[seat] += bool(claimed(reply.text))
        if step.probed:
            for seat, reply in chosen.items():
                self.village.discussions.say(self._steps, seat, spoken(reply.lines))
        self._go_on({seat: move for seat, move in moves.items() if move.origin != "forfeit"})
        while self._step and not self.to_act():
            self._go_on({})
        speech_next = self._step is not None and self._step.probed
        self._asking = self.settings.probes and (step.probed or speech_next)

    def _go_on(self, moves: Mapping[Seat, Move]) -> None:
        """Continue the game with these moves, and with defaults for seats that gave up."""
        assert self._step is not None
        silent = {seat: self.default(seat) for seat in self._step.offers.keys() - moves.keys()}
        try:
            self._step = self._story.send(dict(sorted({**moves, **silent}.items())))
        except StopIteration:
            self._step = None


def _check_seats(scenario: Scenario, settings: WerewolfSettings) -> None:
    """Raise `BadInput` unless there is a role for every seat and every name is a valid target."""
    if len(scenario.seats) != len(settings.roles):
        raise BadInput(f"{len(settings.roles)} roles for {len(scenario.seats)} players", "settings.roles")
    check_names(scenario, NOBODY)
