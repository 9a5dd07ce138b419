"""Forms from pydantic models: empty fields keep their values."""

from typing import Literal

import pytest
from pydantic import BaseModel, Field, create_model

from webapp.core.schema import SchemaForm, takes_one_field


class Inner(BaseModel):
    number: int


class Outer(BaseModel):
    inner: Inner | None = None
    names: list[str] = []


def test_what_may_be_absent_stays_absent_and_an_empty_list_empty():
    form = SchemaForm({"inner": None, "names": []}, Outer.model_json_schema(), {})
    assert form.is_valid()
    assert form.document() == {"inner": None, "names": []}


def test_what_is_absent_can_be_written_as_json():
    form = SchemaForm({"inner": None, "names": []}, Outer.model_json_schema(), {'f-["inner"]': '{"number": 3}'})
    assert form.is_valid()
    assert form.document() == {"inner": {"number": 3}, "names": []}


@pytest.mark.parametrize("value", ['{"number": "\\u0000"}', '{"\\u0000": 3}', '{"number": "\\ud800"}'])
def test_what_cannot_be_stored_is_refused_at_its_field_and_shown_as_it_was_typed(value):
    form = SchemaForm({"inner": None, "names": []}, Outer.model_json_schema(), {'f-["inner"]': value})
    assert list(form.errors) == ['["inner"]']
    assert form['["inner"]'].value() == value


class Choices(BaseModel):
    count: int = Field(1, ge=1, le=5)
    share: float = 0.5
    open: bool = True
    tie: Literal["nobody", "random"] = "nobody"
    first: Literal[0, 1] | None = 0
    words: tuple[Literal["red", "blue"], ...] = ("red",)
    story: str = ""
    inner: Inner | None = None
    numbers: list[int] = []


CHOICES = Choices.model_json_schema()
SIMPLE = ["count", "share", "open", "tie", "first", "words"]


def test_numbers_choices_and_known_words_take_one_field_each():
    assert [name for name, described in CHOICES["properties"].items() if takes_one_field(described, CHOICES)] == SIMPLE


def test_an_optional_field_is_none_until_a_person_chooses():
    form = SchemaForm(dict.fromkeys(SIMPLE), CHOICES, {}, empty_text="as it is")
    assert form.is_valid()
    assert form.document() == dict.fromkeys(SIMPLE)
    assert str(form).count("as it is") == len(SIMPLE)
    assert "required" not in str(form)


@pytest.mark.parametrize(
    "name, entered, value",
    [
        ("count", "3", 3),
        ("share", "0.25", 0.25),
        ("open", "false", False),
        ("tie", "random", "random"),
        ("first", "0", 0),
        ("words", "Blue, red", ["blue", "red"]),
    ],
)
def test_what_is_chosen_instead_has_its_type(name, entered, value):
    form = SchemaForm(dict.fromkeys(SIMPLE), CHOICES, {f'f-["{name}"]': entered}, empty_text="as it is")
    assert form.is_valid()
    assert form.document() == {**dict.fromkeys(SIMPLE), name: value}


@pytest.mark.parametrize("name, entered", [("count", "6"), ("tie", "coin"), ("words", "red, green"), ("share", "nan")])
def test_an_invalid_choice_is_reported_at_its_field(name, entered):
    form = SchemaForm(dict.fromkeys(SIMPLE), CHOICES, {f'f-["{name}"]': entered}, empty_text="as it is")
    assert list(form.errors) == [f'["{name}"]']


class Seats(BaseModel):
    learner: Literal["one"] | list[str] = "one"


@pytest.mark.parametrize("before", ["one", ["wolf", "seer"]])
@pytest.mark.parametrize("entered, after", [("one", "one"), ("wolf", ["wolf"]), (" wolf,seer ", ["wolf", "seer"])])
def test_a_word_or_names_take_one_field(before, entered, after):
    schema = Seats.model_json_schema()
    shown = str(SchemaForm({"learner": before}, schema)['["learner"]'])
    assert f'value="{before if before == "one" else "wolf, seer"}"' in shown
    form = SchemaForm({"learner": before}, schema, {'f-["learner"]': entered})
    assert form.is_valid()
    assert form.document() == {"learner": after}


class Labelled(BaseModel):
    max_running: int = 1
    in_flight: bool | None = Field(None, json_schema_extra={"label": "in-flight updates"})


def test_a_field_is_called_by_its_path_in_words_unless_it_states_a_label():
    class Sections(BaseModel):
        engines: list[Labelled] = []

    document = {"engines": [{"max_running": 1, "in_flight": True}]}
    form = SchemaForm(document, Sections.model_json_schema())
    assert [field.label for field in form] == ["engines 1 · max running", "engines 1 · in-flight updates"]


@pytest.mark.parametrize(
    "limits, described, shown",
    [
        ({"ge": 0, "le": 4}, "Steps.", "Steps. From 0 to 4."),
        ({"gt": 0.0, "le": 0.5}, "A share", "A share. Greater than 0, at most 0.5."),
        ({"ge": 1, "lt": 2**63}, None, "At least 1."),
        ({}, "Anything.", "Anything."),
    ],
)
def test_the_help_of_a_number_has_its_bounds(limits, described, shown):
    bounded = create_model("Bounded", value=(float, Field(1, description=described, **limits)))
    form = SchemaForm({"value": 1}, bounded.model_json_schema())
    assert form.fields['["value"]'].help_text == shown
