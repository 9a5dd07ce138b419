"""The sample ladder: real games, apart from the site's own, until the first match counts."""

import json
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from training.cli import main
from webapp.accounts.models import User
from webapp.ladder import sample
from webapp.ladder.models import Fit, Standing


@pytest.mark.parametrize("game", sample.games())
def test_the_command_plays_the_stored_games(game: str, tmp_path: Path) -> None:
    stored = json.loads(sample.FILE.read_text("utf-8"))
    pair = next(pair for pair in stored["games"][game] if not any("mcts" in who for who in pair["players"]))
    file = tmp_path / "played.jsonl"
    command = stored["command"].replace("GAME", game).replace("FIRST,SECOND", ",".join(pair["players"]))
    assert main(command.replace("FILE", str(file)).split()[3:]) == 0
    played = [json.loads(line)["returns"] for line in file.read_text("utf-8").splitlines()]
    assert [[row["0"], row["1"]] for row in played] == pair["returns"]


def test_points_per_game_are_counted_by_hand() -> None:
    stored = json.loads(sample.FILE.read_text("utf-8"))["games"]["tic_tac_toe"]
    won = games = 0.0
    for pair in stored:
        for seat, who in enumerate(pair["players"]):
            if who == "scripted":
                for returns in pair["returns"]:
                    mine, other = returns[seat], returns[1 - seat]
                    won += 1.0 if mine > other else 0.5 if mine == other else 0.0
                    games += 1
    fitted = sample.ladder("tic_tac_toe")
    assert fitted is not None
    line = next(line for line in fitted.lines if line.name == "a scripted player")
    assert (line.games, line.share) == (games, pytest.approx(won / games))


def test_an_empty_ladder_shows_the_sample_and_stores_nothing(db, client_of, player: User) -> None:
    client: Client = client_of(player)
    page = client.get(reverse("ladder:ladder"), {"game": "connect_four"}).content.decode()
    assert 'id="sample-title">Sample' in page
    assert "a random player" in page
    assert not Standing.objects.exists()
    assert "sample-title" not in client.get(reverse("ladder:ladder"), {"game": "dialogue"}).content.decode()
    Fit.objects.create(game="connect_four", matches=1)
    page = client.get(reverse("ladder:ladder"), {"game": "connect_four"}).content.decode()
    assert "sample-title" not in page
