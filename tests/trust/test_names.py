"""Trust 27: pages of research, the API and exports name neither annotators nor the people who played."""

import pytest
from django.urls import reverse

from tests.trust.withdrawn import addresses, world
from webapp.accounts import services as accounts
from webapp.judgments.results import decisions

pytestmark = pytest.mark.django_db
ANNOTATOR, PLAYER = "Zanzibrax", "Quillwyrm"


@pytest.fixture
def made(researcher, other_researcher, person):
    """A judged queue over two matches, its export and a fork, with a decision."""
    made = world(
        researcher=researcher, player=person("player", PLAYER), annotator=person("annotator", ANNOTATOR),
        other_researcher=other_researcher,
    )  # fmt: skip
    target = made.queue.targets.with_games().first()
    decisions.decide(target=target, by=researcher, labels=None, note="no words")
    return made


def places_of(made):
    """Addresses by name: everything that is made of the match, and the results and label files of its queue."""
    queue, target = made.queue.pk, made.queue.targets.first().pk
    results = ("agreement", "truth", "judges", "decisions")
    places = addresses(made) | {name: reverse(f"judgments:{name}", args=[queue]) for name in results}
    places["decide"] = reverse("judgments:decide", args=[queue, target])
    for kind in ("agreement", "truth", "calibration", "decisions"):
        places[f"api {kind}"] = f"/api/v1/judgments/queues/{queue}/{kind}"
    for kind in ("jsonl", "csv", "label-studio", "w3c"):
        places[f"api labels {kind}"] = f"/api/v1/judgments/queues/{queue}/labels?format={kind}"
    return places


def read(user, client, address):
    """The status and the text of an address."""
    key = {"Authorization": f"Bearer {accounts.create_key(user=user, name='names')[1]}"}
    response = client.get(address, headers=key if address.startswith("/api/") else {})
    content = response.getvalue() if response.streaming else response.content
    return response.status_code, content.decode()


def test_nobody_who_played_or_judged_is_named(made, researcher, other_researcher, client_of, settings):
    """The owner reads the annotator's name where they manage annotators, which shows that the search can fail."""
    settings.QUOTAS = {**settings.QUOTAS, "api_keys": dict.fromkeys(settings.QUOTAS["api_keys"], 1000)}
    named, reached = set(), {}
    for user in (researcher, other_researcher):
        client = client_of(user)
        for name, address in places_of(made).items():
            status, text = read(user, client, address)
            reached.setdefault(name, set()).add(status)
            named |= {(user.username, name, who) for who in (ANNOTATOR, PLAYER) if who.lower() in text.lower()}
    assert named == {(researcher.username, "queue", ANNOTATOR)}
    unread = {name for name, statuses in reached.items() if 200 not in statuses}
    assert unread <= {"annotate", "own judgments"}, "these are the annotator's own"
