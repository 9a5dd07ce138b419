"""`python -m tools.screenshots`: takes the pictures of the documentation anew, so that they show the present pages.

It starts the site in debug mode, whose style guide shows every game's table without a database, and writes PNG files to
`docs/pictures/`. They are stored with the pages: together they are well below a megabyte, and neither the image of the
site nor a reader of the Markdown needs a browser. It needs Chromium and the packages of `make test`.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.test import BROWSERS
from tools.up import free_port

ROOT = Path(__file__).resolve().parents[1]
PICTURES = ROOT / "docs" / "pictures"
START_S = 60.0


@dataclass(frozen=True)
class Picture:
    """A page of the site in a window of `size` pixels; `query` chooses place and step of a table."""

    name: str
    address: str
    size: tuple[int, int] = (1120, 700)
    scheme: Literal["light", "dark"] = "light"

    @property
    def path(self) -> Path:
        """Its file."""
        return PICTURES / f"{self.name}.png"


def table(name: str, game: str, query: str, sample: int = 0, **options: object) -> Picture:
    """The picture of a game's table in the style guide."""
    return Picture(name, f"/styleguide/tables/{game}/{sample}/?{query}", **options)  # type: ignore[arg-type]


ALL = (
    table("negotiation", "negotiation", "viewer=1&step=4"),
    table("negotiation-end", "negotiation", "viewer=0&step=end"),
    table("werewolf-night", "werewolf", "viewer=0&step=2", scheme="dark"),
    table("connect-four", "connect_four", "viewer=0&step=9"),
    table("hanabi", "hanabi", "viewer=0&step=6"),
    table("phone", "negotiation", "viewer=1&step=4", size=(360, 720)),
)


def take(pictures: tuple[Picture, ...] = ALL) -> None:
    """Write the pictures."""
    from playwright.sync_api import sync_playwright

    browser_path = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser_path is None:
        raise SystemExit(f"screenshots: no Chromium ({', '.join(BROWSERS)})")
    PICTURES.mkdir(parents=True, exist_ok=True)
    with site() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for picture in pictures:
            width, height = picture.size
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=picture.scheme, reduced_motion="reduce"
            )
            answer = page.goto(f"{address}{picture.address}", wait_until="networkidle")
            if answer is None or not answer.ok:
                raise SystemExit(f"screenshots: {picture.address} answered {answer.status if answer else 'nothing'}")
            page.screenshot(path=picture.path, animations="disabled")
            page.close()
        browser.close()


@contextmanager
def site() -> Iterator[str]:
    """The address of the site in debug mode; it is stopped afterwards."""
    port = free_port()
    environment = {**os.environ, "PARLEY_DEBUG": "1", "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(f"{address}/styleguide/tables/", process)
            yield address
        finally:
            process.terminate()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a page answers; exits with a sentence if the process ends first or takes too long."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=10):  # noqa: S310 (this process's own site)
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise SystemExit("screenshots: the site did not start")


def main() -> int:
    parser = argparse.ArgumentParser(description="Take the pictures of the documentation anew.")
    parser.add_argument("names", nargs="*", help="only these pictures")
    names = parser.parse_args().names
    chosen = tuple(picture for picture in ALL if not names or picture.name in names)
    if len(chosen) < len(set(names)):
        parser.error(f"there is no such picture; known: {', '.join(picture.name for picture in ALL)}")
    take(chosen)
    for picture in chosen:
        print(picture.path.relative_to(ROOT), picture.path.stat().st_size // 1024, "KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
