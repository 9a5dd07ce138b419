"""The arguments of every command. Imports argparse only, so that `--help` is fast."""

from __future__ import annotations

from argparse import SUPPRESS, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NoReturn

EXIT_CODES = """\
exit codes:
  0    done
  1    failed: the reason is on standard error
  2    wrong input: what and where is on standard error, nothing was changed
  130  interrupted by Ctrl-C; a run saves a checkpoint before it leaves
"""


class WrongArguments(Exception):
    """The command line is invalid. `usage` and `prog` are those of the command; the message is argparse's."""

    def __init__(self, message: str, prog: str, usage: str) -> None:
        super().__init__(message)
        self.prog, self.usage = prog, usage


class Parser(ArgumentParser):
    """Raises `WrongArguments` instead of printing and exiting, because the output may have to be JSON."""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongArguments`."""
        raise WrongArguments(message, self.prog, self.format_usage())


def whole(text: str, *, low: int, high: int) -> int:
    """Return the integer in `text` if it lies between `low` and `high`."""
    try:
        value = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from None
    if not low <= value <= high:
        raise ArgumentTypeError(f"{value} is not between {low} and {high}")
    return value


def number(text: str, *, above: float, high: float) -> float:
    """Return the number in `text` if it is above `above` and at most `high`."""
    try:
        value = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None
    if not above < value <= high:
        raise ArgumentTypeError(f"{text} is not above {above:g} and at most {high:g}")
    return value


COUNT = partial(whole, low=1, high=1_000_000)
SEED = partial(whole, low=0, high=2**63 - 1)
RETRIES = partial(whole, low=0, high=5)
TEMPERATURE = partial(number, above=0, high=5)
REPLY = partial(whole, low=1, high=32768)
TOP_K = partial(whole, low=0, high=1_000_000)
LANES = partial(whole, low=1, high=256)
GPUS = partial(whole, low=1, high=8192)
ALL_GPUS = partial(whole, low=0, high=8192)
GIB = partial(number, above=0, high=4096)
SHARE = partial(number, above=0, high=1)


def _command(commands: object, common: ArgumentParser, name: str, text: str, module: str) -> ArgumentParser:
    parser: ArgumentParser = commands.add_parser(  # type: ignore[attr-defined]
        name,
        parents=[common],
        help=text,
        description=f"{text[0].upper()}{text[1:]}.",
        epilog=EXIT_CODES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.set_defaults(module=module, prog=parser.prog)
    return parser


def _play(parser: ArgumentParser) -> None:
    parser.add_argument("game", metavar="GAME", help="name of the game, as `games` lists it, or openspiel:NAME")
    parser.add_argument(
        "--players",
        required=True,
        metavar="A,B",
        help="one player per seat, separated by commas: scripted, random, mcts:100, …",
    )
    parser.add_argument("--episodes", type=COUNT, default=10, metavar="N", help="games to play (10)")
    parser.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")
    parser.add_argument(
        "--scenarios",
        type=Path,
        metavar="FILE",
        help="dataset file (JSONL) with the scenarios (default: the samples with as many seats as players)",
    )
    parser.add_argument("--lanes", type=COUNT, default=32, metavar="N", help="games played at the same time (32)")
    parser.add_argument(
        "--retries", type=RETRIES, default=0, metavar="N", help="further attempts after a refused reply (0)"
    )
    parser.add_argument(
        "--on-refused",
        choices=("default", "forfeit"),
        default="default",
        help="after the last refused attempt: play a default move (default), or forfeit the game",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the episodes as JSONL to a new file")
    parser.add_argument(
        "--dataset",
        type=Path,
        metavar="FILE",
        help="write the scenarios, with the games as conversations, to a new dataset file",
    )


def _run(parser: ArgumentParser, kind: str | None, metavar: str = "CONFIG.toml") -> None:
    parser.add_argument("config", type=Path, metavar=metavar, help="the configuration (TOML, or JSON)")
    parser.add_argument("--dir", type=Path, required=True, metavar="DIR", help="the run directory, new or empty")
    _attempt(parser)
    parser.set_defaults(resume=False, kind=kind)


def _suite(parser: ArgumentParser) -> None:
    _run(parser, "suite", "SUITE.toml")
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="what is measured: a model by name or folder, or a player"
    )
    for name, who in (("opponent", "who plays against the side"), ("partner", "who plays one seat of the side")):
        parser.add_argument(f"--{name}", metavar="SOURCE", help=f"{who}, in tasks with a side (as in the suite)")
    parser.add_argument(
        "--speaker",
        metavar="SOURCE",
        help="source of the section speaker: who speaks while models advise (as in the suite)",
    )
    parser.add_argument(
        "--judge",
        metavar="SOURCE",
        help="who scores games without a built-in result: ADDRESS MODEL [SECRET] (as in the suite)",
    )
    parser.add_argument("--games", type=COUNT, metavar="N", help="games at each seat in every task (as in the suite)")
    parser.add_argument("--seed", type=SEED, metavar="S", help="random seed (as in the suite)")


def _plan(parser: ArgumentParser) -> None:
    parser.add_argument("config", type=Path, metavar="CONFIG.toml", help="the configuration (TOML, or JSON)")
    parser.add_argument(
        "--gpus", type=ALL_GPUS, required=True, metavar="N", help="GPUs of all nodes together; 0 = a machine without"
    )
    parser.add_argument("--gpus-per-node", type=GPUS, default=8, metavar="N", help="GPUs of each node (8)")
    parser.add_argument(
        "--memory",
        type=GIB,
        metavar="GIB",
        help="memory of each GPU in GiB (80); with --gpus 0 that of the machine (what is free on this one)",
    )
    parser.add_argument(
        "--shape",
        metavar="SHAPE",
        help="plan for a model of this shape in place of the configuration's: 0.6b, 4b, 7b, or a config.json",
    )


def _resume(parser: ArgumentParser) -> None:
    _run_dir(parser)
    _attempt(parser)
    parser.set_defaults(resume=True)


def _run_dir(parser: ArgumentParser) -> None:
    parser.add_argument("dir", type=Path, metavar="DIR", help="the run directory")


def _iterations(parser: ArgumentParser) -> None:
    _run_dir(parser)
    parser.add_argument(
        "--pooled", type=COUNT, default=3, metavar="N", help="first and last training steps that are pooled (3)"
    )


def _attempt(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--attempt", type=COUNT, metavar="N", help="number of this attempt's folder (one more than the last)"
    )
    parser.add_argument(
        "--supervised",
        action="store_true",
        help="for supervisors that number attempts: take the run over from their earlier attempt, and resume nothing",
    )
    parser.add_argument("--driver", action="store_true", help=SUPPRESS)  # a child of `training.cli.resuming`


def _nashconv(parser: ArgumentParser) -> None:
    parser.add_argument("game", metavar="GAME", help="kuhn_poker or leduc_poker")
    parser.add_argument("policy", metavar="POLICY", help="random, nash, cfr, or a model: registered name or folder")
    parser.add_argument("--engine", default="auto", metavar="NAME", help="engine that scores a model's answers (auto)")
    parser.add_argument(
        "--constrained",
        type=TEMPERATURE,
        metavar="T",
        help="measure the policy of constrained decoding at temperature T (default: whole answers at temperature 1)",
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where a model runs (cpu)")
    parser.add_argument(
        "--dtype", choices=("float32", "bfloat16"), default="float32", help="number format of a model's weights"
    )


def _provision(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--accuracies",
        required=True,
        metavar="P,P",
        help="accuracy of each player after a search, for 2 to 12 players: 0.7,0.5",
    )
    parser.add_argument(
        "--guess",
        required=True,
        metavar="G",
        help="accuracy of a guess: one for all players, or one per player, of which only the mean matters",
    )
    parser.add_argument("--cost", required=True, metavar="C", help="cost of a search to the player who searches")


def _questions(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="questions (JSONL): GSM8K's format, or multiple choice")
    parser.add_argument(
        "--model", required=True, metavar="MODEL", help="registered name, folder, or 'ADDRESS MODEL [SECRET]'"
    )
    parser.add_argument("--form", default="single", metavar="A,B", help="single, debate, chat, or several (single)")
    parser.add_argument("--dir", type=Path, required=True, metavar="DIR", help="folder of the result, new or empty")
    parser.add_argument("--limit", type=COUNT, metavar="N", help="the first N questions (all)")
    parser.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")
    parser.add_argument("--max-tokens", type=REPLY, default=8192, metavar="N", help="longest reply in tokens (8192)")
    parser.add_argument("--temperature", type=TEMPERATURE, default=0.6, metavar="T", help="sampling temperature (0.6)")
    parser.add_argument("--top-p", type=SHARE, default=0.95, metavar="P", help="top-p (nucleus) sampling (0.95)")
    parser.add_argument("--top-k", type=TOP_K, default=20, metavar="K", help="top-k sampling; 0 = all tokens (20)")
    parser.add_argument(
        "--engine", choices=("auto", "vllm", "transformers"), default="auto", help="what serves a local model (auto)"
    )
    parser.add_argument("--lanes", type=LANES, default=16, metavar="N", help="conversations at the same time (16)")


def _calibrate(parser: ArgumentParser) -> None:
    parser.add_argument(
        "source", type=Path, metavar="CONFIG", help="a configuration with the section calibration, or a run directory"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        help="model to compare with the base model: a name or folder (by default a run's newest checkpoint)",
    )
    parser.add_argument("--step", type=COUNT, metavar="N", help="the run's checkpoint after step N")
    parser.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        help="folder for the result as JSON and a row per question (default: print only)",
    )


def _behaviours(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", type=Path, nargs="+", metavar="FILE", help="judged games: a dataset (JSONL) or a run's episodes (.gz)"
    )
    parser.add_argument(
        "--seed", type=SEED, default=0, metavar="S", help="has no effect: the report is deterministic (0)"
    )


def _labels(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    train = actions.add_parser("train", help="train a classifier on the turns that people labelled")
    train.add_argument(
        "files", type=Path, nargs="+", metavar="LABELS", help="judged games: datasets (JSONL) or a run's episodes (.gz)"
    )
    train.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the classifier, a new one")
    train.add_argument("--model", default="smollm2-135m", metavar="NAME", help="base model or folder (smollm2-135m)")
    train.add_argument(
        "--codebook", metavar="NAME:VERSION", help="whose labels are learned, where the games have several"
    )
    train.add_argument("--labels", metavar="A,B", help="the labels to learn (all that a turn has)")
    train.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")
    label = actions.add_parser("label", help="label the turns of games with a classifier")
    label.add_argument(
        "source", type=Path, metavar="SOURCE", help="dataset (JSONL), run directory, or its episodes (.gz)"
    )
    label.add_argument("--classifier", type=Path, required=True, metavar="DIR", help="folder of the classifier")
    label.add_argument("--out", type=Path, required=True, metavar="FILE", help="the labels (JSONL), a new file")
    for parser_, action in ((train, "train"), (label, "label")):
        parser_.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the model runs (cpu)")
        parser_.add_argument(
            "--status", type=Path, metavar="FILE", help="also write the progress to this file, as JSON"
        )
        parser_.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON object")
        parser_.set_defaults(action=action)


def _export_metrics(parser: ArgumentParser) -> None:
    parser.add_argument("run_dir", type=Path, metavar="RUN_DIR", help="the run directory")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for the event file")


def _models(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    parser.set_defaults(action="list")
    listing = actions.add_parser("list", help="list the registry of base models (what `models` alone does)")
    prepare = actions.add_parser("prepare", help="convert, pretrain or download base models")
    prepare.add_argument("names", nargs="+", metavar="NAME", help="name of a model, as `models` lists it")
    prepare.add_argument("--force", action="store_true", help="prepare it again even if it is complete")
    for parser_, action in ((listing, "list"), (prepare, "prepare")):
        parser_.add_argument("--json", action="store_true", default=SUPPRESS, help="print one JSON object")
        parser_.set_defaults(action=action)


def _corpus(parser: ArgumentParser) -> None:
    parser.add_argument("format", choices=("popqa-passages", "pubmedqa"), help="format of SOURCE")
    parser.add_argument("source", type=Path, metavar="SOURCE", help="folder of popqa-passages, file of pubmedqa")
    parser.add_argument("--table", type=Path, metavar="CSV", help="PopQA's questions, for popqa-passages")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="the corpus (JSONL), a new file")
    parser.add_argument("--words", type=COUNT, default=100, metavar="N", help="longest passage in words (100)")


def _index(parser: ArgumentParser) -> None:
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="passages (JSONL): id, title, text")
    parser.add_argument(
        "--kind",
        choices=("bm25", "dense"),
        default="bm25",
        help="bm25 = by words (default), dense = by the vectors of an encoder",
    )
    parser.add_argument("--model", metavar="FOLDER", help="folder of the encoder for --kind dense (all-MiniLM-L6-v2)")
    parser.add_argument("--status", type=Path, metavar="FILE", help="also write the progress to this file, as JSON")


def _search(parser: ArgumentParser) -> None:
    parser.add_argument("index", metavar="INDEX", help="name or path of the index, as `index` prints them")
    parser.add_argument("query", metavar="QUERY", help="what to search for")
    parser.add_argument("-k", type=COUNT, default=5, metavar="K", help="number of passages to print (5)")


def _none(parser: ArgumentParser) -> None:
    """The command has no arguments of its own."""


COMMANDS: tuple[tuple[str, str, str, Callable[[ArgumentParser], None]], ...] = (
    ("games", "list the games", "games", _none),
    ("methods", "list the training methods", "methods", _none),
    ("play", "play games between players that need no local model", "play", _play),
    ("sft", "cold start: supervised training on recorded conversations", "runs", partial(_run, kind="sft")),
    ("run", "start a run of the kind that its configuration names", "runs", partial(_run, kind=None)),
    (
        "resume",
        "resume a run from its newest complete checkpoint, or from the beginning if it has none",
        "runs",
        _resume,
    ),
    (
        "eval",
        "head-to-head: two models play the same scenarios in both seatings",
        "runs",
        partial(_run, kind="eval"),
    ),
    ("plan", "plan which process of a training run gets which GPU, and whether it fits", "plan", _plan),
    ("suite", "evaluation suite: a model against many opponents in many games", "runs", _suite),
    (
        "nashconv",
        "compute NashConv, the distance from an equilibrium, of a policy in Kuhn or Leduc poker",
        "nashconv",
        _nashconv,
    ),
    (
        "provision",
        "compute the pure equilibria of the information-provision game: who should search",
        "provision",
        _provision,
    ),
    (
        "calibrate",
        "measure how well a single agent of qa_society decides when to search, answer or hedge",
        "calibrate",
        _calibrate,
    ),
    ("league", "print a run's payoff table, checkpoint × opponent, and its meta-strategy", "league", _run_dir),
    (
        "iterations",
        "print the exploitability curve: win rates against the opponent at the beginning and end of each phase",
        "iterations",
        _iterations,
    ),
    (
        "questions",
        "ask one model, a debate, or a chat of two agents questions with known answers",
        "questions",
        _questions,
    ),
    (
        "behaviours",
        "compare the judged behaviours of surviving and eliminated players of Werewolf",
        "behaviours",
        _behaviours,
    ),
    ("labels", "train a classifier of turns on people's labels, or label games with one", "labels", _labels),
    ("export-metrics", "write a run's metrics for TensorBoard and W&B", "export_metrics", _export_metrics),
    ("models", "list or prepare base models", "models", _models),
    ("corpus", "write the passages of a question set as a corpus", "corpus", _corpus),
    ("index", "index a corpus of passages, so that it can be searched", "index", _index),
    ("search", "search an index of passages", "search", _search),
)
"""Every command: its name, what it does, the module of `training.cli` that runs it, and what adds its arguments."""


def build() -> ArgumentParser:
    """Return the parser; every command names the module that runs it in `module`."""
    parser = Parser(
        prog="python -m training",
        description="Self-play training of language models in conversation games.",
        epilog=EXIT_CODES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    common = ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object on standard output, nothing else")
    for name, text, module, add_arguments in COMMANDS:
        add_arguments(_command(commands, common, name, text, f"training.cli.{module}"))
    return parser
