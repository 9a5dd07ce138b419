"""The small parts behind the pages, by hand: sparklines, differences, tints, lineage."""

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.webapp.runs.making import make_checkpoint, make_run
from webapp.core.templatetags.parley import sparkline
from webapp.runs.batches import outcome_of
from webapp.runs.episodes import transcript
from webapp.runs.models import Run
from webapp.runs.summaries import comparing, curves, keymetric


def line_after(steps):
    run = Run(kind="train")
    for step in steps:
        keymetric.add(run, step, {"reward": step, "loss": 0})
    return run.sparkline


def test_a_sparkline_keeps_every_value_as_long_as_there_are_few():
    assert line_after(range(1, 61)) == [1, *range(1, 61)]


def test_a_long_sparkline_keeps_an_even_stride():
    assert line_after(range(1, 62)) == [2, *range(2, 61, 2)]
    assert line_after(range(1, 501)) == [16, *range(16, 501, 16)]


def test_a_step_without_the_metric_keeps_the_others_in_their_places():
    assert line_after([1, 2, 4, 5]) == [1, 1, 2, 2, 4, 5]
    assert line_after([3]) == [1, 3, 3, 3]
    assert keymetric.cut(line_after([1, 2, 4, 5]), 4) == [1, 1, 2, 2, 4]


def test_a_sparkline_is_cut_where_another_attempt_begins():
    line = line_after(range(1, 101))
    assert line == [2, *range(2, 101, 2)]
    assert keymetric.cut(line, 51) == [2, *range(2, 51, 2)]
    assert keymetric.cut([], 5) == []


def test_the_key_metric_depends_on_the_kind():
    assert keymetric.name_of("train", {"loss": 1, "reward": 2}) == "reward"
    assert keymetric.name_of("sft", {"loss": 1, "reward": 2}) == "loss"
    assert (
        keymetric.name_of("eval", {"difference.sotopia.mean": 1, "difference.return": 2}) == "difference.sotopia.mean"
    )
    assert keymetric.name_of("eval", {"shared.agreement": 1}) == "shared.agreement"
    assert keymetric.name_of("serve", {"loss": 1}) is None


@pytest.mark.parametrize(
    "name, title",
    [
        ("kl", "KL divergence from the reference"),
        ("advantage_mean/werewolf", "Mean advantage, werewolf"),
        ("won/seer", "won, seer"),
        ("joint_gain", "joint gain"),
    ],
)
def test_a_metric_has_a_title(name, title):
    assert curves.title(name) == title


def test_metrics_that_need_it_have_an_explanation():
    (learning,) = curves.groups(["discarded", "kl"])
    assert [(m["name"], m["title"]) for m in learning["metrics"]] == [
        ("kl", "KL divergence from the reference"),
        ("discarded", "Probability mass removed by top-p and top-k"),
    ]
    explained = {metric["name"]: metric["explanation"] for metric in learning["metrics"]}
    assert explained["kl"] == ""
    assert "The loss does not account for it" in explained["discarded"]
    assert set(curves.EXPLANATIONS) <= set(curves.TITLES)


def test_a_token_says_among_how_many_it_was_sampled():
    trace = {
        "tokens": [1, 2, 3, 4],
        "mask": [0, 1, 1, 1],
        "turn": [-1, 0, 0, 0],
        "logprobs": [0.0, -0.5, 0.0, -2.0],
        "choices": {"1": [2, 7, 9], "2": [3]},
    }
    read, turn = transcript.stretches(trace, {"advantages": [0.0, 1.0, 1.0, 1.0]}, None)
    assert [token.facts for token in turn.tokens] == [
        "advantage +1.000 · log-prob -0.500 · one of 3 tokens allowed · id 2",
        "log-prob 0.000 · forced: the only token allowed · id 3",
        "advantage +1.000 · log-prob -2.000 · id 4",
    ]
    assert [token.css for token in turn.tokens] == ["up-4", "plain", "up-4"]  # nothing is learned from the forced one
    assert read.tokens[0].css == "masked"


def test_a_turn_says_which_weights_sampled_it():
    trace = {"tokens": [1, 2, 3, 4, 5], "mask": [0, 1, 0, 1, 1], "turn": [-1, 0, -1, 2, 2], "logprobs": [0.0] * 5}
    steps = [(part.turn, part.step) for part in transcript.stretches(trace | {"versions": [[1, 3], [3, 4]]}, {}, None)]
    assert steps == [(None, None), (0, 3), (None, None), (2, 4)]
    assert [part.step for part in transcript.stretches(trace, {}, None)] == [None] * 4


def test_a_sparkline_fills_its_box():
    assert sparkline([1, 0, 1, 2]) == "0.0,15.0 30.0,8.0 60.0,1.0"
    assert sparkline([4, 3, 3]) == "0.0,15.0 60.0,15.0"


def test_differences_name_the_path():
    before, two = {"a": {"b": 1, "c": 2}, "d": []}, {"a": {"b": 1, "c": 3}, "e": None}
    assert comparing.differences([before, two]) == [("a.c", [2, 3]), ("d", [[], "—"]), ("e", ["—", None])]


@pytest.mark.parametrize(
    "advantage, css",
    [(None, "plain"), (0.0, "even"), (0.1, "even"), (0.13, "up-1"), (1.0, "up-4"), (-0.5, "down-2"), (-9.0, "down-4")],
)
def test_a_tint_says_sign_and_size(advantage, css):
    assert transcript.tint(advantage, 1.0) == css


@pytest.mark.parametrize(
    "summary, outcome",
    [
        ({"error": {"kind": "engine"}, "metrics": {"agreement": 1.0}}, "error"),
        ({"metrics": {"agreement": 1.0}}, "agreement"),
        ({"metrics": {"agreement": 0.0}}, "no agreement"),
        ({"metrics": {"end_goal": 0.0, "end_left": 1.0}}, "left"),
        ({"metrics": {}}, ""),
        ({}, ""),
    ],
)
def test_an_outcome_in_words(summary, outcome):
    assert outcome_of(summary) == outcome


def test_a_probes_trace_says_what_it_follows(monkeypatch):
    monkeypatch.setattr(transcript, "tokenizer_of", lambda run: None)
    traces = [
        {"seat": 0, "policy": "learner", "tokens": [1, 2], "mask": [0, 1], "turn": [-1, 0], "logprobs": [0.0, -1.0]},
        {"seat": 0, "policy": "learner", "tokens": [5], "mask": [0], "turn": [-1], "logprobs": [0.0], "prefix": [0, 2]},
    ]
    record = {"episode": {"scenario": {"seats": ["Ann", "Bob"]}, "traces": traces}, "credit": [None, {"nll": [1.0]}]}
    learner, probe = transcript.traces(record, Run())
    assert learner["title"] == "Ann (learner)"
    assert probe["title"] == "Ann (learner, probe after 2 tokens of trace 0)"
    assert [token.facts for part in probe["stretches"] for token in part.tokens] == ["read, not sampled · id 5"]


@pytest.mark.django_db
def test_a_tokenizer_that_was_not_in_the_bucket_yet_is_looked_for_again(researcher, monkeypatch):
    """A checkpoint is shown before all its files are uploaded, or while the bucket is away."""
    run = make_run(researcher, base="")
    checkpoint = make_checkpoint(run, sha256="a" * 64)
    stored: dict[str, bytes] = {}
    monkeypatch.setattr(transcript.files, "local", lambda name: None)
    monkeypatch.setattr(transcript.files, "read_file", stored.get)
    assert transcript.tokenizer_of(run) is None
    words = Tokenizer(WordLevel({"hello": 0, "[UNK]": 1}, unk_token="[UNK]"))
    stored[f"{checkpoint.path}/tokenizer.json"] = words.to_str().encode()
    assert transcript.tokenizer_of(run).decode([0]) == "hello"
