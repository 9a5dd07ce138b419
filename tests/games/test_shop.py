"""The shop: rewards worked out by hand, the generated catalogue, the search, and a visit."""

from itertools import combinations
from itertools import product as every
from math import log

import pytest

from tests.games.cases.shop import goal, shop
from tests.games.play import reply
from training import samples
from training.errors import BadInput
from training.games import make
from training.games.base import FORFEIT
from training.games.shop.board import zones
from training.games.shop.catalogues import find
from training.games.shop.generated import GOALS, PER_KIND, generate
from training.games.shop.kinds import KINDS, UNSTOCKED
from training.games.shop.products import Catalogue, Product, Value
from training.games.shop.reward import has_attribute, kind_factor, reward, same_value, similar
from training.games.shop.search import K1, B, Index
from training.games.shop.settings import Goal, ShopSettings
from training.games.shop.visit import Visit, labels
from training.records import ALL, SPECTATOR
from training.seeding import derive
from training.text.parsing import parse
from training.views import SearchField, news

CATALOGUE = find(ShopSettings())


def item(title="Acme garden chair", **fields):
    plain = {"id": "P1", "category": "A › B › C", "query": "chair", "price": 10.0, "attributes": (), "options": {}}
    return Product(**{"title": title, **plain, "features": (), "description": "", **fields})


def wanted(attributes=(), options=(), limit=None):
    return Goal(instruction="x", product="P1", attributes=attributes, options=options, price_limit=limit)


# --- the reward ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first, second, alike",
    [
        ("tea tree", "Tree, tea!", True),  # order, case and punctuation do not count
        ("essential oils", "essential oil", True),  # 13 of 14 and 13 letters in common: 26/27
        ("oil", "essential oil", True),  # all words of one are in the other
        ("abcdef", "abcdefgh", True),  # 12/14 = 86 %
        ("abcde", "abcdefg", False),  # 10/12 = 83 %
        ("twin pack", "family pack", False),
        ("...", "...", False),
    ],
)
def test_phrases_are_similar_from_86_per_cent_on(first, second, alike):
    assert similar(first, second) == similar(second, first) == alike


@pytest.mark.parametrize(
    "chosen, asked, same",
    [
        ("dark blue", "blue stripes", True),  # the same basic colour
        ("dark blue", "dark red", False),
        ("crimson", "magenta", False),
        ("size 9 wide", "9", True),
        ("9", "10", False),
    ],
)
def test_colours_are_compared_by_their_basic_word(chosen, asked, same):
    assert same_value(chosen, asked) == same


@pytest.mark.parametrize(
    "title, category, query, factor",
    [
        ("Acme garden chair", "X › Y", "table", 1),  # all three words
        ("Other garden thing", "X › Y", "table", 1),  # a third of the words is above a fifth
        ("Stool with three legs", "A › B › C", "chair", 0),  # no word: nothing else counts
        ("Chair", "A › B › Z", "chair", 1),
    ],
)
def test_the_factor_of_the_kind(title, category, query, factor):
    assert kind_factor(item(title, category=category, query=query), item()) == factor


def test_the_factor_of_the_kind_with_few_words_in_common():
    """Of ten words one is a tenth: another category and query halve the reward. Of eleven words one is less."""
    ten = item("one two three four five six seven eight nine chair")
    eleven = item("one two three four five six seven eight nine ten chair")
    others = {"category": "A › X", "query": "stool"}
    assert kind_factor(item("chair", **others), ten) == 0.5
    assert kind_factor(item("chair", **{**others, "category": "B › A"}), ten) == 1  # two parts of the path
    assert kind_factor(item("chair", **{**others, "query": "chair"}), ten) == 1
    assert kind_factor(item("chair"), eleven) == 0.1
    assert kind_factor(item("anything", **others), item("2 x 4")) == 0.5  # a title without words: overlap 0.2


def test_attributes_are_found_in_the_list_and_literally_in_the_texts():
    bought = item("Quick-dry towel", attributes=("machine wash",), features=("Soft touch.",), description="No lint")
    matches = [
        text
        for text in ("machine washable", "quick-dry", "soft touch", "no lint", "cotton")
        if has_attribute(bought, text)
    ]
    assert matches == ["machine washable", "quick-dry", "soft touch", "no lint"]  # 24/28 letters: 86 %


def test_a_reward_by_hand():
    bought = item(
        attributes=("foldable",), options={"colour": (Value("red"),), "pack": (Value("one"), Value("two", 5.0))}
    )
    asked = wanted(("foldable", "waterproof"), ("red", "two"), limit=15)
    assert reward(bought, {}, asked, item()).total == pytest.approx((1 + 0 + 1) / 5)
    assert reward(bought, {"colour": "red"}, asked, item()).total == pytest.approx((1 + 1 + 1) / 5)
    both = {"colour": "red", "pack": "two"}
    assert reward(bought, both, asked, item()).total == pytest.approx((1 + 2 + 1) / 5)  # 10 + 5 dollars are 15
    cheaper = wanted(("foldable", "waterproof"), ("red", "two"), limit=14.99)
    assert reward(bought, both, cheaper, item()).total == pytest.approx((1 + 2 + 0) / 5)
    other = item("one two three four five six seven eight nine chair", category="X", query="y")
    assert reward(bought, both, asked, other).total == pytest.approx(0.5 * 4 / 5)
    assert reward(bought, {}, wanted(), item()).total == 1  # nothing is asked, and any price will do


# --- the generated catalogue -----------------------------------------------------------------------------------------


def test_the_generated_catalogue_never_changes():
    """Stored games name it. A changed generator gets a new name, and the old one keeps its products."""
    assert CATALOGUE.sha256 == "6e4d1ae24c87b93a25adc3ecbc4e82ef374ecf7fcb6d12d2eb9906ddd210ceca"
    assert generate("again", 1).sha256 == CATALOGUE.sha256 != generate("another", 2).sha256


def test_there_are_enough_products_and_goals():
    assert len(CATALOGUE.products) == len(KINDS) * PER_KIND >= 1000
    assert len(CATALOGUE.goals) == GOALS == len({goal.instruction for goal in CATALOGUE.goals}) >= 500
    assert sum(goal.best < 1 for goal in CATALOGUE.goals) >= 30


def test_no_attribute_or_value_stands_for_another_one():
    """Else a purchase would be rewarded for what it is not."""
    for kind in KINDS:
        assert not [pair for pair in combinations(kind.attributes, 2) if similar(*pair)]
        values = [*(value for shares in kind.options.values() for value in shares), *UNSTOCKED]
        assert not [pair for pair in combinations(values, 2) if same_value(*pair)]
    attributes = {kind.noun: kind.attributes for kind in KINDS}
    for product in CATALOGUE.products.values():
        assert [text for text in attributes[product.query] if has_attribute(product, text)] == [
            text for text in attributes[product.query] if text in product.attributes
        ]


def best(goal):
    """The highest reward of any product with any choice of options, none included.

    A product's choices are tried only where the reward could still rise if all of them fitted.
    """
    highest, parts = 0.0, len(goal.attributes) + len(goal.options) + 1
    target = CATALOGUE.products[goal.product]
    for candidate in CATALOGUE.products.values():
        if kind_factor(candidate, target) <= highest:
            continue
        bare = reward(candidate, {}, goal, target)
        if bare.kind * (bare.attributes + len(goal.options) + 1) / parts <= highest:
            continue
        names = list(candidate.options)
        for values in every(*((None, *(value.name for value in candidate.options[name])) for name in names)):
            chosen = {name: value for name, value in zip(names, values, strict=True) if value}
            highest = max(highest, reward(candidate, chosen, goal, target).total)
    return highest


def test_the_stated_best_reward_is_the_highest_of_all_purchases():
    for each in CATALOGUE.goals:
        assert best(each) == pytest.approx(each.best), each.instruction
        target = CATALOGUE.products[each.product]
        missing = [value for value in each.options if value in UNSTOCKED]
        assert (each.best == 1) == (not missing)
        chosen = {
            name: value.name
            for name, values in target.options.items()
            for value in values
            if value.name in each.options
        }
        assert reward(target, chosen, each, target).total == pytest.approx(each.best)  # by what it was made from


def test_samples_are_goals_of_the_catalogue():
    stated = [scenario.settings["goal"] for scenario in samples.load("shop") if "goal" in scenario.settings]
    assert len(stated) >= 12
    assert all(Goal.model_validate(data) in CATALOGUE.goals for data in stated)


# --- the search ------------------------------------------------------------------------------------------------------

TEXTS = {
    "a": "red cotton shirts for the summer, red of course",
    "b": "a red shirt",
    "c": "blue shirt, cotton",
    "d": "a red shirt",
    "e": "green tea",
}


STOPPED = ("a", "for", "of", "the")


def bm25(query, text):
    """Robertson's formula with Lucene's idf, over words without stop words and plurals."""
    split = {name: [word.strip(",").removesuffix("s") for word in whole.split()] for name, whole in TEXTS.items()}
    split = {name: [word for word in words if word not in STOPPED] for name, words in split.items()}
    length = sum(map(len, split.values())) / len(split)
    score = 0.0
    for word in query:
        df = sum(word in words for words in split.values())
        tf = split[text].count(word)
        score += (
            log(1 + (len(split) - df + 0.5) / (df + 0.5)) * tf / (tf + K1 * (1 - B + B * len(split[text]) / length))
        )
    return score


@pytest.mark.parametrize("query", [["red"], ["shirt", "cotton"], ["red", "shirt"], ["tea", "red"], ["shirt", "shirt"]])
def test_results_are_ranked_by_bm25_and_ties_keep_their_order(query):
    ranked = sorted((text for text in TEXTS if bm25(query, text)), key=lambda text: -bm25(query, text))
    assert ranked
    assert Index(TEXTS).search(" ".join(query)) == tuple(ranked)


def test_words_that_nothing_has_find_nothing():
    index = Index(TEXTS)
    assert index.search("for a submarine") == index.search("the") == index.search("?!") == ()
    assert index.search("Shirts, for a SUBMARINE") == index.search("shirt")


def test_a_search_has_at_most_50_results():
    assert len(Index({str(n): "shoe" for n in range(200)}).search("shoes")) == 50


# --- a visit ---------------------------------------------------------------------------------------------------------


def say(game, *texts):
    for text in texts:
        game.step({0: parse(text, game.observe(0))[0]})


def last(game, viewer=0):
    return game.observe(viewer).messages[-1].text


def test_a_visit_by_hand():
    """P0290 is wide-fit and reflective, and costs 156.28; the instruction asks for red, in size 11, below 170."""
    game = make(shop(goal=goal()))
    say(game, "<search>wide-fit reflective running shoes</search>")
    assert "P0290 Corvane running shoes, reflective, $156.28" in last(game)
    say(game, "<click>P0290</click>")
    for value in ("red", "6", "11"):
        say(game, f"<click>{value}</click>")
    assert "Chosen: colour red, size 11." in last(game)
    say(game, "<click>buy now</click>")
    assert game.returns() == {0: 1.0}
    assert game.metrics() == {
        "bought": 1,
        "success": 1,
        "kind": 1,
        "price": 1,
        "attributes": 1,
        "options": 1,
        "regret": 0,
        "turns": 6,
        "forfeit": 0,
    }


def test_what_a_purchase_would_bring_by_hand():
    """Two attributes, two options and the price are fifths of the reward; a page of texts is one click away from it."""
    game = make(shop(goal=goal(), turn_limit=9))
    within = [game.in_reach()[0]]
    for text in (
        "<search>wide-fit reflective running shoes</search>",
        "<click>P0290</click>",
        "<click>red</click>",
        "<click>6</click>",
        "<click>11</click>",
        "<click>features</click>",
        "<click>back to search</click>",
    ):
        say(game, text)
        within.append(game.in_reach()[0])
    assert within == pytest.approx([0, 0, 3 / 5, 4 / 5, 4 / 5, 1, 1, 0])


def test_the_last_turn_is_only_enough_to_buy():
    game = make(shop(goal=goal(), turn_limit=4))
    say(game, "<search>wide-fit reflective running shoes</search>")
    say(game, "<click>P0290</click>")
    assert game.in_reach() == {0: pytest.approx(3 / 5)}
    say(game, "<click>features</click>")
    assert game.in_reach() == {0: 0.0}
    say(game, "<click>previous page</click>")
    assert (game.in_reach(), game.returns()) == ({0: 0.0}, {0: 0.0})  # nothing was bought


def shown(game, viewer=0):
    """The zones in short: by title, an entry or a passage as its name, its facts and what pressing it does."""
    return {zone.title: brief_of(zone) for zone in game.show(viewer).zones}


def brief_of(zone):
    if zone.kind == "search":
        return (zone.query, zone.action)
    if zone.kind == "passages":
        return [(passage.title, passage.text) for passage in zone.passages]
    return [(entry.name, *entry.detail, *pressed(entry)) for entry in zone.entries]


def pressed(entry):
    chosen = ["picked"] if entry.picked else []
    return [
        *chosen,
        *([f"[{entry.choice}]"] if entry.choice else []),
        *(f"[{o.label}: {o.choice}]" for o in entry.options),
    ]


QUERY = "wide-fit reflective running shoes"
RED = [("red", "[red]"), ("yellow", "[yellow]"), ("purple", "[purple]"), ("orange", "[orange]"), ("brown", "[brown]")]


def test_the_search_page_has_the_field_alone():
    game = make(shop(goal=goal()))
    view = game.show(0)
    assert shown(game) == {"Search the shop": ("", "search")}
    assert (view.zones[0].argument, view.zones[0].longest) == ("words", 300)
    assert (view.phase, view.ask, view.story) == ("10 turns left", "Search the shop for what you need.", game.task())
    assert shown(game, SPECTATOR) == {"Search the shop": ("", "")}
    assert (game.show(SPECTATOR).ask, game.show(SPECTATOR).brief, view.brief) == ("", None, None)
    assert "made from P0290" in game.show(ALL).brief.text[0]


def test_results_are_cards_with_title_and_price():
    game = make(shop(goal=goal()))
    say(game, f"<search>{QUERY}</search>")
    pages = -(-len(CATALOGUE.index.search(QUERY)) // 10)
    (field, results, others) = shown(game).items()
    assert field == ("Search the shop", (QUERY, ""))
    assert results[0] == f"Results, page 1 of {pages}"
    assert len(results[1]) == 10
    assert ("Corvane running shoes, reflective", "$156.28", "P0290", "[View: P0290]") in results[1]
    assert others == ("Other pages", [("Next page", "[next page]"), ("New search", "[back to search]")])
    say(game, "<click>next page</click>")
    assert shown(game)["Other pages"][1] == ("Previous page", "[previous page]")


def test_a_product_has_its_options_and_the_texts_that_were_read():
    game = make(shop(goal=goal()))
    say(game, f"<search>{QUERY}</search>", "<click>P0290</click>")
    assert shown(game)["Colour: not chosen"] == RED
    say(game, "<click>red</click>")
    others = [("Description", "[description]"), ("Features", "[features]")]
    others += [("Back to the results", "[previous page]"), ("New search", "[back to search]")]
    facts = ("Colour: red", "Size: not chosen")
    page = {
        "Search the shop": (QUERY, ""),
        "Product": [("Corvane running shoes, reflective", "$156.28", "P0290")],
        "Colour: red": [("red", "picked", "[red]"), *RED[1:]],
        "Size: not chosen": [("6", "[6]"), ("11", "[11]")],
        "Other pages": others,
        "Your purchase": [("$156.28", *facts, "[Buy now: buy now]")],
    }
    assert shown(game) == page
    say(game, "<click>features</click>")
    features = {"About this product": [("Features", "\n".join(CATALOGUE.products["P0290"].features))]}
    back = [("Back to the product", "[previous page]"), ("New search", "[back to search]")]
    colours = [("red", "picked"), *((name,) for name, _ in RED[1:])]
    sizes = [("6",), ("11",)]
    unpressed = {"Colour: red": colours, "Size: not chosen": sizes}
    assert shown(game) == {**dict(list(page.items())[:2]), **unpressed, **features, "Other pages": back}
    say(game, "<click>previous page</click>")
    assert shown(game) == page | features
    assert shown(game, SPECTATOR) == {**dict(list(page.items())[:2]), **unpressed, **features}


def test_the_end_says_what_was_bought_and_what_it_is_worth():
    """P0290 in red without a size has 2 of 2 attributes, 1 of 2 options and the price: 4 of 5."""
    game = make(shop(goal=goal()))
    say(game, f"<search>{QUERY}</search>", "<click>P0290</click>", "<click>red</click>", "<click>buy now</click>")
    view = game.show(0)
    assert (view.phase, view.ask, view.headline, view.mood) == ("", "", "Bought: reward 0.8 of 1.", "over")
    assert view.moment == "You bought Corvane running shoes, reflective (red) for $156.28."
    assert game.show(SPECTATOR).moment == "Ada bought Corvane running shoes, reflective (red) for $156.28."
    assert list(view.choices()) == []
    assert game.observe(0).messages[-1].lines == news(
        "Reward 0.8 of 1: 2 of 2 attributes, 1 of 2 options, the price is within the limit, the right kind of product."
    )


def test_the_end_says_when_the_kind_of_product_is_wrong():
    """Granola shares no word with the title of the running shoes, so its kind counts 0."""
    game = make(shop(goal=goal(price_limit=None)))
    say(game, "<search>granola</search>")
    number = game.observe(0).actions[0].args[0].choices[0]
    say(game, f"<click>{number}</click>", "<click>buy now</click>")
    assert game.observe(0).messages[-1].lines == news(
        "Reward 0 of 1: 0 of 2 attributes, 0 of 2 options, times 0 for the kind of product."
    )
    assert game.show(0).headline == "Bought: reward 0 of 1."


def test_the_end_says_why_nothing_was_bought():
    late, left = make(shop(goal=goal(), turn_limit=2)), make(shop(goal=goal()))
    say(late, "<search>shoes</search>", "<click>back to search</click>")
    left.step({0: FORFEIT})
    for game, why in ((late, "All 2 turns are used up."), (left, "You gave up.")):
        assert (game.show(0).headline, game.show(0).moment) == ("Nothing bought: reward 0 of 1.", why)


def test_people_read_what_was_done_and_what_came_of_it():
    game = make(shop(goal=goal(), turn_limit=20))
    say(game, "<search>qqq</search>", "<click>back to search</click>", f"<search>{QUERY}</search>")
    say(game, "<click>next page</click>", "<click>previous page</click>", "<click>P0290</click>", "<click>11</click>")
    say(game, "<click>description</click>", "<click>previous page</click>", "<click>previous page</click>")
    game.step({0: game.default(0).model_copy(update={"origin": "timeout"})})
    lines = [(line.kind, line.text) for message in game.observe(0).messages for line in message.lines]
    assert lines == [
        ("deed", "searches for “qqq”"),
        ("news", "Nothing was found."),
        ("deed", "goes back to the search"),
        ("deed", f"searches for “{QUERY}”"),
        ("news", "50 results, page 1 of 5."),
        ("deed", "goes to the next page"),
        ("news", "50 results, page 2 of 5."),
        ("deed", "goes to the previous page"),
        ("news", "50 results, page 1 of 5."),
        ("deed", "opens Corvane running shoes, reflective"),
        ("news", "It costs $156.28."),
        ("deed", "chooses 11"),
        ("news", "It costs $156.28."),
        ("deed", "reads the description"),
        ("deed", "goes back to the product"),
        ("news", "It costs $156.28."),
        ("deed", "goes back to the results"),
        ("news", "50 results, page 1 of 5."),
        ("news", "Ada does not answer."),
        ("deed", "goes back to the search"),
    ]


def test_a_search_without_results_says_so():
    game = make(shop(goal=goal()))
    say(game, "<search>qqq</search>")
    assert shown(game) == {
        "Search the shop": ("qqq", ""),
        "Results": [("Nothing was found.",)],
        "Other pages": [("New search", "[back to search]")],
    }


@pytest.mark.parametrize("seed", range(6))
def test_everything_that_can_be_clicked_is_on_the_table(seed):
    """Over a random play: the choices of its zones are the legal clicks, each once."""
    scenario = shop(turn_limit=30).with_seed(seed + 1)
    game = make(scenario)
    while game.to_act():
        (action,) = game.observe(0).actions
        assert sorted(game.show(0).choices()) == sorted(action.args[0].choices)
        assert [zone.action for zone in game.show(0).zones if zone.kind == "search"] == [
            "search" if action.name == "search" else ""
        ]
        say(game, reply(scenario, 0, game.observe(0), len(game.observe(0).messages)))


def test_values_that_mean_two_things_choose_with_their_option():
    product = item(options={"top": (Value("red"),), "sole": (Value("red", 2.5),)})
    visit = Visit(Catalogue("x", "", {"P1": product}, ()))
    visit.search("garden chair")
    visit.links["P1"]()
    visit.links["sole red"]()
    page = zones(visit, searches=SearchField(title="Search", longest=9), presses=True)
    assert {zone.title: brief_of(zone) for zone in page[2:-2]} == {
        "Top: not chosen": [("red", "[top red]")],
        "Sole: red": [("red", "+$2.50", "picked", "[sole red]")],
    }


def test_options_change_the_price_and_another_product_starts_without_them():
    bundle = next(product for product in CATALOGUE.products.values() if product.query == "granola")
    extra = bundle.options["pack"][1].extra
    game = make(shop(goal=goal(), turn_limit=20))
    say(game, f"<search>{bundle.text()[:250]}</search>")
    say(game, f"<click>{bundle.id}</click>")
    say(game, "<click>twin pack</click>")
    assert f"Price: ${bundle.price + extra:.2f}" in last(game)
    say(game, "<click>previous page</click>")
    say(game, f"<click>{bundle.id}</click>")
    assert f"Price: ${bundle.price:.2f}" in last(game)
    assert "Chosen: nothing yet." in last(game)
    say(game, "<click>buy now</click>")
    assert game.returns() == {0: 0.0}  # granola is no shoe, though the price is within the limit


def test_all_read_the_goal_and_the_customer_the_instruction():
    game = make(shop(goal=goal()))
    assert "made from P0290" in game.observe(ALL).messages[0].text
    assert "P0290" not in game.observe(0).messages[0].text


def test_values_that_could_mean_two_things_are_clicked_with_their_option():
    options = {"top": (Value("small"), Value("large")), "bottom": (Value("small"),), "page": (Value("features"),)}
    assert list(labels(item(options=options)).values()) == ["top small", "large", "bottom small", "page features"]


def test_drawn_goals_are_of_their_split():
    """Every fifth goal is a test."""
    at = {goal.instruction: number for number, goal in enumerate(CATALOGUE.goals)}
    drawn = {
        split: {at[make(shop(split=split).with_seed(seed)).goal.instruction] for seed in range(1, 200)}
        for split in ("train", "test", "all")
    }
    assert {number % 5 for number in drawn["test"]} == {0}
    assert {number % 5 for number in drawn["train"]} == {1, 2, 3, 4}
    assert {number % 5 for number in drawn["all"]} == {0, 1, 2, 3, 4}
    assert len(drawn["test"]) > 80


def test_a_goal_needs_a_product_of_the_catalogue():
    with pytest.raises(BadInput, match="the catalogue has no product 'B000'") as refusal:
        make(shop(goal=goal(product="B000")))
    assert refusal.value.where == "settings.goal.product"


def mean_return(name, episodes=60):
    total = 0.0
    for seed in range(1, episodes + 1):
        game, scenario = make(shop().with_seed(seed)), shop().with_seed(seed)
        while game.to_act():
            say(game, reply(scenario, 0, game.observe(0), derive(seed, len(game.observe(0).messages)), name))
        total += game.returns()[0]
    return total / episodes


def test_the_script_buys_well_and_chance_does_not():
    assert mean_return("scripted") > 0.9
    assert mean_return("random") < 0.05
