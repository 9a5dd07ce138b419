"""Response times of the pages and API of the annotation bench at 10,000 seats, three annotators and eight label types.

Times are those of whole requests through Django's test client, after one that is not counted: median and 95th
percentile, elapsed and of the processor, by this process and the sessions of its database (without their parallel
workers). The machine may be busy; on an idle one a request takes about its processor time. Analyses are computed by a
worker, and exports are written by the command in a process of its own, whose peak memory is measured.
"""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from bench import annotation_seed
from bench.annotation_seed import Seeded
from bench.annotators import QUESTION, TARGET, answered, read
from bench.installation import installation
from bench.site_conditions import measured
from bench.sockets import ROOT
from training.errors import ParleyError
from training.labels.exchange import FORMATS

LIMIT_MS = 100.0
PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
CHOICE = re.compile(r'name="value-(\w+)" value="(\w+)"')


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the times of pages, analyses and exports."""
    return measured(lambda: _measure(arguments))


def show(result: dict[str, Any]) -> str:
    """Return the lines of the page."""
    return "\n".join(import_module("bench.annotation_times_page").page(result))


def _measure(arguments: Namespace) -> dict[str, Any]:
    with installation("annotation-times"):
        begun = time.monotonic()
        seeded = annotation_seed.seed(arguments.items)
        seconds = time.monotonic() - begun
        with import_module("django.db").connection.cursor() as cursor:
            cursor.execute("VACUUM (ANALYZE)")  # as the database does by itself soon after; outside of a transaction
        results = import_module("webapp.judgments.results.analyses")
        analyses = {name: _worked(partial(results.compute, queue_id=seeded.queue, name=name)) for name in results.KINDS}
        analyses["emergence"] = _worked(partial(_behaviours, seeded))
        import_module("webapp.asgi")  # leaves what is loaded out of garbage collection, as in a server
        pages = {
            name: timed(request, arguments.repeats) for name, request in requests(seeded, arguments.repeats).items()
        }
        exports = {name: _exported(seeded.queue, name) for name in FORMATS}
        counts = _counts(seeded.queue)
    slow = [name for name, row in pages.items() if row["median_ms"] > LIMIT_MS]
    return {
        "items": arguments.items, "repeats": arguments.repeats, "counts": counts, "seed_s": seconds, "pages": pages,
        "analyses": analyses, "exports": exports, "limit_ms": LIMIT_MS, "slow": slow,
    }  # fmt: skip


def _counts(queue: int) -> dict[str, int]:
    models = import_module("webapp.judgments.models")
    return {
        "targets": models.Target.objects.filter(queue=queue).count(),
        "judgments": models.Judgment.objects.filter(queue=queue).count(),
        "labels": models.Label.objects.filter(judgment__queue=queue).count(),
        "labels_of_the_site": models.Label.objects.count(),
    }


def requests(seeded: Seeded, repeats: int) -> dict[str, Callable[[], Any]]:
    """Return a function for every request, by name; `repeats` judgments are there to be saved."""
    test, keys = import_module("django.test"), import_module("webapp.accounts.services")

    def client(user: Any) -> Any:
        made = test.Client()
        made.force_login(user)
        return made

    def api(user: Any) -> Any:
        return test.Client(headers={"Authorization": f"Bearer {keys.create_key(user=user, name='bench')[1]}"})

    owner, first, last = client(seeded.owner), client(seeded.annotators[0]), client(seeded.annotators[-1])
    of_owner, of_last = api(seeded.owner), api(seeded.annotators[-1])
    queue = f"/judgments/queues/{seeded.queue}/"
    target = _disagreeing(seeded.queue)
    searches = {"": "search", "label=eight/accuses&value=yes&role=werewolf": "search: label, value, role",
                f"queue={seeded.queue}&q=wolf": "search: words in a queue"}  # fmt: skip
    pages = {
        "queues": (owner, "/judgments/"),
        "queue": (owner, queue),
        "queue, last page": (owner, f"{queue}?page=1500"),
        "agreement": (owner, f"{queue}agreement/"),
        "truth": (owner, f"{queue}truth/"),
        "calibration": (owner, f"{queue}judges/"),
        "adjudication: list": (owner, f"{queue}decisions/"),
        "adjudication: a target": (owner, f"{queue}decisions/{target}/"),
        "annotation page": (last, f"{queue}annotate/"),
        "annotation page, all judged": (first, f"{queue}annotate/"),
        "own queues": (last, "/judgments/mine/"),
        "own queues, all judged": (first, "/judgments/mine/"),
        "own judgments": (first, f"{queue}own/"),
        **{name: (owner, f"/judgments/search/?{query}") for query, name in searches.items()},
        "emergence": (owner, f"/judgments/runs/{seeded.run}/"),
        "API: queues": (of_owner, "/api/v1/queues"),
        "API: queue": (of_owner, f"/api/v1/queues/{seeded.queue}"),
        "API: targets of a queue": (of_owner, f"/api/v1/queues/{seeded.queue}/targets"),
        "API: assignments": (of_owner, f"/api/v1/queues/{seeded.queue}/assignments"),
        "API: judgments": (of_owner, f"/api/v1/judgments?queue={seeded.queue}"),
        "API: decisions": (of_owner, f"/api/v1/judgments/queues/{seeded.queue}/decisions"),
        "API: agreement": (of_owner, f"/api/v1/judgments/queues/{seeded.queue}/agreement"),
        "API: open targets": (of_last, f"/api/v1/judgments/targets?queue={seeded.queue}"),
    }
    asked = {name: lambda who=who, address=address: read(who.get(address), address)
             for name, (who, address) in pages.items()}  # fmt: skip
    return {**asked, "save and next": lambda: _saved(last, f"{queue}annotate/"),
            "API: save": lambda: _sent(of_last, seeded.queue)}  # fmt: skip


def _disagreeing(queue: int) -> int:
    """The target on which annotators disagree most of those without a decision."""
    record = import_module("webapp.judgments.models").Queue.objects.get(pk=queue)
    result = import_module("webapp.judgments.results.analyses").of_queue(record, "disagreement").result
    if result is None:
        raise ParleyError("there is no disagreement")
    judged = import_module("webapp.judgments.models").Judgment.objects
    decided = set(judged.filter(queue=queue, decides=True).values_list("target", flat=True))
    target: int = next(pk for pk in result.targets if pk not in decided)
    return target


def _saved(client: Any, address: str) -> Callable[[], Any]:
    """Prepare the answer to the next target outside of the measurement; return what sends it as a script."""
    page = read(client.get(address), address)
    offered = TARGET.search(page)
    if offered is None:
        raise ParleyError("nothing is left to judge")
    sent = {f"value-{name}": value for name, value in [*CHOICE.findall(page), *QUESTION.findall(page)]}
    sent |= {"value-trust": "50", "target": offered[1], "seconds": "20", "shown": offered[1]}
    return lambda: read(client.post(address, sent, headers={"HX-Request": "true"}), address)


def _sent(client: Any, queue: int) -> Callable[[], Any]:
    items = answered(client.get("/api/v1/judgments/targets", {"queue": queue, "limit": 1}))["items"]
    if not items:
        raise ParleyError("nothing is left to judge")
    values = {"trust": 50.0, "persuasion": 3.0, "honesty": 2.0, "mood": "calm"}
    labels = [{"label": each["name"], "value": values.get(each["name"], True)} for each in items[0]["label_types"]]
    body = {"target": items[0]["id"], "labels": labels}
    return lambda: answered(client.post("/api/v1/judgments", body, content_type="application/json"), 201)


def timed(request: Callable[[], Any], repeats: int) -> dict[str, float]:
    """Return milliseconds of a request, elapsed and of the processor; one that returns a function prepares that one."""
    elapsed, processor = [], []
    for number in range(repeats + 1):
        before, begun = _processor(), time.perf_counter()
        sends = request()
        if callable(sends):
            before, begun = _processor(), time.perf_counter()
            sends()
        spent = time.perf_counter() - begun
        if number:
            elapsed.append(1000 * spent)
            processor.append(1000 * (_processor() - before))
    return {
        "median_ms": round(statistics.median(elapsed), 1), "p95_ms": round(_p95(elapsed), 1),
        "processor_ms": round(statistics.median(processor), 1), "processor_p95_ms": round(_p95(processor), 1),
    }  # fmt: skip


def _p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[94] if len(values) > 1 else values[0]


def _processor() -> float:
    """Return the seconds of the processor that this process and the sessions of its database have used."""
    with import_module("django.db").connection.cursor() as cursor:
        cursor.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend'")
        sessions = [pid for (pid,) in cursor.fetchall()]
    return time.process_time() + sum(map(_of_session, sessions))


def _of_session(pid: int) -> float:
    """The processor's seconds of a session that runs on this machine; 0 if the system does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) / 1e9
    except OSError:
        return 0.0


def _behaviours(seeded: Seeded) -> None:
    """Compute what the page of the run's behaviours shows its owner first."""
    emergence = import_module("webapp.judgments.results.emergence")
    run = import_module("webapp.runs.models").Run.objects.get(pk=seeded.run)
    authors = emergence.judged(run, seeded.owner)
    version = emergence.versions(run, seeded.owner, authors)[0]
    source = emergence.sources(run, version, seeded.owner, authors)[0]
    emergence.compute(run.pk, version.pk, source.key, "survived", seeded.owner.pk)


def _worked(compute: Callable[[], object]) -> dict[str, float]:
    """Compute a result as a worker does; return the seconds, elapsed and of the processor."""
    before, begun = _processor(), time.perf_counter()
    compute()
    return {"seconds": round(time.perf_counter() - begun, 2), "processor_s": round(_processor() - before, 2)}


def _exported(queue: int, name: str) -> dict[str, float]:
    """Export by the command in a process of its own; return seconds, megabytes of the file, and peak MiB of memory."""
    with tempfile.TemporaryDirectory(prefix="parley-export-") as folder:
        path = Path(folder) / name
        command = [sys.executable, "manage.py", "export_labels", str(queue), "--format", name, "--output", str(path)]
        begun = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        status, usage, peak = waited(process)
        seconds = time.perf_counter() - begun
        if status:
            raise ParleyError(f"the export as {name} failed")
        size = path.stat().st_size
    return {
        "seconds": round(seconds, 2), "processor_s": round(usage.ru_utime + usage.ru_stime, 2),
        "megabytes": round(size / 1e6, 1), "peak_mib": round(peak, 1),
    }  # fmt: skip


def waited(process: subprocess.Popen[Any]) -> tuple[int, Any, float]:
    """Wait for a process; return its status, what it used, and its peak memory in MiB.

    The peak is read from Linux every 10 ms. `ru_maxrss` would be at least the peak of this process, whose memory the
    child shares until it runs its command.
    """
    peak = 0.0
    while True:
        if lines := PEAK.search(Path(f"/proc/{process.pid}/status").read_text("utf-8")):
            peak = int(lines[1]) / 1024
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            return status, usage, peak
        time.sleep(0.01)


def slowest(pages: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the names of requests, the slowest first."""
    return sorted(pages, key=lambda name: -pages[name]["median_ms"])
