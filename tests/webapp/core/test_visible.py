"""Characters that reorder or hide text are shown by their number; everything else, emoji too, stays as it was."""

import unicodedata

import pytest

from webapp.core.visible import HIDDEN, reveal, visible


def box(number):
    return f"<span class=code-point>U+{number}</span>"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("abc\u202edef", "abcU+202Edef"),
        ("ad\u200bmin", "adU+200Bmin"),
        ("\u2066x\u2069\ufeff", "U+2066xU+2069U+FEFF"),
        ("tag\U000e0041", "tagU+E0041"),
        ("ad\U0001d173min\U0001bca2", "adU+1D173minU+1BCA2"),
        ("a\u200db", "aU+200Db"),
        ("ro\ufe0fsa", "roU+FE0Fsa"),
        ("ro\ufe0f\ufe0f\u200d\ufe0fsa", "roU+FE0FU+FE0FU+200DU+FE0Fsa"),
        ("👩\u200d👧 and ❤\ufe0f and ❤\ufe0f\u200d🔥 and 👍🏽 and 1\ufe0f\u20e3 and ™\ufe0f",) * 2,
        ("שלום, Zoë, 王, नमस्ते\r\n\tx",) * 2,
    ],
)
def test_hidden_characters_are_shown(text, shown):
    assert visible(text) == shown


@pytest.mark.parametrize(
    "html, shown",
    [
        ("<p>a\u202eb</p>\u200b", f"<p>a{box('202E')}b</p>{box('200B')}"),
        (
            '<a title="a\u202eb" href="/">&lt;b\u202e&gt;</a>',
            f'<a title="aU+202Eb" href="/">&lt;b{box("202E")}&gt;</a>',
        ),
        ("<title>a\u202eb</title><p>a\u202eb</p>", f"<title>aU+202Eb</title><p>a{box('202E')}b</p>"),
        ('<option value="a\u202eb">a\u202eb</option>', '<option value="a\u202eb">aU+202Eb</option>'),
        (
            '<input value="a\u202eb" aria-label="a\u202eb" data-value="a\u202eb">',
            '<input value="a\u202eb" aria-label="aU+202Eb" data-value="aU+202Eb">',
        ),
        (
            '<textarea placeholder="a\u202eb">a\u202eb</textarea>\u202e',
            f'<textarea placeholder="aU+202Eb">a\u202eb</textarea>{box("202E")}',
        ),
        ("<script>a\u202eb</script>",) * 2,
        ("<b>👩\u200d👧 ❤\ufe0f</b>",) * 2,
    ],
)
def test_a_page_shows_them_where_it_shows_text_and_keeps_what_is_sent_back(html, shown):
    assert reveal(html) == shown


def test_what_is_put_in_cannot_end_an_attribute():
    """Wherever it lands, also where a tag was taken for text."""
    assert '"' not in reveal("\u202e")
    assert "'" not in reveal("\u202e")


def test_every_directional_control_is_among_them():
    """Unicode's own classes say which: UAX 9 embeddings, overrides and isolates."""
    classes = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    controls = [chr(code) for code in range(0x110000) if unicodedata.bidirectional(chr(code)) in classes]
    assert len(controls) == 9
    assert all(HIDDEN.fullmatch(control) for control in controls)
