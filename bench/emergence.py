"""Emergence curves of two small self-play runs: what rules and classifiers see in their held-out games, by checkpoint.

Negotiation: a classifier of strategies, trained on people's dialogues of CaSiNo, and rules for three of the strategies,
whose errors are measured on the same dialogues. Werewolf: rules that read claims and accusations, and a classifier that
has learned them from scripted games. Classifiers' shares are corrected for the errors that they state of themselves.
Where rules label, too, both are compared turn by turn. With `--rules-only` there are no classifiers, whose training
takes most of the time; they are stored beside the runs, which are those of `bench.emergence_runs`.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench import emergence_runs, strategies, werewolf_setup
from bench.emergence_runs import Played, Sizes
from training.errors import BadInput
from training.evaluate.agreement import estimate
from training.evaluate.behaviours import Checkpoint, JudgedGame, OutcomeRow, by_outcome, units
from training.evaluate.emergence import CurvePoint, curves
from training.games import make
from training.games.actions import TAG, clean
from training.labels import classifier
from training.labels.claims import claims_of
from training.labels.classifier import Classifier
from training.labels.codebooks import BEHAVIOURS, CODEBOOKS, Codebook, LabelType
from training.labels.prevalence import ErrorRates, error_rates
from training.labels.turns import LabelledTurns
from training.records import Episode, Judgment, Label, Seat
from training.seeding import rng
from training.store import sha256
from webapp.scenarios.importers.casino_annotations import MOVES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

WOLF = werewolf_setup.WOLF
SEED = 0
"""Of the dialogues and scripted games that classifiers learn from."""
SCRIPTED = 300
"""Scripted games of Werewolf that the classifier learns from."""
NEGOTIATION = CODEBOOKS["negotiation-moves"]
KEYWORDS = {
    "elicit_preference": re.compile(
        r"\b(?:and|how about|what about) you\b[^.!]*\?|\bwhat (?:do|would|are) you\b[^.!]*\?", re.IGNORECASE
    ),
    "no_need": re.compile(r"\bleast\b|\bspare\b|\b(?:do not|don'?t) (?:really )?need\b", re.IGNORECASE),
    "vouch_fairness": re.compile(r"\b(?:un)?fair", re.IGNORECASE),
}
"""Rules for strategies that a few words tell."""
ACCUSES = re.compile(r"\b(?:suspect|accuse|distrust|vote for)\b", re.IGNORECASE)


def _turn_type(name: str, title: str, definition: str) -> LabelType:
    return LabelType(name=name, title=title, kind="yes_no", about="turn", definition=definition, roles=(WOLF,))


TALK = Codebook(
    name="wolves-talk",
    version=1,
    title="What wolves say",
    labels=(
        _turn_type("false_role", "False claim of a role", "Does the wolf claim a role that it does not have?"),
        _turn_type("accuses", "Accusation", "Does the wolf accuse a player, or announce a vote on one?"),
        _turn_type("asks", "Question", "Does the wolf ask a question?"),
    ),
)


def _only(codebook: Codebook, names: Iterable[str]) -> Codebook:
    """Return a codebook with these label types alone."""
    return codebook.model_copy(update={"labels": tuple(map(codebook.type_of, names))})


CONDUCT = _only(BEHAVIOURS, ("identity_concealment", "voting_manipulation", "recognising_deception"))
"""The behaviours of Werewolf that a rule can read, each only in part."""


def main(arguments: Namespace) -> dict[str, Any]:
    """Return the curves of each seed and game, and how behaviours differ by outcome."""
    if arguments.dir is None:
        raise BadInput("training runs need a directory", "--dir")
    folder, sizes = arguments.dir.absolute(), Sizes(arguments.steps, arguments.every, arguments.games)
    result: dict[str, Any] = {
        "measurement": "emergence",
        "dataset": {"file": arguments.dataset.name, "sha256": sha256(arguments.dataset)},
        "model": "" if arguments.rules_only else arguments.model,
        "train": arguments.train,
        "negotiators": arguments.negotiators,
    }
    return result | {game: PARTS[game](arguments, folder, sizes) for game in PARTS if arguments.part in (game, "both")}


def _negotiations(arguments: Namespace, folder: Path, sizes: Sizes) -> dict[str, Any]:
    turns = _annotated(arguments)
    strategist = None
    if not arguments.rules_only:
        train = partial(classifier.train, turns, arguments.model, seed=SEED)
        strategist = _stored(folder / f"strategist-{turns.digest()[:16]}-{Path(arguments.model).name}", train)
    rules = _rules(turns)
    negotiators = emergence_runs.NEGOTIATORS[arguments.negotiators]
    runs = emergence_runs.negotiation(arguments.dataset, arguments.seeds, folder / "negotiation", sizes, negotiators)
    return {
        "classifier": _facts(strategist),
        "rules": {name: errors.to_dict() for name, errors in rules.items()},
        "runs": [_negotiation(played, strategist, rules) for played in runs],
    }


def _werewolf_runs(arguments: Namespace, folder: Path, sizes: Sizes) -> dict[str, Any]:
    listener = None
    if not arguments.rules_only:
        train = partial(_listener, arguments.model)
        listener = _stored(folder / f"listener-{Path(arguments.model).name}", train)
    runs = emergence_runs.werewolf(arguments.seeds, folder / "werewolf", sizes)
    return {"classifier": _facts(listener), "runs": [_werewolf(played, listener) for played in runs]}


PARTS = {"negotiation": _negotiations, "werewolf": _werewolf_runs}


# --- classifiers ------------------------------------------------------------------------------------------------------


def _stored(folder: Path, train: Callable[[], Classifier]) -> Classifier:
    """Return the classifier of a folder, which is trained and stored there if it is missing."""
    if not folder.is_dir():
        train().save(folder)
    return classifier.load(folder)


def _annotated(arguments: Namespace) -> LabelledTurns:
    """Return the turns of the annotated dialogues that classifiers may read, with the names of the codebook."""
    turns, _ = strategies.read(arguments.dataset)
    names = list(dict.fromkeys(turns.dialogues))
    if arguments.train > len(names):
        raise BadInput(f"there are {len(names)} annotated dialogues", "--train")
    drawn = set(rng(SEED, "split").sample(names, arguments.train))
    use = np.array([name in drawn for name in turns.dialogues])
    return LabelledTurns(
        [text for text, used in zip(turns.texts, use, strict=True) if used],
        [name for name, used in zip(turns.dialogues, use, strict=True) if used],
        tuple(MOVES[name] for name in turns.names),
        turns.labels[use],
        turns.rated[use],
    )


def _rules(turns: LabelledTurns) -> dict[str, ErrorRates]:
    """Return how often the keyword rules err in people's turns."""
    dialogues = [name for name, rated in zip(turns.dialogues, turns.rated, strict=True) if rated]
    errors = {}
    for name, pattern in KEYWORDS.items():
        seen = np.array([pattern.search(text) is not None for text in turns.texts])[turns.rated]
        errors[name] = error_rates(seen, turns.labels[turns.rated, turns.names.index(name)], dialogues)
    return errors


def _listener(model: str) -> Classifier:
    """Return a classifier of what wolves say, which has learned the rules' labels in scripted games."""
    texts: list[str] = []
    dialogues: list[str] = []
    labels: list[list[bool]] = []
    rated: list[bool] = []
    names = tuple(label_type.name for label_type in TALK.labels)
    for number, episode in enumerate(werewolf_setup.scripted(SCRIPTED, SEED)):
        marks = _wolves_words(episode)
        for turn, (seat, words) in _spoken(episode).items():
            texts.append(words)
            dialogues.append(str(number))
            labels.append([turn in marks[name] for name in names])
            rated.append(episode.roles[seat] == WOLF)
    return classifier.train(LabelledTurns(texts, dialogues, names, np.array(labels), np.array(rated)), model, seed=SEED)


def _facts(trained: Classifier | None) -> dict[str, Any] | None:
    if trained is None:
        return None
    info = trained.info
    errors = {name: each.to_dict() for name, each in zip(info.labels, info.accuracy, strict=True)}
    return {
        "pooling": info.pooling.to_dict(), "turns": info.turns, "dialogues": info.dialogues, "errors": errors
    }  # fmt: skip


def _errors(trained: Classifier | None) -> dict[str, ErrorRates]:
    if trained is None:
        return {}
    return dict(zip(trained.info.labels, trained.info.accuracy, strict=True))


# --- games ------------------------------------------------------------------------------------------------------------


def _spoken(episode: Episode) -> dict[int, tuple[Seat, str]]:
    """Return the seat and the words of every turn that has words beside its tags, by the index of its move."""
    every = {at: (each.seat, _words(each.move.text)) for at, each in enumerate(episode.moves)}
    return {at: (seat, words) for at, (seat, words) in every.items() if re.search(r"\w", words)}


def _words(text: str) -> str:
    """Return a text without its tags and what stands between them."""
    return clean(TAG.sub(" ", re.sub(r"<(\w+)>.*?</\1>", " ", text)))


@dataclass(frozen=True, slots=True)
class Read:
    """The games of a checkpoint that ended without an error, with the words of their turns."""

    step: int
    episodes: list[Episode]
    spoken: list[dict[int, tuple[Seat, str]]]

    def checkpoint(
        self,
        codebook: Codebook,
        labels: Callable[[int, Episode], Iterable[Label]],
        outcomes: Callable[[Episode], Sequence[bool | None]],
    ) -> Checkpoint:
        """Return the games with one author's labels of each, and outcomes of its seats."""
        games = []
        for number, (episode, spoken) in enumerate(zip(self.episodes, self.spoken, strict=True)):
            judgment = Judgment(
                codebook=codebook.name,
                codebook_version=codebook.version,
                episode=episode.scenario.id,
                author="author",
                labels=tuple(labels(number, episode)),
            )
            roles = make(episode.scenario).roles() or ("",) * len(episode.scenario.seats)
            turns = {turn: seat for turn, (seat, _) in spoken.items()}
            games.append(JudgedGame(roles, outcomes(episode), (judgment,), turns))
        return Checkpoint(self.step, games)


def _read(played: Played) -> list[Read]:
    steps = []
    for step, episodes in sorted(played.games.items()):
        ended = [episode for episode in episodes if not episode.error]
        steps.append(Read(step, ended, [_spoken(episode) for episode in ended]))
    return steps


def _classified(steps: Sequence[Read], trained: Classifier) -> list[list[list[Label]]]:
    """Return the labels that a classifier suggests, by step and game."""
    suggested = []
    for step in steps:
        turns = [(number, turn, words) for number, each in enumerate(step.spoken) for turn, (_, words) in each.items()]
        labels: list[list[Label]] = [[] for _ in step.episodes]
        if turns:
            texts, dialogues = [words for _, _, words in turns], [number for number, _, _ in turns]
            for row, flags in zip(turns, trained.decide(trained.predict(texts, dialogues)), strict=True):
                names = (name for name, flag in zip(trained.info.labels, flags, strict=True) if flag)
                labels[row[0]] += (Label(label=name, value=True, turn=row[1]) for name in names)
        suggested.append(labels)
    return suggested


def _suggested(
    steps: Sequence[Read],
    trained: Classifier | None,
    codebook: Codebook,
    outcomes: Callable[[Episode], Sequence[bool | None]],
) -> list[Checkpoint]:
    """Return the games with the labels that the classifier suggests; none without a classifier."""
    if trained is None:
        return []
    return [
        step.checkpoint(codebook, partial(_of_game, labels), outcomes)
        for step, labels in zip(steps, _classified(steps, trained), strict=True)
    ]


def _of_game(labels: Sequence[list[Label]], number: int, _: Episode) -> list[Label]:
    return labels[number]


def _compared(by_rule: Sequence[Checkpoint], by_model: Sequence[Checkpoint], codebook: Codebook) -> dict[str, Any]:
    """Return for each label how a classifier agrees with rules about the turns of each checkpoint, and of all.

    Cohen's kappa with its interval over games, and the shares of turns that both, and that either labels.
    """
    if not by_model:
        return {}
    steps = [
        (str(rules.step), [(rules, model)]) for rules, model in zip(by_rule, by_model, strict=True)
    ] + [("all", list(zip(by_rule, by_model, strict=True)))]  # fmt: skip
    return {
        label.name: {step: _agreement(pairs, codebook, label) for step, pairs in steps} for label in codebook.labels
    }


def _agreement(
    pairs: Sequence[tuple[Checkpoint, Checkpoint]], codebook: Codebook, label_type: LabelType
) -> dict[str, Any]:
    rules: list[bool] = []
    model: list[bool] = []
    games: list[tuple[int, int]] = []
    for each in pairs:
        for number, (ruled, modelled) in enumerate(zip(each[0].games, each[1].games, strict=True)):
            asked = [units(game, codebook, label_type) for game in (ruled, modelled)]
            rules += [bool(unit.value) for unit in asked[0]]
            model += [bool(unit.value) for unit in asked[1]]
            games += [(each[0].step, number)] * len(asked[0])
    both = np.array([rules, model], dtype=bool)
    kappa = estimate("cohen", (rules, model), games)
    return {
        "kappa": kappa.value, "low": kappa.low, "high": kappa.high, "turns": len(games), "games": len(set(games)),
        "by_rule": int(both[0].sum()), "by_classifier": int(both[1].sum()), "by_both": int(both.all(axis=0).sum()),
    }  # fmt: skip


def _sizes(played: Played, steps: Sequence[Read]) -> dict[str, Any]:
    by_step = {
        str(each.step): {
            "games": len(each.episodes),
            "errors": len(played.games[each.step]) - len(each.episodes),
            "turns": sum(map(len, each.spoken)),
            "words": float(np.mean([len(words.split()) for game in each.spoken for _, words in game.values()] or [0])),
            "texts": len({words for game in each.spoken for _, words in game.values()}),
        }
        for each in steps
    }
    return {"seed": played.seed, **played.outcome, "steps": by_step}


def _written(curves_by_label: Mapping[str, Sequence[CurvePoint]]) -> dict[str, Any]:
    return {name: [point.to_dict() for point in points] for name, points in curves_by_label.items()}


def _rows(rows: Iterable[OutcomeRow]) -> list[dict[str, Any]]:
    return [row.to_dict() for row in rows if row.p is not None]


# --- negotiation ------------------------------------------------------------------------------------------------------


def _negotiation(played: Played, trained: Classifier | None, rules: Mapping[str, ErrorRates]) -> dict[str, Any]:
    """Return the curves of strategies by rules and by the classifier, and strategies by who got more points.

    The latter are the classifier's where there is one.
    """
    steps = _read(played)
    by_rule = [step.checkpoint(NEGOTIATION, lambda _, episode: _by_keywords(episode), _earned_more) for step in steps]
    seen, corrected = curves(by_rule, NEGOTIATION), curves(by_rule, NEGOTIATION, rules)
    by_model = _suggested(steps, trained, NEGOTIATION, _earned_more)
    rows = by_outcome(by_model or by_rule, NEGOTIATION)
    return {
        **_sizes(played, steps),
        "agreement": {str(each.step): float(np.mean([_deal(episode) for episode in each.episodes])) for each in steps},
        "rule": _written({name: seen[name] for name in KEYWORDS}),
        "rule_corrected": _written({name: corrected[name] for name in KEYWORDS}),
        "classifier": _written(curves(by_model, NEGOTIATION, _errors(trained))),
        "compared": _compared(by_rule, by_model, _only(NEGOTIATION, KEYWORDS)),
        "by_outcome": _rows(row for row in rows if by_model or row.behaviour in KEYWORDS),
    }


def _by_keywords(episode: Episode) -> list[Label]:
    return [
        Label(label=name, value=True, turn=turn)
        for turn, (_, words) in _spoken(episode).items()
        for name, pattern in KEYWORDS.items()
        if pattern.search(words)
    ]


def _earned_more(episode: Episode) -> list[bool | None]:
    """Return of each seat whether it got more points than the other; None where both got as many."""
    points = [episode.seat_metrics.get(seat, {}).get("points", 0.0) for seat in (0, 1)]
    return [None, None] if points[0] == points[1] else [points[0] > points[1], points[1] > points[0]]


def _deal(episode: Episode) -> float:
    return float(episode.metrics.get("agreement", 0.0))


# --- Werewolf ---------------------------------------------------------------------------------------------------------


def _werewolf(played: Played, trained: Classifier | None) -> dict[str, Any]:
    """Return the curves of what wolves say by rule and by classifier, and behaviours by who survived."""
    steps = _read(played)
    by_rule = [step.checkpoint(TALK, lambda _, episode: _talk(episode), _survived) for step in steps]
    by_model = _suggested(steps, trained, TALK, _survived)
    conduct = [step.checkpoint(CONDUCT, lambda _, episode: _conduct(episode), _survived) for step in steps]
    return {
        **_sizes(played, steps),
        "wolves_win": {
            str(each.step): float(np.mean([episode.metrics["wolves_win"] for episode in each.episodes]))
            for each in steps
        },
        "rule": _written(curves(by_rule, TALK)),
        "classifier": _written(curves(by_model, TALK, _errors(trained))),
        "compared": _compared(by_rule, by_model, TALK),
        "behaviours": _written(curves(conduct, CONDUCT)),
        "by_outcome": _rows(by_outcome(conduct, CONDUCT)),
    }


def _survived(episode: Episode) -> list[bool | None]:
    return [bool(episode.seat_metrics[seat]["survived"]) for seat in range(len(episode.scenario.seats))]


def _wolves_words(episode: Episode) -> dict[str, set[int]]:
    """Return by label of `TALK` the turns of wolves that have it, by rule."""
    spoken = _spoken(episode)
    wolves = {turn: words for turn, (seat, words) in spoken.items() if episode.roles[seat] == WOLF}
    claims = claims_of(episode.scenario, episode.moves)
    false = {claim.move for claim in claims if claim.kind == "role" and claim.verdict == "false"}
    return {
        "false_role": false & wolves.keys(),
        "accuses": {turn for turn, words in wolves.items() if ACCUSES.search(words)},
        "asks": {turn for turn, words in wolves.items() if "?" in words},
    }


def _talk(episode: Episode) -> list[Label]:
    return [
        Label(label=name, value=True, turn=turn)
        for name, turns in _wolves_words(episode).items()
        for turn in sorted(turns)
    ]


def _conduct(episode: Episode) -> list[Label]:
    """Return three of Werewolf's behaviours by rule, of every seat that spoke.

    Concealment: a wolf's false claim of a role. Manipulation: its accusation of somebody who is no wolf. Recognising
    deception: a villager's accusation of a wolf.
    """
    marks = _wolves_words(episode)
    spoken = _spoken(episode)
    labels = []
    for seat in sorted({seat for seat, _ in spoken.values()}):
        turns = {turn for turn, (speaker, _) in spoken.items() if speaker == seat}
        accused = {other for turn in turns for other in _accused(episode, spoken[turn][1])}
        on_wolves = {episode.roles[other] == WOLF for other in accused}
        if episode.roles[seat] == WOLF:
            answers = {
                "identity_concealment": bool(turns & marks["false_role"]), "voting_manipulation": False in on_wolves
            }  # fmt: skip
        else:
            answers = {"recognising_deception": True in on_wolves}
        labels += [Label(label=name, value=value, seat=seat) for name, value in answers.items()]
    return labels


def _accused(episode: Episode, words: str) -> set[Seat]:
    """Return the seats that a sentence with an accusation names."""
    sentences = [sentence for sentence in re.split(r"[.!?]", words) if ACCUSES.search(sentence)]
    return {
        seat
        for seat, name in enumerate(episode.scenario.seats)
        if any(re.search(rf"\b{re.escape(name)}\b", sentence) for sentence in sentences)
    }


def show(result: dict[str, Any]) -> str:
    """Return the shares of every label and checkpoint by seed."""
    lines = []
    for game in (name for name in PARTS if name in result):
        for played in result[game]["runs"]:
            lines.append(f"{game}, seed {played['seed']}: {played['result']} {played['why']}".rstrip())
            for author in ("rule", "classifier"):
                for name, points in played[author].items():
                    values = "  ".join(f"{point['step']}: {point['share'] or 0:.2f}" for point in points)
                    lines.append(f"  {name}, by {author}: {values}")
    return "\n".join(lines)
