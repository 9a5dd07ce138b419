"""A codebook with every kind of label about every place, and a game that is labelled under it."""

from training.dataset import Conversation, DatasetLine
from training.labels.codebooks import Codebook
from training.labels.exchange.base import LabelledScenario, judgment_hash
from training.records import Episode, Judgment, Label, Move, Scenario, SeatMove

OPTIONS = [{"name": "low_road", "title": "The low road"}, {"name": "high_road", "title": "The high road"}]
EXTRA = {
    "yes_no": {}, "one_of": {"options": OPTIONS}, "many_of": {"options": OPTIONS}, "scale": {"low": -5, "high": 5},
    "ranking": {}, "text": {}, "span": {"overlap": True}, "relation": {},
}  # fmt: skip
VALUES = {
    "yes_no": False, "one_of": "high_road", "many_of": ("low_road", "high_road"), "scale": -2.5, "ranking": (3, 0),
    "text": "=SUM(1)\n“said” <b>so</b> 🦊", "span": None, "relation": None,
}  # fmt: skip
ABOUT = {
    "ranking": ("game", "seat"), "span": ("span",), "relation": ("pair",),
    **dict.fromkeys(("yes_no", "one_of", "many_of", "scale", "text"), ("game", "seat", "turn", "span", "pair")),
}  # fmt: skip
PLACES = {
    "game": {}, "seat": {"seat": 1}, "turn": {"turn": 2}, "span": {"turn": 1, "start": 3, "end": 8},
    "pair": {"turn": 2, "other_turn": 0},
}  # fmt: skip
WHEN = {"span": "span_span", "pair": "relation_pair"}


def _type(kind, about):
    name = f"{kind}_{about}"
    when = {"when": {"label": WHEN[about]}} if about in WHEN and WHEN[about] != name else {}
    data = {"name": name, "title": f"A {kind} of a {about}", "kind": kind, "about": about, "definition": "Is it so?"}
    return data | EXTRA[kind] | when | {"required": False}


PAIRS = sorted(((kind, about) for kind, places in ABOUT.items() for about in places),
               key=lambda pair: pair not in (("span", "span"), ("relation", "pair")))  # fmt: skip
"""Every kind with every place; the spans and relations that others are about come first."""
CODEBOOK = Codebook.from_dict(
    {"name": "every-kind", "version": 3, "title": "Every kind", "labels": [_type(*pair) for pair in PAIRS]}
)
TEXTS = ("Good morning.", "🦊 Fox first, then <b>bread</b>.", "No.", "")
SCENARIO = Scenario(
    id="talk", game="dialogue", seats=("Ann", "Ben"), settings={
        "scenario": "Two meet.", "participants": [{"goal": "Talk."}, {"goal": "Talk."}], "max_chars": 1000,
    },
)  # fmt: skip
LABELS = tuple(
    Label(label=f"{kind}_{about}", value=VALUES[kind], reason=f"because of {kind} & {about}", **PLACES[about])
    for kind, about in PAIRS
)


def episode(texts=TEXTS, scenario=SCENARIO):
    moves = tuple(SeatMove(seat=number % 2, move=Move(action="speak", text=text)) for number, text in enumerate(texts))
    return Episode(scenario=scenario, moves=moves)


def judged(*judgments, source="file:1", texts=TEXTS, scenario=SCENARIO):
    """The conversation with its judgments, which name its episode."""
    conversation = Conversation(source=source, episode=episode(texts, scenario))
    digest = judgment_hash(conversation)
    updates = (judgment.model_copy(update={"episode": digest}) for judgment in judgments)
    return conversation.model_copy(update={"judgments": tuple(updates)})


def judgment(author="person:1", labels=LABELS, **fields):
    data = {"codebook": CODEBOOK.name, "codebook_version": CODEBOOK.version, "episode": "", **fields}
    return Judgment(author=author, labels=labels, **data)


def line(*conversations, scenario=SCENARIO):
    return DatasetLine(scenario=scenario, conversations=conversations)


def labelled(*lines):
    return [LabelledScenario.of(each) for each in lines]
