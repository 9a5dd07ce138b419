"""Played SOTOPIA episodes: the recorded conversation, and each score as a judgment or an error, never as a zero."""

import json
import time
from contextlib import suppress

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.urls import reverse

from tests.labelled import reasons
from tests.webapp.scenarios import files
from training.errors import BadInput
from training.games import make, replay
from training.labels.codebooks import SOTOPIA
from webapp.scenarios import importers, imports
from webapp.scenarios.importers import sotopia_texts
from webapp.scenarios.models import Import, StoredConversation

SCORED = {"env_pk": "E1", "agent1": {**files.SCORES, "overall_score": 3.0}, "agent2": {**files.SCORES, "goal": 3}}
OURS = {("financial" if name.startswith("financial") else name): value for name, value in files.SCORES.items()}


def read(path):
    return importers.read("sotopia-episodes", path, lambda done, total: None)


def from_folder(tmp_path, *episodes, scores):
    return read(files.write_sotopia_episodes(tmp_path / "played", *episodes, scores=scores))


def from_log(tmp_path, **changes):
    path = tmp_path / "log.jsonl"
    path.write_text(json.dumps(files.episode_log(**changes)))
    return read(path)


def acts(line):
    moves = line.conversations[0].episode.moves
    return [(entry.seat, entry.move.action, entry.move.args.get("what", entry.move.text)) for entry in moves]


def test_the_conversation_inside_a_prompt_is_read_turn_by_turn(tmp_path):
    reading = from_folder(tmp_path, files.prompted_episode(), scores={"P1": SCORED})
    assert reading.errors == []
    assert [notice["where"] for notice in reading.notices] == ["episodes.jsonl"]
    (line,) = reading.lines
    assert acts(line) == [
        (0, "speak", "The big shelf is mine, Juri: Turn #9 is no turn."),
        (1, "action", "moves his cups"),
        (0, "nonverbal", "smiles"),
        (1, "none", "<none/>"),
    ]
    played = line.conversations[0].episode
    assert replay(played.scenario, played.moves).to_act() == frozenset()
    assert (played.metrics["end_limit"], make(line.scenario).settings.turn_limit) == (1.0, 20)
    assert line.scenario.seats == (files.NORA, files.JURI)
    nora, juri = make(line.scenario).settings.participants
    assert (nora.goal, juri.goal) == files.GOALS
    assert (nora.profile.age, nora.profile.gender, nora.profile.occupation) == (31, "woman", "baker")
    assert (nora.profile.secret, nora.profile.personality_and_values) == ("Hates cake.", "Warm.")
    assert (juri.profile.occupation, juri.profile.pronouns) == ("tram driver", "He/him")


def test_scores_by_key_become_judgments_of_the_judge(tmp_path):
    reading = from_folder(tmp_path, files.prompted_episode(), scores={"P1": SCORED})
    first, second = reading.lines[0].conversations[0].judgments
    assert (first.author, first.codebook, first.codebook_version, first.seat) == (
        "judge-1",
        "sotopia",
        SOTOPIA.version,
        0,
    )
    assert first.numbers == OURS
    assert sum(first.numbers.values()) / 7 == 3
    assert (second.seat, second.numbers["goal"]) == (1, 3)
    assert reading.report()["judgments"] == 2


def test_a_rater_is_the_author_where_the_scores_name_one(tmp_path):
    people = [{**SCORED, "rater": "rater-7"}, {**SCORED, "annotator_id": "rater-8"}]
    reading = from_folder(tmp_path, files.prompted_episode(), scores={"P1": people})
    authors = [judgment.author for judgment in reading.lines[0].conversations[0].judgments]
    assert authors == ["rater-7", "rater-7", "rater-8", "rater-8"]


def test_an_episode_without_scores_has_no_judgment(tmp_path):
    reading = from_folder(tmp_path, files.prompted_episode(), files.prompted_episode(pk="P2"), scores={"P1": SCORED})
    assert [len(line.conversations[0].judgments) for line in reading.lines] == [2, 0]


def test_a_log_of_sotopia_is_read_with_its_own_rewards(tmp_path):
    reading = from_log(tmp_path)
    assert (reading.errors, reading.notices) == ([], [])
    (line,) = reading.lines
    assert acts(line) == [
        (0, "speak", "The shelf, please."),
        (1, "speak", "No, thanks."),
        (0, "none", "<none/>"),
        (1, "leave", "<leave/>"),
    ]
    assert line.conversations[0].episode.metrics["end_leave"] == 1
    # Nora sees of Juri what acquaintances know, although Juri sees Nora's personality.
    assert make(line.scenario).settings.relationship == 2
    assert make(line.scenario).settings.participants[0].goal == files.GOALS[0]
    first, second = line.conversations[0].judgments
    assert (first.numbers, reasons(first)) == (OURS, {"goal": "She got it.", "knowledge": "A little."})
    assert second.numbers is None
    assert second.reason.startswith("the record has no value for goal, ")


def test_a_list_of_logs_and_one_log_over_several_lines_are_read(tmp_path):
    for content in ([files.episode_log(), files.episode_log(pk="L2")], files.episode_log()):
        path = tmp_path / "log.json"
        path.write_text(json.dumps(content, indent=1))
        assert len(read(path).lines) == (2 if isinstance(content, list) else 1)


def test_two_turns_in_a_row_keep_their_order(tmp_path):
    messages = files.episode_log()["messages"]
    messages.insert(1, [[files.NORA, "Environment", 'said: "One more thing."']])
    (line,) = from_log(tmp_path, messages=messages).lines
    assert [seat for seat, _, _ in acts(line)] == [0, 0, 1, 0, 1]
    assert line.conversations[0].episode.scenario.settings["fixed_order"] == [0, 0, 1, 0, 1]
    assert "fixed_order" not in line.scenario.settings


@pytest.mark.parametrize(
    "change, where, why",
    [
        ({"goal": 11}, "rewards.0, goal", "11 is not a value from 0 to 10"),
        ({"goal": True}, "rewards.0, goal", "True is not a value"),
        ({"secret": 1}, "rewards.0, secret", "not a value from -10 to 0"),
        ({"charm": 3}, "rewards.0, charm", "unknown dimension"),
    ],
)
def test_a_score_that_the_codebook_does_not_know_is_refused(tmp_path, change, where, why):
    (error,) = from_log(tmp_path, rewards=[[3.0, {**files.SCORES, **change}], 0.0]).errors
    assert error["where"] == f"log.jsonl line 1, {where}"
    assert why in error["why"]


def test_a_missing_dimension_could_not_be_scored(tmp_path):
    scores = {name: value for name, value in files.SCORES.items() if name != "secret"}
    (line,) = from_log(tmp_path, rewards=[[3.0, {**scores, "goal": None}], 0.0]).lines
    judgment = line.conversations[0].judgments[0]
    assert (judgment.numbers, judgment.reason) == (None, "the record has no value for goal, secret")


def test_a_wrong_mean_is_a_notice(tmp_path):
    reading = from_log(tmp_path, rewards=[[4.0, files.SCORES], 0.0])
    assert "the overall score is 4, the mean of the dimensions 3.000" in reading.notices[0]["why"]


@pytest.mark.parametrize(
    "changes, where",
    [
        ({"environment": 3}, "environment"),
        ({"models": []}, "models"),
        ({"rewards": [1.0]}, "rewards"),
        ({"messages": [["hello"]]}, "messages.0"),
    ],
)
def test_a_wrong_record_says_where(tmp_path, changes, where):
    (error,) = from_log(tmp_path, **changes).errors
    assert error["where"].endswith(where)


def test_scores_of_another_environment_are_refused(tmp_path):
    (error,) = from_folder(tmp_path, files.prompted_episode(), scores={"P1": {**SCORED, "env_pk": "E9"}}).errors
    assert error["where"] == "scores.json, P1, env_pk"


def test_scores_without_an_episode_are_a_notice(tmp_path):
    notices = from_folder(tmp_path, files.prompted_episode(), scores={"P9": SCORED}).notices
    assert notices[-1] == {
        "where": "scores.json, P9", "why": "scores of an episode that is not in this upload; left out"
    }  # fmt: skip


def after_leaving(record):
    record["messages"].append([[files.NORA, "Environment", 'said: "Wait!"']])


def by_a_stranger(record):
    record["messages"].append([["Somebody", "Environment", 'said: "Wait!"']])


def no_action(record):
    record["messages"][1][2][2] = "sings"


def no_goal(record):
    record["messages"][0][0][2] = record["messages"][0][0][2].replace(files.GOALS[0], "Unknown")


@pytest.mark.parametrize(
    "change, why",
    [
        (after_leaving, "move 4 is not possible"),
        (by_a_stranger, "neither participant"),
        (no_action, "no action of SOTOPIA: 'sings'"),
        (no_goal, "the goal of Nora Lind is not stated"),
    ],
)
def test_an_episode_that_our_rules_cannot_follow_is_left_out(tmp_path, change, why):
    record = files.episode_log()
    change(record)
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(episode) for episode in (record, files.episode_log(pk="L2"))))
    reading = read(path)
    assert reading.errors == []
    assert [line.scenario.id for line in reading.lines] == ["sotopia-episode-L2"]
    (notice,) = reading.notices
    assert notice["where"] == "log.jsonl line 1"
    assert why in notice["why"]


# --- command and site ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_command_counts_judgments_and_refuses_a_second_import(admin, tmp_path, capsys):
    folder = files.write_sotopia_episodes(tmp_path / "played", files.prompted_episode(), scores={"P1": SCORED})
    call_command("import_dataset", "sotopia-episodes", str(folder), "--name", "played", "--json")
    printed = json.loads(capsys.readouterr().out)
    assert (printed["scenarios"], printed["conversations"], printed["judgments"]) == (1, 1, 2)
    assert [row["author"] for row in StoredConversation.objects.get().judgments] == ["judge-1", "judge-1"]
    with pytest.raises(SystemExit) as refused:
        call_command("import_dataset", "sotopia-episodes", str(folder), "--name", "played", "--json")
    assert refused.value.code == 2
    assert "exists already" in json.loads(capsys.readouterr().out)["errors"][0]["why"]


def uploaded(owner, *uploads):
    sent = [SimpleUploadedFile(name, json.dumps(content).encode()) for name, content in uploads]
    made = imports.upload(owner=owner, format="sotopia-episodes", name="played", files=sent)
    imports.read_import(pk=made.pk)
    return Import.objects.get(pk=made.pk)


@pytest.mark.django_db
def test_two_files_are_uploaded_together_and_one_log_alone(researcher, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"
    pair = (("episodes.jsonl", files.prompted_episode()), ("scores.json", {"P1": SCORED}))
    assert uploaded(researcher, *pair).report["judgments"] == 2
    assert uploaded(researcher, ("any name.jsonl", files.episode_log())).report["judgments"] == 2
    with pytest.raises(importers.BadInput, match=r"missing episodes\.jsonl"):
        uploaded(researcher, ("a.jsonl", {}), pair[1])


@pytest.mark.django_db
def test_the_page_of_a_scenario_shows_authors_and_values(client_of, researcher, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"
    made = uploaded(researcher, ("log.jsonl", files.episode_log()))
    imports.accept_import(pk=made.pk)
    imports.store_import(pk=made.pk)
    page = client_of(researcher).get(reverse("scenarios:scenario", args=["played", 1, "sotopia-episode-L1"]))
    text = page.content.decode()
    assert "<h3>2 judgments</h3>" in text
    assert '<td>Nora Lind</td><td>judge-1</td><td>sotopia v1</td><td class="number">3</td>' in text
    assert "could not score: the record has no value for goal" in text


@pytest.mark.parametrize(
    "parse, text",
    [
        (sotopia_texts.parse_context, "Scenario: x\n" * 20_000),
        (lambda text: sotopia_texts.profile("A", text), "A is a 9-year-old x y " * 20_000),
        (sotopia_texts.parse_context, "Scenario: x\nParticipants: " + "A and " * 20_000),
    ],
)
def test_reading_a_text_takes_time_in_proportion_to_its_length(parse, text):
    """A worker would hang for days over an upload of 64 MiB if the time grew with the square of the length."""
    began = time.process_time()
    with suppress(BadInput):
        parse(text)
    assert time.process_time() - began < 4
