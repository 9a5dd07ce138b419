"""`behaviours`: files of judged games become the table; a game in two files counts once."""

import gzip
import json

import pytest

from tests.evaluate.test_behaviours import GAMES, ROLES, judged
from training.cli import main
from training.dataset import Conversation, DatasetLine
from training.records import Episode, ErrorRecord, Scenario
from training.store import dumps


def episode(number, survived):
    scenario = Scenario(id=f"v{number}", game="werewolf", seats=("Ann", "Bob", "Cleo", "Dan"), seed=number + 1)
    metrics = {seat: {"survived": float(lived)} for seat, lived in enumerate(survived)}
    return Episode(scenario=scenario, roles=ROLES, seat_metrics=metrics)


PLAYED = [(episode(number, game.outcomes), game.judgments) for number, game in enumerate(GAMES)]


def exported(path, games):
    """A dataset file, with a scenario that nobody played."""
    lines = [
        DatasetLine(
            scenario=played.scenario, conversations=(Conversation(source="s", episode=played, judgments=judgments),)
        )
        for played, judgments in games
    ]
    lines.append(DatasetLine(scenario=Scenario(id="bare", game="werewolf", seats=("Ann", "Bob"))))
    path.write_text("".join(line.dumps() + "\n" for line in lines), "utf-8")
    return str(path)


def of_a_run(path, games):
    records = [
        {"episode": played.to_dict(), "judgments": [judgment.to_dict() for judgment in judgments]}
        for played, judgments in games
    ]
    path.write_bytes(b"".join(gzip.compress((dumps(record) + "\n").encode()) for record in records))
    return str(path)


def test_a_dataset_and_a_runs_episodes_give_the_same_table(capsys, tmp_path):
    reports = []
    for file in (exported(tmp_path / "judged.jsonl", PLAYED), of_a_run(tmp_path / "step.jsonl.gz", PLAYED)):
        assert main(["behaviours", file, "--json"]) == 0
        reports.append(json.loads(capsys.readouterr().out))
    assert reports[0] == reports[1]
    assert (reports[0]["games"], reports[0]["left_out"]) == (3, 0)
    [table] = reports[0]["tables"]
    row = table["rows"][0]
    # As tests/evaluate/test_behaviours.py counts by hand.
    assert row["surviving"] == {"share": 1.0, "scored": 1, "asked": 3}
    assert row["eliminated"] == {"share": 0.25, "scored": 2, "asked": 3}
    assert row["difference"]["mean"] == 0.75
    assert main(["behaviours", str(tmp_path / "judged.jsonl")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "3 games; werewolf-behaviours v1"
    assert "judged by people, 2 games" in shown
    assert next(line.split() for line in shown if line.startswith("Identity"))[:12] == [
        "Identity", "concealment", "100", "%", "(scored", "1", "of", "3)", "25", "%", "(scored", "2",
    ]  # fmt: skip


def test_a_game_that_people_and_a_model_judged_counts_once(capsys, tmp_path):
    played = PLAYED[0][0]
    people = exported(tmp_path / "people.jsonl", [PLAYED[0]])
    model = (judged(1, "model:far", identity_concealment=1), judged(2, "model:far", recognising_deception=1))
    far = of_a_run(tmp_path / "model.jsonl.gz", [(played, (*model, *PLAYED[0][1]))])
    assert main(["behaviours", people, far, people, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["games"] == 1
    shares = {table["by"]: table["rows"][0]["eliminated"] for table in report["tables"]}
    assert [(by, share["share"], share["asked"]) for by, share in shares.items()] == [
        ("people", 0.5, 1), ("models", 1.0, 1), ("both", pytest.approx(2 / 3), 1),
    ]  # fmt: skip


def test_other_games_and_failed_ones_are_left_out_and_counted(capsys, tmp_path):
    failed = PLAYED[1][0].model_copy(update={"error": ErrorRecord(kind="engine", message="gone")})
    aboard = PLAYED[2][0].model_copy(update={"roles": ("imposter", *("crewmate",) * 3)})
    file = exported(tmp_path / "mixed.jsonl", [PLAYED[0], (failed, ()), (aboard, ())])
    assert main(["behaviours", file]) == 0
    assert capsys.readouterr().out.startswith("1 game, 2 others left out")
    file = exported(tmp_path / "none.jsonl", [(aboard, ())])
    assert main(["behaviours", file, "--json"]) == 2
    assert "of 1 game none" in json.loads(capsys.readouterr().out)["error"]["why"]


def test_games_that_nobody_judged_say_so(capsys, tmp_path):
    assert main(["behaviours", exported(tmp_path / "g.jsonl", PLAYED[2:])]) == 0
    assert "nobody has judged them under this codebook" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content, why",
    [(b"no gzip", "cannot be read"), (gzip.compress(b"[]\n"), "not an episode"),
     (gzip.compress(b"{"), "cannot be read"),
     (gzip.compress(b'{"episode": {"version": 2}}\n'), "version"), (None, "no such file")],
    ids=["plain", "list", "torn", "newer", "none"],  # what gzip writes holds the time
)  # fmt: skip
def test_an_unreadable_file_is_wrong_input(capsys, tmp_path, content, why):
    path = tmp_path / "e.jsonl.gz"
    if content is not None:
        path.write_bytes(content)
    assert main(["behaviours", str(path)]) == 2
    assert why in capsys.readouterr().err
