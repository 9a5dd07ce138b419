"""The page of the information-provision game: its map against the solver, its table, and what it refuses."""

import random
import re
from fractions import Fraction
from html import unescape

import pytest

from training.evaluate.provision import ProvisionGame
from webapp.runs.summaries import provision as reports

ADDRESS = "/provision/"


# --- the map ---------------------------------------------------------------------------------------------------------


def inside(corners, point):
    """Whether a point lies in a convex polygon, its border included: never on both sides of its edges."""
    x, y = point
    edges = zip(corners, (*corners[1:], corners[0]), strict=True)
    turns = [(x2 - x1) * (y - y1) - (y2 - y1) * (x - x1) for (x1, y1), (x2, y2) in edges]
    low = [min(corner[axis] for corner in corners) for axis in (0, 1)]
    high = [max(corner[axis] for corner in corners) for axis in (0, 1)]
    in_box = low[0] <= x <= high[0] and low[1] <= y <= high[1]  # an area without width has no turns
    return in_box and not (min(turns) < 0 < max(turns))


def test_regions_are_those_of_the_solver_with_their_borders():
    rng = random.Random(0)
    met = set()
    for _ in range(3000):
        steps = rng.choice([4, 10, 100])
        p1, p2, guess, cost = (Fraction(rng.randint(0, steps), steps) for _ in range(4))
        game = ProvisionGame((p1, p2), guess, cost / rng.choice([1, 8]))
        drawn = {area.profile for area in reports.areas(game) if inside(area.corners, (p1, p2))}
        listed = {"".join(profile) for profile in game.equilibria()}
        assert drawn == listed - {"SS"}, game
        assert ("SS" in listed) == (game.cost == 0 and p1 == p2), "the diagonal"
        met.add(frozenset(listed))
    alone = [{"SG"}, {"GS"}, {"GG"}]
    borders = [{"SG", "GS"}, {"SG", "GG"}, {"GS", "GG"}, {"SG", "GS", "GG"}]
    diagonal = [{"SS", "GG"}, {"SS", "SG", "GS"}, {"SS", "SG", "GS", "GG"}]
    assert met == {frozenset(profiles) for profiles in (*alone, *borders, *diagonal)}


def test_labels_lie_in_regions_of_their_profiles_alone():
    labels = 0
    for guess in range(0, 101, 5):
        for cost in (0, 1, 5, 10, 25, 60):
            game = ProvisionGame((Fraction(1, 2),) * 2, Fraction(guess, 100), Fraction(cost, 100))
            for label in reports.region_map(game).labels:
                p1 = Fraction(label.x - reports.LEFT) / reports.SIDE
                p2 = 1 - Fraction(label.y - reports.TOP) / reports.SIDE
                there = ProvisionGame((p1, p2), game.guess, game.cost)
                words = {word.replace(",", "") for word in re.findall(r"\((.*?)\)", label.text)}
                listed = {"".join(profile) for profile in there.equilibria()}
                assert listed - {"SS"} == words, (guess, cost, label)
                labels += 1
    assert labels > 100


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.fixture
def ask(client_of, player):
    """Requests the page as a player; returns status and text, and with `part` the fragment that htmx swaps in."""
    client = client_of(player)

    def get(query="", *, part=False):
        answer = client.get(ADDRESS + query, headers={"HX-Request": "true"} if part else {})
        return answer.status_code, answer.content.decode()

    return get


def words(markup):
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", markup)).split())


def rows(page):
    """The cells of the table, heads first."""
    (table,) = re.findall(r"<table>.*?</table>", page, re.DOTALL)
    return [
        [words(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    ]


def verdict(page):
    (text,) = re.findall(r'<p id="verdict"[^>]*>(.*?)</p>', page, re.DOTALL)
    return words(text)


def problem(page, name):
    (text,) = re.findall(rf'<small id="id_{name}_error"[^>]*>(.*?)</small>', page, re.DOTALL)
    return words(text)


def test_the_example_in_numbers(ask):
    status, page = ask()
    assert status == 200
    # p₁ .7, p₂ .5, ḡ .45, c .05; the square of 300 lies at (60, 12), and ḡ + c = .5 is in its middle
    assert '<polygon points="60.0,312.0 210.0,312.0 210.0,162.0 60.0,162.0" fill="none"/>' in page
    # player 1 searches: right of .5, below p₂ = p₁ + .1, which leaves the square at p₁ = .9
    assert (
        '<polygon points="210.0,312.0 360.0,312.0 360.0,12.0 330.0,12.0 210.0,132.0" fill="url(#hatching-1)"/>' in page
    )
    assert '<circle cx="270.0" cy="162.0" r="6"/>' in page
    assert rows(page) == [
        ["Moves", "Player 1", "Player 2", "Equilibrium"],
        ["(S,S)", "0.550", "0.550", "no: player 2 gains 0.15 by guessing"],
        ["(S,G)", "0.650", "0.700", "yes"],
        ["(G,S)", "0.500", "0.450", "no: player 1 gains 0.05 by searching"],
        ["(G,G)", "0.450", "0.450", "no: player 1 gains 0.2 by searching"],
    ]
    assert verdict(page) == (
        "At p₁ = 0.7, p₂ = 0.5, ḡ = 0.45 and c = 0.05: (S,G) . Unique: player 1, the best searcher, searches alone."
    )
    assert "p₁ ≥ 0.5 and p₂ ≤ p₁ + 0.1 (2c)" in words(page)
    assert 'aria-label="Map of the pure equilibria' in page
    assert "The marked point has (S,G)." in page


def test_ties_at_the_point_are_exact(ask):
    _, page = ask("?p1=0.7&p2=0.5&guess=0.2&cost=0.1")  # .7 − .5 = 2 · .1, which binary floats do not have
    assert "(S,G) and (G,S)" in verdict(page)
    _, page = ask("?p1=0.7&p2=0.5&guess=0.2&cost=0.0999")
    assert "(G,S)" not in verdict(page)


def test_at_no_cost_the_diagonal_is_drawn(ask):
    _, page = ask("?p1=0.6&p2=0.6&guess=0.3&cost=0")
    assert "(S,S), (S,G) and (G,S)" in verdict(page)
    assert page.count('class="diagonal"') == 2, "in the map and in its legend"
    assert "both search, where p₁ = p₂" in page
    _, page = ask("?cost=0.01")
    assert 'class="diagonal"' not in page


def test_where_no_search_can_be_worth_its_cost_there_is_one_region(ask):
    _, page = ask("?guess=0.9&cost=0.3")
    assert page.count("<polygon") == 1
    assert "nobody searches, everywhere" in page
    assert "hatching-1)" not in page


def test_further_players_have_a_table_and_no_map(ask):
    status, page = ask("?p1=0.7&p2=0.69&others=0.68, 0.3 &guess=0.5&cost=0.01")
    assert status == 200
    assert "<polygon" not in page
    assert rows(page) == [
        ["Moves", "Player 1", "Player 2", "Player 3", "Player 4"],
        ["(S,G,G,G)", "0.690", "0.700", "0.700", "0.700"],
        ["(G,S,G,G)", "0.690", "0.680", "0.690", "0.690"],
        ["(G,G,S,G)", "0.680", "0.680", "0.670", "0.680"],
    ]
    assert verdict(page) == "Not unique: players 2, 3 could search instead."


def test_many_equilibria_are_counted_and_the_first_are_shown(ask):
    _, page = ask("?p1=0.5&p2=0.5&guess=0.2&cost=0&others=" + ",".join(["0.5"] * 10))
    assert len(rows(page)) == 1 + 50
    assert "4095 equilibria" in page
    assert "The first 50 of 4095" in page


@pytest.mark.parametrize(
    "query, name, entered, why",
    [
        ("?p1=7", "p1", "7", "7 is not between 0 and 1"),
        ("?p2=", "p2", "", "This field is required."),
        ("?guess=half", "guess", "half", "'half' is not a number"),
        ("?cost=-0.1", "cost", "-0.1", "-0.1 is not between 0 and 1"),
        ("?cost=1e-999999999", "cost", "1e-999999999", "'1e-999999999' has too many digits"),
        ("?others=0.5, x", "others", "0.5, x", "'x' is not a number"),
        ("?others=" + ",".join(["0.5"] * 11), "others", ",".join(["0.5"] * 11), "give 2 to 12 players, not 13"),
    ],
)
def test_bad_input_is_kept_with_the_reason_at_its_field(ask, query, name, entered, why):
    status, page = ask(query)
    assert status == 400
    assert problem(page, name) == why
    (control,) = re.findall(rf'<input[^>]*id="id_{name}"[^>]*>', page)
    assert not entered or f'value="{entered}"' in control
    assert 'aria-invalid="true"' in control
    assert verdict(page) == "There is nothing to show: correct the fields that are marked."
    assert "<table" not in page


def test_a_part_has_the_reasons_and_the_verdict_beside_the_results(ask):
    status, part = ask("?p1=0.8&others=x", part=True)
    assert status == 200, "htmx swaps nothing in for an error"
    assert "<html" not in part
    assert "<input" not in part, "a field that is in use is not replaced"
    assert problem(part, "others") == "'x' is not a number"
    assert problem(part, "p1") == ""
    assert part.count('hx-swap-oob="true"') == 5
    status, part = ask("?p1=0.8", part=True)
    assert problem(part, "others") == ""
    assert verdict(part).startswith("At p₁ = 0.8")
    assert "<polygon" in part


def test_the_form_works_without_a_script(ask):
    _, page = ask("?p1=0.8&others=0.5")
    (form,) = re.findall(r'<form method="get" action="/provision/".*?</form>', page, re.DOTALL)
    assert "<button" in form
    assert re.findall(r'name="(\w+)"', form) == ["p1", "p2", "guess", "cost", "others"]
    assert re.findall(r'<output for="id_p1"[^>]*>(.*?)</output>', form) == ["0.8"]
    assert 'value="0.5"' in form


def test_the_list_of_runs_links_to_it(client_of, researcher):
    assert f'href="{ADDRESS}"' in client_of(researcher).get("/runs/").content.decode()
