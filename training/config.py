"""The configuration of a run: TOML or JSON in, a frozen `RunConfig` out. Needs no torch.

A wrong value raises `BadInput` with the file and the field's path, such as `run.toml: learn.lr`.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from training import bases, games, phases, players, rewards, run_checks, suites
from training.cluster.section import ClusterSection
from training.engines.adapters import lora_of
from training.engines.base import Sampling
from training.engines.choice import choose
from training.engines.remote.config import RemoteConfig
from training.errors import BadInput
from training.labels.info import read_info
from training.methods import REGISTRY, MethodConfig
from training.methods.omar import OmarConfig
from training.opponent_sections import MIRROR, PAST, PHASE, SPEAKER, LeagueSection, Opponent, of_learner
from training.phases import Phase
from training.reading import NO_FIELD, Record, Version
from training.reward_section import LabelReward, RewardSection
from training.run_sections import (
    SELF,
    CalibrationSection,
    DataSection,
    EngineSection,
    EvaluateSection,
    GameSection,
    LearnSection,
    MixtureEntry,
    ModelSection,
    RolloutSection,
    SamplingSection,
    SearchSection,
    SpeakerSection,
    StopSection,
    TeacherSection,
)
from training.sections import SftConfig
from training.store import loads

DEFAULT_METHOD = "omar"
CONFIGS = Path(__file__).parent / "configs"

if TYPE_CHECKING:
    AnyMethod = MethodConfig
else:

    def _method(value: Any) -> str | None:
        """Return which method a section configures; the default one where it does not say."""
        return value.get("name", DEFAULT_METHOD) if isinstance(value, dict) else getattr(value, "name", None)

    # The union of the registry's classes with the discriminator `name`; pydantic needs at least two for that.
    _CLASSES = tuple(Annotated[method, Tag(name)] for name, method in REGISTRY.items())
    AnyMethod = Annotated[reduce(or_, _CLASSES), Discriminator(_method)] if len(_CLASSES) > 1 else _CLASSES[0]


class RunConfig(Record):
    """Everything that determines a run. Sections that its kind does not use keep their defaults."""

    version: Version = Field(default=1, description="Version of this format.")
    kind: Literal["train", "sft", "eval", "suite"] = Field(default="train", description="What the run does.")
    name: str = Field(default="", max_length=200, description="A name for display.")
    seed: int = Field(default=0, ge=0, lt=2**63, description="Seed of all random numbers.")
    model: ModelSection = Field(default=ModelSection(), description="Which weights the run starts from.")
    engine: EngineSection = Field(default=EngineSection(), description="What samples the replies.")
    cluster: ClusterSection = Field(default=ClusterSection(), description="Processes and GPUs.")
    sampling: SamplingSection = Field(default=SamplingSection(), description="How replies are sampled.")
    speaker: SpeakerSection = Field(default=SpeakerSection(), description="Who speaks, where models only advise.")
    teacher: TeacherSection = Field(default=TeacherSection(), description="Whose strategies the learner learns.")
    search: SearchSection = Field(default=SearchSection(), description="What seats of qa_society search.")
    game: GameSection = Field(default=GameSection(), description="Which game is played.")
    data: DataSection = Field(default=DataSection(), description="Where the games start.")
    mixture: tuple[MixtureEntry, ...] = Field(
        default=(),
        max_length=100,
        description="Several games to train on at once, in place of game; empty = that game alone.",
    )
    opponents: tuple[Opponent, ...] = Field(
        default=(),
        max_length=100,
        description="Players of seats that the learner does not play: one entry is drawn per game; empty = mirror.",
    )
    phases: tuple[Phase, ...] = Field(
        default=(),
        max_length=100,
        description="Phases of training, one after the other, each with changes of its own; empty = none.",
    )
    league: LeagueSection = Field(default=LeagueSection(), description="Opponents drawn by the results against them.")
    rollout: RolloutSection = Field(default=RolloutSection(), description="How many games a step plays.")
    method: AnyMethod = Field(default=OmarConfig(), description="How outcomes become credit.")
    learn: LearnSection = Field(default=LearnSection(), description="Optimizer and loss.")
    sft: SftConfig = Field(default=SftConfig(), description="The cold start.")
    reward: RewardSection = Field(default=RewardSection(), description="Rewards and the quality filter.")
    judge: RemoteConfig | None = Field(default=None, description="The model that judges; empty = none.")
    evaluate: EvaluateSection = Field(default=EvaluateSection(), description="The head-to-head.")
    calibration: CalibrationSection = Field(
        default=CalibrationSection(), description="When a single agent of qa_society searches and answers."
    )
    suite: suites.SuiteSection = Field(default=suites.SuiteSection(), description="The evaluation suite.")
    stop: StopSection = Field(default=StopSection(), description="When the run ends early.")

    @classmethod
    def from_dict(cls, data: Any) -> Self:
        """Build from JSON data, which must be an object; raise `BadInput` naming the field that is wrong.

        A field of a method is named `method.FIELD`, however many methods there are: pydantic adds the method's name.
        """
        section = data.get("method") if isinstance(data, Mapping) else None
        name = section.get("name", DEFAULT_METHOD) if isinstance(section, Mapping) else DEFAULT_METHOD
        if isinstance(name, str) and name not in REGISTRY:
            known = ", ".join(map(repr, REGISTRY))
            REGISTRY.refuse(name, f"unknown method {name[:80]!r}; known: {known}", "method.name")
        try:
            return super().from_dict(data)
        except BadInput as error:
            tagged = f"method.{name}."
            where, why = error.where, error.why
            if where.startswith(tagged):
                where = f"method.{where.removeprefix(tagged)}"
            field = where.removeprefix("method.")
            if field != where and why.startswith(NO_FIELD):
                why = f"{name} has no such field; it has {', '.join(REGISTRY[name].model_fields)}"
            raise BadInput(why, where) from error

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        run_checks.check(self)
        return self

    @property
    def parts(self) -> tuple[MixtureEntry, ...]:
        """The entries of the mixture, or a single entry for the run's game."""
        return self.mixture or (MixtureEntry(game=self.game.name, path=self.data.path, settings=self.game.settings),)

    def past(self, step: int) -> tuple[int, ...]:
        """Return the saved steps whose weights training step `step`, or a later one in another phase, may read."""
        return phases.needed(self, step)

    def of_phase(self, place: int) -> RunConfig:
        """Return the configuration by which the phase at this place trains; without phases it is this one."""
        return phases.of_phase(self, place) if self.phases else self

    def entries(self) -> Iterator[tuple[str, Opponent]]:
        """Yield the opponents of the run and of its phases, each with its field."""
        yield from ((f"opponents.{place}", entry) for place, entry in enumerate(self.opponents))
        for number, phase in enumerate(self.phases):
            for place, entry in enumerate(phase.opponents or ()):
                yield f"phases.{number}.opponents.{place}", entry

    @property
    def models_beside(self) -> int:
        """How many engines play beside the learner: of past selves in memory, of phases, and of other models.

        Where checkpoints are adapters of a registered base, one engine plays the learner as it was.
        """
        sources = {source for _, source in self.sources()}
        models = {
            source
            for source in sources
            if not (of_learner(source) or source == SPEAKER or players.known(source) or "://" in source)
        }
        as_it_was = len({source for source in sources if of_learner(source)} - {MIRROR, PAST})
        as_it_was += self.rollout.past_loaded if PAST in sources else 0
        adapters = self.learn.lora is not None and bases.find(self.model.base) is not None
        return len(models) + (min(1, as_it_was) if adapters else as_it_was)

    @property
    def adapters_beside(self) -> tuple[int, int]:
        """How many adapters one of the `models_beside` serves, and their largest rank: (0, 0) if there are none.

        They are past selves in memory and phases of a run whose checkpoints are adapters, and folders on this machine
        with adapters of the same base.
        """
        sources = {source for _, source in self.sources()}
        ranks: list[int] = []
        if self.learn.lora is not None and bases.find(self.model.base) is not None:
            saved = sum(source.startswith(PHASE) for source in sources)
            saved += self.rollout.past_loaded if PAST in sources else 0
            ranks += [self.learn.lora.rank] * saved
        for source in sources:
            if bases.is_folder(source) and bases.is_adapter(Path(source)):
                lora = lora_of(Path(source))
                if lora is not None and bases.base_name(Path(source)) == self.model.base:
                    ranks.append(lora.rank)
        return len(ranks), max(ranks, default=0)

    @property
    def classifier_bases(self) -> dict[int, str]:
        """The model that the classifier of each of `reward.labels` reads, by place; "" if it is not on this machine."""
        bases_of: dict[int, str] = {}
        for place, entry in enumerate(self.reward.labels):
            if entry.classifier:
                bases_of[place] = ""
                with suppress(BadInput):
                    bases_of[place] = read_info(Path(entry.classifier)).base
        return bases_of

    def sources(self) -> Iterator[tuple[str, str]]:
        """Yield who may play beside the learner in the run and its phases, who speaks and who teaches, by field."""
        if self.speaker.source and not self.speaker.react:
            yield "speaker.source", self.speaker.source
        if self.teacher.source:
            yield "teacher.source", self.teacher.source
        for place, phase in enumerate(self.phases):
            if isinstance(source := phase.teacher.get("source"), str) and source:
                yield f"phases.{place}.teacher.source", source
        for where, entry in self.entries():
            yield from ((f"{where}.{field}", source) for field, source in entry.sources.items())

    @property
    def league_games(self) -> int:
        """About how many games the league's evaluations play: at most, but for rounding up to whole starts."""
        every = self.league.every
        if not every:
            return 0
        steps = range(0, self.learn.steps + 1, every)
        before = sum(min(step // self.learn.save_every, self.rollout.past_saved - 1) for step in steps)
        past = sum(opponent.source == PAST for opponent in self.opponents)
        named = sum(opponent.source not in (MIRROR, PAST) for opponent in self.opponents)
        pairs = past * (2 * before + len(steps)) + named * len(steps)  # those before it, in both roles, and itself
        return pairs * self.league.games

    @property
    def judged(self) -> bool:
        """Whether a judge's scores are the reward, of one game at least."""
        return any(rewards.source(self.reward, games.lookup(part.game)) == "judge" for part in self.parts)

    @property
    def head_to_head_sampling(self) -> Sampling:
        """How the models of a head-to-head sample: as in training, unless it has a temperature of its own."""
        return self.sampling.model_copy(update={"temperature": self.evaluate.temperature or self.sampling.temperature})

    @property
    def calibration_sampling(self) -> Sampling:
        """How the agents of a calibration sample: as in training, unless it has a temperature of its own."""
        warmth = self.calibration.temperature
        changed = {"temperature": self.sampling.temperature if warmth is None else warmth, "constrain": False}
        return self.sampling.model_copy(update=changed)

    @property
    def common_opponent(self) -> str:
        """The common opponent of both models in a head-to-head over a side."""
        measured = self.kind == "eval" and not self.evaluate.model
        return self.evaluate.common or (measured and self.evaluate.opponent) or self.model.base

    @property
    def reward_low(self) -> float:
        """The lower bound of one reward of a seat: at the end, on the way, for a reply's form or length, or the KL."""
        if self.learn.kl == "k1" and self.learn.kl_coef > 0:
            return -math.inf  # a penalty at every token, which has no bound
        longest = self.sampling.max_tokens
        return min(rewards.lowest(self.reward, games.lookup(part.game), part.settings, longest) for part in self.parts)


def load(path: Path, *, stored: bool = False) -> RunConfig:
    """Read a TOML or JSON configuration; raise `BadInput` naming the file and the field. See `parse` for `stored`."""
    try:
        text = path.read_text("utf-8")
        data = loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", str(path)) from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not valid {'JSON' if path.suffix == '.json' else 'TOML'}: {error}", str(path)) from error
    return parse(data, str(path), stored=stored)


def parse(data: dict[str, Any], where: str = "", *, stored: bool = False) -> RunConfig:
    """Return the configuration in `data`; raise `BadInput` naming `where` and the field.

    A configuration that is not `stored` in a run directory has game settings of the very types that they are.
    """
    try:
        config = RunConfig.from_dict(data)
        if not stored:
            run_checks.check_new(config)
        return config
    except BadInput as error:
        raise BadInput(error.why, ": ".join(part for part in (where, error.where) if part)) from error


def resolve(config: RunConfig, folder: Path) -> RunConfig:
    """Return the configuration with nothing left open: derived numbers filled in, paths absolute.

    `folder` is what relative paths start from. Raises `BadInput` for a file that is not there.
    """
    updated: dict[str, Any] = {
        name: getattr(config, name).model_copy(update=changes) for name, changes in _filled_in(config, folder).items()
    }
    updated["mixture"] = tuple(
        part.model_copy(update={"path": _file(part.path, folder, f"mixture.{place}.path")})
        for place, part in enumerate(config.mixture)
    )
    updated["opponents"] = _opponents(config.opponents, folder)
    updated["reward"] = config.reward.model_copy(
        update={"labels": tuple(_label(entry, folder) for entry in config.reward.labels)}
    )
    updated["phases"] = tuple(_phase(phase, folder) for phase in config.phases)
    return config.model_copy(update=updated)


def _filled_in(config: RunConfig, folder: Path) -> dict[str, dict[str, Any]]:
    """Return the fields of sections that `resolve` fills in, by section."""
    learn, evaluate, calibration = config.learn, config.evaluate, config.calibration
    return {
        "engine": {"name": choose(config.engine.name)},
        "learn": {"critic_lr": learn.critic_lr if learn.critic_lr is not None else 10 * learn.lr},
        "data": {"path": _file(config.data.path, folder, "data.path")},
        "evaluate": {
            "path": _file(evaluate.path, folder, "evaluate.path"),
            "model": _model(evaluate.model, folder),
            "opponent": _model(evaluate.opponent, folder),
            "common": _model(config.common_opponent, folder) if evaluate.side else evaluate.common,
            "temperature": config.head_to_head_sampling.temperature,
        },
        "calibration": {
            "base": _model(calibration.base, folder),
            "sets": tuple(
                each.model_copy(update={"path": _file(each.path, folder, f"calibration.sets.{place}.path")})
                for place, each in enumerate(calibration.sets)
            ),
        },
        "model": {"base": _model(config.model.base, folder)},
        "speaker": {"source": _model(config.speaker.source, folder)},
        "teacher": {"source": _model(config.teacher.source, folder)},
        "search": {"indexes": {corpus: _index(index, folder) for corpus, index in config.search.indexes.items()}},
        "suite": {"tasks": tuple(_task(task, place, folder) for place, task in enumerate(config.suite.tasks))},
    }


def _task(task: suites.SuiteTask, place: int, folder: Path) -> suites.SuiteTask:
    models = {name: _model(getattr(task, name), folder) for name in ("opponent", "partner", "measured")}
    return task.model_copy(update={"path": _file(task.path, folder, suites.field(place, "path")), **models})


def _phase(phase: Phase, folder: Path) -> Phase:
    changes: dict[str, Any] = {"opponents": _opponents(phase.opponents, folder)} if phase.opponents else {}
    if source := phase.teacher.get("source"):
        changes["teacher"] = {**phase.teacher, "source": _model(source, folder)}
    return phase.model_copy(update=changes)


def _index(index: str, folder: Path) -> str:
    """Return the folder of an index beside the configuration as absolute path, and any other name unchanged."""
    beside = folder / index
    return str(beside.absolute()) if bases.is_folder(beside) else index


def _file(path: str, folder: Path, field: str) -> str:
    if not path:
        return ""
    full = (folder / path).absolute()
    if not full.is_file():
        raise BadInput(f"no such file: {full}", field)
    return str(full)


def _opponents(entries: Sequence[Opponent], folder: Path) -> tuple[Opponent, ...]:
    def resolved(source: str) -> str:
        return source if of_learner(source) else _model(source, folder)

    return tuple(
        entry.model_copy(update={field: resolved(source) for field, source in entry.sources.items()})
        for entry in entries
    )


def _label(entry: LabelReward, folder: Path) -> LabelReward:
    """Return a label with the absolute path of its classifier, or of its codebook's file, beside the configuration."""
    changes = {
        name: str(beside.absolute())
        for name in ("classifier", "codebook")
        if (value := getattr(entry, name)) and (beside := folder / value).exists()
    }
    return entry.model_copy(update=changes)


def _model(base: str, folder: Path) -> str:
    """Return a known name unchanged; return any other, if it is a folder beside the configuration, as absolute path."""
    beside = folder / base
    is_name = base in ("", SPEAKER, SELF) or bases.find(base) is not None or players.known(base)
    return base if is_name or not bases.is_folder(beside) else str(beside.absolute())


def schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration, with a title, a meaning and bounds for every field.

    The section `method` has a discriminator, so that forms describe the fields of the method that it names.
    """
    made = RunConfig.model_json_schema()
    method = made["properties"]["method"]
    # Read off what was generated: classes of equal name are renamed there.
    references = [variant["$ref"] for variant in method.get("oneOf", [method])]
    fields = {reference: made["$defs"][reference.removeprefix("#/$defs/")]["properties"] for reference in references}
    mapping = {described["name"]["default"]: reference for reference, described in fields.items()}
    method["discriminator"] = {"propertyName": "name", "mapping": mapping}
    return made
