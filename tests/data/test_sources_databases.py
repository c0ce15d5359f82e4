"""A query in PostgreSQL: one moment, only reading, and no password anywhere."""

from __future__ import annotations

import traceback

import pytest

import confide
from confide.errors import ConfideError, InputError
from tests.accounting import postgres_server
from tests.data.tables import SCHEMA, made_up
from tests.data.test_sources import coef_of, in_parquet


@pytest.fixture(scope="module")
def server():
    """A running server with an empty database `people`."""
    if reason := postgres_server.reason_to_skip():
        pytest.skip(reason)
    running = postgres_server.Server()
    try:
        running.execute("CREATE DATABASE people", database="postgres")
        yield running
    finally:
        running.stop()


def test_the_model_is_that_of_a_parquet_file(server, tmp_path):
    """Integers, doubles, decimals, booleans and text. What writes is refused, and a password is shown to nobody."""
    import sqlalchemy

    frame = made_up(2500, age="float64").drop(columns="note")
    address = f"postgresql://owner@127.0.0.1:{server.port}/people"
    engine = sqlalchemy.create_engine(address.replace("postgresql://", "postgresql+psycopg://"))
    frame.to_sql("people", engine, index=False)
    engine.dispose()
    query = "SELECT age, debt, work, size::numeric, ill, '50%' AS note, now() AS at FROM people WHERE 'a:b' LIKE '%:b' ;"
    rows = confide.open_rows(address, SCHEMA, query=query)
    assert coef_of(rows) == coef_of(in_parquet(frame, tmp_path))
    secret = address.replace("owner@", "owner:4711secret@")
    for asked, reason in (("SELECT lo_create(0)", "ReadOnly"), ("SELECT 1 / (age * 0) FROM people", "Division")):
        with pytest.raises(InputError, match=reason) as caught:
            confide.open_rows(secret, SCHEMA, query=asked)
        assert "4711secret" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ConfideError) as caught:
        confide.open_rows(secret.replace("/people", "/absent"), SCHEMA, query="SELECT 1")
    assert "4711secret" not in "".join(traceback.format_exception(caught.value))
