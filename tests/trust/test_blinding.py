"""Trust 27: blinding covers readiness, absence, timing and format: no classifier of metadata does better than chance.

Its accuracy on tables that it was not fitted to is compared with the exact binomial bound of a fair coin.
"""

import random

import pytest
from scipy.stats import binom
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from tests.stub import Stub
from tests.trust.metadata import MODEL, PERSON, SCRIPT, Clock, Meeting, facts
from webapp.serving.models import Deployment, RemoteModel

TABLES = 32
LEVEL = 0.99


@pytest.fixture
def meet(monkeypatch, person, admin):
    """Plays a table with such an opponent and returns what the observer received."""
    people = [person("player", name) for name in ("host", "other", "observer")]
    clock, chance = Clock(monkeypatch), random.Random(7)
    with Stub() as stub:
        monkeypatch.setenv("MODEL_ADDRESSES", stub.url)
        remote = RemoteModel.objects.create(name="stub", address=stub.url, model="stub", added_by=admin)
        deployment = Deployment.objects.create(remote=remote, state=Deployment.State.READY)

        def play(kind):
            return Meeting(clock, chance, kind, people, deployment, stub, monkeypatch).live()

        yield play


def right_guesses(rows, labels):
    """The number of tables that each classifier, fitted to the others, predicts: linear, tree, tree on numbers."""
    linear = make_pipeline(DictVectorizer(sparse=False), StandardScaler(), LogisticRegression(C=0.1, max_iter=2000))
    tree = make_pipeline(DictVectorizer(sparse=False), DecisionTreeClassifier(max_depth=2, random_state=0))
    folds = StratifiedKFold(8, shuffle=True, random_state=0)
    numbers = [{name: value for name, value in row.items() if not name.startswith(("text", "form"))} for row in rows]
    tried = [(linear, rows), (tree, rows), (tree, numbers)]
    guesses = [cross_val_predict(model, features, labels, cv=folds) for model, features in tried]
    return [sum(guess == label for guess, label in zip(made, labels, strict=True)) for made in guesses]


@pytest.mark.django_db(transaction=True)
def test_nothing_but_what_is_said_tells_a_person_from_a_bot(meet):
    for _ in range(8):
        meet(PERSON)  # so that the site knows how long people take
    kinds = [PERSON, MODEL, PERSON, SCRIPT] * (TABLES // 4)
    rows = [facts(meet(kind)) for kind in kinds]
    labels = [kind == PERSON for kind in kinds]
    bound = binom.ppf(1 - (1 - LEVEL) / 3, TABLES, 0.5)  # three classifiers are tried
    correct = right_guesses(rows, labels)
    assert max(correct) <= bound, f"guessed {correct} of {TABLES}; chance allows {bound:.0f}"
