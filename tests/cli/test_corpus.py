"""`corpus`: the file that it writes is one that `index` reads, and wrong arguments change nothing."""

import json

from tests.question_sets import files
from training.cli import main
from training.retrieval.corpus import read


def answer(capsys, *arguments, code=0):
    assert main([*map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_passages_of_popqa_become_a_corpus(capsys, tmp_path):
    folder, table, out = tmp_path / "passages", tmp_path / "pop.csv", tmp_path / "wiki.jsonl"
    folder.mkdir()
    table.write_text(files.table(files.ROWS[0]))
    for name, text in {"sources": "Why?", "ref_correct": "#one two three", "ref_incorrect": "#A: b ; A: b"}.items():
        (folder / name).write_text(text)
    made = answer(capsys, "corpus", "popqa-passages", folder, "--table", table, "--words", 2, "--out", out)
    assert made == {"corpus": str(out), "passages": 3, "repeated": 1, "empty": 0}
    assert [each.text for each in read(out)] == ["one two", "three", "b"]


def test_sections_of_pubmedqa_become_a_corpus(capsys, tmp_path):
    source, out = tmp_path / "pubmed.json", tmp_path / "pubmed.jsonl"
    source.write_text(json.dumps(files.ARTICLES))
    assert main(["corpus", "pubmedqa", str(source), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}: 3 passages; left out: 0 repeated, 0 without a word\n"


def test_the_table_belongs_to_popqa_alone(capsys, tmp_path):
    source, out = tmp_path / "source", tmp_path / "out.jsonl"
    for arguments in (("popqa-passages", source), ("pubmedqa", source, "--table", source)):
        error = answer(capsys, "corpus", *arguments, "--out", out, code=2)["error"]
        assert (error["kind"], error["where"]) == ("input", "--table")
    assert answer(capsys, "corpus", "pubmedqa", source, "--out", out, code=2)["error"]["where"] == "source"
    assert list(tmp_path.iterdir()) == []
