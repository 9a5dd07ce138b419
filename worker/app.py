"""The workers' Celery application: `celery -A worker.app worker --queues … --pool threads --concurrency N`.

Every module of `worker.tasks` registers its tasks here; `webapp.core.queue.TASKS` lists the same names, and a test
compares the two. A message only says "look": each task claims its row before it does anything.
"""

import importlib
import os
import pkgutil
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")

from webapp.core import embedded

embedded.join()

import django  # noqa: E402 (after the databases)

django.setup()

from django.conf import settings  # noqa: E402 (after the databases)

from webapp.core.queue import make_celery  # noqa: E402 (needs Django)
from worker import lifecycle, tasks  # noqa: E402 (needs Django)

app = make_celery()
app.conf.worker_pool = "threads"
sys.setswitchinterval(settings.SWITCH_SECONDS)
app.set_default()
for module in pkgutil.iter_modules(tasks.__path__):
    importlib.import_module(f"worker.tasks.{module.name}")
lifecycle.connect()
