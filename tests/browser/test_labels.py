"""Labels of words, turns and pairs of turns in a real browser, on the style guide's specimen.

Offsets are expected from Python, whose strings are sequences of code points: `in_turn` is the second implementation.
"""

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from tests.browser.site import free_port
from tests.browser.test_journey import fits
from tests.browser.test_pages import AXE, CHECK, CONTRAST, SMALL, TAGS, WIDE
from tools.screenshots import wait_for
from webapp.styleguide.labels import LABELS, TEXTS

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SELECT = """([turn, from, to]) => {
  const text = document.querySelector(`li[data-turn="${turn}"] [data-text]`).firstChild;
  getSelection().setBaseAndExtent(text, from, text, to);
}"""


@pytest.fixture(scope="module")
def guide(site):
    """The address of the style guide, which only a site in debug mode has."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "webapp.asgi:application", "--port", str(port), "--log-level", "error"]
    with subprocess.Popen(command, cwd=ROOT, env={**site.environment, "PARLEY_DEBUG": "1"}) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/styleguide/tables/", process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture
def specimen(visit, guide):
    """Opens the specimen: `specimen(labels=[…])`."""

    def open_it(labels=(), keys=None, viewport=WIDE, **options):
        page = visit(address=guide, viewport=viewport, **options).page
        query = {"labels": labels if isinstance(labels, str) else json.dumps(list(labels))}
        page.goto("/styleguide/?" + urlencode({**query, **({"keys": json.dumps(keys)} if keys else {})}))
        page.locator("#labels").evaluate("heading => heading.scrollIntoView()")
        return page

    return open_it


def in_turn(label, turn, words):
    start = TEXTS[turn][1].index(words)
    return {"label": label, "turn": turn, "start": start, "end": start + len(words)}


def value(page):
    return json.loads(page.locator("[data-annotatable] [name=labels]").input_value())


def press(page, *keys):
    for key in keys:
        page.keyboard.press(key)


def turn(page, number):
    return page.locator(f'li[data-turn="{number}"]')


def button(page, name):
    return page.locator(".label-button").filter(has_text=name)


def said(page):
    return page.get_by_role("application").get_by_role("status")


def to_first_turn(page):
    """From the heading above by Tab alone, as a keyboard leads there."""
    page.locator(".label-brush").last.focus()
    press(page, "Tab")
    expect(turn(page, 0)).to_be_focused()


def place(page, number, words, side, inset=1):
    """A point just inside the first or last letter of words in a turn's text."""
    box = page.evaluate(
        """([turn, words]) => {
          const text = document.querySelector(`li[data-turn="${turn}"] [data-text]`).firstChild;
          const range = document.createRange();
          range.setStart(text, text.data.indexOf(words));
          range.setEnd(text, text.data.indexOf(words) + words.length);
          return range.getBoundingClientRect().toJSON();
        }""",
        [number, words],
    )
    return (box["left"] + inset if side == "start" else box["right"] - inset), box["top"] + box["height"] / 2


def drag(page, begin, end):
    page.mouse.move(*begin)
    page.mouse.down()
    page.mouse.move(*end, steps=5)
    page.mouse.up()


def test_everything_is_done_by_keyboard_alone(specimen):
    page = specimen()
    to_first_turn(page)
    press(page, "j", "Enter")
    expect(said(page)).to_have_text("“Fine”")
    press(page, "ArrowRight", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowRight")  # me. If you
    expect(said(page)).to_have_text("“me. If you”")
    press(page, "Shift+ArrowLeft", "t")
    expect(said(page)).to_have_text("Threat: “me. If” in turn 2.")
    threat = in_turn("threat", 1, "me. If")
    assert value(page) == [threat]
    press(page, "Escape")
    expect(turn(page, 1)).to_be_focused()
    press(page, "q", "m", "k", "a")
    question, answers = {"label": "question", "turn": 1}, {"label": "answers", "turn": 1, "other_turn": 0}
    expect(said(page)).to_have_text("Answers: from turn 2 to turn 1.")
    assert value(page) == [threat, question, answers]
    press(page, "j", "Tab", "Tab")  # the button that labels the turn, then the first label in it
    expect(button(page, "Threat")).to_be_focused()
    press(page, "Shift+Alt+ArrowRight", "Shift+Alt+ArrowUp")
    longer = in_turn("threat", 1, "by me. If you")
    assert value(page) == [longer, question, answers]
    press(page, "Shift+Alt+ArrowDown", "Shift+Alt+ArrowLeft")
    assert value(page) == [threat, question, answers]
    expect(button(page, "Threat")).to_be_focused()
    press(page, "Delete")
    expect(said(page)).to_have_text("Deleted: Threat: “me. If” in turn 2.")
    assert value(page) == [question, answers]
    expect(button(page, "Question")).to_be_focused()


def test_tab_leads_to_one_turn_and_what_is_in_it(specimen):
    page = specimen(LABELS)
    to_first_turn(page)
    press(page, "j", "Tab")
    expect(page.get_by_role("button", name="Label turn 2")).to_be_focused()
    for name in ("Threat", "Promise", "Reason", "Answers"):
        press(page, "Tab")
        expect(turn(page, 1).locator(".label-button").filter(has_text=name)).to_be_focused()
    press(page, "Tab")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()


def test_words_that_the_arrows_reach_are_scrolled_into_view(specimen):
    page = specimen(viewport={"width": 360, "height": 420})
    to_first_turn(page)
    press(page, *"jjjj", "Enter", "End")
    head = "getSelection().getRangeAt(0).getBoundingClientRect().toJSON()"
    bar = page.locator(".label-bar").bounding_box()
    assert page.evaluate(head)["bottom"] <= bar["y"]
    press(page, "Home")
    assert page.evaluate(head)["top"] >= 0


def test_every_change_is_undone_and_done_again(specimen):
    page = specimen()
    to_first_turn(page)
    press(page, "Enter", "o", "Escape", "q", "m", "j", "a", "k", "Tab", "Tab", "Shift+Alt+ArrowRight", "Delete")
    shall, longer = in_turn("offer", 0, "Shall"), in_turn("offer", 0, "Shall we")
    question, answers = {"label": "question", "turn": 0}, {"label": "answers", "turn": 0, "other_turn": 1}
    labelled = [[], [shall], [shall, question], [shall, question, answers]]
    states = [*labelled, [longer, question, answers], [question, answers]]
    assert value(page) == states[-1]
    for state in states[-2::-1]:
        press(page, "Control+z")
        assert value(page) == state
    expect(said(page)).to_have_text("Undone: Offer: “Shall” in turn 1.")
    press(page, "Control+z")
    expect(said(page)).to_have_text("Nothing to undo.")
    for state in states[1:3]:
        press(page, "Control+Shift+z")
        assert value(page) == state
    page.get_by_role("button", name="Redo").click()
    assert value(page) == states[3]
    page.get_by_role("button", name="Undo").click()
    assert value(page) == states[2]
    press(page, "Control+z", "j", "q")  # a new change ends what could be done again
    expect(page.get_by_role("button", name="Redo")).to_have_attribute("aria-disabled", "true")


def test_a_mouse_selects_whole_words_and_with_alt_exactly_its_characters(specimen):
    page = specimen()
    drag(page, place(page, 0, "split", "start", 8), place(page, 0, "apples", "start", 12))
    tools = page.get_by_role("toolbar")
    expect(tools).to_contain_text("split the apples")
    tools.get_by_role("button", name="Reason").click()
    assert value(page) == [in_turn("reason", 0, "split the apples")]
    expect(tools).to_have_count(0)
    page.keyboard.down("Alt")
    drag(page, place(page, 1, "ine by", "start", 0), place(page, 1, "ine by", "end", 0))
    page.keyboard.up("Alt")
    expect(tools).to_contain_text("“ine by”")
    press(page, "p")
    assert value(page)[1] == in_turn("promise", 1, "ine by")


def test_what_a_mouse_does_to_a_label_and_a_turn(specimen):
    page = specimen()
    page.get_by_role("button", name="Label turn 2").click()
    page.get_by_role("button", name="First turn of a relation").click()
    page.get_by_role("button", name="Label turn 1").click()
    page.get_by_role("toolbar").get_by_role("button", name="Answers: from turn 2").click()
    assert value(page) == [{"label": "answers", "turn": 1, "other_turn": 0}]
    page.get_by_role("button", name="Label turn 3").click()
    page.get_by_role("button", name="Select words").click()
    expect(page.get_by_role("toolbar")).to_contain_text("“Ben”")
    page.mouse.dblclick(*place(page, 2, "fair", "start", 4))
    page.get_by_role("toolbar").get_by_role("button", name="Reason").click()
    button(page, "Reason").click()
    page.get_by_role("button", name="Start earlier").click()
    assert value(page)[1] == in_turn("reason", 2, "not fair")
    page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    assert len(value(page)) == 1


def test_a_selection_over_two_turns_is_refused_with_a_sentence(specimen):
    page = specimen([LABELS[0]])
    drag(page, place(page, 0, "apples", "start"), place(page, 1, "basket", "start"))
    expect(said(page)).to_contain_text("begins in turn 1 and ends in turn 2. Nothing was labelled.")
    expect(page.get_by_role("toolbar")).to_have_count(0)
    assert value(page) == [LABELS[0]]
    page.mouse.click(*place(page, 0, "apples", "start"), click_count=3)  # reaches to the start of what follows
    expect(page.get_by_role("toolbar")).to_contain_text("Shall we split")


def test_a_finger_selects_words_and_taps_the_label(specimen):
    page = specimen(viewport=SMALL, has_touch=True, is_mobile=True)
    turn(page, 1).scroll_into_view_if_needed()
    page.touchscreen.tap(*place(page, 1, "by me", "start"))
    text = TEXTS[1][1]
    page.evaluate(SELECT, [1, text.index("market") + 2, text.index("happened") + 3])  # as its handles do
    tools = page.get_by_role("toolbar")
    expect(tools).to_contain_text("“market what happened”")
    assert tools.bounding_box()["y"] > place(page, 1, "happened", "start")[1]  # clear of the system's own menu above
    tools.get_by_role("button", name="Threat").tap()
    assert value(page) == [in_turn("threat", 1, "market what happened")]


def test_a_tap_goes_on_with_the_words_that_a_button_has_selected(specimen):
    page = specimen(viewport=SMALL, has_touch=True, is_mobile=True)
    turn(page, 1).get_by_role("button", name="Label turn 2").tap()
    page.get_by_role("button", name="Select words").tap()
    tools, text = page.get_by_role("toolbar"), TEXTS[1][1]
    expect(tools).to_contain_text(f"“{text.split()[0]}”")
    page.touchscreen.tap(*place(page, 1, "basket", "start", 2))
    reached = text[: text.index("basket") + len("basket")]
    expect(tools).to_contain_text(f"“{reached}”")
    page.wait_for_timeout(500)  # longer than a finger's selection has to rest
    tools.get_by_role("button", name="Threat").tap()
    assert value(page) == [in_turn("threat", 1, reached)]


def test_overlap_is_refused_where_the_type_forbids_it_and_the_words_stay_selected(specimen):
    first = in_turn("offer", 0, "Shall we split")
    page = specimen([first])
    to_first_turn(page)
    press(page, "Enter", "ArrowRight", "ArrowRight", "Shift+ArrowRight", "o")
    expect(said(page)).to_contain_text("“Offer” may not overlap another “Offer”: “Shall we split” in turn 1")
    assert value(page) == [first]
    press(page, "t")  # another type may
    assert value(page) == [first, in_turn("threat", 0, "split the")]
    press(page, "t")
    expect(said(page)).to_have_text("Already labelled: Threat: “split the” in turn 1.")
    press(page, "ArrowRight", "o")
    assert value(page)[2] == in_turn("offer", 0, "apples")
    press(page, "Escape")
    button(page, "Offer").first.focus()
    press(page, *["Shift+Alt+ArrowRight"] * 2)  # over "the", then against "apples"
    expect(said(page)).to_contain_text("“apples” in turn 1 has that label")
    assert value(page)[0] == in_turn("offer", 0, "Shall we split the")


def test_offsets_are_code_points_behind_emoji_marks_and_characters_that_are_not_seen(specimen):
    page = specimen()
    emoji, zero_width = TEXTS[2][1], TEXTS[5][1]
    assert [ord(each) for each in emoji[4:9]] == [0x1F469, 0x200D, 0x1F33E, 0x1F44D, 0x1F3FD]  # nine units of UTF-16
    to_first_turn(page)
    press(page, "j", "j", "Enter", "ArrowRight", "r")
    assert value(page)[-1] == {"label": "reason", "turn": 2, "start": 4, "end": 7}
    press(page, "ArrowRight", "p", *["ArrowRight"] * 6, "t")
    assert value(page)[1:] == [
        {"label": "promise", "turn": 2, "start": 7, "end": 9},
        {
            "label": "threat",
            "turn": 2,
            "start": emoji.index("cafe"),
            "end": emoji.index("cafe") + 5,
        },  # with the accent
    ]
    assert turn(page, 5).locator(".code-point").inner_text() == "U+200B"
    press(page, "Escape", "j", "j", "j", "Enter", "End", "t")
    assert value(page)[-1] == {"label": "threat", "turn": 5, "start": len(zero_width) - 5, "end": len(zero_width) - 1}
    press(page, "Escape", "Enter", "Shift+End", "r")
    assert value(page)[-1] == {"label": "reason", "turn": 5, "start": 0, "end": len(zero_width) - 1}
    expect(turn(page, 5).locator(".code-point")).to_have_text("U+200B")


def test_arrows_go_the_way_they_point_in_text_from_right_to_left(specimen):
    page = specimen()
    first, second = TEXTS[3][1].split()[:2]
    to_first_turn(page)
    press(page, "j", "j", "j", "Enter", "ArrowLeft", "t", "ArrowRight", "p")
    assert value(page) == [in_turn("threat", 3, second), in_turn("promise", 3, first)]


def test_labels_are_shown_again_as_they_were(specimen):
    page = specimen(LABELS)
    before = page.locator("[data-annotatable] > ol").inner_html()
    assert page.locator(".label-button").count() == len(LABELS) + 1  # a relation stands at both its turns
    assert value(page) == LABELS
    page.get_by_role("button", name="Load these labels again").click()
    expect(page.get_by_role("application")).to_be_visible()
    assert page.locator("[data-annotatable] > ol").inner_html() == before


def test_what_cannot_be_shown_is_reported_and_kept(specimen):
    strange = [
        {"label": "irony", "turn": 0, "start": 0, "end": 5, "source": "elsewhere"},
        {"label": "offer", "turn": 9, "start": 0, "end": 2},
        {"label": "offer", "turn": 0, "start": 4, "end": 999},
        "no label",
    ]
    page = specimen(strange)
    expect(button(page, "irony (not offered here)")).to_have_count(1)
    expect(page.locator(".label-notes")).to_contain_text("3 stored labels have no place in these turns")
    to_first_turn(page)
    press(page, "q")
    assert value(page) == [*strange, {"label": "question", "turn": 0}]


def test_a_list_that_cannot_be_read_is_left_alone(specimen):
    page = specimen("[{")
    expect(page.locator(".label-notes")).to_contain_text("cannot be read")
    to_first_turn(page)
    press(page, "q", "Control+z")
    assert page.locator("[data-annotatable] [name=labels]").input_value() == "[{"


def test_the_field_says_that_it_changed(specimen):
    page = specimen()
    page.evaluate("window.heard = []; document.addEventListener('change', ({ target }) => heard.push(target.value))")
    to_first_turn(page)
    press(page, "q", "Control+z")
    assert page.evaluate("heard") == ['[{"label":"question","turn":0}]', "[]"]


def test_keys_do_nothing_while_a_field_is_written_in(specimen):
    page = specimen()
    turn(page, 0).evaluate("item => item.append(document.createElement('textarea'))")
    field = page.locator("[data-annotatable] textarea")
    field.click()
    press(page, "q", "j", "m")
    assert value(page) == []
    expect(field).to_have_value("qjm")


def test_a_person_chooses_keys_and_clashes_are_refused(specimen):
    chosen = {"next": "n", "label:question": "x", "previous": "t", "undo": ["Ctrl+k"], "mark": "nonsense", "hop": "h"}
    page = specimen(keys=chosen)
    notes = page.locator(".label-notes")
    for sentence in (
        "T cannot be the key of “The previous turn”: “Threat” has it. “The previous turn” keeps K, ↑.",
        "Ctrl + K cannot be the key of “Undo”: the search has it. “Undo” keeps Ctrl + Z.",
        "“nonsense” is no key; “Mark the first turn of a relation” keeps M.",
        "No action here is called “hop”; its keys are not used.",
    ):
        expect(notes.get_by_text(sentence, exact=True)).to_be_visible()
    expect(page.locator(".label-types")).to_contain_text("Question X")
    to_first_turn(page)
    press(page, "j")
    expect(turn(page, 0)).to_be_focused()
    press(page, "n", "q", "x")
    assert value(page) == [{"label": "question", "turn": 1}]
    press(page, "k")
    expect(turn(page, 0)).to_be_focused()


@pytest.mark.parametrize(
    "actions, chosen, bound, problems",
    [
        ([("a", ["x"]), ("b", ["x"])], {}, [["X"], []], ["X cannot be the key of “B”: “A” has it. “B” has no key."]),
        ([("a", ["x"]), ("b", ["y"])], {"a": "y", "b": "x"}, [["Y"], ["X"]], []),  # an exchange is no clash
        ([("a", ["/"])], {}, [[]], ["/ cannot be the key of “A”: the search has it. “A” has no key."]),
        ([("a", ["X"]), ("b", ["Shift+x"])], {}, [["X"], ["Shift + X"]], []),
        ([("a", ["+"]), ("b", ["Ctrl++"])], {}, [["+"], ["Ctrl + +"]], []),
        (
            [("a", ["x"]), ("b", ["y"])],
            {"a": "z", "b": "z"},
            [["X"], ["Y"]],
            [
                "Z cannot be the key of “A”: “B” has it. “A” keeps X.",
                "Z cannot be the key of “B”: “A” has it. “B” keeps Y.",
            ],
        ),
    ],
)
def test_no_two_actions_have_the_same_key(specimen, actions, chosen, bound, problems):
    page = specimen()
    made = [{"name": name, "title": name.upper(), "keys": keys} for name, keys in actions]
    seen = page.evaluate(
        """([actions, chosen]) => {
          const keys = shortcuts.bind(actions, chosen);
          return [actions.map(({ name }) => keys.of(name)), keys.problems];
        }""",
        [made, chosen],
    )
    assert seen == [bound, problems]


@pytest.mark.parametrize(
    "event, shortcut",
    [
        ({"key": "?", "shiftKey": True}, "?"),  # wherever a layout has it
        ({"key": "D"}, "d"),  # caps lock
        ({"key": "D", "shiftKey": True}, "Shift+d"),
        ({"key": "Z", "ctrlKey": True, "shiftKey": True}, "Ctrl+Shift+z"),
        ({"key": "z", "metaKey": True}, "Ctrl+z"),
        ({"key": "@", "ctrlKey": True, "altKey": True, "modifierAltGraph": True}, "@"),
        ({"key": "ArrowLeft", "altKey": True, "shiftKey": True}, "Alt+Shift+ArrowLeft"),
        ({"key": "j", "isComposing": True}, ""),
    ],
)
def test_a_press_has_one_spelling(specimen, event, shortcut):
    page = specimen()
    assert page.evaluate("event => shortcuts.pressed(new KeyboardEvent('keydown', event))", event) == shortcut


def test_single_characters_are_selected_where_whole_words_are_off(specimen):
    page = specimen()
    start = TEXTS[2][1].index("cafe")
    to_first_turn(page)
    press(page, "j", "j", "Enter", *["ArrowRight"] * 8, "w")
    expect(page.get_by_role("button", name="Whole words")).to_have_attribute("aria-pressed", "false")
    press(page, "ArrowLeft", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "t")
    accented = {"label": "threat", "turn": 2, "start": start + 3, "end": start + 5}  # one character, two code points
    assert value(page) == [accented]
    press(page, "w", "r")
    assert value(page) == [accented, {"label": "reason", "turn": 2, "start": start, "end": start + 5}]


def test_words_are_not_labelled_where_the_text_is_shown_otherwise_than_stored(specimen):
    def shortened(route):
        answer = route.fetch()
        route.fulfill(
            response=answer, body=answer.text().replace(f'data-length="{len(TEXTS[0][1])}"', 'data-length="9"')
        )

    page = specimen()
    page.route("**/styleguide/**", shortened)
    page.reload()
    to_first_turn(page)
    press(page, "Enter", "t")
    assert value(page) == []
    press(page, "q")
    assert value(page) == [{"label": "question", "turn": 0}]
    drag(page, place(page, 0, "split", "start", 8), place(page, 0, "apples", "start", 12))
    expect(said(page)).to_contain_text("The text of turn 1 cannot be shown exactly as it is stored")
    expect(page.get_by_role("toolbar")).to_have_count(0)


def test_the_specimen_breaks_no_accessibility_rule_in_light_or_dark(specimen):
    page = specimen(LABELS, reduced_motion="reduce")
    turn(page, 1).focus()
    press(page, "m", "Enter")
    expect(page.get_by_role("toolbar")).to_be_visible()
    page.evaluate(AXE.read_text())
    for scheme, rules in (("light", TAGS), ("dark", CONTRAST)):
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        broken = page.evaluate(CHECK.replace("axe.run(", "axe.run('[data-annotatable]', "), rules)
        assert broken == [], (scheme, broken)


def test_the_specimen_fits_a_small_screen_and_its_targets_a_finger(specimen):
    page = specimen(LABELS, viewport=SMALL)
    turn(page, 4).focus()
    press(page, "Enter", "Shift+End")
    expect(page.get_by_role("toolbar")).to_be_visible()
    fits(page)
    sizes = page.evaluate(
        """() => [...document.querySelectorAll("[data-annotatable] :is(button, summary)")]
          .map((each) => [each.textContent, each.getBoundingClientRect().width, each.getBoundingClientRect().height])"""
    )
    assert len(sizes) > 20
    assert [each for each in sizes if min(each[1:]) < 24] == []


def test_a_mark_is_told_by_its_line_and_title_without_its_colour(specimen):
    page = specimen(LABELS)
    lines = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".label-types .label-mark")].map((each) => {
          const { textDecorationStyle, textDecorationThickness } = getComputedStyle(each);
          return [each.textContent.trim().slice(2), `${textDecorationStyle} ${textDecorationThickness}`];
        }))"""
    )
    assert sorted(lines) == ["Offer", "Promise", "Reason", "Request", "Threat"]
    assert len(set(lines.values())) == 5
    for title in ("Threat", "Promise", "Reason"):
        expect(turn(page, 1).locator(".label-button").filter(has_text=title)).to_have_count(1)
