"""The dialogue's rules: what each relationship reveals, turn orders, goal checks, and how it ends."""

import pytest

from tests.games.cases.dialogue import OPENING_TURNS, dialogue
from training.errors import BadInput, IllegalMove
from training.games import anonymised, make
from training.games.base import FORFEIT
from training.games.dialogue.game import HIGH, LOW
from training.games.dialogue.markup import render
from training.records import ALL, SPECTATOR, Move
from training.text.messages import chat
from training.text.parsing import parse

TOOL = 2


def say(game, seat, text):
    move, _ = parse(text, game.observe(seat))
    game.step({seat: move})


def goal(game, reached):
    game.step({TOOL: Move(action="goal", args={"reached": reached}, origin="tool")})


def last(game, viewer=SPECTATOR):
    return game.observe(viewer).messages[-1].text


def texts(game, viewer, start=0):
    return [(message.author, message.text) for message in game.observe(viewer).messages[start:]]


def read(game, viewer):
    """What people read at a place, as (who, kind, text)."""
    return [(line.seat, line.kind, line.text) for message in game.observe(viewer).messages for line in message.lines]


def portraits(game, viewer):
    (zone,) = game.show(viewer).zones
    return [(portrait.about, portrait.mood) for portrait in zone.portraits]


PROFILE = {
    "first_name": "never",
    "age": 34,
    "gender": "Nonbinary",
    "pronouns": "They/them",
    "occupation": "Baker",
    "public_info": "PUBLIC.",
    "personality_and_values": "VALUES.",
    "secret": "SECRET.",
    "big_five": "TRAITS",
}


@pytest.mark.parametrize(
    "relationship, word, known",
    [
        (0, "strangers", []),
        (1, "know each other by name", []),
        (2, "acquaintances", ["34-year-old nonbinary, Baker", "They/them", "PUBLIC."]),
        (3, "friends", ["34-year-old nonbinary, Baker", "They/them", "PUBLIC.", "VALUES."]),
        (4, "romantic partners", ["34-year-old nonbinary, Baker", "They/them", "PUBLIC.", "VALUES."]),
        (5, "family members", ["34-year-old nonbinary, Baker", "They/them", "PUBLIC.", "VALUES."]),
    ],
)
def test_what_a_relationship_reveals_of_the_other(relationship, word, known):
    people = [{"goal": "Mine"}, {"goal": "Theirs", "profile": PROFILE}]
    game = make(dialogue(people, relationship=relationship))
    text = game.observe(0).messages[0].text
    assert word in text
    everything = ["34-year-old nonbinary, Baker", "They/them", "PUBLIC.", "VALUES.", "SECRET.", "TRAITS", "Theirs"]
    assert [part for part in everything if part in text] == known
    about = next(line for line in text.splitlines() if line.startswith("About the other"))
    assert about.startswith({0: "About the other: you know nothing."}.get(relationship, "About the other: Ben"))
    her_rules = game.observe(1).messages[0].text
    assert [part for part in everything if part in her_rules] == [p for p in everything if p != "TRAITS"]
    public = game.observe(SPECTATOR).messages[0].text
    assert not [part for part in everything if part in public]
    assert all(part in game.observe(ALL).messages[0].text for part in everything)


@pytest.mark.parametrize("relationship, hidden", [(0, True), (1, False)])
def test_strangers_do_not_read_each_others_names(relationship, hidden):
    people = [
        {"goal": "Mine", "profile": {"first_name": "Nora", "last_name": "Lind"}},
        {"goal": "Theirs", "profile": {"first_name": "Juri", "last_name": "Halm"}},
    ]
    seats = ("Person A", "Person B") if hidden else ("Nora Lind", "Juri Halm")
    game = make(dialogue(people, relationship=relationship).model_copy(update={"seats": seats}))
    for seat in (0, 1):
        say(game, seat, "<nonverbal>nods</nonverbal>" if seat else "Hello.")
    texts = {viewer: str(chat(game.observe(viewer), viewer, seats)) for viewer in (0, 1, SPECTATOR, ALL)}
    assert ("Juri" in texts[0], "Halm" in texts[0], "Nora" in texts[1], "Lind" in texts[1]) == (not hidden,) * 4
    assert ("Juri" in texts[SPECTATOR]) == (not hidden)
    assert "You are Nora Lind" in texts[0]
    assert ("the other sees you as Person A" in texts[0]) == hidden
    assert "About you: Nora Lind" in texts[0]
    assert ("Person B (Juri Halm)" in texts[ALL]) == hidden  # who may see everything reads who is who


@pytest.mark.parametrize(
    "seats, relationship, seats_in_play",
    [
        (("Nora Lind", "Juri Halm"), 0, ("Person A", "Person B")),
        (("Juri Halm", "Nora Lind"), 0, ("Person A", "Person B")),  # shuffled: each sits under the other's name
        (("nora", "Buyer"), 0, ("Person A", "Person B")),
        (("Seller", "Buyer"), 0, ("Seller", "Buyer")),
        (("Person A", "Person B"), 0, ("Person A", "Person B")),
        (("Nora Lind", "Juri Halm"), 1, ("Nora Lind", "Juri Halm")),
    ],
)
def test_strangers_play_under_neutral_names(seats, relationship, seats_in_play):
    people = [
        {"goal": "Mine", "profile": {"first_name": "Nora", "last_name": "Lind"}},
        {"goal": "Theirs", "profile": {"first_name": "Juri", "last_name": "Halm"}},
    ]
    start = dialogue(people, relationship=relationship).model_copy(update={"seats": seats})
    assert anonymised(start) == start.model_copy(update={"seats": seats_in_play})


@pytest.mark.parametrize(
    "profile, shown",
    [
        ({"occupation": "NASA engineer", "age": 50, "gender": "Woman"}, "Ben: 50-year-old woman, NASA engineer."),
        ({"occupation": "X-ray technician at St. Mary's"}, "Ben: X-ray technician at St. Mary's."),
        ({"occupation": "Has a Ph.D.", "gender": "Man"}, "Ben: man, Has a Ph.D."),
        ({"age": 7}, "Ben: 7-year-old."),
    ],
)
def test_an_occupation_is_shown_as_it_is_written(profile, shown):
    game = make(dialogue([{"goal": "Mine"}, {"goal": "Theirs", "profile": profile}], relationship=2))
    about = next(line for line in game.observe(0).messages[0].text.splitlines() if line.startswith("About the other"))
    assert about == f"About the other: {shown}"


@pytest.mark.parametrize(
    "text, shown, without_hints",
    [
        ("Win (<extra_info>You are late.</extra_info>)", "Win (You are late.)", "Win (You are late.)"),
        ("Win <strategy_hint>Be kind.</strategy_hint>", "Win Be kind.", "Win"),
        (
            "Win (<extra_info>Late.<clarification_hint>Toss a coin.</clarification_hint></extra_info>)",
            "Win (Late. Toss a coin.)",
            "Win (Late.)",
        ),
        ("Win (<extra_info>Late. <clarification_hint>Ask.</clarification_hint>)", "Win (Late. Ask.)", "Win (Late.)"),
        ("Win (<strategy_hint>Ask.</strategy_hint>)", "Win (Ask.)", "Win"),
        ("Win</extra_info> it", "Win it", "Win it"),
        ("1 < 2 and <b>bold</b>", "1 < 2 and <b>bold</b>", "1 < 2 and <b>bold</b>"),
        ("<p viewer='agent_0'>for me</p> and <p viewer='agent_1'>not for me</p>.", "for me and.", "for me and."),
    ],
)
def test_markup_of_goals(text, shown, without_hints):
    assert render(text, 0) == shown
    assert render(text, 0, hints=False) == without_hints


def test_all_reads_every_part():
    assert render("<p viewer='agent_0'>a</p><p viewer='agent_1'>b</p><strategy_hint>c</strategy_hint>", ALL) == "a b c"
    assert render("<p viewer='agent_0'>a</p> b", SPECTATOR) == "b"
    assert render('<P Viewer="agent_0">a <strategy_hint>x</P> b', 1) == "b"
    assert render("<p viewer='environment'>a</p> b", 1) == "b"


@pytest.mark.parametrize("seat", ["7", "12", "1" * 4400])
def test_a_part_for_no_seat_is_for_nobody_who_plays(seat):
    """Python refuses to read a number of 4,400 digits."""
    text = f"<p viewer='agent_{seat}'>a</p> b"
    assert [render(text, viewer) for viewer in (0, 1, SPECTATOR, ALL)] == ["b", "b", "b", "a b"]


def test_own_goal_with_its_parts_is_for_the_own_seat_only():
    game = make(dialogue())
    assert "Borrow the car (The train is late. Be kind.)" in game.observe(0).messages[0].text
    assert "train" not in game.observe(1).messages[0].text
    assert "Be kind" not in make(dialogue(show_hints=False)).observe(0).messages[0].text


def test_kinds_of_turns_are_shown_to_others():
    game = make(dialogue())
    start = len(game.observe(1).messages)
    say(game, 0, "Hello Ben.")
    say(game, 1, "<nonverbal>frowns</nonverbal>")
    say(game, 0, "Please! <action>opens the door</action>")
    say(game, 1, "<none/>")
    say(game, 0, "Goodbye. <leave/>")
    assert texts(game, 1, start) == [
        (0, "Hello Ben."),
        (1, "<nonverbal>frowns</nonverbal>"),
        (None, "Ben (non-verbal): frowns"),
        (0, "Please! <action>opens the door</action>"),
        (None, "Ada (action): opens the door"),
        (1, "<none/>"),
        (None, "Ben does nothing."),
        (0, "Goodbye. <leave/>"),
        (None, "Ada leaves."),
        (None, "The conversation is over."),
    ]
    assert game.metrics() == {
        "turns": 5.0,
        "end_leave": 1.0,
        "end_goal": 0.0,
        "end_silence": 0.0,
        "end_limit": 0.0,
        "end_forfeit": 0.0,
    }
    assert game.seat_metrics() == {0: {"turns": 3.0}, 1: {"turns": 2.0}}
    assert game.returns() == {0: None, 1: None}


def test_simultaneous_turns_show_the_own_words_first_and_reveal_nothing_before_both_acted():
    game = make(dialogue(order="simultaneous"))
    assert game.to_act() == {0, 1}
    start = len(game.observe(0).messages)
    before = game.observe(1)
    game.check(0, Move(action="speak", text="From Ada"))
    assert game.observe(1) == before
    game.step({1: Move(action="speak", text="From Ben"), 0: Move(action="speak", text="From Ada")})
    assert texts(game, 0, start) == [(0, "From Ada"), (1, "From Ben")]
    assert texts(game, 1, start) == [(1, "From Ben"), (0, "From Ada")]
    assert texts(game, SPECTATOR, start) == [(0, "From Ada"), (1, "From Ben")]
    with pytest.raises(IllegalMove):
        game.step({0: Move(action="speak", text="alone")})


def play_on(game, text="Yes."):
    order = []
    while acting := sorted(game.to_act()):
        order.append(acting)
        game.step({seat: parse(text, game.observe(seat))[0] for seat in acting})
    return order


@pytest.mark.parametrize(
    "settings, turns",
    [
        ({}, [10, 10]),
        ({"turn_limit": 7}, [4, 3]),
        ({"turn_limit": 7, "first_seat": 1}, [3, 4]),
        ({"turns_per_seat": 5}, [5, 5]),
        ({"order": "simultaneous", "turn_limit": 7}, [3, 3]),
        ({"order": "simultaneous", "turns_per_seat": 5}, [5, 5]),
        ({"order": "random", "turns_per_seat": 3}, [3, 3]),
    ],
)
def test_limits(settings, turns):
    game = make(dialogue(**settings))
    rules = game.observe(0).messages[0].text
    assert f"at most {settings.get('turn_limit', 20)} turns" in rules
    assert ("each person at most" in rules) == ("turns_per_seat" in settings)
    play_on(game)
    assert [game.seat_metrics()[seat]["turns"] for seat in (0, 1)] == turns
    assert game.metrics()["end_limit"] == 1
    assert last(game) == "The conversation is over: all turns are used up."


def test_alternation_and_random_order():
    assert play_on(make(dialogue(turn_limit=4))) == [[0], [1], [0], [1]]
    orders = {seed: play_on(make(dialogue(order="random").with_seed(seed))) for seed in range(6)}
    assert orders == {seed: play_on(make(dialogue(order="random").with_seed(seed))) for seed in range(6)}
    assert len({str(order) for order in orders.values()}) > 1
    assert any([0] in order and [1] in order for order in orders.values())
    fixed = play_on(make(dialogue(order="random", fixed_order=[1, 1, 0, 1], turn_limit=4)))
    assert fixed == [[1], [1], [0], [1]]


def test_a_second_turn_in_a_row_is_announced():
    game = make(dialogue(order="random", fixed_order=[1, 1], turn_limit=4))
    say(game, 1, "First.")
    assert last(game) == "Ben has the next turn as well."


@pytest.mark.parametrize("order", ["alternating", "simultaneous"])
def test_both_silent_for_two_turns_ends_it(order):
    game = make(dialogue(order=order))
    assert play_on(game, "<none/>") in ([[0], [1], [0], [1]], [[0, 1], [0, 1]])
    assert game.metrics()["end_silence"] == 1
    assert last(game) == "The conversation is over: both stayed silent."


def test_speech_breaks_the_silence():
    game = make(dialogue())
    for seat, text in enumerate(["<none/>", "<none/>", "<none/>", "Hello?", "<none/>", "<none/>"]):
        say(game, seat % 2, text)
    assert game.to_act() == {0}
    say(game, 0, "<none/>")
    say(game, 1, "<none/>")
    assert game.metrics()["end_silence"] == 1


def test_the_tool_seat_is_asked_after_every_turn_and_ends_the_game_when_a_goal_is_reached():
    game = make(dialogue(goal_check=True))
    assert "when a goal is reached" in game.observe(0).messages[0].text
    say(game, 0, "May I?")
    assert game.to_act() == {TOOL}
    shown = {viewer: game.observe(viewer).messages for viewer in (0, 1, SPECTATOR)}
    assert [action.name for action in game.observe(TOOL).actions] == ["goal"]
    goal(game, "nobody")
    assert {viewer: game.observe(viewer).messages for viewer in (0, 1, SPECTATOR)} == shown
    say(game, 1, "You may.")
    goal(game, "0")
    assert not game.to_act()
    assert last(game, 1) == "The conversation is over: a goal has been reached."
    assert "Goal reached by: Ada." in [text for _, text in texts(game, ALL)]
    assert "Goal reached by: Ada." not in [text for _, text in texts(game, 0)]
    assert [game.seat_metrics()[seat]["goal"] for seat in (0, 1)] == [1, 0]
    assert game.metrics()["end_goal"] == 1


def test_goal_checks_can_be_rarer_and_come_after_a_joint_step():
    game = make(dialogue(goal_check=True, goal_check_every=3))
    asked = []
    while acting := game.to_act():
        asked.append(TOOL in acting)
        game.step({seat: game.default(seat) if seat == TOOL else Move(action="speak", text="x") for seat in acting})
    assert [i for i, tool in enumerate(asked) if tool] == [3, 7, 11, 15, 19, 23]
    both = make(dialogue(goal_check=True, order="simultaneous"))
    both.step({seat: Move(action="speak", text="x") for seat in (0, 1)})
    assert both.to_act() == {TOOL}


@pytest.mark.parametrize(
    "move",
    [
        Move(action="goal", args={"reached": "0"}),
        Move(action="goal", args={"reached": "everybody"}, origin="tool"),
        Move(action="speak", text="x", origin="tool"),
        FORFEIT,
    ],
)
def test_the_tool_seat_reports_facts_and_nothing_else(move):
    game = make(dialogue(goal_check=True))
    say(game, 0, "May I?")
    with pytest.raises(IllegalMove):
        game.step({TOOL: move})


def test_earlier_rounds_are_shown_and_do_not_count():
    game = make(dialogue(given=OPENING_TURNS, turn_limit=4))
    assert texts(game, 0, 1) == [
        (None, 'So far:\nAda says: "Good morning."\nBen (non-verbal): waves'),
        (None, "Ada continues."),
    ]
    play_on(game)
    assert game.metrics()["turns"] == 4
    assert make(dialogue(given=OPENING_TURNS[:1])).to_act() == {1}


def test_giving_up_loses_and_only_that():
    game = make(dialogue())
    game.step({0: FORFEIT})
    assert game.returns() == {0: LOW, 1: None}
    assert pytest.approx(-30 / 7) == LOW
    assert pytest.approx(40 / 7) == HIGH
    assert texts(game, 1)[-2:] == [(None, "Ada gives up the game."), (None, "The conversation is over.")]


def test_the_game_reports_a_seat_that_does_not_answer():
    game = make(dialogue())
    game.step({0: game.default(0).model_copy(update={"origin": "timeout", "text": "never shown"})})
    assert texts(game, 1)[-1] == (None, "Ada does not answer.")


def test_only_the_chosen_kinds_are_offered():
    game = make(dialogue(kinds=["leave", "speak"]))
    assert [action.name for action in game.observe(0).actions] == ["leave", "speak"]
    assert "<nonverbal>" not in game.observe(0).messages[0].text


# --- for people ---

CLOSE = ("34-year-old nonbinary, Baker", "Pronouns: They/them.", "PUBLIC.", "Personality and values: VALUES.")


@pytest.mark.parametrize(
    "relationship, tie, known",
    [
        (0, "strangers", ("You know nothing of them.",)),
        (1, "people who know each other by name", ("You know nothing but the name.",)),
        (2, "acquaintances", CLOSE[:3]),
        (3, "friends", CLOSE),
        (5, "family members", CLOSE),
    ],
)
def test_people_see_two_portraits_with_what_they_may_know(relationship, tie, known):
    people = [{"goal": "Mine"}, {"goal": "Theirs", "profile": {**PROFILE, "first_name": ""}}]
    game = make(dialogue(people, relationship=relationship))
    assert game.show(0).zones[0].setting == f"Two people stand in a garage.\nAda and Ben are {tie}."
    assert portraits(game, 0) == [((), ""), (known, "")]
    mine = "You know nothing of them." if relationship == 0 else "You know nothing but the name."
    assert portraits(game, 1) == [((mine,), ""), (CLOSE, "")]
    assert portraits(game, SPECTATOR) == [((), ""), ((), "")]
    assert portraits(game, ALL) == [(("Goal: Mine",), ""), ((*CLOSE, "Secret: SECRET.", "Goal: Theirs"), "")]


def test_a_card_says_the_goal_and_below_it_the_secret():
    people = [
        {"goal": "Ask (<strategy_hint>Be kind.</strategy_hint>)", "profile": {**PROFILE, "first_name": "Nora"}},
        {"goal": "Theirs"},
    ]
    game = make(dialogue(people, scenario="A bench.<p viewer='agent_1'> It is yours.</p>"))
    brief = game.show(0).brief
    assert brief.title == "Your goal"
    assert brief.text == (
        "Ask (Be kind.)",
        "Your secret: SECRET.",
        "You are Nora, and the other sees you as Ada.",
    )
    assert game.show(1).brief.text == ("Theirs",)
    assert [game.show(v).brief for v in (SPECTATOR, ALL)] == [None, None]
    assert [game.show(v).story for v in (0, 1, SPECTATOR)] == ["A bench.", "A bench. It is yours.", "A bench."]
    assert game.show(1).zones[0].setting == "A bench. It is yours.\nAda and Ben are strangers."
    assert portraits(game, 0)[0][0][0] == "Nora."
    assert portraits(game, 1)[0] == (("You know nothing of them.",), "")
    assert make(dialogue(people, show_hints=False)).show(0).brief.text[0] == "Ask"


def test_people_read_speech_and_deeds():
    game = make(dialogue(given=OPENING_TURNS))
    say(game, 0, "Hello Ben.")
    say(game, 1, "<nonverbal>frowns</nonverbal>")
    assert [mood for _, mood in portraits(game, SPECTATOR)] == ["", "frowns"]
    say(game, 0, "Please! <action>opens the door</action>")
    say(game, 1, "<none/>")
    assert [mood for _, mood in portraits(game, SPECTATOR)] == ["", ""]
    game.step({0: game.default(0).model_copy(update={"origin": "timeout"})})
    say(game, 1, "Goodbye. <leave/>")
    for viewer in (0, 1, SPECTATOR, ALL):
        assert read(game, viewer) == [
            (0, "speech", "Good morning."),
            (1, "deed", "waves"),
            (None, "news", "Ada continues."),
            (0, "speech", "Hello Ben."),
            (1, "deed", "frowns"),
            (0, "speech", "Please!"),
            (0, "deed", "opens the door"),
            (1, "deed", "does nothing"),
            (None, "news", "Ada does not answer."),
            (1, "speech", "Goodbye."),
            (1, "deed", "leaves"),
            (None, "news", "The conversation is over."),
        ]


@pytest.mark.parametrize(
    "settings, ask, how",
    [
        ({}, "Speak, gesture, act, do nothing or leave.", "you speak, gesture, act, do nothing or leave."),
        ({"kinds": ["leave", "speak"]}, "Speak or leave.", "you speak or leave."),
        ({"kinds": ["speak"]}, "Say something.", "you speak."),
    ],
)
def test_people_are_asked_for_what_they_may_do(settings, ask, how):
    game = make(dialogue(**settings))
    assert [game.show(viewer).ask for viewer in (0, 1, SPECTATOR)] == [ask, "", ""]
    rules = game.show(SPECTATOR).rules
    assert len(rules) == 3
    assert rules[1].endswith(how)


@pytest.mark.parametrize(
    "settings, phases",
    [
        ({"turn_limit": 3}, ["Turn 1 of 3", "Turn 2 of 3", "Turn 3 of 3", ""]),
        ({"turns_per_seat": 1}, ["Turn 1 of 2", "Turn 2 of 2", ""]),
        ({"turn_limit": 5, "order": "simultaneous"}, ["Round 1 of 2", "Round 2 of 2", ""]),
        ({"turn_limit": 2, "goal_check": True}, ["Turn 1 of 2", "Turn 2 of 2", "Turn 2 of 2", "Turn 2 of 2", ""]),
    ],
)
def test_the_phase_counts_turns(settings, phases):
    game = make(dialogue(**settings))
    shown = [game.show(SPECTATOR).phase]
    while acting := game.to_act():
        game.step({s: game.default(s) if s == TOOL else Move(action="speak", text="x") for s in acting})
        shown.append(game.show(SPECTATOR).phase)
    assert shown == phases


LEAVE, NOTHING = Move(action="leave"), Move(action="none")


@pytest.mark.parametrize(
    "settings, steps, headlines, moment",
    [
        (
            {},
            [{0: LEAVE}],
            ("You left the conversation.", "Ada left the conversation.", "Ada left the conversation."),
            "Ada left in turn 1.",
        ),
        (
            {"order": "simultaneous"},
            [{0: LEAVE, 1: LEAVE}],
            (
                "You both left the conversation.",
                "You both left the conversation.",
                "Ada and Ben left the conversation.",
            ),
            "Ada and Ben left in turn 2.",
        ),
        ({"order": "simultaneous"}, [{0: LEAVE, 1: FORFEIT}], ("Ben gave up.", "You gave up.", "Ben gave up."), None),
        (
            {},
            [{0: NOTHING}, {1: NOTHING}] * 2,
            ("You both fell silent.", "You both fell silent.", "Ada and Ben fell silent."),
            "Ada and Ben were silent twice in a row, until turn 4.",
        ),
        (
            {"turn_limit": 2, "kinds": ["speak"]},
            [{0: Move(action="speak", text="a")}, {1: Move(action="speak", text="b")}],
            ("All turns are used.",) * 3,
            "The last words were said in turn 2.",
        ),
    ],
)
def test_how_people_read_the_end(settings, steps, headlines, moment):
    game = make(dialogue(**settings))
    for moves in steps:
        game.step(moves)
    views = [game.show(viewer) for viewer in (0, 1, SPECTATOR)]
    assert tuple(view.headline for view in views) == headlines
    assert {view.moment for view in views} == {moment or "Ben gave up in turn 2."}
    assert {view.mood for view in views} == {"over"}


@pytest.mark.parametrize(
    "reached, headline", [("0", "Ada reached the goal."), ("both", "Ada and Ben reached their goals.")]
)
def test_whose_goal_was_reached_is_for_those_who_may_see_everything(reached, headline):
    game = make(dialogue(goal_check=True))
    say(game, 0, "May I?")
    assert game.show(TOOL).ask == ""
    goal(game, reached)
    assert [game.show(viewer).headline for viewer in (0, 1, SPECTATOR)] == ["A goal was reached."] * 3
    assert [game.show(viewer).headline for viewer in (ALL, TOOL)] == [headline] * 2
    assert game.show(ALL).moment == "A goal was reached in turn 1."


@pytest.mark.parametrize(
    "settings, why",
    [
        ({"relationship": 6}, "settings.relationship"),
        ({"kinds": ["none"]}, "speak must be one of the kinds"),
        ({"kinds": ["speak", "speak"]}, "named twice"),
        ({"fixed_order": [0]}, "set order to random"),
        ({"given": [{"seat": 0, "text": " "}]}, "needs text"),
        ({"given": [{"seat": 0, "kind": "leave"}]}, "before the game begins"),
        ({"given": OPENING_TURNS * 3}, "settings.given"),
        ({"participants": [{"goal": "x"}]}, "settings.participants"),
        ({"participants": [{"goal": ""}, {"goal": "x"}]}, "settings.participants.0.goal"),
        ({"turn_limit": 1}, "settings.turn_limit"),
    ],
)
def test_wrong_settings_say_what_is_wrong(settings, why):
    with pytest.raises(BadInput, match=why):
        make(dialogue(**settings))
