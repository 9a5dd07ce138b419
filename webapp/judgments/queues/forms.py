"""The form of a queue."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet

from training.games import REGISTRY
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.core.choices import offer
from webapp.judgments.models import CodebookVersion, JudgeModel, Queue
from webapp.judgments.queues.selection import EVENTS, OUTCOMES, Selection
from webapp.judgments.queues.services import QueueSettings
from webapp.judgments.queues.sharing import addable
from webapp.runs.models import PlayedEpisode, Run
from webapp.scenarios.models import DatasetVersion, StoredConversation


class FinishedMatches(forms.ModelMultipleChoiceField):
    """Matches by number, title and day."""

    def label_from_instance(self, obj: Match) -> str:
        return f"{obj.pk}: {obj.title}, {obj.created_at:%-d %B %Y}"


class ConversationVersions(forms.ModelChoiceField):
    """Dataset versions with the number of their conversations."""

    def label_from_instance(self, obj: DatasetVersion) -> str:
        return f"{obj}: {obj.conversation_count} conversations"


@dataclass(frozen=True)
class Section:
    """Some fields of a form under a heading."""

    title: str
    fields: list[forms.BoundField]
    note: str = ""
    optional: bool = False
    """Folded, unless something in it was entered or is wrong."""

    @property
    def used(self) -> bool:
        """Whether a field has an error, or another value than at first."""
        return any(
            field.errors or (field.form.is_bound and field.name in field.form.changed_data) for field in self.fields
        )


class GamesForm(forms.Form):
    """Games of one or more origins, and the filter that selects among them.

    No field is called like a method of the form's element (`matches`): scripts would find the field in its place.
    """

    match = FinishedMatches(
        Match.objects.none(),
        required=False,
        label="Matches",
        help_text="Finished matches at which everybody agreed to be rated; of running experiments, only your own.",
    )
    every_match = forms.BooleanField(required=False, label="All finished matches that the filter selects")
    run = forms.ModelChoiceField(Run.objects.none(), required=False, help_text="Or episodes of a run.")
    step = forms.IntegerField(
        min_value=0,
        required=False,
        help_text="Training step of those episodes. Empty: the newest step that has any, or those of the filter.",
    )
    version = ConversationVersions(
        DatasetVersion.objects.none(),
        required=False,
        label="Dataset",
        help_text="Or conversations that came with a dataset, in its order.",
    )
    most = forms.IntegerField(
        min_value=1,
        max_value=5000,
        initial=20,
        label="Limit",
        help_text="Largest number of matches of the filter, of episodes or of conversations.",
    )
    game = forms.ChoiceField(required=False, help_text="Only of this game.")
    role = forms.CharField(required=False, max_length=40, help_text="Only seats with this role, such as werewolf.")
    outcome = forms.ChoiceField(required=False, choices=OUTCOMES, help_text="Only seats with this result.")
    step_from = forms.IntegerField(required=False, min_value=0, label="From step")
    step_to = forms.IntegerField(required=False, min_value=0, label="To step")
    event = forms.ChoiceField(required=False, choices=EVENTS, label="Contains")
    action = forms.CharField(
        required=False, max_length=40, label="Contains a move", help_text="The name of an action, such as reject."
    )
    text = forms.CharField(required=False, max_length=200, label="Somebody says")

    WHAT = ("match", "every_match", "run", "step", "version", "most")
    FILTER = ("game", "role", "outcome", "step_from", "step_to", "event", "action", "text")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user
        game = self.fields["game"]
        assert isinstance(game, forms.ChoiceField)
        game.choices = [("", "any"), *((spec.name, spec.title) for spec in REGISTRY.values())]
        self._offer("match", Match.objects.judgeable_by(user).order_by("-pk"))
        has_episodes = Exists(PlayedEpisode.objects.filter(run=OuterRef("pk")))
        self._offer("run", Run.objects.visible_to(user).filter(has_episodes).order_by("-pk"))
        versions = DatasetVersion.objects.visible_to(user).readable().filter(conversation_count__gt=0)
        self._offer("version", versions.select_related("dataset").order_by("-pk"))

    def sections(self) -> list[Section]:
        """Return the fields as the page shows them."""
        return [
            self._section("What is judged", self.WHAT),
            self._section(
                "Filter", self.FILTER, "Annotators do not see it. Empty fields select everything.", fold=True
            ),
        ]

    def _section(self, title: str, names: Iterable[str], note: str = "", *, fold: bool = False) -> Section:
        return Section(title, [self[name] for name in names], note, fold)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not any(cleaned.get(name) for name in ("match", "every_match", "run", "version")):
            self.add_error("match", "Choose finished matches, a run or a dataset.")
        low, high = cleaned.get("step_from"), cleaned.get("step_to")
        if low is not None and high is not None and low > high:
            self.add_error("step_to", "The last step is before the first.")
        return cleaned

    def selection(self) -> Selection:
        """Return the filter."""
        return Selection(
            **{name: value for name in self.FILTER if (value := self.cleaned_data[name]) not in ("", None)}
        )

    def games(self) -> dict[str, list[Any]]:
        """Return the games that match, by kind: what `create_queue` takes."""
        return {"matches": self.matches(), "episodes": self.episodes(), "conversations": self.conversations()}

    def matches(self) -> list[Match]:
        """Return the chosen matches, or the newest that the filter selects."""
        rows: Iterable[Match] = self.cleaned_data["match"]
        if self.cleaned_data["every_match"]:
            rows = Match.objects.judgeable_by(self.user).order_by("-pk").iterator(chunk_size=200)
            return self._matching(rows, self.cleaned_data["most"])
        return self._matching(rows, None)

    def _matching(self, rows: Iterable[Any], most: int | None) -> list[Any]:
        return list(self.selection().matching(rows, most))

    def _field(self, name: str) -> forms.ModelChoiceField[Any]:
        field = self.fields[name]
        assert isinstance(field, forms.ModelChoiceField)
        return field

    def _choose(self, name: str, rows: QuerySet[Any]) -> None:
        self._field(name).queryset = rows

    def _offer(self, name: str, rows: QuerySet[Any]) -> None:
        """List the latest rows and the selected ones."""
        field = self._field(name)
        submitted = field.widget.value_from_datadict(self.data, self.files, self.add_prefix(name))
        selected = submitted if self.is_bound else self.get_initial_for_field(field, name)
        offer(field, rows, selected if isinstance(selected, list) else [selected])

    def episodes(self) -> list[PlayedEpisode]:
        """Return the episodes that were chosen, without those that ended in an error."""
        run = self.cleaned_data["run"]
        if run is None:
            return []
        rows = run.episodes.of_training().filter(summary__error=None).select_related("run").order_by("step", "number")
        step = self.cleaned_data["step"]
        low, high = self.cleaned_data["step_from"], self.cleaned_data["step_to"]
        if step is None and low is None and high is None:
            step = run.episodes.of_training().order_by("-step").values_list("step", flat=True).first()
        bounds = {"step": step, "step__gte": low, "step__lte": high}
        rows = rows.filter(**{name: value for name, value in bounds.items() if value is not None})
        return self._matching(rows.iterator(chunk_size=200), self.cleaned_data["most"])

    def conversations(self) -> list[StoredConversation]:
        """Return the first matching conversations of the chosen dataset version."""
        version = self.cleaned_data["version"]
        if version is None:
            return []
        rows = StoredConversation.objects.filter(scenario__version=version)
        ordered = rows.select_related("scenario__version__dataset").order_by("scenario__position", "position")
        return self._matching(ordered.iterator(chunk_size=200), self.cleaned_data["most"])


class QueueForm(GamesForm):
    """A queue: the games to be judged, the codebook, the judges and how they work."""

    name = forms.CharField(max_length=120)
    codebook_version = forms.ModelChoiceField(CodebookVersion.objects.none(), label="Codebook")
    judge = forms.ModelChoiceField(
        JudgeModel.objects.order_by("name"),
        required=False,
        label="Judge model",
        help_text="Or choose annotators below. The settings that follow are for annotators.",
    )
    annotators = forms.ModelMultipleChoiceField(User.objects.none(), required=False)
    overlap = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=50,
        label="Annotators per target",
        help_text="How many annotators judge each seat or game (overlap). Empty: all.",
    )
    max_overlap = forms.IntegerField(
        required=False,
        min_value=2,
        max_value=50,
        label="Maximum after disagreement",
        help_text="If the annotators of a target disagree, one more is added, up to this number. Empty: none is added.",
    )
    assignment = forms.ChoiceField(
        choices=Queue.Assignment.choices, initial=Queue.Assignment.FIRST_COME, required=False, label="Assignment"
    )
    reserve_minutes = forms.IntegerField(
        min_value=1,
        max_value=1440,
        initial=30,
        required=False,
        label="Reservation in minutes",
        help_text="How long a target stays reserved for the annotator who opens it.",
    )
    order = forms.ChoiceField(choices=Queue.Order.choices, initial=Queue.Order.RANDOM, required=False)
    batch_size = forms.IntegerField(
        required=False, min_value=1, help_text="Targets per batch; you open the batches one by one. Empty: no batches."
    )
    shows_hidden = forms.BooleanField(
        required=False, label="Show roles, private information and the board", help_text="Otherwise they are hidden."
    )
    shows_suggestions = forms.BooleanField(
        required=False, label="Show suggestions", help_text="Annotators tend to agree with suggestions that they see."
    )
    qualification_items = forms.IntegerField(
        min_value=0,
        max_value=200,
        initial=0,
        required=False,
        label="Gold targets in the qualification test",
        help_text="Annotators first judge this many gold targets, whose labels are known. 0: no test. "
        "You add targets to the gold set under Adjudication.",
    )
    qualification_threshold = forms.FloatField(
        min_value=0.01,
        max_value=1,
        initial=0.8,
        required=False,
        label="Passing score",
        help_text="The share of correct answers from which an annotator passes, up to 1.",
    )
    gold_feedback = forms.BooleanField(required=False, initial=True, label="Show the gold labels after each answer")

    WHO = ("name", "codebook_version", "judge", "annotators")
    HOW_MANY = ("overlap", "max_overlap", "assignment", "reserve_minutes")
    ORDER = ("order", "batch_size")
    BLIND = ("shows_hidden", "shows_suggestions")
    QUALIFICATION = ("qualification_items", "qualification_threshold", "gold_feedback")

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(user, *args, **kwargs)
        versions = CodebookVersion.objects.select_related("codebook").defer("labels", "guideline")
        self._choose("codebook_version", versions.order_by("codebook__name", "-number"))
        self._choose("annotators", addable().order_by("username"))

    def sections(self) -> list[Section]:
        """Return the fields as the page shows them."""
        return [
            self._section("Queue", self.WHO, "More annotators can be invited by links from the queue's page."),
            *super().sections(),
            self._section("Overlap and assignment", self.HOW_MANY, fold=True),
            self._section("Order", self.ORDER, fold=True),
            self._section("What annotators see", self.BLIND, fold=True),
            self._section("Qualification test", self.QUALIFICATION, fold=True),
        ]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if bool(cleaned.get("judge")) == bool(cleaned.get("annotators")):
            self.add_error(
                "judge",
                "Choose either a judge model or, below, at least one annotator; others can be invited by a link later.",
            )
        return cleaned

    def how(self) -> QueueSettings:
        """Return how the queue works; fields that are left empty keep their defaults."""
        names = (*self.HOW_MANY, *self.ORDER, *self.BLIND, *self.QUALIFICATION)
        values = {name: self.cleaned_data[name] for name in names if self.cleaned_data[name] not in ("", None)}
        return QueueSettings(**values, selection=self.selection())
