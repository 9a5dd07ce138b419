"""Trust 1 for every game: neither what a model is asked at the table nor what a model would learn from an export of a
seat's game depends on what that seat may not know.
"""

from dataclasses import dataclass

import pytest

from tests.chat_tokenizers import tokenizer
from tests.games.play import random_move, reply
from tests.games.worlds import WORLDS
from tests.stub import Stub
from tests.trust.seated import match_with_a_model
from training.dataset import Conversation, DatasetLine, parse_line
from training.games import make
from training.records import Episode, Move, SeatMove
from training.run_sections import SpeakerSection
from training.seeding import derive
from training.text.conversations import traces
from training.text.parsing import parse
from training.text.template import ChatTokenizer
from webapp.arena.play import services
from webapp.serving.models import Deployment, RemoteModel
from worker.play import play

pytestmark = pytest.mark.usefixtures("unpaced")
STEPS = 10
SEED = 11


def pairs(most):
    """So many of each game's worlds that a seat must not tell apart, taken evenly."""
    params = []
    for game, worlds in WORLDS.items():
        seats = [pair for pair in worlds if pair.viewer >= 0]
        chosen = seats[:: -(-len(seats) // most)]
        params += [pytest.param(pair, id=f"{game}-{pair.name}-{pair.viewer}") for pair in chosen]
    return params


@dataclass
class Step:
    """A joint step in both worlds, and the reply that is the viewer's move; empty if it does not act."""

    reply: str
    moves: dict[int, Move]
    across: dict[int, Move]


def played(pair, chance):
    """Up to `STEPS` random steps of both worlds, until the rules reveal what was hidden; the tool acts by default."""
    a, b = (make(scenario.with_seed(SEED)) for scenario in (pair.a, pair.b))
    steps = []
    while a.to_act() and not pair.until(a) and len(steps) < STEPS:
        moves = {seat: random_move(a, seat, derive(chance, seat, len(steps))) for seat in sorted(a.to_act())}
        if (tool := a.scenario.tool_seat) in moves:
            moves[tool] = a.default(tool)
        written = ""
        if (seat := pair.viewer) in moves:
            written = reply(a.scenario, seat, a.observe(seat), derive(chance, seat, len(steps)))
            moves[seat], _ = parse(written, a.observe(seat))
        steps.append(Step(written, moves, pair.across(a, b, moves)))
        a.step(moves)
        b.step(steps[-1].across)
    return steps


def spoken(pair):
    """A play of both worlds in which the viewer soon has something to say."""
    plays = (played(pair, chance) for chance in range(30))
    return next(steps for steps in plays if any(step.reply for step in steps))


def play_step(match, viewer, moves, written, stub):
    """Make one step's moves, the model's after one refused reply; return what its server was asked, seeds aside."""
    before = len(stub.requests)
    step = services.fold(match).step
    for seat, move in sorted(moves.items()):
        if seat == viewer:
            stub.script("<nonsense>", written)
            play(match.due.get(seat=seat).pk)
        elif seat in services.fold(match).due():  # where nothing is searched, the table moves for the tool seat
            services.submit(match_id=match.pk, seat=seat, step=step, move=move)
    return [{**request.body, "seed": 0} for request in stub.requests[before:]]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("pair", pairs(2))
def test_what_is_hidden_changes_nothing_that_a_model_is_asked(pair, stub, deployment):
    first, second = (
        match_with_a_model(scenario.with_seed(SEED), pair.viewer, deployment) for scenario in (pair.a, pair.b)
    )
    asked = 0
    for step in spoken(pair):
        requests = play_step(first, pair.viewer, step.moves, step.reply, stub)
        assert requests == play_step(second, pair.viewer, step.across, step.reply, stub)
        asked += len(requests)
    assert asked >= 2, "each turn of the model is refused once"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("pair", pairs(1))
def test_what_is_hidden_changes_nothing_that_a_strategist_and_its_speaker_are_asked(pair, admin, monkeypatch):
    with Stub("Strategy: wait") as adviser, Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", f"{adviser.url},{stub.url}")
        strategist, speaker = (
            Deployment.objects.create(
                remote=RemoteModel.objects.create(name=server.url, address=server.url, model="m", added_by=admin),
                state=Deployment.State.READY,
            )
            for server in (adviser, stub)
        )
        voices = {"form": SpeakerSection(source="m").to_dict(), "speaker": speaker}
        asked, advised = [], []
        for scenario, world in ((pair.a, "moves"), (pair.b, "across")):
            match = match_with_a_model(scenario.with_seed(SEED), pair.viewer, strategist, **voices)
            steps = spoken(pair)
            asked.append([play_step(match, pair.viewer, getattr(step, world), step.reply, stub) for step in steps])
            advised.append([{**request.body, "seed": 0} for request in adviser.requests])
            adviser.requests.clear()
    assert asked[0] == asked[1]
    assert advised[0] == advised[1]
    assert len(advised[0]) >= 2, "each turn is refused once, and has two strategies"


@pytest.mark.parametrize("pair", pairs(5))
def test_what_is_hidden_changes_nothing_that_is_learned_from_a_seats_export(pair):
    steps = spoken(pair)
    chat = ChatTokenizer(tokenizer("chatml"))
    learned = []
    for scenario, world in ((pair.a, "moves"), (pair.b, "across")):
        joint = [sorted(getattr(step, world).items()) for step in steps]
        moves = [SeatMove(seat=seat, move=move) for entries in joint for seat, move in entries]
        episode = Episode(scenario=scenario.with_seed(SEED), moves=moves)
        line = DatasetLine(scenario=scenario, conversations=(Conversation(source="a match", episode=episode),))
        (read,) = parse_line(line.dumps(), "export").conversations
        learned.append(traces(read.episode, chat, seats=[pair.viewer]))
    assert learned[0] == learned[1]
    assert sum(learned[0][0].mask) > 0
