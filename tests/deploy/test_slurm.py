"""deploy/slurm/train.sh with a stand-in for Slurm: one machine, whose Ray listens on the loopback interface.

It trains, hears the signal before the end of its time, leaves nothing behind, and goes on when it is submitted again.
"""

import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from tests import tiny_model
from training.rundir import RunDir
from training.store import read_lines

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]
SRUN = """#!/bin/bash
echo "$*" >>"$SRUN_LOG"
while [[ $1 == --* ]]; do shift; done
[[ $1 == hostname ]] && exec echo "127.0.0.1 192.0.2.1"
exec "$@"
"""
CONFIG = """
kind = "train"
name = "small"
model = { base = "tiny", device = "cpu" }
engine = { name = "transformers" }
sampling = { max_tokens = 48 }
game = { name = "negotiation" }
rollout = { scenarios = 2, games = 2 }
learn = { steps = 40, save_every = 1, threads = 1, lora = false, critic_warmup = 0 }
stop = { failing = 1.0, entropy_fall = 0 }
cluster = { engines = 2 }
"""
"""More steps than it gets time for."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def processes_of(home: Path) -> list[psutil.Process]:
    """The processes that were started for this installation: its folder is in their environment."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("PARLEY_HOME") == str(home) and process.status() != psutil.STATUS_ZOMBIE:
                processes.append(process)
        except psutil.Error:
            continue
    return processes


@pytest.fixture
def submit(tmp_path):
    """Submits the script for a run directory; everything that it starts is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="parley-slurm-") as folder:  # Ray's sockets need a short path
        home, commands = Path(folder), tmp_path / "bin"
        (home / "models").mkdir()
        (home / "models" / "tiny").symlink_to(tiny_model.prepare().resolve())
        (home / "ray-token").write_text("0123456789abcdef" * 4)
        (home / "ray-token").chmod(0o600)
        commands.mkdir()
        for name, text in (("srun", SRUN), ("scontrol", "#!/bin/bash\necho first\n")):
            (commands / name).write_text(text)
            (commands / name).chmod(0o755)
        (tmp_path / "config.toml").write_text(CONFIG)
        environment = {
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("DATABASE", "REDIS", "RAY_ADDRESS"))
            },
            "PATH": f"{commands}:{os.environ['PATH']}",
            "SRUN_LOG": str(tmp_path / "srun.log"),
            "SLURM_SUBMIT_DIR": str(ROOT),
            "SLURM_JOB_NODELIST": "first",
            "SLURM_CPUS_ON_NODE": "3",  # one for each process of the run
            "SLURM_GPUS_ON_NODE": "0",
            "PARLEY_HOME": str(home),
            "OMP_NUM_THREADS": "1",
            "RAY_TMPDIR": str(home),
            "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else Ray takes an address that others can reach
        }

        def start(run):
            command = [ROOT / "deploy" / "slurm" / "train.sh", tmp_path / "config.toml", run]
            with (tmp_path / "job.log").open("ab") as log:
                return subprocess.Popen(
                    command, env={**environment, "RAY_PORT": str(free_port())}, stdout=log, stderr=log
                )

        try:
            yield home, start
        finally:
            for process in processes_of(home):
                process.kill()


def until(true, seconds, log):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, log.read_text()[-4000:]
        time.sleep(0.2)


def learned(attempt):
    """The steps that an attempt has learned."""
    return [line["step"] for line, _ in read_lines(attempt.metrics)] if attempt.metrics.exists() else []


def stopped_after_a_step(job, attempt, log):
    """Stop the job once it has learned something; return the steps of its attempt."""
    until(lambda: job.poll() is not None or learned(attempt), 150, log)
    job.send_signal(signal.SIGTERM)  # to the shell alone, as `--signal=B:TERM` does
    assert job.wait(90) == 0, log.read_text()[-4000:]
    assert json.loads(attempt.status.read_text())["result"] == "stopped"
    return learned(attempt)


@pytest.mark.slow
def test_a_job_that_is_stopped_goes_on_when_it_is_submitted_again(submit, tmp_path):
    home, start = submit
    run, log, steps = RunDir(tmp_path / "run"), tmp_path / "job.log", []
    for number in (1, 2):
        steps += stopped_after_a_step(start(run.root), run.attempt(number), log)
        assert steps == list(range(1, len(steps) + 1)), "each step once"
        assert run.latest_checkpoint()[0] == len(steps)
        until(lambda: processes_of(home) == [], 60, log)
    started = [line.split() for line in (tmp_path / "srun.log").read_text().splitlines()]
    assert all({"--overlap", "--cpus-per-task=3", "--mem=0"} <= set(line) for line in started)


RAY = """#!/bin/bash
case $1 in
  start) [[ $HEAD == dies ]] || exec sleep 60 ;;
  health-check) [[ $HEAD == answers ]] ;;
  status) echo " 0.0/8.0 GPU" ;;
esac
"""


@pytest.fixture
def begin(tmp_path):
    """Runs the script with stand-ins of Slurm and Ray on two machines of eight GPUs, of which one never joins."""
    home, folder = tmp_path / "home", tmp_path / "checkout" / ".venv" / "bin"
    folder.mkdir(parents=True)
    home.mkdir()
    for name, text in {"srun": SRUN, "scontrol": "#!/bin/bash\nprintf 'first\\nsecond\\n'\n", "ray": RAY}.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    token = home / "ray-token"
    token.write_text("0123456789abcdef" * 4)
    token.chmod(0o600)

    def run(head="answers"):
        environment = {
            "PATH": os.environ["PATH"],
            "SRUN_LOG": str(tmp_path / "srun.log"),
            "SLURM_SUBMIT_DIR": str(tmp_path / "checkout"),
            "SLURM_JOB_NODELIST": "first,second",
            "SLURM_CPUS_ON_NODE": "3",
            "SLURM_GPUS_ON_NODE": "8",
            "PARLEY_HOME": str(home),
            "START_S": "3",
            "HEAD": head,
        }
        command = [ROOT / "deploy" / "slurm" / "train.sh", "config.toml", tmp_path / "run"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert processes_of(home) == []
        return done.returncode, done.stderr

    return token, run


@pytest.mark.parametrize(
    "head, why",
    [
        ("silent", "Ray's head on first has not answered within 3 s. START_S=SECONDS gives the machines more time"),
        ("dies", "Ray's head on first has ended"),
        ("answers", "the machines have not joined Ray with 16 GPUs within 3 s. START_S=SECONDS gives"),
    ],
)
def test_a_ray_that_does_not_come_up_ends_the_job(begin, head, why):
    _, run = begin
    code, said = run(head)
    assert (code, why in said) == (1, True), said


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o660, 0o602])
def test_a_token_that_others_know_starts_nothing(begin, tmp_path, mode):
    token, run = begin
    token.chmod(mode)
    code, said = run()
    assert (code, "others can read or write the token" in said) == (1, True), said
    assert not (tmp_path / "srun.log").exists()


@pytest.mark.parametrize("content", ["", None])
def test_a_token_that_is_missing_starts_nothing(begin, tmp_path, content):
    token, run = begin
    token.write_text(content) if content is not None else token.unlink()
    code, said = run()
    assert (code, f"{token} has no token. Make one" in said) == (1, True), said
    assert not (tmp_path / "srun.log").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_token_of_somebody_else_starts_nothing(begin):
    token, run = begin
    os.chown(token, 65534, 65534)
    code, said = run()
    assert (code, "or it is not yours" in said) == (1, True), said
