"""Small files in the formats of question sets; every question is our own."""

import csv
import io
import json

ROWS = (
    ("11", "Which river runs through Prague?", '["Vltava", "the Moldau"]', "river", "90"),
    ("12", 'Who wrote "The Grey\nHarbour"?', '["Ilse Brandt"]', "author", "7"),
    ("13", "In which city was Otto Reth born?", '["Linz", "Linz, Austria"]', "place of birth", "30"),
    ("14", "What sport does Mila Sand play?", '["chess"]', "sport", "30"),
    ("15", "What is the capital of Lower Vale?", '["Stonebridge"]', "capital", "400"),
)
HEADER = ("id", "question", "possible_answers", "prop", "s_pop")


def table(*rows, header=HEADER, delimiter=","):
    """PopQA's table with these rows."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([header, *rows])
    return text.getvalue()


RELATION = [
    {"question": "Where was Otto Reth born?", "answers": ["Linz"]},
    {"question": "Where was Ilse Brandt born?", "answers": ["Graz", "Gratz"]},
]
OPEN = (
    {"question": "who built the first bridge of graz", "answer": ["Anton Gall", "A. Gall"]},
    {"question": "how is o written in morse code", "answer": ["---"]},
)
ARTICLES = {
    "901": {
        "QUESTION": "Does cold tea help against hiccups?",
        "CONTEXTS": ["Hiccups are common.", "Forty volunteers drank cold tea."],
        "LABELS": ["BACKGROUND", "METHODS"],
        "final_decision": "maybe",
        "LONG_ANSWER": "Cold tea shortened hiccups in half of the volunteers.",
    },
    "902": {
        "QUESTION": "Are left-handed surgeons faster?",
        "CONTEXTS": ["Twelve surgeons were timed."],
        "LABELS": ["METHODS"],
        "final_decision": "no",
        "LONG_ANSWER": "No difference in speed was seen.",
    },
}


def lines(*entries):
    """A JSONL file."""
    return "".join(json.dumps(entry) + "\n" for entry in entries)
