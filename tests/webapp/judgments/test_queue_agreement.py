"""The agreement of a queue's annotators: against alpha by its definition, hand-worked values, and as pages show it."""

import random
from dataclasses import replace
from itertools import permutations
from typing import get_args

import pytest
from django.core.cache import cache
from django.core.paginator import Paginator
from django.urls import reverse
from django.utils import timezone

from tests.webapp.api.test_api import Caller
from tests.webapp.judgments.make import conversation, conversation_queue, imported
from training.evaluate.agreement import Coefficient
from training.labels import truth
from training.records import Label as LabelRecord
from webapp.core import queue as hints
from webapp.judgments import games
from webapp.judgments.annotating.services import store_labels
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Judgment
from webapp.judgments.naming import numbers_in
from webapp.judgments.queues import progress
from webapp.judgments.queues.views import FromBothEnds
from webapp.judgments.results import analyses, background, queue_agreement, withheld
from webapp.scenarios.models import StoredConversation
from worker.tasks import judged_results

pytestmark = pytest.mark.django_db


def label_type(name, kind, about, **fields):
    return {"name": name, "title": name.title(), "kind": kind, "about": about, "definition": "?", "required": False,
            **fields}  # fmt: skip


OPTIONS = [{"name": name, "title": name.upper()} for name in ("a", "b", "c")]
TYPES = [
    label_type("fair", "yes_no", "game"),
    label_type("mood", "scale", "game", low=1, high=5),
    label_type("points", "scale", "game", low=0, high=100),
    label_type("style", "one_of", "game", options=OPTIONS),
    label_type("tactics", "many_of", "game", options=OPTIONS),
    label_type("offer", "yes_no", "turn"),
    label_type("number", "span", "span"),
    label_type("answers", "relation", "pair"),
    label_type("order", "ranking", "game"),
    label_type("note", "text", "game"),
]


def queue_over(owner, annotators, count, types=TYPES):
    """A queue of whole games under a codebook of these types; nothing is judged."""
    version = codebooks.save_codebook(name="every-kind", title="Every kind", labels=types, by=owner)
    asked = codebooks.save_codebook(name="plain", title="Plain", labels=TYPES[:1] + TYPES[5:7], by=owner)
    stored = imported(owner, *(conversation(number) for number in range(count)))
    queue = conversation_queue(owner, stored, annotators, codebook=asked.codebook.name)
    queue.codebook_version = version
    queue.save()
    queue.targets.update(turns=[0, 1])
    return queue


def judge(target, author, values, marks=(), decides=False):
    """Store a judgment with values about the game and these further labels; None: it could not be scored."""
    labels = [LabelRecord(label=name, value=value) for name, value in (values or {}).items() if value is not None]
    row = Judgment.objects.create(
        target=target, author=author, codebook_version=target.queue.codebook_version, updated_at=timezone.now(),
        unscored=values is None, reason="" if values is not None else "cut off", decides=decides,
        **games.reference(target.game),
    )  # fmt: skip
    store_labels(row, [*labels, *marks])
    return row


def by_definition(units, distance):
    """1 - observed / expected disagreement from the coincidence matrix (Krippendorff 2011, section A)."""
    coincidences = {}
    for values in ([value for value in unit if value is not None] for unit in units):
        for a, b in permutations(values, 2):
            coincidences[a, b] = coincidences.get((a, b), 0.0) + 1 / (len(values) - 1)
    counts = {}
    for (a, _), times in coincidences.items():
        counts[a] = counts.get(a, 0.0) + times
    total = sum(counts.values())
    apart = {(a, b): distance(a, b, counts) for a in counts for b in counts}
    observed = sum(times * apart[pair] for pair, times in coincidences.items()) / total
    expected = sum(counts[a] * counts[b] * apart[a, b] for a, b in apart) / (total * (total - 1))
    return 1 - observed / expected


def nominal(a, b, counts):
    return float(a != b)


def interval(a, b, counts):
    return (a - b) ** 2


def ordinal(a, b, counts):
    low, high = min(a, b), max(a, b)
    return (sum(n for value, n in counts.items() if low <= value <= high) - (counts[low] + counts[high]) / 2) ** 2


def masi(a, b, counts):
    if a == b:
        return 0.0
    return 1 - (2 / 3 if a < b or b < a else 1 / 3) * len(a & b) / len(a | b)


@pytest.fixture
def drawn(researcher, person):
    """Nine games that three people judged by chance, with gaps; returns the queue, and the values by label type."""
    people = [person("annotator", f"annotator-{number}") for number in "abc"]
    queue = queue_over(researcher, people, 9)
    draw = random.Random(5)
    values = {name: [] for name in ("fair", "mood", "points", "style", "tactics", "offer")}
    for place, target in enumerate(queue.targets.order_by("position")):
        rows = []
        for number, annotator in enumerate(people):
            if (place + number) % 7 == 6:  # not judged
                continue
            row = {
                "fair": draw.random() < 0.6, "mood": float(draw.randint(1, 5)), "points": float(draw.randint(0, 100)),
                "style": draw.choice("abc"), "tactics": tuple(sorted(draw.sample("abc", draw.randint(0, 3)))),
                "order": (0, 1) if draw.random() < 0.5 else (1, 0), "note": f"note {number}",
            }  # fmt: skip
            row = {**row, "mood": None if (place, number) == (2, 1) else row["mood"]}
            turns = [turn for turn in (0, 1) if draw.random() < 0.5]
            stored = {**row, "tactics": row["tactics"] or None}
            judge(target, annotator, stored, [LabelRecord(label="offer", value=True, turn=turn) for turn in turns])
            rows.append({**row, "tactics": frozenset(row["tactics"]), "offer": turns})
        for name in ("fair", "mood", "points", "style"):
            values[name].append([row[name] for row in rows])
        if any(row["tactics"] for row in rows):
            values["tactics"].append([row["tactics"] for row in rows])
        values["offer"] += [[turn in row["offer"] for row in rows] for turn in (0, 1)]
    return queue, values


def result_of(queue):
    return analyses.of_queue(queue, "agreement").result


DISTANCES = {"fair": nominal, "mood": ordinal, "points": interval, "style": nominal, "tactics": masi, "offer": nominal}


def test_alpha_is_the_definition_at_the_level_of_each_kind(drawn):
    queue, values = drawn
    labels = {label.title: label for label in result_of(queue).labels}
    for name, distance in DISTANCES.items():
        label = labels[name.title()]
        assert label.coefficients[0].name == "krippendorff"
        assert label.coefficients[0].value == pytest.approx(by_definition(values[name], distance), abs=1e-9), name
    levels = {name: labels[name.title()].level for name in DISTANCES}
    assert levels == {"fair": "nominal", "mood": "ordinal", "points": "interval", "style": "nominal",
                      "tactics": "sets", "offer": "nominal"}  # fmt: skip
    option = [[value is not None and "b" in value for value in unit] for unit in values["tactics"]]
    assert labels["Tactics: B"].coefficients[0].value == pytest.approx(by_definition(option, nominal), abs=1e-9)


def test_a_text_has_no_coefficient(drawn, client_of, researcher):
    queue, _ = drawn
    note = next(label for label in result_of(queue).labels if label.label == "note")
    assert (note.coefficients, note.pairs) == ((), ())
    page = client_of(researcher).get(reverse("judgments:agreement", args=[queue.pk])).content.decode()
    assert "No coefficient is computed for free text." in page


def test_two_annotators_by_hand(researcher, annotator):
    """Four games: yes-yes, yes-no, no-no, no-no. Observed 3/4; by chance 2/4 · 1/4 + 2/4 · 3/4 = 1/2: kappa 1/2.

    Alpha: 8 values, 3 yes: observed disagreement 2/8, expected 2 · 3 · 5 / (8 · 7) = 30/56: 1 - 14/30 = 8/15. Fleiss:
    chance (3/8)² + (5/8)² = 34/64: (48/64 - 34/64) / (30/64) = 7/15. AC1: chance 2 · 3/8 · 5/8 = 30/64: 18/34.
    """
    queue = queue_over(researcher, [researcher, annotator], 4)
    for target, (a, b) in zip(queue.targets.order_by("position"), ((1, 1), (1, 0), (0, 0), (0, 0)), strict=True):
        judge(target, annotator, {"fair": bool(a)})
        judge(target, researcher, {"fair": bool(b)})
    result = result_of(queue)
    assert result.annotators == (1, 2), "in the order of their first judgment"
    fair = result.labels[0]
    overall = {each.name: (each.value, each.units, each.games) for each in fair.coefficients}
    assert overall == {
        "krippendorff": (pytest.approx(8 / 15), 4, 4), "fleiss": (pytest.approx(7 / 15), 4, 4),
        "gwet": (pytest.approx(18 / 34), 4, 4), "percent": (0.75, 4, 4),
    }  # fmt: skip
    (pair,) = fair.pairs
    assert (pair.first, pair.second) == (1, 2)
    assert {each.name: each.value for each in pair.coefficients} == {
        "krippendorff": pytest.approx(8 / 15), "cohen": pytest.approx(0.5), "percent": 0.75,
    }  # fmt: skip


def test_every_coefficient_has_a_title():
    assert {*queue_agreement.TITLES} == {*get_args(Coefficient)}


def test_marks_by_hand(researcher, annotator):
    """Of two games: spans 0-3 and 12-15 against 1-4 alone, F1 2·1/3; and nobody marks. One of two pairs of turns is
    shared: F1 2·1/3. Three turns in order against the first two swapped: of three pairs two agree, tau 1/3.
    """
    queue = queue_over(researcher, [researcher, annotator], 2)
    first, second = queue.targets.order_by("position")
    span = {"label": "number", "turn": 1}
    judge(first, annotator, {"order": (0, 1, 2)},
          [LabelRecord(**span, start=0, end=3), LabelRecord(**span, start=12, end=15),
           LabelRecord(label="answers", turn=1, other_turn=0)])  # fmt: skip
    judge(first, researcher, {"order": (1, 0, 2)},
          [LabelRecord(**span, start=1, end=4), LabelRecord(label="answers", turn=1, other_turn=0),
           LabelRecord(label="answers", turn=0, other_turn=1)])  # fmt: skip
    for author in (annotator, researcher):
        judge(second, author, {"fair": True})
    labels = {label.label: label for label in result_of(queue).labels}
    values = {name: (labels[name].coefficients[0].value, labels[name].coefficients[0].games)
              for name in ("number", "answers", "order")}  # fmt: skip
    assert values == {name: (pytest.approx(value), 1) for name, value in
                      (("number", 2 / 3), ("answers", 2 / 3), ("order", 1 / 3))}  # fmt: skip
    assert [each.name for each in labels["number"].coefficients] == ["overlap_f1", "unitizing_alpha", "gamma"]
    assert all(each.value < 1 for each in labels["number"].coefficients)


def test_targets_on_which_annotators_disagree_come_in_the_order_of_how_much(researcher, annotator):
    """fair differs (1), mood by 1 of 4 (1/4): mean 5/8; mood alone by 4 of 4, fair equal: 1/2; nothing differs; one
    could not score: 1.
    """
    queue = queue_over(researcher, [researcher, annotator], 4)
    answers = [
        ({"fair": True, "mood": 1.0}, {"fair": False, "mood": 2.0}),
        ({"fair": True, "mood": 1.0}, {"fair": True, "mood": 5.0}),
        ({"fair": True, "mood": 1.0}, {"fair": True, "mood": 1.0}),
        ({"fair": True}, None),
    ]
    targets = list(queue.targets.order_by("position"))
    for target, (a, b) in zip(targets, answers, strict=True):
        judge(target, researcher, a)
        judge(target, annotator, b)
    result = analyses.of_queue(queue, "disagreement").result
    assert result.targets == (targets[3].pk, targets[0].pk, targets[1].pk)
    assert result.scores == (1.0, 0.625, 0.5)


@pytest.mark.parametrize("name", analyses.KINDS)
def test_every_analysis_is_kept_until_a_judgment_changes(drawn, researcher, annotator, monkeypatch, name):
    queue, kind = drawn[0], replace(analyses.KINDS[name], few=100)
    monkeypatch.setitem(analyses.KINDS, name, kind)
    cache.clear()
    computed = analyses.of_queue(queue, name, researcher)
    assert computed.current
    assert kind.record.from_dict(computed.result.to_dict()) == computed.result
    monkeypatch.setitem(analyses.KINDS, name, replace(kind, compute=lambda *_: pytest.fail("computed again")))
    assert analyses.of_queue(queue, name, researcher) == computed
    monkeypatch.setitem(analyses.KINDS, name, replace(kind, few=0))
    monkeypatch.setattr(hints, "publish", lambda *_, **__: True)
    judge(queue.targets.last(), annotator, {"fair": True})
    after = analyses.of_queue(queue, name, researcher)
    assert (after.current, after.result) == (False, computed.result)
    assert kind.by_reader or computed.result.without(()) == computed.result


def test_a_truth_without_a_method_of_this_release_is_computed_again(drawn, monkeypatch):
    queue, _ = drawn
    monkeypatch.setitem(analyses.KINDS, "truth", replace(analyses.KINDS["truth"], few=100))
    analyses.of_queue(queue, "truth")
    monkeypatch.setitem(truth.METHODS, "other", truth.Method("Other", truth.majority))
    (first, *_) = analyses.of_queue(queue, "truth").result.labels
    assert [method.name for method in first.methods] == list(truth.METHODS)


def test_what_is_withheld_by_keys_is_what_may_not_be_read(researcher, other_researcher, annotator):
    """Somebody who judged the first of two games may read of that game alone."""
    queue = queue_over(researcher, [other_researcher, annotator], 2)
    first, second = queue.targets.order_by("position")
    judge(first, other_researcher, {"fair": True})
    for target in (first, second):
        judge(target, annotator, {"fair": False})
    hidden = withheld.of_reader(queue, other_researcher)
    read = {row.target for row in withheld.readable(queue, other_researcher, hidden)}
    assert read == {row.target for row in Judgment.objects.readable_by(other_researcher)} == {first}
    assert withheld.of_reader(queue, researcher) == withheld.NOTHING


def test_what_is_withheld_of_a_copy_is_what_may_not_be_read(researcher, other_researcher, annotator):
    """Somebody who has yet to judge a copy of the second game may not read of that game, nor of its only seat."""
    queue = queue_over(researcher, [annotator], 3)
    rows = [judge(target, annotator, {"fair": True}) for target in queue.targets.order_by("position")]
    copies = imported(researcher, conversation(1), name="copies")
    waiting = conversation_queue(researcher, copies, [other_researcher], codebook="plain")
    awaited = withheld.awaited_by(other_researcher)
    assert awaited.queues == {waiting.pk}
    hidden = withheld.of_reader(queue, other_researcher)
    assert hidden == withheld.of_reader(queue, other_researcher, awaited) == withheld.Withheld(frozenset({rows[1].pk}))
    assert set(Judgment.objects.readable_by(other_researcher)) == {rows[0], rows[2]}


@pytest.mark.parametrize(
    "awaited_seat, seat, withheld_from", [(0, 0, True), (0, 1, False), (None, 1, True), (1, None, True)]
)
def test_a_seat_is_withheld_with_its_whole_game(researcher, annotator, awaited_seat, seat, withheld_from):
    queue = queue_over(researcher, [annotator], 1)
    queue.targets.update(seat=seat)
    (target,) = queue.targets.all()
    names = {target.conversation.episode_sha256: frozenset({awaited_seat})}
    assert withheld.Awaited(frozenset(), names).among(queue.targets.all()) == ({target.pk} if withheld_from else set())


def test_the_tally_of_a_queue_has_the_state_of_its_judgments(researcher, annotator):
    """The page counts once for itself and for its analysis: after each of these, both are the same."""
    queue = queue_over(researcher, [annotator], 3)
    first, second, third = queue.targets.order_by("position")
    states = []

    def counted():
        tally = progress.tally(queue, progress.tally_targets(queue))
        assert analyses.state_of_authors(queue, tally.state) == analyses.state_of_authors(queue)
        assert tally.numbers == numbers_in(queue.pk)
        _, of_queues = progress.own_work([queue], withheld.Awaited(), queue.owner)
        assert of_queues == {queue.pk: analyses.state_of_annotators(queue)}
        states.append(tally.state)
        return tally

    assert (counted().scored, states[0]["count"], states[0]["newest"]) == (0, 0, None)
    row = judge(first, annotator, {"fair": True})
    judge(second, annotator, None)
    judge(third, researcher, {"fair": False})
    assert (counted().scored, states[-1]["count"]) == (2, 3)
    Judgment.objects.filter(pk=row.pk).update(updated_at=timezone.now())
    assert counted().state["last"] > states[-2]["last"]
    judge(first, researcher, {"fair": False}, decides=True)
    assert (counted().decided, states[-1]["decisions"]) == (1, 1)
    StoredConversation.objects.filter(pk=third.conversation_id).update(withdrawn_at=timezone.now())
    assert (counted().scored, states[-1]["count"]) == (2, 3), "two of the first game, one that could not be scored"
    assert counted().numbers == {annotator.pk: 1, researcher.pk: 2}, "also whose only game was withdrawn"
    states.pop()
    assert progress.tally_targets(queue).gold == 0
    queue.targets.filter(pk=second.pk).update(gold=True)
    assert progress.tally_targets(queue).gold == 1
    row.delete()
    assert counted().state["count"] == 2
    assert len({repr(state) for state in states}) == len(states)


def test_pages_of_judgments_are_read_from_the_nearer_end(researcher, annotator):
    queue = queue_over(researcher, [annotator], 7)
    rows = [judge(target, annotator, {"fair": True}).pk for target in queue.targets.order_by("position")]
    keys = FromBothEnds(withheld.readable(queue, researcher, withheld.NOTHING), len(rows))
    pages = Paginator(keys, 3)
    assert [list(pages.page(number)) for number in pages.page_range] == [rows[:3], rows[3:6], rows[6:]]


def test_decisions_have_no_part_in_agreement(researcher, annotator):
    queue = queue_over(researcher, [researcher, annotator], 2)
    for target in queue.targets.all():
        judge(target, annotator, {"fair": target.position == 0})
        judge(target, researcher, {"fair": target.position == 0})
    before = result_of(queue)
    assert before.labels[0].coefficients[0].value == 1
    judge(queue.targets.first(), researcher, {"fair": False}, decides=True)
    assert result_of(queue) == before


def test_agreement_over_time_is_by_week_or_by_batch(researcher, annotator):
    queue = queue_over(researcher, [researcher, annotator], 4)
    targets = list(queue.targets.order_by("position"))
    for target in targets:
        for author in (researcher, annotator):
            judge(target, author, {"fair": target.position % 2 == 0})
    Judgment.objects.filter(target__in=targets[2:]).update(created_at="2026-01-07T12:00:00Z")  # a Wednesday
    Judgment.objects.filter(target__in=targets[:2]).update(created_at="2026-01-19T00:00:00Z")  # a Monday
    cache.clear()
    result = result_of(queue)
    periods = [(each.title, each.coefficient.value, each.coefficient.games) for each in result.labels[0].periods]
    assert (result.by, periods) == ("week", [("2026-01-05", 1.0, 2), ("2026-01-19", 1.0, 2)])
    queue.targets.filter(position__gt=2).update(batch=2)
    cache.clear()
    result = result_of(queue)
    periods = [(each.title, each.coefficient.value, each.coefficient.games) for each in result.labels[0].periods]
    assert (result.by, periods) == ("batch", [("1", 1.0, 3), ("2", None, 1)])


@pytest.fixture
def sent(monkeypatch):
    calls = []
    monkeypatch.setattr(judged_results, "close_old_connections", lambda: None)  # of this test, whose rows would be lost
    monkeypatch.setattr(hints, "publish", lambda task, *args, **options: calls.append((task.name, args)) or True)
    return calls


def test_a_large_queue_waits_for_a_worker_and_shows_the_last_result_meanwhile(
    drawn, client_of, researcher, annotator, sent, monkeypatch
):
    queue, _ = drawn
    cache.clear()
    monkeypatch.setattr(background, "FEW", 0)
    client, address = client_of(researcher), reverse("judgments:agreement", args=[queue.pk])
    page = client.get(address).content.decode()
    assert "A worker is computing the results" in page
    assert "every 3s" in page
    client.get(address)
    assert sent == [("judgments.analyse_queue", (queue.pk, "agreement"))], "it is asked once"
    judged_results.analyse_queue(queue.pk, "agreement")
    page = client.get(address).content.decode()
    assert "every 3s" not in page
    assert "1 and 2" in page
    judge(queue.targets.first(), annotator, {"fair": True})
    page = client.get(address).content.decode()
    assert "Judgments have changed" in page
    assert "1 and 2" in page


def test_progress_and_failures_are_shown(drawn, client_of, researcher, sent, monkeypatch):
    queue, _ = drawn
    cache.clear()
    monkeypatch.setattr(background, "FEW", 0)
    client, address = client_of(researcher), reverse("judgments:agreement", args=[queue.pk])
    seen = []

    def compute(queue, report, _withheld):
        report(3, 7)
        seen.append(client.get(address).content.decode())
        raise ArithmeticError

    broken = analyses.Kind(queue_agreement.QueueAgreement, analyses.state_of_people, compute)
    monkeypatch.setitem(analyses.KINDS, "agreement", broken)
    with pytest.raises(ArithmeticError):
        judged_results.analyse_queue(queue.pk, "agreement")
    assert "3 of 7" in seen[0]
    assert "could not be computed" in client.get(address).content.decode()
    assert sent == [], "a failed analysis is not tried again at once"


def test_annotators_are_numbers_for_who_may_change_the_queue_too(drawn, client_of, other_researcher):
    queue, _ = drawn
    address = reverse("judgments:agreement", args=[queue.pk])
    for user in (queue.owner, other_researcher):
        page = client_of(user).get(address).content.decode()
        assert "1 and 2" in page
        assert "annotator-a" not in page


def test_who_has_a_seat_left_reads_nothing_of_the_others(drawn, client_of, researcher, other_researcher):
    queue, _ = drawn
    address = reverse("judgments:agreement", args=[queue.pk])
    queue.annotators.add(other_researcher)
    page = client_of(other_researcher).get(address).content.decode()
    assert "once you have judged your remaining seats" in page
    assert "1 and 2" not in page
    other = conversation_queue(researcher, queue.targets.first().conversation.scenario.version, [researcher])
    page = client_of(researcher).get(address).content.decode()
    assert f'remaining seats of <a href="{reverse("judgments:annotate", args=[other.pk])}">' in page
    assert "1 and 2" not in page


def test_the_api_gives_the_agreement_to_who_may_read_it(drawn, researcher, annotator, other_researcher):
    queue, _ = drawn
    address = f"judgments/queues/{queue.pk}/agreement"
    answer = Caller(researcher).get(address).json()
    order = analyses.of_queue(queue, "disagreement").result
    disagreements = [list(row) for row in zip(order.targets, order.scores, strict=True)]
    assert (answer["state"], answer["result"]) == (
        "ready",
        result_of(queue).to_dict() | {"disagreements": disagreements},
    )
    assert Caller(annotator).get(address).status_code == 404
    queue.annotators.add(other_researcher)
    refused = Caller(other_researcher).get(address)
    assert (refused.status_code, "remaining seats" in refused.json()["why"]) == (409, True)
