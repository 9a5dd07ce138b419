"""Aggregated truth of a queue, and judge models against people."""

import random
from datetime import UTC, datetime

import pytest
from django.urls import reverse

from tests.webapp.api.test_api import Caller
from tests.webapp.judgments.make import (
    FIVES,
    annotate,
    conversation,
    conversation_queue,
    finished_match,
    imported,
    rated,
    version,
)
from tests.webapp.judgments.test_queue_agreement import judge, label_type, queue_over
from training.labels.codebooks import Codebook
from training.records import Label
from training.rewards.judge import Cost, Verdict
from webapp.judgments.models import JudgeModel, Judgment, Queue
from webapp.judgments.queues import services as queues
from webapp.judgments.results import aggregated, analyses, decisions
from webapp.judgments.results.answers import Answer, Answers, Judged
from webapp.scenarios.models import Dataset, StoredScenario
from webapp.serving.models import RemoteModel

FAIR = label_type("fair", "yes_no", "game")
POINTS = label_type("points", "scale", "game", low=0, high=100)
WHOLE = (None,) * 5
NOW = datetime(2026, 1, 5, tzinfo=UTC)


def answers(rows, decided=(), types=(FAIR,)):
    """One game per row, which has a value, or None, for each annotator."""
    codebook = Codebook(name="small", version=1, title="Small", labels=types)
    name = codebook.labels[0].name
    by_target = {
        target: {n: Answer({name: {WHOLE: value}}, NOW) for n, value in enumerate(row, 1) if value is not None}
        for target, row in enumerate(rows)
    }
    decisions = {target: Answer({name: {WHOLE: value}}, NOW) for target, value in dict(decided).items()}
    people = tuple(range(1, len(rows[0]) + 1))
    return Answers(codebook, people, {n: Judged((n, None, None), None, 1, ()) for n in by_target}, by_target, decisions)


def test_annotators_of_known_errors_are_recovered_and_the_better_method_says_so():
    """Of 500 games annotators err in 5 to 45 %: Dawid and Skene's estimates are near, and right more often than the
    majority.
    """
    draw, errors = random.Random(2), (0.05, 0.15, 0.25, 0.35, 0.45)
    truth = [draw.random() < 0.5 for _ in range(500)]
    rows = [[value == (draw.random() >= error) for error in errors] for value in truth]
    data = answers(rows, decided=dict(enumerate(truth)))
    (label,) = aggregated.of_label(data, data.codebook.labels[0])
    skene = [next(each for each in who.reliability if each.method == "dawid_skene") for who in label.annotators]
    for each, error in zip(skene, errors, strict=True):
        assert each.value == pytest.approx(1 - error, abs=0.03)
        assert each.low < each.value < each.high, "what it covers is tested with the intervals"
    right = {method.name: method.right for method in label.methods}
    assert right["dawid_skene"] > right["majority"]
    assert {method.decided for method in label.methods} == {500}
    assert label.differing_count > 0


def test_the_majority_by_hand():
    """yes yes no; no no yes; yes no (a tie): shares 1/2 each; annotator 1 is right in 2 of 2, 3 in 0 of 2."""
    data = answers([[True, True, False], [False, False, True], [True, False, None]], decided={0: True, 1: True})
    (label,) = aggregated.of_label(data, data.codebook.labels[0])
    method = label.methods[0]
    assert (method.shares, method.ties) == ((("no", 0.5), ("yes", 0.5)), 1)
    assert (method.right, method.decided, label.decided, label.units) == (1, 2, 2, 3)
    assert [who.reliability[0].value for who in label.annotators] == [1.0, 1.0, 0.0]


def test_a_long_scale_has_means_and_biases():
    """10 30; 20 50; 60 90 (decided 40): biases -20, -30, -30; mean of 20, 35 and 40."""
    data = answers([[10.0, 30.0], [20.0, 50.0], [60.0, 90.0]], decided={2: 40.0}, types=(POINTS,))
    (label,) = aggregated.of_label(data, data.codebook.labels[0])
    assert label.mean == pytest.approx(95 / 3)
    first, second = (who.bias for who in label.annotators)
    assert (first.value, second.value) == (pytest.approx(-80 / 3), pytest.approx(80 / 3))
    # by hand: the standard deviation of 20, 30, 30 is 10 / sqrt(3), the error 10 / 3; t(0.975, 2) = 4.30265
    assert first.high - first.value == pytest.approx(4.30265 * 10 / 3, rel=1e-4)


def stub_judge(owner):
    remote = RemoteModel.objects.create(name="far", address="http://127.0.0.1:9/v1", model="m", added_by=owner)
    return JudgeModel.objects.create(name="the judge", remote=remote)


@pytest.fixture
def judged(db, researcher, annotator, person):
    """Four conversations; people score two seats of each by yes or no and by 0 to 10, and a judge model all but one."""
    other = person("annotator", "bert")
    types = [label_type("kind", "yes_no", "seat", required=True), label_type("skill", "scale", "seat", low=0, high=10,
                                                                            required=True)]  # fmt: skip
    from webapp.judgments.codebooks import services as codebooks

    codebooks.save_codebook(name="calibrated", title="Calibrated", labels=types, by=researcher)
    stored = imported(researcher, *(conversation(number) for number in range(4)))
    people = conversation_queue(researcher, stored, [annotator, other], codebook="calibrated")
    asked = conversation_queue(researcher, stored, codebook="calibrated", judge=stub_judge(researcher))
    for place, (ours, theirs) in enumerate(zip(*(q.targets.with_games().order_by("position") for q in (people, asked)),
                                              strict=True)):  # fmt: skip
        annotate(target=ours, by=annotator, values={"kind": KIND[place], "skill": 4})
        annotate(target=ours, by=other, values={"kind": KIND[place], "skill": 6})
        verdict = None
        if place < 7:
            values = {"kind": float(SAID[place]), "skill": 5.0 + DIFFERENCE[place]}
            verdict = Verdict(
                version("calibrated").record(), theirs.seat, values, {"skill": "<b>why</b>"}, "0" * 64, Cost()
            )
        queues.record_verdict(target=theirs, verdict=verdict, why="too long")
    return people, asked


KIND = (1, 1, 1, 1, 0, 0, 0, 0)
SAID = (1, 1, 1, 0, 0, 0, 1)
DIFFERENCE = (0, 0, 2, 2, 1, 1, 4)
"""Of the eight seats: what people say, what the judge says of the first seven, and how far it lies above their mean."""


def calibration_of(queue):
    return analyses.of_queue(queue, "calibration").result


def test_a_judge_against_people_by_hand(judged):
    """Of seven seats people say yes to four: the judge sees 3 of 4, and 2 of 3 noes. Above the mean of both people, 5,
    it is by 0, 2, 1 and 4 in the four games, 7/4 on average.
    """
    people, asked = judged
    result = calibration_of(people)
    (row,) = result.judges
    assert (result.people, result.scored, result.decided) == (2, 8, 0)
    assert (row.title, row.asked, row.scored) == ("the judge", 8, 7)
    kind, skill = row.labels
    assert (kind.sensitivity.share, kind.sensitivity.n) == (0.75, 4)
    assert (kind.specificity.share, kind.specificity.n) == (pytest.approx(2 / 3), 3)
    assert kind.confusion == (("no", "no", 2), ("no", "yes", 1), ("yes", "no", 1), ("yes", "yes", 3))
    # seven pairs, 8 yes and 6 no among 14 values, two differ: 1 - (4 / 14) / (2 · 8 · 6 / (14 · 13))
    assert kind.agreement.value == pytest.approx(1 - (4 / 14) / (96 / 182))
    assert (kind.ceiling.value, kind.equal.value) == (1.0, pytest.approx(5 / 7))
    assert (skill.bias.value, skill.bias.games) == (pytest.approx(7 / 4), 4)
    # by hand: the variance of 0, 2, 1, 4 is 35/12, the error sqrt(35 / 48); t(0.975, 3) = 3.18245
    assert skill.bias.high - skill.bias.value == pytest.approx(3.18245 * (35 / 48) ** 0.5, rel=1e-4)
    assert [miss.said for miss in skill.misses[:2]] == ["9", "7"]
    positions = dict(people.targets.values_list("pk", "position"))
    assert [positions[pk] for pk in row.wrong] == [2, 3, 6], "a tenth of the scale is no miss"
    mirrored = calibration_of(asked).judges[0]
    assert mirrored.labels[0].agreement == kind.agreement, "the judge's queue shows the same"


def test_a_decision_is_the_truth(judged, researcher):
    people, _ = judged
    target = people.targets.with_games().get(position=6)
    labels = [Label(label="kind", value=True, seat=target.seat), Label(label="skill", value=9.0, seat=target.seat)]
    decisions.decide(target=target, by=researcher, labels=labels, note="read it twice")
    result = calibration_of(people)
    kind, skill = result.judges[0].labels
    assert (result.decided, kind.sensitivity.share, kind.specificity.share) == (1, 0.8, 1.0)
    assert skill.misses[0].said == "7"
    other = people.targets.with_games().get(position=2)
    decisions.decide(target=other, by=researcher, labels=None, note="cut off")
    assert calibration_of(people).judges[0].labels[0].agreement.units == 6, "what cannot be scored has no truth"


def test_the_pages_show_what_was_computed_and_text_is_no_markup(judged, client_of, researcher, other_researcher):
    people, asked = judged
    for queue, who in ((people, researcher), (asked, researcher), (people, other_researcher)):
        page = client_of(who).get(reverse("judgments:judges", args=[queue.pk])).content.decode()
        assert "&lt;b&gt;why&lt;/b&gt;" in page
        assert ("Export the disagreements" in page) == (queue == people)
        assert (reverse("judgments:decisions", args=[queue.pk]) in page) == (who == researcher)
    page = client_of(researcher).get(reverse("judgments:truth", args=[people.pk])).content.decode()
    assert "Dawid–Skene" in page
    assert "0 of 8 games or seats have an adjudicator's decision" in page
    assert "Labels are aggregated over people only" in client_of(researcher).get(
        reverse("judgments:truth", args=[asked.pk])
    ).content.decode()  # fmt: skip


def test_tables_link_each_game_and_for_its_owner_the_decision_on_it(judged, client_of, researcher, other_researcher):
    people, _ = judged
    StoredScenario.objects.update(key="<i>key</i>")
    targets = {pk for label in calibration_of(people).judges[0].labels for pk in (miss.target for miss in label.misses)}
    for who in (researcher, other_researcher):
        page = client_of(who).get(reverse("judgments:judges", args=[people.pk])).content.decode()
        assert "<i>key</i>" not in page
        assert "&lt;i&gt;key&lt;/i&gt;, conversation 2</a>, seat 2" in page
        for pk in targets:
            assert (reverse("judgments:decide", args=[people.pk, pk]) in page) == (who == researcher)


def test_the_games_of_disagreements_become_a_dataset_with_the_peoples_labels(judged, client_of, researcher):
    people, asked = judged
    client, address = client_of(researcher), reverse("judgments:export-disagreements", args=[people.pk])
    key = calibration_of(people).judges[0].key
    for wrong in ({"judge": "judge:0", "name": "x"}, {"judge": key, "name": ""}):
        client.post(address, wrong)
        assert not Dataset.objects.filter(name="x").exists()
    client.post(address, {"judge": key, "name": "disagreements"})
    stored = Dataset.objects.get(name="disagreements").newest()
    assert (stored.conversation_count, "the judge disagree" in stored.note) == (2, True), "positions 2 and 3, and 6"
    sources = sorted(stored.scenarios.values_list("conversations__source", flat=True))
    assert sources == ["file:1", "file:3"]
    authors = {row["author"] for judgments in stored.scenarios.values_list("conversations__judgments", flat=True)
               for row in judgments}  # fmt: skip
    assert authors == {"person:1", "person:2"}
    client.post(reverse("judgments:export-disagreements", args=[asked.pk]), {"judge": key, "name": "other"})
    assert not Dataset.objects.filter(name="other").exists(), "a judge's queue has no labels of people"


def test_who_has_a_seat_left_sees_neither_truth_nor_judges(judged, client_of, researcher, other_researcher):
    people, _ = judged
    people.annotators.add(other_researcher)
    client = client_of(other_researcher)
    for name in ("truth", "judges"):
        page = client.get(reverse(f"judgments:{name}", args=[people.pk])).content.decode()
        assert "once you have judged your remaining seats" in page
        assert "the judge" not in page.split("<main")[1]
    client.post(reverse("judgments:export-disagreements", args=[people.pk]), {"judge": "judge:1", "name": "x"})
    assert not Dataset.objects.filter(name="x").exists()
    for name in ("truth", "calibration"):
        assert Caller(other_researcher).get(f"judgments/queues/{people.pk}/{name}").status_code == 409
        assert Caller(researcher).get(f"judgments/queues/{people.pk}/{name}").json()["state"] == "ready"


def test_whole_games_are_paired_by_game_and_turn(db, researcher, annotator):
    """Two people label turns; whoever judges the same games elsewhere under the same version is people, too."""
    queue = queue_over(researcher, [annotator], 3)
    for target in queue.targets.all():
        judge(target, annotator, {"fair": True}, [Label(label="offer", value=True, turn=0)])
    result = calibration_of(queue)
    assert (result.people, result.scored, result.judges) == (1, 3, ())


def test_the_interface_says_nothing_of_single_seats_to_a_player_who_has_yet_to_rate(
    researcher, other_researcher, player, annotator, person
):
    """Both seats of both matches are misses: people say 5 and 6, the judge 1."""
    matches = [finished_match(researcher, player), finished_match(player)]
    people = [annotator, person("annotator", "another")]
    arguments = {"owner": other_researcher, "codebook_version": version(), "matches": matches}
    queue = queues.create_queue(name="people", annotators=people, **arguments)
    by_judge = queues.create_queue(name="judge", judge=stub_judge(other_researcher), **arguments)
    for target in queue.targets.with_games():
        for author, value in zip(people, (5, 6), strict=True):
            annotate(target=target, by=author, values=dict.fromkeys(FIVES, value))
    for target in by_judge.targets.with_games():
        verdict = Verdict(
            codebook=version().record(), seat=target.seat, values=dict.fromkeys(FIVES, 1.0),
            reasons=dict.fromkeys(FIVES, "so"), prompt_sha256="0" * 64, cost=Cost(calls=1),
        )  # fmt: skip
        queues.record_verdict(target=target, verdict=verdict)

    def named_matches(who):
        """The matches of the targets that are named: judged wrong, missed, differing between annotators."""
        address = f"judgments/queues/{queue.pk}/"
        (judge,) = Caller(who).get(f"{address}calibration").json()["result"]["judges"]
        missed = {miss["target"] for label in judge["labels"] for miss in label["misses"]}
        differ = {target for target, _ in Caller(who).get(f"{address}agreement").json()["result"]["disagreements"]}
        named = dict(queue.targets.values_list("pk", "match"))
        return [{named[pk] for pk in keys} for keys in (judge["wrong"], missed, differ)]

    both = {match.pk for match in matches}
    assert named_matches(researcher) == [{matches[1].pk}] * 3
    assert named_matches(other_researcher) == [both] * 3
    assert refused_decision(researcher, queue, matches[0]) == 404
    rated(matches[0], researcher)
    assert named_matches(researcher) == [both] * 3


def refused_decision(researcher, queue, match):
    """The status of a decision by the queue's new owner over a seat of this match."""
    Queue.objects.filter(pk=queue.pk).update(owner=researcher)
    target = queue.targets.filter(match=match).first()
    status = Caller(researcher).post("judgments/decisions", target=target.pk, note="so").status_code
    assert not Judgment.objects.filter(decides=True).exists()
    return status


def test_a_truth_leaves_single_targets_out():
    rows = tuple(aggregated.Differing(target=pk, place="", values=("yes", ""), decision="") for pk in (1, 2))
    label = aggregated.LabelTruth(label="fair", title="Fair", summary="", differing=rows, differing_count=2)
    truth = aggregated.QueueTruth(annotators=(1, 2), targets=2, decided=0, labels=(label,))
    assert [row.target for row in truth.without({1}).labels[0].differing] == [2]
