"""Phases of a training run: each trains for some steps by the run's configuration with changes of its own.

Steps are numbered over the whole run; `place` is the index of a phase. Raises `BadInput` with the field that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from training.errors import BadInput
from training.opponent_sections import PAST, PHASE, START, Opponent, saved_steps
from training.reading import Record
from training.run_sections import TeacherSection
from training.sections import MOST_STEPS

if TYPE_CHECKING:
    from training.config import RunConfig

LEARN = (
    *("lr", "warmup", "schedule", "anneal", "epochs", "tokens_per_update", "trajectories_per_update"),
    *("critic_lr", "critic_warmup", "kl", "kl_coef", "ent_coef"),
)
"""The fields of the section `learn` that a phase may change."""
ROLLOUT = ("scenarios", "games", "random_moves")
"""The fields of the section `rollout` that a phase may change."""
TEACHER = tuple(TeacherSection.model_fields)
"""The fields of the section `teacher` that a phase may change: all of them."""
S = TypeVar("S", bound=Record)


class Phase(Record):
    """One phase of training. What it does not change is as in the run's sections, whatever earlier phases changed."""

    name: str = Field(
        min_length=1,
        max_length=60,
        pattern=r"^[A-Za-z0-9_.+-]+$",
        description="Its name. Later phases refer to the learner at its end as phase NAME.",
    )
    steps: int = Field(ge=1, le=MOST_STEPS, description="Its training steps; all phases add up to learn.steps.")
    opponents: tuple[Opponent, ...] | None = Field(
        default=None,
        max_length=100,
        description="Opponents in place of the run's; an empty list = the learner at every seat.",
    )
    method: dict[str, Any] = Field(default_factory=dict, description="Fields of the run's method that change.")
    learn: dict[str, Any] = Field(
        default_factory=dict, description=f"Fields of the section learn that change: {', '.join(LEARN)}."
    )
    rollout: dict[str, Any] = Field(
        default_factory=dict, description=f"Fields of the section rollout that change: {', '.join(ROLLOUT)}."
    )
    teacher: dict[str, Any] = Field(
        default_factory=dict, description=f"Fields of the section teacher that change: {', '.join(TEACHER)}."
    )
    begin: str = Field(
        default="",
        max_length=500,
        description="The learner from which the phase continues, with its optimizer and value heads: phase NAME. "
        "Empty = the learner at the end of the phase before.",
    )
    reference: str = Field(
        default=START,
        max_length=500,
        description="The model from which the KL divergence is measured: start = the starting model, or phase NAME.",
    )

    def changes(self, field: str) -> bool:
        """Whether a field of the run, such as `learn.lr`, is the phase's own."""
        section, _, name = field.partition(".")
        if section == "opponents":
            return self.opponents is not None
        sections = {"learn": self.learn, "method": self.method, "rollout": self.rollout, "teacher": self.teacher}
        return name in sections.get(section, ())


def ends(phases: Sequence[Phase]) -> list[int]:
    """Return the last training step of each phase."""
    return list(accumulate(phase.steps for phase in phases))


def place_at(phases: Sequence[Phase], step: int) -> int:
    """Return the place of the phase to which training step `step` (from 1) belongs; steps after the end to the last.

    Without phases it is 0.
    """
    return next((place for place, end in enumerate(ends(phases)) if step <= end), max(0, len(phases) - 1))


def span(phases: Sequence[Phase], place: int, steps: int) -> tuple[int, int]:
    """Return the training steps after which the phase at this place begins and ends; without phases 0 and `steps`."""
    edges = [0, *ends(phases)] if phases else [0, steps]
    return edges[place], edges[place + 1]


def end_of(phases: Sequence[Phase], source: str) -> int:
    """Return the training step after which the learner is the one that `phase NAME` or `start` names."""
    if source == START:
        return 0
    named = dict(zip((PHASE + phase.name for phase in phases), ends(phases), strict=True))
    if source not in named:
        raise BadInput(_unknown(phases, source), source)
    return named[source]


def weights_after(phases: Sequence[Phase], step: int) -> int:
    """Return the training step after which the learner was as it is when training step `step` + 1 begins.

    It is `step`, unless a phase begins there that continues from the end of an earlier one.
    """
    begin = phases[place_at(phases, step + 1)].begin if step in ends(phases)[:-1] else ""
    return end_of(phases, begin) if begin else step


def opponents(config: RunConfig, place: int) -> tuple[Opponent, ...]:
    """Return the opponents of a phase."""
    changed = config.phases[place].opponents
    return config.opponents if changed is None else changed


def of_phase(config: RunConfig, place: int) -> RunConfig:
    """Return the configuration by which a phase trains: the run's with its changes, and `learn.steps` its own."""
    phase, where = config.phases[place], f"phases.{place}"
    changed = (("learn", phase.learn, LEARN), ("rollout", phase.rollout, ROLLOUT), ("teacher", phase.teacher, TEACHER))
    for section, changes, may in changed:
        if unknown := next((name for name in changes if name not in may), None):
            why = f"a phase cannot change {unknown[:80]!r} of {section}; only {', '.join(may)}"
            raise BadInput(why, f"{where}.{section}")
    if phase.method.get("name", config.method.name) != config.method.name:
        raise BadInput("a phase changes fields of the run's method, which stays the same", f"{where}.method.name")
    known = type(config.method).model_fields
    if unknown := next((name for name in phase.method if name not in known), None):
        why = f"{config.method.name} has no such field; it has {', '.join(known)}"
        raise BadInput(why, f"{where}.method.{unknown[:80]}")
    learn = _changed(config.learn, phase.learn, f"{where}.learn").model_copy(update={"steps": phase.steps})
    method = _changed(config.method, phase.method, f"{where}.method")
    rollout = _changed(config.rollout, phase.rollout, f"{where}.rollout")
    teacher = _changed(config.teacher, phase.teacher, f"{where}.teacher")
    sections = {"learn": learn, "method": method, "rollout": rollout, "teacher": teacher}
    return config.model_copy(update={**sections, "opponents": opponents(config, place), "phases": ()})


def starts_before(config: RunConfig, step: int) -> int:
    """Return how many starts the training steps before `step` play; phases may play more or fewer in a step."""
    count, first = 0, 1
    for phase, end in zip(config.phases, ends(config.phases), strict=True):
        rollout = config.rollout.scenarios if "scenarios" not in phase.rollout else int(phase.rollout["scenarios"])
        count += rollout * max(0, min(step - 1, end) - first + 1)
        first = end + 1
    return count + config.rollout.scenarios * max(0, step - first)


def _changed(section: S, changes: Mapping[str, Any], where: str) -> S:
    try:
        return type(section).from_dict({**section.to_dict(), **changes}) if changes else section
    except BadInput as error:
        raise BadInput(error.why, f"{where}.{error.where}") from error


def check(config: RunConfig) -> None:
    """Raise `BadInput` for phases that do not add up or that name what there is not; values are checked elsewhere."""
    phases = config.phases
    total, names = sum(phase.steps for phase in phases), [phase.name for phase in phases]
    if phases and total != config.learn.steps:
        raise BadInput(f"the phases add up to {total} steps: set it to {total}, or change theirs", "learn.steps")
    for place, phase in enumerate(phases):
        if phase.name in names[:place]:
            raise BadInput(f"another phase is called {phase.name!r}", f"phases.{place}.name")
        if phase.reference != START and not phase.reference.startswith(PHASE):
            raise BadInput("expected start, or `phase NAME` of an earlier phase", f"phases.{place}.reference")
        if phase.begin and not phase.begin.startswith(PHASE):
            raise BadInput("expected nothing, or `phase NAME` of an earlier phase", f"phases.{place}.begin")
        for where, source in _named(config, place):
            if source not in [PHASE + name for name in names[:place]]:
                raise BadInput(_unknown(phases, source, place), where)
    if not phases:
        for where, source in _of_opponents(config.opponents, "opponents"):
            raise BadInput(_unknown(phases, source), where)


def _named(config: RunConfig, place: int) -> Iterator[tuple[str, str]]:
    """Yield each field of a phase that names a phase, with what it says."""
    phase = config.phases[place]
    where = "opponents" if phase.opponents is None else f"phases.{place}.opponents"
    yield from _of_opponents(opponents(config, place), where)
    if phase.begin:
        yield f"phases.{place}.begin", phase.begin
    if phase.reference != START:
        yield f"phases.{place}.reference", phase.reference


def _of_opponents(entries: Sequence[Opponent], where: str) -> Iterator[tuple[str, str]]:
    for number, entry in enumerate(entries):
        for field, source in entry.sources.items():
            if source.startswith(PHASE):
                yield f"{where}.{number}.{field}", source


def _unknown(phases: Sequence[Phase], source: str, place: int | None = None) -> str:
    """Return why a phase cannot be named, by the phase at `place` where it is one."""
    name = source.removeprefix(PHASE)
    names = [phase.name for phase in phases]
    if name in names and place is not None:
        return f"phase {names[place]!r} can name only phases before it, and {name!r} is not"
    known = f"there are {', '.join(names)}" if names else "this run has no phases"
    return f"no phase is called {name[:80]!r}; {known}"


def needed(config: RunConfig, step: int) -> tuple[int, ...]:
    """Return the steps whose weights training step `step` or a later one may read, of those saved before it."""
    places = range(place_at(config.phases, step), len(config.phases)) if config.phases else ()
    entries = [entry for place in places for entry in opponents(config, place)] if places else list(config.opponents)
    past = any(PAST in entry.sources.values() for entry in entries)
    every, newest = config.learn.save_every, config.rollout.past_saved
    draws = range(max(1, step - config.cluster.lag), step + 1) if past else ()  # with a lag, later steps draw these
    saved = {each for before in draws for each in saved_steps(before, every, newest)}
    named = {source for place in places for _, source in _named(config, place)}
    return tuple(sorted({*saved, *(end for end in (end_of(config.phases, each) for each in named) if end < step)}))
