"""Clocks belong to the server and outlive it: everything but the databases is killed in mid-turn.

No browser takes part: what matters is that the installation comes back by itself and keeps the deadline.
"""

import json
import time
import urllib.error
import urllib.request

import pytest

from tests.browser.site import alive

pytestmark = pytest.mark.slow
PARTS = ("manage.py serve", "manage.py clock", "play@")
SECONDS = 15  # for the one move: longer than it takes to kill, shorter than a test may wait
BACK_WITHIN = 60.0


def running(site):
    """The site's own processes by part: pages and sockets, the clock, the worker that plays."""
    processes = {part: set() for part in PARTS}
    for process in site.family().values():
        if alive(process):
            line = " ".join(process.cmdline())
            for part in PARTS:
                if part in line:
                    processes[part].add(process)
    return processes


def state_of(site, match, key):
    request = urllib.request.Request(f"{site.address}/api/v1/matches/{match}")
    request.add_header("Authorization", f"Bearer {key}")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["state"]
    except (urllib.error.URLError, OSError):
        return "away"


def test_a_deadline_survives_the_death_of_pages_clock_and_worker(site):
    before = running(site)
    assert all(before.values()), before
    made = site.seed("silent_match", SECONDS)
    for processes in before.values():
        for process in processes:
            process.kill()
    assert time.time() < made["deadline"], "the turn was over before anything was killed"
    ends = time.monotonic() + SECONDS + BACK_WITHIN
    while (state := state_of(site, made["match"], made["key"])) != "finished":
        assert time.monotonic() < ends, f"the game is {state} long after its deadline"
        time.sleep(0.3)
    assert site.seed("origins", made["match"]) == [[0, "timeout"], [1, "seat"]]
    after = running(site)
    assert all(after[part] and not after[part] & before[part] for part in PARTS)
