"""A home of its own for every test, and corpora in it."""

import json

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus file of texts, with the ids 0, 1, 2, …"""

    def write(*texts, name="corpus.jsonl"):
        path = tmp_path / name
        lines = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts)]
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return path

    return write
