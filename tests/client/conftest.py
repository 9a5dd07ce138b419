"""A site with a worker behind it, and clients of it; the process of a run is a stand-in."""

import sys
import threading

import pytest
from django.db import connections

from parley_client import Client


@pytest.fixture
def working(live_server, settings, tmp_path, unpaced):
    """The address of a site whose worker, a thread, supervises runs and plays scripted seats."""
    from webapp.arena.models import DueSeat
    from webapp.runs.models import Run
    from worker.play import play
    from worker.supervise import supervise

    settings.MEDIA_ROOT, settings.RUNS_ROOT = tmp_path / "files", tmp_path / "files" / "runs"
    settings.RUN_COMMAND = [sys.executable, "-m", "tests.worker.fake_trainer"]
    over = threading.Event()

    def work():
        while not over.wait(0.05):
            for run in Run.objects.filter(state=Run.State.QUEUED):
                supervise(run.pk)
            for due in DueSeat.objects.filter(hint_at__isnull=False):
                play(due.pk)
        connections.close_all()

    thread = threading.Thread(target=work)
    thread.start()
    yield live_server.url
    over.set()
    thread.join(30)
    assert not thread.is_alive()


@pytest.fixture
def client_for(live_server):
    """Makes a client of a person: `client_for(user)`."""
    from webapp.accounts.services import create_key

    clients = []

    def make(user, **options):
        client = Client(live_server.url, create_key(user=user, name="client")[1], **options)
        clients.append(client)
        return client

    yield make
    for client in clients:
        client.close()
