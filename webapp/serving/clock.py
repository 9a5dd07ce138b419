"""What the clock does for deployments: start what is wanted, stop what idles."""

from webapp.core.clock import register
from webapp.serving import services


@register("serving.settle", every=1.0)
def settle() -> int:
    """Bring deployments to where they are wanted."""
    return services.settle()
