"""What processes that this installation starts get to know of its environment."""

import os
from collections.abc import Mapping

from django.conf import settings

from training.environment import visible


def environment(secrets: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without its secrets, but with the ones that the child needs by name."""
    return {**visible(os.environ), "PARLEY_HOME": str(settings.HOME), "PYTHONUNBUFFERED": "1", **extra, **secrets}
