"""The recorded games: they are what their commands write, and every step of each can be drawn."""

import json
import shlex

import pytest
from django.urls import reverse

from training.cli import main
from training.games import lookup
from training.records import ALL, SPECTATOR
from webapp.home.recorded import RECORDINGS, played, view


@pytest.mark.parametrize("game", RECORDINGS)
def test_the_command_plays_the_recorded_game(game: str, tmp_path) -> None:
    recording, again = RECORDINGS[game], tmp_path / "again.jsonl"
    command = shlex.split(recording.command.replace("FILE", str(again)))
    assert command[:3] == ["python", "-m", "training"]
    assert main(command[3:]) == 0
    stored, fresh = (json.loads(path.read_text("utf-8")) for path in (recording.path, again))
    for part in ("scenario", "moves", "returns"):
        assert stored[part] == fresh[part]


@pytest.mark.parametrize("game", RECORDINGS)
def test_a_recorded_game_is_played_to_its_end(game: str) -> None:
    last = view(game, played(game).steps)
    assert last.view.headline
    assert last.after is None
    assert view(game, 0).before is None
    assert last.viewer == (ALL if lookup(game).hidden else SPECTATOR)


@pytest.mark.parametrize("game", RECORDINGS)
def test_every_step_of_a_recorded_game_is_a_page(client, db, game: str) -> None:
    for step in range(played(game).steps + 1):
        part = client.get(reverse("home:index"), {"game": game, "step": step}, headers={"HX-Request": "true"})
        assert part.status_code == 200
        assert f'aria-label="Step {step} of {played(game).steps}"' in part.content.decode()
        assert "<html" not in part.content.decode()
