"""Who may use the experiments: researchers their own, a participant their own stage and nothing else."""

from typing import Any

from tests.trust.matrix.base import EVERYONE, NOBODY, Route
from tests.webapp.experiments import making
from webapp.experiments import taking


def _researcher() -> Any:
    from webapp.accounts.models import User

    return User.objects.get_or_create(username="the-researcher", role="researcher")[0]


def joined(owner: Any) -> dict[str, Any]:
    """An experiment of somebody else in which the owner takes part."""
    made = making.opened(_researcher(), making.PAIR)
    taking.begin(experiment=made, user=owner, origin=making.NOTHING, may_reuse=True)
    return {"token": made.token}


def published(_owner: Any) -> dict[str, Any]:
    return {"token": making.opened(_researcher()).token}


ROUTES = [
    Route("experiments:take", (), public=True, make=published),
    Route("experiments:begin", (), public=True, method="POST", make=published, data={"agree": "no"}),
    *(
        Route(f"experiments:{name}", EVERYONE, NOBODY, method="POST", make=joined)
        for name in ("answer", "beat", "finish", "withdraw")
    ),
]
