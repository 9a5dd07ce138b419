"""Prepared and pipelined statements."""

import pytest
from django.db import DatabaseError, connection, transaction

from tests.webapp.arena.conftest import negotiation
from webapp.accounts.models import User
from webapp.arena.models import Match, MatchSeat
from webapp.arena.setup import tables
from webapp.core.statements import Columns, execute, pipelined

PREPARED_AFTER = 5
BY_NAME = "SELECT id FROM accounts_user WHERE username = %s"


def plans():
    """The statements that this connection keeps a plan of."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        return [statement for (statement,) in cursor.fetchall()]


@pytest.mark.django_db
def test_a_connection_plans_a_statement_once():
    ann = User.objects.create_user("ann")
    for _ in range(PREPARED_AFTER):
        assert execute(BY_NAME, ["ann"]).fetchall() == [(ann.pk,)]
    assert [plan for plan in plans() if "accounts_user" in plan] == ["SELECT id FROM accounts_user WHERE username = $1"]


@pytest.mark.django_db
def test_every_statement_of_a_block_takes_effect_in_order():
    with pipelined():
        before = execute("SELECT count(*) FROM accounts_user", [])
        execute("UPDATE accounts_user SET username = username || 'x'", [])
        made = execute("SELECT generate_series(1, %s::int)", [3])
        assert before.fetchone() == (User.objects.count(),)
        assert made.fetchall() == [(1,), (2,), (3,)]


@transaction.atomic
def rename_and_divide_by_zero():
    with pipelined():
        execute("UPDATE accounts_user SET username = 'ben'", [])
        execute("SELECT 1 / %s::int", [0])
        execute(BY_NAME, ["ann"])


@pytest.mark.django_db(transaction=True)
def test_what_fails_in_a_block_is_raised_by_its_end_and_undoes_the_transaction():
    ann = User.objects.create_user("ann")
    with pytest.raises(DatabaseError):
        rename_and_divide_by_zero()
    ann.refresh_from_db()
    assert ann.username == "ann"
    assert execute(BY_NAME, ["ann"]).fetchall() == [(ann.pk,)]


@pytest.mark.django_db
@pytest.mark.parametrize("model", [Match, MatchSeat])
def test_rows_become_the_instances_that_django_reads(model):
    host = User.objects.create_user("ann")
    start = tables.Start(negotiation())
    tables.create(host=host, start=start, places=[tables.Place(user=host), tables.Place()], consent=True)
    columns = Columns(model)
    rows = execute(f"SELECT {columns.sql} FROM {model._meta.db_table} ORDER BY id", []).fetchall()  # noqa: S608
    read = [columns.load(row) for row in rows]
    expected = list(model.objects.order_by("pk"))
    fields = [field.attname for field in model._meta.concrete_fields]
    assert [[getattr(row, name) for name in fields] for row in read] == [
        [getattr(row, name) for name in fields] for row in expected
    ]
    assert not any(row._state.adding for row in read)
