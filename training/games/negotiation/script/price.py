"""A script that bargains over a price: it opens near its target and moves stepwise towards the other's last offer."""

from __future__ import annotations

import re
from random import Random

from training.errors import IllegalMove
from training.games.actions import read_args
from training.games.negotiation import NegotiationSettings, Price
from training.games.negotiation.terms import terms
from training.players.scripted import Script, do, offered, pick
from training.records import Observation, Scenario, Seat
from training.seeding import rng

OPENINGS = (
    (
        "Hi {other}, I am interested in this: {title}. Is there some room in the price of {listed}?",
        "Hello {other}. It looks good, but {listed} is more than I hoped to spend. What could you do?",
    ),
    (
        "Hi {other}, thanks for asking about this: {title}. It is listed at {listed}. What do you have in mind?",
        "Hello {other}. It is in good shape, and {listed} is a fair price. What would you offer?",
    ),
)
PROPOSALS = (
    ("I could pay this.", "Would you let it go for this?", "I can come up a little."),
    ("I could let it go for this.", "I can come down a little.", "For this it is yours today."),
)
ACCEPTS = ("Agreed, thank you!", "All right, it is a deal.", "Good, let us do that.")
REJECTS = ("Sorry, that is too far from what I can do.", "Not quite there yet.", "I cannot do that price.")


class PriceScript(Script):
    """Plays the buyer (seat 0) or the seller (seat 1)."""

    def __init__(self, scenario: Scenario, seat: Seat) -> None:
        super().__init__(scenario, seat)
        settings = NegotiationSettings.model_validate(scenario.settings)
        assert isinstance(settings.deal, Price)
        self._title = settings.deal.title
        self._listed = settings.deal.listing_price
        self._ceiling = settings.deal.ceiling
        self._target = settings.deal.sides[seat].target
        self._limit = settings.turn_limit
        temper = rng(scenario.seed, "scripted", "price", seat)
        self._patience = max(1, min(temper.randint(5, 11), self._limit - 2))
        self._propose = terms(settings.deal).propose()

    def answer(self, observation: Observation, chance: Random) -> str:
        used = sum(message.author is not None for message in observation.messages)
        theirs = self._their_offers(observation)
        ready = self._ready(used, theirs)
        if offered(observation, "accept"):
            if self._at_least(theirs[-1], ready) or used >= self._patience:
                return do(observation, "accept", pick(chance, ACCEPTS))
            return do(observation, "reject", pick(chance, REJECTS))
        spoken = any(message.author == self.seat for message in observation.messages)
        if not spoken and used < 2 and self._limit - used > 3:
            line = pick(chance, OPENINGS[self.seat])
            listed = f"{self._listed}"
            return do(
                observation, "talk", line.format(other=self.names[1 - self.seat], title=self._title, listed=listed)
            )
        return do(observation, "propose", pick(chance, PROPOSALS[self.seat]), price=ready)

    def _at_least(self, price: int, limit: int) -> bool:
        """Return whether `price` is at least as good for this seat as `limit`."""
        return price <= limit if self.seat == 0 else price >= limit

    def _ready(self, used: int, theirs: list[int]) -> int:
        """Return the price that this seat accepts now. It moves from the target up to 60 % of the way to the far end.

        The far end is the other's last offer; without one, the listed price (buyer) or 70 % of the own target (seller).
        """
        far = theirs[-1] if theirs else self._listed if self.seat == 0 else round(0.7 * self._target)
        if self._at_least(far, self._target):
            return far
        progress = min(1.0, used / self._patience)
        price = round(self._target + (far - self._target) * (0.1 + 0.5 * progress))
        return min(self._ceiling, max(0, price))

    def _their_offers(self, observation: Observation) -> list[int]:
        """Return the prices that the other has proposed, in order."""
        prices = []
        for message in observation.messages:
            opened = re.search(r"<propose>(.*?)</propose>", message.text)
            if message.author != 1 - self.seat or not opened:
                continue
            try:
                prices.append(int(read_args(self._propose, opened.group(1))["price"]))
            except IllegalMove:
                continue
        return prices
