"""The scripted customer: it searches for the instruction, opens the best result within the price limit, chooses the
options that the instruction names, and buys.

It reads its observation alone: the instruction, the page, and what it has clicked before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from training.games.shop.visit import BACK, BUY, NEXT, PREVIOUS
from training.players.scripted import Script, do, offered, pick
from training.records import Observation

_INSTRUCTION = re.compile(r"as well as possible:\n(.+)")
_LIMIT = re.compile(r"(?:lower|less) than (\d+(?:\.\d+)?) dollars")
_PRICE_WORDS = re.compile(r"(?:,? and price|,? with a price|; it must cost|,? for) (?:lower|less) than .*")
_RESULT = re.compile(r"^(\S+) .+, \$([\d,]+\.\d\d)$", re.MULTILINE)
_PRICE = re.compile(r"^Price: \$([\d,]+\.\d\d)$", re.MULTILINE)
_LEFT = re.compile(r"Turns left: (\d+)")
_CLICK = re.compile(r"<click>(.*)</click>")
TRIES = 3
"""Products at most that are opened before one is bought."""
TURNS_OF_A_TRY = 6
"""Turns that must be left to go back and try another product: two to reach it, three options, the purchase."""

SEARCHING = ("I search for what the instruction says.", "First I look for all the words of the instruction.")
OPENING = ("This is the best result within the price.", "It fits best and is not too expensive.")
REJECTING = ("It does not have all that I need, so I look at another one.", "This one does not fit; I go back.")
CHOOSING = ("The instruction asks for this.", "I choose what is asked for.")
BUYING = ("Everything that I need is chosen.", "Nothing is left to choose, so I buy it.")


class ShopScript(Script):
    """Plays the customer."""

    def answer(self, observation: Observation, chance: Random) -> str:
        instruction = _group(_INSTRUCTION, observation.messages[0].text)
        if offered(observation, "search"):
            query = _PRICE_WORDS.sub("", instruction) or instruction
            return do(observation, "search", pick(chance, SEARCHING), words=query)
        links = observation.actions[0].args[0].choices
        if BUY in links:
            return self._at_product(observation, instruction, chance)
        return self._at_results(observation, instruction, chance)

    def _at_results(self, observation: Observation, instruction: str, chance: Random) -> str:
        """Open the first result within the price limit that was not opened before; without one turn the page."""
        links = observation.actions[0].args[0].choices
        limit, clicked = _limit(instruction), set(self._clicks(observation))
        results = [(number, _dollars(price)) for number, price in _RESULT.findall(observation.messages[-1].text)]
        fitting = [number for number, price in results if price <= limit and number in links and number not in clicked]
        if fitting:
            return do(observation, "click", pick(chance, OPENING), value=fitting[0])
        onward = next(link for link in (NEXT, PREVIOUS, BACK) if link in links)
        return do(observation, "click", value=onward)

    def _at_product(self, observation: Observation, instruction: str, chance: Random) -> str:
        """Choose what the instruction names and buy; go back where something is missing and turns are left."""
        page, clicks = observation.messages[-1].text, self._clicks(observation)
        left, opened = int(_group(_LEFT, page)), page.partition(" ")[0]
        since = clicks[len(clicks) - clicks[::-1].index(opened) :] if opened in clicks else ()
        options = read_options(page, observation.actions[0].args[0].choices)
        wanted = [option.wanted(instruction) for option in options]
        to_choose = [value for value in wanted if value and value not in since]
        price = _dollars(_group(_PRICE, page)) + sum(o.extras.get(v, 0.0) for o in options for v in to_choose)
        missing = price > _limit(instruction) or any(option.misses(instruction) for option in options)
        tries = len({number for number in clicks if number in self._results(observation)})
        if missing and tries < TRIES and left >= TURNS_OF_A_TRY:
            return do(observation, "click", pick(chance, REJECTING), value=PREVIOUS)
        if to_choose and left > 1:
            return do(observation, "click", pick(chance, CHOOSING), value=to_choose[0])
        return do(observation, "click", pick(chance, BUYING), value=BUY)

    def _clicks(self, observation: Observation) -> Sequence[str]:
        """Return what this seat has clicked, in order."""
        replies = (message.text for message in observation.messages if message.author == self.seat)
        return [match[1] for match in map(_CLICK.search, replies) if match]

    def _results(self, observation: Observation) -> set[str]:
        """Return the numbers of all products that were shown as results."""
        texts = (message.text for message in observation.messages[1:] if message.author is None)
        return {number for text in texts for number, _ in _RESULT.findall(text)}


@dataclass(frozen=True)
class Option:
    """An option on a product's page: its name, and its clickable values with the dollars that each adds."""

    name: str
    extras: dict[str, float]

    def wanted(self, instruction: str) -> str:
        """Return the longest value that the instruction names, best with the option's name; empty without one."""
        for before in (rf"\b{re.escape(self.name)}:? ", r"(?<!\w)"):
            values = [v for v in self.extras if re.search(rf"{before}{re.escape(v)}(?!\w)", instruction, re.IGNORECASE)]
            if values:
                return max(values, key=len)
        return ""

    def misses(self, instruction: str) -> bool:
        """Return whether the instruction names the option with a value that is not there."""
        return f"{self.name}: " in instruction and not self.wanted(instruction)


def read_options(page: str, links: Sequence[str]) -> list[Option]:
    """Return the options of a product's page, between its price and what is chosen."""
    options = []
    for line in page.partition("\nPrice: ")[2].split("\n")[1:]:
        name, _, values = line.partition(": ")
        if name in ("Chosen", "You can click"):
            break
        shown = {
            link: re.search(rf"(?:^|, ){re.escape(link)}(?: \(\+\$([\d,.]+)\))?(?=, |$)", values) for link in links
        }
        extras = {link: _dollars(match[1] or "0") for link, match in shown.items() if match}
        options.append(Option(name, extras))
    return options


def _limit(instruction: str) -> float:
    match = _LIMIT.search(instruction)
    return float(match[1]) if match else float("inf")


def _dollars(written: str) -> float:
    return float(written.replace(",", ""))


def _group(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return match[1] if match else ""
