"""What a classifier learns from judged games: whose labels count, and which turns have them."""

import pytest

from tests.rewards.samples import episode, negotiation
from training.dataset import Conversation, DatasetLine
from training.errors import BadInput
from training.labels.turns import labelled, merged, read, spoken
from training.records import Judgment, Label, Move, SeatMove

PLAYED = episode(negotiation(), "Hello", "I need food", "Take it")


def judgment(author, *marks, **fields):
    """A judgment of a whole game: yes for each (turn, label), or words of the turn where a mark has four members."""
    labels = [
        Label(label=mark[1], value=True, turn=mark[0])
        if len(mark) == 2
        else Label(label=mark[1], turn=mark[0], start=mark[2], end=mark[3])
        for mark in marks
    ]
    about = {"codebook": "moves", "codebook_version": 1, "episode": "e", "author": author, "labels": labels}
    return Judgment.from_dict({**about, "labels": [label.to_dict() for label in labels], **fields})


def has(turns):
    return [{name for name, flag in zip(turns.names, row, strict=True) if flag} for row in turns.labels]


def test_the_majority_of_people_decides_and_a_tie_is_a_no():
    people = (
        judgment("person:1", (1, "need")),
        judgment("person:2", (1, "need"), (2, "gift")),
        judgment("Ann", (2, "gift")),
    )
    assert has(labelled([(PLAYED, people)])) == [set(), {"need"}, {"gift"}]
    assert labelled([(PLAYED, people[:2])]).names == ("need",)  # one of two marked the gift
    turns = labelled([(PLAYED, people), (PLAYED, people[:1])])
    assert turns.dialogues == ["0", "0", "0", "1", "1", "1"]
    assert (turns.codebook, turns.codebook_version) == ("moves", 1)
    assert turns.texts[:3] == ["Hello", "I need food", "Take it"]


def test_a_decision_stands_in_place_of_the_votes():
    votes = [judgment(f"person:{at}", (0, "need")) for at in range(3)]
    assert has(labelled([(PLAYED, [*votes, judgment("person:9", (1, "need"), decides=True)])])) == [
        set(),
        {"need"},
        set(),
    ]


def test_programs_seats_and_the_unscored_do_not_vote():
    others = [
        judgment("model:m", (0, "need")),
        judgment("rule:r", (0, "need")),
        judgment("person:3", labels=None, reason="unclear"),
        judgment("person:4", seat=1),
    ]
    assert has(labelled([(PLAYED, [*others, judgment("person:1", (1, "need"))])])) == [set(), {"need"}, set()]
    with pytest.raises(BadInput, match="no person labelled a turn"):
        labelled([(PLAYED, others)])


def test_marked_words_label_their_turn():
    assert has(labelled([(PLAYED, [judgment("Ann", (1, "need", 0, 6))])])) == [set(), {"need"}, set()]


def test_one_codebook_at_a_time():
    other = judgment("person:2", (0, "rude"), codebook="tone", codebook_version=3)
    games = [(PLAYED, [judgment("person:1", (1, "need")), other])]
    with pytest.raises(BadInput, match="moves v1, tone v3"):
        labelled(games)
    assert has(labelled(games, ("tone", 3))) == [{"rude"}, set(), set()]
    with pytest.raises(BadInput, match="under moves v2"):
        labelled(games, ("moves", 2))


def test_turns_are_the_words_that_seats_chose():
    said = SeatMove(seat=0, move=Move(action="say", text="Hi"))
    forced = SeatMove(seat=1, move=Move(action="say", text="…", origin="default"))
    silent = SeatMove(seat=0, move=Move(action="pass", text=" "))
    assert spoken([said, forced, silent, said]) == [0, 3]


def test_a_game_in_two_files_is_one_with_the_judgments_of_both(tmp_path):
    files = []
    for at, author in enumerate(("person:1", "person:2")):
        conversation = Conversation(source="s", episode=PLAYED, judgments=(judgment(author, (at, "need")),))
        files.append(tmp_path / f"{at}.jsonl")
        files[-1].write_text(DatasetLine(scenario=PLAYED.scenario, conversations=(conversation,)).dumps() + "\n")
    ((_, judgments),) = merged(map(read, files))
    assert [each.author for each in judgments] == ["person:1", "person:2"]
    with pytest.raises(BadInput, match="no such file"):
        list(read(tmp_path / "missing.jsonl"))
