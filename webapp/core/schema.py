"""Forms from pydantic models: a JSON document becomes one field for each of its leaves, with the model's own words.

The document gives the structure (list lengths, keys, which variant of a union); the model's JSON schema gives types,
bounds, choices and descriptions. `SchemaForm.document()` returns the document with what was entered.

`takes_one_field` says of a schema whether it is entered in a single field other than JSON or free text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from django import forms
from django.forms.fields import InvalidJSONInput

from training.store import loads
from webapp.core.http import unstorable

Path = tuple[str | int, ...]
LONG_TEXT = 80
WORD = "word instead"
"""The key in a resolved schema of a list of names that has a word in its place: the word."""


@dataclass(frozen=True)
class Leaf:
    """One value of a document, with the part of the schema that describes it."""

    path: Path
    value: Any
    schema: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The field's name: unambiguous whatever the keys hold."""
        return json.dumps(self.path, ensure_ascii=False)

    @property
    def label(self) -> str:
        """The path in words: `sides 1 · values · food`. A field may state its own as `label` in the schema."""
        words: list[str] = []
        for part in self.path:
            if isinstance(part, int) and words:
                words[-1] += f" {part + 1}"
            else:
                words.append(str(part).replace("_", " "))
        if self.path and isinstance(self.path[-1], str):
            words[-1] = self.schema.get("label", words[-1])
        return " · ".join(words)


def leaves(document: Any, schema: Mapping[str, Any], root: Mapping[str, Any], path: Path = ()) -> Iterator[Leaf]:
    """Yield every leaf of `document` in order. Empty containers, and objects of whose values the schema says nothing,
    are leaves, too: they are edited as JSON.
    """
    part = resolved(schema, root, document)
    has_fields = bool(part.get("properties")) or isinstance(part.get("additionalProperties"), dict)
    if isinstance(document, dict) and document and has_fields:
        for key, value in document.items():
            inner = part.get("properties", {}).get(key) or part.get("additionalProperties") or {}
            yield from leaves(value, inner if isinstance(inner, dict) else {}, root, (*path, key))
    elif isinstance(document, list) and document and WORD not in part:
        for index, value in enumerate(document):
            prefix = part.get("prefixItems", [])
            inner = prefix[index] if index < len(prefix) else part.get("items", {})
            described = {"description": schema["description"]} if "description" in schema else {}
            yield from leaves(
                value, {**described, **inner} if isinstance(inner, dict) else described, root, (*path, index)
            )
    else:
        stated = {name: value for name, value in schema.items() if name in {"description", "title", "label"}}
        yield Leaf(path, document, {**part, **stated})


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any], value: Any) -> Mapping[str, Any]:
    """Follow references and pick the variant of a union that fits `value`; the union itself if none has its name."""
    if reference := schema.get("$ref"):
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target[part]
        return resolved(target, root, value)
    variants = schema.get("oneOf") or schema.get("anyOf")
    if not variants:
        return schema
    if mapping := schema.get("discriminator", {}).get("mapping"):
        name = value.get(schema["discriminator"]["propertyName"]) if isinstance(value, dict) else None
        definition = mapping.get(name) if isinstance(name, str) else None
        return resolved({"$ref": definition}, root, value) if definition else schema
    concrete = [resolved(variant, root, value) for variant in variants]
    plain = [variant for variant in concrete if variant.get("type") != "null"]
    nullable = len(plain) < len(concrete)
    word = next((variant["const"] for variant in plain if "const" in variant), None)
    names = next((variant for variant in plain if variant.get("type") == "array"), None)
    if word is not None and names is not None:
        return {**names, WORD: word, "nullable": nullable}
    return {**(plain[0] if plain else {}), "nullable": nullable}


class TypedJson(forms.JSONField):
    """JSON that is read as the project's files are (no NaN, nothing nested too deeply) and can be stored; it is shown
    as it was typed.
    """

    def to_python(self, value: Any) -> Any:
        if not isinstance(value, str) or value in self.empty_values:
            return super().to_python(value)
        try:
            data = loads(value)
        except ValueError as error:
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid") from error
        if unstorable(data):
            why = "A text contains a NUL character or an unpaired surrogate, or a number has more than 64 bits."
            raise forms.ValidationError(why)
        return data

    def bound_data(self, data: Any, initial: Any) -> Any:
        return None if data is None else InvalidJSONInput(data)


class WordsField(forms.CharField):
    """Some of the known words, with commas between them; None if there is none."""

    def __init__(self, words: Sequence[str], **kwargs: Any) -> None:
        super().__init__(max_length=2000, required=False, **kwargs)
        self.words = words
        self.help_text = f"{self.help_text} With commas between them; there are: {', '.join(words)}."

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> list[str] | None:
        words = [word.strip().lower() for word in super().clean(value).split(",") if word.strip()]
        if unknown := next((word for word in words if word not in self.words), None):
            raise forms.ValidationError(f"There is no {unknown!r}; there are: {', '.join(self.words)}.")
        return words or None


class NamesField(forms.CharField):
    """Names with commas between them, or the word that may stand in their place."""

    def __init__(self, word: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.word = word
        self.help_text = f"{self.help_text} Several names with commas between them."

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list) else value

    def clean(self, value: Any) -> str | list[str]:
        names = [name.strip() for name in super().clean(value).split(",") if name.strip()]
        return self.word if names == [self.word] else names


def _words(schema: Mapping[str, Any]) -> Sequence[str]:
    """The words of which `schema` describes a list; none if it describes something else."""
    inner = schema.get("items", {}) if schema.get("type") == "array" else {}
    return inner.get("enum", ()) if isinstance(inner, dict) and inner.get("type") == "string" else ()


def takes_one_field(schema: Mapping[str, Any], root: Mapping[str, Any]) -> bool:
    """Whether it is a number, a choice, yes or no, or a list of known words."""
    part = resolved(schema, root, None)
    return "enum" in part or part.get("type") in {"boolean", "integer", "number"} or bool(_words(part))


BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "greater than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}
OUT_OF_BOUNDS = {"min_value": "Must be at least %(limit_value)s.", "max_value": "Must be at most %(limit_value)s."}
FAR = 1_000_000
"""Bounds that are at least so large are there for safety, and help nobody who fills in a field."""


def bounds_of(schema: Mapping[str, Any]) -> str:
    """A number's bounds as a sentence, such as `From 0 to 4.` or `Greater than 0, at most 1.`; empty without any."""
    stated = {key: _figure(schema[key]) for key in BOUNDS if abs(schema.get(key, FAR)) < FAR}
    if stated.keys() == {"minimum", "maximum"}:
        return f"From {stated['minimum']} to {stated['maximum']}."
    words = ", ".join(f"{BOUNDS[key]} {limit}" for key, limit in stated.items())
    return f"{words.capitalize()}." if words else ""


def _figure(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _help(schema: Mapping[str, Any]) -> str:
    """The description of a value with its bounds."""
    described, bounds = str(schema.get("description", "")), bounds_of(schema)
    return f"{described.removesuffix('.')}. {bounds}" if described and bounds else described or bounds


def _field(leaf: Leaf, empty_text: str) -> forms.Field:
    schema: Mapping[str, Any] = leaf.schema
    common: dict[str, Any] = {"label": leaf.label, "help_text": _help(schema)}
    optional = bool(empty_text) or bool(schema.get("nullable")) or leaf.value == ""
    attrs = {"placeholder": empty_text} if empty_text else {}
    if "const" in schema:
        return forms.CharField(disabled=True, **common)
    if "enum" in schema:
        choices = [(str(value), str(value)) for value in schema["enum"]]
        empty = ("", empty_text or "—")
        return forms.ChoiceField(choices=[empty, *choices] if optional else choices, required=not optional, **common)
    bounds: dict[str, Any] = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
    match schema.get("type"):
        case "boolean" if empty_text:
            choices = [("", empty_text), ("true", "yes"), ("false", "no")]
            return forms.NullBooleanField(required=False, widget=forms.Select(choices=choices), **common)
        case "boolean":
            return forms.BooleanField(required=False, **common)
        case "integer" | "number" as kind:
            number = forms.IntegerField if kind == "integer" else forms.FloatField
            bounds["error_messages"] = OUT_OF_BOUNDS
            return number(required=not optional, widget=forms.NumberInput(attrs), **bounds, **common)
        case "array" | "object":
            return _container_field(schema, attrs, common)
        case _:
            long = (isinstance(leaf.value, str) and len(leaf.value) > LONG_TEXT) or schema.get("maxLength", 0) > 500
            widget = forms.Textarea(attrs={"rows": 3}) if long else forms.TextInput()
            return forms.CharField(required=False, strip=False, widget=widget, **common)


def _container_field(schema: Mapping[str, Any], attrs: dict[str, str], common: Mapping[str, Any]) -> forms.Field:
    if WORD in schema:
        return NamesField(schema[WORD], **common)
    if words := _words(schema):
        return WordsField(words, widget=forms.TextInput(attrs), **common)
    return TypedJson(required=False, widget=forms.Textarea(attrs={"rows": 2}), **common)


class SchemaForm(forms.Form):
    """A form over the leaves of a document.

    `kept` is for documents of None: what an empty field says about itself. Every field may then stay empty, and None.
    """

    def __init__(
        self,
        document: Any,
        schema: Mapping[str, Any],
        data: Mapping[str, Any] | None = None,
        prefix: str = "f",
        empty_text: str = "",
    ) -> None:
        super().__init__(data, prefix=prefix)
        self._document = document
        self._leaves = list(leaves(document, schema, schema)) if document else []
        for leaf in self._leaves:
            self.fields[leaf.name] = _field(leaf, empty_text)
            self.initial[leaf.name] = leaf.value

    def document(self) -> Any:
        """Return the document with the entered values; call it on a valid form only."""
        document = deepcopy(self._document)
        for leaf in self._leaves:
            value = self.cleaned_data[leaf.name]
            if value == "" and leaf.value != "" and leaf.schema.get("nullable"):
                value = None
            elif value is None and leaf.value is not None and leaf.schema.get("type") in {"array", "object"}:
                value = [] if leaf.schema["type"] == "array" else {}
            if "enum" in leaf.schema:
                value = next((choice for choice in leaf.schema["enum"] if str(choice) == value), None)
            _set(document, leaf.path, leaf.value if "const" in leaf.schema else value)
        return document

    def blame(self, where: str, why: str) -> None:
        """Put an error of the model on the field that `where` (a dotted path) is or lies in, or on the whole form."""
        leaves_at = [leaf for leaf in self._leaves if f"{where}.".startswith(f"{'.'.join(map(str, leaf.path))}.")]
        self.add_error(
            leaves_at[0].name if leaves_at else None, why if leaves_at else f"{where}: {why}" if where else why
        )


def _set(document: Any, path: Path, value: Any) -> None:
    for part in path[:-1]:
        document = document[part]
    document[path[-1]] = value
