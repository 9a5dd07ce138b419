"""Search and the keys: what is found, by whom, and that nothing is found that may not be seen."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import resolve, reverse

from tests.trust.matrix.arena import seated
from tests.trust.routes import ROUTES
from tests.webapp.judgments.make import finished_match, people_queue
from tests.webapp.runs.making import make_run
from webapp.accounts.models import User
from webapp.core.keys import KEYS
from webapp.home import places, search
from webapp.ladder.models import Fit, Standing
from webapp.runs.models import Checkpoint
from webapp.scenarios.models import Dataset

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[3]


def results(user: User, words: str, limit: int = 20) -> dict[str, list[str]]:
    """The titles of the results, by kind."""
    return {group.title: [hit.title for hit in group.hits] for group in search.search(user, words, limit)}


def test_a_researcher_finds_what_they_may_see(researcher: User) -> None:
    run = make_run(researcher, name="heron trial")
    Checkpoint.objects.create(name="heron/step-4", kind="full", base="tiny", path="x", run=run)
    Dataset.objects.create(name="heron-data", title="Birds", owner=researcher)
    queue = people_queue(researcher, finished_match(researcher), [researcher])
    type(queue).objects.filter(pk=queue.pk).update(name="heron queue")
    assert results(researcher, "HERON") == {
        "Runs": ["heron trial"],
        "Checkpoints": ["heron/step-4"],
        "Datasets and corpora": ["Birds"],
        "Judgments": ["heron queue"],
    }


def test_nobody_finds_what_they_may_not_see(researcher: User, player: User, annotator: User) -> None:
    run = make_run(researcher, name="heron trial")
    Checkpoint.objects.create(name="heron/step-4", kind="full", base="tiny", path="x", run=run)
    Dataset.objects.create(name="heron-data", title="Birds", owner=researcher)
    queue = people_queue(researcher, finished_match(researcher), [researcher])
    type(queue).objects.filter(pk=queue.pk).update(name="heron queue")
    User.objects.create(username="heron", role="player")
    for user in (player, annotator):
        assert results(user, "heron") == {}
        assert results(user, "silence") == {}


def test_a_match_is_found_by_its_players_by_number_and_game(player: User, researcher: User) -> None:
    match = seated(player)
    for words in (f"match {match.pk}", str(match.pk), "Negotiation"):
        assert match.title in results(player, words)["Games and tables"]
        assert "Games and tables" not in results(researcher, words)
    assert "Games and tables" not in results(player, "9" * 30)


def test_only_administrators_find_accounts(person, researcher: User) -> None:
    person("player", "heron")
    assert results(person("admin"), "hero")["People"] == ["heron"]
    assert "People" not in results(researcher, "hero")


def test_others_find_people_on_the_ladder(person, player: User) -> None:
    heron = person("player", "heron")
    fit = Fit.objects.create(game="negotiation")
    Standing.objects.create(fit=fit, who=f"person:{heron.pk}", kind="person", user=heron)
    groups = {group.title: group for group in search.search(player, "heron", 4)}
    assert [hit.address for hit in groups["People"].hits] == ["/ladder/?game=negotiation&kind=person"]


def test_results_are_bounded_and_say_that_there_are_more(researcher: User, django_assert_max_num_queries) -> None:
    for number in range(7):
        make_run(researcher, name=f"heron {number}")
    with django_assert_max_num_queries(14):
        (runs,) = search.search(researcher, "heron", 4)
    assert (len(runs.hits), runs.more) == (4, True)
    assert [hit.title for hit in runs.hits] == ["heron 6", "heron 5", "heron 4", "heron 3"]


def test_a_letter_finds_pages_alone(researcher: User) -> None:
    make_run(researcher, name="r")
    assert set(results(researcher, "r")) == {"Pages", "Actions"}


@pytest.mark.parametrize("role", ["player", "annotator", "researcher", "admin"])
def test_every_place_that_is_offered_can_be_reached(role: str, person, client_of) -> None:
    user = person(role)
    client = client_of(user)
    for place in [*places.pages(user), *places.actions(user)]:
        route = next(route for route in ROUTES if route.name == place.route)
        assert client.get(place.address).status_code in {200, 302, route.status}, place.title


def test_every_page_of_the_menus_and_lists_is_offered() -> None:
    titles = {place.title for place in places.PAGES}
    assert titles >= {"Experiments", "Documentation", "Sweeps", "Reports", "Alerts", "Matrix of evaluations"}


@pytest.mark.parametrize("place", [*places.PAGES, *places.ACTIONS], ids=lambda place: place.title)
def test_a_place_has_the_roles_of_its_route(place: places.Place) -> None:
    route = next(route for route in ROUTES if route.name == place.route and route.method == "GET")
    if not route.public:
        assert place.roles == set(route.own) - {"guest"}


def test_the_palette_lists_options_and_the_page_links(client_of, researcher: User) -> None:
    make_run(researcher, name="<b>heron</b>")
    client: Client = client_of(researcher)
    options = client.get(reverse("home:palette"), {"q": "heron"}).content.decode()
    ids = re.findall(r'role="option" id="([^"]+)"', options)
    assert len(ids) == len(set(ids)) == 1
    assert "&lt;b&gt;heron&lt;/b&gt;" in options
    page = client.get(reverse("home:search"), {"q": "heron"}).content.decode()
    assert "&lt;b&gt;heron&lt;/b&gt;" in page
    (address,) = re.findall(r'role="option" [^>]*href="([^"]+)"', options)
    assert f'href="{address}"' in page
    assert resolve(address).view_name == "runs:detail"
    part = client.get(reverse("home:search"), {"q": "zzzz"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert "Nothing that you may see matches" in part


def test_every_page_of_a_member_has_the_palette_and_a_guests_has_not(client_of, player: User, guest: User) -> None:
    assert 'id="palette"' in client_of(player).get(reverse("home:search")).content.decode()
    assert 'id="palette"' not in client_of(guest).get(reverse("home:index")).content.decode()


def test_the_list_of_keys_is_what_the_scripts_handle() -> None:
    scripts = {path.name: path.read_text("utf-8") for path in (ROOT / "static/js").glob("*.js")}
    listening = {name for name, text in scripts.items() if '"keydown"' in text}
    assert listening == {key.script for key in KEYS}
    markup = "\n".join(path.read_text("utf-8") for path in (ROOT / "templates").rglob("*.html"))
    for key in KEYS:
        for name in re.findall(r"[#\[]([\w-]+)", key.when):
            assert re.search(rf'id="{name}"|\b{name}\b', markup), key
    handled = set(re.findall(r'event\.key(?:\.toLowerCase\(\))? [!=]== "([^"]+)"', scripts["palette.js"]))
    names = {"K": "k", "Esc": "Escape", "↑": "ArrowUp", "↓": "ArrowDown"}
    listed = {names.get(cap, cap) for key in KEYS if key.script == "palette.js" for cap in key.keys}
    assert handled == listed - {"Ctrl"}


def test_what_went_wrong_cannot_be_put_away(client_of, person) -> None:
    admin = person("admin")
    client = client_of(admin)
    wrong = client.post(reverse("accounts:change-person", args=[admin.pk]), {"role": "player"}, follow=True)
    assert 'role="alert">You cannot change your own role' in wrong.content.decode()
    assert "dismiss" not in wrong.content.decode()
    other = person("player")
    done = client.post(reverse("accounts:change-person", args=[other.pk]), {"role": "player"}, follow=True)
    assert 'class="plain dismiss"' in done.content.decode()
