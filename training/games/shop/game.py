"""The shop as a state machine: search, click, buy.

Settings that do not fit raise `BadInput`; moves that are not possible raise `IllegalMove` and change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from training.errors import BadInput
from training.games.actions import clean, tag
from training.games.log import LoggedGame, read_settings
from training.games.prose import count
from training.games.shop import board, table, words
from training.games.shop.catalogues import find
from training.games.shop.products import Catalogue
from training.games.shop.reward import Reward, reward
from training.games.shop.settings import Goal, ShopSettings
from training.games.shop.visit import BACK, Visit
from training.records import ALL, SPECTATOR, Action, Argument, Move, Scenario, Seat, Viewer
from training.seeding import rng
from training.views import Brief, Line, SearchField, TableView, news

MOST_CHARS = 300
"""Characters of a search at most."""
SEARCH = words.SEARCH.model_copy(update={"label": "Search the shop"})
"""The search as it is offered where it can be made, unlike in the rules."""
TEST_EVERY = 5
"""One of this number of goals is for tests."""


class Shop(LoggedGame):
    """One visit of one customer."""

    def __init__(self, scenario: Scenario) -> None:
        self.settings = read_settings(ShopSettings, scenario)
        super().__init__(scenario, MOST_CHARS)
        catalogue = find(self.settings)
        self.goal = self.settings.goal or drawn(catalogue, self.settings.split, scenario.seed)
        if self.goal.product not in catalogue.products:
            raise BadInput(f"the catalogue has no product {self.goal.product!r}", "settings.goal.product")
        self._target = catalogue.products[self.goal.product]
        self._visit = Visit(catalogue)
        self._action = SEARCH
        self._turn = 0
        self._reward: Reward | None = None
        self._forfeit = False
        self._open()

    def _open(self) -> None:
        """Show the rules, to `ALL` with the goal, then the search page."""
        limit = self.settings.turn_limit
        name = self.names[0]
        rules = {addressed: words.opening(name, self.goal, limit, addressed=addressed) for addressed in (True, False)}
        everything = words.opening(name, self.goal, limit, addressed=False, target=self._target)
        self._log.brief({0: rules[True]}, channel="private")
        self._log.brief({SPECTATOR: rules[False], ALL: everything})
        self._log.tell(words.page(self._visit, limit), lines=())

    # --- the protocol ---

    def to_act(self) -> frozenset[Seat]:
        over = self._forfeit or self._reward is not None or self._turn == self.settings.turn_limit
        return frozenset() if over else frozenset({0})

    def _offered(self, seat: Seat) -> tuple[Action, ...]:
        return (self._action,)

    def default(self, seat: Seat) -> Move:
        """Return a search for the instruction's words, and on all other pages the way back to the search."""
        if self._action is SEARCH:
            return Move(action="search", args={"words": clean(self.goal.instruction)[:MOST_CHARS]}, origin="default")
        return Move(action="click", args={"value": BACK}, origin="default")

    def returns(self) -> Mapping[Seat, float | None]:
        if self.to_act():
            return {0: None}
        return {0: self._reward.total if self._reward else 0.0}

    def in_reach(self) -> Mapping[Seat, float]:
        """Return the reward for buying the open product as it is, 0 where none is open or the turns do not suffice."""
        visit, left = self._visit, self.settings.turn_limit - self._turn
        if not self.to_act():
            return {0: self._reward.total if self._reward else 0.0}
        needed = 1 if visit.view == "product" else 2  # from a page of the product's texts one goes back first
        if visit.product is None or left < needed:
            return {0: 0.0}
        return {0: reward(visit.product, visit.chosen, self.goal, self._target).total}

    def metrics(self) -> Mapping[str, float]:
        """Return the reward's parts as shares, all 0 without a purchase; `regret` where the best reward is known."""
        if self.to_act():
            return {}
        got = self._reward or Reward(kind=0.0, attributes=0, options=0, price=False, total=0.0)
        shares = {
            "attributes": got.attributes / len(self.goal.attributes) if self.goal.attributes else None,
            "options": got.options / len(self.goal.options) if self.goal.options else None,
            "regret": self.goal.best - got.total if self.goal.best is not None else None,
        }
        return {
            "bought": float(self._reward is not None),
            "success": float(got.total == 1),
            "kind": got.kind,
            "price": float(got.price),
            **{name: share for name, share in shares.items() if share is not None},
            "turns": float(self._turn),
            "forfeit": float(self._forfeit),
        }

    def _phase(self) -> str:
        """Return how many turns are left."""
        left = self.settings.turn_limit - self._turn
        return f"{count(left, 'turn')} left" if self.to_act() else ""

    def show(self, viewer: Viewer) -> TableView:
        """Return the page of the shop; `ALL` also sees what the instruction was made from."""
        acts, over = viewer in self.to_act(), not self.to_act()
        everything = viewer in (ALL, self.scenario.tool_seat)
        hidden = Brief(title="Behind the task", text=(words.secrets(self.goal, self._target),))
        return TableView(
            zones=board.zones(self._visit, searches=self._search_field(presses=acts), presses=acts),
            phase=self._phase(),
            mood="over" if over else "",
            ask=table.ASK[self._visit.view] if acts else "",
            story=self.task(),
            rules=table.rules(self.settings.turn_limit),
            brief=hidden if everything else None,
            headline=table.headline(self._reward) if over else "",
            moment=self._moment(viewer) if over else "",
        )

    def _search_field(self, *, presses: bool) -> SearchField:
        action = self._action.name if presses and self._action is SEARCH else ""
        argument = SEARCH.args[0].name
        query = self._visit.query
        return SearchField(title="Search the shop", query=query, action=action, argument=argument, longest=MOST_CHARS)

    def _moment(self, viewer: Viewer) -> str:
        """Return the purchase, or why there was none."""
        name = "You" if viewer == 0 else self.names[0]
        if self._reward is not None:
            return table.purchase(name, self._visit)
        return f"{name} gave up." if self._forfeit else words.out_of_turns(self.settings.turn_limit)

    def task(self) -> str:
        """Return the instruction."""
        return clean(self.goal.instruction)

    # --- one turn ---

    def _apply(self, moves: Mapping[Seat, Move]) -> None:
        ((seat, move),) = moves.items()
        self._turn += 1
        if move.origin == "forfeit":
            self._forfeit = True
            why = words.gives_up(self.names[seat])
            self._log.tell(words.nothing_bought(why), lines=news(f"{why} Nothing is bought."))
            return
        if move.origin == "seat":
            self._log.say({seat: self._reply(seat, move)})
        else:
            deed = Line(kind="deed", text=self._deed(seat, self._action, move), seat=seat)
            lines = (*news(f"{self.names[seat]} does not answer."), deed)
            self._log.tell(words.unchosen(self.names[seat], tag(self._action, move.args)), lines=lines)
        if move.action == "search":
            self._visit.search(str(move.args["words"]))
        else:
            self._visit.links[str(move.args["value"])]()
        self._arrive()

    def _arrive(self) -> None:
        """Show the page to which a move has led, or the end of the visit."""
        visit, left = self._visit, self.settings.turn_limit - self._turn
        self._action = _clicks(visit) if visit.links else SEARCH
        if visit.view == "bought" and visit.product is not None:
            self._reward = reward(visit.product, visit.chosen, self.goal, self._target)
            lines = news(table.score(self.goal, self._reward))
            self._log.tell(words.bought(self.names[0], visit, self.goal, self._reward), lines=lines)
        elif left:
            arrival = table.arrival(visit)
            self._log.tell(words.page(visit, left), lines=news(arrival) if arrival else ())
        else:
            why = words.out_of_turns(self.settings.turn_limit)
            self._log.tell(words.nothing_bought(why), lines=news(f"{why} Nothing is bought."))

    def _deed(self, seat: Seat, action: Action, move: Move) -> str:
        return table.deed(self._visit, action.name, move.args)


def _clicks(visit: Visit) -> Action:
    value = Argument(name="value", kind="choice", choices=tuple(visit.links))
    return Action(name="click", args=(value,), text="private", label="Click")


def drawn(catalogue: Catalogue, split: str, seed: int) -> Goal:
    """Return one of the goals of a split; raise `BadInput` if there is none."""
    goals = [
        goal for at, goal in enumerate(catalogue.goals) if split == "all" or (at % TEST_EVERY == 0) == (split == "test")
    ]
    if not goals:
        raise BadInput(f"the catalogue has no goals of the split {split}; state a goal", "settings.goal")
    return rng(seed, "shop", "goal").choice(goals)
