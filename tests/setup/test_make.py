"""The Makefile's helpers: steps run once, failures are not taken for success, and one line closes two test passes."""

import re
import socket
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from tools import setup, test, up

ROOT = Path(__file__).resolve().parents[2]


def make(*arguments, **environment):
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", **environment},
    )


def test_help_lists_every_target():
    listed = re.findall(r"^make (\w+) +\S", make("help").stdout, re.MULTILINE)
    declared = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    assert listed == declared
    assert {"setup", "site", "demo", "up", "autogen", "dense", "test", "lint", "help"} == set(declared)


def test_lint_is_run_with_the_options_that_were_given(monkeypatch):
    """By itself, make gives some names a value: LINT is `lint`."""
    assert make("--dry-run", "lint").stdout.rstrip().endswith("-m tools.lint")
    monkeypatch.setenv("QUICK", "1")
    assert make("--dry-run", "lint").stdout.rstrip().endswith("-m tools.lint"), "the environment's is another's"
    assert make("--dry-run", "lint", "QUICK=--quick").stdout.rstrip().endswith("-m tools.lint --quick")


def test_the_tests_find_the_environment_of_autogen():
    """Without it, the tests of the form `chat` would be skipped."""
    assert "-m tools.setup --dev --autogen" in make("--dry-run", "test").stdout
    assert "-m tools.setup --packages-only --autogen" in make("--dry-run", "autogen").stdout


def test_the_tests_find_dense_retrieval():
    """Without it, the test of its model would be skipped."""
    assert " --dense &&" in make("--dry-run", "test").stdout
    assert "-m tools.setup --packages-only --dense" in make("--dry-run", "dense").stdout


def test_without_a_fitting_python_make_says_what_is_needed(tmp_path):
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text())
    done = subprocess.run(
        ["/usr/bin/make", "setup"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )
    assert done.returncode == 2
    assert "Python 3.11, 3.12 or 3.13 is needed" in done.stderr


def test_a_step_runs_once_for_each_key(tmp_path):
    ran = []
    for wanted in ("a", "a", "b", "b", "a"):
        setup.step("thing", wanted, lambda wanted=wanted: ran.append(wanted), folder=tmp_path)
    assert ran == ["a", "b", "a"]


def test_a_step_runs_again_when_what_it_made_is_gone(tmp_path):
    product = tmp_path / "made"
    for _ in range(2):
        setup.step("thing", "a", lambda: product.write_text("here"), folder=tmp_path, product=product)
    product.unlink()
    setup.step("thing", "a", lambda: product.write_text("again"), folder=tmp_path, product=product)
    assert product.read_text() == "again"


def test_the_documentation_is_built_again_only_when_its_sources_changed(tmp_path, monkeypatch):
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    (tmp_path / "docs.txt").write_text("")
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "webapp/settings.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    monkeypatch.setattr(setup, "REQUIREMENTS", tmp_path)
    keys = []
    for text in ("one", "one", "two"):
        page.write_text(text)
        keys.append(setup.key(*setup.docs_sources()))
    assert (keys[0] == keys[1], keys[1] == keys[2]) == (True, False)


def test_a_failed_step_is_not_done(tmp_path):
    def fail():
        raise setup.SetupError("no")

    ran = []
    setup.step("thing", "a", lambda: ran.append(1), folder=tmp_path)
    with pytest.raises(setup.SetupError):
        setup.step("thing", "b", fail, folder=tmp_path)
    setup.step("thing", "a", lambda: ran.append(2), folder=tmp_path)
    assert ran == [1, 2]


def test_a_key_changes_with_every_part_and_not_with_how_they_are_joined(tmp_path):
    file = tmp_path / "file"
    file.write_text("ab")
    keys = {setup.key(file, "c"), setup.key("ab", "d"), setup.key("a", "bc"), setup.key("abc")}
    assert len(keys) == 4
    assert setup.key(file, "c") == setup.key("ab", "c")


def test_a_failing_command_is_reported_with_the_end_of_its_output():
    code = "print('first'); print('last'); raise SystemExit(3)"
    with pytest.raises(setup.SetupError, match=r"(?s)trying failed:.*last"):
        setup.run([sys.executable, "-c", code], "trying")


def test_a_command_is_read_line_by_line_and_looked_at_while_it_runs():
    lines, looks = [], []
    code = "import time; print('one', flush=True); time.sleep(1.2); print('two')"
    setup.run([sys.executable, "-c", code], "trying", read=lines.append, look=lambda: looks.append(len(lines)))
    assert lines == ["one\n", "two\n"]
    assert 1 in looks


def test_a_long_step_says_what_is_left(monkeypatch, capsys):
    times = iter([100.0, 110.0, 130.0, 131.0, 160.0])
    monkeypatch.setattr(setup.time, "monotonic", lambda: next(times))
    meter = setup.Meter("model tiny")
    for share in (0.1, 0.25, 0.3, 0.5):
        meter.reached(share)
    # 30 s for the first quarter leave 90 s; 60 s for the first half leave 60 s; between two lines pass 15 s
    assert capsys.readouterr().out == "setup: model tiny: 25%, 90 s left\nsetup: model tiny: 50%, 60 s left\n"


def test_the_time_left_counts_down_while_the_share_stands_still(monkeypatch, capsys):
    times = iter([100.0, 140.0, 160.0, 230.0])
    monkeypatch.setattr(setup.time, "monotonic", lambda: next(times))
    meter = setup.Meter("unpacking")
    for share in (0.4, 0.4, 0.0):
        meter.reached(share)
    # 40 s for two fifths leave 60 s, 20 s later 40 s; what takes longer than expected is not estimated again
    assert capsys.readouterr().out.split("setup: unpacking: 40%")[1:] == [", 60 s left\n", ", 40 s left\n", "\n"]


@pytest.mark.parametrize("chosen", [False, True])
def test_a_torch_of_another_hash_is_refused_unless_its_index_was_chosen(tmp_path, capsys, chosen):
    wheel = tmp_path / "torch-1.0-py3-none-any.whl"
    wheel.write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # of "abc", FIPS 180-2, appendix B.1
    setup.check_hash(wheel, f"torch==1.0 --hash=sha256:{known}", chosen=chosen)
    assert capsys.readouterr().out == ""
    if chosen:
        setup.check_hash(wheel, "torch==1.0", chosen=True)
        assert "was not checked" in capsys.readouterr().out
    else:
        with pytest.raises(setup.SetupError, match=known):
            setup.check_hash(wheel, "torch==1.0", chosen=False)


def test_the_closing_line_has_pytests_form():
    line = test.closing(Counter(passed=12, skipped=1), 65.04)
    assert re.search(r"=+ 12 passed, 1 skipped in 65\.04s \(0:01:05\) =+$", line)
    assert re.search(r" 2 failed, 3 passed, 1 errors in ", test.closing(Counter(failed=2, passed=3, errors=1), 1.0))


@pytest.mark.parametrize(
    "codes, passed, status",
    [([0, 5, 5], 3, 0), ([5, 5, 5], 0, 1), ([0, 1, 0], 3, 1), ([0, -11, 0], 3, -11), ([-9, 5, 2], 3, -9)],
)
def test_a_pass_that_a_signal_ends_is_a_failure(codes, passed, status):
    """A process that SIGSEGV ends has the exit code -11: its tests after that did not run."""
    assert test.status(codes, Counter(passed=passed)) == status


def test_passes_of_a_chain_run_one_after_another_and_chains_at_once(tmp_path, monkeypatch, capfd):
    """`b` and `c` wait for each other's folder; `d` comes after `c`, whose failure does not keep it from running."""
    wait = "import sys, time\nfrom pathlib import Path\nPath({0!r}).mkdir()\n"
    wait += "while not Path({1!r}).exists(): time.sleep(0.01)"
    scripts = {
        "b": wait.format("b", "c"),
        "c": wait.format("c", "b") + "\nprint('of c')\nsys.exit(3)",
        "d": "from pathlib import Path\nprint('of d')\nassert Path('c').exists()",
    }

    def start(part, report, output):
        command = [sys.executable, "-c", scripts[part.title]]
        return subprocess.Popen(command, cwd=tmp_path, stdout=output, text=True)

    monkeypatch.setattr(test, "start", start)
    b, c, d = (test.Pass(title, ()) for title in "bcd")
    assert test.together([[b], [c, d]], tmp_path) == [0, 3, 0]
    assert capfd.readouterr().out.split("\n") == ["test: b", "test: c", "of c", "test: d", "of d", ""]


def test_outcomes_are_counted_from_a_report(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_passes(): pass\n"
        "def test_passes_too(): pass\n"
        "def test_fails(): assert False\n"
        "@pytest.mark.skip\ndef test_skipped(): pass\n"
        "@pytest.fixture\ndef broken(): raise OSError\n"
        "def test_errs(broken): pass\n"
    )
    report = tmp_path / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:django", "-c", "/dev/null", f"--rootdir={tmp_path}"]
    subprocess.run([*command, f"--junitxml={report}", str(tmp_path)], cwd=tmp_path, capture_output=True, check=False)
    assert test.count(test.read(report)) == Counter(passed=2, failed=1, skipped=1, errors=1)
    assert test.count(test.read(tmp_path / "none.xml")) == Counter()


def test_times_are_added_up_by_module(tmp_path):
    cases = [("tests.a", 1.5), ("tests.b", 3), ("tests.a", 2)]
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuites><testsuite>"
        + "".join(f'<testcase classname="{module}" name="test" time="{time}"/>' for module, time in cases)
        + "</testsuite></testsuites>"
    )
    assert list(test.seconds(test.read(report)).items()) == [("tests.a", 3.5), ("tests.b", 3)]
    assert test.seconds(test.read(tmp_path / "none.xml")) == {}


def test_a_lock_is_installed_once_into_the_environment_that_is_named(tmp_path, monkeypatch):
    ran = []
    monkeypatch.setattr(setup, "run", lambda command, what, **_: ran.append((command[0], command[-1])))
    for _ in range(2):
        setup.install("autogen", tmp_path)
    assert ran == [(str(tmp_path / "bin" / "python"), str(setup.REQUIREMENTS / "autogen.txt"))]


def test_whether_a_model_is_up_to_date_is_the_models_own_word(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(setup, "HOME", tmp_path)
    monkeypatch.setattr(setup, "run", lambda command, what, **_: asked.append(command[1:]))
    for model in setup.MODELS:
        (tmp_path / "models" / model).mkdir(parents=True)
        (tmp_path / "models" / model / "manifest.json").write_text("{}")
    for _ in range(2):
        setup.finish()
    for model in setup.MODELS:
        assert asked.count(["-m", "training", "models", "prepare", model]) == 2


def test_that_word_costs_no_import_of_torch():
    code = (
        "import sys; from training.learn import prepare; from training.learn.tiny import pretrain; pretrain.key(); "
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0


@pytest.mark.parametrize(
    "name, text", [("PORT", "abc"), ("PORT", "99999"), ("PORT", "0"), ("SERVE_SLOTS", "x"), ("TRAIN_SLOTS", "-1")]
)
def test_a_wrong_number_is_reported_before_anything_starts(tmp_path, monkeypatch, capsys, name, text):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    for variable in ("PORT", "SERVE_SLOTS", "TRAIN_SLOTS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv(name, text)
    monkeypatch.setattr(sys, "argv", ["up"])
    monkeypatch.setattr(up.signal, "signal", lambda *_: None)
    monkeypatch.setattr(up, "supervised", lambda env: pytest.fail("started"))
    assert up.main() == 2
    assert re.match(rf"up: {name}={text} is no whole number from 1 to \d+: set it as in `", capsys.readouterr().err)


def test_slots_that_are_empty_are_one(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    monkeypatch.setenv("SERVE_SLOTS", "")
    monkeypatch.setenv("TRAIN_SLOTS", "3")
    env = up.environment(8000)
    assert (env["SERVE_SLOTS"], env["PARLEY_SERVE_THREADS"], env["TRAIN_SLOTS"]) == ("1", "2", "3")


def test_a_taken_port_is_refused_if_asked_for_and_passed_over_if_not(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        monkeypatch.setenv("PORT", str(number))
        with pytest.raises(up.UpError, match=f"port {number} is taken"):
            up.free_port()
        monkeypatch.delenv("PORT")
        monkeypatch.setattr(up, "PORTS", range(number, number + 20))
        assert up.free_port() in range(number + 1, number + 20)


def test_a_setup_waits_until_another_one_ends(tmp_path, capsys):
    lock = tmp_path / "lock"
    with lock.open("ab") as first, lock.open("ab") as second:
        setup.wait_for(first)
        assert not capsys.readouterr().out
        waiting = threading.Thread(target=setup.wait_for, args=(second,))
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
        assert capsys.readouterr().out == "setup: waiting for another one to end\n"
        first.close()
        waiting.join(5)
        assert not waiting.is_alive()
