"""The Among Us part of the miniature: configurations, the start's talk, and the numbers of a game made by hand."""

import asyncio
from argparse import Namespace
from collections import Counter

import pytest

from bench import among_us, asked, results
from bench.deduction import numbers
from bench.random_talk import CLAIM, FORMULAS, RandomTalk
from bench.starts import Start, play
from training import config
from training.errors import BadInput
from training.games import make
from training.learn.tiny import pretrain
from training.records import Belief, Episode, Move, Scenario, SeatMove, Turn
from training.text.template import ChatTokenizer

GUS, IVO, KIM, LEO, MIA = range(5)
BY_HAND = Scenario(
    id="by-hand",
    game="among_us",
    seats=among_us.NAMES,
    settings=among_us.SETTINGS | {"cooldown": 1, "deal": {"imposter": MIA, "tasks": [[[1, 1]] * 4] * 5}},
)
WAIT = Move(action="wait")


def go(direction):
    return Move(action="go", args={"direction": direction})


def names(action, seat):
    return Move(action=action, args={"player": among_us.NAMES[seat]})


def says(text):
    return Move(action="talk", text=text)


def by_hand():
    """A game in which Ivo and Kim see Mia kill Gus, and Leo does not."""
    game, moves = make(BY_HAND), []

    def step(by_seat):
        moves.extend(SeatMove(seat=seat, move=move) for seat, move in sorted(by_seat.items()))
        game.step(by_seat)

    step({GUS: WAIT, IVO: WAIT, KIM: WAIT, LEO: go("east"), MIA: WAIT})
    step({GUS: WAIT, IVO: WAIT, KIM: WAIT, LEO: WAIT, MIA: names("kill", GUS)})
    step({IVO: names("report", GUS), KIM: WAIT, LEO: WAIT, MIA: WAIT})
    spoken = {IVO: "I saw Mia kill Gus.", KIM: "It is Leo.", LEO: "It is Mia.", MIA: "I trust Mia."}
    for _ in spoken:
        [speaker] = game.to_act()
        step({speaker: says(spoken[speaker])})
    step({IVO: names("vote", MIA), KIM: names("vote", MIA), LEO: names("vote", MIA), MIA: names("vote", IVO)})
    first = 5 + 5 + 4
    beliefs = [
        belief(seat, first + message, right)
        for seat, rights in {
            IVO: (0.9, 0.9, 0.9, 0.9, 1.0),
            KIM: (0.5, 0.6, 0.6, 0.6, 0.8),
            LEO: (0.3, 0.3, 0.3, 0.7, 0.6),
        }.items()
        for message, right in enumerate(rights)
    ]
    return Episode(
        scenario=BY_HAND,
        moves=moves,
        beliefs=sorted(beliefs, key=lambda each: each.after),
        metrics=dict(game.metrics()),
        seat_metrics={seat: dict(row) for seat, row in game.seat_metrics().items()},
        roles=game.roles(),
    )


def belief(seat, after, right):
    return Belief(
        seat=seat, after=after, question="Who?", probabilities={"Mia": right, "Kim": 1 - right}, truth=("Mia",)
    )


def test_the_numbers_of_a_game_by_hand():
    measured = numbers([(by_hand(), {GUS, KIM, LEO})])
    assert measured == {
        "won": 1.0,
        "ejected": 1.0,
        "tasks": 0.0,
        "meetings": 1.0,
        "votes_right": 1.0,  # of Kim and Leo; Gus never voted
        "silent": 0.0,
        "waits": pytest.approx((1 + 1 + 2 / 3) / 3),  # Leo went once in three decisions
        "before": pytest.approx((0.5 + 0.3) / 2),
        "after": pytest.approx((0.8 + 0.6) / 2),
        "named": 0.5,  # Leo's message, not Kim's
        "named_seen": 0.0,  # Kim saw it, and named Leo
        "seen": 0.5,
        "witnessed": 1.0,  # by Ivo and Kim
        "won_witnessed": 1.0,
        "won_unwitnessed": None,
    }
    assert numbers([(by_hand(), {IVO})])["named_seen"] == 1.0


def test_wins_are_told_apart_by_whether_somebody_saw_the_kill():
    seen = by_hand()
    roles = tuple("imposter" if seat == LEO else "crewmate" for seat in range(5))  # nobody saw Leo kill
    unseen = seen.model_copy(update={"roles": roles, "metrics": seen.metrics | {"crew_won": 0.0}})
    undiscussed = seen.model_copy(update={"moves": seen.moves[:5], "metrics": seen.metrics | {"crew_won": 0.0}})
    measured = numbers([(game, {KIM}) for game in (seen, unseen, unseen, undiscussed)])
    shares = [measured[name] for name in ("won", "witnessed", "won_witnessed", "won_unwitnessed")]
    assert shares == [0.25, pytest.approx(1 / 3), 1.0, 0.0]


def test_a_second_discussion_begins_where_probes_are_further_apart():
    episode = by_hand()
    later = [belief(KIM, after, right) for after, right in ((30, 0.2), (31, 0.4))]
    twice = episode.model_copy(update={"beliefs": (*episode.beliefs, *later)})
    measured = numbers([(twice, {KIM})])
    assert measured["before"] == pytest.approx((0.5 + 0.2) / 2)
    assert measured["after"] == pytest.approx((0.8 + 0.4) / 2)


def test_what_never_happened_has_no_number():
    silent = by_hand().model_copy(update={"beliefs": ()})
    measured = numbers([(silent, {GUS})])
    assert (measured["before"], measured["named"], measured["votes_right"]) == (None, None, None)


@pytest.mark.parametrize("variant", [form for form in among_us.VARIANTS if form != "base"])
def test_every_variant_has_a_configuration(variant, tmp_path):
    wanted = config.parse(among_us.configuration(variant, tmp_path, 3, 7, tmp_path / "starts.jsonl"))
    assert (wanted.seed, wanted.learn.steps, wanted.method.variant) == (3, 7, variant)
    assert wanted.sampling.constrain
    partners = [(entry.source, entry.learner, entry.partner) for entry in wanted.opponents]
    assert partners == ([] if variant == "L" else [("start", ("crewmate",), "start")])


def test_an_unknown_variant_is_refused(tmp_path):
    with pytest.raises(BadInput, match="unknown form 'RL\\+S'"):
        among_us.main(Namespace(dir=tmp_path, forms="RL+S", seeds=1, steps=0))


@pytest.fixture(scope="module")
def games():
    return play(Start("ship-2x2-4", ("random_talk",), 12, file="among_us", settings=among_us.SETTINGS))


def test_the_start_plays_legal_moves_and_speaks_in_formulas(games):
    turns = [turn for game in games for turn in game.turns]
    assert all(turn.passed for turn in turns)
    messages = {turn.move.text for turn in turns if turn.move.action == "talk"}
    assert len(messages) > 5
    possible = {
        formula.format(a=first, b=second)
        for formula in (CLAIM, *FORMULAS)
        for first in among_us.NAMES
        for second in among_us.NAMES
        if first != second
    }
    assert messages <= possible


@pytest.fixture(scope="module")
def chat():
    recipe = pretrain.Recipe(vocabulary=400)
    known = ["Whom would you vote for now?", *among_us.NAMES]
    return ChatTokenizer(pretrain.make_tokenizer(iter(known), recipe, among_us.NAMES))


def answers(traces, chat):
    """What each seat answers, by name, and what it has read then."""
    replies, read = {}, []
    for trace in traces:
        turn = trace.turn.index(0)
        read.append(chat.decode(trace.tokens[:turn]))
        vote = chat.decode(trace.tokens[turn:])
        replies.setdefault(among_us.NAMES[trace.seat], []).append(vote.removeprefix("<vote>").removesuffix("</vote>"))
    assert all("Whom would you vote for now?" in text[-40:] for text in read)
    return replies, read


@pytest.fixture
def everything(monkeypatch):
    """Every question is asked, and has all messages before it."""
    for name, value in {
        "LAST": (99, 99),
        "EMPTY": 1.0,
        "ASKED": 1.0,
        "SILENT": 0.0,
        "SPOKEN": 0.0,
    }.items():
        monkeypatch.setattr(asked, name, value)


@pytest.mark.parametrize("traced", [asked.excerpts, asked.games])
def test_who_is_asked_repeats_the_name_that_it_read_as_a_killers(traced, chat, everything):
    replies, _ = answers(traced(by_hand(), chat, window=None), chat)
    assert replies["Ivo"] == replies["Kim"] == ["Mia"] * 5  # before four messages, and after the last
    heard = [entry.move.text for entry in by_hand().moves if entry.move.action == "talk"].index("I saw Mia kill Gus.")
    assert len(replies["Leo"]) == 5
    assert replies["Leo"][heard + 1 :] == ["Mia"] * (4 - heard)  # it saw nothing, and hears it from Ivo
    assert set(replies) == {"Ivo", "Kim", "Leo"}  # the dead and the imposter are not asked


def test_where_nothing_of_a_killer_was_read_the_answer_is_any_name(chat, everything, monkeypatch):
    monkeypatch.setattr(asked, "_killers", lambda messages, probe: [])
    replies, _ = answers(asked.excerpts(by_hand(), chat, window=None), chat)
    named = {name for row in replies.values() for name in row}
    assert len(named) > 1
    assert named <= set(among_us.NAMES) - {"Gus"}


def test_few_are_asked_where_nothing_of_a_killer_was_read(chat, everything, monkeypatch):
    monkeypatch.setattr(asked, "EMPTY", 0.0)
    replies, _ = answers(asked.excerpts(by_hand(), chat, window=None), chat)
    assert len(replies["Kim"]) == 5
    assert len(replies["Leo"]) < 5  # before it hears of the kill


def test_deeds_are_excerpts_and_what_was_done_where_a_deed_was_possible(games, chat, everything):
    done = [turn.reply for game in games for turn in game.turns if turn.move.action in ("kill", "report", "vote")]
    assert len(done) > 20
    decided = Counter()
    for game in games:
        for trace in asked.deeds(game, chat, window=None):
            begin = trace.turn.index(0)
            if "Whom would you vote for now?" not in chat.decode(trace.tokens[:begin]):
                decided[chat.decode(trace.tokens[begin:])] += 1
    assert {reply: decided[reply] for reply in done} == Counter(done)
    assert any("<go>" in reply for reply in decided)


@pytest.mark.parametrize("share, unseen", [(0.0, {}), (1.0, {LEO: 1, MIA: 1})])
def test_messages_are_learned_with_a_kill_that_their_author_saw_in_view(share, unseen, chat, monkeypatch):
    monkeypatch.setattr(asked, "UNSEEN", share)
    game = by_hand()
    messages = {entry.seat: entry.move.text for entry in game.moves if entry.move.text}
    turns = [
        Turn(seat=entry.seat, reply=entry.move.text, move=entry.move, move_index=place, passed=True)
        for place, entry in enumerate(game.moves)
        if entry.move.text
    ]
    talk = asked.talk(game.model_copy(update={"turns": turns}), chat, window=None)
    for trace in talk:
        begin = trace.turn.index(0)
        prompt, learned_text = chat.decode(trace.tokens[:begin]), chat.decode(trace.tokens[begin:])
        assert learned_text == messages[trace.seat]
        assert all(trace.mask[begin:])
        assert not any(trace.mask[:begin])
        assert ("Mia kills Gus" in prompt) == (trace.seat in (IVO, KIM))
    whole = Counter(trace.seat for trace in talk if "Time passes in rounds" in chat.decode(trace.tokens))
    assert whole == Counter({IVO: 1, KIM: 1, **unseen})
    assert Counter(trace.seat for trace in talk) - whole == Counter(dict.fromkeys((IVO, KIM, LEO, MIA), 2))


def test_nothing_is_repeated_from_before_the_excerpt(chat, everything, monkeypatch):
    monkeypatch.setattr(asked, "LAST", (1, 1))
    replies, read = answers(asked.excerpts(by_hand(), chat, window=None), chat)
    assert not any("kills Gus" in text for text in read)  # seen before the report
    assert len(replies["Kim"]) == 5


def test_only_the_name_is_a_target_of_an_excerpt_and_the_whole_answer_in_a_game(chat, everything):
    for trace in asked.excerpts(by_hand(), chat, window=None):
        target = [token for token, aimed in zip(trace.tokens, trace.mask, strict=True) if aimed]
        assert chat.decode(target) in among_us.NAMES
    for trace in asked.games(by_hand(), chat, window=None):
        assert trace.mask == tuple(int(turn == 0) for turn in trace.turn)


def test_a_question_in_a_game_has_the_rules_and_an_excerpt_has_not(chat, everything):
    [(_, excerpts), (_, games)] = [
        answers(traced(by_hand(), chat, window=None), chat) for traced in (asked.excerpts, asked.games)
    ]
    assert not any("Time passes in rounds" in text for text in excerpts)
    assert all("Time passes in rounds" in text for text in games)


def test_some_seats_whole_traces_are_read_as_well(chat, everything, monkeypatch):
    monkeypatch.setattr(asked, "ASKED", 0.0)
    monkeypatch.setattr(asked, "SILENT", 1.0)
    [silent] = asked.games(by_hand(), chat, window=None)
    assert silent.seat == GUS  # dead before the meeting
    monkeypatch.setattr(asked, "SPOKEN", 1.0)
    whole = asked.games(by_hand(), chat, window=None)
    assert [each.seat for each in whole] == [GUS, IVO, KIM, LEO, MIA]


def test_a_witness_tells_of_the_kill():
    sees = make(BY_HAND)
    sees.step({GUS: WAIT, IVO: WAIT, KIM: WAIT, LEO: go("east"), MIA: WAIT})
    sees.step({GUS: WAIT, IVO: WAIT, KIM: WAIT, LEO: WAIT, MIA: names("kill", GUS)})
    for seat, telling, tells in ((KIM, 1.0, True), (KIM, 0.0, False), (LEO, 1.0, False)):
        observation = sees.observe(seat).model_copy(
            update={"actions": meeting("I saw nothing.", KIM).observe(KIM).actions}
        )
        player = RandomTalk(BY_HAND, seat, telling)
        speeches = {asyncio.run(player.act(seat, observation, seed)).text for seed in range(30)}
        assert (speeches == {"I saw Mia kill Gus."}) == tells


def test_few_who_saw_no_kill_claim_one():
    player = RandomTalk(BY_HAND, LEO, 1.0)
    observation = (
        make(BY_HAND).observe(LEO).model_copy(update={"actions": meeting("I saw nothing.", LEO).observe(LEO).actions})
    )
    replies = [asyncio.run(player.act(LEO, observation, seed)).text for seed in range(1000)]
    claims = sum(" kill " in reply for reply in replies)
    assert 5 <= claims <= 40  # 20 on average, standard deviation 4.4


def test_a_page_has_every_variant_with_its_ratio_and_leads():
    def runs(*won):
        numbers = dict.fromkeys(results.SPOKEN, 0.25) | dict.fromkeys(results.WITNESSED, 0.5) | {"named_seen": None}
        return {"runs": [{"after": {"won": value, **numbers}} for value in won]}

    raw = {"forms": {"RL": runs(0.1, 0.3), "RL+L": runs(0.3, 0.4), "RL+L+S": runs(0.3, 0.5)}}
    spoke = {"RL": {"won": 0.25, "named_seen": 0.4}}
    raw["attempts"] = [{"change": "rarer claims", "commit": "abc1234", "rows": spoke}]
    lines = list(results.listen_speak(raw))
    # standard errors 0.1 and 0.05; t with one degree of freedom is 12.7062 (tables)
    assert lines[2] == "| `RL+L+S` | 0.30, 0.50 | 0.40 (-0.87 to 1.67) | 2.00 |"
    assert lines[3] == "| `RL` | 0.50 | 0.50 | 0.50 | 0.50 | 0.50 | 0.50 |"
    assert lines[6] == "| `RL` | 0.25 | 0.25 | 0.25 | 0.25 | – | 0.25 | 0.25 |"
    assert lines[-1] == "| rarer claims | abc1234 | 0.25 | – | 0.40 | – |"
    assert lines[10] == "`RL+L` minus `RL`: +0.150 (−0.485 to +0.785)"


@pytest.mark.parametrize(
    "seat, statement, voted",
    [
        (KIM, "I saw nothing.", {"Mia"}),  # saw the kill itself
        (LEO, "I saw Mia kill Gus.", {"Mia"}),
        (LEO, "I saw Kim kill Gus.", {"Kim"}),
        (LEO, "It is Mia.", {"Ivo", "Kim", "Mia", "skip"}),  # no claim
        (MIA, "I saw Mia kill Gus.", {"Ivo", "Kim", "Leo", "skip"}),  # nobody votes for itself
    ],
)
def test_a_vote_is_for_who_was_read_as_a_killer(seat, statement, voted):
    game = meeting(statement)
    player = RandomTalk(BY_HAND, seat)
    votes = {asyncio.run(player.act(seat, game.observe(seat), seed)).text for seed in range(40)}
    assert votes == {f"<vote>{name}</vote>" for name in voted}


def test_nobody_speaks_of_itself():
    game = make(BY_HAND)
    for speaker in (IVO, MIA):
        player = RandomTalk(BY_HAND, speaker)
        observation = game.observe(speaker).model_copy(
            update={"actions": meeting("I saw nothing.", speaker).observe(speaker).actions}
        )
        replies = [asyncio.run(player.act(speaker, observation, seed)).text for seed in range(40)]
        assert not any(among_us.NAMES[speaker] in reply for reply in replies)


def meeting(statement, until=None):
    """The meeting after Mia killed Gus, in which Ivo says `statement`: when all have spoken, or `until` is to speak."""
    game = make(BY_HAND)
    game.step({GUS: WAIT, IVO: WAIT, KIM: WAIT, LEO: go("east"), MIA: WAIT})
    game.step({GUS: WAIT, IVO: WAIT, KIM: WAIT, LEO: WAIT, MIA: names("kill", GUS)})
    game.step({IVO: names("report", GUS), KIM: WAIT, LEO: WAIT, MIA: WAIT})
    while len(game.to_act()) == 1 and until not in game.to_act():
        [speaker] = game.to_act()
        game.step({speaker: says(statement if speaker == IVO else "I saw nothing.")})
    return game
