"""A conversation to label, with types of every kind: the specimen of `static/js/annotatable.js`."""

from __future__ import annotations

import json

from django.http import QueryDict

from webapp.judgments.annotating import keys

PEOPLE = ("Ada", "Ben", "Noor")
LONG = (
    "I have carried this basket from the orchard to the bridge and from the bridge to the square, twice, while the two "
    "of you sat under the awning and counted clouds.\n\nSo let me say it slowly: four apples for each of us, the "
    "bruised ones for the mare, and whoever wants more can walk up the hill and ask the old man with the ladder. He is "
    "there until noon. He likes company, he dislikes haggling, and he will not lend you the ladder a second time."
)
EMOJI = "\U0001f469\u200d\U0001f33e\U0001f44d\U0001f3fd"
"""A farmer and a thumb: five code points, nine units of UTF-16, two characters to a reader."""
TEXTS = (
    (0, "Shall we split the apples before the rain comes?"),
    (1, "Fine by me. If you keep the basket, I will tell everyone at the market what happened last spring."),
    (0, f"Ben {EMOJI}, that is not fair; the cafe\u0301 promised us both a crate."),
    (2, "لا أوافق على هذا، اتركوا ثلاث تفاحات لي من فضلكم."),
    (1, LONG),
    (2, "All right:\u200b four each, and Ada writes it down."),
)
TURNS = [
    {"number": number, "seat": seat, "author": PEOPLE[seat], "text": text} for number, (seat, text) in enumerate(TEXTS)
]
NAMED = (
    ("span", "Offer", "o", "circle"),
    ("span", "Threat", "t", "diamond"),
    ("span", "Reason", "r", "square"),
    ("span", "Promise", "p", "star"),
    ("span", "Request", "e", "triangle"),
    ("turn", "Question", "q", "hexagon"),
    ("turn", "Agrees", "g", "cross"),
    ("relation", "Answers", "a", "bar"),
)
TYPES = [
    {
        "name": title.lower(),
        "title": title,
        "kind": kind if kind != "turn" else "yes_no",
        "about": "pair" if kind == "relation" else kind,
        "colour": colour,
        "shape": shape,
        "key": key,
        "overlap": title != "Offer",
    }
    for colour, (kind, title, key, shape) in enumerate(NAMED)
]


def _span(label: str, turn: int, words: str) -> dict[str, object]:
    start = TEXTS[turn][1].index(words)
    return {"label": label, "turn": turn, "start": start, "end": start + len(words)}


LABELS = [
    {"label": "question", "turn": 0},
    _span("threat", 1, "If you keep the basket, I will tell everyone"),
    _span("promise", 1, "I will tell everyone at the market"),
    _span("reason", 1, "tell everyone at the market what happened"),
    {"label": "answers", "turn": 1, "other_turn": 0},
    _span("reason", 2, "the cafe\u0301 promised us both a crate"),
    _span("request", 3, "اتركوا ثلاث تفاحات لي"),
    _span("offer", 4, "four apples for each of us"),
    {**_span("irony", 4, "counted clouds"), "source": "an earlier list of types"},
]


def context(query: QueryDict) -> dict[str, object]:
    """The specimen, with the labels of the query instead where it has them."""
    return {
        "turns": TURNS,
        "label_types": json.dumps(TYPES),
        "label_actions": json.dumps(keys.actions_for_page({})),
        "label_keys": query.get("keys", ""),
        "labels": query.get("labels", json.dumps(LABELS)),
    }
