"""The REST API as a page, from its OpenAPI document."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.docs.schema import name_of, referred, table, words_of

ROOT = Path(__file__).resolve().parents[2]
BEGIN = """Send a key, created under *Account and keys*, as `Authorization: Bearer …`. Lists have `limit` and `offset`,
and answer `{"items": […], "count": …}`. Every refusal is `{"where": …, "why": …}`: the field that is wrong, if one is,
and a sentence. The same as JSON: `/api/v1/openapi.json`; from Python: [parley_client](../client.md).

```sh
curl -H "Authorization: Bearer $PARLEY_KEY" "$PARLEY_URL/api/v1/runs?state=running"
curl -H "Authorization: Bearer $PARLEY_KEY" -H "Content-Type: application/json" \\
     -d '{"config": {"kind": "train", "name": "first", "model": {"base": "tiny"}}}' "$PARLEY_URL/api/v1/runs"
```"""


def document() -> dict[str, Any]:
    """The OpenAPI document of the present code; by Django itself, for `manage.py` would start the databases."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    command = [sys.executable, "-m", "django", "describe_api"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def page() -> str:
    """The page: every operation, then the objects that they take and return."""
    api = document()
    parts, tag = ["# REST API", BEGIN], ""
    for path, operations in api["paths"].items():
        for method, operation in operations.items():
            if operation["tags"][0] != tag:
                tag = operation["tags"][0]
                parts.append(f"## {tag.capitalize()}")
            parts += _operation(method.upper(), path, operation)
    refusals = next(iter(next(iter(api["paths"].values())).values()))["responses"]
    rows = [f"| {code} | {answer['description']} |" for code, answer in refusals.items() if code >= "400"]
    parts += ["## Refusals", "\n".join(["| status | meaning |", "| --- | --- |", *rows]), "## Objects"]
    for name, schema in sorted(api["components"]["schemas"].items()):
        if not name.startswith("Paged") and name != "Input":
            parts += [f"### {name}", schema.get("description", ""), table(schema)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"### `{method} {path}`"
    yield operation.get("description", operation.get("summary", ""))
    rows = [
        f"| `{each['name']}` | {each['in']} | {words_of(each['schema'])} |"
        for each in operation.get("parameters", ())
        if each["name"] not in {"limit", "offset"}
    ]
    if rows:
        yield "\n".join(["| parameter | in | type |", "| --- | --- | --- |", *rows])
    body = operation.get("requestBody", {}).get("content", {})
    for kind, content in body.items():
        if "$ref" in content["schema"]:
            yield f"Body: {name_of(content['schema']['$ref'])} as JSON."
        else:
            yield f"Body ({kind}):"
            yield table(content["schema"])
    for code, answer in operation["responses"].items():
        if code < "300":
            names = ", ".join(dict.fromkeys(referred(answer.get("content", {}))))
            yield f"Answer: {code}{', ' + names if names else ''}."
