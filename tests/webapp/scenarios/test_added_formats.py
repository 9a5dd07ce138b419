"""A format of another distribution is offered and read as those of Parley are."""

import pytest

from tests.test_plugins import install
from training.errors import BadInput
from training.plugins import Registry
from webapp.scenarios import importers

CODE = """
    from webapp.scenarios.importers import Format, parley_jsonl
    LINES = Format("Lines of another kind", parley_jsonl.read, "Elsewhere", "MIT")
    """


@pytest.fixture
def formats(tmp_path, monkeypatch):
    install(tmp_path, "more-formats", "parley.importers", {"lines": "LINES", "broken": "parley_jsonl"}, CODE)
    monkeypatch.syspath_prepend(str(tmp_path))
    added = Registry("parley.importers", importers.BUILT_IN, importers._check)
    monkeypatch.setattr(importers, "FORMATS", added)
    return added


def test_it_is_known_and_reads(formats, tmp_path):
    assert list(formats) == [*importers.BUILT_IN, "lines"]
    importers.check_upload("lines", [("a.jsonl", 1)])
    file = tmp_path / "a.jsonl"
    file.write_text("")
    assert importers.read("lines", file, lambda *_: None).lines == []
    with pytest.raises(BadInput, match=r"'broken' of more-formats 1\.0: is no Format"):
        importers.check_upload("broken", [("a.jsonl", 1)])
