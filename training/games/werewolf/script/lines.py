"""What a script of Werewolf says: several wordings for each thing, in plain English."""

from __future__ import annotations

OPENINGS = (
    "I know nothing for certain yet. I would like to hear what everybody thinks.",
    "It is early. Let us watch who pushes whom, and remember it.",
    "I am on the side of the village. Please tell us where you stand.",
    "Nothing stands out to me so far. Who has an idea, and why?",
)
SUSPICIONS = (
    "I suspect {whom}. {why}",
    "For now I would vote for {whom}. {why}",
    "Let us talk about {whom}: I distrust {whom}. {why}",
    "My feeling says that I should accuse {whom}. {why}",
)
WEAK_REASONS = (
    "It is only a feeling so far.",
    "Somebody has to begin, and I would like to hear an answer.",
    "I have heard nothing yet that speaks for this player.",
    "Too quiet for my taste.",
)
WRONG_VOTES = ("The votes of the last days speak for it.", "Look at who that player has voted for.")
NAMED_BY_SEER = ("I believe what {seer} has seen.", "{seer} has told us, and nobody has a better story.")
LIAR = ("Two say they are the seer, and one of them lies.", "That claim does not fit with what we know.")
LIED_ABOUT_ME = ("I know what I am, so that claim about me is a lie.", "What was said about me is not true.")
SEER = (
    "I am the seer. {results}",
    "Listen, I am the seer, and this is what I have seen. {results}",
    "I must tell you now: I am the seer. {results}",
)
GUILTY = ("I looked at {whom}: {whom} is a werewolf.",)
INNOCENT = ("I looked at {whom}: {whom} is not a werewolf.",)
LET_US_VOTE = ("Let us all vote for {whom} today.", "Please vote for {whom} with me.")
OTHER_ROLES = (
    "Before you vote for me: I am the {role}.",
    "You would make a mistake with me. I am the {role}.",
)
LAST_WORDS = (
    "I was on your side. Look closely at {whom}.",
    "Remember who voted for me. Watch {whom}.",
    "So be it. Keep an eye on {whom}.",
)
LAST_WORDS_OF_A_WOLF = (
    "You are making a mistake, and you will see it tomorrow.",
    "I was with the village. Good luck to all of you.",
)
WHISPERS = (
    "Let us attack {whom} tonight.",
    "I would take {whom}: that one is dangerous to us.",
    "My choice is {whom}. By day we vote together.",
)
