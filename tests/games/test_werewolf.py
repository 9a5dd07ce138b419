"""Werewolf: hand-played nights and days, and random play against a second, plain statement of the rules."""

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.games.cases.werewolf import ARMED, NINE, TOWN, WATCHED, dealt, spoke, werewolf
from tests.games.play import steps
from training.errors import BadInput
from training.games import make
from training.games.base import FORFEIT
from training.games.werewolf.claims import claimed
from training.games.werewolf.script.notes import Notes
from training.records import ALL, SPECTATOR
from training.text.parsing import parse

seeds = st.integers(0, 2**31)
some = settings(max_examples=25, deadline=None)
SIX = ("werewolf", "werewolf", "seer", "witch", "villager", "villager")
QUIET = {"wolf_talk": 0, "last_words": "nobody"}


def go(game, **replies):
    """One joint step: by name, what each seat replies; who is not named stays silent."""
    moves = {}
    for seat in game.to_act():
        reply = replies.pop(game.names[seat], None)
        moves[seat] = parse(reply, game.observe(seat))[0] if reply else game.default(seat)
    assert not replies, f"not to act: {sorted(replies)}"
    game.step(moves)


def silent_until(game, phase):
    """Let everybody be silent until a phase begins."""
    while phase not in game.show(ALL).phase:
        go(game)


def places(game, viewer):
    """The seats of the circle, as a viewer sees them."""
    (circle,) = game.show(viewer).zones
    return circle.places


def dead(game):
    return {game.names[place.seat] for place in places(game, ALL) if place.out}


def heard(game, name):
    return [line.text for line in game.observe(TOWN.index(name)).messages]


def offered(game, name):
    return {action.name for action in game.observe(TOWN.index(name)).actions}


def targets(game, name):
    (action,) = game.observe(TOWN.index(name)).actions
    return set(action.args[0].choices)


def vote(game, *votes):
    """The open ballot: the vote of each acting seat."""
    go(game, **{game.names[s]: f"<vote>{to}</vote>" for s, to in zip(sorted(game.to_act()), votes, strict=True)})


# --- the night -------------------------------------------------------------------------------------------------------

NIGHT = ("werewolf", "werewolf", "guard", "doctor", "witch", "hunter", "villager", "villager", "villager")
PREY = [*TOWN[2:9], "nobody"]
POTIONS = [("save", ""), ("pass", ""), *(("poison", name) for name in TOWN[:9] if name != "Eve")]


def who_dies(first, second, tie, shielded, potion):
    """The night's rules once more: {name: whether by poison}. `first` and `second` are what the two wolves want."""
    wanted = [name for name in (first, second) if name != "nobody"]
    victim = wanted[0] if wanted and (len(set(wanted)) == 1 or tie == "first") else None
    fate = {}
    if victim and victim not in shielded and potion[0] != "save":
        fate[victim] = False
    if potion[0] == "poison":
        fate[potion[1]] = True
    return victim, fate


@settings(max_examples=150, deadline=None)
@given(
    first=st.sampled_from(PREY),
    second=st.sampled_from(PREY),
    tie=st.sampled_from(["first", "nobody"]),
    shields=st.tuples(st.sampled_from(TOWN[:9]), st.sampled_from(TOWN[:9])),
    potion=st.sampled_from(POTIONS),
)
def test_a_night_resolves_as_the_rules_say(first, second, tie, shields, potion):
    game = make(dealt(*NIGHT, wolf_tie=tie, **QUIET))
    go(
        game,
        Ada=f"<kill>{first}</kill>",
        Ben=f"<kill>{second}</kill>",
        Cleo=f"<guard>{shields[0]}</guard>",
        Dan=f"<protect>{shields[1]}</protect>",
    )
    victim, fate = who_dies(first, second, tie, shields, potion)
    attack = f"The werewolves attack {'Eve (you)' if victim == 'Eve' else victim or 'nobody'} tonight."
    assert attack in heard(game, "Eve")
    assert ("save" in offered(game, "Eve")) == (victim is not None)
    if potion[0] == "save" and victim is None:
        return
    go(game, Eve=f"<poison>{potion[1]}</poison>" if potion[0] == "poison" else f"<{potion[0]}/>")
    assert dead(game) == set(fate)
    assert (game.to_act() == {5} and offered(game, "Finn") == {"shoot"}) == (fate.get("Finn") is False)
    morning = next(line for line in heard(game, "Ida") if line.startswith("Morning comes."))
    assert all((name in morning) == (name in fate) for name in TOWN[:9])


def test_a_random_tie_of_the_wolves_falls_on_one_of_the_two():
    victims = Counter()
    for seed in range(40):
        game = make(dealt(*SIX, wolf_tie="random", **QUIET).with_seed(seed))
        go(game, Ada="<kill>Eve</kill>", Ben="<kill>Finn</kill>")
        assert any("Its votes tie, and chance decides: it attacks" in line for line in heard(game, "Ada"))
        go(game)
        victims.update(dead(game))
    assert set(victims) == {"Eve", "Finn"}
    assert min(victims.values()) >= 8  # fails for one fair coin in 20,000


def test_a_guard_never_guards_the_same_player_twice_running():
    game = make(dealt("werewolf", "guard", "villager", "villager", "villager", **QUIET))
    assert {"Cleo", "Ben", "nobody"} <= targets(game, "Ben")
    go(game, Ben="<guard>Cleo</guard>")
    silent_until(game, "Night 2")
    assert "Cleo" not in targets(game, "Ben")
    go(game, Ben="<guard>Ben</guard>")
    silent_until(game, "Night 3")
    assert "Cleo" in targets(game, "Ben")
    assert "Ben" not in targets(game, "Ben")


def test_a_doctor_may_protect_the_same_player_again():
    game = make(dealt("werewolf", "doctor", "villager", "villager", "villager", **QUIET))
    for night in (1, 2, 3):
        silent_until(game, f"Night {night}")
        go(game, Ada="<kill>Cleo</kill>", Ben="<protect>Cleo</protect>")
        assert not dead(game)


def test_each_potion_works_once_and_without_the_antidote_the_witch_learns_nothing():
    game = make(dealt("werewolf", "witch", *["villager"] * 5, **QUIET))
    go(game, Ada="<kill>Cleo</kill>")
    go(game, Ben="<save/>")
    assert not dead(game)
    silent_until(game, "Night 2")
    go(game, Ada="<kill>Dan</kill>")
    assert offered(game, "Ben") == {"poison", "pass"}
    assert sum("The werewolves attack" in line for line in heard(game, "Ben")) == 1
    go(game, Ben="<poison>Eve</poison>")
    assert dead(game) == {"Dan", "Eve"}
    silent_until(game, "Night 3")
    go(game)
    assert "Night 3" not in game.show(ALL).phase, "a witch without potions is not asked"


def test_who_sees_everything_reads_of_silence_in_seat_order():
    """The order of a set of seats would be 8, 1."""
    pack = (1, 8)
    game = make(dealt(*("werewolf" if seat in pack else "villager" for seat in range(9))))
    assert game.to_act() == set(pack)
    go(game)
    texts = [line.text for line in game.observe(ALL).messages]
    silent = [texts.index(f"{game.names[seat]} gives no answer.") for seat in pack]
    assert silent == sorted(silent)


@pytest.mark.parametrize("victim", ["you", "Eve"])
def test_a_witch_knows_whether_she_or_a_player_called_you_is_attacked(victim):
    """Eve is the witch."""
    names = ("Ada", "you", "Cleo", "Eve", "Finn", "Gus")
    start = dealt("werewolf", "villager", "seer", "witch", "villager", "villager", **QUIET)
    game = make(start.model_copy(update={"seats": names}))
    go(game, Ada=f"<kill>{victim}</kill>")
    assert Notes(game.observe(3), 3, names).victim == names.index(victim)


@pytest.mark.parametrize("able", [True, False])
def test_whether_a_witch_may_save_herself_is_a_setting(able):
    game = make(dealt(*SIX, self_save=able, **QUIET))
    go(game, Ada="<kill>Dan</kill>")
    assert offered(game, "Dan") == {"poison", "pass"} | ({"save"} if able else set())


def test_in_a_peaceful_first_night_only_wolves_talk_and_seers_look():
    game = make(dealt(*SIX, "guard", first_night_kill=False))
    assert game.to_act() == {0, 1}
    go(game, Ada="Tomorrow, then.")
    assert game.to_act() == {2}
    go(game, Cleo="<inspect>Ada</inspect>")
    assert "You look at Ada: Ada is a werewolf." in heard(game, "Cleo")
    assert game.show(ALL).phase == "Day 1: discussion"
    silent_until(game, "Night 2")
    go(game)
    assert game.to_act() == {0, 1, 2, 6}


def test_wolves_hear_each_other_and_nobody_else_hears_them():
    game = make(dealt(*SIX))
    go(game, Ada="Finn, I say.", Ben="Rather Eve.")
    go(game, Ada="<kill>Finn</kill>", Ben="<kill>Eve</kill>")
    for name in TOWN[:6]:
        assert ("Rather Eve." in heard(game, name)) == (name in ("Ada", "Ben"))
        assert any("The pack votes" in line for line in heard(game, name)) == (name in ("Ada", "Ben"))


def test_giving_up_at_night_looks_to_others_like_choosing_nobody():
    seen = []
    for give_up in (True, False):
        game = make(dealt(*SIX, **QUIET))
        moves = {seat: game.default(seat) for seat in game.to_act()}
        moves[2] = FORFEIT if give_up else parse("<inspect>nobody</inspect>", game.observe(2))[0]
        game.step(moves)
        silent_until(game, "Night 2")
        seen.append([game.observe(viewer) for viewer in (0, 1, 3, 4, 5, SPECTATOR)])
    assert seen[0] == seen[1]


# --- the day ---------------------------------------------------------------------------------------------------------


def test_ballots_are_named_and_hidden_until_all_are_in():
    game = make(dealt(*SIX))
    silent_until(game, "vote")
    assert game.acting(4) == frozenset(range(6))
    vote(game, "Ben", "Cleo", "Ben", "nobody", "Ben", "Eve")
    line = "The votes: Ada for Ben; Ben for Cleo; Cleo for Ben; Dan for nobody; Eve for Ben; Finn for Eve."
    assert line in heard(game, "Eve")
    assert dead(game) == {"Ben"}
    assert game.to_act() == {1}
    go(game, Ben="Farewell.")
    assert "Farewell." in heard(game, "Finn")
    assert game.show(4).phase == "Night 2"


@pytest.mark.parametrize(
    "tie, out", [("nobody", [set()]), ("random", [{"Ada"}, {"Eve"}])], ids=["nobody leaves", "one of them leaves"]
)
def test_ties(tie, out):
    results = []
    for seed in range(20):
        game = make(dealt(*SIX, tie=tie, **QUIET).with_seed(seed))
        silent_until(game, "vote")
        vote(game, "Eve", "Eve", "Ada", "Ada", "Finn", "nobody")
        results.append(dead(game))
        announcements = [line for line in heard(game, "Finn") if "Tied: Ada and Eve. Chance decides." in line]
        assert len(announcements) == (tie == "random")
    assert [names for names in out if names in results] == out
    assert all(names in out for names in results)


def test_votes_for_nobody_do_not_count_as_the_rules_say():
    game = make(dealt(*SIX, **QUIET))
    assert "Votes for nobody do not count." in heard(game, "Ada")[0]
    silent_until(game, "vote")
    vote(game, "Eve", *["nobody"] * 5)
    assert dead(game) == {"Eve"}


def test_in_a_run_off_the_tied_speak_and_the_others_vote():
    game = make(dealt(*SIX, tie="runoff", **QUIET))
    silent_until(game, "vote")
    vote(game, "Eve", "Eve", "Ada", "Ada", "Finn", "nobody")
    assert game.show(3).phase == "Day 1: run-off"
    go(game, Ada="It is not me.")
    go(game, Eve="Nor me.")
    assert game.to_act() == {1, 2, 3, 5}
    assert targets(game, "Cleo") == {"Ada", "Eve", "nobody"}
    vote(game, "Eve", "Ada", "Ada", "Ada")
    assert dead(game) == {"Ada"}


def test_tied_again_nobody_leaves_and_all_vote_where_all_are_tied():
    game = make(dealt("werewolf", "villager", "villager", "villager", tie="runoff", **QUIET))
    silent_until(game, "vote")
    vote(game, "Ben", "Cleo", "Dan", "Ada")
    for _ in range(4):
        go(game)
    assert game.to_act() == {0, 1, 2, 3}
    vote(game, "Ben", "Ada", "Ada", "Ben")
    assert not dead(game)


def test_everybody_speaks_once_a_round_in_seat_order_from_a_drawn_start():
    starts = set()
    for seed in range(30):
        game = make(dealt(*SIX, rounds=2, **QUIET).with_seed(seed))
        silent_until(game, "discussion")
        order = []
        while "discussion" in game.show(ALL).phase:
            order += game.to_act()
            go(game)
        starts.add(order[0])
        assert order == [(order[0] + step) % 6 for step in range(6)] * 2
    assert starts == set(range(6))


def test_a_stated_order_is_kept_and_the_dead_are_passed_over():
    game = make(dealt(*SIX, fixed=spoke([4, 2, 2, 0]), **QUIET))
    go(game, Ada="<kill>Eve</kill>", Ben="<kill>Eve</kill>")
    go(game)
    order = []
    while "discussion" in game.show(ALL).phase:
        order += game.to_act()
        go(game, **{game.names[next(iter(game.to_act()))]: "So it is."})
    assert order == [2, 2, 0]


def test_the_highest_bid_gets_the_floor_until_nobody_bids():
    game = make(dealt(*SIX, order="bid", **QUIET))
    silent_until(game, "discussion")
    go(game, Ada="<bid>1</bid>", Eve="<bid>4</bid>", Finn="<bid>3</bid>")
    assert game.to_act() == {4}
    go(game, Eve="Listen.")
    go(game, Ada="<bid>0</bid>")
    assert game.show(0).phase == "Day 1: vote"
    assert "Nobody wants the floor: the discussion is over." in heard(game, "Ben")


def test_equal_bids_are_decided_by_chance():
    first = Counter()
    for seed in range(60):
        game = make(dealt(*SIX, order="bid", **QUIET).with_seed(seed))
        silent_until(game, "discussion")
        go(game, Ada="<bid>2</bid>", Ben="<bid>2</bid>", Cleo="<bid>1</bid>")
        first.update(game.to_act())
    assert set(first) == {0, 1}


def test_hunters_shoot_each_other_in_turn_and_the_dead_speak_last():
    game = make(dealt("werewolf", "hunter", "hunter", *["villager"] * 4, last_words="all"))
    go(game, Ada="<kill>Ben</kill>")
    assert game.acting(3) == frozenset()
    assert game.show(3).phase == "Day 1: dawn"
    go(game, Ben="<shoot>Cleo</shoot>")
    go(game, Cleo="<shoot>Dan</shoot>")
    assert dead(game) == {"Ben", "Cleo", "Dan"}
    assert game.show(3).phase == "Day 1: last words"
    assert game.to_act() == {1}
    go(game, Ben="Think of me.")
    assert game.show(3).phase == "Day 1: discussion"


def test_what_the_dead_see_is_a_setting():
    for dead_see in ("public", "all"):
        game = make(dealt(*SIX, dead_see=dead_see))
        silent_until(game, "vote")
        vote(game, "Eve", "Eve", "Eve", "Eve", "Ada", "Eve")
        go(game, Eve="Farewell.")
        go(game, Ada="Now Finn.", Ben="Yes.")
        go(game, Cleo="<inspect>Ada</inspect>")
        sees_all = dead_see == "all"
        assert ("Now Finn." in heard(game, "Eve")) == sees_all
        assert ("Cleo looks at Ada: Ada is a werewolf." in heard(game, "Eve")) == sees_all
        assert (game.acting(4) == game.to_act()) == sees_all
        assert [place.role for place in places(game, 4)].count("werewolf") == (2 if sees_all else 0)


@some
@given(seed=seeds, delay=st.integers(1, 6))
def test_spectators_read_the_public_log_some_phases_later(seed, delay):
    live = make(werewolf(reveal=False, spectator_delay=0).with_seed(seed))
    late = make(werewolf(reveal=False, spectator_delay=delay).with_seed(seed))
    phase, begun = "", 0  # the current phase, and how much of the log there was when it was first seen
    for moves in steps(live, seed):
        shown, all_of_it = late.observe(SPECTATOR).messages, live.observe(SPECTATOR).messages
        assert all_of_it[: len(shown)] == shown
        assert late.acting(SPECTATOR) == frozenset()
        if live.show(ALL).phase != phase:
            phase, begun = live.show(ALL).phase, len(all_of_it)
        assert len(shown) == 1 or len(shown) < begun
        late.step(moves)
    assert late.observe(SPECTATOR).messages == live.observe(SPECTATOR).messages
    assert late.show(SPECTATOR) == live.show(SPECTATOR)


def test_in_the_first_night_a_late_spectator_has_read_only_the_rules():
    game = make(dealt(*SIX, spectator_delay=1))
    assert len(game.observe(SPECTATOR).messages) == 1
    silent_until(game, "discussion")
    assert [line.text for line in game.observe(SPECTATOR).messages[1:]] == [
        "Night 1 falls.",
        "Morning comes. Nobody died in the night.",
    ]
    assert game.show(SPECTATOR).phase == "Day 1: dawn"


# --- the end ---------------------------------------------------------------------------------------------------------


def reason(game):
    """Who must have won, from who lives: the rules once more."""
    living = [role for role, place in zip(game.roles(), places(game, ALL), strict=True) if not place.out]
    wolves = living.count("werewolf")
    if wolves == 0:
        return "village"
    if wolves >= len(living) - wolves:
        return "wolves"
    if game.settings.wolf_win == "side":
        plain = "villager" in game.roles() and "villager" not in living
        able = [role for role in game.roles() if role not in ("villager", "werewolf")]
        if plain or (able and not any(role in living for role in able)):
            return "wolves"
    return "nobody"


@pytest.mark.parametrize(
    "scenario",
    [
        werewolf(),
        werewolf(NINE, wolf_win="side"),
        werewolf(WATCHED, wolf_win="side", tie="random"),
        werewolf(ARMED, tie="runoff", day_limit=3),
    ],
    ids=["six", "nine, by side", "watched, by side", "armed, three days"],
)
@some
@given(seed=seeds)
def test_random_games_keep_the_rules(scenario, seed):
    game = make(scenario.with_seed(seed))
    votes, on_wolves = Counter(), Counter()
    for moves in steps(game, seed):
        if any(part in game.show(ALL).phase for part in ("Night", "discussion")):
            assert reason(game) == "nobody"
        gone = dead(game)
        for seat, move in moves.items():
            if game.names[seat] in gone:
                assert offered(game, game.names[seat]) == (
                    {"speak"} if "last words" in game.show(ALL).phase else {"shoot"}
                )
                assert move.action == "speak" or game.roles()[seat] == "hunter"
            else:
                assert "shoot" not in offered(game, game.names[seat])
            assert not gone & {str(value) for value in move.args.values()}
            if move.action == "vote" and move.args["target"] != "nobody":
                votes[seat] += 1
                on_wolves[seat] += game.roles()[game.names.index(move.args["target"])] == "werewolf"
    metrics = game.metrics()
    won = reason(game)
    at_limit = won == "nobody"
    assert metrics["at_day_limit"] == at_limit
    assert not at_limit or metrics["days"] == game.settings.day_limit
    assert metrics["wolves_win"] == (won == "wolves")
    assert metrics["village_wins"] == 1 - metrics["wolves_win"]
    for seat, place in enumerate(places(game, ALL)):
        is_wolf = game.roles()[seat] == "werewolf"
        died = int(place.left.split()[-1]) if place.out else None
        early = died is not None and died < metrics["days"]
        of_seat = game.seat_metrics()[seat]
        assert of_seat["survived"] == (died is None)
        assert of_seat["won"] == game.returns()[seat] == (is_wolf == (won == "wolves"))
        assert (of_seat["eliminated"], of_seat.get("eliminated_round")) == (early, died if early else None)
        assert of_seat["votes"] == votes[seat]
        assert of_seat["votes_on_wolves"] == on_wolves[seat]


def test_nobody_dies_of_silence_and_the_village_wins_at_the_day_limit():
    game = make(werewolf(NINE, day_limit=4))
    while game.to_act():
        go(game)
    assert not dead(game)
    assert game.metrics()["days"] == 4
    assert {game.returns()[seat] for seat, role in enumerate(game.roles()) if role == "werewolf"} == {0.0}


def test_a_win_counts_whole_and_who_left_before_the_last_round_is_named():
    game = make(dealt("werewolf", "villager", "villager", "villager", "villager", **QUIET))
    go(game, Ada="<kill>Ben</kill>")
    silent_until(game, "Night 2")
    go(game, Ada="<kill>Cleo</kill>")
    silent_until(game, "vote")
    vote(game, "Dan", "Ada", "Ada")
    assert game.returns() == {0: 0.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}
    of_seats = game.seat_metrics()
    assert [of_seats[seat]["survived"] for seat in range(5)] == [0, 0, 0, 1, 1]
    assert [of_seats[seat]["eliminated"] for seat in range(5)] == [0, 1, 0, 0, 0]  # Ada and Cleo left in the last round
    assert [of_seats[seat].get("eliminated_round") for seat in range(5)] == [None, 1, None, None, None]


@pytest.mark.parametrize("wolf_win, over", [("parity", False), ("side", True)])
def test_by_side_the_wolves_also_win_when_all_others_with_a_power_are_dead(wolf_win, over):
    game = make(dealt("werewolf", "seer", "villager", "villager", "villager", wolf_win=wolf_win, **QUIET))
    go(game, Ada="<kill>Ben</kill>")
    assert bool(game.to_act()) != over
    assert bool(game.metrics()) == over


@some
@given(seed=seeds, roles=st.sampled_from([SIX, NINE, WATCHED, ARMED]))
def test_dealt_roles_are_the_stated_ones(seed, roles):
    game = make(werewolf(roles).with_seed(seed))
    assert Counter(game.roles()) == Counter(roles)
    briefs = [game.observe(seat).messages[0].text for seat in range(len(roles))]
    assert tuple(re.search(r"You are (?:a|the) (\w+)\.", text).group(1) for text in briefs) == game.roles()


def test_every_seat_is_dealt_every_role():
    dealt_to = [{make(werewolf().with_seed(seed)).roles()[seat] for seed in range(60)} for seat in range(6)]
    assert all(roles == set(SIX) for roles in dealt_to)


# --- what people see -------------------------------------------------------------------------------------------------


def read(game, name):
    """What people read at a seat."""
    return [line.text for message in game.observe(TOWN.index(name)).messages for line in message.lines]


def test_the_circle_shows_who_is_out_who_votes_for_whom_and_what_the_viewer_knows():
    game = make(dealt(*SIX, spectator_delay=0, **QUIET))
    go(game, Ada="<kill>Eve</kill>", Ben="<kill>Eve</kill>", Cleo="<inspect>Ada</inspect>")
    go(game)
    assert [(place.out, place.left, place.role) for place in places(game, 5)] == [
        *[(False, "", "")] * 4,
        (True, "night 1", "villager"),
        (False, "", "villager"),
    ]
    assert [place.role for place in places(game, 0)] == ["werewolf", "werewolf", "", "", "villager", ""]
    assert [place.role for place in places(game, 2)] == ["werewolf", "", "seer", "", "villager", ""]
    silent_until(game, "vote")
    assert game.show(0).zones[0].ballot == ""
    assert [place.choice for place in places(game, 0)] == ["", "Ben", "Cleo", "Dan", "", "Finn"]
    assert [place.choice for place in places(game, 4)] == [""] * 6
    assert [(option.label, option.choice) for option in game.show(0).zones[0].options] == [
        ("Vote for nobody", "nobody")
    ]
    vote(game, "Finn", "Finn", "Ada", "nobody", "Cleo")
    for viewer in (0, 4, SPECTATOR):
        assert [place.voted for place in places(game, viewer)] == [5, 5, 0, None, None, 2]
        assert [place.note for place in places(game, viewer)] == ["", "", "", "voted for nobody", "", ""]
    assert (places(game, 1)[5].out, places(game, 1)[5].left) == (True, "vote, day 1")


def test_phases_have_titles_and_moods_and_late_spectators_have_those_of_their_phase():
    game = make(dealt(*SIX, spectator_delay=1, tie="runoff", last_words="all"))
    seen = {}
    while game.to_act():
        for viewer in (0, SPECTATOR):
            view = game.show(viewer)
            assert view.zones[0].mood == view.mood
            seen.setdefault(viewer, []).append((view.phase, view.mood))
        if game.show(ALL).phase == "Day 1: vote":
            vote(game, "Eve", "Eve", "Ada", "Ada", "Finn", "nobody")
        elif game.show(ALL).phase == "Day 1: run-off" and len(game.to_act()) > 1:
            vote(game, "Eve", "Eve", "Eve", "Eve")
        elif game.show(ALL).phase == "Day 1: last words":
            break
        else:
            go(game)
    in_order = [
        *[("Night 1", "night"), ("Day 1: discussion", "day"), ("Day 1: vote", "vote")],
        *[("Day 1: run-off", "vote"), ("Day 1: last words", "day")],
    ]
    assert list(dict.fromkeys(seen[0])) == in_order
    assert list(dict.fromkeys(seen[SPECTATOR])) == [("", ""), ("Day 1: dawn", "day"), *in_order[1:4]]


def test_a_late_spectator_sees_a_death_and_the_votes_once_their_phase_is_over():
    game = make(dealt(*SIX, spectator_delay=1, tie="nobody", last_words="voted", wolf_talk=0))
    go(game, Ada="<kill>Eve</kill>", Ben="<kill>Eve</kill>")
    go(game)
    assert game.show(ALL).phase == "Day 1: discussion"
    assert places(game, SPECTATOR)[4].left == "night 1"
    silent_until(game, "vote")
    assert game.show(SPECTATOR).phase == "Day 1: discussion"
    assert not any(place.voted for place in places(game, SPECTATOR))
    vote(game, "Finn", "Finn", "Ada", "Ada", "Ada")
    assert game.show(ALL).phase == "Day 1: last words"
    assert [place.voted for place in places(game, SPECTATOR)] == [5, 5, 0, 0, None, 0]
    assert places(game, SPECTATOR)[0].left == "vote, day 1"


ASKED = {
    "Ada": "Choose a victim with your pack.",
    "Cleo": "Choose whom to look at tonight.",
    "Dan": "Save Eve, poison a player or use no potion.",
}


def test_everybody_is_asked_in_one_sentence():
    game = make(dealt(*SIX, fixed=spoke([0])))
    assert game.show(0).ask == "Talk with your pack; only the werewolves hear it."
    assert game.show(2).ask == ""
    go(game)
    asked = {name: game.show(TOWN.index(name)).ask for name in ("Ada", "Cleo", "Eve")}
    assert asked == {"Ada": ASKED["Ada"], "Cleo": ASKED["Cleo"], "Eve": ""}
    go(game, Ada="<kill>Eve</kill>", Ben="<kill>Eve</kill>")
    assert game.show(3).ask == ASKED["Dan"]
    assert [place.note for place in places(game, 3)] == ["", "", "", "", "attacked tonight", ""]
    assert not any(place.choice for place in places(game, 3)), "a press on a seat would not say which potion"
    assert not any(place.note for place in places(game, 0))
    go(game, Dan="<save/>")
    assert game.show(0).ask == "Speak to the village."
    assert places(game, 5)[0].speaks
    go(game, Ada="Good morning.")
    assert game.show(4).ask == "Choose who leaves the village, or nobody."
    vote(game, "Eve", "Eve", "Eve", "Eve", "nobody", "nobody")
    assert game.show(4).ask == "Speak your last words."


def test_a_role_card_says_what_one_can_do_how_one_wins_and_what_one_has_learned():
    cast = ("werewolf", "werewolf", "seer", "witch", "guard", "hunter", "doctor", "villager", "villager")
    game = make(dealt(*cast, **QUIET))
    titles = [game.show(seat).brief.title for seat in range(9)]
    assert titles[:4] == ["You are a werewolf", "You are a werewolf", "You are the seer", "You are the witch"]
    assert titles[4:8] == ["You are the guard", "You are the hunter", "You are the doctor", "You are a villager"]
    emblems = ["wolf", "wolf", "eye", "flask", "shield", "crosshair", "cross", "house", "house"]
    assert [game.show(seat).brief.emblem for seat in range(9)] == emblems
    assert "Your pack: you and Ben." in game.show(0).brief.text
    assert "You still have the antidote and the poison." in game.show(3).brief.text
    assert game.show(SPECTATOR).brief is game.show(ALL).brief is None
    go(game, Ada="<kill>Ida</kill>", Ben="<kill>Ida</kill>", Cleo="<inspect>Ben</inspect>", Eve="<guard>Ada</guard>")
    go(game, Dan="<save/>")
    assert "You still have the poison." in game.show(3).brief.text
    assert "Night 1: Ben is a werewolf." in game.show(2).brief.text
    assert "You guarded Ada last; the next night it must be somebody else." in game.show(4).brief.text
    assert [place.note for place in places(game, 4)][:2] == ["guarded last", ""]
    silent_until(game, "Night 2")
    go(game, Cleo="<inspect>Hal</inspect>")
    assert game.show(2).brief.text[-2:] == ("Night 1: Ben is a werewolf.", "Night 2: Hal is not a werewolf.")


def test_people_read_what_happened_without_instructions_and_addressed_to_them():
    game = make(dealt(*SIX, fixed=spoke([0]), last_words="nobody"))
    go(game, Ada="Eve?", Ben="Eve.")
    go(game, Ada="<kill>Eve</kill>", Ben="<kill>Finn</kill>", Cleo="<inspect>Ben</inspect>")
    go(game)
    go(game, Ada="Poor Eve.")
    vote(game, "Finn", "Finn", "Ben", "nobody", "nobody")
    assert read(game, "Finn") == [
        "Night 1 falls.",
        "Morning comes. Eve died in the night. Eve was a villager.",
        "Poor Eve.",
        "Everybody votes.",
        "Ada and Ben vote for Finn. Cleo votes for Ben. Dan and Finn vote for nobody.",
        "You are voted out.",
        "The werewolves win.",
    ]
    assert "Morning comes. You died in the night." in read(game, "Eve")
    assert "Finn is voted out. Finn was a villager." in read(game, "Ben")
    assert "Ada votes for Eve. Ben votes for Finn. The pack attacks Eve." in read(game, "Ben")
    assert "You look at Ben: Ben is a werewolf." in read(game, "Cleo")


def test_the_end_is_told_from_each_place_and_names_the_vote_that_decided():
    game = make(dealt("werewolf", "werewolf", *["villager"] * 5, **QUIET))
    silent_until(game, "vote")
    vote(game, "Cleo", "Cleo", "Ada", "Ada", "Ada", "Ada", "Ada")
    assert {game.show(viewer).headline + game.show(viewer).moment for viewer in (0, 2, SPECTATOR)} == {""}
    silent_until(game, "Day 2: vote")
    vote(game, "Cleo", "Ben", "Ben", "Ben", "nobody", "nobody")
    assert [game.show(viewer).headline for viewer in (0, 2, SPECTATOR, ALL)] == [
        "You lose. The village wins.",
        "You win with the village.",
        "The village wins. Ada and Ben were the werewolves.",
        "The village wins. Ada and Ben were the werewolves.",
    ]
    moment = "Day 2: the vote against Ben removed the last werewolf."
    assert {game.show(viewer).moment for viewer in (0, 3, SPECTATOR)} == {moment}
    assert (game.show(2).phase, game.show(2).mood) == ("", "over")


MOMENTS = [
    (("werewolf", "villager", "villager"), {}, "Night 1: the death of Ben left at least as many werewolves as others."),
    (
        ("werewolf", "seer", "villager", "villager", "villager"),
        {"wolf_win": "side"},
        "Night 1: the death of Ben left nobody with a power alive.",
    ),
    (
        ("werewolf", "villager", "seer", "witch", "guard"),
        {"wolf_win": "side"},
        "Night 1: the death of Ben left no plain villager alive.",
    ),
]


@pytest.mark.parametrize("roles, more, moment", MOMENTS)
def test_the_death_that_won_the_game_for_the_werewolves_is_named(roles, more, moment):
    game = make(dealt(*roles, **more, **QUIET))
    go(game, Ada="<kill>Ben</kill>")
    if game.to_act():
        go(game)
    assert game.show(0).moment == moment
    assert game.show(0).headline == "You win with the werewolves."
    assert game.show(1).headline == "You lose. Ada was the werewolf."


def test_a_shot_or_a_potion_that_removes_the_last_werewolf_is_named():
    game = make(dealt("werewolf", "hunter", "villager", "villager", **QUIET))
    go(game, Ada="<kill>Ben</kill>")
    go(game, Ben="<shoot>Ada</shoot>")
    assert game.show(1).moment == "Day 1: Ben shot Ada, the last werewolf."
    assert read(game, "Ben")[-2:] == ["Dying, you shoot Ada. Ada was a werewolf.", "The village wins."]
    assert "Ben, dying, shoots you." in read(game, "Ada")
    game = make(dealt("werewolf", "witch", "villager", "villager", **QUIET))
    go(game)
    go(game, Ben="<poison>Ada</poison>")
    assert game.show(1).moment == "Night 1: Ada, the last werewolf, died."


def test_at_the_day_limit_nothing_but_the_day_decides():
    game = make(dealt(*SIX, day_limit=1, **QUIET))
    while game.to_act():
        go(game)
    assert game.show(2).moment == "Day 1, the last, ended, and the werewolves were still fewer than the others."


@pytest.mark.parametrize("roles", [SIX, NINE, WATCHED, ARMED])
def test_the_rules_are_a_few_paragraphs_that_follow_the_settings(roles):
    texts = [
        make(werewolf(roles, reveal=reveal, tie=tie)).show(SPECTATOR).rules
        for reveal in (True, False)
        for tie in ("nobody", "runoff", "random")
    ]
    assert len({str(text) for text in texts}) == 6
    assert all(3 <= len(text) <= 7 for text in texts)


# --- probes, claims, settings ----------------------------------------------------------------------------------------


def test_probes_come_before_the_first_speech_and_after_every_one():
    game = make(dealt(*SIX, probes=True))
    assert not game.probes()
    silent_until(game, "discussion")
    assert set(game.probes()) == set(range(6))
    first = min(game.to_act())
    go(game)
    asked = game.probes()
    assert set(asked) == set(range(6))
    assert asked[4].choices == ("Ada", "Ben", "Cleo", "Dan", "Finn")
    assert asked[4].truth == ("Ada", "Ben")
    assert [asked[wolf].truth for wolf in (0, 1)] == [(), ()], "wolves have nothing to find out"
    assert asked[0].replies == tuple(f"<vote>{name}</vote>" for name in asked[0].choices)
    assert game.to_act() != {first}
    silent_until(game, "vote")
    assert game.probes(), "the last speech, too, is followed by a question"
    go(game)
    assert not game.probes()
    assert not any(make(dealt(*SIX)).probes() for _ in steps(make(dealt(*SIX)), 1))


def test_a_speech_after_bids_stands_alone_between_two_rounds_of_probes():
    game = make(dealt(*SIX, probes=True, order="bid", rounds=1))
    silent_until(game, "discussion")
    for _ in range(6):
        assert set(game.to_act()) == set(range(6)), "all bid for the floor"
        go(game, **dict.fromkeys(TOWN[:6], "<bid>1</bid>"))
        assert game.probes()
        [speaker] = game.to_act()
        go(game, **{TOWN[speaker]: "Nothing to say."})
        assert game.probes()


def test_a_seat_that_gave_up_is_asked_no_more_and_others_do_not_see_when():
    silent, gone = make(dealt(*SIX)), make(dealt(*SIX))
    seer = silent.roles().index("seer")
    others = [viewer for viewer in (*range(6), SPECTATOR) if viewer != seer]
    while seer not in gone.to_act():
        go(silent), go(gone)
    go(silent)
    gone.step({seat: FORFEIT if seat == seer else gone.default(seat) for seat in gone.to_act()})
    while silent.to_act():
        if silent.to_act() == {seer}:
            go(silent)  # the other game did not wait for it
            continue
        assert gone.to_act() == silent.to_act() - {seer}
        for viewer in others:
            assert silent.observe(viewer) == gone.observe(viewer)
            assert silent.acting(viewer) == gone.acting(viewer)
        go(silent), go(gone)
    assert not gone.to_act()


def test_stated_speakers_change_the_rules_of_a_discussion_in_turn_alone():
    fixed = [{"event": "speakers", "day": 1, "seats": [3, 1]}]
    for order, rule in (
        ("seat", "one speaks after the other"),
        ("bid", "bid for the floor"),
        ("simultaneous", "same time"),
    ):
        rules = make(dealt(*SIX, order=order, fixed=fixed)).observe(SPECTATOR).messages[0].text
        assert rule in rules
        assert ("one speaks after the other" in rules) is (order == "seat")


def test_nobody_is_asked_for_a_vote_after_last_words():
    game = make(dealt(*SIX, probes=True, last_words="all"))
    silent_until(game, "vote")
    go(game, **dict.fromkeys(TOWN[1:6], "<vote>Ada</vote>"))
    assert "last words" in game.show(ALL).phase
    go(game)
    assert not game.probes()


@pytest.mark.parametrize(
    "speech, roles",
    [
        ("I am the seer. I looked at Ben.", {"seer"}),
        ("Trust me, I'm the village doctor", {"doctor"}),
        ("As your hunter I say: Ben.", {"hunter"}),
        ("I am a simple villager.", {"villager"}),
        ("I do not say that I am the witch.", set()),
        ("If I am the guard, who are you?", set()),
        ("Ben says he is the seer.", set()),
        ("As the seer said, Ben is a wolf.", set()),
        ("I am the best.", set()),
    ],
)
def test_claims_are_read_from_plain_sentences(speech, roles):
    assert claimed(speech) == roles


def test_claims_are_counted():
    game = make(dealt("villager", "werewolf", "villager", fixed=spoke([0, 0, 1]), day_limit=1, first_night_kill=False))
    go(game, Ada="I am the seer.")
    go(game, Ada="I am a villager.")
    go(game, Ben="Good morning.")
    go(game)
    assert [game.seat_metrics()[seat]["claims"] for seat in range(3)] == [2, 0, 0]


@pytest.mark.parametrize(
    "wrong, where",
    [
        (werewolf(("villager",) * 4), "settings"),
        (werewolf(("werewolf", "werewolf", "villager", "villager")), "settings"),
        (werewolf(SIX, deal=("werewolf", *SIX[1:5], "seer")), "settings"),
        (werewolf(SIX, fixed=spoke([6])), "settings"),
        (werewolf(SIX, fixed=spoke([0] * 61)), "settings.fixed.0.seats"),
        (werewolf(SIX, fixed=[*spoke([0] * 60), *spoke([0] * 60)]), "settings"),
        (werewolf(SIX).model_copy(update={"seats": TOWN[:5]}), "settings.roles"),
        (werewolf(SIX).model_copy(update={"seats": (*TOWN[:5], "Nobody")}), "seats"),
        (werewolf(SIX).model_copy(update={"seats": (*TOWN[:5], "ada")}), "seats"),
        (werewolf(SIX).model_copy(update={"seats": (*TOWN[:5], "<b>")}), "seats"),
    ],
)
def test_settings_that_do_not_fit_are_refused(wrong, where):
    with pytest.raises(BadInput) as refusal:
        make(wrong)
    assert refusal.value.where == where
