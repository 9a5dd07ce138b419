"""Every registered game keeps the contract of `training.games.base`; a new game is tested by these as it is added."""

import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.bounds import unbounded
from tests.games.play import everything, forfeits, illegal_moves, played, random_move, reply, steps, viewers
from tests.games.worlds import CASES, SECRETS, WORLDS
from training import samples
from training.analysis import ANALYSIS
from training.errors import BadInput, IllegalMove, ParseError
from training.games import REGISTRY, SearchingGame, advance, make, redrawn, replay
from training.games.actions import canonical, read_args
from training.games.base import FORFEIT
from training.games.log import Settings
from training.labels.codebooks import CODEBOOKS
from training.players import make as player
from training.records import ALL, SPECTATOR, Scenario, SeatMove
from training.text import choices
from training.text.messages import chat
from training.text.parsing import parse
from training.views import TableView

ALL_CASES = [(name, case) for name in REGISTRY for case in CASES.get(name, [])]
case = pytest.mark.parametrize("name, scenario", ALL_CASES, ids=[f"{n}-{i}" for i, (n, _) in enumerate(ALL_CASES)])
worlds = pytest.mark.parametrize(
    "pair", [w for name in REGISTRY for w in WORLDS.get(name, [])], ids=lambda w: f"{w.a.game}: {w.name} for {w.viewer}"
)
seeds = st.integers(0, 2**31)
few = settings(max_examples=6, deadline=None)


def points(length, seed):
    """All points of a short game, from 0 to `length`; five spread over a long one, others with every seed."""
    stride = max(1, length // 5)
    return range(seed % stride, length + 1, stride)


def test_every_game_has_cases_worlds_and_secrets():
    hiding = {name for name, spec in REGISTRY.items() if spec.hidden}
    for listed, needed in ((CASES, set(REGISTRY)), (WORLDS, hiding), (SECRETS, hiding)):
        assert not needed - set(listed), f"games without {listed.name} in tests/games/cases"
        assert not set(listed) - needed, f"games with {listed.name} whose SPEC says hidden=False"
    for name in hiding:
        needed = {viewer for viewer in (0, 1) if viewer < REGISTRY[name].players[0]} | {SPECTATOR}
        assert {w.viewer for w in WORLDS[name]} >= needed, f"WORLDS of {name} lack one of these viewers"


def test_a_game_without_cases_is_named():
    with pytest.raises(AssertionError, match="no module in tests/games/cases has CASES of ludo"):
        CASES["ludo"]


@pytest.mark.parametrize("spec", REGISTRY.values(), ids=lambda s: s.name)
def test_settings_are_described_for_forms(spec):
    schema = spec.settings.model_json_schema()
    for model in [schema, *schema.get("$defs", {}).values()]:
        assert model["additionalProperties"] is False
        for field, content in model["properties"].items():
            assert content.get("description"), f"{model['title']}.{field}"
    assert issubclass(spec.settings, Settings)


@pytest.mark.parametrize("spec", REGISTRY.values(), ids=lambda s: s.name)
def test_every_setting_has_a_bound(spec):
    """Whoever may store a scenario could otherwise state a game that takes hours, or all memory."""
    schema = spec.settings.model_json_schema()
    wrong = sorted(unbounded(schema, schema.get("$defs", {})))
    assert not wrong, f"settings without a largest value, length or number of items (le, max_length): {wrong}"


@pytest.mark.parametrize("spec", REGISTRY.values(), ids=lambda s: s.name)
def test_codebooks_of_a_game_are_known(spec):
    unknown = {*spec.codebooks, spec.rated_by} - {"", *CODEBOOKS}
    assert not unknown, f"codebooks that training/labels/shipped does not have: {unknown}"


@case
def test_a_game_names_the_setting_of_its_corpora_exactly_if_its_seats_search(name, scenario):
    setting = REGISTRY[name].corpora
    assert isinstance(make(scenario), SearchingGame) == bool(setting)
    assert not setting or setting in REGISTRY[name].settings.model_fields


@case
@few
@given(seed=seeds)
def test_replay_is_deterministic_and_ignores_reading(name, scenario, seed):
    live, flat = played(scenario, seed)
    again = make(scenario.with_seed(seed))
    pending = {}
    for entry in flat:
        for viewer in viewers(scenario):
            again.observe(viewer)
        pending = advance(again, pending, entry)
    assert everything(replay(scenario.with_seed(seed), flat)) == everything(live) == everything(again)


@case
@few
@given(seed=seeds)
def test_random_play_ends_with_returns_in_the_declared_range(name, scenario, seed):
    game, flat = played(scenario, seed)
    spec = REGISTRY[name]
    assert not game.to_act()
    assert len(flat) < 2000
    assert set(game.returns()) == set(range(len(scenario.seats)))
    for value in game.returns().values():
        low, high = spec.range_of(scenario.settings)
        assert spec.low <= low < high <= spec.high
        assert spec.judged if value is None else low <= value <= high
    if spec.cooperative:
        assert len(set(game.returns().values())) == 1
    if spec.zero_sum:
        assert sum(game.returns().values()) == pytest.approx(0)
    assert len(game.roles()) in (0, len(scenario.seats))
    assert game.metrics(), "a game that is over has metrics"
    assert all(isinstance(value, float) for value in game.metrics().values()), "metrics are of type float"
    assert set(game.seat_metrics()) <= set(range(len(scenario.seats)))
    for metrics in game.seat_metrics().values():
        assert all(isinstance(value, float) for value in metrics.values())
    assert not replay(scenario.with_seed(seed), flat[:-1]).seat_metrics()
    with pytest.raises(IllegalMove):
        game.step({0: FORFEIT})


@case
@few
@given(seed=seeds)
def test_only_games_that_say_so_have_probes(name, scenario, seed):
    _, flat = played(scenario, seed)
    asked = [replay(scenario.with_seed(seed), flat[:end]).probes() for end in points(len(flat), seed)]
    assert not any(asked) or REGISTRY[name].probed(scenario.settings)


@case
@few
@given(seed=seeds)
def test_what_is_earned_on_the_way_adds_up_to_the_result(name, scenario, seed):
    game, flat = played(scenario, seed)
    for end in (0, len(flat) // 2, len(flat)):
        earned = replay(scenario.with_seed(seed), flat[:end]).earned()
        assert set(earned) == (set(game.returns()) if REGISTRY[name].pays else set())
    assert game.earned() == (game.returns() if REGISTRY[name].pays else {})


@case
@few
@given(seed=seeds)
def test_what_is_within_reach_becomes_the_result(name, scenario, seed):
    spec = REGISTRY[name]
    game, flat = played(scenario, seed)
    low, high = spec.range_of(scenario.settings)
    for end in points(len(flat), seed):
        within = replay(scenario.with_seed(seed), flat[:end]).in_reach()
        assert set(within) == (set(game.returns()) if spec.reach else set())
        assert all(low - 1e-9 <= value <= high + 1e-9 for value in within.values())
    assert game.in_reach() == (game.returns() if spec.reach else {})


@case
@few
@given(seed=seeds)
def test_observations_only_grow(name, scenario, seed):
    game = make(scenario.with_seed(seed))
    seen = {viewer: game.observe(viewer).messages for viewer in viewers(scenario)}
    assert all(messages for messages in seen.values())
    for _ in steps(game, seed):
        for viewer, before in seen.items():
            seen[viewer] = game.observe(viewer).messages
            assert seen[viewer][: len(before)] == before
    assert not any(game.observe(viewer).actions for viewer in viewers(scenario))


@case
@few
@given(seed=seeds)
def test_own_messages_are_exactly_the_chosen_moves_in_order(name, scenario, seed):
    game, flat = played(scenario, seed)
    for viewer in viewers(scenario):
        messages = game.observe(viewer).messages
        assert messages[0].author is None
        for seat in range(len(scenario.seats)):
            chosen = [e.move.text for e in flat if e.seat == seat and e.move.origin == "seat"]
            heard = [m.text for m in messages if m.author == seat]
            if viewer in (seat, ALL):
                assert heard == chosen
            left = iter(chosen)  # others hear some of them, in order
            assert all(text in left for text in heard)


@case
@few
@given(seed=seeds)
def test_something_stands_between_two_own_messages(name, scenario, seed):
    game, _ = played(scenario, seed)
    for seat in range(len(scenario.seats)):
        roles = [message["role"] for message in chat(game.observe(seat), seat, scenario.seats)]
        assert roles[0] == "system"
        assert roles[1] == "user", f"no line of the game stands between the opening and seat {seat}'s first message"
        assert all(a != b for a, b in pairwise(roles)), f"nothing stands between two messages of seat {seat}"


@case
def test_a_task_is_known_to_everybody(name, scenario):
    """Its words stand in the spectators' first messages; a game for one always has one."""
    game = make(scenario)
    assert any(game.task() in message.text for message in game.observe(SPECTATOR).messages)
    assert game.task() or REGISTRY[name].players != (1, 1)


@case
@few
@given(seed=seeds)
def test_an_illegal_move_changes_nothing(name, scenario, seed):
    game = make(scenario.with_seed(seed))
    for moves in steps(game, seed):
        before = everything(game)
        for seat in moves:
            for bad in illegal_moves(game, seat):
                with pytest.raises(IllegalMove) as refusal:
                    game.check(seat, bad)
                assert str(refusal.value)
                with pytest.raises(IllegalMove):
                    game.step({**moves, seat: bad})
        for wrong_seats in ({}, {**moves, 99: FORFEIT}, dict(list(moves.items())[1:])):
            with pytest.raises(IllegalMove):
                game.step(wrong_seats)
        for seat in set(viewers(scenario)) - set(moves):
            with pytest.raises(IllegalMove):
                game.check(seat, FORFEIT)
        assert everything(game) == before


@case
@few
@given(seed=seeds)
def test_forfeit_and_silence_at_every_point(name, scenario, seed):
    spec = REGISTRY[name]
    _, flat = played(scenario, seed)
    for length in points(len(flat), seed):
        for seat in replay(scenario.with_seed(seed), flat[:length]).to_act() - {scenario.tool_seat}:
            game = replay(scenario.with_seed(seed), flat[:length])
            others = {other: game.default(other) for other in game.to_act() - {seat}}
            game.step({seat: FORFEIT, **others})
            if len(scenario.seats) == 2:
                assert not game.to_act()
                mine, theirs = (game.returns()[s] for s in (seat, 1 - seat))
                assert mine is not None
                assert spec.low <= mine <= (theirs if spec.zero_sum else spec.high)
            for _ in range(2000):
                assert seat not in game.to_act(), "who gave up is asked again"
                if not game.to_act():
                    break
                game.step({s: game.default(s) for s in game.to_act()})
            assert not game.to_act()
        game = replay(scenario.with_seed(seed), flat[:length])
        for _ in range(2000):
            if not game.to_act():
                break
            silent = {s: game.default(s).model_copy(update={"origin": "timeout"}) for s in game.to_act()}
            before = {s: len(game.observe(s).messages) for s in game.to_act() if s < len(scenario.seats)}
            game.step(silent)
            for s, count in before.items():
                assert len(game.observe(s).messages) > count, "a time-out must be told"
                assert not any(m.author is not None for m in game.observe(s).messages[count:])
        assert not game.to_act()


@case
@settings(max_examples=3, deadline=None)
@given(seed=seeds)
def test_whatever_else_a_forfeit_says_is_ignored(name, scenario, seed):
    """Files of others may state any action and arguments with the origin `forfeit`."""
    scenario = scenario.with_seed(seed)
    _, flat = played(scenario, seed)
    for length in points(len(flat), seed):
        before = replay(scenario, flat[:length])
        for seat in before.to_act() - {scenario.tool_seat}:
            others = {other: before.default(other) for other in before.to_act() - {seat}}
            ended = []
            for forfeit in (FORFEIT, *forfeits(before, seat)):
                game = replay(scenario, flat[:length])
                game.step({seat: forfeit, **others})
                ended.append(everything(game))
            assert all(end == ended[0] for end in ended)


@case
@few
@given(seed=seeds)
def test_an_incomplete_last_joint_step_is_ignored(name, scenario, seed):
    checked = points(len(list(steps(make(scenario.with_seed(seed)), seed))), seed)
    game = make(scenario.with_seed(seed))
    flat = []
    for number, moves in enumerate(steps(game, seed)):
        entries = [SeatMove(seat=s, move=m) for s, m in moves.items()]
        if number not in checked:
            flat += entries
            continue
        state = everything(replay(scenario.with_seed(seed), flat))
        for part in {1, len(entries) - 1} - {len(entries)}:
            assert everything(replay(scenario.with_seed(seed), [*flat, *entries[:part]])) == state
        flat += entries
        flat_reversed = [*flat[: -len(entries)], *reversed(entries)]
        assert everything(replay(scenario.with_seed(seed), flat_reversed)) == everything(
            replay(scenario.with_seed(seed), flat)
        )


def chooses(choice, action):
    """Whether a choice of a zone is a value of an action's only choice, or a whole command of it."""
    if [argument.kind for argument in action.args] == ["choice"] and choice in action.args[0].choices:
        return True
    verb = action.verbs[0] if action.verbs else ""
    if not verb or not f"{choice} ".startswith(f"{verb} "):
        return False
    try:
        args = read_args(action, choice.removeprefix(verb).strip()) if action.args else {}
    except IllegalMove:
        return False
    return canonical(action, args) == choice


@case
@few
@given(seed=seeds)
def test_a_view_has_no_choice_that_the_seat_is_not_offered(name, scenario, seed):
    """At the table it would have no button, and one that two actions offer has none either."""
    _, flat = played(scenario, seed)
    for end in points(len(flat), seed):
        game = replay(scenario.with_seed(seed), flat[:end])
        for viewer in viewers(scenario):
            choices = set(game.show(viewer).choices())
            actions = game.observe(viewer).actions if choices else ()
            assert not [choice for choice in choices if sum(chooses(choice, action) for action in actions) != 1]


@case
@few
@given(seed=seeds)
def test_a_view_says_what_to_do_and_how_the_game_ended(name, scenario, seed):
    _, flat = played(scenario, seed)
    for end in {*points(len(flat), seed), 0, len(flat)}:
        game = replay(scenario.with_seed(seed), flat[:end])
        players = game.to_act()
        for viewer in viewers(scenario):
            view = game.show(viewer)
            assert TableView.model_validate_json(view.model_dump_json()) == view
            if viewer != scenario.tool_seat:
                assert bool(view.ask) == (viewer in players), f"{view.ask!r} to {viewer}"
            assert bool(view.headline) == bool(view.moment) == (not players), (view.headline, view.moment)
            assert view.rules or view.story
        assert game.show(SPECTATOR).brief is None


@case
@few
@given(seed=seeds)
def test_an_analysis_follows_the_game_and_names_its_moves(name, scenario, seed):
    game, flat = played(scenario, seed)
    for end in {*points(len(flat), seed), len(flat) - 1}:
        earlier = replay(scenario.with_seed(seed), flat[:end])
        assert not earlier.analysis() or not earlier.to_act(), "it holds what was hidden, and what could still be done"
    if REGISTRY[name].analysed_by_worker:  # by an engine, for seconds
        return
    again, pending, last = make(scenario.with_seed(seed)), {}, 0
    for entry in flat:
        pending = advance(again, pending, entry)
        last += not pending
    zones = game.analysis()
    assert ANALYSIS.validate_json(ANALYSIS.dump_json(zones)) == zones == game.analysis()
    assert not [text for text in texts(ANALYSIS.dump_python(zones)) if PROMPT.search(text)]
    for zone in zones:
        assert zone.title
        if zone.kind == "opinion_changes":
            assert "not evidence of a cause" in zone.method
            assert all(0 < change.step < last and change.speaker != change.voter for change in zone.changes)
        if zone.kind == "review":
            assert zone.method
            assert all(0 < move.step <= last and move.seat < len(scenario.seats) and move.text for move in zone.moves)
            assert [move.step for move in zone.moves] == sorted(move.step for move in zone.moves)
            assert all(len(row.cells) == len(scenario.seats) for row in zone.tallies)
            assert all(move.value is None or -1 <= move.value <= 1 for move in zone.moves)
            assert bool(zone.curve) == any(move.value is not None for move in zone.moves)


PROMPT = re.compile(
    r"</?[a-z_]+/?>|GAME STATE|LEGAL ACTIONS|How to act|Information of Turn|\(\d,\d\)|player \+1|\btag\b"
)
"""What only models read."""


@case
@few
@given(seed=seeds)
def test_people_read_no_prompt(name, scenario, seed):
    _, flat = played(scenario, seed)
    for end in {*points(len(flat), seed), len(flat)}:
        game = replay(scenario.with_seed(seed), flat[:end])
        for viewer in viewers(scenario):
            view = game.show(viewer)
            lines = [line.text for message in game.observe(viewer).messages for line in message.lines]
            shown = {*texts(view.model_dump())}.difference(view.choices()).union(lines)
            assert not [text for text in shown if PROMPT.search(text)]
            assert all(text.strip() for text in lines)


def texts(data):
    """All texts in plain data."""
    if isinstance(data, str):
        return [data]
    parts = data.values() if isinstance(data, dict) else data if isinstance(data, list | tuple) else ()
    return [text for part in parts for text in texts(part)]


@worlds
@settings(max_examples=8, deadline=None)
@given(seed=seeds)
def test_worlds_that_differ_in_hidden_facts_look_the_same(pair, seed):
    a, b = make(pair.a.with_seed(seed)), make(pair.b.with_seed(seed))
    label = REGISTRY[pair.a.game].label
    assert label(pair.a) == label(pair.b)
    assert pair.a.settings != pair.b.settings

    def same():
        assert a.observe(pair.viewer).model_dump_json() == b.observe(pair.viewer).model_dump_json()
        for look in ("acting", "show"):
            assert getattr(a, look)(pair.viewer) == getattr(b, look)(pair.viewer)
        assert (pair.viewer in a.to_act()) == (pair.viewer in b.to_act())

    for moves in steps(a, seed):
        if pair.until(a):
            return
        same()
        if pair.viewer in a.to_act():
            for bad in illegal_moves(a, pair.viewer):
                errors = []
                for game in (a, b):
                    with pytest.raises(IllegalMove) as refusal:
                        game.check(pair.viewer, bad)
                    errors.append(str(refusal.value))
                assert errors[0] == errors[1]
            assert a.default(pair.viewer) == b.default(pair.viewer)
        b.step(pair.across(a, b, moves))
    if not pair.until(a):
        same()


@worlds
def test_all_reads_whatever_a_seat_may_know(pair):
    """Judges, replays and exports read the view of `ALL`, and the tool seat reads the same."""
    a, b = make(pair.a.with_seed(3)), make(pair.b.with_seed(3))
    knows = [*range(len(pair.a.seats)), SPECTATOR]

    def differs(viewer):
        return a.observe(viewer).messages != b.observe(viewer).messages

    for moves in steps(a, 3):
        if pair.until(a):
            return
        if seeing := list(filter(differs, knows)):
            assert differs(ALL), f"{pair.name}: {seeing} can tell the two scenarios apart, ALL cannot"
        b.step(pair.across(a, b, moves))


@case
def test_the_tool_seat_reads_what_all_reads(name, scenario):
    game, _ = played(scenario, 3)
    assert game.observe(scenario.tool_seat).messages == game.observe(ALL).messages


@worlds
@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_scripts_do_not_know_what_their_seat_may_not_know(pair, seed):
    if pair.viewer == SPECTATOR:
        return
    a, b = make(pair.a.with_seed(seed)), make(pair.b.with_seed(seed))
    while a.to_act() and not pair.until(a):
        moves = {s: random_move(a, s, seed + len(a.observe(ALL).messages)) for s in a.to_act()}
        if pair.viewer in moves:
            replies = [
                reply(game.scenario, pair.viewer, game.observe(pair.viewer), seed, "scripted") for game in (a, b)
            ]
            assert replies[0] == replies[1]
            moves[pair.viewer], _ = parse(replies[0], a.observe(pair.viewer))
        moves_of_b = pair.across(a, b, moves)
        a.step(moves)
        b.step(moves_of_b)


@pytest.mark.parametrize(
    "secret", [s for name in REGISTRY for s in SECRETS.get(name, [])], ids=lambda s: f"{s.scenario.id}-{s.text}"
)
def test_secrets_reach_only_those_who_may_read_them(secret):
    game = make(secret.scenario)
    for moves in steps(game, 3):
        for seat in moves:
            for text in ("", "<nonsense/>", "</accept>", "x" * 30_000):
                if seat not in secret.readers:
                    with pytest.raises(ParseError) as refusal:
                        parse(text, game.observe(seat))
                    assert secret.text not in str(refusal.value)
    for viewer in viewers(secret.scenario):
        shown = game.observe(viewer).model_dump_json() + str(chat(game.observe(viewer), viewer, secret.scenario.seats))
        shown += game.show(viewer).model_dump_json()
        assert (secret.text in shown) == (viewer in secret.readers), f"{secret.text!r} and viewer {viewer}"
    assert secret.text not in REGISTRY[secret.scenario.game].label(secret.scenario)


@case
def test_wrong_settings_name_the_field(name, scenario):
    unknown = scenario.model_copy(update={"settings": {**scenario.settings, "nonsense": 1}})
    with pytest.raises(BadInput, match=r"settings\.nonsense"):
        make(unknown)
    for field in REGISTRY[name].settings.model_fields:
        wrong = scenario.model_copy(update={"settings": {**scenario.settings, field: b"\xff"}})
        with pytest.raises(BadInput, match=rf"settings\.{field}"):
            make(wrong)
    with pytest.raises(BadInput, match="players"):
        make(scenario.model_copy(update={"seats": tuple(f"P{n}" for n in range(REGISTRY[name].players[1] + 1))}))
    with pytest.raises(BadInput, match="unknown game"):
        make(Scenario(id="x", game="ludo", seats=("Ada",)))


@pytest.mark.parametrize("name", ["", " ", "\u3000", "Ada\n", "Ada\nScene: the moon", "Ada\u2028Ben"])
@pytest.mark.parametrize("game", REGISTRY)
def test_a_name_is_one_line_of_text(game, name):
    scenario = CASES[game][0]
    with pytest.raises(BadInput, match="cannot be called") as refusal:
        make(scenario.model_copy(update={"seats": (*scenario.seats[:-1], name)}))
    assert refusal.value.where == "seats"


@pytest.mark.parametrize("game", ["dialogue", "negotiation"])
def test_names_that_no_action_mentions_are_free(game):
    """Recorded conversations keep the names of their source."""
    scenario = CASES[game][0].model_copy(update={"seats": ("Ada  <b>", "ada <B>")})
    assert make(scenario).to_act()


@case
def test_unknown_viewers_are_refused(name, scenario):
    with pytest.raises(ValueError, match="no such viewer"):
        make(scenario).observe(99)


DEALING = {name for name, spec in REGISTRY.items() if spec.hidden and spec.undealt is not dict}
"""Games whose settings can state what chance decided: who hides what, in a dialogue who acts first."""


def test_a_start_drawn_anew_keeps_nothing_of_a_stated_deal():
    stating = set()
    for name, scenario in ALL_CASES:
        anew = redrawn(scenario, 7)
        assert redrawn(anew, 7) == anew
        if anew.settings != scenario.settings:
            stating.add(name)
            games = [make(redrawn(scenario, seed)) for seed in range(1, 30)]
            assert len({(str(game.observe(ALL)), game.to_act()) for game in games}) > 1, f"every {name} starts alike"
        else:
            assert anew == scenario.with_seed(7)
    assert stating == DEALING, "a game with undealt needs a case whose settings state the deal"


@case
def test_declared_actions_are_all_that_players_are_offered(name, scenario):
    game = make(scenario)
    for moves in steps(game, 1):
        for seat in set(moves) - {scenario.tool_seat}:
            assert {action.name for action in game.observe(seat).actions} <= set(REGISTRY[name].actions)


@pytest.mark.parametrize("name", REGISTRY)
@pytest.mark.parametrize("kind", ["random", "scripted"])
def test_players_by_name_play_every_sample_to_its_end(name, kind):
    for scenario in samples.for_game(name)[::5]:
        game = make(scenario)
        while game.to_act():
            moves = {}
            for seat in game.to_act():
                if seat == scenario.tool_seat:
                    moves[seat] = game.default(seat)
                    continue
                seen = game.observe(seat)
                moves[seat], _ = parse(reply(scenario, seat, seen, len(seen.messages), kind), seen)
                assert player(kind, scenario, seat).traces() == ()
            game.step(moves)
        assert game.metrics()


@case
@few
@given(seed=seeds)
def test_the_replies_that_can_be_listed_are_legal(name, scenario, seed):
    game = make(scenario.with_seed(seed))
    for _ in steps(game, seed):
        for seat in game.to_act() - {scenario.tool_seat}:
            seen = game.observe(seat)
            listed = list(choices.replies(seen.actions)) if 0 < choices.count(seen.actions) <= choices.MOST else []
            assert len(set(listed)) == len(listed)
            for text in listed:
                move, private = parse(text, seen)
                game.check(seat, move)
                assert (move.text, private) == (text, "")
