"""Settings of a worker process whose training command is the stand-in, with short leases."""

import sys

from webapp.settings import *  # noqa: F403

RUN_COMMAND = [sys.executable, "-m", "tests.worker.fake_trainer"]
RUN_LEASE_SECONDS = 2.0
