"""Judgments of games of an experiment: while it runs, only its owner and administrators have them judged."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from tests.webapp.experiments import making
from tests.webapp.judgments.make import people_queue
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena.models import Match
from webapp.experiments import design
from webapp.experiments.models import Experiment
from webapp.judgments.queues.forms import QueueForm

pytestmark = pytest.mark.django_db


@pytest.fixture
def experiment(researcher: User) -> Experiment:
    """An open experiment with one complete participant, who agreed to the use of the moves."""
    made = making.opened(researcher)
    making.completed(made)
    return Experiment.objects.get(pk=made.pk)


def offered(user: User) -> list[int]:
    """The matches that the form of a new queue lists."""
    return list(QueueForm(user).fields["match"].queryset.values_list("pk", flat=True))


@pytest.mark.parametrize("state", ["open", "paused"])
def test_other_researchers_judge_no_game_of_a_running_experiment(
    experiment: Experiment, person: Callable[..., User], state: str
) -> None:
    if state == "paused":
        design.pause(experiment=experiment)
    other, match = person("researcher", "other-one"), Match.objects.get()
    assert Match.objects.exportable().get() == match
    assert offered(other) == []
    with pytest.raises(BadInput, match="its experiment still runs"):
        people_queue(other, match)
    browser = Client()
    browser.force_login(other)
    assert match.title not in browser.get(f"/judgments/queues/new/?match={match.pk}").content.decode()
    design.close(experiment=experiment)
    assert offered(other) == [match.pk]
    assert people_queue(other, match).targets.count() == 2


@pytest.mark.parametrize("role", ["owner", "admin"])
def test_the_owner_and_administrators_may(experiment: Experiment, admin: User, role: str) -> None:
    user, match = {"owner": experiment.owner, "admin": admin}[role], Match.objects.get()
    assert offered(user) == [match.pk]
    assert people_queue(user, match).targets.count() == 2
