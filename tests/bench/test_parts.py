"""Small parts of the measurements, by hand."""

import asyncio
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bench import miniature
from bench.__main__ import main, parser
from bench.conversation import Generate, _cut, _until_stop
from bench.learning import item
from bench.recorded_conversations import scenarios
from bench.rows import UNWATCHED
from bench.trl_side import per_pass
from training.engines.base import SampleRequest, Sampling
from training.errors import BadInput
from training.games import make
from training.records import Trace
from training.run_sections import StopSection


@pytest.mark.parametrize(
    "samples, longest, tokens, size", [(16, 400, 8192, 16), (16, 1000, 8192, 8), (6, 5000, 100, 1)]
)
def test_samples_of_a_forward_pass(samples, longest, tokens, size):
    assert per_pass(samples, longest, tokens) == size


def test_an_item_scores_exactly_its_completion():
    sample = item([7, 7, 7], [1, 2], 1)
    assert sample.scored().tolist() == [False, False, False, True, True]
    assert sample.credit.ppo.tolist() == [0, 0, 0, 1, 1]
    assert np.array_equal(item([7], [1], 2).credit.ppo, [0, -1])


def test_a_trace_is_cut_at_its_first_reply():
    trace = Trace(
        seat=0, tokens=(1, 2, 3, 4, 5), mask=(0, 0, 1, 0, 1), turn=(-1, -1, 0, -1, 1), logprobs=(0, 0, -1, 0, -2)
    )
    assert _cut(trace) == ((1, 2), (3, 4, 5), (1, 0, 1), (-1, 0, -2))


def test_a_reply_ends_with_its_stop_token():
    assert _until_stop([5, 6, 2, 0, 0], [2]) == (5, 6, 2)
    assert _until_stop([5, 6], [2]) == (5, 6)


def together(model, prompts):
    """Ask for all of these at once; returns the replies and how often the model was asked."""

    async def ask():
        engine = Generate(SimpleNamespace(device="cpu", generate=model))
        requests = [SampleRequest(prompt, Sampling(max_tokens=2), seed=0, stop_token_ids=(9,)) for prompt in prompts]
        replies = await asyncio.gather(*map(engine.sample, requests))
        return [reply.tokens for reply in replies], engine.calls

    return asyncio.run(asyncio.wait_for(ask(), 10))


def test_what_is_asked_at_once_is_one_batch_padded_on_the_left():
    def model(input_ids, attention_mask, **_):
        assert input_ids.tolist() == [[0, 1], [2, 3]]
        assert attention_mask.tolist() == [[0, 1], [1, 1]]
        return torch.cat([input_ids, torch.tensor([[5, 9], [9, 9]])], dim=1)

    assert together(model, [(1,), (2, 3)]) == ([(5, 9), (9,)], 1)


def test_a_model_that_fails_ends_the_measurement():
    def model(**_):
        raise MemoryError("no room")

    with pytest.raises(MemoryError):
        together(model, [(1,), (2,)])


def test_scenarios_differ_and_end_after_the_asked_turns():
    negotiations = scenarios(30, 3)
    assert len({scenario.id for scenario in negotiations}) == 30
    assert all(make(scenario).settings.turn_limit == 6 for scenario in negotiations)


def test_unwatched_names_every_rule_of_the_watchdog():
    assert UNWATCHED.keys() == StopSection.model_fields.keys() - {"average", "patience", "bad_steps"}
    StopSection.from_dict(UNWATCHED)


def test_every_measurement_names_a_module_that_runs():
    from importlib import import_module

    (commands,) = (action.choices for action in parser()._subparsers._group_actions)
    assert {"sampling", "learning", "conversation", "miniature", "pages", "socket", "start"} <= set(commands)
    for command in commands.values():
        module = import_module(command.get_default("module"))
        assert callable(module.main)
        assert callable(module.show)


def test_the_toy_prints_one_object(capfd):
    assert main(["miniature", "toy", "--seeds", "2", "--steps", "6", "--forms", "default,flat", "--json"]) == 0
    result = json.loads(capfd.readouterr().out)
    # by hand, for a blank critic: sqrt(7/8 * 1/8 * 4 * sum(0.81^j, j = 0..7) - signal^2) / signal, with a signal of
    # 0.9^7 * 1/8 * sqrt(7/8); without a discount sqrt(7/8 * 1/8 * 32 / signal^2 - 1) = sqrt(255)
    ratios = {form: result["forms"][form].pop("noise_to_signal") for form in ("default", "flat")}
    assert ratios["flat"]["blank"] == pytest.approx(255**0.5)
    signal = 0.9**7 / 8 * (7 / 8) ** 0.5
    noise = (7 / 64 * 4 * sum(0.81**j for j in range(8)) - signal**2) ** 0.5
    assert ratios["default"]["blank"] == pytest.approx(noise / signal)
    assert ratios["default"]["converged"] == pytest.approx(13**0.5)  # the deciding token alone has an advantage
    assert result["forms"]["default"] | {"seconds": 0} == {
        "steps": [None, None],
        "median": 6,
        "not_reached": 2,
        "mean": 6,
        "interval": [6, 6],
        "n": 2,
        "seconds": 0,
    }
    assert result["steps_minus_default"]["flat"]["mean"] == 0


@pytest.mark.parametrize("wrong", [["--forms", "nonsense"], []], ids=["form", "no directory"])
def test_wrong_input_exits_2(capsys, wrong):
    part = "toy" if wrong else "negotiation"
    assert main(["miniature", part, *wrong]) == 2


def test_an_interrupted_comparison_continues(tmp_path, monkeypatch):
    measured = []

    def measure(form, seed, steps, conversations, folder):
        measured.append((form, seed))
        (folder / "train").mkdir(parents=True)
        if len(measured) == 3:
            raise KeyboardInterrupt
        return {"seed": seed, "difference": {"mean": float(seed)}}

    monkeypatch.setattr(miniature, "_train_and_measure", measure)
    with pytest.raises(KeyboardInterrupt):
        miniature.negotiation(["default", "flat"], 2, 5, 10, tmp_path)
    result = miniature.negotiation(["default", "flat"], 2, 5, 10, tmp_path)
    assert measured == [("default", 0), ("flat", 0), ("default", 1), ("default", 1), ("flat", 1)]
    assert [row["seed"] for row in result["forms"]["flat"]["runs"]] == [0, 1]
    for other, steps, conversations in (("steps_wanted", 6, 10), ("conversations", 5, 11)):
        with pytest.raises(BadInput, match=f"another {other}"):
            miniature.negotiation(["default"], 1, steps, conversations, tmp_path)
