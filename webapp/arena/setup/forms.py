"""The forms of the table's pages: a new table and a guest's name. Every field has a default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django import forms

from training.errors import BadInput
from training.games import REGISTRY, lookup
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.setup import countdowns, scenarios, speakers, tables
from webapp.arena.setup.players import Players
from webapp.arena.setup.rules import RulesForm
from webapp.core.templatetags.parley import duration
from webapp.scenarios.models import StoredScenario


class NewTable(forms.Form):
    """Game, scenario, seats and rules. Seat names depend on the scenario, so the page shows numbers.

    `seats` is the number of seats if the game allows several; a number without a scenario falls back to the usual size.
    `rules` is the form of the game's own settings, validated together with this form.
    """

    game = forms.ChoiceField(label="Game")
    scenario = forms.ChoiceField(label="Scenario", help_text="One of these scenarios, drawn at random.")
    deadline_s = forms.IntegerField(
        label="Seconds for a move",
        min_value=tables.DEADLINES[0],
        max_value=tables.DEADLINES[1],
        help_text="When the time is up, the game's default is played for the seat.",
    )
    visibility = forms.ChoiceField(
        label="Who may watch", choices=Match.Visibility.choices, initial=Match.Visibility.PRIVATE
    )
    shuffled = forms.BooleanField(
        label="Shuffle seats and names",
        required=False,
        initial=True,
        help_text="Otherwise everybody sits as chosen above, and each seat keeps its name.",
    )

    coaching = forms.BooleanField(
        label="Players may ask a coach",
        required=False,
        initial=True,
        help_text="A model or a scripted player advises whoever asks. A game with advice does not count on the ladder.",
    )

    countdown_s = forms.ChoiceField(
        label="When a seat stays empty",
        required=False,
        initial="",
        choices=[("", "Wait for people"), *((n, f"Begin with bots after {duration(n)}") for n in countdowns.LENGTHS)],
        help_text="The time begins with the first answer about consent; everybody at the table sees it.",
    )
    fill_with = forms.ChoiceField(label="Who takes the empty seats then", required=False, initial="")

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        user: User,
        game: str,
        checkpoint: int | None = None,
        stored: StoredScenario | None = None,
        seats: int = 0,
    ) -> None:
        super().__init__(data)
        self.user, self.spec, self.stored = user, lookup(game), stored
        self.sizes = scenarios.sizes(user, game) if stored is None else [len(stored.data["seats"])]
        usual = scenarios.usual_size(game)
        otherwise = usual if usual in self.sizes else next(iter(self.sizes), self.spec.players[0])
        self.size = seats if seats in self.sizes else otherwise
        self.rules = RulesForm(self.spec, data)
        offered = REGISTRY if game in REGISTRY else {**REGISTRY, game: self.spec}  # a stored one may be of any game
        self._field("game").choices = [(spec.name, spec.title) for spec in offered.values()]
        self._field("game").initial = game
        choices = scenarios.choices(user, game, self.size)
        if stored is not None:
            choices = [(f"stored:{stored.pk}", f"{stored.title} ({stored.key})"), *choices]
        self._field("scenario").choices = choices
        self._field("scenario").initial = choices[0][0] if choices else ""
        self.fields["deadline_s"].initial = self.spec.deadline_s
        self.players = Players(user, self.spec, checkpoint)
        self._field("fill_with").choices = [("", "A scripted player"), *self.players.models()]
        if self.size == 2:  # with two, the names belong to the story and the seats to those who chose them
            del self.fields["shuffled"]
        for number in range(self.size):
            self.fields[f"seat_{number}"] = self._seat_field(number, checkpoint)
        for number in range(self.size):
            self.fields[f"speaker_{number}"] = self._speaker_field(number)

    def _field(self, name: str) -> forms.ChoiceField:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        return field

    def _name_of_seat(self, number: int) -> str:
        return f"Seat {number + 1}" if self.stored is None else str(self.stored.data["seats"][number])

    def _speaker_field(self, number: int) -> forms.ChoiceField:
        choices = [*speakers.CHOICES, *self.players.models()]
        label = f"Speaker {number + 1}" if self.stored is None else f"Speaker of {self._name_of_seat(number)}"
        return forms.ChoiceField(label=label, choices=choices, required=False, initial=speakers.AS_TRAINED)

    def _seat_field(self, number: int, checkpoint: int | None) -> forms.ChoiceField:
        people = [("me", "You"), ("open", "Empty: anybody, or a guest by link")]
        label = self._name_of_seat(number)
        initial = "me" if number == 0 else self.players.initial(checkpoint)
        return forms.ChoiceField(label=label, choices=[*people, *self.players.choices()], initial=initial)

    @property
    def seat_fields(self) -> list[forms.BoundField]:
        """The fields of the seats, for the page."""
        return [self[name] for name in self.fields if name.startswith("seat_")]

    @property
    def speaker_fields(self) -> list[forms.BoundField]:
        """The fields of the speakers, for the page; none where no model can be chosen."""
        return [self[name] for name in self.fields if name.startswith("speaker_") and self.players.models()]

    def is_valid(self) -> bool:
        """Whether both the form and the rules are valid."""
        return super().is_valid() & self.rules.is_valid()

    def blame(self, error: BadInput) -> None:
        """Put an error on the field that it names, or above the form."""
        part, _, path = error.where.partition(".")
        if part == "rules":
            self.rules.blame(path, error.why)
        else:
            self.add_error(error.where if error.where in self.fields else None, error.why)

    def clean(self) -> dict[str, Any]:
        """Refuse a table where the same person sits twice."""
        data = super().clean() or {}
        if [data.get(field.name) for field in self.seat_fields].count("me") > 1:
            self.add_error(None, "You can sit at one seat only. Choose somebody else for the other.")
        for number in range(self.size):
            seated = str(data.get(f"seat_{number}", "")).partition(":")[0]
            if data.get(f"speaker_{number}") and seated not in {"checkpoint", "deployment"}:
                self.add_error(f"speaker_{number}", "Only a model has a speaker: choose one for this seat.")
        return data

    def drawn(self) -> tables.Start:
        """The chosen scenario with a fresh seed; raises `BadInput` if it cannot be played."""
        return scenarios.draw(self.cleaned_data["scenario"], self.user, self.spec.name, tables.new_seed(), self.size)

    def places(self, seed: int) -> list[tables.Place]:
        """The player of each seat, shuffled if the form says so."""
        places = [self._place(number) for number in range(self.size)]
        return tables.at_drawn_seats(places, seed) if self.cleaned_data.get("shuffled") else places

    def _place(self, number: int) -> tables.Place:
        choice = self.cleaned_data[f"seat_{number}"]
        if choice == "me":
            return tables.Place(user=self.user)
        try:
            return self.players.place(choice, self.cleaned_data.get(f"speaker_{number}", speakers.AS_TRAINED))
        except BadInput as error:
            raise BadInput(error.why, f"speaker_{number}") from error

    def countdown(self) -> tables.Countdown | None:
        """The chosen countdown; raises `BadInput` if its model needs a speaker that is not open to the user."""
        if not self.cleaned_data["countdown_s"]:
            return None
        try:
            place = self.players.place(self.cleaned_data["fill_with"])
        except BadInput as error:
            raise BadInput(error.why, "fill_with") from error
        return tables.Countdown(int(self.cleaned_data["countdown_s"]), place.deployment)

    def make(self, *, consent: bool | None) -> Match:
        """Create the table; raises `BadInput` with the reason if that fails."""
        start = self.drawn()
        places = self.places(start.scenario.seed)
        if len(places) != len(start.scenario.seats):
            raise BadInput(f"this scenario has {len(start.scenario.seats)} seats", "scenario")
        return tables.create(
            host=self.user,
            start=replace(start, rules=self.rules.chosen(), countdown=self.countdown()),
            places=places,
            visibility=self.cleaned_data["visibility"],
            deadline_s=self.cleaned_data["deadline_s"],
            consent=consent,
            shuffled=self.cleaned_data.get("shuffled", False),
            coaching=self.cleaned_data["coaching"],
        )


class GuestName(forms.Form):
    """A guest's display name."""

    shown_name = forms.CharField(
        max_length=60, label="Your name at the table", help_text="Others at the table read it."
    )
