"""Characters that reorder or hide text are shown by their number; everything else, emoji too, stays as it was."""

import unicodedata

import pytest

from webapp.core.templatetags.visible import HIDDEN, visible


def box(number):
    return f'<span class="code-point">U+{number}</span>'


@pytest.mark.parametrize(
    "text, shown",
    [
        ("abc\u202edef", f"abc{box('202E')}def"),
        ("ad\u200bmin", f"ad{box('200B')}min"),
        ("\u2066x\u2069\ufeff", f"{box('2066')}x{box('2069')}{box('FEFF')}"),
        ("tag\U000e0041", f"tag{box('E0041')}"),
        ("a\u200db", f"a{box('200D')}b"),
        ("👩\u200d👧 and ❤\ufe0f", "👩\u200d👧 and ❤\ufe0f"),
        ("שלום, Zoë, 王, नमस्ते\n\tx", "שלום, Zoë, 王, नमस्ते\n\tx"),
        ("<b>\u202e</b>", f"&lt;b&gt;{box('202E')}&lt;/b&gt;"),
    ],
)
def test_hidden_characters_are_shown(text, shown):
    assert visible(text) == shown


def test_every_directional_control_is_among_them():
    """Unicode's own classes say which: UAX 9 embeddings, overrides and isolates."""
    classes = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    controls = [chr(code) for code in range(0x110000) if unicodedata.bidirectional(chr(code)) in classes]
    assert len(controls) == 9
    assert all(HIDDEN.fullmatch(control) for control in controls)
