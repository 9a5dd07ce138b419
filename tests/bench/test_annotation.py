"""The annotation bench: alpha by hand, the readers of formats, and the whole way on a few games."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench import (
    annotation,
    annotation_page,
    annotation_seed,
    annotation_times,
    coincidences,
    label_copies,
    werewolf_setup,
)
from training import tables
from training.dataset import Conversation, DatasetLine
from training.labels.exchange import table
from webapp.accounts.models import User
from webapp.judgments.models import Judgment
from webapp.scenarios import services as datasets


def row(author, value, *, episode="e", seat=0, decides=False):
    labels = [["lies", value, seat, None, None, None, None, ""]]
    values = dict.fromkeys(label_copies.FIELDS, "") | {"author": author, "decides": decides, "labels": labels}
    return values | {"episode": episode, "seat": seat}


def test_alpha_of_the_paper():
    """Krippendorff (2011), part C: four observers, twelve units of nominal data, alpha = 0.743."""
    table = (
        "1 2 3 3 2 1 4 1 2 . . .",
        "1 2 3 3 2 2 4 1 2 5 . 3",
        ". 3 3 3 2 3 4 2 2 5 1 .",
        "1 2 3 3 2 4 4 1 2 5 1 .",
    )
    units = [[value for value in unit if value != "."] for unit in zip(*(line.split() for line in table), strict=True)]
    assert coincidences.alpha(units) == pytest.approx(0.743, abs=0.0005)


def test_alpha_by_hand_leaves_decisions_out():
    """Units (yes, no) and (yes, yes): n = 4, observed 2, expected 4^2 - 3^2 - 1 = 6, so alpha = 1 - 3 * 2 / 6 = 0."""
    rows = [row("a", True), row("b", False), row("a", True, seat=1), row("b", True, seat=1)]
    decision = row("a", True, decides=True)
    assert coincidences.by_label([*rows, decision]) == {"lies": 0.0}
    assert coincidences.pairs([*rows, decision]) == {"lies": 2}
    assert coincidences.alpha([[True, True], [True]]) is None


def test_differences_name_the_judgment_and_the_field():
    first, second = row("a", True), {**row("a", True), "comment": "no"}
    assert list(label_copies.differences([first], [first])) == []
    assert [line.split(": ")[1] for line in label_copies.differences([first], [second])] == ["comment is '' and 'no'"]
    assert list(label_copies.differences([first], [])) == ["('e', 0, 'a', False): only in the first"]


def test_a_cell_that_looks_like_a_formula_is_read_as_it_was_written():
    cells = dict.fromkeys(table.COLUMNS, "") | {
        "episode_sha256": "e", "judgment": 0, "author": "person:1", "codebook": "c", "codebook_version": 1,
        "judged_at": "2026-01-02T03:04:05+00:00", "seconds": 2.5, "suggestions_shown": "false", "unsure": "true",
        "decides": "false", "scored": "true", "comment": "=1+1", "label": "lies", "value": "true", "seat": 2,
        "reason": "'quoted'",
    }  # fmt: skip
    text = "".join(tables.written(table.COLUMNS, [list(cells.values())]))
    (read,) = label_copies.from_csv(text)
    assert (read["comment"], read["seconds"], read["unsure"], read["seat"]) == ("=1+1", 2.5, True, 2)
    assert read["labels"] == [["lies", True, 2, None, None, None, None, "'quoted'"]]


@pytest.fixture
def werewolf_games(researcher):
    lines = []
    for number, episode in enumerate(werewolf_setup.scripted(2, 0)):
        scenario = episode.scenario.model_copy(update={"id": f"village-{number}"})
        played = episode.model_copy(update={"scenario": scenario, "traces": ()})
        conversation = Conversation(source=f"script:{number}", episode=played)
        lines.append(DatasetLine(scenario=scenario.with_seed(0), conversations=(conversation,)))
    datasets.create_dataset(name=annotation.JUDGED, owner=researcher, lines=lines)


@pytest.mark.django_db
@pytest.mark.slow
def test_nothing_differs_from_two_games_to_their_copies(werewolf_games, tmp_path, monkeypatch):
    """The copies are datasets of the same site here; the bench reads them in another installation."""
    monkeypatch.setattr(annotation, "RATES", (0.1, 0.4, 0.2))
    result = annotation.annotated(1, 3, tmp_path)
    owner = User.objects.get(username="owner")
    copies = label_copies.read_by_this_site(
        {name: tmp_path / name for name in annotation.IMPORTED}, annotation.CODEBOOK, owner.username
    )
    whole = annotation.compared(result, copies)
    assert whole["ok"], annotation.problems(whole)
    assert whole["counts"] | {"labels": 0} == whole["counts"] | {
        "targets": 6, "judgments": 18, "decisions": whole["disagreements"], "authors": 3, "labels": 0,
    }  # fmt: skip
    assert whole["by"] == {"pages": 9, "api": 9}
    assert whole["disagreements"] > 0
    assert {each["judgments"] for each in whole["formats"].values()} == {18 + whole["disagreements"]}
    whole["imports"] = {"werewolf": {"conversations": 2, "judgments": 0, "seconds": 0.1}}
    lines = "\n".join(annotation_page.page(whole))
    assert "| `label-studio` | another installation |" in lines
    assert json.loads(json.dumps(whole)) == whole | {"rates": [0.1, 0.4, 0.2]}
    wrong = {**copies, "jsonl": copies["jsonl"][1:]}
    assert annotation.problems(annotation.compared(result, wrong))["formats"] == ["jsonl"]


def test_the_published_labels_differ_nowhere():
    raw = json.loads(Path("docs/results/annotation.json").read_text("utf-8"))
    assert raw["ok"]
    assert raw["agreement"]["largest_gap"] < annotation.TOLERANCE
    assert (raw["counts"]["targets"], raw["counts"]["judgments"], raw["undecided"]) == (60, 180, 0)


def test_the_peak_memory_of_a_process_is_not_that_of_its_parent():
    parents_memory = b"x" * (256 << 20)
    del parents_memory
    program = "import time; x = b'x' * (64 << 20); time.sleep(0.3)"
    status, _, peak = annotation_times.waited(subprocess.Popen([sys.executable, "-c", program]))
    assert status == 0
    assert 64 <= peak < 128, "64 MiB and the interpreter"


@pytest.mark.django_db
@pytest.mark.slow
def test_every_request_that_is_timed_is_answered():
    """30 seats: 30 judgments by each of two annotators, 15 by the third, and a decision on every tenth seat."""
    seeded = annotation_seed.seed(30)
    assert annotation_times._counts(seeded.queue) == {
        "targets": 30, "judgments": 78, "labels": 624, "labels_of_the_site": 624 + 744,
    }  # fmt: skip
    times = {name: annotation_times.timed(send, 2) for name, send in annotation_times.requests(seeded, 2).items()}
    assert all(row["p95_ms"] >= row["median_ms"] > 0 for row in times.values())
    saved = Judgment.objects.filter(queue=seeded.queue, author=seeded.annotators[-1]).count()
    assert saved == 15 + 6, "a judgment that is not counted and two that are, by the page and by the API"
