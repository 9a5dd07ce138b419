"""Sphinx's configuration of the documentation; `python -m tools.docs` stages the pages and runs it.

The pages must work under the site's content security policy: nothing inline, nothing from elsewhere.
Mathematics becomes MathML while it is built, so that no script draws it.
"""

import sys
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "client"))

project = "Parley"
html_title = "Parley"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
root_doc = "index"
templates_path = ["_templates"]
html_static_path = ["_static"]
html_theme = "furo"
html_css_files = ["docs.css"]
html_theme_options = {"navigation_with_keys": True}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "site.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
html_use_index = False
html_domain_indices = False
html_math_renderer = "mathml"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
default_role = "code"
suppress_warnings = ["misc.highlighting_failure"]  # examples leave something out with an ellipsis
autodoc_member_order = "bysource"
autodoc_typehints = "signature"


def inline_math(writer: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a line of text."""
    writer.body.append(convert(node.astext()))
    raise nodes.SkipNode


def displayed_math(writer: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, which scrolls where it is wider than the page."""
    writer.body.append(f'<div class="formula" tabindex="0">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add the renderer of mathematics."""
    app.add_html_math_renderer("mathml", (inline_math, None), (displayed_math, None))
