"""Evaluation suites on the site: the form of a checkpoint, what a service refuses, the run's page and its inputs."""

import pytest
from django.urls import reverse
from django.utils.html import strip_tags

from tests.webapp.runs.making import SUITE_RESULT, estimate, make_checkpoint, make_episode, make_run, suite_row
from training import config as configs
from training.dataset import DatasetLine
from training.errors import BadInput
from training.evaluate.suite.plan import blocks
from training.rundir import RunDir
from training.store import read_lines
from training.suites import NAMES
from webapp.core import queue
from webapp.runs import attempts, services, suites
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios.services import create_dataset
from worker import kinds

pytestmark = pytest.mark.django_db


@pytest.fixture
def checkpoint(researcher):
    return make_checkpoint(make_run(researcher))


@pytest.fixture
def signed_in(researcher, client_of):
    return client_of(researcher)


def form(checkpoint, **changes):
    return reverse("runs:suite", args=[checkpoint.pk]), {
        "suite": "mars",
        "games": 5,
        "seed": 3,
        "place": "cpu",
        **changes,
    }


def text(response):
    return response.content.decode()


# --- starting one ---


def test_the_site_offers_every_suite_that_is_included():
    assert tuple(suites.SUITES) == NAMES
    for name in NAMES:
        assert suites.load(name).kind == "suite"


def test_tasks_that_differ_in_their_seats_alone_are_listed_apart(signed_in, checkpoint):
    page = strip_tags(text(signed_in.get(reverse("runs:suite", args=[checkpoint.pk]))))
    assert [f"width 2 height 2 tasks 4 seats {seats}" in page for seats in (4, 5, 6, 7)] == [True, True, True, False]


def test_a_checkpoint_starts_a_suite(
    signed_in, checkpoint, researcher, monkeypatch, django_capture_on_commit_callbacks
):
    sent = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, queue=None, **_: sent.append((task.name, args, queue)))
    address, data = form(checkpoint)
    assert address in text(signed_in.get(reverse("runs:checkpoint", args=[checkpoint.pk])))
    shown = text(signed_in.get(address))
    assert "connect_four" in shown
    assert "mcts:1000" in shown
    with django_capture_on_commit_callbacks(execute=True):
        response = signed_in.post(address, data)
    run = Run.objects.get(kind="suite")
    assert response.url == reverse("runs:detail", args=[run.pk])
    assert (run.owner, run.start_checkpoint, run.game, run.state) == (researcher, checkpoint, "", "queued")
    assert run.name == f"MARS suite of {checkpoint}"
    assert (run.config["suite"]["games"], run.config["seed"]) == (5, 3)
    assert run.config["engine"] == checkpoint.run.config["engine"]
    assert sent == [("runs.supervise", (run.pk,), "train-cpu")]
    listed = text(signed_in.get(reverse("runs:checkpoint", args=[checkpoint.pk])))
    assert reverse("runs:evaluation", args=[run.pk]) in listed


def test_a_suite_limits_replies_where_the_run_of_the_checkpoint_did(researcher):
    for constrain in (True, False):
        config = configs.RunConfig.from_dict({"sampling": {"constrain": constrain, "temperature": 0.25}}).to_dict()
        checkpoint = make_checkpoint(make_run(researcher, config=config), name=f"limited-{constrain}")
        sampling = suites.configuration("mars", checkpoint, games=1, seed=0).sampling
        assert (sampling.constrain, sampling.temperature) == (constrain, 0.6)  # the temperature is the suite's


def test_a_suite_of_strategists_has_the_speaker_and_the_judge_of_the_run_of_the_checkpoint(researcher):
    judge = {"address": "https://judge.example/v1", "model": "grader"}
    speaker = {"source": "follower:60", "label": "Thought", "words": 30}
    config = configs.RunConfig.from_dict(
        {"speaker": speaker, "judge": judge, "method": {"name": "epo"}, "sampling": {"max_tokens": 64}}
    ).to_dict()
    checkpoint = make_checkpoint(make_run(researcher, config=config))
    made = suites.configuration("epo_dialogue", checkpoint, games=1, seed=0)
    assert (made.speaker.source, made.speaker.label, made.speaker.words) == ("follower:60", "Thought", 30)
    assert (made.speaker.alone, made.judge.model) == ("plain", "grader")  # a follower writes no strategies
    assert made.sampling.max_tokens == 64
    other = make_checkpoint(make_run(researcher), name="without-a-speaker")
    assert suites.configuration("epo", other, games=1, seed=0).speaker.alone == "react"


def test_a_window_that_a_reply_of_the_suite_would_fill_is_refused_with_its_field(signed_in, researcher):
    config = configs.RunConfig.from_dict({"engine": {"window": 256}}).to_dict()  # the suite's replies have up to 256
    checkpoint = make_checkpoint(make_run(researcher, config=config))
    response = signed_in.post(*form(checkpoint))
    assert response.status_code == 400
    assert "engine.window: a reply would fill the whole window" in str(response.context["form"].errors)
    assert not Run.objects.filter(kind="suite").exists()


@pytest.mark.parametrize(
    "wrong, field",
    [({"games": 0}, "games"), ({"games": -3}, "games"), ({"suite": "none"}, "suite"), ({"seed": "x"}, "seed")],
)
def test_a_wrong_value_is_marked_and_nothing_starts(signed_in, checkpoint, wrong, field):
    response = signed_in.post(*form(checkpoint, **wrong))
    assert response.status_code == 400
    assert list(response.context["form"].errors) == [field]
    assert not Run.objects.filter(kind="suite").exists()


def test_more_games_than_the_quota_are_refused_at_the_field(signed_in, checkpoint, settings):
    settings.QUOTAS = {**settings.QUOTAS, "games_per_run": {"researcher": 69}}
    response = signed_in.post(*form(checkpoint))  # 6 tasks at 2 seats and 2 mirrors, 5 games each
    assert response.status_code == 400
    assert "70 would be more than the limit of 69" in str(response.context["form"].errors["games"])


def test_a_form_names_who_plays_beside_a_side(signed_in, checkpoint, researcher):
    listener = make_checkpoint(make_run(researcher), name="listener")
    chosen = {"suite": "among_us", "opponent": listener.name, "partner": "random"}
    assert signed_in.post(*form(checkpoint, **chosen)).status_code == 302
    tasks = Run.objects.get(kind="suite").config["suite"]["tasks"]
    assert {(task["opponent"], task["partner"]) for task in tasks} == {("listener", "random")}


def test_a_form_names_who_speaks_and_who_judges(signed_in, checkpoint, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "https://judge.example/v1")
    chosen = {"suite": "epo_dialogue", "speaker": "follower:60", "judge": "https://judge.example/v1 grader"}
    assert signed_in.post(*form(checkpoint, **chosen)).status_code == 302
    config = Run.objects.get(kind="suite").config
    assert (config["speaker"]["source"], config["speaker"]["alone"]) == ("follower:60", "plain")
    assert (config["judge"]["address"], config["judge"]["model"]) == ("https://judge.example/v1", "grader")


@pytest.mark.parametrize(
    "wrong, field",
    [
        ({"suite": "epo", "speaker": "nobody here"}, "speaker"),
        ({"suite": "epo", "speaker": "random"}, "speaker"),
        ({"suite": "epo", "judge": "https://judge.example/v1 grader"}, "judge"),
        ({"suite": "epo_dialogue", "judge": "grader"}, "judge"),
        ({"suite": "epo_dialogue"}, "judge"),  # the suite's own address is allowed nowhere here
        ({"suite": "mars", "partner": "random"}, "partner"),
        ({"suite": "among_us", "opponent": "nobody here"}, "opponent"),
        ({"suite": "among_us", "partner": "mirror"}, "partner"),
    ],
)
def test_who_cannot_play_beside_a_side_speak_or_judge_is_marked(signed_in, checkpoint, wrong, field, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "")
    response = signed_in.post(*form(checkpoint, **wrong))
    assert (response.status_code, list(response.context["form"].errors)) == (400, [field])
    assert not Run.objects.filter(kind="suite").exists()


def test_only_researchers_start_one(client_of, player, checkpoint):
    assert client_of(player).get(form(checkpoint)[0]).status_code in {302, 403, 404}
    assert client_of(player).post(*form(checkpoint)).status_code in {302, 403, 404}
    assert not Run.objects.filter(kind="suite").exists()


def of(*tasks):
    return configs.parse({"kind": "suite", "model": {"base": "tiny"}, "suite": {"games": 2, "tasks": tasks}})


TASK = {"game": "kuhn_poker", "opponent": "nash"}
CREW = {"game": "among_us", "side": ["crewmate"], "seats": 5, "opponent": "scripted", "partner": "scripted"}


@pytest.mark.parametrize(
    "task, where",
    [
        ({**TASK, "path": "starts.jsonl"}, "suite.tasks.1.path"),
        ({**TASK, "opponent": "runs/other"}, "suite.tasks.1.opponent"),
        ({**TASK, "opponent": "past"}, "suite.tasks.1.opponent"),
        ({**CREW, "partner": "runs/other"}, "suite.tasks.1.partner"),
        ({**TASK, "opponent": "http://127.0.0.1:1/v1 m"}, "suite.tasks.1.opponent"),
    ],
)
def test_what_no_worker_could_play_is_refused(researcher, checkpoint, task, where):
    with pytest.raises(BadInput) as caught:
        services.create_run(owner=researcher, config=of(TASK, task), start_checkpoint=checkpoint)
    assert caught.value.where.startswith(where)
    assert not Run.objects.filter(kind="suite").exists()


@pytest.mark.parametrize(
    "sections, where",
    [
        ({"kind": "train", "suite": {"tasks": [{**TASK, "path": "/etc/hostname"}]}}, "suite.tasks"),
        ({"kind": "eval", "suite": {"tasks": [{**TASK, "opponent": "/etc"}]}}, "suite.tasks"),
        ({"kind": "sft", "opponents": [{"source": "random"}]}, "opponents"),
        ({"kind": "eval", "phases": [{"name": "one", "steps": 1}]}, "phases"),
        ({"kind": "suite", "suite": {"tasks": [TASK]}, "league": {"every": 5}}, "league.every"),
    ],
)
def test_a_section_that_the_kind_does_not_use_is_refused(researcher, checkpoint, sections, where):
    config = configs.parse({"model": {"base": "tiny"}, **sections})
    with pytest.raises(BadInput, match="does not use it") as caught:
        services.create_run(owner=researcher, config=config, start_checkpoint=checkpoint)
    assert caught.value.where == where
    assert list(Run.objects.all()) == [checkpoint.run]


def test_a_dataset_is_refused_because_tasks_have_their_own(researcher, checkpoint):
    line = {"scenario": {"id": "k", "game": "kuhn_poker", "seats": ["A", "B"]}}
    version = create_dataset(name="k", owner=researcher, lines=[DatasetLine.from_dict(line)])
    with pytest.raises(BadInput, match="starts of their own"):
        services.create_run(owner=researcher, config=of(TASK), dataset_version=version, start_checkpoint=checkpoint)


def test_a_worker_puts_the_starts_into_the_run_directory(researcher, checkpoint, tmp_path):
    config = of(
        TASK,
        {"game": "hanabi", "settings": {"size": "mini"}, "opponent": "mirror"},
        {**TASK, "opponent": "best_response"},
    )
    run = services.create_run(owner=researcher, config=config, start_checkpoint=checkpoint)
    folder = RunDir(tmp_path)
    filled = configs.resolve(configs.parse(kinds.filled_in(run, folder), stored=True), tmp_path)
    starts = [list(read_lines(folder.root / task.path)) if task.path else None for task in filled.suite.tasks]
    assert [start and start[0][0]["game"] for start in starts] == ["kuhn_poker", "hanabi", None]
    assert filled.data.path == ""
    played = filled.model_copy(update={"model": filled.model.model_copy(update={"base": "random"})})
    assert [block.title for block in blocks(played, folder)] == [
        "Kuhn poker against nash, seat 0", "Kuhn poker against nash, seat 1", "Hanabi, mini, mirror",
    ]  # fmt: skip


def test_a_worker_gives_a_task_the_folder_of_its_checkpoint(researcher, checkpoint, tmp_path):
    weights = tmp_path / "rival"
    weights.mkdir()
    rival = Checkpoint.objects.create(name="rival", kind=Checkpoint.Kind.BASE, base="rival", path=str(weights))
    tasks = ({**TASK, "opponent": "rival"}, {**TASK, "opponent": "mirror"}, {**CREW, "partner": "rival"})
    run = services.create_run(owner=researcher, config=of(*tasks), start_checkpoint=checkpoint)
    folder = RunDir(tmp_path / "run")
    kinds.Training().prepare(run, folder, 1)
    placed = configs.load(folder.config).suite.tasks
    assert [task.opponent for task in placed] == [str(weights), "mirror", "scripted"]
    assert [task.partner for task in placed] == ["", "", str(weights)]
    rival.delete()
    for another in (folder, RunDir(tmp_path / "other")):  # where the configuration is written already, and where not
        with pytest.raises(BadInput, match="rival, which has been deleted") as caught:
            kinds.Training().prepare(run, another, 2)
        assert caught.value.where == "suite.tasks.0.opponent"


def test_a_worker_hands_over_the_secret_of_a_remote_opponent(researcher, checkpoint, tmp_path, monkeypatch):
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:1/v1=OUR_API_KEY")
    monkeypatch.setenv("OUR_API_KEY", "hush")
    task = {"game": "kuhn_poker", "opponent": "http://127.0.0.1:1/v1 m OUR_API_KEY"}
    run = services.create_run(owner=researcher, config=of(task), start_checkpoint=checkpoint)
    launch = kinds.Training().prepare(run, RunDir(tmp_path), 1)
    assert launch.secrets == {"OUR_API_KEY": "hush"}
    assert "hush" not in (tmp_path / "config.json").read_text()


# --- its page ---


def test_the_page_has_a_line_for_every_seat_and_opens_its_games(signed_in, researcher, checkpoint):
    run = make_run(researcher, kind="suite", state="succeeded", result=SUITE_RESULT, start_checkpoint=checkpoint)
    page = text(signed_in.get(reverse("runs:detail", args=[run.pk])))
    assert "<h2>Evaluation suite</h2>" in page, "the first tab"
    assert "tiny step 5" in page
    assert '-0.50 <small class="quiet">[-0.90, -0.10]' in page
    assert '25 <small class="quiet">[5, 45]' in page
    games = reverse("runs:conversations", args=[run.pk])
    assert f'href="{games}?step=1" aria-label="Games of Tic-tac-toe against mcts:100, seat 0"' in page
    assert page.count(f'href="{games}?step=') == 3
    assert "of 4; failed: engine 2" in page
    assert "of 4; failed: remote 4" in page
    assert "NashConv 0.9167, exploitability 0.4583" in page
    assert "best response; held out" in page
    assert "In some rows n is fewer than 30" in page
    assert "the probabilities are &lt;b&gt;unknown" in page
    assert "75 %" in page
    assert "<dt>scenarios.sha256</dt><dd>abc123</dd>" in page


def test_the_page_has_both_sides_where_a_row_does(signed_in, researcher, checkpoint):
    both = {"opposite": estimate(0.25, 0.2, 0.3, 40), "joint": estimate(0.5, 0.4, 0.6, 40)}
    rows = [
        suite_row(title="The strategist against the speaker", opponent="speaker", **both),
        suite_row(task=1, title="The strategist at both seats", opponent="mirror", opposite=None, joint=None),
        suite_row(task=2, opponent="best_response", raw=None, exact={"nash_conv": 1.0, "exploitability": 0.5}),
    ]
    result = {**SUITE_RESULT, "rows": rows}
    run = make_run(researcher, kind="suite", state="succeeded", result=result, start_checkpoint=checkpoint)
    page = text(signed_in.get(reverse("runs:detail", args=[run.pk])))
    assert "Opponent’s return" in page
    assert "Mean of all seats" in page
    assert '0.25 <small class="quiet">[0.20, 0.30]' in page
    assert '0.50 <small class="quiet">[0.40, 0.60]' in page
    assert 'colspan="8"' in page
    run = make_run(researcher, kind="suite", state="succeeded", result=SUITE_RESULT, start_checkpoint=checkpoint)
    page = text(signed_in.get(reverse("runs:detail", args=[run.pk])))
    assert "Opponent’s return" not in page
    assert 'colspan="6"' in page


def test_the_drawing_has_zero_and_hundred_and_stops_at_the_edge(signed_in, researcher):
    run = make_run(researcher, kind="suite", state="succeeded", result=SUITE_RESULT)
    shown = signed_in.get(reverse("runs:evaluation", args=[run.pk])).context["suite"]
    assert (shown["zero"], shown["hundred"]) == (50.0, 150.0)  # of 200, from -50 to 150
    first, second, *_ = shown["tasks"][0].lines
    assert (first.mark, first.outside) == ((55.0, 75.0, 95.0), False)
    assert (second.mark, second.outside) == ((200.0, 200.0, 200.0), True)


def begun(owner):
    run = make_run(owner, kind="suite", state="queued", steps=0)
    attempt = attempts.claim(run_id=run.pk, worker="w:1:1", host="here")
    attempts.started(attempt=attempt, pid=1, pid_started=1.0, start_step=0, code_version="")
    return run, attempt


def test_a_running_suite_says_how_far_it_is_and_becomes_its_table(signed_in, researcher):
    run, attempt = begun(researcher)
    address = reverse("runs:evaluation", args=[run.pk])
    assert "The models are being loaded" in text(signed_in.get(address))
    status = {"phase": "evaluating", "at": 160.0, "since": 100.0, "done": 3, "of": 12}
    attempts.beat(attempt=attempt, status=status)
    assert "<strong>3 of 12</strong> games; about 3 min left" in text(signed_in.get(address))
    attempts.finish(attempt=attempt, state="succeeded", exit_code=0, result=SUITE_RESULT)
    last = signed_in.get(address, headers={"hx-request": "true"})
    assert last.status_code == 286
    assert "<h2>Evaluation suite</h2>" in text(last)


@pytest.mark.parametrize(
    "state, says", [("queued", "waits for a worker"), ("stopped", "resume it, and it starts over")]
)
def test_a_suite_without_a_result_names_the_next_step(signed_in, researcher, state, says):
    run = make_run(researcher, kind="suite", state=state, steps=0)
    assert says in text(signed_in.get(reverse("runs:evaluation", args=[run.pk])))
    assert "appear as the games end" in text(signed_in.get(reverse("runs:conversations", args=[run.pk])))


def test_its_games_are_listed_by_task_and_seat(signed_in, researcher):
    run = make_run(researcher, kind="suite", state="succeeded", result=SUITE_RESULT)
    for step, title in ((1, "Tic-tac-toe against mcts:100, seat 0"), (2, "Hanabi, mini, mirror")):
        episode = make_episode(run, step=step)
        episode.summary |= {"block": title}
        episode.save()
    page = text(signed_in.get(reverse("runs:conversations", args=[run.pk]) + "?step=1"))
    assert '<option value="1" selected>Tic-tac-toe against mcts:100, seat 0</option>' in page
    assert '<option value="2">Hanabi, mini, mirror</option>' in page
    assert "Hanabi, mini, mirror, no. 0" in text(signed_in.get(reverse("runs:conversation", args=[run.pk, 2, 0])))


def test_it_is_not_cloned_but_started_from_its_checkpoint(signed_in, researcher):
    run = make_run(researcher, kind="suite", state="succeeded", result=SUITE_RESULT)
    assert "?clone=" not in text(signed_in.get(reverse("runs:detail", args=[run.pk])))
    assert signed_in.get(reverse("runs:new") + f"?clone={run.pk}").status_code == 404
