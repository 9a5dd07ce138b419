"""The notebooks of `examples/notebooks` run from top to bottom against a real server."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.webapp.judgments.make import finished_match, people_queue
from training.labels.codebooks import CONDUCT
from webapp.runs.models import Run

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.process, pytest.mark.slow]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def run_notebook(client_for, live_server, monkeypatch):
    """Runs a notebook as a person; returns what its cells printed and showed, cell by cell."""
    from webapp.accounts.services import create_key

    def run(name, user):
        monkeypatch.setenv("PARLEY_URL", live_server.url)
        monkeypatch.setenv("PARLEY_KEY", create_key(user=user, name=name)[1])
        monkeypatch.setenv("PYTHONPATH", str(ROOT / "client"))
        monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        notebook = nbformat.read(ROOT / "examples" / "notebooks" / f"{name}.ipynb", as_version=4)
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
        return [shown(cell) for cell in notebook.cells if cell.cell_type == "code"]

    return run


def shown(cell):
    texts = [output.get("text", "") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    pictures = ["<picture>" for output in cell.outputs if "image/png" in output.get("data", {})]
    return "".join([*texts, *pictures])


def test_several_runs_are_started_awaited_and_drawn(working, run_notebook, researcher):
    outputs = run_notebook("sweep", researcher)
    runs = Run.objects.order_by("pk")
    assert [(run.name, run.state, run.config["learn"]["lr"]) for run in runs] == [
        ("sweep lr 0.0001", "succeeded", 1e-4),
        ("sweep lr 0.0007", "succeeded", 7e-4),
        ("sweep lr 0.002", "succeeded", 2e-3),
    ]
    assert "learn.lr →" in outputs[2]
    assert "sweep lr 0.002: succeeded, step 6 of 6" in outputs[3]
    assert "<picture>" in outputs[4]
    assert "step 6" in outputs[5]


def test_an_agent_plays_to_the_end(working, run_notebook, player):
    outputs = run_notebook("agent", player)
    assert "tic-tac-toe" in outputs[1].lower()
    assert "turn 0" in outputs[2]
    assert outputs[3].startswith("finished {'0':")


def test_judgments_become_a_table_with_agreement(run_notebook, client_for, researcher, other_researcher, person):
    """Values 2 and 4 of one seat, 6 and 8 of the other: by hand 16 / 4 = 4 within, 2 · 20 / 3 between, so α = 0.7."""
    people = [person("annotator", name) for name in ("anna", "bo")]
    queue = people_queue(researcher, finished_match(researcher), people)
    for who, scores in zip(people, ((2, 6), (4, 8)), strict=True):
        client = client_for(who)
        for target, score in zip(list(client.judgments.targets(queue=queue.pk)), scores, strict=True):
            client.judgments.add(target.id, {label_type.name: score for label_type in CONDUCT.labels})
    outputs = run_notebook("labels", other_researcher)
    assert "4 judgments, 0 without labels" in outputs[1]
    [row] = [line for line in outputs[3].splitlines() if line.startswith("mutual_benefit")]
    assert row.split() == ["mutual_benefit", "0.7"]
