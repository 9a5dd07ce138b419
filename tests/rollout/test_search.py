"""The search tool: what an index returns is what the helper reads, and what is missing is said by its field."""

import asyncio
import json
from dataclasses import replace

import pytest

from training import config, samples
from training.errors import BadInput
from training.games import REGISTRY
from training.games.base import Search
from training.games.log import LoggedGame, Settings
from training.players.base import Reply
from training.records import Action, Argument, Move, Scenario
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build
from training.rollout import play
from training.rollout.search import corpora, search_tool
from training.run_sections import SearchSection

PASSAGES = [
    {"id": "1", "title": "Otter", "text": "The otter holds paws while it sleeps."},
    {"id": "2", "title": "Badger", "text": "The badger digs a sett."},
]
SCENARIO = Scenario(
    id="paws",
    game="qa_society",
    settings={"question": "Which animal holds paws?", "answers": ["otter"], "tools": ["animals", "stones"]},
    seats=("Ann", "Bob", "Cleo"),
)


@pytest.fixture
def index(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    corpus = tmp_path / "animals.jsonl"
    corpus.write_text("".join(json.dumps(passage) + "\n" for passage in PASSAGES))
    return build(corpus, Bm25Settings())


class Searching:
    """A helper that searches, then answers with what it was shown; the asker asks, then takes the first answer."""

    def __init__(self, seat):
        self.seat, self.seen = seat, []

    async def act(self, seat, observation, seed):
        self.seen.append("\n".join(message.text for message in observation.messages))
        names = [action.name for action in observation.actions]
        first = names[0] if len(self.seen) == 1 else ""
        return Reply(f"<{first}/>" if first in ("ask", "search") else "<answer>otter</answer>")

    def traces(self):
        return ()


def test_a_search_shows_the_helper_what_its_own_index_returns(index):
    players = [Searching(seat) for seat in range(3)]
    tool = search_tool(SearchSection(indexes={"animals": str(index), "stones": str(index)}, passages=1), [SCENARIO])
    episode = asyncio.run(play(SCENARIO, players, tool=tool))
    assert episode.error is None
    assert "Otter: The otter holds paws while it sleeps." in players[1].seen[1]
    assert "Badger" not in players[1].seen[1], "one passage was asked for"
    assert "sleeps" not in players[0].seen[1], "the asker reads no passage"
    assert episode.metrics["searches"] == 2
    assert episode.returns == dict.fromkeys(range(3), pytest.approx(1 - 2 * 0.01))


def test_a_corpus_without_an_index_is_refused_before_anything_is_played(index):
    assert corpora([SCENARIO, *samples.for_game("negotiation")[:1]]) == ["animals", "stones"]
    with pytest.raises(BadInput, match="no index is named for the corpus 'stones'") as caught:
        search_tool(SearchSection(indexes={"animals": str(index)}), [SCENARIO])
    assert caught.value.where == "search.indexes"
    with pytest.raises(BadInput) as caught:
        search_tool(SearchSection(indexes={"animals": "bm25-0", "stones": "bm25-0"}), [SCENARIO])
    assert caught.value.where == "search.indexes"
    assert search_tool(SearchSection(), samples.for_game("negotiation")) is None


def test_the_corpora_of_the_samples_need_no_index(monkeypatch, tmp_path):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    questions = samples.for_game("qa_society")
    assert corpora(questions) == sorted(samples.corpora())
    players = [Searching(seat) for seat in range(3)]
    asyncio.run(play(questions[0], players, tool=search_tool(SearchSection(passages=1), questions)))
    lines = [line for file in samples.corpora().values() for line in file.read_text().splitlines()]
    titles = {json.loads(line)["title"] for line in lines}
    retrieved = [text.split(": ")[1] for text in players[1].seen[1].splitlines() if text.startswith("RETRIEVAL: ")]
    assert retrieved
    assert set(retrieved) <= titles


class ShelfSettings(Settings):
    shelves: tuple[str, ...]


class Library(LoggedGame):
    """A game of its own: one reader has the first shelf searched, and nothing else happens."""

    def __init__(self, scenario):
        super().__init__(scenario, 100)
        self.read = None
        self._log.brief({0: "The librarian searches."})

    def to_act(self):
        return frozenset() if self.read is not None else frozenset({self.scenario.tool_seat})

    def _offered(self, seat):
        return (Action(name="bring", args=(Argument(name="text", kind="text"),), text="none"),)

    def _apply(self, moves):
        self.read = str(moves[self.scenario.tool_seat].args["text"])

    def default(self, seat):
        return Move(action="bring", args={"text": "nothing"}, origin="default")

    def returns(self):
        return {0: None if self.read is None else float("paws" in self.read)}

    def metrics(self):
        return {} if self.read is None else {"read": 1.0}

    def pending_search(self):
        return Search(0, self.scenario.settings["shelves"][0], "otter")

    def retrieval(self, passages):
        return Move(action="bring", args={"text": " ".join(passages)}, origin="tool")

    def failure(self, why):
        return Move(action="bring", args={"text": why}, origin="tool")


def test_another_game_searches_as_soon_as_it_has_the_methods_and_names_its_setting(index, monkeypatch):
    spec = replace(
        REGISTRY["qa_society"], name="library", make=Library, settings=ShelfSettings, corpora="shelves", samples=()
    )
    monkeypatch.setitem(REGISTRY, "library", spec)
    start = Scenario(id="shelf", game="library", settings={"shelves": ["animals"]}, seats=("Ann",))
    assert corpora([start]) == ["animals"]
    tool = search_tool(SearchSection(indexes={"animals": str(index)}, passages=1), [start])
    episode = asyncio.run(play(start, [Searching(0)], tool=tool))
    assert episode.error is None
    assert episode.returns == {0: 1.0}, "the passage about the otter's paws was brought"


def test_the_index_of_a_configuration_is_found_beside_it(index):
    data = {"search": {"indexes": {"animals": index.name, "stones": "bm25-0"}}}
    resolved = config.resolve(config.parse(data), index.parent)
    assert resolved.search.indexes == {"animals": str(index), "stones": "bm25-0"}
