"""Tags of lists, the form above them and its options, and estimated times."""

import re

import pytest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.test import RequestFactory

from training.evaluate.intervals import Interval


def shown(template, **context):
    request = RequestFactory().get("/runs/", {"q": "a"})
    return Template("{% load parley %}" + template).render(Context({"request": request, **context}))


@pytest.mark.parametrize(
    "choices, chosen, html",
    [
        (["a", "b"], "b", '<option value="a">a</option><option value="b" selected>b</option>'),
        ([3, 4], "4", '<option value="3">3</option><option value="4" selected>4</option>'),
        ([("x", "An X")], "", '<option value="x">An X</option>'),
        (['"><b>'], "", '<option value="&quot;&gt;&lt;b&gt;">&quot;&gt;&lt;b&gt;</option>'),
    ],
)
def test_options_of_a_filter(choices, chosen, html):
    chosen_first = " selected" if not chosen else ""
    rendered = shown("{% options choices chosen %}", choices=choices, chosen=chosen)
    assert rendered == f'<option value=""{chosen_first}>all</option>{html}'
    assert shown('{% options choices chosen "" %}', choices=choices, chosen=chosen) == html


def test_a_filter_asks_its_own_page_and_keeps_the_order():
    html = shown("{% filters sort=order %}<label>{{ words }}</label>{% endfilters %}", words="<i>", order="-name")
    assert 'action="/runs/" hx-get="/runs/" hx-target="#results"' in html
    assert "<label>&lt;i&gt;</label>" in html
    assert '<input type="hidden" name="sort" value="-name">' in html
    assert "sort" not in shown("{% filters %}{% endfilters %}")


@pytest.mark.parametrize(
    "seconds, words",
    [
        (None, ""),
        (0, "about 10 s"),
        (44, "about 40 s"),
        (58, "about 1 min"),
        (89, "about 1 min"),
        (91, "about 2 min"),
        (3500, "about 58 min"),
        (6000, "about 2 h"),
        (51_000, "about 14 h"),
        (100_000, "about 1 d"),
    ],
)
def test_an_estimated_time_is_rounded(seconds, words):
    assert shown("{{ seconds|roughly }}", seconds=seconds) == words


@pytest.mark.parametrize(
    "low, mean, high, shown",
    [
        (0.00631, 0.25, 0.806, "0.25 [0.01, 0.81]"),
        (-3.2, 12.0, 27.4, "12 [-3, 27]"),
        (0.3941, 0.4, 0.4057, "0.400 [0.394, 0.406]"),
        (-0.004, 0.3, 0.7, "0.30 [0.00, 0.70]"),
        (2.0, 2.0, 2.0, "2 [2, 2]"),
    ],
)
def test_an_estimate_has_the_digits_that_its_interval_allows(low, mean, high, shown):
    cell = Interval(mean=mean, low=low, high=high, n=4)
    for kind in (cell, cell.to_dict()):  # a report has either
        page = render_to_string("runs/estimate.html", {"cell": kind, "summary": {"scenarios": 4}})
        assert " ".join(re.sub("<.*?>", "", page).split()) == shown
