"""Tags, notes, groups, pins, the archive and the columns of the list, and the list as CSV."""

import csv
import io
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.runs.making import CONFIG, estimate, make_run
from training.errors import BadInput
from webapp.runs.models import Metric, Run
from webapp.runs.organising import columns, services

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


def listed(client: Client, **query: str) -> str:
    return client.get(reverse("runs:list"), query).content.decode()


def test_tags_are_each_once_in_order_and_limited() -> None:
    assert services.tags_of(" b, a ,a,, two  words") == ["a", "b", "two words"]
    with pytest.raises(BadInput, match="at most 20 tags, not 21"):
        services.tags_of(",".join(str(number) for number in range(21)))
    with pytest.raises(BadInput, match="at most 40 characters"):
        services.tags_of("x" * 41)


def test_tags_group_and_note_are_edited_in_place_as_text(client: Client, researcher: Any) -> None:
    run = make_run(researcher)
    address = reverse("runs:about", args=[run.pk])
    assert "<html" not in client.get(address, headers={"hx-request": "true"}).content.decode()
    data = {"tags": "late, <b>", "group": " my  group ", "note": "<script>x</script>"}
    answer = client.post(address, data, headers={"hx-request": "true"}).content.decode()
    assert "&lt;script&gt;x" in answer
    assert "<script" not in answer
    run.refresh_from_db()
    assert (run.tags, run.group, run.note) == (["<b>", "late"], "my group", "<script>x</script>")
    refused = client.post(address, {"tags": ",".join(map(str, range(30)))})
    assert refused.status_code == 400
    assert "at most 20 tags" in refused.content.decode()


def test_the_list_filters_by_tag_and_group(client: Client, researcher: Any) -> None:
    make_run(researcher, name="alpha", tags=["good"], group="seeds")
    make_run(researcher, name="beta")
    assert "beta" not in listed(client, tag="good")
    assert "beta" not in listed(client, group="seeds")
    assert "alpha" in listed(client, tag="good", group="seeds")
    assert "No run matches" in listed(client, tag="goo")


def test_an_archived_run_is_hidden_until_it_is_asked_for(client: Client, researcher: Any) -> None:
    run, other = make_run(researcher, name="alpha"), make_run(researcher, name="beta")
    client.post(reverse("runs:archive", args=[run.pk]))
    assert "alpha" not in listed(client)
    assert "beta" not in listed(client, archive="only")
    assert all(name in listed(client, archive="all") for name in ("alpha", "beta"))
    client.post(reverse("runs:bulk"), {"action": "restore", "run": [run.pk, other.pk]})
    assert "alpha" in listed(client)
    running = make_run(researcher, state="running")
    with pytest.raises(BadInput, match="only a run that is over"):
        services.archive(run=running, archived=True)


def test_pinned_runs_come_first_for_their_person_alone(
    client: Client, researcher: Any, other_researcher: Any, client_of: Callable[..., Client]
) -> None:
    old, new = make_run(researcher, name="aged"), make_run(researcher, name="fresh")
    before = listed(client)
    assert before.index("fresh") < before.index("aged")
    client.post(reverse("runs:pin", args=[old.pk]))
    after = listed(client)
    assert after.index("aged") < after.index("fresh")
    other = listed(client_of(other_researcher))
    assert other.index("fresh") < other.index("aged")
    client.post(reverse("runs:pin", args=[old.pk]), {"pinned": "0"})
    assert not old.pins.exists()
    assert new.pk


def test_selected_runs_get_a_tag_and_a_group(client: Client, researcher: Any, other_researcher: Any) -> None:
    mine, others = make_run(researcher, tags=["a"]), make_run(other_researcher)
    client.post(reverse("runs:bulk"), {"action": "tag", "tag": "b", "run": [mine.pk, others.pk]})
    client.post(reverse("runs:bulk"), {"action": "group", "group": "g", "run": [mine.pk, others.pk]})
    values = dict(Run.objects.values_list("pk", "tags"))
    assert values == {mine.pk: ["a", "b"], others.pk: []}
    assert dict(Run.objects.values_list("pk", "group")) == {mine.pk: "g", others.pk: ""}


@pytest.mark.parametrize(
    "column, good",
    [
        ("state", True),
        ("metric:reward", True),
        ("metric:nashconv/kuhn_poker", True),
        ("config:learn.steps", True),
        ("config:suite.tasks.0.name", True),
        ("password", False),
        ("config:", False),
        ("config:a__b", False),
        ("config:a..b", False),
        ("metric:a__b", False),
        ("owner__password", False),
    ],
)
def test_a_column_is_a_standard_one_a_metric_or_a_field(column: str, good: bool) -> None:
    assert columns.valid(column) is good


def choose(client: Client, action: str, column: str = "name") -> None:
    assert client.post(reverse("runs:columns"), {"action": action, "column": column}).status_code == 302


@pytest.fixture
def two(client: Client, researcher: Any) -> tuple[Run, Run]:
    """Two runs with a column of the configuration and one of a metric: 9 < 10 as numbers, not as text."""
    made = []
    for name, steps, reward in (("few", 9, 0.75), ("many", 10, 0.25)):
        run = make_run(researcher, name=name, config={**CONFIG, "learn": {"steps": steps}})
        for step, value in ((1, 0.5), (2, reward)):
            Metric.objects.create(run=run, step=step, fence=1, at="2026-01-01T00:00:00Z", values={"reward": value})
        made.append(run)
    for column in ("config:learn.steps", "metric:reward"):
        choose(client, "add", column)
    return made[0], made[1]


def test_columns_are_added_moved_removed_and_reset(client: Client, researcher: Any, two: object) -> None:
    choose(client, "up", "metric:reward")
    assert columns.of(researcher)[-2:] == ["metric:reward", "config:learn.steps"]
    choose(client, "down", "metric:reward")
    choose(client, "remove", "trend")
    assert columns.of(researcher)[-3:] == ["age", "config:learn.steps", "metric:reward"]
    page = client.get(reverse("runs:columns")).content.decode()
    assert '<option value="trend">Trend</option>' in page
    assert client.post(reverse("runs:columns"), {"action": "add", "column": "password"}).status_code == 404
    choose(client, "reset")
    assert columns.of(researcher) == list(columns.DEFAULT)


@pytest.mark.parametrize("column", ["config:learn.steps", "metric:reward"])
def test_every_chosen_column_sorts_by_its_numbers(client: Client, two: object, column: str) -> None:
    up, down = listed(client, sort=column), listed(client, sort=f"-{column}")
    assert (up.index(">few<") < up.index(">many<")) is (column == "config:learn.steps")
    assert (down.index(">few<") < down.index(">many<")) is (column == "metric:reward")


def test_the_file_of_the_list_is_what_the_list_shows(client: Client, two: tuple[Run, Run]) -> None:
    for column in columns.DEFAULT:
        if column != "name":
            choose(client, "remove", column)
    Run.objects.filter(pk=two[1].pk).update(name="=many")
    answer = client.get(reverse("runs:list-csv"), {"sort": "config:learn.steps"})
    rows = list(csv.reader(io.StringIO(answer.getvalue().decode(), newline="")))  # type: ignore[attr-defined]
    assert rows == [
        ["id", "Name", "learn.steps", "Reward"],
        [str(two[0].pk), "few", "9", "0.75"],
        [str(two[1].pk), "'=many", "10", "0.25"],
    ]
    only = client.get(reverse("runs:list-csv"), {"q": "few"}).getvalue().decode()  # type: ignore[attr-defined]
    assert only.count("\n") == 2


@pytest.mark.parametrize("amount", [1, 12])
def test_the_list_takes_as_many_queries_for_many_runs(
    client: Client, researcher: Any, two: object, amount: int, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    for number in range(amount):
        make_run(researcher, tags=[f"tag {number}"], group=f"group {number}")
    # session, person, columns, count, rows, last metrics, options
    with django_assert_max_num_queries(7):
        assert "group 0" in listed(client)


@pytest.mark.parametrize("amount", [1, 12])
def test_the_column_of_head_to_heads_takes_one_query(
    client: Client, researcher: Any, amount: int, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    lost = {"won": estimate(-0.25, -0.5, 0.0), "return": estimate(0.5, 0.25, 0.75)}
    for number in range(amount):
        make_run(researcher, name=f"run {number}", key_metric=0.5, result={"summary": {"difference": lost}})
    make_run(researcher, name="unmeasured", result={"exit": 0})
    choose(client, "add", "head_to_head")
    with django_assert_max_num_queries(7):  # session, person, columns, count, rows, head-to-heads, options
        shown = " ".join(listed(client).split())
    assert shown.count('-0.25 <small class="quiet">[-0.5, 0] games won</small>') == amount
    rows = list(csv.DictReader(io.StringIO(client.get(reverse("runs:list-csv")).getvalue().decode(), newline="")))  # type: ignore[attr-defined]
    assert {row["Name"]: row["Head-to-head"] for row in rows}["run 0"] == "-0.25"
    assert {row["Name"]: row["Head-to-head"] for row in rows}["unmeasured"] == ""


def test_deleting_says_what_goes_and_stays_apart_from_other_buttons(client: Client, researcher: Any) -> None:
    run = make_run(researcher)
    text = client.get(reverse("runs:detail", args=[run.pk]), {"tab": "curves"}).content.decode()
    actions = text[text.index('id="run-actions"') : text.index('id="run-about"')]
    assert "elete" not in actions
    dialog = text[text.index("<dialog") : text.index("</dialog>")]
    assert "cannot be brought back" in dialog
    assert "Stays:" in dialog
    assert reverse("runs:delete", args=[run.pk]) in dialog


def test_the_key_metric_is_shown(client: Client, researcher: Any) -> None:
    make_run(researcher, key_metric=0.4375)
    assert '<td class="number">0.438</td>' in listed(client)


def test_the_next_list_offers_once_to_undo_what_was_hidden(client: Client, researcher: Any) -> None:
    first, active = make_run(researcher, name="first"), make_run(researcher, name="active", state="running")
    page = client.post(
        reverse("runs:bulk"), {"action": "archive", "run": [first.pk, active.pk]}, follow=True
    ).content.decode()
    form = page.partition('aria-label="Undo"')[2].partition("</form>")[0]
    assert "1 archived" in form
    assert 'value="restore"' in form
    assert f'name="run" value="{first.pk}"' in form
    assert f'name="run" value="{active.pk}"' not in form, "it could not be archived"
    assert 'aria-label="Undo"' not in client.get(reverse("runs:list")).content.decode()


@pytest.mark.parametrize("action, back", [("archive", "restore"), ("pin", "unpin")])
def test_to_undo_leaves_what_was_so_before(client: Client, researcher: Any, action: str, back: str) -> None:
    before, now = make_run(researcher, name="before"), make_run(researcher, name="now")
    services.archive(run=before, archived=True)
    services.pin(run=before, user=researcher, pinned=True)
    before.refresh_from_db()
    page = client.post(
        reverse("runs:bulk"), {"action": action, "run": [before.pk, now.pk]}, follow=True
    ).content.decode()
    form = page.partition('aria-label="Undo"')[2].partition("</form>")[0]
    assert re.findall(r'name="run" value="(\d+)"', form) == [str(now.pk)]
    assert f'value="{back}"' in form
    assert Run.objects.get(pk=before.pk).archived_at == before.archived_at
    again = client.post(reverse("runs:bulk"), {"action": action, "run": [before.pk]}, follow=True).content.decode()
    assert 'aria-label="Undo"' not in again
