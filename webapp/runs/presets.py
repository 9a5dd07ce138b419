"""Starting points of a new run: complete configurations for common purposes.

Training presets are the files of `training/configs`, which the command line uses as well. The form shows the sections
that a kind of run uses, without fields chosen elsewhere on the page (data, models, kind, name).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from training import config as configs
from training import games, samples
from training.cluster import devices
from training.config import CONFIGS, RunConfig
from training.errors import BadInput
from training.opponent_sections import MIRROR, LeagueSection, Opponent
from training.reward_section import LabelReward
from webapp.runs.models import Run

MOST_OPPONENTS = 20
"""The form's limit; a configuration file may list more."""
SECTIONS: dict[str, tuple[str, ...]] = {
    "train": (
        "game",
        "mixture",
        "rollout",
        "opponents",
        "phases",
        "league",
        "speaker",
        "teacher",
        "search",
        "sampling",
        "reward",
        "method",
        "learn",
        "stop",
        "evaluate",
        "calibration",
        "engine",
        "cluster",
        "model",
        "data",
        "judge",
        "seed",
    ),
    "sft": ("sft", "game", "model", "data", "stop", "seed"),
    "eval": (
        "evaluate",
        "game",
        "rollout",
        "speaker",
        "search",
        "sampling",
        "engine",
        "model",
        "data",
        "judge",
        "seed",
    ),
}
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "model": ("base",),
    "data": ("path",),
    "evaluate": ("path", "model", "opponent", "common"),
    "game": ("name",),
    "cluster": ("address",),
}


@dataclass(frozen=True)
class Preset:
    """A starting point: title, purpose, configuration file (if any) and changes to it."""

    title: str
    about: str
    file: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)

    def config(self) -> dict[str, Any]:
        """The complete configuration as JSON data."""
        return self.parsed.to_dict()

    @cached_property
    def parsed(self) -> RunConfig:
        """The complete configuration, read once."""
        base = configs.load(CONFIGS / self.file) if self.file else RunConfig()
        return RunConfig.from_dict({**base.to_dict(), **self.changes})


PRESETS: dict[str, Preset] = {
    "quick": Preset(
        "Quick trial",
        "The tiny model learns to bargain over items in about three minutes on two CPU cores, then plays against its "
        "own start: a demonstration of every part.",
        "omar/quick.toml",
        {"name": "Quick trial"},
    ),
    "negotiation": Preset(
        "Negotiation with SmolLM2",
        "A 135M-parameter model bargains with itself over items, two to three minutes per step on a CPU core. "
        "Start it from a cold start's checkpoint: untrained, it seldom reaches a deal.",
        "omar/negotiation.toml",
        {"name": "Negotiation"},
    ),
    "dialogue": Preset(
        "Social dialogue with a judge",
        "Two characters with goals and secrets talk; a remote judge model scores them.",
        "omar/dialogue.toml",
        {"name": "Social dialogue"},
    ),
    "werewolf": Preset(
        "OMAR on Werewolf",
        "A 135M-parameter model plays the wolves, who learn against a village with fixed weights. "
        "Start it from a cold start's checkpoint: untrained, few of its replies are legal. "
        "In three measured runs, one of them stopped after 11 of 20 steps, no gain in games won was shown.",
        "omar/werewolf.toml",
        {"name": "Werewolf"},
    ),
    "werewolf-phases": Preset(
        "OMAR on Werewolf, one side at a time",
        "The wolves learn against the starting model's village, then the village against those wolves, then the wolves "
        "again. While the village learns, one of its seats stays the starting model. Start it from a cold start's "
        "checkpoint: untrained, few of SmolLM2's replies are legal.",
        "omar/werewolf_phases.toml",
        {"name": "Werewolf in phases"},
    ),
    "mars-quick": Preset(
        "Quick trial of MARS",
        "The quick trial's game and model with MARS, whose curves can be compared with it: some minutes on two CPU "
        "cores.",
        "mars/quick.toml",
        {"name": "Quick trial of MARS"},
    ),
    **{
        f"mars-{name}": Preset(
            title,
            f"{about} Start it from a cold start's checkpoint or a larger model: untrained, few replies are legal.",
            f"mars/{name.replace('-', '_')}.toml",
            {"name": title},
        )
        for name, title, about in (
            ("tic-tac-toe", "MARS on tic-tac-toe", "One model plays both seats."),
            ("kuhn-poker", "MARS on Kuhn poker", "One model plays both seats."),
            ("hanabi", "MARS on Hanabi", "One model plays both seats of a game that they win or lose together."),
            ("generalist", "MARS on three games", "One model learns tic-tac-toe, Kuhn poker and Hanabi at once."),
            ("tic-tac-toe-mcts", "MARS against tree search", "Tic-tac-toe against MCTS with 100 simulations."),
            ("kuhn-poker-nash", "MARS against an equilibrium", "Kuhn poker against a fixed equilibrium."),
        )
    },
    "among-us": Preset(
        "Listening and speaking in Among Us",
        "A 135M-parameter model first learns to answer probes. Then the crew also learns from the game's results and "
        "from a reward for convincing messages, beside a fixed crewmate and against a fixed imposter. "
        "Its effect has not been measured.",
        "listen_speak/among_us.toml",
        {"name": "Among Us"},
    ),
    "among-us-in-turn": Preset(
        "Crew and imposter in turn",
        "A crew learns as in Listening and speaking in Among Us, then an imposter against that crew, the crew against "
        "that imposter, and so on. Each side continues from its own last phase. Its effect has not been measured.",
        "listen_speak/among_us_in_turn.toml",
        {"name": "Among Us in turn"},
    ),
    "csp": Preset(
        "CSP on questions",
        "Agents that search different corpora answer questions together and imitate what went well. Name a "
        "corpus of the site for each tool of your questions in the section search. Its effect has not been measured.",
        "csp/qa_society.toml",
        {"name": "CSP on questions"},
    ),
    "csp-deanon": Preset(
        "CSP with known helpers",
        "As CSP on questions, but the asker reads which helper gave each answer: an ablation, in which helpers are "
        "expected to learn less about when to hedge. Its effect has not been measured.",
        "csp/qa_society_deanon.toml",
        {"name": "CSP with known helpers"},
    ),
    "csp-action-supervision": Preset(
        "Action supervision on questions",
        "The baseline of CSP without communication: agents alone imitate their best answers, or the actions of their "
        "best hedges. Its effect has not been measured.",
        "csp/qa_society_action_supervision.toml",
        {"name": "Action supervision on questions"},
    ),
    "epo": Preset(
        "EPO on negotiation",
        "A strategist learns to advise a frozen speaker, which moves and speaks at its seat; both seats have one. "
        "Untrained, few strategies change what SmolLM2 says: its effect has not been measured.",
        "epo/negotiation.toml",
        {"name": "EPO on negotiation"},
    ),
    "epo-negotiation-rounds": Preset(
        "EPO on negotiation in rounds",
        "Round 0 learns from the strategies of a script that advises the speaker; then come five rounds of "
        "self-play. Its effect has not been measured.",
        "epo/negotiation_rounds.toml",
        {"name": "EPO on negotiation in rounds"},
    ),
    "epo-dialogue": Preset(
        "EPO on social dialogue",
        "A remote judge lists the strategies that were critical, and scores the dialogues. Its effect has not been "
        "measured.",
        "epo/dialogue.toml",
        {"name": "EPO on social dialogue"},
    ),
    "epo-dialogue-paper": Preset(
        "EPO with the paper’s models and numbers",
        "Llama3-8B learns beside GPT-4-Turbo, with GPT-4o as the judge, in social dialogue. Needs a large GPU, the "
        "dataset SOTOPIA-π and an account for the remote models. Its effect has not been measured.",
        "epo/dialogue_paper.toml",
        {"name": "EPO with the paper’s models and numbers"},
    ),
    "epo-werewolf": Preset(
        "EPO on Werewolf",
        "Every seat has a strategist, which learns from the results within its role. Its effect has not been "
        "measured.",
        "epo/werewolf.toml",
        {"name": "EPO on Werewolf"},
    ),
    "epo-shop": Preset(
        "EPO in the shop",
        "A strategist writes a thought before each click of a frozen customer. Round 0 learns from a script’s "
        "visits; its effect has not been measured.",
        "epo/shop.toml",
        {"name": "EPO in the shop"},
    ),
    "epo-household": Preset(
        "EPO in the household",
        "A strategist writes a thought before each move of a frozen agent. Round 0 learns from a script that "
        "advises it; its effect has not been measured.",
        "epo/household.toml",
        {"name": "EPO in the household"},
    ),
    "werewolf-8-gpus": Preset(
        "OMAR on Werewolf with 8 GPUs",
        "All weights of Qwen3-4B learn to play the wolves, on 2 learner ranks with 6 engines. Needs 8 GPUs of 80 GiB. "
        "Its effect has not been measured.",
        "omar/werewolf_8_gpus.toml",
        {"name": "Werewolf with 8 GPUs"},
    ),
    "werewolf-32-gpus": Preset(
        "OMAR on Werewolf with 4 × 8 GPUs",
        "All weights of Qwen2.5-7B learn to play the wolves, on 8 learner ranks with 24 engines. Needs 4 nodes, each "
        "with 8 GPUs of 80 GiB. Its effect has not been measured.",
        "omar/werewolf_32_gpus.toml",
        {"name": "Werewolf with 4 × 8 GPUs"},
    ),
    "werewolf-sft": Preset(
        "Cold start on Werewolf",
        "Supervised learning on games of Werewolf, recorded ones or a dataset that scripted players have written "
        "(python -m training play werewolf, with --dataset).",
        "sft/werewolf.toml",
    ),
    "sft": Preset(
        "Cold start on conversations",
        "Supervised learning on a dataset's conversations, so that self-play begins with a model that can play.",
        "sft/negotiation.toml",
    ),
    "sft-quick": Preset(
        "Quick imitation",
        "The tiny model imitates conversations about items, in seconds on a CPU core: a demonstration.",
        "sft/quick.toml",
        {"name": "Quick imitation"},
    ),
    "eval": Preset(
        "Head-to-head of two models",
        "Two models play the same scenarios in both seatings; points, agreement and intervals.",
        changes={
            "kind": "eval", "name": "Head-to-head", "model": {"base": "smollm2-135m"},
            "evaluate": {"conversations": 100},
        },
    ),
}  # fmt: skip


def startable() -> Mapping[str, Preset]:
    """The presets that pages offer: those for several GPUs where workers join a cluster, or have as many themselves."""
    joins = bool(os.environ.get("RAY_ADDRESS"))
    return {name: preset for name, preset in PRESETS.items() if joins or _gpus(name) <= devices.gpus_here()}


@cache
def _gpus(name: str) -> int:
    """How many GPUs a preset is for; 0 for one process, which has a GPU or none."""
    section = PRESETS[name].parsed.cluster
    return 0 if section.alone else section.engines * section.tensor_parallel + section.learners


def training_for(game: str, base: str) -> str:
    """The name of a training preset for this game, or of the one to adapt if there is none.

    The quick trial is for its own base model alone.
    """
    configurations = {name: preset.config() for name, preset in PRESETS.items()}
    for name, config in configurations.items():
        fits = name != "quick" or config["model"]["base"] == base
        if fits and config["kind"] == "train" and config["game"]["name"] == game:
            return name
    return "negotiation"


def of_game(config: Mapping[str, Any], game: str) -> dict[str, Any]:
    """The configuration with this game, whose settings it keeps if it had it already: another game has others."""
    return dict(config) if config["game"]["name"] == game else {**config, "game": {"name": game, "settings": {}}}


def as_trained(config: Mapping[str, Any], trained: Mapping[str, Any]) -> dict[str, Any]:
    """A head-to-head's configuration with the game of the run that wrote its model, and with how that run played.

    Of several games it is the first. After supervised learning only the game is known.
    """
    earlier = {**RunConfig().to_dict(), **trained}
    game = earlier["game"]
    if earlier["kind"] != "train":
        return {**config, "game": game}
    if earlier["mixture"]:
        game = {name: earlier["mixture"][0][key] for name, key in (("name", "game"), ("settings", "settings"))}
    sides = ("side", "opposition", "temperature")
    evaluate = {name: value for name, value in earlier["evaluate"].items() if name in sides}
    played = {name: earlier[name] for name in ("sampling", "rollout", "engine")} | {"game": game}
    return {**config, **played, "evaluate": {**config["evaluate"], **evaluate}}


def against(trained: Mapping[str, Any], opponent: str) -> dict[str, Any]:
    """The configuration of a run that looks for the weakness of a checkpoint, its only opponent.

    It plays as the run `trained` did, which wrote the checkpoint; where that run learned certain roles, it has all
    others, so that it meets those, of several sides the last one. Cooperative games are left out. Checkpoints that it
    saves meet the opponent in the table of a league.
    """
    earlier = {**RunConfig().to_dict(), **trained}
    entries = contested(earlier)
    pool = [*earlier["opponents"], *(entry for phase in earlier["phases"] for entry in phase["opponents"] or ())]
    save_every = min(earlier["learn"]["save_every"], max(1, earlier["learn"]["steps"] // 5))
    judged = any(games.lookup(entry["game"]).judged for entry in entries)
    sides = [entry["learner"] for entry in pool if entry["source"] != MIRROR and entry["learner"] != "one"]
    has = {role for entry in entries for role in _roles(entry["game"])}
    seats = (sorted(has - {*sides[-1]}) or sides[-1]) if sides else "one"
    league = LeagueSection(every=0 if judged else save_every, pfsp="none")
    return {
        **earlier,
        "mixture": entries if earlier["mixture"] else [],
        "opponents": [Opponent(source=opponent).to_dict() | {"learner": seats}],
        "phases": [],
        "rollout": {**earlier["rollout"], "random_moves": False},
        "learn": {**earlier["learn"], "save_every": save_every},
        "league": league.to_dict(),
    }


def contested(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The games of a configuration in which an opponent has a weakness: all but cooperative ones."""
    entries = config.get("mixture") or [{"game": config["game"]["name"]}]
    return [entry for entry in entries if not games.lookup(entry["game"]).cooperative]


def exploitable(run: Run | None) -> bool:
    """Whether a run can look for the weakness of a model: of a base model, or one that this run wrote.

    It cannot where the game is cooperative, or not installed any more.
    """
    if run is None:
        return True
    try:
        return bool(contested(run.config if run.kind == Run.Kind.TRAIN else {"game": {"name": run.game}}))
    except BadInput:
        return False


@cache
def _roles(game: str) -> frozenset[str]:
    """The roles in the samples of a game, or in its own start if it has none."""
    spec = games.lookup(game)
    starts = samples.for_game(game) if spec.samples else ()
    if not starts and spec.start is not None:
        starts = (spec.start(spec.players[0]),)
    return frozenset(role for start in starts for role in games.make(start).roles())


@cache
def schema() -> dict[str, Any]:
    """The JSON schema of a run's configuration; do not modify it."""
    return configs.schema()


def with_judge(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with a judge to fill in, if it has none."""
    return {**config, "judge": config.get("judge") or PRESETS["dialogue"].config()["judge"]}


def with_opponents(config: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The configuration with `count` opponents: its first ones, then the learner itself."""
    opponents = config["opponents"][:count]
    return {
        **config,
        "opponents": [*opponents, *(Opponent(source=MIRROR).to_dict() for _ in range(count - len(opponents)))],
    }


def with_labels(config: Mapping[str, Any], count: int, label: str = "", classifier: str = "") -> dict[str, Any]:
    """The configuration with `count` labels in the reward: its first ones, then this one, which may be incomplete."""
    labels = config["reward"]["labels"][:count]
    fields = {name: field.default for name, field in LabelReward.model_fields.items() if name != "label"}
    added = {"label": label, **fields, "classifier": classifier}
    reward = {**config["reward"], "labels": [*labels, *(dict(added) for _ in range(count - len(labels)))]}
    return {**config, "reward": reward}


def offered(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a configuration that the form shows, in the form's order.

    A pool without opponents and a reward without labels are not entered as JSON: the page adds them one by one.
    """
    document: dict[str, Any] = {}
    for section in SECTIONS[config["kind"]]:
        value = deepcopy(config[section])
        for name in ELSEWHERE.get(section, ()):
            value.pop(name, None)
        if value is None or value == {} or (section == "opponents" and not value):
            continue
        if isinstance(value, dict) and "lora" in value and value["lora"] is None:
            del value["lora"]
        if section == "reward" and not value["labels"]:
            del value["labels"]
        document[section] = value
    return document


def merged(config: Mapping[str, Any], entered: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration updated by the form's values; other fields keep their values."""
    result = deepcopy(dict(config))
    for section, value in entered.items():
        under = result.get(section)
        result[section] = {**under, **value} if isinstance(value, dict) and isinstance(under, dict) else value
    return result
