"""Importers: what they read and refuse, with the place, on small files in the real formats."""

import json
import math
import os
import re
from pathlib import Path

import pytest

from tests.webapp.scenarios import files
from training.errors import BadInput
from training.games import anonymised, make, replay
from training.records import Scenario
from webapp.arena.models import MatchSeat
from webapp.scenarios import importers
from webapp.scenarios.importers import casino, deal_or_no_deal, parley_jsonl, sotopia, werewolf6
from webapp.scenarios.importers.reading import LONGEST_SEAT, LONGEST_SOURCE
from webapp.scenarios.models import StoredConversation

MANY_DIGITS = "9" * 5000
"""More than `int` reads."""


def read(format, path):
    return importers.read(format, path, lambda done, total: None)


def read_text(format, tmp_path, text, name="data.json"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return read(format, path)


def test_a_casino_dialogue_becomes_a_scenario_with_a_conversation(tmp_path):
    reading = read_text("casino", tmp_path, files.casino())
    assert reading.errors == []
    (line,) = reading.lines
    episode = line.conversations[0].episode
    assert [(m.seat, m.move.action) for m in episode.moves] == [
        (1, "talk"), (0, "talk"), (1, "propose"), (0, "reject"), (0, "talk"), (1, "propose"), (0, "accept"),
    ]  # fmt: skip
    assert tuple(episode.seat_metrics[seat]["points"] for seat in (0, 1)) == files.CASINO_POINTS
    assert episode.returns == {0: 23 / 36, 1: 18 / 36}
    assert line.scenario.settings["deal"]["sides"][0]["reasons"]["food"] == "Long hikes."
    assert episode.moves[2].move.text == "<propose>food 0, water 3, firewood 2</propose>"


def talk_long(dialogue):
    """Twenty more turns, one of them longer than a message may be by default."""
    dialogue["chat_logs"][1:1] = [
        {"text": "x" * 1200 if turn == 5 else "hm", "task_data": {}, "id": f"mturk_agent_{1 + turn % 2}"}
        for turn in range(20)
    ]


def test_a_new_game_from_a_long_casino_dialogue_has_the_games_own_limits(tmp_path):
    (line,) = read_text("casino", tmp_path, files.casino(talk_long)).lines
    recorded = line.conversations[0].episode.scenario
    assert (recorded.settings["turn_limit"], recorded.settings["max_chars"]) == (27, 1200)
    settings = make(line.scenario).settings
    assert (settings.turn_limit, settings.max_chars) == (14, 1000)


def test_tags_in_human_speech_are_speech(tmp_path):
    (line,) = read_text("casino", tmp_path, files.casino()).lines
    assert "<" not in line.conversations[0].episode.moves[4].move.text


def break_speaker(dialogue):
    dialogue["chat_logs"][0]["id"] = "somebody"


def break_shares(dialogue):
    dialogue["chat_logs"][2]["task_data"]["issue2youget"]["Water"] = "2"


def break_order(dialogue):
    dialogue["chat_logs"][1]["id"] = "mturk_agent_2"


def break_ranks(dialogue):
    dialogue["participant_info"]["mturk_agent_1"]["value2issue"]["Low"] = "Food"


def endless_share(dialogue):
    dialogue["chat_logs"][2]["task_data"]["issue2youget"]["Food"] = math.inf  # JSON's `Infinity`


@pytest.mark.parametrize(
    "change, where, why",
    [
        (break_speaker, "dialogue 0, chat_logs.0, id", "unknown speaker"),
        (break_shares, "chat_logs.2, task_data, Water", "add up to 3, not 2 + 0"),
        (break_order, "dialogue 0", "move 1 is not possible"),
        (break_ranks, "mturk_agent_1, value2issue", "rank"),
        (lambda d: d.pop("participant_info"), "participant_info", "missing"),
        (endless_share, "chat_logs.2, task_data, Food", "whole number"),
    ],
)
def test_a_wrong_casino_record_says_where(tmp_path, change, where, why):
    reading = read_text("casino", tmp_path, files.casino(lambda d: None, change))
    assert len(reading.errors) == 1
    assert where.replace("dialogue 0", "dialogue 1") in reading.errors[0]["where"]
    assert why in reading.errors[0]["why"]


def test_broken_json_says_line_and_column(tmp_path):
    reading = read_text("casino", tmp_path, '[\n{"dialogue_id": 1,,}]')
    assert reading.errors == [
        {
            "where": "data.json line 2 column 19",
            "why": "not JSON: Expecting property name enclosed in double quotes",
        }
    ]


def test_a_byte_order_mark_is_skipped(tmp_path):
    assert len(read_text("casino", tmp_path, "\ufeff" + files.casino()).lines) == 1
    assert len(read_text("deal-or-no-deal", tmp_path, "\ufeff" + files.AGREED, "val.txt").lines) == 1
    assert len(read_text("jsonl", tmp_path, "\ufeff" + own_line()).lines) == 1


def test_a_key_that_stands_twice_is_refused(tmp_path):
    text = files.casino().replace('"dialogue_id": 7', '"dialogue_id": 7, "dialogue_id": 8')
    (error,) = read_text("casino", tmp_path, text).errors
    assert error == {"where": "data.json", "why": "not JSON: the key 'dialogue_id' stands twice in one object"}


def test_a_setting_of_another_type_is_refused_with_its_path(tmp_path):
    data = json.loads(own_line())
    data["settings"]["turn_limit"] = "14"
    (error,) = read_text("jsonl", tmp_path, json.dumps(data)).errors
    assert error == {
        "where": "data.json line 1, scenario.settings.turn_limit", "why": "must be a valid integer"
    }  # fmt: skip


def test_a_huge_id_names_its_file(tmp_path):
    def huge(dialogue):
        dialogue["dialogue_id"] = 10**300

    (error,) = read_text("casino", tmp_path, files.casino(huge)).errors
    assert error == {
        "where": "data.json, dialogue 0, scenario.id", "why": "must have at most 200 characters"
    }  # fmt: skip


@pytest.mark.parametrize("format", [name for name, fmt in importers.FORMATS.items() if not fmt.folder])
def test_a_pipe_is_refused_at_once(tmp_path, format):
    os.mkfifo(tmp_path / "pipe")
    (error,) = read(format, tmp_path / "pipe").errors
    assert error["where"] == "pipe"
    assert "a pipe" in error["why"]


def test_a_pipe_in_a_folder_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "game.json")
    (error,) = read("werewolf9", tmp_path).errors
    assert error["where"] == "game.json"


def test_two_views_of_a_deal_are_one_scenario(tmp_path):
    text = f"{files.AGREED}\n{files.AGREED_MIRROR}\n{files.NONE_AGREED}\n{files.DISAGREED}\n"
    reading = read_text("deal-or-no-deal", tmp_path, text, "val.txt")
    assert reading.errors == []
    agreed, none, disagreed = [line.conversations[0].episode for line in reading.lines]
    # By hand: the opener takes the book (4 points); the other two hats and the ball (8 + 0).
    assert agreed.seat_metrics == {0: {"points": 4.0}, 1: {"points": 8.0}}
    assert agreed.moves[-1].move.action == "accept"
    assert none.moves[-1].move.action == "walk_away"
    assert [m.move.action for m in disagreed.moves] == ["talk", "talk"]
    assert none.returns == disagreed.returns == {0: 0.0, 1: 0.0}
    # The record ends after its two turns; a new game from the same start has the game's fourteen.
    assert disagreed.scenario.settings["turn_limit"] == 2
    assert [make(line.scenario).settings.turn_limit for line in reading.lines] == [14, 14, 14]
    assert replay(disagreed.scenario, disagreed.moves).to_act() == frozenset()


@pytest.mark.parametrize(
    "line, why",
    [
        ("hello", "expected <input>"),
        (files.AGREED.replace("item1=0", "item1=1"), "do not add up"),
        (files.AGREED.replace("<selection>", "done"), "must end with"),
        (files.AGREED.replace("<partner_input> 1 2", "<partner_input> 2 2"), "different counts"),
        (files.AGREED.replace("YOU: book", "WE: book"), "expected YOU: or THEM:"),
        (files.AGREED.replace("<input> 1", "<input> ²"), "a count and a value"),
        (files.AGREED.replace("<input> 1", f"<input> {MANY_DIGITS}"), "a count and a value"),
        (files.AGREED.replace("item0=1", f"item0={MANY_DIGITS}"), "six itemN="),
    ],
)
def test_a_wrong_deal_line_says_its_number(tmp_path, line, why):
    reading = read_text("deal-or-no-deal", tmp_path, f"{files.NONE_AGREED}\n{line}\n", "val.txt")
    assert reading.errors[0]["where"].startswith("val.txt line 2")
    assert why in reading.errors[0]["why"]


def test_a_redis_dump_gives_one_scenario_a_pairing(tmp_path):
    unused = {**files.ENVIRONMENT, "pk": "E2"}
    dump = files.redis_dump(
        **{f"{files.PREFIX}EnvironmentProfile:E2": unused, ":__main__.Person:X": {"pk": "X", "name": "Stray"}}
    )
    reading = read_text("sotopia-redis", tmp_path, json.dumps(dump))
    assert reading.errors == []
    assert [notice["why"] for notice in reading.notices] == [
        "a record of another class (Person); left out",
        "no pairing uses it; left out",
    ]
    (line,) = reading.lines
    assert line.scenario.seats == ("Nora Lind", "Juri Halm")
    assert line.scenario.settings["constraints"] == {"age_constraint": "[(18, 70), (18, 70)]"}
    other = make(line.scenario).observe(1).messages[0].text
    assert "Juri sold the oven." in other
    assert "Nora hates cake." not in other
    assert "you bake" not in other


def test_strangers_of_sotopia_play_under_neutral_names(tmp_path):
    strangers = {**files.ENVIRONMENT, "relationship": 0}
    dump = files.redis_dump(**{f"{files.PREFIX}EnvironmentProfile:E1": strangers})
    (line,) = read_text("sotopia-redis", tmp_path, json.dumps(dump)).lines
    assert line.scenario.seats == ("Nora Lind", "Juri Halm")  # a table may make them friends
    mine, other = (make(anonymised(line.scenario)).observe(seat).model_dump_json() for seat in (0, 1))
    assert "Nora Lind" in mine
    assert not [name for name in ("Juri", "Halm") if name in mine]
    assert "Lind" not in other
    assert "About the other: you know nothing." in mine


def test_both_forms_of_sotopia_give_the_same_game(tmp_path):
    from_dump = read_text("sotopia-redis", tmp_path, json.dumps(files.redis_dump())).lines[0].scenario
    from_files = read("sotopia-jsonl", files.write_sotopia_jsonl(tmp_path / "four")).lines[0].scenario
    for seat in (0, 1):
        assert make(from_dump).observe(seat) == make(from_files).observe(seat)


@pytest.mark.parametrize(
    "key, record, where, why",
    [
        ("EnvAgentComboStorage:C2", {"pk": "C2", "env_id": "E9", "agent_ids": ["A1", "A2"]}, "C2, env_id", "'E9'"),
        ("EnvAgentComboStorage:C2", {"pk": "C2", "env_id": "E1", "agent_ids": ["A1"]}, "agent_ids", "two agents"),
        ("AgentProfile:A3", {"pk": "A1"}, "A3", "a second record with the id 'A1'"),
        ("AgentProfile:A3", "{not json", "A3", "not JSON"),
        ("EnvAgentComboStorage:C2", {**files.PAIRING, "pk": "C2", "agent_ids": [[1], [2]]}, "agent_ids", "two agents"),
    ],
)
def test_a_broken_sotopia_record_is_an_error(tmp_path, key, record, where, why):
    reading = read_text("sotopia-redis", tmp_path, json.dumps(files.redis_dump(**{f"{files.PREFIX}{key}": record})))
    assert len(reading.errors) == 1
    assert where in reading.errors[0]["where"]
    assert why in reading.errors[0]["why"]


@pytest.mark.parametrize(
    "change, where, why",
    [
        ({"age": "²"}, "A1, age", "whole number"),
        ({"age": MANY_DIGITS}, "A1, age", "whole number"),
        ({"moral_values": 5}, "A1, moral_values", "list of texts"),
        ({"moral_values": [5]}, "A1, moral_values", "list of texts"),
        ({"schwartz_personal_values": "Security"}, "A1, schwartz_personal_values", "list of texts"),
        ({"first_name": "N" * 80}, "C1, scenario.seats.0", "at most 80 characters, not 85"),
    ],
)
def test_a_wrong_profile_is_an_error(tmp_path, change, where, why):
    dump = files.redis_dump(**{f"{files.PREFIX}AgentProfile:A1": {**files.AGENT_A, **change}})
    reading = read_text("sotopia-redis", tmp_path, json.dumps(dump))
    assert len(reading.errors) == 1
    assert where in reading.errors[0]["where"]
    assert why in reading.errors[0]["why"]


def test_a_missing_file_of_the_four_is_named(tmp_path):
    folder = files.write_sotopia_jsonl(tmp_path / "four")
    (folder / "agent_profiles.jsonl").unlink()
    assert read("sotopia-jsonl", folder).errors == [{"where": "four", "why": "missing agent_profiles.jsonl"}]


def test_other_files_in_the_folder_are_notices(tmp_path):
    folder = files.write_sotopia_jsonl(tmp_path / "four")
    (folder / "README").write_text("words")
    reading = read("sotopia-jsonl", folder)
    assert (len(reading.lines), reading.errors) == (1, [])
    assert reading.notices[0]["where"] == "README"


def test_own_lines_come_back_as_they_were_written(tmp_path):
    written = read_text("casino", tmp_path, files.casino(lambda d: None, lambda d: None)).lines
    again = read_text("jsonl", tmp_path, "".join(line.dumps() + "\n" for line in written), "own.jsonl")
    assert again.lines == written


def own_line(**changes):
    scenario = {
        "id": "a", "game": "negotiation", "seats": ["A", "B"],
        "settings": {"deal": {"kind": "items", "items": [{"name": "pen", "count": 1}],
                              "sides": [{"values": {"pen": 1}}, {"values": {"pen": 2}}]}},
    }  # fmt: skip
    return json.dumps({**scenario, **changes})


@pytest.mark.parametrize(
    "text, where, why",
    [
        ("{", "own.jsonl line 2", "not JSON"),
        ("[1]", "own.jsonl line 2", "an object"),
        (own_line(id="b", game="chess"), "line 2, scenario.game", "unknown game"),
        (own_line(id="b", seats=["A", "A"]), "line 2, scenario", "share a display name"),
        (own_line(id="b", colour=1), "line 2, scenario.colour", "there is no such field"),
        (own_line(id="b", settings={}), "line 2, scenario.settings.deal", "Field required"),
        (own_line(id="a"), "line 2, scenario.id", "second scenario"),
    ],
)
def test_a_wrong_own_line_says_line_and_field(tmp_path, text, where, why):
    reading = read_text("jsonl", tmp_path, f"{own_line()}\n{text}\n", "own.jsonl")
    assert len(reading.errors) == 1
    assert where in reading.errors[0]["where"]
    assert why in reading.errors[0]["why"]


def test_a_conversation_that_does_not_replay_is_an_error(tmp_path):
    line = read_text("casino", tmp_path, files.casino()).lines[0].to_dict()
    line["conversations"][0]["episode"]["moves"].pop(0)
    reading = read_text("jsonl", tmp_path, json.dumps(line), "own.jsonl")
    assert "does not replay" in reading.errors[0]["why"]


def test_a_source_has_an_end(tmp_path):
    line = read_text("casino", tmp_path, files.casino()).lines[0].to_dict()
    line["conversations"][0]["source"] = "s" * 201
    reading = read_text("jsonl", tmp_path, json.dumps(line), "own.jsonl")
    assert reading.errors == [
        {"where": "own.jsonl line 1, conversations.0.source", "why": "at most 200 characters, not 201"}
    ]


def test_the_lengths_are_those_of_the_columns():
    assert StoredConversation._meta.get_field("source").max_length == LONGEST_SOURCE
    assert MatchSeat._meta.get_field("name").max_length == LONGEST_SEAT


SECOND_PAIRING = {f"{files.PREFIX}EnvAgentComboStorage:C2": {**files.PAIRING, "pk": "C2"}}
TWICE = {
    "casino": (casino, "storable", files.casino(lambda d: None, lambda d: None)),
    "deal-or-no-deal": (deal_or_no_deal, "storable", f"{files.AGREED}\n{files.AGREED}\n"),
    "sotopia-redis": (sotopia, "check_line", json.dumps(files.redis_dump(**SECOND_PAIRING))),
    "werewolf6": (werewolf6, "_line", f"{files.six([], ())}\n{files.six([], ())}\n"),
    "jsonl": (parley_jsonl, "check_line", f"{own_line()}\n{own_line(id='b')}\n"),
}
"""For a format its reader, the last of what it calls for a record, and a file of two records."""


@pytest.mark.parametrize("format", TWICE)
def test_a_fault_of_a_reader_is_an_error_of_each_record(tmp_path, monkeypatch, format):
    def fails(*args):
        raise LookupError("no such thing")

    reader, last, text = TWICE[format]
    monkeypatch.setattr(reader, last, fails)
    reading = read_text(format, tmp_path, text)
    assert [error["why"] for error in reading.errors] == ["cannot be read: LookupError: no such thing"] * 2
    assert len({error["where"] for error in reading.errors}) == 2


def test_exports_open_in_datasets(tmp_path):
    import datasets

    lines = read_text("casino", tmp_path, files.casino()).lines
    lines += read("sotopia-jsonl", files.write_sotopia_jsonl(tmp_path / "four")).lines
    path = tmp_path / "export.jsonl"
    path.write_text("".join(line.dumps() + "\n" for line in lines))
    loaded = datasets.load_dataset("json", data_files=str(path), split="train", cache_dir=str(tmp_path / "cache"))
    assert [row["scenario"]["game"] for row in loaded] == ["negotiation", "dialogue"]


@pytest.mark.parametrize("format", importers.FORMATS)
def test_every_format_refuses_rubbish_without_a_fault(tmp_path, format):
    fmt = importers.FORMATS[format]
    target = tmp_path / "data"
    rubbish = [b"", b"\xff\xfe\x00", b"null", b"[]", b"{}", b"[[[[", b'{"a": 1}', b"\x00" * 100]
    for content in rubbish:
        if fmt.folder:
            target.mkdir(exist_ok=True)
            for name in fmt.names or ("data.json",):
                (target / name).write_bytes(content)
        else:
            target.write_bytes(content)
        reading = read(format, target)
        assert reading.errors, content
        assert reading.lines == []


def test_a_scenario_record_survives_its_own_form():
    scenario = Scenario.from_dict(json.loads(own_line()))
    assert Scenario.from_dict(scenario.to_dict()) == scenario


def test_only_so_many_notices_and_errors_are_listed():
    reading = importers.Reading()
    for number in range(3000):
        reading.notice(f"line {number}", "left out")
        reading.error(BadInput("wrong", f"line {number}"))
    assert (len(reading.notices), len(reading.errors)) == (2001, 201)
    assert reading.notices[-1] == {"where": "", "why": "more than 2000 of them; the rest is not listed"}


def test_the_documentation_lists_every_format():
    page = (Path(__file__).parents[3] / "docs" / "games.md").read_text("utf-8")
    table = page.partition("## Datasets from files")[2].partition("\n\nFiles are")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    assert sorted(re.findall(r"`(.*?)`", "".join(rows))) == sorted(importers.BUILT_IN)
