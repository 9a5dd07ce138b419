"""One episode: what the engine was given is the trace, every attempt is a turn, failures are data."""

import asyncio

import pytest

from tests.chat_tokenizers import FAMILIES, tokenizer, turn_start
from tests.table_talk import SAMPLING, dialogue, models, negotiation, reply_tokens, say_anything
from training import games
from training.engines.base import Sample, Sampling
from training.engines.scripted import ScriptedEngine
from training.errors import BadInput, EngineError, RemoteModelError
from training.players.base import Reply
from training.records import Episode, Move
from training.rollout import RolloutPolicy, play
from training.seeding import derive
from training.text.messages import chat
from training.text.template import ChatTokenizer

SCENARIOS = {
    "items": negotiation(turn_limit=12),
    "alternating": dialogue(turn_limit=12),
    "simultaneous": dialogue(order="simultaneous", turn_limit=12),
    "random": dialogue(order="random", turn_limit=12),
    "given": dialogue(given=[{"seat": 0, "text": "Hello."}, {"seat": 1, "text": "Hi Ann."}], turn_limit=8),
}


class Recorder(ScriptedEngine):
    """Records every prompt with its sample."""

    def __init__(self, script=say_anything):
        super().__init__(script)
        self.recorded = []

    async def sample(self, request):
        sample = await super().sample(request)
        self.recorded.append((list(request.prompt), sample, request.seed))
        return sample


class Says:
    """A player without tokens that gives the listed texts, then silence; remembers what it saw."""

    def __init__(self, *texts):
        self.texts = list(texts)
        self.seen = []

    async def act(self, seat, seen, seed):
        self.seen.append(seen)
        return Reply(self.texts.pop(0) if self.texts else "")

    def traces(self):
        return ()


def play_models(scenario, engine=None, rules=None, **options):
    make = models(engine, **options)
    players = [make(scenario, seat) for seat in range(len(scenario.seats))]
    return asyncio.run(play(scenario, players, rules=rules or RolloutPolicy(seed=5)))


@pytest.mark.parametrize("family", ["chatml", "llama", "thinking"])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_what_the_engine_was_given_is_the_trace(scenario, family):
    engine = Recorder(
        lambda request: say_anything(request) if family == "chatml" else reply_tokens("Hm.", family=family)
    )
    episode = play_models(scenario, engine, family=family, rules=RolloutPolicy(seed=5, retries=1))
    assert episode.error is None
    assert len(engine.recorded) == len(episode.turns) > 2
    sampled = []
    for trace in episode.traces:
        for turn in dict.fromkeys(t for t in trace.turn if t >= 0):
            start = trace.turn.index(turn)
            end = start + trace.turn.count(turn)
            assert episode.turns[turn].seat == trace.seat
            sampled.append((list(trace.tokens[:start]), trace.tokens[start:end]))
    requested = [(prompt, sample.tokens) for prompt, sample, _ in engine.recorded if sample.tokens]
    assert sorted(sampled) == sorted(requested)


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_prompt_is_the_observation_rendered_at_once(scenario, family):
    """Canonical replies: the trace then equals what a server would make of the observation's messages."""
    chat_tokenizer = ChatTokenizer(tokenizer(family))
    lines = ["I keep food.", "<accept/>", "<propose>food 1, water 1</propose>", "<none/>", "What now?"]
    engine = Recorder(lambda request: reply_tokens(lines[request.seed % 5], family=family))
    make = models(engine, family=family)
    expected = []

    class Watched:
        def __init__(self, seat):
            self.player, self.traces = make(scenario, seat), None
            self.traces = self.player.traces

        async def act(self, seat, seen, seed):
            expected.append(chat_tokenizer.prompt(chat(seen, seat, scenario.seats)))
            return await self.player.act(seat, seen, seed)

    episode = asyncio.run(play(scenario, [Watched(0), Watched(1)], rules=RolloutPolicy(seed=1, retries=1)))
    assert episode.error is None
    assert episode.metrics["refusals"] > 0
    assert sorted(prompt for prompt, _, _ in engine.recorded) == sorted(expected)
    for prompt in expected:
        assert prompt.count(turn_start(family)) >= 2


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_moves_replay_to_the_same_end(scenario):
    episode = play_models(scenario)
    game = games.replay(scenario, episode.moves)
    assert not game.to_act()
    assert game.returns() == episode.returns
    assert Episode.from_dict(episode.to_dict()) == episode


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_turns_say_which_move_they_became(scenario):
    episode = play_models(scenario, rules=RolloutPolicy(seed=2, retries=2))
    assert any(not turn.passed for turn in episode.turns)
    filled = [turn.move_index for turn in episode.turns if turn.passed]
    assert [episode.moves[at].move for at in filled] == [turn.move for turn in episode.turns if turn.passed]
    assert [episode.moves[at].seat for at in filled] == [turn.seat for turn in episode.turns if turn.passed]
    chosen = [at for at, entry in enumerate(episode.moves) if entry.move.origin == "seat"]
    assert filled == chosen
    assert all((turn.error is None) == turn.passed and (turn.move is None) != turn.passed for turn in episode.turns)


def test_seeds_come_from_the_place_of_the_request():
    engine = Recorder()
    scenario = SCENARIOS["simultaneous"]
    make = models(engine)
    rules = RolloutPolicy(seed=7, step=3)
    episode = asyncio.run(play(scenario, [make(scenario, 0), make(scenario, 1)], rules=rules, number=11))
    asked = {seat: sum(turn.seat == seat for turn in episode.turns) for seat in (0, 1)}
    expected = {derive(7, "sample", 3, 11, seat, turn) for seat in (0, 1) for turn in range(asked[seat])}
    assert {seed for _, _, seed in engine.recorded} == expected


def test_private_reasoning_stays_private():
    ann = Says("<think>I need the food.</think>Hello.", "<accept/>")
    bob = Says("<propose>food 1, water 1</propose>")
    episode = asyncio.run(play(negotiation(), [ann, bob]))
    assert (episode.turns[0].reply, episode.turns[0].private) == ("Hello.", "I need the food.")
    assert episode.moves[0].move.text == "Hello."
    assert "I need the food" not in "".join(message.text for seen in bob.seen for message in seen.messages)


def test_a_refused_reply_is_shown_to_its_seat_alone_and_the_default_is_played():
    ann, bob = Says("<dance/>", "Sorry."), Says("Hm?", "<walk_away/>")
    episode = asyncio.run(play(negotiation(), [ann, bob]))
    refused = episode.turns[0]
    assert (refused.passed, refused.move, refused.move_index) == (False, None, None)
    assert episode.moves[0].move.origin == "default"
    refused_move, why = ann.seen[1].messages[2:4]
    assert (refused_move.author, refused_move.text) == (0, "<dance/>")
    assert (why.author, why.text) == (None, refused.error)
    assert ann.seen[1].messages[: len(ann.seen[0].messages)] == ann.seen[0].messages
    assert "dance" not in "".join(message.text for seen in bob.seen for message in seen.messages)
    assert episode.metrics["refusals"] == episode.metrics["defaults"] == 1
    assert episode.metrics["parse_rate"] == 3 / 4


def test_retries_are_further_attempts_at_the_same_move():
    ann, bob = Says("<dance/>", "", "Hello."), Says("<walk_away/>")
    episode = asyncio.run(play(negotiation(), [ann, bob], rules=RolloutPolicy(retries=2)))
    assert [turn.passed for turn in episode.turns] == [False, False, True, True]
    assert [entry.move.action for entry in episode.moves] == ["talk", "walk_away"]
    assert len(ann.seen) == 3
    assert len(ann.seen[2].messages) == len(ann.seen[0].messages) + 4


def test_a_forfeit_ends_a_game_of_two_as_that_seats_loss():
    ann, bob = Says("Hello.", "<dance/>"), Says("Hm?")
    episode = asyncio.run(play(negotiation(), [ann, bob], rules=RolloutPolicy(on_refused="forfeit")))
    assert episode.moves[-1].seat == 0
    assert episode.moves[-1].move.origin == "forfeit"
    assert episode.returns == {0: 0.0, 1: 5 / 21}  # 5 walk-away points of 3·3 + 2·6
    assert episode.metrics["forfeits"] == 1


def test_a_lost_engine_makes_an_error_record_and_keeps_what_was_said():
    def script(request):
        if engine.requests == 4:
            raise EngineError("out of memory")
        return reply_tokens("Hello.")

    engine = ScriptedEngine(script)
    episode = play_models(negotiation(), engine)
    assert (episode.error.kind, episode.error.message) == ("engine", "out of memory")
    assert len(episode.moves) == len(episode.turns) == 3
    assert episode.returns == {0: None, 1: None}
    assert (episode.traces, episode.metrics) == ((), {})


def test_what_a_player_raises_by_mistake_is_an_error_record_too():
    class Broken(Says):
        async def act(self, seat, seen, seed):
            raise KeyError("lost")

    episode = asyncio.run(play(negotiation(), [Says("Hello."), Broken()]))
    assert (episode.error.kind, episode.error.message) == ("internal", "KeyError: 'lost'")
    assert len(episode.moves) == 1


def test_a_player_killed_in_a_joint_step_does_not_hang_the_other():
    class Killed(Says):
        async def act(self, seat, seen, seed):
            future = asyncio.get_running_loop().create_future()
            future.cancel()  # as when the process behind it dies
            await future

    episode = asyncio.run(play(SCENARIOS["simultaneous"], [Says("Hello."), Killed()]))
    assert episode.error.kind == "engine"
    assert "seat 1 was cancelled" in episode.error.message
    assert [entry.seat for entry in episode.moves] == [0]  # an incomplete joint step, which replay ignores
    assert games.replay(episode.scenario, episode.moves).to_act() == {0, 1}


def test_cancelling_the_episode_itself_is_not_swallowed():
    class Slow(Says):
        async def act(self, seat, seen, seed):
            await asyncio.sleep(60)

    async def scene(scenario):
        task = asyncio.create_task(play(scenario, [Slow(), Slow()]))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for scenario in (SCENARIOS["simultaneous"], SCENARIOS["alternating"]):
        asyncio.run(scene(scenario))


def test_a_tool_answers_for_the_tool_seat():
    scenario = dialogue(goal_check=True, turn_limit=8)
    asked = []

    async def tool(game):
        asked.append(game.to_act())
        offered = game.observe(scenario.tool_seat).actions[0]
        reached = {arg.name: arg.choices[0] if arg.kind == "choice" else arg.low for arg in offered.args}
        return Move(action=offered.name, args=reached, origin="tool")

    talk = [Says(*["Hello."] * 8), Says(*["Hi."] * 8)]
    episode = asyncio.run(play(scenario, talk, tool=tool))
    assert episode.error is None
    assert asked
    assert asked[0] == {2}
    assert sum(entry.move.origin == "tool" for entry in episode.moves) == len(asked)
    silent = asyncio.run(play(scenario, [Says(*["Hello."] * 8), Says(*["Hi."] * 8)]))
    assert {entry.move.origin for entry in silent.moves if entry.seat == 2} == {"default"}
    assert (silent.error, silent.metrics["defaults"], silent.metrics["end_limit"]) == (None, 0, 1)

    async def lost(game):
        raise RemoteModelError("no answer")

    episode = asyncio.run(play(scenario, [Says(*["Hello."] * 8), Says(*["Hi."] * 8)], tool=lost))
    assert episode.error.kind == "remote"

    async def wrong(game):
        return Move(action="nothing of this kind", origin="tool")

    episode = asyncio.run(play(scenario, [Says(*["Hello."] * 8), Says(*["Hi."] * 8)], tool=wrong))
    assert "the tool's move" in episode.error.message


def test_totals_of_players_are_means_over_attempts():
    class Half(ScriptedEngine):
        async def sample(self, request):
            sample = await super().sample(request)
            return Sample(sample.tokens, sample.logprobs, sample.finish, discarded=0.25)

    lines = iter(
        [reply_tokens("Hello."), reply_tokens("one two three four five six seven"), reply_tokens("<walk_away/>")]
    )
    episode = play_models(negotiation(), Half(lines), sampling=Sampling(max_tokens=14))
    assert [turn.passed for turn in episode.turns] == [True, True, True]
    assert episode.metrics["discarded"] == 0.25
    assert episode.metrics["cut"] == pytest.approx(1 / 3)


def test_totals_are_of_the_players_that_measure_them():
    """One seat is played by plain code, which cuts nothing off: it does not halve what the model's replies lost."""

    class Half(ScriptedEngine):
        async def sample(self, request):
            sample = await super().sample(request)
            return Sample(sample.tokens, sample.logprobs, sample.finish, discarded=0.5)

    lines = [reply_tokens(text) for text in ("Hello.", "Hm.", "<walk_away/>")]
    scenario = negotiation()
    model = models(Half(lines))(scenario, 0)
    episode = asyncio.run(play(scenario, [model, Says("Hi.", "Well?")]))
    assert [turn.seat for turn in episode.turns] == [0, 1, 0, 1, 0]
    assert (episode.metrics["discarded"], episode.metrics["cut"]) == (0.5, 0)


def test_the_number_of_players_must_fit():
    with pytest.raises(BadInput, match="2 seats need as many players, not 1"):
        asyncio.run(play(negotiation(), [Says()]))


def test_a_window_overflow_is_counted_as_branches():
    engine = Recorder(lambda request: reply_tokens("I would like to keep the food, please."))
    opening = len(ChatTokenizer(tokenizer("chatml")).prompt([{"role": "system", "content": "x"}]))
    assert opening < 20
    episode = play_models(dialogue(turn_limit=30), engine, sampling=SAMPLING, window=700)
    assert episode.error is None
    assert episode.metrics["branches"] >= 1
    assert max(len(prompt) for prompt, _, _ in engine.recorded) <= 700 - SAMPLING.max_tokens
    for at, trace in enumerate(episode.traces):
        if trace.parent is not None:
            assert episode.traces[trace.parent[0]].seat == trace.seat
            assert trace.parent[0] == at - 1
