"""A game with canary texts, everything that is made of it, and every place where each role could read them."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from tests.labelled import labels
from tests.trust.matrix.scenarios import SCENARIO
from tests.webapp.judgments.make import FIVES, version
from training.games.actions import write
from training.records import Move
from webapp.accounts import services as accounts
from webapp.arena.play import services as arena
from webapp.arena.setup import tables, waiting_room
from webapp.judgments.annotating import services as annotating
from webapp.judgments.datasets import export
from webapp.judgments.models import Queue, Suggestion
from webapp.judgments.queues import services as queues
from webapp.scenarios import services as datasets
from webapp.scenarios.models import DatasetVersion

SAID = "zirconflex"
"""What the player said in the game."""
JUDGED = "quokkatango"
"""What an annotator wrote about it."""


def canary_match(host: Any, partner: Any, said: str = SAID) -> Any:
    """A finished match in which `said` was said."""
    places = [tables.Place(user=host), tables.Place(user=partner)]
    match = tables.create(host=host, start=tables.Start(SCENARIO), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=partner, agreed=True)
    for seat, name, args, text in ((0, "talk", {}, f"{said} is what I say."), (1, "talk", {}, "Fine."),
                                   (0, "propose", {"pen": 1}, ""), (1, "accept", {}, "")):  # fmt: skip
        match.refresh_from_db()
        action = next(a for a in arena.fold(match).game.observe(seat).actions if a.name == name)
        move = Move(action=name, args=args, text=text or write(action, args))
        arena.submit(match_id=match.pk, seat=seat, step=match.step, move=move)
    match.refresh_from_db()
    assert match.state == "finished"
    return match


@dataclass
class World:
    """A match of two people, of which one withdraws, with a second one beside it, and what was made of both."""

    match: Any
    other: Any
    queue: Queue
    version: DatasetVersion
    fork: DatasetVersion


def world(*, researcher: Any, player: Any, annotator: Any, other_researcher: Any) -> World:
    """Two matches in one judged queue, its export, and a fork of the export by another researcher."""
    match, other = canary_match(researcher, player), canary_match(researcher, player, "an ordinary word")
    for each in (match, other):
        waiting_room.answer_consent(match=each, user=player, agreed=True)
        reveal(each, researcher)
    queue = queues.create_queue(
        name="talks", owner=researcher, codebook_version=version(), matches=[match, other], annotators=[annotator]
    )
    for target in queue.targets.all():
        annotating.annotate(target=target, by=annotator, labels=labels(target.seat, FIVES), reason=JUDGED)
        Suggestion.objects.create(target=target, source="rule:x", name="mutual_benefit", value=3, reason=SAID)
    stored, _ = export.store(queue=queue, name="judged", by=researcher)
    return World(match, other, queue, stored, datasets.fork(version=stored, name="copied", by=other_researcher))


def reveal(match: Any, user: Any) -> None:
    """The user has asked who the others were."""
    from webapp.judgments.rating import services as rating

    rating.reveal_unrated(by=match.seats.get(user=user))


def addresses(world: World) -> dict[str, str]:
    """Every page and API address with something of the match or its copies, by a name."""
    made = {
        "queue": reverse("judgments:queue", args=[world.queue.pk]),
        "queues": reverse("judgments:list"),
        "annotate": reverse("judgments:annotate", args=[world.queue.pk]),
        "own judgments": reverse("judgments:own_judgments", args=[world.queue.pk]),
        "judgments of match": reverse("judgments:of-match", args=[world.match.pk]),
        "search": f"{reverse('home:search')}?q={JUDGED}",
        "search of the text": f"{reverse('home:search')}?q={SAID}",
        "datasets": f"{reverse('scenarios:list')}?q={SAID}",
        "api judgments": f"/api/v1/judgments?limit=100&match={world.match.pk}",
        "api judgments of queue": f"/api/v1/judgments?limit=100&queue={world.queue.pk}",
        "labels": reverse("judgments:search"),
        "file of labels": reverse("judgments:search-file"),
        "api targets": "/api/v1/judgments/targets?limit=100",
        "api datasets": "/api/v1/datasets",
    }
    for stored in (world.version, world.fork):
        name, number = stored.dataset.name, stored.number
        keys = stored.scenarios.values_list("key", flat=True)
        made |= {f"scenario {key} of {stored}": reverse("scenarios:scenario", args=[name, number, key]) for key in keys}
        made |= {
            f"{stored}": reverse("scenarios:version", args=[name, number]),
            f"search in {stored}": f"{reverse('scenarios:version', args=[name, number])}?q={SAID}",
            f"judgments of {stored}": reverse("judgments:of-version", args=[name, number]),
            f"export of {stored}": reverse("scenarios:export", args=[name, number]),
            f"api export of {stored}": f"/api/v1/datasets/{name}/versions/{number}/export",
        }
    return made


def readable(user: Any, client: Any, places: dict[str, str]) -> set[str]:
    """The names of the places in which this user reads one of the canaries."""
    key = {"Authorization": f"Bearer {accounts.create_key(user=user, name='canary')[1]}"}
    seen = set()
    for name, address in places.items():
        response = client.get(address, headers=key if address.startswith("/api/") else {})
        content = response.getvalue() if response.streaming else response.content
        text = content.decode().replace(f'value="{SAID}"', "").replace(f'value="{JUDGED}"', "").replace(f"q={SAID}", "")
        if SAID in text.replace(f"“{SAID}”", "") or JUDGED in text.replace(f"“{JUDGED}”", "").replace(
            f"q={JUDGED}", ""
        ):
            seen.add(name)
    return seen
