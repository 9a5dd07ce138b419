"""A head-to-head as a run: its files, its conditions and its failures."""

import gzip
import json

import pytest

from tests.games.cases.werewolf import dealt
from tests.rewards.samples import dialogue, negotiation
from tests.stub import Status, Stub
from tests.toy_models import write_random_llama
from training import config as configs
from training.attempts.start import start
from training.errors import BadInput
from training.evaluate.run import run
from training.records import Episode, Scenario
from training.rundir import RunDir
from training.store import read_lines


@pytest.fixture
def head_to_head(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    data = tmp_path / "starts.jsonl"

    def hold(evaluate, start_from=None, **sections):
        start_from = start_from or negotiation(turn_limit=4)
        starts = [start_from.model_copy(update={"id": f"n{i}", "seed": i}) for i in range(3)]
        data.write_text("".join(json.dumps(s.to_dict()) + "\n" for s in starts))
        number = len(list(tmp_path.glob("run*")))
        run_dir = RunDir(tmp_path / f"run{number}")
        wanted = {"kind": "eval", "data": {"path": str(data)}, "engine": {"name": "transformers"}, **sections}
        wanted["evaluate"] = {"conversations": 6, **evaluate}
        wanted = {"model": {"base": "tiny", "device": "cpu"}, "sampling": {"max_tokens": 8}, **wanted}
        config = start(configs.parse(wanted), run_dir, tmp_path)
        return run(config, run_dir), run_dir.attempt(1)

    return hold


def test_scripted_against_random(head_to_head):
    result, attempt = head_to_head({"model": "scripted", "opponent": "random"})
    assert (result["result"], result["exit"]) == ("succeeded", 0)
    written = json.loads((attempt.root / "evaluation.json").read_text())
    assert written["summary"] == result["summary"]
    assert written["summary"]["used"] == 6
    conditions = written["conditions"]
    assert conditions["conversations"] == 6
    assert len(conditions["scenarios"]["sha256"]) == 64
    assert conditions["command"].startswith("python -m training eval")
    assert conditions["judge"] is None
    with gzip.open(attempt.episodes(0), "rt") as file:
        episodes = [json.loads(line) for line in file]
    assert len(episodes) == 6
    assert [e["seats"] for e in episodes[:2]] == [{"a": [0], "b": [1]}, {"a": [1], "b": [0]}]
    assert all(Episode.from_dict(e["episode"]).error is None for e in episodes)
    assert len([line for line, _ in read_lines(attempt.index)]) == 6
    assert json.loads(attempt.status.read_text())["phase"] == "finished"
    kinds = [line["kind"] for line, _ in read_lines(attempt.events)]
    assert kinds == ["started", "evaluation", "finished"]


def test_the_same_seed_finds_the_same(head_to_head):
    first, again = (head_to_head({"model": "scripted", "opponent": "random"}, seed=4)[0] for _ in range(2))
    assert first["summary"] == again["summary"]


def test_a_model_against_itself_shares_one_engine(head_to_head, tmp_path):
    folder = write_random_llama(tmp_path / "llama", window=4096)
    result, attempt = head_to_head({"model": str(folder)}, model={"base": str(folder), "device": "cpu"})
    assert result["result"] == "succeeded"
    conditions = json.loads((attempt.root / "evaluation.json").read_text())["conditions"]
    assert conditions["a"]["sha256"] == conditions["b"]["sha256"]
    assert list(conditions["a"]["sha256"]) == ["model.safetensors"]
    assert result["summary"]["a"]["parse_rate"]["n"] == 3


@pytest.mark.parametrize("window, sampling", [(128, {"max_tokens": 128}), (4096, {"max_tokens": 3, "constrain": True})])
@pytest.mark.parametrize("seat", ["model", "opponent"])
def test_replies_that_cannot_be_sampled_are_refused(head_to_head, tmp_path, window, sampling, seat):
    """Where the engine has no room for a prompt, and where a legal move is longer than a reply."""
    names = {"model": "nash", "opponent": "nash"} | {seat: str(write_random_llama(tmp_path / "llama", window=window))}
    kuhn = Scenario(id="k", game="kuhn_poker", seats=("A", "B"))
    with pytest.raises(BadInput) as caught:
        head_to_head(names, start_from=kuhn, game={"name": "kuhn_poker"}, sampling=sampling)
    assert caught.value.where == "sampling.max_tokens"
    assert not list(tmp_path.glob("run*/attempts/*"))


def test_probes_are_kept_with_the_episodes_and_change_nothing(head_to_head, tmp_path):
    folder = str(write_random_llama(tmp_path / "llama", window=4096))
    village = dealt("villager", "werewolf", "villager", probes=True, day_limit=1, wolf_talk=0)
    wanted = {"model": folder, "conversations": 2, "side": ["werewolf"]}
    recorded = []
    for probes in (True, False):
        sections = {
            "model": {"base": folder, "device": "cpu"},
            "rollout": {"probes": probes},
            "game": {"name": "werewolf"},
        }
        _, attempt = head_to_head(wanted, start_from=village, **sections)
        with gzip.open(attempt.episodes(0), "rt") as file:
            recorded.append([Episode.from_dict(json.loads(line)["episode"]) for line in file])
    asked, unasked = recorded
    assert [episode.moves for episode in asked] == [episode.moves for episode in unasked]
    assert not any(episode.beliefs for episode in unasked)
    for episode in asked:
        assert episode.beliefs
        assert all(sum(belief.probabilities.values()) == pytest.approx(1) for belief in episode.beliefs)


def test_wolves_meet_a_common_village_by_default(head_to_head):
    village = dealt("villager", "werewolf", "villager", day_limit=1, wolf_talk=0)
    sections = {"start_from": village, "game": {"name": "werewolf"}, "model": {"base": "random", "device": "cpu"}}
    side = {"model": "scripted", "opponent": "random", "side": ["werewolf"]}
    conditions, seats = {}, {}
    for opposition in ("common", "each_other"):
        _, attempt = head_to_head({**side, "opposition": opposition}, **sections)
        conditions[opposition] = json.loads((attempt.root / "evaluation.json").read_text())["conditions"]
        with gzip.open(attempt.episodes(0), "rt") as file:
            seats[opposition] = json.loads(file.readline())["seats"]
    assert seats == {"common": {"a": [1], "b": [], "common": [0, 2]}, "each_other": {"a": [1], "b": [0, 2]}}
    assert conditions["common"]["common"]["title"] == "random"  # model.base, what the run starts from
    assert "common opponent" in conditions["common"]["seats"]
    assert "common" not in conditions["each_other"]
    assert "Student's t over scenarios" in conditions["common"]["intervals"]


def test_a_remote_side(head_to_head, monkeypatch):
    with Stub("Let us share.") as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        result, _ = head_to_head({"model": f"{stub.url} stub", "opponent": "scripted"})
        assert result["summary"]["a"]["parse_rate"]["mean"] > 0
        assert stub.requests[0].messages[0]["role"] == "system"
        stub.answer = Status(404)
        result, attempt = head_to_head({"model": f"{stub.url} stub", "opponent": "scripted"})
        assert (result["result"], result["exit"]) == ("failed", 1)
        assert "the first of 6 errors: stub at " in result["why"]
        summary = json.loads((attempt.root / "evaluation.json").read_text())["summary"]
        assert (summary["used"], summary["difference"]) == (0, {})


def test_a_judge_adds_twelve_dimensions(head_to_head, monkeypatch):
    def answer(body):
        form = json.loads(body["messages"][0]["content"].splitlines()[-1])
        form["values"] = {name: {"value": 0} for name in form["values"]}
        return json.dumps(form)

    with Stub(answer) as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        judge = {"address": stub.url, "model": "stub"}
        result, _ = head_to_head({"model": "scripted", "opponent": "random", "judge": True}, judge=judge)
    names = {name for name in result["summary"]["difference"] if "." in name and not name.endswith("mean")}
    assert len(names) == 12
    assert result["summary"]["scored"] == {"sotopia": 12, "fine-grained": 12}


@pytest.mark.parametrize("code", [200, 500])
def test_judge_and_remote_side_are_closed_at_the_end(head_to_head, monkeypatch, code):
    from training.engines.remote.chat import RemoteModel

    made, closed = [], set()
    close = RemoteModel.close
    init = RemoteModel.__init__

    def noted(self, *args, **kwargs):
        init(self, *args, **kwargs)
        made.append(self)

    async def counted(self):
        await close(self)
        closed.add(self)

    monkeypatch.setattr(RemoteModel, "__init__", noted)
    monkeypatch.setattr(RemoteModel, "close", counted)
    with Stub("Hello." if code == 200 else Status(code)) as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        judge = {"address": stub.url, "model": "stub", "retries": 0}
        head_to_head({"model": f"{stub.url} stub", "opponent": "scripted", "judge": True}, judge=judge)
    assert len(made) == 2
    assert closed == set(made)


def test_a_watcher_sees_loading_and_every_reply(head_to_head, tmp_path, monkeypatch):
    from training.attempts.progress import Progress
    from training.evaluate import run as runs

    seen, beats = [], []
    opened = runs.ContestantPool.open

    def watched(self, source, policy):
        seen.append(json.loads((tmp_path / "run0/attempts/0001/status.json").read_text())["phase"])
        return opened(self, source, policy)

    monkeypatch.setattr(runs.ContestantPool, "open", watched)
    monkeypatch.setattr(Progress, "beat", lambda self, **facts: beats.append((self._phase, facts)))
    result, attempt = head_to_head({"model": "scripted", "opponent": "random"})
    assert result["result"] == "succeeded"
    assert seen == ["loading", "loading"]
    with gzip.open(attempt.episodes(0), "rt") as file:
        turns = sum(len(json.loads(line)["episode"]["turns"]) for line in file)
    replies = [facts["replies"] for phase, facts in beats if phase == "sampling" and "replies" in facts]
    assert replies == list(range(1, turns + 1))


def test_a_judge_at_work_is_a_sign_of_life(head_to_head, monkeypatch):
    from training.attempts.progress import Progress

    beats = []
    monkeypatch.setattr(Progress, "beat", lambda self, **facts: beats.append((self._phase, facts)))
    with Stub(Status(500)) as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        judge = {"address": stub.url, "model": "stub", "retries": 0}
        result, _ = head_to_head({"model": "scripted", "opponent": "random", "judge": True}, judge=judge)
    assert [facts["done"] for phase, facts in beats if phase == "scoring"] == [1, 2, 3, 4, 5, 6]
    assert result["summary"]["unscored"] == {"sotopia": 12, "fine-grained": 12}


def test_goals_are_checked_by_the_judge_even_where_nobody_is_rated(head_to_head, monkeypatch):
    def answer(body):
        form = json.loads(body["messages"][0]["content"].splitlines()[-1])
        return json.dumps(form | {"reached": [True, False]})

    with Stub(answer) as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        judge = {"address": stub.url, "model": "stub"}
        sides = {"model": "scripted", "opponent": "scripted"}
        start_from = dialogue(goal_check=True, goal_check_every=2)
        result, _ = head_to_head(sides, start_from, judge=judge, game={"name": "dialogue"})
    # Seat 0's goal is always the one that is reached, and each side holds seat 0 once a scenario.
    assert result["summary"]["a"]["goal"]["mean"] == result["summary"]["b"]["goal"]["mean"] == 0.5
    assert len(stub.requests) == 6


@pytest.mark.parametrize(
    "evaluate, says",
    [
        ({"model": "nobody"}, "no such model"),
        ({"model": "https://models.example/v1 gpt"}, "MODEL_ADDRESSES"),
        ({"model": "https://models.example/v1"}, "named by address, model"),
        ({"model": "https://free.example/v1 gpt OTHER_API_KEY"}, "OTHER_API_KEY may not be sent to free.example"),
    ],
)
def test_a_side_that_does_not_exist_is_refused_before_anything_runs(
    head_to_head, tmp_path, monkeypatch, evaluate, says
):
    monkeypatch.setenv("MODEL_ADDRESSES", "https://free.example/v1,https://other.example/v1=OTHER_API_KEY")
    monkeypatch.setenv("OTHER_API_KEY", "sk-canary")
    with pytest.raises(BadInput, match=says):
        head_to_head(evaluate)
    assert not list(tmp_path.glob("run*/attempts"))


def test_a_stop_request_is_followed(head_to_head, monkeypatch):
    from training.attempts.progress import Progress

    monkeypatch.setattr(Progress, "stopping", property(lambda self: True))
    result, attempt = head_to_head({"model": "scripted", "opponent": "scripted"})
    assert result["result"] == "stopped"
    assert not (attempt.root / "evaluation.json").exists()
