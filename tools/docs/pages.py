"""The Markdown files of the repository as pages of the documentation.

A file stays readable where it lies: its links lead to files of the repository. On a page they lead to the other page; a
link to a file that is no page, such as a module, becomes its text. A link to nothing stays, and Sphinx refuses it.
"""

import os
import re
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BESIDE = {
    "README.md": "project.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "client/README.md": "client.md",
}
"""Files outside `docs/` that are pages as well."""
LINK = re.compile(r"(?<!!)\[(?P<text>(?:[^\[\]]|\[[^\]]*\])+)\]\((?P<target>[^()\s:]*?)(?P<anchor>#[^()\s]*)?\)")
FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


class Pages:
    """The pages: `sources` has the file of each, by its path in the documentation."""

    def __init__(self) -> None:
        inside = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md"))}
        self.sources = inside | {page: ROOT / file for file, page in BESIDE.items()}
        self._pages = {path: page for page, path in self.sources.items()}

    def text(self, page: str) -> str:
        """The text of a page, with links that lead where they should on the site."""
        text, last, parts = self.sources[page].read_text(), 0, []
        for fence in FENCE.finditer(text):
            parts += [self._linked(text[last : fence.start()], page), fence.group()]
            last = fence.end()
        return "".join([*parts, self._linked(text[last:], page)])

    def _linked(self, text: str, page: str) -> str:
        return LINK.sub(lambda link: self._link(link, page), text)

    def _link(self, link: re.Match[str], page: str) -> str:
        words, target, anchor = link["text"], link["target"], link["anchor"] or ""
        if not target:
            return link.group()
        path = Path(os.path.normpath(self.sources[page].parent / target))
        known = self._pages.get(path)
        if known is None:
            made = path.is_relative_to(DOCS) and not path.exists()  # a page of the reference, or nothing
            return link.group() if made or not path.exists() else words
        steps = os.path.relpath(known, PurePosixPath(page).parent)
        return f"[{words}]({steps}{anchor})"
