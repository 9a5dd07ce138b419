"""The pages of participants: the link without an account, every stage after a reload, and what partners are called."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from tests.webapp.experiments import making
from webapp.accounts.models import User
from webapp.arena.live import client_state, fragments
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.experiments import design, facilitating, participation
from webapp.experiments.models import PERSON, Experiment, Participant
from webapp.experiments.views.participant import others

pytestmark = pytest.mark.django_db
BROWSER = "&PROLIFIC_PID=P-1&STUDY_ID=S-1&SESSION_ID=X-1"


def page(client: Client, address: str) -> str:
    response = client.get(address, follow=True)
    assert response.status_code == 200
    return str(response.content.decode())


def agree(client: Client, experiment: Experiment, query: str = "", **data: str) -> Any:
    return client.post(f"/experiments/take/{experiment.token}/begin/?{query}", {"agree": "yes", **data})


def test_opening_the_link_stores_nothing_and_agreeing_makes_a_guest(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, consent_text="You may stop <b>at any time</b>.")
    people = User.objects.count()
    shown = page(client, f"/experiments/take/{experiment.token}/?{BROWSER}")
    assert "You may stop &lt;b&gt;at any time&lt;/b&gt;." in shown
    assert User.objects.count() == people
    agree(client, experiment, BROWSER, reuse="yes")
    participant = Participant.objects.get()
    ids = (participant.external_id, participant.study_id, participant.session_id)
    assert ids == ("P-1", "S-1", "X-1")
    assert participant.may_reuse
    assert participant.user.is_guest


def test_the_names_of_the_ids_are_those_of_the_platform(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, id_parameter="workerId")
    agree(client, experiment, "workerId=W7&PROLIFIC_PID=no")
    assert Participant.objects.get().external_id == "W7"


def test_who_refuses_is_not_stored(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher)
    response = client.post(f"/experiments/take/{experiment.token}/begin/", {"agree": "no"})
    assert "Nothing about you was stored" in response.content.decode()
    assert not Participant.objects.exists()


def test_a_reload_shows_the_stage(researcher: User, client: Client) -> None:
    made = making.experiment(researcher, code_completed="DONE <1>", debriefing="This was about trust.")
    making.arm(made, "only")
    making.question(made, "age", part="before", kind="number", options=[], low=18)
    making.question(made, "trust")
    design.open_experiment(experiment=made)
    link = f"/experiments/take/{made.token}/"
    agree(client, made)
    assert "Before the game" in page(client, link)
    refused = client.post(f"{link}answer/", {"part": "before", "q-age": "3"})
    assert refused.status_code == 400
    assert "greater than or equal to 18" in refused.content.decode()
    client.post(f"{link}answer/", {"part": "before", "q-age": "33"})
    assert "Your table is being prepared" in page(client, link)
    beaten = client.post(f"{link}heartbeat/", {"stage": "wait", "visible": "1"})
    assert beaten["HX-Refresh"] == "true"
    response = client.get(link)
    participant = Participant.objects.select_related("group__match").get()
    assert participant.group is not None
    assert response["Location"] == f"/play/{participant.group.match_id}/"
    making.end_match(participant)
    table = page(client, f"/play/{participant.group.match_id}/")
    assert f'href="{link}" role="button">Continue' in table
    assert "see who they were" not in table
    assert "After the game" in page(client, link)
    client.post(f"{link}answer/", {"part": "after", "q-trust": "2"})
    debriefed = page(client, link)
    assert "This was about trust." in debriefed
    assert "a scripted player" in debriefed
    client.post(f"{link}finish/")
    assert "DONE &lt;1&gt;" in page(client, link)


def test_the_way_back_to_the_platform_holds_the_code(researcher: User, client: Client) -> None:
    experiment = making.opened(
        researcher, making.PAIR, code_waited="A B", completion_url="https://app.example/done?cc={code}"
    )
    agree(client, experiment)
    design.close(experiment=experiment)
    assert 'href="https://app.example/done?cc=A%20B"' in page(client, f"/experiments/take/{experiment.token}/")


@pytest.mark.parametrize("code", ["", "GONE-7"])
def test_who_is_removed_reads_so_with_the_code_or_what_to_do(researcher: User, client: Client, code: str) -> None:
    experiment = making.opened(researcher, code_removed=code, code_completed="DONE", code_waited="WAITED")
    agree(client, experiment, BROWSER)
    client.post(f"/experiments/take/{experiment.token}/heartbeat/", {"stage": "wait", "visible": "1"})
    participant = Participant.objects.select_related("group__match", "user").get()
    assert participant.group is not None
    facilitating.replace(participant=participant)
    table = page(client, f"/play/{participant.group.match_id}/")
    assert "Your participation has ended." in table
    assert "Take your seat back" not in table
    assert f'href="/experiments/take/{experiment.token}/"' in table
    shown = page(client, f"/experiments/take/{experiment.token}/")
    assert "removed you from the study" in shown
    assert ("GONE-7" in shown) == bool(code)
    assert ("ask the researchers about your payment" in shown) == (not code)
    assert ("WAITED" in shown, "DONE" in shown) == (False, False)
    assert (f'<code class="token">{participant.pk}</code>' in shown) == (not code), "the export has this number"


@pytest.mark.parametrize("code", ["", "GONE-7"])
def test_no_page_shows_an_id_of_the_platform_to_the_next_person(researcher: User, client: Client, code: str) -> None:
    """On a shared computer whoever opens the link without an id sees where the last person was."""
    ids = {name: f"canary-{name.lower()}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")}
    experiment = making.opened(researcher, code_removed=code)
    link, query = f"/experiments/take/{experiment.token}/", "&".join(f"{name}={ids[name]}" for name in ids)
    pages = [page(client, link)]
    agree(client, experiment, query)
    pages.append(page(client, link))
    client.post(f"{link}heartbeat/", {"stage": "wait", "visible": "1"})
    participant = Participant.objects.select_related("group__match", "user").get()
    assert participant.external_id == ids["PROLIFIC_PID"]
    assert participant.group is not None
    pages.append(page(client, f"/play/{participant.group.match_id}/"))
    facilitating.replace(participant=participant)
    pages += [page(client, address) for address in (f"/play/{participant.group.match_id}/", link)]
    assert "removed you from the study" in pages[-1]
    assert not any(secret in shown for shown in pages for secret in ids.values())


def test_no_page_after_the_game_says_who_the_others_were_before_the_debriefing(
    researcher: User, client: Client
) -> None:
    experiment = making.opened(researcher)
    agree(client, experiment)
    client.post(f"/experiments/take/{experiment.token}/heartbeat/", {"stage": "wait", "visible": "1"})
    participant = Participant.objects.select_related("group__match").get()
    making.end_match(participant)
    assert participant.group is not None
    match_id = participant.group.match_id
    assert client.get(f"/play/{match_id}/result/")["Location"] == f"/play/{match_id}/"
    assert client.get(f"/play/{match_id}/replay/")["Location"] == f"/play/{match_id}/"
    assert client.get(f"/play/{match_id}/analysis/").status_code == 404
    assert client.get(f"/judgments/matches/{match_id}/rate/").status_code == 404


@pytest.mark.parametrize("players", [making.PAIR, making.ALONE])
@pytest.mark.parametrize("shown_as", Match.ShownAs)
def test_the_table_calls_partners_what_the_arm_says(researcher: User, players: list[str], shown_as: str) -> None:
    """The whole table is the same for both kinds of partners, but for the names that are drawn."""
    made = making.experiment(researcher, debriefing="Not all of it was so.")
    making.arm(made, "only", players, shown_as=shown_as)
    design.open_experiment(experiment=made)
    participant = making.come(made)
    if players == making.PAIR:
        making.come(made)
    participant = participation.heartbeat(participant=participant, visible=True)
    assert participant.group is not None
    match = participant.group.match
    seat = match.seats.get(user=participant.user)
    parts = fragments.contents(client_state.read(match, seat.seat, participant.user))
    label = str(Match.ShownAs(shown_as).label)
    assert f'<span class="quiet">{label} ' in parts["seats"]
    whole = " ".join(parts[name] for name in ("seats", "status", "side", "waiting", "act")).replace(label, "")
    assert not any(word in whole for word in ("scripted", "guest", "a model", "a person", "stand-in"))


def test_a_stand_in_needs_no_debriefing_and_every_debriefing_names_it(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, making.PAIR, arms=1, debriefing="")
    assert not experiment.arms.get().misleads
    leaves = making.come(experiment)
    agree(client, experiment)
    stays = Participant.objects.get(pk=participation.heartbeat(participant=Participant.objects.last(), visible=True).pk)
    facilitating.replace(participant=Participant.objects.get(pk=leaves.pk))
    making.end_match(stays)
    shown = page(client, f"/experiments/take/{experiment.token}/")
    assert "About this study" in shown
    assert "a person, and then a scripted player" in shown


@pytest.mark.parametrize("player, title", [("scripted", "a scripted player"), ("random", "a random player")])
def test_the_debriefing_names_the_player_without_a_model(researcher: User, player: str, title: str) -> None:
    experiment = making.opened(researcher, [PERSON, f"scripted:{player}"], arms=1)
    participant = making.seated(experiment)
    assert participant.group is not None
    other = participant.group.match.seats.get(user=None)
    assert others(participant) == [(other.name, title)] == [(other.name, other.who)]
    hosting.replace(match=participant.group.match, number=other.seat)
    stood_in = "a computer player without a model, and then a scripted player"
    assert others(participant) == [(other.name, stood_in)], "which player it was is not stored any more"


def test_the_waiting_room_is_the_same_whoever_the_partners_are(researcher: User) -> None:
    rooms = set()
    for players, fallback in ((making.PAIR, ""), (making.PAIR, "scripted:scripted"), (making.ALONE, "")):
        made = making.experiment(researcher, shortest_wait_s=60)
        making.arm(made, "only", players, fallback=fallback, shown_as="person")
        design.open_experiment(experiment=made)
        client = Client()
        agree(client, made)
        shown = page(client, f"/experiments/take/{made.token}/")
        rooms.add(re.sub(r"\d\d:\d\d:\d\d|[\w-]{20,}|participant \d+", "", shown))
    assert len(rooms) == 1
    assert "Your table is being prepared." in rooms.pop()


@pytest.mark.parametrize(
    "waited_s, promise", [(0, "Within 5 minutes"), (61, "Within 4 minutes"), (290, "Within 1 minute ")]
)
def test_the_waiting_room_says_how_long_the_wait_lasts(
    researcher: User, client: Client, waited_s: int, promise: str
) -> None:
    """The longest wait is 300 seconds; minutes are rounded up, and the last ones are never none."""
    experiment = making.opened(researcher, making.PAIR)
    agree(client, experiment)
    Participant.objects.update(waiting_since=services.database_now() - timedelta(seconds=waited_s))
    assert promise in page(client, f"/experiments/take/{experiment.token}/")


def test_an_optional_question_says_so(researcher: User, client: Client) -> None:
    made = making.experiment(researcher)
    making.arm(made, "only")
    making.question(made, "mood", part="before", required=False)
    making.question(made, "why", part="before", kind="text", options=[], required=False)
    making.question(made, "age", part="before", kind="number", options=[])
    design.open_experiment(experiment=made)
    agree(client, made)
    shown = page(client, f"/experiments/take/{made.token}/")
    assert "How much mood? (optional)" in shown
    assert "How much why? (optional)" in shown
    assert "How much age?</label>" in shown


def test_a_notice_reaches_the_page_and_the_table(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, making.PAIR)
    agree(client, experiment)
    facilitating.nudge(participant=Participant.objects.get(), text="Please <i>stay</i>.")
    beaten = client.post(f"/experiments/take/{experiment.token}/heartbeat/", {"stage": "wait", "visible": "0"})
    assert "Please &lt;i&gt;stay&lt;/i&gt;." in beaten.content.decode()


def test_a_participant_withdraws(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, making.PAIR)
    agree(client, experiment, BROWSER)
    client.post(f"/experiments/take/{experiment.token}/withdraw/")
    assert "You have withdrawn" in page(client, f"/experiments/take/{experiment.token}/")
    assert Participant.objects.get().external_id == ""


def test_the_owner_cannot_take_part_and_another_member_can(researcher: User, client: Client, player: User) -> None:
    experiment = making.opened(researcher, making.PAIR)
    client.force_login(researcher)
    assert "You run this study" in page(client, f"/experiments/take/{experiment.token}/")
    assert agree(client, experiment).status_code == 404
    client.force_login(player)
    agree(client, experiment)
    assert Participant.objects.get().user == player


def test_a_guest_of_another_study_becomes_a_new_guest(researcher: User, client: Client) -> None:
    for _ in range(2):
        agree(client, making.opened(researcher, making.PAIR))
    users = set(Participant.objects.values_list("user", flat=True))
    assert len(users) == 2


def test_drafts_are_not_there(researcher: User, client: Client) -> None:
    assert client.get(f"/experiments/take/{making.experiment(researcher).token}/").status_code == 404


def test_guests_are_limited_by_address(researcher: User, client: Client, settings: Any) -> None:
    settings.GUEST_LIMITS = {"participant": "1/m/ip"}
    experiment = making.opened(researcher, making.PAIR)
    assert agree(Client(REMOTE_ADDR="192.0.2.7"), experiment).status_code == 302
    assert agree(Client(REMOTE_ADDR="192.0.2.7"), experiment).status_code == 429


def test_a_participant_is_not_asked_to_keep_games(researcher: User, client: Client, guest: User) -> None:
    experiment = making.opened(researcher)
    agree(client, experiment)
    for address in (f"/experiments/take/{experiment.token}/", "/"):
        assert "Keep my games" not in page(client, address)
        assert "to keep your games" not in page(client, address)
    client.force_login(guest)
    assert "Keep my games" in page(client, "/")


def test_another_person_at_the_same_computer_begins_as_themselves(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, making.PAIR, code_waited="CODE-OF-THE-FIRST")
    link = f"/experiments/take/{experiment.token}/"
    agree(client, experiment, "PROLIFIC_PID=P-1")
    first = Participant.objects.get()
    for address in (link, f"{link}?PROLIFIC_PID=P-1"):
        assert "The game begins soon" in page(client, address)
    offered = page(client, f"{link}?PROLIFIC_PID=P-2")
    assert "with a different id from the one in your link" in offered
    assert "I agree, and take part" in offered
    assert "The game begins soon" not in offered
    agree(client, experiment, "PROLIFIC_PID=P-2")
    second = Participant.objects.exclude(pk=first.pk).get()
    assert (second.external_id, second.user == first.user) == ("P-2", False)
    assert client.session["_auth_user_id"] == str(second.user_id)
    first.refresh_from_db()
    assert (first.external_id, first.stage, first.outcome) == ("P-1", "wait", "")


def test_nobody_takes_over_a_participation_by_its_id(researcher: User, client: Client) -> None:
    """A browser that takes part gets no other person's participation, neither on the way nor ended with a code."""
    experiment = making.opened(researcher, making.PAIR, code_waited="CODE-OF-THE-FIRST")
    link = f"/experiments/take/{experiment.token}/"
    agree(Client(), experiment, "PROLIFIC_PID=P-1")
    agree(client, experiment, "PROLIFIC_PID=P-2")
    refused = page(client, f"{link}?PROLIFIC_PID=P-1")
    assert "you have begun this study already" in refused
    assert "I agree, and take part" not in refused
    assert agree(client, experiment, "PROLIFIC_PID=P-1").status_code == 400
    design.close(experiment=experiment)
    assert "CODE-OF-THE-FIRST" not in page(client, f"{link}?PROLIFIC_PID=P-1")
    user = Participant.objects.get(external_id="P-2").user_id
    assert client.session["_auth_user_id"] == str(user)


def test_an_ended_participation_is_not_shown_to_the_next_person(researcher: User, client: Client) -> None:
    experiment = making.opened(researcher, making.PAIR)
    link = f"/experiments/take/{experiment.token}/"
    agree(client, experiment, "PROLIFIC_PID=P-1")
    client.post(f"{link}withdraw/")
    assert "You have withdrawn" in page(client, f"{link}?PROLIFIC_PID=P-1")
    assert "You have withdrawn" not in page(client, f"{link}?PROLIFIC_PID=P-2")


def test_a_members_session_is_not_given_to_another_person(researcher: User, client: Client, player: User) -> None:
    experiment = making.opened(researcher, making.PAIR)
    client.force_login(player)
    agree(client, experiment, "PROLIFIC_PID=P-1")
    offered = page(client, f"/experiments/take/{experiment.token}/?PROLIFIC_PID=P-2")
    assert "Sign out, or open your link in a private window" in offered
    assert "I agree, and take part" not in offered
    assert agree(client, experiment, "PROLIFIC_PID=P-2").status_code == 400
    assert Participant.objects.get().user == player
