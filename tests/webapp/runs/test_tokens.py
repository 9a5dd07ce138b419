"""The page of a conversation's tokens: its prompt, its margin and its numbers."""

import json
import re

import pytest
from django.urls import reverse

from tests.webapp.runs.making import RECORD, make_episode, make_run
from webapp.runs.episodes import transcript


@pytest.fixture
def tokens_page(client, researcher):
    """The page of an episode whose trace and credit are changed so."""
    client.force_login(researcher)

    def show(returns=(1.0, 0.25), credit=(), **trace):
        record = json.loads(json.dumps(RECORD))
        record["episode"]["traces"][0] |= trace
        record["credit"][0] |= dict(credit)
        record["returns"] = dict(zip("01", returns, strict=True))
        run = make_run(researcher, base="none")
        make_episode(run, record=record)
        return client.get(reverse("runs:tokens", args=[run.pk, 1, 0])).content.decode()

    return show


def longer(before):
    """The fields of the usual trace with so many tokens of a prompt."""
    (trace,) = RECORD["episode"]["traces"]
    kept = {name: trace[name][1:] for name in ("tokens", "mask", "turn", "logprobs")}
    read = {"tokens": 7, "mask": 0, "turn": -1, "logprobs": 0.0}
    return {name: [read[name]] * before + values for name, values in kept.items()}


def longer_credit(before):
    return {"advantages": [0.0] * before + [0.8, -0.4, 0.0], "values": {}, "logprobs": [0.0] * (before + 3)}


@pytest.mark.django_db
@pytest.mark.parametrize("before, words", [(1, "1 token"), (312, "312 tokens")])
def test_what_was_read_before_the_first_sampled_token_is_folded(tokens_page, before, words):
    shown = tokens_page(**longer(before), credit=longer_credit(before))
    ((prompt, rest),) = re.findall(r'<details class="prompt">(.*?)</details>(.*)', shown, re.DOTALL)
    assert prompt.startswith(f"<summary>Prompt: {words}</summary>")
    assert prompt.count('class="tk masked"') == before
    assert [rest.count(f'class="tk {css}"') for css in ("up-4", "down-2", "masked")] == [1, 1, 1]


@pytest.mark.django_db
@pytest.mark.parametrize("mask", [[1, 1, 1, 0], [0, 0, 0, 0]])
def test_nothing_is_folded_without_a_prompt_or_without_a_sampled_token(tokens_page, mask):
    shown = tokens_page(mask=mask, turn=[0 if sampled else -1 for sampled in mask])
    assert "<details class=" not in shown[shown.index('class="trace"') :]
    assert shown.count('class="tk masked" title') == mask.count(0)


def test_the_margin_is_three_short_lines():
    assert transcript.Stretch(3, -0.0421, 18).notes == ["turn 3", "advantage -0.0421", "weights: step 18"]
    assert transcript.Stretch(0, -0.0, 0).notes == ["turn 0", "advantage 0", "weights: step 0"]
    assert transcript.Stretch(4, None).notes == ["turn 4"]
    assert transcript.Stretch(None, None).notes == []


@pytest.mark.django_db
def test_no_number_of_the_page_is_minus_zero(tokens_page):
    numbers = [0.0, -0.0002, -0.4, 0.0]
    credit = {
        "advantages": numbers,
        "logprobs": numbers,
        "reference": numbers,
        "entropy": numbers,
        "values": {"token": numbers},
        "turn_advantages": {"0": -0.1},
    }
    shown = tokens_page(returns=(-0.5, -0.0), credit=credit, logprobs=numbers)
    assert "<p>Ann: -0.5 · Bob: 0</p>" in shown
    assert "<span>advantage -0.1</span>" in shown
    line = "log-prob {0} · trainer {0} · reference {0} · entropy {0} · value (token) {0}"
    assert f'title="advantage 0.000 · {line.format("0.000")} · id 2"' in shown
    assert f'title="advantage -0.400 · {line.format("-0.400")} · id 3"' in shown
