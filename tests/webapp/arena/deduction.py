"""A finished match of Among Us among models, as `tests.webapp.runs.making.ship` plays it."""

from typing import Any

from tests.webapp.runs.making import ship
from training.records import Scenario
from webapp.arena.models import Match, MatchMove, MatchSeat
from webapp.arena.play import services
from webapp.runs.episodes import replaying
from webapp.serving.models import Deployment, RemoteModel


def match_of_models(host: Any, deployment: Deployment, seats: tuple[int, ...]) -> Match:
    """The match, at which these seats are of the deployment, and the others scripted."""
    record = ship(lambda after, seat: 0.5)["episode"]
    scenario = Scenario.from_dict(record["scenario"])
    facts = {"state": Match.State.FINISHED, "roles": record["roles"], "deadline_s": 60}
    match = Match.objects.create(host=host, game="among_us", scenario=scenario.to_dict(), **facts)
    for seat, name in enumerate(scenario.seats):
        by: dict[str, Any] = {"scripted": "scripted", "kind": MatchSeat.Kind.SCRIPTED}
        if seat in seats:
            by = {"deployment": deployment, "kind": MatchSeat.Kind.MODEL}
        MatchSeat.objects.create(match=match, seat=seat, name=name, **by)
    course = replaying.course(record)
    assert course is not None
    for number, move in enumerate(record["moves"]):
        MatchMove.objects.create(match=match, number=number, step=course.step_of(number), **move)
    return match


def crew_match(host: Any) -> Match:
    """Such a match whose models have named somebody around every message, with its log."""
    remote = RemoteModel.objects.create(name="crew", address="http://127.0.0.1:1/v1", model="crew", added_by=host)
    deployment = Deployment.objects.create(remote=remote, state=Deployment.State.READY)
    match = match_of_models(host, deployment, (0, 1, 2, 3, 4))
    state = services.fold(match)
    match.step, match.returns = state.step, {str(seat): value for seat, value in state.game.returns().items()}
    match.save()
    services.write_rows(match, state.game, {}, services.database_now())
    course = replaying.course(ship(lambda after, seat: float((after + seat) % 3 == 0))["episode"])
    assert course is not None
    for point in course.believed:
        answer = max(point.probabilities, key=lambda name: point.probabilities[name])
        facts = {"question": point.question, "choices": list(point.probabilities), "truth": list(point.truth)}
        match.beliefs.create(step=point.step, seat=point.seat, answer=answer, **facts)
    return match
