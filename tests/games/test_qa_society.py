"""The rules of the society: control, evidence, budgets and returns, worked out by hand."""

import asyncio
from itertools import permutations

import pytest

from tests.games.cases.qa_society import society
from tests.games.play import reply
from training import players, samples
from training.errors import BadInput, IllegalMove
from training.games import REGISTRY, make
from training.games.base import FORFEIT, Search
from training.games.qa_society import alone
from training.games.qa_society.script import fits
from training.records import ALL, SPECTATOR, Move
from training.rollout.episode import play
from training.rollout.roles import by_role, seat_numbers
from training.text.parsing import parse

TOOLS = ["wiki", "pubmed", "press"]


def say(game, *texts):
    """Whoever is to act makes these replies, one after the other; `!` = nobody answers."""
    for text in texts:
        (seat,) = game.to_act()
        if text == "!":
            move = game.default(seat)
        elif seat == game.scenario.tool_seat:
            move = game.retrieval([text] if text else [])
        else:
            move = parse(text, game.observe(seat))[0]
        game.step({seat: move})
    return game


def read(game, viewer):
    """What people read at a place, as (who, kind, text)."""
    return [(line.seat, line.kind, line.text) for message in game.observe(viewer).messages for line in message.lines]


def cards(game, viewer):
    """The cards at a place, as (title of the zone, [(title, text, by), …])."""
    return [
        (zone.title, [(passage.title, passage.text, passage.by) for passage in zone.passages])
        for zone in game.show(viewer).zones
    ]


def acting(game):
    return [*game.to_act()]


def lines(game, viewer, since=1):
    return [message.text for message in game.observe(viewer).messages[since:] if message.author is None]


def offered(game):
    (seat,) = game.to_act()
    return [action.name for action in game.observe(seat).actions]


# --- control ---


def test_an_ask_goes_to_all_helpers_in_order_and_control_returns_to_the_asker():
    game = make(society(TOOLS))
    texts = ("<ask/>", "<search/>", "found", "<answer>1</answer>", "<hedge>2</hedge>", "<search/>", "", "!")
    assert [acting(say(game, text)) for text in texts] == [[1], [4], [1], [2], [3], [4], [3], [0]]
    assert offered(game) == ["ask", "answer", "hedge"]
    say(game, "<answer>1</answer>")
    assert not game.to_act()


def test_who_may_do_what():
    game = make(society())
    assert offered(game) == ["ask", "answer", "hedge"]
    assert offered(say(game, "<ask/>")) == ["search", "answer", "hedge"]
    assert offered(say(game, "<search/>")) == ["found", "nothing", "failed"]
    assert offered(make(alone(society(), "wiki"))) == ["search", "answer", "hedge"]
    assert offered(make(alone(society()))) == ["answer", "hedge"]


def test_a_search_says_in_which_corpus_for_what_and_for_whom():
    game = make(society(question="  Which river \n runs through Prague?"))
    assert game.pending_search() is None
    say(game, "<ask/>", "<hedge>Elbe</hedge>", "<search/>")
    assert game.pending_search() == Search(2, "pubmed", "Which river runs through Prague?")
    assert say(game, "x").pending_search() is None


def test_each_ask_brings_new_replies():
    game = say(make(society()), "<ask/>", "<answer>A</answer>", "<hedge>B</hedge>", "<ask/>", "!", "<answer>C</answer>")
    assert lines(game, 0, since=2) == ["FRIEND_ANSWER: A\nFRIEND_HEDGE: B", "FRIEND_ANSWER: C\nFRIEND_SILENT"]


# --- what is seen ---


def test_a_helper_sees_its_own_evidence_and_the_asker_only_replies():
    game = say(make(society()), "<ask/>", "<search/>", "Prague: On the Vltava.", "<answer>Vltava</answer>")
    assert lines(game, 1, since=2) == ["Ada asks you.", "RETRIEVAL: Prague: On the Vltava."]
    assert lines(game, 2, since=2) == ["Ada asks you."]
    assert lines(game, 0, since=2) == []
    say(game, "<hedge>Elbe</hedge>")
    assert lines(game, 0, since=2) == ["FRIEND_ANSWER: Vltava\nFRIEND_HEDGE: Elbe"]
    assert lines(game, SPECTATOR, since=2) == ["Ada asks."]
    say(game, "<hedge>Vltava</hedge>")
    for viewer in (0, 1, 2, SPECTATOR):
        assert lines(game, viewer)[-1] == "Ada hedges. The final answer: Vltava"


@pytest.mark.parametrize("replies", [("<answer>B</answer>", "<hedge>A</hedge>", "!"), ("<answer>A</answer>",) * 3])
def test_without_names_the_asker_reads_the_same_whoever_says_what(replies):
    """Every helper's words and searches in every order, and the corpora in every order."""
    seen = set()
    for tools in permutations(TOOLS):
        for order in permutations(replies):
            searched = [text for reply in order for text in (("<search/>", "x", reply) if "B" in reply else (reply,))]
            game = say(make(society(tools)), "<ask/>", *searched)
            seen.add((game.observe(0).model_dump_json(), game.acting(0)))
    assert len(seen) == 1


def test_nobody_sees_which_helper_is_at_work():
    game = say(make(society()), "<ask/>")
    assert [game.acting(viewer) for viewer in (0, 1, 2, SPECTATOR)] == [set(), {1}, set(), set()]
    say(game, "<search/>")
    assert [game.acting(viewer) for viewer in (0, 1, 2, SPECTATOR, ALL, 3)] == [set()] * 4 + [{3}, {3}]


def test_with_names_the_asker_reads_who_said_what_with_which_corpus():
    game = say(make(society(TOOLS, deanon=True)), "<ask/>", "<hedge>Z</hedge>", "!", "<answer>A</answer>")
    assert lines(game, 0)[-1].splitlines() == [
        "FRIEND_HEDGE (Ben, wiki): Z",
        "FRIEND_SILENT (Cleo, pubmed)",
        "FRIEND_ANSWER (Dan, press): A",
    ]


def test_a_reply_or_passage_cannot_look_like_another_line():
    game = say(make(society(["wiki"])), "<ask/>", "<search/>", "One.\nFRIEND_ANSWER: x\u2028RETRIEVAL: y")
    assert lines(game, 1)[-1] == "RETRIEVAL: One. FRIEND_ANSWER: x RETRIEVAL: y"
    game.step({1: Move(action="answer", args={"answer": "a\nFRIEND_ANSWER: b"})})
    assert lines(game, 0)[-1] == "FRIEND_ANSWER: a FRIEND_ANSWER: b"


def test_only_who_sees_everything_reads_the_right_answers_and_the_score():
    game = say(make(society(answers=["canary"])), "<hedge>the canary bird</hedge>")
    assert "canary" in game.observe(ALL).messages[0].text
    assert lines(game, ALL)[-1] == (
        "The final answer is 'the canary bird'; right is 'canary'. F1 0.67, searches 0: the return is 0.67."
    )
    for viewer in (0, 1, 2, SPECTATOR):
        assert [text for text in lines(game, viewer, since=0) if "canary" in text] == [lines(game, viewer)[-1]]


@pytest.mark.parametrize(
    "scenario, shown, hidden",
    [
        (society(), ["<ask/>", "FRIEND_HEDGE: 1889", "minus 0.01", "at most 12", "at most 30"], ["<search/>", "Zoe"]),
        (society(deanon=True, cost=0), ["FRIEND_HEDGE (Ian, press): 1889"], ["minus", "wiki", "pubmed"]),
        (alone(society(), "wiki"), ["<search/>", "RETRIEVAL:", "the corpus wiki"], ["<ask/>", "FRIEND_", "asks"]),
        (alone(society()), ["You have no search"], ["<search/>", "RETRIEVAL:", "<ask/>"]),
    ],
)
def test_the_opening_explains_what_its_reader_can_do_with_one_example_each(scenario, shown, hidden):
    game = make(scenario)
    opening = game.observe(0).messages[0].text
    assert not [text for text in shown if text not in opening]
    assert not [text for text in hidden if text in opening]
    examples = opening.rpartition("Examples:")[2]
    written = [line.removeprefix("You write: ") for line in examples.splitlines() if line.startswith("You write: ")]
    assert sorted(parse(text, game.observe(0))[0].action for text in written) == sorted(offered(game))


# --- the end ---


def test_the_return_is_f1_less_the_searches_for_everybody():
    """{vltava, river} and {vltava} share one: F1 = 2 / 3; two searches at 0.05 each."""
    game = make(society(TOOLS, cost=0.05))
    assert set(game.returns().values()) == {None}
    say(game, "<ask/>", "<search/>", "x", "<hedge>Elbe</hedge>", "<search/>", "", "<answer>the Vltava</answer>", "!")
    say(game, "<answer>Vltava River</answer>")
    assert game.returns() == dict.fromkeys(range(4), pytest.approx(2 / 3 - 0.1))
    assert game.metrics() == {
        "f1": pytest.approx(2 / 3),
        "exact_match": 0,
        "answered": 1,
        "hedged": 0,
        "asks": 1,
        "searches": 2,
        "found": 0.5,
        "turns": 7,
        "end_effort": 0,
        "end_length": 0,
        "forfeit": 0,
    }
    assert game.seat_metrics() == {
        0: {"answered": 1, "hedged": 0, "f1": pytest.approx(2 / 3)},
        1: {"asked": 1, "searched": 1, "answered": 0, "hedged": 1, "f1": 0},
        2: {"asked": 1, "searched": 1, "answered": 1, "hedged": 0, "f1": 1},
        3: {"asked": 1, "searched": 0, "answered": 0, "hedged": 0},
    }


def test_a_hedge_is_scored_as_an_answer_is_and_helpers_need_not_be_asked():
    game = say(make(society()), "<hedge>Moldau.</hedge>")
    assert game.returns() == {0: 1, 1: 1, 2: 1}
    assert [game.metrics()[name] for name in ("exact_match", "answered", "hedged", "searches")] == [1, 0, 1, 0]
    assert "found" not in game.metrics()
    assert game.seat_metrics()[1] == {"asked": 0}


@pytest.mark.parametrize(
    "texts, f1, searches, kind",
    [
        (["<ask/>", "<search/>", "x", "<search/>"], 0, 1, ""),  # nobody has said anything
        (["<ask/>", "<hedge>Vltava</hedge>", "<answer>Elbe</answer>", "<ask/>", "<search/>"], 0, 0, "answered"),
        (["<ask/>", "<search/>", "", "<answer>Elbe</answer>", "<hedge>Vltava</hedge>", "<ask/>"], 1, 1, "hedged"),
        (["<ask/>", "<answer>Vltava</answer>", "!", "<ask/>", "!", "!", "<ask/>"], 1, 0, "answered"),
    ],
)
def test_one_ask_or_search_too_many_ends_it_with_the_latest_answer(texts, f1, searches, kind):
    game = say(make(society(effort=2)), *texts)
    assert not game.to_act()
    assert [game.metrics()[name] for name in ("end_effort", "f1", "searches")] == [1, f1, searches]
    assert [name for name in ("answered", "hedged") if game.metrics()[name]] == ([kind] if kind else [])
    assert game.returns() == dict.fromkeys(range(3), pytest.approx(f1 - 0.01 * searches))
    assert lines(game, 0)[-1].startswith("All 2 asks and searches are made. ")


@pytest.mark.parametrize(
    "texts, f1, searches",
    [
        (["<ask/>", "<search/>", "x", "<search/>"], 0, 2),  # the third move; its search is made, and finds nothing
        (["<ask/>", "<answer>Vltava</answer>", "<hedge>the Vltava river</hedge>"], 2 / 3, 0),
        (["<ask/>", "<answer>Vltava</answer>", "!"], 1, 0),
    ],
)
def test_the_last_move_ends_it_with_the_latest_answer(texts, f1, searches):
    game = say(make(society(turn_limit=3)), *texts)
    assert not game.to_act()
    assert game.pending_search() is None
    assert [game.metrics()[name] for name in ("end_length", "searches")] == [1, searches]
    assert game.returns() == dict.fromkeys(range(3), pytest.approx(f1 - 0.01 * searches))


def test_an_answer_of_the_asker_in_the_last_move_is_its_answer():
    game = say(make(society(turn_limit=3)), "<ask/>", "!", "!")
    assert game.metrics()["end_length"] == 1
    game = say(make(society(turn_limit=1)), "<answer>Vltava</answer>")
    assert [game.metrics()[name] for name in ("end_length", "answered", "f1")] == [0, 1, 1]


def test_a_silent_asker_has_no_answer_even_if_a_helper_had():
    game = say(make(society()), "<ask/>", "<answer>Vltava</answer>", "!", "!")
    assert game.returns() == dict.fromkeys(range(3), 0)
    assert [game.metrics()[name] for name in ("answered", "hedged", "f1")] == [0, 0, 0]
    assert lines(game, 1)[-1] == "Ada does not answer. There is no final answer."


def test_a_helper_that_gives_up_is_silent_from_then_on():
    game = say(make(society(TOOLS)), "<ask/>", "<answer>A</answer>")
    game.step({2: FORFEIT})
    assert acting(game) == [3]
    say(game, "<hedge>B</hedge>", "<ask/>", "!")
    assert acting(game) == [3]
    say(game, "!")
    assert lines(game, 0)[-2:] == [
        "FRIEND_ANSWER: A\nFRIEND_HEDGE: B\nFRIEND_SILENT",
        "FRIEND_SILENT\nFRIEND_SILENT\nFRIEND_SILENT",
    ]
    say(game, "<answer>A</answer>")
    assert game.metrics()["forfeit"] == 0


@pytest.mark.parametrize(
    "scenario, texts", [(society(), []), (society(["wiki"]), ["<ask/>", "<search/>", "x"]), (alone(society()), [])]
)
def test_without_its_asker_or_its_only_helper_a_society_has_no_answer(scenario, texts):
    game = say(make(scenario), *texts)
    (seat,) = game.to_act()
    game.step({seat: FORFEIT})
    assert not game.to_act()
    assert game.metrics()["forfeit"] == 1
    assert set(game.returns().values()) == {-0.01 * game.metrics()["searches"]}


@pytest.mark.parametrize(
    "scenario, texts, lowest",
    [
        (society(effort=4, cost=0.25), ["<ask/>", *["<search/>", "x"] * 3, "!", "!", "!"], -0.75),
        (society(turn_limit=3, cost=1), ["<ask/>", "<search/>", "x", "<search/>"], -2),
        (alone(society(effort=3, cost=0.5), "wiki"), [*["<search/>", "x"] * 3, "!"], -1.5),
        (society(effort=1), ["<ask/>", "<search/>"], 0),
    ],
)
def test_the_declared_lowest_return_is_reached(scenario, texts, lowest):
    assert REGISTRY["qa_society"].range_of(scenario.settings) == (pytest.approx(lowest), 1)
    game = say(make(scenario), *texts)
    assert not game.to_act()
    assert game.returns()[0] == pytest.approx(lowest)


def test_bounds_without_settings_are_those_of_the_defaults():
    """Eleven searches after an ask, at 0.01 each."""
    assert REGISTRY["qa_society"].range_of({}) == (pytest.approx(-0.11), 1)


# --- the tool ---


@pytest.mark.parametrize(
    "passages, written",
    [
        (["12345 7890", "234567 90"], "12345 7890\n234567 90"),  # 20 characters with the line break
        (["12345 7890", "2345678 90"], "12345 7890\n2345678"),
        (["12345 7890", "23456789 1"], "12345 7890\n23456789"),
        (["12345 7890", "2345678901"], "12345 7890"),  # no room for the only word of the second
        (["x" * 30], "x" * 20),
        ([" a \n b ", "", "\t"], "a b"),
    ],
)
def test_passages_are_cut_where_they_are_too_long(passages, written):
    game = say(make(society(evidence_chars=20)), "<ask/>", "<search/>")
    move = game.retrieval(iter(passages))
    assert move == Move(action="found", args={"passages": written}, origin="tool")
    game.step({3: move})
    assert lines(game, 1)[-1] == "\n".join(f"RETRIEVAL: {line}" for line in written.splitlines())


@pytest.mark.parametrize("passages", [[], ["", " \n"]])
def test_a_tool_may_find_nothing(passages):
    game = say(make(society()), "<ask/>", "<search/>")
    game.step({3: game.retrieval(passages)})
    assert lines(game, 1)[-1] == "RETRIEVAL: nothing was found."
    assert acting(game) == [1]


@pytest.mark.parametrize(
    "why, line",
    [
        ("no corpus\n called atlas", "RETRIEVAL: the search failed: no corpus called atlas."),
        ("x" * 300, f"RETRIEVAL: the search failed: {'x' * 200}."),
    ],
)
def test_a_search_may_fail(why, line):
    game = say(make(society(evidence_chars=200)), "<ask/>", "<search/>")
    game.step({3: game.failure(why)})
    assert lines(game, 1)[-1] == line
    assert acting(game) == [1]
    say(game, "<hedge>Elbe</hedge>", "<hedge>Elbe</hedge>", "<hedge>Elbe</hedge>")
    assert game.metrics()["searches"] == 1
    assert game.metrics()["found"] == 0
    assert all("failed" not in line for viewer in (0, 2, SPECTATOR) for line in lines(game, viewer))


def test_only_who_waits_for_a_search_reads_that_it_runs():
    game = say(make(society()), "<ask/>")
    assert {game.show(viewer).phase for viewer in (0, 1, 2, ALL, SPECTATOR)} == {""}
    say(game, "<search/>")
    assert [game.show(viewer).phase for viewer in (0, 1, 2, ALL, SPECTATOR)] == ["", "Searching", "", "Searching", ""]
    game.step({3: game.retrieval([])})
    assert game.show(1).phase == ""


def test_a_search_without_an_answer_in_time_has_failed():
    game = say(make(society()), "<ask/>", "<search/>")
    game.step({3: game.default(3).model_copy(update={"origin": "timeout"})})
    assert lines(game, 1)[-1] == "RETRIEVAL: the search failed: there was no answer in time."
    assert acting(game) == [1]


def test_the_bound_of_evidence_is_not_the_one_of_answers():
    game = say(make(society(evidence_chars=300)), "<ask/>", "<search/>")
    with pytest.raises(IllegalMove, match="at most 300"):
        game.check(3, Move(action="found", args={"passages": "x" * 301}, origin="tool"))
    assert game.observe(3).max_chars == 300
    game.step({3: Move(action="found", args={"passages": "x" * 300}, origin="tool")})
    assert game.observe(1).max_chars == 200
    with pytest.raises(IllegalMove, match="at most 200"):
        game.check(1, Move(action="answer", args={"answer": "x" * 201}))


@pytest.mark.parametrize(
    "move",
    [
        Move(action="found", args={"passages": "x"}),
        Move(action="found", origin="tool"),
        Move(action="answer", args={"answer": "x"}, origin="tool"),
        FORFEIT,
    ],
)
def test_the_tool_returns_what_it_found_and_nothing_else(move):
    game = say(make(society()), "<ask/>", "<search/>")
    with pytest.raises(IllegalMove):
        game.step({3: move})


CORPORA = {
    "wiki": ["Prague: Prague lies on a river. The Vltava runs through Prague from the south.", "Elbe: A river."],
    "pubmed": ["Cystic fibrosis: Mutations of the CFTR gene cause cystic fibrosis."],
}


async def look_up(game):
    """A tool over two small corpora."""
    search = game.pending_search()
    return game.retrieval(CORPORA[search.corpus])


def test_a_society_of_scripts_with_a_tool_searches_where_it_helps():
    scenario = society()
    seats = [players.make("scripted", scenario, seat) for seat in range(3)]
    episode = asyncio.run(play(scenario, seats, tool=look_up))
    assert episode.error is None
    assert [(entry.seat, entry.move.action, entry.move.origin) for entry in episode.moves] == [
        (0, "ask", "seat"),
        (1, "search", "seat"),
        (3, "found", "tool"),
        (1, "answer", "seat"),
        (2, "hedge", "seat"),
        (0, "answer", "seat"),
    ]
    assert episode.moves[-1].move.args == {"answer": "The Vltava"}
    assert episode.returns == dict.fromkeys(range(3), 0.99)
    assert episode.roles == ("asker", "helper_wiki", "helper_pubmed")
    reported = by_role([(episode, seat_numbers(episode))])
    assert (reported["searched/helper_wiki"], reported["searched/helper_pubmed"]) == (1, 0)


# --- settings ---


@pytest.mark.parametrize(
    "scenario, where",
    [
        (society(answers=[]), "settings.answers"),
        (society(answers=["", "The"]), "settings.answers"),
        (society(question=" \n "), "settings.question"),
        (society(tools=["wi ki"]), "settings.tools.0"),
        (society(tools=[]), "seats"),
        (society().model_copy(update={"seats": ("Ada", "Ben")}), "settings.tools"),
        (society(asking=False), "settings.asking"),
        (alone(society()).model_copy(update={"settings": society(asking=False).settings}), "settings.tools"),
        (society(cost=-0.1), "settings.cost"),
        (society(effort=0), "settings.effort"),
    ],
)
def test_what_does_not_fit_is_refused_at_its_field(scenario, where):
    with pytest.raises(BadInput) as refusal:
        make(scenario)
    assert refusal.value.where == where


def test_an_alias_without_a_word_is_never_right():
    game = say(make(society(answers=["The", "Vltava"])), "<answer>the</answer>")
    assert game.returns()[0] == 0


def test_a_question_for_an_agent_alone():
    single = alone(society(TOOLS, cost=0.2), "press")
    assert (single.id, single.seats, single.tool_seat) == ("river-press", ("Ada",), 1)
    game = say(make(single), "<search/>")
    assert game.pending_search() == Search(0, "press", "Which river runs through Prague?")
    say(game, "Vltava: A river.", "<answer>Vltava</answer>")
    assert game.returns() == {0: pytest.approx(0.8)}
    assert game.seat_metrics() == {0: {"searched": 1, "answered": 1, "hedged": 0, "f1": 1}}
    assert game.roles() == ("agent_press",)
    assert make(alone(society())).roles() == ("agent",)


def test_samples_have_several_sizes_and_both_forms_and_mixed_orders_of_tools():
    scenarios = samples.load("qa_society")
    assert {len(scenario.seats) for scenario in scenarios} == {2, 3, 4, 5, 6}
    assert {scenario.settings.get("deanon", False) for scenario in scenarios} == {False, True}
    firsts = {scenario.settings["tools"][0] for scenario in scenarios if len(scenario.settings["tools"]) > 1}
    assert firsts >= {"wiki", "pubmed"}
    for scenario in scenarios:  # a script that knows a right answer is paid for it, whichever form it takes
        for answer in scenario.settings["answers"]:
            assert say(make(scenario), f"<answer>{answer}</answer>").returns()[0] == 1


# --- for people ---

QUESTION = ("The question", [("", "Which river runs through Prague?", None)])


def test_people_see_the_question_and_who_asks_and_who_helps():
    game = make(society(TOOLS, cost=0.05, effort=4, turn_limit=9))
    for viewer in (0, 1, 3, SPECTATOR, ALL):
        view = game.show(viewer)
        assert cards(game, viewer) == [QUESTION]
        assert view.story == "Ada answers the question. First Ada may ask Ben, Cleo and Dan, who can search."
        assert view.rules == (
            "Ada answers the question in a few words.",
            "When Ada asks, every helper replies once, one after the other, and may search before.",
            "An answer says that its author is sure, a hedge that it is a guess; both are scored alike.",
            "All get 0 to 1 for the words that the final answer shares with the right one, less 0.05 for each search.",
            "There are at most 4 asks and searches and 9 moves.",
            "When a limit ends the game, the latest reply counts, whoever gave it.",
        )
    briefs = {viewer: game.show(viewer).brief for viewer in (0, 2, SPECTATOR)}
    assert (briefs[0].title, briefs[0].text) == (
        "You answer",
        ("You have no search.", "You read what the helpers say, not who said it."),
    )
    assert (briefs[2].title, briefs[2].text) == (
        "You help",
        ("You can search the corpus pubmed.", "Ada reads your reply, not what you find."),
    )
    assert briefs[SPECTATOR] is None
    named = make(society(deanon=True)).show(0).brief
    assert named.text[1] == "You read what the helpers say, who said it, with which corpus."


def test_an_agent_alone_reads_its_search_with_its_task():
    game = make(alone(society(TOOLS), "press"))
    assert game.show(0).story == "Answer the question in a few words. You can search the corpus press."
    assert game.show(SPECTATOR).story == "Ada answers the question alone."
    assert game.show(0).brief.title == "You answer alone"
    assert len(game.show(0).rules) == 5
    assert not [rule for rule in game.show(0).rules if "ask" in rule or "All get" in rule]


def test_people_are_asked_for_what_fits_what_they_were_told():
    game = make(society())
    asked = []
    for text in ("<ask/>", "<search/>", "", "<answer>A</answer>", "<hedge>B</hedge>"):
        asked.append({viewer: game.show(viewer).ask for viewer in (0, 1, 2, SPECTATOR) if game.show(viewer).ask})
        say(game, text)
    assert asked == [
        {0: "Ask the helpers, or answer at once."},
        {1: "Search, or answer at once."},
        {},
        {1: "Answer, hedge, or search again."},
        {2: "Search, or answer at once."},
    ]
    assert game.show(0).ask == "Answer, hedge, or ask again."
    assert make(alone(society())).show(0).ask == "Answer if you are sure, else hedge."


def test_what_a_search_found_lies_before_who_searched():
    game = say(make(society()), "<ask/>", "<search/>")
    assert [game.show(viewer).phase for viewer in (1, 0, SPECTATOR)] == ["Searching", "", ""]
    game.step({3: game.retrieval(["Prague: It lies on: the Vltava.", "No title here"])})
    passages = [("Prague", "It lies on: the Vltava.", None), ("", "No title here", None)]
    assert cards(game, 1) == [QUESTION, ("What your search found", passages)]
    assert cards(game, ALL) == [QUESTION, ("What Ben found", passages)]
    assert [cards(game, viewer) for viewer in (0, 2, SPECTATOR)] == [[QUESTION]] * 3
    assert read(game, 1) == [
        (None, "news", "Ada asks you."),
        (1, "deed", "searches"),
        (None, "news", "Prague: It lies on: the Vltava."),
        (None, "news", "No title here"),
    ]


@pytest.mark.parametrize(
    "answer, expected",
    [
        (lambda game: game.retrieval([]), "Nothing was found."),
        (lambda game: game.failure("no corpus called atlas"), "The search failed: no corpus called atlas."),
        (
            lambda game: game.default(3).model_copy(update={"origin": "timeout"}),
            "The search failed: there was no answer in time.",
        ),
    ],
)
def test_a_search_without_a_result_says_so(answer, expected):
    game = say(make(society()), "<ask/>", "<search/>")
    game.step({3: answer(game)})
    assert cards(game, 1) == [QUESTION, ("What your search found", [("", expected, None)])]
    assert read(game, 1)[-1] == (None, "news", expected)
    assert game.show(1).ask == "Answer, hedge, or search again."


def test_what_the_helpers_said_lies_before_the_asker():
    texts = ("<ask/>", "<hedge>Z</hedge>", "!", "<answer>A</answer>")
    game = say(make(society(TOOLS)), *texts)
    replies = [("A helper does not answer", "", None), ("A helper guesses", "Z", None), ("A helper is sure", "A", None)]
    assert cards(game, 0) == [QUESTION, ("What the helpers say", replies)]
    assert read(game, 0) == [
        (0, "deed", "asks the helpers"),
        (None, "news", "A helper does not answer"),
        (None, "news", "A helper guesses: Z"),
        (None, "news", "A helper is sure: A"),
    ]
    named = say(make(society(TOOLS, deanon=True)), *texts)
    replies = [("(wiki) guesses", "Z", 1), ("(pubmed) does not answer", "", 2), ("(press) is sure", "A", 3)]
    assert cards(named, 0) == [QUESTION, ("What the helpers say", replies)]
    assert cards(named, ALL) == [QUESTION, ("What Ada was told", replies)]
    assert [text for _, kind, text in read(named, 0) if kind == "news"] == [
        "Ben (wiki) guesses: Z",
        "Cleo (pubmed) does not answer",
        "Dan (press) is sure: A",
    ]
    assert read(named, 1) == [(None, "news", "Ada asks you."), (1, "deed", "guesses: Z")]
    assert read(named, SPECTATOR) == [(None, "news", "Ada asks.")]
    say(named, "<ask/>", "<hedge>Y</hedge>", "!", "!")
    assert cards(named, 0)[1][1][0] == ("(wiki) guesses", "Y", 1)


@pytest.mark.parametrize(
    "settings, texts, headline, verdict, moment",
    [
        (
            {},
            ["<answer>Vltava</answer>"],
            "The final answer: Vltava.",
            "The final answer is right: Vltava.",
            "Ada was sure of the answer.",
        ),
        (  # {vltava, river} shares one of its two words with {vltava}: F1 = 2 / 3
            {},
            ["<hedge>Vltava river!</hedge>"],
            "The final answer: Vltava river!",
            "The final answer shares 67% with the right one: Vltava river! Right is: Vltava or the Moldau.",
            "Ada guessed.",
        ),
        (
            {},
            ["<answer>Elbe</answer>"],
            "The final answer: Elbe.",
            "The final answer is wrong: Elbe. Right is: Vltava or the Moldau.",
            "Ada was sure of the answer.",
        ),
        (
            {},
            ["!"],
            "There is no final answer.",
            "There is no final answer. Right is: Vltava or the Moldau.",
            "Ada did not answer.",
        ),
        (
            {"effort": 1},
            ["<ask/>", "<answer>Vltava</answer>", "<search/>"],
            "The final answer: Vltava.",
            "The final answer is right: Vltava.",
            "No ask or search was left; the latest reply counts.",
        ),
        (
            {"turn_limit": 2},
            ["<ask/>", "!"],
            "There is no final answer.",
            "There is no final answer. Right is: Vltava or the Moldau.",
            "No move was left.",
        ),
    ],
)
def test_how_people_read_the_end(settings, texts, headline, verdict, moment):
    game = say(make(society(**settings)), *texts)
    for viewer in (0, 1, SPECTATOR):
        view = game.show(viewer)
        assert (view.headline, view.moment, view.mood, view.ask) == (headline, moment, "over", "")
        assert read(game, viewer)[-1] == (None, "news", f"{moment} {headline}")
    assert [game.show(viewer).headline for viewer in (ALL, 3)] == [verdict] * 2
    assert read(game, ALL)[-2:] == [
        (None, "news", f"{moment} {headline}"),
        (None, "news", f"{verdict} The score is {game.returns()[0]:.2f}."),
    ]


def test_people_read_what_searches_cost():
    """Two searches at 0.05 each, and 2 / 3 for the answer: 0.57."""
    game = make(society(cost=0.05))
    say(game, "<ask/>", "<search/>", "x", "<hedge>E</hedge>", "<search/>", "", "!", "<answer>Vltava river</answer>")
    assert read(game, ALL)[-1][2].endswith("The score is 0.57: 0.67 for the answer, less 0.10 for 2 searches.")
    single = say(make(alone(society(), "wiki")), "<search/>", "x", "<answer>Vltava</answer>")
    assert read(single, ALL)[-1][2].endswith("The score is 0.99: 1.00 for the answer, less 0.01 for 1 search.")


def test_people_read_who_gave_up():
    game = say(make(society(["wiki"])), "<ask/>")
    game.step({1: FORFEIT})
    assert game.show(0).moment == "Ben gave up."
    assert game.show(0).headline == "There is no final answer."


# --- the script ---


@pytest.mark.parametrize(
    "question, passage, expected",
    [
        ("In which year did the Berlin Wall fall?", "The Wall fell in 1989.", "<hedge>1989</hedge>"),
        ("In which year did the Berlin Wall fall?", "The fall of the Berlin Wall, 1989.", "<answer>1989</answer>"),
        ("Who wrote the novel Emma?", "Jane Austen wrote the novel Emma.", "<answer>Jane Austen</answer>"),
        ("Who wrote the novel Emma?", "It is a novel. Emma was read in Bath.", "<hedge>unknown</hedge>"),
        ("How many moons has Mars?", "Mars has 2 moons.", "<answer>2</answer>"),
        ("Who wrote the novel Emma?", "", "<hedge>unknown</hedge>"),
    ],
)
def test_the_script_takes_what_the_question_asks_for(question, passage, expected):
    game = make(society(["wiki"], question=question))
    say(game, "<ask/>")
    assert reply(game.scenario, 1, game.observe(1), 1, "scripted") == "<search/>"
    say(game, "<search/>", passage)
    assert reply(game.scenario, 1, game.observe(1), 1, "scripted") == expected


@pytest.mark.parametrize(
    "evidence, expected",
    [
        (["<answer>Elbe</answer>", "<hedge>Vltava</hedge>"], "<answer>Elbe</answer>"),
        (["<hedge>Elbe</hedge>", "!"], "<hedge>Elbe</hedge>"),
        (["!", "!"], "<hedge>unknown</hedge>"),
        (["<hedge>unknown</hedge>", "<hedge>Oder</hedge>"], "<hedge>Oder</hedge>"),
    ],
)
@pytest.mark.parametrize("deanon", [False, True])
def test_the_asking_script_prefers_answers_to_hedges(deanon, evidence, expected):
    game = make(society(deanon=deanon))
    assert reply(game.scenario, 0, game.observe(0), 1, "scripted") == "<ask/>"
    say(game, "<ask/>", *evidence)
    assert reply(game.scenario, 0, game.observe(0), 1, "scripted") == expected


@pytest.mark.parametrize(
    "question, corpus, expected",
    [
        ("Which gene causes it?", "pubmed", True),
        ("Which gene causes it?", "wiki", False),
        ("Which river runs there?", "wiki", True),
        ("Which river runs there?", "BioASQ", False),
        ("Who read the generation of Genet?", "press", True),
    ],
)
def test_a_script_searches_a_medical_corpus_for_medical_questions(question, corpus, expected):
    assert fits(question, corpus) == expected
