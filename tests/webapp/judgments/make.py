"""Finished matches and queues to judge."""

from tests.games.play import random_move
from tests.labelled import labels
from tests.trust.matrix.scenarios import SCENARIO
from training.dataset import Conversation, DatasetLine
from training.games.actions import write
from training.records import Episode, Move, Scenario, SeatMove
from training.records import Judgment as JudgmentRecord
from training.rewards.judge import Cost, Verdict
from webapp.arena.play import services as arena
from webapp.arena.setup import tables, waiting_room
from webapp.judgments.annotating import services as annotating
from webapp.judgments.models import CodebookVersion, JudgeModel
from webapp.judgments.queues import services as queues
from webapp.judgments.rating import services as rating
from webapp.scenarios import services as datasets
from webapp.scenarios.models import DatasetVersion, StoredConversation
from webapp.scenarios.signals import version_stored
from webapp.serving.models import RemoteModel

FIVES = {"compromise_seeking": 5, "persuasion_skill": 5, "strategic_commitment": 5, "empathy_expression": 5,
         "mutual_benefit": 5}  # fmt: skip
"""Values of the codebook that `version` gives."""


def finished_match(host, partner=None, consent=True, scenario=SCENARIO):
    """A match over three pens that ends in a deal: the host keeps one, the other seat gets two."""
    places = [tables.Place(user=host), tables.Place(user=partner) if partner else tables.Place(scripted="scripted")]
    match = tables.create(host=host, start=tables.Start(scenario), places=places, consent=consent)
    if partner:
        waiting_room.answer_consent(match=match, user=partner, agreed=True)
    for seat, name, args in ((0, "propose", {"pen": 1}), (1, "accept", {})):
        match.refresh_from_db()
        action = next(a for a in arena.fold(match).game.observe(seat).actions if a.name == name)
        move = Move(action=name, args=args, text=write(action, args))
        arena.submit(match_id=match.pk, seat=seat, step=match.step, move=move)
    match.refresh_from_db()
    assert match.state == "finished"
    return match


VILLAGE = Scenario(
    id="village", game="werewolf", seats=("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn"), settings={
        "roles": ["werewolf", "werewolf", "seer", "villager", "villager", "villager"],
        "deal": ["werewolf", "seer", "werewolf", "villager", "villager", "villager"],
        "rounds": 1, "wolf_talk": 0, "first_night_kill": False, "day_limit": 3,
    },
)  # fmt: skip


def village_match(host, seed=1):
    """A finished match over a village in which everybody moved by chance; seats 0 and 2 are wolves."""
    places = [tables.Place(user=host), *(tables.Place(scripted="scripted") for _ in VILLAGE.seats[1:])]
    match = tables.create(host=host, start=tables.Start(VILLAGE.with_seed(seed)), places=places, consent=True)
    match.refresh_from_db()
    while match.state == "running":
        game = arena.fold(match).game
        for seat in sorted(game.to_act()):
            move = random_move(game, seat, seed * 1000 + match.step * 10 + seat)
            arena.submit(match_id=match.pk, seat=seat, step=match.step, move=move)
        match.refresh_from_db()
    assert match.roles == VILLAGE.settings["deal"]
    return match


TALK = ((0, "talk", {}, "One pen is enough for me."), (1, "talk", {}, "Then I take two, number {}."),
        (0, "propose", {"pen": 1}, ""), (1, "accept", {}, ""))  # fmt: skip
"""The moves of an imported conversation over three pens: the first seat keeps one."""


def conversation(number=0, judgments=(), scenario=SCENARIO):
    """An imported conversation over three pens, with its judgments; those of two numbers differ in a word."""
    moves = tuple(
        SeatMove(seat=seat, move=Move(action=action, args=args, text=text.format(number) or f"<{action}>"))
        for seat, action, args, text in TALK
    )
    return Conversation(source=f"file:{number}", episode=Episode(scenario=scenario, moves=moves), judgments=judgments)


def outside(author, seat, values, *, codebook="fine-grained", codebook_version=2, **fields):
    """A judgment as an import brings it."""
    return JudgmentRecord(
        codebook=codebook,
        codebook_version=codebook_version,
        episode="e",
        seat=seat,
        author=author,
        labels=None if values is None else labels(seat, values, fields.pop("reasons", {})),
        **fields,
    )


def annotate(*, target, by, values, reason=""):
    """Judge a target by values about its seat, 1 and 0 for yes and no; None: it could not be scored."""
    yes_no = {label_type.name for label_type in target.codebook().labels if label_type.yes_no}
    typed = {name: bool(v) if name in yes_no and v in (0, 1) else v for name, v in (values or {}).items()}
    marks = None if values is None else labels(target.seat, typed)
    return annotating.annotate(target=target, by=by, labels=marks, reason=reason)


IN_ORDER = queues.QueueSettings(order="position")
"""Queues whose targets come in their order."""


def imported(owner, *conversations, name="imported", licence=""):
    """A dataset version with these conversations of one scenario, announced as the import does."""
    line = DatasetLine(scenario=SCENARIO, conversations=conversations)
    stored = datasets.create_dataset(name=name, owner=owner, lines=[line], licence=licence)
    version_stored.send(sender=DatasetVersion, version=stored)
    return stored


def conversation_queue(owner, stored, annotators=(), codebook="fine-grained", **fields):
    """A queue of all conversations of a dataset version."""
    rows = StoredConversation.objects.filter(scenario__version=stored).order_by("position")
    people = {} if "judge" in fields else {"annotators": annotators or [owner]}
    return queues.create_queue(
        name="imported",
        owner=owner,
        codebook_version=version(codebook),
        conversations=rows,
        how=IN_ORDER,
        **people,
        **fields,
    )


def rated(match, user):
    """The match, once this player has said what they took the others for: nothing of it is withheld from them."""
    seat = match.seats.get(user=user)
    others = match.seats.exclude(pk=seat.pk).values_list("seat", flat=True)
    rating.rate(by=seat, version=version(), values={}, guesses=dict.fromkeys(others, rating.Answer(person=False)))
    return match


def version(name="fine-grained"):
    """The newest version of a codebook."""
    return CodebookVersion.objects.select_related("codebook").filter(codebook__name=name).latest("number")


def judged_by_a_model(owner, match, *, value=5.0, reason="because of {}"):
    """A queue of which a judge model has scored every seat, each value with `reason` for its label type."""
    remote = RemoteModel.objects.create(name="far", address="http://127.0.0.1:9/v1", model="m", added_by=owner)
    judge = JudgeModel.objects.create(name="the judge", remote=remote)
    queue = queues.create_queue(
        name="by a model", owner=owner, codebook_version=version(), matches=[match], judge=judge
    )
    for target in queue.targets.all():
        names = [label_type.name for label_type in version().record().labels]
        verdict = Verdict(
            codebook=version().record(), seat=target.seat, values=dict.fromkeys(names, value),
            reasons={name: reason.format(name) for name in names}, prompt_sha256="0" * 64, cost=Cost(calls=1),
        )  # fmt: skip
        queues.record_verdict(target=target, verdict=verdict)
    return queue


def people_queue(owner, match, annotators=(), how=IN_ORDER):
    return queues.create_queue(
        name="by people", owner=owner, codebook_version=version(), matches=[match], annotators=annotators or [owner],
        how=how,
    )  # fmt: skip
