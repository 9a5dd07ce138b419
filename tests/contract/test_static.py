"""What pages load beside their text: the stylesheets that every page has, and nothing that is not there.

`static/vendor` comes with the installation and is not looked at.
"""

import re
from pathlib import Path

from django.contrib.staticfiles import finders

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "static"


STYLESHEETS = sorted(path for path in STATIC.rglob("*.css") if "vendor" not in path.parts)


def test_no_page_has_a_stylesheet_of_its_own():
    names = [path.relative_to(STATIC).as_posix() for path in STYLESHEETS]
    assert names == ["css/table.css", "css/zones.css", "parley.css"]
    pages = {"base.html": names, "error.html": ["parley.css"]}  # the latter stands alone
    for path in (ROOT / "templates").rglob("*.html"):
        loaded = [name for name in names if f"'{name}'" in path.read_text()]
        assert loaded == pages.get(path.relative_to(ROOT / "templates").as_posix(), []), path.name


def test_every_file_that_a_template_names_is_there():
    named = {
        (path.name, name)
        for path in (ROOT / "templates").rglob("*.html")
        for name in re.findall(r"{% static '([^']+)' %}", path.read_text())
    }
    assert len(named) > 10
    ours = {(page, name) for page, name in named if not name.startswith("vendor/")}
    assert {(page, name) for page, name in ours if finders.find(name) is None} == set()


def test_no_rule_is_written_twice():
    text = re.sub(r"/\*.*?\*/", "", "\n".join(path.read_text() for path in STYLESHEETS), flags=re.DOTALL)
    rules = [rule.strip() for rule in re.findall(r"^[^@\s}][^{}]*\{[^{}]*\}", text, flags=re.MULTILINE)]
    assert len(rules) > 200
    assert sorted(set(rules)) == sorted(rules)
