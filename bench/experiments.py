"""An experiment of two arms with scripted participants, three of whom leave midway: what is lost, balance, analysis.

The measurement runs a fresh installation with embedded databases: site, clock and a worker for seats. In one arm two
participants negotiate with each other, in the other one with a scripted player. One participant leaves the waiting room
and one the table of each arm. Fails if a participant gets stuck or does not get through.
"""

from __future__ import annotations

import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

from bench import recomputed
from bench.installation import installation
from bench.participants import PATIENCE_S, Leaving, Participant, Visitor
from bench.sockets import served
from bench.table import working
from training.errors import ParleyError

ARMS = ("alone", "pairs")
REPLACED = 4
"""Places that are given away again: one of the waiting room, one of `alone`, and both of a pair."""
APART_S = 1.5
TOLERANCE = 1e-9
COLUMNS = {"return": "return", "agreement": "agreement", "mood": "answer_mood", "trust": "answer_trust"}


def main(arguments: Namespace) -> dict[str, Any]:
    """Run the experiment; return counts, what was lost, the balance, and the analysis beside its recomputation."""
    with installation("experiments"), served() as port, working():
        experiment = _experiment((arguments.participants - REPLACED) // 2, arguments.seed)
        leaving = Leaving({"wait", *ARMS}, _arm_of)
        people = [
            (Visitor if number < arguments.browsers else Participant)(
                f"http://127.0.0.1:{port}", experiment.token, f"P{number:03d}", arguments.seed, leaving
            )
            for number in range(arguments.participants)
        ]
        _run(people, experiment)
        return {"seed": arguments.seed, "browsers": arguments.browsers, **_result(experiment, people)}


def show(result: dict[str, Any]) -> str:
    """Return the result in a few lines."""
    return "\n".join(
        [
            f"{result['participants']} participants ({result['browsers']} with Chromium): {result['outcomes']}",
            f"started {result['started']}, analysed {result['analysed']}",
            f"lost: {result['lost'] or 'nothing'}",
            f"largest difference of analysis and recomputation: {result['largest_gap']:.1e}; ok: {result['ok']}",
        ]
    )


def _experiment(per_arm: int, seed: int) -> Any:
    """Return an open experiment of a researcher."""
    design, models = import_module("webapp.experiments.design"), import_module("webapp.experiments.models")
    owner = import_module("webapp.accounts.models").User.objects.create(username="rosa", role="researcher")
    texts = {"title": "Pairs and scripts", "consent_text": "You negotiate once.", "debriefing": "Some met a script."}
    made = models.Experiment(
        **texts, code_completed="COMPLETE", per_arm=per_arm, seed=seed, wait_seconds=900, code_waited="WAITED"
    )
    made = design.save(experiment=made, owner=owner)
    for name, players in zip(ARMS, (["person", "scripted:scripted"], ["person", "person"]), strict=True):
        played = {"game": "negotiation", "scenario": "sample", "rules": {"turn_limit": 6}, "deadline_s": 60}
        design.save_arm(arm=models.Arm(experiment=made, name=name, players=players, shown_as="unknown", **played))
    for part, name in (("before", "mood"), ("after", "trust")):
        scale = {"kind": "likert", "options": ["1", "2", "3", "4", "5"], "text": f"How is your {name}?"}
        design.save_question(question=models.Question(experiment=made, part=part, name=name, **scale))
    design.open_experiment(experiment=made)
    return models.Experiment.objects.get(pk=made.pk)


def _arm_of(match: int) -> str:
    groups = import_module("webapp.experiments.models").Group.objects
    name: str = groups.values_list("arm__name", flat=True).get(match=match)
    import_module("django.db").connection.close()
    return name


def _run(people: Sequence[Participant], experiment: Any) -> None:
    """Let the participants come one after the other; the last come when the places of the leavers are free."""
    with ThreadPoolExecutor(len(people)) as pool:
        running: list[Future[None]] = []
        for person in people[:-REPLACED]:
            running.append(pool.submit(person.run))
            time.sleep(APART_S)
        _until(lambda: experiment.participants.filter(outcome="left").count() == len(ARMS) + 1)
        running += [pool.submit(person.run) for person in people[-REPLACED:]]
        for future in running:
            future.result()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise ParleyError("the leavers were not noticed")
        time.sleep(1)


def _result(experiment: Any, people: Sequence[Participant]) -> dict[str, Any]:
    results, export = import_module("webapp.experiments.results"), import_module("webapp.experiments.export")
    csv_files = import_module("webapp.core.csv_files")
    rows = list(export.rows(experiment, experiment.owner))
    cells = export.table(experiment, experiment.owner)
    text = b"".join(csv_files.written(export.columns(experiment), cells)).decode()
    analysis = results.compute(experiment).to_dict()
    again = recomputed.recompute(text, ARMS, COLUMNS)
    gap = recomputed.largest_gap(analysis, again)
    experiment.refresh_from_db()
    lost = _lost(rows, people)
    analysed = Counter(row["arm"] for row in rows if row["analysed"])
    return {
        "participants": len(people),
        "outcomes": dict(Counter(row["outcome"] for row in rows)),
        "left": sorted(person.left for person in people if person.left),
        "started": dict(Counter(row["arm"] for row in rows)),
        "analysed": dict(analysed),
        "state": experiment.state,
        "lost": lost,
        "analysis": analysis,
        "recomputed": again,
        "largest_gap": gap,
        "export": text.splitlines(),
        "ok": not lost and len(set(analysed.values())) == 1 and gap < TOLERANCE and experiment.state == "closed",
    }


def _lost(rows: Sequence[dict[str, Any]], people: Sequence[Participant]) -> list[str]:
    """Return what participants did and the export does not say, a line each."""
    moves = import_module("webapp.arena.models").MatchMove.objects
    by_id = {row["external_id"]: row for row in rows}
    lost = []
    for person in people:
        row = by_id.get(person.external_id, {})
        stored = {name: row.get(f"answer_{name}") for name in person.answers}
        if stored != person.answers:
            lost.append(f"{person.external_id}: answered {person.answers}, stored {stored}")
        if row.get("outcome") != ("left" if person.left else "completed"):
            lost.append(f"{person.external_id}: its outcome is {row.get('outcome')}")
        stored = moves.filter(match=row.get("match"), seat=row.get("seat") or 0, move__origin="seat").count()
        if not person.left and stored != person.moves:
            lost.append(f"{person.external_id}: made {person.moves} moves, stored {stored}")
    return lost
