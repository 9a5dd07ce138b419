"""Report pages: Markdown without markup of its own, numbers pinned with their provenance, charts, permissions."""

from collections.abc import Callable
from html import unescape
from statistics import fmean, stdev
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from scipy import stats

from tests.webapp.runs.making import CONFIG, estimate, make_run
from webapp.runs.models import Metric, Run
from webapp.runs.report_pages import numbers, services
from webapp.runs.report_pages.models import PinnedNumber, Report
from webapp.runs.report_pages.rendering import render

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


def run_with(owner: Any, *rewards: float, **fields: Any) -> Run:
    run = make_run(owner, **fields)
    for step, reward in enumerate(rewards, 1):
        Metric.objects.create(run=run, step=step, fence=1, at="2026-01-01T00:00:00Z", values={"reward": reward})
    return run


@pytest.mark.parametrize(
    "text, absent",
    [
        ("<script>alert(1)</script>", "<script"),
        ("<b onclick=x>b</b>", "<b "),
        ("[x](javascript:alert(1))", 'href="javascript'),
        ("[x](data:text/html,x)", 'href="data'),
        ("![x](https://example.org/track.png)", "<img"),
        ("| a |\n|---|\n| <i>b</i> |", "<i>"),
        ("```chart\n<script>\n```", "<script>"),
        ("{{ run:1 <b> }}", "<b>"),
    ],
)
def test_text_is_never_markup(researcher: Any, text: str, absent: str) -> None:
    assert absent not in render(text, {}, researcher).html


def test_markdown_is_rendered(researcher: Any) -> None:
    html = render("# Title\n\n**bold** [site](/runs/)\n\n| a |\n|---|\n| 1 |", {}, researcher).html
    assert all(part in html for part in ("<h2>Title</h2>", "<strong>bold</strong>", '<a href="/runs/">', "<td>1</td>"))


def test_a_number_is_pinned_and_stays_though_its_run_goes_on(client: Client, researcher: Any) -> None:
    run = run_with(researcher, 0.25, 0.5, name="<i>x", code_version="abc", config={**CONFIG, "seed": 7})
    text = f"Reward {{{{ run:{run.pk} reward }}}}, first {{{{ run:{run.pk} reward @1 }}}}."
    client.post(reverse("runs:new-report"), {"title": "Findings", "text": text})
    report = Report.objects.get()
    Metric.objects.create(run=run, step=3, fence=1, at="2026-01-01T00:00:00Z", values={"reward": 0.875})
    shown = client.get(reverse("runs:report", args=[report.pk])).content.decode()
    assert ">0.5</button>" in shown
    assert ">0.25</button>" in shown
    assert "&lt;i&gt;x" in shown
    assert "seed 7" in shown
    assert "code abc" in shown
    assert "one run: no interval" in shown
    client.post(reverse("runs:edit-report", args=[report.pk]), {"title": "Findings", "text": text + " More."})
    assert ">0.5</button>" in client.get(reverse("runs:report", args=[report.pk])).content.decode()
    client.post(reverse("runs:act-on-report", args=[report.pk]), {"action": "pin"})
    assert ">0.875</button>" in client.get(reverse("runs:report", args=[report.pk])).content.decode()
    client.post(reverse("runs:edit-report", args=[report.pk]), {"title": "Findings", "text": "No number."})
    assert not PinnedNumber.objects.exists()


def test_several_runs_have_a_mean_with_students_interval(researcher: Any) -> None:
    values = (0.2, 0.5, 0.6)
    runs = [run_with(researcher, value) for value in values]
    provenance = numbers.provenance("run:" + ",".join(str(run.pk) for run in runs) + " reward", researcher)
    low, high = stats.t.interval(0.95, 2, loc=fmean(values), scale=stdev(values) / 3**0.5)
    assert [provenance["value"], provenance["low"], provenance["high"]] == pytest.approx([fmean(values), low, high])
    assert (provenance["n"], provenance["of"]) == (3, "runs")
    assert [each["id"] for each in provenance["runs"]] == [run.pk for run in runs]


def test_a_head_to_heads_number_has_the_interval_of_its_result(researcher: Any) -> None:
    result = {"summary": {"difference": {"points": estimate(0.5, 0.25, 0.75, 40)}}}
    run = make_run(researcher, kind="eval", result=result)
    provenance = numbers.provenance(f"run:{run.pk} difference.points", researcher)
    assert (provenance["value"], provenance["low"], provenance["high"], provenance["n"], provenance["of"]) == (
        0.5,
        0.25,
        0.75,
        40,
        "scenarios",
    )


@pytest.mark.parametrize(
    "reference, why",
    [
        ("run:999999 reward", "there is no run 999999"),
        ("run:{run} nothing", "run {run} has no number nothing"),
        ("run:{run} reward @9", "run {run} has no number reward at step 9"),
    ],
)
def test_a_number_that_is_not_there_is_refused_in_place(
    client: Client, researcher: Any, reference: str, why: str
) -> None:
    run = run_with(researcher, 0.5)
    text = "{{ " + reference.format(run=run.pk) + " }}"
    answer = client.post(reverse("runs:new-report"), {"title": "x", "text": text})
    assert answer.status_code == 400
    assert why.format(run=run.pk) in answer.content.decode()
    assert not Report.objects.exists()
    assert 'role="alert"' in client.post(reverse("runs:preview-report"), {"text": text}).content.decode()


def test_the_preview_stores_nothing_and_keeps_pinned_numbers(client: Client, researcher: Any) -> None:
    run = run_with(researcher, 0.5)
    text = f"{{{{ run:{run.pk} reward }}}}"
    report = services.write(report=Report(owner=researcher), by=researcher, title="x", text=text)
    Metric.objects.create(run=run, step=2, fence=1, at="2026-01-01T00:00:00Z", values={"reward": 0.75})
    address = reverse("runs:preview-report")
    assert ">0.5</button>" in client.post(address, {"text": text, "report": report.pk}).content.decode()
    new = client.post(address, {"text": text}).content.decode()
    assert ">0.75</button>" in new
    assert "when the report is saved" in new
    assert PinnedNumber.objects.count() == 1


def test_a_chart_names_runs_and_metrics(researcher: Any) -> None:
    first, second = make_run(researcher, name="</script>"), make_run(researcher)
    html = render(f"```chart\nrun:{first.pk} run:{second.pk} reward kl\n```", {}, researcher).html
    data = unescape(html)
    assert f'"url": "{reverse("runs:metrics", args=[first.pk])}"' in data
    assert '"title": "KL divergence from the reference"' in data
    assert "</script>" not in html
    assert "needs runs that exist" in render("```chart\nrun:999999 reward\n```", {}, researcher).html


@pytest.mark.parametrize("amount", [1, 12])
def test_the_editor_explains_and_offers_runs_that_there_are(
    client: Client, researcher: Any, amount: int, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    address = reverse("runs:new-report")
    assert "no run has any yet" in client.get(address).content.decode()
    runs = [run_with(researcher, 0.5, name=f"<i>{number}") for number in range(amount + 1)]
    make_run(researcher, name="without metrics")
    with django_assert_max_num_queries(4):  # session, person, runs, their last metrics
        shown = unescape(client.get(address).content.decode().replace("&lt;i", "escaped"))
    newest, before = runs[-1].pk, runs[-2].pk
    text = f"{{{{ run:{newest},{before} reward }}}} pins the mean of several runs"
    assert text in shown
    for example in (f"{{{{ run:{newest} reward }}}}", text[: text.index(" pins")]):
        assert numbers.provenance(example.strip("{} "), researcher)["value"] == 0.5
    assert f"“run:{newest} run:{before} reward”" in shown
    option = f'<option value="{newest}" data-metrics="[["reward", "Reward"]]">'
    assert f"{option}escaped>{amount} #{newest}</option>" in shown
    assert "without metrics #" not in shown
    assert shown.count("data-metrics=") == amount + 1


def test_an_empty_list_names_the_next_step(client: Client) -> None:
    assert "Write one" in client.get(reverse("runs:reports")).content.decode()
