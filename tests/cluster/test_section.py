"""The section `cluster`: its words, what stays in one process, and where a run on several is refused."""

import pytest

from training import config as configs
from training import run_checks
from training.attempts.start import start
from training.cluster.section import ClusterSection
from training.config import RunConfig, load, parse
from training.errors import BadInput
from training.rundir import RunDir


def test_auto_is_stored_as_zero(tmp_path):
    file = tmp_path / "run.toml"
    file.write_text('[cluster]\nengines = "auto"\nlearners = "auto"\n')
    section = load(file).cluster
    assert (section.engines, section.learners) == (0, 0)
    assert RunConfig.from_dict({"cluster": section.to_dict()}).cluster == section


def test_without_the_section_a_run_stays_in_one_process():
    assert parse({}).cluster.alone
    assert parse({"cluster": {"engines": 1, "lag": 0}}).cluster.alone


@pytest.mark.parametrize(
    "changes",
    [{"engines": 2}, {"engines": 0}, {"learners": 2}, {"tensor_parallel": 2}, {"lag": 1}, {"address": "head:6379"}],
    ids=str,
)
def test_whatever_needs_more_is_not_alone(changes):
    assert not parse({"cluster": changes}).cluster.alone


def test_an_engine_that_splits_no_model_is_refused_at_the_start(tmp_path):
    config = parse({"cluster": {"engines": 2, "tensor_parallel": 2}, "engine": {"name": "transformers"}})
    with pytest.raises(BadInput, match="transformers does not split a model") as caught:
        start(config, RunDir(tmp_path / "run"), tmp_path)
    assert caught.value.where == "cluster.tensor_parallel"
    assert not (tmp_path / "run").exists()


def test_an_engine_that_is_chosen_and_splits_no_model_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("training.engines.choice._installed", lambda engine: engine == "transformers")
    config = parse({"cluster": {"engines": 2, "tensor_parallel": 2}})
    with pytest.raises(BadInput, match="transformers does not split a model") as caught:
        start(config, RunDir(tmp_path / "run"), tmp_path)
    assert caught.value.where == "cluster.tensor_parallel"
    assert not (tmp_path / "run").exists()


def test_only_training_has_several_processes():
    with pytest.raises(BadInput, match="only training"):
        run_checks.check_cluster(parse({"kind": "eval", "cluster": {"engines": 2}}))


def test_configurations_of_earlier_releases_have_no_such_section():
    earlier = {name: value for name, value in RunConfig().to_dict().items() if name != "cluster"}
    assert parse(earlier) == RunConfig()
    assert not parse({"cluster": {"lag": 1}}).cluster.in_flight_updates


@pytest.mark.parametrize(
    "changes, where, why",
    [
        ({"engines": "many"}, "cluster.engines", "a whole number or"),
        ({"engines": -1}, "cluster.engines", "at least 0"),
        ({"learners": 1.0}, "cluster.learners", "valid integer"),
        ({"tensor_parallel": "auto"}, "cluster.tensor_parallel", "valid integer"),
        ({"lag": 5}, "cluster.lag", "at most 4"),
        ({"in_flight_updates": True}, "cluster.in_flight_updates", "set lag to at least 1"),
        ({"in_flight_updates": True, "lag": 0}, "cluster.in_flight_updates", "set lag to at least 1"),
        ({"address": "head 6379"}, "cluster.address", "match pattern"),
    ],
)
def test_a_wrong_value_is_named(changes, where, why):
    with pytest.raises(BadInput) as caught:
        parse({"cluster": changes})
    assert caught.value.where == where
    assert why in caught.value.why


def test_the_schema_has_numbers_with_bounds():
    fields = configs.schema()["$defs"]["ClusterSection"]["properties"]
    assert {name: field["type"] for name, field in fields.items()} == {
        "engines": "integer", "learners": "integer", "tensor_parallel": "integer", "address": "string",
        "lag": "integer", "in_flight_updates": "boolean",
    }  # fmt: skip
    assert fields["lag"]["maximum"] == 4
    assert ClusterSection().to_dict() == {
        "engines": 1, "learners": 1, "tensor_parallel": 1, "address": "", "lag": 0,
        "in_flight_updates": False,
    }  # fmt: skip


def test_the_numbers_of_processes_in_words():
    assert ClusterSection(learners=1, engines=2).counts == "1 learner rank and 2 engines"
    assert ClusterSection(learners=2, engines=1).counts == "2 learner ranks and 1 engine"
