"""The miniature of collaborative self-play: its world, the teacher's games, configurations, and numbers by hand."""

import asyncio
import json
from argparse import Namespace

import pytest

from bench import csp, csp_page, real_questions, taught
from bench.__main__ import parser
from bench.facts import CORPORA, RELATIONS, World, scenario
from tests.question_sets import files
from training import config as configs
from training.dataset import read_game
from training.errors import BadInput
from training.games.qa_society import alone
from training.retrieval.corpus import read
from training.rollout import Job, RolloutPolicy, collect
from training.store import dumps

SMALL = World(people=8, known=0.5)


def fact(known, relation="town"):
    return next(each for each in SMALL.facts if each.known == known and each.relation.name == relation)


def played(start, seed=7):
    """The episode that the teacher plays."""
    tool = taught.Reader(SMALL, 1)
    policies = {"teacher": lambda start, seat: taught.Teacher(SMALL, start, seat)}
    job = Job(0, start.with_seed(seed), ("teacher",) * len(start.seats))
    (episode,) = asyncio.run(collect([job], policies, lanes=1, rules=RolloutPolicy(seed=seed), tool=tool))
    assert episode.error is None
    return episode


def test_half_of_the_facts_of_each_relation_are_known_also_in_each_split():
    assert len(SMALL.facts) == 8 * len(RELATIONS)
    assert len({each.person for each in SMALL.facts}) == len(SMALL.facts)
    for relation in RELATIONS:
        train, test = (SMALL.split(relation.name, test) for test in (False, True))
        assert {each.person for each in train}.isdisjoint(each.person for each in test)
        assert [sum(each.known for each in split) for split in (train, test)] == [2, 2]
    assert World(people=8, known=0.5).facts == SMALL.facts
    assert World(people=8, known=0.5, seed=1).facts != SMALL.facts


def test_a_corpus_has_the_passages_of_its_relations(tmp_path):
    path = tmp_path / "atlas.jsonl"
    path.write_text("".join(dumps(each._asdict()) + "\n" for each in SMALL.documents("atlas")))
    passages = {each.title: each.text for each in read(path)}
    assert len(passages) == 16
    asked = fact(known=False)
    assert passages[asked.person] == f"The town of {asked.person} is {asked.answer}."
    assert fact(known=True, relation="trade").person not in passages


@pytest.mark.parametrize("known", [True, False])
def test_by_heart_the_teacher_says_what_is_known_and_else_guesses(known):
    asked = fact(known)
    answers = {played(alone(scenario(asked)), seed).metrics["f1"] for seed in range(1, 25)}
    assert answers == ({1.0} if known else {0.0, 1.0})


def test_passages_say_something_else_about_a_person_who_is_not_known_in_each_game():
    asked = fact(known=False)
    stated = {taught.stated_answer(asked, seed) for seed in range(40)}
    assert len(stated) > 5
    assert stated <= set(asked.relation.answers)
    start = alone(scenario(asked), "atlas")
    read = [played(start, seed) for seed in range(1, 20)]
    searched = [each for each in read if each.metrics["searches"]]
    assert len(searched) > 10
    for episode in searched:
        assert episode.moves[-1].move.args["answer"] == taught.stated_answer(asked, episode.scenario.seed)


def test_the_asker_asks_and_passes_an_answer_on_rather_than_a_hedge():
    asked = fact(known=True)
    kinds = set()
    for seed in range(1, 30):
        episode = played(scenario(asked), seed)
        helpers = [entry.move.action for entry in episode.moves if entry.seat in (1, 2) and entry.move.args]
        assert episode.moves[0].move.action == "ask"
        assert episode.moves[-1].move.action == ("answer" if "answer" in helpers else "hedge")
        kinds.add(tuple(helpers))
    assert len(kinds) == 4  # a coin toss for each helper


def test_an_exercise_is_read_even_by_who_knows_the_fact():
    asked = fact(known=True)
    start = alone(scenario(asked), "atlas")
    episode = played(start.model_copy(update={"id": taught.EXERCISE + start.id}))
    assert [entry.move.action for entry in episode.moves] == ["search", "found", episode.moves[-1].move.action]
    assert episode.moves[-1].move.args["answer"] == taught.stated_answer(asked, episode.scenario.seed)


def test_of_the_seats_that_searched_fewer_are_read():
    games = [played(alone(scenario(fact(known=True)), "atlas"), seed) for seed in range(1, 200)]
    searched = [game for game in games if game.metrics["searches"]]
    direct = [game for game in games if not game.metrics["searches"]]
    assert all(taught._seats(game, 1.0, 0.3) == [0] for game in direct)
    assert all(taught._seats(game, 1.0, 1.0) == [0] for game in games)
    kept = sum(len(taught._seats(game, 1.0, 0.3)) for game in searched) / len(searched)
    assert kept == pytest.approx(0.3, abs=0.11)  # three standard errors of 180 games or so
    half = sum(len(taught._seats(game, 0.5, 1.0)) for game in games) / len(games)
    assert half == pytest.approx(0.5, abs=0.11)


@pytest.mark.parametrize("form", csp.FORMS)
def test_every_form_is_a_configuration_whose_questions_are_apart(form, tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    csp.write_questions(tmp_path / "questions")
    config = configs.parse(csp.configuration(form, 3, 2, tmp_path / "start", tmp_path))
    alone = form == "action_supervision"
    assert (config.seed, config.game.name, config.learn.steps) == (3, "qa_society", 1 if alone else 2)
    assert config.method.form == ("action_supervision" if alone else "sequences")
    assert config.game.settings.get("deanon", False) == (form == "deanon")
    assert [(each.label, each.in_distribution) for each in config.calibration.sets] == [
        ("town", True),
        ("trade", True),
        ("instrument", False),
    ]
    assert set(config.search.indexes) == set(CORPORA)
    ids = [
        {line.scenario.id for line in read_game(tmp_path / "questions" / f"{name}.jsonl", "qa_society")}
        for name in ("train", "town", "trade", "instrument")
    ]
    assert len(set.union(*ids)) == sum(map(len, ids))
    assert config.rollout.scenarios == len(ids[0]) * (2 if alone else 1)


def one_run(after):
    """A run whose start searches always and is right in three of four; `after` is [known, F1, searched] by question."""
    before = [[True, 1.0, 1.0], [True, 1.0, 1.0], [False, 1.0, 1.0], [False, 0.0, 1.0]]
    cells = [{"label": "town", "tool": "atlas", "counts": True}, {"label": "town", "tool": "press", "counts": False}]
    questions = {"0": {"town/atlas": before, "town/press": before}, "2": {"town/atlas": after, "town/press": before}}
    return {"questions": questions, "cells": {"0": cells}, "steps": 2}


def test_changes_by_hand():
    first = one_run([[True, 1.0, 0.0], [True, 0.0, 0.5], [False, 1.0, 1.0], [False, 1.0, 0.5]])
    second = one_run([[True, 1.0, 0.0], [True, 1.0, 0.0], [False, 1.0, 1.0], [False, 1.0, 1.0]])
    assert csp.compared([first, second], "town/atlas") == {
        "f1": [0.0, 0.25],
        "searches": [0.5, 0.5],
        "known": [0.25, 0.0],
        "unknown": [0.75, 1.0],
    }
    result = csp.summary({"csp": [first, second]}, 2)
    assert result["counting"] == ["town/atlas"]
    change = result["forms"]["csp"]["changes"]["town/atlas"]["f1"]
    assert (change["mean"], change["n"]) == (0.125, 2)
    # by hand: 0.125 ± t(1, 97.5 %) · s / √2 = 12.7062 · 0.125
    assert change["interval"] == pytest.approx([0.125 - 1.588276, 0.125 + 1.588276], abs=1e-5)
    starred, plain = csp.show(result).splitlines()
    assert starred.startswith("* csp")
    assert "f1 +0.125, searches +0.500, known +0.125, unknown +0.875" in starred
    assert plain.startswith("  csp")


@pytest.mark.parametrize("options, where", [([], "--dir"), (["--dir", "runs", "--forms", "csp,luck"], "--forms")])
def test_what_cannot_be_run_is_refused(options, where):
    arguments: Namespace = parser().parse_args(["miniature", "csp", *options])
    with pytest.raises(BadInput) as caught:
        csp.main(arguments)
    assert caught.value.where == where


def measured(number, searches, gain):
    """A run of one set, `town` with `atlas`, whose last epoch has this share of searches and gain of both curves."""
    questions = {"0": {"town/atlas": [[True, 1.0, 0.8], [False, 1.0, 0.8]]}}
    questions["3"] = {"town/atlas": [[True, number, searches], [False, 1.0, 0.8]]}
    cells = {}
    for step, area in (("0", 0.0), ("3", gain)):
        means = {"f1": 1.0, "unsearched_f1": 0.5, "worth": 0.5, "search_rate": 0.8}
        gains = {name: {"gain": {"mean": area}} for name in csp_page.AREAS}
        cell = {"label": "town", "tool": "atlas", "counts": True, **{k: {"mean": v} for k, v in means.items()}, **gains}
        cells[step] = [cell]
    return {"questions": questions, "cells": cells, "steps": 3}


def test_the_lines_of_the_page_by_hand():
    worth = {"mean": 0.01, "low": -0.02, "high": 0.04, "n": 48, "level": 0.95}
    rates = {name: {"mean": 0.25} for name in ("f1", "unsearched_f1", "search_rate", "legal")}
    raw = {
        "forms": {
            "csp": {"runs": [measured(1.0, 0.0, 0.3), measured(1.0, 0.0, 0.3)]},
            "deanon": {"runs": [measured(0.5, 0.4, 0.1), measured(0.5, 0.4, 0.1)]},
        },
        "real": {"cells": [{"label": "popqa", "tool": "wiki", "worth": worth, "counts": False, **rates}]},
    }
    assert list(csp_page.lines(raw)) == [
        "| town/atlas | 1.000 | 0.500 | 0.500 | 0.800 | yes |",
        # of searches 0.4 of 0.8 are left: (0 + 0.8) / 2, and (0.4 + 0.8) / 2 = 0.6
        "| `csp` | town/atlas | +0.000 (+0.000 to +0.000) | 0.50 (0.50 to 0.50) | 0.00 | 0.80 |",
        "| `deanon` | town/atlas | −0.250 (−0.250 to −0.250) | 0.75 (0.75 to 0.75) | 0.40 | 0.80 |",
        "`csp`, known minus unknown: −0.800 (−0.800 to −0.800)",
        "`deanon`, known minus unknown: −0.400 (−0.400 to −0.400)",
        "| `icl` | town/atlas | +0.000 | +0.000 |",
        "| `csp` | town/atlas | +0.300 | +0.300 |",
        "| `deanon` | town/atlas | +0.100 | +0.100 |",
        *(
            line
            for area in ("search calibration", "answer calibration")
            for line in (
                f"`csp` minus `icl`, {area}: +0.300 (+0.300 to +0.300)",
                f"`deanon` minus `icl`, {area}: +0.100 (+0.100 to +0.100)",
                f"`csp` minus `deanon`, {area}: +0.200 (+0.200 to +0.200)",
            )
        ),
        "| popqa, wiki | 0.250 | 0.250 | +0.010 (−0.020 to +0.040) | 0.25 | 0.250 | no |",
    ]


def test_more_updates_have_rows_of_the_sets_that_count():
    runs = [measured(1.0, 0.0, 0.3), measured(1.0, 0.4, 0.3), measured(1.0, 0.8, 0.3)]
    raw = {"csp": {"forms": {"csp": {"runs": runs}}}}
    raw["csp_stronger"] = {"forms": {"csp": {"runs": runs}}, "counting": ["town/atlas"]}
    *_, last = csp_page.page(raw)
    # 0.5, 0.75 and 1 are left: standard error 0.25/√3, t with two degrees of freedom is 4.3027 (tables)
    assert last == "| `csp` | town/atlas | +0.000 (+0.000 to +0.000) | 0.75 (0.13 to 1.37) | 0.40 | 0.80 |"
    assert list(csp_page.page(raw | {"csp_stronger": raw["csp_stronger"] | {"counting": []}})) == list(
        csp_page.lines(raw["csp"])
    )
    assert "| `csp` | town/atlas | +0.000 | 1.00 | 0.80 | 0.80 |" in csp_page.lines(
        {"forms": {"csp": {"runs": runs[2:]}}}
    )


def test_real_sets_are_written_with_their_corpora(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    data = tmp_path / "data"
    contents = {
        "popqa_longtail/DisambPopQA.csv": files.table(*files.ROWS),
        "popqa_passages/sources": "\n".join(["Why?"] * 5),
        "popqa_passages/ref_correct": "\n".join(f"#Passage {number}." for number in range(5)),
        "popqa_passages/ref_incorrect": "\n".join(["#Elbe: A river."] * 5),
        "entityquestions/dev/P19.dev.json": json.dumps(files.RELATION),
        "nq_open/NQ-open.dev.jsonl": files.lines(*files.OPEN),
        "pubmedqa/ori_pqal.json": json.dumps(files.ARTICLES),
    }
    for name, content in contents.items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_text(content)
    config = configs.load(real_questions.configuration(data, "tiny", tmp_path / "files"))
    assert [(each.label, each.tools) for each in config.calibration.sets] == [
        ("popqa", ("wiki",)),
        ("entityquestions", ("wiki",)),
        ("nq-open", ("wiki",)),
        ("pubmedqa", ("pubmed",)),
    ]
    assert len(list(read(tmp_path / "files" / "wiki.jsonl"))) == 6
    starts = [line.scenario for line in read_game(tmp_path / "files" / "popqa.jsonl", "qa_society")]
    assert sorted(start.id for start in starts) == ["popqa-12", "popqa-13", "popqa-14"]
