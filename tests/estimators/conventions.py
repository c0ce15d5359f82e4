"""scikit-learn's own checks of an estimator, for the tests of each."""

from __future__ import annotations

from sklearn.utils.estimator_checks import estimator_checks_generator


def failed_checks(estimator, named="check"):
    """What failed, one a line, of the checks whose names begin so; checks that skip themselves do not count."""
    failed = []
    for candidate, check in estimator_checks_generator(estimator):
        if not check.func.__name__.startswith(named):
            continue
        try:
            check(candidate)
        except Exception as error:  # noqa: BLE001 - all failures are collected
            if type(error).__name__ not in ("SkipTest", "SkipTestWarning", "Skipped"):
                failed.append(f"{check.func.__name__}: {type(error).__name__}: {error}")
    return "\n".join(failed)
