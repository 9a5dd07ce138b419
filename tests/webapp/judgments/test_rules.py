"""Rules: what they count in a conversation, and the queue that they fill."""

import pytest
from django.urls import reverse

from tests.webapp.runs.making import make_episode, make_run
from training.records import Episode, Move, Scenario, SeatMove, Turn
from webapp.judgments import rules
from webapp.judgments.models import Codebook, Judgment, Queue
from webapp.judgments.results import estimates

SCENARIO = Scenario.from_dict(
    {
        "id": "pens", "game": "negotiation", "seats": ["Ada", "Ben"], "settings": {
            "deal": {"kind": "items", "story": "Share.", "items": [{"name": "pen", "count": 3}],
                     "sides": [{"values": {"pen": 2}}, {"values": {"pen": 1}}]},
        },
    }
)  # fmt: skip
ECHO = "apples apples apples apples apples apples"  # four triples, one of them new: 3/4 of them repeat


def conversation(*replies: tuple[int, str, bool]) -> Episode:
    moves = tuple(SeatMove(seat=seat, move=Move(action="talk", text=text)) for seat, text, _ in replies)
    turns = tuple(
        Turn(seat=seat, reply=text, move=moves[place].move, move_index=place, passed=passed)
        for place, (seat, text, passed) in enumerate(replies)
    )
    return Episode(scenario=SCENARIO, moves=moves, turns=turns, returns={}, metrics={})


def test_the_form_of_replies_by_hand() -> None:
    episode = conversation((0, ECHO, True), (1, "Fine with me.", True), (0, "Hm", False))
    first, second = (rules.reply_form(episode, seat) for seat in (0, 1))
    assert first.values == {"readable": 1 / 2, "new_wording": 1 - (3 / 4 + 0) / 2, "fit_for_training": 0.0}
    assert first.reasons == {
        "readable": "1 of 2 replies.",
        "new_wording": "1 of 2 replies repeat a word triple.",
        "fit_for_training": "0 of 2 replies.",
    }
    assert second.values == {"readable": 1.0, "new_wording": 1.0, "fit_for_training": 1.0}


def test_every_rule_answers_within_the_scales_of_its_codebook() -> None:
    episode = conversation((0, ECHO, True), (1, "", False))
    for rule in rules.RULES.values():
        for seat in (0, 1):
            answers = rule.answer(episode, seat)
            assert answers.values.keys() == {label_type.name for label_type in rule.codebook.labels}
            rule.codebook.check(answers.labels(rule.codebook, seat))


@pytest.mark.django_db
def test_a_run_whose_labels_have_no_share_says_so_and_what_to_do(home, researcher, client_of) -> None:
    row = make_episode(make_run(researcher))
    rules.judge(name="form", rule="reply-form", owner=researcher, episodes=[(row, conversation((0, ECHO, True)))])
    page = client_of(researcher).get(reverse("judgments:of-run", args=[row.run_id])).text
    assert "reply-form v1 has no yes-or-no label type" in page
    assert f'href="{reverse("judgments:queue-new")}?run={row.run_id}"' in page
    assert "0 labelled games" not in page, "its two seats are labelled"


@pytest.mark.django_db
def test_a_queue_is_complete_at_once_and_goes_with_its_codebook(home, researcher, annotator) -> None:
    row = make_episode(make_run(researcher))
    episode = conversation((0, ECHO, True))
    queue = rules.judge(name="form", rule="reply-form", owner=researcher, episodes=[(row, episode)])
    assert list(queue.targets.order_by("seat").values_list("state", flat=True)) == ["scored", "unscored"]
    scored, silent = Judgment.objects.order_by("seat")
    assert (scored.by, scored.author_kind, scored.shown_author) == ("rule:reply-form", "rule", "the rule reply-form")
    assert silent.numbers is None
    assert silent.reason == "This seat wrote no reply."
    ((_, means),) = estimates.of_queue(queue).items()
    assert [estimate.mean for estimate in means] == [1.0, 0.25, 0.0]
    others = rules.judge(name="form", rule="reply-form", owner=annotator, episodes=[(row, episode)])
    rules.remove(owner=researcher)
    assert list(Queue.objects.all()) == [others]
    assert Codebook.objects.filter(name="reply-form").exists()
    rules.remove(owner=annotator)
    assert not Judgment.objects.exists()
    assert not Codebook.objects.filter(name="reply-form").exists()
