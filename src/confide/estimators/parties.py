"""One party of a fit over rows that several parties hold; see `confide.FederatedRows`."""

from __future__ import annotations

from typing import Any

from confide.data.federated import Connection, answer, send_end
from confide.data.partitions import refuse_persons
from confide.errors import ParameterError
from confide.estimators.linear_classifier import LinearClassifier
from confide.features.encoder import Encoder
from confide.intake.given_rows import rows_given


def take_part(connection: Connection, estimator: LinearClassifier, X: Any, y: Any = None) -> None:
    """Check this party's rows, then send sums over them until the coordinator ends. Nothing is charged here.

    The bound on rows is this party's: rows are clipped to it before they are summed, whatever is asked. The coordinator's
    plan decides for which loss an automatic one stands, and with which bound: the party agrees to each that it may stand
    for, and to no other. It agrees to every width of the joint of a hinge.

    A fit to rows of one place refuses a column of which no cell is as the schema describes it. This function does not:
    others may have such cells, and no party says which columns its rows use. Compare your own rows with the schema before
    you take part.

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
        given = rows_given(X, y)
        schema = given.schema_for(estimator.schema)
        if schema is None:
            raise ParameterError("parties need a schema: without one they could read the same columns in different ways.")
        refuse_persons(schema)
        encoder = Encoder(schema, of_part=True)
        settings = estimator._settings(encoder)
        with given.checked([estimator._specification(settings, encoder)]) as (rows,):
            answer(connection, rows.source, settings.for_classes(len(rows.domain)).row_sums)
    except BaseException:
        send_end(connection)
        raise
