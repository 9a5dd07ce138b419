"""What processes that this installation starts get to know of its environment."""

import os
import re
from collections.abc import Mapping

from django.conf import settings

HIDDEN = re.compile(r"DATABASE_URL|REDIS_URL|AWS_.*|.*_(API_KEY|TOKEN)|.*(SECRET|PASSWORD).*", re.IGNORECASE)
"""Names of variables that a child process receives only if it asks for them by name."""


def environment(secrets: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without its secrets, but with the ones that the child needs by name."""
    visible = {k: v for k, v in os.environ.items() if not HIDDEN.fullmatch(k)}
    return {**visible, "PARLEY_HOME": str(settings.HOME), "PYTHONUNBUFFERED": "1", **extra, **secrets}
