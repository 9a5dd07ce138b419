"""The tasks that the site sends are the tasks that workers offer, and nothing slow to import comes with them."""

import os
import subprocess
import sys

import pytest

from webapp.core import queue

pytestmark = pytest.mark.process

SLOW = ("torch", "vllm", "transformers", "trl", "peft", "scipy", "sklearn", "openai")


def in_a_process(code):
    return subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=False)


def test_every_name_that_is_sent_is_registered(databases):
    code = "from worker.app import app\nprint(*sorted(name for name in app.tasks if not name.startswith('celery.')))"
    done = in_a_process(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == sorted(queue.TASKS)


@pytest.mark.parametrize("module", ["worker.app", "webapp.asgi"])
def test_nothing_slow_is_imported(databases, module):
    code = f"import sys, {module}; print([name for name in {SLOW!r} if name in sys.modules])"
    done = in_a_process(code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
