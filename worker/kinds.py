"""Hooks of each kind of run: before its process starts, on a new status, and after it has ended.

The run directory is all that the process is given: its configuration with every input as a local path. A kind whose
input is missing raises `BadInput`, which fails the run with that message.
"""

import functools
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from django.conf import settings

from training import bases, players, samples
from training import config as configs
from training.config import RunConfig
from training.engines.remote.addresses import check_remote
from training.engines.remote.config import remote_config, secret_from_environment
from training.errors import BadInput
from training.opponent_sections import SPEAKER, of_learner
from training.run_sections import SELF
from training.rundir import RunDir
from training.store import looks_complete, write_json
from training.suites import BEST_RESPONSE, UNTRAINED, SuiteSection, with_starts
from training.suites import field as field_of
from webapp.core import files
from webapp.corpora.naming import local_index
from webapp.judgments.models import Classifier
from webapp.runs.models import Checkpoint, Run
from webapp.runs.services import check_data
from webapp.scenarios.models import DatasetVersion
from webapp.scenarios.services import check_open, lines_of


@dataclass(frozen=True)
class Launch:
    """How to start a process: command, secrets by name and further environment."""

    command: list[str]
    secrets: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)


class Kind(Protocol):
    """The supervisor's interface to one kind of run."""

    def prepare(self, run: Run, folder: RunDir, attempt: int) -> Launch:
        """Put configuration and inputs into the run directory; returns how to start the process."""

    def on_status(self, run: Run, status: Mapping[str, Any]) -> None:
        """Handle a new status of the process."""

    def on_end(self, run: Run, error: str) -> None:
        """Handle the end of the process; `error` is empty if it was asked to stop."""


@functools.cache
def code_version() -> str:
    """The commit of the code that runs, with a plus sign if it was changed; empty outside a checkout or without git."""
    if shutil.which("git") is None:  # as in the images
        return ""
    command = ["git", "-C", str(settings.BASE_DIR), "describe", "--always", "--abbrev=12", "--dirty=+"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip()[:80]


def put_dataset(version: DatasetVersion, folder: RunDir) -> Path:
    """Write a dataset version into the run's inputs, named by its hash; a complete file is kept.

    Raises `BadInput` for a closed version.
    """
    check_open(version)
    path = folder.inputs / f"{version.sha256}.jsonl"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".part")
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(line.dumps() + "\n" for line in lines_of(version))
        temporary.replace(path)
    return path


def put_checkpoint(checkpoint: Checkpoint, folder: RunDir) -> Path | str:
    """A local folder with a checkpoint's files, or a registered model's name; raises `BadInput` if they are missing."""
    if checkpoint.kind == Checkpoint.Kind.BASE and checkpoint.name in bases.REGISTRY:
        return checkpoint.name
    if Path(checkpoint.path).is_absolute():
        path = Path(checkpoint.path)
    else:
        path = files.fetch_folder(checkpoint.path, folder.inputs / checkpoint.name, without=bases.STATE)
    if not path.is_dir():
        raise BadInput("its files are gone", checkpoint.name)
    return path


def put_opponent(source: str, where: str, folder: RunDir) -> Path | str:
    """The folder of an opponent that is a checkpoint, others as they are; raises `BadInput` for a deleted one."""
    if of_learner(source) or source == SPEAKER or players.known(source) or source in bases.REGISTRY or "://" in source:
        return source
    checkpoint = Checkpoint.objects.filter(name=source).first()
    if checkpoint is None:
        raise BadInput(f"this run plays with the checkpoint {source}, which has been deleted", where)
    return put_checkpoint(checkpoint, folder)


def put_opponents(entries: Iterable[Mapping[str, Any]], where: str, folder: RunDir) -> list[dict[str, Any]]:
    """The opponents of a run or a phase, with checkpoints as their folders, those of partners and allies too."""

    def put(entry: Mapping[str, Any], place: int) -> dict[str, Any]:
        named = {field: entry[field] for field in ("source", "partner", "ally") if entry.get(field)}
        return {field: str(put_opponent(source, f"{where}.{place}.{field}", folder)) for field, source in named.items()}

    return [{**entry, **put(entry, place)} for place, entry in enumerate(entries)]


def put_phase(phase: Mapping[str, Any], where: str, folder: RunDir) -> Mapping[str, Any]:
    """A phase with the checkpoints that play in it as their folders."""
    changes: dict[str, Any] = {}
    if phase.get("opponents"):
        changes["opponents"] = put_opponents(phase["opponents"], f"{where}.opponents", folder)
    if source := phase.get("teacher", {}).get("source"):
        changes["teacher"] = {
            **phase["teacher"],
            "source": str(put_opponent(source, f"{where}.teacher.source", folder)),
        }
    return {**phase, **changes}


def put_pool(run: Run, folder: RunDir) -> dict[str, Any]:
    """The sections of its configuration that name checkpoints and corpora, with their folders and indexes instead."""
    config = run.config
    phases = [put_phase(phase, f"phases.{place}", folder) for place, phase in enumerate(config.get("phases", ()))]
    pool: dict[str, Any] = {"opponents": put_opponents(config.get("opponents", ()), "opponents", folder)}
    pool |= {"phases": phases}
    if (speaker := config.get("speaker", {})).get("source") not in (None, "", SELF):
        pool["speaker"] = {**speaker, "source": str(put_opponent(speaker["source"], "speaker.source", folder))}
    if (teacher := config.get("teacher", {})).get("source"):
        pool["teacher"] = {**teacher, "source": str(put_opponent(teacher["source"], "teacher.source", folder))}
    if (reward := config.get("reward", {})).get("labels"):
        pool["reward"] = put_labels(reward, folder)
    if indexes := config.get("search", {}).get("indexes"):
        pool["search"] = {**config["search"], "indexes": put_indexes(indexes, run)}
    return pool | {"suite": put_tasks(config["suite"], folder)} if config.get("kind") == "suite" else pool


def put_tasks(suite: Mapping[str, Any], folder: RunDir) -> dict[str, Any]:
    """The section `suite` with the opponents and partners of its tasks that are checkpoints as their folders."""

    def put(task: Mapping[str, Any], place: int) -> dict[str, str]:
        named = {
            field: task[field]
            for field in ("opponent", "partner", "measured")
            if task.get(field) not in (None, "", BEST_RESPONSE, UNTRAINED)
        }
        return {field: str(put_opponent(source, field_of(place, field), folder)) for field, source in named.items()}

    tasks = [{**task, **put(task, place)} for place, task in enumerate(suite["tasks"])]
    return {**suite, "tasks": tasks}


def put_labels(reward: Mapping[str, Any], folder: RunDir) -> dict[str, Any]:
    """The section `reward` with a copy of each classifier that it names as a folder of the run's inputs.

    Raises `BadInput` for a classifier that has been deleted since.
    """

    def put(name: str, place: int) -> str:
        target = folder.inputs / "classifiers" / name
        if not looks_complete(target):
            classifier = Classifier.objects.ready().filter(name=name).first()
            if classifier is None:
                why = f"this run is rewarded by the classifier {name}, which has been deleted"
                raise BadInput(why, f"reward.labels.{place}.classifier")
            stored = files.fetch_folder(classifier.folder, target)
            if stored != target:
                part = target.with_name(f"{name}.part")
                shutil.rmtree(part, ignore_errors=True)
                shutil.copytree(stored, part)
                part.replace(target)
        return str(target)

    labels = [
        {**entry, "classifier": put(entry["classifier"], place)} if entry.get("classifier") else entry
        for place, entry in enumerate(reward["labels"])
    ]
    return {**reward, "labels": labels}


def put_indexes(indexes: Mapping[str, str], run: Run) -> dict[str, str]:
    """The indexes of a run by the tools that search them, which are on this machine afterwards.

    Raises `BadInput` for one that is not there any more.
    """
    local, hashes = {}, dict(run.searched.values_list("name", "sha256"))
    for tool, text in indexes.items():
        try:
            local[tool] = local_index(text, hashes)
        except BadInput as error:
            raise BadInput(error.why, f"search.indexes.{tool}") from error
    return local


def put_calibration(section: Mapping[str, Any], folder: RunDir) -> dict[str, Any]:
    """The section `calibration` with its datasets as files and a base model that is a checkpoint as its folder.

    Raises `BadInput` for one that has been deleted.
    """

    def put(each: Mapping[str, Any], place: int) -> str:
        if not each["path"]:
            return ""
        version = DatasetVersion.objects.named(each["path"])
        if version is None:
            why = f"this run is measured on the dataset {each['path']}, which has been deleted"
            raise BadInput(why, f"calibration.sets.{place}.path")
        return str(put_dataset(version, folder))

    sets = [{**each, "path": put(each, place)} for place, each in enumerate(section["sets"])]
    base = str(put_opponent(section["base"], "calibration.base", folder)) if section["base"] else ""
    return {**section, "sets": sets, "base": base}


def filled_in(run: Run, folder: RunDir) -> dict[str, Any]:
    """The run's configuration with dataset and checkpoints as local paths."""
    config = {**run.config}

    def put(section: str, **values: Any) -> None:
        config[section] = {**config.get(section, {}), **values}

    config |= put_pool(run, folder)
    if run.kind == Run.Kind.SUITE:
        config["suite"] = with_starts(SuiteSection.from_dict(config["suite"]), folder.inputs).to_dict()
    else:
        version = run.dataset_version
        dataset = put_dataset(version, folder) if version else None
        put("data", path=str(dataset or samples.write(config["game"]["name"], folder.inputs)))
        config["mixture"] = [
            {**part, "path": str(dataset or samples.write(part["game"], folder.inputs))}
            for part in config.get("mixture", ())
        ]
    if "calibration" in config:  # not in runs of earlier releases
        config["calibration"] = put_calibration(config["calibration"], folder)
    if run.start_checkpoint is not None:
        put("model", base=str(put_checkpoint(run.start_checkpoint, folder)))
    if run.opponent_checkpoint is not None:
        put("evaluate", opponent=str(put_checkpoint(run.opponent_checkpoint, folder)))
    return config


class Training:
    """Training, cold start, head-to-head and suite: the training command line, which resumes where the run stopped."""

    def prepare(self, run: Run, folder: RunDir, attempt: int) -> Launch:
        """Check and write the configuration once; fetch the required files of checkpoints from other nodes."""
        check_data(run)  # they may have been closed since an earlier attempt
        put_pool(run, folder)  # where the configuration is written already: one may have been deleted since
        begun = run.attempts.filter(number__lt=attempt).exists()
        if not (begun and folder.config.exists()):  # before, it is that of another run which had the same number
            config = configs.resolve(configs.parse(filled_in(run, folder), stored=True), settings.BASE_DIR)
            write_json(folder.config, config.to_dict())
        config = configs.load(folder.config, stored=True)
        self._fetch_checkpoints(run, folder, attempt, config)
        remotes = [("judge", config.judge)] if config.judge is not None else []
        named = [*config.sources(), *(config.suite.sources() if config.kind == "suite" else ())]
        remotes += [(where, remote_config(source)) for where, source in named if "://" in source]
        secrets = {}
        for section, remote in remotes:
            if remote.secret:
                check_remote(remote, section)
                secrets[remote.secret] = secret_from_environment(remote.secret)
        command = [*settings.RUN_COMMAND, "resume", str(folder.root), "--attempt", str(attempt), "--supervised"]
        return Launch(command, secrets)

    def _fetch_checkpoints(self, run: Run, folder: RunDir, attempt: int, config: RunConfig) -> None:
        """Fetch what this machine lacks: the run's last checkpoint, and those that its opponents play.

        What an attempt saved here above the step from which a later one began elsewhere counts as missing. The fetched
        folders take precedence over it, because they go to the newest earlier attempt.
        """
        last = run.checkpoints.order_by("-step").first()
        limits = run.attempts.valid_steps(before=attempt)
        if last is None or not limits:
            return
        latest = folder.latest_checkpoint()
        saved = [(step, limit) for number, limit in limits.items() for step, _ in folder.attempt(number).checkpoints()]
        valid = {step for step, limit in saved if step <= limit}
        missing = set(config.past(last.step + 1)) - valid
        if latest is None or latest[0] < last.step or latest[0] not in valid:
            missing.add(last.step)
        for checkpoint in run.checkpoints.filter(step__in=missing):
            if files.local(checkpoint.path) is None:
                files.fetch_folder(checkpoint.path, folder.attempt(max(limits)).checkpoint(checkpoint.step))

    def on_status(self, run: Run, status: Mapping[str, Any]) -> None:
        """Do nothing."""

    def on_end(self, run: Run, error: str) -> None:
        """Do nothing."""


KINDS: dict[str, Kind] = {kind: Training() for kind in ("train", "sft", "eval", "suite")}
