"""Societies that answer a question, with tools that each helper has for itself."""

from tests.games.cases.base import Secret, Worlds
from training.games.qa_society import alone
from training.records import ALL, SPECTATOR, Scenario

SOCIETY = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn")
GOLD = ["Vltava", "the Moldau"]


def society(tools=("wiki", "pubmed"), **settings):
    """An asker and a helper for each tool."""
    settings = {"question": "Which river runs through Prague?", "answers": GOLD, "tools": list(tools), **settings}
    return Scenario(id="river", game="qa_society", settings=settings, seats=SOCIETY[: len(tools) + 1])


CASES = [
    society(),
    society(["wiki"], deanon=True, cost=0.1),
    society(["wiki", "pubmed", "wiki", "press", "atlas"], effort=4, evidence_chars=60, max_chars=40),
    society(deanon=True, turn_limit=4, cost=0),
    society(["wiki"], effort=1),
    alone(society(), "pubmed"),
    alone(society(turn_limit=1)),
]


def _moves(moves, *, but, action, text):
    """The same moves, where all of `action` by others than `but` carry other words."""
    (argument,) = ("passages",) if action == "found" else ("answer",)
    return {
        seat: move.model_copy(update={"args": {argument: text}, "text": f"<{action}>{text}</{action}>"})
        if move.action == action and seat != but and move.origin in ("seat", "tool")
        else move
        for seat, move in moves.items()
    }


def _over(game):
    return not game.to_act()


def _asker_has_replies(game):
    """Whether the asker has read a reply with the tool of its helper."""
    return _over(game) or any("FRIEND_" in line.text for line in game.observe(0).messages[1:])


def _searching_for(game):
    search = game.pending_search()
    return search.seat if search else None


def _found_other(viewer):
    """Other helpers than the viewer find other passages."""

    def across(a, b, moves):
        return moves if _searching_for(a) == viewer else _moves(moves, but=viewer, action="found", text="A swan")

    return across


def _other_helper_answers(viewer):
    """What other helpers answer and find is different."""

    def across(a, b, moves):
        changed = _found_other(viewer)(a, b, moves)
        return changed if 0 in changed else _moves(changed, but=viewer, action="answer", text="Elbe")

    return across


def _worlds():
    other = {"answers": ["Elbe"]}
    worlds = [
        Worlds(f"the right answers, {name}", viewer, society(**more), society(**more, **other))
        for name, more in (("anonymous", {}), ("deanon", {"deanon": True}))
        for viewer in (0, 1, 2, SPECTATOR)
    ]
    worlds += [
        Worlds("the tools of two helpers swapped", viewer, society(), society(["pubmed", "wiki"]))
        for viewer in (0, SPECTATOR)
    ]
    worlds += [
        Worlds("the tools, until the asker has replies", viewer, *pair, until=_asker_has_replies)
        for viewer in (0, SPECTATOR)
        for pair in [(society(deanon=True), society(["press", "atlas"], deanon=True))]
    ]
    worlds += [
        Worlds("another helper's tool", 1, society(["wiki", "pubmed"]), society(["wiki", "atlas"])),
        Worlds("another helper's tool", 2, society(["wiki", "pubmed"]), society(["atlas", "pubmed"])),
        Worlds("what the helpers find", 0, society(), society(**other), across=_found_other(0)),
        Worlds("what the helpers find", SPECTATOR, society(), society(**other), across=_found_other(SPECTATOR)),
    ]
    worlds += [
        Worlds("what another helper does", v, society(), society(**other), _over, _other_helper_answers(v))
        for v in (1, 2)
    ]
    worlds += [
        Worlds("the metadata", viewer, society(), society(metadata={"decision": "no"})) for viewer in (0, 1, SPECTATOR)
    ]
    return [*worlds, Worlds("the right answers, alone", 0, *(alone(society(**m), "wiki") for m in ({}, other)))]


WORLDS = _worlds()


def _secrets():
    scenario = society(["wiki", "pubmed", "press"], answers=["canary-gold"])
    everything = frozenset({ALL, 4})
    return [
        Secret(scenario, "canary-gold", everything),
        Secret(scenario, "You can search the corpus wiki.", frozenset({1})),
        Secret(scenario, "You can search the corpus pubmed.", frozenset({2})),
        Secret(scenario, "Ben can search the corpus wiki.", everything),
        Secret(scenario, "F1 0.00, searches", everything),
        Secret(society(["wiki", "pubmed"], deanon=True), "You can search the corpus wiki.", frozenset({1})),
    ]


SECRETS = _secrets()

PLAYTHROUGHS = [
    (
        "a search that finds, a guess, and the surer of both",
        society(),
        [
            (0, "I do not know rivers. <ask/>"),
            (1, "<ask/>"),
            (1, "<search/>"),
            (3, "<found>Prague: Prague lies on the Vltava.</found>"),
            (1, "<answer>the Vltava</answer>"),
            (2, "<think>Not my subject.</think><hedge>Elbe</hedge>"),
            (0, "Vltava"),
            (0, "<answer>Vltava</answer>"),
        ],
    ),
    (
        "with names: a silent helper, one who gives up, a second ask, and a hedge",
        society(["wiki", "pubmed", "press"], deanon=True),
        [
            (0, "<ask/>"),
            (1, "!timeout"),
            (2, "!forfeit"),
            (3, "<search/>"),
            (4, "<nothing/>"),
            (3, "<hedge>Danube</hedge>"),
            (0, "<ask/>"),
            (1, "<hedge>Moldau</hedge>"),
            (3, "<hedge>Danube</hedge>"),
            (0, "<hedge>The Moldau!</hedge>"),
        ],
    ),
    (
        "the budget of asks and searches ends it, and a helper's answer counts",
        society(effort=2),
        [
            (0, "<ask/>"),
            (1, "<answer>Vltava</answer>"),
            (2, "<search/>"),
            (3, "!default"),
            (2, "<search/>"),
        ],
    ),
    (
        "an agent alone, until its moves are used up",
        alone(society(turn_limit=2), "wiki"),
        [(0, "<search/>"), (1, "<found>The Elbe takes in the Vltava.</found>"), (0, "<search/>")],
    ),
]
