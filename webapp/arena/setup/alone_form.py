"""The form of a play alone: a task, and who else plays it. Every field has a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from training.errors import BadInput
from training.games import lookup
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.arena.setup import alone
from webapp.arena.setup.players import Players
from webapp.arena.setup.tables import Place, Start
from webapp.scenarios.models import StoredScenario

NOBODY = "nobody"


class PlayAlone(forms.Form):
    """Which task a person plays, and which model or scripted player plays the same one."""

    task = forms.ChoiceField(label="Task")
    player = forms.ChoiceField(
        label="Compare with",
        help_text="It gets the same task at the same time. You see what it did once you are done.",
    )

    def __init__(
        self,
        data: Mapping[str, Any] | None,
        *,
        user: User,
        game: str,
        stored: StoredScenario | None = None,
        checkpoint: int | None = None,
    ) -> None:
        super().__init__(data)
        self.user, self.spec = user, lookup(game)
        self.players = Players(user, self.spec, checkpoint)
        tasks = alone.choices(user, game, stored)
        self._offer("task", tasks, tasks[0][0] if tasks else "")
        others = [*self.players.choices(), (NOBODY, "Nobody: only I play")]
        self._offer("player", others, self.players.initial(checkpoint))

    def _offer(self, name: str, choices: list[tuple[str, str]], initial: str) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices, field.initial = choices, initial

    def play(self, *, consent: bool) -> Match:
        """Begin the person's play and that of the chosen player; raises `BadInput` if one cannot begin."""
        return alone.play(user=self.user, start=self._start(), player=self._player(), consent=consent)

    def watch(self) -> Match:
        """Let the chosen player alone play the task; raises `BadInput` if there is none."""
        player = self._player()
        if player is None:
            raise BadInput("choose whom to watch", "player")
        return alone.watch(user=self.user, start=self._start(), player=player)

    def _start(self) -> Start:
        return alone.find(self.cleaned_data["task"], self.user, self.spec.name)

    def _player(self) -> Place | None:
        choice = self.cleaned_data["player"]
        return None if choice == NOBODY else self.players.place(choice)
