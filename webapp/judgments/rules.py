"""Rules: judgments that a function of Parley computes from a conversation, always the same for the same conversation.

A rule has its own codebook, because it answers only what it can count. Its queue is complete when it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from django.db import transaction
from django.utils import timezone

from training.errors import BadInput
from training.labels.codebooks import Codebook as CodebookRecord
from training.labels.codebooks import LabelType
from training.records import Episode, Seat
from training.records import Label as LabelRecord
from training.reward_section import RewardSection
from training.rewards.rules import fit, repeated_share
from webapp.accounts.models import User
from webapp.judgments.annotating.services import store_labels
from webapp.judgments.codebooks.services import content_of
from webapp.judgments.models import Codebook, CodebookVersion, Judgment, Queue, Target
from webapp.runs.models import PlayedEpisode


@dataclass(frozen=True)
class Answers:
    """A rule's number for each label type, on its scale, and how it came about."""

    values: Mapping[str, float]
    reasons: Mapping[str, str]

    def labels(self, codebook: CodebookRecord, seat: Seat) -> list[LabelRecord]:
        """Return the answers as labels of the seat."""
        return [
            LabelRecord(
                label=name, value=codebook.type_of(name).number(value), seat=seat, reason=self.reasons.get(name, "")
            )
            for name, value in self.values.items()
        ]


@dataclass(frozen=True)
class Rule:
    """A function that judges a seat of an episode, or returns None where there is nothing to count."""

    codebook: CodebookRecord
    answer: Callable[[Episode, Seat], Answers | None]


def _share(name: str, title: str, definition: str) -> LabelType:
    return LabelType(name=name, title=title, kind="scale", about="seat", low=0, high=1, definition=definition)


FORM = CodebookRecord(
    name="reply-form",
    version=1,
    title="Form of replies: what a rule counts",
    labels=(
        _share("readable", "Readable replies", "Which share of this seat's replies could the game read as a move?"),
        _share(
            "new_wording",
            "New wording",
            "Which share of the word triples in a reply did not occur before in the same reply, on average?",
        ),
        _share(
            "fit_for_training",
            "Fit for training",
            "Which share of this seat's replies passes the quality filter without a model: readable, neither repeating "
            "itself nor copying the instructions, in the writing systems of the game?",
        ),
    ),
)


def reply_form(episode: Episode, seat: Seat) -> Answers | None:
    """Count readable replies, repeated wording, and replies that pass the quality filter."""
    verdicts = fit(episode, RewardSection())
    replies = [(turn, passes) for turn, passes in zip(episode.turns, verdicts, strict=True) if turn.seat == seat]
    if not replies:
        return None
    count = len(replies)
    readable = sum(turn.passed for turn, _ in replies)
    passing = sum(passes for _, passes in replies)
    repeated = [repeated_share(turn.reply) for turn, _ in replies]
    return Answers(
        {"readable": readable / count, "new_wording": 1 - mean(repeated), "fit_for_training": passing / count},
        {
            "readable": f"{readable} of {count} replies.",
            "new_wording": f"{sum(share > 0 for share in repeated)} of {count} replies repeat a word triple.",
            "fit_for_training": f"{passing} of {count} replies.",
        },
    )


RULES = {"reply-form": Rule(FORM, reply_form)}
"""The rules by the name that judgments store."""


@transaction.atomic
def judge(*, name: str, rule: str, owner: User, episodes: Sequence[tuple[PlayedEpisode, Episode]]) -> Queue:
    """Store a queue in which a rule has judged every seat of these episodes; each row comes with its conversation."""
    version = _version(RULES[rule].codebook)
    queue = Queue.objects.create(name=name, owner=owner, codebook_version=version, rule=rule)
    seats = [(row, episode, seat) for row, episode in episodes for seat in range(len(episode.scenario.seats))]
    for position, (row, episode, seat) in enumerate(seats):
        answers = RULES[rule].answer(episode, seat)
        state = Target.State.UNSCORED if answers is None else Target.State.SCORED
        target = Target.objects.create(queue=queue, episode=row, seat=seat, position=position, state=state)
        judgment = Judgment.objects.create(
            codebook_version=version, target=target, episode=row, seat=seat, rule=rule, unscored=answers is None,
            reason="This seat wrote no reply." if answers is None else "", updated_at=timezone.now(),
        )  # fmt: skip
        store_labels(judgment, () if answers is None else answers.labels(RULES[rule].codebook, seat))
    return queue


def _version(record: CodebookRecord) -> CodebookVersion:
    codebook, _ = Codebook.objects.get_or_create(name=record.name, defaults={"title": record.title})
    content = content_of(record)
    version, _ = CodebookVersion.objects.get_or_create(codebook=codebook, number=record.version, defaults=content)
    if version.record() != record:
        raise BadInput(f"another codebook is named {record.name}, which the judgments of this rule need", "codebook")
    return version


@transaction.atomic
def remove(*, owner: User) -> None:
    """Delete the queues of this person that rules have judged, and the rules' codebooks that nobody else uses.

    What somebody else judged in such a queue stays, with the queue.
    """
    Judgment.objects.filter(queue__owner=owner).exclude(rule="").delete()
    judged = Judgment.objects.filter(queue__owner=owner).values("queue")
    Queue.objects.filter(owner=owner).exclude(rule="").exclude(pk__in=judged).delete()
    names = [rule.codebook.name for rule in RULES.values()]
    versions = CodebookVersion.objects.filter(codebook__name__in=names)
    used = versions.exclude(queues=None) | versions.exclude(judgments=None)
    Codebook.objects.filter(name__in=names, owner=None).exclude(versions__in=used).delete()
