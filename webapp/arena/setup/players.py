"""The players whom a user may seat in a game: models and players without a model, as choices of a form."""

from __future__ import annotations

from training.games import GameSpec
from webapp.accounts.models import User
from webapp.arena import opponents
from webapp.arena.setup import speakers
from webapp.arena.setup.tables import Place
from webapp.runs.models import Checkpoint
from webapp.serving import services as serving
from webapp.serving.models import Deployment

SHOWN_CHECKPOINTS = 50


def checkpoints_for(user: User, wanted: int | None = None) -> list[Checkpoint]:
    """The checkpoints this user may play against, newest first, always including `wanted`."""
    visible = Checkpoint.objects.visible_to(user)
    newest = list(visible.order_by("-created_at")[:SHOWN_CHECKPOINTS])
    if wanted is not None and wanted not in {checkpoint.pk for checkpoint in newest}:
        newest = [*visible.filter(pk=wanted), *newest]
    return newest


class Players:
    """Models and scripted players of one game, in the order of a form; `wanted` is a checkpoint listed in any case."""

    def __init__(self, user: User, spec: GameSpec, wanted: int | None = None) -> None:
        self.user, self.spec = user, spec
        self.checkpoints = checkpoints_for(user, wanted)
        self.remotes = list(Deployment.objects.visible_to(user).filter(remote__isnull=False).select_related("remote"))

    def models(self) -> list[tuple[str, str]]:
        """(value, label) of each model."""
        checkpoints = [(f"checkpoint:{model.pk}", f"Model: {model.name}") for model in self.checkpoints]
        return [*checkpoints, *((f"deployment:{model.pk}", f"Model: {model}") for model in self.remotes)]

    def choices(self) -> list[tuple[str, str]]:
        """(value, label) of each."""
        return [*self.models(), *((f"scripted:{name}", label) for name, label in opponents.choices(self.spec))]

    def initial(self, wanted: int | None) -> str:
        """The value of the checkpoint `wanted` if it may be played against, else of the scripted player."""
        if any(model.pk == wanted for model in self.checkpoints):
            return f"checkpoint:{wanted}"
        return f"scripted:{opponents.substitute(self.spec.name)}"

    def place(self, choice: str, speaker: str = speakers.AS_TRAINED) -> Place:
        """The place of one of these choices, a model's with its speaker; an open one for any other value.

        Raises `BadInput` that names `speaker` for a speaker that cannot be chosen.
        """
        kind, _, rest = choice.partition(":")
        if kind == "checkpoint":
            checkpoint = next(model for model in self.checkpoints if model.pk == int(rest))
            return speakers.place_of(serving.of_checkpoint(checkpoint), speaker, self.user)
        if kind == "deployment":
            remote = next(model for model in self.remotes if model.pk == int(rest))
            return speakers.place_of(remote, speaker, self.user)
        return Place(scripted=rest) if kind == "scripted" else Place()
