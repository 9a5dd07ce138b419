"""The negotiation as a state machine: talk, propose, accept, reject, walk away.

Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from training.analysis import Frontier
from training.games.base import CheckedStatement
from training.games.log import LoggedGame, read_settings
from training.games.negotiation import table, words
from training.games.negotiation.checks import checked
from training.games.negotiation.settings import Items, NegotiationSettings
from training.games.negotiation.terms import terms
from training.records import ALL, SPECTATOR, Action, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Line, TableView, news

TALK = Action(name="talk", text="required", bare=True, label="Say something")
ACCEPT = Action(name="accept", label="Accept the proposal")
REJECT = Action(name="reject", label="Reject the proposal and speak next")
WALK_AWAY = Action(name="walk_away", label="Walk away without a deal")

End = Literal["deal", "walk_away", "limit", "forfeit"]


class Negotiation(LoggedGame):
    """Two seats, one deal or none."""

    def __init__(self, scenario: Scenario) -> None:
        settings = read_settings(NegotiationSettings, scenario)
        super().__init__(scenario, settings.max_chars)
        self.settings = settings
        self.terms = terms(settings.deal)
        self._free = (TALK, self.terms.propose(), WALK_AWAY)
        self._answer = (ACCEPT, REJECT, WALK_AWAY)
        drawn = rng(scenario.seed, "negotiation", "first").randrange(2)
        self._seat: Seat = drawn if settings.first_seat is None else settings.first_seat
        self._first = self._seat
        self._turn = 0
        self._proposals = 0
        self._offer: table.Offer | None = None
        self._made: list[table.Offer] = []
        self._end: End | None = None
        self._loser: Seat | None = None
        self._moment = ""
        self._open()

    def _open(self) -> None:
        """Show each viewer the rules with its private facts, then who begins."""
        actions = (TALK, self.terms.propose(), ACCEPT, REJECT, WALK_AWAY)

        def rules(briefs: str) -> str:
            return words.opening(self.settings, self.names, actions, self._seat, briefs)

        briefs = [words.brief(self.settings, self.terms, self.names, seat, addressed=True) for seat in (0, 1)]
        both = "\n\n".join(words.brief(self.settings, self.terms, self.names, seat, addressed=False) for seat in (0, 1))
        self._log.brief({0: rules(briefs[0]), 1: rules(briefs[1])}, channel="private")
        self._log.brief({ALL: rules(both), SPECTATOR: rules("")})
        self._log.tell(f"{self.names[self._seat]} begins.")

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        return frozenset() if self._end else frozenset({self._seat})

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return self._answer if self._offer else self._free

    def default(self, seat: Seat) -> Move:
        return Move(action="reject" if self._offer else "talk", origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        if not self._end:
            return {0: None, 1: None}
        return self._results(self._points())

    def in_reach(self) -> Mapping[Seat, float]:
        """Return each seat's result if it accepted what the other proposes, or else walked away."""
        if self._end:
            return self._results(self._points())
        alone = (self.terms.walk_away(0), self.terms.walk_away(1))
        results = dict(self._results(alone))
        if self._offer is not None:
            by, deal = self._offer
            agreed = self._results((self.terms.points(0, by, deal), self.terms.points(1, by, deal)))
            results[1 - by] = max(results[1 - by], agreed[1 - by])
        return results

    def _results(self, points: Sequence[float]) -> dict[Seat, float]:
        """Return the results of both seats with these points."""
        shares = [points[seat] / self.terms.maximum(seat) for seat in (0, 1)]
        weight = self.settings.prosocial
        return {seat: (1 - weight) * shares[seat] + weight * shares[1 - seat] for seat in (0, 1)}

    def metrics(self) -> Mapping[str, float]:
        if not self._end:
            return {}
        points, outcomes = self._points(), self.terms.outcomes()
        best = max(sum(outcome) for outcome in outcomes)
        gains = [(points[s] - self.terms.walk_away(s)) / self.terms.maximum(s) for s in (0, 1)]
        pareto = self._end == "deal" and not any(
            a >= points[0] and b >= points[1] and (a, b) != points for a, b in outcomes
        )
        return {
            "agreement": float(self._end == "deal"),
            "joint_points": sum(points),
            "efficiency": sum(points) / best,
            "pareto": float(pareto),
            "nash_product": max(0.0, gains[0]) * max(0.0, gains[1]),
            "turns": float(self._turn),
            "proposals": float(self._proposals),
            "walk_away": float(self._end == "walk_away"),
            "forfeit": float(self._end == "forfeit"),
        }

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        return {seat: {"points": points} for seat, points in enumerate(self._points())} if self._end else {}

    # --- for people ---

    def show(self, viewer: Viewer) -> TableView:
        """Return what is negotiated about, the standing proposal, and what it is worth to the viewer."""
        acts, answers = viewer in self.to_act(), self._offer is not None
        limit = self.settings.turn_limit
        return TableView(
            zones=table.zones(
                self.settings,
                self.terms,
                viewer,
                self._offer,
                self._made,
                proposes=acts and not answers,
                agreed=self._end == "deal",
            ),
            phase="" if self._end else f"Turn {self._turn + 1} of {limit}",
            mood="over" if self._end else "",
            ask=table.ask(self.names, viewer, limit - self._turn, answers=answers) if acts else "",
            story=table.story(self.settings, self.names),
            rules=table.rules(self.settings, self.names, self._first),
            brief=table.brief(self.settings, self.terms, self.names, viewer),
            headline=self._headline(viewer) if self._end else "",
            moment=self._moment,
        )

    def analysis(self) -> tuple[Frontier, ...]:
        """Return what could have been agreed on, for items; of a price the two points always add up to the same."""
        if not self._end or not isinstance(self.settings.deal, Items):
            return ()
        return (table.frontier(self.terms, self._made, agreed=self._end == "deal"),)

    def _headline(self, viewer: Viewer) -> str:
        deal = self._offer if self._end == "deal" else None
        gave_up = self._loser is not None and viewer == self._loser
        return table.headline(self.settings, self.terms, self.names, deal, self._points(), viewer, gave_up=gave_up)

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return "rejects the proposal" if move.action == "reject" else ""

    def claims(self, seat: Seat, text: str) -> list[CheckedStatement]:
        """Return the claims of a seat about what it needs. For readers who may see everything."""
        return checked(self.settings, self.names, seat, text) if seat in (0, 1) else []

    # --- one turn ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)})
        self._turn += 1
        name = self.names[seat]
        if move.origin == "forfeit":
            self._moment = f"{name} gave up in turn {self._turn}."
            self._finish_without("forfeit", f"{name} gives up the game.", loser=seat)
        elif move.action == "walk_away":
            self._moment = f"{name} walked away in turn {self._turn}."
            self._finish_without("walk_away", f"{name} walks away.")
        elif move.action == "accept":
            self._moment = f"{name} accepted {self.names[1 - seat]}'s proposal in turn {self._turn}."
            self._finish_deal(seat)
        else:
            self._go_on(seat, move)

    def _go_on(self, seat: Seat, move: Move) -> None:
        """Apply talk, a proposal or a rejection: show it, pass the turn, end the game at the limit."""
        if move.action == "propose":
            self._proposals += 1
            self._offer = (seat, dict(move.args))
            self._made.append(self._offer)
            self._seat = 1 - seat
            self._tell_offer()
        elif move.action == "reject":
            self._offer = None
            how = "rejects the proposal" if move.origin == "seat" else "does not answer, which rejects the proposal,"
            text = f"{self.names[seat]} {how} and speaks next."
            self._log.tell(text, lines=() if move.origin == "seat" else None)
        else:
            self._seat = 1 - seat
            if move.origin != "seat":
                self._log.tell(f"{self.names[seat]} says nothing.")
        left = self.settings.turn_limit - self._turn
        if left == 0:
            self._moment = f"All {self.settings.turn_limit} turns were used."
            self._finish_without("limit", f"All {self.settings.turn_limit} turns are used up.")
        elif line := words.remaining(left):
            self._log.tell(line)

    def _tell_offer(self) -> None:
        assert self._offer is not None
        by, deal = self._offer
        lines: dict[Viewer, str] = {
            seat: words.proposal(self.settings, self.terms, self.names, by, deal, seat) for seat in (0, 1)
        }
        public = words.proposal(self.settings, self.terms, self.names, by, deal, None)
        points = [self.terms.points(seat, by, deal) for seat in (0, 1)]
        private = f"{public} {words.all_points(self.terms, self.names, points)}"
        shown = {
            viewer: (Line(kind="deed", seat=None if viewer == by else by, text=self._proposal(viewer)),)
            for viewer in (0, 1, SPECTATOR, ALL)
        }
        self._log.tell_each({**lines, SPECTATOR: public, ALL: private}, lines=shown)

    def _proposal(self, reader: Viewer) -> str:
        assert self._offer is not None
        return table.proposal(self.settings, self.terms, self.names, self._offer, reader)

    def _finish_deal(self, seat: Seat) -> None:
        assert self._offer is not None
        by, deal = self._offer
        self._end = "deal"
        lines: dict[Viewer, str] = {
            reader: words.agreement(self.settings, self.terms, self.names, by, deal, reader) for reader in (0, 1)
        }
        public = words.agreement(self.settings, self.terms, self.names, by, deal, None)
        self._tell_end(lines, public, f"{self.names[seat]} accepts. ")

    def _finish_without(self, end: End, why: str, loser: Seat | None = None) -> None:
        self._offer, self._end, self._loser = None, end, loser
        lines: dict[Viewer, str] = {
            reader: words.no_deal(self.settings, self.terms, why, reader, lost=reader == loser) for reader in (0, 1)
        }
        self._tell_end(lines, words.no_deal(self.settings, self.terms, why, None))

    def _tell_end(self, lines: Mapping[Viewer, str], public: str, before: str = "") -> None:
        full = f"{public} {words.all_points(self.terms, self.names, self._points())}"
        texts = {**lines, SPECTATOR: public, ALL: full}
        ended = {viewer: news(f"{self._moment} {self._headline(viewer)}") for viewer in texts}
        self._log.tell_each({viewer: before + text for viewer, text in texts.items()}, lines=ended)

    def _points(self) -> tuple[float, float]:
        """Return both seats' points of the ended game: the deal's, the walk-away value, or 0 after giving up."""
        if self._end == "deal" and self._offer:
            by, deal = self._offer
            return self.terms.points(0, by, deal), self.terms.points(1, by, deal)
        first, second = (0.0 if seat == self._loser else self.terms.walk_away(seat) for seat in (0, 1))
        return first, second
