"""Plugins of installed distributions: discovered by entry points, loaded lazily, isolated from each other."""

import importlib
import logging
import subprocess
import sys
import textwrap
import time
import types
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.games.cases.negotiation import items
from training import config, players
from training.errors import BadInput
from training.plugins import Registry


def check(name, loaded):
    if not isinstance(loaded, int):
        raise BadInput("is no number")
    return loaded


def install(folder, distribution, group, points, code=""):
    """A distribution as pip leaves it: a module and its metadata."""
    module = distribution.replace("-", "_")
    (folder / f"{module}.py").write_text(textwrap.dedent(code))
    info = folder / f"{module}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = [f"{name} = {module}:{target}" for name, target in points.items()]
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines]) + "\n")


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    return tmp_path


def registry():
    return Registry("parley.tests", {"one": 1}, check)


def test_entries_of_distributions_follow_the_built_in_ones_by_name(site):
    install(site, "numbers-b", "parley.tests", {"three": "THREE"}, "THREE = 3")
    install(site, "numbers-a", "parley.tests", {"zero": "ZERO", "four": "FOUR"}, "ZERO, FOUR = 0, 4")
    assert dict(registry()) == {"one": 1, "four": 4, "three": 3, "zero": 0}
    assert list(registry()) == ["one", "four", "three", "zero"]


def test_nothing_is_imported_before_somebody_asks_for_it(site):
    install(site, "late-comer", "parley.tests", {"late": "LATE"}, "LATE = 9")
    made = registry()
    assert made["one"] == 1
    assert "late_comer" not in sys.modules
    assert made["late"] == 9
    assert "late_comer" in sys.modules


@pytest.mark.parametrize(
    "code, target, why",
    [
        ("raise RuntimeError('boom')", "X", "cannot be loaded: RuntimeError: boom"),
        ("import no_such_module", "X", "cannot be loaded: ModuleNotFoundError"),
        ("", "X", "cannot be loaded: AttributeError"),
        ("X = 'text'", "X", "is no number"),
    ],
)
def test_a_broken_plugin_is_left_out_and_named(site, caplog, code, target, why):
    install(site, "good-one", "parley.tests", {"two": "TWO"}, "TWO = 2")
    install(site, "bad-one", "parley.tests", {"bad": target}, code)
    sys.modules.pop("bad_one", None)
    made = registry()
    with caplog.at_level(logging.WARNING, "training.plugins"):
        assert dict(made) == {"one": 1, "two": 2}
    assert "bad" not in made
    [line] = [record.getMessage() for record in caplog.records if record.name == "training.plugins"]
    assert "'bad' of bad-one 1.0" in line
    assert why in line
    with pytest.raises(BadInput, match=r"'bad' of bad-one 1\.0") as refusal:
        made.refuse("bad", "unknown", "field")
    assert why in str(refusal.value)
    with pytest.raises(BadInput, match="field: unknown"):
        made.refuse("worse", "unknown", "field")


def test_a_built_in_name_is_not_replaced(site):
    install(site, "thief", "parley.tests", {"one": "ONE"}, "ONE = 100")
    made = registry()
    assert dict(made) == {"one": 1}
    assert "thief" not in sys.modules


def test_two_distributions_with_one_name_are_both_refused(site):
    for distribution in ("twin-a", "twin-b"):
        install(site, distribution, "parley.tests", {"same": "SAME"}, "SAME = 5")
    made = registry()
    assert "same" not in made
    with pytest.raises(BadInput, match=r"twin-a 1\.0 and twin-b 1\.0.*uninstall all but one"):
        made.refuse("same", "", "")


def test_a_name_that_would_not_fit_an_address_is_refused(site):
    install(site, "odd", "parley.tests", {"a/b": "X", "Upper": "X", "x" * 41: "X"}, "X = 1")
    assert dict(registry()) == {"one": 1}


def test_a_player_of_another_distribution_sits_by_its_name(site, monkeypatch):
    code = """
        from training.players.random import RandomPlayer
        def quiet(scenario, seat):
            return RandomPlayer()
        """
    installed = dict(players.NAMES)  # before the new distribution is there, which must not stay in the registry
    install(site, "quiet-player", "parley.players", {"quiet": "quiet"}, code)
    names = Registry("parley.players", installed, players._check)
    monkeypatch.setattr(players, "NAMES", names)
    assert players.known("quiet")
    assert players.make("quiet", items(), 0).traces() == ()
    assert players.facts("quiet") == {"kind": "quiet"}


def test_a_player_of_another_distribution_speaks_where_it_reads_strategies(site, monkeypatch):
    code = """
        from training.players.random import RandomPlayer
        def obedient(scenario, seat):
            return RandomPlayer()
        def deaf(scenario, seat):
            return RandomPlayer()
        obedient.reads_strategies = True
        """
    installed = dict(players.NAMES)
    install(site, "voices", "parley.players", {"obedient": "obedient", "deaf": "deaf"}, code)
    monkeypatch.setattr(players, "NAMES", Registry("parley.players", installed, players._check))
    assert players.speakers() == ["follower:N", "obedient"]
    assert config.parse({"speaker": {"source": "obedient"}}).speaker.source == "obedient"
    with pytest.raises(BadInput, match="deaf reads no strategies: name follower:N, obedient, a model or an address"):
        config.parse({"speaker": {"source": "deaf"}})


def test_a_thread_waits_for_the_plugins_that_another_one_imports(site):
    code = """
        import time
        time.sleep(0.5)
        SLOW = 7
        """
    install(site, "slow-one", "parley.tests", {"slow": "SLOW"}, code)
    made = registry()
    with ThreadPoolExecutor() as pool:
        first = pool.submit(list, made)
        time.sleep(0.1)
        assert made.get("slow") == 7
        assert first.result() == ["one", "slow"]


def test_a_plugin_may_read_the_registry_that_it_extends(site, monkeypatch):
    made = registry()
    monkeypatch.setitem(sys.modules, "extended", types.SimpleNamespace(made=made))
    install(site, "reader", "parley.tests", {"two": "TWO"}, "from extended import made\nTWO = len(made) + 1")
    assert dict(made) == {"one": 1, "two": 2}


GAME = """
    from dataclasses import replace
    from training.games.negotiation import SPEC as NEGOTIATION
    from training.text.messages import chat
    SPEC = replace(NEGOTIATION, name="haggling", actions=("haggle",))
    """


@pytest.mark.parametrize("first", ["training.text.messages", "training.games"])
def test_players_read_the_tags_of_a_games_plugin_whatever_is_imported_first(tmp_path, site, first):
    """In processes of their own, because modules are imported once."""
    install(tmp_path, "haggling-game", "parley.games", {"haggling": "SPEC"}, GAME)
    code = f"""
        import sys
        sys.path.insert(0, {str(tmp_path)!r})
        import {first}
        from training.games import REGISTRY
        from training.text.messages import neutralise
        assert "haggling" in REGISTRY
        assert neutralise("<haggle> <haggled>") == "<haggle> < haggled>"
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


METHOD = """
    from typing import Literal
    from pydantic import Field, model_validator
    from training.methods.base import MethodConfig
    from training.records import EpisodeCredit, Needs
    class Nothing:
        needs = Needs()
        def credit(self, group):
            return [EpisodeCredit(traces=[None] * len(scored.episode.traces)) for scored in group]
        def state_dict(self):
            return {}
        def load_state_dict(self, state):
            pass
    class NothingConfig(MethodConfig):
        name: Literal["nothing"] = "nothing"
        strength: float = Field(default=1.0, description="Not used.")
        @model_validator(mode="after")
        def bounded(self):
            if self.strength > 2:
                raise ValueError("too strong")
            return self
        def build(self):
            return Nothing()
    """
CONFIGURED = """
    from training import config
    made = config.parse({"method": {"name": "nothing", "strength": 0.5}})
    assert type(made.method).__name__ == "NothingConfig" and made.method.strength == 0.5
    assert config.parse(made.to_dict()) == made
    assert type(config.parse({}).method).__name__ == type(config.parse({"method": {}}).method).__name__ == "OmarConfig"
    assert type(config.parse({"method": {"gamma_turn": 0.5}}).method).__name__ == "OmarConfig"
    for name, field in (("nothing", "strength"), ("omar", "gamma"), ("other", "name")):
        try:
            config.parse({"method": {"name": name, field: "much" if field != "name" else name}})
        except config.BadInput as error:
            assert error.where == f"method.{field}", error.where
        else:
            raise AssertionError(name)
    try:
        config.parse({"method": {"name": "nothing", "strength": 3}})
    except config.BadInput as error:
        assert "too strong" in error.why, error.why
    else:
        raise AssertionError("too strong")
    described = config.schema()["properties"]["method"]["discriminator"]
    assert described["propertyName"] == "name"
    assert set(described["mapping"]) == set(config.REGISTRY)
    assert described["mapping"]["omar"] == "#/$defs/OmarConfig"
    assert described["mapping"]["nothing"] == "#/$defs/NothingConfig"
    """


def test_a_method_of_another_distribution_is_configured_by_its_name(tmp_path, site):
    """In a process of its own, because the sections of a run are put together once."""
    install(tmp_path, "do-nothing", "parley.methods", {"nothing": "NothingConfig"}, METHOD)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(CONFIGURED)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


NAMESAKES = """
    from training import config
    schema = config.schema()
    mapping = schema["properties"]["method"]["discriminator"]["mapping"]
    fields = {
        name: set(schema["$defs"][reference.removeprefix("#/$defs/")]["properties"])
        for name, reference in mapping.items()
    }
    assert fields["first"] == {"name", "one"} and fields["second"] == {"name", "two"}, fields
    assert "gamma_turn" in fields["omar"] and fields["copied"] == fields["omar"], fields
    assert type(config.parse({"method": {"name": "copied"}}).method).__module__ == "a_copy"
    """


def test_methods_whose_classes_share_a_name_are_told_apart(tmp_path, site):
    """Two classes `Config`, and a copy of the built-in method under its class's name."""
    for method, field in (("first", "one"), ("second", "two")):
        code = f"""
            from typing import Literal
            from training.methods.base import MethodConfig
            class Config(MethodConfig):
                name: Literal["{method}"] = "{method}"
                {field}: int = 1
            """
        install(tmp_path, f"the-{method}", "parley.methods", {method: "Config"}, code)
    code = """
        from typing import Literal
        from training.methods import omar
        class OmarConfig(omar.OmarConfig):
            name: Literal["copied"] = "copied"
        """
    install(tmp_path, "a-copy", "parley.methods", {"copied": "OmarConfig"}, code)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(NAMESAKES)}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
