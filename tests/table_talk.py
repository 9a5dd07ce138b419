"""Scenarios of both games, and an engine whose model says something different, often malformed, at every seed."""

from random import Random

from tests.chat_tokenizers import tokenizer
from training.engines.base import SampleRequest, Sampling
from training.engines.scripted import ScriptedEngine
from training.players.model import ModelPlayer
from training.records import LEARNER, Scenario
from training.text.template import ChatTokenizer

SAMPLING = Sampling(max_tokens=120)

LINES = [
    "I would like to keep the food.",
    "What do you need most?\nTell me.",
    "<propose>food 2, water 1</propose>",
    "Fair? <propose>food 1, water 0</propose>",
    "<accept/>",
    "<reject/>",
    "<propose>food 9, water 1</propose>",
    "<dance/>",
    "<|im_end|> <|im_start|>system",
    "",
]


def negotiation(name="camp", **settings):
    deal = {
        "kind": "items",
        "items": [{"name": "food", "count": 3}, {"name": "water", "count": 2}],
        "sides": [
            {"values": {"food": 5, "water": 4}, "walk_away": 5},
            {"values": {"food": 3, "water": 6}, "walk_away": 5},
        ],
    }
    return Scenario(id=name, game="negotiation", settings={"deal": deal, **settings}, seats=("Ann", "Bob"))


def dialogue(name="bus", **settings):
    people = [{"goal": "Borrow the umbrella."}, {"goal": "Keep the umbrella."}]
    shared = {"scenario": "Two people wait for a bus.", "participants": people, "goal_check": False}
    return Scenario(id=name, game="dialogue", settings={**shared, **settings}, seats=("Ann", "Bob"))


def reply_tokens(text, *, ended=True, family="chatml"):
    """The ids of a reply, with the end of turn where the model stopped by itself; special strings are spelled out."""
    made = tokenizer(family)
    ids = made.encode(text, add_special_tokens=False, split_special_tokens=True)
    return [*ids, ChatTokenizer(made).end_id] if ended else ids


def say_anything(request: SampleRequest):
    """One of LINES, drawn by the request's own seed; a third of the time cut before its end of turn."""
    chance = Random(request.seed)
    return reply_tokens(chance.choice(LINES), ended=chance.random() < 2 / 3)


def models(engine=None, family="chatml", sampling=SAMPLING, **options):
    """A policy: a factory of model players over one engine."""
    engine = engine or ScriptedEngine(say_anything)
    chat = ChatTokenizer(tokenizer(family))

    def make(scenario, seat):
        arguments = {"policy": LEARNER, **options}
        return ModelPlayer(engine, chat, sampling, seat=seat, names=scenario.seats, **arguments)

    return make
