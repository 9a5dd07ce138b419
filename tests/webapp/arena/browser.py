"""A browser tab at a table, without a browser: holds what a page holds, and applies frames as htmx does."""

import asyncio
import json
import re

from channels.db import database_sync_to_async

from tests.websocket import Socket, browser_headers

PART = re.compile(r'<div id="part-(\w+)" data-part="(\w+)"(?: hx-swap-oob="true")?>')
LAST = re.compile(
    r'<input type="hidden" id="last" autocomplete="off" value="(\d+)" data-now="[^"]*"(?: hx-swap-oob="true")?>'
)
ROW = re.compile(r'<li id="row-\d+".*?</li>', re.DOTALL)
REFUSAL = re.compile(r'<p id="refusal"[^>]*>(.*?)</p>', re.DOTALL)
DIV = re.compile(r"<(/?)div\b")


def element(html: str, start: int) -> str:
    """The `<div>` that begins at `start`, with all that is in it."""
    depth = 0
    for tag in DIV.finditer(html, start):
        depth += -1 if tag[1] else 1
        if depth == 0:
            return html[start : html.index(">", tag.end()) + 1]
    raise ValueError("a div is not closed")


def parts_in(html: str) -> dict[str, str]:
    return {match[1]: element(html, match.start()).replace(' hx-swap-oob="true"', "") for match in PART.finditer(html)}


class Page:
    """What a tab shows: parts by name, log rows in order, the last number it holds."""

    def __init__(self, html: str) -> None:
        self.parts = parts_in(html)
        self.rows = ROW.findall(html)
        self.last = int(LAST.search(html)[1])
        self.refusal = ""

    def apply(self, frame: str) -> None:
        self.parts.update(parts_in(frame))
        self.rows += ROW.findall(frame)
        if match := LAST.search(frame):
            self.last = int(match[1])
        if match := REFUSAL.search(frame):
            self.refusal = match[1]

    def greeting(self) -> str:
        versions = {name: PART.match(html)[2] for name, html in self.parts.items()}
        return json.dumps({"last": self.last, "parts": versions})

    def state(self) -> dict:
        return {"parts": self.parts, "rows": self.rows, "last": self.last}

    @property
    def numbers(self) -> list[int]:
        return [int(re.search(r'data-number="(\d+)"', row)[1]) for row in self.rows]


class Tab:
    """One person's tab: loads the page, opens the socket, applies frames until nothing comes."""

    def __init__(self, application, client, match_id: int) -> None:
        self.application, self.client, self.match_id = application, client, match_id
        self.socket: Socket | None = None
        self.frames: list[str] = []
        self.closed: int | None = None

    async def load(self):
        """Reload the page."""
        self.page = Page(await self.fetch())
        return self

    async def fetch(self) -> str:
        answer = await database_sync_to_async(self.client.get)(f"/play/{self.match_id}/")
        assert answer.status_code == 200, answer.status_code
        return answer.content.decode()

    async def open(self):
        """Open the socket and say what the page holds."""
        session = self.client.cookies["session"].value
        self.closed = None
        self.socket = Socket(self.application, f"/ws/play/{self.match_id}/", browser_headers(session))
        assert await self.socket.connect()
        await self.socket.say(self.page.greeting())
        return self

    async def hear(self, wait: float = 0.5) -> None:
        """Apply what comes until nothing has come for `wait` seconds."""
        while self.closed is None:
            queue = self.socket.output_queue
            try:
                message = await asyncio.wait_for(queue.get(), wait)
            except TimeoutError:
                return
            if message["type"] == "websocket.close":
                self.closed = message["code"]
                return
            self.frames.append(message["text"])
            self.page.apply(message["text"])

    async def until(self, condition, wait: float = 10.0) -> None:
        """Apply frames until the condition holds."""
        ends = asyncio.get_running_loop().time() + wait
        while not condition() and self.closed is None:
            assert asyncio.get_running_loop().time() < ends, "the tab has not heard what it should have"
            await self.hear(0.05)

    async def until_current(self, user, match_id: int, viewer: int) -> None:
        """Apply frames until the server would send nothing more; what it sends too much is applied, too."""
        from webapp.arena.live.feed import ClientVersions, MatchFeed

        feed = MatchFeed(match_id, viewer)
        ends = asyncio.get_running_loop().time() + 20
        while True:
            versions = ClientVersions(self.page.last, json.loads(self.page.greeting())["parts"])
            html, _ = (await feed.refresh()).frame_for(user, versions)
            if not html:
                break
            assert asyncio.get_running_loop().time() < ends, "the tab has not heard what it should have"
            await self.hear(0.05)
        await self.hear(0.1)

    async def play(self, **fields) -> None:
        await self.socket.say(json.dumps(fields))

    async def leave(self) -> None:
        """Lose the connection with all messages in flight."""
        if self.socket is not None:
            await self.socket.leave()
            self.socket = None
