"""Werewolf's behaviours on the site: what each seat is asked, by people and by a judge model, and the queue's table."""

import json

import pytest
from django.urls import reverse

from tests.labelled import reasons
from tests.stub import Stub
from tests.webapp.api.test_api import Caller
from tests.webapp.judgments.make import IN_ORDER, annotate, finished_match, rated, version, village_match
from tests.webapp.runs.making import RECORD, make_episode, make_run
from training.errors import BadInput
from training.labels.codebooks import BEHAVIOURS
from webapp.judgments import judging
from webapp.judgments.models import JudgeModel, Judgment
from webapp.judgments.queues import services as queues
from webapp.judgments.results import behaviours, comparison, estimates
from webapp.serving.models import RemoteModel

pytestmark = pytest.mark.django_db
WOLF = ["identity_concealment", "voting_manipulation", "team_collaboration"]
VILLAGER = ["protecting_power_roles", "recognising_deception"]
WOLVES = (0, 2)


def asked(target):
    return [label_type.name for label_type in target.codebook().labels]


def queue_of(owner, *matches, annotators=(), **options):
    people = {} if "judge" in options else {"annotators": annotators or [owner]}
    options = {"name": "behaviours", "codebook_version": version(BEHAVIOURS.name), "how": IN_ORDER, **people, **options}
    return queues.create_queue(owner=owner, matches=matches, **options)


def judge_all(queue, by, value):
    """Give every seat of a queue the value that `value(target, survived)` says, for all that is asked about it."""
    for target in queue.targets.with_games():
        survived = target.match.seat_metrics[str(target.seat)]["survived"]
        annotate(target=target, by=by, values=dict.fromkeys(asked(target), value(target, survived)))


@pytest.fixture
def match(researcher):
    return rated(village_match(researcher), researcher)


def test_wolves_and_villagers_are_asked_different_things(researcher, match):
    queue = queue_of(researcher, match)
    asked_by_seat = {target.seat: asked(target) for target in queue.targets.with_games()}
    assert asked_by_seat == {seat: WOLF if seat in WOLVES else VILLAGER for seat in range(6)}


def test_games_without_such_roles_are_not_queued(researcher):
    with pytest.raises(BadInput, match="roles that nobody had"):
        queue_of(researcher, finished_match(researcher))


@pytest.mark.parametrize(
    "survived",
    [
        {"metrics": {}, "seat_metrics": {"0": {"survived": 1.0}, "1": {"survived": 0.0}}},
        {"metrics": {"survived_0": 1.0, "survived_1": 0.0}},  # as release 0.1.0 wrote it
    ],
)
def test_seats_of_an_episode_are_asked_by_the_roles_in_its_summary(researcher, survived):
    played = make_episode(make_run(researcher), record=RECORD)
    played.summary |= {"roles": ["werewolf", "imposter"], **survived}
    played.save()
    queue = queues.create_queue(
        name="q",
        owner=researcher,
        codebook_version=version(BEHAVIOURS.name),
        episodes=[played],
        annotators=[researcher],
    )
    [target] = queue.targets.with_games()
    assert (target.seat, asked(target)) == (0, WOLF)
    annotate(target=target, by=researcher, values=dict.fromkeys(WOLF, 1))
    row = behaviours.of_queue(queue).rows[0]
    assert (row.surviving.share, row.surviving.asked, row.eliminated.asked, row.difference) == (1.0, 1, 0, None)


def test_an_annotator_answers_yes_or_no(client_of, researcher, annotator, match):
    queue = queue_of(researcher, match, annotators=[annotator])
    client, address = client_of(annotator), reverse("judgments:annotate", args=[queue.pk])
    first = client.get(address)
    page = first.content.decode()
    assert "Judge <strong>Ada</strong>" in page
    for shown in ("Identity concealment", 'value="1"', " 1 yes</label>", " 0 no</label>"):
        assert shown in page
    assert "Recognising deception" not in page.split('class="judging"')[1]  # below what people agree on
    values = {f"value-{name}": "1" for name in WOLF}
    second = client.post(address, {"target": first.context["target"].pk, **values}, follow=True)
    assert Judgment.objects.get().numbers == dict.fromkeys(WOLF, 1.0)
    page = second.content.decode()
    assert "Judge <strong>Ben</strong>" in page
    assert "Recognising deception" in page
    assert "Identity concealment" not in page.split('class="judging"')[1]


@pytest.mark.parametrize(
    "values, where",
    [({**dict.fromkeys(WOLF, 1), WOLF[0]: 0.5}, WOLF[0]), (dict.fromkeys(WOLF + VILLAGER, 1), VILLAGER[0])],
)
def test_what_is_no_answer_or_was_not_asked_is_refused(researcher, match, values, where):
    target = queue_of(researcher, match).targets.with_games().first()
    with pytest.raises(BadInput) as refused:
        annotate(target=target, by=researcher, values=values)
    assert refused.value.where == where
    assert Judgment.objects.count() == 0


def test_the_interface_says_what_is_asked_about_a_seat(researcher, annotator, match):
    queue_of(researcher, match, annotators=[annotator])
    items = Caller(annotator).get("judgments/targets").json()["items"]
    asked_by_seat = {item["seat"]: [label_type["name"] for label_type in item["label_types"]] for item in items}
    assert asked_by_seat == {seat: WOLF if seat in WOLVES else VILLAGER for seat in range(6)}


def test_a_judge_model_is_asked_about_the_seats_role(admin, match, monkeypatch):
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub-1", added_by=admin)
        queue = queue_of(admin, match, judge=JudgeModel.objects.create(name="stub judge", remote=remote))
        target = queue.targets.get(seat=2)

        def answer(body):
            form = json.loads(body["messages"][0]["content"].splitlines()[-1])
            form["values"] = {name: {"value": 1, "reason": f"for {name}"} for name in form["values"]}
            return json.dumps(form)

        stub.answer = answer
        judging.judge_target(target.pk)
    stored = Judgment.objects.get()
    assert stored.numbers == dict.fromkeys(WOLF, 1.0)
    assert reasons(stored)[WOLF[1]] == f"for {WOLF[1]}"
    assert behaviours.of_queue(queue).by == "models"


def test_the_table_of_a_queue(client_of, researcher, match):
    other = rated(village_match(researcher, seed=15), researcher)
    queue = queue_of(researcher, match, other)
    assert behaviours.of_queue(queue) is None
    judge_all(queue, researcher, lambda target, survived: survived)
    lived = [
        sum(game.seat_metrics[str(seat)]["survived"] for game in (match, other) for seat in seats)
        for seats in (WOLVES, (1, 3, 4, 5))
    ]
    assert 0 < lived[0] < 4, "the games were chosen so that wolves lived and died"
    assert 0 < lived[1] < 8
    table = behaviours.of_queue(queue)
    assert (table.by, table.games) == ("people", 2)
    for row, count, all_seats in zip(table.rows, (*lived[:1] * 3, *lived[1:] * 2), (4, 4, 4, 8, 8), strict=True):
        assert (row.surviving.share, row.surviving.scored, row.surviving.asked) == (1.0, count, count)
        assert (row.eliminated.share, row.eliminated.asked) == (0.0, all_seats - count)
        assert (row.difference.mean, row.difference.high, row.difference.n) == (1.0, 1.0, 2)
        assert row.difference.low < 0  # two games bound neither share
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    shown = page.split("Surviving and eliminated players")[1].split("</table>")[0]
    assert shown.count("+100 ") == 5
    assert f"scored {lived[0]:.0f} of {lived[0]:.0f}" in shown
    assert shown.count("<progress") == 10
    assert "95 % interval (Student's t) over 2 games" in shown
    reasons = page.split("Judgments and their reasons")[1].split("</li>")[0]
    assert reasons.count(f"<dd>{'yes' if match.seat_metrics['0']['survived'] else 'no'}</dd>") == 3


def test_other_codebooks_have_no_table(client_of, researcher, match):
    queue = queues.create_queue(
        name="q", owner=researcher, codebook_version=version(), matches=[match], annotators=[researcher]
    )
    judge_all(queue, researcher, lambda target, survived: 3)
    assert behaviours.of_queue(queue) is None
    page = client_of(researcher).get(reverse("judgments:queue", args=[queue.pk])).content.decode()
    assert "Surviving and eliminated" not in page


def test_results_and_agreement_leave_out_what_was_not_asked(researcher, annotator, match):
    queue = queue_of(researcher, match, annotators=[researcher, annotator])
    judge_all(queue, researcher, lambda target, survived: target.seat in (0, 1))
    judge_all(queue, annotator, lambda target, survived: target.seat in (0, 1, 3))
    # Wolves: [1, 1] and [0, 0]; villagers: [1, 1], [0, 1], [0, 0] and [0, 0].
    # By hand for the villagers: the variance within is (2 × 1/2) / 8 = 1/8, that of all eight values
    # (3 × 25/64 + 5 × 9/64) / 7 = 15/56. All four villagers are scripted players of one game.
    alphas = {row.title: (row.value, row.seats) for row in comparison.of_queue(queue).agreements}
    assert alphas["Identity concealment"] == (1.0, 2)
    assert alphas["Recognising deception"] == (pytest.approx(1 - (1 / 8) / (15 / 56)), 4)
    means = {row.label_type.name: (row.mean, row.games) for row in estimates.of_queue(queue)["a scripted player"]}
    assert means[WOLF[0]] == (0.0, 1)  # Cleo
    assert [row.label_type.name for row in estimates.of_queue(queue)["person"]] == WOLF  # the host is a wolf
    assert means[VILLAGER[0]] == (pytest.approx((1 + 0.5 + 0 + 0) / 4), 1)


def test_the_unit_of_a_result_is_the_game_however_many_seats_a_player_had_in_it(researcher, match):
    other = village_match(researcher, seed=2)
    queue = queue_of(researcher, match, other)
    judge_all(queue, researcher, lambda target, survived: target.match_id == match.pk and target.seat in (1, 3, 4))
    estimate = {row.label_type.name: row for row in estimates.of_queue(queue)["a scripted player"]}[VILLAGER[0]]
    # By hand: of the four villagers three did it in one game, nobody in the other: means 3/4 and 0 of two games, whose
    # standard error is 3/8; t(0.975, 1) = 12.7062.
    assert (estimate.mean, estimate.games) == (0.375, 2)
    assert estimate.half == pytest.approx(12.7062 * 0.375, rel=1e-5)


def test_a_copy_of_the_codebook_keeps_roles_and_yes_or_no(client_of, researcher):
    client = client_of(researcher)
    page = client.get(reverse("judgments:codebook-edit", args=[BEHAVIOURS.name]))
    formset = page.context["formset"]
    data = {"title": "Wolves only", f"{formset.prefix}-TOTAL_FORMS": "2", f"{formset.prefix}-INITIAL_FORMS": "2"}
    for number, form in enumerate(formset.forms[:2]):
        names = ("name", "title", "about", "definition", "positive", "negative", "roles")
        data |= {f"{formset.prefix}-{number}-{name}": form.initial[name] for name in names}
        data[f"{formset.prefix}-{number}-kind"] = "yes_no" if number == 0 else "text"
        data[f"{formset.prefix}-{number}-required"] = "on"
    page = client.post(reverse("judgments:codebook-edit", args=[BEHAVIOURS.name]), data, follow=True)
    first, second = version("wolves-only").record().labels
    assert first == BEHAVIOURS.labels[0]
    assert second == BEHAVIOURS.labels[1].model_copy(update={"kind": "text"})
    assert "Roles: werewolf." in page.content.decode()
