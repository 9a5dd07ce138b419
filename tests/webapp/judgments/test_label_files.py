"""Labels of a queue as files: the same bytes by page, API and command; nobody's name; and back again as datasets."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from tests.webapp.api.calling import Caller
from tests.webapp.judgments.make import FIVES, annotate, conversation, conversation_queue, imported, outside, version
from training.errors import BadInput
from training.labels.exchange import FORMATS
from training.records import Label as LabelRecord
from webapp.judgments.annotating import services as annotating
from webapp.judgments.datasets import files
from webapp.judgments.models import Judgment, Queue
from webapp.judgments.queues import services as queues
from webapp.scenarios.models import Dataset, StoredConversation

pytestmark = pytest.mark.django_db
CANARIES = ("canary-user", "canary@example.org", "canary-first")
MOVES = (LabelRecord(label="small_talk", value=True, turn=1), LabelRecord(label="no_need", value=True, turn=0))
every_format = pytest.mark.parametrize("name", FORMATS)


@pytest.fixture
def hidden(person):
    """An annotator whose name and address no file may hold."""
    user = person("annotator", CANARIES[0])
    user.email, user.first_name = CANARIES[1:]
    user.save()
    return user


@pytest.fixture
def queue(researcher, hidden):
    """Two conversations, judged under the codebook of moves: the first by two people, of whom one decides."""
    came = outside("CaSiNo", 0, FIVES, judged_at="2026-01-01T00:00:00+00:00")
    stored = imported(researcher, conversation(0, (came,)), conversation(1))
    made = conversation_queue(researcher, stored, [hidden], codebook="negotiation-moves")
    for target in made.targets.with_games():
        annotating.annotate(target=target, by=hidden, labels=MOVES[: 1 + target.position], reason="half sure")
    first = made.targets.get(position=0)
    Judgment.objects.filter(target=first).update(seconds=7.5, unsure=True, suggestions_shown=True)
    decision = Judgment.objects.create(
        target=first, author=researcher, decides=True, codebook_version=made.codebook_version,
        conversation=first.conversation,
    )  # fmt: skip
    assert decision.records() == ()
    return made


def written(queue, name, *options):
    out = StringIO()
    call_command("export_labels", queue.pk, "--format", name, *options, stdout=out, stderr=StringIO())
    return out.getvalue()


def to_file(queue, name, path, *options):
    written(queue, name, "--output", path, *options)
    return path.read_bytes()


@every_format
def test_page_api_and_command_write_the_same_and_no_name(client_of, researcher, queue, hidden, name, tmp_path):
    content = to_file(queue, name, tmp_path / "labels")
    page = client_of(researcher).get(reverse("judgments:queue-labels", args=[queue.pk]), {"format": name})
    assert b"".join(page.streaming_content) == content
    assert page["Content-Disposition"] == f'attachment; filename="labels-{queue.pk}.{FORMATS[name].suffix}"'
    answer = Caller(researcher).client.get(f"/api/v1/judgments/queues/{queue.pk}/labels?format={name}")
    assert b"".join(answer.streaming_content) == content
    assert not [canary for canary in (*CANARIES, researcher.username) if canary in content.decode()]
    assert b"person:1" in content
    assert b"person:2" in content
    assert b"half sure" in content
    assert not Queue.objects.get(pk=queue.pk).exported_at


def test_a_file_says_how_each_judgment_was_made(queue, tmp_path):
    first, second = (
        each for line in to_file(queue, "jsonl", tmp_path / "a").splitlines()
        for each in json.loads(line)["conversations"]
    )  # fmt: skip
    made = [
        tuple(each.get(name) for name in ("author", "seconds", "unsure", "suggestions_shown", "decides"))
        for each in first["judgments"]
    ]
    assert made == [
        ("person:1", 7.5, True, True, None), ("person:2", None, None, None, True), ("CaSiNo", None, None, None, None),
    ]  # fmt: skip
    assert [(each["author"], len(each["labels"])) for each in second["judgments"]] == [("person:1", 2)]


def test_a_file_of_lines_is_a_dataset_with_the_same_games_judgments_and_labels(queue, researcher, admin, tmp_path):
    """Nothing differs: a dataset version keeps the judgments as they are, and its rows have outside authors."""
    content = to_file(queue, "jsonl", tmp_path / "labels.jsonl")
    before = {(row.by, row.seat): row.records() for row in Judgment.objects.filter(target__position=1)}
    Judgment.objects.all().delete()
    queue.targets.all().delete()
    Dataset.objects.all().delete()
    call_command("import_dataset", "jsonl", tmp_path / "labels.jsonl", name="again", owner=admin.username,
                 stdout=StringIO())  # fmt: skip
    call_command("export_dataset", "again", output=tmp_path / "again.jsonl", stderr=StringIO())
    assert (tmp_path / "again.jsonl").read_bytes() == content
    rows = Judgment.objects.filter(conversation__position=1)
    assert [(row.outside_author, row.records()) for row in rows] == [("person:1", *before.values())]
    decided = Judgment.objects.get(decides=True)
    assert (decided.outside_author, decided.records(), decided.unscored) == ("person:2", (), False)
    shown = Judgment.objects.get(suggestions_shown=True)
    assert (shown.seconds, shown.unsure, shown.reason) == (7.5, True, "half sure")


def test_a_game_that_was_labelled_in_label_studio_joins_the_same_game(queue, admin, tmp_path):
    tasks = json.loads(to_file(queue, "label-studio", tmp_path / "tasks.json", "--config", tmp_path / "config.xml"))
    assert (tmp_path / "config.xml").read_text().startswith("<View>")
    annotation = tasks[1]["annotations"][0]
    assert annotation.pop("judgment")["author"] == "person:1"
    annotation |= {"completed_by": {"id": 4, "email": CANARIES[1]}, "updated_at": "2026-05-01T10:00:00Z"}
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    call_command("import_dataset", "label-studio", tmp_path / "tasks.json", "--codebook", "negotiation-moves",
                 name="back", owner=admin.username, stdout=StringIO())  # fmt: skip
    back = StoredConversation.objects.filter(scenario__version__dataset__name="back").order_by("position")
    original = StoredConversation.objects.filter(scenario__version__dataset__name="imported").order_by("position")
    assert [row.episode_sha256 for row in back] == [row.episode_sha256 for row in original]
    row = Judgment.objects.get(conversation=back[1])
    assert (row.outside_author, row.records(), row.reason) == ("label-studio:4", MOVES, "half sure")
    assert row.updated_at.isoformat() == "2026-05-01T10:00:00+00:00"
    assert CANARIES[1] not in json.dumps(back[1].judgments)


def test_nothing_is_told_to_those_who_have_yet_to_judge(client_of, queue, researcher):
    queue.annotators.add(researcher)
    address = reverse("judgments:queue-labels", args=[queue.pk])
    refused = client_of(researcher).get(address, {"format": "csv"}, follow=True)
    assert refused.redirect_chain == [(reverse("judgments:queue", args=[queue.pk]), 302)]
    assert "judge your remaining seats first" in refused.content.decode()
    assert "Download labels" not in refused.content.decode()
    answer = Caller(researcher).client.get(f"/api/v1/judgments/queues/{queue.pk}/labels")
    assert (answer.status_code, "judge your remaining seats" in answer.json()["why"]) == (409, True)


def test_the_page_offers_every_format(client_of, researcher, queue):
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert all(f'<option value="{name}">{fmt.title}</option>' in page for name, fmt in FORMATS.items())
    wrong = client_of(researcher).get(
        reverse("judgments:queue-labels", args=[queue.pk]), {"format": "<b>"}, follow=True
    )
    assert "unknown format" in wrong.content.decode()
    assert "<b>" not in wrong.content.decode().split("unknown format")[1][:20]


def test_the_api_refuses_unknown_formats(researcher, queue):
    answer = Caller(researcher).client.get(f"/api/v1/judgments/queues/{queue.pk}/labels?format=xml")
    assert answer.status_code == 422
    assert Caller(researcher).client.get("/api/v1/judgments/queues/0/labels").status_code == 404


@pytest.mark.parametrize(
    "options, why",
    [
        (["--format", "xml"], f"unknown format 'xml'; known: {', '.join(FORMATS)}"),
        (["--output", "none/there.jsonl"], "cannot be written"),
        (["--output", "."], "is not a file"),
        (["--output", "kept"], "exists already; --force replaces it"),
        (["--config", "new.xml"], "only label-studio"),
    ],
)
def test_the_command_refuses_and_changes_nothing(queue, tmp_path, monkeypatch, options, why):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept").write_text("as it was")
    with pytest.raises(CommandError, match=why) as error:
        written(queue, "jsonl", *options)
    assert error.value.returncode == 2
    assert (tmp_path / "kept").read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_an_unknown_queue_and_a_queue_without_judgments_are_refused(researcher, annotator):
    with pytest.raises(CommandError, match="there is no queue 987"):
        call_command("export_labels", 987)
    stored = imported(researcher, conversation(0))
    empty = conversation_queue(researcher, stored, [annotator])
    with pytest.raises(BadInput, match=r"no judged game may be exported \(imported v1.*: not scored"):
        files.labels_of(empty, FORMATS["csv"], None)


def test_a_judgment_that_is_made_while_a_file_is_written_is_not_part_of_it(researcher, annotator, other_researcher):
    """Its author has no number yet, and the number of an account is no pseudonym."""
    stored = imported(researcher, conversation(0), conversation(1))
    queue = queues.create_queue(
        name="two", owner=researcher, codebook_version=version(), annotators=[annotator, other_researcher],
        conversations=StoredConversation.objects.filter(scenario__version=stored).order_by("position"),
    )  # fmt: skip
    for target in queue.targets.with_games():
        annotate(target=target, by=annotator, values=FIVES)
    labels = files.labels_of(queue, FORMATS["jsonl"], None)
    for target in queue.targets.with_games():
        annotate(target=target, by=other_researcher, values=FIVES)
    text = "".join(labels.pieces())
    assert text.count('"author":"person:') == text.count('"author":"person:1"') == queue.targets.count()
    assert '"author":"person:2"' in "".join(files.labels_of(queue, FORMATS["jsonl"], None).pieces())
