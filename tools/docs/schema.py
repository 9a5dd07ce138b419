"""JSON schemas as Markdown tables: name, type, default and description of every field."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Schema = Mapping[str, Any]
LIMITS = {
    "minimum": "≥ {}",
    "exclusiveMinimum": "> {}",
    "maximum": "≤ {}",
    "exclusiveMaximum": "< {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
}


def name_of(reference: str) -> str:
    """The name that a `$ref` ends with."""
    return reference.rsplit("/", 1)[-1]


def words_of(schema: Schema) -> str:
    """The type of a value in words, with its limits."""
    limits = [text.format(_number(schema[name])) for name, text in LIMITS.items() if name in schema]
    return ", ".join([_kind(schema), *limits])


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:g}"


def _kind(schema: Schema) -> str:
    if "$ref" in schema:
        return name_of(schema["$ref"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return " \\| ".join(f"`{json.dumps(value)}`" for value in schema["enum"])
    for together in ("anyOf", "oneOf", "allOf"):
        if together in schema:
            return " or ".join(words_of(part) for part in schema[together])
    if schema.get("type") == "array":
        fixed = schema.get("prefixItems")
        return f"[{', '.join(map(words_of, fixed))}]" if fixed else f"list of {words_of(schema.get('items', {}))}"
    kind = str(schema.get("type", "any value"))
    return {"null": "nothing", "object": "table"}.get(kind, kind)


def table(schema: Schema) -> str:
    """The fields of an object as a table; empty without fields."""
    required = schema.get("required", ())
    rows = [
        f"| `{name}` | {words_of(field)} | {_default(name, field, required)} | {line(field.get('description', ''))} |"
        for name, field in schema.get("properties", {}).items()
    ]
    return "\n".join(["| field | type | default | meaning |", "| --- | --- | --- | --- |", *rows]) if rows else ""


def _default(name: str, field: Schema, required: Any) -> str:
    if name in required:
        return "required"
    default = field.get("default")
    if "default" not in field or isinstance(default, dict):
        return ""
    return f"`{line(json.dumps(default, ensure_ascii=False))}`"


def line(text: str) -> str:
    """A text as one line of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def referred(schema: Any) -> Iterator[str]:
    """The names of the schemas that this one refers to, directly."""
    if isinstance(schema, Mapping):
        if "$ref" in schema:
            yield name_of(schema["$ref"])
        for value in schema.values():
            yield from referred(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from referred(value)
