"""What must fit together in the configuration of a run, across its sections. `BadInput` names the field that is wrong.

What concerns one section alone is checked there, what concerns phases and suites in their modules.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from training import games, phases, players, suites
from training.engines.choice import check_parts
from training.errors import BadInput
from training.games.log import check_settings
from training.opponent_sections import MIRROR, SPEAKER, of_learner
from training.records import LEARNER
from training.rewards import labels
from training.run_sections import MOST_GAMES

if TYPE_CHECKING:
    from training.config import RunConfig
    from training.records import Scenario


def check(config: RunConfig) -> None:
    """Raise `BadInput` for the first part of a configuration that does not fit the others."""
    _check_game(config.game.name, config.game.settings, "game", "game.name")
    _check_games(config)
    if config.kind != "sft" and 0 < config.engine.window <= config.sampling.max_tokens:
        raise BadInput("a reply would fill the whole window: raise it, or lower sampling.max_tokens", "engine.window")
    if config.kind == "train":
        _check_training(config)
    if config.kind == "suite":
        _check_suite(config)
        _check_players(config)
    _check_speaker(config)
    during = config.kind == "train" and (config.evaluate.every > 0 or config.evaluate.at_end)
    head_to_head = config.kind == "eval" or during
    if head_to_head and config.evaluate.judge and config.judge is None:
        raise BadInput("a head-to-head with a judge needs the section judge: address and model", "judge")


def check_new(config: RunConfig) -> None:
    """Raise `BadInput` for what a new configuration may not have, though runs that have it are read and play on.

    That is a setting of a game that is of another type, such as "5" or 5.0 for a whole number, which the game
    converts; and roles of a learner that plays every seat, which have no effect.
    """
    for where, entry in config.entries():
        if entry.source == MIRROR and entry.learner != "one":
            why = 'with source mirror the learner plays every seat: write "one", or name another source'
            raise BadInput(why, f"{where}.learner")
    _check_settings(config.game.name, config.game.settings, "game", strict=True)
    for place, part in enumerate(config.mixture):
        _check_settings(part.game, part.settings, f"mixture.{place}", strict=True)
    for place, task in enumerate(config.suite.tasks):
        _check_settings(task.game, task.settings, f"suite.tasks.{place}", strict=True)


def check_cluster(config: RunConfig) -> None:
    """Raise `BadInput` for a run that cannot start on the processes that it names, on whatever machine."""
    section = config.cluster
    if section.alone:
        return
    if config.kind != "train":
        raise BadInput("only training has several processes: leave the section out", "cluster")
    check_parts(config.engine.name, section.tensor_parallel)


def _check_games(config: RunConfig) -> None:
    if (count := config.rollout.scenarios * config.rollout.games) > MOST_GAMES:
        raise BadInput(f"{count} games in a step are more than {MOST_GAMES}: lower it", "rollout.games")


def _check_training(config: RunConfig) -> None:
    for place, part in enumerate(config.mixture):
        _check_game(part.game, part.settings, f"mixture.{place}", f"mixture.{place}.game")
    if config.league.every:
        _check_league(config)
    _check_reward(config)
    if 0 < config.learn.importance_outlier < 1:
        raise BadInput("a factor is at least 1; 0 = no token is left out", "learn.importance_outlier")
    if config.learn.lora is not None and config.learn.lora.dropout > 0:
        raise BadInput("dropout would make the trained policy another than the sampled one", "learn.lora.dropout")
    _check_players(config)
    phases.check(config)
    if config.opponents and config.phases and all(phase.opponents is not None for phase in config.phases):
        raise BadInput("every phase has opponents of its own: these would never play", "opponents")
    for place in range(len(config.phases)):
        changed = config.of_phase(place)
        try:
            _check_learning(changed)
            if changed.method.build().needs.alone != config.method.build().needs.alone:
                raise BadInput("a run reads its starts once: seats play alone in all phases or in none", "method.form")
        except BadInput as error:
            phase = config.phases[place]
            where = f"phases.{place}.{error.where}" if phase.changes(error.where) else error.where
            raise BadInput(f"in the phase {phase.name}, {error.why}", where) from error
    if not config.phases:
        _check_learning(config)


def _check_reward(config: RunConfig) -> None:
    _check_labels(config)
    for part in config.parts:
        spec = games.lookup(part.game)
        if config.reward.source == "outcome" and spec.judged:
            raise BadInput(f"{part.game} has no result of its own: only a judge can score it", "reward.source")
        if config.reward.process == "rule" and not spec.reach:
            why = f"the rules of {part.game} do not tell what players have within reach: use judge"
            raise BadInput(why, "reward.process")
        if config.reward.forfeit == "nothing" and spec.players[1] > 2:
            raise BadInput(f"in {part.game} a forfeit does not end the game: use win", "reward.forfeit")
    if config.judge is None and (config.judged or config.reward.judge_filter or config.reward.process == "judge"):
        raise BadInput("this run's reward or filter needs a judge: give its address and model", "judge")
    if config.reward.process == "judge" and not config.speaker.source:
        raise BadInput("the judge lists strategies: name a speaker.source, or use rule", "reward.process")


def _check_labels(config: RunConfig) -> None:
    """Raise `BadInput` for a label that a judge cannot score; those of classifiers are checked as they are read."""
    for place, entry in enumerate(config.reward.labels):
        if entry.codebook and config.judge is None:
            raise BadInput("this run's label needs a judge: give its address and model", "judge")
        try:
            labels.check(entry)
        except BadInput as error:
            raise BadInput(error.why, f"reward.labels.{place}.{error.where}") from error


def _check_speaker(config: RunConfig) -> None:
    """Raise `BadInput` for what does not fit with a speaker, or needs one."""
    named = [*config.sources(), *config.suite.sources()] if config.kind == "suite" else list(config.sources())
    source = config.speaker.source
    alone = next((where for where, each in named if each == SPEAKER), None)
    if alone and (not source or config.speaker.react):
        raise BadInput("this run has no speaker: name one in speaker.source", alone)
    if not source:
        return
    if of_learner(source) or source == SPEAKER:
        known = f"a model, an address, {', '.join(players.speakers())} or self"
        raise BadInput(f"{source} is no speaker: name {known}", "speaker.source")
    if players.known(source) and not players.reads_strategies(source):
        known = f"{', '.join(players.speakers())}, a model or an address"
        raise BadInput(f"{source} reads no strategies: name {known}", "speaker.source")
    if players.known(source) and config.speaker.alone == "react":
        raise BadInput(f"{source} writes no strategies: only a model can, or one at an address", "speaker.alone")
    if config.sampling.constrain:
        why = "a strategy is free text: leave it out; speaker.constrain limits the speaker's replies"
        raise BadInput(why, "sampling.constrain")
    if config.calibration.sets:
        raise BadInput("a single agent of qa_society is asked by itself, without a speaker", "calibration.sets")
    if config.evaluate.nashconv:
        raise BadInput("NashConv is that of a model that moves itself, without a speaker", "evaluate.nashconv")
    for place, task in enumerate(config.suite.tasks):
        if task.opponent == suites.BEST_RESPONSE:
            where = suites.field(place, "opponent")
            raise BadInput("NashConv is that of a model that moves itself, without a speaker", where)


def _check_players(config: RunConfig) -> None:
    """Raise `BadInput` for a player, other than a model, that does not play one of the games."""
    parts = config.suite.tasks if config.kind == "suite" else config.parts
    sources = [(where, source) for where, source in config.sources() if players.known(source)]
    if not sources:
        return
    for game in dict.fromkeys(part.game for part in parts):
        if (example := _example(game)) is None:
            continue
        for where, source in sources:
            try:
                players.check(source, example)
            except BadInput as error:
                raise BadInput(error.why, where) from error


@cache
def _example(game: str) -> Scenario | None:
    """Return a start of a game, None if it has none of its own; to make all its samples takes some 10 ms."""
    spec = games.lookup(game)
    return suites.starts(game)[0] if spec.start or spec.samples else None


def _check_learning(config: RunConfig) -> None:
    """Raise `BadInput` for what does not fit in the sections that phases change."""
    for place, opponent in enumerate(config.opponents):
        for field, source in opponent.sources.items():
            if source == LEARNER:
                raise BadInput("as an opponent the learner itself is named mirror", f"opponents.{place}.{field}")
    if config.rollout.random_moves and not config.sampling.constrain:
        raise BadInput("only listed moves can be drawn: set sampling.constrain", "rollout.random_moves")
    _check_games(config)
    _check_teacher(config)
    _check_warmup(config)
    if config.method.build().needs.alone:
        for part in config.parts:
            if games.lookup(part.game).alone is None:
                raise BadInput(f"in {part.game} nobody plays alone, as this form needs", "method.form")
    try:
        config.method.check(config.reward_low, config.rollout.games)
    except BadInput as error:
        raise BadInput(error.why, f"method.{error.where}") from error


def _check_teacher(config: RunConfig) -> None:
    source, needs = config.teacher.source, config.method.build().needs
    if not source:
        if needs.taught:
            raise BadInput("supervised learning imitates a teacher: name one", "teacher.source")
        return
    if of_learner(source) or source == SPEAKER:
        raise BadInput(f"{source} is no teacher: name a model, an address or a player", "teacher.source")
    if not config.speaker.source:
        raise BadInput("a strategist learns a teacher's strategies: name a speaker.source", "teacher.source")
    if config.speaker.react and not config.teacher.speaks:
        raise BadInput("this run has no speaker that it could advise: set it, or name a speaker", "teacher.speaks")
    if not needs.offline:
        raise BadInput(f"{config.method.name} learns from what the learner itself has played", "teacher.source")


def _check_suite(config: RunConfig) -> None:
    for place, task in enumerate(config.suite.tasks):
        _check_game(task.game, task.settings, f"suite.tasks.{place}", suites.field(place, "game"))
    suites.check(config.suite, judged=config.judge is not None)


def _check_league(config: RunConfig) -> None:
    if config.phases:
        raise BadInput("a league needs the same opponents in the whole run, but phases change them", "league.every")
    if all(opponent.source == MIRROR for opponent in config.opponents):
        raise BadInput("a league needs opponents: `past`, a player or a model", "opponents")
    if config.league.every % config.learn.save_every:
        raise BadInput(
            f"the league plays saved steps, which are the multiples of learn.save_every = {config.learn.save_every}: "
            "make it a multiple of that",
            "league.every",
        )
    if config.league.every > config.learn.steps:
        raise BadInput(f"the run ends after {config.learn.steps} steps, before any evaluation", "league.every")
    for part in config.parts:
        if games.lookup(part.game).judged:
            raise BadInput(f"{part.game} has no result of its own, by which a league compares", "league.every")


def _check_warmup(config: RunConfig) -> None:
    steps, first = config.learn.steps, 0
    if config.method.build().needs.critic:
        first = config.learn.critic_warmup
        if first >= steps:
            raise BadInput(
                f"the policy would never learn: the value heads learn alone for {first} of {steps} steps; lower "
                "learn.critic_warmup, or train for more steps",
                "learn.critic_warmup",
            )
    if config.learn.anneal == "run" and 0 < config.learn.warmup >= steps - first:
        raise BadInput(
            f"the policy would never learn at its rate, which rises over {config.learn.warmup} of the "
            f"{steps - first} steps in which it learns; lower learn.warmup, or train for more steps",
            "learn.warmup",
        )


def _check_game(name: str, settings: Mapping[str, Any], section: str, named: str) -> None:
    """Raise `BadInput` for an unknown game, at the field `named`, or for a setting that no scenario of it could have.

    How the settings fit the scenario's is known where the scenarios are read.
    """
    try:
        model = games.lookup(name).settings
    except BadInput as error:
        raise BadInput(error.why, named) from error
    if unknown := sorted(set(settings) - set(model.model_fields)):
        known = ", ".join(sorted(model.model_fields))
        raise BadInput(f"{name} has no setting {unknown[0][:80]!r}; it has {known}", f"{section}.settings")
    _check_settings(name, settings, section, strict=False)


def _check_settings(name: str, settings: Mapping[str, Any], section: str, *, strict: bool) -> None:
    try:
        check_settings(games.lookup(name).settings, settings, strict=strict)
    except BadInput as error:
        raise BadInput(error.why, f"{section}.{error.where}") from error
