"""Playing alone: the same task for a person and a model, hidden until the person is done, then side by side."""

import asyncio
import re
from datetime import timedelta
from itertools import product

import pytest
from channels.db import database_sync_to_async
from django.utils.html import escape
from django.utils.text import capfirst

from tests.games import test_shop_files as shop_files
from tests.games.play import reply
from tests.stub import Stub
from tests.webapp.arena.browser import Tab
from tests.webapp.judgments.make import FIVES, annotate, people_queue
from tests.webapp.runs.making import make_run
from training import samples
from training.errors import BadInput
from training.games import make
from training.games.actions import body
from training.games.shop import webshop
from training.records import ALL, SPECTATOR, Scenario
from training.text.parsing import parse
from webapp.accounts.services import create_key
from webapp.arena import clock
from webapp.arena.live import consumers
from webapp.arena.models import Advice, DueSeat, Match, MatchSeat
from webapp.arena.play import human_moves, plays, services
from webapp.arena.setup import alone, speakers, tables
from webapp.ladder import log
from webapp.runs.models import Checkpoint
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play as work

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("unpaced")]

SOCKS = "sample:shop-hiking-socks"
BEST = [("search.words", "hiking socks yellow P0395"), ("choice", "click:P0395"), ("choice", "click:yellow")]
"""The way to the product from which the instruction was made, with its option: the sample says that it scores 1."""


def socks():
    return alone.with_seed(next(task for task in samples.load("shop") if task.id == "shop-hiking-socks"))


def move(match, user, field, value):
    turn = match.moves.filter(seat=0).count()
    action = {"action": "search"} if field.startswith("search") else {}
    human_moves.play(match_id=match.pk, user=user, data={"turn": str(turn), field: value, **action})


def solve(match, user):
    for field, value in [*BEST, ("choice", "click:buy now")]:
        move(match, user, field, value)
    match.refresh_from_db()


def let_work(match):
    """Play the seats of models and scripted players to the end, as workers do."""
    while due := DueSeat.objects.filter(match=match).first():
        work(due.pk)
    match.refresh_from_db()


@pytest.fixture
def both(player):
    """A person's running play of the socks, and the scripted player's beside it, which is over."""
    scripted = tables.Place(scripted="scripted")
    match = alone.play(user=player, start=tables.Start(socks()), player=scripted, consent=True)
    companion = match.companions.get()
    let_work(companion)
    assert companion.state == Match.State.FINISHED
    return match, companion


def test_two_taps_begin_a_task_for_a_person_and_a_model(client_of, player):
    client = client_of(player)
    assert "/play/alone/?game=shop" in client.get("/play/").content.decode()
    page = client.get("/play/alone/", {"game": "shop"})
    form = page.context["form"]
    fields = {name: form[name].initial for name in ("task", "player")}
    answer = client.post("/play/alone/", {"game": "shop", "consent": "yes", **fields})
    mine = MatchSeat.objects.get(user=player).match
    assert answer["Location"] == f"/play/{mine.pk}/"
    other = mine.companions.get()
    assert (mine.state, other.state) == (Match.State.RUNNING, Match.State.RUNNING)
    assert mine.scenario == other.scenario
    assert mine.task == other.task != ""
    assert other.seats.get().scripted == "scripted"


@pytest.mark.parametrize("consent, agreed", [("yes", True), ("no", False)])
def test_the_button_answers_about_consent(client_of, player, consent, agreed):
    fields = {"game": "shop", "task": SOCKS, "player": "nobody", "consent": consent}
    client_of(player).post("/play/alone/", fields)
    seat = MatchSeat.objects.get(user=player)
    assert seat.consent is agreed
    assert not seat.match.companions.exists()
    assert Match.objects.exportable().count() == 0
    solve(seat.match, player)
    assert Match.objects.exportable().count() == int(agreed)


def test_the_same_choice_is_the_same_task_for_everybody(client_of, player, ben):
    for person in (player, ben):
        client_of(person).post("/play/alone/", {"game": "shop", "task": SOCKS, "player": "nobody", "consent": "no"})
    first, second = Match.objects.order_by("pk")
    assert first.scenario["seed"] == second.scenario["seed"] > 0
    assert first.task == second.task


def test_a_task_is_told_apart_by_what_its_players_get():
    start = Scenario(id="a", game="shop", seats=("Ada",), seed=3, settings={"turn_limit": 5, "split": "train"})
    same = start.model_copy(update={"id": "b", "settings": {"split": "train", "turn_limit": 5}})
    assert tables.task_of(start) == tables.task_of(same)
    others = [{"seed": 4}, {"seats": ("Eve",)}, {"settings": {"turn_limit": 6, "split": "train"}}]
    assert len({tables.task_of(start.model_copy(update=other)) for other in others} | {tables.task_of(start)}) == 4


def test_new_tasks_differ(player):
    drawn = {alone.find("new", player, "shop").scenario.seed for _ in range(3)}
    assert len(drawn) == 3


@pytest.mark.parametrize("task", ["sample:none", "stored:1", "version:1"])
def test_an_unknown_task_is_refused(player, task):
    with pytest.raises(BadInput, match="no such task"):
        alone.find(task, player, "shop")


def test_the_form_refuses_what_it_does_not_offer(client_of, player):
    answer = client_of(player).post("/play/alone/", {"game": "shop", "task": "x", "player": "y", "consent": "yes"})
    assert answer.status_code == 400
    assert {"task", "player"} <= set(answer.context["form"].errors)
    answer = client_of(player).post("/play/alone/", {"game": "shop", "task": SOCKS, "player": "nobody", "watch": "yes"})
    assert "choose whom to watch" in answer.content.decode()
    assert client_of(player).get("/play/alone/", {"game": "negotiation"}).status_code == 404
    assert not Match.objects.exists()


def test_the_new_table_of_a_game_for_one_is_a_play_alone(client_of, player):
    assert client_of(player).get("/play/new/", {"game": "shop"})["Location"] == "/play/alone/?game=shop"


# --- at the table ---


def sample(game):
    return alone.with_seed(samples.load(game)[0])


def scripted_to_the_end(match):
    """Move as the scripted player does, at a person's seat; yields before each move and at the end."""
    while not match.over:
        yield services.fold(match).game
        seen = services.fold(match).game.observe(0)
        text = reply(services.scenario_of(match), 0, seen, match.step, "scripted")
        services.submit(match_id=match.pk, seat=0, step=match.step, move=parse(text, seen)[0])
        match.refresh_from_db()


FOR_MODELS = ["You are Ada.", "How to act", "You can click", "&lt;", "Turns left:"]
BEHIND = re.compile(r'<ol class="read">.*?</ol>', re.DOTALL)
"""What a model would read, which a replay has apart."""


@pytest.mark.parametrize("game", ["shop", "household"])
def test_a_person_reads_the_task_and_the_rules_but_nothing_that_tells_a_model_how_to_write(client_of, player, game):
    client, start = client_of(player), sample(game)
    match = alone.play(user=player, start=tables.Start(start), player=None, consent=True)
    task = make(start).task()
    pages, limit = [], match.scenario["settings"].get("turn_limit", {"shop": 10, "household": 40}[game])
    for state in scripted_to_the_end(match):
        pages.append(client.get(f"/play/{match.pk}/").content.decode())
        assert f'<p class="task">{capfirst(escape(task))}</p>' in pages[-1]
        assert [rule for rule in state.show(0).rules if escape(rule) not in pages[-1]] == []
        left = limit - match.step
        assert f'<span class="phase">{left} turn{"s" * (left != 1)} left</span>' in pages[-1]
        pressed = re.findall(r'<button [^>]*value="([^"]*)"', pages[-1])
        assert sorted(presses(state)) == sorted(set(pressed) & set(presses(state)))
        assert len(set(pressed)) == len(pressed), "each button is there once"
    address = f"/play/{match.pk}/"
    pages += [client.get(address).content.decode(), client.get(f"{address}result/").content.decode()]
    view = services.fold(match).game.show(0)
    assert [text for text in (view.headline, view.moment, "See both plays side by side") if text not in pages[-2]] == []
    assert view.moment in side(pages[-1], "left")
    replays = [client.get(f"{address}replay/", {"viewer": viewer}).content.decode() for viewer in (0, SPECTATOR, ALL)]
    assert all("What a model at this place would read" in page for page in replays)
    assert all(escape(capfirst(task)) in page for page in pages)
    assert all(escape(task) in page for page in replays)
    for number, page in enumerate([*pages, *(BEHIND.sub("", page) for page in replays)]):
        assert [text for text in FOR_MODELS if text in page] == [], number


def test_the_search_field_is_one_field_of_the_form(client_of, player):
    """It stands among what lies on the table, and no second control asks for the same words."""
    match = alone.play(user=player, start=tables.Start(socks()), player=None, consent=True)
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert len(re.findall(r'<input [^>]*name="search\.words"[^>]*>', page)) == 1
    assert 'form="move" type="text" enterkeyhint="search" name="search.words" maxlength="300"' in page
    assert '<button form="move" name="action" value="search">' in page


def presses(game):
    """The values of the buttons that a table needs: one for every legal move without a text of its own."""
    return [
        f"{action.name}:{body(action, dict(zip([arg.name for arg in action.args], values, strict=True)))}"
        if action.args
        else action.name
        for action in game.observe(0).actions
        if all(arg.kind == "choice" for arg in action.args)
        for values in product(*(arg.choices for arg in action.args))
    ]


def test_a_task_is_stated_to_who_watches_too(client_of, player):
    scripted = tables.Place(scripted="scripted")
    match = alone.watch(user=player, start=tables.Start(sample("household")), player=scripted)
    page = client_of(player).get(f"/play/{match.pk}/").content.decode()
    assert f'<p class="task">{escape(capfirst(make(sample("household")).task()))}</p>' in page
    assert "coach" not in page  # nobody is advised
    assert "In the hand" in page
    assert 'name="choice"' not in page


def test_a_match_whose_game_cannot_be_made_any_more_has_a_result(client_of, player, both):
    match, _ = both
    solve(match, player)
    match.scenario["settings"] = {"catalogue": "gone"}
    match.save()
    page = client_of(player).get(f"/play/{match.pk}/result/").content.decode()
    assert f"<h1>{match.title}</h1>" in page


# --- no peeking ---


def test_what_others_do_with_a_task_is_hidden_while_a_person_plays_it(client_of, player, admin, both):
    match, companion = both
    client = client_of(player)
    for page in ("", "result/", "replay/"):
        assert client.get(f"/play/{companion.pk}/{page}").status_code == 404
    for action in ("pause", "close", "again", "accompany"):
        assert client.post(f"/play/{companion.pk}/{action}/").status_code == 404
    headers = {"Authorization": f"Bearer {create_key(user=player, name='test')[1]}"}
    assert client.get(f"/api/v1/matches/{companion.pk}", headers=headers).status_code == 404
    assert [row["id"] for row in client.get("/api/v1/matches", headers=headers).json()["items"]] == [match.pk]
    for page in ("/play/", "/play/matches/?of=me", "/"):
        assert f"/play/{companion.pk}/" not in client.get(page).content.decode()
    assert consumers.viewer_for(player, companion.pk) is None
    assert plays.of_bots(match.task, player).count() == 0
    companion.visibility = Match.Visibility.PUBLIC
    companion.save()
    assert client.get(f"/play/{companion.pk}/").status_code == 404
    assert client_of(admin).get(f"/play/{companion.pk}/").status_code == 200
    solve(match, player)
    assert client.get(f"/play/{companion.pk}/replay/").status_code == 200


def test_it_is_hidden_from_an_administrator_who_plays_as_well(client_of, admin):
    scripted = tables.Place(scripted="scripted")
    match = alone.play(user=admin, start=tables.Start(socks()), player=scripted, consent=True)
    companion = match.companions.get()
    assert client_of(admin).get(f"/play/{companion.pk}/").status_code == 404
    assert client_of(admin).post(f"/play/{companion.pk}/close/").status_code == 404


def test_a_play_that_is_given_up_or_closed_has_ended(client_of, player, both):
    match, companion = both
    client_of(player).post(f"/play/{match.pk}/close/")
    assert client_of(player).get(f"/play/{companion.pk}/").status_code == 200


async def test_a_tab_that_watches_a_task_is_closed_once_its_person_begins_it(monkeypatch, client_of, player):
    from webapp.asgi import application

    monkeypatch.setattr(consumers.TableConsumer, "REFRESH_EVERY", 0.2)
    sync = database_sync_to_async
    scripted = tables.Place(scripted="scripted")
    watched = await sync(alone.watch)(user=player, start=tables.Start(socks()), player=scripted)
    tab = await (await Tab(application, await sync(client_of)(player), watched.pk).load()).open()
    await tab.hear()
    assert tab.closed is None
    await sync(alone.play)(user=player, start=tables.Start(socks()), player=None, consent=True)
    await tab.until(lambda: tab.closed is not None)
    assert tab.closed == consumers.POLICY_VIOLATION
    frames = len(tab.frames)
    await sync(let_work)(watched)
    await asyncio.sleep(0.5)
    assert len(tab.frames) == frames
    await tab.leave()


# --- no clock ---


def test_a_person_alone_has_no_clock_and_no_stand_in(client_of, player):
    match = alone.play(user=player, start=tables.Start(socks()), player=None, consent=True)
    assert match.due.get().deadline is None
    assert 'id="deadline"' not in client_of(player).get(f"/play/{match.pk}/").content.decode()
    match.seats.update(seen_at=services.database_now() - timedelta(days=2))
    DueSeat.objects.update(created_at=services.database_now() - timedelta(days=2))
    assert clock.stand_in() == clock.time_out() == clock.close_left() == clock.start_clocks() == 0
    move(match, player, *BEST[0])
    match.refresh_from_db()
    assert match.rated


def test_a_play_that_nobody_comes_back_to_is_closed_after_a_week(player, ben):
    left, open_one = (
        alone.play(user=person, start=tables.Start(socks()), player=None, consent=True) for person in (player, ben)
    )
    left.due.update(created_at=services.database_now() - timedelta(days=8))
    assert clock.close_left() == 1
    left.refresh_from_db()
    assert (left.state, left.aborted_why) == (Match.State.ABORTED, "nobody moved for 7 days")
    open_one.refresh_from_db()
    assert open_one.state == Match.State.RUNNING


# --- side by side ---


def side(html, name):
    return re.search(rf'<section class="side side-{name}".*?</section>', html, re.DOTALL)[0]


def test_both_plays_stand_side_by_side(client_of, player, both):
    match, companion = both
    solve(match, player)
    assert match.returns == {"0": 1.0}
    page = client_of(player).get(f"/play/{match.pk}/result/").content.decode()
    left, right = side(page, "left"), side(page, "right")
    assert "You" in left
    assert "<strong>1</strong> reward" in left
    assert "4 steps, 1 search" in left
    assert [
        text
        for text in ("Searches for “hiking socks yellow P0395”", "Opens Mirabeau", "Chooses yellow", "Buys it")
        if text not in left
    ] == []
    assert "a scripted player" in right
    assert left.count("<li>") == 4
    assert right.count("<li>") == companion.moves.count()
    assert [step.deed for step in plays.read(companion).steps if escape(capfirst(step.deed)) not in right] == []
    assert "You bought Mirabeau hiking socks" in left
    assert f"{companion.scenario['seats'][0]} bought Mirabeau hiking socks" in right


def test_a_play_that_was_stored_before_there_were_lines_still_says_what_was_done(client_of, player):
    match = alone.play(user=player, start=tables.Start(socks()), player=None, consent=True)
    solve(match, player)
    for row in match.rows.all():
        row.message = {name: value for name, value in row.message.items() if name != "lines"}
        row.save()
    steps = plays.read(match).steps
    assert [step.deed for step in steps][:2] == ["search hiking socks yellow P0395", "click P0395"]
    page = side(client_of(player).get(f"/play/{match.pk}/result/").content.decode(), "left")
    assert "Click buy now" in page
    assert "&lt;" not in page


def test_the_advice_of_a_coach_stands_at_its_step(client_of, player):
    match = alone.play(user=player, start=tables.Start(socks()), player=None, consent=True)
    asked = {"match": match, "seat": 0, "coach": "an adviser", "asked_at": services.database_now()}
    Advice.objects.create(step=1, after=3, text="Open it: <click>P0395</click>", **asked)
    Advice.objects.create(step=2, after=4, why="it did not answer", **asked)
    solve(match, player)
    steps = plays.read(match).steps
    assert [step.advice.text if step.advice else "" for step in steps] == ["", "Open it: <click>P0395</click>", "", ""]
    page = client_of(player).get(f"/play/{match.pk}/result/").content.decode()
    assert side(page, "left").count("an adviser advised: Open it: click: P0395<") == 1


def test_a_model_that_still_plays_is_waited_for(client_of, player):
    scripted = tables.Place(scripted="scripted")
    match = alone.play(user=player, start=tables.Start(socks()), player=scripted, consent=True)
    solve(match, player)
    client = client_of(player)
    address = f"/play/{match.pk}/result/"
    page = client.get(address).content.decode()
    assert "Still playing" in side(page, "right")
    assert 'hx-trigger="every 2s"' in page
    assert client.get(address, HTTP_HX_REQUEST="true").status_code == 200
    let_work(match.companions.get())
    answer = client.get(address, HTTP_HX_REQUEST="true")
    assert answer.status_code == 286
    assert "Still playing" not in answer.content.decode()


def test_a_player_can_be_let_try_afterwards(client_of, player):
    match = alone.play(user=player, start=tables.Start(socks()), player=None, consent=True)
    with pytest.raises(BadInput, match="end your own play first"):
        alone.accompany(match=match, user=player, player=tables.Place(scripted="random"))
    solve(match, player)
    client = client_of(player)
    assert "No model has played this task yet" in client.get(f"/play/{match.pk}/result/").content.decode()
    client.post(f"/play/{match.pk}/accompany/", {"player": "scripted:random"})
    companion = match.companions.get()
    assert companion.task == match.task
    assert client.post(f"/play/{match.pk}/accompany/", {"player": "checkpoint:1"}).status_code == 404


def test_a_model_whose_speaker_is_gone_is_refused_with_the_reason(client_of, player, researcher):
    run = make_run(researcher, config={"speaker": {"source": "a deleted checkpoint"}})
    checkpoint = Checkpoint.objects.create(
        name="a strategist", kind="full", base="x", path="x", run=run, open_to_players=True
    )
    match = alone.play(user=player, start=tables.Start(socks()), player=None, consent=True)
    solve(match, player)
    fields = {"player": f"checkpoint:{checkpoint.pk}"}
    page = client_of(player).post(f"/play/{match.pk}/accompany/", fields, follow=True).content.decode()
    assert "the speaker of its run is not open to you" in page
    assert not match.companions.exists()


def test_who_has_yet_to_judge_a_play_does_not_read_who_played(client_of, player, researcher, annotator, both):
    match, companion = both
    solve(match, player)
    for play, who in ((match, player.shown_name), (companion, "a scripted player")):
        queue = people_queue(researcher, play, [annotator])
        address = f"/play/{play.pk}/result/"
        assert who not in client_of(annotator).get(address).content.decode()
        for target in queue.targets.all():
            annotate(target=target, by=annotator, values=FIVES)
        assert who in client_of(annotator).get(address).content.decode()


def test_attempts_are_listed_and_can_be_repeated(client_of, player, both):
    match, _ = both
    client = client_of(player)
    assert client.post(f"/play/{match.pk}/again/")["Location"] == f"/play/{match.pk}/"  # the one that is not over
    move(match, player, "action", "forfeit")
    answer = client.post(f"/play/{match.pk}/again/")
    second = Match.objects.order_by("-pk").first()
    assert answer["Location"] == f"/play/{second.pk}/"
    assert (second.task, second.state) == (match.task, Match.State.OPEN)
    client.post(f"/play/{second.pk}/consent/", {"consent": "yes"})
    solve(second, player)
    rewards = [attempt.reward for attempt in map(plays.read, plays.attempts(match.task, player))]
    assert rewards == [0.0, 1.0]
    page = client.get(f"/play/{second.pk}/result/").content.decode()
    assert f"/play/{match.pk}/result/" in page
    assert "gives up" in side(client.get(f"/play/{match.pk}/result/").content.decode(), "left")


def test_means_are_over_all_finished_plays_of_the_task(player, ben, admin, monkeypatch):
    """Rewards 1 and 0 in 4 and 1 steps: a mean of 0.5 in 2.5 steps."""
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        remote = RemoteModel.objects.create(
            name="stub", address=stub.url, model="stub", added_by=admin, open_to_players=True
        )
        model = Deployment.objects.create(remote=remote, state=Deployment.State.READY)
        stub.script(
            "<search>hiking socks yellow P0395</search>",
            "<click>P0395</click>",
            "<click>yellow</click>",
            "<click>buy now</click>",
        )
        first = alone.watch(user=ben, start=tables.Start(socks()), player=tables.Place(deployment=model))
        let_work(first)
    assert first.returns == {"0": 1.0}
    second = alone.watch(user=player, start=tables.Start(socks()), player=tables.Place(deployment=model))
    services.submit(match_id=second.pk, seat=0, step=0, move=human_moves.FORFEIT)
    other_task = alone.watch(
        user=player, start=tables.Start(socks().with_seed(77)), player=tables.Place(deployment=model)
    )
    services.submit(match_id=other_task.pk, seat=0, step=0, move=human_moves.FORFEIT)
    assert plays.means(first.task, player) == [plays.Mean("stub", 2, 0.5, 2.5)]
    RemoteModel.objects.update(open_to_players=False)
    assert plays.means(first.task, player) == []
    assert len(plays.means(first.task, admin)) == 1


def test_a_mean_names_no_speaker_that_is_not_open_to_the_reader(player, admin, monkeypatch):
    with Stub("buy the socks") as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        strategist, speaker = (
            Deployment.objects.create(
                state=Deployment.State.READY,
                remote=RemoteModel.objects.create(name=name, address=stub.url, model=name, added_by=admin),
            )
            for name in ("strategist", "speaker")
        )
        place = speakers.place_of(strategist, f"deployment:{speaker.pk}", admin)
        match = alone.watch(user=admin, start=tables.Start(socks()), player=place)
        let_work(match)
    RemoteModel.objects.filter(name="strategist").update(open_to_players=True)
    assert plays.means(match.task, player) == []
    RemoteModel.objects.update(open_to_players=True)
    assert [mean.who for mean in plays.means(match.task, player)] == ["strategist, advising speaker"]


def test_a_model_can_be_watched_by_itself(client_of, player):
    fields = {"game": "shop", "task": SOCKS, "player": "scripted:scripted", "watch": "yes"}
    client = client_of(player)
    answer = client.post("/play/alone/", fields)
    match = Match.objects.get()
    assert answer["Location"] == f"/play/{match.pk}/"
    assert "You are watching" in client.get(answer["Location"]).content.decode()
    assert match.due.get().not_before is not None  # slow enough to read along
    DueSeat.objects.update(not_before=None)
    let_work(match)
    page = client.get(f"/play/{match.pk}/result/").content.decode()
    assert "Try it yourself" in page
    assert "a scripted player" in side(page, "right")


def test_a_play_beside_is_not_slowed_down(player):
    scripted = tables.Place(scripted="scripted")
    match = alone.play(user=player, start=tables.Start(socks()), player=scripted, consent=True)
    assert match.companions.get().due.get().not_before is None


def test_plays_alone_are_on_no_ladder_and_need_no_rating(client_of, player, both):
    match, _ = both
    solve(match, player)
    assert Match.objects.exportable().filter(pk=match.pk).exists()
    assert log.numbers("shop") == []
    assert not Match.objects.filter(pk=match.pk).unrevealed_to(player).exists()
    assert client_of(player).get(f"/judgments/rate/{match.pk}/").status_code == 404


def test_a_game_whose_catalogue_is_gone_says_so_and_can_be_closed(client_of, player, tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    folder = shop_files.write(tmp_path / "catalogues" / "small")
    settings = {"catalogue": "small", "sha256": webshop.read(folder).sha256}
    start = tables.Start(Scenario(id="x", game="shop", seats=("Ada",), seed=3, settings=settings))
    match = alone.play(user=player, start=start, player=None, consent=True)
    address = f"/play/{match.pk}/"
    folder.rename(tmp_path / "elsewhere")
    client = client_of(player)
    for answer in (client.get(address), client.post(f"{address}move/", {"action": "forfeit", "turn": "0"})):
        assert answer.status_code == 409
        assert "there is no catalogue &#x27;small&#x27;" in answer.content.decode()
    (tmp_path / "elsewhere").rename(folder)
    assert client.get(address).status_code == 200
    folder.rename(tmp_path / "elsewhere")
    client.post(f"{address}close/")
    match.refresh_from_db()
    assert match.state == Match.State.ABORTED
    assert client.get(f"{address}result/").status_code == 200


def test_a_model_that_cannot_be_seated_leaves_nothing_begun(player, settings):
    settings.QUOTAS = {**settings.QUOTAS, "open_tables": {"player": 1}}
    with pytest.raises(BadInput, match="limit of 1"):
        alone.play(user=player, start=tables.Start(socks()), player=tables.Place(scripted="random"), consent=True)
    assert not Match.objects.exists()
