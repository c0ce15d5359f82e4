"""A query in PostgreSQL: one moment, only reading, and no password anywhere."""

from __future__ import annotations

import traceback
import tracemalloc

import pytest

import confide
from confide.data.sources import files_of
from confide.errors import ConfideError, InputError
from tests.accounting import postgres_server
from tests.data.tables import SCHEMA, made_up
from tests.data.test_sources import coef_of, in_parquet


@pytest.fixture(scope="module")
def server():
    """A running server with an empty database `people`."""
    with postgres_server.running_with("people") as running:
        yield running


def test_the_model_is_that_of_a_parquet_file(server, tmp_path):
    """From one moment, in a transaction that only reads. What writes is refused, and a password is shown to nobody."""
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
    settings = "SELECT current_setting('transaction_read_only') AS a, current_setting('transaction_isolation') AS b"
    assert files_of(address, query=settings)[0].read_text().split("\n")[1].strip() == "on,repeatable read"
    server.execute("CREATE SEQUENCE numbers", database="people")
    for asked, reason in (("SELECT nextval('numbers')", "ReadOnly"), ("SELECT 1 / (age * 0) FROM people", "Division")):
        with pytest.raises(InputError, match=reason) as caught:
            confide.open_rows(secret, SCHEMA, query=asked)
        assert "4711secret" not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ConfideError) as caught:
        confide.open_rows(secret.replace("/people", "/absent"), SCHEMA, query="SELECT 1")
    assert "4711secret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("release", ["2026-12", "x'; DROP TABLE people; --"])
def test_a_query_gets_the_release_and_its_days_apart_from_its_text(server, release):
    """Names in quotes, casts and percent signs stay as they are."""
    address = f"postgresql://owner@127.0.0.1:{server.port}/people"
    values = {"release": release, "begin": "2026-12-01", "end": "2027-01-01"}
    query = (
        "SELECT :release AS r, :begin::date + 1 AS b, 'a:release' || '50%' AS c, '12:30'::time AS t, "
        "(ARRAY[1,2,3])[2:3] AS s, count(*) AS n FROM generate_series('2026-11-01'::date, '2027-01-31', '1 day') day "
        "WHERE day >= :begin AND day < :end;"
    )
    lines = files_of(address, query=query, values=values)[0].read_text().splitlines()
    assert lines[1] == f'{release},2026-12-02,a:release50%,12:30:00,"[2, 3]",31'


def test_the_answer_is_never_in_memory_as_a_whole(server):
    """It takes 100 MB, of which a sixth is held at a time."""
    tracemalloc.start()
    query = "SELECT repeat('x', 1000) AS x FROM generate_series(1, 100000)"
    (path,) = files_of(f"postgresql://owner@127.0.0.1:{server.port}/people", query=query)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert path.stat().st_size > 10**8
    assert most < 5 * 10**7
