"""The players whom a user may seat in a game: models and players without a model, as choices of a form."""

from __future__ import annotations

from training.games import GameSpec
from webapp.accounts.models import User
from webapp.arena import opponents
from webapp.arena.setup import speakers
from webapp.arena.setup.tables import Place
from webapp.runs.models import Checkpoint
from webapp.runs.registry import services as registry
from webapp.serving import services as serving
from webapp.serving.models import Deployment

SHOWN_CHECKPOINTS = 50


def checkpoints_for(user: User, chosen: int | None = None) -> list[Checkpoint]:
    """The checkpoints this user may play against, newest first, always including `chosen`."""
    visible = Checkpoint.objects.visible_to(user)
    newest = list(visible.order_by("-created_at")[:SHOWN_CHECKPOINTS])
    if chosen is not None and chosen not in {checkpoint.pk for checkpoint in newest}:
        newest = [*visible.filter(pk=chosen), *newest]
    return newest


class Players:
    """Models and scripted players of one game, in the order of a form; `chosen` is a checkpoint listed in any case."""

    def __init__(self, user: User, spec: GameSpec, chosen: int | None = None) -> None:
        self.user, self.spec = user, spec
        self.checkpoints = checkpoints_for(user, chosen)
        self.remotes = list(Deployment.objects.visible_to(user).filter(remote__isnull=False).select_related("remote"))

    def models(self) -> list[tuple[str, str]]:
        """(value, label) of each model: those with an alias first, by it."""
        named = registry.offered(Checkpoint.objects.visible_to(self.user))
        aliases = [(f"checkpoint:{name}", f"Model: {label}") for name, label in named]
        checkpoints = [(f"checkpoint:{model.pk}", f"Model: {model.name}") for model in self.checkpoints]
        return [*aliases, *checkpoints, *((f"deployment:{model.pk}", f"Model: {model}") for model in self.remotes)]

    def choices(self) -> list[tuple[str, str]]:
        """(value, label) of each."""
        return [*self.models(), *((f"scripted:{name}", label) for name, label in opponents.choices(self.spec))]

    def initial(self, chosen: int | None) -> str:
        """The value of the checkpoint `chosen` if it may be played against, else of the scripted player."""
        if any(model.pk == chosen for model in self.checkpoints):
            return f"checkpoint:{chosen}"
        return f"scripted:{opponents.substitute(self.spec.name)}"

    def resolved(self, choice: str) -> str:
        """A choice that names its checkpoint by the id, where it names it by an alias; any other as it is."""
        checkpoint = registry.find(choice) if choice.startswith(registry.PREFIX) else None
        return choice if checkpoint is None else f"{registry.PREFIX}{checkpoint.pk}"

    def place(self, choice: str, speaker: str = speakers.AS_TRAINED) -> Place:
        """The place of one of these choices, a model's with its speaker; an open one for any other value.

        Raises `BadInput` that names `speaker` for a speaker that cannot be chosen.
        """
        kind, _, rest = choice.partition(":")
        if model := serving.find(choice, user=self.user):
            return speakers.place_of(model, speaker, self.user)
        return Place(scripted=rest) if kind == "scripted" else Place()
