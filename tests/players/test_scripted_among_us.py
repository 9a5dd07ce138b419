"""The script of Among Us: its speech and votes follow from its seat's observation."""

from tests.games.cases.among_us import CREW, among_us
from tests.games.play import reply
from tests.players.test_scripted import game_of
from training import samples
from training.games import make
from training.games.among_us.script.memory import remember
from training.records import ALL, SPECTATOR, Message, Move
from training.text.parsing import parse

EAST = [[[1, 0]]] * 5


def scripted(game, seat, seed=1):
    """The move of a fresh script."""
    seen = game.observe(seat)
    return parse(reply(game.scenario, seat, seen, seed, "scripted"), seen)[0]


def step(game, **replies):
    """One joint step; seats that are not named play their script."""
    moves = {seat: scripted(game, seat) for seat in game.to_act() if game.names[seat] not in replies}
    moves |= {game.names.index(n): parse(text, game.observe(game.names.index(n)))[0] for n, text in replies.items()}
    game.step(moves)


def speak(game, **lines):
    """The discussion of a meeting: who is named says its line, the others play their script."""
    while "speech" in game.show(ALL).phase:
        (seat,) = game.to_act()
        line = lines.get(game.names[seat])
        game.step({seat: Move(action="talk", text=line) if line else scripted(game, seat)})


def speeches_of(game, name):
    return [m.text for m in game.observe(SPECTATOR).messages if m.author == game.names.index(name)]


def votes(game):
    return {name: scripted(game, game.names.index(name)).args["player"] for name in CREW if can_vote(game, name)}


def can_vote(game, name):
    return game.names.index(name) in game.to_act()


def report(*, witness):
    """Ben kills Cleo in the east in round 3; Eva stands by, or comes when it has happened."""
    game = make(among_us(CREW, 1, EAST, tasks=1, rounds=40))
    if witness:
        step(game, Ada="<wait/>", Ben="<go>east</go>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<go>east</go>")
        step(game, Ada="<wait/>", Dan="<wait/>")
        step(game, Ben="<kill>Cleo</kill>", Cleo="<wait/>", Eva="<wait/>")
        step(game, Ben="<go>west</go>")  # Eva's script reports
    else:
        step(game, Ada="<wait/>", Ben="<go>east</go>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<wait/>")
        step(game, Ada="<wait/>", Dan="<wait/>", Eva="<go>east</go>")  # there in round 4
        step(game, Ada="<wait/>", Dan="<wait/>")
        step(game, Ben="<kill>Cleo</kill>", Cleo="<wait/>")
        step(game, Ben="<wait/>")  # Eva's script reports, with Ben beside the body
    assert game.show(ALL).phase == "Meeting 1: speech 1 of 8"
    return game


def test_a_witness_reports_the_kill_and_all_believe_it():
    game = report(witness=True)
    speak(game)
    assert all("I saw Ben kill Cleo in room (1,0) in round 3" in line for line in speeches_of(game, "Eva"))
    *crew, imposter = (votes(game)[name] for name in ("Ada", "Dan", "Eva", "Ben"))
    assert crew == ["Ben"] * 3
    assert imposter not in ("Ben", "Eva")


def test_a_player_beside_an_unreported_body_is_suspected():
    game = report(witness=False)
    speak(game, Ben="I was alone.")
    assert speeches_of(game, "Eva")[0].endswith("in round 4 I was in room (1,0) with Ben.")
    assert {votes(game)[name] for name in ("Ada", "Dan", "Eva")} == {"Ben"}


def test_without_evidence_nobody_is_voted_for():
    game = report(witness=True)
    speak(game, Eva="Hello everybody.", Ben="Hello everybody.")
    assert {votes(game)[name] for name in ("Ada", "Dan")} == {"skip"}
    assert votes(game)["Eva"] == "Ben"  # she knows


def test_a_contradiction_with_what_one_saw_is_a_lie():
    """Ada was in the first room in round 1 with Dan alone: who claims to have been there then lies."""
    game = report(witness=True)
    speak(game, Eva="Hello.", Ben="Well, in round 1 I was in room (0,0) alone.")
    assert {votes(game)[name] for name in ("Ada", "Dan")} == {"Ben"}
    game = report(witness=True)
    speak(game, Eva="Hello.", Ben="Well, in round 3 I was in room (1,0) alone.")  # nobody else can know better
    assert {votes(game)[name] for name in ("Ada", "Dan")} == {"skip"}


def test_a_claim_to_have_seen_a_reporter_kill_is_a_lie():
    game = report(witness=True)
    speak(game, Eva="Hello.", Ben="I saw Eva kill Cleo in room (1,0).")
    assert {votes(game)[name] for name in ("Ada", "Dan")} == {"Ben"}


def test_one_suspicion_without_a_reason_is_not_enough():
    game = report(witness=True)
    speak(game, Eva="Hello.", Ben="I suspect Dan, who was near there.")
    assert votes(game)["Ada"] == "skip"


def test_the_imposter_kills_only_where_no_other_is_awake():
    for company, kills in (("<wait/>", False), ("<task/>", True)):
        game = make(among_us(CREW, 1, EAST, tasks=1, rounds=40))
        step(game, Ada="<wait/>", Ben="<go>east</go>", Cleo="<go>east</go>", Dan="<wait/>", Eva="<go>east</go>")
        step(game, Ada="<wait/>", Dan="<wait/>")
        step(game, Ben="<wait/>", Cleo="<wait/>", Eva=company)
        while 1 not in game.to_act():
            game.step({seat: game.default(seat) for seat in game.to_act()})
        assert (scripted(game, 1).action == "kill") == kills


def test_the_imposter_does_not_say_where_the_body_lies():
    game = report(witness=False)
    speak(game)
    assert not any("I was in room (1,0)" in line for line in speeches_of(game, "Ben"))


def test_a_crewmate_works_on_shortest_ways():
    """Tasks at (0,0), (2,0) and (2,1): work 3, two rooms 6, work 3, one room 3, work 3 = round 18."""
    rooms = [[[0, 0], [2, 0], [2, 1]]] * 3
    game = make(among_us(CREW[:3], 2, rooms, width=3, height=2, rounds=40, cooldown=100))
    while game.to_act():
        step(game, **({"Cleo": "<wait/>"} if 2 in game.to_act() else {}))
    assert (game.metrics()["end_tasks"], game.metrics()["rounds"]) == (1, 18)


def test_memory_reads_what_the_rules_and_lines_say():
    game = report(witness=True)
    memory = remember(game.observe(4), 4, CREW)
    assert (memory.name, memory.imposter, memory.bodies) == ("Eva", False, {"Cleo": (1, 0)})
    assert memory.killers == {"Ben": "Cleo"}
    assert memory.way == [(0, (0, 0)), (3, (1, 0)), (4, (1, 0))]
    assert memory.reporters == ["Eva"]
    assert sorted(memory.living) == ["Ada", "Ben", "Dan", "Eva"]
    assert remember(game.observe(1), 1, CREW).imposter


def test_both_sides_win_some_games_and_votes_are_better_than_chance():
    """200 games each gave the crew 64 % (2 by 2) and 77 % (1 by 3). Random votes would be wrong twice as often."""
    ejected = wrong = 0.0
    for shape in ("2x2", "1x3"):
        scenario = next(s for s in samples.load("among_us") if s.id == f"ship-{shape}-evaluation")
        names = ("scripted",) * len(scenario.seats)
        games = [game_of(scenario.with_seed(seed + 1), names, seed).metrics() for seed in range(40)]
        assert 0.4 < sum(metrics["crew_won"] for metrics in games) / len(games) < 0.95
        ejected += sum(metrics["end_ejected"] for metrics in games)
        wrong += sum(metrics["ejected_wrong"] for metrics in games)
    assert ejected > 1.5 * wrong > 0


def test_a_claim_with_a_number_that_nobody_can_read_is_only_talk():
    memory = remember(make(among_us(CREW)).observe(0), 0, CREW)
    memory.claims = [(CREW[1], f"in round {'9' * 4400} I was in room (1,{'1' * 4400})")]
    assert set(memory.suspicion().values()) == {0.0}


def test_a_name_is_no_part_of_a_longer_word():
    """Al is dead; `All meet` and Alba's name hold his letters, and `All` may be a player's name."""
    names = ("Al", "Alba", "All", "Eva")
    seen = make(among_us(names, 1, EAST[:4], tasks=1)).observe(3)
    meeting = Message(author=None, text="All meet: Alba and Eva.")
    memory = remember(seen.model_copy(update={"messages": (*seen.messages, meeting)}), 3, names)
    assert memory.living == ["Alba", "Eva"]


def test_a_name_may_contain_a_full_stop():
    names = ("Dr. Who", "Mr. B. Bell", "Eva", "Finn")
    game = make(among_us(names, 1, EAST[:4], tasks=1, rounds=40))
    memory = remember(game.observe(2), 2, names)
    assert (memory.around, memory.tasks) == (["Dr. Who", "Mr. B. Bell", "Finn"], [(1, 0)])
    assert remember(game.observe(1), 1, names).around == ["Dr. Who", "Eva", "Finn"]
    memory.bodies, memory.reporters = {"Finn": (1, 0)}, ["Dr. Who"]
    memory.claims = [("Dr. Who", "in round 4 I was in room (1,0) with Mr. B. Bell. I do not know about Finn.")]
    assert memory.suspicion() == {"Dr. Who": 0.0, "Mr. B. Bell": 3.0, "Finn": 0.0}  # 3: beside a body, no report
