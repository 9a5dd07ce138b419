"""Requests and answers of the REST API, generated from its OpenAPI document by `python -m tools.client`."""

from __future__ import annotations

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from typing import Any, Literal


class Input(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    limit: int = Field(100, ge=1, le=1000, title="Limit")
    offset: int = Field(0, ge=0, title="Offset")


class VersionOut(BaseModel):
    """
    One version of a dataset.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    dataset: str = Field(..., title="Dataset")
    number: int = Field(..., title="Number")
    note: str = Field(..., title="Note")
    created_at: AwareDatetime = Field(..., title="Created At")
    sha256: str = Field(..., title="Sha256")
    scenario_count: int = Field(..., title="Scenario Count")
    conversation_count: int = Field(..., title="Conversation Count")
    games: list[str] = Field(..., title="Games")
    """
    Names of the games its scenarios play.
    """
    closed_at: AwareDatetime | None = Field(..., title="Closed At")
    """
    Since when its content cannot be read; null: it can.
    """
    closed_why: str = Field(..., title="Closed Why")
    stands_for: int | None = Field(..., title="Stands For")
    """
    The closed version whose content this is, without what was withdrawn.
    """


class Problem(BaseModel):
    """
    Why a request was refused; nothing was changed.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    where: str = Field(..., title="Where")
    """
    The field that is wrong, if one is.
    """
    why: str = Field(..., title="Why")
    """
    What is wrong, and what to change.
    """


class IndexOut(BaseModel):
    """
    An index of a corpus, or the work to build it.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    kind: str = Field(..., title="Kind")
    state: str = Field(..., title="State")
    """
    queued, building, ready, stopped, failed
    """
    name: str = Field(..., title="Name")
    """
    What a run calls it; empty until the work has begun.
    """
    phase: str = Field(..., title="Phase")
    done: int = Field(..., title="Done")
    """
    Progress of the phase, of `total`.
    """
    total: int = Field(..., title="Total")
    error: str = Field(..., title="Error")
    """
    Why the last try failed.
    """
    bytes: int | None = Field(..., title="Bytes")
    seconds: float | None = Field(..., title="Seconds")
    """
    How long the building took.
    """


class PassageOut(BaseModel):
    """
    A passage that a search returned; `cut`: of a long passage, this is the beginning.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: str = Field(..., title="Id")
    title: str = Field(..., title="Title")
    text: str = Field(..., title="Text")
    score: float = Field(..., title="Score")
    cut: bool = Field(..., title="Cut")


class WithdrawnDataOut(BaseModel):
    """
    A dataset version that a run used, and of which a conversation was withdrawn since.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    dataset: str = Field(..., title="Dataset")
    at: AwareDatetime = Field(..., title="At")


class RunIn(BaseModel):
    """
    A run to start: its configuration, and what it starts from.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    config: dict[str, Any] = Field(..., title="Config")
    """
    A RunConfig; what is left out keeps its default.
    """
    dataset: str | None = Field(None, title="Dataset")
    """
    Name of a dataset; the newest version unless `version` is set.
    """
    version: int | None = Field(None, title="Version")
    start_checkpoint: int | str | None = Field(None, title="Start Checkpoint")
    """
    Id or alias of a checkpoint.
    """
    opponent_checkpoint: int | str | None = Field(None, title="Opponent Checkpoint")
    """
    Id or alias of a checkpoint, for evaluations.
    """
    place: str = Field("cpu", pattern="^(cpu|gpu)$", title="Place")


class MetricOut(BaseModel):
    """
    The metrics of one training step.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    step: int = Field(..., title="Step")
    at: AwareDatetime = Field(..., title="At")
    values: dict[str, Any] = Field(..., title="Values")


class Interval(BaseModel):
    """
    An estimate with its interval. `n` is the number of seeds, scenarios or games. A single value has an interval
    without width, unless it is 0 or 1 or its scale is known.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    mean: float = Field(..., title="Mean")
    low: float = Field(..., title="Low")
    high: float = Field(..., title="High")
    n: int = Field(..., title="N")
    level: float = Field(0.95, title="Level")


class Strategy(BaseModel):
    """
    A mixture of the checkpoints and one of the opponents, in the order of a `MetaStrategy`.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    checkpoints: list[float] = Field(..., title="Checkpoints")
    opponents: list[float] = Field(..., title="Opponents")


class Curve(BaseModel):
    """
    Points of a curve: shares of the questions from 0 to 1, ascending, and the mean F1 at each.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    shares: list[float] = Field(..., title="Shares")
    f1: list[float] = Field(..., title="F1")


class CheckpointOut(BaseModel):
    """
    One checkpoint or base model. Its origin and scores are null for callers who are not researchers.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    name: str = Field(..., title="Name")
    kind: str = Field(..., title="Kind")
    base: str = Field(..., title="Base")
    step: int = Field(..., title="Step")
    open_to_players: bool = Field(..., title="Open To Players")
    run_id: int | None = Field(..., title="Run Id")
    parent_id: int | None = Field(..., title="Parent Id")
    sha256: str | None = Field(..., title="Sha256")
    metrics: dict[str, Any] | None = Field(..., title="Metrics")
    aliases: list[str] | None = Field(..., title="Aliases")
    created_at: AwareDatetime | None = Field(..., title="Created At")
    withdrawn_data: list[WithdrawnDataOut] | None = Field(..., title="Withdrawn Data")
    """
    What it may have learned from, and consent to which was withdrawn since.
    """


class PagedCheckpointOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[CheckpointOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class MatchLineOut(BaseModel):
    """
    A match in a list.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    game: str = Field(..., title="Game")
    state: str = Field(..., title="State")
    visibility: str = Field(..., title="Visibility")


class PagedMatchLineOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[MatchLineOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class AdviceOut(BaseModel):
    """
    What a coach advised; `text` is empty while it is awaited, and where `why` says why there is none.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    seat: int = Field(..., title="Seat")
    turn: int = Field(..., title="Turn")
    """
    The seat's turn, from 0.
    """
    coach: str = Field(..., title="Coach")
    text: str = Field(..., title="Text")
    why: str = Field(..., title="Why")
    asked_at: AwareDatetime = Field(..., title="Asked At")
    seconds: float | None = Field(..., title="Seconds")
    """
    From the request to the answer.
    """


class Argument(BaseModel):
    """
    One argument of an action: an integer in [low, high], one of `choices`, or free text.

    `marked` choices are written in angle brackets, `<BET>`; a game names all it ever offers in `GameSpec.marks`. With
    `open`, other values are legal as well, and the game says what comes of them; `choices` are those that work, and
    where there are none, no button or list offers the action. One of `prepositions` may stand before the value instead
    of the name; a command is written with the first: `take mug 1 from shelf 2`.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    kind: Literal["integer", "choice", "text"] = Field(..., title="Kind")
    choices: list[str] = Field([], title="Choices")
    low: int = Field(0, title="Low")
    high: int = Field(0, title="High")
    marked: bool = Field(False, title="Marked")
    open: bool = Field(False, title="Open")
    prepositions: list[str] = Field([], title="Prepositions")


class MessageOut(BaseModel):
    """
    One line that the caller may see. `author` is null for lines of the game.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    number: int = Field(..., title="Number")
    author: int | None = Field(..., title="Author")
    text: str = Field(..., title="Text")
    channel: str = Field(..., title="Channel")


class SeatOut(BaseModel):
    """
    One seat of a match. Who sits there is shown once the game is over and, if you played, rated.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    seat: int = Field(..., title="Seat")
    name: str = Field(..., title="Name")
    kind: str | None = Field(..., title="Kind")
    who: str | None = Field(..., title="Who")
    you: bool = Field(..., title="You")


class PlaceIn(BaseModel):
    """
    The player of a seat. An empty place can be taken by anybody.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    me: bool = Field(False, title="Me")
    checkpoint: int | str | None = Field(None, title="Checkpoint")
    """
    Id or alias of a checkpoint.
    """
    scripted: str = Field("", title="Scripted")
    """
    `scripted`, `random`, or a player of that game alone, such as `nash`.
    """
    speaker: str = Field("", title="Speaker")
    """
    Who speaks for the checkpoint, which then writes strategies: empty = as in the run that trained it; `none` = it speaks itself, without strategies; `self` = it writes a strategy before each of its replies; `checkpoint:ID`, `checkpoint:ALIAS` or `deployment:ID`.
    """


class SeatIn(BaseModel):
    """
    A request for a free seat.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    consent: bool = Field(..., title="Consent")
    """
    Whether your part may be stored in datasets and used for training.
    """


class MoveOut(BaseModel):
    """
    The stored move.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    seat: int = Field(..., title="Seat")
    move: dict[str, Any] = Field(..., title="Move")


class MoveIn(BaseModel):
    """
    A move of the caller's seat at its turn `turn`, from 0; a repeated request returns the stored move.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    turn: int = Field(..., title="Turn")
    action: str = Field("", title="Action")
    args: dict[str, int | str] = Field({}, title="Args")
    text: str = Field("", title="Text")


class AdviceIn(BaseModel):
    """
    A request for advice at the caller's turn `turn`, from 0; a repeated request returns the stored advice.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    turn: int = Field(..., title="Turn")
    coach: str = Field("scripted", title="Coach")
    """
    `scripted`, a player of that game alone, such as `nash`, `checkpoint:ID`, `checkpoint:ALIAS` or `deployment:ID`.
    """


class LabelShape(BaseModel):
    """
    One label: its type's name, its value, and its place, of which the type's `about` says what it has.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    label: str = Field(..., title="Label")
    value: bool | float | str | list[str] | list[int] | None = Field(None, title="Value")
    """
    By the type's kind; null for a span or a relation.
    """
    seat: int | None = Field(None, title="Seat")
    turn: int | None = Field(None, title="Turn")
    """
    Index of a move of the game.
    """
    start: int | None = Field(None, title="Start")
    """
    First character of the move's text, a Unicode code point.
    """
    end: int | None = Field(None, title="End")
    """
    The character after the last one.
    """
    other_turn: int | None = Field(None, title="Other Turn")
    reason: str = Field("", max_length=10000, title="Reason")


class JudgmentIn(BaseModel):
    """
    A judgment of one target of a queue that is assigned to the caller.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    target: int = Field(..., title="Target")
    labels: list[LabelShape] | None = Field(None, title="Labels")
    """
    Null: could not score.
    """
    reason: str = Field("", title="Reason")


class TargetOut(BaseModel):
    """
    One seat of a match, an episode or an imported conversation that waits for the caller's judgment.

    `match`, `episode` and `conversation` are null for annotators of a queue that hides what some players did not know.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    """
    The `target` of the judgment to send.
    """
    queue: int = Field(..., title="Queue")
    match: int | None = Field(..., title="Match")
    episode: int | None = Field(..., title="Episode")
    conversation: int | None = Field(..., title="Conversation")
    seat: int | None = Field(..., title="Seat")
    """
    Null: the whole game.
    """
    codebook: str = Field(..., title="Codebook")
    label_types: list[dict[str, Any]] = Field(..., title="Label Types")
    """
    What to label: name, title, kind, about, definition, low, high, anchors, options, roles, when …
    """


class AnalysisOut(BaseModel):
    """
    An analysis of the judgments of a queue.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    state: str = Field(..., title="State")
    """
    ready, computing, failed
    """
    done: int = Field(..., title="Done")
    """
    Progress of a worker, of `total`.
    """
    total: int = Field(..., title="Total")
    result: dict[str, Any] | None = Field(..., title="Result")
    """
    Once it is ready. Of agreement: `annotators`, `labels` (`coefficients`, `pairs`, `periods`), and `disagreements` (targets with how much annotators disagree, from 0 to 1). Of truth: `labels` (`methods`, `annotators`, `differing`). Of calibration: `judges` (`labels`, and `wrong`, the targets that they miss).
    """


class DecisionIn(BaseModel):
    """
    A decision over the judgments of one target.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    target: int = Field(..., title="Target")
    labels: list[LabelShape] | None = Field(None, title="Labels")
    """
    Null: could not score.
    """
    note: str = Field("", title="Note")
    """
    Why; needed where no annotator gave one of the labels.
    """
    gold: bool | None = Field(None, title="Gold")
    """
    Whether it is in the gold set; null: as before.
    """


class QueueOut(BaseModel):
    """
    A queue of targets to be judged.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    name: str = Field(..., title="Name")
    owner: str = Field(..., title="Owner")
    codebook: str = Field(..., title="Codebook")
    judged_by: str = Field(..., title="Judged By")
    """
    people, or the name of a judge model or of a rule.
    """
    state: str = Field(..., title="State")
    """
    open, paused, closed
    """
    overlap: int | None = Field(..., title="Overlap")
    """
    Annotators per target; null: all.
    """
    max_overlap: int | None = Field(..., title="Max Overlap")
    """
    At most so many where they disagree.
    """
    assignment: str = Field(..., title="Assignment")
    """
    first_come, preassigned
    """
    order: str = Field(..., title="Order")
    """
    position, random, disagreement, uncertainty
    """
    batches_open: int | None = Field(..., title="Batches Open")
    """
    Null: all.
    """
    selection: dict[str, Any] = Field(..., title="Selection")
    """
    The filter that chose the games.
    """
    targets: int = Field(..., title="Targets")
    scored: int = Field(..., title="Scored")
    unscored: int = Field(..., title="Unscored")
    waiting: int = Field(..., title="Waiting")
    """
    Targets that nobody has judged.
    """
    created_at: AwareDatetime = Field(..., title="Created At")


class QueueIn(BaseModel):
    """
    A queue to make: games by one or more origins, a filter over them, and a judge model or annotators.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    codebook: str = Field(..., title="Codebook")
    codebook_version: int | None = Field(None, title="Codebook Version")
    """
    Null: the newest.
    """
    matches: list[int] = Field([], title="Matches")
    every_match: bool = Field(False, title="Every Match")
    """
    All matches that may be judged, as the filter selects them.
    """
    run: int | None = Field(None, title="Run")
    step: int | None = Field(None, title="Step")
    """
    Null: the newest step that has episodes.
    """
    dataset: str | None = Field(None, title="Dataset")
    dataset_version: int | None = Field(None, title="Dataset Version")
    """
    Null: the newest.
    """
    most: int = Field(20, title="Most")
    judge: str | None = Field(None, title="Judge")
    annotators: list[str] = Field([], title="Annotators")
    """
    User names.
    """
    selection: dict[str, str | int] = Field({}, title="Selection")
    """
    game, role, outcome, step_from, step_to, event, action, text; see the form.
    """
    overlap: int | None = Field(None, title="Overlap")
    max_overlap: int | None = Field(None, title="Max Overlap")
    assignment: Literal["first_come", "preassigned"] = Field("first_come", title="Assignment")
    reserve_minutes: int = Field(30, title="Reserve Minutes")
    order: Literal["position", "random", "disagreement", "uncertainty"] = Field("random", title="Order")
    batch_size: int | None = Field(None, title="Batch Size")
    qualification_items: int = Field(0, title="Qualification Items")
    qualification_threshold: float = Field(0.8, title="Qualification Threshold")
    gold_feedback: bool = Field(True, title="Gold Feedback")
    shows_hidden: bool = Field(False, title="Shows Hidden")
    shows_suggestions: bool = Field(False, title="Shows Suggestions")


class QueueTargetOut(BaseModel):
    """
    A target of a queue, in its order.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    match: int | None = Field(..., title="Match")
    episode: int | None = Field(..., title="Episode")
    conversation: int | None = Field(..., title="Conversation")
    seat: int | None = Field(..., title="Seat")
    """
    Null: the whole game.
    """
    position: int = Field(..., title="Position")
    batch: int = Field(..., title="Batch")
    required: int | None = Field(..., title="Required")
    """
    Judgments that are required; null: one by each annotator.
    """
    priority: float = Field(..., title="Priority")
    gold: bool = Field(..., title="Gold")
    state: str = Field(..., title="State")


class AssignmentOut(BaseModel):
    """
    A target that is shared out to an annotator, or reserved for them until `expires_at`.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    target: int = Field(..., title="Target")
    annotator: str = Field(..., title="Annotator")
    expires_at: AwareDatetime | None = Field(..., title="Expires At")
    skipped: str = Field(..., title="Skipped")
    """
    Why the annotator put it aside; empty if they did not.
    """


class PagedAssignmentOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[AssignmentOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class ExperimentLineOut(BaseModel):
    """
    An experiment in a list.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    title: str = Field(..., title="Title")
    owner: str = Field(..., title="Owner")
    state: str = Field(..., title="State")
    """
    draft, open, paused, closed
    """
    created_at: AwareDatetime = Field(..., title="Created At")
    begun: int = Field(..., title="Begun")
    """
    Participants who have begun.
    """
    completed: int = Field(..., title="Completed")
    """
    Participants who have completed it.
    """


class PagedExperimentLineOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[ExperimentLineOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class ArmOut(BaseModel):
    """
    One arm of an experiment.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    game: str = Field(..., title="Game")
    scenario: str = Field(..., title="Scenario")
    players: list[str] = Field(..., title="Players")
    """
    The player of each seat; `person` is a participant.
    """
    aliases: dict[str, str] = Field(..., title="Aliases")
    """
    The alias by which a player was chosen, by player.
    """
    rules: dict[str, Any] = Field(..., title="Rules")
    deadline_s: int = Field(..., title="Deadline S")
    shown_as: str = Field(..., title="Shown As")
    """
    What participants read of each other: person, model, unknown, computer.
    """
    fallback: str = Field(..., title="Fallback")
    """
    Who takes the empty seats after the longest wait; empty: nobody.
    """


class QuestionOut(BaseModel):
    """
    One question; with a `right` answer an attention check.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    part: str = Field(..., title="Part")
    """
    before, after
    """
    kind: str = Field(..., title="Kind")
    """
    likert, number, choice, text
    """
    text: str = Field(..., title="Text")
    options: list[str] = Field(..., title="Options")
    low: float | None = Field(..., title="Low")
    """
    Smallest number; null: any.
    """
    high: float | None = Field(..., title="High")
    """
    Largest number; null: any.
    """
    required: bool = Field(..., title="Required")
    right: str = Field(..., title="Right")
    on_wrong: str = Field(..., title="On Wrong")
    """
    After a wrong answer: note, end.
    """


class ArmCountOut(BaseModel):
    """
    How many of an arm are in the analysis.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    groups: int = Field(..., title="Groups")
    participants: int = Field(..., title="Participants")


class EstimateOut(BaseModel):
    """
    A mean over groups with its interval.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    mean: float = Field(..., title="Mean")
    low: float | None = Field(..., title="Low")
    """
    Null: no interval, as one group on an unknown scale has none.
    """
    high: float | None = Field(..., title="High")
    n: int = Field(..., title="N")
    """
    Groups.
    """
    level: float = Field(..., title="Level")


class ExperimentResultsOut(BaseModel):
    """
    Results by arm: every measure's mean, and its difference from the first arm; null without enough values.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    arms: list[ArmCountOut] = Field(..., title="Arms")
    measures: dict[str, dict[str, EstimateOut | None]] = Field(..., title="Measures")
    """
    By measure and arm.
    """
    differences: dict[str, dict[str, EstimateOut | None]] = Field(..., title="Differences")
    """
    By arm and measure.
    """


class DatasetOut(BaseModel):
    """
    One dataset with its versions, oldest first.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    title: str = Field(..., title="Title")
    source: str = Field(..., title="Source")
    licence: str = Field(..., title="Licence")
    owner: str = Field(..., title="Owner")
    versions: list[VersionOut] = Field(..., title="Versions")


class PagedDatasetOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[DatasetOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class ImportOut(BaseModel):
    """
    The result of an import; with errors nothing was stored.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    scenarios: int = Field(..., title="Scenarios")
    conversations: int = Field(..., title="Conversations")
    errors: list[Problem] = Field(..., title="Errors")
    notices: list[Problem] = Field(..., title="Notices")
    version: int | None = Field(None, title="Version")


class CorpusOut(BaseModel):
    """
    One corpus of passages with its indexes.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    owner: str = Field(..., title="Owner")
    filename: str = Field(..., title="Filename")
    source: str = Field(..., title="Source")
    licence: str = Field(..., title="Licence")
    private: bool = Field(..., title="Private")
    created_at: AwareDatetime = Field(..., title="Created At")
    sha256: str = Field(..., title="Sha256")
    bytes: int = Field(..., title="Bytes")
    passages: int | None = Field(..., title="Passages")
    """
    Known once an index is built.
    """
    problem: str = Field(..., title="Problem")
    """
    Why it cannot be indexed, with file, line and field; empty if nothing is wrong.
    """
    indexes: list[IndexOut] = Field(..., title="Indexes")


class PagedCorpusOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[CorpusOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class RunOut(BaseModel):
    """
    One run.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    kind: str = Field(..., title="Kind")
    """
    train, sft, eval, suite
    """
    name: str = Field(..., title="Name")
    owner: str = Field(..., title="Owner")
    state: str = Field(..., title="State")
    """
    queued, starting, running, stopping, succeeded, stopped, failed
    """
    queue: str = Field(..., title="Queue")
    config: dict[str, Any] = Field(..., title="Config")
    """
    The RunConfig with every default.
    """
    method: str = Field(..., title="Method")
    game: str = Field(..., title="Game")
    base: str = Field(..., title="Base")
    """
    The base model's name.
    """
    dataset: str | None = Field(None, title="Dataset")
    start_checkpoint_id: int | None = Field(None, title="Start Checkpoint Id")
    aliases: dict[str, str] = Field(..., title="Aliases")
    """
    The aliases by which checkpoints were chosen, by field.
    """
    step: int = Field(..., title="Step")
    steps: int = Field(..., title="Steps")
    """
    Planned number of training steps.
    """
    key_metric: float | None = Field(..., title="Key Metric")
    result: dict[str, Any] | None = Field(..., title="Result")
    """
    An evaluation's result.
    """
    error: str = Field(..., title="Error")
    """
    Why it failed.
    """
    code_version: str = Field(..., title="Code Version")
    created_at: AwareDatetime = Field(..., title="Created At")
    started_at: AwareDatetime | None = Field(..., title="Started At")
    ended_at: AwareDatetime | None = Field(..., title="Ended At")
    withdrawn_data: list[WithdrawnDataOut] = Field(..., title="Withdrawn Data")
    """
    Of its dataset, and of the run that it started from.
    """


class Entry(BaseModel):
    """
    One cell as a reader sees it: the mean result over starts with its interval, and `score`, the mean from 0 to 1.

    `after` and `first` locate its `games` + `errors` games among the run's episodes.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    step: int = Field(..., title="Step")
    opponent: str = Field(..., title="Opponent")
    result: Interval
    score: float = Field(..., title="Score")
    games: int = Field(..., title="Games")
    errors: int = Field(..., title="Errors")
    after: int = Field(..., title="After")
    first: int = Field(..., title="First")


class MetaStrategy(BaseModel):
    """
    The solutions of the empirical game of some checkpoints and opponents that have all met.

    `alpha_rank` is None where the ranking is not unique. `nash_conv` is the sum of what both players could still gain
    by a best response to `nash`, on the scale 0 to 1.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    checkpoints: list[int] = Field(..., title="Checkpoints")
    opponents: list[str] = Field(..., title="Opponents")
    alpha_rank: Strategy | None
    nash: Strategy
    nash_conv: float = Field(..., title="Nash Conv")


class PayoffTable(BaseModel):
    """
    The table of one side of the learner: `learner` as in `Cell`, results between `low` and `high`.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    learner: str = Field(..., title="Learner")
    low: float = Field(..., title="Low")
    high: float = Field(..., title="High")
    checkpoints: list[int] = Field(..., title="Checkpoints")
    opponents: list[str] = Field(..., title="Opponents")
    cells: list[Entry] = Field(..., title="Cells")
    meta: MetaStrategy | None = None


class Calibration(BaseModel):
    """
    A curve with that of a shuffled ranking, the areas under both, and the first minus the second.

    `top` has the mean F1 of the share of questions with the highest scores, by percentage; of the answer curve alone.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    curve: Curve
    shuffled: Curve
    area: Interval
    shuffled_area: Interval
    gain: Interval
    top: dict[str, Interval] | None = Field(None, title="Top")


class Cell(BaseModel):
    """
    One question set with one tool, "" for an agent without one; `errors` questions could not be measured.

    `worth` is the model's F1 minus its F1 without searches, on the same questions; the set `counts` with this tool if
    that is at least `WORTH` and its interval is above 0. `search_calibration` is None without a tool.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    label: str = Field(..., title="Label")
    tool: str = Field(..., title="Tool")
    in_distribution: bool = Field(..., title="In Distribution")
    questions: int = Field(..., title="Questions")
    errors: int = Field(..., title="Errors")
    f1: Interval
    search_rate: Interval
    hedge_rate: Interval
    unsearched_f1: Interval
    worth: Interval
    counts: bool = Field(..., title="Counts")
    search: Interval | None
    answer: Interval
    hedge: Interval
    legal: Interval
    search_calibration: Calibration | None
    answer_calibration: Calibration


class Evaluation(BaseModel):
    """
    All cells of one model after a training step; 0 is the model that the run started from, only prompted.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    version: Literal[1] = Field(1, title="Version")
    step: int = Field(..., title="Step")
    model: str = Field(..., title="Model")
    cells: list[Cell] = Field(..., title="Cells")


class Action(BaseModel):
    """
    A legal action of a seat, declared as data, from which the parser's grammar and the table's buttons are made.

    A reply performs it by the tag `<name>…</name>`; the one action with `bare` is performed by a reply without a tag.
    `text` says whether speech beside the tag belongs to the move; `private` words beside it are the seat's reasoning,
    which nobody else reads. With `verbs` it is a command as well: a reply without a tag performs it if it begins with
    one of them. The first verb makes its canonical form, in which nothing stands beside it.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    name: str = Field(..., title="Name")
    args: list[Argument] = Field([], title="Args", validate_default=True)
    text: Literal["none", "optional", "required", "private"] = Field("optional", title="Text")
    bare: bool = Field(False, title="Bare")
    label: str = Field("", title="Label")
    verbs: list[str] = Field([], title="Verbs")


class MatchOut(BaseModel):
    """
    A match as the caller sees it. `turn` is the number of moves that the caller has made.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    game: str = Field(..., title="Game")
    state: str = Field(..., title="State")
    turn: int = Field(..., title="Turn")
    seats: list[SeatOut] = Field(..., title="Seats")
    messages: list[MessageOut] = Field(..., title="Messages")
    actions: list[Action] = Field(..., title="Actions")
    """
    What the caller may do now; empty unless it is their turn.
    """
    max_chars: int = Field(..., title="Max Chars")
    deadline: AwareDatetime | None = Field(..., title="Deadline")
    returns: dict[str, Any] | None = Field(..., title="Returns")
    """
    Each seat's result, once the game is over and open to you.
    """
    advice: list[AdviceOut] = Field([], title="Advice", validate_default=True)
    """
    What coaches advised you, the newest first; also what they advised others, once it is revealed.
    """


class MatchIn(BaseModel):
    """
    A table to set up.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    game: str = Field(..., title="Game")
    scenario: str = Field("sample", title="Scenario")
    """
    `sample`, `version:ID` of a dataset version, or `stored:ID`.
    """
    places: list[PlaceIn] = Field(..., title="Places")
    rules: dict[str, Any] = Field({}, title="Rules")
    """
    Settings of the game (numbers, choices, lists of words) instead of the scenario's.
    """
    shuffled: bool = Field(False, title="Shuffled")
    """
    Whether places and names are put at seats drawn by chance.
    """
    visibility: str = Field("private", pattern="^(private|open|public)$", title="Visibility")
    deadline_s: int | None = Field(None, title="Deadline S")
    coaching: bool = Field(True, title="Coaching")
    """
    Whether players may ask a coach.
    """
    consent: bool = Field(..., title="Consent")
    """
    Whether your part may be stored in datasets and used for training.
    """


class JudgmentOut(BaseModel):
    """
    One judgment; `labels` null: could not score, `reason` says why.

    `match`, `episode` and `conversation` are null for annotators of a queue that hides what some players did not know.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    queue: int | None = Field(..., title="Queue")
    match: int | None = Field(..., title="Match")
    episode: int | None = Field(..., title="Episode")
    conversation: int | None = Field(..., title="Conversation")
    """
    Of an imported dataset.
    """
    seat: int | None = Field(..., title="Seat")
    """
    Null: the whole game.
    """
    codebook: str = Field(..., title="Codebook")
    author: str = Field(..., title="Author")
    """
    `annotator:` with a number of the queue, `adjudicator`, `seat:` with the seat of a player who rated, `model:` or `rule:` with its name, or a name that came with an import.
    """
    labels: list[LabelShape] | None = Field(..., title="Labels")
    reason: str = Field(..., title="Reason")
    decides: bool = Field(..., title="Decides")
    """
    Whether it is an adjudicator's decision over the other judgments.
    """
    prompt_sha256: str = Field(..., title="Prompt Sha256")
    created_at: AwareDatetime = Field(..., title="Created At")
    updated_at: AwareDatetime | None = Field(..., title="Updated At")
    """
    When its author last saved it; null if an import does not say.
    """


class PagedJudgmentOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[JudgmentOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class PagedTargetOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[TargetOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class PagedQueueOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[QueueOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class PagedQueueTargetOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[QueueTargetOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")


class ExperimentOut(BaseModel):
    """
    The design of an experiment.
    """

    model_config = ConfigDict(
        extra="ignore",
    )
    id: int = Field(..., title="Id")
    title: str = Field(..., title="Title")
    owner: str = Field(..., title="Owner")
    state: str = Field(..., title="State")
    """
    draft, open, paused, closed
    """
    created_at: AwareDatetime = Field(..., title="Created At")
    begun: int = Field(..., title="Begun")
    """
    Participants who have begun.
    """
    completed: int = Field(..., title="Completed")
    """
    Participants who have completed it.
    """
    consent_text: str = Field(..., title="Consent Text")
    debriefing: str = Field(..., title="Debriefing")
    preregistration: str = Field(..., title="Preregistration")
    preregistration_sha256: str = Field(..., title="Preregistration Sha256")
    """
    Of the pre-registration in UTF-8; empty before it was opened.
    """
    per_arm: int | None = Field(..., title="Per Arm")
    closes_at: AwareDatetime | None = Field(..., title="Closes At")
    opened_at: AwareDatetime | None = Field(..., title="Opened At")
    closed_at: AwareDatetime | None = Field(..., title="Closed At")
    repeats: int = Field(..., title="Repeats")
    """
    Places of each arm in a block.
    """
    seed: int = Field(..., title="Seed")
    wait_seconds: int = Field(..., title="Wait Seconds")
    shortest_wait_s: int = Field(..., title="Shortest Wait S")
    arms: list[ArmOut] = Field(..., title="Arms")
    questions: list[QuestionOut] = Field(..., title="Questions")


class PagedRunOut(BaseModel):
    model_config = ConfigDict(
        extra="ignore",
    )
    items: list[RunOut] = Field(..., title="Items")
    count: int = Field(..., title="Count")
