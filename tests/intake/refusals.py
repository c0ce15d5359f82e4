"""What every refusal of rows, labels, weights or parameters owes: one line, no charge, and no value from the data."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

from confide import ConfideError, Ledger

SECRET = 987654321.125


SECRET_TEXT = "SECRETVALUE"  # noqa: S105 - a marker that no message may hold


GOOD_X = np.random.default_rng(0).normal(size=(50, 3))


GOOD_Y = np.arange(50) % 2


def refusal(model, X, y, **fit_parameters):
    """The exception of a fit that must fail without a charge, checked for what every refusal owes."""
    ledger = Ledger(limit=100.0, neighbours=model.neighbours if model.neighbours == "add-or-remove-one" else "replace-one")
    model.set_params(ledger=ledger)
    with pytest.raises(ConfideError) as caught:
        model.fit(X, y, **fit_parameters)
    assert ledger.spent().epsilon == 0.0
    assert not hasattr(model, "coef_")
    printed = "".join(traceback.format_exception(caught.value, chain=True))
    message = str(caught.value)
    for secret in ("987654321", "9.87654", SECRET_TEXT):
        assert secret not in message
        assert secret not in "".join(line for line in printed.splitlines() if not line.startswith("    "))
    assert caught.value.__cause__ is None
    assert len(message.splitlines()) <= 1
    return message


def with_entry(value, dtype=object):
    """Good rows with one entry replaced."""
    X = GOOD_X.astype(dtype)
    X[3, 1] = value
    return X
