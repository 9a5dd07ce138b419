"""The kinds of products from which catalogues are generated: names, attributes, options and prices.

Attributes stand before the noun (`a waterproof rain jacket`). In the sense of the reward, no attribute of a kind is
similar to another one, and no value of its options to another one: tests check this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Shares = Mapping[str, float]
"""Values of an option, with the share of the product's price that each adds."""


def free(*values: str) -> Shares:
    """Return values that add nothing to the price."""
    return dict.fromkeys(values, 0.0)


COLOURS = free("black", "white", "red", "blue", "green", "yellow", "purple", "orange", "brown", "pink")
SIZES = free("S", "M", "L", "XL")
SHOE_SIZES = free("6", "7", "8", "9", "10", "11")
PACKS: Shares = {"single": 0.0, "twin pack": 0.8, "family box": 2.5}
LENGTHS: Shares = {"3 ft": 0.0, "6 ft": 0.3, "10 ft": 0.7}
UNSTOCKED = ("magenta", "turquoise", "beige", "crimson", "teal", "khaki")
"""Colours in which no product is sold."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of product; `low` and `high` bound its price in dollars."""

    noun: str
    category: str
    low: float
    high: float
    attributes: tuple[str, ...]
    options: Mapping[str, Shares]
    plural: bool = False


def _kind(line: str, attributes: str, **options: Shares) -> Kind:
    """Read `noun | category | lowest–highest price`; a noun with `+` before it is a plural or a mass."""
    noun, category, prices = (part.strip() for part in line.split("|"))
    low, high = map(float, prices.split("–"))
    return Kind(noun.lstrip("+"), category, low, high, tuple(attributes.split(", ")), options, noun.startswith("+"))


BRANDS = {
    "Clothing": ("Halvorsen", "Corvane", "Tidewell", "Mirabeau", "Oakhurst", "Pellerin"),
    "Kitchen": ("Brantley", "Kestrel", "Copperline", "Vasari", "Hearthway", "Lindqvist"),
    "Home": ("Somerfield", "Dunmore", "Ashgrove", "Velluto", "Northlight", "Calloway"),
    "Electronics": ("Voltera", "Nimbic", "Quillon", "Arcadyne", "Soniq", "Tessel"),
    "Beauty": ("Florelle", "Sanova", "Mirelle", "Purity Lane", "Avenna", "Botanique"),
    "Food": ("Harvest Row", "Goldmill", "Cedar Creek", "Bonnet", "Wildacre", "Marlowe"),
    "Sports": ("Summitry", "Trailborn", "Apexon", "Kinetica", "Rivermark", "Stridex"),
    "Office and Garden": ("Paperwright", "Inkwell", "Greenmarch", "Fernley", "Stanhope", "Burrow"),
}
"""Brands by the first part of a category; invented."""

CLOTHING = (
    _kind(
        "rain jacket | Clothing › Outerwear › Rain Jackets | 45–140",
        "waterproof, windproof, packable, hooded, breathable, lined, reflective, seam-sealed",
        colour=COLOURS, size=SIZES,
    ),
    _kind(
        "fleece sweater | Clothing › Knitwear › Sweaters | 25–90",
        "machine-washable, slim-fit, full-zip, high-neck, quick-drying, stretchy, thermal, oversized",
        colour=COLOURS, size=SIZES,
    ),
    _kind(
        "+running shoes | Clothing › Shoes › Running Shoes | 40–160",
        "lightweight, non-slip, cushioned, wide-fit, breathable, arch-supporting, reflective, vegan",
        colour=COLOURS, size=SHOE_SIZES,
    ),
    _kind(
        "belt | Clothing › Accessories › Belts | 12–60",
        "reversible, adjustable, scratch-resistant, hand-stitched, braided, buckle-free, elastic, full-grain",
        colour=COLOURS, width=free("narrow", "regular", "broad"),
    ),
    _kind(
        "+hiking socks | Clothing › Socks › Hiking Socks | 8–30",
        "moisture-wicking, seamless, cushioned, odour-resistant, knee-high, merino, left-and-right, tick-repellent",
        colour=COLOURS, size=SIZES, pack=PACKS,
    ),
)  # fmt: skip

KITCHEN = (
    _kind(
        "coffee mug | Kitchen › Drinkware › Mugs | 8–35",
        "dishwasher-safe, microwave-safe, double-walled, hand-painted, stackable, lidded, heatproof, spoon-holding",
        colour=COLOURS, capacity={"8 oz": 0.0, "12 oz": 0.2, "16 oz": 0.4},
    ),
    _kind(
        "frying pan | Kitchen › Cookware › Frying Pans | 20–110",
        "non-stick, induction-ready, oven-safe, cast-iron, pre-seasoned, ceramic-coated, long-handled, scratch-proof",
        diameter={"20 cm": 0.0, "24 cm": 0.2, "28 cm": 0.45}, handle=free("wooden", "steel", "silicone"),
    ),
    _kind(
        "kitchen knife | Kitchen › Cutlery › Knives | 15–120",
        "rust-resistant, full-tang, double-edged, hand-forged, serrated, dishwasher-safe, hammered, left-handed",
        blade={"paring": 0.0, "utility": 0.15, "carving": 0.4}, handle=free("wooden", "steel", "resin"),
    ),
    _kind(
        "water bottle | Kitchen › Drinkware › Water Bottles | 10–45",
        "insulated, leakproof, BPA-free, dishwasher-safe, collapsible, wide-mouth, dent-resistant, straw-lidded",
        colour=COLOURS, capacity={"16 oz": 0.0, "24 oz": 0.2, "32 oz": 0.4},
    ),
    _kind(
        "storage jar | Kitchen › Storage › Jars | 6–40",
        "airtight, stackable, freezer-safe, light-blocking, BPA-free, labelled, shatterproof, moisture-proof",
        capacity={"16 oz": 0.0, "32 oz": 0.4, "64 oz": 0.9}, pack=PACKS,
    ),
)  # fmt: skip

HOME = (
    _kind(
        "bed sheet set | Home › Bedding › Sheets | 25–130",
        "wrinkle-resistant, deep-pocketed, hypoallergenic, cooling, machine-washable, brushed, satin, fade-resistant",
        colour=COLOURS, size={"twin": 0.0, "queen": 0.3, "king": 0.5},
    ),
    _kind(
        "pillow | Home › Bedding › Pillows | 15–80",
        "hypoallergenic, cooling, neck-supporting, down-filled, adjustable, machine-washable, bamboo-covered, firm",
        size={"standard": 0.0, "queen": 0.25, "king": 0.5}, pack=PACKS,
    ),
    _kind(
        "throw blanket | Home › Bedding › Blankets | 18–95",
        "machine-washable, weighted, reversible, fringed, static-free, electric, chunky, pet-proof",
        colour=COLOURS, size={"small": 0.0, "medium": 0.3, "wide": 0.5},
    ),
    _kind(
        "+curtains | Home › Windows › Curtains | 20–110",
        "blackout, thermal, noise-reducing, sheer, wrinkle-resistant, pleated, rod-pocket, flame-retardant",
        colour=COLOURS, length={"short": 0.0, "medium": 0.2, "floor-length": 0.4},
    ),
    _kind(
        "bath towel | Home › Bathroom › Towels | 9–50",
        "quick-drying, absorbent, lint-free, fade-resistant, oversized, bamboo, embroidered, antimicrobial",
        colour=COLOURS, pack=PACKS,
    ),
)  # fmt: skip

ELECTRONICS = (
    _kind(
        "+earbuds | Electronics › Audio › Earbuds | 20–190",
        "noise-cancelling, sweatproof, wireless, tangle-free, fast-charging, low-latency, touch-controlled, child-safe",
        colour=COLOURS, tips=free("foam", "silicone", "hybrid"),
    ),
    _kind(
        "charging cable | Electronics › Accessories › Cables | 6–35",
        "braided, fast-charging, tangle-free, magnetic, gold-plated, right-angled, retractable, heat-resistant",
        colour=COLOURS, length=LENGTHS,
    ),
    _kind(
        "phone case | Electronics › Accessories › Phone Cases | 8–45",
        "shockproof, transparent, ultra-thin, magnetic, card-holding, water-resistant, biodegradable, anti-yellowing",
        colour=COLOURS, finish=free("matte", "glossy", "textured"),
    ),
    _kind(
        "power bank | Electronics › Accessories › Power Banks | 18–100",
        "fast-charging, solar, pocket-sized, shockproof, wireless, airline-approved, dual-port, self-lighting",
        colour=COLOURS, capacity={"5 Ah": 0.0, "10 Ah": 0.4, "20 Ah": 0.9},
    ),
    _kind(
        "desk lamp | Electronics › Lighting › Desk Lamps | 18–120",
        "dimmable, clamp-on, flicker-free, foldable, rechargeable, motion-sensing, eye-caring, swing-arm",
        colour=COLOURS, light=free("warm", "neutral", "daylight"),
    ),
)  # fmt: skip

BEAUTY = (
    _kind(
        "+shampoo | Beauty › Hair Care › Shampoos | 6–40",
        "sulfate-free, volumizing, colour-safe, anti-dandruff, vegan, fragrance-free, moisturizing, cruelty-free",
        scent=free("coconut", "lavender", "mint", "citrus"), size={"travel": 0.0, "regular": 0.5, "salon": 1.2},
    ),
    _kind(
        "hand cream | Beauty › Skin Care › Hand Creams | 5–35",
        "fragrance-free, fast-absorbing, paraben-free, hypoallergenic, vegan, non-greasy, anti-ageing, cruelty-free",
        scent=free("almond", "rose", "vanilla", "citrus"), pack=PACKS,
    ),
    _kind(
        "lipstick | Beauty › Make-up › Lipsticks | 7–45",
        "long-lasting, matte, smudge-proof, hydrating, vegan, cruelty-free, shimmering, paraben-free",
        shade=free("coral", "burgundy", "nude", "plum", "cherry"), pack=PACKS,
    ),
    _kind(
        "toothbrush | Beauty › Oral Care › Toothbrushes | 4–90",
        "soft-bristled, electric, rechargeable, biodegradable, waterproof, tongue-cleaning, timer-equipped, foldable",
        colour=COLOURS, pack=PACKS,
    ),
    _kind(
        "+bar soap | Beauty › Skin Care › Soaps | 4–25",
        "handmade, exfoliating, palm-oil-free, moisturizing, antibacterial, unscented, vegan, long-lasting",
        base=free("oatmeal", "charcoal", "honey", "olive"), pack=PACKS,
    ),
)  # fmt: skip

FOOD = (
    _kind(
        "+green tea | Food › Drinks › Tea | 5–40",
        "organic, caffeine-free, fair-trade, first-flush, non-GMO, sugar-free, shade-grown, kosher",
        flavour=free("jasmine", "lemon", "ginger", "plain"), pack=PACKS,
    ),
    _kind(
        "+coffee beans | Food › Drinks › Coffee | 9–55",
        "organic, fair-trade, low-acid, single-origin, decaffeinated, shade-grown, small-batch, kosher",
        roast=free("light", "medium", "dark"), bag={"12 oz": 0.0, "2 lb": 0.9, "5 lb": 2.4},
    ),
    _kind(
        "+granola | Food › Breakfast › Granola | 5–30",
        "gluten-free, nut-free, low-sugar, high-protein, organic, grain-free, oven-baked, non-GMO",
        flavour=free("maple", "cinnamon", "berry", "chocolate"), pack=PACKS,
    ),
    _kind(
        "+dark chocolate | Food › Sweets › Chocolate | 4–35",
        "dairy-free, fair-trade, sugar-free, organic, single-origin, soy-free, gift-wrapped, kosher",
        flavour=free("orange", "mint", "hazelnut", "plain"), pack=PACKS,
    ),
    _kind(
        "+trail mix | Food › Snacks › Trail Mix | 6–35",
        "unsalted, gluten-free, high-protein, organic, resealable, low-sodium, raw, non-GMO",
        blend=free("tropical", "berry", "savoury", "classic"), pack=PACKS,
    ),
)  # fmt: skip

SPORTS = (
    _kind(
        "yoga mat | Sports › Fitness › Yoga Mats | 15–90",
        "non-slip, extra-thick, latex-free, foldable, odourless, washable, alignment-marked, tear-resistant",
        colour=COLOURS, strap=free("cotton", "elastic", "none"),
    ),
    _kind(
        "tent | Sports › Camping › Tents | 60–320",
        "waterproof, self-standing, windproof, lightweight, mosquito-proof, fire-retardant, pop-up, four-season",
        colour=COLOURS, sleeps={"one": 0.0, "two": 0.3, "four": 0.8},
    ),
    _kind(
        "backpack | Sports › Camping › Backpacks | 30–180",
        "water-resistant, padded, anti-theft, expandable, ventilated, lightweight, hydration-ready, lockable",
        colour=COLOURS, volume={"20 L": 0.0, "35 L": 0.25, "50 L": 0.5},
    ),
    _kind(
        "bicycle helmet | Sports › Cycling › Helmets | 25–150",
        "adjustable, ventilated, reflective, shock-absorbing, foldable, visored, light-equipped, magnetic",
        colour=COLOURS, size=SIZES,
    ),
    _kind(
        "jump rope | Sports › Fitness › Jump Ropes | 7–40",
        "tangle-free, weighted, adjustable, cordless, foam-handled, speed-counting, non-slip, beaded",
        colour=COLOURS, length=LENGTHS,
    ),
)  # fmt: skip

OFFICE_AND_GARDEN = (
    _kind(
        "notebook | Office and Garden › Stationery › Notebooks | 5–35",
        "hardcover, spiral-bound, acid-free, refillable, pocket-sized, numbered, bleed-proof, elastic-banded",
        colour=COLOURS, ruling=free("lined", "dotted", "blank"),
    ),
    _kind(
        "fountain pen | Office and Garden › Stationery › Pens | 12–150",
        "refillable, quick-drying, gold-nibbed, engraved, left-handed, leakproof, hand-turned, weighted",
        colour=COLOURS, nib=free("fine", "medium", "broad"),
    ),
    _kind(
        "office chair | Office and Garden › Furniture › Chairs | 70–400",
        "ergonomic, height-adjustable, reclining, mesh-backed, armless, swivelling, heavy-duty, lumbar-supporting",
        colour=COLOURS, castors=free("hard", "soft", "gliders"),
    ),
    _kind(
        "dog bed | Office and Garden › Pets › Dog Beds | 20–130",
        "orthopaedic, machine-washable, chew-resistant, cooling, waterproof, bolstered, foldable, non-slip",
        colour=COLOURS, size={"small": 0.0, "medium": 0.3, "giant": 0.7},
    ),
    _kind(
        "garden hose | Office and Garden › Watering › Hoses | 18–95",
        "kink-free, expandable, rust-resistant, lead-free, burst-proof, lightweight, winter-proof, nozzled",
        colour=COLOURS, length=LENGTHS,
    ),
)  # fmt: skip

KINDS = (*CLOTHING, *KITCHEN, *HOME, *ELECTRONICS, *BEAUTY, *FOOD, *SPORTS, *OFFICE_AND_GARDEN)
