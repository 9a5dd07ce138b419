"""`python -m bench MEASUREMENT [--json]`: run one measurement and print its result, with `--json` as one JSON object.

Exit codes: 0 done, 1 failed, 2 wrong input. Arguments are parsed before anything else is imported.
"""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

from bench.scale import PARTS
from training.cli.parser import COUNT, SEED, whole
from training.engines.choice import REGISTRY

SEVERAL = partial(whole, low=2, high=1_000_000)  # TRL's groups and quantiles need two
COUNT_OR_0 = partial(whole, low=0, high=1_000_000)
PERCENT = partial(whole, low=1, high=100)
MINIATURES = (
    *("toy", "negotiation", "werewolf", "hack", "critic", "kuhn", "tictactoe", "hanabi", "among_us"),
    *("epo_negotiation", "epo_shop", "epo_household", "csp"),
)


def parser() -> ArgumentParser:
    """Return the parser; every command names the module that runs it."""
    root = ArgumentParser(prog="python -m bench", description="Measure Parley beside the libraries that it builds on.")
    commands = root.add_subparsers(title="measurements", required=True, metavar="MEASUREMENT")
    common = ArgumentParser(add_help=False)
    common.add_argument("--json", action="store_true", help="print one JSON object on standard output, nothing else")
    compared = ArgumentParser(add_help=False)
    compared.add_argument("--model", default="smollm2-135m", metavar="MODEL", help="registered name or folder")
    compared.add_argument("--rounds", type=COUNT, default=3, metavar="N", help="counted runs of each side (3)")
    compared.add_argument("--dtype", choices=("float32", "bfloat16"), default="bfloat16", help="of the weights")
    compared.add_argument("--threads", type=COUNT_OR_0, default=0, metavar="N", help="CPU threads; 0 = all")

    def add(name: str, text: str, *, parents: tuple[ArgumentParser, ...]) -> ArgumentParser:
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=parents)
        command.set_defaults(module=f"bench.{name}")
        return command

    alone = partial(add, parents=(common,))
    _beside(partial(add, parents=(common, compared)))
    _rollout(alone)
    _site(alone)
    _theory(alone)
    _tables(alone)
    _retrieval(alone("retrieval", "time, size, memory and latency of indexes of passages, by kind"))
    _miniature(alone("miniature", "forms of credit on a toy and on games, with small models"))
    _training(alone)
    _claims(alone("claims", "claims in recorded table talk, checked by rule, with samples to judge by hand"))
    _critic(alone("critic", "how well hidden states and value heads predict returns"))
    _strategies(alone("strategies", "a classifier of negotiation strategies trained on labels, beside baselines"))
    _emergence(alone("emergence", "what rules and classifiers see in a run's games, checkpoint by checkpoint"))
    times = alone("annotation-times", "the pages of the annotation bench at 10,000 seats, analyses and exports")
    times.set_defaults(module="bench.annotation_times")
    times.add_argument("--items", type=SEVERAL, default=10_000, metavar="N", help="seats of each queue (10000)")
    times.add_argument("--repeats", type=SEVERAL, default=15, metavar="N", help="counted requests of each kind (15)")
    _annotation(alone("annotation", "labels from recorded games to another site, with annotators of known errors"))
    return root


def _rollout(add: Callable[..., ArgumentParser]) -> None:
    """Add the measurements of playing games."""
    games = add("games", "the cost of a turn of each game, beside TextArena where it has the game")
    games.add_argument("--games", type=COUNT, default=200, metavar="N", help="games of each kind per round (200)")
    games.add_argument("--rounds", type=COUNT, default=5, metavar="N", help="counted rounds of each (5)")
    games.add_argument("--seed", type=SEED, default=1, metavar="S", help="random seed (1)")
    _probes(add("probes", "the share of a training step that probes take, in Among Us"))


def _theory(add: Callable[..., ArgumentParser]) -> None:
    """Add the measurements against exact values."""
    intervals = add("intervals", "how often intervals at 95 per cent cover the mean, by method and kind of data")
    intervals.add_argument("--samples", type=COUNT, default=2000, metavar="N", help="samples of each kind (2000)")
    intervals.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")
    agreement = add("agreement", "agreement and aggregated truth of synthetic annotators against what is known of them")
    agreement.add_argument("--items", type=COUNT, default=5000, metavar="N", help="items that annotators label (5000)")
    agreement.add_argument("--seeds", type=SEVERAL, default=10, metavar="N", help="seeds from 0 on (10)")
    agreement.add_argument("--samples", type=COUNT, default=1000, metavar="N", help="samples of each interval (1000)")
    estimators = add("estimators", "bias and noise of MARS's forms of credit, by enumeration of small random games")
    estimators.add_argument("--worlds", type=COUNT, default=5, metavar="N", help="random games of each kind (5)")
    estimators.add_argument("--group", type=SEVERAL, default=2, metavar="N", help="games of a group (2)")
    estimators.add_argument("--seed", type=SEED, default=0, metavar="S", help="the first random seed (0)")


def _tables(add: Callable[..., ArgumentParser]) -> None:
    results = add("results", "the tables of docs/results from their raw numbers")
    results.add_argument(
        "--dir", type=Path, default=Path("docs/results"), metavar="DIR", help="the pages and their raw numbers"
    )
    results.add_argument("--write", action="store_true", help="write the lines of pages that have a place for them")


def _retrieval(command: ArgumentParser) -> None:
    command.add_argument("--kind", choices=("bm25", "dense", "both"), default="both", help="kind of index (both)")
    command.add_argument("--passages", type=COUNT, default=1_000_000, metavar="N", help="passages (1000000)")
    command.add_argument("--dense", type=COUNT, default=20_000, metavar="N", help="passages of dense at most (20000)")
    command.add_argument("--length", type=COUNT, default=100, metavar="N", help="mean words of a passage (100)")
    command.add_argument("--queries", type=SEVERAL, default=500, metavar="N", help="counted queries of each (500)")
    command.add_argument("-k", type=COUNT, default=5, metavar="K", help="passages per query (5)")
    command.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")


def _training(add: Callable[..., ArgumentParser]) -> None:
    """Add the measurements that train models over seeds, beside the miniatures."""
    quick = add("quick", "the quick trial over seeds, each against its own start")
    quick.add_argument("--seeds", type=COUNT, default=10, metavar="N", help="runs (10)")
    quick.add_argument("--dir", type=Path, metavar="DIR", help="folder of the runs; the same command continues them")
    silence = add("silence", "silence and waiting in Among Us while crew and imposter learn")
    silence.add_argument("--model", default="tiny", metavar="MODEL", help="registered name or folder (tiny)")
    silence.add_argument("--seeds", type=COUNT, default=10, metavar="N", help="runs (10)")
    silence.add_argument("--dir", type=Path, metavar="DIR", help="folder of the runs; the same command continues them")
    lineage = add("lineage", "a cold start, self-play from it, and a head-to-head of both, over seeds")
    lineage.add_argument("task", choices=("negotiation", "werewolf"), help="the preset that is measured")
    for name, text in (
        ("conversations", "what the cold start reads"),
        ("starts", "where self-play begins"),
        ("held-out", "where the head-to-head begins"),
    ):
        lineage.add_argument(
            f"--{name}",
            type=Path,
            metavar="FILE",
            help=f"{text}: a dataset (JSONL; werewolf: default is generated games)",
        )
    lineage.add_argument("--seeds", type=COUNT, default=3, metavar="N", help="seeds from 0 on (3)")
    lineage.add_argument("--jobs", type=COUNT, default=1, metavar="N", help="stages at once, a thread each (1)")
    lineage.add_argument("--critics", default="", metavar="A,B", help="further self-play with these critics (none)")
    lineage.add_argument("--dir", type=Path, metavar="DIR", help="folder of the runs; the same command continues them")
    held_out = add("held_out", "specialists and a generalist by MARS in games that they were not trained on")
    held_out.add_argument("--seeds", type=COUNT, default=3, metavar="N", help="runs of each model (3)")
    held_out.add_argument(
        "--steps", type=COUNT_OR_0, default=0, metavar="N", help="training steps of every run (20 to 60)"
    )
    held_out.add_argument("--dir", type=Path, metavar="DIR", help="folder of the runs; the same command continues them")
    hierarchy = add("hierarchy", "hierarchical credit against flat credit, on five small tasks")
    hierarchy.add_argument("--seeds", type=SEVERAL, default=12, metavar="N", help="runs of each form and task (12)")
    hierarchy.add_argument("--tasks", default="", metavar="A,B", help="of seen, unseen, long, joint, uneven (all)")


def _beside(add: Callable[..., ArgumentParser]) -> None:
    """Add the measurements beside vLLM and TRL."""
    sampling = add("sampling", "Parley's rollout beside raw vLLM with the same turn dependency")
    sampling.add_argument("--lanes", type=COUNT, default=16, metavar="N", help="conversations in flight (16)")
    sampling.add_argument("--turns", type=COUNT, default=5, metavar="N", help="turns per seat (5)")
    sampling.add_argument("--tokens", type=COUNT, default=32, metavar="N", help="sampled tokens per turn (32)")
    learning = add("learning", "Parley's update beside TRL's on the same tokens")
    learning.add_argument("--samples", type=SEVERAL, default=16, metavar="N", help="traces per update (16)")
    learning.add_argument("--prompt", type=COUNT, default=360, metavar="N", help="prompt tokens of a trace (360)")
    learning.add_argument("--completion", type=COUNT, default=48, metavar="N", help="sampled tokens of a trace (48)")
    scale = add("scale", "the parts of running past one machine, each beside what it replaces")
    scale.add_argument("--part", choices=PARTS, nargs="+", help="these parts alone (all but gpu)")
    scale.set_defaults(model=None, rounds=None, dtype=None)  # None: by the part
    scale.add_argument("--games", type=COUNT, metavar="N", help="games of Werewolf, or of a step; overlap: groups")
    scale.add_argument("--tokens", type=COUNT, metavar="N", help="tokens per batch")
    scale.add_argument("--engine", choices=REGISTRY, default="transformers", help="what samples (transformers)")
    scale.add_argument("--steps", type=SEVERAL, default=12, metavar="N", help="overlap: training steps (12)")
    scale.add_argument("--epochs", type=COUNT, default=1, metavar="N", help="overlap: epochs of a step (1)")
    scale.add_argument("--minutes", type=COUNT, default=9, metavar="N", help="gpu: time for all its parts (9)")
    scale.add_argument(
        "--out", type=Path, metavar="FILE", help="file of the results, written after each part; gpu: a line per part"
    )
    scale.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")
    step = add("conversation", "conversations per hour: Parley, TRL per turn, TRL's own multi-turn path")
    step.add_argument("--conversations", type=COUNT, default=8, metavar="N", help="conversations per step (8)")
    step.add_argument("--turns", type=COUNT, default=5, metavar="N", help="turns per seat (5)")
    step.add_argument("--tokens", type=COUNT, default=32, metavar="N", help="sampled tokens per turn (32)")


def _site(add: Callable[..., ArgumentParser]) -> None:
    """Add the measurements of the site."""
    pages = add("pages", "the site's pages with 1,000 runs, 1,000,000 metric points and 10,000 matches")
    pages.add_argument("--repeats", type=COUNT, default=11, metavar="N", help="counted requests of each page (11)")
    curves = add("curves", "the time until a run's curves of 100,000 steps are drawn in a browser")
    curves.add_argument("--rounds", type=COUNT, default=5, metavar="N", help="counted visits (5)")
    curves.add_argument("--chromium", default="", metavar="FILE", help="the browser, else one on the path")
    sockets = add("socket", "the latency from a player's move to the other player's socket")
    sockets.set_defaults(module="bench.sockets")
    sockets.add_argument("--moves", type=SEVERAL, default=200, metavar="N", help="counted moves of a run (200)")
    sockets.add_argument("--rounds", type=COUNT, default=3, metavar="N", help="runs (3)")
    move = add("move", "where the milliseconds of a player's move go, stage by stage")
    move.add_argument("--moves", type=SEVERAL, default=200, metavar="N", help="counted moves (200)")
    table = add("table", "the latency from an event at a table to its viewers' sockets, many tables at once")
    table.add_argument("--tables", type=COUNT, default=20, metavar="N", help="games at once (20)")
    table.add_argument("--watchers", type=COUNT, default=5, metavar="N", help="sockets per game (5)")
    table.add_argument("--seconds", type=COUNT, default=180, metavar="S", help="seconds of watching (180)")
    page = add("table-page", "weight, layout shift and time from input to paint of every game's table in a browser")
    page.set_defaults(module="bench.table_page")
    page.add_argument("--moves", type=COUNT, default=6, metavar="N", help="moves of the person in each game (6)")
    page.add_argument("--chromium", default="", metavar="FILE", help="the browser, else one on the path")
    study = add("experiments", "an experiment of two arms with scripted participants, three of whom leave midway")
    study.add_argument("--participants", type=SEVERAL, default=40, metavar="N", help="participants (40)")
    study.add_argument("--browsers", type=COUNT, default=2, metavar="N", help="of them with Chromium (2)")
    study.add_argument("--seed", type=SEED, default=0, metavar="N", help="of assignment and moves (0)")
    start = add("start", "the start time of the whole site and of the command line's help")
    start.add_argument("--rounds", type=COUNT, default=3, metavar="N", help="counted starts of each (3)")
    first = add("first", "taps and seconds from the address to a first move, and from a last move to the next game")
    first.add_argument("--rounds", type=COUNT, default=3, metavar="N", help="counted visits of each kind (3)")
    first.add_argument("--chromium", default="", metavar="FILE", help="the browser, else one on the path")


def _probes(command: ArgumentParser) -> None:
    command.add_argument("--model", default="tiny", metavar="MODEL", help="registered name or folder")
    command.add_argument("--engine", choices=REGISTRY, default="transformers", help="what samples (transformers)")
    command.add_argument("--rounds", type=COUNT, default=3, metavar="N", help="counted steps of each side (3)")
    command.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights (float32)")
    command.add_argument("--threads", type=COUNT_OR_0, default=0, metavar="N", help="CPU threads; 0 = all")
    command.add_argument("--games", type=COUNT, default=4, metavar="N", help="games of a step (4)")
    command.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed (0)")


def _claims(command: ArgumentParser) -> None:
    command.add_argument("datasets", type=Path, nargs="*", metavar="FILE", help="dataset files (JSONL)")
    command.add_argument("--played", type=COUNT_OR_0, default=0, metavar="N", help="scripted games of Among Us (0)")
    command.add_argument("--per-kind", type=COUNT, default=60, metavar="N", help="sampled claims of each kind (60)")
    command.add_argument("--turns", type=COUNT, default=60, metavar="N", help="sampled spoken moves (60)")
    command.add_argument("--seed", type=SEED, default=0, metavar="S", help="random seed of the samples (0)")
    command.add_argument("--without", type=Path, metavar="FILE", help="names of games that no sample may contain")
    command.add_argument("--texts", type=Path, metavar="FILE", help="write the words of the samples to this file")
    command.add_argument("--judged", type=Path, metavar="FILE", help="an earlier result, whose judgments are kept")


def _critic(command: ArgumentParser) -> None:
    command.add_argument(
        "dataset", type=Path, metavar="FILE", help="dataset file with recorded negotiations (JSONL), or a run directory"
    )
    command.add_argument("--model", default="smollm2-135m", metavar="MODEL", help="registered name or folder")
    command.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the weights (float32)")
    command.add_argument("--threads", type=COUNT_OR_0, default=0, metavar="N", help="CPU threads; 0 = all")
    command.add_argument("--conversations", type=COUNT, default=300, metavar="N", help="conversations read (300)")
    command.add_argument("--batch", type=COUNT, default=16, metavar="N", help="conversations per step (16)")
    command.add_argument("--orders", type=COUNT, default=3, metavar="N", help="orders of the conversations (3)")
    command.add_argument("--gamma", type=float, default=0.9, metavar="G", help="discount from turn to turn (0.9)")
    command.add_argument("--cache", type=Path, metavar="DIR", help="folder that keeps the hidden states")


def _strategies(command: ArgumentParser) -> None:
    command.add_argument("dataset", type=Path, metavar="FILE", help="CaSiNo with annotations (casino.json)")
    command.add_argument("--model", default="smollm2-135m", metavar="MODEL", help="registered name (smollm2-135m)")
    command.add_argument("--train", type=COUNT, default=250, metavar="N", help="dialogues for training (250)")
    command.add_argument("--seeds", type=SEVERAL, default=10, metavar="N", help="random splits (10)")
    command.add_argument(
        "--dir", type=Path, metavar="DIR", help="folder of embeddings and splits; the same command continues them"
    )


def _emergence(command: ArgumentParser) -> None:
    command.add_argument("dataset", type=Path, metavar="FILE", help="CaSiNo with annotations (casino.json)")
    command.add_argument("--model", default="smollm2-135m", metavar="MODEL", help="of classifiers (smollm2-135m)")
    command.add_argument("--train", type=COUNT, default=250, metavar="N", help="dialogues for training (250)")
    command.add_argument("--seeds", type=COUNT, default=3, metavar="N", help="runs of each game (3)")
    command.add_argument("--steps", type=COUNT, default=30, metavar="N", help="training steps (30)")
    command.add_argument("--every", type=COUNT, default=10, metavar="N", help="steps between checkpoints (10)")
    command.add_argument("--games", type=COUNT, default=80, metavar="N", help="held-out games of a checkpoint (80)")
    command.add_argument("--part", choices=("negotiation", "werewolf", "both"), default="both", help="games (both)")
    command.add_argument(
        "--negotiators", choices=("tiny", "smollm2-135m"), default="tiny", help="the model that negotiates (tiny)"
    )
    command.add_argument("--rules-only", action="store_true", help="without classifiers")
    command.add_argument("--dir", type=Path, metavar="DIR", help="folder of the runs; the same command continues them")


def _annotation(command: ArgumentParser) -> None:
    command.add_argument("data", type=Path, metavar="DIR", help="folder of recorded games: Werewolf, SOTOPIA, CaSiNo")
    command.add_argument("--games", type=COUNT, default=10, metavar="N", help="games of Werewolf that are judged (10)")
    command.add_argument("--seed", type=SEED, default=0, metavar="S", help="of true labels and errors (0)")


def _miniature(command: ArgumentParser) -> None:
    command.add_argument(
        "part",
        choices=MINIATURES,
        help="the task; hack: Werewolf with a planted bug, by quality filter; critic: item negotiation, by value head; "
        "kuhn, tictactoe, hanabi: MARS from a small start; among_us: listen_speak from a small start, by variant; "
        "epo_negotiation, epo_shop, epo_household: a strategist before a speaker that follows some of its strategies; "
        "csp: when a small model that knows some facts searches and answers",
    )
    command.add_argument(
        "--data", type=Path, metavar="DIR", help="csp: folder of real question sets, on which SmolLM2 is measured"
    )
    command.add_argument(
        "--forms", default="", metavar="A,B", help="forms of credit (hack: filters), compared with the first (all)"
    )
    command.add_argument("--seeds", type=COUNT, default=5, metavar="N", help="runs of each form (5)")
    command.add_argument(
        "--steps",
        type=COUNT_OR_0,
        default=0,
        metavar="N",
        help="training steps (toy: at most 1500; negotiation: 60; critic: 30; else 150)",
    )
    command.add_argument(
        "--conversations", type=COUNT, default=1000, metavar="N", help="conversations of a head-to-head (1000)"
    )
    command.add_argument(
        "--following",
        type=PERCENT,
        nargs="+",
        default=[30, 60, 90],
        metavar="PERCENT",
        help="epo: the shares of strategies that the speaker follows (30 60 90)",
    )
    command.add_argument(
        "--dir",
        type=Path,
        metavar="DIR",
        help="folder of the runs; the same command continues them",
    )


def main(argv: list[str] | None = None) -> int:
    """Run one measurement; return the exit code."""
    arguments: Namespace = parser().parse_args(argv)
    from training.cli import kept_clean
    from training.errors import BadInput, ParleyError

    try:
        with kept_clean():
            module = import_module(arguments.module)
            result = module.main(arguments)
    except ParleyError as error:
        print(f"python -m bench: {error}", file=sys.stderr)
        return 2 if isinstance(error, BadInput) else 1
    print(json.dumps(result, ensure_ascii=False) if arguments.json else module.show(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
