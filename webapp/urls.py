"""Every address of the site; each app keeps its own list."""

from django.conf import settings
from django.urls import include, path

from webapp.core import documentation
from webapp.core.views import healthz

urlpatterns = [
    path("", include("webapp.home.urls")),
    path("healthz", healthz, name="healthz"),
    path("docs/", documentation.page, name="docs"),
    path("docs/<path:path>", documentation.page, name="docs-file"),
    path("accounts/", include("webapp.accounts.urls")),
    path("accounts/", include("webapp.privacy.urls")),
    path("datasets/", include("webapp.scenarios.urls")),
    path("corpora/", include("webapp.corpora.urls")),
    path("", include("webapp.runs.urls")),
    path("deployments/", include("webapp.serving.urls")),
    path("play/", include("webapp.arena.urls")),
    path("judgments/", include("webapp.judgments.urls")),
    path("experiments/", include("webapp.experiments.urls")),
    path("ladder/", include("webapp.ladder.urls")),
    path("api/", include("webapp.api.urls")),
    *([path("styleguide/", include("webapp.styleguide.urls"))] if settings.DEBUG else []),
]

handler400 = "webapp.core.errors.bad_request"
handler403 = "webapp.core.errors.forbidden"
handler404 = "webapp.core.errors.not_found"
handler500 = "webapp.core.errors.server_error"
