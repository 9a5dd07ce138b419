"""`python -m tools.client` writes the client's models anew from the REST API; `--check` compares and writes nothing.

The models are those of the OpenAPI document, by datamodel-code-generator. Exits 1 if `--check` finds a difference.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.docs.rest import document

ROOT = Path(__file__).resolve().parents[1]
MODELS = ROOT / "client" / "parley_client" / "models.py"
HEADER = '"""Requests and answers of the REST API, generated from its OpenAPI document by `python -m tools.client`."""'
OPTIONS = (
    "--input-file-type=openapi",
    "--openapi-scopes=schemas",
    "--output-model-type=pydantic_v2.BaseModel",
    "--target-python-version=3.11",
    "--use-standard-collections",
    "--use-union-operator",
    "--use-schema-description",
    "--use-field-description",
    "--use-double-quotes",
    "--strict-nullable",
    "--field-constraints",
    "--extra-fields=ignore",
    "--enum-field-as-literal=all",
    "--disable-timestamp",
    "--formatters=ruff-format",
    f"--custom-file-header={HEADER}",
)


def write(target: Path) -> None:
    """Write the models of the present API to `target`, formatted as the project is."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "openapi.json"
        source.write_text(json.dumps(document()))
        generate = [str(Path(sys.executable).parent / "datamodel-codegen"), f"--input={source}", f"--output={target}"]
        subprocess.run([*generate, *OPTIONS], cwd=ROOT, check=True)
    ruff = [str(Path(sys.executable).parent / "ruff"), "format", "-q", f"--config={ROOT / 'pyproject.toml'}"]
    subprocess.run([*ruff, str(target)], cwd=ROOT, check=True)


def differs() -> bool:
    """Whether the stored models are not those of the present API."""
    with tempfile.TemporaryDirectory() as folder:
        fresh = Path(folder) / MODELS.name
        write(fresh)
        return fresh.read_text() != MODELS.read_text()


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the client's models from the REST API.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    if not parser.parse_args().check:
        write(MODELS)
        return 0
    if differs():
        print("client: models.py is not what the API describes: run python -m tools.client", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
