"""Services for runs and checkpoints: start, stop, resume, delete, share. Each is one transaction."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from training import bases, players, run_checks, samples, suites
from training.config import RunConfig
from training.engines.remote.addresses import check_remote
from training.engines.remote.config import remote_config
from training.errors import BadInput
from training.games import lookup
from training.opponent_sections import SPEAKER, of_learner
from training.records import LEARNER
from webapp.accounts.models import User
from webapp.core import files, queue, quotas
from webapp.core.deleting import refused_if_used
from webapp.corpora.models import Corpus
from webapp.corpora.naming import corpora_named
from webapp.runs import local_files, withdrawn
from webapp.runs.alerts import services as alerts
from webapp.runs.models import Checkpoint, Event, Run, RunCorpus
from webapp.runs.querysets import ALIVE, OVER
from webapp.runs.registry import services as registry
from webapp.runs.reward_labels import measured_labels
from webapp.scenarios.models import DatasetVersion
from webapp.scenarios.services import check_open

logger = logging.getLogger(__name__)
QUESTIONS = "qa_society"
"""The game of a calibration's question sets."""
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
TRAIN_QUEUES = {"cpu": "train-cpu", "gpu": "train-gpu"}


@transaction.atomic
def create_run(
    *,
    owner: User,
    config: RunConfig,
    place: str = "cpu",
    dataset_version: DatasetVersion | None = None,
    start_checkpoint: Checkpoint | None = None,
    opponent_checkpoint: Checkpoint | None = None,
    cloned_from: Run | None = None,
) -> Run:
    """Queue a run. Raises `BadInput` with the field that is inconsistent with the other choices, or with the quota that
    is used up.
    """
    config, aliases = registry.resolved(config)
    config = _with_question_sets(config)
    _check(config, dataset_version)
    _check_size(config, owner, dataset_version)
    _check_quotas(owner)
    corpora = corpora_named(config.search.indexes, owner)
    base_checkpoint = _base_checkpoint(config.model.base)
    start_checkpoint = start_checkpoint or base_checkpoint
    base = start_checkpoint.base if start_checkpoint else config.model.base
    game = _game(config)
    chosen = {"start_checkpoint": start_checkpoint, "opponent_checkpoint": opponent_checkpoint}
    aliases |= {field: each.chosen_as for field, each in chosen.items() if each is not None and each.chosen_as}
    run = Run.objects.create(
        kind=config.kind,
        name=config.name or f"{config.kind} {game}".strip(),
        owner=owner,
        queue=TRAIN_QUEUES[place],
        config=config.to_dict(),
        method=config.method.name if config.kind == "train" else "",
        game=game,
        base=base,
        dataset_version=dataset_version,
        start_checkpoint=start_checkpoint,
        opponent_checkpoint=opponent_checkpoint,
        aliases=aliases,
        cloned_from=cloned_from,
        steps=config.learn.steps if config.kind == "train" else 0,
    )
    run.directory = f"runs/{run.pk}"
    run.save(update_fields=["directory"])
    RunCorpus.objects.bulk_create(
        RunCorpus(run=run, corpus=corpus, name=corpus.name, sha256=corpus.file.sha256) for corpus in corpora
    )
    withdrawn.inherit(run=run)
    queue.send(queue.SUPERVISE, run.pk, queue=run.queue)
    return run


def _game(config: RunConfig) -> str:
    """The game of a run, of several the first; none of a suite, which has its own."""
    if config.kind == "suite":
        return ""
    return config.parts[0].game if config.kind == "train" else config.game.name


def _with_question_sets(config: RunConfig) -> RunConfig:
    """The configuration with the question sets of its calibration as dataset versions, such as `popqa v2`."""
    section = config.calibration
    versions = [_question_set(each.path, place) for place, each in enumerate(section.sets)]
    named = zip(section.sets, versions, strict=True)
    sets = tuple(each.model_copy(update={"path": str(version) if version else ""}) for each, version in named)
    return config.model_copy(update={"calibration": section.model_copy(update={"sets": sets})})


def _question_set(text: str, place: int) -> DatasetVersion | None:
    """The dataset version that a question set names; None for the samples. Raises `BadInput` if it has no questions."""
    if not text:
        return None
    where = f"calibration.sets.{place}.path"
    version = DatasetVersion.objects.named(text)
    if version is None:
        raise BadInput(
            f"no dataset is named {text[:120]!r}: write NAME or NAME v2; paths are for the command line", where
        )
    check_open(version, where)
    if QUESTIONS not in version.games:
        raise BadInput(f"{version} has no scenario of {QUESTIONS}: it has {', '.join(version.games)}", where)
    return version


def _check(config: RunConfig, version: DatasetVersion | None) -> None:
    _check_kind(config)
    _check_paths(config)
    _check_cluster(config)
    for where, source in config.sources():
        if not of_learner(source):
            _check_opponent(source, where)
    if base := config.calibration.base:
        if base in bases.REGISTRY:
            _check_prepared(base, "calibration.base")
        elif not Checkpoint.objects.filter(name=base).exists():
            raise BadInput(
                f"{base!r} is no checkpoint or base model; folders are for the command line", "calibration.base"
            )
    measured_labels(config)
    if config.kind == "suite":
        _check_suite(config, version)
    if config.judge is not None:
        check_remote(config.judge, "judge")
    samples.check_indexes(sorted(_searched(config, version)), config.search.indexes)
    if version is None:
        return
    check_open(version)
    for game in dict.fromkeys((config.game.name, *(part.game for part in config.mixture))):
        if game not in version.games:
            raise BadInput(f"{version} has no scenario of {game}: it has {', '.join(version.games)}", "dataset")
    with_conversations = version.scenarios.filter(game=config.game.name, conversations__isnull=False)
    if config.kind == "sft" and not with_conversations.exists():
        raise BadInput(f"{version} has no conversations of {config.game.name} to learn from", "dataset")


def _searched(config: RunConfig, version: DatasetVersion | None) -> set[str]:
    """The corpora that the seats of a run can search, without those of the samples' questions."""
    searched = {tool for questions in config.calibration.sets for tool in questions.tools}
    if version is None:
        return searched - {""}
    for entry in config.parts:
        setting = lookup(entry.game).corpora if entry.game in version.games else ""
        if setting:
            stored = version.scenarios.filter(game=entry.game).values_list(f"data__settings__{setting}", flat=True)
            named = [entry.settings[setting]] if setting in entry.settings else stored.distinct()
            searched |= {corpus for corpora in named for corpus in corpora or ()}
    return searched - {"", None}


def _check_paths(config: RunConfig) -> None:
    """Raise `BadInput` for a file or folder of this machine, of which other workers know nothing."""
    if config.data.path or config.evaluate.path:
        raise BadInput("choose a dataset version; paths are for the command line", "data.path")
    if any(part.path for part in config.mixture):
        raise BadInput("choose a dataset version with all its games; paths are for the command line", "mixture")
    if config.evaluate.model or config.evaluate.opponent or config.evaluate.common:
        raise BadInput("choose checkpoints; paths are for the command line", "evaluate")


def _check_cluster(config: RunConfig) -> None:
    """Raise `BadInput` for a cluster named by its address: a worker that joined it would run what it sends."""
    if config.cluster.address:
        why = "workers join the cluster that their RAY_ADDRESS names; addresses are for the command line"
        raise BadInput(why, "cluster.address")
    run_checks.check_cluster(config)


def _check_kind(config: RunConfig) -> None:
    """Raise `BadInput` for a section that this kind of run leaves unread: its files and players are not checked."""
    sections = (
        ("suite", "suite.tasks", config.suite.tasks),
        ("train", "opponents", config.opponents),
        ("train", "phases", config.phases),
        ("train", "league.every", config.league.every),
        ("train", "calibration.sets", config.calibration.sets),
        ("train", "teacher.source", config.teacher.source),
        ("train", "reward.labels", config.reward.labels),
        ("train", "cluster", not config.cluster.alone),
    )
    for kind, where, value in sections:
        if value and config.kind != kind:
            raise BadInput(f"a run of kind {config.kind} does not use it: leave it out", where)


def check_bytes(config: Mapping[str, Any]) -> None:
    """Raise `BadInput` for a configuration too large to be stored; reading a far larger one takes long."""
    size = len(json.dumps(config).encode())
    if size > settings.CONFIG_BYTES:
        raise BadInput(f"the configuration has {size} bytes, more than {settings.CONFIG_BYTES}", "config")


def _check_size(config: RunConfig, owner: User, version: DatasetVersion | None) -> None:
    """Raise `BadInput` for a configuration too large to be stored, or too many games."""
    check_bytes(config.to_dict())
    conversations = _whole_rounds(config, version)
    if config.kind == "train":
        steps, evaluate = config.learn.steps, config.evaluate
        head_to_heads = (steps // evaluate.every if evaluate.every else 0) + evaluate.at_end
        count = _games(config) + head_to_heads * conversations + config.league_games + _calibration_games(config)
        quotas.refuse_above(user=owner, quota="games_per_run", count=count)
    if config.kind == "eval":
        quotas.refuse_above(user=owner, quota="games_per_run", count=conversations)
    if config.kind == "suite":
        quotas.refuse_above(user=owner, quota="games_per_run", count=config.suite.total)


def _calibration_games(config: RunConfig) -> int:
    """Return how many games the evaluations of a single agent play, in two ways each, and what the base model plays."""
    section = config.calibration
    evaluations = config.learn.steps // section.every + 2
    games = 0
    for each in section.sets:
        version = DatasetVersion.objects.named(each.path) if each.path else None
        stored = version.scenarios.filter(game=QUESTIONS).count() if version else len(samples.for_game(QUESTIONS))
        games += min(stored, each.limit or stored) * len(each.tools)
    return 2 * games * section.draws * (evaluations + 1)


def _games(config: RunConfig) -> int:
    """How many games a training run plays, by the sizes of its phases."""
    parts = [config.of_phase(place) for place in range(max(1, len(config.phases)))]
    return sum(part.learn.steps * part.rollout.scenarios * part.rollout.games for part in parts)


def _whole_rounds(config: RunConfig, version: DatasetVersion | None) -> int:
    """Return how many conversations a head-to-head plays: it repeats all starts in both seatings until it has enough.

    Without a dataset it plays samples, which are few.
    """
    conversations = config.evaluate.conversations
    starts = 0 if version is None else version.scenarios.filter(game=config.game.name).count()
    each = 2 * min(starts, config.data.limit or starts)
    return conversations if conversations <= each or not each else -(-conversations // each) * each


def _check_quotas(owner: User) -> None:
    """Raise `BadInput` if the owner's quotas allow no further run."""
    runs = Run.objects.filter(owner=owner).without_servers()
    quotas.check(user=owner, quota="active_runs", used=runs.alive())
    quotas.spend(user=owner, quota="runs_per_hour")


def _check_suite(config: RunConfig, version: DatasetVersion | None) -> None:
    """Raise `BadInput` for a suite that only the command line can play."""
    if version is not None:
        raise BadInput("the tasks of a suite have starts of their own", "dataset")
    for place, task in enumerate(config.suite.tasks):
        if task.path:
            raise BadInput("paths are for the command line", suites.field(place, "path"))
    for where, source in config.suite.sources():
        _check_opponent(source, where)


def _check_opponent(source: str, where: str) -> None:
    """Raise `BadInput` for an opponent that is a folder: every worker must be able to resolve it by name."""
    if source == SPEAKER or players.known(source):
        return
    if source in bases.REGISTRY:
        _check_prepared(source, where)
        return
    if "://" not in source:
        if Checkpoint.objects.filter(name=source).exists():
            return
        raise BadInput(
            f"{source!r} is no player, checkpoint, base model or address; folders are for the command line", where
        )
    try:
        remote = remote_config(source)
    except BadInput as error:
        raise BadInput(error.why, where) from error
    check_remote(remote, where)


def _check_prepared(base: str, where: str) -> None:
    """Raise `BadInput` for a registered base model that no machine has yet: a worker would refuse the run."""
    if why := unprepared(base):
        raise BadInput(why, where)


def _base_checkpoint(base: str) -> Checkpoint | None:
    """The checkpoint of a configuration's base model; None for a registered model."""
    if base in bases.REGISTRY:
        return None
    checkpoint = Checkpoint.objects.filter(name=base).first()
    if checkpoint is None:
        raise BadInput(f"no base model is called {base!r}", "model.base")
    return checkpoint


def _locked(run: Run) -> Run:
    """The run under its row lock; raises `BadInput` if it was deleted."""
    locked = Run.objects.select_for_update().filter(pk=run.pk).first()
    if locked is None:
        raise BadInput("it has been deleted", run.name)
    return locked


@transaction.atomic
def stop_run(*, run: Run) -> str:
    """Ask a run to stop; return its state. A queued run stops at once; a second request has no effect.

    Raises `BadInput` if the run was deleted.
    """
    locked = _locked(run)
    if locked.state in OVER or locked.stop_asked_at is not None:
        return locked.state
    locked.stop_asked_at = Now()
    locked.state = Run.State.STOPPED if locked.state == Run.State.QUEUED else Run.State.STOPPING
    if locked.state == Run.State.STOPPED:
        locked.ended_at = Now()
    locked.save(update_fields=["state", "stop_asked_at", "ended_at"])
    if locked.state == Run.State.STOPPED:
        alerts.note_end(locked)
    return locked.state


@transaction.atomic
def resume_run(*, run: Run) -> None:
    """Queue a stopped or failed run again, from its last complete checkpoint.

    Raises `BadInput` for any other, if a quota of its owner is used up, if a corpus that it searches is gone, or if a
    dataset version that it reads is closed.
    """
    locked = _locked(run)
    if locked.state not in {Run.State.STOPPED, Run.State.FAILED} or locked.kind == Run.Kind.SERVE:
        raise BadInput(f"only a stopped or failed run can be resumed; this one is {locked.state}", locked.name)
    check_data(locked)
    _check_quotas(locked.owner)
    _find_corpora(locked)
    last = locked.attempts.order_by("-number").first()
    if last is not None:
        Event.objects.create(run=locked, attempt=last, at=Now(), kind="resumed")
    locked.state, locked.stop_asked_at, locked.error, locked.ended_at = Run.State.QUEUED, None, "", None
    locked.save(update_fields=["state", "stop_asked_at", "error", "ended_at"])
    queue.send(queue.SUPERVISE, locked.pk, queue=locked.queue)


def check_data(run: Run) -> None:
    """Raise `BadInput` if the dataset version of a run, or that of one of its question sets, is closed."""
    if run.dataset_version is not None:
        check_open(run.dataset_version)
    for place, each in enumerate(run.config.get("calibration", {}).get("sets", ())):
        if version := DatasetVersion.objects.named(each["path"]):
            check_open(version, f"calibration.sets.{place}.path")


def _find_corpora(run: Run) -> None:
    """Lock the corpora that a run searches, so that none is deleted meanwhile; raise `BadInput` if one has been.

    One that was uploaded again, with the same name and content, takes the place of the deleted one.
    """
    for record in run.searched.order_by("name"):
        same = Corpus.objects.select_for_update(of=("self",)).filter(name=record.name, file__sha256=record.sha256)
        record.corpus = same.first()
        if record.corpus is None:
            raise BadInput(f"it searched the corpus {record.name}, which has been deleted: start a new run", run.name)
        record.save(update_fields=["corpus"])


@transaction.atomic
def delete_run(*, run: Run) -> None:
    """Delete a run that is over with its checkpoints, and its files in the storage and on every machine.

    Raises `BadInput` if its checkpoints are in use, or other people have judged its conversations. The owner's
    judgments are deleted with it.
    """
    locked = _locked(run)
    if locked.state in ALIVE:
        raise BadInput(f"it is {locked.state}: stop it first", locked.name)
    if count := locked.episodes.judged_by_others(locked.owner).count():
        raise BadInput(f"it cannot be deleted: other people have judged {count} of its conversations", locked.name)
    names = [f"runs/{run.pk}"]
    for checkpoint in locked.checkpoints.order_by("-step"):
        names += _delete_checkpoint(checkpoint)
    locked.delete()
    transaction.on_commit(lambda: _delete_files(names), robust=True)
    transaction.on_commit(partial(local_files.delete, settings.RUNS_ROOT / str(run.pk)), robust=True)


def _delete_files(names: list[str]) -> None:
    """Delete these folders. Their rows are gone: one that stays is named in the log, and the others are deleted."""
    for name in names:
        try:
            files.delete_folder(name)
        except files.StorageError:
            logger.exception("the stored folder %s could not be deleted", name)


@transaction.atomic
def delete_checkpoint(*, checkpoint: Checkpoint) -> None:
    """Delete a checkpoint with its files; raises `BadInput` if something still uses it."""
    names = _delete_checkpoint(checkpoint)
    transaction.on_commit(lambda: _delete_files(names), robust=True)


def _delete_checkpoint(checkpoint: Checkpoint) -> list[str]:
    """Delete the row and the runs that served it; return their folders."""
    serve_runs = Run.objects.filter(kind=Run.Kind.SERVE, start_checkpoint=checkpoint)
    if serve_runs.alive().exists():
        raise BadInput("it is being served: stop its deployment first", checkpoint.name)
    names = [f"runs/{pk}" for pk in serve_runs.values_list("pk", flat=True)]
    with refused_if_used(checkpoint.name):
        serve_runs.delete()
        Checkpoint.objects.filter(pk=checkpoint.pk).delete()
    return names if checkpoint.kind == Checkpoint.Kind.BASE else [*names, checkpoint.path]


@transaction.atomic
def open_checkpoint(*, checkpoint: Checkpoint, open_to_players: bool) -> None:
    """Set whether players may play against a checkpoint."""
    Checkpoint.objects.filter(pk=checkpoint.pk).update(open_to_players=open_to_players)


@transaction.atomic
def add_base(*, name: str, source: str, model_roots: Sequence[Path]) -> Checkpoint:
    """Add a base model: a folder below one of `MODEL_ROOTS`, a registered name, or a hub name on this machine.

    Raises `BadInput` if it is not there or not safe to load, or has no format of prompts; the weights are not read.
    """
    if name in bases.REGISTRY or Checkpoint.objects.filter(name=name).exists():
        raise BadInput("another model has this name", "name")
    if of_learner(name) or name in (LEARNER, suites.BEST_RESPONSE) or players.known(name) or "://" in name:
        raise BadInput("as an opponent this name means something else: choose another one", "name")
    if HUB_NAME.fullmatch(source) and bases.find(source) is None:
        folder = _from_hub_cache(source)
    else:
        folder = bases.resolve(source, roots=model_roots)
    if not bases.has_chat_template(folder):
        raise BadInput("its tokenizer has no chat template, so conversations cannot be written for it", "source")
    return Checkpoint.objects.create(name=name, kind=Checkpoint.Kind.BASE, base=name, path=str(folder))


def _from_hub_cache(name: str) -> Path:
    """The checked snapshot of a hub model that was downloaded on this machine; nothing is fetched here."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError as error:
        raise BadInput(f"it is not on this machine: run `hf download {name}` there first", "source") from error
    return bases.check_folder(folder)


def register_bases() -> int:
    """Create a row for every registered base model that is prepared on this machine; return how many are new.

    The clock and every worker do it: where they are on several machines, only some have the models.
    """
    ready = [entry for entry in bases.REGISTRY.values() if bases.is_prepared(entry)]
    rows = [Checkpoint(name=e.name, kind=Checkpoint.Kind.BASE, base=e.name, path=str(e.folder)) for e in ready]
    registered = set(Checkpoint.objects.filter(name__in=[e.name for e in ready]).values_list("name", flat=True))
    missing = [row for row in rows if row.name not in registered]
    Checkpoint.objects.bulk_create(missing, ignore_conflicts=True)
    return len(missing)


def unprepared(name: str) -> str:
    """Return why a registered base model cannot be used yet; empty if a machine of this installation has it."""
    registered = Checkpoint.objects.filter(name=name, kind=Checkpoint.Kind.BASE).exists()
    return "" if registered else bases.unprepared(name)
