"""Who may use the experiments: researchers their own, a participant their own stage and nothing else."""

from typing import Any

from tests.trust.matrix.base import EVERYONE, NOBODY, RESEARCHERS, Route
from tests.webapp.experiments import making
from webapp.experiments import participation


def _researcher() -> Any:
    from webapp.accounts.models import User

    return User.objects.get_or_create(username="the-researcher", role="researcher")[0]


def joined(owner: Any) -> dict[str, Any]:
    """An experiment of somebody else in which the owner takes part."""
    made = making.opened(_researcher(), making.PAIR)
    participation.begin(experiment=made, user=owner, origin=making.NOTHING, may_reuse=True)
    return {"token": made.token}


def published(_owner: Any) -> dict[str, Any]:
    return {"token": making.opened(_researcher()).token}


def draft(owner: Any) -> dict[str, Any]:
    made = making.experiment(owner)
    making.arm(made, "only")
    return {"pk": made.pk}


def running(owner: Any) -> dict[str, Any]:
    return {"pk": making.opened(owner).pk}


def arm(owner: Any) -> dict[str, Any]:
    made = making.experiment(owner)
    return {"pk": made.pk, "arm_id": making.arm(made, "only").pk}


def question(owner: Any) -> dict[str, Any]:
    made = making.experiment(owner)
    return {"pk": made.pk, "question_id": making.question(made, "trust").pk}


def participant(owner: Any) -> dict[str, Any]:
    made = making.opened(owner, making.PAIR)
    return {"pk": made.pk, "participant_id": making.come(made).pk}


def exported(owner: Any) -> dict[str, Any]:
    return {**running(owner), "form": "csv"}


ADMIN = ("admin",)


def _both(name: str, make: Any) -> list[Route]:
    return [Route(f"experiments:{name}", RESEARCHERS, ADMIN, method=method, make=make) for method in ("GET", "POST")]


ROUTES = [
    Route("experiments:participate", (), public=True, make=published),
    Route("experiments:begin", (), public=True, method="POST", make=published, data={"agree": "no"}),
    *(
        Route(f"experiments:{name}", EVERYONE, NOBODY, method="POST", make=joined)
        for name in ("answer", "heartbeat", "finish", "withdraw")
    ),
    Route("experiments:list", RESEARCHERS),
    Route("experiments:power", RESEARCHERS),
    Route("experiments:new", RESEARCHERS),
    Route("experiments:new", RESEARCHERS, method="POST", data={"title": "a study"}),
    *_both("edit", draft),
    *_both("arm-new", draft),
    *_both("arm", arm),
    *_both("question-new", draft),
    *_both("question", question),
    *(Route(f"experiments:{name}", RESEARCHERS, ADMIN, make=running) for name in ("detail", "monitor", "results")),
    Route("experiments:export", RESEARCHERS, ADMIN, make=exported),
    *(
        Route(f"experiments:{name}", RESEARCHERS, ADMIN, method="POST", make=draft)
        for name in ("open", "pause", "resume", "close", "copy", "delete")
    ),
    Route("experiments:arm-delete", RESEARCHERS, ADMIN, method="POST", make=arm),
    Route("experiments:question-delete", RESEARCHERS, ADMIN, method="POST", make=question),
    Route("experiments:question-up", RESEARCHERS, ADMIN, method="POST", make=question),
    Route("experiments:nudge", RESEARCHERS, ADMIN, method="POST", make=participant, data={"text": "hello"}),
    Route("experiments:replace", RESEARCHERS, ADMIN, method="POST", make=participant),
]
