"""Files of the repository as pages: where their links lead, what the parts list, which pictures they show."""

import json
import re

import pytest

from tools import screenshots
from tools.docs import build
from tools.docs.notebooks import page_of
from tools.docs.pages import DOCS, ROOT, Pages


@pytest.fixture
def pages(monkeypatch, tmp_path):
    """Pages of a small repository: `docs/a.md`, `docs/b/c.md` and `README.md`."""
    from tools.docs import pages as module

    for name in ("docs/a.md", "docs/b/c.md", "README.md", "training/x.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("# A title\n")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "DOCS", tmp_path / "docs")
    monkeypatch.setattr(module, "BESIDE", {"README.md": "project.md"})
    return tmp_path


@pytest.mark.parametrize(
    "page, written, shown",
    [
        ("a.md", "[c](b/c.md#x)", "[c](b/c.md#x)"),
        ("b/c.md", "[home](../../README.md)", "[home](../project.md)"),
        ("project.md", "see [a](docs/a.md) and [c](docs/b/c.md)", "see [a](a.md) and [c](b/c.md)"),
        ("b/c.md", "[`x`](../../training/x.py)", "`x`"),
        ("project.md", "[the folder](training)", "the folder"),
        ("a.md", "[gone](gone.md)", "[gone](gone.md)"),
        ("project.md", "[gone](training/gone.py)", "[gone](training/gone.py)"),
        ("a.md", "[far](https://example.org/a.md) [here](#x)", "[far](https://example.org/a.md) [here](#x)"),
        ("a.md", "![picture](pictures/a.png)", "![picture](pictures/a.png)"),
        ("a.md", "```md\n[x](../training/x.py)\n```\n", "```md\n[x](../training/x.py)\n```\n"),
    ],
)
def test_links_lead_to_pages(pages, page, written, shown):
    made = Pages()
    made.sources[page].write_text(written)
    assert made.text(page) == shown


def test_a_page_that_no_part_lists_is_refused(monkeypatch, tmp_path):
    (tmp_path / "nav.toml").write_text('[[part]]\ntitle = "One"\npages = ["a", "b"]\n')
    monkeypatch.setattr(build, "DOCS", tmp_path)
    contents = build.contents(dict.fromkeys(("index.md", "a.md", "b.md"), ""))
    assert contents == "\n```{toctree}\n:hidden:\n:caption: One\n\na\nb\n```\n"
    for texts in (("index.md", "a.md"), ("index.md", "a.md", "b.md", "c.md")):
        with pytest.raises(build.DocsError, match=r"(b|c)\.md"):
            build.contents(dict.fromkeys(texts, ""))


def test_only_what_changed_is_written(tmp_path):
    build.write(tmp_path, {"a.md": "one", "b/c.md": "two"})
    before = (tmp_path / "a.md").stat().st_mtime_ns
    build.write(tmp_path, {"a.md": "one", "d.md": "three"})
    assert (tmp_path / "a.md").stat().st_mtime_ns == before
    assert sorted(path.name for path in tmp_path.rglob("*.md")) == ["a.md", "d.md"]


def test_notebooks_are_stored_without_outputs_and_shown_as_pages():
    notebooks = list(build.NOTEBOOKS.glob("*.ipynb"))
    assert len(notebooks) == 3
    for path in notebooks:
        cells = json.loads(path.read_text())["cells"]
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert code, path.name
        assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code), path.name
        page = page_of(path)
        assert page.startswith("# ")
        assert page.count("```python\n") == len(code)


def test_every_picture_of_a_page_is_one_that_the_command_takes_and_the_other_way_round():
    shown = {
        name
        for path in (*DOCS.rglob("*.md"), ROOT / "README.md")
        for name in re.findall(r"!\[[^\]]*\]\((?:\.\./|docs/)*pictures/([^)]+)\)", path.read_text())
    }
    assert shown == {picture.path.name for picture in screenshots.ALL}
    stored = list(screenshots.PICTURES.iterdir())
    assert {path.name for path in stored} == shown
    assert sum(path.stat().st_size for path in stored) < 1_000_000
