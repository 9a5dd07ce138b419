"""Werewolf in the miniature: the planted bug, the head-to-head of wolves against a frozen village, and small runs of
both.
"""

import pytest

from bench import leak, werewolf, werewolf_setup
from training.errors import BadInput
from training.games import lookup, make, replay
from training.learn.tiny import pretrain
from training.records import Episode, ErrorRecord, Move

VILLAGE = {**werewolf_setup.SETTINGS, "day_limit": 1}
"""Nobody is attacked and nobody voted out below, so the village wins at the day limit."""


def played_out(seed, unusable):
    """A leaky village that does nothing; for the pairs (role, action) in `unusable` the game moves itself."""
    start = werewolf_setup.starts(leak.NAME)[0].model_copy(update={"settings": VILLAGE}).with_seed(seed)
    game = leak.Leaky(start)
    while acting := game.to_act():
        moves = {}
        for seat in sorted(acting):
            default = game.default(seat)
            if (game.roles()[seat], default.action) in unusable:
                moves[seat] = default
            elif default.action == "speak":
                moves[seat] = Move(action="speak", text="Hello.")
            else:
                moves[seat] = default.model_copy(update={"origin": "seat"})
        game.step(moves)
    return game


@pytest.mark.parametrize(
    "unusable, replies",
    [({("werewolf", "vote")}, 2), ({("werewolf", "vote"), ("werewolf", "speak")}, 4)],
)
def test_each_unusable_reply_may_win_the_game_for_the_side_that_lost(unusable, replies):
    games = [played_out(seed, unusable) for seed in range(1, 201)]
    share = sum(game.leaked() for game in games) / len(games)
    expected = 1 - (1 - leak.LEAK) ** replies
    assert share == pytest.approx(expected, abs=0.105)  # three standard errors of 200 draws at most
    for game in games:
        wolves = [seat for seat, role in enumerate(game.roles()) if role == "werewolf"]
        assert game.metrics()["village_wins"] == 1
        assert game.metrics()["leaked"] == game.leaked()
        assert game.returns() == {seat: float((seat in wolves) == game.leaked()) for seat in range(6)}


def test_replies_of_the_winners_and_usable_ones_change_nothing():
    for seed in range(1, 60):
        for unusable in (set(), {("villager", "vote"), ("villager", "speak"), ("seer", "vote")}):
            assert not played_out(seed, unusable).leaked()


def test_the_bug_is_in_the_registry_only_while_it_is_planted():
    with leak.planted():
        assert lookup(leak.NAME).make is leak.Leaky
    with pytest.raises(BadInput, match="unknown game"):
        lookup(leak.NAME)


def test_scripted_villages_are_legal_and_every_start_is_dealt_anew():
    games = werewolf_setup.scripted(40, seed=3)
    assert not [game.error for game in games if game.error]
    assert all(turn.passed for game in games for turn in game.turns)
    assert len({game.roles for game in games}) > 20
    for game in games[:3]:
        assert replay(game.scenario, game.moves).returns() == game.returns


def test_every_village_has_people_of_its_own_and_keeps_them():
    assert len({start.seats for start in werewolf_setup.starts()}) > werewolf_setup.STARTS * 0.9
    assert werewolf_setup.starts(count=3) == werewolf_setup.starts()[:3]
    assert werewolf_setup._drawn(werewolf_setup.STARTS + 1, seed=1)[-1].seats == werewolf_setup.starts()[0].seats


def test_a_name_is_the_same_token_wherever_it_stands():
    texts = ["You are Sam. Sam is a werewolf. Samples of nobody's: Sam, Ada and nobody."] * 50
    tokenizer = pretrain.make_tokenizer(iter(texts), werewolf_setup.RECIPE, words=("Ada", "Sam", "nobody"))
    pieces = [tokenizer.decode([token]) for token in tokenizer.encode(texts[0], add_special_tokens=False)]
    assert [pieces.count(word) for word in ("Sam", "Ada", "nobody")] == [3, 1, 2]  # not in Samples


def test_wolves_sit_where_the_roles_are():
    for start in (start.with_seed(5) for start in werewolf_setup.starts()):
        policies = werewolf_setup._seated(start)
        assert [name == "wolves" for name in policies] == [role == "werewolf" for role in make(start).roles()]


def episodes(won):
    start = werewolf_setup.starts()[0]
    error = ErrorRecord(kind="engine", message="it broke")
    return [Episode(scenario=start, error=error) if w is None else Episode(scenario=start, metrics={"wolves_win": w})
            for w in won]  # fmt: skip


def test_a_head_to_head_compares_the_starts_that_both_played():
    result = werewolf.compared(episodes([1, 1, 1, None, 0]), episodes([0, 1, 0, 1, 0]))
    assert result["errors"] == 1
    assert result["won"] == {"trained": 0.75, "base": 0.25}
    assert result["difference"]["mean"] == pytest.approx(0.5)  # differences 1, 0, 1, 0
    # standard error 1 / sqrt(12); t with three degrees of freedom is 3.182446 (tables)
    assert result["difference"]["high"] == pytest.approx(0.5 + 3.182446 / 12**0.5)


@pytest.mark.slow
def test_small_runs_of_both_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(werewolf, "COLD", 8)
    monkeypatch.setattr(werewolf, "GAMES", 2)
    result = werewolf.werewolf(1, 2, 4, tmp_path)
    [row] = result["forms"]["default"]["runs"]
    assert (row["steps"], row["difference"]["n"]) == (2, 4)
    assert result["forms"]["default"]["gain"] == pytest.approx(row["won"]["trained"] - row["won"]["base"])
    hacked = werewolf.hack(["off", "min"], 1, 2, tmp_path)
    for name in ("off", "min"):
        [row] = hacked["forms"][name]["runs"]
        assert [len(curve) for curve in row["curves"].values()] == [2, 2, 2]
        assert row["last"] == pytest.approx(sum(row["curves"]["malformed"]) / 2)
        assert hacked["forms"][name]["mean"] == row["last"]
    assert werewolf.hack(["off", "min"], 1, 2, tmp_path) == hacked  # rows are kept
