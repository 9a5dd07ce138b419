#!/usr/bin/env python
"""Parley's command line for the site: every command finds the databases running, or starts the embedded ones.

A command that cannot be done says so in one line and exits with 2; `--traceback` shows where it failed.
"""

import os
import sys


def main() -> None:
    """Join (or start) the databases, then hand over to Django."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    from webapp.core.commands import reported

    with reported(sys.argv):
        from webapp.core import embedded

        embedded.join()

        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
