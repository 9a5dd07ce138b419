"""`labels`: train on judged games, label others, and refuse what is damaged or too little."""

import json

import pytest

from tests.labels.test_turns import judgment
from tests.rewards.samples import episode, negotiation
from tests.toy_models import write_random_llama
from training.cli import main
from training.dataset import Conversation, DatasetLine
from training.labels.classifier import load
from training.labels.info import INFO
from training.labels.turns import spoken


def write(path, games):
    """A dataset of games: (texts, labelled turns, author) each."""
    lines = []
    for number, (texts, marks, author) in enumerate(games):
        played = episode(negotiation().model_copy(update={"id": f"n{number}"}), *texts)
        judged = (judgment(author, *((turn, "pleads") for turn in marks)),)
        conversation = Conversation(source=f"s{number}", episode=played, judgments=judged)
        lines.append(DatasetLine(scenario=played.scenario, conversations=(conversation,)).dumps())
    path.write_text("".join(line + "\n" for line in lines), "utf-8")
    return path


def games(count, author="person:1"):
    return [((f"please please {at}", f"no {at}", "please please"), (0, 2), author) for at in range(count)]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return str(write_random_llama(tmp_path_factory.mktemp("base"), layers=2))


@pytest.fixture(scope="module")
def folder(base, tmp_path_factory):
    """A classifier that the command has trained."""
    where = tmp_path_factory.mktemp("labels")
    file = write(where / "labels.jsonl", games(20))
    command = ["labels", "train", str(file), "--output", str(where / "c"), "--model", base]
    assert main([*command, "--status", str(where / "status.json"), "--json"]) == 0
    status = json.loads((where / "status.json").read_text())
    assert status["phase"] == "finished"
    assert status["info"]["labels"] == ["pleads"]
    assert (status["info"]["codebook"], status["info"]["codebook_version"]) == ("moves", 1)
    assert (status["info"]["turns"], status["info"]["dialogues"]) == (60, 20)
    return where / "c"


def test_what_it_learned_it_finds_in_other_games(folder, capsys, tmp_path):
    assert load(folder).info.agreement[0].f1.share > 0.95  # the word itself tells
    source = write(tmp_path / "g.jsonl", [(("please please 99", "no 98"), (), "Ann"), (("no 5",), (), "Ann")])
    out = tmp_path / "out.jsonl"
    assert main(["labels", "label", str(source), "--classifier", str(folder), "--out", str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["games"], result["turns"]) == (2, 3)
    assert result["shares"] == {"pleads": pytest.approx(1 / 3)}
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["game"], row["turn"], row["seat"], row["labels"]) for row in rows] == [
        (0, 0, 0, ["pleads"]), (0, 1, 1, []), (1, 0, 0, []),
    ]  # fmt: skip
    assert all(set(row["probabilities"]) == {"pleads"} for row in rows)


def test_a_person_reads_agreement_beside_what_needs_no_classifier(base, capsys, tmp_path):
    file = write(tmp_path / "labels.jsonl", games(20))
    assert main(["labels", "train", str(file), "--output", str(tmp_path / "c"), "--model", base]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "60 turns of 20 dialogues" in lines[0]
    assert lines[2].split()[:2] == ["pleads", "66.7%"]
    assert lines[2].split()[-1] == "66.7%"  # 40 of 60 turns, by whoever always says yes
    assert lines[2].split()[-3] == "0.80"  # 2·(2/3) / (1 + 2/3)


def test_too_few_dialogues_are_refused_before_the_model_is_read(capsys, tmp_path):
    file = write(tmp_path / "labels.jsonl", games(9))
    command = ["labels", "train", str(file), "--output", str(tmp_path / "c"), "--model", "no-such", "--json"]
    assert main(command) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["where"], error["why"]) == ("label pleads", "9 dialogues have a turn with it; training needs 10")
    assert not (tmp_path / "c").exists()


def test_a_damaged_classifier_is_named(folder, capsys, tmp_path):
    source = write(tmp_path / "g.jsonl", games(1))
    (folder / INFO).write_text((folder / INFO).read_text().replace("pleads", "pleadz"))
    command = ["labels", "label", str(source), "--classifier", str(folder), "--out", str(tmp_path / "o"), "--json"]
    assert main(command) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["where"] == str(folder)
    assert INFO in error["why"]
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize(
    "extra, where",
    [(["--codebook", "moves"], "--codebook"), (["--codebook", "moves:2"], "LABELS"), (["--labels", "x"], "--labels")],
)
def test_wrong_arguments_name_themselves(extra, where, capsys, tmp_path):
    file = write(tmp_path / "labels.jsonl", games(12))
    command = ["labels", "train", str(file), "--output", str(tmp_path / "c"), "--model", "no-such", "--json"]
    assert main([*command, *extra]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["where"] == where


def test_the_helpers_games_have_the_turns_that_are_counted():
    assert spoken(episode(negotiation(), *games(1)[0][0]).moves) == [0, 1, 2]
