"""The page of a visitor, and the way of a guest: to a first game, to the next one, to an account."""

import re

import pytest
from django.core.cache import cache
from django.test import Client
from django.urls import reverse

from training.games.base import FORFEIT
from webapp.accounts.models import Role, User
from webapp.arena.models import Match
from webapp.arena.play import services
from webapp.arena.setup import finding
from webapp.home.recorded import RECORDINGS
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment

pytestmark = pytest.mark.django_db
PLAY = "arena:play-now"


@pytest.fixture(autouse=True)
def unthrottled() -> None:
    """Every test begins with no tries counted."""
    cache.clear()


def shown(client: Client, **query: str) -> str:
    return client.get(reverse("home:index"), query).content.decode()


def seat(client: Client, game: str = "tic_tac_toe") -> Match:
    """Press the button as this client does; return the new match."""
    answer = client.post(reverse(PLAY, args=[game]))
    match = Match.objects.latest("pk")
    assert answer["Location"] == reverse("arena:table", args=[match.pk])
    return match


def finish(client: Client, match: Match) -> None:
    client.post(reverse("arena:consent", args=[match.pk]), {"consent": "yes"})
    services.submit(match_id=match.pk, seat=match.due.get().seat, step=0, move=FORFEIT)  # whoever begins gives up


def model(base: str, *, opened: bool = True, state: str = "ready") -> Deployment:
    checkpoint = Checkpoint.objects.create(name=f"a {base}", kind="base", base=base, path="x", open_to_players=opened)
    return Deployment.objects.create(checkpoint=checkpoint, state=state)


def test_a_visitor_sees_a_recorded_game_and_can_play_each(client: Client) -> None:
    page = shown(client)
    for game in RECORDINGS:
        assert f'href="?game={game}"' in page
    assert set(re.findall(r'action="/play/now/(\w+)/"', page)) == {spec.name for spec in finding.games()}
    assert reverse("account_login") in page
    assert reverse("account_signup") in page
    assert "Pause" in page


def test_a_game_or_step_that_was_not_recorded_is_not_there(client: Client) -> None:
    assert client.get(reverse("home:index"), {"game": "nim"}).status_code == 404
    assert client.get(reverse("home:index"), {"game": "negotiation", "step": "999"}).status_code == 404


def test_a_visitor_plays_with_two_presses_and_a_move(client: Client) -> None:
    match = seat(client)
    guest = match.host
    assert (guest.role, guest.has_usable_password()) == (Role.GUEST, False)
    asked = client.get(reverse("arena:table", args=[match.pk]))
    assert asked["Location"] == reverse("arena:consent", args=[match.pk])
    client.post(reverse("arena:consent", args=[match.pk]), {"consent": "no"})
    match.refresh_from_db()
    assert match.state == "running"
    assert sorted(seat.kind for seat in match.seats.all()) == ["person", "scripted"]
    table = client.get(reverse("arena:table", args=[match.pk])).content.decode()
    assert "Close the table" not in table  # what only members may do


def test_the_next_game_is_two_presses_away(client: Client) -> None:
    first = seat(client)
    finish(client, first)
    table = client.get(reverse("arena:table", args=[first.pk])).content.decode()
    assert f'formaction="{reverse(PLAY, args=["tic_tac_toe"])}"' in table
    second = seat(client)
    assert (second.host, second.pk != first.pk) == (first.host, True)
    assert User.objects.filter(role=Role.GUEST).count() == 1


def test_an_unanswered_table_is_returned_and_leaving_it_closes_it(client: Client) -> None:
    first = seat(client)
    assert seat(client) == first
    client.post(reverse("arena:leave", args=[first.pk]))
    first.refresh_from_db()
    assert first.state == "aborted"
    assert seat(client) != first


def test_a_guest_has_a_quota_and_reads_what_to_do(client: Client, settings) -> None:
    settings.QUOTAS = {**settings.QUOTAS, "open_tables": {"guest": 1, "player": 25}}
    seat(client)
    refused = client.post(reverse(PLAY, args=["connect_four"]))
    assert refused.status_code == 400
    assert "You are not seated: 2 would be more than the limit of 1 tables" in refused.content.decode()
    assert Match.objects.count() == 1


def test_an_address_becomes_few_guests(settings) -> None:
    settings.GUEST_LIMITS = {"visitor": "2/m/ip", "guest_table": "9/m/ip"}
    for _ in range(2):
        seat(Client())
    assert Client().post(reverse(PLAY, args=["tic_tac_toe"])).status_code == 429
    assert User.objects.filter(role=Role.GUEST).count() == 2
    forged = Client(headers={"X-Forwarded-For": "10.1.2.3"})
    assert forged.post(reverse(PLAY, args=["tic_tac_toe"])).status_code == 429


def test_an_offer_says_who_plays_with_or_against_one() -> None:
    against = {offer.spec.name: offer.against for offer in finding.guest_offers()}
    assert against["negotiation"] == "against a scripted player"
    assert against["werewolf"] == "with 5 scripted players"
    assert against["hanabi"] == "with a scripted player", "who plays together does not play against each other"
    model("tiny", state="ready")
    against = {offer.spec.name: offer.against for offer in finding.guest_offers()}
    assert against["negotiation"] == "against a tiny"
    assert against["hanabi"] == "with a tiny"


def test_guests_play_against_small_open_models_that_answer_now_only(client: Client) -> None:
    model("qwen2.5-7b")
    model("smollm2-135m", opened=False)
    cold = model("tiny", state="cold")
    assert {offer.model for offer in finding.guest_offers()} == {None}
    assert "against a scripted player" in shown(client)
    Deployment.objects.filter(pk=cold.pk).update(state="ready")
    assert {offer.model for offer in finding.guest_offers()} == {cold}
    assert "against a tiny" in shown(client)
    assert seat(client).seats.get(deployment=cold).kind == "model"


def test_a_guest_does_not_take_a_seat_beside_a_member(client: Client, person) -> None:
    from webapp.arena.setup import scenarios, tables

    host = person("player")
    start = scenarios.draw(scenarios.SAMPLE, host, "tic_tac_toe", 1, 2)
    waiting = tables.create(host=host, start=start, places=[tables.Place(user=host), tables.Place()], consent=True)
    waiting.seats.filter(user=host).update(seen_at=services.database_now())
    assert finding.offers(person("player"))[2].table is not None
    assert seat(client) != waiting


def test_an_account_keeps_the_games_of_a_guest(client: Client) -> None:
    match = seat(client)
    guest = match.host
    finish(client, match)
    page = client.get(reverse("account_signup"))
    assert "games that you played as a guest stay yours" in page.content.decode()
    refused = client.post(reverse("account_signup"), {"username": "admin", "password1": "x", "password2": "y"})
    assert refused.status_code == 200
    guest.refresh_from_db()
    assert (guest.role, guest.username.startswith("guest-")) == (Role.GUEST, True)
    fields = {"username": "ingrid", "password1": "let me in 9", "password2": "let me in 9"}
    assert client.post(reverse("account_signup"), fields)["Location"] == "/"
    guest.refresh_from_db()
    assert (guest.username, guest.shown_name, guest.role) == ("ingrid", "ingrid", Role.PLAYER)
    assert guest.check_password("let me in 9")
    assert client.get(reverse("arena:result", args=[match.pk])).status_code == 200
    assert client.get(reverse("arena:lobby")).status_code == 200
    fresh = Client()
    fresh.post(reverse("account_login"), {"login": "ingrid", "password": "let me in 9"})
    assert fresh.get(reverse("arena:result", args=[match.pk])).status_code == 200


def test_a_guest_reads_why_a_game_cannot_be_shared_and_what_an_account_is_for(client: Client) -> None:
    match = seat(client)
    finish(client, match)
    source = client.get(reverse("arena:result", args=[match.pk])).content.decode()
    assert "This game is private: only its players can open it" in source
    client.post(reverse("judgments:rate", args=[match.pk]), {"reveal": "1"})
    source = client.get(reverse("judgments:rate", args=[match.pk])).content.decode()
    assert "This game is private: only its players can open it" in source
    offer = f'<a href="{reverse("account_signup")}">Create an account</a> to keep your games, to play the same opponent'
    assert offer in source
    assert "data-copy" not in source
    Match.objects.update(visibility=Match.Visibility.PUBLIC)
    source = client.get(reverse("arena:result", args=[match.pk])).content.decode()
    assert "private" not in source
    assert 'data-copy="share"' in source


def test_a_visitor_reads_that_watching_needs_an_account(client: Client) -> None:
    assert "can be watched with an account" in shown(client)
    sign_in = client.get("/play/1/replay/", follow=True).content.decode()
    assert "the page that you opened is shown" in sign_in
    assert "the page that you opened is shown" not in client.get(reverse("account_login")).content.decode()


def test_who_has_an_account_does_not_make_another_in_its_place(client_of, person) -> None:
    player = person("player", "pia")
    client = client_of(player)
    fields = {"username": "second", "password1": "let me in 9", "password2": "let me in 9"}
    assert client.post(reverse("account_signup"), fields)["Location"] == "/"
    assert not User.objects.filter(username="second").exists()
    player.refresh_from_db()
    assert player.username == "pia"
