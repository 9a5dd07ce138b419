"""The analysis of a finished match: who may see it, when, and who makes it."""

import pytest

from tests.games.cases.strategic import strategic
from training.games.base import FORFEIT
from training.records import Move
from webapp.arena.models import Match
from webapp.arena.play import analyses, services
from webapp.arena.setup import tables
from webapp.core import queue
from worker.tasks.analysis import analyse_match

pytestmark = pytest.mark.django_db


def game(host, scenario, visibility=Match.Visibility.OPEN):
    """A running game of the host against somebody else."""
    places = [tables.Place(user=host), tables.Place(scripted="random")]
    match = tables.create(host=host, start=tables.Start(scenario), places=places, visibility=visibility, consent=True)
    match.refresh_from_db()
    return match


def play(match, *choices):
    for step, choice in enumerate(choices):
        (seat,) = services.fold(match, steps=step).game.to_act()
        move = Move(action="answer", args={"choice": choice})
        services.submit(match_id=match.pk, seat=seat, step=step, move=move)


def resign(match):
    match.refresh_from_db()
    (seat,) = services.fold(match).game.to_act()
    services.submit(match_id=match.pk, seat=seat, step=match.step, move=FORFEIT)


def analysis(client, match):
    return client.get(f"/play/{match.pk}/analysis/")


def test_where_nothing_was_hidden_everybody_who_may_see_the_game_reads_it(client_of, player, ben):
    match = game(player, strategic("tic_tac_toe"))
    play(match, "X(1,1)", "O(0,1)")
    assert analysis(client_of(player), match).status_code == 404, "the game is not over"
    resign(match)
    for user in (player, ben):
        page = analysis(client_of(user), match).content.decode()
        assert "?? blunder" in page
        assert f'href="/play/{match.pk}/replay/?step=2"' in page
        for other in ("result/", "replay/"):
            assert (
                f'hx-get="/play/{match.pk}/analysis/"'
                in client_of(user).get(f"/play/{match.pk}/{other}").content.decode()
            )


def test_where_something_was_hidden_only_those_who_may_see_it_read_it(client_of, player, ben):
    match = game(player, strategic("kuhn_poker"))
    resign(match)
    assert analysis(client_of(player), match).status_code == 200
    assert analysis(client_of(ben), match).status_code == 404
    for page in ("result/", "replay/"):
        assert "/analysis/" not in client_of(ben).get(f"/play/{match.pk}/{page}").content.decode()


def test_who_may_not_see_the_game_reads_no_analysis(client_of, player, ben):
    match = game(player, strategic("tic_tac_toe"), Match.Visibility.PRIVATE)
    play(match, "X(1,1)")
    resign(match)
    assert analysis(client_of(ben), match).status_code == 404


def test_an_engine_works_in_a_worker_and_the_page_waits(client_of, player, monkeypatch):
    sent = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **options: sent.append((task.name, args)) or True)
    match = game(player, strategic("connect_four", opening=[3, 0, 3, 0, 3]))
    play(match, "O(6)", "X(3)")
    sent.clear()
    client = client_of(player)
    for _ in range(2):
        page = analysis(client, match).content.decode()
        assert 'hx-trigger="load delay:1s"' in page
    assert sent == [("arena.analyse_match", (match.pk,))], "it is asked once"
    analyses.compute(match_id=match.pk)
    page = analysis(client, match).content.decode()
    assert "?? blunder" in page
    assert "better: in column 4" in page
    assert "hx-trigger" not in page.split('id="analysis"')[1].split("</section>")[0]


def test_without_a_worker_the_page_says_so_and_asks_again_later(client_of, player, monkeypatch):
    sent = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **options: sent.append(task.name) and False)
    match = game(player, strategic("connect_four"))
    resign(match)
    sent.clear()
    for _ in range(2):
        assert "no worker can be reached" in analysis(client_of(player), match).content.decode()
    assert sent == ["arena.analyse_match"] * 2


def test_after_a_failure_of_the_engine_the_page_does_not_wait(client_of, player, monkeypatch):
    sent = []
    monkeypatch.setattr(queue, "publish", lambda task, *args, **options: sent.append(task.name) or True)
    match = game(player, strategic("connect_four"))
    resign(match)
    sent.clear()
    assert 'hx-trigger="load delay:1s"' in analysis(client_of(player), match).content.decode()

    def crash(match):
        raise RuntimeError("the engine is broken")

    with monkeypatch.context() as broken:
        broken.setattr(analyses, "_made", crash)
        broken.setattr("worker.tasks.analysis.close_old_connections", lambda: None)  # the test's own one stays open
        with pytest.raises(RuntimeError):
            analyse_match(match.pk)
    page = analysis(client_of(player), match).content.decode()
    assert "or the engine failed" in page
    assert "hx-trigger" not in page.split('id="analysis"')[1].split("</section>")[0]
    assert sent == ["arena.analyse_match"], "a broken engine is not asked again at once"


def test_what_an_earlier_release_kept_is_made_again(player):
    match = game(player, strategic("connect_four"))
    resign(match)
    analyses.compute(match_id=match.pk)
    assert analyses.of_match(match) == ()
    analyses.cache.set(f"analysis:{match.pk}", '[{"kind": "opinions"}]', 60)
    assert analyses.of_match(match) is None
