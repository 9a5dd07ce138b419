"""Which process runs on which GPU, and whether it fits: `plan` chooses what a configuration leaves open.

On one GPU everything shares it. On more, learner ranks come first, side by side, so that they are on as few nodes as
possible; engines take the other GPUs. The start values are one learner rank for every four GPUs, or as many as the
memory needs: tune them by who waits for whom. Raises `BadInput` with the field, and the arithmetic in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from training.cluster import host_memory, memory, splitting
from training.cluster.memory import GIB, MARGIN, Memory
from training.cluster.section import AUTO, LOCAL, MOST_PROCESSES, ClusterSection
from training.errors import BadInput
from training.sections import LoraConfig

if TYPE_CHECKING:
    from training.cluster.shapes import ModelShape
    from training.config import RunConfig

Gpu = tuple[int, int]
"""A node and the number of a GPU on it, both from 0."""
GPUS_PER_LEARNER = 4
"""GPUs for which `auto` takes one learner rank: a rule of thumb for long replies, which take longer to sample."""
MORE_GPUS = 64
"""Advice names at most so many further GPUs."""
LOWER = 'Lower cluster.engines or cluster.learners, or write "auto"'
SMALLEST_BATCH = 64
"""Least value of `learn.tokens_per_batch`."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where every process is. The driver is on node 0 and needs no GPU of its own.

    `learners` are the GPUs of the ranks, `engines` those of each engine, `spare` those that nothing uses. `shared`: the
    learner and the engine are on one GPU. `section` has the numbers that were chosen. `driver` and `store`
    are memory of machines, of the driver and of Ray's store, where processes are several.
    """

    section: ClusterSection
    learners: tuple[Gpu, ...]
    engines: tuple[tuple[Gpu, ...], ...]
    spare: tuple[Gpu, ...]
    shared: bool
    learner: Memory
    engine: Memory
    driver: Memory | None = None
    store: Memory | None = None

    @property
    def processes(self) -> Iterator[tuple[str, int, tuple[int, ...], Memory | None]]:
        """Every process: its name, node, GPUs, and the memory that it needs on each of them."""
        yield "driver", 0, (), None
        for number, (node, gpu) in enumerate(self.learners):
            yield f"learner {number}", node, (gpu,), self.learner
        for number, gpus in enumerate(self.engines):
            yield f"engine {number}", gpus[0][0], tuple(gpu for _, gpu in gpus), self.engine


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A process that needs more memory than its GPU has: its name, why, the field that `where` names, and `advice`,
    which lists what would fit.
    """

    process: str
    memory: Memory
    where: str
    advice: tuple[str, ...]

    def explained(self, gib: float) -> str:
        """Return the arithmetic and the advice in words, for GPUs of `gib` GiB."""
        needed = self.memory
        lines = "; ".join(f"{line.name} {line.bytes / GIB:.2f} GiB ({line.formula})" for line in needed.lines)
        fits = (
            f"It would fit with {', or with '.join(self.advice)}"
            if self.advice
            else "No setting that is tried here makes it fit"
        )
        return (
            f"{self.process} needs {needed.total / GIB:.1f} GiB, and of a GPU with {gib:g} GiB "
            f"{gib * (1 - MARGIN):.1f} are usable: {lines}. {fits}"
        )


class DoesNotFit(BadInput):
    """Some processes need more memory than their GPUs have: every `Shortfall`."""

    def __init__(self, gib: float, *shortfalls: Shortfall) -> None:
        first, *others = (each.explained(gib) for each in shortfalls)
        every = [first, *(f"{words[0].upper()}{words[1:]}" for words in others)]
        super().__init__(". ".join(every), shortfalls[0].where)
        self.shortfalls = shortfalls


def plan(config: RunConfig, shape: ModelShape, gpus: int, memory_gib: float, gpus_per_node: int = 8) -> Layout:
    """Return the layout of a training run on so many GPUs of `memory_gib` each. Raises `BadInput`, and `DoesNotFit`."""
    section = config.cluster
    _check_tensor_parallel(config, shape, min(gpus, gpus_per_node))
    learner_of = cache(partial(memory.learner, config, shape))
    engine = memory.engine(config, shape)
    if section.alone or gpus == 1:
        return _shared(config, shape, gpus, memory_gib, gpus_per_node)
    learners = _learners(section, learner_of, gpus, memory_gib)
    engines = _engines(section, learners, gpus, gpus_per_node)
    least = learner_of(learners)
    room = partial(_room, learner_of, memory_gib, gpus_per_node)
    shortfalls = []
    if not engine.fits(memory_gib):
        advice = changes_that_fit(config, ENGINE_CHANGES, lambda each: memory.engine(each, shape).fits(memory_gib))
        beside = partial(room, must_fit=least.fits(memory_gib))
        advice += _parallel(config, shape, memory_gib, gpus, gpus_per_node, beside)
        shortfalls.append(Shortfall("an engine", engine, "engine", tuple(advice)))
    if not least.fits(memory_gib):
        advice = [*_more_ranks(section, learner_of, learners, memory_gib, gpus, partial(room, must_fit=True))]
        advice += changes_that_fit(
            config, LEARNER_CHANGES, lambda each: memory.learner(each, shape, learners).fits(memory_gib)
        )
        shortfalls.append(Shortfall(_name(learners), least, "cluster.learners", tuple(advice)))
    if shortfalls:
        raise DoesNotFit(memory_gib, *shortfalls)
    every = [divmod(number, gpus_per_node) for number in range(gpus)]
    used = {*every[:learners], *(gpu for group in engines for gpu in group)}
    return Layout(
        _stated(section, learners, len(engines)),
        tuple(every[:learners]),
        tuple(engines),
        tuple(gpu for gpu in every if gpu not in used),
        shared=False,
        learner=least,
        engine=engine,
        driver=host_memory.driver(config, shape),
        store=host_memory.store(config, shape),
    )


def _stated(section: ClusterSection, learners: int, engines: int) -> ClusterSection:
    """Return the section with these numbers, of processes that each have GPUs: one and one would be one process, if it
    did not also say where they are.
    """
    chosen = section.model_copy(update={"learners": learners, "engines": engines})
    return chosen.model_copy(update={"address": LOCAL}) if chosen.alone else chosen


def _name(learners: int) -> str:
    return "the learner" if learners == 1 else f"each of {learners} learner ranks"


def _count(number: int, noun: str) -> str:
    """Return so many of something; of what is chosen there is at least one."""
    return f"at least 1 {noun}" if number == AUTO else f"{number} {noun}" + ("" if number == 1 else "s")


def _check_tensor_parallel(config: RunConfig, shape: ModelShape, on_node: int) -> None:
    splitting.check(config, shape)
    parts = config.cluster.tensor_parallel
    if parts > on_node:
        why = f"{parts} GPUs are more than the {on_node} of a node, on which an engine lies"
        raise BadInput(why, splitting.FIELD)


def _shared(config: RunConfig, shape: ModelShape, gpus: int, gib: float, gpus_per_node: int) -> Layout:
    """Return the layout in which one GPU has everything."""
    section = config.cluster
    for name in ("learners", "engines"):
        if getattr(section, name) > 1:
            why = f'{getattr(section, name)} are more than there are GPUs: 1. Set cluster.{name} = 1 or "auto"'
            raise BadInput(why, f"cluster.{name}")
    _check_shared(section, gpus)
    learner, engine = memory.learner(config, shape, 1), memory.engine(config, shape)
    together = memory.both(learner, engine)
    if not together.fits(gib):

        def fits(each: RunConfig) -> bool:
            return memory.both(memory.learner(each, shape, 1), memory.engine(each, shape)).fits(gib)

        advice = changes_that_fit(config, LEARNER_CHANGES + ENGINE_CHANGES, fits)
        if learner.fits(gib) and engine.fits(gib):
            one_each = "2 GPUs, one for the learner and one for the engine"
            advice.insert(0, f'cluster.address = "{LOCAL}" on at least 2 GPUs' if section.alone else one_each)
        raise DoesNotFit(gib, Shortfall("learner and engine on one GPU", together, "cluster", tuple(advice)))
    spare = tuple(divmod(number, gpus_per_node) for number in range(1, gpus))
    chosen = section.model_copy(update={"learners": 1, "engines": 1})
    return Layout(chosen, ((0, 0),), (((0, 0),),), spare, shared=True, learner=learner, engine=engine)


def _check_shared(section: ClusterSection, gpus: int) -> None:
    """Raise `BadInput` for what one process cannot do, which has the only GPU for itself."""
    if gpus == 1 and section.lag:
        why = "on one GPU sampling and learning alternate in one process: set cluster.lag = 0, or use at least 2 GPUs"
        raise BadInput(why, "cluster.lag")
    if gpus == 1 and section.address:
        why = "on one GPU everything is in one process: leave cluster.address out, or use at least 2 GPUs"
        raise BadInput(why, "cluster.address")


def _learners(section: ClusterSection, learner_of: Callable[[int], Memory], gpus: int, gib: float) -> int:
    """Return the number of learner ranks, as stated or chosen; chosen ranks leave the engines their GPUs."""
    wanted = max(section.engines, 1) * section.tensor_parallel
    stated = section.learners
    if stated + wanted > gpus:
        parts = f" of {section.tensor_parallel} GPUs each" if section.tensor_parallel > 1 else ""
        ranks, engines = _count(stated, "learner rank"), _count(section.engines, "engine")
        where = "cluster.learners" if stated > gpus else "cluster.engines"
        raise BadInput(f"{ranks} and {engines}{parts} are more than there are GPUs: {gpus}. {LOWER}", where)
    if stated != AUTO:
        return stated
    most = min(gpus - wanted, MOST_PROCESSES)
    if most < 1:
        engines = _count(section.engines, "engine")
        why = f"{engines} and at least 1 learner rank are more than there are GPUs: {gpus}. {LOWER}"
        raise BadInput(why, "cluster.engines")
    least = next((ranks for ranks in range(1, most + 1) if learner_of(ranks).fits(gib)), most)
    usual = min(max(least, gpus // GPUS_PER_LEARNER, 1), most)
    return usual if learner_of(usual).fits(gib) else least


def _engines(section: ClusterSection, learners: int, gpus: int, gpus_per_node: int) -> list[tuple[Gpu, ...]]:
    """Return the GPUs of each engine; raise `BadInput` if there are too few."""
    groups = _groups(learners, section.tensor_parallel, gpus, gpus_per_node)
    wanted = section.engines
    if len(groups) < max(wanted, 1):
        raise BadInput(
            f"there is room for {len(groups)} of {max(wanted, 1)} engines with {section.tensor_parallel} GPUs on one "
            f"node each, beside {learners} learner ranks on {gpus} GPUs. "
            "Lower cluster.engines, cluster.learners or cluster.tensor_parallel",
            "cluster.engines",
        )
    return groups[: wanted or MOST_PROCESSES]


def _groups(learners: int, parts: int, gpus: int, gpus_per_node: int) -> list[tuple[Gpu, ...]]:
    """Return what the learners leave of each node, in groups of so many GPUs that lie on one node."""
    groups: list[tuple[Gpu, ...]] = []
    for first in range(0, gpus, gpus_per_node):
        free = range(max(first, learners), min(first + gpus_per_node, gpus))
        on_node = [divmod(number, gpus_per_node) for number in free]
        groups += [tuple(on_node[place : place + parts]) for place in range(0, len(free) - parts + 1, parts)]
    return groups


Change = tuple[str, Callable[["RunConfig"], "RunConfig | None"]]
"""Advice in words with {} for the value, and the configuration that follows it; None if it is followed already."""


def _changed(config: RunConfig, section: str, **values: Any) -> RunConfig | None:
    before = getattr(config, section)
    after = before.model_copy(update=values)
    return None if after == before else config.model_copy(update={section: after})


def _lora(config: RunConfig) -> RunConfig | None:
    if config.learn.lora is not None:
        return _changed(config, "learn", dtype="bfloat16")
    return _changed(config, "learn", lora=LoraConfig(), dtype="bfloat16")


LEARNER_CHANGES: tuple[Change, ...] = (
    ("learn.recompute = true", lambda config: _changed(config, "learn", recompute=True)),
    ("learn.autocast = true", lambda config: _changed(config, "learn", autocast=True)),
    ('LoRA adapters on weights with learn.dtype = "bfloat16"', _lora),
    ("learn.offload_activations = true", lambda config: _changed(config, "learn", offload_activations=True)),
)
ENGINE_CHANGES: tuple[Change, ...] = (
    ('engine.dtype = "bfloat16"', lambda config: _changed(config, "engine", dtype="bfloat16")),
    (
        "engine.max_running = 16",
        lambda config: _changed(config, "engine", max_running=min(16, config.engine.max_running)),
    ),
    ("engine.cache_gib = 1", lambda config: _changed(config, "engine", cache_gib=min(1.0, config.engine.cache_gib))),
)


def changes_that_fit(config: RunConfig, changes: tuple[Change, ...], fits: Callable[[RunConfig], bool]) -> list[str]:
    """Return which changes make it fit: each by itself, or, where none does, with the fewest others."""
    options: dict[str, RunConfig] = {}
    for words, change in changes:
        if (changed := change(config)) is not None:
            options[words] = changed
    smaller = _smaller_batch(config, fits) if changes != ENGINE_CHANGES else ""
    for count in range(1, len(options) + 1):
        sufficient = []
        for names in combinations(options, count):
            together: RunConfig | None = config
            for words, change in changes:
                if words in names and together is not None:
                    together = change(together)
            if together is not None and fits(together):
                sufficient.append(" and ".join(names))
        if sufficient or smaller:
            return [*sufficient, *([smaller] if smaller else [])]
    return [smaller] if smaller else []


def _smaller_batch(config: RunConfig, fits: Callable[[RunConfig], bool]) -> str:
    """Return the largest power of two that fits as `learn.tokens_per_batch`; empty if none does."""
    tokens = 2 ** (config.learn.tokens_per_batch - 1).bit_length() // 2
    while tokens >= SMALLEST_BATCH:
        changed = _changed(config, "learn", tokens_per_batch=tokens)
        if changed is not None and fits(changed):
            return f"learn.tokens_per_batch = {tokens}"
        tokens //= 2
    return ""


Room = Callable[[ClusterSection, int], int]
"""For how many engines there is room beside the ranks of a section, on so many GPUs."""


def _room(
    learner_of: Callable[[int], Memory],
    gib: float,
    gpus_per_node: int,
    section: ClusterSection,
    gpus: int,
    *,
    must_fit: bool,
) -> int:
    """Return the number of engines, as `Room`; if ranks `must_fit`, those that do not leave room for none."""
    try:
        ranks = _learners(section, learner_of, gpus, gib)
    except BadInput:
        return 0
    if must_fit and not learner_of(ranks).fits(gib):
        return 0
    return len(_groups(ranks, section.tensor_parallel, gpus, gpus_per_node))


def _more_ranks(
    section: ClusterSection, learner_of: Callable[[int], Memory], ranks: int, gib: float, gpus: int, room: Room
) -> Iterator[str]:
    """Yield the least number of further ranks with which a rank fits, and what else must change for them."""
    for more in range(ranks + 1, MOST_PROCESSES + 1):
        if learner_of(more).fits(gib):
            changed = section.model_copy(update={"learners": more})
            yield from _with_room(f"cluster.learners = {more}", changed, gpus, room)
            return


def _parallel(
    config: RunConfig, shape: ModelShape, gib: float, gpus: int, gpus_per_node: int, room: Room
) -> Iterator[str]:
    """Yield the least `tensor_parallel` with which an engine fits, and what else must change for it."""
    for parts in range(config.cluster.tensor_parallel + 1, gpus_per_node + 1):
        changed = _changed(config, "cluster", tensor_parallel=parts)
        if changed is None or not _splits(changed, shape) or not memory.engine(changed, shape).fits(gib):
            continue
        if words := [*_with_room(f"cluster.tensor_parallel = {parts}", changed.cluster, gpus, room)]:
            yield from words
            return


def _splits(config: RunConfig, shape: ModelShape) -> bool:
    """Return whether its engine splits all its models into so many parts."""
    try:
        splitting.check(config, shape)
    except BadInput:
        return False
    return True


def _with_room(words: str, section: ClusterSection, gpus: int, room: Room) -> Iterator[str]:
    """Yield advice with the number of engines, or else of GPUs, for which there is room; nothing if none is found."""
    engines, parts = max(section.engines, 1), section.tensor_parallel
    if room(section, gpus) >= engines:
        yield words
        return
    for fewer in range(engines - 1, 0, -1):
        if room(section.model_copy(update={"engines": fewer}), gpus) >= fewer:
            yield f"{words} and cluster.engines = {fewer}"
            return
    least = max(gpus + 1, max(section.learners, 1) + engines * parts)
    enough = next((count for count in range(least, least + MORE_GPUS) if room(section, count) >= engines), None)
    if enough is not None:
        yield f"{words} on at least {enough} GPUs"


def as_dict(layout: Layout) -> Mapping[str, Any]:
    """Return the layout as JSON data: the section, every process with its place, memory line by line, spare GPUs."""
    return {
        "cluster": layout.section.to_dict(),
        "shared": layout.shared,
        "processes": [
            {"name": name, "node": node, "gpus": list(gpus), "bytes": 0 if needed is None else needed.total}
            for name, node, gpus, needed in layout.processes
        ],
        "spare": [{"node": node, "gpu": gpu} for node, gpu in layout.spare],
        "memory": {name: lines(each) for name, each in _memory(layout).items()},
    }


def _memory(layout: Layout) -> Mapping[str, Memory]:
    every = {"learner": layout.learner, "engine": layout.engine, "driver": layout.driver, "store": layout.store}
    return {name: needed for name, needed in every.items() if needed is not None}


def lines(needed: Memory) -> list[dict[str, Any]]:
    """Return the lines of a process's memory as JSON data."""
    return [
        {"name": line.name, "bytes": line.bytes, "when": line.when, "formula": line.formula} for line in needed.lines
    ]
