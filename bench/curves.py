"""How long a run's page takes to draw its curves, with 100,000 steps and a value of every curve at each step.

The site runs in a separate process, beside Chromium. The server sends about 600 steps of a long run, including the
newest (`webapp.runs.querysets.MetricQuerySet.since`). Times run from the request for the page to the second frame after
all charts exist; each visit uses a new browser context, and the first visit is not counted. Fails if a chart is empty,
or if the last point is not that of the last step.
"""

from __future__ import annotations

import os
import statistics
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from bench import vitals
from bench.installation import installation
from bench.site_conditions import measured
from bench.sockets import served
from training.errors import ParleyError

STEPS, LIMIT_MS = 100_000, 1000.0
NAMES = (
    *("reward", "agreement", "parse_rate", "legal_rate", "joint_points", "turns"),
    *("loss", "kl", "entropy", "clipfrac", "grad_norm", "lr"),
)
SIZE = {"width": 1280, "height": 900}
SEED = """
INSERT INTO runs_metric (run_id, step, fence, at, values)
SELECT %s, s, 1, now(), (
    SELECT jsonb_object_agg(name, sin(s / 5000.0 + place) + random() / 10)
    FROM unnest(%s::text[]) WITH ORDINALITY n(name, place)
)
FROM generate_series(1, %s) s
"""
WATCH = """
window.drawn = null;
const look = () => {
  if (document.querySelectorAll(".curve canvas").length < CURVES) requestAnimationFrame(look);
  else requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = performance.now(); }));
};
requestAnimationFrame(look);
"""
EMPTY = """() => [...document.querySelectorAll(".curve canvas")].filter((canvas) =>
  !canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.some((value) => value)).length"""
"""The number of empty charts."""
READ = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const data = performance.getEntriesByType("resource").find((entry) => entry.name.includes("metrics.json"));
  const sent = { data_ms: data.responseEnd - data.startTime, data_kb: data.decodedBodySize / 1000 };
  return { drawn_ms: drawn, page_ms: page.responseEnd, ...sent };
}"""


def main(arguments: Namespace) -> dict[str, Any]:
    """Visit the page of the long run; return the milliseconds of every visit and their medians."""
    return measured(lambda: _measure(arguments))


def _measure(arguments: Namespace) -> dict[str, Any]:
    playwright = import_module("playwright.sync_api").sync_playwright
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # the browser's loop runs in this thread
    with installation("curves"), served() as port, playwright() as started:
        run, session = _long_run()
        browser = vitals.launch(started, arguments.chromium)
        address = f"http://127.0.0.1:{port}"
        visits = [_visit(browser, address, run, session) for _ in range(arguments.rounds + 1)][1:]
        browser.close()
    return summary(visits)


def _long_run() -> tuple[int, str]:
    """Store the run with its metrics; return its id and the session of its owner."""
    models, accounts = import_module("webapp.runs.models"), import_module("webapp.accounts.models")
    owner = accounts.User.objects.create(username="rosa", role="researcher")
    config = import_module("training.config").RunConfig(name="long").to_dict()
    run = models.Run.objects.create(
        owner=owner, name="long", kind="train", state="succeeded", config=config, method="omar", game="negotiation",
        base="tiny", queue="train-cpu", steps=STEPS, step=STEPS,
    )  # fmt: skip
    with import_module("django.db").connection.cursor() as cursor:
        cursor.execute(SEED, [run.pk, list(NAMES), STEPS])
        cursor.execute("ANALYZE runs_metric")
    client = import_module("django.test").Client()
    client.force_login(owner)
    return run.pk, client.cookies["session"].value


def _visit(browser: Any, address: str, run: int, session: str) -> dict[str, float]:
    context = browser.new_context(viewport=SIZE)
    context.add_cookies([{"name": "session", "value": session, "url": address}])
    page = context.new_page()
    page.add_init_script(WATCH.replace("CURVES", str(len(NAMES))))
    page.goto(f"{address}/runs/{run}/")
    page.wait_for_function("() => window.drawn !== null")
    numbers: dict[str, float] = page.evaluate(READ)
    empty = page.evaluate(EMPTY)
    data = page.request.get(f"{address}/runs/{run}/metrics.json?since=-1").json()
    context.close()
    if data["steps"][-1] != STEPS or set(data["series"]) != set(NAMES) or empty:
        raise ParleyError(f"the curves end at step {data['steps'][-1]} of {STEPS}; {empty} of them are empty")
    return {**{name: round(value, 1) for name, value in numbers.items()}, "points": len(data["steps"])}


def summary(visits: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return the visits with the median of each number, and whether the curves are drawn within the limit."""
    medians = {name: statistics.median(visit[name] for visit in visits) for name in visits[0]}
    counts = {"steps": STEPS, "curves": len(NAMES), "limit_ms": LIMIT_MS}
    return {"visits": list(visits), "medians": medians, **counts, "ok": medians["drawn_ms"] < LIMIT_MS}


def show(result: dict[str, Any]) -> str:
    """Return one line."""
    row = result["medians"]
    slowest = max(visit["drawn_ms"] for visit in result["visits"])
    return (
        f"{result['curves']} curves of {result['steps']} steps: drawn after {row['drawn_ms']:.0f} ms (slowest "
        f"{slowest:.0f}); page {row['page_ms']:.0f} ms, data {row['data_ms']:.0f} ms and {row['data_kb']:.0f} KB "
        f"({row['points']:.0f} steps); within {result['limit_ms']:.0f} ms: {result['ok']}"
    )
