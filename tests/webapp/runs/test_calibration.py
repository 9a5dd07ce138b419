"""Question sets of a run on the site: datasets by name, base models by name, games that count for the quota."""

from pathlib import Path

import pytest

from tests.evaluate.calibration.knowing import SCENARIOS
from tests.webapp.runs.making import make_checkpoint, make_run
from training import dataset, samples
from training.config import parse
from training.dataset import DatasetLine
from training.errors import BadInput
from training.records import Scenario
from training.rundir import RunDir
from webapp.runs import services
from webapp.runs.models import Checkpoint
from webapp.scenarios.models import DatasetVersion
from webapp.scenarios.services import add_version, create_dataset
from worker.kinds import filled_in

pytestmark = pytest.mark.django_db


def lines(scenarios):
    return [DatasetLine(scenario=scenario) for scenario in scenarios]


@pytest.fixture
def animals(researcher):
    """A dataset with two versions, of two and of three questions."""
    made = create_dataset(name="animals", owner=researcher, lines=lines(SCENARIOS[:2])).dataset
    add_version(dataset=made, by=researcher, lines=lines(SCENARIOS))
    return made


def config(*sets, **sections):
    small = {"learn": {"steps": 3, "critic_warmup": 1}, "rollout": {"scenarios": 1, "games": 1}}
    section = {
        "sets": [{"label": f"Set {at}", **each} for at, each in enumerate(sets)],
        **sections.pop("calibration", {}),
    }
    return parse({"model": {"base": "tiny"}, "calibration": section, **small, **sections})


def created(researcher, *sets, **sections):
    return services.create_run(owner=researcher, config=config(*sets, **sections))


def test_a_set_names_a_dataset_whose_version_is_pinned(animals, researcher, tmp_path):
    run = created(researcher, {"path": "animals"}, {"path": "animals v1"}, {"path": ""})
    assert [each["path"] for each in run.config["calibration"]["sets"]] == ["animals v2", "animals v1", ""]
    add_version(dataset=animals, by=researcher, lines=lines(SCENARIOS[:1]))
    filled = filled_in(run, RunDir(tmp_path))["calibration"]["sets"]
    read = [[line.scenario.id for line in dataset.read(Path(each["path"]))] for each in filled if each["path"]]
    assert read == [["paws", "setts", "webs"], ["paws", "setts"]]
    assert filled[2]["path"] == ""


def test_a_dataset_that_was_deleted_is_named(animals, researcher, tmp_path):
    run = created(researcher, {"path": "animals"})
    animals.delete()
    with pytest.raises(BadInput, match="the dataset animals v2, which has been deleted") as caught:
        filled_in(run, RunDir(tmp_path))
    assert caught.value.where == "calibration.sets.0.path"


@pytest.mark.parametrize("name", ["nothing", "animals v3", "animals vx", "animals v²", "/data/animals.jsonl"])
def test_what_is_no_dataset_is_refused(animals, researcher, name):
    with pytest.raises(BadInput, match="no dataset is named") as caught:
        created(researcher, {"path": "animals"}, {"path": name})
    assert caught.value.where == "calibration.sets.1.path"


def test_a_dataset_without_questions_is_refused(researcher):
    talk = Scenario(id="talk", game="negotiation", settings=samples.load("items")[0].settings, seats=("Ann", "Bob"))
    create_dataset(name="talk", owner=researcher, lines=lines([talk]))
    with pytest.raises(BadInput, match="talk v1 has no scenario of qa_society: it has negotiation"):
        created(researcher, {"path": "talk"})


def test_the_base_model_is_a_checkpoint_or_registered(researcher, tmp_path):
    with pytest.raises(BadInput, match="is not prepared on this machine"):
        created(researcher, {}, calibration={"base": "tiny"})
    Checkpoint.objects.create(name="tiny", kind="base", base="tiny", path="/models/tiny")
    checkpoint = make_checkpoint(make_run(researcher), step=20)
    run = created(researcher, {}, calibration={"base": checkpoint.name})
    assert filled_in(run, RunDir(tmp_path))["calibration"]["base"].endswith(f"/{checkpoint.path}")
    assert (
        filled_in(created(researcher, {}, calibration={"base": "tiny"}), RunDir(tmp_path))["calibration"]["base"]
        == "tiny"
    )
    for base in ("/models/other", "mcts:100", "https://host.example/v1 gpt"):
        with pytest.raises(BadInput) as caught:
            created(researcher, {}, calibration={"base": base})
        assert caught.value.where == "calibration.base"


def test_only_training_measures_question_sets(researcher):
    with pytest.raises(BadInput, match="a run of kind eval does not use it") as caught:
        created(researcher, {}, kind="eval")
    assert caught.value.where == "calibration.sets"


def test_the_games_of_a_calibration_count_for_the_quota(animals, researcher, settings):
    # three questions with two tools, two without one: at steps 0 to 3 and once more at the end, in two ways, and by
    # the base model in two ways; three draws each; and three games of training
    tools = list(samples.corpora())[:2]
    sets = ({"path": "animals", "tools": tools}, {"path": "animals", "tools": [""], "limit": 2})
    expected = 2 * (3 * 2 + 2) * 3 * (5 + 1) + 3
    settings.QUOTAS = {**settings.QUOTAS, "games_per_run": {"researcher": expected - 1}}
    with pytest.raises(BadInput, match=str(expected)):
        created(researcher, *sets, calibration={"draws": 3})
    settings.QUOTAS = {**settings.QUOTAS, "games_per_run": {"researcher": expected}}
    created(researcher, *sets, calibration={"draws": 3})


def test_the_page_of_a_new_run_has_the_section(client_of, researcher):
    page = client_of(researcher).get("/runs/new/?preset=csp&section=calibration").content.decode()
    assert 'id="section-calibration"' in page
    assert "The question sets, each with label, path, tools, in_distribution and limit" in page


def test_versions_are_found_by_name(animals):
    assert str(DatasetVersion.objects.named(" animals ")) == "animals v2"
    assert DatasetVersion.objects.named("animals v9") is None
