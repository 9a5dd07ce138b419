"""The script for Werewolf: seers tell the truth, wolves bluff and stay together, the village follows the evidence."""

import re

import pytest

from tests.games.cases.werewolf import CASES, TOWN, dealt, spoke, werewolf
from tests.games.play import reply
from tests.players.test_scripted import game_of
from training.games import make
from training.games.werewolf import NINE
from training.games.werewolf.script.notes import Notes
from training.records import ALL
from training.text.parsing import parse

SIX_BIDDING = ("werewolf", "werewolf", "seer", "seer", "villager", "villager")
REPORT = re.compile(r"I looked at (\w+): \1 is (not )?a werewolf")


def village(roles=None, seed=0):
    scenario = (werewolf(roles) if roles else werewolf()).with_seed(seed + 1)
    return game_of(scenario, ("scripted",) * len(scenario.seats), seed)


def speeches(game):
    """All public speeches as (seat, text)."""
    lines = game.observe(ALL).messages
    return [(line.author, line.text) for line in lines if line.author is not None and line.channel == "public"]


GAMES = [village(seed=seed) for seed in range(40)]


def test_games_end_by_themselves_and_neither_side_always_wins():
    nine = [village(NINE, seed) for seed in range(12)]
    for games in (GAMES, nine):
        wins = sum(game.metrics()["wolves_win"] for game in games)
        assert 0.25 * len(games) <= wins <= 0.75 * len(games)
        assert not any(game.metrics()["at_day_limit"] for game in games)
        assert all(game.metrics()["days"] <= 5 for game in games)


def test_a_speaker_leaves_the_floor_to_others():
    rounds = 0
    for seed in range(20):
        game = game_of(
            dealt(*SIX_BIDDING, order="bid", last_words="nobody").with_seed(seed + 1), ("scripted",) * 6, seed
        )
        days = [[]]
        for line in game.observe(ALL).messages:
            if line.author is not None and line.channel == "public":
                days[-1].append(line.author)
            elif line.text.startswith("Morning comes."):
                days.append([])
        assert all(len(set(day)) == len(day) for day in days)
        rounds += sum(map(bool, days))
    assert rounds > 20


def test_what_true_seers_report_is_true():
    reports = 0
    for game in GAMES:
        for seat, text in speeches(game):
            if game.roles()[seat] == "seer":
                for name, innocent in REPORT.findall(text):
                    reports += 1
                    assert (game.roles()[TOWN.index(name)] == "werewolf") == (not innocent)
    assert reports > 20


def test_wolves_bluff_and_only_wolves_lie_about_their_role():
    bluffs = 0
    for game in GAMES:
        for seat, text in speeches(game):
            claim = re.search(r"I am the (\w+)", text)
            if claim and claim.group(1) != game.roles()[seat]:
                assert game.roles()[seat] == "werewolf"
                bluffs += 1
    assert bluffs >= 5


def test_wolves_kill_together():
    ballots = [line.text for game in GAMES for line in game.observe(ALL).messages if line.text.startswith("The pack")]
    wanted = [set(re.findall(r"\w+ for (\w+)", text.partition(". It")[0])) for text in ballots]
    assert all(len(names) == 1 for names in wanted)


def test_speeches_vary():
    texts = [text for game in GAMES for _, text in speeches(game)]
    assert len(set(texts)) > 100


@pytest.mark.parametrize("scenario", CASES)
def test_it_plays_every_rule_also_beside_players_by_chance(scenario):
    for seed in range(3):
        names = ["scripted" if (seat + seed) % 3 else "random" for seat in range(len(scenario.seats))]
        assert game_of(scenario.with_seed(seed), names, seed).metrics()


# --- one decision ----------------------------------------------------------------------------------------------------


def at_the_vote(speakers, *, roles=("werewolf", "werewolf", "seer", "witch", "villager", "villager")):
    """A first day on which `speakers` say something and the others nothing, up to the vote."""
    game = make(dealt(*roles, fixed=spoke(range(len(roles)))))
    while "vote" not in game.show(ALL).phase:
        moves = {}
        for seat in game.to_act():
            speech = speakers.get(seat) if "discussion" in game.show(ALL).phase else None
            moves[seat] = parse(speech, game.observe(seat))[0] if speech else game.default(seat)
        game.step(moves)
    return game


def voted(game, seat):
    return reply(game.scenario, seat, game.observe(seat), 1, "scripted")


def test_villagers_vote_for_the_wolf_that_an_unopposed_seer_names():
    for guilty in (0, 1, 3):
        claim = f"I am the seer. I looked at {TOWN[guilty]}: {TOWN[guilty]} is a werewolf."
        game = at_the_vote({2: claim})
        assert all(voted(game, seat) == f"<vote>{TOWN[guilty]}</vote>" for seat in (4, 5))


def test_a_player_that_a_seer_cleared_is_spared():
    claim = "I am the seer. I looked at Dan: Dan is not a werewolf."
    game = at_the_vote({2: claim})
    assert all(voted(game, seat) not in ("<vote>Dan</vote>", "<vote>Cleo</vote>") for seat in (4, 5))


def test_a_villager_accused_by_a_false_seer_votes_for_the_liar():
    game = at_the_vote({0: "I am the seer. I looked at Eve: Eve is a werewolf."})
    assert voted(game, 4) == "<vote>Ada</vote>"


def test_a_true_seer_votes_for_a_false_one():
    game = at_the_vote({0: "I am the seer. I looked at Eve: Eve is not a werewolf."})
    assert voted(game, 2) == "<vote>Ada</vote>"


def test_wolves_vote_with_the_packmate_who_spoke():
    game = at_the_vote({0: "I suspect Finn."})
    assert voted(game, 1) == "<vote>Finn</vote>"


def test_a_wolf_takes_up_the_victim_that_its_packmate_proposed():
    for name in ("Cleo", "Finn"):
        game = make(dealt("werewolf", "werewolf", "seer", "witch", "villager", "villager"))
        game.step({0: parse(f"Let us take {name} tonight.", game.observe(0))[0], 1: game.default(1)})
        assert voted(game, 1) == f"<kill>{name}</kill>"


def test_guards_watch_over_a_claimed_seer_when_they_may():
    game = at_the_vote({2: "I am the seer."}, roles=("werewolf", "werewolf", "seer", "guard", "villager", "villager"))
    while "Night 2" not in game.show(ALL).phase or 3 not in game.to_act():
        game.step({seat: game.default(seat) for seat in game.to_act()})
    assert voted(game, 3) == "<guard>Cleo</guard>"


def test_a_witch_poisons_the_wolf_that_a_seer_names():
    game = at_the_vote({2: "I am the seer. I looked at Ben: Ben is a werewolf."})
    while game.to_act() != {3} or "Night 2" not in game.show(ALL).phase:
        game.step({seat: game.default(seat) for seat in game.to_act()})
    assert voted(game, 3) == "<poison>Ben</poison>"


def test_the_notebook_reads_the_lines_of_the_log():
    game = at_the_vote(
        {0: "I suspect Cleo.", 2: "I am the seer. I looked at Ben: Ben is a werewolf.", 4: "I think Dan is a werewolf."}
    )
    game.step(
        {
            seat: parse("<vote>Ben</vote>" if seat != 1 else "<vote>Ada</vote>", game.observe(seat))[0]
            for seat in game.to_act()
        }
    )
    notes = Notes(game.observe(0), 0, game.names)
    assert (notes.role, notes.pack, notes.night) == ("werewolf", {1}, 1)
    assert notes.claims == {2: "seer"}
    assert dict(notes.reports) == {2: {1: True}}
    assert notes.accused == {0: 2}
    assert notes.votes == [{0: 1, 1: 0, 2: 1, 3: 1, 4: 1, 5: 1}]
    assert notes.dead == {1}
    assert notes.revealed == {1: "werewolf"}
    assert notes.trusted_seer() == 2
