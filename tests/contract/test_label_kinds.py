"""Every kind of label type is offered, entered, checked and described, and has an example that every format writes."""

from typing import get_args

import pytest

from tests.labels.exchange import make
from training.errors import BadInput
from training.labels.codebooks import About, Kind, LabelType
from training.labels.exchange import label_studio
from webapp.judgments.annotating.forms import ValuesForm, form_value
from webapp.judgments.codebooks import forms

MARKS = {"span", "relation"}
"""Kinds without a value: the place is the label."""
TYPES = {label_type.name: label_type for label_type in make.CODEBOOK.labels}
every_kind = pytest.mark.parametrize("kind", get_args(Kind))


def example(kind: str) -> LabelType:
    return TYPES[f"{kind}_{make.ABOUT[kind][0]}"]


def test_the_form_of_a_codebook_offers_every_kind_and_place():
    assert {name for name, _ in forms.KINDS} == {*get_args(Kind)}
    assert {name for name, _ in forms.ABOUT} == {*get_args(About)}


def test_the_examples_of_formats_have_every_kind():
    assert {*make.EXTRA} == {*make.VALUES} == {*make.ABOUT} == {*get_args(Kind)}


@every_kind
def test_a_kind_takes_its_own_value_alone_and_says_which(kind):
    label_type, value = example(kind), make.VALUES[kind]
    label_type.check_value(value)
    assert (value is None) == (kind in MARKS) == label_type.scale.startswith("no value")
    with pytest.raises(BadInput, match="choose a value"):
        label_type.check_value("a" if kind in MARKS else None)


@every_kind
def test_a_value_is_entered_as_the_page_shows_it(kind):
    label_type = example(kind)
    if kind in MARKS:
        return
    codebook = make.CODEBOOK.model_copy(update={"labels": (label_type,)})
    turns, value = {number: number for number in range(4)}, make.VALUES[kind]
    value = -2.0 if kind == "scale" else value  # a short scale has a button for each whole number
    field = ValuesForm(codebook, about=label_type.about, turns=turns).fields[label_type.name]
    shown = field.prepare_value(form_value(label_type, value))
    form = ValuesForm(codebook, {label_type.name: shown}, about=label_type.about, turns=turns)
    assert form.is_valid(), form.errors
    assert form.values() == {label_type.name: value}


@every_kind
def test_label_studio_has_a_control_for_every_kind(kind):
    assert f'"{example(kind).name}' in label_studio.config(make.CODEBOOK, 2)
