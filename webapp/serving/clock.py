"""Clock step of deployments: start requested ones, stop idle ones."""

from webapp.core.clock import register
from webapp.serving import services


@register("serving.settle", every=1.0)
def settle() -> int:
    """Start and stop deployments as requests and idleness ask."""
    return services.settle()
