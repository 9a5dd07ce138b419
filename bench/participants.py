"""Scripted participants of `bench.experiments`: most speak HTTP as a browser without scripts does, some use Chromium.

Each goes through the whole study by its pages, and notes what it answered and what it read. A participant of `leaving`
closes its page at that place: in the waiting room, or at the table of an arm.
"""

from __future__ import annotations

import random
import re
import time
from dataclasses import dataclass, field
from html import unescape
from http.cookiejar import CookieJar
from threading import Lock
from typing import Any
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, Request, build_opener

from training.errors import ParleyError
from training.seeding import rng

LOOK_S = 3.0
PATIENCE_S = 900.0
TOKEN = re.compile(r'"X-CSRFToken": "(\w+)"')
ITEM = re.compile(r'name="(propose\.[^"]+)" min="0" max="(\d+)"')
CODE = re.compile(r'id="code">([^<]*)<')


@dataclass
class Leaving:
    """The places at which somebody still has to leave; the first who comes by does."""

    places: set[str]
    arm_of: Any
    lock: Lock = field(default_factory=Lock)

    def takes(self, place: str) -> bool:
        """Whether the caller leaves here."""
        with self.lock:
            if place in self.places:
                self.places.remove(place)
                return True
        return False


@dataclass
class Participant:
    """One participant: its id, and what it did and read."""

    address: str
    token: str
    external_id: str
    seed: int
    leaving: Leaving
    answers: dict[str, int] = field(default_factory=dict)
    moves: int = 0
    code: str = ""
    left: str = ""
    where: str = ""

    def __post_init__(self) -> None:
        self._chance = rng(self.seed, "participant", self.external_id)
        self._open = build_opener(HTTPCookieProcessor(CookieJar()))
        self._page = ""

    @property
    def link(self) -> str:
        """The link as a platform opens it."""
        ids = {"PROLIFIC_PID": self.external_id, "STUDY_ID": "bench", "SESSION_ID": f"session-{self.external_id}"}
        return f"/experiments/take/{self.token}/?{urlencode(ids)}"

    def run(self) -> None:
        """Take part from the link to the code, or until leaving."""
        self._get(self.link)
        self._post(self.link.replace("/?", "/begin/?"), agree="yes", reuse="yes")
        deadline = time.monotonic() + PATIENCE_S
        while not self.left and not self.code:
            if time.monotonic() > deadline:
                raise ParleyError(f"{self.external_id} got stuck at {self.where}")
            self._step()

    def _step(self) -> None:
        """Do what the page asks for."""
        base = f"/experiments/take/{self.token}/"
        if code := CODE.search(self._page):
            self.code = unescape(code[1])
        elif part := re.search(r'name="part" value="(\w+)"', self._page):
            name = {"before": "mood", "after": "trust"}[part[1]]
            self.answers[name] = self._chance.randint(1, 5)
            self._post(f"{base}answer/", part=part[1], **{f"q-{name}": str(self.answers[name])})
        elif "The game begins soon" in self._page:
            self._wait(base)
        elif "/play/" in self.where:
            self._table(base)
        elif f"{base}finish/" in self._page:
            self._post(f"{base}finish/")
        else:
            raise ParleyError(f"{self.external_id} does not know the page {self.where}")

    def _wait(self, base: str) -> None:
        page = self._page
        headers = self._post(f"{base}heartbeat/", stage="wait", visible="1")
        self._page = page
        if headers.get("HX-Refresh"):
            self._get(base)
        elif self.leaving.takes("wait"):
            self.left = "wait"  # as the page's script says when its tab is closed
            self._page = page
            self._post(f"{base}heartbeat/", stage="wait", visible="0")
        else:
            time.sleep(LOOK_S)

    def _table(self, base: str) -> None:
        number = int(self.where.split("/play/")[1].split("/")[0])
        if not self.moves and self.leaving.places and self.leaving.takes(self.leaving.arm_of(number)):
            self.left = "play"
        elif 'role="button">Continue' in self._page:
            self._get(base)
        elif turn := re.search(r'name="turn" value="(\d+)"', self._page):
            self._post(f"/play/{number}/move/", turn=turn[1], **choose(self._page, self._chance))
            self.moves += 1
        else:
            time.sleep(LOOK_S)
            self._get(f"/play/{number}/")

    def _get(self, path: str) -> None:
        with self._open.open(self.address + path, timeout=120) as response:
            self.where, self._page = response.url, response.read().decode()

    def _post(self, path: str, **data: str) -> Any:
        token = TOKEN.search(self._page)
        if token is None:
            raise ParleyError(f"{self.where} has no token for its forms")
        body = urlencode(data).encode()
        headers = {"X-CSRFToken": token[1], "Referer": self.address}
        request = Request(self.address + path, body, headers)  # noqa: S310 (the address is the bench's own)
        with self._open.open(request, timeout=120) as response:
            self.where, self._page = response.url, response.read().decode()
            return response.headers


def choose(page: str, chance: random.Random) -> dict[str, str]:
    """Return the fields of a move in a negotiation: accept, propose at random, or walk away."""
    if 'value="walk_away"' in page and chance.random() < 0.15:
        return {"action": "walk_away"}
    if 'value="accept"' in page and chance.random() < 0.6:
        return {"action": "accept"}
    if items := ITEM.findall(page):
        return {"action": "propose", **{unescape(name): str(chance.randint(0, int(most))) for name, most in items}}
    return {"action": "accept" if 'value="accept"' in page else "walk_away"}


class Visitor(Participant):
    """The same with Chromium and the scripts of the pages, which keep the page's presence and the table's socket."""

    def run(self) -> None:
        """Take part from the link to the code."""
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
            try:
                page = browser.new_page(base_url=self.address)
                page.set_default_timeout(120_000)
                page.goto(self.link)
                page.get_by_role("button", name="I agree, and take part").click()
                deadline = time.monotonic() + PATIENCE_S
                while not self.code and time.monotonic() < deadline:
                    self._look(page)
            finally:
                browser.close()

    def _look(self, page: Any) -> None:
        page.wait_for_load_state()
        self.where = page.url
        if page.locator("#code").count():
            self.code = page.locator("#code").inner_text()
        elif page.locator("input[name=part]").count():
            name = {"before": "mood", "after": "trust"}[page.locator("input[name=part]").input_value()]
            self.answers[name] = self._chance.randint(1, 5)
            page.locator(f"input[name=q-{name}][value='{self.answers[name]}']").check()
            page.get_by_role("button", name="Continue").click()
        elif page.get_by_role("button", name="Continue").count():
            page.get_by_role("button", name="Continue").first.click()
        elif "/play/" in page.url and page.locator("input[name=turn]").count():
            self._move(page)
        else:
            page.wait_for_timeout(500)

    def _move(self, page: Any) -> None:
        turn = page.locator("input[name=turn]").get_attribute("value")
        accept = page.locator("button[value=accept]")
        propose = page.locator("button[value=propose]")
        (accept if accept.count() else propose).first.click()
        self.moves += 1
        page.wait_for_function(
            "turn => document.querySelector('input[name=turn]')?.value !== turn", arg=turn, timeout=60_000
        )


def chromium() -> str:
    """The Chromium of this machine."""
    import shutil

    from tools.test import BROWSERS

    path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if path is None:
        raise ParleyError(f"there is no Chromium ({', '.join(BROWSERS)})")
    return path
