"""The access log: `log/access.log` below `PARLEY_HOME`, rotated by size."""

from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any


class AccessLog(RotatingFileHandler):
    """A rotating file that is opened, with its folder, when the first line is written: only the site writes one."""

    def __init__(self, filename: str, **options: Any) -> None:
        super().__init__(filename, encoding="utf-8", delay=True, **options)

    def _open(self) -> TextIOWrapper:
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()
