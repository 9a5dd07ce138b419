"""The page of every game's table in a browser: its weight, its shifts, and the time from an input to the paint.

A fresh installation serves the site, and Chromium shows one table of each game in a wide and in a narrow window, to a
person at the first seat. The person moves by the mouse, by whatever is offered first; the other seats' moves are those
of the game's scripted player (a random one where there is none), written `LATER_S` after the person's, so that what
they change is not taken for an answer to the person's input. A game ends after its own rules or `--moves` moves of the
person, who then gives up. Fails if a page refuses a move, or does not show one within `PATIENCE_S`.
"""

from __future__ import annotations

import asyncio
import os
import time
from argparse import Namespace
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from bench import vitals
from bench.installation import installation
from bench.site_conditions import measured
from bench.sockets import served
from training.errors import ParseError
from training.games import REGISTRY, lookup
from training.players import make as make_player
from training.records import Move, Scenario
from training.samples import for_game
from training.text.parsing import parse

SCREENS = {"wide": (1280, 800), "narrow": (360, 740)}
LIMITS = {"shift": 0.05, "input_ms": 200, "sent_kb": 150, "sideways_px": 0}
LATER_S = 0.8
PATIENCE_S = 20.0
SEED = 7
OFFERED = "#part-stage button[name], #move button[name]:not(.give-up, .say-button), .say-button"
REPLIES = ThreadPoolExecutor(1)
"""Runs the players' coroutines: the browser's loop runs in the main thread."""
STATE = """() => ({
  turn: document.querySelector("#part-act input[name=turn]")?.value ?? "",
  over: document.querySelector(".ending") !== null,
  refused: document.getElementById("refusal")?.textContent ?? "",
  sideways: Math.max(0, document.scrollingElement.scrollWidth - innerWidth),
})"""


class Table:
    """One match: the person's page, and the seats that this process moves for."""

    def __init__(self, page: Any, address: str, scenario: Scenario, number: int) -> None:
        self.page, self.scenario, self.number = page, scenario, number
        self.services = import_module("webapp.arena.play.services")
        self.sideways = 0
        page.add_init_script(vitals.SCRIPT)
        page.goto(f"{address}/play/{number}/")
        page.wait_for_function(
            "() => document.getElementById('table')['htmx-internal-data']?.webSocket?.socket?.readyState === 1"
        )

    def match(self) -> Any:
        """The match as the database has it."""
        return import_module("webapp.arena.models").Match.objects.get(pk=self.number)

    def others_move(self) -> None:
        """Move for the other seats, later than the person's input, until it is the person's turn or the end."""
        while (match := self.match()).state == "running":
            state = self.services.fold(match)
            due = sorted(state.due() - {0})
            if not due:
                return
            time.sleep(LATER_S)
            for seat in due:
                self.services.submit(match_id=match.pk, seat=seat, step=match.step, move=next_move(state.game, seat))

    def person_moves(self, number: int) -> None:
        """Press an available control, a different one at each move, and fill in text where the game reads it."""
        if (say := self.page.locator("#say")).count():
            say.fill("I see. What would you do?")
        buttons = self.page.locator(OFFERED).locator("visible=true")
        button = buttons.nth(number % buttons.count())
        beside = button.locator("xpath=preceding-sibling::input[@type='text']")
        if beside.count():
            beside.first.fill("socks")
        before = self.state()["turn"]
        button.click()
        self.wait(lambda state: state["over"] or state["turn"] != before)

    def wait(self, done: Any) -> None:
        """Wait until `done` is true of the page's state."""
        deadline = time.monotonic() + PATIENCE_S
        while not done(state := self.state()):
            if state["refused"] or time.monotonic() > deadline:
                raise import_module("training.errors").ParleyError(
                    f"{self.scenario.game}: {state['refused'] or 'the page does not show the move'}"
                )
            self.page.wait_for_timeout(20)

    def state(self) -> Mapping[str, Any]:
        """The page's state; notes how far the page can be scrolled sideways."""
        state: Mapping[str, Any] = self.page.evaluate(STATE)
        self.sideways = max(self.sideways, state["sideways"])
        return state

    def play(self, most: int) -> dict[str, Any]:
        """Play; return what the page measured."""
        weight, moves = vitals.weight(self.page), 0
        self.others_move()
        while moves < most and self.match().state == "running" and 0 in self.services.fold(self.match()).due():
            self.wait(lambda state: state["turn"] != "" or state["over"])
            self.person_moves(moves)
            moves += 1
            self.others_move()
        if self.match().state == "running":
            self.wait(lambda state: state["turn"] != "" or state["over"])
            self.page.once("dialog", lambda dialog: dialog.accept())
            self.page.locator(".give-up").click()
            self.others_move()
        measured = vitals.read(self.page)
        self.state()
        return {
            "game": self.scenario.game,
            "scenario": self.scenario.id,
            "moves": moves,
            "shift": round(measured["shift"], 4),
            "moved": measured["moved"],
            "input_ms": max(measured["inputs"], default=0),
            "inputs_ms": measured["inputs"],
            "sent_kb": round(weight["sent"] / 1000, 1),
            "raw_kb": round(weight["raw"] / 1000, 1),
            "sideways_px": self.sideways,
        }


def next_move(game: Any, seat: int) -> Move:
    """The move of the game's scripted player, else a random one; the default where neither can be read."""
    if seat == game.scenario.tool_seat:
        default: Move = game.default(seat)
        return default
    player = make_player("scripted" if lookup(game.scenario.game).script else "random", game.scenario, seat)
    seen = game.observe(seat)
    try:
        return parse(REPLIES.submit(asyncio.run, player.act(seat, seen, SEED)).result().text, seen)[0]
    except ParseError:
        fallback: Move = game.default(seat)
        return fallback


def table_scenarios() -> list[Scenario]:
    """One scenario for every set of zones with which the samples and the default start of a game begin."""
    make = import_module("training.games").make
    by_zones: dict[tuple[str, frozenset[str]], Scenario] = {}
    for spec in REGISTRY.values():
        plain = [spec.start(spec.players[0])] if spec.start else []
        for scenario in [*(for_game(spec.name) if spec.samples else ()), *plain]:
            if scenario is not None:
                seeded = scenario.with_seed(SEED)
                kinds = frozenset(zone.kind for zone in make(seeded).show(0).zones)
                by_zones.setdefault((spec.name, kinds), seeded)
    return list(by_zones.values())


def main(arguments: Namespace) -> dict[str, Any]:
    """Play every table in both windows; return what each measured and the worst of each."""
    return measured(lambda: _measure(arguments))


def _measure(arguments: Namespace) -> dict[str, Any]:
    playwright = import_module("playwright.sync_api").sync_playwright
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the browser's loop runs in this thread while rows are written
    rows = []
    with installation("table-page"), served() as port, playwright() as started:
        browser = vitals.launch(started, arguments.chromium)
        address = f"http://127.0.0.1:{port}"
        for screen, (width, height) in SCREENS.items():
            for scenario in table_scenarios():
                number, session = start_match(scenario)
                context = browser.new_context(viewport={"width": width, "height": height})
                context.add_cookies([{"name": "session", "value": session, "url": address}])
                row = Table(context.new_page(), address, scenario, number).play(arguments.moves)
                rows.append({"screen": screen, **row})
                context.close()
        browser.close()
    return {"seed": SEED, **summary(rows)}


def start_match(scenario: Scenario) -> tuple[int, str]:
    """Set up a running match of a new person at the first seat; return its number and the person's session."""
    tables, models = import_module("webapp.arena.setup.tables"), import_module("webapp.accounts.models")
    person = models.User.objects.create(username=f"p{models.User.objects.count()}", role="player")
    other = tables.Place(scripted="scripted" if lookup(scenario.game).script else "random")
    places = [tables.Place(user=person), *[other] * (len(scenario.seats) - 1)]
    match = tables.create(host=person, start=tables.Start(scenario), places=places, deadline_s=3600, consent=True)
    client = import_module("django.test").Client()
    client.force_login(person)
    return match.pk, client.cookies["session"].value


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the rows with the worst value of each kind, and whether all are within the limits."""
    worst = {name: max(row[name] for row in rows) for name in LIMITS}
    within = {name: worst[name] < limit if name == "shift" else worst[name] <= limit for name, limit in LIMITS.items()}
    return {"tables": list(rows), "worst": worst, "limits": LIMITS, "ok": all(within.values())}


def show(result: dict[str, Any]) -> str:
    """Return one line for each table, and the worst of each value."""
    lines = [
        f"{row['screen']:7}{row['game']:14}{row['moves']:3} moves  shift {row['shift']:.3f}  "
        f"input {row['input_ms']:4.0f} ms  {row['sent_kb']:6.1f} KB ({row['raw_kb']:.0f} unpacked)  "
        f"sideways {row['sideways_px']} px"
        for row in result["tables"]
    ]
    worst = result["worst"]
    return "\n".join(
        [
            *lines,
            (
                f"worst: shift {worst['shift']:.3f}, input {worst['input_ms']:.0f} ms, {worst['sent_kb']:.1f} KB, "
                f"sideways {worst['sideways_px']} px"
            ),
            f"within the limits: {result['ok']}",
        ]
    )
