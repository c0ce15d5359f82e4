"""What the command line audits: the worst pair of an estimator, or what a file of Python holds."""

from __future__ import annotations

from typing import Any

from confide.audit.attacks import AuditResult, attack
from confide.audit.releases import named
from confide.audit.worst_pairs import worst_pair
from confide.errors import ParameterError
from confide.privacy.budgets import Budget


def audited(target: Any, budget: Budget | None, n_releases: int, confidence: float) -> AuditResult:
    """Attack an estimator at its worst pair, or what a file of Python holds.

    Parameters
    ----------
    target : estimator or str
        An estimator; or "module:name" of an estimator or of its class; or the path of a file of Python that has the name
        `release`, a callable or an estimator. A callable needs `first` and `second`, which an estimator may have too.
    budget : Budget or None
        What is claimed; None takes the estimator's own.
    n_releases : int
        Number of releases from either data set.
    confidence : float
        Of the lower bound.

    Raises
    ------
    FileError
        If the file or the module cannot be read.
    ParameterError
        If it does not hold what is needed.
    """
    found = named(target) if isinstance(target, str) else target
    release = getattr(found, "release", None) if isinstance(target, str) and target.endswith(".py") else found
    if release is None:
        raise ParameterError(f"{target} has no name release: a callable of a data set, or an estimator.")
    first, second = (getattr(found, name, None) for name in ("first", "second"))
    if first is not None and second is not None:
        name = str(target) if isinstance(target, str) else None
        return attack(release, first, second, budget=budget, n_releases=n_releases, confidence=confidence, name=name)
    if not hasattr(release, "fit"):
        raise ParameterError(f"{target} needs the names first and second beside release: the two neighbouring data sets.")
    return worst_pair(release, n_fits=n_releases, budget=budget, confidence=confidence)
