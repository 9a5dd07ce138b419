"""Pages and their named blocks, numbers in addresses, and what templates print."""

from datetime import timedelta

import pytest
from django.http import Http404
from django.template import Context, Template, engines
from django.test import RequestFactory
from django.utils import timezone
from django_htmx.middleware import HtmxDetails

from webapp.core import http
from webapp.core.templatetags import parley

PAGE = (
    "{% extends 'whole' %}{% block content %}<h1>{{ title }}</h1>"
    "{% block rows %}<p>{{ row }}</p>{% endblock %}{% endblock %}"
)


@pytest.fixture
def templates(monkeypatch):
    texts = {"whole": "<html>{% block content %}{% endblock %}</html>", "page": PAGE}
    engine = engines["django"].engine
    from django.template.loaders.locmem import Loader

    monkeypatch.setattr(engine, "template_loaders", [Loader(engine, texts)])


def request(**headers):
    made = RequestFactory().get("/", headers=headers)
    made.htmx = HtmxDetails(made)
    return made


def test_a_browser_gets_the_page_and_htmx_its_block(templates):
    context = {"title": "Runs & more", "row": "<b>"}
    page = http.render_page(request(), "page", context, "rows")
    assert page.content.decode() == "<html><h1>Runs &amp; more</h1><p>&lt;b&gt;</p></html>"
    part = http.render_page(request(**{"hx-request": "true"}), "page", context, "rows", status=400)
    assert (part.content.decode(), part.status_code) == ("<p>&lt;b&gt;</p>", 400)


def test_a_boosted_link_gets_the_whole_page(templates):
    boosted = request(**{"hx-request": "true", "hx-boosted": "true"})
    assert http.render_page(boosted, "page", {}, "rows").content.startswith(b"<html>")


def test_a_block_that_does_not_exist_is_our_mistake(templates):
    with pytest.raises(LookupError, match="no block 'other'"):
        http.render_block(request(), "page", "other", {})


@pytest.mark.parametrize(
    "text", ["x", "-1", "1.5", "²", "99999999999999999999", "11", "0" * 12 + "7", "0" * 12 + "9" * 5000]
)
def test_a_number_out_of_range_is_not_found(text):
    with pytest.raises(Http404):
        http.integer(RequestFactory().get("/", {"page": text}), "page", 1, high=10)


def test_a_number_has_a_default():
    assert http.integer(RequestFactory().get("/"), "page", 4) == 4
    assert http.integer(RequestFactory().get("/", {"page": "7"}), "page", 4) == 7


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (60, "1 min"),
        (65, "1 min 5 s"),
        (7500, "2 h 5 min"),
        (90000, "1 d 1 h"),
        (None, "—"),
    ],
)
def test_a_duration_in_two_units(seconds, expected):
    assert parley.duration(seconds) == expected


@pytest.mark.parametrize(
    "value, expected",
    [
        (None, "—"),
        ("", "—"),
        (12, "12"),
        (0.12345, "0.123"),
        (-0.00012345, "-0.000123"),
        (-0.0, "0"),
        (99.95, "100"),
        (999.4, "999"),
        (999.7, "1000"),
        (-999.7, "-1000"),
        (12345.6, "12346"),
        (float("nan"), "nan"),
    ],
)
def test_a_figure_has_three_digits(value, expected):
    assert parley.figure(value) == expected


def test_shares_in_per_cent():
    assert [parley.percent(share) for share in (0.0, 0.586, 1.0)] == ["0", "59", "100"]
    assert [parley.percent(share, "+") for share in (0.24, -0.001, -0.17)] == ["+24", "+0", "-17"]


def test_an_interval():
    assert parley.interval(0.617, 0.0421) == "0.62 ± 0.04"
    assert parley.interval(0.617, None) == "0.62"
    assert parley.interval(None, None) == "—"


def test_a_time_is_relative_and_exact_on_hover():
    moment = timezone.now() - timedelta(hours=2)
    text = parley.ago(moment)
    assert "2\xa0hours ago" in text
    assert moment.strftime("%Y-%m-%d %H:%M") in text
    assert parley.ago(None) == "—"


def test_a_link_keeps_the_other_filters():
    made = RequestFactory().get("/", {"state": "failed", "page": "3"})
    text = Template("{% query page=4 %} {% query state=None %}").render(Context({"request": made}))
    assert text == "?state=failed&amp;page=4 ?page=3"


def test_help_in_a_list_reads_as_sentences():
    listed = "<ul><li>Not your name.</li><li>Eight characters.</li></ul>"
    assert parley.plain(listed) == "Not your name. Eight characters."


@pytest.mark.parametrize(
    "value, path",
    [
        ({"a": "fine", "b": [1, {"c": "x\0"}]}, "b.1.c"),
        ({"a": ["\ud83d"]}, "a.0"),
        ({"a": {"fine": 1, "x\0": 2}}, "a.x\0"),
        ({"\0": 1}, "\0"),
        ({"a": 2**63}, "a"),
        ({"a": -(2**63) + 1, "b": "😀", "c": None, "d": 1.5, "e": True}, ""),
    ],
)
def test_what_the_database_cannot_hold_is_named_by_its_path(value, path):
    assert http.unstorable(value) == path


@pytest.mark.django_db
def test_a_page_names_the_field_that_it_cannot_store(client_of, researcher):
    refused = client_of(researcher).get("/datasets/", {"q": "a\0b"})
    assert refused.status_code == 400
    assert "The field “q” holds a character that cannot be stored." in refused.content.decode()
