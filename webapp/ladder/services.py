"""The fit of a game's ladder: computed from the log, and recomputed when the log has changed."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.models.functions import Now

from training.evaluate import ratings
from training.evaluate.ratings import Ladder
from webapp.ladder import log, tallies
from webapp.ladder.models import Fit, Standing
from webapp.ladder.tallies import Tally


def stale(game: str) -> bool:
    """Whether the counting matches have changed since the last fit."""
    matches = log.numbers(game)
    last = Fit.objects.filter(game=game).values_list("seen", flat=True).first()
    return last != log.seen(matches) if last else bool(matches)


@dataclass(frozen=True)
class ComputedLadder:
    """A ladder computed from the log, not stored yet."""

    seen: str
    ladder: Ladder
    tallies: dict[str, Tally]


def compute(game: str) -> ComputedLadder:
    """Compute the ladder of a game from its current log, without storing it."""
    matches = log.numbers(game)
    games = log.read(matches)
    return ComputedLadder(log.seen(matches), ratings.fit(games), tallies.count(games))


@transaction.atomic
def refit(*, game: str) -> Fit | None:
    """Refit a game whose log has changed and replace its ladder; None if another process is fitting it."""
    Fit.objects.get_or_create(game=game)
    fit = Fit.objects.select_for_update(skip_locked=True).filter(game=game).first()
    if fit is None or not stale(game):
        return fit
    computed = compute(game)
    fit.standings.all().delete()
    Standing.objects.bulk_create(standings(computed, fit))
    for name, value in _whole(computed).items():
        setattr(fit, name, value)
    fit.fitted_at = Now()
    fit.save()
    fit.refresh_from_db()
    return fit


def _whole(computed: ComputedLadder) -> dict[str, object]:
    """The fields of a fit."""
    ladder = computed.ladder
    return {
        "log_digest": ladder.digest,
        "seen": computed.seen,
        "matches": ladder.matches,
        "seats": {str(number): interval.to_dict() for number, interval in ladder.seats.items()},
        "roles": {role: interval.to_dict() for role, interval in ladder.roles.items()},
    }


def standings(computed: ComputedLadder, fit: Fit) -> list[Standing]:
    """The rows of a ladder, best first, not stored yet. Equal ratings share a rank."""
    rows: list[Standing] = []
    best = [rating.points.mean for rating in computed.ladder.ratings if rating.points is not None]
    for rating in computed.ladder.ratings:
        kind, _, player = rating.who.partition(":")
        identifier, _, voice = player.partition("+")
        tally = computed.tallies[rating.who]
        points = rating.points
        rows.append(
            Standing(
                fit=fit,
                who=rating.who,
                kind=kind,
                user_id=int(identifier) if kind == Standing.Kind.PERSON else None,
                deployment_id=int(identifier) if kind == Standing.Kind.MODEL else None,
                speaker_id=int(voice) if kind == Standing.Kind.MODEL and voice.isdigit() else None,
                rank=best.index(points.mean) + 1 if points is not None else None,
                rating=points.mean if points is not None else None,
                low=points.low if points is not None else None,
                high=points.high if points is not None else None,
                why=rating.why,
                games=tally.games,
                won=tally.won,
                roles=tally.roles,
                against=tally.against,
                played=tally.played,
                moves=tally.moves,
                **{f"{origin}_moves": number for origin, number in tally.forced_moves.items()},
                **{f"{origin}_games": number for origin, number in tally.forced_games.items()},
            )
        )
    return rows


def differences(game: str) -> list[str]:
    """The players and fields of the fit whose stored values differ from the log."""
    fit = Fit.objects.filter(game=game).first()
    computed = compute(game)
    if fit is None:
        return sorted(computed.tallies)
    stored = {row.who: _values(row) for row in fit.standings.all()}
    expected = {row.who: _values(row) for row in standings(computed, fit)}
    players = sorted(who for who in stored.keys() | expected.keys() if stored.get(who) != expected.get(who))
    return players + [name for name, value in _whole(computed).items() if getattr(fit, name) != value]


def _values(row: Standing) -> dict[str, object]:
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if field.name != "id"}
