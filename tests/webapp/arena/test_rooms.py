"""Tables of many seats: sizes, links, the ready check, bots for empty seats, names by chance."""

import html
import json
import re
from dataclasses import replace

import pytest

from tests.games.play import played
from tests.games.worlds import CASES
from tests.webapp.arena import vigil
from training.dataset import DatasetLine
from training.errors import BadInput
from training.games import REGISTRY
from training.records import Scenario
from webapp.arena import opponents
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.arena.setup import links, rules, scenarios, tables, waiting_room
from webapp.scenarios.models import DatasetVersion
from webapp.scenarios.services import create_dataset

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered")]
registered = vigil.registered
SAMPLES = tuple(vigil.vigil(size).model_copy(update={"id": f"v{size}"}) for size in (3, 3, 6, 12))


@pytest.fixture
def samples(monkeypatch):
    monkeypatch.setattr(scenarios, "samples", lambda game: SAMPLES if game == "vigil" else ())


def table(host, *users, empty=0, bots=0):
    size = 1 + len(users) + empty + bots
    places = [tables.Place(user=user) for user in (host, *users)]
    places += [tables.Place() for _ in range(empty)] + [tables.Place(scripted="random") for _ in range(bots)]
    return tables.create(host=host, start=tables.Start(vigil.vigil(size)), places=places, consent=True)


def state(match):
    return Match.objects.get(pk=match.pk).state


# --- the form ---


def test_the_form_offers_seats_for_the_size_of_the_scenario(client_of, player, samples):
    client = client_of(player)
    form = client.get("/play/new/", {"game": "vigil"}).context["form"]
    assert (form.sizes, form.size, len(form.seat_fields)) == ([3, 6, 12], 3, 3)
    assert form.fields["scenario"].choices == [("sample", "A sample scenario (2)")]
    form = client.get("/play/new/", {"game": "vigil", "seats": "12"}).context["form"]
    assert (form.size, len(form.seat_fields)) == (12, 12)
    assert client.get("/play/new/", {"game": "vigil", "seats": "5"}).context["form"].size == 3
    assert client.get("/play/new/", {"game": "vigil", "seats": "x"}).status_code == 404
    assert 'id="choose-seats"' not in client.get("/play/new/", {"game": "negotiation"}).content.decode()


def test_the_form_counts_the_scenarios_of_the_tables_size(client_of, researcher, samples):
    keyed = [scenario.model_copy(update={"id": f"{at}"}) for at, scenario in enumerate(SAMPLES)]
    create_dataset(name="vigils", owner=researcher, lines=[DatasetLine(scenario=scenario) for scenario in keyed])
    version = DatasetVersion.objects.get()
    for size, label in ((3, "vigils v1 (2 scenarios)"), (6, "vigils v1 (1 scenario)")):
        form = client_of(researcher).get("/play/new/", {"game": "vigil", "seats": str(size)}).context["form"]
        assert form.fields["scenario"].choices[1:] == [(f"version:{version.pk}", label)]


def test_a_table_of_six_is_made_in_two_clicks(client_of, player, samples):
    client = client_of(player)
    page = client.get("/play/new/", {"game": "vigil", "seats": "6"})
    form = page.context["form"]
    data = {name: field.initial for name, field in form.fields.items()}
    address = re.search(r'<form method="post" action="([^"]*)"', page.content.decode())[1].replace("&amp;", "&")
    answer = client.post(f"/play/new/{address}", {**data, "game": "vigil", "consent": "yes"})
    match = Match.objects.get()
    assert answer.url == f"/play/{match.pk}/"
    assert (match.seats.count(), match.state, match.shuffled) == (6, Match.State.RUNNING, True)
    assert sorted(match.scenario["seats"]) == sorted(vigil.NAMES[:6])
    assert list(match.seats.order_by("seat").values_list("name", flat=True)) == match.scenario["seats"]


def test_a_host_can_choose_every_seat(client_of, player, samples):
    client = client_of(player)
    form = client.get("/play/new/", {"game": "vigil"}).context["form"]
    data = {name: field.initial for name, field in form.fields.items() if name != "shuffled"}
    client.post("/play/new/", {**data, "game": "vigil", "consent": "yes"})
    match = Match.objects.get()
    assert match.scenario["seats"] == list(vigil.NAMES[:3])
    assert match.seats.get(user=player).seat == 0


def test_names_are_drawn_from_the_seed():
    def names(seed):
        drawn = tables.with_drawn_names(vigil.vigil(6, seed=seed))
        assert sorted(drawn.seats) == sorted(vigil.NAMES[:6])
        return drawn.seats

    assert names(1) == names(1)
    assert len({names(seed) for seed in range(20)}) > 10


def test_a_version_offers_what_fits(researcher):
    from training.dataset import DatasetLine

    lines = [DatasetLine(scenario=scenario) for scenario in SAMPLES[1:3]]
    create_dataset(name="mixed", owner=researcher, lines=lines)
    version = DatasetVersion.objects.get()
    assert scenarios.sizes(researcher, "vigil") == [3, 6]
    assert [value for value, _ in scenarios.choices(researcher, "vigil", 6)] == [f"version:{version.pk}"]
    assert scenarios.choices(researcher, "vigil", 12) == []
    for size in (3, 6):
        drawn = scenarios.draw(f"version:{version.pk}", researcher, "vigil", 5, size)
        assert len(drawn.scenario.seats) == size
        assert drawn.source.key == f"v{size}"
    with pytest.raises(BadInput, match="no such scenario"):
        scenarios.draw(f"version:{version.pk}", researcher, "vigil", 5, 4)


@pytest.mark.parametrize("game, usual, shorter", [("werewolf", 6, {}), ("among_us", 5, {"rounds": 30})])
def test_a_village_or_ship_of_any_size_is_played_to_its_end(client_of, player, game, usual, shorter):
    client = client_of(player)
    assert client.get("/play/new/", {"game": game}).context["form"].size == usual
    form = client.get("/play/new/", {"game": game, "seats": "12"}).context["form"]
    assert (form.sizes, form.fields["scenario"].choices) == (list(range(3, 13)), [("sample", "A plain start")])
    data = {name: field.initial for name, field in form.fields.items()}
    client.post(f"/play/new/?game={game}&seats=12", {**data, "game": game, "consent": "yes"})
    match = Match.objects.get()
    match.scenario["settings"] |= shorter
    match.save()
    start = services.scenario_of(match)
    assert (match.state, len(set(start.seats))) == (Match.State.RUNNING, 12)
    _, moves = played(start, start.seed)
    for entry in moves:
        match.refresh_from_db()
        services.submit(match_id=match.pk, seat=entry.seat, step=match.step, move=entry.move)
    assert state(match) == Match.State.FINISHED
    assert client.get(f"/play/{match.pk}/").content.decode().count('<li class="chair') == 12


# --- rules ---


def new_table(client, game="werewolf", **fields):
    form = client.get("/play/new/", {"game": game}).context["form"]
    data = {name: field.initial for name, field in form.fields.items()}
    return client.post("/play/new/", {**data, "game": game, "consent": "yes", **fields})


def ruled(**rules):
    return {f'rules-["{name}"]': value for name, value in rules.items()}


def test_rules_that_are_left_empty_are_those_of_the_scenario(client_of, player):
    assert new_table(client_of(player)).status_code == 302
    match = Match.objects.get()
    sampled = [scenario.settings for scenario in scenarios.samples("werewolf") if len(scenario.seats) == 6]
    assert match.scenario["settings"] in [json.loads(json.dumps(settings)) for settings in sampled]


def test_rules_can_be_chosen_for_a_table(client_of, player):
    chosen = {"rounds": "2", "reveal": "false", "tie": "random", "max_words": "0"}
    roles = "Werewolf, seer, villager,villager, villager, villager"
    assert new_table(client_of(player), **ruled(**chosen, roles=roles)).status_code == 302
    match = Match.objects.get()
    settings = match.scenario["settings"]
    assert {name: settings[name] for name in ("rounds", "reveal", "tie", "max_words")} == {
        "rounds": 2,
        "reveal": False,
        "tie": "random",
        "max_words": 0,
    }
    assert settings["roles"] == ["werewolf", "seer", *["villager"] * 4]
    assert match.rules == {name: settings[name] for name in ("roles", "rounds", "reveal", "tie", "max_words")}


def test_chosen_rules_are_shown_before_the_game_and_at_its_end_and_kept_at_a_rematch(client_of, player, person):
    said = "reveal no, rounds 2"
    new_table(client_of(player), seat_1="open", **ruled(rounds="2", reveal="false"))
    match = Match.objects.get()
    guest = person("player", "gus")
    assert said in client_of(guest).get(f"/play/{match.pk}/").content.decode()
    waiting_room.take_seat(match=match, user=guest)
    assert said in client_of(guest).get(f"/play/{match.pk}/consent/").content.decode()
    waiting_room.close(match=match)
    assert said in client_of(player).get(f"/play/{match.pk}/result/").content.decode()
    again = tables.again(match=match, host=player)
    assert (again.rules, again.scenario["settings"]["rounds"]) == ({"rounds": 2, "reveal": False}, 2)


@pytest.mark.parametrize(
    "field, value, why",
    [
        ("rounds", "9", "Must be at most 5."),
        ("tie", "coin", "Select a valid choice"),
        ("roles", "werewolf, wizard", "There is no 'wizard'"),
        ("roles", "werewolf, seer, villager", "3 roles for 6 players"),
        ("roles", "werewolf, werewolf, werewolf, seer, villager, villager", "fewer of them"),
    ],
)
def test_wrong_rules_are_reported_at_their_field(client_of, player, field, value, why):
    page = new_table(client_of(player), **ruled(**{field: value}))
    assert page.status_code == 400
    form = page.context["form"].rules
    whole = why == "fewer of them"  # what the settings say as a whole stands above them
    assert why in " ".join(form.non_field_errors() if whole else form.errors[f'["{field}"]'])
    assert why in html.unescape(page.content.decode())
    assert not Match.objects.exists()


@pytest.mark.parametrize("game", REGISTRY)
def test_nothing_that_is_dealt_is_among_the_rules(game):
    spec = REGISTRY[game]
    offered = set(rules.offered(spec))
    assert not offered & {"deal", "fixed", "scenario", "participants", "goal_check"}
    assert set(spec.undealt(dict.fromkeys(offered, 1))) == offered
    for name in set(spec.settings.model_fields) - offered:
        with pytest.raises(BadInput) as refused:
            rules.changed(CASES[game][0], {name: 1})
        assert refused.value.where == f"rules.{name}"


def test_opponents_of_a_game_are_offered_by_readable_names(client_of, player, samples):
    choices = dict(client_of(player).get("/play/new/", {"game": "vigil"}).context["form"].fields["seat_1"].choices)
    assert choices["scripted:mcts:100"] == "A tree search (100)"
    assert choices["scripted:nash"] == "An equilibrium strategy"
    assert opponents.title("oracle") == "the player “oracle”"
    match = table(player, bots=2)
    seat = match.seats.get(seat=1)
    assert seat.who == "a random player"


def test_a_game_without_a_script_has_random_players_in_its_place(monkeypatch):
    """A game of another package need not have one."""
    assert (opponents.substitute("vigil"), opponents.names(vigil.SPEC)[:2]) == ("scripted", ("scripted", "random"))
    monkeypatch.setitem(REGISTRY, "vigil", replace(vigil.SPEC, script=""))
    assert opponents.substitute("vigil") == "random"
    assert opponents.names(REGISTRY["vigil"]) == ("random", "mcts:100", "nash")
    assert opponents.substitute("openspiel:othello") == opponents.substitute("gone") == "random"


# --- links ---


def test_a_link_to_the_table_seats_whoever_comes(client_of, player, ben):
    host, member, stranger, late = client_of(player), client_of(ben), client_of(None), client_of(None)
    match = table(player, empty=2)
    shown = host.post(f"/play/{match.pk}/link/").content.decode()
    link = re.search(r"/play/join/[\w-]+/", shown).group()
    assert link.split("/")[3] not in str(list(Match.objects.values()))
    assert "already" in host.get(link).content.decode()
    assert "Sit down" in stranger.get(link).content.decode()
    assert match.seats.filter(kind="open").count() == 2, "opening a link changes nothing"
    assert stranger.post(link, {"shown_name": "Zoe"}).url == f"/play/{match.pk}/"
    assert member.post(link).url == f"/play/{match.pk}/"
    assert [seat.who for seat in match.seats.order_by("seat")] == [player.shown_name, "Zoe (guest)", ben.shown_name]
    assert member.post(link).url == f"/play/{match.pk}/", "who sits there already keeps their seat"
    assert late.post(link, {"shown_name": "Max"}).status_code == 400
    assert "No seat is free" in late.get(link).content.decode()


def test_a_new_link_replaces_the_old_one_and_kept_seats_stay_kept(client_of, player, ben):
    match = table(player, empty=2)
    old, new = links.open_link(match=match), links.open_link(match=match)
    links.invite(match=match, number=1)
    with pytest.raises(BadInput, match="replaced"):
        links.join(token=old, user=ben, shown_name="")
    assert links.join(token=new, user=ben, shown_name="")[0].seat == 2
    with pytest.raises(BadInput, match="no seat is free"):
        links.join(token=new, user=None, shown_name="Zoe")
    assert client_of(None).get("/play/join/nonsense/").status_code == 404


# --- the ready check ---


def test_many_begin_when_everybody_is_ready(client_of, player, ben, annotator):
    match = table(player, ben, empty=1)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    with pytest.raises(BadInput, match="empty seats"):
        waiting_room.say_ready(match=match, user=ben)
    waiting_room.take_seat(match=match, user=annotator)
    with pytest.raises(BadInput, match="question about consent"):
        waiting_room.say_ready(match=match, user=annotator)
    waiting_room.answer_consent(match=match, user=annotator, agreed=False)
    assert state(match) == Match.State.OPEN
    assert "Ready</button>" in client_of(ben).get(f"/play/{match.pk}/").content.decode()
    for user in (player, ben):
        client_of(user).post(f"/play/{match.pk}/ready/")
    assert state(match) == Match.State.OPEN
    assert "Ready</button>" not in client_of(ben).get(f"/play/{match.pk}/").content.decode()
    client_of(annotator).post(f"/play/{match.pk}/ready/")
    assert state(match) == Match.State.RUNNING


def test_when_a_player_leaves_everybody_presses_ready_again(player, ben, annotator):
    match = table(player, ben, annotator)
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    waiting_room.say_ready(match=match, user=player)
    waiting_room.leave(match=match, user=annotator)
    assert not match.seats.filter(ready=True).exists()


def test_alone_with_bots_nothing_else_is_asked(player):
    assert state(table(player, bots=4)) == Match.State.RUNNING


def test_the_host_fills_empty_seats_and_begins(client_of, player, ben, annotator):
    match = table(player, ben, empty=3)
    links.invite(match=match, number=3)
    address = f"/play/{match.pk}/fill/"
    assert client_of(ben).post(address).status_code == 404
    client_of(player).post(address)
    assert state(match) == Match.State.OPEN, "who was not asked what may be stored does not play"
    waiting_room.answer_consent(match=match, user=ben, agreed=True)
    client_of(player).post(address)
    assert state(match) == Match.State.RUNNING
    kinds = list(match.seats.order_by("seat").values_list("kind", "scripted"))
    assert kinds == [("person", ""), ("person", ""), *[("scripted", "scripted")] * 3]
    with pytest.raises(BadInput, match="already begun"):
        waiting_room.fill(match=match)


def test_again_moves_everybody_one_seat_on_and_draws_the_names_anew(player, ben):
    places = [tables.Place(user=player), tables.Place(user=ben), *[tables.Place(scripted="random")] * 4]
    match = tables.create(host=player, start=tables.Start(vigil.vigil(6)), places=places, consent=True, shuffled=True)
    services.abort(match_id=match.pk, why="enough")
    following = tables.again(match=match, host=player)
    assert (following.shuffled, following.swapped_from) == (True, match)
    assert {seat.seat: seat.user for seat in following.seats.exclude(user=None)} == {1: player, 2: ben}
    assert sorted(following.scenario["seats"]) == sorted(match.scenario["seats"])
    assert Scenario.from_dict(following.scenario).seed != Scenario.from_dict(match.scenario).seed


def test_a_guest_who_opens_the_table_s_link_again_keeps_the_seat(client_of, player):
    match = table(player, empty=3)
    link, browser = f"/play/join/{links.open_link(match=match)}/", client_of(None)
    for _ in range(3):
        assert browser.post(link, {"shown_name": "Zoe"}).url == f"/play/{match.pk}/"
    assert [seat.who for seat in match.seats.order_by("seat")][1:] == ["Zoe (guest)", "nobody yet", "nobody yet"]
    assert "already" in browser.get(link).content.decode()


def test_a_person_who_was_sent_away_does_not_return_by_the_same_link(client_of, player):
    match = table(player, empty=2)
    link, browser = f"/play/join/{links.open_link(match=match)}/", client_of(None)
    browser.post(link, {"shown_name": "Zoe"})
    hosting.kick(match=match, number=1)
    assert browser.post(link, {"shown_name": "Zoe"}).status_code == 404
    assert match.seats.filter(kind="open").count() == 2
