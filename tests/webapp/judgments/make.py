"""Finished matches and queues to judge."""

from tests.trust.matrix.scenarios import SCENARIO
from training.games.actions import write
from training.records import Move
from webapp.arena import services as arena
from webapp.arena import tables
from webapp.judgments import services
from webapp.judgments.models import RubricVersion


def finished_match(host, partner=None, consent=True):
    """A match over three pens that ends in a deal: the host keeps one, the other seat gets two."""
    places = [tables.Place(user=host), tables.Place(user=partner) if partner else tables.Place(scripted="scripted")]
    match = tables.create(host=host, scenario=SCENARIO, places=places, consent=consent)
    if partner:
        tables.answer_consent(match=match, user=partner, agreed=True)
    for seat, name, args in ((0, "propose", {"pen": 1}), (1, "accept", {})):
        match.refresh_from_db()
        action = next(a for a in arena.fold(match).game.observe(seat).actions if a.name == name)
        move = Move(action=name, args=args, text=write(action, args))
        arena.submit(match_id=match.pk, seat=seat, step=match.step, move=move)
    match.refresh_from_db()
    assert match.state == "finished"
    return match


def version(name="fine-grained"):
    return RubricVersion.objects.select_related("rubric").get(rubric__name=name, number=1)


def people_queue(owner, match, annotators=()):
    return services.create_queue(
        name="by people", owner=owner, rubric_version=version(), matches=[match], annotators=annotators or [owner]
    )
