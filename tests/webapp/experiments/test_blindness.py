"""What a participant can find out before the debriefing: nothing on the kind of the others, no code, no other arm.

A world in which a person sits opposite and one in which a script does must give the same pages, apart from numbers and
random texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from tests.webapp.api.calling import Caller
from tests.webapp.experiments import making
from training.errors import BadInput
from webapp.accounts.models import User
from webapp.arena.setup import tables
from webapp.experiments import design, participation
from webapp.experiments.models import Experiment, Participant

pytestmark = pytest.mark.django_db
LISTS = ("/", "/play/", "/play/matches/?of=me", "/play/matches/", "/search/?q=negotiation", "/ladder/?game=negotiation")


def addresses_of_a_match(pk: int) -> list[str]:
    """Every address of the site whose only variable is the number of a match, but for those of its API."""

    def walk(entries: list[URLPattern | URLResolver], before: str) -> list[str]:
        paths = []
        for entry in entries:
            path = before + str(entry.pattern)
            paths += walk(entry.url_patterns, path) if isinstance(entry, URLResolver) else [path]
        return paths

    paths = walk(get_resolver().url_patterns, "/")
    filled = [re.sub(r"(play|matches|rate)/<int:\w+>", rf"\1/{pk}", path) for path in paths]
    return sorted({path for path in filled if f"/{pk}/" in path and "<" not in path and "(" not in path})


def normalised(page: str, names: list[str]) -> str:
    """A page without what differs from one load to the next: tokens, numbers, times, account names."""
    for name in names:
        page = page.replace(name, "NAME")
    page = re.sub(r"[\w-]{30,}", "TOKEN", page)
    page = re.sub(r'data-part="[0-9a-f]+"', "PART", page)
    page = re.sub(r"<time [^>]*>[^<]*</time>", "TIME", page)
    return re.sub(r"\d+", "0", page)


def seated(owner: User, person: Callable[..., User], players: list[str], number: int) -> tuple[Participant, User]:
    """A member at a table of an open experiment whose arm says “a person” of everybody."""
    made = making.experiment(owner, debriefing="It was a script.", title="A study")
    making.arm(made, "only", players, shown_as="person")
    making.question(made, "trust")
    design.open_experiment(experiment=made)
    member = person("player", f"member-{number}")
    participant = participation.begin(experiment=made, user=member, origin=making.NOTHING, may_reuse=True)
    if players == making.PAIR:
        making.come(made)
    participant = participation.heartbeat(participant=participant, visible=True)
    assert participant.stage == "play"
    return participant, member


def pages_of(participant: Participant, member: User, caller: Caller, when: str) -> dict[str, str]:
    """Every page and answer of the API that may show the participant's match, by what it is asked for."""
    assert participant.group is not None
    pk, token = participant.group.match_id, participant.experiment.token
    client = Client()
    client.force_login(member)
    asked = dict.fromkeys((*addresses_of_a_match(pk), *LISTS, f"/experiments/take/{token}/"), client)
    asked |= {f"/api/v1/{path}": caller.client for path in (f"matches/{pk}", "matches")}
    answers = {path: browser.get(path) for path, browser in asked.items()}
    return {
        f"{when} {re.sub(rf'/{pk}(?=/|$)', '/N', path.replace(token, 'TOKEN'))}": normalised(
            f"{answer.status_code} {answer.get('Location', '')} {answer.content.decode()}", [member.username, token]
        )
        for path, answer in answers.items()
    }


def test_no_page_differs_by_who_sits_opposite(
    researcher: User, person: Callable[..., User], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "new_seed", lambda: 11)
    worlds: list[dict[str, str]] = []
    for number, players in enumerate((making.PAIR, making.ALONE)):
        participant, member = seated(researcher, person, players, number)
        caller = Caller(member)
        pages = pages_of(participant, member, caller, "playing")
        making.end_match(participant)
        worlds.append(pages | pages_of(participant, member, caller, "over"))
    first, second = worlds
    assert first.keys() == second.keys()
    assert {"playing /play/N/", "over /play/N/replay/", "over /judgments/rate/N/"} <= first.keys()
    assert [place for place in first if first[place] != second[place]] == []
    assert not any("scripted" in page for place, page in second.items() if "N/" in place)


def test_no_page_on_the_way_holds_a_code(researcher: User, client: Client) -> None:
    codes = {"code_completed": "DONE-77", "code_waited": "WAIT-77", "code_attention": "FAIL-77"}
    made = making.experiment(researcher, completion_url="https://app.example/done?cc={code}", **codes)
    making.arm(made, "only")
    making.question(made, "age", part="before", kind="number", options=[])
    making.question(made, "trust")
    design.open_experiment(experiment=made)
    link = f"/experiments/take/{made.token}/"
    pages = [client.get(link)]
    client.post(f"{link}begin/", {"agree": "yes"})
    pages.append(client.get(link))
    client.post(f"{link}answer/", {"part": "before", "q-age": "33"})
    pages += [client.get(link), client.post(f"{link}heartbeat/", {"stage": "wait", "visible": "1"})]
    participant = Participant.objects.get()
    assert participant.group is not None
    pages.append(client.get(f"/play/{participant.group.match_id}/"))
    client.post(f"{link}finish/")  # too early: nothing happens
    making.end_match(participant)
    pages += [client.get(f"/play/{participant.group.match_id}/"), client.get(link)]
    client.post(f"{link}finish/")
    client.post(f"{link}answer/", {"part": "after", "q-trust": "2"})
    pages.append(client.get(link))
    assert "About this study" in pages[-1].content.decode()
    for page in pages:
        text = page.content.decode()
        assert not any(code in text for code in (*codes.values(), "app.example"))
    client.post(f"{link}finish/")
    text = client.get(link).content.decode()
    assert "DONE-77" in text
    assert "WAIT-77" not in text


def test_nobody_acts_for_another_participant(researcher: User) -> None:
    """The address is the same for all of them: what it changes is the participation of the session alone."""
    made = making.experiment(researcher)
    making.arm(made, "only", making.PAIR)
    making.question(made, "age", part="before", kind="number", options=[])
    design.open_experiment(experiment=made)
    experiment = Experiment.objects.get(pk=made.pk)
    victim = making.come(experiment, "P-1")
    link, stranger = f"/experiments/take/{experiment.token}/", Client()
    stranger.post(f"{link}begin/?PROLIFIC_PID=P-2", {"agree": "yes"})
    stranger.post(f"{link}answer/?PROLIFIC_PID=P-1&participant={victim.pk}", {"part": "before", "q-age": "99"})
    stranger.post(f"{link}withdraw/?PROLIFIC_PID=P-1&participant={victim.pk}")
    victim.refresh_from_db()
    assert (victim.stage, victim.answers, victim.outcome) == ("before", {}, "")
    assert sorted(experiment.participants.values_list("outcome", flat=True)) == ["", "withdrawn"]


@pytest.mark.django_db(transaction=True)
def test_one_id_in_two_windows_at_once_takes_part_once(researcher: User) -> None:
    experiment = making.opened(researcher, making.PAIR)

    def agree(_: int) -> str:
        try:
            making.come(experiment, "P-1")
        except BadInput as error:
            return error.why
        finally:
            connection.close()
        return ""

    with ThreadPoolExecutor(4) as pool:
        refusals = list(pool.map(agree, range(4)))
    assert sorted(bool(why) for why in refusals) == [False, True, True, True]
    assert experiment.participants.count() == 1
