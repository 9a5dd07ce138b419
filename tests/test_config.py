"""The run configuration: every shipped file, every field's description, and errors for wrong values."""

import json
import subprocess
import sys

import pytest

from training import config
from training.config import CONFIGS, RunConfig
from training.errors import BadInput
from training.games import REGISTRY as GAMES
from training.methods import REGISTRY as METHODS

SHIPPED = sorted(CONFIGS.rglob("*.toml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_shipped_configuration_is_what_its_place_says(path, monkeypatch):
    settings, folder = config.load(path), path.parent.name
    if folder == "sft":
        assert settings.kind == "sft"
    else:
        assert settings.kind == "train"
        assert type(settings.method) is METHODS[folder]
        assert settings.method.name == folder
    other = {"quick": "negotiation", "generalist": "tic_tac_toe"}  # of a mixture, game.name is unused
    of_game = [game for game in GAMES if path.stem == game or path.stem.startswith(f"{game}_")]
    assert of_game or path.stem in other, "a configuration is called after its game, with what is special, or quick"
    assert settings.game.name == (of_game[0] if of_game else other[path.stem])
    assert config.parse(settings.to_dict()) == settings
    command = "sft" if folder == "sft" else "run"
    line = f"python -m training {command} training/configs/{folder}/{path.name}"
    assert line in path.read_text(), "a comment at the head of a configuration shows its command line"


def test_every_method_ships_a_configuration():
    assert {path.parent.name for path in SHIPPED} == {*METHODS, "sft"}


def test_every_method_builds():
    for name, kind in METHODS.items():
        method = kind().build()
        assert method.needs.group in {"conversation", "start", "game"}
        assert kind().name == name
        method.load_state_dict(method.state_dict())


def test_every_field_says_what_it_means():
    schema = config.schema()
    silent = []
    for name, node in {**schema["$defs"], "RunConfig": schema}.items():
        for field, described in node.get("properties", {}).items():
            target = schema["$defs"].get(described.get("$ref", "").removeprefix("#/$defs/"), {})
            if not described.get("description", target.get("description")):
                silent.append(f"{name}.{field}")
    assert silent == []


def test_it_loads_without_torch():
    code = (
        "import sys, training.config; sys.exit(any(m in sys.modules for m in ('torch', 'transformers', 'vllm', 'trl')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


JUDGE = {"address": "http://127.0.0.1:1/v1", "model": "m"}
DIALOGUE = {"name": "dialogue"}
FLAT = {"name": "omar", "advantage": "group_relative"}
ZERO = {"name": "omar", "filter": "zero"}
TWO_GAMES = {"mixture": [{"game": "tic_tac_toe"}, {"game": "kuhn_poker"}]}
ROLES_REFUSED = [
    (["one"], 'write "one" in place of the list'),
    (["seer", "One"], 'write "one" in place of the list'),
    (["seer", ""], "not empty"),
    (["seer, villager"], "no comma"),
    (["seer", "seer"], "named twice"),
]


@pytest.mark.parametrize(
    "data, where, why",
    [
        ({"learn": {"lr": -1}}, "learn.lr", "greater than 0"),
        ({"learn": {"lrr": 1}}, "learn.lrr", "there is no such field: did you mean lr?"),
        ({"cluster": {"leaners": 2}}, "cluster.leaners", "did you mean learners?"),
        ({"clusters": {"lag": 1}}, "clusters", "did you mean cluster?"),
        ({"version": True}, "version", "expected 1"),
        ({"version": 1.0}, "version", "expected 1"),
        ({"method": {"name": "omarr"}}, "method.name", "'omar'"),
        ({"method": {"name": "omar", "turn_value": "last_token"}}, "method.turn_value", "its advantage vanishes"),
        ({"method": ZERO, "reward": {"scale": "raw", "malformed": -0.1}}, "method.filter", "use min"),
        ({"method": ZERO, "learn": {"kl": "k1"}}, "method.filter", "use min"),
        ({"method": {"name": "omar", "gama": 1}}, "method.gama", "it has name, advantage, "),
        ({"method": {"gama": 1}}, "method.gama", "it has name, advantage, "),
        ({"game": {"name": "chess"}}, "game.name", "known: among_us, "),
        ({"mixture": [{"game": "chess"}]}, "mixture.0.game", "known: among_us, "),
        ({"game": {"settings": {"highest": 1}}}, "game.settings", "'highest'; it has deal, first_seat, "),
        ({"game": {"settings": {"turn_limit": "5"}}}, "game.settings.turn_limit", "valid integer"),
        ({"game": {"settings": {"turn_limit": 5.0}}}, "game.settings.turn_limit", "valid integer"),
        ({"game": {"name": "werewolf", "settings": {"rounds": True}}}, "game.settings.rounds", "valid integer"),
        ({"game": {"settings": {"turn_limit": 1}}}, "game.settings.turn_limit", "at least 2"),
        ({"game": {"settings": {"deal": {"kind": "price"}}}}, "game.settings.deal.price.title", "required"),
        ({"kind": "eval", "game": {"settings": {"prosocial": "1"}}}, "game.settings.prosocial", "valid number"),
        ({"mixture": [{"game": "werewolf", "settings": {"x": 1}}]}, "mixture.0.settings", "werewolf has no setting"),
        (
            {"mixture": [{"game": "werewolf"}, {"game": "werewolf", "settings": {"reveal": 1}}]},
            "mixture.1.settings.reveal",
            "valid boolean",
        ),
        ({"game": {"name": "dialogue"}}, "judge", "needs a judge"),
        ({"game": DIALOGUE, "reward": {"source": "outcome"}, "judge": JUDGE}, "reward.source", "only a judge"),
        ({"reward": {"judge_filter": True}}, "judge", "needs a judge"),
        ({"engine": {"window": 128}, "sampling": {"max_tokens": 128}}, "engine.window", "whole window"),
        ({"opponents": [{"weight": 2.0, "sorce": "past"}]}, "opponents.0.sorce", "did you mean source?"),
        ({"opponents": [{"source": "past", "learner": "seer"}]}, "opponents.0.learner", "be 'one'; or expected a list"),
        ({"opponents": [{"source": "past", "learner": [5]}]}, "opponents.0.learner.0", "valid string"),
        ({"opponents": [{"source": "past", "learner": []}]}, "opponents.0.learner", "must be at least 1, not 0"),
        *(
            ({"opponents": [{"source": "past", "learner": names}]}, "opponents.0.learner", why)
            for names, why in ROLES_REFUSED
        ),
        ({"opponents": [{"source": "mirror", "learner": ["seer"]}]}, "opponents.0.learner", "plays every seat"),
        ({"opponents": [{"source": "nash"}]}, "opponents.0.source", "nash plays kuhn_poker, not negotiation"),
        ({"opponents": [{"source": "past", "ally": "mcts:9"}]}, "opponents.0.ally", "mcts does not play 'negotiation'"),
        ({**TWO_GAMES, "opponents": [{"source": "mcts:9"}]}, "opponents.0.source", "mcts does not play 'kuhn_poker'"),
        ({"learn": {"list-x": 1}}, "learn.list-x", "there is no such field"),
        ({"reward": {"tuple[x": 1}}, "reward.tuple[x", "there is no such field"),
        ({"function-wrap[x]": 1}, "function-wrap[x]", "there is no such field"),
        ({"learn": {"x" * 500: 1}}, f"learn.{'x' * 80}…", "there is no such field"),
        ({"learn": {"\x1b[31m": 1}}, "learn.\\x1b[31m", "there is no such field"),
        ({"method": {"name": "x" * 500}}, "method.name", f"unknown method '{'x' * 80}'; known"),
        ({"game": {"name": "x" * 90}}, "game.name", f"unknown game '{'x' * 80}'; known"),
        ({"opponents": {"source": "past"}}, "opponents", "expected a list: [...], and of tables [[...]] in TOML"),
        ({"league": []}, "league", "expected a table"),
        ({"learn": {"steps": 10}}, "learn.critic_warmup", "lower learn.critic_warmup, or train for more steps"),
        ({"learn": {"steps": 10, "critic_warmup": 4, "warmup": 6}}, "learn.warmup", "6 of the 6 steps"),
        ({"learn": {"steps": 5, "warmup": 5}, "method": FLAT}, "learn.warmup", "lower learn.warmup, or train"),
        ({"learn": {"lora": {"dropout": 0.1}}}, "learn.lora.dropout", "another than the sampled one"),
        ({"judge": {**JUDGE, "secret": "hunter2"}}, "judge.secret", "never the key itself"),
        ({"kind": "eval", "evaluate": {"judge": True}}, "judge", "address and model"),
        ({"evaluate": {"judge": True, "every": 1}}, "judge", "address and model"),
        ({"sampling": {"temperature": 0}}, "sampling.temperature", "greater than 0"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named(data, where, why):
    with pytest.raises(BadInput) as caught:
        config.parse(data, "run.toml")
    assert caught.value.where == f"run.toml: {where}"
    assert why in caught.value.why


@pytest.mark.parametrize(
    "game, settings",
    [
        ("negotiation", {"turn_limit": 4, "first_seat": None, "prosocial": 1}),  # 1 is a number; the deal stays
        (
            "werewolf",
            {"deal": ["werewolf", "seer", "villager"]},
        ),  # fits the roles of the scenario, not the default ones
        ("dialogue", {"fixed_order": [0, 1, 1]}),  # the scenario says that the order is random
        ("among_us", {"deal": {"imposter": 0, "tasks": [[], [[2, 0]]]}}),
        ("hanabi", {"size": "simple"}),
    ],
)
def test_settings_of_a_game_may_be_a_few_that_fit_its_scenarios(game, settings):
    assert config.parse({"kind": "eval", "game": {"name": game, "settings": settings}}).game.settings == settings
    assert config.parse({"mixture": [{"game": game, "settings": settings}], "judge": JUDGE}).mixture[0].game == game


@pytest.mark.parametrize("limit", ["5", 5.0])
def test_a_stored_run_may_have_settings_that_its_game_converts(tmp_path, limit):
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"game": {"settings": {"turn_limit": limit}}}), "utf-8")
    assert config.load(file, stored=True).game.settings == {"turn_limit": limit}
    with pytest.raises(BadInput, match="valid integer"):
        config.load(file)
    file.write_text(json.dumps({"game": {"settings": {"turn_limit": "five"}}}), "utf-8")
    with pytest.raises(BadInput, match=r"game\.settings\.turn_limit"):
        config.load(file, stored=True)


def test_a_judged_reward_may_be_negative_unless_it_is_scaled():
    judged = {"game": DIALOGUE, "judge": JUDGE, "method": ZERO}
    assert config.parse(judged).reward_low == 0.0
    with pytest.raises(BadInput, match=r"-4\.28571"):  # (0 + 0 + 0 − 10 − 10 − 5 − 5) / 7
        config.parse({**judged, "reward": {"scale": "raw"}})


def test_files_that_cannot_be_read(tmp_path):
    for name, text, why in (
        ("a.toml", "x = ", "not valid TOML"),
        ("a.json", "{", "not valid JSON"),
        ("deep.json", "[" * 100_000, "not valid JSON: nested too deeply"),
        ("list.json", "[1]", "expected an object"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(BadInput, match=why) as caught:
            config.load(tmp_path / name)
        assert caught.value.where == str(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read"):
        config.load(tmp_path / "none.toml")


def test_toml_says_none_by_false(tmp_path):
    (tmp_path / "a.toml").write_text("[learn]\nlora = false\n[sft]\nlora = false\n")
    settings = config.load(tmp_path / "a.toml")
    assert settings.learn.lora is None
    assert settings.sft.lora is None


def test_a_head_to_head_samples_as_training_does_by_default(tmp_path):
    data = {"sampling": {"temperature": 0.7}}
    resolved = config.resolve(config.parse(data), tmp_path)
    assert resolved.evaluate.temperature == resolved.head_to_head_sampling.temperature == 0.7
    resolved = config.resolve(config.parse({**data, "evaluate": {"temperature": 1.0}}), tmp_path)
    assert resolved.head_to_head_sampling.temperature == 1.0


@pytest.mark.parametrize(
    "evaluate, kind, common",
    [
        ({"opponent": "random"}, "train", "tiny"),  # what the run started from
        ({"model": "scripted", "opponent": "random"}, "eval", "tiny"),
        ({"opponent": "random"}, "eval", "random"),  # the base itself is measured
        ({"opponent": "random", "common": "scripted"}, "eval", "scripted"),
    ],
)
def test_the_common_opponent_is_the_start_unless_that_is_measured(tmp_path, evaluate, kind, common):
    data = {"kind": kind, "model": {"base": "tiny"}, "evaluate": {**evaluate, "side": ["werewolf"]}}
    resolved = config.resolve(config.parse(data), tmp_path)
    assert resolved.evaluate.common == resolved.common_opponent == common


def test_resolving_leaves_nothing_open(tmp_path):
    (tmp_path / "starts.jsonl").write_text("")
    (tmp_path / "model").mkdir()
    (tmp_path / "tiny").mkdir()
    settings = config.resolve(
        config.parse({"data": {"path": "starts.jsonl"}, "model": {"base": "model"}, "learn": {"lr": 0.5}}), tmp_path
    )
    assert settings.learn.critic_lr == 5.0
    assert settings.engine.name in {"vllm", "transformers"}
    assert settings.data.path == str(tmp_path / "starts.jsonl")
    assert settings.model.base == str(tmp_path / "model")
    assert (settings.evaluate.model, settings.evaluate.opponent) == ("", "")
    against = config.resolve(config.parse({"evaluate": {"opponent": "model", "model": "tiny"}}), tmp_path).evaluate
    assert (against.model, against.opponent) == ("tiny", str(tmp_path / "model"))
    assert config.resolve(RunConfig(), tmp_path).model.base == RunConfig().model.base
    with pytest.raises(BadInput, match="no such file") as caught:
        config.resolve(config.parse({"data": {"path": "none.jsonl"}}), tmp_path)
    assert caught.value.where == "data.path"


def test_roles_without_effect_are_read_in_a_run_that_has_them():
    data = {"opponents": [{"source": "mirror", "learner": ["seer"]}]}
    assert config.parse(data, stored=True).opponents[0].learner == ("seer",)


LEAGUE = {"league": {"every": 10}, "opponents": [{"source": "past"}]}


@pytest.mark.parametrize(
    "changes, where, why",
    [
        ({"opponents": []}, "opponents", "a league needs opponents"),
        ({"opponents": [{"source": "mirror"}]}, "opponents", "a league needs opponents"),
        ({"league": {"every": 15}}, "league.every", "a multiple of that"),
        ({"league": {"every": 60}}, "league.every", "ends after 50 steps"),
        ({"league": {"every": 10, "pfsp": "squared"}}, "league.pfsp", "'none', 'hard' or 'variance'"),
        ({"league": {"every": 10, "games": 1}}, "league.games", "at least 2"),
        (
            {"game": {"name": "dialogue"}, "judge": {"address": "http://h/v1", "model": "m"}},
            "league.every",
            "no result of its own",
        ),
    ],
)
def test_a_league_that_cannot_work_is_refused(changes, where, why):
    config.parse(LEAGUE)
    with pytest.raises(BadInput, match=why) as caught:
        config.parse(LEAGUE | changes)
    assert caught.value.where == where


def test_a_forfeit_pays_nothing_only_where_it_ends_the_game():
    wanted = {"game": {"name": "werewolf"}, "reward": {"forfeit": "nothing"}}
    with pytest.raises(BadInput, match="does not end the game") as refused:
        config.parse(wanted)
    assert refused.value.where == "reward.forfeit"
    config.parse({**wanted, "game": {"name": "kuhn_poker"}})


def test_the_games_of_a_league_are_counted_without_listing_its_steps():
    league = {"league": {"every": 10, "games": 8}, "learn": {"steps": 40, "save_every": 5, "critic_warmup": 0}}
    counted = config.parse({**league, "rollout": {"past_saved": 4}, "opponents": [{"source": "past"}]})
    # after 0, 10, 20, 30 and 40 steps 0, 2, 3, 3 and 3 earlier saved steps play in both roles, and each itself
    assert counted.league_games == (2 * (0 + 2 + 3 + 3 + 3) + 5) * 8
    named = config.parse({**league, "opponents": [{"source": "scripted"}, {"source": "mirror"}]})
    assert named.league_games == 5 * 8
