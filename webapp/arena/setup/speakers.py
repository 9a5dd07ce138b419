"""Who speaks for a model at a seat: nobody, the model itself after a strategy of its own, or a speaker that it advises.

Raises `BadInput` that names the field `speaker`.
"""

from __future__ import annotations

from dataclasses import dataclass

from training import players
from training.engines.remote.config import remote_config
from training.errors import BadInput
from training.run_sections import SELF, SpeakerSection
from webapp.accounts.models import User
from webapp.arena.setup.tables import Place
from webapp.runs.models import Checkpoint, Run
from webapp.serving import services as serving
from webapp.serving.models import Deployment

AS_TRAINED, ALONE = "", "none"
CHOICES = [
    (AS_TRAINED, "As in the run that trained it"),
    (ALONE, "Nobody: it speaks itself, without strategies"),
    (SELF, "Nobody: it writes a strategy before each of its replies"),
]
"""The choices that name no model: what they stand for, and their labels."""


@dataclass(frozen=True)
class Speaker:
    """How a seat's model writes strategies, and the model that speaks; both None for a model that only speaks."""

    form: SpeakerSection | None = None
    deployment: Deployment | None = None


def place_of(model: Deployment, speaker: str, user: User) -> Place:
    """A seat's place with a model; `speaker` is a value of `CHOICES`, `checkpoint:ID` or `deployment:ID`."""
    chosen = _speaker(model, speaker, user)
    local = {each.pk for each in (model, chosen.deployment) if each is not None and each.checkpoint_id is not None}
    if len(local) > serving.slots():
        why = f"this site serves {serving.slots()} model at once, and strategist and speaker are two"
        raise BadInput(f"{why}: choose the same model, or a remote one", "speaker")
    form = {} if chosen.form is None else chosen.form.to_dict()
    return Place(deployment=model, form=form, speaker=chosen.deployment)


def section_of(model: Deployment) -> SpeakerSection:
    """The section `speaker` of the run that trained a model; the default one if there is none that can be read."""
    return section_of_run(model.checkpoint.run if model.checkpoint is not None else None)


def section_of_run(run: Run | None) -> SpeakerSection:
    """The section `speaker` of a run; the default one if there is none that can be read."""
    try:
        return SpeakerSection.from_dict(run.config.get("speaker", {}) if run is not None else {})
    except BadInput:  # by an earlier release
        return SpeakerSection()


def _speaker(model: Deployment, choice: str, user: User) -> Speaker:
    trained = section_of(model)
    if choice == AS_TRAINED:
        return _of_run(trained, user)
    if choice == ALONE:
        return Speaker()
    if choice == SELF:
        return Speaker(trained.model_copy(update={"source": SELF}))
    if deployment := serving.find(choice, user=user):
        return _spoken_by(trained, deployment)
    raise BadInput("there is no such speaker: choose one of the list", "speaker")


def _spoken_by(form: SpeakerSection, deployment: Deployment) -> Speaker:
    # an own source: the name of a model could be that of a player, and an address is no one else's to read
    return Speaker(form.model_copy(update={"source": f"deployment:{deployment.pk}"}), deployment)


def _of_run(form: SpeakerSection, user: User) -> Speaker:
    """The speaker that a model advised in its run, if this user may play with it."""
    source = form.source
    if not source:
        return Speaker()
    if source == SELF or players.known(source):
        return Speaker(form)
    if "://" in source:
        remote = remote_config(source)
        named = {"remote__address": remote.address, "remote__model": remote.model}
        deployment = Deployment.objects.visible_to(user).filter(**named).order_by("pk").first()
    else:
        checkpoint = Checkpoint.objects.visible_to(user).filter(name=source).first()
        deployment = None if checkpoint is None else serving.of_checkpoint(checkpoint)
    if deployment is None:
        why = "the speaker of its run is not open to you, or is gone"
        raise BadInput(f"{why}: choose another one", "speaker")
    return _spoken_by(form, deployment)
