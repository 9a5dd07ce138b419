"""The documentation at `/docs/`: the static files that `python -m tools.docs` builds, for everybody.

They need nothing inline, so the site's content security policy covers them as it is.
"""

import mimetypes
from pathlib import Path

from django.conf import settings
from django.core.exceptions import SuspiciousFileOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotModified
from django.shortcuts import render
from django.utils._os import safe_join
from django.utils.http import http_date
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe
from django.views.static import was_modified_since

KEPT = "public, max-age=31536000, immutable"
"""For files whose address has the hash of their content."""


@require_safe
def page(request: HttpRequest, path: str = "index.html") -> HttpResponse:
    """One file of the documentation; 503 with what to do where it was not built."""
    root: Path = settings.DOCS_ROOT
    if not (root / "index.html").is_file():
        return render(
            request,
            "error.html",
            {
                "status": 503,
                "happened": "The documentation has not been built here.",
                "kept": "Its pages are readable as Markdown in the folder docs/ as well.",
                "advice": "Run make setup, or python -m tools.docs, and load this page again.",
            },
            status=503,
        )
    file = _file(root, path)
    changed = file.stat().st_mtime
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    if kind == "text/html":  # middleware reads these, so they are not compressed here
        return HttpResponse(file.read_bytes(), content_type="text/html; charset=utf-8")
    if not was_modified_since(request.headers.get("If-Modified-Since"), changed):
        return HttpResponseNotModified()
    response = HttpResponse(file.read_bytes(), content_type=f"{kind}; charset=utf-8" if "text" in kind else kind)
    response.headers["Last-Modified"] = http_date(changed)
    response.headers["Cache-Control"] = KEPT if "v" in request.GET else "no-cache"
    return gzip_page(lambda request: response)(request)


def _file(root: Path, path: str) -> Path:
    """The file at a path below `root`; raises `Http404` if there is none."""
    try:
        file = Path(safe_join(root, path))
        exists = file.is_file()
    except (SuspiciousFileOperation, ValueError, OSError) as error:  # OSError: a name that is too long
        raise Http404 from error
    if not exists:
        raise Http404
    return file
