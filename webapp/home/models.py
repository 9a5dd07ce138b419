"""How far each person is on the guided way through Parley, and which runs are samples."""

from django.conf import settings
from django.db import models


class Tour(models.Model):
    """One person's guided tour. A step is done when what it made is; see `webapp.home.tour`."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tour")
    run = models.ForeignKey("runs.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    match = models.ForeignKey("arena.Match", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    queue = models.ForeignKey("judgments.Queue", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    trained = models.ForeignKey(
        "runs.Run",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The run that learns from the judged game.",
    )
    hidden = models.BooleanField(default=False, help_text="Whether the person has put the cards away.")

    def __str__(self) -> str:
        return f"tour of {self.user_id}"


class Sample(models.Model):
    """A sample run and where it comes from; see `webapp.home.samples`. Without a run it was removed."""

    run = models.OneToOneField("runs.Run", null=True, on_delete=models.SET_NULL, related_name="sample")
    name = models.CharField(max_length=40, unique=True, help_text="Its folder.")
    command = models.CharField(max_length=400)
    seed = models.PositiveIntegerField()
    commit = models.CharField(max_length=40)

    def __str__(self) -> str:
        return self.name
