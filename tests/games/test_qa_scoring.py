"""F1 over sets of tokens and exact match, with values worked out by hand."""

import pytest

from training.games.qa_society.scoring import best_f1, exact_match, f1, tokens


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The Quick,  brown FOX!", ["quick", "brown", "fox"]),
        ("a an the A AN THE", []),
        ("U.S.", ["us"]),  # punctuation goes without a space, as in SQuAD's script
        ("twenty-one", ["twentyone"]),
        ("an-other", ["another"]),  # so that an article is one only between spaces of its own
        ("Alzheimer’s “disease” – 1906", ["alzheimers", "disease", "1906"]),
        ("3.5 µg/ml", ["35", "µgml"]),
        ("Cafe\u0301", ["café"]),  # decomposed, Unicode's canonical equivalence
        ("北京。", ["北京"]),
        (" \n…!", []),
    ],
)
def test_tokens(text, expected):
    assert tokens(text) == expected


@pytest.mark.parametrize(
    "answer, gold, expected",
    [
        ("Vltava", "the Vltava", 1),
        ("the Vltava river", "Vltava", 2 / 3),  # precision 1/2, recall 1
        ("Valentina", "Valentina Tereshkova", 2 / 3),  # precision 1, recall 1/2
        ("red green blue", "green blue white black", 4 / 7),  # 2 shared of 3 and 4
        ("no no no yes", "yes", 2 / 3),  # sets: {no, yes} and {yes}; multisets would give 2/5
        ("yes yes", "yes", 1),
        ("Elbe", "Vltava", 0),
        ("", "Vltava", 0),
        ("the", "a", 0),  # no tokens in common, for there are none
    ],
)
def test_f1(answer, gold, expected):
    assert f1(answer, gold) == pytest.approx(expected)
    assert f1(gold, answer) == pytest.approx(expected)


def test_the_best_alias_counts():
    aliases = ("cystic fibrosis transmembrane conductance regulator", "CFTR", "The")
    assert best_f1("CFTR gene", aliases) == pytest.approx(2 / 3)
    assert best_f1("cystic fibrosis", aliases) == pytest.approx(4 / 7)  # 2 of 2 and 5
    assert best_f1("the", aliases) == 0
    assert best_f1("CFTR", ()) == 0


@pytest.mark.parametrize(
    "answer, matches",
    [
        ("the CFTR!", True),
        ("Phobos and Deimos", True),
        ("Deimos and Phobos", False),
        ("CFTR gene", False),
        ("A", False),
    ],
)
def test_exact_match(answer, matches):
    assert exact_match(answer, ("CFTR", "Phobos and Deimos", "the")) == matches
