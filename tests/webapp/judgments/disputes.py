"""A queue on which annotators disagree."""

from tests.webapp.judgments.make import conversation, conversation_queue, imported
from tests.webapp.judgments.test_queue_agreement import TYPES, judge, label_type
from training.records import Label
from webapp.accounts.models import User
from webapp.judgments.codebooks import services as codebooks
from webapp.judgments.models import JudgeModel, Judgment, Queue
from webapp.serving.models import RemoteModel

WARM = label_type("warm", "yes_no", "seat", required=True)
ASKED = [TYPES[0], TYPES[1], TYPES[3], TYPES[5], TYPES[6], WARM]


def disputed_queue(owner: User, annotator: User, name: str = "disputed") -> Queue:
    """A queue of six games that an annotator, the owner and a judge model labelled, not alike."""
    codebooks.save_codebook(name=name, title=name.title(), labels=ASKED, by=owner)
    stored = imported(owner, *(conversation(number) for number in range(6)), name=name)
    queue = conversation_queue(owner, stored, [annotator, owner], codebook=name)
    remote = RemoteModel.objects.create(name=f"of {name}", address="http://127.0.0.1:9/v1", model="m", added_by=owner)
    model = JudgeModel.objects.create(name=f"a judge of {name}", remote=remote)
    for target in queue.targets.with_games().order_by("position"):
        number = target.position
        for author, other in ((annotator, 0), (owner, 1), (None, 2)):
            marks = [Label(label="warm", value=(number + other) % 2 == 0, seat=seat) for seat in (0, 1)]
            marks += [Label(label="offer", value=True, turn=(number * other) % 2)]
            marks += [Label(label="number", turn=1, start=other, end=5 + other)]
            values = {
                "fair": number % 3 > 0 or other == 1,
                "mood": float(1 + (number + other) % 5),
                "style": "abc"[number % 3],
            }
            row = judge(target, author, values, marks)
            if author is None:
                Judgment.objects.filter(pk=row.pk).update(judge=model)
        target.turns = [0, 1]
        target.state = "scored"
        target.save()
    return queue
