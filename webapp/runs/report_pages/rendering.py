"""A report's Markdown as HTML: without HTML of its own, with pinned numbers and live charts put in.

Text is escaped by the renderer, and links lead only to http(s), mail and this site. Images are not shown. A chart is a
fenced block whose info is `chart`, with runs and metrics: `run:12 run:13 reward kl`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString, mark_safe
from markdown_it import MarkdownIt
from markdown_it.token import Token

from webapp.accounts.models import User
from webapp.runs.models import Run
from webapp.runs.report_pages import numbers
from webapp.runs.summaries import curves

MOST_CHARTS = 12


@dataclass
class Page:
    """A rendered report: its HTML, and the provenance of each number in it, in their order."""

    html: SafeString
    numbers: list[Mapping[str, Any]] = field(default_factory=list)


class _Renderer:
    def __init__(self, provenances: Mapping[str, Mapping[str, Any]], user: User) -> None:
        self.provenances, self.user = provenances, user
        self.shown: list[Mapping[str, Any]] = []
        self.charts = 0

    def put_in(self, tokens: list[Token]) -> None:
        """Replace references and chart blocks among the tokens; headings come below the page's own."""
        for place, token in enumerate(tokens):
            if token.type in {"heading_open", "heading_close"}:
                token.tag = f"h{min(6, int(token.tag[1:]) + 1)}"
            if token.type == "fence" and token.info.strip() == "chart":
                tokens[place] = Token("html_block", "", 0, content=self._chart(token.content))
            elif token.type == "inline" and token.children:
                token.children = [new for child in token.children for new in self._inline(child)]

    def _inline(self, token: Token) -> list[Token]:
        if token.type != "text":
            return [token]
        made, at = [], 0
        for match in numbers.REFERENCE.finditer(token.content):
            made.append(Token("text", "", 0, content=token.content[at : match.start()]))
            made.append(Token("html_inline", "", 0, content=self._number(numbers.reference_of(match))))
            at = match.end()
        return [*made, Token("text", "", 0, content=token.content[at:])]

    def _number(self, reference: str) -> str:
        provenance = self.provenances.get(reference)
        if provenance is not None:
            self.shown.append(provenance)
        context = {"provenance": provenance, "at": len(self.shown), "name": reference}
        return render_to_string("runs/report_number.html", context).strip()  # a comma may follow

    def _chart(self, text: str) -> str:
        words = numbers.METRIC.findall(text.replace("run:", " run/"))
        keys = [int(word[4:]) for word in words if word.startswith("run/") and word[4:].isdigit() and len(word) < 22]
        metrics = [word for word in words if not word.startswith("run/")]
        runs = list(
            Run.objects.visible_to(self.user).without_servers().filter(pk__in=keys[:8]).only("pk", "name", "state")
        )
        self.charts += 1
        data = {
            "runs": [{"name": f"{run.name} #{run.pk}", "url": reverse("runs:metrics", args=[run.pk])} for run in runs],
            "metrics": [{"name": name, "title": curves.title(name)} for name in metrics[:6]],
        }
        usable = bool(runs and metrics) and self.charts <= MOST_CHARTS
        context = {"data": data, "runs": runs, "usable": usable}
        return render_to_string("runs/report_chart.html", context)


def render(text: str, provenances: Mapping[str, Mapping[str, Any]], user: User) -> Page:
    """The page of a text; `provenances` are those of its numbers by reference. A number without one is marked so."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable(["image"])
    tokens = markdown.parse(text)
    renderer = _Renderer(provenances, user)
    renderer.put_in(tokens)
    html = markdown.renderer.render(tokens, markdown.options, {})
    return Page(mark_safe(html), renderer.shown)  # noqa: S308 (the renderer and the templates escape all text)
