"""The response times of the site's pages with 1,000 runs, 10,000 episodes, 1,000,000 metric points, 10,000 matches.

The measurement uses a temporary installation with its own embedded databases. Times are those of whole requests through
Django's test client, in milliseconds: the median and the slowest of several, after one that is not counted. Fails if a
page answers anything but 200.
"""

from __future__ import annotations

import json
import statistics
import time
from argparse import Namespace
from importlib import import_module
from typing import Any

from bench.installation import installation

LIMIT_MS = 100.0
RUNS, EPISODES, METRICS = 1_000, 10_000, 20
MATCHES, OPPONENTS = 10_000, 50  # matches of two models each; opponents that a model's row of the win matrix names
LONG_STEPS, SHORT_STEPS = 5_000, 46  # of one run and of each other one: 1,000,000 numbers in about 51,000 rows

SEED = f"""
INSERT INTO runs_run (kind, name, owner_id, state, queue, config, method, game, base, step, steps, key_metric,
    sparkline, error, code_version, directory, created_at, started_at)
SELECT (ARRAY['train', 'train', 'sft', 'eval'])[1 + mod(n, 4)], 'run ' || n, %(owner)s,
    (ARRAY['succeeded', 'failed', 'stopped', 'running', 'queued'])[1 + mod(n, 5)], 'train-cpu', %(config)s::jsonb,
    'omar', (ARRAY['negotiation', 'dialogue'])[1 + mod(n, 2)], 'tiny',
    CASE WHEN n = 4 THEN {LONG_STEPS} ELSE {SHORT_STEPS} END, {LONG_STEPS}, n / 1000.0,
    (SELECT jsonb_agg(i * 0.1) FROM generate_series(1, 61) i), '', '', '', now() - n * interval '1 minute', now()
FROM generate_series(1, {RUNS}) n;

INSERT INTO runs_attempt (run_id, number, fence, state, start_step, worker, host, lease_until, phase, status,
    progressed_at, offsets, log, started_at)
SELECT id, 1, 1, 'running', 0, 'w', 'h', now() + interval '1 day', 'sampling', '{{}}', now(), '{{}}',
    repeat('line ', 4000), now()
FROM runs_run;

INSERT INTO runs_metric (run_id, step, fence, at, values)
SELECT run.id, s, 1, now(), %(metrics)s::jsonb
FROM runs_run run, generate_series(1, CASE WHEN run.name = 'run 4' THEN {LONG_STEPS} ELSE {SHORT_STEPS} END) s;

INSERT INTO runs_playedepisode (run_id, step, number, fence, file, "offset", length, outcome, summary)
SELECT run.id, 1 + n / 50, mod(n, 50), 1, 'f', 0, 0, (ARRAY['agreement', 'no agreement'])[1 + mod(n, 2)],
    '{{"scenario": "s", "returns": {{"0": 1, "1": 0.5}}, "turns": 8, "refused": 0}}'::jsonb
FROM runs_run run, generate_series(0, {EPISODES} - 1) n WHERE run.name = 'run 4';

INSERT INTO runs_checkpoint (name, kind, run_id, step, base, path, sha256, metrics, open_to_players, created_at)
SELECT 'run-' || id || '-step-46', 'full', id, 46, 'tiny', 'p', '', '{{"reward": 0.5}}', false, now() FROM runs_run;

INSERT INTO serving_deployment (state, address, key, error, checkpoint_id)
SELECT 'cold', '', '', '', id FROM runs_checkpoint;

INSERT INTO arena_match (host_id, game, scenario, state, visibility, deadline_s, step, returns, metrics, roles,
    rules, aborted_why, shuffled, rated, unrated_why, created_at, started_at, ended_at)
SELECT %(owner)s, 'negotiation', '{{"seats": ["Ann", "Ben"]}}'::jsonb, 'finished', 'private', 90, 8,
    '{{"0": 1, "1": 0}}'::jsonb, '{{}}'::jsonb, '[]'::jsonb, '{{}}'::jsonb, '', false, true, '', now(), now(), now()
FROM generate_series(1, {MATCHES}) n;

INSERT INTO arena_matchseat (match_id, seat, name, kind, deployment_id, scripted, ready, stand_in)
SELECT match.id, seat, 'Ann', 'model', low.id + mod(match.id * (seat + 1), {RUNS}), '', false, false
FROM arena_match match, generate_series(0, 1) seat, (SELECT min(id) AS id FROM serving_deployment) low;

INSERT INTO ladder_fit (game, log_digest, seen, matches, seats, roles, fitted_at)
VALUES ('negotiation', '', '', {MATCHES}, '{{}}'::jsonb, '{{}}'::jsonb, now());

INSERT INTO ladder_standing (fit_id, who, kind, deployment_id, rank, rating, low, high, why, games, won, roles, against,
    played, moves, default_moves, timeout_moves, default_games, timeout_games, forfeit_games)
SELECT fit.id, 'model:' || model.id, 'model', model.id, row_number() OVER (ORDER BY model.id), 2000 - model.id,
    900, 1100, '', 20, 10, '{{}}'::jsonb,
    (SELECT jsonb_object_agg('model:' || model.id + n, '[2, 1]'::jsonb) FROM generate_series(1, {OPPONENTS}) n),
    20, 90, 3, 2, 3, 2, 0
FROM serving_deployment model, ladder_fit fit;

ANALYZE;
"""  # noqa: S608 (our own numbers)


def main(arguments: Namespace) -> dict[str, Any]:
    """Fill the database, request every page, and return how long each took."""
    with installation("pages"):
        return _measure(arguments.repeats)


def show(result: dict[str, Any]) -> str:
    """Return one line for each page, the slowest first."""
    pages = sorted(result["pages"].items(), key=lambda pair: -pair[1]["median_ms"])
    lines = [f"{times['median_ms']:7.1f} ms  (slowest {times['slowest_ms']:.1f})  {name}" for name, times in pages]
    counts = ", ".join(
        f"{result[what]} {what.replace('_', ' ')}" for what in ("runs", "episodes", "metric_points", "matches")
    )
    return "\n".join([*lines, counts, f"every median within {LIMIT_MS:.0f} ms: {result['ok']}"])


def _measure(repeats: int) -> dict[str, Any]:
    client = _seeded_client()
    times = {name: _time(client, address, repeats) for name, address in _addresses().items()}
    slowest = max(page["median_ms"] for page in times.values())
    counts = {
        "runs": RUNS,
        "episodes": EPISODES,
        "matches": MATCHES,
        "metric_points": METRICS * (LONG_STEPS + (RUNS - 1) * SHORT_STEPS),
    }
    return {"pages": times, "slowest_median_ms": slowest, "limit_ms": LIMIT_MS, "ok": slowest <= LIMIT_MS, **counts}


def _seeded_client() -> Any:
    """Fill the database and return a client that is signed in as a researcher."""
    users = import_module("webapp.accounts.models").User.objects
    owner = users.create(username="rosa", role="researcher")
    config = import_module("training.config").RunConfig(name="seeded").to_dict()
    metrics = {f"metric_{n}": n / 7 for n in range(METRICS - 4)}
    metrics |= {"reward": 0.5, "kl": 0.01, "step_s": 2.0, "sampling_tokens_per_s": 120.0}
    values = {"owner": owner.pk, "config": json.dumps(config), "metrics": json.dumps(metrics)}
    with import_module("django.db").connection.cursor() as cursor:
        for statement in SEED.split(";\n")[:-1]:
            used = {name: value for name, value in values.items() if f"%({name})s" in statement}
            cursor.execute(statement, used or None)
    client = import_module("django.test").Client()
    client.force_login(owner)
    return client


def _addresses() -> dict[str, str]:
    """Return the pages' addresses by name; run 4 has the most steps and all the episodes."""
    runs = import_module("webapp.runs.models").Run.objects
    long = runs.get(name="run 4").pk
    several = "&".join(f"run={pk}" for pk in runs.order_by("pk").values_list("pk", flat=True)[:4])
    checkpoint = import_module("webapp.runs.models").Checkpoint.objects.get(run=long).pk
    return {
        "runs": "/runs/",
        "runs filtered": "/runs/?state=failed&game=negotiation&sort=-metric&q=run",
        "runs last page": "/runs/?page=15",
        "new run": "/runs/new/",
        "curves": f"/runs/{long}/",
        "header": f"/runs/{long}/live/",
        "metrics, all": f"/runs/{long}/metrics.json?since=-1",
        "metrics, new": f"/runs/{long}/metrics.json?since={LONG_STEPS - 2}",
        "conversations": f"/runs/{long}/conversations/",
        "conversations filtered": f"/runs/{long}/conversations/?step=7&outcome=agreement",
        "evaluation": f"/runs/{long}/evaluation/",
        "log": f"/runs/{long}/log/",
        "configuration": f"/runs/{long}/configuration/",
        "lineage": f"/runs/{long}/lineage/",
        "compare": f"/runs/compare/?{several}",
        "checkpoints": "/checkpoints/",
        "checkpoint": f"/checkpoints/{checkpoint}/",
        "ladder": "/ladder/?game=negotiation",
        "ladder sorted": "/ladder/?game=negotiation&kind=model&sort=-timeout_games&page=20",
    }


def _time(client: Any, address: str, repeats: int) -> dict[str, float]:
    times = []
    for number in range(repeats + 1):
        began = time.perf_counter()
        answer = client.get(address)
        spent = (time.perf_counter() - began) * 1000
        if answer.status_code != 200:
            raise RuntimeError(f"{address} answered {answer.status_code}")
        times += [spent] if number else []
    return {"median_ms": round(statistics.median(times), 1), "slowest_ms": round(max(times), 1)}
