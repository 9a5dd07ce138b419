"""Catalogues in WebShop's files, here with three products, read and named by their hash."""

import json

import pytest

from training.errors import BadInput
from training.games import make
from training.games.shop import webshop
from training.games.shop.products import Value
from training.records import Scenario
from training.text.parsing import parse

PRODUCTS = [
    {
        "asin": "B01SHOE001",
        "name": "Trail  Runner Shoe\nfor Women",
        "category": "fashion",
        "query": " Running Shoes ",
        "product_category": "Clothing › Women › Shoes",
        "pricing": "$1,049.50",
        "full_description": "Light <b>and</b> fast.",
        "small_description": ["Rubber sole", " ", "Mesh upper"],
        "customization_options": {
            "Color": [{"value": "Dark Red/Black", "image": "x.jpg"}, {"value": " white "}, {"value": "White"}],
            "Size": [{"value": "7"}, {"value": "<8>"}],
            "Fit": None,
        },
        "images": ["x.jpg"],
        "brand": 7,
    },
    {
        "asin": "B01MUG0001",
        "name": "Mug",
        "category": "garden",
        "query": "mug",
        "product_category": "Kitchen › Mugs",
        "pricing": "$8.00 - $12.50",
        "full_description": None,
        "small_description": "Holds coffee",
        "customization_options": "",
    },
    {
        "asin": "B01TEA0001",
        "name": "Tea",
        "category": "grocery",
        "query": "tea",
        "product_category": "Food › Tea",
        "pricing": None,
        "full_description": "",
        "small_description": None,
        "customization_options": {},
    },
    {"asin": "nan"},
    {"asin": "B01MUG0001", "name": "The second of a number is skipped"},
    {"asin": "B01234567890"},
]
INSTRUCTED = {
    "B01SHOE001": {
        "attributes": ["light weight", "rubber sole"],
        "instruction": "find me light weight women's shoes",
        "instruction_attributes": ["light weight"],
    },
    "B01MUG0001": {"attributes": ["dishwasher safe"], "instruction": None, "instruction_attributes": None},
}
HUMAN = {
    "B01MUG0001": [
        {
            "asin": "B01MUG0001",
            "instruction": "i want a dishwasher safe mug.",
            "instruction_attributes": ["dishwasher safe"],
            "instruction_options": [],
        },
        {"instruction": "without attributes", "instruction_attributes": [], "instruction_options": []},
    ],
    "B01SHOE001": [
        {
            "instruction": "i need light weight shoes in red and black",
            "instruction_attributes": ["light weight"],
            "instruction_options": {"color": "dark red | black"},
        }
    ],
    "B0UNKNOWN1": [{"instruction": "of a product that is not there"}],
}


def write(folder, products=PRODUCTS, instructed=INSTRUCTED, human=HUMAN):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "items_shuffle_1000.json").write_text(json.dumps(products), "utf-8")
    (folder / "items_ins_v2_1000.json").write_text(json.dumps(instructed), "utf-8")
    if human is not None:
        (folder / "items_human_ins.json").write_text(json.dumps(human), "utf-8")
    return folder


def test_products_are_read(tmp_path):
    shoe, mug, tea = webshop.read(write(tmp_path)).products.values()
    assert (shoe.id, shoe.title, shoe.query) == ("B01SHOE001", "Trail Runner Shoe for Women", "running shoes")
    assert (shoe.price, shoe.category) == (1049.5, "Clothing › Women › Shoes")
    assert shoe.options == {"color": (Value("dark red | black"), Value("white")), "size": (Value("7"), Value("8"))}
    assert shoe.features == ("Rubber sole", "Mesh upper")
    assert shoe.attributes == ("light weight", "rubber sole")
    assert (mug.price, mug.features, mug.description, mug.options) == (10.25, ("Holds coffee",), "", {})  # the middle
    assert (tea.price, tea.features, tea.attributes) == (100.0, (), ())


def test_goals_of_people_are_read_in_the_order_of_the_products(tmp_path):
    shoe, mug = webshop.read(write(tmp_path)).goals
    assert (shoe.product, shoe.attributes, shoe.options) == ("B01SHOE001", ("light weight",), ("dark red | black",))
    assert shoe.price_limit is None  # a limit is below 1,000 dollars
    assert shoe.instruction == "i need light weight shoes in red and black"
    assert (mug.product, mug.attributes, mug.options) == ("B01MUG0001", ("dishwasher safe",), ())
    assert mug.price_limit in (30, 40, 50)  # the higher of two of 20, 30, 40 and 50: above 10.25
    assert mug.instruction == f"i want a dishwasher safe mug, and price lower than {mug.price_limit:.2f} dollars"


def test_without_them_every_combination_of_options_is_a_goal(tmp_path):
    goals = webshop.read(write(tmp_path, human=None)).goals
    text = "find me light weight women's shoes with "
    assert [goal.instruction for goal in goals] == [
        f"{text}color: {color}, and size: {size}" for color in ("dark red | black", "white") for size in ("7", "8")
    ]
    assert [goal.options for goal in goals[:2]] == [("dark red | black", "7"), ("dark red | black", "8")]


def changed(data, *path, to):
    """A copy of JSON data with another value at a path; `to` None removes it."""
    copy = json.loads(json.dumps(data))
    *way, last = path
    inner = copy
    for step in way:
        inner = inner[step]
    if to is None:
        del inner[last]
    else:
        inner[last] = to
    return copy


OPTIONS = "customization_options"


@pytest.mark.parametrize(
    "files, where, why",
    [
        ({"products": {}}, "items_shuffle_1000.json", "expected a list of products"),
        ({"products": []}, "items_shuffle_1000.json", "no entry has a proper number"),
        ({"products": [[]]}, "items_shuffle_1000.json, entry 0", "expected an object"),
        ({"products": changed(PRODUCTS, 1, "asin", to=None)}, "1000.json, entry 1, asin", "missing"),
        ({"products": changed(PRODUCTS, 1, "name", to=5)}, "1000.json, entry 1, name", "expected a string"),
        ({"products": changed(PRODUCTS, 1, "name", to=" ")}, "1000.json, entry 1, name", "empty"),
        ({"products": changed(PRODUCTS, 0, "query", to=None)}, "1000.json, entry 0, query", "missing"),
        (
            {"products": changed(PRODUCTS, 0, "product_category", to=[])},
            "entry 0, product_category",
            "expected a string",
        ),
        (
            {"products": changed(PRODUCTS, 0, "full_description", to=1)},
            "entry 0, full_description",
            "expected a string",
        ),
        (
            {"products": changed(PRODUCTS, 0, "small_description", 0, to=1)},
            "entry 0, small_description",
            "list of strings",
        ),
        (
            {"products": changed(PRODUCTS, 0, "pricing", to="12.50")},
            "entry 0, pricing",
            r"such as \$12.50, not '12.50'",
        ),
        ({"products": changed(PRODUCTS, 0, "pricing", to=12.5)}, "entry 0, pricing", "expected prices"),
        ({"products": changed(PRODUCTS, 0, OPTIONS, to=[1])}, f"entry 0, {OPTIONS}", "expected an object of lists"),
        ({"products": changed(PRODUCTS, 0, OPTIONS, "Size", to="7")}, f"{OPTIONS}.Size", "expected a list of values"),
        ({"products": changed(PRODUCTS, 0, OPTIONS, "Size", 1, to={})}, f"{OPTIONS}.Size.1, value", "missing"),
        ({"instructed": []}, "items_ins_v2_1000.json", "expected an object by asin"),
        ({"instructed": {"B01MUG0001": 1}}, "items_ins_v2_1000.json, entry B01MUG0001", "expected an object"),
        (
            {"instructed": changed(INSTRUCTED, "B01MUG0001", "attributes", to="safe")},
            "items_ins_v2_1000.json, entry B01MUG0001, attributes",
            "expected a list of strings",
        ),
        (
            {"instructed": changed(INSTRUCTED, "B01SHOE001", "instruction_attributes", to=None), "human": None},
            "items_ins_v2_1000.json, entry B01SHOE001, instruction_attributes",
            "missing",
        ),
        ({"human": {"B01MUG0001": {}}}, "items_human_ins.json, entry B01MUG0001", "expected a list of instructions"),
        ({"human": {"B01MUG0001": [3]}}, "items_human_ins.json, entry B01MUG0001.0", "expected an object"),
        (
            {"human": changed(HUMAN, "B01MUG0001", 0, "instruction", to=None)},
            "items_human_ins.json, entry B01MUG0001.0, instruction",
            "missing",
        ),
        (
            {"human": changed(HUMAN, "B01SHOE001", 0, "instruction_options", to="red")},
            "items_human_ins.json, entry B01SHOE001.0, instruction_options",
            "expected a list of strings",
        ),
        (
            {"human": changed(HUMAN, "B01MUG0001", 0, "instruction", to="x" * 3000)},
            "items_human_ins.json, entry B01MUG0001.0, instruction",
            "at most 2000",
        ),
    ],
)
def test_errors_name_file_entry_and_field(tmp_path, files, where, why):
    with pytest.raises(BadInput, match=why) as refusal:
        webshop.read(write(tmp_path, **files))
    assert refusal.value.where.endswith(where)
    assert refusal.value.where.startswith(f"{tmp_path.name}/")


def test_a_folder_has_one_file_of_each_kind_in_json(tmp_path):
    write(tmp_path)
    (tmp_path / "items_shuffle.json").write_text("[]")
    with pytest.raises(BadInput, match=r"needs one file items_shuffle\*\.json, not 2"):
        webshop.read(tmp_path)
    (tmp_path / "items_shuffle.json").unlink()
    (tmp_path / "items_ins_v2_1000.json").write_bytes(b"{\xff}")
    with pytest.raises(BadInput, match="not JSON in UTF-8") as refusal:
        webshop.read(tmp_path)
    assert refusal.value.where == f"{tmp_path.name}/items_ins_v2_1000.json"
    (tmp_path / "items_ins_v2_1000.json").unlink()
    with pytest.raises(BadInput, match="needs one file items_ins_v2"):
        webshop.read(tmp_path)


# --- as the catalogue of a scenario ----------------------------------------------------------------------------------


def visit(**settings):
    return Scenario(id="x", game="shop", settings={"catalogue": "small", **settings}, seats=("Ada",), seed=3)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_HOME", str(tmp_path))
    return write(tmp_path / "catalogues" / "small")


def test_a_visit_to_a_catalogue_of_files(folder):
    hashed = visit(sha256=webshop.read(folder).sha256, goal=webshop.read(folder).goals[0].model_dump())
    game = make(hashed)
    for text in ("<search>shoe</search>", "<click>b01shoe001</click>", "<click>dark red | black</click>"):
        game.step({0: parse(text, game.observe(0))[0]})
    game.step({0: parse("<click>buy now</click>", game.observe(0))[0]})
    assert game.returns() == {0: 1.0}
    assert "regret" not in game.metrics()


def test_a_scenario_states_the_hash_of_its_files(folder):
    stated = webshop.read(folder).sha256
    assert make(visit(sha256=stated)).goal in webshop.read(folder).goals
    with pytest.raises(BadInput, match=f"has the hash {stated}, which the scenario must state") as refusal:
        make(visit())
    assert refusal.value.where == "settings.sha256"
    write(folder, products=changed(PRODUCTS, 1, "pricing", to="$9.00"))
    with pytest.raises(BadInput, match="another one than the scenario states"):  # in the same process, too
        make(visit(sha256=stated))
    assert make(visit(sha256=webshop.read(folder).sha256)).to_act()


def test_the_hash_counts_every_file(tmp_path):
    hashes = {
        webshop.read(write(tmp_path / str(number), **files)).sha256
        for number, files in enumerate(({}, {"human": None}, {"instructed": {}}, {"products": PRODUCTS[:2]}))
    }
    assert len(hashes) == 4


def test_an_unknown_catalogue_is_named(folder):
    with pytest.raises(BadInput, match=r"there is no catalogue 'other'.*generated-1") as refusal:
        make(visit(catalogue="other"))
    assert refusal.value.where == "settings.catalogue"
    with pytest.raises(BadInput, match=r"settings\.catalogue"):
        make(visit(catalogue="../small"))
    with pytest.raises(BadInput, match=r"settings\.sha256"):
        make(visit(catalogue="generated-1", sha256="0" * 64))


def test_a_catalogue_without_goals_needs_a_stated_one(folder):
    write(folder, human={})
    stated = webshop.read(folder).sha256
    with pytest.raises(BadInput, match="no goals of the split all; state a goal") as refusal:
        make(visit(sha256=stated))
    assert refusal.value.where == "settings.goal"
    wanted = {"instruction": "tea", "product": "B01TEA0001"}
    assert make(visit(sha256=stated, goal=wanted)).to_act()
