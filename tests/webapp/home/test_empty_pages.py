"""A new installation: what is empty on any page of the search's list says what comes next, and that step works."""

import re
from collections.abc import Iterator

import pytest
from django.urls import reverse

from webapp.home import places, samples

pytestmark = pytest.mark.django_db
EMPTY = re.compile(r'<(p|li|div|form)\b([^>]*\bclass="[^"]*\bempty\b[^"]*"[^>]*)>(.*?)</\1>', re.DOTALL)
LINK = re.compile(r'<a\b[^>]*\bhref="([^"]+)"')
LISTS = {
    "researcher": {
        "arena:lobby", "arena:matches", "scenarios:list", "corpora:list", "runs:list", "runs:sweeps", "runs:reports",
        "runs:alerts", "runs:checkpoints", "runs:matrix", "serving:list", "experiments:list", "judgments:list",
        "judgments:classifiers", "ladder:ladder",
    },
    "player": {"arena:lobby", "arena:matches", "runs:checkpoints", "ladder:ladder"},
    "annotator": {"arena:lobby", "arena:matches", "runs:checkpoints", "ladder:ladder", "judgments:list"},
}  # fmt: skip
"""The pages that must be empty on a new installation, by role; others always hold something."""


def empty_parts(page: str) -> Iterator[tuple[str, str]]:
    """The attributes and the content of what a page calls empty."""
    main = page[page.index("<main") : page.index("</main>")]
    return ((attributes, content) for _, attributes, content in EMPTY.findall(main))


@pytest.mark.parametrize("role", LISTS)
def test_every_empty_page_names_a_next_step_that_works(home, role: str, client_of, person) -> None:
    user = person(role)
    client = client_of(user)
    seen = set()
    for place in places.pages(user):
        if place.route == "docs":
            continue
        page = client.get(place.address).content.decode()
        for attributes, content in empty_parts(page):
            seen.add(place.route)
            links = LINK.findall(content)
            assert links or "<button" in content, (place.address, content)
            if attributes.lstrip().startswith("method"):
                assert "<button" in content
            for link in links:
                if link.startswith("#"):
                    assert f'id="{link[1:]}"' in page, (place.address, link)
                else:
                    assert client.get(link).status_code == 200, (place.address, link)
    assert seen >= LISTS[role]


def test_the_samples_fill_the_lists_of_runs_and_judgments(home, client_of, researcher) -> None:
    client = client_of(researcher)
    lists = [reverse(name) for name in ("runs:list", "judgments:list")]
    for address in lists:
        assert reverse("home:store-samples") in client.get(address).content.decode()
    client.post(reverse("home:store-samples"))
    for address in lists:
        page = client.get(address).content.decode()
        assert page.count("Sample: ") >= len(samples.names())
        assert reverse("home:store-samples") not in page
