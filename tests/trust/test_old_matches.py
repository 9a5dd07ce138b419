"""Trust 44, in the database: matches that the first release stored are still read, replayed, counted and played on.

The golden logs of a release are written into the tables that its first migrations made; then the database is migrated.
"""

import json
from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.urls import reverse
from django.utils import timezone

from tests.games import logs
from tests.games.play import random_move
from training.games import make
from training.records import ALL, SPECTATOR, Scenario, SeatMove, split_seat_metrics
from webapp.accounts.services import create_key
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.judgments import games
from webapp.ladder import log

pytestmark = pytest.mark.django_db(transaction=True)
FIRST = [("arena", "0001_initial")]
STORED = [(game, line) for release, game, line in logs.stored() if release == "0.1.0"]


def migrate(targets):
    MigrationExecutor(connection).migrate(targets)
    return MigrationExecutor(connection).loader.project_state(targets).apps


@pytest.fixture
def newest():
    """The migrations of every app, as they are after the test whatever happens in it."""
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    yield leaves
    MigrationExecutor(connection).migrate(leaves)


def steps_of(line):
    """The step of each move of a stored game: a joint step ends once every seat that is to act has moved."""
    state, numbers = services.MatchState(make(Scenario.from_dict(line["scenario"]))), []
    for entry in line["moves"]:
        numbers.append(state.step)
        services.catch_up(state, [SeatMove.from_dict(entry)])
    return numbers, state


def store(apps, host, game, line, moves):
    """A match with its first `moves` moves, as the first release wrote it; returns its key."""
    over = moves == len(line["moves"])
    scenario, (numbers, _) = line["scenario"], steps_of(line)
    _, state = steps_of({**line, "moves": line["moves"][:moves]})
    match = apps.get_model("arena", "Match").objects.create(
        game=game, scenario=scenario, host_id=host.pk, state="finished" if over else "running", visibility="open",
        deadline_s=60, step=state.step, started_at=timezone.now(), returns=line["end"]["returns"] if over else {},
        metrics=line["end"]["metrics"] if over else {}, ended_at=timezone.now() - timedelta(days=2) if over else None,
    )  # fmt: skip
    for seat, name in enumerate(scenario["seats"]):
        who = {"kind": "scripted", "scripted": "random"} if seat else {"kind": "person", "user_id": host.pk}
        match.seats.create(seat=seat, name=name, consent=True, **who)
    for number, entry in enumerate(line["moves"][:moves]):
        match.moves.create(number=number, step=numbers[number], seat=entry["seat"], move=entry["move"])
    for viewer in (*range(len(scenario["seats"])), SPECTATOR, ALL):
        for number, message in enumerate(state.game.observe(viewer).messages, 1):
            match.rows.create(viewer=viewer, number=number, message=message.to_dict(), step=0)
    return match.pk


def read(client, match, key):
    """Every page and the API's answer that shows a match; each must be there."""
    pages = [("arena:result", {}), *(("arena:replay", {"viewer": viewer}) for viewer in (0, SPECTATOR, ALL))]
    for name, query in pages:
        assert client.get(reverse(name, args=[match.pk]), query).status_code == 200, (match.game, name, query)
    answer = client.get(f"/api/v1/matches/{match.pk}", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    return json.loads(answer.content)


def test_matches_of_the_first_release_are_read_replayed_counted_and_played_on(newest, admin, client_of):
    older = migrate(FIRST)
    whole = [(store(older, admin, game, line, len(line["moves"])), line) for game, line in STORED]
    firsts = dict(reversed(STORED))
    begun = [(store(older, admin, game, line, len(line["moves"]) // 2), line) for game, line in firsts.items()]
    migrate(newest)
    client, (_, key) = client_of(admin), create_key(user=admin, name="k")

    for pk, line in whole:
        match, end = Match.objects.get(pk=pk), line["end"]
        assert logs.end(services.fold(match).game)["said"] == end["said"]
        assert (match.returns, match.roles) == (end["returns"], []), "results stay as they were stored"
        metrics, of_seats = split_seat_metrics(end["metrics"], len(line["scenario"]["seats"]))
        assert (match.metrics, match.seat_metrics) == (metrics, {str(seat): row for seat, row in of_seats.items()})
        if line != firsts[match.game]:
            continue
        seen = read(client, match, key)
        assert seen["returns"] == end["returns"]
        assert len(seen["messages"]) == end["lines"]["0"]
        assert games.of_match(match).transcript().lines
    counted = [game.id for name in {game for game, _ in STORED} for game in log.read(log.numbers(name))]
    assert sorted(counted) == [pk for pk, _ in whole]

    for pk, line in begun:
        match = Match.objects.get(pk=pk)
        assert client.get(reverse("arena:table", args=[pk])).status_code == 200
        game = services.fold(match).game
        seat = min(services.fold(match).due() & set(range(len(line["scenario"]["seats"]))), default=None)
        if seat is None:
            continue
        stored = services.submit(match_id=pk, seat=seat, step=match.step, move=random_move(game, seat, pk))
        assert stored.number == len(line["moves"]) // 2
