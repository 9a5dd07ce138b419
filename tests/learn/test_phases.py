"""Training in phases: who plays and what changes in each, what stays on disk, and going on to the same bits."""

import asyncio
import gzip
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

from tests.learn.small_runs import another, make_run, stop_at
from tests.toy_models import write_random_llama
from tests.trust.test_kill_resume import final_bits, history, numbers
from training.attempts.start import reopen
from training.errors import BadInput
from training.evaluate.iterations import iterations
from training.games import make
from training.learn import checkpoint, trainer
from training.records import LEARNER, Episode, Scenario
from training.store import dumps, read_lines

VILLAGE = Scenario(id="v", game="werewolf", seats=("A", "B", "C", "D", "E", "F"))
PHASES = [
    {"name": "L", "steps": 2, "learn": {"lr": 5e-4, "kl_coef": 0.0, "critic_warmup": 0}},
    {
        "name": "RL",
        "steps": 2,
        "opponents": [{"source": "phase L", "learner": ["villager"], "partner": "start"}],
        "method": {"advantage": "flat"},
        "learn": {"kl": "k2", "kl_coef": 0.1},
        "reference": "phase L",
    },
    {
        "name": "turn",
        "steps": 2,
        "opponents": [{"source": "phase RL", "learner": ["werewolf"], "partner": "phase L"}],
        "reference": "phase L",
    },
    {
        "name": "return",
        "steps": 2,
        "opponents": [{"source": "phase turn", "learner": ["villager"], "partner": "phase L"}],
        "method": {"advantage": "flat"},
        "begin": "phase RL",
    },
]
RUN = [{"source": "start", "learner": ["villager"], "partner": "start"}]


def make_phased(root, *, opponents=RUN, phases=PHASES, learn=None, **sections):
    """A village of babblers that trains in phases; beside their ends only the last step is saved."""
    rules = "".join(message.text for seat in range(6) for message in make(VILLAGE).observe(seat).messages)
    write_random_llama(root / "model", layers=1, window=16384, known=rules)
    (root / "data.jsonl").write_text(dumps(VILLAGE.to_dict()) + "\n")
    return make_run(
        root,
        game={"name": "werewolf", "settings": {"day_limit": 1, "rounds": 1, "wolf_talk": 0}},
        rollout={"scenarios": 1, "games": 2},
        opponents=opponents,
        phases=phases,
        reward={"malformed": -0.5},
        learn={"steps": 8, "save_every": 8, "keep": 1, "tokens_per_batch": 16384, **(learn or {})},
        **sections,
    )


def episodes(run_dir):
    """The records of all episodes by step, as a reader merges the attempts."""
    records = {}
    for number in run_dir.attempts():
        files = run_dir.attempt(number)
        [began] = [event["step"] for event, _ in read_lines(files.events) if event["kind"] == "started"]
        records = {step: rows for step, rows in records.items() if step <= began}
        for step in {line["step"] for line, _ in read_lines(files.metrics)}:
            with gzip.open(files.episodes(step), "rt") as file:
                records[step] = [json.loads(line) for line in file]
    return records


@pytest.fixture(scope="module", params=[{"rank": 4, "alpha": 8.0}, None], ids=["adapters", "all weights"])
def whole(request, tmp_path_factory):
    """A run in three phases, left in peace."""
    config, run_dir = make_phased(tmp_path_factory.mktemp("whole"), learn={"lora": request.param})
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    return run_dir


def test_each_phase_has_its_players(whole):
    names = [
        ({"start"}, "villager"),
        ({"start", "phase L"}, "villager"),
        ({"phase RL", "phase L"}, "werewolf"),
        ({"phase turn", "phase L"}, "villager"),
    ]
    assert sorted(episodes(whole)) == list(range(1, 9))
    for step, records in episodes(whole).items():
        others, role = names[(step - 1) // 2]
        for record in records:
            episode = Episode.from_dict(record["episode"])
            policies = {trace.seat: trace.policy for trace in episode.traces}
            assert set(policies.values()) - {LEARNER} <= others
            learners = [seat for seat, policy in policies.items() if policy == LEARNER]
            of_role = [seat for seat, seated in enumerate(episode.roles) if seated == role]
            assert set(learners) < set(of_role)  # one of them is the partner's
            for trace, credit in zip(episode.traces, record["credit"], strict=True):
                assert (credit is not None) == (trace.policy == LEARNER)


def test_the_index_names_who_played(whole):
    lines = {(line["step"], line["episode"]): line["summary"] for line, _ in read_lines(whole.attempt(1).index)}
    for step, records in episodes(whole).items():
        for number, record in enumerate(records):
            traces = record["episode"]["traces"]
            policies = lines[step, number]["policies"]
            assert len(policies) == 6
            assert all(policies[trace["seat"]] == trace["policy"] for trace in traces)
            assert traces


def test_the_iterations_of_a_run(whole):
    rows = [(each.phase, each.side, each.opponent, each.partner, each.step) for each in iterations(whole)]
    assert rows == [
        ("L", ("villager",), "start", "start", 2),
        ("RL", ("villager",), "phase L", "start", 4),
        ("turn", ("werewolf",), "phase RL", "phase L", 6),
        ("return", ("villager",), "phase turn", "phase L", 8),
    ]
    games = [(each.begin.games, each.end.games, each.complete) for each in iterations(whole)]
    assert games == [(2, 2, True)] * 4


def test_each_phase_has_its_numbers(whole):
    lines = history(whole)
    assert [line["phase"] for line in lines] == [1, 1, 2, 2, 3, 3, 4, 4]
    # the critic warms up anew in the phases whose critic_warmup is the run's 1, and the rates are those of the phases
    assert [line["lr"] for line in lines] == [5e-4, 5e-4, 0.0, 1e-3, 0.0, 1e-3, 0.0, 1e-3]
    flat = [line for line in lines if line["phase"] in (2, 4)]
    assert all("value_loss_turn" in line for line in lines if line not in flat)
    assert not any("value_loss_turn" in line for line in flat)  # the flat form has one head


def test_the_divergence_is_measured_from_the_reference(whole):
    lines = {line["step"]: line["kl"] for line in history(whole)}
    # before the policy has moved from its reference, the divergence is none but rounding
    assert lines[1] == pytest.approx(0, abs=1e-9)
    assert lines[2] > 1e-6
    assert lines[3] == pytest.approx(0, abs=1e-9)
    assert lines[5] > 1e-6  # still the end of phase L: phase RL has moved from there


def test_a_phase_goes_on_from_the_end_of_an_earlier_one(whole):
    states = {step: checkpoint.read(whole.checkpoint_of(step)) for step in (4, 6, 8)}
    assert states[8].tensors["optimizer.0.step"] == states[4].tensors["optimizer.0.step"] + 1
    versions = {
        number
        for record in episodes(whole)[7]
        for trace in record["episode"]["traces"]
        for _, number in trace.get("versions", ())
    }
    assert versions == {4}, "the games of step 7 were played by the learner of step 4"


def test_the_ends_of_phases_stay_on_disk(whole):
    assert [step for step, _ in whole.attempt(1).checkpoints()] == [2, 4, 6, 8]


def test_a_phase_begins_with_a_new_watchdog_and_the_old_moments(whole):
    windows, updates = {}, {}
    for step in (2, 4, 6, 8):
        state = checkpoint.read(whole.checkpoint_of(step))
        windows[step] = [len(state.data["watchdog"][name]) for name in ("recent", "first")]
        [updates[step]] = {int(count) for name, count in state.tensors.items() if name.endswith(".step")}
    assert windows == {2: [2, 2], 4: [2, 2], 6: [2, 2], 8: [2, 2]}  # the two steps of the phase
    # steps 3, 5 and 7 are those of the critic's warm-up, and the last phase goes on from step 4
    assert updates == {2: 2, 4: 3, 6: 4, 8: 4}


def test_a_phase_changes_the_rate_of_the_value_heads(tmp_path):
    linear = {"kind": "linear"}
    rates = [{}, {"critic_lr": 0.03}, {"lr": 2e-3}, {"lr": 2e-3, "critic_lr": None}]
    phases = [{"name": f"p{number}", "steps": 1, "learn": learn} for number, learn in enumerate(rates)]
    learn = {"critic": linear, "critic_lr": 0.01, "critic_warmup": 0}
    config, run_dir = make_run(tmp_path, steps=4, phases=phases, learn=learn)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert [line["critic_lr"] for line in history(run_dir)] == pytest.approx([0.01, 0.03, 0.01, 0.02])


def test_the_warning_of_an_unwatched_divergence_names_the_phases(tmp_path):
    phases = [
        {"name": "near", "steps": 1},
        {"name": "far", "steps": 1, "learn": {"kl": "none"}},
        {"name": "back", "steps": 1, "learn": {"kl": "k1"}},
        {"name": "last", "steps": 1, "learn": {"kl": "none"}},
    ]
    learn = {"kl": "k2", "kl_measured": False, "critic_warmup": 0}
    config, run_dir = make_run(tmp_path, steps=4, phases=phases, learn=learn)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    assert ["kl" in line for line in history(run_dir)] == [True, False, True, False]
    events = [event for event, _ in read_lines(run_dir.attempt(1).events)]
    [why] = [event["why"] for event in events if event["kind"] == "warning" and "kl_ceiling" in event["why"]]
    assert why.endswith("no KL divergence is measured (phase far, last)")


def test_a_phase_begins_with_a_new_method(tmp_path):
    phases = [{"name": "first", "steps": 4}, {"name": "second", "steps": 4, "method": {"ema_decay": 0.5}}]
    method = {"name": "mars", "baseline": "role_ema"}
    config, run_dir = make_phased(tmp_path, opponents=[], phases=phases, method=method)
    context = trainer.build(config, run_dir, None)
    began = context.method.state_dict()
    context.method.load_state_dict({"means": {"werewolf/0": 1.0}})
    assert context.method.state_dict() != began
    asyncio.run(context.enter(1))
    assert context.method.state_dict() == began
    assert context.method.config.ema_decay == 0.5
    asyncio.run(context.close())


def test_past_selves_come_and_go_with_the_phases(tmp_path):
    sources = ["past", "scripted", "past"]
    phases = [
        {"name": f"p{number}", "steps": 1, "opponents": [{"source": source}]} for number, source in enumerate(sources)
    ]
    config, run_dir = make_run(tmp_path, steps=3, phases=phases, learn={"keep": 1, "critic_warmup": 0})
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    met = [{trace["policy"] for r in rows for trace in r["episode"]["traces"]} for rows in episodes(run_dir).values()]
    assert [policies - {LEARNER} for policies in met[:2]] == [{"past 0"}, set()]  # a script leaves no trace
    [last] = met[2] - {LEARNER}
    assert last in {"past 0", "past 1", "past 2"}


def test_a_run_that_stops_in_every_phase_ends_with_the_same_bits(whole, tmp_path, monkeypatch):
    parts = another(whole, tmp_path)
    # inside the phases; 3 and 7 are just after the ends of two (the next is entered)
    stop_at(monkeypatch, 2, 3, 4, 6, 7, 8)
    assert [trainer.run(reopen(parts), parts)["step"] for _ in range(6)] == [1, 2, 3, 5, 6, 7]
    assert trainer.run(reopen(parts), parts)["result"] == "succeeded"
    assert [numbers(line) for line in history(parts)] == [numbers(line) for line in history(whole)]
    assert final_bits(parts) == final_bits(whole)
    assert episodes(parts) == episodes(whole)
    # the policy does not learn while the critic warms up: after step 7 it is what it was after step 4
    weights = {step: load_file(parts.checkpoint_of(step) / "model.safetensors") for step in (4, 6, 7)}
    assert all(torch.equal(tensor, weights[4][name]) for name, tensor in weights[7].items())
    assert not all(torch.equal(tensor, weights[6][name]) for name, tensor in weights[7].items())


def test_a_partner_that_was_deleted_is_named(whole, tmp_path):
    parts = another(whole, tmp_path)
    config = reopen(parts)
    assert config.past(3) == (2,)
    with pytest.raises(BadInput, match="'phase L' cannot play: the checkpoint after step 2 is not on this machine"):
        trainer.build(config, parts, (2, whole.checkpoint_of(2)))  # what it goes on from is there, what it plays is not


def test_a_phase_whose_beginning_was_deleted_is_named(whole, tmp_path):
    parts = another(whole, tmp_path)
    assert parts.steps() == set()
    for step in (2, 6):
        shutil.copytree(whole.checkpoint_of(step), parts.attempt(1).checkpoint(step))
    assert 4 in reopen(parts).past(7)
    with pytest.raises(BadInput, match="phase 'return' cannot begin: the checkpoint after step 4 is not"):
        trainer.build(reopen(parts), parts, (6, parts.checkpoint_of(6)))
