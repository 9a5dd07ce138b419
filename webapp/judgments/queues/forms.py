"""The form of a queue."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Exists, OuterRef, QuerySet

from webapp.accounts.models import Role, User
from webapp.arena.models import Match
from webapp.core.choices import offer
from webapp.judgments.models import CodebookVersion, JudgeModel
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


class QueueForm(forms.Form):
    """The seats to be judged, the codebook and the judges.

    No field is called like a method of the form's element (`matches`): scripts would find the field in its place.
    """

    name = forms.CharField(max_length=120)
    codebook_version = forms.ModelChoiceField(CodebookVersion.objects.none(), label="Codebook")
    match = FinishedMatches(
        Match.objects.none(),
        required=False,
        label="Matches",
        help_text="Finished matches at which everybody agreed to be rated; of running experiments, only your own.",
    )
    run = forms.ModelChoiceField(Run.objects.none(), required=False, help_text="Or episodes of a run.")
    step = forms.IntegerField(
        min_value=0, required=False, help_text="Training step of those episodes. Empty: the newest step that has any."
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
        label="At most",
        help_text="Largest number of episodes or conversations.",
    )
    judge = forms.ModelChoiceField(
        JudgeModel.objects.order_by("name"),
        required=False,
        label="Judge model",
        help_text="Or choose annotators below.",
    )
    annotators = forms.ModelMultipleChoiceField(User.objects.none(), required=False)

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._choose(
            "codebook_version", CodebookVersion.objects.select_related("codebook").order_by("codebook__name", "-number")
        )
        self._offer("match", Match.objects.judgeable_by(user).order_by("-pk"))
        has_episodes = Exists(PlayedEpisode.objects.filter(run=OuterRef("pk")))
        self._offer("run", Run.objects.visible_to(user).filter(has_episodes).order_by("-pk"))
        versions = DatasetVersion.objects.visible_to(user).readable().filter(conversation_count__gt=0)
        self._offer("version", versions.select_related("dataset").order_by("-pk"))
        people = User.objects.filter(is_active=True, role__in=[Role.ANNOTATOR, Role.RESEARCHER, Role.ADMIN])
        self._choose("annotators", people.order_by("username"))

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

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if not any(cleaned.get(name) for name in ("match", "run", "version")):
            self.add_error("match", "Choose finished matches, a run or a dataset.")
        if bool(cleaned.get("judge")) == bool(cleaned.get("annotators")):
            self.add_error("judge", "Choose either a judge model or annotators.")
        return cleaned

    def episodes(self) -> list[PlayedEpisode]:
        """Return the episodes that were chosen, without those that ended in an error."""
        run = self.cleaned_data["run"]
        if run is None:
            return []
        step = self.cleaned_data["step"]
        if step is None:
            step = run.episodes.of_training().order_by("-step").values_list("step", flat=True).first()
        episodes = (
            run.episodes.of_training().filter(step=step, summary__error=None).select_related("run").order_by("number")
        )
        return list(episodes[: self.cleaned_data["most"]])

    def conversations(self) -> list[StoredConversation]:
        """Return the first conversations of the chosen dataset version."""
        version = self.cleaned_data["version"]
        if version is None:
            return []
        rows = StoredConversation.objects.filter(scenario__version=version)
        ordered = rows.select_related("scenario__version__dataset").order_by("scenario__position", "position")
        return list(ordered[: self.cleaned_data["most"]])
