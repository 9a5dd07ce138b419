"""Access to a match: its viewpoints, when the players behind the seats are revealed, and the chat of spectators."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from training.games import lookup
from training.labels.codebooks import Codebook
from training.records import ALL, SPECTATOR, Seat, Viewer
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.play import pace, services


def own_seat(match: Match, user: User) -> MatchSeat | None:
    """The seat of this user, or None."""
    return match.seats.filter(user=user).first()


def viewer_of(match: Match, user: User) -> Viewer:
    """The viewpoint of this user: their seat, or the spectator's."""
    seat = own_seat(match, user)
    return SPECTATOR if seat is None else seat.seat


def viewpoints(match: Match, user: User) -> list[Viewer]:
    """The viewpoints that this user may choose.

    During a match this is only their own. Afterwards its players, host, assigned annotators and admins may choose any;
    for others the visibility of the match decides.
    """
    if not match.over:
        return [viewer_of(match, user)]
    everything = [ALL, SPECTATOR, *range(len(services.scenario_of(match).seats))]
    involved = match.host_id == user.pk or user.is_admin or own_seat(match, user) is not None
    if involved or match.visibility == Match.Visibility.PUBLIC:
        return everything
    assigned = Match.objects.assigned_to(user).filter(pk=match.pk).exists()
    return everything if assigned else [SPECTATOR]


def players_revealed(match: Match, user: User) -> bool:
    """Whether this user may see who played the other seats.

    The game must be over, and the user must have rated it (as a player) or judged it (as an assigned annotator).
    """
    return match.over and not Match.objects.filter(pk=match.pk).unrevealed_to(user).exists()


def of_experiment(match: Match, user: User) -> bool:
    """Whether this user plays the match in an experiment, whose own pages follow the game."""
    return bool(match.shown_as) and own_seat(match, user) is not None


def sees_analysis(match: Match, user: User) -> bool:
    """Whether this user may see the analysis of the moves: once the match is over, if they may see everything in it.

    Where nothing was hidden, that is everybody who may see the match, but for the players of an experiment.
    """
    open_game = not lookup(match.game).hidden
    return match.over and not of_experiment(match, user) and (open_game or ALL in viewpoints(match, user))


def shows_judgments(match: Match, user: User) -> bool:
    """Whether the replay shows judgments to this user: to annotators who may see everything, including the players.

    Values and reasons reveal hidden information, and often which players are models.
    """
    return user.is_annotator and ALL in viewpoints(match, user) and players_revealed(match, user)


def chose_seats(match: Match, user: User) -> bool:
    """Whether this user knows the players because they chose them."""
    return pace.knows_seats(match, user.pk)


def asks_about_others(match: Match, seat: Seat, codebook: Codebook | None, *, knows: bool) -> bool:
    """Whether the player of `seat` is asked about the others after the game.

    A player who does not know the players is asked who they were; everybody is asked how they played, where the game's
    `codebook` has a question about one of their roles.
    """
    roles = match.roles or [""] * len(match.scenario["seats"])
    rated = codebook is not None and any(codebook.asks(role) for other, role in enumerate(roles) if other != seat)
    return rated or not knows


@dataclass(frozen=True)
class MatchEntry:
    """A match in a list: each seat, with whether its player may be shown to this user."""

    match: Match
    seats: Sequence[tuple[MatchSeat, bool]]


def lines(matches: Iterable[Match], user: User) -> list[MatchEntry]:
    """Matches (loaded `with_seats`) as lists show them to this user."""
    listed = list(matches)
    unrevealed = set(
        Match.objects.filter(pk__in=[match.pk for match in listed]).unrevealed_to(user).values_list("pk", flat=True)
    )

    def may_be_named(match: Match, seat: MatchSeat) -> bool:
        revealed = match.over and match.pk not in unrevealed
        sits = match.host_id != user.pk and any(other.user_id == user.pk for other in match.seats.all())
        free = seat.kind == MatchSeat.Kind.OPEN and not sits and not match.hides_seats  # filled later: a person's
        return revealed or chose_seats(match, user) or seat.user_id == user.pk or free

    return [MatchEntry(match, [(seat, may_be_named(match, seat)) for seat in match.seats.all()]) for match in listed]


# --- the chat of spectators ---


def may_read_chat(match: Match, user: User) -> bool:
    """Whether this user watches the match, or its replay, and is none of its players.

    Players never read it: not from another tab, as host or as administrator, nor after they were sent away, nor when
    the game is over. Guests see only their own matches. Matches of experiments and solo games have no chat.
    """
    if user.is_guest or match.shown_as or match.task or match.state == Match.State.OPEN:
        return False
    if match.seats.filter(user=user).exists() or match.former_players.filter(user=user).exists():
        return False
    if match.over and Match.objects.filter(pk=match.pk).unrevealed_to(user).exists():  # messages may say who plays
        return False
    return Match.objects.visible_to(user).filter(pk=match.pk).exists()


def is_muted(match: Match, user: User) -> bool:
    """Whether a moderator has muted this user in the match's chat."""
    return match.chat_mutes.filter(user=user).exists()


def may_moderate_chat(match: Match, user: User) -> bool:
    """Whether this user, who may read the chat, may delete messages and mute their authors: hosts, administrators."""
    return user.is_admin or match.host_id == user.pk
