"""What CONTRIBUTING shows is true: its method runs, and its game's code is the example's."""

import re
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.methods.episodes import scored, trace

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")


def test_the_method_credits_by_hand(tmp_path, monkeypatch):
    [code] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "centred_example.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    method = import_module("centred_example").CentredConfig(scale=2).build()
    traces = [trace(".00.2"), trace("..1", seat=1), trace(".3", seat=1, policy="past 3")]
    [credit] = method.credit([scored(traces, {0: 1.0, 1: 0.5}, rewards=[0.25, 0.0, 0.25, 0.0])])
    assert credit.traces[0].ppo == pytest.approx(np.array([0, 1, 1, 0, 1]) * 2 * (1.5 - 1.0))
    assert credit.traces[1].ppo == pytest.approx(np.array([0, 0, 1]) * 2 * (0.5 - 1.0))
    assert credit.traces[2] is None


def test_the_games_turn_is_that_of_the_example():
    """Comments apart, every line that is shown stands in the example."""
    [code] = re.findall(r"```py\n(.*?)```", TEXT, re.DOTALL)
    game = (ROOT / "examples" / "nim" / "parley_nim" / "game.py").read_text("utf-8")
    lines = [line.split("  #")[0].strip() for line in code.splitlines() if line.strip() != "…"]
    assert len(lines) > 8
    assert [line for line in lines if line not in game] == []


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/glossary.md", "docs/games.md", "README.md", "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    folder = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", (ROOT / page).read_text("utf-8")):
        assert "://" in target or (folder / target).exists(), target


def test_the_hooks_run_what_lint_runs_and_nothing_else():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    [local] = config["repos"]
    assert local["repo"] == "local"  # nothing is fetched
    programs = {hook["entry"].split()[0] for hook in local["hooks"]}
    assert programs == {".venv/bin/ruff", ".venv/bin/mypy", ".venv/bin/lint-imports"}
    assert all((ROOT / program).exists() for program in programs)
