"""Replies become moves: every declared form, every refusal, and `write` as the inverse of `parse`."""

import time

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from training.errors import ParseError
from training.games.actions import TAG, how_to, plain
from training.records import Action, Argument, Observation
from training.text import choices
from training.text.parsing import parse, split_private, write

TALK = Action(name="talk", text="required", bare=True, label="Say something")
SPLIT = Action(
    name="propose",
    args=tuple(Argument(name=n, kind="integer", low=0, high=3) for n in ("food", "tent pegs", "oil")),
)
PRICE = Action(name="price", args=(Argument(name="price", kind="integer", low=0, high=5000),))
ACCEPT = Action(name="accept")
WALK = Action(name="walk_away")
NONE = Action(name="none", text="none")
VOTE = Action(name="vote", args=(Argument(name="who", kind="choice", choices=("Ada", "Ben Hur")),))
DEED = Action(name="action", args=(Argument(name="what", kind="text"),))
MIXED = Action(
    name="mixed",
    args=(Argument(name="who", kind="choice", choices=("Ada", "Ben")), Argument(name="why", kind="text")),
    text="required",
)
ALL = (TALK, SPLIT, PRICE, ACCEPT, WALK, NONE, VOTE, DEED, MIXED)


def seen(*actions, max_chars=500):
    return Observation(messages=(), actions=actions or ALL, max_chars=max_chars)


def read(reply, *actions, **options):
    move, _ = parse(reply, seen(*actions, **options))
    return move.action, move.args, move.text


@pytest.mark.parametrize(
    "reply, action, args, text",
    [
        ("Hello  there,\n friend", "talk", {}, "Hello there, friend"),
        ("<talk>Hello</talk>", "talk", {}, "Hello"),
        ("I love you <3 and 2 < 3", "talk", {}, "I love you <3 and 2 < 3"),
        ("<accept/>", "accept", {}, "<accept/>"),
        ("<accept>", "accept", {}, "<accept/>"),
        ("<ACCEPT></Accept>", "accept", {}, "<accept/>"),
        ("Fine. <accept/> Thanks!", "accept", {}, "Fine. <accept/> Thanks!"),
        ("<accept>Fine.</accept>", "accept", {}, "Fine. <accept/>"),
        ("<walk away/>", "walk_away", {}, "<walk_away/>"),
        ("Bye <Walk-Away>", "walk_away", {}, "Bye <walk_away/>"),
        ("<price>120</price>", "price", {"price": 120}, "<price>120</price>"),
        ("<price> price: $1,200.00 </price>", "price", {"price": 1200}, "<price>1200</price>"),
        ("<vote>ben hur</vote>", "vote", {"who": "Ben Hur"}, "<vote>Ben Hur</vote>"),
        ("<vote>who: Ada</vote>", "vote", {"who": "Ada"}, "<vote>Ada</vote>"),
        ("<action>opens the door, slowly</action>", "action", None, "<action>opens the door, slowly</action>"),
        ("<mixed>who Ada, why she lied, twice</mixed> Hm.", "mixed", {"who": "Ada", "why": "she lied, twice"}, None),
    ],
)
def test_forms(reply, action, args, text):
    parsed = read(reply)
    assert parsed[0] == action
    assert args is None or parsed[1] == args
    assert text is None or parsed[2] == text


@pytest.mark.parametrize(
    "inside",
    [
        "food 2, tent pegs 1, oil 0",
        "Food: 2; Tent Pegs = 1; OIL 0",
        "oil 0, food 2 and tent pegs 1",
        "food 2 tent pegs 1 oil 0",
        "2 food, 1 tent pegs, 0 oil",
        "2 food, 1 x tent pegs and 0 oil",
        "\n food 2,\n tent pegs 1,\n oil 0\n",
    ],
)
def test_arguments_by_name_in_any_order(inside):
    parsed = read(f"<propose>{inside}</propose>")
    assert parsed[1] == {"food": 2, "tent pegs": 1, "oil": 0}
    assert parsed[2] == "<propose>food 2, tent pegs 1, oil 0</propose>"


@pytest.mark.parametrize(
    "reply, says",
    [
        ("", "empty"),
        (" \n ", "empty"),
        ("<think>only thought</think>", "empty"),
        ("<think>never closed <accept/>", "empty"),
        ("<accept/><walk_away/>", "more than one"),
        ("<accept/> or <accept/>", "more than one"),
        ("<accept><walk_away/></accept>", "more than one"),
        ("</accept>", "not opened"),
        ("<dance/>", "<dance/> is not an action"),
        ("<propose food=2>", "not an action"),
        ("<propose>food 2, tent pegs 1, oil 0", "not closed"),
        ("<propose>food 2, oil 0</propose>", "lacks: tent pegs"),
        ("<propose>food 4, tent pegs 1, oil 0</propose>", "food must be a whole number from 0 to 3, not '4'"),
        ("<propose>food two, tent pegs 1, oil 0</propose>", "Food must be a whole number"),
        ("<propose>food 1.5, tent pegs 1, oil 0</propose>", "Food must be a whole number"),
        ("<propose>food -1, tent pegs 1, oil 0</propose>", "Food must be a whole number"),
        ("<propose>food 1, food 2, tent pegs 1, oil 0</propose>", "names food twice"),
        ("<propose>wood 1, food 2, tent pegs 1, oil 0</propose>", "'wood 1'"),
        ("<propose>food 2, tent pegs 1, oil 0, wood 1</propose>", "wood 1"),
        ("<propose>everything</propose>", "'everything'"),
        ("<propose/>", "lacks: food, tent pegs, oil"),
        ("<price></price>", "price must be"),
        ("<vote>Cem</vote>", "one of Ada, Ben Hur"),
        ("<action></action>", "what must not be empty"),
        ("<none/> I say nothing", "must stand alone"),
        ("<mixed>who Ada, why not</mixed>", "needs some text"),
        ("<talk></talk>", "needs some text"),
        ("x" * 501, "501 characters; at most 500"),
        (f"<action>{'x' * 501}</action>", "501 characters; at most 500"),
    ],
)
def test_refusals_say_what_is_wrong(reply, says):
    with pytest.raises(ParseError) as refusal:
        parse(reply, seen())
    assert says.lower() in str(refusal.value).lower()


def test_refusals_say_how_to_write_it():
    with pytest.raises(ParseError) as refusal:
        parse("<propose>food 9</propose>", seen())
    assert how_to([SPLIT]) in str(refusal.value)
    with pytest.raises(ParseError) as refusal:
        parse("I accept", seen(ACCEPT, WALK))
    assert how_to([ACCEPT, WALK]) in str(refusal.value)
    with pytest.raises(ParseError, match="not your turn"):
        parse("Hello", Observation(messages=()))


def test_the_tag_does_not_count_as_text():
    limit = "x" * 500
    assert read(f"{limit} <propose>food 2, tent pegs 1, oil 0</propose>")[0] == "propose"
    assert read(f"<action>{limit}</action>")[0] == "action"


@pytest.mark.parametrize(
    "reply, public, private",
    [
        ("<think>a</think>b", "b", "a"),
        ("b<THINK>a</think> c <thinking>d</thinking>e", "b c e", "a\nd"),
        ("b <think>a", "b", "a"),
        ("a</think>b", "b", "a"),
        ("x <think>y</think> z </think> b", "b", "y\nx\nz"),
        ("<think>a<think>b</think>c</think>d", "d", "a\nb\nc"),
        ("<thi<think>a</think>nk>b", "<thi nk>b", "a"),
        ("d <think>a<think>b</think>c", "d", "a\nb\nc"),
        ("plain", "plain", ""),
    ],
)
def test_private_parts(reply, public, private):
    parts = split_private(reply)
    assert (" ".join(parts[0].split()), parts[1]) == (public, private)


@given(st.text(alphabet="ab <>/think\n", max_size=60))
def test_nothing_inside_a_think_tag_is_public(inside):
    secret = "\u2603"
    public, private = split_private(f"before <think>{inside}{secret}")
    closings = inside.lower().count("</think>")
    if closings == 0:
        assert secret not in public
        assert secret in private


words = st.text(st.characters(exclude_characters="<>", exclude_categories=["C"]), max_size=40)
names = st.lists(st.from_regex(r"[a-z]{2,8}( [a-z]{2,8})?", fullmatch=True), min_size=1, max_size=4, unique=True)


@st.composite
def written(draw):
    """An action with arguments and speech."""
    arguments, values = [], {}
    for name in draw(names):
        kind = draw(st.sampled_from(["integer", "integer", "choice", "text"]))
        if kind == "integer":
            low, high = sorted((draw(st.integers(-99, 9999)), draw(st.integers(-99, 9999))))
            arguments.append(Argument(name=name, kind=kind, low=low, high=high))
            values[name] = draw(st.integers(low, high))
        elif kind == "choice":
            choices = draw(st.lists(st.from_regex(r"[A-Z][a-z]{0,7}", fullmatch=True), min_size=1, unique=True))
            arguments.append(Argument(name=name, kind=kind, choices=tuple(choices)))
            values[name] = draw(st.sampled_from(choices))
        else:
            arguments.append(Argument(name=name, kind=kind))
            values[name] = " ".join(draw(words).split())
    text = draw(st.sampled_from(["none", "optional", "required"]))
    speech = "" if text == "none" else " ".join(draw(words).split())
    return Action(name="act", args=tuple(arguments), text=text), values, speech


@given(written())
def test_parse_is_the_inverse_of_write(example):
    action, args, speech = example
    try:
        reply = write(action, args, speech)
    except ValueError:
        kinds = [argument.kind for argument in action.args]
        lowered = [c.lower() for argument in action.args for c in argument.choices]
        # Integers and distinct choices can always be written; free text may look like another argument.
        needs_speech = action.text == "required" and not speech
        assert needs_speech or "text" in kinds or len(lowered) != len(set(lowered))
        return
    move, private = parse(reply, seen(action, max_chars=0))
    assert (move.action, move.args, move.text, private) == ("act", args, reply, "")
    assert parse(move.text, seen(action, max_chars=0))[0] == move


@given(words)
def test_speech_alone_is_the_bare_action(text):
    spoken = " ".join(text.split())
    assume(spoken)
    assert parse(write(TALK, {}, text), seen())[0].text == spoken


@given(st.text(max_size=200))
def test_any_reply_is_a_move_that_parses_to_itself_or_a_refusal(reply):
    refusal = ""
    try:
        move, _ = parse(reply, seen())
    except ParseError as error:
        refusal = str(error)
    assert refusal or parse(move.text, seen())[0] == move


@given(st.text(alphabet="ab </>\n\u2028think", max_size=60))
@example("<a<a>>")
def test_plain_text_can_always_be_spoken(text):
    safe = plain(text)
    if safe:
        assert write(TALK, {}, safe) == safe
    assert "\n" not in safe


@pytest.mark.parametrize(
    "action, args, speech",
    [
        (TALK, {}, ""),
        (TALK, {}, "I <accept/>"),
        (ACCEPT, {"x": 1}, ""),
        (SPLIT, {"food": 1}, ""),
        (SPLIT, {"food": 9, "tent pegs": 0, "oil": 0}, ""),
        (NONE, {}, "words"),
        (DEED, {"what": "opens <b>"}, ""),
        (DEED, {"what": ""}, ""),
    ],
)
def test_what_could_not_be_read_back_is_not_written(action, args, speech):
    with pytest.raises(ValueError, match=r"\w"):
        write(action, args, speech)


def test_how_to_is_generated_from_the_declaration():
    assert how_to(ALL).splitlines() == [
        "- Say something: just write it, without a tag.",
        "- propose: <propose>food 1, tent pegs 1, oil 1</propose> (food 0 to 3; tent pegs 0 to 3; oil 0 to 3).",
        "- price: <price>2500</price> (price 0 to 5000).",
        "- accept: <accept/>.",
        "- walk away: <walk_away/>.",
        "- none: <none/>. Write nothing else.",
        "- vote: <vote>Ada</vote> (who: Ada, Ben Hur).",
        "- action: <action>...</action>.",
        "- mixed: <mixed>who Ada, why ...</mixed> (who: Ada, Ben). Write a sentence beside it.",
    ]


def test_every_example_of_how_to_parses():
    for line, action in zip(how_to(ALL[1:]).splitlines(), ALL[1:], strict=True):
        example = line.split(": ", 1)[1].rpartition(">")[0] + ">"
        reply = f"Well. {example}" if action.text == "required" else example
        assert parse(reply, seen())[0].action == action.name


# --- marked choices, and words that stay with their seat ---

CHOOSE = Action(
    name="answer",
    args=(
        Argument(
            name="choice", kind="choice", choices=("X(0,0)", "X(0,1)", "Reveal player +1 color R", "BET"), marked=True
        ),
    ),
    text="private",
)


@pytest.mark.parametrize(
    "reply, choice, private",
    [
        ("<answer><X(0,0)></answer>", "X(0,0)", ""),
        ("<ANSWER>< x(0,1) ></Answer>", "X(0,1)", ""),
        ("<answer>bet</answer>", "BET", ""),
        ("<answer><reveal player +1 COLOR r></answer>", "Reveal player +1 color R", ""),
        ("I want <X(0,0)>, no: <answer><BET></answer>", "BET", "I want X(0,0), no:"),
        ("<think>Hm.</think>So <answer><BET></answer> it is.", "BET", "Hm.\nSo it is."),
        ("<answer>choice: BET</answer>", "BET", ""),
    ],
)
def test_marked_choices_are_read_and_the_words_beside_them_stay_private(reply, choice, private):
    move, kept = parse(reply, seen(CHOOSE, max_chars=0))
    assert (move.action, move.args, move.text) == ("answer", {"choice": choice}, f"<answer><{choice}></answer>")
    assert kept == private
    assert parse(move.text, seen(CHOOSE, max_chars=0)) == (move, "")


@pytest.mark.parametrize(
    "reply", ["BET", "<BET>", "<answer></answer>", "<answer><FOLD></answer>", "<answer/>", "<answer>"]
)
def test_a_choice_needs_its_tag_and_must_be_legal(reply):
    with pytest.raises(ParseError) as refused:
        parse(reply, seen(CHOOSE, max_chars=0))
    assert "<answer><X(0,0)></answer>" in str(refused.value)


# --- commands ---


def thing(name, *choices, prepositions=()):
    return Argument(name=name, kind="choice", choices=choices, open=True, prepositions=prepositions)


GO = Action(name="go_to", args=(thing("place", "shelf 2", "desk 1"),), text="private", verbs=("go to",), label="Go")
TAKE = Action(
    name="take",
    args=(thing("object", "mug 1", "CD 2"), thing("place", "shelf 2", prepositions=("from",))),
    text="private",
    verbs=("take",),
)
PUT = Action(
    name="put",
    args=(thing("object"), thing("place", "shelf 2", prepositions=("in/on", "into", "in", "on", "to"))),
    text="none",
    verbs=("put", "move"),
)
COOL = Action(
    name="cool",
    args=(thing("object"), thing("place", prepositions=("with", "using", "in"))),
    text="private",
    verbs=("cool",),
)
LOOK = Action(name="look", text="private", verbs=("look",))
EXAMINE = Action(name="examine", args=(thing("what"),), text="private", verbs=("examine", "look at"))
COMMANDS = (GO, TAKE, PUT, COOL, LOOK, EXAMINE)
FROM_SHELF = {"object": "mug 1", "place": "shelf 2"}


@pytest.mark.parametrize(
    "reply, action, args, text",
    [
        ("go to shelf 2", "go_to", {"place": "shelf 2"}, "go to shelf 2"),
        ("> Go to  Shelf 2.", "go_to", {"place": "shelf 2"}, "go to shelf 2"),
        ("`go to the moon`", "go_to", {"place": "the moon"}, "go to the moon"),
        ("<go to>desk 1</go to>", "go_to", {"place": "desk 1"}, "go to desk 1"),
        ("go to place desk 1", "go_to", {"place": "desk 1"}, "go to desk 1"),
        ("take mug 1 from shelf 2", "take", FROM_SHELF, "take mug 1 from shelf 2"),
        ("take cd 2 from shelf 9", "take", {"object": "CD 2", "place": "shelf 9"}, "take CD 2 from shelf 9"),
        ("<take>mug 1 from shelf 2</take>", "take", FROM_SHELF, "take mug 1 from shelf 2"),
        ("<take>place shelf 2, object mug 1</take>", "take", FROM_SHELF, "take mug 1 from shelf 2"),
        ("take object: mug 1, place: shelf 2", "take", FROM_SHELF, "take mug 1 from shelf 2"),
        ("put mug 1 in shelf 2", "put", FROM_SHELF, "put mug 1 in/on shelf 2"),
        ("Move mug 1 to shelf 2!", "put", FROM_SHELF, "put mug 1 in/on shelf 2"),
        ("put mug 1 in/on inkstand 3", "put", {"object": "mug 1", "place": "inkstand 3"}, "put mug 1 in/on inkstand 3"),
        ("cool mug 1 in shelf 2", "cool", FROM_SHELF, "cool mug 1 with shelf 2"),
        ("LOOK", "look", {}, "look"),
        ("<look/>", "look", {}, "look"),
        ("look at mug 1", "examine", {"what": "mug 1"}, "examine mug 1"),
    ],
)
def test_a_command_is_an_action_without_a_tag(reply, action, args, text):
    assert read(reply, *COMMANDS) == (action, args, text)
    assert read(text, *COMMANDS) == (action, args, text)


@pytest.mark.parametrize(
    "reply, says",
    [
        ("take mug 1", "Take lacks: place. Write one of these"),
        ("take from shelf 2", "Take lacks: object"),
        ("go to", "Place must not be empty"),
        ("cool mug 1 in/on shelf 2", "Cool lacks: place"),
        ("put mug 1 on/in shelf 2", "Put lacks: place"),
        ("take mug 1 from shelf 2 from desk 1", "Take names place twice"),
        ("look around", "no action that is possible now"),
        ("looking", "no action that is possible now"),
        ("I take mug 1 from shelf 2", "no action that is possible now"),
        ("go to " + "x" * 501, "at most 500 are allowed"),
        ("now <put>mug 1 on shelf 2</put>", "put must stand alone"),
    ],
)
def test_what_is_no_command(reply, says):
    with pytest.raises(ParseError) as refusal:
        parse(reply, seen(*COMMANDS))
    assert says.lower() in str(refusal.value).lower()


def test_words_beside_a_commands_tag_are_private():
    move, private = parse("The mug is there. <take>mug 1 from shelf 2</take>", seen(*COMMANDS))
    assert (move.args, move.text, private) == (FROM_SHELF, "take mug 1 from shelf 2", "The mug is there.")
    assert write(TAKE, FROM_SHELF, "The mug is there.") == "The mug is there. <take>mug 1 from shelf 2</take>"
    assert write(TAKE, FROM_SHELF) == move.text


def test_the_ways_to_write_commands_show_few_of_the_open_choices():
    assert how_to([*COMMANDS, GO.model_copy(update={"args": (thing("place", *"abcdefg"),)})]).splitlines() == [
        "- Go: `go to shelf 2` (place: shelf 2, desk 1).",
        "- take: `take mug 1 from shelf 2` (object: mug 1, CD 2).",
        "- put: `put ... in/on shelf 2`.",
        "- cool: `cool ... with ...`.",
        "- look: `look`.",
        "- examine: `examine ...`.",
        "- Go: `go to a` (place: a, b, c, d, e, …).",
    ]


def test_only_what_an_open_choice_lists_is_listed():
    listed = [reply for action in COMMANDS for reply in choices.replies([action])]
    assert listed == ["go to shelf 2", "go to desk 1", "take mug 1 from shelf 2", "take CD 2 from shelf 2", "look"]
    assert choices.count(COMMANDS) == 5


def test_nothing_that_others_read_stands_beside_a_command():
    with pytest.raises(ValidationError, match="no text for others"):
        Action(name="look", verbs=("look",), text="optional")


@pytest.mark.parametrize("text", ["<" + " " * 100_000, "< /" + " " * 100_000, "< " * 50_000, "<a" + " " * 20_000])
def test_a_tag_that_never_ends_takes_no_long_search(text):
    """Time that grew with the square of the white space took minutes here."""
    began = time.perf_counter()
    assert TAG.search(text) is None
    assert time.perf_counter() - began < 5
