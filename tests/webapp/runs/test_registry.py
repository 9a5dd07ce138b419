"""Aliases of checkpoints: set, moved with a record, resolved where ids are, protected; and the matrix of results."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tests.webapp.runs.making import estimate, make_checkpoint, make_run, suite_row
from training.config import RunConfig
from training.errors import BadInput
from webapp.runs import services as runs
from webapp.runs.models import Run
from webapp.runs.registry import matrix, services
from webapp.runs.registry.models import Alias, AliasMove
from webapp.serving import services as serving

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(researcher: Any, client_of: Callable[..., Client]) -> Client:
    return client_of(researcher)


def test_an_alias_moves_and_its_moves_are_recorded(client: Client, researcher: Any) -> None:
    run = make_run(researcher)
    first, second = make_checkpoint(run, step=1), make_checkpoint(run, step=2)
    for checkpoint in (first, second, second):
        client.post(reverse("runs:add-alias", args=[checkpoint.pk]), {"alias": "best"})
    assert Alias.objects.get().checkpoint == second
    client.post(reverse("runs:remove-alias", args=[second.pk]), {"alias": "best"})
    moves = list(AliasMove.objects.order_by("pk").values_list("name", "before", "after", "by"))
    assert moves == [
        ("best", "", first.name, researcher.pk),
        ("best", first.name, second.name, researcher.pk),
        ("best", second.name, "", researcher.pk),
    ]


@pytest.mark.parametrize("name", ["", "7", "Best", "a b", "a/b", "x" * 41])
def test_an_unfit_name_is_refused(researcher: Any, name: str) -> None:
    with pytest.raises(BadInput):
        services.set_alias(name=name, checkpoint=make_checkpoint(make_run(researcher)), by=researcher)


def test_a_checkpoint_with_an_alias_cannot_be_deleted_nor_its_run(client: Client, researcher: Any) -> None:
    checkpoint = make_checkpoint(make_run(researcher, state="stopped"))
    services.set_alias(name="best", checkpoint=checkpoint, by=researcher)
    with pytest.raises(BadInput, match="alias best"):
        runs.delete_checkpoint(checkpoint=checkpoint)
    with pytest.raises(BadInput, match="alias best"):
        runs.delete_run(run=checkpoint.run)
    assert "checkpoint:best" in client.get(reverse("runs:checkpoint", args=[checkpoint.pk])).content.decode()
    assert ">best</span>" in client.get(reverse("runs:checkpoints")).content.decode()


def test_a_table_finds_the_checkpoint_of_an_alias(researcher: Any, player: Any) -> None:
    checkpoint = make_checkpoint(make_run(researcher))
    services.set_alias(name="table", checkpoint=checkpoint, by=researcher)
    by_alias, by_id = (
        serving.find("checkpoint:table", user=researcher),
        serving.find(f"checkpoint:{checkpoint.pk}", user=researcher),
    )
    assert by_alias == by_id
    assert by_alias is not None
    assert by_alias.checkpoint == checkpoint
    assert serving.find("checkpoint:table", user=player) is None, "it is not open to players"
    assert serving.find("checkpoint:other", user=researcher) is None


def test_a_run_keeps_its_opponent_though_the_alias_moves(researcher: Any) -> None:
    base = make_checkpoint(None, name="mine", kind="base", base="mine")
    checkpoint = make_checkpoint(make_run(researcher))
    services.set_alias(name="best", checkpoint=checkpoint, by=researcher)
    data = {**RunConfig(name="checkpoint:best", model={"base": base.name}).to_dict()}
    data["opponents"] = [{"source": "checkpoint:best", "weight": 1.0}]
    config = RunConfig.from_dict(data)
    resolved, aliases = services.resolved(config)
    assert resolved.to_dict()["opponents"][0]["source"] == checkpoint.name
    assert aliases == {"opponents.0.source": "best"}
    assert resolved.name == "checkpoint:best", "a run may be called as it likes"
    data["opponents"][0]["source"] = "checkpoint:none"
    with pytest.raises(BadInput, match="no checkpoint has this id or alias") as refused:
        services.resolved(RunConfig.from_dict(data))
    assert refused.value.where == "opponents.0.source"


def measured(owner: Any, a: Any, b: Any, won: float) -> Run:
    numbers = {"won": estimate(won, won - 0.1, won + 0.1, 30)}
    other = {"won": estimate(1 - won, 0.9 - won, 1.1 - won, 30)}
    summary = {"a": numbers, "b": other, "difference": {}, "used": 60}
    return make_run(owner, kind="eval", start_checkpoint=a, opponent_checkpoint=b, result={"summary": summary})


def test_the_matrix_has_the_newest_result_of_every_pair_from_both_sides(client: Client, researcher: Any) -> None:
    run = make_run(researcher)
    a, b = make_checkpoint(run, step=1, name="a"), make_checkpoint(run, step=2, name="b")
    measured(researcher, a, b, 0.3)
    newest = measured(researcher, a, b, 0.75)
    rows = [suite_row(seat=None, step=None, won=estimate(0.5, 0.4, 0.6, 8)), suite_row(won=estimate(0.1, 0.0, 0.2))]
    make_run(researcher, kind="suite", start_checkpoint=a, result={"rows": rows, "conditions": {}})
    results = matrix.results(researcher)
    grid = matrix.grid([result for result in results if (result.game, result.number) == ("negotiation", "won")])
    assert grid.opponents == ["a", "b"]
    means = [[cell and cell.mean for cell in cells] for _, _, cells in grid.rows]
    assert means == [[None, 0.75], [0.25, None]]
    suite = [result for result in results if result.game == "tic_tac_toe" and result.number == "won"]
    assert [(result.model, result.opponent, result.mean, result.n) for result in suite] == [
        ("a", "mcts:100 (Tic-tac-toe)", 0.5, 8)
    ]
    page = client.get(reverse("runs:matrix"), {"game": "negotiation"}).content.decode()
    assert "0.75 ± 0.1" in page
    assert "n = 30" in page
    assert reverse("runs:conversations", args=[newest.pk]) in page
    part = client.get(reverse("runs:matrix"), {"game": "negotiation"}, headers={"hx-request": "true"}).content.decode()
    assert "<html" not in part
    assert "n = 30" in part


def test_the_matrix_has_training_runs_by_their_last_checkpoint_against_their_start(
    client: Client, researcher: Any
) -> None:
    base = make_checkpoint(None, name="mine", kind="base", base="mine")
    summary = {"a": {"points": estimate(5.0, 4.0, 6.0, 12)}, "b": {"points": estimate(2.0, 1.0, 3.0, 12)}}
    result = {"summary": summary, "conditions": {"b": {"title": "a title of the weights"}}}
    facts = {"kind": "train", "start_checkpoint": base, "result": result}
    run = make_run(researcher, **facts)
    for step in (10, 5):
        make_checkpoint(run, step=step)
    named = make_run(researcher, **{**facts, "opponent_checkpoint": run.checkpoints.get(step=5)})
    make_run(researcher, kind="train", start_checkpoint=base, result={"exit": 0})
    rows = [(r.model, r.opponent, r.mean, r.n, r.model_href, r.href) for r in matrix.results(researcher)]
    assert rows == [
        (
            f"run-{run.pk}-step-10", "mine", 5.0, 12,
            reverse("runs:checkpoint", args=[run.checkpoints.get(step=10).pk]),
            reverse("runs:evaluation", args=[run.pk]),
        ),
        (
            named.name, f"run-{run.pk}-step-5", 5.0, 12,
            reverse("runs:detail", args=[named.pk]),
            reverse("runs:evaluation", args=[named.pk]),
        ),
    ]  # fmt: skip


def test_the_last_checkpoint_has_the_head_to_head_after_training(client: Client, researcher: Any) -> None:
    summary = {"difference": {"return": estimate(0.9, 0.8, 1.0), "points": estimate(3.25, 1.5, 5.0)}}
    run = make_run(researcher, result={"summary": summary})
    first, last = make_checkpoint(run, step=5), make_checkpoint(run, step=10)
    other = make_run(researcher, kind="sft", result={"summary": summary})
    make_checkpoint(other, step=3)
    make_checkpoint(None, name="mine", kind="base", step=0)
    link = f'<a href="{reverse("runs:evaluation", args=[run.pk])}">+3.25 <small class="quiet">[1.5, 5] points</small>'
    shown = " ".join(client.get(reverse("runs:checkpoints")).content.decode().split())
    assert shown.count("[1.5, 5] points") == 1
    row = shown[shown.index(f">{last}</a>") :]
    assert link in row[: row.index("</tr>")]
    for checkpoint in (first, last):
        page = " ".join(client.get(reverse("runs:checkpoint", args=[checkpoint.pk])).content.decode().split())
        assert (link in page, "Head-to-head after the last step" in page) == (checkpoint == last,) * 2


def test_an_empty_matrix_names_the_next_step(client: Client) -> None:
    assert "Start a head-to-head" in client.get(reverse("runs:matrix")).content.decode()
