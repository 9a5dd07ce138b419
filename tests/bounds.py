"""Which fields of a JSON schema let people state any amount."""


def unbounded(schema, definitions, path=""):
    """The paths of all numbers without a maximum, texts without a length and lists without a size."""
    while "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
    for other in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from unbounded(other, definitions, path)
    fixed, kind = {"enum", "const"} & set(schema), schema.get("type")
    if kind in {"integer", "number"} and not fixed | ({"maximum", "exclusiveMaximum"} & set(schema)):
        yield path
    if kind == "string" and not fixed | ({"maxLength", "pattern"} & set(schema)):
        yield path
    if kind == "array" and "maxItems" not in schema:
        yield path
    if isinstance(schema.get("items"), dict):
        yield from unbounded(schema["items"], definitions, f"{path}[]")
    for name, value in schema.get("properties", {}).items():
        yield from unbounded(value, definitions, f"{path}.{name}".lstrip("."))
