"""An episode's record for pages: each seat's opening, every turn, and each trace by token.

Texts come from people and models; the template escapes them. Token texts need the tokenizer of the run's model; without
its file the token ids are shown.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from training import games
from training.errors import ParleyError
from training.records import Scenario
from webapp.core import files
from webapp.core.templatetags.parley import figure, signed
from webapp.runs.episodes.replaying import Course
from webapp.runs.models import Checkpoint, Run

TINTS = 4  # classes of colour on each side of zero


@dataclass(frozen=True)
class ShownTurn:
    """One attempt of one seat.

    `phase` is set where a new phase begins, `channel` where the message was restricted.
    """

    number: int
    seat: int
    name: str
    role: str
    phase: str
    channel: str
    text: str
    private: str
    strategy: str
    action: str
    error: str
    passed: bool
    reward: float | None
    advantage: float | None


@dataclass(frozen=True)
class Token:
    """One token: its text, its tint class and its tooltip."""

    text: str
    css: str
    facts: str


@dataclass(frozen=True)
class Stretch:
    """Consecutive tokens of one turn (or of the context in between), with the turn's advantage.

    `step` is the training step after which the weights were that sampled them, None where that is not counted.
    """

    turn: int | None
    advantage: float | None
    step: int | None = None
    tokens: list[Token] = field(default_factory=list)

    @property
    def notes(self) -> list[str]:
        """The lines of the margin; none beside what was only read."""
        if self.turn is None:
            return []
        advantage = [f"advantage {figure(self.advantage)}"] if self.advantage is not None else []
        return [f"turn {self.turn}", *advantage, *([f"weights: step {self.step}"] if self.step is not None else [])]


def seat_name(episode: Mapping[str, Any], seat: int) -> str:
    """A seat's display name; the tool seat is called `tool`."""
    names = episode["scenario"]["seats"]
    return str(names[seat]) if 0 <= seat < len(names) else "tool"


def roles(episode: Mapping[str, Any]) -> list[str]:
    """Each seat's role in words, as the game reported them at its end; empty without roles."""
    names = episode.get("roles") or []
    return [str(role).replace("_", " ") for role in names] if len(names) == len(episode["scenario"]["seats"]) else []


def briefs(episode: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each seat's first messages, computed by the game; empty if the scenario can no longer be played."""
    try:
        scenario = Scenario.from_dict(episode["scenario"])
        game = games.make(scenario)
    except (ParleyError, KeyError):
        return []
    openings = []
    for seat, name in enumerate(scenario.seats):
        messages = game.observe(seat).messages
        openings.append((name, "\n\n".join(message.text for message in messages)))
    return openings


def turns(record: Mapping[str, Any], course: Course | None) -> list[ShownTurn]:
    """Every turn in order, refused ones too; phases and channels come from `course`."""
    episode = record["episode"]
    seat_roles, phase = roles(episode), ""
    phases, channels = (course.phases, course.channels) if course else ({}, {})
    rewards, passed = record.get("turn_rewards") or [], record.get("passed") or []
    advantages = _turn_advantages(record)
    rows = []
    for number, turn in enumerate(episode["turns"]):
        move = turn.get("move") or {}
        before, phase = phase, phases.get(turn.get("move_index"), phase)
        rows.append(
            ShownTurn(
                number=number,
                seat=turn["seat"],
                name=seat_name(episode, turn["seat"]),
                role=seat_roles[turn["seat"]] if turn["seat"] < len(seat_roles) else "",
                phase=phase if phase != before else "",
                channel=channels.get(turn.get("move_index"), ""),
                text=move.get("text") or turn["reply"],
                private=turn.get("private") or "",
                strategy=turn.get("strategy") or "",
                action=_action(move),
                error=turn.get("error") or "",
                passed=passed[number] if number < len(passed) else turn["passed"],
                reward=rewards[number] if number < len(rewards) else None,
                advantage=advantages.get(number),
            )
        )
    return rows


def _action(move: Mapping[str, Any]) -> str:
    arguments = ", ".join(f"{name} {value}" for name, value in (move.get("args") or {}).items())
    name = str(move.get("action", ""))
    return f"{name}: {arguments}" if arguments else name


def _turn_advantages(record: Mapping[str, Any]) -> dict[int, float]:
    advantages: dict[int, float] = {}
    for credit in record.get("credit") or []:
        advantages |= {int(turn): value for turn, value in ((credit or {}).get("turn_advantages") or {}).items()}
    return advantages


def traces(record: Mapping[str, Any], run: Run) -> list[dict[str, Any]]:
    """Each trace as stretches of tokens, with its title.

    `prompt` is what was read before the first sampled token; None if nothing was read before it, or nothing sampled.
    """
    tokenizer = tokenizer_of(run)
    episode, credits_by_trace = record["episode"], record.get("credit") or []
    rows = []
    for number, trace in enumerate(episode["traces"]):
        credit = credits_by_trace[number] if number < len(credits_by_trace) and credits_by_trace[number] else {}
        branch = f", branch of trace {trace['parent'][0]} at {trace['parent'][1]}" if trace.get("parent") else ""
        if trace.get("prefix"):
            branch = f", probe after {trace['prefix'][1]} tokens of trace {trace['prefix'][0]}"
        title = f"{seat_name(episode, trace['seat'])} ({_policy(trace)}{branch})"
        cut = stretches(trace, credit, tokenizer)
        prompt = cut.pop(0) if len(cut) > 1 and cut[0].turn is None else None
        rows.append({"title": title, "prompt": prompt, "stretches": cut, "credited": bool(credit)})
    return rows


def _policy(trace: Mapping[str, Any]) -> str:
    """The name of the policy that sampled a trace; of a model in a folder, that of the folder."""
    policy = str(trace["policy"])
    return Path(policy).name if policy.startswith("/") else policy


def stretches(trace: Mapping[str, Any], credit: Mapping[str, Any], tokenizer: Any) -> list[Stretch]:
    """The trace's tokens, cut where the turn changes."""
    advantages = credit.get("advantages") or credit.get("reinforce")
    largest = max((abs(value) for value in advantages or []), default=0.0) or 1.0
    by_turn = credit.get("turn_advantages") or {}
    cut: list[Stretch] = []
    versions, step = dict(trace.get("versions") or ()), None
    for place, token in enumerate(trace["tokens"]):
        sampled, step = bool(trace["mask"][place]), versions.get(place, step)
        turn = trace["turn"][place] if sampled else None
        if not cut or cut[-1].turn != turn:
            cut.append(Stretch(turn, by_turn.get(str(turn)), step) if sampled else Stretch(None, None))
        advantage = advantages[place] if sampled and advantages and _allowed(trace, place) != 1 else None
        cut[-1].tokens.append(
            Token(
                text=_text(tokenizer, token),
                css="masked" if not sampled else tint(advantage, largest),
                facts=_facts(trace, credit, place, advantage) if sampled else f"read, not sampled · id {token}",
            )
        )
    return cut


def tint(advantage: float | None, largest: float) -> str:
    """The CSS class of an advantage relative to the largest one of its trace."""
    if advantage is None:
        return "plain"
    level = min(TINTS, round(abs(advantage) / largest * TINTS))
    return "even" if level == 0 else f"{'up' if advantage > 0 else 'down'}-{level}"


def _allowed(trace: Mapping[str, Any], place: int) -> int:
    """The number of tokens among which one was sampled; 0 where it was the whole vocabulary."""
    return len((trace.get("choices") or {}).get(str(place), ()))


def _facts(trace: Mapping[str, Any], credit: Mapping[str, Any], place: int, advantage: float | None) -> str:
    facts = [f"advantage {signed(advantage, 3)}"] if advantage is not None else []
    facts.append(f"log-prob {trace['logprobs'][place]:z.3f}")
    if allowed := _allowed(trace, place):
        facts.append("forced: the only token allowed" if allowed == 1 else f"one of {allowed} tokens allowed")
    for name, title in (("logprobs", "trainer"), ("reference", "reference"), ("entropy", "entropy")):
        if credit.get(name):
            facts.append(f"{title} {credit[name][place]:z.3f}")
    facts += [f"value ({head}) {values[place]:z.3f}" for head, values in (credit.get("values") or {}).items()]
    return " · ".join([*facts, f"id {trace['tokens'][place]}"])


def _text(tokenizer: Any, token: int) -> str:
    return str(tokenizer.decode([token], skip_special_tokens=False)) if tokenizer is not None else f"{token} "


def tokenizer_of(run: Run) -> Any:
    """The tokenizer of the run's model, or None if its file is neither on this machine nor in the storage."""
    candidates: Sequence[Checkpoint | None] = [
        run.start_checkpoint,
        Checkpoint.objects.filter(kind=Checkpoint.Kind.BASE, name=run.base).first(),
        run.checkpoints.order_by("-step").first(),
    ]
    for checkpoint in candidates:
        if checkpoint is None:
            continue
        folder = Path(checkpoint.path) if Path(checkpoint.path).is_absolute() else files.local(checkpoint.path)
        path = folder / "tokenizer.json" if folder else None
        if path is not None and path.is_file():
            return _load(str(path), path.stat().st_mtime)
        if folder is None:
            with suppress(FileNotFoundError):
                return _load_stored(f"{checkpoint.path}/tokenizer.json", checkpoint.sha256)
    return None


@functools.lru_cache(maxsize=8)
def _load(path: str, changed: float) -> Any:
    from tokenizers import Tokenizer

    return Tokenizer.from_file(path)


@functools.lru_cache(maxsize=8)
def _load_stored(name: str, sha256: str) -> Any:
    """The tokenizer of a checkpoint in a bucket. `sha256` is that of the checkpoint.

    Raises `FileNotFoundError` without a file, or while the bucket is away: the next reader asks again.
    """
    from tokenizers import Tokenizer

    content = files.read_file(name)
    if content is None:
        raise FileNotFoundError(name)
    return Tokenizer.from_buffer(content)
