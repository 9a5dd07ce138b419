"""Contestants: a model folder or registered model, a remote model, or a player without a model.

A contestant's source is one text: a player without a model (`scripted`, `mcts:100`, …), `https://host/v1 MODEL
[SECRET_API_KEY]`, or else a model. Raises `BadInput` for any other text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training import bases, engines, players
from training.engines.adapters import AdapterEngine
from training.engines.base import Engine, Sampling
from training.engines.remote.addresses import AllowList
from training.engines.remote.config import remote_config
from training.errors import BadInput, OutsideError
from training.opponent_sections import SPEAKER, TEACHER
from training.players.advised import AdvisedPlayer, Advisor, Strategist, remote_strategist
from training.players.base import Player, PlayerFactory
from training.players.model import ModelPlayer, check_choices
from training.players.react import NamingPlayer, ReActPlayer
from training.players.remote import RemotePlayer
from training.records import Scenario, Seat
from training.run_sections import EngineSection, SpeakerSection, TeacherSection
from training.store import MANIFEST, sha256

if TYPE_CHECKING:
    from training.engines.remote.chat import RemoteModel
    from training.text.template import ChatTokenizer


@dataclass(frozen=True, slots=True)
class Contestant:
    """One contestant: the factory of its players, and the facts that results report (hashes, sampling)."""

    title: str
    player: PlayerFactory
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class ContestantPool:
    """Opens contestants and closes their engines and connections; contestants with the same weights share an engine.

    `device` is where engines sample, and `make` makes them, as `engines.make` does. Where `form` names a speaker,
    models are its strategists, or write strategies and replies themselves.
    """

    engine: EngineSection
    sampling: Sampling
    device: str
    form: SpeakerSection = field(default_factory=SpeakerSection)
    make: Callable[..., AdapterEngine] = engines.make
    _speakers: ContestantPool | None = None
    _speaker: Contestant | None = None
    _engines: dict[Path, Engine] = field(default_factory=dict)
    _tokenizers: dict[Path, ChatTokenizer] = field(default_factory=dict)
    _remotes: list[RemoteModel] = field(default_factory=list)

    def open(self, source: str, policy: str) -> Contestant:
        """Return the contestant of `source`; `policy` is the policy's name in its traces."""
        if source == SPEAKER:
            return self.speaker_alone
        if players.known(source):
            return Contestant(
                source, lambda scenario, seat: players.make(source, scenario, seat), players.facts(source)
            )
        if "://" in source:
            return self._remote(source)
        return self._local(source, policy)

    @property
    def speaker(self) -> Contestant:
        """The speaker alone, opened on first use. Raises `BadInput` for one that is no contestant."""
        if self._speakers is None or self._speaker is None:
            form = self.form
            changed = {"max_tokens": form.max_tokens, "constrain": form.constrain}
            warmth = {} if form.temperature is None else {"temperature": form.temperature}
            sampling = self.sampling.model_copy(update={**changed, **warmth})
            self._speakers = ContestantPool(self.engine, sampling, self.device, make=self.make)
            self._speaker = self._speakers.open(form.source, SPEAKER)
        return self._speaker

    @property
    def speaker_alone(self) -> Contestant:
        """The speaker without a strategist, which may write strategies of its own first."""
        if self.form.alone == "plain":
            return self.speaker
        plain = self.speaker.player
        forgets = "://" in self.form.source

        def player(scenario: Scenario, seat: Seat) -> Player:
            return ReActPlayer(plain(scenario, seat), self.form, forgets=forgets)

        return Contestant(self.speaker.title, player, {**self.speaker.facts, "alone": self.form.alone})

    def model_player(self, engine: Engine, tokenizer: ChatTokenizer, scenario: Scenario, **named: Any) -> Player:
        """Return a local model at one seat: by itself, as the strategist of the speaker, or as both in one.

        The keyword arguments are those of `ModelPlayer`, with `sampling`.
        """
        form, sampling = self.form, named.pop("sampling")
        if form.source and not form.react:
            return self.advised(Strategist(engine, tokenizer, sampling, form=form, **named), scenario, named["seat"])
        player = ModelPlayer(engine, tokenizer, sampling, **named)
        return ReActPlayer(player, form) if form.react else player

    def advised(self, strategist: Advisor, scenario: Scenario, seat: Seat) -> AdvisedPlayer:
        """Return a player of one seat: the strategist with a speaker."""
        return AdvisedPlayer(strategist, self.speaker.player(scenario, seat))

    def teacher(self, section: TeacherSection) -> PlayerFactory:
        """Return the players of a teacher, whose replies have strategies; its engine is that of its weights."""
        form, source = self.form, section.source
        warmth = {} if section.temperature is None else {"temperature": section.temperature}
        sampling = self.sampling.model_copy(update={"max_tokens": section.max_tokens, **warmth})
        if players.known(source):

            def naming(scenario: Scenario, seat: Seat) -> Player:
                player = NamingPlayer(players.make(source, scenario, seat), form)
                return player if section.speaks else self.advised(player, scenario, seat)

            return naming
        if not section.speaks:
            _ = self.speaker  # opened here, so that both pools share it
            return replace(self, sampling=sampling).open(source, TEACHER).player
        plain = replace(self, sampling=sampling, form=SpeakerSection()).open(source, TEACHER).player

        def both(scenario: Scenario, seat: Seat) -> Player:
            return ReActPlayer(plain(scenario, seat), form, reasons=True, forgets="://" in source)

        return both

    async def reload(self) -> None:
        """Load the weights of all engines again, which clears their caches: results do not depend on earlier games.

        Raises `OutsideError` that names a folder that is gone.
        """
        if self._speakers is not None:
            await self._speakers.reload()
        for folder, engine in self._engines.items():
            if not folder.is_dir():
                raise OutsideError(f"a seat of this run needs the model in {folder}, which is no longer there")
            await engine.load_weights(folder)

    async def close_except(self, sources: Collection[str]) -> None:
        """Close the engines of local models other than these."""
        local = (source for source in sources if not players.known(source) and "://" not in source)
        kept = {bases.resolve(source).resolve() for source in local}
        for folder in [folder for folder in self._engines if folder not in kept]:
            await self._engines.pop(folder).close()

    def load(self, folder: Path, **adapters: int) -> AdapterEngine:
        """Return a new engine for a model folder by the configuration; the caller closes it.

        `adapters` are the options of `EngineOptions` about them.
        """
        section = self.engine
        return self.make(
            section.name,
            folder,
            dtype=section.dtype,
            device=self.device,
            window=section.window,
            max_running=section.max_running,
            cache_gib=section.cache_gib,
            choices=self.sampling.constrain,
            **adapters,
        )

    def seated(self, engine: Engine, folder: Path, policy: str) -> PlayerFactory:
        """Return a factory of players on an engine, with the tokenizer and the window of the folder's model."""
        from training.engines.local.loading import load_tokenizer
        from training.text.template import ChatTokenizer

        if folder not in self._tokenizers:
            self._tokenizers[folder] = ChatTokenizer(load_tokenizer(folder))
        tokenizer, sampling = self._tokenizers[folder], self.sampling
        window = window_of(self.engine, sampling, longest_window(folder))

        def player(scenario: Scenario, seat: Seat) -> Player:
            places: dict[str, Any] = {"seat": seat, "names": scenario.seats, "policy": policy, "window": window}
            return self.model_player(engine, tokenizer, scenario, sampling=sampling, **places)

        return player

    def check_choices(self, starts: Iterable[Scenario]) -> None:
        """Raise `BadInput` if the first replies of these starts cannot be limited to legal moves, for a model here."""
        if self._speakers is not None:
            self._speakers.check_choices(starts)
        for tokenizer in self._tokenizers.values():
            for start in starts:
                check_choices(tokenizer, self.sampling, start)

    async def aclose(self) -> None:
        """Close all engines and connections, even if closing one of them fails; may be called twice."""
        async with AsyncExitStack() as stack:
            if self._speakers is not None:
                stack.push_async_callback(self._speakers.aclose)
            for engine in self._engines.values():
                stack.push_async_callback(engine.close)
            for remote in self._remotes:
                stack.push_async_callback(remote.close)

    def scorer(self, source: str) -> tuple[Engine, ChatTokenizer]:
        """Return engine and tokenizer of a local model that was opened."""
        folder = bases.resolve(source).resolve()
        return self._engines[folder], self._tokenizers[folder]

    def _remote(self, source: str) -> Contestant:
        from training.engines.remote.chat import RemoteModel

        remote = remote_config(source)
        model = RemoteModel(remote)
        self._remotes.append(model)

        def player(scenario: Scenario, seat: Seat) -> Player:
            if not self.form.source:
                return RemotePlayer(model, self.sampling, scenario.seats)
            strategist = remote_strategist(model, self.sampling, scenario.seats, self.form)
            return strategist if isinstance(strategist, ReActPlayer) else self.advised(strategist, scenario, seat)

        sampling = model.parameters(self.sampling, None)
        facts = {"kind": "remote", "address": remote.address, "model": remote.model, "sampling": sampling}
        return Contestant(f"{remote.model} at {remote.address}", player, facts | self._speaker_facts())

    def _local(self, source: str, policy: str) -> Contestant:
        folder = folder_of(source)
        if folder not in self._engines:
            self._engines[folder] = self.load(folder)
        return self.described(self.seated(self._engines[folder], folder, policy), folder, source)

    def described(self, player: PlayerFactory, folder: Path, source: str) -> Contestant:
        """Return the contestant whose players sample from the model in `folder`, with its title and facts."""
        info = bases.read_info(folder)
        title = f"{info.name} step {info.step}" if info.step else info.name
        conditions: dict[str, Any] = {
            "engine": self.engine.name,
            "dtype": self.engine.dtype,
            "window": self.engine.window,
            "sampling": self.sampling.to_dict(),
        }
        conditions |= self._speaker_facts()
        return Contestant(title, player, {"kind": "model", "source": unplaced(source), **facts(folder), **conditions})

    def _speaker_facts(self) -> dict[str, Any]:
        """Return what results report about the speaker of models, under its name; nothing where there is none."""
        if not self.form.source:
            return {}
        weights = {} if self.form.react else self.speaker.facts
        return {"speaker": {**weights, **self.form.to_dict(), "source": unplaced(self.form.source)}}


def check(source: str) -> None:
    """Raise `BadInput` unless `source` names a contestant; this loads no model and sends no request."""
    if source == SPEAKER or players.known(source):
        return
    if "://" in source:
        remote = remote_config(source)
        AllowList.from_environment().check(remote.address, remote.secret)
    else:
        folder_of(source)


def folder_of(source: str) -> Path:
    """Return the folder of a local model; raise `BadInput` with all that a contestant can be."""
    if bases.find(source) is None and not bases.is_folder(source):
        known = f"a player ({', '.join(sorted(players.NAMES))}), a model ({', '.join(bases.REGISTRY)})"
        why = f"no such model or player: {source[:200]!r} is neither {known}, a folder, nor ADDRESS MODEL [SECRET]"
        raise BadInput(why, "model")
    return bases.resolve(source).resolve()


def check_replies(source: str, engine: EngineSection, sampling: Sampling, start: Scenario) -> None:
    """Raise `BadInput` unless `source` names a contestant whose replies in a start can be sampled; loads no model."""
    check(source)
    if source == SPEAKER or players.known(source) or "://" in source:
        return
    from training.engines.local.loading import load_tokenizer
    from training.text.template import ChatTokenizer

    folder = bases.resolve(source)
    window_of(engine, sampling, longest_window(folder))
    if sampling.constrain:
        check_choices(ChatTokenizer(load_tokenizer(folder)), sampling, start)


def facts(folder: Path) -> dict[str, Any]:
    """Return the facts about a model folder that results report: provenance, and hashes of its weights."""
    info = bases.read_info(folder)
    manifest = folder / MANIFEST
    pinned = {"manifest": manifest} if manifest.is_file() else {p.name: p for p in sorted(folder.glob("*.safetensors"))}
    return {
        "name": info.name,
        "base": info.base,
        "step": info.step,
        "note": info.note,
        "parent": unplaced(info.parent),
        "sha256": {name: sha256(path) for name, path in pinned.items()},
    }


def unplaced(source: str) -> str:
    """Return a model's name or folder without the place of the folder on this machine: hashes identify the model."""
    return Path(source).name if Path(source).is_absolute() else source


def window_of(engine: EngineSection, sampling: Sampling, longest: int) -> int:
    """Return the window of a model that takes `longest` tokens; raise `BadInput` if a reply would fill it."""
    window = min(engine.window or longest, longest)
    if window <= sampling.max_tokens:
        why = f"a reply of {sampling.max_tokens} tokens would fill the whole window, {window} tokens: lower it"
        raise BadInput(why, "sampling.max_tokens")
    return window


def longest_window(folder: Path) -> int:
    """Return the largest number of tokens that the model in a folder takes, prompt and reply together."""
    config = json.loads((bases.base_of(folder) / "config.json").read_text("utf-8"))
    return int(config["max_position_embeddings"])
