"""Who may use the table: members the lobby, who sits or hosts their matches, a guest the one match of the link."""

from typing import Any

from tests.trust.matrix.base import EVERYONE, MEMBERS, NOBODY, Route, SocketRoute
from tests.webapp.arena.conftest import negotiation
from training.games.base import FORFEIT
from training.records import Scenario
from webapp.arena.models import Match
from webapp.arena.play import hosting, services
from webapp.arena.setup import links, tables, waiting_room
from webapp.arena.watching import services as watching
from webapp.judgments.models import GameRating

ADMIN = ("admin",)


def _host() -> Any:
    from webapp.accounts.models import User

    return User.objects.get_or_create(username="the-host", role="player")[0]


def seated(owner: Any, *, consent: bool | None = True) -> Match:
    """A private match that somebody else hosts, at which the owner sits."""
    host = _host()
    places = [tables.Place(user=owner), tables.Place(user=host)]
    match = tables.create(host=host, start=tables.Start(negotiation()), places=places, consent=True)
    if consent is not None:
        waiting_room.answer_consent(match=match, user=owner, agreed=consent)
    return match


def running(owner: Any) -> dict[str, Any]:
    return {"match_id": seated(owner).pk}


def asked(owner: Any) -> dict[str, Any]:
    return {"match_id": seated(owner, consent=None).pk}


def over(owner: Any) -> dict[str, Any]:
    match = seated(owner)
    services.submit(match_id=match.pk, seat=0, step=0, move=FORFEIT)
    return {"match_id": match.pk}


def guessed(owner: Any) -> dict[str, Any]:
    """A game that is over, whose players the owner may see."""
    arguments = over(owner)
    GameRating.objects.create(by=Match.objects.get(pk=arguments["match_id"]).seats.get(user=owner), voted=False)
    return arguments


def hosted(owner: Any) -> dict[str, Any]:
    places = [tables.Place(user=_host()), tables.Place()]
    match = tables.create(host=owner, start=tables.Start(negotiation()), places=places)
    links.invite(match=match, number=1)  # a kept seat, so that the table is not open to everybody
    return {"match_id": match.pk}


def counting_down(owner: Any) -> dict[str, Any]:
    """A table whose seats are reserved, which counts down."""
    start = tables.Start(negotiation(), countdown=tables.Countdown(30))
    match = tables.create(host=owner, start=start, places=[tables.Place(user=_host()), tables.Place()])
    links.invite(match=match, number=1)
    return {"match_id": match.pk}


def hosted_seat(owner: Any) -> dict[str, Any]:
    return {**hosted(owner), "number": 1}


def waiting(owner: Any) -> dict[str, Any]:
    """A table with a free seat: every member may see it and sit down."""
    places = [tables.Place(user=owner), tables.Place()]
    return {"match_id": tables.create(host=_host(), start=tables.Start(negotiation()), places=places).pk}


def hosted_running(owner: Any) -> dict[str, Any]:
    """A private game in progress whose host plays in it."""
    host = _host()
    places = [tables.Place(user=host), tables.Place(user=owner)]
    match = tables.create(host=owner, start=tables.Start(negotiation()), places=places, consent=True)
    waiting_room.answer_consent(match=match, user=host, agreed=True)
    return {"match_id": match.pk}


def hosted_paused(owner: Any) -> dict[str, Any]:
    ids = hosted_running(owner)
    hosting.pause(match=Match.objects.get(pk=ids["match_id"]))
    return ids


def hosted_other(owner: Any) -> dict[str, Any]:
    return {**hosted_running(owner), "number": 0}


def stood_in(owner: Any) -> dict[str, Any]:
    match = seated(owner)
    hosting.replace(match=match, number=0)
    return {"match_id": match.pk}


def table_link(owner: Any) -> dict[str, Any]:
    match = Match.objects.get(pk=waiting(owner)["match_id"])
    return {"token": links.open_link(match=match)}


def link(owner: Any) -> dict[str, Any]:
    match = Match.objects.get(pk=hosted(owner)["match_id"])
    return {"token": links.invite(match=match, number=1)}


def watched(owner: Any) -> dict[str, Any]:
    """A game of two others that everybody may watch, hosted by the owner."""
    from webapp.accounts.models import User

    people = [User.objects.get_or_create(username=name, role="player")[0] for name in ("first", "second")]
    places = [tables.Place(user=person, consent=True) for person in people]
    match = tables.create(host=owner, start=tables.Start(negotiation()), places=places, visibility="public")
    return {"match_id": match.pk}


def watched_message(owner: Any) -> dict[str, Any]:
    """A message beside such a game."""
    arguments = watched(owner)
    message = watching.write(match=Match.objects.get(pk=arguments["match_id"]), user=_host(), text="well played")
    return {**arguments, "message_id": message.pk}


def alone_over(owner: Any) -> dict[str, Any]:
    """A task that the owner has played alone, at a table of somebody else."""
    start = tables.Start(Scenario(id="shop", game="shop", seats=("Ada",), seed=1))
    match = tables.create(host=_host(), start=start, places=[tables.Place(user=owner)])
    waiting_room.answer_consent(match=match, user=owner, agreed=True)
    services.submit(match_id=match.pk, seat=0, step=0, move=FORFEIT)
    return {"match_id": match.pk}


ROUTES = [
    Route("arena:lobby", MEMBERS),
    Route("arena:new", MEMBERS),
    Route("arena:new", MEMBERS, method="POST", data={"game": "negotiation", "consent": "yes"}),
    Route("arena:play-now", (), public=True, method="POST", make=lambda owner: {"game": "negotiation"}),
    Route("arena:alone", MEMBERS),
    Route(
        "arena:alone",
        MEMBERS,
        method="POST",
        data={"game": "shop", "task": "any", "player": "scripted:scripted", "consent": "yes"},
    ),
    Route("arena:accompany", MEMBERS, ADMIN, method="POST", make=alone_over, data={"player": "scripted:random"}),
    Route("arena:matches", MEMBERS),
    Route("arena:guest", (), public=True, make=link),
    Route("arena:guest", (), public=True, method="POST", make=link, data={"shown_name": "Zoe"}),
    Route("arena:join", (), public=True, make=table_link),
    Route("arena:join", (), public=True, method="POST", make=table_link, data={"shown_name": "Zoe"}),
    Route("arena:table", EVERYONE, ADMIN, make=running),
    Route(
        "arena:move", EVERYONE, ADMIN, method="POST", make=running, data={"step": "0", "action": "talk", "text": "hi"}
    ),
    Route("arena:coach", EVERYONE, ADMIN, method="POST", make=running, data={"turn": "0", "coach": "scripted"}),
    Route("arena:sit", MEMBERS, MEMBERS, method="POST", make=waiting),
    Route("arena:leave", EVERYONE, ADMIN, method="POST", make=asked),
    Route("arena:consent", EVERYONE, NOBODY, make=asked),
    Route("arena:consent", EVERYONE, NOBODY, method="POST", make=asked, data={"consent": "no"}),
    Route("arena:invite", MEMBERS, ADMIN, method="POST", make=hosted_seat),
    Route("arena:link", MEMBERS, ADMIN, method="POST", make=hosted),
    Route("arena:ready", EVERYONE, ADMIN, method="POST", make=asked),
    Route("arena:fill", MEMBERS, ADMIN, method="POST", make=hosted),
    Route("arena:stop-countdown", MEMBERS, ADMIN, method="POST", make=counting_down),
    Route("arena:pause", MEMBERS, ADMIN, method="POST", make=hosted_running),
    Route("arena:resume", MEMBERS, ADMIN, method="POST", make=hosted_paused),
    Route("arena:replace", MEMBERS, ADMIN, method="POST", make=hosted_other),
    Route("arena:kick", MEMBERS, ADMIN, method="POST", make=hosted_other),
    Route("arena:return", EVERYONE, ADMIN, method="POST", make=stood_in),
    Route("arena:close", MEMBERS, ADMIN, method="POST", make=hosted),
    Route("arena:watchers-write", MEMBERS, MEMBERS, method="POST", make=watched, data={"text": "well played"}),
    Route("arena:chat-reports", MEMBERS),
    Route("arena:watchers-report", MEMBERS, MEMBERS, method="POST", make=watched_message),
    Route("arena:watchers-dismiss", MEMBERS, ADMIN, method="POST", make=watched_message),
    Route("arena:watchers-delete", MEMBERS, ADMIN, method="POST", make=watched_message),
    Route("arena:watchers-mute", MEMBERS, ADMIN, method="POST", make=watched_message),
    Route("arena:result", EVERYONE, ADMIN, make=over),
    Route("arena:replay", EVERYONE, ADMIN, make=over),
    Route("arena:analysis", EVERYONE, ADMIN, make=over),
    Route("arena:embed", EVERYONE, ADMIN, make=over),
    Route("arena:picture", EVERYONE, ADMIN, make=over),
    Route("arena:animation", EVERYONE, ADMIN, make=over),
    Route("arena:beliefs", MEMBERS, ADMIN, method="POST", make=guessed),
    Route("arena:again", MEMBERS, ADMIN, method="POST", make=over),
]


def socket(owner: Any) -> str:
    return f"/ws/play/{seated(owner).pk}/"


def watchers_socket(owner: Any) -> str:
    return f"/ws/watchers/{watched(owner)['match_id']}/"


SOCKETS = [
    SocketRoute("ws/play/<int:match_id>/", socket, EVERYONE, ADMIN),
    SocketRoute("ws/watchers/<int:match_id>/", watchers_socket, MEMBERS, MEMBERS),
]
