"""The page for probes: whether the site can work, and nothing else."""

from django.http import HttpRequest, JsonResponse
from django.views.decorators.http import require_GET

from webapp.core import health


@require_GET
def healthz(request: HttpRequest) -> JsonResponse:
    """200 while the database answers, else 503. Redis is not asked: the site works without it."""
    alive = health.site_works()
    return JsonResponse({"ok": alive}, status=200 if alive else 503)
