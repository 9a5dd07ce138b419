"""A script for societies: asks once, searches once where its corpus fits the question, and takes answers over hedges.

From the sentence of its evidence that shares most words with the question it takes what the question asks for: a year,
a number, or a name that is not in the question. It is sure if half of the question's words are there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from random import Random

from training.games.actions import clean
from training.games.qa_society.scoring import tokens
from training.games.qa_society.settings import QaSocietySettings, tool_of
from training.players.scripted import Script, do, offered
from training.records import Observation, Scenario, Seat

UNKNOWN = "unknown"
"""The guess of a script that found nothing."""
SURE = 0.5
"""Share of the question's words in a sentence from which the script is sure of what it reads there."""

_FRIEND = re.compile(r"^FRIEND_(ANSWER|HEDGE)(?: \(.*?\))?: (.+)$", re.MULTILINE)
_RETRIEVAL = re.compile(r"^RETRIEVAL: (.+)$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_WHEN = re.compile(r"\b(?:when|year|date)\b", re.IGNORECASE)
_HOW_MANY = re.compile(r"\bhow (?:many|much|long|old|tall|high|far)\b", re.IGNORECASE)
_YEAR = re.compile(r"\b[12]\d{3}\b")
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")
_NAME = re.compile(r"[A-Z][\w'’-]*(?: (?:(?:of|the|de|la|von|van|and) )?[A-Z][\w'’-]*)*")
_COMMON = frozenset(
    tokens(
        "what which who whom whose where when how why was were are is did does do in of on at by to from as for with "
        "and it its he his she her they their this that these those there"
    )
)
"""Words that say little about what a text is about."""
_MEDICAL_QUESTION = re.compile(
    r"\b(?:gen(?:e|es|etic|ome)|proteins?|drugs?|disease|syndrome|cancer|enzyme|hormone|receptor|mutations?|inhibitor|"
    r"antibod(?:y|ies)|therapy|patients?|vaccines?|bacteri(?:a|um)|virus|cells?|vitamin|symptoms?)\b",
    re.IGNORECASE,
)
_MEDICAL_CORPUS = re.compile(r"med|bio|health|clinic", re.IGNORECASE)


class QaScript(Script):
    """Plays the asker, a helper, or an agent alone."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        settings = QaSocietySettings.model_validate(scenario.settings)
        self._question = clean(settings.question)
        self._tool = tool_of(settings, seat)

    def answer(self, observation: Observation, chance: Random) -> str:
        effort = "ask" if offered(observation, "ask") else "search"
        if self._worthwhile(effort) and not any(m.author == self.seat for m in observation.messages):
            return do(observation, effort)
        heard = "\n".join(message.text for message in observation.messages[1:] if message.author is None)
        text, sure = self._of_friends(heard) if effort == "ask" else self._of_passages(heard)
        return do(observation, "answer" if sure else "hedge", answer=text)

    def _worthwhile(self, effort: str) -> bool:
        return effort == "ask" or (self._tool is not None and fits(self._question, self._tool))

    def _of_friends(self, heard: str) -> tuple[str, bool]:
        """Return the most frequent answer, or else the most frequent hedge, and whether somebody is sure of it."""
        replies = _FRIEND.findall(heard)
        for kind in ("ANSWER", "HEDGE"):
            texts = Counter(text for action, text in replies if action == kind and text != UNKNOWN)
            if texts:
                return texts.most_common(1)[0][0], kind == "ANSWER"
        return UNKNOWN, False

    def _of_passages(self, heard: str) -> tuple[str, bool]:
        """Return what the best sentence says, and whether it is about the question."""
        asked = set(tokens(self._question)) - _COMMON
        sentences = [sentence for passage in _RETRIEVAL.findall(heard) for sentence in _SENTENCE.split(passage)]
        best = max(sentences, key=lambda sentence: len(asked & set(tokens(sentence))), default="")
        share = len(asked & set(tokens(best))) / max(1, len(asked))
        answer = _first(_candidates(self._question, best), self._question)
        return (answer, share >= SURE) if answer else (UNKNOWN, False)


def fits(question: str, corpus: str) -> bool:
    """Return whether a corpus looks right for a question: a medical one for medical questions, others for the rest."""
    return bool(_MEDICAL_QUESTION.search(question)) == bool(_MEDICAL_CORPUS.search(corpus))


def _candidates(question: str, sentence: str) -> list[str]:
    """Return what a sentence offers of the kind that the question asks for."""
    if _WHEN.search(question):
        return _YEAR.findall(sentence)
    if _HOW_MANY.search(question):
        return _NUMBER.findall(sentence)
    return _NAME.findall(sentence)


def _first(candidates: Iterable[str], question: str) -> str:
    """Return the first candidate with a word that says something and is not in the question, or nothing."""
    asked = _COMMON | set(tokens(question))
    return next((candidate for candidate in candidates if set(tokens(candidate)) - asked), "")
