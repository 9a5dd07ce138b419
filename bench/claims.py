"""Which claims the rules find in recorded table talk, with samples for a reader who judges them by hand.

Datasets are files in Parley's own form; games of Among Us, of which there are no records, are played by scripts. A
sample has up to `per_kind` claims of each kind and dataset, and `turns` spoken moves for claims that were missed. Games
in `without` are in no sample: those that somebody read while the rules were written. The result holds identifiers
and offsets, and not a word that anybody said; `texts` writes the words to a file of its own. `judged` is an earlier
result, whose judgments are kept where the claim is the same.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from training import dataset, samples
from training.games import ClaimCheckingGame, make
from training.labels.claims import Claim, claims_of
from training.players import make as player
from training.records import Move, Scenario, Seat, SeatMove
from training.seeding import derive, rng
from training.store import loads
from training.text.parsing import parse

Game = tuple[str, Scenario, Sequence[SeatMove]]
"""The name of a recorded game, its start, and its moves."""
QUESTIONS = ("claim", "proposition", "verdict")
"""What the reader judges: whether it is a claim at all, whether it was read rightly, whether the verdict is right."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return counts and samples by dataset; raise `BadInput` for a file that is no dataset."""
    earlier = loads(arguments.judged.read_text("utf-8")) if arguments.judged else {"datasets": {}}
    left_out = arguments.without.read_text("utf-8").split() if arguments.without else []
    named: dict[str, Iterator[Game]] = {path.stem: _recorded(path) for path in arguments.datasets}
    if arguments.played:
        named["among_us"] = _played(arguments.played)
    texts: list[str] = []
    measured = {}
    for name, games in named.items():
        measured[name] = _measured(list(games), set(left_out), earlier["datasets"].get(name, {}), arguments, texts)
    if arguments.texts:
        arguments.texts.write_text("\n".join(texts), "utf-8")
    kept = {name: value for name, value in earlier.items() if name != "datasets"}
    return {**kept, "seed": arguments.seed, "per_kind": arguments.per_kind, "datasets": measured}


def show(result: dict[str, Any]) -> str:
    """Return the number of claims of each dataset by kind and verdict."""
    lines = []
    for name, row in result["datasets"].items():
        lines.append(f"{name}: {row['games']} games, {row['turns']} spoken moves")
        for kind, verdicts in row["claims"].items():
            lines.append(f"  {kind}: " + ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return "\n".join(lines)


# --- games -----------------------------------------------------------------------------------------------------------


def _recorded(path: Path) -> Iterator[Game]:
    for line in dataset.read(path):
        for conversation in line.conversations:
            yield line.scenario.id, conversation.episode.scenario, conversation.episode.moves


def _played(count: int) -> Iterator[Game]:
    """Yield games of Among Us that the scripted players play, from seeds 1 on."""
    import asyncio

    starts = samples.load("among_us")
    with asyncio.Runner() as loop:
        for number in range(count):
            scenario = starts[number % len(starts)].with_seed(number + 1)
            game, moves = make(scenario), list[SeatMove]()
            while acting := sorted(game.to_act()):
                joint: dict[Seat, Move] = {}
                for seat in acting:
                    seen = game.observe(seat)
                    reply = loop.run(
                        player("scripted", scenario, seat).act(seat, seen, derive(number, len(moves), seat))
                    )
                    joint[seat], _ = parse(reply.text, seen)
                game.step(joint)
                moves += [SeatMove(seat=seat, move=move) for seat, move in joint.items()]
            yield f"seed-{number + 1}", scenario, moves


# --- samples ---------------------------------------------------------------------------------------------------------


def _measured(
    games: Sequence[Game], left_out: set[str], earlier: Mapping[str, Any], arguments: Namespace, texts: list[str]
) -> dict[str, Any]:
    """Return one dataset's counts and samples; add the words of what is sampled to `texts`."""
    claims = [(game, number, claim) for game in games for number, claim in _numbered(game)]
    counts: dict[str, Counter[str]] = {}
    for _, _, claim in claims:
        counts.setdefault(claim.kind, Counter())[claim.verdict] += 1
    spoken = [(game, at) for game in games for at in _spoken(game)]
    rows = []
    for kind in sorted(counts):
        of_kind = [each for each in claims if each[2].kind == kind and each[0][0] not in left_out]
        chance = rng(arguments.seed, "claims", kind)
        for game, number, claim in chance.sample(of_kind, min(len(of_kind), arguments.per_kind)):
            rows.append(_row(game, number, claim))
            texts.append(_text(len(rows), game, claim))
    unread = [each for each in spoken if each[0][0] not in left_out]
    turns = []
    for game, at in rng(arguments.seed, "claims", "turns").sample(unread, min(len(unread), arguments.turns)):
        extracted = [claim for _, claim in _numbered(game) if claim.move == at]
        turns.append({"game": game[0], "move": at, "extracted": len(extracted), "missed": None, "reason": ""})
        marks = "; ".join(f"{claim.kind}: {claim.statement}" for claim in extracted)
        texts.append(f"turn {len(turns)} {game[0]} move {at} [{marks}] :: {game[2][at].move.text}")
    row = {
        "game": games[0][1].game if games else "",
        "games": len(games),
        "read_before": sum(game[0] in left_out for game in games),
        "turns": len(spoken),
        "claims": {kind: dict(sorted(verdicts.items())) for kind, verdicts in sorted(counts.items())},
        "sample": rows,
        "sample_of_turns": turns,
    }
    return _kept(row, earlier)


def _numbered(game: Game) -> list[tuple[int, Claim]]:
    """Return a game's claims, each with its number among those of the same words and kind."""
    before: Counter[tuple[int, int, int, str]] = Counter()
    numbered = []
    for claim in claims_of(game[1], game[2]):
        words = (claim.move, claim.start, claim.end, claim.kind)
        numbered.append((before[words], claim))
        before[words] += 1
    return numbered


def _spoken(game: Game) -> list[int]:
    """Return the moves with words beside their tag."""
    assert isinstance(make(game[1]), ClaimCheckingGame)
    return [
        at
        for at, entry in enumerate(game[2])
        if entry.move.origin == "seat" and entry.move.text.strip() and not entry.move.text.lstrip().startswith("<")
    ]


def _row(game: Game, number: int, claim: Claim) -> dict[str, Any]:
    place = {"game": game[0], "move": claim.move, "start": claim.start, "end": claim.end, "number": number}
    return {**place, "kind": claim.kind, "verdict": claim.verdict, "judged": None, "reason": ""}


def _text(number: int, game: Game, claim: Claim) -> str:
    text = game[2][claim.move].move.text
    quote = f"{text[: claim.start]}<<{text[claim.start : claim.end]}>>{text[claim.end :]}".replace("\n", " ")
    described = f"[{claim.kind}] {claim.statement} => {claim.verdict} ({claim.why})"
    return f"{number} {game[0]} move {claim.move} {described} :: {quote}"


def _kept(row: dict[str, Any], earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with the judgments of an earlier result of the same claims and turns."""
    judged = {_key(old): old for old in earlier.get("sample", ())}
    read = {(old["game"], old["move"], old["extracted"]): old for old in earlier.get("sample_of_turns", ())}
    for new in row["sample"]:
        if old := judged.get(_key(new)):
            new |= {"judged": old["judged"], "reason": old["reason"]}
    for new in row["sample_of_turns"]:
        if old := read.get((new["game"], new["move"], new["extracted"])):
            new |= {"missed": old["missed"], "reason": old["reason"]}
    return row


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("game", "move", "start", "end", "kind", "verdict", "number"))
