"""The command line: `python -m training COMMAND`, with the commands that `--help` lists.

Arguments are read first and everything else is imported after, so that `--help` costs no more than Python itself.
The result goes to standard output (with `--json` as one JSON object), everything else to standard error, what libraries
print included. Exit codes: 0 done, 1 failed, 2 wrong input (nothing was changed), 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from importlib import import_module
from typing import TYPE_CHECKING, Any

from training.cli.parser import WrongArguments, build

if TYPE_CHECKING:
    from argparse import Namespace

DONE, FAILED, WRONG_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = build().parse_args(words)
    except WrongArguments as error:
        return _misread(error, json_wanted="--json" in words)
    from training.errors import BadInput, ParleyError

    try:
        with kept_clean():
            command = import_module(arguments.module)
            result: dict[str, Any] = command.main(arguments)
    except BadInput as error:
        return _fail(arguments, WRONG_INPUT, {"kind": "input", "where": error.where, "why": error.why}, str(error))
    except ParleyError as error:
        return _fail(arguments, FAILED, {"kind": getattr(error, "kind", "internal"), "why": str(error)}, str(error))
    except KeyboardInterrupt:
        return _fail(arguments, INTERRUPTED, {"kind": "interrupted", "why": "interrupted"}, "interrupted")
    code = int(result.pop("exit", DONE))
    _say(json.dumps(result, ensure_ascii=False, allow_nan=False) if arguments.json else command.show(result))
    return code


def _say(text: str) -> None:
    """Print the result; ignore a closed pipe, for instance of `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python fails once more when it flushes at its end


def _fail(arguments: Namespace, code: int, error: dict[str, str], text: str) -> int:
    if not getattr(arguments, "driver", False):  # else the process that started this one says it
        print(f"{arguments.prog}: {text}", file=sys.stderr)
    if arguments.json:
        _print_error(error)
    return code


def _misread(error: WrongArguments, *, json_wanted: bool) -> int:
    """Report an invalid command line as argparse does, or as JSON if `--json` is given."""
    print(f"{error.usage}{error.prog}: error: {error}", file=sys.stderr)
    if json_wanted:
        name, _, why = str(error).removeprefix("argument ").partition(": ")
        at = (name, why) if str(error).startswith("argument ") and why else ("arguments", str(error))
        _print_error({"kind": "input", "where": at[0], "why": at[1]})
    return WRONG_INPUT


def _print_error(error: dict[str, str]) -> None:
    print(json.dumps({"error": error}, ensure_ascii=False))


@contextmanager
def kept_clean() -> Iterator[None]:
    """Redirect standard output to standard error, also that of native libraries and child processes."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
