"""Notebooks as pages: their texts as they are, their code as blocks. They are stored without outputs."""

import json
from pathlib import Path


def page_of(path: Path) -> str:
    """The page of a notebook."""
    cells = json.loads(path.read_text())["cells"]
    return "\n\n".join(_cell(cell["cell_type"], "".join(cell["source"]).strip()) for cell in cells) + "\n"


def _cell(kind: str, text: str) -> str:
    return text if kind == "markdown" else f"```python\n{text}\n```"
