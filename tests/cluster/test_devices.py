"""The memory that this process may take: that of the machine, or of its control groups."""

import psutil

from training.cluster import devices


def group(folder, limit, used, cached):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\n")


def test_a_control_group_that_may_take_less_than_the_machine_has_counts(tmp_path, monkeypatch):
    """Of 1000 bytes 400 are used, of which 100 are pages of files; the group above has no limit of its own."""
    monkeypatch.setattr(devices, "CGROUPS", tmp_path)
    group(tmp_path / "pods", "max", 5000, 0)
    group(tmp_path / "pods" / "one", 1000, 400, 100)
    monkeypatch.setattr(devices, "_group", lambda: tmp_path / "pods" / "one")
    assert devices.memory_free() == 700
    group(tmp_path / "pods", 6000, 5500, 50)
    assert devices.memory_free() == 550, "the one above has less left"


def test_without_limits_the_memory_is_that_of_the_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "CGROUPS", tmp_path)
    monkeypatch.setattr(devices, "_group", lambda: tmp_path)
    free = psutil.virtual_memory().available
    assert abs(devices.memory_free() - free) < max(0.5 * free, 2**30)
