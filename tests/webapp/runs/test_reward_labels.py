"""Labels as rewards on the site: names are checked, low agreement is a warning, and the run gets the classifier."""

import pytest
from django.urls import reverse
from django.utils import timezone

from tests.rewards.test_labels import INFO
from tests.webapp.judgments.make import version
from training.config import parse
from training.errors import BadInput
from training.labels.info import INFO as INFO_FILE
from training.rundir import RunDir
from training.store import atomic_directory, write_json
from webapp.core import files
from webapp.judgments.models import Classifier
from webapp.runs import services
from webapp.runs.models import Attempt, Event
from webapp.runs.reward_labels import measured_labels
from worker.kinds import put_labels

pytestmark = pytest.mark.django_db


def config(*labels, **reward):
    return parse({"name": "r", "model": {"base": "tiny"}, "reward": {"labels": labels, **reward}})


def of(label, name="moves", **fields):
    return {"label": label, "classifier": name, **fields}


@pytest.fixture
def classifier(researcher):
    return Classifier.objects.create(
        name="moves", owner=researcher, codebook_version=version("negotiation-moves"), state="ready",
        folder="classifiers/1-1", accuracy=INFO.to_dict(),
    )  # fmt: skip


@pytest.mark.parametrize(
    "entry, where",
    [
        (of("offers", "/etc"), "reward.labels.0.classifier"),
        (of("haste"), "reward.labels.0.label"),
        ({"label": "goal", "codebook": "mine.toml", "per": "seat"}, "reward.labels.0.codebook"),
    ],
)
def test_only_classifiers_and_codebooks_of_the_site_can_be_named(entry, where, classifier, researcher):
    parsed = config(of("offers"))
    section = parsed.reward.model_copy(update={"labels": (type(parsed.reward.labels[0]).from_dict(entry),)})
    with pytest.raises(BadInput) as error:
        services.create_run(owner=researcher, config=parsed.model_copy(update={"reward": section}))
    assert error.value.where == where


def test_a_classifier_that_is_not_ready_cannot_be_named(classifier):
    Classifier.objects.update(state="failed")
    with pytest.raises(BadInput, match="no trained classifier is named 'moves'"):
        measured_labels(config(of("offers")))


def test_low_agreement_is_shown_before_and_after_the_start(classifier, researcher, client_of):
    # INFO: F1 of offers 0.8, of rude 0.4
    run = services.create_run(owner=researcher, config=config(of("offers"), of("rude", weight=-1.0)))
    assert [label.warning != "" for label in measured_labels(config(of("offers"), of("rude")))] == [False, True]
    page = client_of(researcher).get(reverse("runs:new") + f"?clone={run.pk}").content.decode()
    assert "agrees too little with people on rude: F1 0.40, less than 0.6" in page
    assert "people on offers" not in page
    attempt = Attempt.objects.create(run=run, number=1, fence=1, lease_until=timezone.now())
    labels = [
        {"label": "rude", "source": "moves", "use": "reward", "weight": -1.0, "measure": "F1", "agreement": 0.4,
         "low": 0.3, "high": 0.5, "warning": "the classifier agrees too little with people on rude"},
    ]  # fmt: skip
    Event.objects.create(run=run, attempt=attempt, at=timezone.now(), kind="labels", data={"labels": labels})
    page = client_of(researcher).get(reverse("runs:detail", args=[run.pk]) + "?tab=curves").content.decode()
    assert "F1 0.40 (95 % interval 0.30–0.50)" in page
    assert "The classifier agrees too little" in page


def test_labels_are_added_to_the_form_one_by_one(classifier, researcher, client_of):
    client, address = client_of(researcher), reverse("runs:new")
    field = 'name="config-[&quot;reward&quot;, &quot;labels&quot;, {}, &quot;{}&quot;]"'
    page = client.get(address).content.decode()
    assert "Add a label" in page
    assert field.format(0, "label") not in page
    page = client.get(address + "?labels=2&label=offers&classifier=moves").content.decode()
    assert page.count('value="moves"') == 2
    assert field.format(1, "classifier") in page
    assert "two rewards are named offers" not in page  # it is said once the form is sent
    assert client.get(address + "?labels=999&label=%00").content.decode().count('classifier&quot;]"') <= 20
    page = client.get(reverse("judgments:classifier", args=["moves"])).content.decode()
    assert f"{address}?labels=1&amp;label=rude&amp;classifier=moves#section-reward" in page


def test_the_run_gets_a_copy_of_the_classifier(classifier, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "files"
    stored = files.local(classifier.folder)
    with atomic_directory(stored) as folder:
        write_json(folder / INFO_FILE, INFO.to_dict())
    run_dir = RunDir(tmp_path / "run")
    reward = config(of("offers")).reward.to_dict()
    put = put_labels(reward, run_dir)
    copy = run_dir.inputs / "classifiers" / "moves"
    assert put["labels"][0]["classifier"] == str(copy)
    assert (copy / INFO_FILE).read_bytes() == (stored / INFO_FILE).read_bytes()
    Classifier.objects.all().delete()
    assert put_labels(reward, run_dir) == put  # a run goes on with its copy
    with pytest.raises(BadInput, match="has been deleted"):
        put_labels(reward, RunDir(tmp_path / "other"))
