"""The form of a new run: presets, every field with its meaning, and errors on the field they belong to."""

import html
import json
import re
from urllib.parse import unquote

import pytest
from django.urls import reverse

from tests.webapp.arena.conftest import dialogue, negotiation
from tests.webapp.runs.making import make_checkpoint, make_episode, make_run, untouched
from training.cli import main
from training.cluster import devices
from training.config import CONFIGS, RunConfig
from training.dataset import DatasetLine
from training.errors import BadInput
from training.opponent_sections import Opponent
from webapp.core import queue
from webapp.runs import presets, services
from webapp.runs.models import Checkpoint, Run
from webapp.scenarios.imports import import_path
from webapp.scenarios.services import create_dataset

pytestmark = pytest.mark.django_db


@pytest.fixture
def base(db):
    return [
        Checkpoint.objects.create(name=name, kind="base", base=name, path=f"/models/{name}")
        for name in ("tiny", "smollm2-135m")
    ]


@pytest.fixture
def client(researcher, client_of):
    return client_of(researcher)


def filled(client, query=""):
    """The form as a browser would send it back untouched."""
    response = client.get(reverse("runs:new") + query)
    assert response.status_code == 200
    return untouched(response.context["form"])


def send(client, data, query=""):
    return client.post(reverse("runs:new") + query, data)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_preset_is_a_whole_configuration(name):
    config = RunConfig.from_dict(presets.PRESETS[name].config())
    assert config.kind in presets.SECTIONS


def test_every_shipped_configuration_is_a_preset_and_the_page_starts_the_same_run():
    files = {preset.file: preset for preset in presets.PRESETS.values() if preset.file}
    assert set(files) == {path.relative_to(CONFIGS).as_posix() for path in CONFIGS.rglob("*.toml")}
    assert {name for preset in files.values() for name in preset.changes} == {"name"}


def test_presets_for_several_gpus_are_offered_where_runs_can_have_them(client, base, monkeypatch, tmp_path):
    several = {"werewolf-8-gpus", "werewolf-32-gpus"}

    def offered():
        return {*client.get(reverse("runs:new")).context["presets"]}

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(devices, "DRIVER", tmp_path / "gpus")
    assert {*presets.PRESETS} - offered() == several
    for number in range(8):
        (tmp_path / "gpus" / str(number)).mkdir(parents=True)
    assert {*presets.PRESETS} - offered() == {"werewolf-32-gpus"}
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")
    assert offered() == {*presets.PRESETS}


EPO = [name for name in presets.PRESETS if name.startswith("epo-")]


@pytest.mark.parametrize("name", ["quick", "negotiation", "dialogue", "werewolf", "eval", *EPO])
def test_a_preset_starts_as_it_is(client, base, name, researcher, django_capture_on_commit_callbacks, monkeypatch):
    sent = []
    addresses = "http://127.0.0.1:8000/v1=JUDGE_API_KEY,https://api.openai.com/v1=OPENAI_API_KEY"
    monkeypatch.setenv("MODEL_ADDRESSES", addresses)
    Checkpoint.objects.get_or_create(name="llama-3-8b", kind="base", base="llama-3-8b", path="/models/llama-3-8b")
    monkeypatch.setattr(queue, "publish", lambda task, *args, queue=None, **_: sent.append((task.name, args, queue)))
    with django_capture_on_commit_callbacks(execute=True):
        response = send(client, filled(client, f"?preset={name}"), f"?preset={name}")
    assert response.status_code == 302, errors(response)
    run = Run.objects.get()
    assert run.config == {**presets.PRESETS[name].config(), "name": run.name}
    assert (run.state, run.owner, run.base) == ("queued", researcher, run.config["model"]["base"])
    assert sent == [("runs.supervise", (run.pk,), "train-cpu")]


def errors(response):
    form = response.context["form"]
    return {**form.start.errors, **form.rest.errors}


def test_every_field_has_its_meaning(client, base):
    page = client.get(reverse("runs:new") + "?preset=dialogue")
    form = page.context["form"]
    silent = [field.label for part in (form.start, form.rest) for field in part if not field.help_text]
    shown = page.content.decode()
    assert "Weight of the entropy bonus." in shown
    assert silent == []


def test_a_wrong_value_is_marked_on_its_field_and_nothing_starts(client, base):
    data = filled(client)
    data['config-["learn", "lr"]'] = "-1"
    response = send(client, data)
    assert response.status_code == 400
    assert list(errors(response)) == ['["learn", "lr"]']
    assert Run.objects.count() == 0


def test_the_form_has_the_processes_of_a_run_but_no_address(client, base):
    data = filled(client)
    assert [field for field in data if '"cluster"' in field] == [
        f'config-["cluster", "{name}"]' for name in ("engines", "learners", "tensor_parallel", "lag")
    ]
    response = send(client, {**data, 'config-["cluster", "in_flight_updates"]': "on"})
    assert "set lag to at least 1" in str(errors(response))
    split = {'config-["cluster", "tensor_parallel"]': "2", 'config-["engine", "name"]': "transformers"}
    response = send(client, {**data, **split})
    assert response.status_code == 400
    assert "transformers does not split a model" in str(errors(response))
    assert Run.objects.count() == 0


def test_a_worker_joins_no_cluster_that_a_configuration_names(researcher):
    config = RunConfig.from_dict({"cluster": {"address": "192.0.2.1:6379"}})
    with pytest.raises(BadInput, match="RAY_ADDRESS") as caught:
        services.create_run(owner=researcher, config=config)
    assert caught.value.where == "cluster.address"


def test_errors_of_the_whole_configuration_are_marked_too(client, base):
    data = filled(client)
    data['config-["engine", "window"]'] = "10"
    response = send(client, data)
    assert response.status_code == 400
    assert list(errors(response)) == ['["engine", "window"]']


def test_all_weights_instead_of_adapters(client, base):
    data = filled(client, "?preset=negotiation")
    data["run-weights"] = "all"
    assert send(client, data, "?preset=negotiation").status_code == 302
    assert Run.objects.get().config["learn"]["lora"] is None
    data = filled(client)
    data["run-weights"] = "adapters"
    assert send(client, data).status_code == 302, "the page did not have the adapters' own fields"
    assert Run.objects.get(name="Quick trial").config["learn"]["lora"]["rank"] == 32


@pytest.mark.parametrize("name", ["sft", "werewolf-sft"])
def test_a_cold_start_needs_a_dataset_with_conversations(client, base, name):
    assert "choose one that has conversations" in client.get(reverse("runs:new") + f"?preset={name}").content.decode()
    response = send(client, filled(client, f"?preset={name}"), f"?preset={name}")
    assert response.status_code == 400
    assert list(errors(response)) == ["dataset"]


def test_scripted_games_become_a_dataset_that_a_cold_start_takes(client, base, researcher, tmp_path):
    file = tmp_path / "villages.jsonl"
    players = ",".join(["scripted"] * 6)
    assert main(["play", "werewolf", "--players", players, "--episodes", "9", "--dataset", str(file)]) == 0
    reading, version = import_path(format="jsonl", path=file, name="villages", owner=researcher)
    assert (reading.errors, version.games, version.conversation_count) == ([], ["werewolf"], 9)
    query = f"?preset=werewolf-sft&dataset={version.pk}"
    assert send(client, filled(client, query), query).status_code == 302
    run = Run.objects.get()
    assert (run.dataset_version, run.config["game"]["name"]) == (version, "werewolf")


def linked(page, address):
    """The query of the page's link to an address."""
    (query,) = re.findall(rf'href="{re.escape(address)}\?([^"]*)"', page)
    return "?" + html.unescape(query)


@pytest.mark.parametrize("scenario", [negotiation(), dialogue()], ids=["negotiation", "dialogue"])
def test_a_dataset_leads_to_a_run_on_it(client, base, researcher, scenario):
    version = create_dataset(name="own", owner=researcher, lines=[DatasetLine(scenario=scenario)])
    page = client.get(reverse("scenarios:version", args=["own", 1])).content.decode()
    query = linked(page, reverse("runs:new"))
    data = filled(client, query)
    assert (data["run-dataset"], data["run-game"]) == (version.pk, scenario.game)
    assert client.get(reverse("runs:new") + f"?dataset={version.pk + 1}").status_code == 404


def test_a_runs_conversations_lead_to_a_queue_of_them(client, researcher):
    episode = make_episode(make_run(researcher), step=3)
    page = client.get(reverse("runs:conversations", args=[episode.run_id])).content.decode()
    form = client.get(reverse("judgments:queue-new") + linked(page, reverse("judgments:queue-new"))).context["form"]
    assert (form["run"].value(), form["step"].value()) == (str(episode.run_id), "3")


def test_a_judge_can_be_added(client, base):
    data = filled(client, "?preset=negotiation&judge=1")
    assert data['config-["judge", "secret"]'] == "JUDGE_API_KEY"
    data['config-["judge", "secret"]'] = "sk-not-a-name"
    response = send(client, data, "?preset=negotiation&judge=1")
    assert response.status_code == 400
    assert "never the key itself" in str(errors(response))


def test_a_form_that_is_redrawn_keeps_what_was_entered(client, base):
    query = "?preset=among-us&opponents=1"
    data = filled(client, query) | {"run-name": "", "run-model": base[0].pk, "redraw": "1"}
    del data['config-["sampling", "constrain"]']  # unchecked
    data |= {'config-["learn", "lr"]': "fast", 'config-["phases", 0, "method"]': '{"variant": '}
    response = send(client, data, "?preset=among-us&opponents=2&judge=1")
    assert response.status_code == 200
    form, page = response.context["form"], response.content.decode()
    assert (form.start["name"].value(), form.start["model"].value()) == ("", str(base[0].pk))
    assert form.rest['["learn", "lr"]'].value() == "fast"
    assert form.rest['["phases", 0, "method"]'].value() == '{"variant": '
    assert form.rest['["sampling", "constrain"]'].value() is False
    assert form.rest['["opponents", 1, "source"]'].value() == "mirror"
    assert form.rest['["judge", "secret"]'].value() == "JUDGE_API_KEY"
    assert not form.wrong()
    assert "was not started" not in page
    assert Run.objects.count() == 0


def test_a_redrawn_form_keeps_a_model_that_is_no_longer_listed(client, base, monkeypatch):
    monkeypatch.setattr("webapp.core.choices.MOST", 1)
    data = filled(client, "?preset=quick") | {"redraw": "1"}
    for chosen in base:
        page = send(client, data | {"run-model": chosen.pk}, "?preset=quick&opponents=1").content.decode()
        assert f'<option value="{chosen.pk}" selected>' in page


def test_a_judge_that_was_added_can_be_removed(client, base):
    query = "?preset=negotiation&judge=1"
    page = html.unescape(client.get(reverse("runs:new") + query).content.decode())
    assert 'formaction="?preset=negotiation#form"' in page
    kept = send(client, filled(client, query) | {"run-name": "mine", "redraw": "1"}, "?preset=negotiation")
    assert kept.context["form"].start["name"].value() == "mine"
    assert '["judge", "secret"]' not in kept.context["form"].rest.fields


def test_more_opponents_than_the_page_adds_can_be_removed(client, base, researcher):
    opponents = [Opponent(source="past", weight=weight).to_dict() for weight in range(1, 26)]
    run = make_run(researcher, config=RunConfig().to_dict() | {"opponents": opponents})
    query = f"?clone={run.pk}&opponents=24"
    assert client.get(reverse("runs:new") + query).status_code == 200


def test_the_first_note_of_a_rejected_form_leads_to_each_wrong_field(client, base):
    query = "?preset=negotiation"
    data = filled(client, query) | {"run-name": "", 'config-["learn", "lr"]': "fast"}
    page = send(client, data, query).content.decode()
    note = page[page.index("The run was not started") :].split("</p>")[0]
    linked_to = [unquote(target) for target in re.findall('href="#([^"]+)"', note)]
    assert linked_to == ["id_run-name", 'id_config-["learn", "lr"]']
    assert all(f'id="{target}"' in html.unescape(page) for target in linked_to)


def test_a_model_that_is_not_prepared_is_said_to_be_missing(client, db, tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    page = client.get(reverse("runs:new") + "?preset=quick").content.decode()
    assert "tiny is not prepared on this machine; run `python -m training models prepare tiny`." in html.unescape(page)


def test_a_judges_key_goes_only_where_the_list_says(client, base, monkeypatch):
    query = "?preset=negotiation&judge=1"
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:8000/v1,https://other.example/v1=JUDGE_API_KEY")
    response = send(client, filled(client, query), query)
    assert response.status_code == 400
    assert list(errors(response)) == ['["judge", "secret"]']
    assert "JUDGE_API_KEY may not be sent to 127.0.0.1" in str(errors(response))
    monkeypatch.setenv("MODEL_ADDRESSES", "https://other.example/v1=JUDGE_API_KEY")
    response = send(client, filled(client, query), query)
    assert list(errors(response)) == ['["judge", "address"]']
    assert Run.objects.count() == 0
    monkeypatch.setenv("MODEL_ADDRESSES", "http://127.0.0.1:8000/v1=JUDGE_API_KEY")
    assert send(client, filled(client, query), query).status_code == 302


def test_a_clone_begins_with_the_same_configuration(client, base, researcher):
    checkpoint = make_checkpoint(make_run(researcher), step=9)
    source = make_run(researcher, name="first", start_checkpoint=checkpoint, queue="train-gpu")
    query = f"?clone={source.pk}"
    assert send(client, filled(client, query), query).status_code == 302
    made = Run.objects.get(cloned_from=source)
    assert made.name == "first again"
    assert (made.queue, made.start_checkpoint) == ("train-gpu", checkpoint)
    assert {**made.config, "name": ""} == {**source.config, "name": ""}


def test_a_checkpoint_can_be_trained_on(client, base, researcher):
    checkpoint = make_checkpoint(make_run(researcher), step=9)
    query = f"?preset=quick&checkpoint={checkpoint.pk}"
    assert send(client, filled(client, query), query).status_code == 302
    made = Run.objects.get(start_checkpoint=checkpoint)
    assert made.base == "tiny"


def test_a_head_to_head_of_a_checkpoint_begins_as_its_run_played(client, base, researcher):
    config = RunConfig.from_dict({
        "game": {"name": "werewolf", "settings": {"wolf_talk": 0}},
        "model": {"base": "tiny"},
        "sampling": {"temperature": 0.7, "max_tokens": 48},
        "rollout": {"retries": 1, "on_refused": "forfeit"},
        "engine": {"dtype": "bfloat16"},
        "evaluate": {"side": ["werewolf"], "every": 5, "conversations": 30},
    })  # fmt: skip
    checkpoint = make_checkpoint(make_run(researcher, config=config.to_dict(), game="werewolf"))
    query = f"?preset=eval&checkpoint={checkpoint.pk}"
    response = send(client, filled(client, query), query)
    assert response.status_code == 302, errors(response)
    made = RunConfig.from_dict(Run.objects.get(start_checkpoint=checkpoint).config)
    assert (made.kind, made.game) == ("eval", config.game)
    assert made.sampling == config.sampling
    assert made.rollout == config.rollout
    assert made.engine.dtype == "bfloat16"
    assert made.evaluate.side == ("werewolf",)
    assert made.evaluate.conversations == 100  # how much is measured is the head-to-head's own


def test_a_head_to_head_after_several_games_begins_with_the_first(client, base, researcher):
    parts = [{"game": "werewolf", "settings": {"wolf_talk": 0}}, {"game": "tic_tac_toe"}]
    config = RunConfig.from_dict({"model": {"base": "tiny"}, "mixture": parts})
    run = services.create_run(owner=researcher, config=config)
    assert run.game == "werewolf"
    query = f"?preset=eval&checkpoint={make_checkpoint(run).pk}"
    response = send(client, filled(client, query), query)
    assert response.status_code == 302, errors(response)
    made = RunConfig.from_dict(Run.objects.get(kind="eval").config)
    assert (made.game.name, made.game.settings) == ("werewolf", {"wolf_talk": 0})


@pytest.mark.parametrize("preset", ["werewolf", "negotiation"])
def test_a_preset_of_another_game_loses_its_settings(client, base, researcher, preset):
    checkpoint = make_checkpoint(make_run(researcher, game="hanabi"))
    query = f"?preset={preset}&checkpoint={checkpoint.pk}"
    form = client.get(reverse("runs:new") + query).context["form"]
    assert form.start["game"].value() == "hanabi"
    data = filled(client, query)
    assert json.loads(data['config-["game", "settings"]']) == {}


def test_a_head_to_head_after_supervised_learning_begins_with_the_game(client, base, researcher):
    config = RunConfig.from_dict({"kind": "sft", "game": {"name": "werewolf"}, "sampling": {"max_tokens": 7}})
    checkpoint = make_checkpoint(make_run(researcher, kind="sft", config=config.to_dict(), game="werewolf"))
    query = f"?preset=eval&checkpoint={checkpoint.pk}"
    assert send(client, filled(client, query), query).status_code == 302
    made = RunConfig.from_dict(Run.objects.get(start_checkpoint=checkpoint).config)
    assert (made.game.name, made.sampling.max_tokens) == ("werewolf", RunConfig().sampling.max_tokens)


@pytest.mark.parametrize(
    "fields, query",
    [
        ({"kind": "train"}, "clone={run}"),
        ({"kind": "sft"}, "preset=quick"),
        ({"kind": "sft", "base": "smollm2-135m"}, "preset=negotiation"),
        ({"kind": "sft", "game": "werewolf", "base": "smollm2-135m"}, "preset=werewolf"),
        ({"kind": "sft", "game": "hanabi", "base": "smollm2-135m"}, "preset=mars-hanabi"),
        ({"kind": "sft", "game": "connect_four", "base": "smollm2-135m"}, "preset=negotiation"),
    ],
)
def test_training_continues_with_the_run_or_the_preset_of_its_game(client, base, researcher, fields, query):
    run = make_run(researcher, **fields)
    checkpoint = make_checkpoint(run, base=fields.get("base", "tiny"))
    query = query.format(run=run.pk)
    shown = client.get(reverse("runs:checkpoint", args=[checkpoint.pk])).content.decode()
    assert f'href="{reverse("runs:new")}?{query}&amp;checkpoint={checkpoint.pk}"' in shown
    form = client.get(f"{reverse('runs:new')}?{query}&checkpoint={checkpoint.pk}").context["form"]
    assert form.start["model"].value() == checkpoint.pk
    assert form.start["game"].value() == fields.get("game", "negotiation")


def test_an_unknown_preset_is_not_found(client, base):
    assert client.get(reverse("runs:new") + "?preset=nothing").status_code == 404


def test_a_mixture_is_given_as_json_and_opponents_one_by_one(client, base):
    assert not [name for name in filled(client) if "opponents" in name]
    query = "?opponents=2"
    data = filled(client, query) | {'config-["opponents", 1, "source"]': "past"}
    data['config-["mixture"]'] = '[{"game": "negotiation", "weight": 2, "settings": {"turn_limit": 4}}]'
    response = send(client, data, query)
    assert response.status_code == 302, errors(response)
    config = Run.objects.get().config
    assert [(part["game"], part["weight"], part["path"]) for part in config["mixture"]] == [("negotiation", 2.0, "")]
    assert [(opponent["source"], opponent["learner"]) for opponent in config["opponents"]] == [
        ("mirror", "one"),
        ("past", "one"),
    ]
    again = filled(client, f"?clone={Run.objects.get().pk}")
    assert again['config-["opponents", 1, "source"]'] == "past"


@pytest.mark.parametrize(
    "field, value, why",
    [
        ('["mixture"]', '[{"game": "negotiation", "path": "/etc/passwd"}]', "paths are for the command line"),
        ('["mixture"]', '[{"game": "chess"}]', "unknown game"),
        ('["mixture"]', '[{"game": "chess\\u0000"}]', "contains a nul"),
        ('["opponents", 0, "source"]', "/srv/models/secret", "folders are for the command line"),
        ('["opponents", 0, "source"]', "http://10.0.0.1/v1 model", "not on the list of allowed"),
        ('["opponents", 0, "source"]', "http://10.0.0.1/v1 model sk-123", "never the key itself"),
        ('["opponents", 0, "source"]', "http://10.0.0.1/v1", "a remote model is named by address"),
        ('["opponents", 0, "source"]', "", "at least 1"),
        ('["opponents", 0, "source"]', "qwen2.5-7b", "is not prepared on this machine"),
    ],
)
def test_what_a_pool_or_mixture_may_not_name_is_marked(client, base, field, value, why):
    query = "?opponents=1"
    response = send(client, {**filled(client, query), f"config-{field}": value}, query)
    assert response.status_code == 400
    [(name, said)] = errors(response).items()
    assert (name, why in str(said).lower()) == (field, True), said
    assert Run.objects.count() == 0


def test_a_run_in_phases_starts_from_the_page(client, base):
    query = "?preset=werewolf-phases"
    data = filled(client, query)
    assert data['config-["phases", 1, "opponents", 0, "partner"]'] == "start"
    data |= {'config-["phases", 0, "steps"]': "9", 'config-["learn", "steps"]': "25"}
    data['config-["phases", 0, "learn"]'] = '{"lr": 0.001}'
    assert send(client, data, query).status_code == 302
    made = RunConfig.from_dict(Run.objects.get().config)
    assert [(phase.name, phase.steps) for phase in made.phases] == [("wolves", 9), ("village", 8), ("wolves-again", 8)]
    assert (made.of_phase(0).learn.lr, made.of_phase(1).learn.lr) == (0.001, made.learn.lr)
    expected = presets.PRESETS["werewolf-phases"].config()["phases"]
    expected[0] |= {"steps": 9, "learn": {"lr": 0.001}}
    assert made.to_dict()["phases"] == expected


@pytest.mark.parametrize(
    "name, value, why",
    [
        ('["learn", "steps"]', "30", "the phases add up to 24 steps"),
        ('["phases", 1, "opponents", 0, "source"]', "/srv/models/secret", "folders are for the command line"),
        ('["phases", 1, "opponents", 0, "partner"]', "phase wolves-again", "can name only phases before it"),
        ('["phases", 2, "method"]', '{"gama": 1}', "omar has no such field"),
        ('["phases", 2, "reference"]', "phase x", "no phase is called"),
    ],
)
def test_what_a_phase_cannot_be_is_marked(client, base, name, value, why):
    query = "?preset=werewolf-phases"
    response = send(client, filled(client, query) | {f"config-{name}": value}, query)
    assert response.status_code == 400
    [(field, said)] = errors(response).items()
    assert (field, why in str(said)) == (name, True), said
    assert Run.objects.count() == 0


def opponents_of(client, query):
    """What the form lists as opponents, as it would be sent back."""
    sent, names = filled(client, query), [f'config-["opponents", {place}, "source"]' for place in range(9)]
    return [sent[name] for name in names if name in sent]


def test_the_list_of_opponents_can_be_made_longer_and_shorter(client, base):
    query = "?preset=werewolf"
    page = client.get(reverse("runs:new") + query).content.decode()
    assert "opponents=2#section-opponents" in html.unescape(page)
    first = presets.PRESETS["werewolf"].config()["opponents"]
    assert opponents_of(client, query) == [first[0]["source"]]
    longer = f"{query}&opponents=3"
    assert opponents_of(client, longer) == [first[0]["source"], "mirror", "mirror"]
    data = filled(client, longer)
    data |= {f'config-["opponents", 1, "{name}"]': value for name, value in (("source", "scripted"), ("weight", "2.5"))}
    data |= {
        f'config-["opponents", 2, "{name}"]': value for name, value in (("source", "past"), ("learner", "seer, x"))
    }
    assert send(client, data, longer).status_code == 302
    second = {"source": "scripted", "weight": 2.5, "learner": "one", "partner": "", "ally": ""}
    third = {**second, "source": "past", "weight": 1.0, "learner": ["seer", "x"]}
    assert Run.objects.get().config["opponents"] == [*first, second, third]
    assert opponents_of(client, f"?clone={Run.objects.get().pk}&opponents=2") == [first[0]["source"], "scripted"]
    assert opponents_of(client, f"{query}&opponents=0") == []
    data['config-["opponents", 2, "learner"]'] = " , "  # no seats at all
    refused = send(client, data, longer)
    assert (refused.status_code, list(errors(refused))) == (400, ['["opponents", 2, "learner"]'])
    assert client.get(reverse("runs:new") + f"{query}&opponents=21").status_code == 404
    assert "Add an opponent" not in client.get(reverse("runs:new") + f"{query}&opponents=20").content.decode()
    assert "section-opponents" not in client.get(reverse("runs:new") + "?preset=eval").content.decode()
