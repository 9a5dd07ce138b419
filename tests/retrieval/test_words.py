"""Which words a text has: case, compatibility forms and scripts."""

import pytest

from training.retrieval.words import words


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The Cat's 2 hats, 3.5 GB_x!", ["the", "cat", "s", "2", "hats", "3", "5", "gb_x"]),
        ("E\u0301clair", ["éclair"]),  # decomposed, Unicode's canonical equivalence
        ("Éclair", ["éclair"]),
        ("STRASSE Straße", ["strasse", "strasse"]),  # Unicode's full case folding of ß is ss
        ("ﬁne ＡＢＣ", ["fine", "abc"]),  # a ligature and full-width letters: compatibility forms
        ("北京2008 とは", ["北", "京", "2008", "と", "は"]),
        ("Ελλάδα привет", ["ελλάδα", "привет"]),
        (" …—! 😀", []),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected
