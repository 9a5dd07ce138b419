"""A large queue for `bench.annotation_times`: 10,000 seats by three annotators under eight label types, and a run's.

A few scripted games of Werewolf are stored by the site's own functions; rows of the database copy them, with other
hashes. The true value of a label follows from a hash, and annotators err in a tenth of their labels. A tenth of the
targets has a decision. The third annotator has the last targets still to judge. A second queue has as many seats of the
episodes of a run, for its curves; it has no files of episodes, so that only what the database holds is read of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

ITEMS, ANNOTATORS, SEATS = 10_000, 3, 6
PLAYED = 20
"""Scripted games that are copied."""
LEFT = 60
"""Targets that the third annotator has still to judge."""
DECIDED = 10
"""Of so many targets one has a decision."""
STEPS = 10
"""Checkpoints of the run."""
YES_NO = ("hides", "accuses", "defends", "claims")
OPTIONS = ("calm", "tense", "angry")
KINDS: tuple[dict[str, Any], ...] = (
    *({"name": name, "kind": "yes_no"} for name in YES_NO),
    *({"name": name, "kind": "scale", "low": 1, "high": 5} for name in ("persuasion", "honesty")),
    {"name": "trust", "kind": "scale", "low": 0, "high": 100},
    {"name": "mood", "kind": "one_of", "options": [{"name": name, "title": name.title()} for name in OPTIONS]},
)
LABELS = [
    {"title": each["name"].title(), "about": "seat", "definition": f"What of {each['name']}?", **each} for each in KINDS
]

DRAW = "('x' || substr(md5({} || ' ' || label.number || ' ' || {}), 1, 8))::bit(32)::bigint % {}"
"""A number below the third part, by the hash of the first two and the label's number."""
TRUE = DRAW.format("target.position", "'truth'", "60")
WRONG = f"({DRAW.format('target.position', 'judgment.author_id', '10')} = 0 AND NOT judgment.decides)::int"
VALUE = f"({TRUE} + {WRONG})"

GAMES = """
INSERT INTO scenarios_storedscenario (version_id, position, key, game, title, data)
SELECT version_id, position + {played} * n, key || '-' || n, game, title, data
FROM scenarios_storedscenario, generate_series(1, {copies}) n WHERE version_id = {version};

INSERT INTO scenarios_storedconversation (scenario_id, position, source, data, episode_sha256, judgments)
SELECT copy.id, 0, 'copy:' || copy.id, game.data, md5(copy.id::text) || md5(copy.id || ' again'), '[]'::jsonb
FROM scenarios_storedscenario copy
JOIN scenarios_storedscenario first ON first.version_id = {version} AND first.position = copy.position % {played}
    AND copy.version_id = {version} AND copy.position >= {played}
JOIN scenarios_storedconversation game ON game.scenario_id = first.id;

UPDATE scenarios_datasetversion SET scenario_count = {games}, conversation_count = {games} WHERE id = {version};

INSERT INTO judgments_labelledgame (conversation_id, game, roles, won, survived, movers, text)
SELECT game.id, 'werewolf', game.data->'roles', '[]'::jsonb,
    (SELECT jsonb_agg(coalesce((game.data#>>ARRAY['seat_metrics', seat::text, 'survived'])::float, 0) > 0 ORDER BY seat)
     FROM generate_series(0, {seats} - 1) seat),
    (SELECT jsonb_agg(move->'seat') FROM jsonb_array_elements(game.data->'moves') move),
    (SELECT string_agg(move#>>'{{move,text}}', E'\\n') FROM jsonb_array_elements(game.data->'moves') move)
FROM scenarios_storedconversation game JOIN scenarios_storedscenario scenario ON scenario.id = game.scenario_id
WHERE scenario.version_id = {version};

INSERT INTO runs_playedepisode (run_id, step, number, fence, file, "offset", length, outcome, summary)
SELECT {run}, (n % {steps}) * 10, n, 1, 'f', 0, 0, '', jsonb_build_object(
    'scenario', 's', 'returns', '{{"0": 1, "1": 0.5}}'::jsonb, 'turns', 8, 'refused', 0, 'roles', game.roles)
FROM generate_series(0, {games} - 1) n
JOIN (SELECT roles, row_number() OVER (ORDER BY id) - 1 AS place FROM judgments_labelledgame) game ON game.place = n;

INSERT INTO judgments_labelledgame (episode_id, game, roles, won, survived, movers, text)
SELECT episode.id, game.game, game.roles, game.won, game.survived, game.movers, game.text
FROM runs_playedepisode episode
JOIN (SELECT *, row_number() OVER (ORDER BY id) - 1 AS place FROM judgments_labelledgame) game
    ON game.place = episode.number
WHERE episode.run_id = {run};
"""
QUEUE = """
INSERT INTO judgments_target (queue_id, {kind}_id, seat, position, batch, priority, gold, state, required)
SELECT {queue}, game.id, seat, (row_number() OVER (ORDER BY game.id, seat)) - 1, 1, 0, false, 'scored', {annotators}
FROM {games}, generate_series(0, {seats} - 1) seat ORDER BY game.id, seat LIMIT {items};

INSERT INTO judgments_judgment (codebook_version_id, target_id, queue_id, {kind}_id, seat, author_id, rule,
    outside_author, prompt_sha256, unscored, reason, decides, unsure, seconds, suggestions_shown, cost, history,
    created_at, updated_at)
SELECT {codebook}, target.id, {queue}, target.{kind}_id, target.seat, person, '', '', '', false,
    CASE WHEN target.position % 7 = 0 THEN 'a comment' ELSE '' END, false, target.position % 11 = 0,
    10 + target.position % 50, false, '{{}}'::jsonb, '[]'::jsonb, moment, moment
FROM judgments_target target, unnest(ARRAY[{people}]) WITH ORDINALITY AS who(person, number),
    LATERAL (SELECT now() - interval '30 days' + (target.position * 20 + number) * interval '4 seconds' AS moment) at
WHERE target.queue_id = {queue} AND (number < {annotators} OR target.position < {items} - {left})
ORDER BY target.position, number;

INSERT INTO judgments_judgment (codebook_version_id, target_id, queue_id, {kind}_id, seat, author_id, rule,
    outside_author, prompt_sha256, unscored, reason, decides, unsure, seconds, suggestions_shown, cost, history,
    created_at, updated_at)
SELECT {codebook}, target.id, {queue}, target.{kind}_id, target.seat, {owner}, '', '', '', false, '', true, false, NULL,
    false, '{{}}'::jsonb, '[]'::jsonb, now() - interval '1 day', now() - interval '1 day'
FROM judgments_target target WHERE target.queue_id = {queue} AND target.position % {decided} = 0;

INSERT INTO judgments_label (judgment_id, name, value, text, seat, reason)
SELECT judgment.id, label.name,
    CASE WHEN label.kind = 'yes_no' THEN to_jsonb({value} % 2 = 1)
         WHEN label.name = 'trust' THEN to_jsonb(({value} * 7 % 101)::float)
         WHEN label.kind = 'scale' THEN to_jsonb((1 + {value} % 5)::float)
         ELSE to_jsonb((ARRAY[{options}])[1 + {value} % 3]) END, '', judgment.seat, ''
FROM judgments_judgment judgment JOIN judgments_target target ON target.id = judgment.target_id,
    (VALUES {labels}) AS label(number, name, kind)
WHERE target.queue_id = {queue} ORDER BY judgment.id, label.number;
"""


@dataclass(frozen=True)
class Seeded:
    """Accounts and numbers of what was stored."""

    owner: Any
    annotators: list[Any]
    queue: int
    run: int
    items: int


def seed(items: int = ITEMS) -> Seeded:
    """Fill the database of this process's installation; `items` are seats of each of the two queues."""
    users = import_module("webapp.accounts.models").User.objects
    owner = users.create(username="rosa", role="researcher")
    people = [users.create(username=f"annotator-{number}", role="annotator") for number in range(1, ANNOTATORS + 1)]
    games = -(-items // SEATS)
    version = _dataset(owner)
    codebook = import_module("webapp.judgments.codebooks.services").save_codebook(
        name="eight", title="Eight labels", labels=LABELS, by=owner
    )
    run = import_module("webapp.runs.models").Run.objects.create(
        kind="train", name="seeded", owner=owner, state="succeeded", method="omar", game="werewolf", base="tiny",
        config=import_module("training.config").RunConfig(name="seeded").to_dict(),
    )  # fmt: skip
    queues = [_queue(name, owner, people, codebook) for name in ("Seats of games", "Seats of a run")]
    numbers = {
        "played": PLAYED, "copies": -(-games // PLAYED) - 1, "version": version.pk, "games": games, "seats": SEATS,
        "run": run.pk, "steps": STEPS,
    }  # fmt: skip
    _execute(GAMES, **numbers)
    chosen = {
        "conversation": f"scenarios_storedconversation game JOIN scenarios_storedscenario scenario"
        f" ON scenario.id = game.scenario_id AND scenario.version_id = {version.pk}",
        "episode": f"runs_playedepisode game JOIN runs_run run ON run.id = game.run_id AND run.id = {run.pk}",
    }
    for queue, (kind, rows) in zip(queues, chosen.items(), strict=True):
        _execute(
            QUEUE, kind=kind, games=rows, queue=queue.pk, codebook=codebook.pk, owner=owner.pk, items=items,
            seats=SEATS, people=", ".join(str(user.pk) for user in people), annotators=ANNOTATORS,
            decided=DECIDED, value=VALUE,
            left=min(LEFT, items // 2) if kind == "conversation" else 0,
            options=", ".join(f"'{name}'" for name in OPTIONS),
            labels=", ".join(f"({at}, '{each['name']}', '{each['kind']}')" for at, each in enumerate(LABELS)),
        )  # fmt: skip
    _execute("ANALYZE")
    return Seeded(owner, people, queues[0].pk, run.pk, items)


def _dataset(owner: Any) -> Any:
    """Store the scripted games as a dataset; return its version."""
    setup, dataset = import_module("bench.werewolf_setup"), import_module("training.dataset")
    lines = []
    for number, episode in enumerate(setup.scripted(PLAYED, 0)):
        scenario = episode.scenario.model_copy(update={"id": f"village-{number}"})
        played = episode.model_copy(update={"scenario": scenario, "traces": ()})
        conversation = dataset.Conversation(source=f"script:{number}", episode=played)
        lines.append(dataset.DatasetLine(scenario=scenario.with_seed(0), conversations=(conversation,)))
    return import_module("webapp.scenarios.services").create_dataset(name="villages", owner=owner, lines=lines)


def _queue(name: str, owner: Any, people: list[Any], codebook: Any) -> Any:
    queue = import_module("webapp.judgments.models").Queue.objects.create(
        name=name, owner=owner, codebook_version=codebook, overlap=ANNOTATORS
    )
    queue.annotators.set(people)
    return queue


def _execute(text: str, **numbers: Any) -> None:
    with import_module("django.db").connection.cursor() as cursor:
        for statement in text.format(**numbers).split(";\n"):
            if statement.strip():
                cursor.execute(statement)
