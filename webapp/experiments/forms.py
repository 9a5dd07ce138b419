"""Forms of the researcher's pages: an experiment, an arm, a question, a power calculation, a notice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.forms import modelform_factory

from training.errors import BadInput
from training.games import REGISTRY, lookup
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.setup import scenarios, tables
from webapp.arena.setup.players import Players
from webapp.arena.setup.rules import RulesForm
from webapp.experiments.models import PERSON, Arm, Experiment, Question
from webapp.experiments.power import Plan

ROWS = {"rows": 6}
TEXTS = ("title", "consent_text", "debriefing", "preregistration")
STOPPING = ("per_arm", "closes_at", "wait_seconds", "shortest_wait_s", "repeats", "seed")
PLATFORM = (
    "code_completed", "code_waited", "code_attention", "code_removed", "completion_url", "id_parameter",
    "study_parameter", "session_parameter", "requires_id",
)  # fmt: skip

STATED = ("name", "scenario", "deadline_s", "shown_as", "fallback")
"""The fields of an arm that the form has under the same names."""

ExperimentForm = modelform_factory(
    Experiment,
    fields=[*TEXTS, *STOPPING, *PLATFORM],
    widgets={
        **{name: forms.Textarea(attrs=ROWS) for name in TEXTS[1:]},
        "closes_at": forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        "completion_url": forms.TextInput(attrs={"inputmode": "url"}),
    },
)


class ArmForm(forms.Form):
    """One arm: the game's scenario and rules, the player of each seat, and what participants read of their partners."""

    name = forms.CharField(max_length=60)
    scenario = forms.ChoiceField(help_text="One of these scenarios, drawn anew for every table.")
    deadline_s = forms.IntegerField(
        label="Seconds for a move", min_value=tables.DEADLINES[0], max_value=tables.DEADLINES[1]
    )
    shown_as = forms.ChoiceField(
        label="Participants read beside every other player",
        choices=Match.ShownAs.choices,
        initial=Match.ShownAs.UNKNOWN,
        help_text="At the table nothing says otherwise. If it is not so, the experiment needs a debriefing, which ends "
        "with who the others really were.",
    )
    fallback = forms.ChoiceField(
        label="After the longest wait",
        required=False,
        help_text="Who takes the seats of participants who are missing, and of models that have not started.",
    )

    def __init__(self, data: Mapping[str, Any] | None, *, user: User, game: str, size: int, arm: Arm | None) -> None:
        super().__init__(data)
        self.spec, self.size, self.arm = lookup(game), size, arm
        self.players = Players(user, self.spec)
        players = self.players.choices()
        self.rules = RulesForm(self.spec, data)
        self._choices("scenario", scenarios.choices(user, game, size))
        self._choices("fallback", [("", "The participation ends, with the code for waiting"), *players])
        self.fields["deadline_s"].initial = self.spec.deadline_s
        for number in range(size):
            self.fields[f"seat_{number}"] = forms.ChoiceField(
                label=f"Seat {number + 1}",
                choices=[(PERSON, "A participant"), *players],
                initial=PERSON if number == 0 else players[0][0],
            )
        seats = [f"seat_{number}" for number in range(size)]
        self.order_fields(["name", "scenario", *seats, "shown_as", "fallback", "deadline_s"])
        if arm is not None:
            self._begin_with(arm)

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def _begin_with(self, arm: Arm) -> None:
        self.initial = {name: getattr(arm, name) for name in STATED}
        for number, player in enumerate(arm.players):
            self.initial[f"seat_{number}"] = player
        for name, value in arm.rules.items():
            self.rules.initial[json.dumps([name])] = _entered(value)

    def is_valid(self) -> bool:
        """Whether both the form and the rules are valid."""
        return super().is_valid() & self.rules.is_valid()

    def clean(self) -> dict[str, Any]:
        """Refuse an arm without participants."""
        data = super().clean() or {}
        if PERSON not in [data.get(f"seat_{number}") for number in range(self.size)]:
            self.add_error("seat_0", "At least one seat is a participant's.")
        return data

    def blame(self, error: BadInput) -> None:
        """Put an error on the field that it names, or above the form."""
        part, _, path = error.where.partition(".")
        if part == "rules":
            self.rules.blame(path, error.why)
        else:
            self.add_error(error.where if error.where in self.fields else None, error.why)

    def filled(self, experiment: Experiment) -> Arm:
        """The arm of a valid form, not stored yet. Raises `BadInput` if its scenarios cannot have these rules."""
        data = self.cleaned_data
        arm = self.arm or Arm(experiment=experiment)
        arm.game = self.spec.name
        for name in STATED:
            setattr(arm, name, data[name])
        chosen = [data[f"seat_{number}"] for number in range(self.size)]
        *arm.players, arm.fallback = [self.players.resolved(choice) for choice in (*chosen, data["fallback"])]
        pairs = zip((*arm.players, arm.fallback), (*chosen, data["fallback"]), strict=True)
        arm.aliases = {player: choice.partition(":")[2] for player, choice in pairs if player != choice}
        arm.rules = self.rules.chosen()
        start = scenarios.draw(arm.scenario, experiment.owner, arm.game, 1, self.size)
        tables.as_played(tables.Start(start.scenario, start.source, arm.rules), shuffled=True)
        return arm


def _entered(value: Any) -> Any:
    """A setting as its field shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else value


def games() -> list[tuple[str, str]]:
    """(name, title) of the games for two or more."""
    return [(spec.name, spec.title) for spec in REGISTRY.values() if spec.players[1] > 1]


QuestionBase = modelform_factory(
    Question,
    fields=["part", "name", "text", "kind", "low", "high", "required", "right", "on_wrong"],
    help_texts={
        "low": "Of a number; empty: any.",
        "high": "Of a number; empty: any.",
        "right": "Makes it an attention check. Of a scale: the position, from 1.",
    },
)


class QuestionForm(QuestionBase):  # type: ignore[valid-type, misc]
    """One question. Its options are a text with one in each line."""

    field_order = ("part", "name", "text", "kind", "options")
    options = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="One per line: the labels of a scale from its lowest, or the choices.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["options"] = "\n".join(self.instance.options)

    def clean(self) -> dict[str, Any]:
        """Refuse a scale or choice without options, and a right answer that cannot be given."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        options = [line.strip() for line in str(data.get("options", "")).splitlines() if line.strip()]
        kind, right = data.get("kind"), str(data.get("right") or "").strip()
        positions = [str(number) for number in range(1, len(options) + 1)]
        if kind in {Question.Kind.LIKERT, Question.Kind.CHOICE}:
            if len(set(options)) < 2 or len(set(options)) < len(options):
                self.add_error("options", "Write at least two options, one in each line, and none twice.")
            if right and right not in (positions if kind == Question.Kind.LIKERT else options):
                self.add_error("right", "The right answer must be one of the options; of a scale, its position.")
        low, high = data.get("low"), data.get("high")
        if low is not None and high is not None and low >= high:
            self.add_error("high", "The largest number must be above the smallest.")
        self.instance.options = options if kind in {Question.Kind.LIKERT, Question.Kind.CHOICE} else []
        return data


class PowerForm(forms.Form):
    """A power calculation for two arms."""

    outcome = forms.ChoiceField(
        choices=[("means", "means of a number"), ("shares", "shares, such as agreement")], initial="means"
    )
    effect = forms.FloatField(
        label="Effect (Cohen’s d)", min_value=0.01, max_value=10, initial=0.5, help_text="Difference of means in SDs."
    )
    first = forms.FloatField(label="Share in the first arm", min_value=0, max_value=1, initial=0.5)
    second = forms.FloatField(label="Share in the second arm", min_value=0, max_value=1, initial=0.65)
    alpha = forms.FloatField(label="Significance level", min_value=0.0001, max_value=0.5, initial=0.05)
    power = forms.FloatField(label="Power", min_value=0.1, max_value=0.999, initial=0.8)
    people = forms.IntegerField(label="Participants at a table", min_value=1, max_value=99, initial=1)
    correlation = forms.FloatField(label="Correlation within a table", min_value=0, max_value=1, initial=0.0)
    n = forms.IntegerField(
        label="Participants per arm", min_value=2, max_value=10_000, required=False, help_text="Shows their power."
    )

    def plan(self) -> Plan:
        """What a valid form compares."""
        data = self.cleaned_data
        first, second = (data["first"], data["second"]) if data["outcome"] == "shares" else (None, None)
        return Plan(data["effect"], first, second, data["alpha"], data["people"], data["correlation"])


class NoticeForm(forms.Form):
    """What a facilitator tells one participant."""

    text = forms.CharField(max_length=200, required=False, strip=True)
