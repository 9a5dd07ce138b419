"""The judged game behind a target, whether a match or an episode of a run: what it was, and who sat where.

Raises `BadInput` where the game cannot be read any more, such as a deleted episode file.
"""

from __future__ import annotations

from dataclasses import dataclass

from training.errors import BadInput
from training.games import replay
from training.records import ALL, Episode, Scenario, SeatMove
from webapp.arena.models import Match, MatchSeat
from webapp.arena.services import moves_of
from webapp.judgments.models import Target
from webapp.runs import files
from webapp.runs.models import PlayedEpisode


@dataclass(frozen=True)
class JudgedGame:
    """One finished game: `source` names it in exports, `players` are what sat at the seats (for results)."""

    source: str
    scenario: Scenario
    moves: tuple[SeatMove, ...]
    players: tuple[str, ...]

    def lines(self) -> list[dict[str, str]]:
        """Return who said what, as one who sees everything reads it; the first line holds both briefs."""
        names = self.scenario.seats
        messages = replay(self.scenario, self.moves).observe(ALL).messages
        return [{"who": "" if m.author is None else names[m.author], "text": m.text} for m in messages]

    def episode(self) -> Episode:
        """Return it as a conversation: no tokens, the returns and metrics that the game gives."""
        game = replay(self.scenario, self.moves)
        return Episode(
            scenario=self.scenario, moves=self.moves, returns=dict(game.returns()), metrics=dict(game.metrics())
        )


def game_of(target: Target) -> JudgedGame:
    """Return the game that a target stands for."""
    if target.match is not None:
        return of_match(target.match)
    assert target.episode is not None, "a constraint of the table"
    return of_episode(target.episode)


def of_match(match: Match) -> JudgedGame:
    """Return a match; models are named by their deployment, people together as `person`."""
    seats = match.seats.select_related("deployment__checkpoint", "deployment__remote").order_by("seat")
    players = tuple("person" if seat.kind == MatchSeat.Kind.PERSON else seat.who for seat in seats)
    return JudgedGame(f"match:{match.pk}", Scenario.from_dict(match.scenario), tuple(moves_of(match)), players)


def of_episode(played: PlayedEpisode) -> JudgedGame:
    """Return an episode of a run, read from its file; a seat is named by run and sampling policy."""
    try:
        record = files.read_member(played.file, played.offset, played.length)
    except (OSError, ValueError, EOFError) as error:
        raise BadInput("the episode's file is gone", played.file) from error
    episode = Episode.from_dict(record["episode"])
    source = f"run:{played.run_id}/{played.step}/{played.number}"
    policies = {trace.seat: trace.policy for trace in episode.traces}
    players = tuple(_policy(played, policies.get(seat, "")) for seat in range(len(episode.scenario.seats)))
    return JudgedGame(source, episode.scenario, episode.moves, players)


def _policy(played: PlayedEpisode, policy: str) -> str:
    return f"{played.run.name}: {policy}" if policy else played.run.name
