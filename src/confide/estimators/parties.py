"""One party of a fit over rows that several parties hold; see `confide.data.federated`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sklearn.base import clone

from confide.data.federated import Connection, answer, send_end
from confide.data.partitions import refuse_persons
from confide.errors import ParameterError
from confide.estimators.linear import LinearClassifier
from confide.estimators.streamed import schema_of
from confide.features.encoder import Encoder


def take_part(connection: Connection, estimator: LinearClassifier, X: Any, y: Any = None) -> None:
    """Check this party's rows, then send sums over them until the coordinator ends. Nothing is charged here.

    The bound on rows is this party's: rows are clipped to it before they are summed, whatever is asked. For which loss an
    automatic one stands, and with which bound, is decided by the coordinator's plan: the party agrees to each that it may
    stand for, and to no other. It agrees to every width of the joint of a hinge.

    A column of which no cell is as the schema describes it is refused by a fit to rows of one place. Here it is not: others
    may have such cells, and no party says which columns its rows use. Compare your own rows with the schema before you
    take part.

    Parameters
    ----------
    connection : to the coordinator
    estimator : with the parameters that the coordinator's has, among them a schema; its budget and ledger do not matter here
    X, y : this party's rows, as for `fit`

    Raises
    ------
    InputError, ParameterError
        If the rows cannot be used, or the coordinator asks for another sum.
    """
    try:
        party = clone(estimator)  # what a check of rows records stays here
        schema = schema_of(party.schema, X)
        if schema is None:
            raise ParameterError("parties need a schema: without one they could read the same columns in different ways.")
        refuse_persons(schema)
        settings, _, domain = party._settings(schema)
        encoder = Encoder(schema, of_part=True)
        with party._checked_rows(X, y, settings, encoder, domain, None) as rows:
            settings = replace(settings, loss=party._loss(len(rows.domain)))
            answer(connection, rows.source, settings.row_sums)
    except BaseException:
        send_end(connection)
        raise
