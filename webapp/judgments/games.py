"""The judged game of a target: a match, an episode of a run or an imported conversation, and its players.

Raises `BadInput` if the game can no longer be read, for example if its episode file was deleted, or if the present
rules do not allow its moves.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from training.errors import BadInput, IllegalMove
from training.games import Game, lookup, replay
from training.records import Episode, Scenario, SeatMove, Turn
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play.services import moves_of
from webapp.core import files
from webapp.core.transcripts import Transcript, transcript
from webapp.judgments.annotating.turns import TurnLine, turn_lines
from webapp.judgments.models import JudgedGame, Target, role_at, source_of
from webapp.runs.models import PlayedEpisode
from webapp.scenarios.models import StoredConversation

GameId = tuple[int | None, int | None, int | None]
"""The ids of a match, of an episode and of a conversation, all but one of them None."""
GAME_ID = ("match_id", "episode_id", "conversation_id")
"""The columns of a `GameId` in targets and judgments."""


@dataclass(frozen=True)
class GameRecord:
    """One finished game: `source` names it in exports, `players` are what sat at the seats (for results).

    `stored` is the episode as it was imported; None for a game of this site. `strategies` are what the seat's
    strategist wrote before a move, or its coach, by the move's place.
    """

    source: str
    scenario: Scenario
    moves: tuple[SeatMove, ...]
    players: tuple[str, ...]
    stored: Episode | None = None
    strategies: Mapping[int, str] = field(default_factory=dict)

    def replayed(self) -> Game:
        """Return the game after all its moves."""
        try:
            return replay(self.scenario, self.moves)
        except IllegalMove as error:
            raise BadInput(f"the present rules do not allow its moves: {error}") from error

    def turn_lines(self, *, hidden: bool = False) -> list[TurnLine]:
        """Return what annotators read of it, each turn with its move; `hidden` adds what only some saw."""
        try:
            return turn_lines(self.scenario, self.moves, hidden=hidden)
        except IllegalMove as error:
            raise BadInput(f"the present rules do not allow its moves: {error}") from error

    def turns_shown(self, *, hidden: bool = False) -> list[int]:
        """Return the moves that annotators read, which can be labelled as turns."""
        return [line.turn for line in self.turn_lines(hidden=hidden) if line.turn is not None]

    def transcript(self) -> Transcript:
        """Return what happened from the all-seeing view, with all private cards."""
        return transcript(self.replayed())

    def episode(self) -> Episode:
        """Return it as a conversation: no tokens, the returns and metrics that the game gives."""
        if self.stored is not None:
            return self.stored
        game = self.replayed()
        return Episode(
            scenario=self.scenario,
            moves=self.moves,
            turns=self._turns(),
            returns=dict(game.returns()),
            metrics=dict(game.metrics()),
            seat_metrics={seat: dict(metrics) for seat, metrics in game.seat_metrics().items()},
            roles=game.roles(),
        )

    def _turns(self) -> tuple[Turn, ...]:
        """Return the chosen moves as turns with their strategies; none in a game without strategies."""
        if not self.strategies:
            return ()
        chosen = [(place, entry) for place, entry in enumerate(self.moves) if entry.move.origin == "seat"]
        return tuple(
            Turn(
                seat=entry.seat,
                reply=entry.move.text,
                move=entry.move,
                move_index=place,
                passed=True,
                strategy=self.strategies.get(place, ""),
            )
            for place, entry in chosen
        )


def reference(game: JudgedGame) -> dict[str, JudgedGame]:
    """Return the field of a target or judgment that refers to this game."""
    if isinstance(game, Match):
        return {"match": game}
    return {"episode": game} if isinstance(game, PlayedEpisode) else {"conversation": game}


def scenario_of(game: JudgedGame) -> Scenario:
    """Return the scenario that was played; raise `BadInput` if an episode's file cannot be read."""
    if isinstance(game, Match):
        return Scenario.from_dict(game.scenario)
    return of_episode(game).scenario if isinstance(game, PlayedEpisode) else Scenario.from_dict(game.data["scenario"])


def label(game: JudgedGame) -> str:
    """Return a game's name for pages and messages."""
    if isinstance(game, Match):
        return f"match {game.pk}, {game.game_title}"
    if isinstance(game, PlayedEpisode):
        return f"run {game.run.name}, step {game.step}, no. {game.number}"
    name = lookup(game.scenario.game).title
    return f"{game.scenario.version}, {game.scenario.key}, conversation {game.position + 1}, {name}"


def seat_count(game: JudgedGame) -> int:
    """Return the number of seats of a game; raise `BadInput` if an episode's file cannot be read."""
    if isinstance(game, Match):
        return len(game.scenario["seats"])
    if isinstance(game, StoredConversation):
        return len(game.data["scenario"]["seats"])
    count = max(len(game.summary.get(name) or ()) for name in ("returns", "roles"))
    return count or len(of_episode(game).scenario.seats)


def roles(game: JudgedGame) -> list[str]:
    """Return the role of each seat; empty texts in a game without roles."""
    return [role_at(game, seat) for seat in range(seat_count(game))]


def seat_name(game: JudgedGame, seat: int) -> str:
    """Return the name of a seat in its game; raise `BadInput` if an episode's file cannot be read."""
    if isinstance(game, Match):
        return str(game.scenario["seats"][seat])
    if isinstance(game, StoredConversation):
        return str(game.data["scenario"]["seats"][seat])
    return _seats(game.file, game.offset, game.length).names[seat]


def game_of(target: Target) -> GameRecord:
    """Return the game that a target stands for."""
    return of(target.game)


def of(game: JudgedGame) -> GameRecord:
    """Return a match, an episode of a run or an imported conversation."""
    if isinstance(game, Match):
        return of_match(game)
    return of_episode(game) if isinstance(game, PlayedEpisode) else of_conversation(game)


def judgeable(target: Target) -> GameRecord:
    """Return the game for judging or export; raise `BadInput` if a player has withdrawn consent."""
    if target.conversation is not None and target.conversation.withdrawn_at is not None:
        raise BadInput("consent to its use was withdrawn")
    if target.match_id is not None and not Match.objects.exportable().filter(pk=target.match_id).exists():
        raise BadInput("a player did not agree to its use")
    return game_of(target)


def of_match(match: Match) -> GameRecord:
    """Return a match; models are named by their deployment, people together as `person`."""
    seats = match.seats.named().order_by("seat")
    players = tuple(player_name(seat) for seat in seats)
    places = {(step, seat): number for step, seat, number in match.moves.values_list("step", "seat", "number")}
    advised = match.advice.exclude(text="").values_list("step", "seat", "text")
    advice = {places[step, seat]: text for step, seat, text in advised if (step, seat) in places}
    strategies = advice | dict(match.moves.exclude(strategy="").values_list("number", "strategy"))
    moves = tuple(moves_of(match))
    return GameRecord(source_of(match), Scenario.from_dict(match.scenario), moves, players, strategies=strategies)


def player_name(seat: MatchSeat) -> str:
    """Return the player of a match's seat, as results name it."""
    return "person" if seat.kind == MatchSeat.Kind.PERSON else seat.who


def of_episode(row: PlayedEpisode) -> GameRecord:
    """Return an episode of a run, read from its file; a seat is named by run and sampling policy."""
    episode = Episode.from_dict(_read(row.file, row.offset, row.length)["episode"])
    players = tuple(policy_at(row, seat) for seat in range(len(episode.scenario.seats)))
    return GameRecord(source_of(row), episode.scenario, episode.moves, players)


def of_conversation(row: StoredConversation) -> GameRecord:
    """Return an imported conversation; its players are named by the dataset that it came with."""
    episode = Episode.from_dict(row.data)
    players = (str(row.scenario.version),) * len(episode.scenario.seats)
    return GameRecord(row.source, episode.scenario, episode.moves, players, episode)


def policy_at(row: PlayedEpisode, seat: int) -> str:
    """Return the player of an episode's seat, as results name it."""
    policy = _seats(row.file, row.offset, row.length).policies.get(seat, "")
    return f"{row.run.name}: {policy}" if policy else row.run.name


@dataclass(frozen=True)
class EpisodeSeats:
    """The name of each seat of an episode, and the policies of those that were sampled."""

    names: tuple[str, ...]
    policies: Mapping[int, str]


@functools.lru_cache(maxsize=20_000)
def _seats(file: str, offset: int, length: int) -> EpisodeSeats:
    """The seats of an episode, cached because episodes never change."""
    episode = _read(file, offset, length)["episode"]
    policies = {trace["seat"]: trace["policy"] for trace in episode["traces"]}
    return EpisodeSeats(tuple(episode["scenario"]["seats"]), policies)


def _read(file: str, offset: int, length: int) -> dict[str, Any]:
    try:
        return files.read_member(file, offset, length)
    except files.UNREADABLE as error:
        raise BadInput("the episode's file is gone or damaged", file) from error
