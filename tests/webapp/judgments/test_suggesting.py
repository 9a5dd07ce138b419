"""Suggestions of every source: what is replaced and kept, refusals, acceptance and rights; and classifiers."""

import json
import re
from pathlib import Path

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.rewards.test_judge import VALUES, answer
from tests.rewards.test_labels import INFO
from tests.webapp.judgments.make import conversation, conversation_queue, imported, version
from training.engines.base import ChatReply
from training.errors import BadInput
from training.labels.claims import Claim
from training.labels.codebooks import CODEBOOKS, Codebook
from training.labels.info import ClassifierInfo
from training.records import Judgment as JudgmentRecord
from training.records import Label as LabelRecord
from training.rewards.judge import Judge
from webapp.judgments import judging
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import Classifier, JudgeModel, Judgment, Label, Queue, Suggestion, SuggestionRun
from webapp.judgments.results import suggested
from webapp.judgments.suggesting import acceptance, claims, services, sources
from webapp.judgments.suggesting.forms import ClassifierForm
from webapp.judgments.suggesting.sources import Suggested
from webapp.serving.models import RemoteModel

pytestmark = pytest.mark.django_db

MOVES = [
    {"name": name, "title": name, "kind": "yes_no", "about": "turn", "definition": "A move.", "required": False}
    for name in ("offers", "rude")
]


class Scores:
    """A judge model with one value of the label goal for all seats; outside of 0 to 10 no answer can be used."""

    def __init__(self, *goals):
        self.goals = list(goals)

    async def reply(self, messages, sampling, seed=None):
        target, seat = re.search(r"Target (\w+), seat (\d+)", messages[-1].content).groups()
        return ChatReply(answer(VALUES | {"goal": self.goals[int(seat)]}, target, int(seat)), 1, 1)

    async def close(self):
        pass


def claims_queue(owner):
    return conversation_queue(owner, imported(owner, conversation(), name="c"), codebook="claims")


def moves_queue(owner):
    codebooks.save_codebook(name="moves", title="Moves", labels=MOVES, by=owner)
    return conversation_queue(owner, imported(owner, conversation(), conversation(1), name="m"), codebook="moves")


def trained(owner, name="moves"):
    """A classifier that is ready; its process is a stand-in of each test."""
    return Classifier.objects.create(
        name=name, owner=owner, codebook_version=version("moves"), state="ready", folder="classifiers/x",
        accuracy=INFO.to_dict(), trained_on={"base": "smollm2-135m", "queues": [], "versions": [], "sources": []},
    )  # fmt: skip


@pytest.fixture
def judge_model(admin, monkeypatch):
    remote = RemoteModel.objects.create(name="far", address="http://127.0.0.1:9/v1", model="m", added_by=admin)
    return JudgeModel.objects.create(name="far", remote=remote)


def labels_command(rows):
    """What the process would do: write these rows where the command says."""

    def run(arguments):
        assert arguments[:2] == ["labels", "label"]
        out = Path(arguments[arguments.index("--out") + 1])
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        return {}

    return run


def fill(queue, source, command=None):
    """Ask a source as a worker does, and return the finished run."""
    run = services.suggest(queue=queue, source=source)
    run = services.claim(waiting=SuggestionRun.objects.waiting(), pk=run.pk)
    services.fill(run=run, command=command or labels_command([]), leave=lambda: None)
    return SuggestionRun.objects.get(pk=run.pk)


def row(game, turn, **probabilities):
    seen = [name for name, value in probabilities.items() if value >= 0.5]
    return {"game": game, "scenario": "s", "turn": turn, "seat": 0, "labels": seen, "probabilities": probabilities}


@pytest.fixture
def cases(researcher, judge_model, monkeypatch):
    """For each kind of source: a queue, a name, what the process answers, and how many suggestions that makes."""
    monkeypatch.setattr(judging, "judge_client", lambda model: Judge(Scores(8, 3), "far"))
    seats = conversation_queue(researcher, imported(researcher, conversation(5), name="s"), codebook="sotopia")
    moves = moves_queue(researcher)
    trained(researcher)
    return {
        "rule": (claims_queue(researcher), "claims", labels_command([]), 0),
        "classifier": (moves, "moves", labels_command([row(0, 0, offers=0.9, rude=0.1), row(1, 1, offers=0.8)]), 2),
        "judge": (seats, "far", labels_command([]), 14),
    }


def test_every_source_suggests_and_judges_nothing(cases):
    assert set(cases) == set(sources.SOURCES)
    for kind, (queue, name, command, count) in cases.items():
        source = f"{kind}:{name}"
        assert source in sources.offered(queue)
        run = fill(queue, source, command)
        assert (run.state, run.done, run.refused) == ("ready", queue.targets.count(), [])
        assert {*run.answered} == {str(pk) for pk in queue.targets.values_list("pk", flat=True)}
        made = Suggestion.objects.filter(target__queue=queue)
        assert {each.source for each in made} <= {source}
        assert made.count() == count
        assert {each.name for each in made} <= sources.filled(source, queue.codebook_version.record())
        assert all(each.score is None or 0 <= each.score <= 1 for each in made)
        again = {each.pk for each in made}
        fill(queue, source, command)
        assert {each.pk for each in Suggestion.objects.filter(target__queue=queue)} == again
    assert not Judgment.objects.exists()


def test_a_rule_is_offered_asked_and_counted_by_its_entry(researcher, monkeypatch):
    def long(codebook, game):
        turns = game.turns_shown(hidden=True)
        return [LabelRecord(label="offers", value=True, turn=turn) for turn in turns if game.moves[turn].move.text]

    queue = moves_queue(researcher)
    codebook = queue.codebook_version.record()
    monkeypatch.setitem(sources.RULES, "length", sources.Rule(lambda codebook: {"offers"}, long))
    assert "rule:length" in sources.offered(queue)
    run = fill(queue, "rule:length")
    assert run.refused == []
    assert {(each.name, each.value) for each in Suggestion.objects.all()} == {("offers", True)}
    assert [each.name for each in suggested.known("rule:length", codebook, []).labels] == ["offers"]
    monkeypatch.delitem(sources.RULES, "length")
    assert suggested.known("rule:length", codebook, []) is None
    with pytest.raises(BadInput, match="no such rule"):
        next(sources.answers("rule:length", [], labels_command([])))


def test_a_source_replaces_its_own_suggestions_alone(researcher):
    queue = moves_queue(researcher)
    first = queue.targets.order_by("position")[0]
    offers, rude = LabelRecord(label="offers", value=True, turn=0), LabelRecord(label="rude", value=True, turn=1)
    services.replace(target=first, source="rule:other", labels=[Suggested(offers)])
    services.replace(target=first, source="classifier:a", labels=[Suggested(offers, 0.9), Suggested(rude, 0.6)])
    kept = first.suggestions.get(source="classifier:a", name="offers")
    services.replace(target=first, source="classifier:a", labels=[Suggested(offers, 0.7)])
    rows = {(each.source, each.name): each for each in first.suggestions.all()}
    assert set(rows) == {("rule:other", "offers"), ("classifier:a", "offers")}
    assert (rows["classifier:a", "offers"].pk, rows["classifier:a", "offers"].score) == (kept.pk, 0.7)


def test_an_answer_outside_of_the_codebook_is_refused_with_its_place(researcher, judge_model, monkeypatch):
    monkeypatch.setattr(judging, "judge_client", lambda model: Judge(Scores(8, 11), "far"))
    queue = conversation_queue(researcher, imported(researcher, conversation()), codebook="sotopia")
    second = queue.targets.get(seat=1)
    services.replace(
        target=second, source="judge:far", labels=[Suggested(LabelRecord(label="goal", value=2.0, seat=1))]
    )
    run = fill(queue, "judge:far")
    assert run.state == "ready"
    (refused,) = run.refused
    assert "conversation 1" in refused
    assert "seat 2" in refused
    assert "values.goal: not 0 to 10" in refused
    assert [each.value for each in second.suggestions.all()] == [2.0]  # as before: nothing lost, no default
    assert queue.targets.get(seat=0).suggestions.count() == 7


def test_a_label_of_a_turn_that_the_game_lacks_is_refused(researcher):
    queue = moves_queue(researcher)
    trained(researcher)
    run = fill(queue, "classifier:moves", labels_command([row(0, 99, offers=0.9), row(1, 0, offers=0.9)]))
    assert len(run.refused) == 1
    assert "there is no turn 100" in run.refused[0]
    assert run.answered == {str(queue.targets.get(position=1).pk): [0]}, "of the other there is no answer"
    assert Suggestion.objects.count() == 1


def test_what_the_process_refuses_fails_the_run_and_loses_nothing(researcher):
    queue = moves_queue(researcher)
    trained(researcher)
    fill(queue, "classifier:moves", labels_command([row(0, 0, offers=0.9)]))

    def damaged(arguments):
        raise BadInput("the checksum differs", "classifier.json")

    with pytest.raises(BadInput, match="checksum"):
        fill(queue, "classifier:moves", damaged)
    assert Suggestion.objects.count() == 1


def test_a_queue_that_asks_first_about_the_uncertain_follows_its_suggestions(researcher):
    queue = moves_queue(researcher)
    Queue.objects.filter(pk=queue.pk).update(order=Queue.Order.UNCERTAINTY)
    queue.refresh_from_db()
    trained(researcher)
    fill(queue, "classifier:moves", labels_command([row(0, 0, offers=0.9), row(1, 1, offers=0.6)]))
    # 1 − |2p − 1| is 0.2 for 0.9 and 0.8 for 0.6
    assert list(queue.targets.order_by("position").values_list("priority", flat=True)) == pytest.approx([0.2, 0.8])
    services.delete_suggestions(queue=queue, source="classifier:moves")
    assert set(queue.targets.values_list("priority", flat=True)) == {0.0}


def test_a_deleted_run_writes_nothing_more(researcher):
    queue = claims_queue(researcher)
    run = services.claim(
        waiting=SuggestionRun.objects.waiting(), pk=services.suggest(queue=queue, source="rule:claims").pk
    )
    services.delete_suggestions(queue=queue, source="rule:claims")
    with pytest.raises(services.Superseded):
        services.fill(run=run, command=labels_command([]), leave=lambda: None)


def test_claims_fill_the_three_forms_of_label_types():
    checked_claims = [
        Claim(move=0, seat=0, start=0, end=5, kind="role", statement="A is seer", verdict="true", why="w"),
        Claim(move=0, seat=0, start=9, end=12, kind="role", statement="B is wolf", verdict="false", why="v"),
        Claim(move=2, seat=1, start=1, end=4, kind="place", statement="C was there", verdict="unknowable", why="u"),
    ]
    spans = claims.labels_of(CODEBOOKS["claims"], checked_claims)
    assert [(each.label, each.turn, each.start, each.end) for each in spans] == [
        ("true_claim", 0, 0, 5), ("false_claim", 0, 9, 12), ("unknowable_claim", 2, 1, 4),
    ]  # fmt: skip
    options = [{"name": name, "title": name} for name in ("true", "false", "unknowable")]
    words = {"name": "claim", "title": "Claim", "kind": "span", "about": "span", "definition": "d"}
    choice = {"title": "V", "kind": "one_of", "definition": "d", "options": options}
    codebook = Codebook.from_dict(
        {
            "name": "x", "version": 1, "title": "X", "labels": [
                words,
                {**choice, "name": "verdict", "about": "span", "when": {"label": "claim"}},
                {**choice, "name": "worst", "about": "turn", "required": False},
            ],
        }
    )  # fmt: skip
    made = claims.labels_of(codebook, checked_claims)
    codebook.check(made, whole=False)
    values = [(each.label, each.value, each.turn, each.start) for each in made]
    assert [each for each in values if each[0] == "verdict"] == [
        ("verdict", "unknowable", 2, 1), ("verdict", "false", 0, 9), ("verdict", "true", 0, 0),
    ]  # fmt: skip
    assert [each[1:3] for each in values if each[0] == "worst"] == [("false", 0), ("unknowable", 2)]
    assert not claims.filled(CODEBOOKS["sotopia"])


def test_acceptance_counts_what_annotators_who_saw_them_did(researcher, annotator):
    queue = moves_queue(researcher)
    first = queue.targets.order_by("position")[0]
    turns = [LabelRecord(label="offers", value=True, turn=turn) for turn in range(3)]
    services.replace(target=first, source="classifier:a", labels=[Suggested(each, 0.9) for each in turns])
    by_turn = {each.turn: each for each in first.suggestions.all()}
    made = {"codebook_version": queue.codebook_version, "target": first, "conversation": first.conversation}
    seen = Judgment.objects.create(author=annotator, suggestions_shown=True, **made)
    Judgment.objects.create(author=researcher, **made)  # saw none: it dismissed none
    Label.objects.create(judgment=seen, name="offers", value=True, turn=0, suggestion=by_turn[0])
    Label.objects.create(judgment=seen, name="offers", value=False, turn=1, suggestion=by_turn[1])
    (report,) = acceptance.of_queue(queue)
    assert (report.accepted, report.corrected, report.dismissed, report.count) == (1, 1, 1, 3)
    assert report.share == pytest.approx(1 / 3)


def test_the_owner_reads_and_starts_suggestions_on_the_queues_page(client_of, researcher, other_researcher):
    queue = claims_queue(researcher)
    address = reverse("judgments:queue", args=[queue.pk])
    page = client_of(researcher).get(address).content.decode()
    assert "There are no suggestions yet." in page
    assert "tend to agree with them" in page
    assert "does not show suggestions to its annotators" in page
    assert 'value="rule:claims"' in page
    assert "Suggestions" not in client_of(other_researcher).get(address).content.decode()
    client_of(researcher).post(reverse("judgments:suggest", args=[queue.pk]), {"source": "rule:claims"})
    assert SuggestionRun.objects.get().state == "queued"
    Queue.objects.update(shows_suggestions=True)
    page = client_of(researcher).get(address).content.decode()
    assert "0 of 1" in page
    assert "This queue shows suggestions" in page
    refused = client_of(researcher).post(
        reverse("judgments:suggest", args=[queue.pk]), {"source": "judge:x"}, follow=True
    )
    assert "nothing to suggest" in refused.content.decode()
    deleted = client_of(researcher).post(
        reverse("judgments:suggestions-delete", args=[queue.pk]), {"source": "rule:claims"}, follow=True
    )
    assert deleted.status_code == 200
    assert not SuggestionRun.objects.exists()


def test_a_classifier_needs_labels_of_turns_and_a_prepared_model(researcher):
    queue = claims_queue(researcher)
    known = {"owner": researcher, "base": "tiny"}
    for change, where in (
        ({"codebook_version": version("sotopia"), "queues": [queue]}, "codebook_version"),
        ({"codebook_version": version("claims")}, "queues"),
        ({"codebook_version": version("claims"), "queues": [queue], "base": "/etc"}, "base"),
    ):
        with pytest.raises(BadInput) as error:
            services.create_classifier(name="x", **{**known, **change})
        assert error.value.where == where
    assert not Classifier.objects.exists()


def test_a_closed_dataset_version_is_not_offered_to_learn_from(researcher):
    marked = JudgmentRecord(
        codebook="negotiation-moves", codebook_version=1, episode="e", author="rater 1",
        labels=(LabelRecord(label="small_talk", value=True, turn=0),),
    )  # fmt: skip
    stored = imported(researcher, conversation(judgments=(marked,)))
    assert list(ClassifierForm(researcher).fields["versions"].queryset) == [stored]
    stored.closed_at = timezone.now()
    stored.save()
    assert list(ClassifierForm(researcher).fields["versions"].queryset) == []


def test_nobody_trains_a_classifier_on_labels_of_seats_that_they_have_yet_to_judge(researcher, monkeypatch):
    monkeypatch.setattr(services.runs, "unprepared", lambda base: "")
    queue = claims_queue(researcher)
    with pytest.raises(BadInput, match="judge your remaining seats first"):
        services.create_classifier(
            name="x", owner=researcher, codebook_version=version("claims"), queues=[queue], base="tiny"
        )
    assert not Classifier.objects.exists()


def test_the_page_of_a_classifier_shows_agreement_beside_what_needs_none(client_of, researcher):
    moves_queue(researcher)
    trained(researcher)
    page = client_of(researcher).get(reverse("judgments:classifier", args=["moves"])).content.decode()
    # INFO: F1 of offers 0.80 (0.70 to 0.90); of a yes to every turn 2·0.3/1.3 = 0.46; the majority is right in 0.70
    for text in ("0.80 (0.70–0.90)", "0.46", "0.70", "100 turns of 20 games", "classifier:moves"):
        assert text in page
    assert ClassifierInfo.from_dict(Classifier.objects.get().accuracy) == INFO
    listed = client_of(researcher).get(reverse("judgments:classifiers")).content.decode()
    assert "moves v1" in listed
