"""The client is a distribution of its own: it installs alone, has types, and imports nothing of the project."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "client"


def test_it_imports_what_it_asks_for_and_nothing_of_the_project():
    imported = set()
    for path in (CLIENT / "parley_client").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            imported |= {name.split(".")[0] for name in names}
    assert imported - sys.stdlib_module_names == {"httpx2", "pydantic", "parley_client"}


def test_it_installs_from_its_folder(tmp_path):
    source = shutil.copytree(CLIENT, tmp_path / "client")  # building writes into the source
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
    target = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "-q", *offline, "--target", str(target), str(source)]
    subprocess.run(install, check=True)
    assert (target / "parley_client" / "py.typed").is_file()
    code = "import parley_client; print(parley_client.__file__, parley_client.Client.__name__)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(target / "parley_client" / "__init__.py"), "Client"]
