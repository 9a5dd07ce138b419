"""The indexes that a run on the site searches: by name, and only those of corpora that its owner may see."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.webapp.corpora.making import built, corpus
from training.config import parse
from training.errors import BadInput
from webapp.corpora import services as corpora
from webapp.runs import services

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    settings.MEDIA_ROOT = tmp_path / "files"


def searching(owner, index):
    return services.create_run(
        owner=owner, config=parse({"model": {"base": "tiny"}, "search": {"indexes": {"wiki": index}}})
    )


@pytest.mark.parametrize("index", ["../indexes/mine", "/etc", "..", "~", "", "bm25", "bm25-0123456789abcdef\n"])
def test_a_folder_is_no_index(researcher, index):
    with pytest.raises(BadInput, match="folders are for the command line") as raised:
        searching(researcher, index)
    assert raised.value.where == "search.indexes"


def test_an_index_that_a_command_built_is_searched_by_its_name(researcher):
    assert searching(researcher, "bm25-0123456789abcdef").state == "queued"


def test_a_private_corpus_is_searched_by_its_owner_and_administrators(person, researcher, admin):
    made = built(researcher, private=True)
    name, other = made.file.indexes.get().name, person("researcher", "other")
    for owner in (researcher, admin):
        assert searching(owner, name).config["search"] == {"indexes": {"wiki": name}, "passages": 3}
    with pytest.raises(BadInput, match="no index"):
        searching(other, name)
    corpora.share(corpus=made, private=False)
    assert searching(other, name).state == "queued"


def test_content_that_another_corpus_makes_public_is_searched_by_all(person, researcher):
    name, other = built(researcher, private=True).file.indexes.get().name, person("researcher", "other")
    assert corpus(other, "same").file.indexes.get().name == name
    assert searching(other, name).state == "queued"


def test_many_indexes_cost_as_many_queries_as_one(researcher):
    counts = []
    for number in (1, 300):
        indexes = {f"corpus{at}": f"bm25-{at:016x}" for at in range(number)}
        config = parse({"model": {"base": "tiny"}, "search": {"indexes": indexes}})
        with CaptureQueriesContext(connection) as queries:
            services.create_run(owner=researcher, config=config)
        counts.append(len(queries))
    assert counts[0] == counts[1]
