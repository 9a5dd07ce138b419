"""A seat learns nothing it may not know: page, socket, replay, API, exports, errors, model prompts, traces.

Worlds that differ only in what is hidden from a viewer give that viewer the same bytes, in the same number and order;
and no canary of anybody else's secret is found in anything that the viewer gets. The clock stands still, and what
belongs to a request (CSRF token) or a row (match number) is removed before comparing.
"""

import json
import random
import re
from datetime import UTC, datetime

import pytest
from channels.db import database_sync_to_async
from django.urls import reverse

from tests.chat_tokenizers import tokenizer
from tests.stub import Stub
from tests.webapp.arena.browser import Tab
from tests.webapp.judgments.make import annotate, people_queue, rated, version
from training.dataset import DatasetLine, parse_line
from training.games import make
from training.records import SPECTATOR, Move, Scenario
from training.text.conversations import traces
from training.text.template import ChatTokenizer
from webapp.arena.live import consumers
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import tables, waiting_room
from webapp.judgments.datasets import export
from webapp.scenarios.models import Dataset
from webapp.scenarios.services import create_dataset
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]

NOW = datetime(2031, 5, 17, 12, 0, tzinfo=UTC)


def canary(world, seat, what):
    return f"canary-{world}-{seat}-{what}"


# --- worlds: `private(seat, label, chance)` is one seat's hidden side; everything else is the same ---


def items_world(sides):
    deal = {
        "kind": "items",
        "story": "Two campers share what is left.",
        "items": [{"name": "food", "count": 3}, {"name": "water", "count": 3}],
        "sides": sides,
    }
    return Scenario(id="w", game="negotiation", seats=("Ann", "Ben"), settings={"deal": deal, "turn_limit": 4})


def items_side(label, seat, chance):
    reasons = {"food": canary(label, seat, "food"), "water": canary(label, seat, "water")}
    values = {"food": chance.randint(1, 9), "water": chance.randint(1, 9)}
    return {"values": values, "reasons": reasons, "walk_away": chance.randint(0, 3)}


def price_world(sides):
    deal = {"kind": "price", "title": "A bicycle", "listing_price": 100, "sides": sides}
    return Scenario(id="w", game="negotiation", seats=("Ann", "Ben"), settings={"deal": deal, "turn_limit": 4})


def price_side(label, seat, chance):
    target = chance.randint(20, 60) if seat == 0 else chance.randint(70, 120)
    return {"target": target, "reason": canary(label, seat, "why")}


def dialogue_world(people, **settings):
    settings = {"scenario": "At the fence.", "relationship": 2, "participants": people, "turn_limit": 4, **settings}
    return Scenario(id="w", game="dialogue", seats=("Ann", "Ben"), settings=settings)


def person_side(label, seat, chance):
    profile = {
        "age": 40 + seat,
        "occupation": "baker",
        "secret": canary(label, seat, "secret"),
        "personality_and_values": canary(label, seat, "values"),
        "mbti": canary(label, seat, "type"),
    }
    return {"profile": profile, "goal": canary(label, seat, "goal") + " x" * chance.randint(0, 5)}


def talking(step, seat):
    return {
        0: Move(action="talk", text="hello"),
        1: Move(action="propose", args={"food": 1, "water": 1}, text="<propose>food 1, water 1</propose>"),
        2: Move(action="reject", text="<reject/>"),
    }.get(step, Move(action="talk", text=f"step {step}"))


def haggling(step, seat):
    if step == 1:
        return Move(action="propose", args={"price": 65}, text="<propose>65</propose>")
    return Move(action="reject", text="<reject/>") if step == 2 else Move(action="talk", text=f"step {step}")


def chatting(step, seat):
    return Move(action="speak", text=f"seat {seat}, step {step}")


WORLDS = {
    "negotiation-items": (items_world, items_side, talking),
    "negotiation-price": (price_world, price_side, haggling),
    "dialogue": (dialogue_world, person_side, chatting),
    "dialogue-simultaneous": (lambda people: dialogue_world(people, order="simultaneous"), person_side, chatting),
}


def two_worlds(name, viewer, seed):
    """Two scenarios that differ only in information hidden from `viewer`: the other seats' private sides."""
    build, side, _ = WORLDS[name]
    worlds = []
    for label in ("one", "two"):
        sides = []
        for seat in (0, 1):
            shown = seat == viewer
            chance = random.Random(f"{seed}-{seat}-{'same' if shown else label}")
            sides.append(side("same" if shown else label, seat, chance))
        worlds.append(build(sides))
    return worlds


def test_every_game_has_worlds():
    """Here the two games of free talk, in depth; every other that hides something in `test_worlds_at_the_table`."""
    from tests.games import worlds
    from training.games import REGISTRY

    assert {name for name, spec in REGISTRY.items() if spec.hidden} == set(worlds.WORLDS)
    assert {name.split("-")[0] for name in WORLDS} == {"negotiation", "dialogue"}


# --- what a viewer gets ---

REMOVED = [
    (re.compile(r'name="csrfmiddlewaretoken" value="[^"]*"'), "CSRF"),
    (re.compile(r'"X-CSRFToken": "[^"]*"'), "CSRF"),
    (re.compile(r"/(play|judgments/rate|ws/watchers)/\d+/"), r"/\1/N/"),
    (re.compile(r'data-draft="\d+-'), 'data-draft="N-'),
    (re.compile(r'data-part="\w+"'), 'data-part="V"'),  # a hash of the content, which holds the match number
]


def plain(text):
    for pattern, instead in REMOVED:
        text = pattern.sub(instead, text)
    return text


def sync(function, *args, **kwargs):
    return database_sync_to_async(function)(*args, **kwargs)


@pytest.fixture(autouse=True)
def standing_clock(monkeypatch):
    monkeypatch.setattr(services, "database_now", lambda: NOW)
    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 60)


@pytest.fixture
def people(person):
    """Two players, somebody who watches, and two who know everything: they judged a match over the same secrets."""
    return [*(person("player", name) for name in ("ann", "ben", "watcher")), person("researcher"), person("researcher")]


def begin(scenario, ann, ben):
    places = [tables.Place(user=ann), tables.Place(user=ben)]
    match = tables.create(host=ann, start=tables.Start(scenario), places=places, consent=True, visibility="open")
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    return match


def next_moves(match, move_of):
    """The moves of the current step, the same in both worlds; None when the game is over."""
    match.refresh_from_db()
    if match.state != Match.State.RUNNING:
        return None
    return [(seat, match.step, move_of(match.step, seat)) for seat in sorted(services.fold(match).due())]


def pages(client, match):
    """Everything that a person can load or provoke by HTTP during a match."""
    got = [client.get(f"/play/{match.pk}/{page}") for page in ("", "replay/", "analysis/")]
    got.append(client.get(f"/play/{match.pk}/replay/", {"step": match.step // 2}))
    got += [client.get(f"/play/{match.pk}/replay/", {"viewer": place}) for place in (0, 1, -1, -2, 9)]
    got.append(client.get(f"/play/{match.pk}/result/"))
    for data in ({"turn": "0", "action": "fly"}, {"turn": "99", "action": "talk", "text": "x"}, {}):
        got.append(client.post(f"/play/{match.pk}/move/", data))
    return [(answer.status_code, plain(answer.content.decode())) for answer in got]


def api_of(client, match, key):
    answer = client.get(reverse("api:get_match", kwargs={"pk": match.pk}), headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    data = json.loads(answer.content)
    return {name: value for name, value in data.items() if name not in {"id", "created_at", "started_at"}}


def play_through(match, move_of):
    while moves := next_moves(match, move_of):
        for seat, step, move in moves:
            services.submit(match_id=match.pk, seat=seat, step=step, move=move)


def judged_before(scenario, move_of, owner, partner):
    """The same secrets once more: an earlier match over them, judged in a queue, and the dataset they come from."""
    Dataset.objects.all().delete()  # both worlds use the same addresses
    create_dataset(name="worlds", owner=owner, lines=[DatasetLine(scenario=scenario)])
    match = begin(scenario, owner, partner)
    play_through(match, move_of)
    queue = people_queue(owner=owner, match=rated(match, owner))
    values = {label_type.name: label_type.low for label_type in version().record().labels}
    for target in queue.targets.all():
        annotate(target=target, by=owner, values=values)
    return queue


def exports(client, queue, key):
    """Every export that has the secrets in it, as this person gets it."""
    bearer = {"Authorization": f"Bearer {key}"}
    got = [
        client.get("/datasets/worlds/v1/export.jsonl"),
        client.get("/api/v1/datasets/worlds/versions/1/export", headers=bearer),
        client.get("/api/v1/judgments", headers=bearer),
        client.post(f"/judgments/queues/{queue.pk}/export/", {"name": "stolen"}),
        client.get("/datasets/stolen/v1/export.jsonl"),
        client.get("/datasets/worlds/v1/scenarios/w/"),
    ]
    return [(answer.status_code, plain(b"".join(answer).decode())) for answer in got]


async def everything_seen(scenario, people, viewer, move_of, client_of):
    """Play a match through; return all that the viewer got, step by step."""
    from webapp.accounts.services import create_key
    from webapp.asgi import application as site

    ann, ben, watcher, *others = people
    queue = await sync(judged_before, scenario, move_of, *others)
    match = await sync(begin, scenario, ann, ben)
    user = {0: ann, 1: ben, SPECTATOR: watcher}[viewer]
    client = await sync(client_of, user)
    key = (await sync(create_key, user=user, name="k"))[1]
    tab = await (await Tab(site, client, match.pk).load()).open()
    state = tab.page.state()
    seen = [{**state, "parts": {part: plain(html) for part, html in state["parts"].items()}}]
    while moves := await sync(next_moves, match, move_of):
        for seat, step, move in moves:
            await sync(services.submit, match_id=match.pk, seat=seat, step=step, move=move)
            await tab.until_current(user, match.pk, viewer)
            seen.append([plain(frame) for frame in tab.frames])
        await sync(match.refresh_from_db)
        if match.state == Match.State.RUNNING:
            seen.append(await sync(pages, client, match))
            seen.append(await sync(api_of, client, match, key))
            seen.append(await sync(exports, client, queue, key))
    await tab.leave()
    return seen


@pytest.mark.parametrize("viewer", [0, 1, SPECTATOR])
@pytest.mark.parametrize("name", sorted(WORLDS))
async def test_hidden_facts_change_nothing_that_a_viewer_gets(name, viewer, people, client_of):
    move_of = WORLDS[name][2]
    world, twin = two_worlds(name, viewer, seed=3)
    assert world != twin
    seen = [await everything_seen(world, people, viewer, move_of, client_of) for world in (world, twin)]
    assert len(seen[0]) > 4
    for before, after in zip(*seen, strict=True):
        assert before == after
    text = json.dumps(seen)
    for secret in re.findall(r"canary-(?:one|two)-\d-\w+", json.dumps([world.to_dict(), twin.to_dict()])):
        assert secret not in text
    if viewer != SPECTATOR:
        assert f"canary-same-{viewer}-" in text  # its own side is there, so the search would have found the others'


@pytest.mark.parametrize("viewer", [0, 1])
@pytest.mark.parametrize("name", sorted(WORLDS))
def test_hidden_facts_change_nothing_that_a_model_is_asked(name, viewer, people, admin, monkeypatch):
    """The seat is a model's: every request that its server gets is the same in both worlds, seeds aside."""
    move_of = WORLDS[name][2]
    asked = []
    for scenario in two_worlds(name, viewer, seed=5):
        with Stub() as stub:
            monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
            remote = RemoteModel.objects.create(name=stub.url, address=stub.url, model="m", added_by=admin)
            deployment = Deployment.objects.create(remote=remote, state="ready")
            seats = [tables.Place(user=people[0]), tables.Place(user=people[0])]
            seats[viewer] = tables.Place(deployment=deployment)
            match = tables.create(host=people[0], start=tables.Start(scenario), places=seats, consent=True)
            while moves := next_moves(match, move_of):
                for seat, step, move in moves:
                    if seat == viewer:
                        stub.script("<nonsense>", move.text)
                        play(match.due.get(seat=seat).pk)
                    else:
                        services.submit(match_id=match.pk, seat=seat, step=step, move=move)
            asked.append([{**request.body, "seed": 0} for request in stub.requests])
            attempts = [move["error"] for row in match.moves.all() for move in row.attempts]
            assert attempts
    assert len(asked[0]) >= 2  # every turn was refused once
    assert asked[0] == asked[1]
    assert f"canary-same-{viewer}-" in json.dumps(asked)
    assert not re.search(r"canary-(one|two)-", json.dumps(asked))


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_hidden_facts_change_nothing_that_a_seat_learns_from_an_export(name, people):
    """A cold start on exported games: what a seat's trace holds is the same in both worlds, the other's is not."""
    chat = ChatTokenizer(tokenizer("chatml"))
    for viewer in (0, 1):
        learned = []
        for scenario in two_worlds(name, viewer, seed=7):
            queue = judged_before(scenario, WORLDS[name][2], *people[3:])
            (line,) = export.Export(queue, people[3]).lines()
            (conversation,) = parse_line(line.dumps(), "export").conversations
            assert "canary-" in line.dumps()
            learned.append([traces(conversation.episode, chat, seats=[seat]) for seat in (viewer, 1 - viewer)])
        (traced, other), (traced_too, other_too) = learned
        assert traced == traced_too
        assert other != other_too
        text = chat.decode(traced[0].tokens)
        assert f"canary-same-{viewer}-" in text
        assert "canary-one-" not in text


def test_an_export_contains_the_secrets(people, client_of):
    """Else equal refusals would prove nothing."""
    from webapp.accounts.services import create_key

    scenario, _ = two_worlds("dialogue", 0, seed=3)
    queue = judged_before(scenario, chatting, *people[3:])
    key = create_key(user=people[3], name="k")[1]
    got = exports(client_of(people[3]), queue, key)
    assert [status for status, _ in got] == [200, 200, 200, 302, 200, 200]
    assert all("canary-one-1-secret" in got[place][1] for place in (0, 1, 4, 5))


def test_the_worlds_do_differ_for_the_others():
    """Else the comparison above would prove nothing."""
    for name in WORLDS:
        for viewer in (0, 1):
            world, twin = two_worlds(name, viewer, seed=3)
            shown = [make(world).observe(1 - viewer).messages[0].text for world in (world, twin)]
            assert shown[0] != shown[1]
