"""Action supervision in a run: agents alone, the tokens of an answer's text, and what of a hedge is learned."""

import json

import pytest

from tests.chat_tokenizers import tokenizer
from tests.learn.small_runs import make_run
from tests.methods.episodes import scored, trace
from training import samples
from training.config import parse
from training.engines.base import Sample
from training.engines.local.loading import load_tokenizer
from training.engines.local.transformers import TransformersEngine
from training.errors import BadInput
from training.learn import trainer
from training.learn.arguments import argument_masks, argument_span
from training.learn.scenarios import read_scenarios
from training.records import Move
from training.retrieval.bm25 import Bm25Settings
from training.retrieval.index import build
from training.store import dumps, read_lines, read_member
from training.text.template import ChatTokenizer


@pytest.mark.parametrize(
    "reply, inside",
    [
        ("<hedge>1882</hedge>", "1882"),
        ("I guess so. < Hedge > in 1882 </hedge> Sorry.", " in 1882 "),
        ("<hedge>1882", "1882"),
        ("<think>No <hedge>1900</hedge>?</think> <hedge>1882</hedge>", "1882"),
        ("<answer>1882</answer>", ""),
        ("<hedge></hedge>", ""),
        ("", ""),
    ],
)
def test_the_arguments_stand_between_the_tags(reply, inside):
    begin, end = argument_span(reply, "hedge")
    assert reply[begin:end] == inside


@pytest.mark.parametrize("text", ["1882", "the Vltava", "Žižkov 🦦", "😀"])
def test_the_mask_has_the_tokens_of_the_text_and_no_others(text):
    """The tokens outside the mask spell the reply without its text."""
    chat = ChatTokenizer(tokenizer("chatml"))
    reply = [*chat.encode(f"I think <hedge>{text}</hedge> so"), chat.end_id]
    tokens = [*chat.encode("Who?"), *reply]
    start = len(tokens) - len(reply)
    imitated = trace("." * start + "0" * len(reply)).model_copy(update={"tokens": tuple(tokens)})
    episode = scored([imitated], {0: 1.0}).episode
    turn = episode.turns[0].model_copy(update={"move": Move(action="hedge", args={"answer": text})})
    [mask] = argument_masks(episode.model_copy(update={"turns": (turn,)}), chat.decode)
    assert not mask[:start].any()
    rest = [token for token, inside in zip(reply, mask[start:], strict=True) if not inside]
    assert chat.decode(rest) == "I think <hedge></hedge> so"
    assert rest[-1] == chat.end_id


def test_an_action_without_arguments_and_a_refused_reply_have_none():
    chat = ChatTokenizer(tokenizer("chatml"))
    tokens = chat.encode(" <hedge>1882</hedge>")
    imitated = trace("." + "0" * (len(tokens) - 1)).model_copy(update={"tokens": tuple(tokens)})
    episode = scored([imitated], {0: 1.0}).episode
    for move in (Move(action="search"), None):
        turn = episode.turns[0].model_copy(update={"move": move})
        assert not argument_masks(episode.model_copy(update={"turns": (turn,)}), chat.decode)[0].any()


SECTIONS = {
    "game": {"name": "qa_society", "settings": {}},
    "method": {"name": "csp", "form": "action_supervision"},
    "rollout": {"scenarios": 4, "games": 3},
    "reward": {"scale": "raw"},
    "sampling": {"max_tokens": 40},
}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Makes a run of one step on two questions, each for an agent with each of two tools."""
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path / "home"))
    corpus = tmp_path / "wiki.jsonl"
    corpus.write_text(json.dumps({"id": "1", "title": "Prague", "text": "The Vltava runs through Prague."}) + "\n")
    index = str(build(corpus, Bm25Settings()))
    questions = samples.for_game("qa_society")[:2]
    (tmp_path / "questions.jsonl").write_text("\n".join(dumps(each.to_dict()) for each in questions) + "\n")

    def made(**sections):
        search = {"indexes": {"wiki": index, "pubmed": index}, "passages": 1}
        data = {"path": str(tmp_path / "questions.jsonl"), "shuffle": False}
        config, run_dir = make_run(tmp_path, steps=1, search=search, data=data, **{**SECTIONS, **sections})
        settings = {"settings": {}}  # `make_run` states some for its own game
        return config.model_copy(update={"game": config.game.model_copy(update=settings)}), run_dir

    return made


def test_every_tool_of_a_question_is_a_start_of_its_own(make):
    config, run_dir = make()
    path = run_dir.root / config.data.path
    names = [
        (start.id, start.seats, start.settings["tools"]) for start in read_scenarios(config, path, alone=True).scenarios
    ]
    society = read_scenarios(config, path).scenarios
    assert [len(start.seats) for start in society] == [3, 3]
    first = society[0]
    assert names[:2] == [
        (f"{first.id}-wiki", first.seats[:1], ["wiki"]),
        (f"{first.id}-pubmed", first.seats[:1], ["pubmed"]),
    ]
    assert len(names) == 4
    limited = config.model_copy(update={"data": config.data.model_copy(update={"limit": 1})})
    assert len(read_scenarios(limited, path, alone=True).scenarios) == 2


def test_a_hedge_is_learned_without_its_text_and_a_good_answer_with_it(make, monkeypatch):
    config, run_dir = make()
    texts = {"answer": "<answer>Vltava</answer>", "hedge": "<hedge>swan</hedge>"}

    async def sample(self, request):
        chat = ChatTokenizer(self._tokenizer)
        prompt = chat.decode(request.prompt)
        text = texts["answer" if "Prague" in prompt.partition("Examples:")[2] else "hedge"]
        tokens = (*chat.encode(text), chat.end_id)
        return Sample(tokens, (-0.5,) * len(tokens), "stop")

    monkeypatch.setattr(TransformersEngine, "sample", sample)
    assert trainer.run(config, run_dir)["result"] == "succeeded"
    files = run_dir.attempt(1)
    learned = {}
    for line, _ in read_lines(files.index):
        record = read_member(files.root / "episodes" / line["file"], line["offset"], line["length"])
        [imitated], [credit] = record["episode"]["traces"], record["credit"]
        if credit and "nll" in credit:
            name = record["episode"]["scenario"]["id"]
            assert name not in learned, "one episode of each start"
            weighted = [token for token, weight in zip(imitated["tokens"], credit["nll"], strict=True) if weight]
            learned[name] = ChatTokenizer(load_tokenizer(config.model.base)).decode(weighted)
    first, second = (each.id for each in samples.for_game("qa_society")[:2])
    assert "Prague" in samples.for_game("qa_society")[0].settings["question"]
    assert learned == {
        f"{first}-wiki": texts["answer"],
        f"{first}-pubmed": texts["answer"],
        f"{second}-wiki": "<hedge></hedge>",
        f"{second}-pubmed": "<hedge></hedge>",
    }


def test_games_in_which_nobody_plays_alone_are_refused():
    method = {"name": "csp", "form": "action_supervision"}
    with pytest.raises(BadInput, match="in negotiation nobody plays alone") as caught:
        parse({"method": method})
    assert caught.value.where == "method.form"
    phases = [{"name": "a", "steps": 1}, {"name": "b", "steps": 1, "method": {"form": "sequences"}}]
    learn = {"steps": 2, "critic_warmup": 0}
    with pytest.raises(BadInput, match="in all phases or in none") as caught:
        parse(
            {
                "method": method,
                "game": {"name": "qa_society"},
                "phases": phases,
                "learn": learn,
                "rollout": {"games": 2},
            }
        )
    assert caught.value.where == "phases.1.method.form"
