"""The state of a game of Werewolf, its visibility, and its joint steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Literal

from training.games.opinion_changes import DiscussionLog
from training.games.werewolf import roles, words
from training.games.werewolf.actions import NOBODY, TARGET
from training.games.werewolf.log import DelayedLog
from training.games.werewolf.settings import Event, Role, WerewolfSettings
from training.records import ALL, SPECTATOR, Action, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import news

OVER = "The game is over"
Cause = Literal["wolves", "poison", "vote", "shot"]
How = Literal["night", "vote", "shot"]
"""How a seat has left, as everybody knows it."""


@dataclass(frozen=True, slots=True)
class Step:
    """One joint step: the offers to each acting seat, and who hears the messages (None = everybody).

    In a `public` step everybody may know who acts; otherwise each knows only of itself, and is asked in private. Before
    and after a `probed` one everybody alive may be asked for whom it would vote.
    """

    offers: Mapping[Seat, tuple[Action, ...]]
    public: bool = False
    hearers: Collection[Viewer] | None = ()
    channel: str = "private"
    speech: bool = False
    probed: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The public state: the phase, the dead with the day of their death, the votes of the last ballot."""

    phase: str
    died: Mapping[Seat, int]
    votes: Mapping[Seat, Seat | None]


@dataclass(frozen=True, slots=True)
class Departure:
    """Seats that left the game at the same time; `by` shot them."""

    seats: tuple[Seat, ...]
    how: How
    day: int
    by: Seat | None = None


@dataclass(frozen=True, slots=True)
class Deed:
    """What a seat did to another on a day, or in the night before it: the action's name, such as `save` or `vote`."""

    day: int
    seat: Seat
    action: str
    target: Seat


Moves = Mapping[Seat, Move]
Plan = Generator[Step, Moves, None]


class Village:
    """The state that nights and days share."""

    def __init__(self, scenario: Scenario, settings: WerewolfSettings) -> None:
        self.settings = settings
        self.names = scenario.seats
        self.roles = roles.dealt(settings, scenario.seed)
        self.log = DelayedLog(len(scenario.seats), settings.spectator_delay)
        self.alive = list(range(len(scenario.seats)))
        self.died: dict[Seat, int] = {}  # the day on which, or in whose night
        self.departures: list[Departure] = []
        self.ghosts: set[Seat] = set()  # the dead who may see everything
        self.discussions = DiscussionLog(scenario.seats)
        self.steps = 0  # complete game steps, with the present one
        self.day = 0
        self.phase = ""
        self.won: roles.Team | None = None
        self.votes: dict[Seat, Seat | None] = {}
        self.counts: dict[str, Counter[Seat]] = {"votes": Counter(), "votes_on_wolves": Counter()}
        self.learned: dict[Seat, dict[Seat, int]] = {seat: {} for seat in self.alive}  # in which night
        self.potions: dict[Seat, set[str]] = {seat: {"save", "poison"} for seat in self.having("witch")}
        self.deeds: list[Deed] = []
        self.guarded: dict[Seat, Seat | None] = {}
        self.victim: Seat | None = None  # of the wolves, tonight
        self._seed = scenario.seed
        self._snapshots: list[Snapshot] = []  # as each phase began

    # --- who is who ---

    def having(self, role: Role) -> list[Seat]:
        """Return the living seats with a role."""
        return [seat for seat in self.alive if self.roles[seat] == role]

    def others(self, seats: Collection[Seat]) -> list[Seat]:
        """Return the living seats except `seats`."""
        return [seat for seat in self.alive if seat not in seats]

    def named(self, seats: Iterable[Seat]) -> tuple[str, ...]:
        """Return the names of seats."""
        return tuple(self.names[seat] for seat in seats)

    def target(self, move: Move) -> Seat | None:
        """Return the target of a move; None = nobody, also for a move without a target."""
        name = move.args.get(TARGET, NOBODY)
        return None if name == NOBODY else self.names.index(str(name))

    def did(self, seat: Seat, action: str, target: Seat | None) -> None:
        """Record what a seat did; nothing for nobody as target."""
        if target is not None:
            self.deeds.append(Deed(self.day, seat, action, target))

    def winner(self) -> roles.Team | None:
        """Return the winner so far, without regard to the day limit."""
        return roles.winner(self.settings, self.roles, self.alive)

    def stated(self, event: Event) -> list[Seat]:
        """Return the living seats that the settings state for an event of today."""
        today = (fixed.seats for fixed in self.settings.fixed if fixed.event == event and fixed.day == self.day)
        return [seat for seats in today for seat in seats if seat in self.alive]

    def draw(self, event: Event, among: Sequence[Seat]) -> Seat:
        """Return the seat of an event: the stated one, or a random one."""
        seats = [seat for seat in self.stated(event) if seat in among]
        return seats[0] if seats else self.chance(event).choice(among)

    def chance(self, event: str) -> Random:
        """Return the random generator of one event of this day; it does not depend on the players' roles or moves."""
        return rng(self._seed, "werewolf", event, self.day)

    def bury(self, dead: Iterable[Seat], how: How, by: Seat | None = None) -> None:
        """Remove seats from the game."""
        departure = Departure(tuple(dead), how, self.day, by)
        for seat in departure.seats:
            self.alive.remove(seat)
            self.died[seat] = self.day
        if departure.seats:
            self.departures.append(departure)

    # --- messages ---

    def enter(self, phase: str) -> None:
        """Begin a phase; it has the same name for everybody."""
        self.phase = phase
        self._snapshots.append(Snapshot(phase, dict(self.died), self.votes))
        self.log.next_phase()

    def finish(self, team: roles.Team) -> None:
        """End the game, and show the delayed messages to the spectators."""
        self.won = team
        end = words.end(self.names, self.roles, wolves=team == "wolves")
        self.tell(end, "The werewolves win." if team == "wolves" else "The village wins.")
        self.enter(OVER)
        self.log.release()

    def snapshot(self, viewer: Viewer) -> Snapshot:
        """Return the public state; for spectators, the one that their delay has reached."""
        if viewer != SPECTATOR or self.won:
            return Snapshot(self.phase, self.died, self.votes)
        begun = len(self._snapshots) - self.settings.spectator_delay  # phases whose lines spectators have read
        if begun == len(self._snapshots):
            return Snapshot(self.phase, self.died, self.votes)
        phase = self._snapshots[begun - 1].phase if begun > 0 else ""
        then = self._snapshots[max(begun, 0)]
        return Snapshot(phase, then.died, then.votes)

    def tell(self, text: str, sentence: str | None = None, to: Mapping[Seat, str] | None = None) -> None:
        """Show a message to everybody.

        People read `sentence` of it (None: the same, empty: nothing), at the places in `to` another one.
        """
        lines = news(text if sentence is None else sentence) if sentence != "" else ()
        everybody: tuple[Viewer, ...] = (*range(len(self.names)), SPECTATOR, ALL)
        addressed = {seat: news(text) for seat, text in (to or {}).items()}
        self.log.tell_each(dict.fromkeys(everybody, text), lines={**dict.fromkeys(everybody, lines), **addressed})

    def tell_one(self, seat: Seat, to_seat: str, about: str) -> None:
        """Show `to_seat` privately to one seat, and `about` to viewers who may see everything."""
        self.log.tell_each({seat: to_seat}, channel="private")
        self.log.tell(about, hearers=self.ghosts - {seat}, channel="private")

    def tell_pack(self, text: str, sentence: str | None = None) -> None:
        """Show a message to the living wolves and to viewers who may see everything; people read `sentence` of it."""
        pack = self.ghosts | set(self.having("werewolf"))
        self.log.tell(text, hearers=pack, channel="wolves", lines=news(sentence or text))

    def ask(self, offers: Mapping[Seat, tuple[Action, ...]]) -> Step:
        """Return a hidden step; each acting seat gets a private message about it."""
        prompts: dict[Viewer, str] = {seat: words.your_turn(actions) for seat, actions in offers.items()}
        self.log.brief(prompts, channel="private")
        return Step(offers, hearers=frozenset(self.ghosts))


def leaders(votes: Iterable[Seat | None]) -> list[Seat]:
    """Return the seats with the most votes, in seat order; none without votes."""
    counts = Counter(vote for vote in votes if vote is not None)
    return sorted(seat for seat, count in counts.items() if count == max(counts.values()))
