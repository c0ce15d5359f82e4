"""The part of one party in a fit over rows that several parties hold; see `confide.FederatedRows`."""

from __future__ import annotations

from typing import Any

from confide.data.federated import Connection, answer, rows_of_parties_are_not_counted, send_end
from confide.data.partitions import refuse_persons
from confide.errors import ParameterError, wording
from confide.estimators.linear_classifier import LinearClassifier
from confide.features.encoder import Encoder
from confide.intake.rows import checked_input


def take_part(connection: Connection, estimator: LinearClassifier, X: Any, y: Any = None) -> None:
    """Take part in a federated fit: check this party's rows, then send sums over them until the coordinator ends the fit.

    Nothing is charged here; the coordinator charges the ledger.

    Parameters
    ----------
    connection : Connection
        The connection to the coordinator. Use an encrypted one.
    estimator : LogisticRegression, LinearSVC, KernelSVC or ERMClassifier
        With the same parameters as the coordinator's estimator, among them a schema, which must not name a column of
        persons. Its budget and its ledger are not used here.
    X, y : this party's rows and labels, as for `fit`

    Raises
    ------
    InputError, ParameterError
        If the rows cannot be used, or the coordinator asks for a sum that this party does not agree to.

    Notes
    -----
    Guarantee: the released model is private as in a fit to all rows in one place. The sums are not private against the
    coordinator, who sees them exactly: see `FederatedRows`.

    The party enforces the bound on rows by itself: it clips its rows before they are summed, whatever the coordinator asks.
    If the loss is automatic, the coordinator's plan decides which loss and which bound it stands for. The party agrees to
    each loss that the automatic one may stand for, and to no other; for a hinge it agrees to every width of the joint.

    A fit to rows in one place refuses a column in which no row has a cell that the schema describes. This function does not,
    because other parties may have such cells, and no party says which columns its rows use. So compare your rows with the
    schema before you take part.
    """
    try:
        given = checked_input(X, y, estimator=estimator)
        schema = given.schema_for(getattr(estimator, "schema", None))
        if schema is None:
            raise ParameterError(wording("parties need a schema"))
        refused = rows_of_parties_are_not_counted
        if estimator._schema_of(lambda _: schema, lambda _: given.column_names(), refused, refused) != schema:
            # The choice depends on the budget, which is the coordinator's alone.
            rows_of_parties_are_not_counted()
        refuse_persons(schema)
        encoder = Encoder(schema, of_part=True)
        if estimator._with_chosen_features(encoder, rows_of_parties_are_not_counted) is not estimator:
            rows_of_parties_are_not_counted()
        settings = estimator._settings(encoder, names=given.column_names)
        with given.checked([estimator._specification(settings, encoder)]) as (rows,):
            answer(connection, rows.source, settings.row_sums(len(rows.domain)))
    except BaseException:
        send_end(connection)
        raise
