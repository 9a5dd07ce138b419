"""Among Us as a state machine: rounds in the rooms, meetings, votes.

Settings that do not fit the players raise `BadInput`; moves that are not possible raise `IllegalMove` and change
nothing. A seat that gives up plays defaults from then on: it waits, says nothing and votes for nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from training.analysis import OpinionChanges
from training.errors import BadInput
from training.games.actions import tag
from training.games.among_us import offers, table, words
from training.games.among_us.board import Known, circle, ship
from training.games.among_us.checks import checked
from training.games.among_us.meeting import Ballot, Meeting, ejected
from training.games.among_us.settings import AmongUsSettings, draw
from training.games.among_us.tally import Tally
from training.games.among_us.world import Event, Order, World
from training.games.base import CheckedStatement
from training.games.log import LoggedGame, Reply, check_names, read_settings
from training.games.opinion_changes import DiscussionLog
from training.games.opinion_changes import spoken as speech
from training.games.prose import listed
from training.records import ALL, SPECTATOR, Action, Move, Probe, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Circle, TableView, Zone, news

WIN, LOSS = 1.0, -1.0
End = Literal["ejected", "tasks", "kills", "limit"]


class AmongUs(LoggedGame):
    """One imposter among a crew with tasks."""

    def __init__(self, scenario: Scenario) -> None:
        settings = read_settings(AmongUsSettings, scenario)
        super().__init__(scenario, settings.max_chars, settings.words)
        check_names(scenario, offers.SKIP)
        self.settings = settings
        deal = settings.deal or draw(settings, len(self.names), scenario.seed)
        if deal.imposter >= len(self.names):
            raise BadInput(f"there is no seat {deal.imposter}", "settings.deal.imposter")
        if len(deal.tasks) != len(self.names):
            raise BadInput(f"tasks of {len(deal.tasks)} seats for {len(self.names)} players", "settings.deal.tasks")
        self.world = World(settings, deal.imposter, deal.tasks)
        self._tally = Tally(self.world)
        self._discussions = DiscussionLog(self.names)
        self._meeting: Meeting | None = None
        self._forfeited: frozenset[Seat] = frozenset()
        self._acting: frozenset[Seat] = frozenset()
        self._options: dict[Seat, tuple[Action, ...]] = {}
        self._end: End | None = None
        self._moment = ""
        self._left: dict[Seat, str] = {}  # who has left, as everybody knows it
        self._ballots: dict[Seat, Ballot] = {}  # of the last vote
        self._silent: list[Seat] = []
        self._fresh: frozenset[Seat] = frozenset()  # who has not moved since the last vote
        self._clock: dict[Viewer, int] = {}  # the last round of which a viewer has read
        self._open()
        self._ask()

    def _open(self) -> None:
        """Show each viewer the rules with its private facts."""
        imposter, seats = self.world.imposter, range(len(self.names))
        crew = [name for seat, name in enumerate(self.names) if seat != imposter]
        briefs = {seat: words.crewmate(self.names[seat], self.world.people[seat].tasks) for seat in seats}
        briefs[imposter] = words.imposter(self.names[imposter], crew)
        ever = {seat: offers.ever(self.names, seat, imposter, skip=self.settings.skip) for seat in seats}
        for seat in seats:
            rules = words.opening(self.settings, self.names, briefs[seat], ever[seat])
            self._log.brief({seat: rules}, channel="private")
        everything = words.opening(self.settings, self.names, words.everything(self.names, self.world), ())
        self._log.brief({SPECTATOR: words.opening(self.settings, self.names, "", ()), ALL: everything})

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        return self._acting

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        if self._meeting is None:
            return self._options[seat]
        return (offers.TALK,) if self._meeting.speaker is not None else (self._vote(seat),)

    def _vote(self, seat: Seat) -> Action:
        others = self._candidates(seat)
        return offers.vote((*others, offers.SKIP) if self.settings.skip else others)

    def _candidates(self, seat: Seat) -> tuple[str, ...]:
        return tuple(self.names[other] for other in self.world.living() if other != seat)

    def default(self, seat: Seat) -> Move:
        if self._meeting is None:
            return Move(action="wait", origin="default")
        if self._meeting.speaker is not None:
            return Move(action="talk", origin="default")
        nobody = offers.SKIP if self.settings.skip else self._candidates(seat)[0]
        return Move(action="vote", args={"player": nobody}, origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        if not self._end:
            return dict.fromkeys(range(len(self.names)))
        done, weight = self._tally.done, self.settings.task_reward
        return {
            seat: (WIN if self._won(seat) else LOSS) + weight * done[seat] / self.settings.tasks
            for seat in range(len(self.names))
        }

    def metrics(self) -> Mapping[str, float]:
        if not self._end:
            return {}
        ends = {f"end_{end}": float(self._end == end) for end in words.ENDS}
        return {"crew_won": float(self._crew_won()), **ends, **self._tally.metrics()}

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        if not self._end:
            return {}
        seats = range(len(self.names))
        return {seat: {"won": float(self._won(seat)), **self._tally.metrics_of(seat)} for seat in seats}

    def roles(self) -> tuple[str, ...]:
        return tuple("imposter" if seat == self.world.imposter else "crewmate" for seat in range(len(self.names)))

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        if self._meeting is not None or self._sees_all(viewer):
            return self._acting
        return self._acting & {viewer}

    def show(self, viewer: Viewer) -> TableView:
        """Return the map or the meeting, with the card of a player."""
        offered = self._offered(viewer) if viewer in self._acting else ()
        seat = viewer if viewer in range(len(self.names)) else None
        title, mood = self._titled(viewer)
        imposter, crew_won = self.world.imposter, self._crew_won()
        return TableView(
            zones=self._zones(viewer),
            phase=title,
            mood=mood,
            ask=table.ask(self.world, viewer, offered),
            story=table.story(self.settings, self.names),
            rules=table.rules(self.settings),
            brief=None if seat is None else table.brief(self.world, self.names, seat, self._tally.dealt[seat]),
            headline=table.headline(self.names, imposter, seat, crew_won=crew_won) if self._end else "",
            moment=self._moment,
        )

    def _titled(self, viewer: Viewer) -> tuple[str, Literal["", "day", "vote", "over"]]:
        """Return the title and the mood of the phase; the round is the last one of which the viewer has read."""
        if self._end:
            return "", "over"
        if self._meeting is None:
            now = self.world.round if self._sees_all(viewer) else self._clock.get(viewer, 0)
            return f"In the rooms{f', round {now}' if now else ''}", ""
        if self._meeting.speaker is None:
            return f"Meeting {self._tally.meetings}: the vote", "vote"
        return f"Meeting {self._tally.meetings}: speech {self._meeting.spoken + 1} of {self._meeting.length}", "day"

    def _zones(self, viewer: Viewer) -> tuple[Zone, ...]:
        """Return the meeting, or the map; the dead and spectators see no map."""
        around = self._circle(viewer)
        everything = self._sees_all(viewer)
        inside = everything or (viewer in range(len(self.names)) and self.world.people[viewer].alive)
        if self._meeting is not None or not inside:
            return (around,)
        offered = self._offered(viewer) if viewer in self._acting else ()
        seat = None if everything else viewer
        rooms = ship(self.world, self.names, seat, offered, 0 if seat is None else self._tally.dealt[seat])
        if self._end:
            return (around, rooms.model_copy(update={"note": ""}))
        return (rooms, around if viewer in self._fresh else around.model_copy(update={"shape": "row"}))

    def _circle(self, viewer: Viewer) -> Circle:
        """Return the circle with what `viewer` may know: its own end, and those that were announced."""
        left, roles = dict(self._left), dict.fromkeys(self._left, "crewmate")
        knows = self._sees_all(viewer) or bool(self._end)
        for seat, role in enumerate(self.roles()):
            if not self.world.people[seat].alive and (knows or seat == viewer):
                left.setdefault(seat, "killed")
            if knows or viewer == seat:
                roles[seat] = role
        speaker = self._meeting.speaker if self._meeting else None
        speaks = () if speaker is None else (speaker,)
        offered = self._offered(viewer) if viewer in self._acting else ()
        return circle(self.names, Known(left, roles, speaks, self._ballots, self._silent), offered)

    def with_model_names(self, text: str) -> str:
        """Return a person's words with the positions of the rooms that it names."""
        return table.positioned(self.settings, text)

    def _reply(self, seat: Seat, move: Move) -> Reply:
        """Return a move as others read it; people read the names of rooms where models write their positions."""
        reply = super()._reply(seat, move)
        lines = (line.model_copy(update={"text": table.named(self.settings, line.text)}) for line in reply.lines)
        return Reply(reply.text, tuple(lines))

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        """Return what a seat does in the rooms; the game announces what is done in a meeting."""
        return table.deed(self.world, seat, move) if self._meeting is None else ""

    def probes(self) -> Mapping[Seat, Probe]:
        if self._meeting is None or not self.settings.probes:
            return {}
        return {seat: self._probe(seat) for seat in self.world.crew() if seat not in self._forfeited}

    def _probe(self, seat: Seat) -> Probe:
        """Return the question to a crewmate; it answers as it votes, without skipping."""
        others = self._candidates(seat)
        return Probe(
            question="Whom would you vote for now?",
            choices=others,
            truth=(self.names[self.world.imposter],),
            replies=tuple(tag(offers.vote(others), {"player": name}) for name in others),
        )

    def _sees_all(self, viewer: Viewer) -> bool:
        return viewer in (ALL, self.scenario.tool_seat)

    def analysis(self) -> tuple[OpinionChanges, ...]:
        """Return whose opinion changed after whose speech in the meetings."""
        return self._discussions.analysis() if self._end else ()

    def claims(self, seat: Seat, text: str) -> list[CheckedStatement]:
        """Return the claims of roles, places and sightings in a text. For readers who may see everything."""
        return checked(self.world, self.names, seat, text)

    # --- a joint step ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        spoken = {seat: self._reply(seat, move) for seat, move in moves.items() if move.origin == "seat"}
        if self._meeting and self._meeting.speaker is not None:
            self._log.say(spoken)
            for seat, reply in spoken.items():
                self._discussions.say(self._steps, seat, speech(reply.lines))
        else:
            self._log.say(spoken, (), channel="private")
        given_up = frozenset(seat for seat, move in moves.items() if move.origin == "forfeit")
        self._forfeited |= given_up
        if self._meeting is None:
            for seat in sorted(moves.keys() - spoken.keys()):
                why = "You give up, and only wait" if seat in given_up else "You do not answer, and wait"
                self._log.tell(f"{why}.", {seat}, channel="private")
            self._act({seat: move for seat, move in moves.items() if seat not in given_up})
        else:
            for seat in sorted(given_up):
                self._log.tell(f"{self.names[seat]} gives up.")
            self._hold({seat: moves[seat] for seat in spoken})
        self._ask()

    def _ask(self) -> None:
        """Pass rounds until the game is over or a seat must decide; `to_act` returns those that must."""
        self._acting = frozenset()
        while not self._end:
            if self._meeting is None:
                self._ask_in_rooms()
            elif (speaker := self._meeting.speaker) is not None:
                self._acting = frozenset({speaker}) - self._forfeited
            else:
                self._acting = frozenset(self.world.living()) - self._forfeited
            if self._acting:
                return
            if self._meeting is None:
                self._pass_round()
            else:
                self._hold({})

    # --- in the rooms ---

    def _ask_in_rooms(self) -> None:
        deciding = self.world.deciding()
        self.world.begin({seat: Order("wait") for seat in deciding & self._forfeited})
        self._acting = deciding - self._forfeited
        self._options = {seat: offers.in_rooms(self.world, self.names, seat) for seat in self._acting}
        statuses: dict[Viewer, str] = {
            seat: words.status(self.world, self.names, seat, offered) for seat, offered in self._options.items()
        }
        self._log.brief(statuses, channel="private")
        self._clock |= dict.fromkeys(statuses, self.world.round)

    def _act(self, moves: Mapping[Seat, Move]) -> None:
        """Apply kills first, then reports; if nobody reports, apply the other moves and pass the round."""
        self._tally.decided(moves)
        self._fresh -= moves.keys()
        choices = {seat: str(move.args["player"]) for seat, move in moves.items() if "player" in move.args}
        named = {seat: self.names.index(name) for seat, name in choices.items()}
        witnesses: frozenset[Seat] = frozenset()
        for seat, victim in named.items():
            if moves[seat].action == "kill":
                witnesses = self._kill(victim)
        if self._end:
            return
        alive = {seat: move for seat, move in moves.items() if self.world.people[seat].alive}
        if reports := {seat: named[seat] for seat, move in alive.items() if move.action == "report"}:
            self._meet(reports)
            return
        orders = {
            seat: Order(move.action, str(move.args.get("direction", "")))
            for seat, move in alive.items()
            if move.action in ("go", "task") or (move.action == "wait" and seat not in witnesses)
        }
        absent = self.world.deciding() & self._forfeited
        self._tell(self.world.begin({**orders, **{seat: Order("wait") for seat in absent}}))
        self._pass_round()

    def _pass_round(self) -> None:
        events = self.world.pass_round()
        self._tell(events)
        if not self.world.tasks_left():
            workers = listed(self.names[event.who] for event in events if event.kind == "done")
            self._finish("tasks", f"Round {self.world.round}: {workers} did the last of the work.")
        elif self.world.round >= self.settings.rounds:
            self._finish("limit", f"Round {self.world.round}, the last, was over.")

    def _kill(self, victim: Seat) -> frozenset[Seat]:
        """Apply the imposter's kill; return the witnesses, who stop waiting."""
        event = self.world.kill(victim)
        self._tally.kills += 1
        self._tally.lost(victim)
        self._tell([Event(event.kind, event.room, event.who, event.witnesses - {victim}, victim=victim)])
        killer = self.names[event.who] if victim in event.witnesses else None
        self._log.tell_each({victim: words.killed(self.names[victim], killer)}, channel="private")
        self._check_crew(f"Round {self.world.round}: the death of {self.names[victim]}")
        return event.witnesses

    def _check_crew(self, loss: str) -> None:
        """End the game by `loss` if one crewmate is left, or if the living crewmates have no tasks left."""
        if len(self.world.crew()) <= 1:
            self._finish("kills", f"{loss} left one crewmate.")
        elif not self.world.tasks_left():
            self._finish("tasks", f"{loss} left no work to do.")

    def _tell(self, events: list[Event]) -> None:
        """Show the events to their witnesses and to viewers who may see everything."""
        for event in events:
            if event.kind == "done":
                self._tally.done[event.who] += 1
            lines = news(table.happened(self.names, event))
            text = words.happened(self.world.round, self.names, event)
            self._log.tell(text, event.witnesses, channel="room", lines=lines)

    # --- in the meeting ---

    def _meet(self, reports: Mapping[Seat, Seat]) -> None:
        self._tally.meetings += 1
        self._discussions.begin(f"Meeting {self._tally.meetings}")
        lines = news(table.called(self.names, reports, self.world.bodies))
        self._log.tell(words.called(self.names, self.world.round, reports, self.world.bodies), lines=lines)
        self._left |= dict.fromkeys(self.world.bodies, f"dead, meeting {self._tally.meetings}")
        self._clock |= dict.fromkeys((*range(len(self.names)), SPECTATOR), self.world.round)
        self._ballots, self._silent = {}, []
        self.world.gather()
        order = self.world.living()
        rng(self.scenario.seed, "among_us", "order", self._tally.meetings).shuffle(order)
        self._meeting = Meeting(order, self.settings.discussion)
        lines = news(table.order(self.names, order, self.settings.discussion))
        self._log.tell(words.order(self.names, order, self.settings.discussion), lines=lines)
        self._call_vote()

    def _call_vote(self) -> None:
        if self._meeting and self._meeting.speaker is None:
            call = words.vote(self.names, self.world.living(), skip=self.settings.skip)
            self._log.tell(call, lines=news("Everybody votes."))

    def _hold(self, moves: Mapping[Seat, Move]) -> None:
        """Apply a message or all ballots; seats that are not in `moves` stay silent."""
        assert self._meeting is not None
        speaker = self._meeting.speaker
        if speaker is None:
            self._count(moves)
            return
        self._tally.spoke(speaker, moves[speaker].text if speaker in moves else "")
        if speaker not in moves:
            self._log.tell(f"{self.names[speaker]} says nothing.")
        self._meeting.spoken += 1
        self._call_vote()

    def _count(self, moves: Mapping[Seat, Move]) -> None:
        """Eject the elected player, then end or continue the game. A missing vote is a skip, if skips are allowed."""
        ballots: dict[Seat, Ballot] = dict.fromkeys(self.world.living()) if self.settings.skip else {}
        for seat, move in moves.items():
            name = str(move.args["player"])
            ballots[seat] = None if name == offers.SKIP else self.names.index(name)
        self._discussions.vote(self._steps, ballots)
        ejected_seat = ejected(ballots)
        silent = [seat for seat in self.world.living() if seat not in moves]
        self._tally.voted(moves.keys(), ballots)
        lines = news(table.result(self.names, ballots, silent, ejected_seat))
        self._log.tell(words.result(self.names, ballots, silent, ejected_seat), lines=lines)
        self._meeting = None
        self._ballots, self._silent = {seat: ballots[seat] for seat in sorted(moves)}, silent
        self._fresh = frozenset(self.world.living())
        if ejected_seat is not None:
            self._eject(ejected_seat)

    def _eject(self, seat: Seat) -> None:
        vote = f"Meeting {self._tally.meetings}: the vote against {self.names[seat]}"
        if seat == self.world.imposter:
            self._finish("ejected", f"{vote} removed the imposter.")
            return
        self._tally.wrong += 1
        self._tally.lost(seat)
        self._log.tell(f"{self.names[seat]} was not the imposter.")
        self.world.people[seat].alive = False
        self._left[seat] = f"vote, meeting {self._tally.meetings}"
        self._check_crew(vote)

    # --- the end ---

    def _finish(self, end: End, moment: str) -> None:
        self._end, self._moment = end, moment
        self._log.tell(words.over(self.names[self.world.imposter], end, crew_won=self._crew_won()))

    def _crew_won(self) -> bool:
        return self._end in ("ejected", "tasks") or (self._end == "limit" and self.settings.limit_winner == "crew")

    def _won(self, seat: Seat) -> bool:
        return self._crew_won() == (seat != self.world.imposter)
