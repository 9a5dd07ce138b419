"""Trust 41: a stopped installation is its folder. A copy of it elsewhere boots, with the same rows, files and pages."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import installation

pytestmark = pytest.mark.process
ROOT = Path(__file__).resolve().parents[2]

FILL = """
from webapp.accounts.models import Role, User
User.objects.create_superuser("ada", password="a-long-pass-phrase", role=Role.ADMIN)
"""
DESCRIBE = """
import hashlib, io, json, re
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from webapp.accounts.models import User
from webapp.runs.models import Run

def digest(content):
    return hashlib.sha256(content).hexdigest()

out = io.StringIO()
call_command("dumpdata", exclude=["sessions"], stdout=out)
rows = digest(out.getvalue().encode())
files = {
    str(path.relative_to(settings.MEDIA_ROOT)): digest(path.read_bytes())
    for path in sorted(settings.MEDIA_ROOT.rglob("*")) if path.is_file()
}
client, pages = Client(), {}
client.force_login(User.objects.get(username="ada"))
for run in Run.objects.order_by("pk"):
    pages[f"{run.name} curves"] = digest(client.get(f"/runs/{run.pk}/metrics.json").content)
    for tab in ("", "conversations/", "evaluation/", "lineage/"):
        pages[f"{run.name} {tab}"] = client.get(f"/runs/{run.pk}/{tab}").status_code
print(json.dumps({"rows": rows, "files": files, "pages": pages}))
"""


def manage(home, *arguments):
    """Run a command of an installation; it starts the databases in its folder, and stops them at the end."""
    left_out = {"DATABASE_URL", "REDIS_URL", "PARLEY_TEST_DATABASE", "PARLEY_TEST_SESSION"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    environment |= {"PARLEY_HOME": str(home), "DJANGO_SETTINGS_MODULE": "webapp.settings"}
    command = [sys.executable, "manage.py", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def test_a_copy_of_the_folder_is_the_same_installation():
    with tempfile.TemporaryDirectory(prefix="parley-backup-") as place:
        home, backup = Path(place) / "home", Path(place) / "backup"
        home.mkdir()
        installation.begin(home)
        manage(home, "shell", "-v0", "-c", FILL)
        manage(home, "sample_runs")
        subprocess.run(["cp", "-a", home, backup], check=True)
        before = json.loads(manage(home, "shell", "-v0", "-c", DESCRIBE))
        home.rename(Path(place) / "lost")
        after = json.loads(manage(backup, "shell", "-v0", "-c", DESCRIBE))
    assert before["files"]
    assert {status for page, status in before["pages"].items() if not page.endswith("curves")} == {200}
    assert after == before
