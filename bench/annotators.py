"""Scripted annotators with known error rates, who work as people and programs do: by the site's forms, and by its API.

A target's true labels are drawn once; each annotator states the opposite of a share of them. The owner adjudicates
through the pages: they take the label of an annotator who is right, and else state their own with a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from importlib import import_module
from typing import Any, Literal

from training.errors import ParleyError
from training.seeding import rng

TARGET = re.compile(r'name="target" value="(\d+)"')
QUESTION = re.compile(r'name="value-(\w+)" value="([01])"')
CELL = re.compile(r'name="(row-(\w+):(\d*)[:\d]*)" value="(\d+)" aria-label="([^"]*)"')
FOLLOWING = re.compile(r'href="([^"]*/decisions/\d+/)"')
COMMENTS = ("", "", "", "=1+1, “quoted”, <b>kept</b>", "two\tcolumns\nno, one line; ünïcode 🐺")
"""Texts that formats must carry as they are; the field of the page is one line, the API takes any text."""
UNSCORED, UNSURE = 0.03, 0.1
"""Shares of judgments."""

Way = Literal["pages", "api"]
Truth = Callable[[int, str], bool]
"""The true value of a label type of a target."""


@dataclass
class Annotator:
    """One person with an error rate, who judges what the queue offers: see `judge`."""

    user: Any
    error: float
    truth: Truth
    seed: int
    done: dict[Way, int] = field(default_factory=lambda: {"pages": 0, "api": 0})

    def __post_init__(self) -> None:
        test = import_module("django.test")
        self._pages = test.Client()
        self._pages.force_login(self.user)
        _, key = import_module("webapp.accounts.services").create_key(user=self.user, name="bench")
        self._api = test.Client(headers={"Authorization": f"Bearer {key}"})

    def judge(self, queue: int, way: Way) -> bool:
        """Judge the next target; False if nothing is offered any more."""
        judged = self._by_page(queue) if way == "pages" else self._by_api(queue)
        self.done[way] += judged
        return judged

    def _by_page(self, queue: int) -> bool:
        address = f"/judgments/queues/{queue}/annotate/"
        page = read(self._pages.get(address), address)
        offered = TARGET.search(page)
        if offered is None:
            return False
        target = int(offered[1])
        answer = self._answer(target, {name for name, _ in QUESTION.findall(page)})
        chance = rng(self.seed, "work", self.user.pk, target)
        sent = {"target": str(target), "seconds": str(chance.randint(5, 90))}
        if answer is None:
            sent |= {"unscored": "1", "reason": "cannot be told from what it says"}
        else:
            sent |= {f"value-{name}": str(int(value)) for name, value in answer.items()}
            sent["reason"] = " ".join(chance.choice(COMMENTS).split())
        if chance.random() < UNSURE:
            sent["unsure"] = "1"
        read(self._pages.post(address, sent), address, redirect=True)
        return True

    def _by_api(self, queue: int) -> bool:
        offered = self._api.get("/api/v1/judgments/targets", {"queue": queue, "limit": 1})
        items = answered(offered)["items"]
        if not items:
            return False
        target, seat = items[0]["id"], items[0]["seat"]
        answer = self._answer(target, {each["name"] for each in items[0]["label_types"]})
        if answer is None:
            body: dict[str, Any] = {"labels": None, "reason": "cannot be told from what it says"}
        else:
            comment = rng(self.seed, "work", self.user.pk, target).choice(COMMENTS)
            labels = [{"label": name, "value": value, "seat": seat} for name, value in answer.items()]
            body = {"labels": labels, "reason": comment}
        answered(self._api.post("/api/v1/judgments", {"target": target, **body}, content_type="application/json"), 201)
        return True

    def _answer(self, target: int, names: set[str]) -> dict[str, bool] | None:
        """Return what this annotator says of a target, None if they cannot tell."""
        chance = rng(self.seed, "answer", self.user.pk, target)
        if chance.random() < UNSCORED:
            return None
        return {name: self.truth(target, name) != (chance.random() < self.error) for name in sorted(names)}


def adjudicate(client: Any, queue: int, truth: Truth) -> Iterator[int]:
    """Decide every target on which annotators disagree, from one page to the next; yield the targets."""
    listed = f"/judgments/queues/{queue}/decisions/"
    first = FOLLOWING.search(read(client.get(listed), listed))
    address = None if first is None else first[1]
    while address is not None:
        target = int(address.rstrip("/").rsplit("/", 1)[1])
        page = read(client.get(address), address)
        answer = client.post(address, _decision(page, target, truth))
        read(answer, address, redirect=True)
        yield target
        address = answer["Location"] if "/decisions/" in answer["Location"].removesuffix(listed) else None


def _decision(page: str, target: int, truth: Truth) -> dict[str, str]:
    """Return the fields of the decision: in every row an annotator who is right, else an own value with a note."""
    right: dict[str, str] = {}
    overrides: dict[str, str] = {}
    for row, name, seat, choice, words in CELL.findall(page):
        value = truth(target, name)
        overrides[row] = f"own-{seat or 'game'}-{name}={int(value)}"
        if choice != "0" and unescape(words).endswith(", yes" if value else ", no"):
            right.setdefault(row, choice)
    sent = {row: right.get(row, "0") for row in overrides}
    for row in overrides.keys() - right.keys():
        field_name, _, number = overrides[row].partition("=")
        sent |= {field_name: number, "note": "nobody saw it"}
    return sent


def read(response: Any, address: str, *, redirect: bool = False) -> str:
    """Return a page; raise unless it was answered, or with `redirect` what was sent was accepted."""
    if response.status_code != (302 if redirect else 200):
        problem = re.search(r'class="problem[^>]*>(.*?)<', response.content.decode())
        raise ParleyError(f"{address} answered {response.status_code}: {problem[1] if problem else 'no reason'}")
    return str(response.content.decode())


def answered(response: Any, status: int = 200) -> Mapping[str, Any]:
    """Return the JSON of an answer; raise for another status."""
    if response.status_code != status:
        raise ParleyError(f"{response.request['PATH_INFO']} answered {response.status_code}: {response.content!r}")
    body: Mapping[str, Any] = response.json()
    return body
