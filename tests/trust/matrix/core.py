"""Who may use what the core app answers."""

from django.conf import settings

from tests.trust.matrix.base import Route

DOCS = 0 if settings.DOCS_ROOT.is_dir() else 503  # where they were not built, a page says so
ROUTES = [
    Route("healthz", (), public=True),
    Route("docs", (), public=True, status=DOCS),
    Route("docs-file", (), public=True, status=DOCS, make=lambda owner: {"path": "index.html"}),
]
