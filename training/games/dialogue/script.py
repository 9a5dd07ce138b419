"""A script for social dialogues: greets, says what it would like, asks, meets half way, thanks and leaves.

It turns its own goal into a wish in plain English and reads whether the other's words sound like a yes or a no.
"""

from __future__ import annotations

import re
from random import Random

from training.games.dialogue import DialogueSettings
from training.games.dialogue.markup import render
from training.players.scripted import Script, do, offered, pick
from training.records import Observation, Scenario, Seat

_YES = re.compile(
    r"\b(yes|sure|agreed|deal|sounds good|of course|happy to|fine with me|works for me|thank)\b", re.IGNORECASE
)
_NO = re.compile(r"\b(no|not|can't|cannot|sorry|unable|rather)\b", re.IGNORECASE)
_CONVINCE = re.compile(
    r"^(?i:to )?(?i:gently |kindly |politely |carefully )?(?i:convince|persuade|get|ask|encourage|urge|motivate)\s+"
    r"(?:the other (?:person|one)|the \w+|your \w+|him|her|them|[A-Z]\w+(?: [A-Z]\w+)?)\s+to\s+(.+)$"
)
_SWAP = {
    "your": "my",
    "yours": "mine",
    "yourself": "myself",
    "their": "your",
    "them": "you",
    "they": "you",
    "his": "your",
    "him": "you",
    "her": "your",
    "themselves": "yourself",
}
_SECOND = re.compile(rf"\b(?:you|{'|'.join(_SWAP)})\b", re.IGNORECASE)
_FRIEND = re.compile(r"\byour (?:friend|partner|neighbou?r|colleague|brother|sister|wife|husband)\b")
_VERB = re.compile(r"\s+(?:are|were|can|could|have|will|would|need|want|do)\b")
GREETINGS = (
    ("Hello, nice to meet you.", "Good day! Do you have a moment?"),
    ("Hello, I think we have met before.", "Hi, I know you by name."),
    ("Hi {other}, good to see you.", "Hello {other}, how have you been?"),
    ("Hey {other}, I am glad you are here.", "Hi {other}! It is good to see you."),
    ("Hey {other}, I am so glad to see you.", "Hi love, do you have a moment for me?"),
    ("Hi {other}, good that you are home.", "Hello {other}, can we talk for a minute?"),
)
WISHES = (
    "There is something on my mind: {wish}",
    "Let me be open with you. {wish}",
    "I have thought about this for a while. {wish}",
)
QUESTIONS = (
    "What matters most to you in this?",
    "How do you see it? I would like to understand your side.",
    "What would make this easy for you?",
)
COMPROMISES = (
    "I hear you. Could we find a way in which both of us get a part of what we want?",
    "That is fair. What if you got your way in what matters most to you, and I in what matters most to me?",
    "Maybe we can meet in the middle. I would be ready to give something in return.",
)
PRESSES = (
    "It would mean a lot to me, and I would remember it.",
    "I have good reasons for it, and I think it could help both of us.",
)
YESSES = ("That sounds good to me, thank you.", "Agreed, and thank you for hearing me out.")
GOODBYES = ("Thank you for talking with me. Take care!", "I have to go now, but I am glad we talked. Goodbye!")
NODS = ("nods and listens", "smiles", "leans in and thinks about it")


class DialogueScript(Script):
    """Plays one participant; speaks four or five turns, then says goodbye."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        settings = DialogueSettings.model_validate(scenario.settings)
        self._relationship = settings.relationship
        self._wish = wish(render(settings.participants[seat].goal, seat, hints=settings.show_hints))

    def answer(self, observation: Observation, chance: Random) -> str:
        mine = [message.text for message in observation.messages if message.author == self.seat]
        heard = next((m.text for m in reversed(observation.messages) if m.author == 1 - self.seat), "")
        spoken, wished = len(mine), any(self._wish in text for text in mine)
        if spoken >= 5 or (spoken >= 3 and _YES.search(heard) and not _NO.search(heard)):
            return self._goodbye(observation, chance)
        if spoken == 2 and offered(observation, "nonverbal") and chance.random() < 0.5:
            return do(observation, "nonverbal", pick(chance, QUESTIONS), what=pick(chance, NODS))
        return do(observation, "speak", self._line(spoken, heard, chance, has_wished=wished))

    def _line(self, spoken: int, heard: str, chance: Random, *, has_wished: bool) -> str:
        wish = "" if has_wished else pick(chance, WISHES).format(wish=self._wish)
        if spoken == 0:
            greeting = pick(chance, GREETINGS[self._relationship]).format(other=self.names[1 - self.seat].split()[0])
            return greeting if heard else f"{greeting} {wish}"
        if spoken == 1:
            return wish or pick(chance, PRESSES)
        if spoken == 2:
            return pick(chance, QUESTIONS)
        if spoken == 3:
            return pick(chance, COMPROMISES if _NO.search(heard) or chance.random() < 0.7 else PRESSES)
        return pick(chance, YESSES)

    def _goodbye(self, observation: Observation, chance: Random) -> str:
        if offered(observation, "leave"):
            return do(observation, "leave", pick(chance, GOODBYES))
        if offered(observation, "none"):
            return do(observation, "none")
        return do(observation, "speak", pick(chance, GOODBYES))


def wish(goal: str) -> str:
    """Return a goal in the second person ("Convince your friend to lend you the car (…)") as a first-person wish.

    Text in brackets and everything after the first sentence are left out.
    """
    first = re.split(r"\s*\(|(?<=[.!?])\s", goal.strip(), maxsplit=1)[0].strip(" .")
    if match := _CONVINCE.match(first):
        return f"I would like you to {_swapped(match.group(1))}."
    verb = first[:1].lower() + first[1:]
    return f"I would like to {_swapped(verb.removeprefix('to '))}."


def _swapped(text: str) -> str:
    """Return a second-person text in the first person."""
    text = _FRIEND.sub("you", text)
    return _SECOND.sub(_first_person, text)


def _first_person(match: re.Match[str]) -> str:
    word = match.group(0).lower()
    if word != "you":
        return _SWAP[word]
    return "I" if _VERB.match(match.string, match.end()) else "me"
