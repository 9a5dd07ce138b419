"""Web vitals that a page measures in Chromium: layout shifts, and the time from an input to the next paint.

`SCRIPT` runs before the page's own; `read` returns the numbers since the page was loaded. The layout shift is that of
web.dev: the greatest sum of shifts that are at most a second apart, within five seconds, without those that follow an
input of the person by less than half a second. A table's answer to a move mostly comes later than that.
"""

from __future__ import annotations

import gzip
import shutil
from typing import Any

from tools.test import BROWSERS

SCRIPT = """
window.vitals = { shift: 0, inputs: [], moved: [] };
(() => {
  let sum = 0, first = 0, last = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      if (entry.hadRecentInput) continue;
      if (entry.startTime - last > 1000 || entry.startTime - first > 5000) [sum, first] = [0, entry.startTime];
      sum += entry.value;
      last = entry.startTime;
      vitals.shift = Math.max(vitals.shift, sum);
      for (const { node } of entry.sources) {
        const element = node?.nodeType === 1 ? node : node?.parentElement;
        vitals.moved.push(element ? `${element.tagName.toLowerCase()}#${element.id}.${element.className}` : "?");
      }
    }
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (entry.interactionId) vitals.inputs.push(entry.duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });
})();
"""

READ = "() => ({ ...vitals, moved: [...new Set(vitals.moved)].slice(0, 12) })"
FILES = """() => [...document.querySelectorAll("link[rel=stylesheet], script[src]")]
  .map((file) => file.href || file.src)"""
"""The addresses of the style sheets and scripts."""


def launch(playwright: Any, chosen: str) -> Any:
    """Start Chromium: the file that was chosen, else the first one on the path, else Playwright's own."""
    path = chosen or next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])


def read(page: Any) -> dict[str, Any]:
    """Return `shift`, `inputs` (milliseconds from each input to the next paint) and `moved`, the shifted elements."""
    page.wait_for_timeout(100)  # entries come after the frame that they are about
    measured: dict[str, Any] = page.evaluate(READ)
    return measured


def weight(page: Any) -> dict[str, int]:
    """Return the bytes of the page before images: `raw`, and `sent` as in production.

    There WhiteNoise compresses the style sheets and scripts. The document is counted as it is: the site compresses no
    page with a secret in it.
    """
    document = len(page.request.get(page.url).body())
    files = [page.request.get(address).body() for address in page.evaluate(FILES)]
    return {"raw": document + sum(map(len, files)), "sent": document + sum(len(gzip.compress(file)) for file in files)}
