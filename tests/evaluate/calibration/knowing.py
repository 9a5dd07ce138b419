"""An engine that knows some answers, and whose chance to search depends on the question: every number is known."""

import numpy as np

from tests.chat_tokenizers import tokenizer
from training.engines.base import Sampling
from training.engines.scripted import ScriptedEngine
from training.errors import EngineError
from training.evaluate.calibration.measure import Agent
from training.records import Scenario
from training.text.template import ChatTokenizer

CHAT = ChatTokenizer(tokenizer("chatml"))
QUESTIONS = {"paws": ("Who holds paws?", "otter"), "setts": ("Who digs setts?", "badger"), "webs": ("Who?", "spider")}
SCENARIOS = [
    Scenario(
        id=name,
        game="qa_society",
        settings={"question": question, "answers": [answer], "tools": ["animals", "stones"]},
        seats=("Ann", "Bob", "Cleo"),
    )
    for name, (question, answer) in QUESTIONS.items()
]


class Knowing(ScriptedEngine):
    """Answers `known` questions rightly, others only if its search returns the answer, and fails at `broken` ones.

    `search` has the probability of a first search by question; of the rest, two thirds are that of an answer.
    No action is as likely as one of them.
    """

    def __init__(self, known=(), search=None, broken=()):
        super().__init__(self.write)
        self.known, self.search, self.broken, self.prompts = set(known), search or {}, set(broken), []

    def write(self, request):
        name, heard = self.heard(request.prompt)
        self.prompts.append(heard)
        answer = QUESTIONS[name][1]
        is_stated = f"says {answer}" in heard
        action = heard.rpartition("<")[2].strip(">\n")
        return CHAT.encode(f"{answer if is_stated or name in self.known else 'nobody'}</{action}>")

    async def score(self, prefix, continuations):
        name, heard = self.heard(prefix)
        search = 1e-9 if "RETRIEVAL" in heard else self.search.get(name, 1e-9)
        weights = {"search": search, "answer": (1 - search) * 2 / 3, "hedge": (1 - search) / 3}
        names = [CHAT.decode(tokens).strip("</>") for tokens in continuations]
        return [float(np.log(0.5 * weights[each])) for each in names]

    def heard(self, tokens):
        """The question's name, and what followed the rules."""
        heard = CHAT.tokenizer.decode(list(tokens)).split("<|im_start|>user\n", 1)[1]
        [name] = [name for name, (question, _) in QUESTIONS.items() if heard.startswith(f"Question: {question}<")]
        if name in self.broken:
            raise EngineError("out of memory")
        return name, heard


def agent(title="model", **knowledge):
    """An agent that samples from such an engine."""
    return Agent(title, Knowing(**knowledge), CHAT, Sampling(max_tokens=64))


async def library(game):
    """A tool that finds what it is asked for in the corpus of animals, and nothing in others."""
    search = game.pending_search()
    passages = {question: f"A book says {answer}." for question, answer in QUESTIONS.values()}
    return game.retrieval([passages[search.query]] if search.corpus == "animals" else [])
