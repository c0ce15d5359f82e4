"""scikit-learn's own checks of an estimator, for the tests of each."""

from __future__ import annotations

from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

EXPECTED = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")
"""Rows that are repeated are more rows, and rows of weight 0 are counted: noise and ridge are others."""


def failed_checks(estimator, named="check"):
    """What failed, one a line, of the checks whose names begin so; checks that skip themselves do not count."""
    failed = []
    for candidate, check in estimator_checks_generator(estimator):
        if not check.func.__name__.startswith(named) or check.func.__name__ in EXPECTED:
            continue
        if "sample_weight" in check.func.__name__ and hasattr(candidate, "max_sample_weight"):
            candidate = clone(candidate).set_params(max_sample_weight=10.0)
        try:
            check(candidate)
        except Exception as error:  # noqa: BLE001 - all failures are collected
            if type(error).__name__ not in ("SkipTest", "SkipTestWarning", "Skipped"):
                failed.append(f"{check.func.__name__}: {type(error).__name__}: {error}")
    return "\n".join(failed)
