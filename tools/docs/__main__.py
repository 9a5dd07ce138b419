"""`python -m tools.docs`: builds the documentation; exits 1 if a link is broken or a page is in no part of it."""

import argparse
import sys
from pathlib import Path

from tools.docs.build import SITE, DocsError, build


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the documentation.")
    parser.add_argument("--out", type=Path, default=SITE, help="the folder to write (default: build/docs)")
    try:
        build(parser.parse_args().out)
    except DocsError as error:
        print(f"docs: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
