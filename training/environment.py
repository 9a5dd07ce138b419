"""What the processes that Parley starts get to know of its environment."""

from __future__ import annotations

import re
from collections.abc import Mapping

HIDDEN = re.compile(
    r"DATABASE_URL|REDIS_URL|PARLEY_MAIL|AWS_.*|.*_(API_KEY|TOKEN)|.*(SECRET|PASSWORD).*", re.IGNORECASE
)
"""Names of variables that another process receives only if it asks for them by name."""


def visible(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without its secrets."""
    return {name: value for name, value in environ.items() if not HIDDEN.fullmatch(name)}
