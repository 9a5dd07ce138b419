"""What games of Among Us show of listening and speaking: wins, beliefs around discussions, and what messages name."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from training.games import advance, make
from training.games.among_us.script.memory import remember
from training.records import Episode, Move, Seat

_OF_GAMES = {"won": "crew_won", "ejected": "end_ejected", "tasks": "end_tasks", "meetings": "meetings"}
_OF_SEATS = ("votes_right", "silent", "waits")


def numbers(games: Sequence[tuple[Episode, Collection[Seat]]]) -> dict[str, float | None]:
    """Return shares and means over games, and over the given seats of each; None where there is nothing to count.

    `before` and `after` are the mean probabilities of the truth before and after a discussion. `named` is the share of
    messages that name the imposter, `named_seen` that of speakers who saw it kill. `witnessed` is the share of games
    with a discussion in which a crewmate spoke who had seen the imposter kill, whichever policy played it;
    `won_witnessed` and `won_unwitnessed` are the crew's wins in those and in the other games with a discussion.
    """
    discussions = [each for episode, seats in games for each in _discussions(episode, seats)]
    spoken = [each for episode, seats in games for each in _messages(episode, seats)]
    discussed = [
        (any(seen for _, seen in heard), episode.metrics["crew_won"])
        for episode, _ in games
        if (heard := list(_messages(episode, _crew(episode))))
    ]
    of_seats = [episode.seat_metrics[seat] for episode, seats in games for seat in seats]
    return {
        **{name: fmean(episode.metrics[metric] for episode, _ in games) for name, metric in _OF_GAMES.items()},
        **{name: _mean([each[name] for each in of_seats if name in each]) for name in _OF_SEATS},
        "before": _mean([before for before, _ in discussions]),
        "after": _mean([after for _, after in discussions]),
        "named": _mean([named for named, _ in spoken]),
        "named_seen": _mean([named for named, seen in spoken if seen]),
        "seen": _mean([seen for _, seen in spoken]),
        "witnessed": _mean([seen for seen, _ in discussed]),
        "won_witnessed": _mean([won for seen, won in discussed if seen]),
        "won_unwitnessed": _mean([won for seen, won in discussed if not seen]),
    }


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _discussions(episode: Episode, seats: Collection[Seat]) -> Iterator[tuple[float, float]]:
    """Yield each seat's probability of the truth before and after each discussion: probes one move apart are of one."""
    for seat in seats:
        row = [belief for belief in episode.beliefs if belief.seat == seat and belief.truth]
        firsts = [at for at in range(len(row)) if at == 0 or row[at].after != row[at - 1].after + 1]
        for first, end in pairwise([*firsts, len(row)]):
            yield row[first].right, row[end - 1].right


def _crew(episode: Episode) -> list[Seat]:
    return [seat for seat, role in enumerate(episode.roles) if role == "crewmate"]


def _messages(episode: Episode, seats: Collection[Seat]) -> Iterator[tuple[bool, bool]]:
    """Yield for each message whether it names the imposter, and whether its speaker saw the imposter kill."""
    game, names = make(episode.scenario), episode.scenario.seats
    imposter = names[episode.roles.index("imposter")]
    pending: dict[Seat, Move] = {}
    for entry in episode.moves:
        if entry.move.action == "talk" and entry.move.origin == "seat" and entry.seat in seats:
            seen = imposter in remember(game.observe(entry.seat), entry.seat, names).killers
            yield imposter in entry.move.text, seen
        pending = advance(game, pending, entry)
