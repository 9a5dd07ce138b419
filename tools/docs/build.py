"""Stages the pages in a folder and runs Sphinx on it, which fails on the first broken link.

What did not change is not written again, so that Sphinx reads only pages that did.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path

from tools.docs import reference, rest
from tools.docs.notebooks import page_of
from tools.docs.pages import DOCS, ROOT, Pages

SITE = ROOT / "build" / "docs"
NOTEBOOKS = ROOT / "examples" / "notebooks"
ASSETS = ("_static", "_templates", "pictures", "conf.py")


class DocsError(Exception):
    """The documentation cannot be built; the message says why."""


def build(out: Path) -> None:
    """Write the site to `out`, which is complete or as it was before. Raises `DocsError`."""
    work = out.with_name(f".{out.name}")
    source = work / "source"
    texts = staged()
    texts["index.md"] += contents(texts)
    write(source, texts)
    for name in ASSETS:
        copy(DOCS / name, source / name)
    fresh = work / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", str(work / "trees")]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'client'}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [*command, str(source), str(fresh)], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise DocsError(f"Sphinx refused the pages:\n{done.stderr.replace(str(source) + '/', '')}")
    replace(fresh, out)


def staged() -> dict[str, str]:
    """Every page by its path in the documentation, with links that lead there."""
    pages = Pages()
    texts = {page: pages.text(page) for page in pages.sources}
    texts |= {f"notebooks/{path.stem}.md": page_of(path) for path in sorted(NOTEBOOKS.glob("*.ipynb"))}
    texts |= {f"reference/{name}.md": text for name, text in reference.pages().items()}
    texts["reference/rest-api.md"] = rest.page()
    return texts


def contents(texts: Mapping[str, str]) -> str:
    """The parts of `nav.toml` as Sphinx reads them. Raises `DocsError` where they do not list every page once."""
    parts = tomllib.loads((DOCS / "nav.toml").read_text())["part"]
    listed = [f"{page}.md" for part in parts for page in part["pages"]]
    wrong = {page for page in listed if listed.count(page) > 1} | (set(listed) ^ (set(texts) - {"index.md"}))
    if wrong:
        raise DocsError(f"nav.toml does not list every page once: {', '.join(sorted(wrong))}")
    trees = (
        "\n".join(["```{toctree}", ":hidden:", f":caption: {part['title']}", "", *part["pages"], "```"])
        for part in parts
    )
    return "\n" + "\n\n".join(trees) + "\n"


def write(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the pages that changed, and remove those that are no more."""
    for page, text in texts.items():
        path = folder / page
        if not path.is_file() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in folder.rglob("*.md"):
        if path.relative_to(folder).as_posix() not in texts:
            path.unlink()


def copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder in place of the former one; times are kept, by which Sphinx knows what changed."""
    if source.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
    elif source.is_file():
        shutil.copy2(source, target)


def replace(fresh: Path, out: Path) -> None:
    """Put a copy of the finished folder in the place of the former one."""
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        shutil.copytree(fresh, Path(folder) / "new", ignore=shutil.ignore_patterns(".buildinfo*", "objects.inv"))
        for page in (Path(folder) / "new").rglob("*.html"):  # the theme gives its headings no level
            page.write_text(page.read_text().replace(' role="heading">', ' role="heading" aria-level="2">'))
        if out.exists():
            out.rename(Path(folder) / "old")
        (Path(folder) / "new").rename(out)
