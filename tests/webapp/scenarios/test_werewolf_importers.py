"""Recorded games of Werewolf: the engine replays them, and random outcomes are inferred from what follows."""

import json

import pytest

from tests.webapp.scenarios import files
from training.evaluate.behaviours import judged_game
from training.games import make, replay
from webapp.scenarios import importers


def read(format, path):
    return importers.read(format, path, lambda done, total: None)


def six(tmp_path, *lines):
    path = tmp_path / "games.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read("werewolf6", path)


def fixed(line, event):
    settings = line.conversations[0].episode.scenario.settings
    return [(entry["day"], entry["seats"]) for entry in settings["fixed"] if entry["event"] == event]


def test_a_split_vote_and_a_tie_fall_as_the_record_shows(tmp_path):
    reading = six(tmp_path, files.six(files.SIX_SAVED, files.VILLAGE))
    assert (reading.errors, reading.notices) == ([], [])
    (line,) = reading.lines
    assert fixed(line, "prey") == [(1, [5])]
    assert fixed(line, "vote") == [(1, [3])]
    episode = line.conversations[0].episode
    assert replay(episode.scenario, episode.moves).returns() == episode.returns
    # Nobody of the village died before the last day, the second (Ana dies in its night): all of them win in full.
    assert episode.returns == {0: 1, 1: 0, 2: 1, 3: 0, 4: 1, 5: 1}
    assert [e.move.text for e in episode.moves if e.seat == 2 and e.move.action == "speak"] == ["Di is a wolf."]


def test_of_two_possible_orders_of_leaving_the_one_that_fits_the_record_is_chosen(tmp_path):
    """Ana and Bo tie, and neither acts again: Ana's leaving would help the winners more, but Di kills her at night."""
    turns = [
        *("Bo: kill Ana", "Di: kill Ana", "Cy: inspect Ed", "Ed: save Ana"),
        *('Ana: "Oh."', 'Bo: "Hm."', 'Cy: "Well."', 'Di: "No."', 'Ed: "So."', 'Flo: "Yes."'),
        *("Ana: vote Bo", "Bo: vote Ana", "Cy: vote Di", "Di: vote Ana", "Ed: vote Bo", "Flo: vote Cy"),
        *("Di: kill Ana", "Cy: inspect Flo", "Ed: skip"),
        *('Cy: "Well."', 'Di: "No."', 'Ed: "So."', 'Flo: "Yes."'),
        *("Cy: vote Di", "Di: vote Cy", "Ed: vote Cy", "Flo: vote Cy"),
        *("Di: kill Ed", "Ed: skip"),
    ]
    reading = six(tmp_path, files.six(turns, files.WOLVES))
    assert reading.notices == []
    assert fixed(reading.lines[0], "vote") == [(1, [1])]
    assert reading.lines[0].conversations[0].episode.roles[1] == "werewolf"


def test_names_and_roles_are_those_of_the_record(tmp_path):
    (line,) = six(tmp_path, files.six(files.SIX_SAVED, files.VILLAGE)).lines
    assert line.scenario.seats == files.SIX
    roles = ["villager", "werewolf", "seer", "werewolf", "witch", "villager"]
    assert line.conversations[0].episode.scenario.settings["deal"] == roles


def test_a_start_deals_anew_what_its_record_states(tmp_path):
    """Read as recorded, the second and the fourth name of every game would be the wolves'."""
    (line,) = six(tmp_path, files.six(files.SIX_SAVED, files.VILLAGE)).lines
    wolves = {
        frozenset(s for s, role in enumerate(make(line.scenario.with_seed(n)).roles()) if role == "werewolf")
        for n in range(1, 60)
    }
    assert len(wolves) == 15  # of six seats two
    assert not {"deal", "fixed", "spectator_delay"} & set(line.scenario.settings)
    assert line.scenario.seed == 0


def test_an_unreadable_answer_is_a_notice_and_a_silence(tmp_path):
    turns = [turn if turn != 'Ed: "So."' else "Ed:" for turn in files.SIX_SAVED]
    reading = six(tmp_path, files.six(turns, files.VILLAGE))
    assert [notice["where"] for notice in reading.notices] == ["games.jsonl, line 1, turns.8"]
    moves = reading.lines[0].conversations[0].episode.moves
    assert [e.move.origin for e in moves if e.seat == 4 and e.move.action == "speak"] == ["default"]


def test_an_action_at_a_player_that_our_rules_do_not_allow_is_not_dropped(tmp_path):
    """A potion for somebody who was not attacked, a vote for or a look at oneself: none becomes a pass."""
    for old, new in (
        ("Ed: save Flo", "Ed: save Cy"),
        ("Bo: vote Cy", "Bo: vote Bo"),
        ("Cy: inspect Bo", "Cy: inspect Cy"),
    ):
        assert old in files.SIX_SAVED
        turns = [new if turn == old else turn for turn in files.SIX_SAVED]
        reading = six(tmp_path, files.six(turns, files.VILLAGE))
        assert reading.lines == []
        (notice,) = reading.notices
        at = turns.index(new)
        assert (
            notice["why"]
            == f"left out: turn {at} is '{new.partition(': ')[2]}', which Parley's rules do not allow there"
        )


def test_words_that_name_no_player_are_a_notice_and_skipping_is_none(tmp_path):
    turns = [{"Bo: kill Ana": "Bo: kill Zoe", "Ed: poison Bo": "Ed: skip"}.get(turn, turn) for turn in files.SIX_SAVED]
    day = ('Bo: "Hm."', 'Cy: "Bo."', 'Ed: "Bo."', 'Flo: "Bo."')
    votes = ("Bo: vote Cy", "Cy: vote Bo", "Ed: vote Bo", "Flo: vote Bo")
    turns = [*turns[:16], "Bo: kill Ana", "Cy: inspect Bo", "Ed: skip", *day, *votes]
    reading = six(tmp_path, files.six(turns, files.VILLAGE))
    assert len(reading.lines) == 1
    assert reading.notices == [
        {
            "where": "games.jsonl, line 1, turns.0",
            "why": "'kill Zoe' is no action at a player of the game; the player does nothing there",
        }
    ]


@pytest.mark.parametrize(
    "turns, winners, why",
    [
        (files.SIX_SAVED, files.WOLVES, "another winner"),
        (files.SIX_SAVED[:-1], files.VILLAGE, "ends before"),
        ([*files.SIX_SAVED, 'Ana: "Well."'], files.VILLAGE, "has 1 turns after the end"),
        (["Ana: kill Bo", *files.SIX_SAVED], files.VILLAGE, "turn 0 is Ana's"),
    ],
)
def test_a_game_that_leaves_our_rules_is_left_out_and_says_where(tmp_path, turns, winners, why):
    reading = six(tmp_path, files.six(turns, winners), files.six(files.SIX_SAVED, files.VILLAGE))
    assert reading.errors == []
    assert [line.scenario.id for line in reading.lines] == ["werewolf6-2"]
    (notice,) = reading.notices
    assert notice["where"] == "games.jsonl, line 1"
    assert why in notice["why"]


@pytest.mark.parametrize(
    "line, where",
    [
        ("{", "line 1"),
        (files.six([], (), model_mapping={"Ana": "m"}), "model_mapping"),
        (files.six([], (), rewards=[1, 2]), "rewards"),
        (files.six(["Zoe: kill Ana"], ()), "turns.0, agent_name"),
        (files.six([], (), turns=[{"agent_name": "Ana"}]), "turns.0, response"),
    ],
)
def test_a_wrong_line_of_six_players_is_an_error(tmp_path, line, where):
    (error,) = six(tmp_path, line).errors
    assert error["where"].endswith(where)


# --- nine players ----------------------------------------------------------------------------------------------------


def nine(tmp_path, **changes):
    folder = tmp_path / "games"
    folder.mkdir(exist_ok=True)
    (folder / "one.json").write_text(json.dumps({**files.nine(), **changes}), encoding="utf-8")
    (folder / "notes.txt").write_text("notes", encoding="utf-8")
    return read("werewolf9", folder)


def test_a_game_of_nine_people_is_followed_to_its_winner(tmp_path):
    reading = nine(tmp_path)
    assert reading.errors == []
    assert [notice["where"] for notice in reading.notices] == ["notes.txt"]
    (line,) = reading.lines
    assert line.scenario.id == "werewolf9-one"
    episode = line.conversations[0].episode
    # Players 6 (voted out), 1 (night 2) and 3 (voted out) die; 2, 4, 5 and the three wolves are left: parity.
    assert {seat for seat in range(9) if episode.seat_metrics[seat]["survived"]} == {1, 3, 4, 6, 7, 8}
    assert {seat for seat, value in episode.returns.items() if value} == {6, 7, 8}
    assert {seat for seat, role in enumerate(episode.roles) if role == "werewolf"} == {6, 7, 8}
    assert all(judged_game(episode, ()).outcomes[seat] == (seat in {1, 3, 4, 6, 7, 8}) for seat in range(9))
    spoken = [(e.seat + 1, e.move.text) for e in episode.moves if e.move.action == "speak" and e.move.origin == "seat"]
    assert [seat for seat, _ in spoken[:12]] == [4, 3, 2, 1, 9, 8, 7, 6, 5, 7, 6, 6]
    assert [text for _, text in spoken[9:12]] == ["Not 7!", "Not 6!", "You were wrong."]
    assert [seat for seat, _ in spoken[12:]] == [5, 7, 8, 9, 2, 3, 4]


def changed(**entries):
    """The game of nine with some entries of nights and days changed; None takes one away."""
    state = files.nine()["game_state"]
    for place, value in entries.items():
        part, _, entry = place.replace("_", " ").partition(": ")
        inside = dict(state[part])
        inside[entry] = value
        state[part] = {name: content for name, content in inside.items() if content is not None}
    return state


def left_out(tmp_path, **changes):
    reading = nine(tmp_path, **changes)
    assert (reading.errors, reading.lines) == ([], [])
    assert {notice["where"] for notice in reading.notices} == {"notes.txt", "one.json"}
    return next(notice["why"] for notice in reading.notices if notice["where"] == "one.json")


@pytest.mark.parametrize(
    "entries, why",
    [
        ({"Day 1 Daytime: suicide": 7}, "entries that this reader does not know: Day 1 Daytime, suicide"),
        ({"Day 2 Night: Hunter": 7}, "entries that this reader does not know: Day 2 Night, Hunter"),
        ({"Day 2 Night: Death Message": [1, 4]}, "Day 2 Night: [1, 4] died in the record, [1] by Parley's rules"),
        ({"Day 2 Daytime: Voting Result": 8}, "Day 2 Daytime: 8 was voted out in the record, 3 by Parley's rules"),
        ({"Day 2 Daytime: Voting Result": -1}, "-1 was voted out in the record, 3 by Parley's rules"),
        (
            {"Day 1 Night: Witch antidote": 4},
            "Day 1 Night, Witch antidote: Parley's rules do not allow save at 4 there",
        ),
        ({"Day 2 Night: Seer": 6}, "Day 2 Night, Seer: Parley's rules do not allow inspect at 6 there"),
        ({"Day 2 Night: Witch": 3}, "Parley's rules do not request Day 2 Night, Witch"),
        ({"Day 1 Daytime: Voting Pattern (Round 2)": {"7": 6}}, "ends before the game does"),
    ],
)
def test_a_game_of_nine_that_our_rules_do_not_repeat_is_left_out(tmp_path, entries, why):
    assert why in left_out(tmp_path, game_state=changed(**entries))


def test_what_is_recorded_after_our_end_is_not_dropped(tmp_path):
    """Three wolves are as many as the rest after the second vote; a day that continues was played by other rules."""
    state = files.nine()["game_state"]
    state["Day 3 Night"] = {"Werewolf": 4, "Death Message": [4]}
    state["Day 3 Daytime"] = {"Voting Pattern": {"2": 7, "5": 2}}
    why = left_out(tmp_path, game_state=state)
    assert "Parley's rules do not request Day 3 Night, Werewolf; Day 3 Daytime, Voting Pattern, 2; " in why


def test_what_was_said_after_our_end_is_not_dropped(tmp_path):
    audio = files.nine()["audio"] | {"Day 2 Daytime - [3] gives the last words": {"text": "Bye."}}
    assert "Day 2 Daytime - [3] gives the last words" in left_out(tmp_path, audio=audio)
    audio = files.nine()["audio"] | {"Day 2 Daytime - [3] sings": {"text": "La."}}
    assert "does not know: audio, Day 2 Daytime - [3] sings" in left_out(tmp_path, audio=audio)


def test_the_fate_of_every_player_is_compared(tmp_path):
    fates = dict.fromkeys(map(str, range(1, 10)), "in_game") | {"1": "killed", "3": "exiled", "6": "exiled"}
    assert len(nine(tmp_path, game_state=files.nine()["game_state"] | {"final": fates}).lines) == 1
    for number, fate, why in (
        ("4", "killed", "Player 4 is in_game by Parley's rules, not killed"),
        ("3", "shot", "Player 3 is exiled by Parley's rules, not shot"),
        ("9", "suicide", "entries that this reader does not know: final, 9: suicide"),
    ):
        assert why in left_out(tmp_path, game_state=files.nine()["game_state"] | {"final": fates | {number: fate}})


def test_last_words_of_the_night_are_played_under_rules_that_have_them(tmp_path):
    audio = files.nine()["audio"] | {"Day 2 Daytime - [1] gives the last words": {"text": "It was 8."}}
    (line,) = nine(tmp_path, audio=audio).lines
    episode = line.conversations[0].episode
    assert episode.scenario.settings["last_words"] == "all"
    assert [entry.seat for entry in episode.moves if entry.move.text == "It was 8."] == [0]


def test_a_wrong_file_of_nine_players_is_an_error(tmp_path):
    state = files.nine()["game_state"]
    (error,) = nine(tmp_path, game_state={**state, "Game Result": "Nobody"}).errors
    assert "Game Result" in error["where"]


def test_an_unknown_role_is_an_error(tmp_path):
    state = files.nine()["game_state"]
    (error,) = nine(tmp_path, game_state={**state, "roles": {**state["roles"], "3": "Cupid"}}).errors
    assert "unknown role 'Cupid'" in error["why"]


def test_several_files_are_one_upload_and_none_is_refused():
    importers.check_upload("werewolf9", [("a.json", 10), ("b.json", 10)])
    with pytest.raises(importers.BadInput, match="one file"):
        importers.check_upload("werewolf6", [("a.jsonl", 10), ("b.jsonl", 10)])
