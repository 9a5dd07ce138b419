"""Requests and responses of the API, from which the OpenAPI document is generated."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from ninja import Field, Schema
from pydantic import ValidationInfo, model_validator

from training.records import Action
from webapp.api.access import caller
from webapp.judgments.models import Judgment, Queue, Target
from webapp.judgments.naming import Names
from webapp.runs.models import Checkpoint, Run, WithdrawnData


class Problem(Schema):
    """Why a request was refused; nothing was changed."""

    where: str = Field(description="The field that is wrong, if one is.")
    why: str = Field(description="What is wrong, and what to change.")


class VersionOut(Schema):
    """One version of a dataset."""

    dataset: str = Field(alias="dataset.name")
    number: int
    note: str
    created_at: datetime
    sha256: str
    scenario_count: int
    conversation_count: int
    games: list[str] = Field(description="Names of the games its scenarios play.")
    closed_at: datetime | None = Field(description="Since when its content cannot be read; null: it can.")
    closed_why: str
    stands_for: int | None = Field(description="The closed version whose content this is, without what was withdrawn.")


class DatasetOut(Schema):
    """One dataset with its versions, oldest first."""

    name: str
    title: str
    source: str
    licence: str
    owner: str = Field(alias="owner.username")
    versions: list[VersionOut]


class ImportOut(Schema):
    """The result of an import; with errors nothing was stored."""

    scenarios: int
    conversations: int
    errors: list[Problem]
    notices: list[Problem]
    version: int | None = None


class IndexOut(Schema):
    """An index of a corpus, or the work to build it."""

    kind: str
    state: str = Field(description="queued, building, ready, stopped, failed")
    name: str = Field(description="What a run calls it; empty until the work has begun.")
    phase: str
    done: int = Field(description="Progress of the phase, of `total`.")
    total: int
    error: str = Field(description="Why the last try failed.")
    bytes: int | None
    seconds: float | None = Field(description="How long the building took.")


class CorpusOut(Schema):
    """One corpus of passages with its indexes."""

    name: str
    owner: str = Field(alias="owner.username")
    filename: str
    source: str
    licence: str
    private: bool
    created_at: datetime
    sha256: str = Field(alias="file.sha256")
    bytes: int = Field(alias="file.bytes")
    passages: int | None = Field(alias="file.passages", description="Known once an index is built.")
    problem: str = Field(description="Why it cannot be indexed, with file, line and field; empty if nothing is wrong.")
    indexes: list[IndexOut] = Field(alias="file.indexes")


class PassageOut(Schema):
    """A passage that a search returned; `cut`: of a long passage, this is the beginning."""

    id: str
    title: str
    text: str
    score: float
    cut: bool


class WithdrawnDataOut(Schema):
    """A dataset version that a run used, and of which a conversation was withdrawn since."""

    dataset: str
    at: datetime

    @staticmethod
    def resolve_dataset(row: WithdrawnData) -> str:
        return str(row.version)


class RunOut(Schema):
    """One run."""

    id: int
    kind: str = Field(description="train, sft, eval, suite")
    name: str
    owner: str = Field(alias="owner.username")
    state: str = Field(description="queued, starting, running, stopping, succeeded, stopped, failed")
    queue: str
    config: dict[str, Any] = Field(description="The RunConfig with every default.")
    method: str
    game: str
    base: str = Field(description="The base model's name.")
    dataset: str | None = None
    start_checkpoint_id: int | None = None
    aliases: dict[str, str] = Field(description="The aliases by which checkpoints were chosen, by field.")
    step: int
    steps: int = Field(description="Planned number of training steps.")
    key_metric: float | None
    result: dict[str, Any] | None = Field(description="An evaluation's result.")
    error: str = Field(description="Why it failed.")
    code_version: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    withdrawn_data: list[WithdrawnDataOut] = Field(description="Of its dataset, and of the run that it started from.")

    @staticmethod
    def resolve_dataset(run: Run) -> str | None:
        return str(run.dataset_version) if run.dataset_version else None


class RunIn(Schema):
    """A run to start: its configuration, and what it starts from."""

    config: dict[str, Any] = Field(description="A RunConfig; what is left out keeps its default.")
    dataset: str | None = Field(None, description="Name of a dataset; the newest version unless `version` is set.")
    version: int | None = None
    start_checkpoint: int | str | None = Field(None, description="Id or alias of a checkpoint.")
    opponent_checkpoint: int | str | None = Field(None, description="Id or alias of a checkpoint, for evaluations.")
    place: str = Field("cpu", pattern="^(cpu|gpu)$")


class MetricOut(Schema):
    """The metrics of one training step."""

    step: int
    at: datetime
    values: dict[str, Any]


class CheckpointOut(Schema):
    """One checkpoint or base model. Its origin and scores are null for callers who are not researchers."""

    id: int
    name: str
    kind: str
    base: str
    step: int
    open_to_players: bool
    run_id: int | None
    parent_id: int | None
    sha256: str | None
    metrics: dict[str, Any] | None
    aliases: list[str] | None
    created_at: datetime | None
    withdrawn_data: list[WithdrawnDataOut] | None = Field(
        description="What it may have learned from, and consent to which was withdrawn since."
    )

    @staticmethod
    def resolve_withdrawn_data(checkpoint: Checkpoint) -> list[WithdrawnData]:
        return list(checkpoint.run.withdrawn_data.all()) if checkpoint.run else []

    @staticmethod
    def resolve_aliases(checkpoint: Checkpoint) -> list[str]:
        return [alias.name for alias in checkpoint.aliases.all()]

    @model_validator(mode="after")
    def _for_players(self, info: ValidationInfo) -> Self:
        if not caller((info.context or {})["request"]).is_researcher:
            self.run_id = self.parent_id = self.sha256 = self.metrics = self.aliases = self.created_at = None
            self.withdrawn_data = None
        return self


class MatchLineOut(Schema):
    """A match in a list."""

    id: int
    game: str
    state: str
    visibility: str


class SeatOut(Schema):
    """One seat of a match. Who sits there is shown once the game is over and, if you played, rated."""

    seat: int
    name: str
    kind: str | None
    who: str | None
    you: bool


class MessageOut(Schema):
    """One line that the caller may see. `author` is null for lines of the game."""

    number: int
    author: int | None
    text: str
    channel: str


class AdviceOut(Schema):
    """What a coach advised; `text` is empty while it is awaited, and where `why` says why there is none."""

    seat: int
    turn: int = Field(description="The seat's turn, from 0.")
    coach: str
    text: str
    why: str
    asked_at: datetime
    seconds: float | None = Field(alias="took_s", description="From the request to the answer.")


class MatchOut(Schema):
    """A match as the caller sees it. `turn` is the number of moves that the caller has made."""

    id: int
    game: str
    state: str
    turn: int
    seats: list[SeatOut]
    messages: list[MessageOut]
    actions: list[Action] = Field(description="What the caller may do now; empty unless it is their turn.")
    max_chars: int
    deadline: datetime | None
    returns: dict[str, Any] | None = Field(description="Each seat's result, once the game is over and open to you.")
    advice: list[AdviceOut] = Field(
        [],
        description="What coaches advised you, the newest first; also what they advised others, once it is revealed.",
    )


class PlaceIn(Schema):
    """The player of a seat. An empty place can be taken by anybody."""

    me: bool = False
    checkpoint: int | str | None = Field(None, description="Id or alias of a checkpoint.")
    scripted: str = Field("", description="`scripted`, `random`, or a player of that game alone, such as `nash`.")
    speaker: str = Field(
        "",
        description="Who speaks for the checkpoint, which then writes strategies: empty = as in the run that trained "
        "it; `none` = it speaks itself, without strategies; `self` = it writes a strategy before each of its replies; "
        "`checkpoint:ID`, `checkpoint:ALIAS` or `deployment:ID`.",
    )


class MatchIn(Schema):
    """A table to set up."""

    game: str
    scenario: str = Field("sample", description="`sample`, `version:ID` of a dataset version, or `stored:ID`.")
    places: list[PlaceIn]
    rules: dict[str, Any] = Field(
        {}, description="Settings of the game (numbers, choices, lists of words) instead of the scenario's."
    )
    shuffled: bool = Field(False, description="Whether places and names are put at seats drawn by chance.")
    visibility: str = Field("private", pattern="^(private|open|public)$")
    deadline_s: int | None = None
    coaching: bool = Field(True, description="Whether players may ask a coach.")
    consent: bool = Field(description="Whether your part may be stored in datasets and used for training.")


class SeatIn(Schema):
    """A request for a free seat."""

    consent: bool = Field(description="Whether your part may be stored in datasets and used for training.")


class AdviceIn(Schema):
    """A request for advice at the caller's turn `turn`, from 0; a repeated request returns the stored advice."""

    turn: int
    coach: str = Field(
        "scripted",
        description="`scripted`, a player of that game alone, such as `nash`, "
        "`checkpoint:ID`, `checkpoint:ALIAS` or `deployment:ID`.",
    )


class MoveIn(Schema):
    """A move of the caller's seat at its turn `turn`, from 0; a repeated request returns the stored move."""

    turn: int
    action: str = ""
    args: dict[str, int | str] = {}
    text: str = ""


class MoveOut(Schema):
    """The stored move."""

    seat: int
    move: dict[str, Any]


class LabelShape(Schema):
    """One label: its type's name, its value, and its place, of which the type's `about` says what it has."""

    label: str
    value: bool | float | str | list[str] | list[int] | None = Field(
        None, description="By the type's kind; null for a span or a relation."
    )
    seat: int | None = None
    turn: int | None = Field(None, description="Index of a move of the game.")
    start: int | None = Field(None, description="First character of the move's text, a Unicode code point.")
    end: int | None = Field(None, description="The character after the last one.")
    other_turn: int | None = None
    reason: str = Field("", max_length=10_000)


def _names_game(target: Target | None, context: dict[str, Any]) -> bool:
    """Whether the caller may know which game a target is: its number would say who played, or at which step."""
    return target is None or target.queue.shows_hidden or caller(context["request"]).is_researcher


class JudgmentOut(Schema):
    """One judgment; `labels` null: could not score, `reason` says why.

    `match`, `episode` and `conversation` are null for annotators of a queue that hides what some players did not know.
    """

    id: int
    queue: int | None
    match: int | None
    episode: int | None
    conversation: int | None = Field(description="Of an imported dataset.")
    seat: int | None = Field(description="Null: the whole game.")
    codebook: str
    author: str = Field(
        description="`annotator:` with a number of the queue, `adjudicator`, `seat:` with the seat of a player who "
        "rated, `model:` or `rule:` with its name, or a name that came with an import."
    )
    labels: list[LabelShape] | None
    reason: str
    decides: bool = Field(description="Whether it is an adjudicator's decision over the other judgments.")
    prompt_sha256: str
    created_at: datetime
    updated_at: datetime | None = Field(description="When its author last saved it; null if an import does not say.")

    @staticmethod
    def resolve_queue(row: Judgment) -> int | None:
        return row.target.queue_id if row.target else None

    @staticmethod
    def resolve_match(row: Judgment, context: dict[str, Any]) -> int | None:
        return row.match_id if _names_game(row.target, context) else None

    @staticmethod
    def resolve_episode(row: Judgment, context: dict[str, Any]) -> int | None:
        return row.episode_id if _names_game(row.target, context) else None

    @staticmethod
    def resolve_conversation(row: Judgment, context: dict[str, Any]) -> int | None:
        return row.conversation_id if _names_game(row.target, context) else None

    @staticmethod
    def resolve_codebook(row: Judgment) -> str:
        return str(row.codebook_version)

    @staticmethod
    def resolve_labels(row: Judgment) -> list[dict[str, Any]] | None:
        records = row.records()
        return None if records is None else [record.to_dict() for record in records]

    @staticmethod
    def resolve_author(row: Judgment, context: dict[str, Any]) -> str:
        names: Names = context["request"].__dict__.setdefault("author_names", Names())
        return names.for_programs(row)


class TargetOut(Schema):
    """One seat of a match, an episode or an imported conversation that waits for the caller's judgment.

    `match`, `episode` and `conversation` are null for annotators of a queue that hides what some players did not know.
    """

    id: int = Field(description="The `target` of the judgment to send.")
    queue: int = Field(alias="queue_id")
    match: int | None
    episode: int | None
    conversation: int | None
    seat: int | None = Field(description="Null: the whole game.")
    codebook: str
    label_types: list[dict[str, Any]] = Field(
        description="What to label: name, title, kind, about, definition, low, high, anchors, options, roles, when …"
    )

    @staticmethod
    def resolve_match(row: Target, context: dict[str, Any]) -> int | None:
        return row.match_id if _names_game(row, context) else None

    @staticmethod
    def resolve_episode(row: Target, context: dict[str, Any]) -> int | None:
        return row.episode_id if _names_game(row, context) else None

    @staticmethod
    def resolve_conversation(row: Target, context: dict[str, Any]) -> int | None:
        return row.conversation_id if _names_game(row, context) else None

    @staticmethod
    def resolve_codebook(row: Target) -> str:
        return str(row.queue.codebook_version)

    @staticmethod
    def resolve_label_types(row: Target) -> list[dict[str, Any]]:
        return [label_type.to_dict() for label_type in row.codebook().labels]


class QueueOut(Schema):
    """A queue of targets to be judged."""

    id: int
    name: str
    owner: str = Field(alias="owner.username")
    codebook: str
    judged_by: str = Field(description="people, or the name of a judge model or of a rule.")
    state: str = Field(description="open, paused, closed")
    overlap: int | None = Field(description="Annotators per target; null: all.")
    max_overlap: int | None = Field(description="At most so many where they disagree.")
    assignment: str = Field(description="first_come, preassigned")
    order: str = Field(description="position, random, disagreement, uncertainty")
    batches_open: int | None = Field(description="Null: all.")
    selection: dict[str, Any] = Field(description="The filter that chose the games.")
    targets: int = Field(alias="targets_all")
    scored: int = Field(alias="targets_scored")
    unscored: int = Field(alias="targets_unscored")
    waiting: int = Field(alias="targets_left", description="Targets that nobody has judged.")
    created_at: datetime

    @staticmethod
    def resolve_codebook(row: Queue) -> str:
        return str(row.codebook_version)

    @staticmethod
    def resolve_judged_by(row: Queue) -> str:
        return row.rule or (row.judge.name if row.judge else "people")


class QueueIn(Schema):
    """A queue to make: games by one or more origins, a filter over them, and a judge model or annotators."""

    name: str
    codebook: str
    codebook_version: int | None = Field(None, description="Null: the newest.")
    matches: list[int] = []
    every_match: bool = Field(False, description="All matches that may be judged, as the filter selects them.")
    run: int | None = None
    step: int | None = Field(None, description="Null: the newest step that has episodes.")
    dataset: str | None = None
    dataset_version: int | None = Field(None, description="Null: the newest.")
    most: int = 20
    judge: str | None = None
    annotators: list[str] = Field([], description="User names.")
    selection: dict[str, str | int] = Field(
        {}, description="game, role, outcome, step_from, step_to, event, action, text; see the form."
    )
    overlap: int | None = None
    max_overlap: int | None = None
    assignment: Literal["first_come", "preassigned"] = "first_come"
    reserve_minutes: int = 30
    order: Literal["position", "random", "disagreement", "uncertainty"] = "random"
    batch_size: int | None = None
    qualification_items: int = 0
    qualification_threshold: float = 0.8
    gold_feedback: bool = True
    shows_hidden: bool = False
    shows_suggestions: bool = False


class QueueTargetOut(Schema):
    """A target of a queue, in its order."""

    id: int
    match: int | None = Field(alias="match_id")
    episode: int | None = Field(alias="episode_id")
    conversation: int | None = Field(alias="conversation_id")
    seat: int | None = Field(description="Null: the whole game.")
    position: int
    batch: int
    required: int | None = Field(description="Judgments that are required; null: one by each annotator.")
    priority: float
    gold: bool
    state: str


class AssignmentOut(Schema):
    """A target that is shared out to an annotator, or reserved for them until `expires_at`."""

    target: int = Field(alias="target_id")
    annotator: str = Field(alias="annotator.username")
    expires_at: datetime | None
    skipped: str = Field(description="Why the annotator put it aside; empty if they did not.")


class JudgmentIn(Schema):
    """A judgment of one target of a queue that is assigned to the caller."""

    target: int
    labels: list[LabelShape] | None = Field(None, description="Null: could not score.")
    reason: str = ""


class DecisionIn(Schema):
    """A decision over the judgments of one target."""

    target: int
    labels: list[LabelShape] | None = Field(None, description="Null: could not score.")
    note: str = Field("", description="Why; needed where no annotator gave one of the labels.")
    gold: bool | None = Field(None, description="Whether it is in the gold set; null: as before.")


class AnalysisOut(Schema):
    """An analysis of the judgments of a queue."""

    state: str = Field(description="ready, computing, failed")
    done: int = Field(description="Progress of a worker, of `total`.")
    total: int
    result: dict[str, Any] | None = Field(
        description="Once it is ready. Of agreement: `annotators`, `labels` (`coefficients`, `pairs`, `periods`), and "
        "`disagreements` (targets with how much annotators disagree, from 0 to 1). Of truth: `labels` (`methods`, "
        "`annotators`, `differing`). Of calibration: `judges` (`labels`, and `wrong`, the targets that they miss)."
    )


class ExperimentLineOut(Schema):
    """An experiment in a list."""

    id: int
    title: str
    owner: str = Field(alias="owner.username")
    state: str = Field(description="draft, open, paused, closed")
    created_at: datetime
    begun: int = Field(description="Participants who have begun.")
    completed: int = Field(description="Participants who have completed it.")


class ArmOut(Schema):
    """One arm of an experiment."""

    name: str
    game: str
    scenario: str
    players: list[str] = Field(description="The player of each seat; `person` is a participant.")
    aliases: dict[str, str] = Field(description="The alias by which a player was chosen, by player.")
    rules: dict[str, Any]
    deadline_s: int
    shown_as: str = Field(description="What participants read of each other: person, model, unknown, computer.")
    fallback: str = Field(description="Who takes the empty seats after the longest wait; empty: nobody.")


class QuestionOut(Schema):
    """One question; with a `right` answer an attention check."""

    name: str
    part: str = Field(description="before, after")
    kind: str = Field(description="likert, number, choice, text")
    text: str
    options: list[str]
    low: float | None = Field(description="Smallest number; null: any.")
    high: float | None = Field(description="Largest number; null: any.")
    required: bool
    right: str
    on_wrong: str = Field(description="After a wrong answer: note, end.")


class ExperimentOut(ExperimentLineOut):
    """The design of an experiment."""

    consent_text: str
    debriefing: str
    preregistration: str
    preregistration_sha256: str = Field(description="Of the pre-registration in UTF-8; empty before it was opened.")
    per_arm: int | None
    closes_at: datetime | None
    opened_at: datetime | None
    closed_at: datetime | None
    repeats: int = Field(description="Places of each arm in a block.")
    seed: int
    wait_seconds: int
    shortest_wait_s: int
    arms: list[ArmOut]
    questions: list[QuestionOut]


class EstimateOut(Schema):
    """A mean over groups with its interval."""

    mean: float
    low: float | None = Field(description="Null: no interval, as one group on an unknown scale has none.")
    high: float | None
    n: int = Field(description="Groups.")
    level: float


class ArmCountOut(Schema):
    """How many of an arm are in the analysis."""

    name: str
    groups: int
    participants: int


class ExperimentResultsOut(Schema):
    """Results by arm: every measure's mean, and its difference from the first arm; null without enough values."""

    arms: list[ArmCountOut]
    measures: dict[str, dict[str, EstimateOut | None]] = Field(description="By measure and arm.")
    differences: dict[str, dict[str, EstimateOut | None]] = Field(description="By arm and measure.")
