"""The parameter `prior`: what users may give for it, and the public weights that it stands for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from confide.errors import ParameterError
from confide.released_models.model import ReleasedModel
from confide.released_models.prior import Prior
from confide.saved_models.reading import read_model

_WRONG = (
    "prior must be a fitted model of confide, the path of a saved one, a pair (coef, intercept) of public numbers, "
    "confide.PublicPrior of one of these, or None."
)


@dataclass(frozen=True, slots=True)
class PublicPrior:
    """A prior that was made from public rows alone, such as a model that was fitted to them without privacy.

    Models without a guarantee are refused as priors, because they may reveal the rows that they were fitted to. This
    declares that these rows need no protection. It is an assumption, which the statement of the fit names.

    Parameters
    ----------
    model : fitted model of confide, path of a saved one, or pair (coef, intercept)
        The public weights.

    Raises
    ------
    ParameterError
        By the fit, if the columns, the kernel or the classes of the model are not those of the fit. Nothing was charged.

    Notes
    -----
    Guarantee: the prior costs no budget, because it is public; that of the fit holds as it stands. Proof:
    confide/privacy/proofs/objective_perturbation.md, section 4.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> public, private = adult.X_train[:500], adult.X_train[500:]  # as if the first 500 rows were public
    >>> before = confide.LogisticRegression(budget=float("inf"), schema=adult.schema).fit(public, adult.y_train[:500])
    >>> model = confide.LogisticRegression(budget=0.1, schema=adult.schema, prior=confide.PublicPrior(before))
    >>> bool(model.fit(private, adult.y_train[500:]).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    model: Any


def given_prior(value: Any, of_model: Callable[[Any], Prior | None]) -> Prior | None:
    """The prior that the parameter `prior` stands for.

    Parameters
    ----------
    value : the parameter
    of_model : gives the weights of a fitted model, and None for what is no model
    """
    if value is None or type(value) is Prior:
        return value
    if type(value) is PublicPrior:
        if value.model is None:
            raise ParameterError(_WRONG)
        found = given_prior(value.model, of_model)
        return None if found is None else found.declared_public()
    if isinstance(value, (str, os.PathLike)):
        return _read(value).as_prior()
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return Prior.of_numbers(*value)
    found = of_model(value)
    if found is None:
        raise ParameterError(_WRONG)
    return found


def _read(path: str | os.PathLike[str]) -> ReleasedModel:
    """The model in a file. A fit asks for it more than once, so it is read once as long as the file stays the same."""
    try:
        status = Path(path).stat()
    except (OSError, ValueError):
        return read_model(path)  # which says what is wrong
    return _remembered(Path(path).absolute(), (status.st_ino, status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=8)
def _remembered(path: Path, stamp: tuple[int, ...]) -> ReleasedModel:  # noqa: ARG001 - another stamp is another file
    return read_model(path)
