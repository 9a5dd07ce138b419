"""A society that answers a question, as a state machine: ask, search, answer, hedge, and what the search tool returns.

After section 3 of “Don't lie to your friends: Learning what you know from collaborative self-play”. The orchestrator
keeps a stack: an ask puts the asker and all helpers on it; an answer or a hedge passes control to its top, and ends the
game where it is empty. Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and
change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from training.games.actions import clean
from training.games.base import Search
from training.games.log import LoggedGame, read_settings
from training.games.qa_society import table, words
from training.games.qa_society.scoring import best_f1, exact_match
from training.games.qa_society.settings import ASKER, QaSocietySettings, check_seats, role_of, tool_of
from training.games.qa_society.words import Reply
from training.records import ALL, SPECTATOR, Action, Argument, Move, Scenario, Seat, Viewer
from training.views import Passage, Passages, TableView, news

_TEXT = (Argument(name="answer", kind="text"),)
ASK = Action(name="ask", text="private", label="Ask the helpers")
SEARCH = Action(name="search", text="private", label="Search for the question")
ANSWER = Action(name="answer", args=_TEXT, text="private", label="Answer, if you are sure")
HEDGE = Action(name="hedge", args=_TEXT, text="private", label="Hedge with your best guess")
FOUND = Action(
    name="found", args=(Argument(name="passages", kind="text"),), text="none", label="Return passages, one a line"
)
NOTHING = Action(name="nothing", text="none", label="Return that nothing was found")
FAILED = Action(
    name="failed", args=(Argument(name="why", kind="text"),), text="none", label="Return that the search failed"
)
LATE = "there was no answer in time"
"""Why a search failed whose tool did not move before its time was up."""

NO_ANSWER = "no answer"
"""The argument of a default move, which must have one; nobody reads it, and it is never scored."""

End = Literal["reply", "effort", "length", "forfeit"]


@dataclass(slots=True)
class _Record:
    """What a seat did: whether it was asked and searched, and its latest reply."""

    asked: bool = False
    searched: bool = False
    reply: Reply | None = None


class QaSociety(LoggedGame):
    """An asker and its helpers, or one agent alone; the tool seat returns what a search found."""

    def __init__(self, scenario: Scenario) -> None:
        settings = read_settings(QaSocietySettings, scenario)
        super().__init__(scenario, settings.max_chars)
        check_seats(settings, len(scenario.seats))
        self.settings = settings
        self._question = clean(settings.question)
        self._seat: Seat = ASKER
        self._stack: list[Seat] = []
        self._replies: list[Reply] = []
        self._records = [_Record() for _ in scenario.seats]
        self._gone: set[Seat] = set()
        self._search: Search | None = None
        self._latest: Reply | None = None
        self._asks = self._searches = self._results = self._turns = 0
        self._final: Reply | None = None
        self._evidence: dict[Seat, tuple[Passage, ...]] = {}  # what a seat read last
        self._moment = ""
        self._end: End | None = None
        self._open()

    def _open(self) -> None:
        """Show each viewer the rules with what it alone may know, then the question."""
        for seat in range(len(self.names)):
            brief = words.brief(self.settings, self.names, seat)
            opening = words.opening(self.settings, self.names, brief, self._actions(seat))
            self._log.brief({seat: opening}, channel="private")
        everything = words.everything(self.settings, self.names)
        briefs: dict[Viewer, str] = {SPECTATOR: "", ALL: everything}
        self._log.brief({v: words.opening(self.settings, self.names, text, ()) for v, text in briefs.items()})
        self._log.tell(words.asked(self._question), lines=())  # people have the question before them

    # --- the tool ---

    def pending_search(self) -> Search | None:
        """Return the search whose result the tool seat is to return now, or None."""
        return self._search

    def retrieval(self, passages: Iterable[str]) -> Move:
        """Return the tool's move with these passages, the best first, each on one line.

        They are cut, between words where possible, where all of them exceed `evidence_chars`.
        """
        text = "\n".join(line for line in map(clean, passages) if line)
        if len(text) > (limit := self.settings.evidence_chars):
            shorter = text[: limit + 1]
            text = shorter[: max(shorter.rfind(" "), shorter.rfind("\n"), 0) or limit].rstrip()
        if not text:
            return Move(action=NOTHING.name, origin="tool")
        return Move(action=FOUND.name, args={"passages": text}, origin="tool")

    def failure(self, why: str) -> Move:
        """Return the tool's move after a search that failed; the seat that searched reads why, and moves again."""
        return Move(action=FAILED.name, args={"why": clean(why)[: self.settings.evidence_chars]}, origin="tool")

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        if self._end:
            return frozenset()
        return frozenset({self._seat if self._search is None else self.scenario.tool_seat})

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return (FOUND, NOTHING, FAILED) if seat == self.scenario.tool_seat else self._actions(seat)

    def _actions(self, seat: Seat) -> tuple[Action, ...]:
        if self.settings.asking and seat == ASKER:
            return (ASK, ANSWER, HEDGE)
        return (SEARCH, ANSWER, HEDGE) if tool_of(self.settings, seat) else (ANSWER, HEDGE)

    def default(self, seat: Seat) -> Move:
        if seat == self.scenario.tool_seat:
            return Move(action=NOTHING.name, origin="default")
        return Move(action=HEDGE.name, args={"answer": NO_ANSWER}, origin="default")

    def acting(self, viewer: Viewer) -> frozenset[Seat]:
        return self.to_act() if viewer in (ALL, self.scenario.tool_seat) else self.to_act() & {viewer}

    def _phase(self, viewer: Viewer) -> str:
        """Return that a search runs, to the seat that waits for it and to viewers who may see everything."""
        searching = self._search is not None and viewer in (self._search.seat, self.scenario.tool_seat, ALL)
        return "Searching" if searching else ""

    def task(self) -> str:
        """Return the question."""
        return self._question

    def roles(self) -> tuple[str, ...]:
        return tuple(role_of(self.settings, seat) for seat in range(len(self.names)))

    def returns(self) -> Mapping[Seat, float | None]:
        return dict.fromkeys(range(len(self.names)), self._result() if self._end else None)

    def metrics(self) -> Mapping[str, float]:
        if not self._end:
            return {}
        final = self._final or Reply(ASKER, None)
        return {
            "f1": self._f1(self._final),
            "exact_match": float(exact_match(final.text, self.settings.answers)),
            "answered": float(final.kind == "answer"),
            "hedged": float(final.kind == "hedge"),
            "asks": float(self._asks),
            "searches": float(self._searches),
            **({"found": self._results / self._searches} if self._searches else {}),
            "turns": float(self._turns),
            "end_effort": float(self._end == "effort"),
            "end_length": float(self._end == "length"),
            "forfeit": float(self._end == "forfeit"),
        }

    def seat_metrics(self) -> Mapping[Seat, Mapping[str, float]]:
        return {seat: self._metrics_of(seat) for seat in range(len(self.names))} if self._end else {}

    def _metrics_of(self, seat: Seat) -> dict[str, float]:
        """Return what one seat did; of a helper that nobody asked, only that."""
        record, metrics = self._records[seat], dict[str, float]()
        if self.settings.asking and seat != ASKER:
            metrics["asked"] = float(record.asked)
            if not record.asked:
                return metrics
        if tool_of(self.settings, seat):
            metrics["searched"] = float(record.searched)
        kind = record.reply.kind if record.reply else None
        metrics |= {"answered": float(kind == "answer"), "hedged": float(kind == "hedge")}
        return metrics | ({"f1": self._f1(record.reply)} if kind else {})

    def _f1(self, reply: Reply | None) -> float:
        return best_f1(reply.text, self.settings.answers) if reply else 0.0

    def _result(self) -> float:
        return self._f1(self._final) - self.settings.cost * self._searches

    # --- for people ---

    def show(self, viewer: Viewer) -> TableView:
        """Return the question with the replies or passages that the viewer has read."""
        plays = viewer in range(len(self.names))
        informed = viewer in self._evidence
        return TableView(
            zones=(table.question(self._question), *self._shown(viewer)),
            phase=self._phase(viewer),
            mood="over" if self._end else "",
            ask=table.ask(self.settings, viewer, informed=informed) if plays and viewer in self.to_act() else "",
            story=table.story(self.settings, self.names, viewer if plays else None),
            rules=table.rules(self.settings, self.names),
            brief=table.brief(self.settings, self.names, viewer) if plays else None,
            headline=self._headline(viewer) if self._end else "",
            moment=self._moment,
        )

    def _shown(self, viewer: Viewer) -> tuple[Passages, ...]:
        """Return what the viewer read last, replies or passages; all seats' for viewers who may see everything."""
        asked = self.settings.asking
        return tuple(
            table.evidence(self.names, seat, passages, sees_replies=asked and seat == ASKER, mine=seat == viewer)
            for seat, passages in sorted(self._evidence.items())
            if viewer in (seat, ALL, self.scenario.tool_seat)
        )

    def _headline(self, viewer: Viewer) -> str:
        if viewer in (ALL, self.scenario.tool_seat):
            return table.verdict(self.settings, self._final, self._f1(self._final))
        return table.headline(self._final)

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return table.deed(move.action, clean(str(move.args.get("answer", ""))))

    # --- one move ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        if seat == self.scenario.tool_seat:
            self._receive(move)
            return
        self._turns += 1
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)}, (), channel="private")
        if move.origin == "forfeit":
            self._give_up(seat)
        elif move.origin != "seat":
            self._give_control(Reply(seat, None))
        elif move.action in (ASK.name, SEARCH.name):
            self._make_effort(seat, move.action)
        else:
            text = clean(str(move.args["answer"]))
            self._give_control(Reply(seat, "answer" if move.action == ANSWER.name else "hedge", text))
        if not self._end and self._turns == self.settings.turn_limit:
            self._finish("length", f"All {self.settings.turn_limit} moves are made.", self._latest)

    def _make_effort(self, seat: Seat, action: str) -> None:
        """Ask or search, if that is within the budget; one more ends the game instead."""
        if self._asks + self._searches == self.settings.effort:
            self._finish("effort", f"All {self.settings.effort} asks and searches are made.", self._latest)
        elif action == ASK.name:
            self._ask()
        else:
            self._searches += 1
            self._records[seat].searched = True
            self._wait_for(Search(seat, str(tool_of(self.settings, seat)), self._question))

    def _wait_for(self, search: Search | None) -> None:
        """Let the tool seat act for a search, or no more; its result may be longer than an answer."""
        self._search = search
        self._max_chars = self.settings.evidence_chars if search else self.settings.max_chars

    def _receive(self, move: Move) -> None:
        """Show the result of a search to the seat that searched, which moves again."""
        passages = [clean(line) for line in str(move.args.get("passages", "")).splitlines() if clean(line)]
        self._results += bool(passages)
        why = LATE if move.origin == "timeout" else clean(str(move.args.get("why", "")))
        text = words.failure(why) if why else words.retrieval(passages)
        shown = table.results(passages, why)
        self._log.tell(text, {self._seat}, channel="private", lines=table.lines(self.names, shown))
        self._evidence[self._seat] = shown
        self._wait_for(None)

    # --- control ---

    def _ask(self) -> None:
        self._asks += 1
        self._replies = []
        self._stack += [ASKER, *reversed(range(ASKER + 1, len(self.names)))]
        self._log.tell_each({SPECTATOR: f"{self.names[ASKER]} asks."})
        self._pass_control()

    def _give_control(self, reply: Reply) -> None:
        """Pass control on with a reply; with an empty stack that is the end."""
        self._records[reply.seat].reply = reply
        if reply.kind is not None:
            self._latest = reply
        did = f"{self.names[reply.seat]} {words.VERBS[reply.kind]}."
        if not self._stack:
            self._finish("reply", did, reply)
            return
        if reply.kind is None:
            self._log.tell(did, {reply.seat}, channel="private")
        self._replies.append(reply)
        self._pass_control()

    def _pass_control(self) -> None:
        """Pass control to the top of the stack; helpers that have given up the game stay silent."""
        asker, self._seat = self.names[ASKER], self._stack.pop()
        if self._seat == ASKER:
            shown = table.replies(self.settings, self.names, self._replies)
            text = words.evidence(self.settings, self.names, self._replies)
            self._log.tell(text, {ASKER}, channel="private", lines=table.lines(self.names, shown))
            self._evidence[ASKER] = shown
            return
        self._records[self._seat].asked = True
        if self._seat in self._gone:
            self._give_control(Reply(self._seat, None))
        else:
            self._log.tell_each({self._seat: f"{asker} asks you."}, channel="private")
            self._log.tell_each({ALL: f"{asker} asks {self.names[self._seat]}."})

    def _give_up(self, seat: Seat) -> None:
        """Let a helper be silent from now on; without the asker, or with two seats, the game is over."""
        if seat == ASKER or len(self.names) <= 2:
            self._finish("forfeit", f"{self.names[seat]} gives up the game.", None)
            return
        self._gone.add(seat)
        self._log.tell(f"{self.names[seat]} gives up the game.", {seat}, channel="private")
        self._give_control(Reply(seat, None))

    def _finish(self, end: End, why: str, final: Reply | None) -> None:
        self._wait_for(None)
        self._end = end
        self._final = final if final and final.kind else None
        self._moment = table.moment(self.settings, self.names, end, self._final, self._seat)
        self._log.tell(words.over(why, self._final), lines=news(f"{self._moment} {table.headline(self._final)}"))
        f1, result = self._f1(self._final), self._result()
        score = words.score(self.settings, self._final, f1, self._searches, result)
        shown = news(f"{self._headline(ALL)} {table.score(f1, self._searches, result)}")
        self._log.tell_each({ALL: score}, lines={ALL: shown})
