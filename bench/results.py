"""The tables of `docs/results`, computed from the raw numbers beside them, and the lines in which a page differs.

Each function yields the lines that its page must contain, word for word. Intervals over seeds and over starts are
computed here from the single values. With `--write`, the part of a page between the marks `BEGIN` and `END` is replaced
by its lines. Raises `BadInput` for a folder without the raw files.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bench import (
    agreement_page,
    annotation_page,
    annotation_times_page,
    claims_page,
    csp_page,
    emergence_page,
    experiments_page,
    scale_page,
    strategies_page,
    table_speed_page,
)
from bench.baselines import moving, steps_to_same
from bench.rows import number_in
from training.errors import BadInput
from training.evaluate.intervals import Interval, interval, over_seeds, paired
from training.store import loads

Raw = Mapping[str, Any]
BEGIN, END = "<!-- begin: python -m bench results --write -->", "<!-- end -->"
FORMS = {
    "default": "default",
    "undiscounted": "default, γ_turn = 1",
    "paper": "the paper's form",
    "flat": "`flat`",
    "turn_only": "`turn_only`",
    "two_levels_95": "default, γ_turn = 1, λ = λ_turn = 0.95",
    "one_level_95": "`flat`, λ = 0.95",
}


def main(arguments: Namespace) -> dict[str, Any]:
    """Return for each page its computed lines, and those that the page does not contain (once it is written)."""
    pages = {}
    for name, lines in PAGES.items():
        computed, path = list(lines(raw_of(name, arguments.dir))), arguments.dir / f"{name}.md"
        text = _text(path)
        if arguments.write and BEGIN in text:
            text = between_marks(text, computed)
            path.write_text(text, "utf-8")
        pages[name] = {"lines": computed, "missing": [line for line in computed if line not in text]}
    return {"pages": pages, "ok": not any(page["missing"] for page in pages.values())}


def between_marks(text: str, lines: Sequence[str]) -> str:
    """Return a page's text with these lines between its marks."""
    before, rest = text.split(BEGIN)
    return "\n".join([f"{before}{BEGIN}", "", *lines, "", f"{END}{rest.split(END)[1]}"])


def show(result: dict[str, Any]) -> str:
    """Return every page's lines; those that the page does not contain begin with `!`."""
    lines = []
    for name, page in result["pages"].items():
        lines += ["", f"{name}.md", *(f"{'!' if line in page['missing'] else ' '} {line}" for line in page["lines"])]
    return "\n".join(lines[1:])


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", str(path)) from error


def _read(path: Path) -> Raw:
    raw: Raw = loads(_text(path))
    return raw


def raw_of(page: str, folder: Path) -> Raw:
    """Return the raw numbers of a page; if they are in several files, by the files' names."""
    if page in FILES:
        return {name: _read(folder / f"{name}.json") for name in FILES[page]}
    return _read(folder / f"{page}.json")


def toy(raw: Raw) -> Iterator[str]:
    """Yield a row per form of credit: steps of each seed, mean, interval, difference, noise to signal."""
    steps = {form: [float(value) for value in row["steps"]] for form, row in raw["forms"].items()}
    for form, values in steps.items():
        low, high = over_seeds(values)
        title = "default (γ_turn = 0.9)" if form == "default" else FORMS[form]
        seeds = ", ".join(f"{value:.0f}" for value in values)
        lead = _lead(values, steps["default"], 1) if form != "default" else ""
        ratios = raw["forms"][form]["noise_to_signal"]
        noise = f"{ratios['blank']:.1f} | {ratios['converged']:.1f}"
        yield f"| {title} | {seeds} | {fmean(values):.1f} | {low:.1f} to {high:.1f} | {lead} | {noise} |"
    yield f"γ_turn = 1 minus `flat`: {_lead(steps['undiscounted'], steps['flat'], 1)}"
    yield f"λ = λ_turn = 0.95 minus `flat` with λ = 0.95: {_lead(steps['two_levels_95'], steps['one_level_95'], 1)}"


def miniature(raw: Raw) -> Iterator[str]:
    """Yield the rows of the forms against the default, then of the hierarchy against one level, both at λ = 0.95."""
    yield from _forms(raw["forms"], "default")
    yield from _forms(raw["equal_lambda"]["forms"], "one_level_95")


def _forms(rows: Raw, first: str) -> Iterator[str]:
    """Yield a row per form of credit: gains of each seed, mean, interval, difference, agreement, parse rate."""
    runs = {form: row["runs"] for form, row in rows.items()}
    gains = {form: [run["difference"]["mean"] for run in each] for form, each in runs.items()}
    for form, values in gains.items():
        low, high = over_seeds(values)
        seeds = ", ".join(f"{value:.2f}" for value in values)
        lead = _lead(values, gains[first], 3) if form != first else ""
        rates = " | ".join(
            f"{fmean(run[name]['mean'] for run in runs[form]):.2f}" for name in ("agreement", "parse_rate")
        )
        yield f"| {FORMS[form]} | {seeds} | {fmean(values):.3f} | {low:.3f} to {high:.3f} | {lead} | {rates} |"


def hierarchy(raw: Raw) -> Iterator[str]:
    """Yield the numbers of a row per task: both forms with their settings and differences, then those at equal λ."""
    for task in raw["tasks"].values():
        arms = task["arms"]
        flat, turns = (arms[form]["settings"] for form in ("flat", "hierarchical"))
        success = {arm: row["success"] for arm, row in arms.items()}
        leads = " | ".join(_lead(success[arm], success["flat"], 3) for arm in ("hierarchical", "matched"))
        yield (
            f"| {fmean(success['flat']):.3f} (λ {flat['lam']:g}) | {fmean(success['hierarchical']):.3f} "
            f"(λ {turns['lam']:g}, λ_turn {turns['lam_turn']:g}) | {leads} |"
        )
    for name, row in raw["equal_lambda"].items():
        means = " | ".join(f"{fmean(row[form]):.3f}" for form in ("flat", "hierarchical"))
        yield f"| `{name}` | {means} | {_lead(row['hierarchical'], row['flat'], 3)} |"


def werewolf(raw: Raw) -> Iterator[str]:
    """Yield the rows of the miniature, of the planted bug, of SmolLM2's wolves, and the replications."""
    yield from _wolves(raw["miniature"]["forms"]["default"]["runs"])
    yield from _hack(raw["hack"])
    yield from _smollm2(raw["smollm2"]["head_to_head"])
    runs = raw.get("replications", ())
    yield from replications(runs, "won/werewolf", 3)
    yield from _parsed(runs)


def _parsed(runs: Sequence[Raw]) -> Iterator[str]:
    """Yield the differences in parse rate of each seed and over seeds."""
    rates = [[_of(run["values"], side, "parse_rate") for side in "ab"] for run in runs]
    leads = [paired(a, b) for a, b in rates]
    for run, lead in zip(runs, leads, strict=True):
        yield f"seed {run['seed']}, parse rate: {_estimate(lead, 3)}"
    if len(runs) >= FEWEST_SEEDS:
        yield f"over seeds, parse rate: {_over_seeds([lead.mean for lead in leads], 3)}"


def _wolves(runs: Sequence[Raw]) -> Iterator[str]:
    for run in runs:
        won, lead = run["won"], Interval.from_dict(run["difference"])
        times = " | ".join(f"{run[name] / 60:.1f} min" for name in ("train_s", "head_to_head_s"))
        yield f"| {run['seed']} | {won['base']:.3f} | {won['trained']:.3f} | **{_estimate(lead, 3)}** | {times} |"
    gains = [run["difference"]["mean"] for run in runs]
    yield f"| mean, n = {len(gains)} | | | {_over_seeds(gains, 3)} | | |"


def _hack(raw: Raw) -> Iterator[str]:
    titles = {"off": "`off`", "zero": "`zero`, the paper's", "min": "`min`, the default"}
    for name, title in titles.items():
        for run in raw["forms"][name]["runs"]:
            curves = run["curves"]
            parts = [
                fmean(curves["malformed"][a - 1 : b]) for a, b in ((1, 10), (21, 30), (41, 50), (71, 80), (141, 150))
            ]
            parts += [fmean(curves[each][140:150]) for each in ("reward", "leaked")]
            shares = " | ".join(f"{part:.2f}" for part in parts)
            yield f"| {title} | {run['seed']} | {shares} | {run['train_s'] / 60:.1f} min |"
    last = {name: [run["last"] for run in raw["forms"][name]["runs"]] for name in titles}
    for name in ("zero", "min"):
        yield f"`{name}` minus `off`: {_lead(last[name], last['off'], 2)}"


def _smollm2(head_to_head: Raw) -> Iterator[str]:
    """Yield the rows of SmolLM2's head-to-heads, whose games are (model of the wolves, won) by start.

    All games are against the cold start's village, which has B's seats. In `base` both models are the cold start, so
    the games of either model's wolves count.
    """
    games_by_start = {
        name: {
            start: [won for wolves, won in games if wolves in whose]
            for start, games in head_to_head[name]["wolves_won_by_start"].items()
        }
        for name, whose in (("base", "ab"), ("trained", "a"))
    }
    starts = [start for start in games_by_start["base"] if start in games_by_start["trained"]]
    means = {name: [fmean(games[start]) for start in starts] for name, games in games_by_start.items()}
    for name, title in (("base", "cold start"), ("trained", "OMAR, step 30")):
        count = sum(len(games_by_start[name][start]) for start in starts)
        yield f"| {title} | {count} | {_estimate(interval(means[name]), 3, signed=False)} |"
    yield f"| difference, same starts | | **{_estimate(paired(means['trained'], means['base']), 3)}** |"


def casino(raw: Raw) -> Iterator[str]:
    """Yield a row per head-to-head, then the replications.

    The raw file has no values by scenario of the former, so their stored intervals are used.
    """
    for title, head_to_head in raw["head_to_heads"].items():
        summary = head_to_head["summary"]
        points = [Interval.from_dict(summary[group]["points"]) for group in ("a", "b", "difference")]
        agreement, parsed = (
            Interval.from_dict(x) for x in (summary["shared"]["agreement"], summary["a"]["parse_rate"])
        )
        if agreement.mean == 0:
            none = interval([0.0] * agreement.n)
            rest = f"0 in each of {agreement.n} | 0 (0 to {none.high:.2f}, exact)"
        else:
            rest = f"{_estimate(points[2], 2)} | {_estimate(agreement, 2, signed=False)}"
        yield f"{title} | {points[0].mean:.2f} | {points[1].mean:.2f} | {rest} | {_estimate(parsed, 3, signed=False)} |"

    runs = raw.get("replications", ())
    yield from replications(runs, "points", 2, ("agreement",))
    yield from deals(runs)
    yield from explained(runs, raw.get("critic", {}))
    yield from critics(runs, "constant")


FEWEST_SEEDS = 3
"""Fewer seeds get no interval over seeds."""


def replications(runs: Sequence[Raw], name: str, digits: int, shared: Sequence[str] = ()) -> Iterator[str]:
    """Yield a row per seed, whose intervals are over scenarios, and from three seeds on a row of means over seeds.

    `values` of a run has by scenario the numbers of a, of b, and of the whole conversation, each averaged within it.
    A row has `name` of a, of b and their difference, what the whole conversation has of `shared`, and both parse rates.
    """
    for run in runs:
        values = run["values"]
        a, b = ({each: _of(values, side, each) for each in (name, "parse_rate")} for side in "ab")
        means = " | ".join(f"{fmean(side[name]):.{digits}f}" for side in (a, b))
        shares = [(interval(_of(values, "shared", each)), 2) for each in shared]
        shares += [(interval(side["parse_rate"]), 3) for side in (a, b)]
        rest = " | ".join(_estimate(share, places, signed=False) for share, places in shares)
        yield f"| {run['seed']} | {means} | {_estimate(paired(a[name], b[name]), digits)} | {rest} |"
    if len(runs) >= FEWEST_SEEDS:
        gains, rates = [], []
        for values in (run["values"] for run in runs):
            gains.append(fmean(_of(values, "a", name)) - fmean(_of(values, "b", name)))
            rates.append(fmean(_of(values, "a", "parse_rate")))
        lead, parsed = _over_seeds(gains, digits), _over_seeds(rates, 3, signed=False)
        yield f"| mean, n = {len(runs)} | | | {lead} | {'| ' * len(shared)}{parsed} | |"


NO_DEAL = 5
"""Points on CaSiNo without a deal; the side that forfeits has 0."""


def deals(runs: Sequence[Raw]) -> Iterator[str]:
    """Yield the differences in points less what forfeits account for, of each seed and over seeds."""
    rest = []
    for run in runs:
        values = run["values"].values()
        gains = [each["a"]["points"] - NO_DEAL * each["b"]["forfeits"] for each in values]
        losses = [each["b"]["points"] - NO_DEAL * each["a"]["forfeits"] for each in values]
        rest.append(paired(gains, losses))
        yield f"seed {run['seed']}, without forfeits: {_estimate(rest[-1], 2)}"
    if len(runs) >= FEWEST_SEEDS:
        yield f"over seeds, without forfeits: {_over_seeds([lead.mean for lead in rest], 2)}"


def explained(runs: Sequence[Raw], bounds: Mapping[str, Raw]) -> Iterator[str]:
    """Yield a row per seed with a measured bound: the bound on R², and R² on new conversations in training.

    `bounds` has by seed what `bench critic` measured. The latter is the mean of every `WINDOW` steps in a row.
    """
    for run in runs:
        if bound := bounds.get(str(run["seed"]), {}).get("bound"):
            estimate = Interval(mean=bound["r2"], low=bound["low"], high=bound["high"], n=bound["scenarios"])
            means = ", ".join(_signed(mean, 2) for mean in moving(run["train"]["curves"]["value_r2_turn"]))
            yield f"| {run['seed']} | {_estimate(estimate, 3)} | {means} |"


def critics(runs: Sequence[Raw], other: str) -> Iterator[str]:
    """Yield a row per seed that was trained with another critic, too, and the differences over seeds.

    A row has the reward that both reached, the steps that each needed to it, and their mean rewards.
    """
    both = [run for run in runs if run.get(f"train-{other}")]
    rewards = {
        name: [[float(value) for value in run[name]["curves"]["reward"]] for run in both]
        for name in ("train", f"train-{other}")
    }
    levels, steps = steps_to_same(rewards)
    means = {name: [fmean(curve) for curve in curves] for name, curves in rewards.items()}
    for at, run in enumerate(both):
        needed = " | ".join(f"{steps[name][at]:.0f}" for name in rewards)
        earned = " | ".join(f"{means[name][at]:.3f}" for name in rewards)
        yield f"| {run['seed']} | {levels[at]:.3f} | {needed} | {earned} |"
    if len(both) >= FEWEST_SEEDS:
        for title, values, digits in (("steps", steps, 1), ("mean reward", means, 3)):
            ridge, constant = values.values()
            yield f"{title}, ridge minus {other}: {_lead(ridge, constant, digits)}"


def _of(values: Mapping[str, Raw], side: str, name: str) -> list[float]:
    """Return a number of every scenario, of a, b or the whole conversation."""
    return [each[side][name] for each in values.values()]


def intervals(raw: Raw) -> Iterator[str]:
    """Yield a row per kind of data and size."""
    for name, sizes in raw["means"].items():
        for n, methods in sizes.items():
            yield (
                f"| {name} | {n} | "
                + " | ".join(f"{100 * methods[each]:.1f}" for each in ("t", "bca", "percentile"))
                + " |"
            )
    for share, sizes in raw["proportions"].items():
        for n, methods in sizes.items():
            yield (
                f"| {share} | {n} | " + " | ".join(f"{100 * methods[each]:.1f}" for each in ("exact", "wilson")) + " |"
            )


def quick(raw: Raw) -> Iterator[str]:
    """Yield a row per seed and the sentences over seeds; intervals are computed from the points by scenario."""
    leads = []
    for run in raw["runs"]:
        a, b = zip(*run["by_scenario"].values(), strict=True)
        leads.append(paired(a, b))
        points = " | ".join(f"{fmean(values):.1f}" for values in (a, b))
        rates = f"{run['agreement']['mean']:.2f} | {run['a']['parse_rate']['mean']:.2f}"
        seconds = " | ".join(f"{run['seconds'][name]:.0f}" for name in ("cpu", "wall"))
        yield f"| {run['seed']} | {points} | **{_estimate(leads[-1], 1)}** | {rates} | {seconds} |"
    above = sum(lead.low > 0 for lead in leads)
    yield f"**{above} of {len(raw['runs'])} seeds have their interval above zero**"
    yield f"{_over_seeds([lead.mean for lead in leads], 1)} points"


def poker(raw: Raw) -> Iterator[str]:
    """Yield NashConv and exploitability of each policy."""
    for row in raw["nashconv"]:
        digits = 4 if row["policy"] == "cfr" else 3
        yield f"{row['nash_conv']:.{digits}f}"
        yield f"{row['exploitability']:.{digits}f}"


def speed(raw: Raw) -> Iterator[str]:
    """Yield what the table says was measured, without what only the commands print."""
    per_turn, multi_turn = raw["conversation"]["per_turn"], raw["conversation"]["multi_turn"]
    for sides, unit in (
        (raw["learning"], "tokens per second"),
        (raw["sampling"], "tokens per second"),
        (per_turn, "per hour"),
        (multi_turn, "per hour"),
    ):
        a, b = (sides[side]["median"] for side in "ab")
        rounds = ", ".join(f"{ratio:.2f}" for ratio in sides["ratios"])
        yield f"{a:.0f} against {b:.0f} {unit}: {a / b:.2f}; paired {median(sides['ratios']):.2f} (rounds {rounds})"
    seconds = raw["start"]["site"]["seconds"]
    yield f"{median(seconds):.1f} s ({min(seconds):.1f}–{max(seconds):.1f})"
    yield f"{raw['start']['command']['above_s']:.2f} s"
    pages = {name: page["median_ms"] for name, page in raw["pages"]["pages"].items()}
    yield f"slowest median {max(pages.values()):.1f} ms (the form of a new run), the ladder {pages['ladder']:.1f}"
    drawn = [visit["drawn_ms"] / 1000 for visit in raw["curves"]["visits"]]
    load = raw["curves"]["conditions"]["load_before"]
    yield f"{median(drawn):.2f} s ({min(drawn):.2f}–{max(drawn):.2f}) at a load average of {load:.0f}"
    turns = {name: row["median_ms"] for name, row in raw["games"]["turn"].items()}
    low, high = (f"{of(turns.values()):.2f} ms" for of in (min, max))
    others = {"werewolf": "Werewolf", "among_us": "Among Us", "qa_society": "society", "household": "household"}
    rest = ", ".join(f"{title} {turns[name]:.2f}" for name, title in others.items())
    yield f"{low} (shop) to {high} (Hanabi); {rest}"
    rates = {name: row["a"]["median"] / row["b"]["median"] for name, row in raw["games"]["textarena"].items()}
    titles = {"tic_tac_toe": "tic-tac-toe", "connect_four": "Connect Four", "kuhn_poker": "Kuhn poker"}
    yield f"{', '.join(f'{title} {rates[name]:.2f}' for name, title in titles.items())} of its rate"
    for probes in (raw["probes"], raw["probes_vllm"]):
        rounds = ", ".join(f"{100 * each:.1f}" for each in probes["shares"])
        yield f"{100 * probes['share']:.1f} % (rounds {rounds})"


def transfer(raw: Raw) -> Iterator[str]:
    """Yield three rows per form: accuracy with what became of the answers, tokens, patterns; then the differences."""
    rows = {form: [row for row in raw["rows"] if row["form"] == form] for form in raw["forms"]}
    right: dict[str, dict[str, float]] = {}
    for form, each in rows.items():
        right[form] = {row["question"]: float(row["correct"]) for row in each if row["correct"] is not None}
        accuracy = _estimate(interval(list(right[form].values())), 3, signed=False)
        unparsed = sum(row["answer"] is None for row in each if row["correct"] is not None)
        errors = len(each) - len(right[form])
        yield f"| `{form}` | {accuracy} | {sum(right[form].values()):.0f} | {unparsed} | {errors} |"
    for form, each in rows.items():
        replies = [reply for row in each for reply in row["replies"]]
        prompt, completion = (sum(reply[name] for reply in replies) for name in ("prompt_tokens", "completion_tokens"))
        cut = sum(reply["completion_tokens"] >= raw["conditions"]["sampling"]["max_tokens"] for reply in replies)
        per_question = f"{prompt / len(each):,.0f} | {completion / len(each):,.0f}"
        correct = sum(right[form].values())
        per_correct = f"{(prompt + completion) / correct:,.0f}" if correct else "–"
        yield f"| `{form}` | {len(replies)} | {cut} | {per_question} | {per_correct} |"
    for form, each in rows.items():
        replies = [reply for row in each for reply in row["replies"]]
        shares = [f"{sum(reply[name] for reply in replies)} of {len(replies)}" for name in ("role", "intent")]
        yield f"| `{form}` | {shares[0]} | {shares[1]} |"
    first, *others = right
    for form in others:
        both = [question for question in right[form] if question in right[first]]
        lead = paired([right[form][question] for question in both], [right[first][question] for question in both])
        yield f"`{form}` minus `{first}`: {_estimate(lead, 3)}"


def smollm2(raw: Raw) -> Iterator[str]:
    """Yield a row per task of the suite, before and after MARS, then a row per number of the games of Among Us."""
    for before, after in zip(raw["mars"]["before"], raw["mars"]["after"], strict=True):
        cells = (_estimate(Interval(**row["raw"]), 2, signed=False).replace("-", "−") for row in (before, after))
        yield f"| {before['title']}, {before['opponent']} | {' | '.join(cells)} |"
    for name, before in raw["among_us"]["before"].items():
        yield f"| {name} | {before:.2f} | {raw['among_us']['after'][name]:.2f} |".replace("-", "−")


ESTIMATORS = {
    "none": "`none`",
    "role_ema": "`role_ema`",
    "player": "`player`",
    "player_turn": "`player_turn`",
    "all_players": "`per_player = false`",
    "whole_game": "`turn_level = false`",
    "normalised_first": '`normalise = "before"`',
}
AVERAGES = ("sum", "token_mean", "turn_mean", "player_mean")


def mars(raw: Raw) -> Iterator[str]:
    """Yield bias and noise of each form by average, how both change with the group, then the miniatures."""
    for game in ("fixed_length", "policy_ends", "one_reward"):
        for form, title in ESTIMATORS.items():
            row = raw["estimators"]["games"][game][form]
            biases = " | ".join(f"{row[how]['bias']:.2f}" for how in AVERAGES)
            summed = row["sum"]
            worst, ratio, noise = summed["worst_bias"], summed["ratio"], summed["noise"]
            yield f"| {title} | {biases} | {worst:.2f} | {ratio:.2f} | {noise:.1f} |"
    pairs, triples = (raw[name]["games"]["policy_ends"] for name in ("estimators_pairs", "estimators_triples"))
    for form, title in ESTIMATORS.items():
        summed = " | ".join(f"{rows[form]['sum']['bias']:.2f}" for rows in (pairs, triples))
        turns = " | ".join(f"{rows[form]['turn_mean']['bias']:.2f}" for rows in (pairs, triples))
        yield f"| {title} | {summed} | {turns} |"
    for task in ("kuhn", "tictactoe", "hanabi"):
        if task in raw:
            yield from _strategic(raw[task])
    for task in ("kuhn_forms", "hanabi_forms"):
        if task in raw:
            yield from _credit(raw[task])
    if "held_out" in raw:
        yield from _held_out(raw["held_out"])


def _strategic(raw: Raw) -> Iterator[str]:
    """Yield the start's number, then a row per form: each seed's number, mean, and change from the start."""
    name, before = next(iter(raw["before"].items()))
    yield f"Starting model: {before:.3f}".replace("-", "−")
    for form, rows in raw["forms"].items():
        values = [row["after"][name] for row in rows["runs"]]
        single = ", ".join(f"{value:.2f}" for value in values)
        gain = _over_seeds([value - before for value in values], 2)
        row = f"| `{form}` | {single} | {_over_seeds(values, 2, signed=False)} | {gain} |"
        yield row.replace("-", "−")


def _credit(raw: Raw) -> Iterator[str]:
    """Yield a row per form: each seed's number, mean, and the difference from the first form, paired by seed."""
    name = next(iter(raw["before"]))
    values = {form: [row["after"][name] for row in rows["runs"]] for form, rows in raw["forms"].items()}
    first = next(iter(values.values()))
    for form, single in values.items():
        seeds = ", ".join(f"{value:.2f}" for value in single)
        lead = "" if single is first else f"{_lead(single, first, 2)} "
        yield f"| `{form}` | {seeds} | {_over_seeds(single, 2, signed=False)} | {lead}|"


def _held_out(raw: Raw) -> Iterator[str]:
    """Yield the start's number and each model's change from it, by task in normalised points, then by NashConv."""
    for task, row in raw["before"]["after"].items():
        start = Interval(**{name: row["normalised"][name] for name in ("mean", "low", "high", "n")})
        changes = (_change(runs, start.mean, 0, "after", task, "normalised", "mean") for runs in raw["models"].values())
        estimate = _estimate(start, 0, signed=False).replace("-", "−")
        yield f"| {task} | {estimate} | {' | '.join(changes)} |"
    for game, value in raw["before"]["nash_conv"].items():
        changes = (_change(runs, value, 2, "nash_conv", game) for runs in raw["models"].values())
        yield f"| {game} | {value:.2f} | {' | '.join(changes)} |"


def _change(runs: Sequence[Mapping[str, Any]], start: float, digits: int, *where: str) -> str:
    return _over_seeds([number_in(row, *where) - start for row in runs], digits)


def listen_speak(raw: Raw) -> Iterator[str]:
    """Yield each variant's wins by seed with their mean and ratio to `RL`; what it believes and says; differences.

    Then each attempt of one seed that came before: what was different, wins and words of `RL` and `RL+L+S`.
    """
    won = {form: [row["after"]["won"] for row in rows["runs"]] for form, rows in raw["forms"].items()}
    for form, values in won.items():
        single = ", ".join(f"{value:.2f}" for value in values)
        ratio = fmean(values) / fmean(won["RL"])
        yield f"| `{form}` | {single} | {_over_seeds(values, 2, signed=False)} | {ratio:.2f} |"
    for columns in (WITNESSED, SPOKEN):
        for form, rows in raw["forms"].items():
            yield f"| `{form}` | {' | '.join(_mean_of(rows['runs'], name) for name in columns)} |"
    for form, other in (("RL+L+S", "RL"), ("RL+L", "RL"), ("RL+L+S", "RL+L")):
        yield f"`{form}` minus `{other}`: {_lead(won[form], won[other], 3)}"
    for attempt in raw["attempts"]:
        rows = [attempt["rows"].get(form) for form in ("RL", "RL+L+S")]
        cells = [f"{row[name]:.2f}" if row else "–" for name in ("won", "named_seen") for row in rows]
        yield f"| {attempt['change']} | {attempt['commit']} | {' | '.join(cells)} |"


DIFFERENCES = (("sft", "none"), ("rl", "none"), ("rl", "sft"), ("rl_self_play", "none"), ("rl_self_play", "rl"))
"""The pairs of forms of EPO's miniatures whose differences are listed."""


def epo(raw: Raw) -> Iterator[str]:
    """Yield for each task the means of every following share and form; then their differences, paired by seed."""
    for task in raw["tasks"].values():
        groups: dict[tuple[int, str], dict[int, Raw]] = {}
        for run in sorted(task["runs"], key=lambda run: int(run["following"])):
            if run["after"] is not None:
                groups.setdefault((run["following"], run["form"]), {})[run["seed"]] = run["after"]
        for (share, form), after in groups.items():
            names = _measured(after)
            means = [_over_seeds([each[name] for each in after.values()], 3, signed=False) for name in names]
            yield f"| {share} % | `{form}` | {len(after)} | {' | '.join(means)} |"
        for form, first in DIFFERENCES:
            for share in sorted({share for share, _ in groups}):
                if {(share, form), (share, first)} <= groups.keys():
                    yield _gain(f"| {share} % | `{form}` minus `{first}`", groups[share, form], groups[share, first])


def _gain(title: str, after: Mapping[int, Raw], first: Mapping[int, Raw]) -> str:
    """Return a row of mean differences with their intervals, for the seeds that both have."""
    seeds = sorted(after.keys() & first.keys())
    gains = [
        _lead([after[seed][name] for seed in seeds], [first[seed][name] for seed in seeds], 3)
        for name in _measured(after)
    ]
    return f"{title} | {len(seeds)} | {' | '.join(gains)} |"


def _measured(after: Mapping[int, Raw]) -> list[str]:
    """Return the measured numbers but for that of the other seat where both have the same strategist."""
    return [name for name in next(iter(after.values())) if name != "both_opposite"]


SPOKEN = ("votes_right", "before", "after", "named", "named_seen", "silent", "waits")
"""The columns of what a variant does in meetings."""
WITNESSED = ("meetings", "witnessed", "won_witnessed", "won_unwitnessed", "ejected", "tasks")
"""The columns of how its games went."""


def _mean_of(runs: Sequence[Mapping[str, Any]], name: str) -> str:
    """Return the mean over the seeds that have the number, – if none has it."""
    values = [row["after"][name] for row in runs if row["after"][name] is not None]
    return f"{fmean(values):.2f}" if values else "–"


def _lead(values: Sequence[float], first: Sequence[float], digits: int) -> str:
    """Return the paired difference over seeds."""
    return _over_seeds([a - b for a, b in zip(values, first, strict=True)], digits)


def _over_seeds(values: Sequence[float], digits: int, *, signed: bool = True) -> str:
    low, high = over_seeds(values)
    return _estimate(Interval(mean=fmean(values), low=low, high=high, n=len(values)), digits, signed=signed)


def _estimate(estimate: Interval, digits: int, *, signed: bool = True) -> str:
    mean, low, high = (
        _signed(value, digits) if signed else f"{value:.{digits}f}"
        for value in (estimate.mean, estimate.low, estimate.high)
    )
    return f"{mean} ({low} to {high})"


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def silence(raw: Raw) -> Iterator[str]:
    """Yield a row per seed, and one of the largest shares: of a step, and in parentheses of steps in a row."""
    for run in raw["runs"]:
        shares = " | ".join(_shares(run, name) for name in raw["largest"])
        yield f"| {run['seed']} | {shares} | {run['why'] or 'quiet'} |"
    shares = " | ".join(_shares(raw, name) for name in raw["largest"])
    yield f"| largest | {shares} | {raw['ended']} of {raw['seeds']} ended |"


def _shares(row: Raw, name: str) -> str:
    largest, lasting = (row[kind][name] for kind in ("largest", "lasting"))
    return "none" if largest is None else f"{largest:.2f} ({'none' if lasting is None else f'{lasting:.2f}'})"


def retrieval(raw: Raw) -> Iterator[str]:
    """Yield two rows per kind of index, how it was built and how it is searched; then the exact search alone."""
    for kind in ("bm25", "dense"):
        row, build = raw[kind], raw[kind]["build"]
        size = f"{row['bytes_per_passage']:,.0f} | {build['peak_bytes'] / 2**30:.2f} GiB"
        yield f"| `{kind}` | {row['passages']:,} | {build['seconds'] / 60:.1f} min | {size} |"
    searched = {"`bm25`": raw["bm25"]["search"], "`dense`": raw["dense"]["search"], "vectors": raw["exact"]}
    for title, row in searched.items():
        times = " | ".join(f"{row[name]:.1f} ms" for name in ("p50_ms", "p95_ms"))
        memory = " | ".join(f"{row[name] / 2**30:.2f} GiB" for name in ("peak_bytes", "private_bytes"))
        yield f"| {title} | {times} | {row['queries_per_second']:.0f} | {row['first_s']:.1f} s | {memory} |"
    for kind in ("bm25", "dense"):
        yield f"`{kind}` returns the passage of the query in {100 * raw[kind]['search']['found']:.0f} % of cases"


PAGES: dict[str, Callable[[Raw], Iterator[str]]] = {
    "toy": toy,
    "miniature": miniature,
    "hierarchy": hierarchy,
    "werewolf": werewolf,
    "casino": casino,
    "claims": claims_page.page,
    "intervals": intervals,
    "quick": quick,
    "poker": poker,
    "transfer": transfer,
    "smollm2": smollm2,
    "mars": mars,
    "listen_speak": listen_speak,
    "csp": csp_page.page,
    "experiments": experiments_page.page,
    "epo": epo,
    "silence": silence,
    "retrieval": retrieval,
    "strategies": strategies_page.page,
    "emergence": emergence_page.page,
    "speed": speed,
    "table-speed": table_speed_page.page,
    "agreement": agreement_page.page,
    "annotation": annotation_page.page,
    "annotation-times": annotation_times_page.page,
    "emergence-smollm2": emergence_page.page,
    "scale": scale_page.page,
}
FILES = {
    "speed": ("learning", "sampling", "conversation", "start", "pages", "curves", "games", "probes", "probes_vllm"),
    "table-speed": ("socket", "move", "table", "table_page"),
    "csp": ("csp", "csp_stronger"),
}
"""The raw files of a page that has several."""
