"""A released model as a document, written and read again: what was released, and public parameters. Nothing else."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from confide._version import __version__
from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ConfideError, FileError, wording
from confide.features.encoder import Encoder
from confide.features.forms import QuadraticForm, ShortenedInNorm, map_from_dict
from confide.features.schema import Schema, n_products
from confide.files import read_document
from confide.guarantee import Guarantee
from confide.inference.debiased import InterestEvidence
from confide.inference.intervals import Evidence, WeightsEvidence
from confide.inference.least_squares import SumsEvidence
from confide.intake.penalties import written_penalty
from confide.intake.specification import Columns
from confide.intake.targets import MOST_CLASSES
from confide.models.model import ReleasedModel
from confide.models.prior import FittedTo, Prior
from confide.models.scores import LinearModel

NOT_PARAMETERS_OF_THE_FILE = frozenset(
    {"ledger", "n_jobs", "random_state", "schema", "row_norm", "classes", "knots", "bounds", "interactions", "prior"}
)
"""Parameters that a file does not list. The first three concern one machine or one fit; the others have their own parts in
the file: what was chosen for knots, bounds and interactions stands in its schema. Every other parameter is written, so a new
parameter of an estimator needs no entry here."""


def document_of(name: str, parameters: Mapping[str, Any], released: ReleasedModel) -> dict[str, Any]:
    """The content of a released model's file, as JSON values.

    Parameters
    ----------
    name : the public name of the estimator's class
    parameters : the parameters of its constructor, by name
    released : what the estimator released
    """
    guarantee, columns, is_classifier = released.guarantee, released.columns, bool(released.domain)
    scoring, names = released.scoring, released.columns.feature_names_in
    return {
        "version": __version__,
        "estimator": name,
        "parameters": {
            **{
                key: _WRITTEN.get(key, _written)(value)
                for key, value in parameters.items()
                if key not in NOT_PARAMETERS_OF_THE_FILE
            },
            # Users may give these two in several forms. The guarantee holds them in one form.
            "budget": guarantee.budget.to_dict(),
            "neighbours": str(guarantee.neighbours),
        },
        "schema": None if released.schema is None else released.schema.to_dict(),
        "row_bound": scoring.row_bound.to_dict(),
        "fourier_map": None if released.fourier is None else released.fourier.to_dict(),
        "classes": list(released.domain) if is_classifier else None,
        "alpha": released.alpha,
        "coef": (scoring.coef if is_classifier else scoring.coef[0]).tolist(),
        "intercept": scoring.intercept.tolist() if is_classifier else float(scoring.intercept[0]),
        "coefficient_names": list(map(str, released.coefficient_names)),
        "n_features_in": int(columns.n_features_in),
        "feature_names_in": None if names is None else list(map(str, names)),
        "guarantee": guarantee.to_dict(),
        "intervals": None if released.evidence is None else released.evidence.to_dict(),
        **({} if released.interest is None else {"interest": released.interest.to_dict()}),
        # A model or a file may have been given as the prior. What was used of it is written.
        **({} if released.prior is None else {"prior": released.prior.to_dict()}),
    }


def _written(value: Any) -> Any:
    """A parameter as a JSON value. A loss that a user wrote cannot be written, so None takes its place."""
    if isinstance(value, np.generic) or type(value) is np.ndarray:
        value = value.tolist()
    # Exact types: an object of the user's own, which may hold data, can be a tuple, a dict or a number of a derived class.
    if type(value) is float and not math.isfinite(value):
        return "inf"
    if type(value) in (tuple, list):
        return [_written(item) for item in value]
    return value if type(value) in (str, bool, int, float) else None


def _pairs(values: Mapping[Any, Any] | None) -> list[list[Any]] | None:
    """A mapping as a list of pairs, since a key of JSON is text, and labels may be numbers."""
    if values is None:
        return None
    return [[_written(key), value if isinstance(value, str) else float(value)] for key, value in values.items()]


_WRITTEN: dict[str, Callable[[Any], Any]] = {"class_weight": _pairs, "monotone": _pairs, "penalty": written_penalty}
"""Parameters that are written in a way of their own."""


# Reads what a model released from the content of its file, and checks the parts against each other.

_PARTS = {
    "version", "estimator", "parameters", "schema", "row_bound", "fourier_map", "classes", "alpha", "coef", "intercept",
    "coefficient_names", "n_features_in", "feature_names_in", "guarantee", "intervals", "interest", "prior",
}  # fmt: skip
_PARTS_OF_SOME = {"interest", "prior"}
"""Parts that the files of some models have."""
_WORDS = ((Integral, "int"), (Integral, "float"), (float, "float"), (str, "str"), (type(None), "None"))
"""Types of values, and the words of annotations that admit them; true and false are numbers for Python alone."""
DO_NOT_FIT = "the parts of the model in the file do not fit each other. Use a file that was written by save and not edited."
WRONG_KIND = "a part of the model in the file is not of the right kind. Use a file that was written by save and not edited."


def read_model(path: str | os.PathLike[str]) -> ReleasedModel:
    """What the model in a file released.

    Raises
    ------
    FileError
        If the file is missing, damaged, of another kind, or from a version that this version does not understand.
    """
    with understood(path):
        return released_of(read_document(path))


@contextmanager
def understood(path: str | os.PathLike[str]) -> Iterator[None]:
    """What fails in this context fails because the file at `path` is not understood, and says so."""
    try:
        yield
    except FileError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, RecursionError, ConfideError):
        raise FileError(f"{path} lacks parts of a model, or holds parts that this version does not understand.") from None


def released_of(content: dict[str, Any]) -> ReleasedModel:
    """What the model released. Its parts are checked against each other."""
    check_keys(content, _PARTS, optional=_PARTS_OF_SOME)
    schema = None if content["schema"] is None else Schema.from_dict(content["schema"])
    fourier = None if content["fourier_map"] is None else map_from_dict(content["fourier_map"])
    kept, prior = content["intervals"], content.get("prior")
    evidence: WeightsEvidence | None = None
    if kept is not None:
        evidence = SumsEvidence.from_dict(kept) if kept.get("kind") == "sums" else Evidence.from_dict(kept)
    interest = None if content.get("interest") is None else InterestEvidence.from_dict(content["interest"])
    names, classes = content["feature_names_in"], content["classes"]
    if classes is not None and (np.ndim(classes) != 1 or not 2 <= np.size(classes) <= MOST_CLASSES):
        raise FileError(WRONG_KIND)
    domain = () if classes is None else tuple(classes)
    n_inputs = content["n_features_in"]
    if type(n_inputs) is not int or n_inputs < 1:
        raise FileError(WRONG_KIND)
    columns = Columns(n_inputs, None if names is None else np.array(names, dtype=object))
    # A short file may describe more products than memory holds; it has as many names as it has weights.
    n_made = 0 if schema is None or fourier is not None else n_products(schema.interact, schema.columns_by_name)
    if n_made > len(content["coefficient_names"]):
        raise FileError("the columns of the schema do not match the coefficients.")
    encoder = None if schema is None else Encoder(schema)
    released = ReleasedModel(
        scoring=_scoring(content, domain),
        alpha=float(_finite(float(content["alpha"]))),
        guarantee=_guarantee(content["guarantee"]),
        coefficient_names=np.array(content["coefficient_names"], dtype=object),
        columns=columns,
        domain=domain,
        encoder=encoder,
        fourier=fourier,
        evidence=evidence,
        prior=None if prior is None else Prior.from_dict(prior, FittedTo(columns, domain, encoder, fourier)),
        interest=interest,
    )
    _refuse_other_types(released)
    # Monotone effects replace released weights, and the evidence keeps those that were released.
    if evidence is not None and not content["parameters"].get("monotone") and not _belongs_to(evidence, released.scoring):
        raise FileError(DO_NOT_FIT)
    if interest is not None and not _are_its_weights(interest.weights, interest.facts.intercept, 0.0, released.scoring):
        raise FileError(DO_NOT_FIT)
    if encoder is None:
        # No map has fewer columns than the rows, apart from one that does not ask for their names.
        inputs = tuple(map(str, range(min(columns.n_features_in, len(content["coefficient_names"]) + 1))))
        if len(inputs if fourier is None else fourier.names_for(inputs)) != len(content["coefficient_names"]):
            raise FileError(DO_NOT_FIT)
    else:
        expected = encoder.feature_names if fourier is None else fourier.names_for(encoder.feature_names)
        if expected != tuple(content["coefficient_names"]):
            raise FileError("the columns of the schema do not match the coefficients.")
    return released


def _refuse_other_types(value: Any, declared: str = "Any") -> None:
    """Refuse a value that a file has in place of one of the declared type: true for a number, a list for text.

    It reads the annotations of frozen values, so what a later version keeps is checked as well.
    """
    if is_dataclass(value):
        for field in fields(value):
            _refuse_other_types(getattr(value, field.name), str(field.type))
    elif isinstance(value, tuple):
        for one in value:
            _refuse_other_types(one, declared)
    elif not _is_declared(type(value), declared):  # type: ignore[arg-type]  # a type can be hashed
        raise FileError(WRONG_KIND)


@lru_cache(maxsize=1000)
def _is_declared(kind: type, declared: str) -> bool:
    """Whether a plain value may have this type; a file can hold many of one kind."""
    words = set(re.findall(r"\w+", declared)) - {"tuple"}
    own = {"bool"} if issubclass(kind, bool) else {word for other, word in _WORDS if issubclass(kind, other)}
    return not words <= {"bool", "int", "float", "str", "None"} or bool(own & words)


def _scoring(content: dict[str, Any], domain: tuple[Any, ...]) -> LinearModel:
    """Weights and intercepts, in the shapes that the number of classes requires, and the bound on rows."""
    coef, intercept = _finite(content["coef"]), _finite(content["intercept"])
    width = len(content["coefficient_names"])
    row_bound = row_bound_from_dict(content["row_bound"], width)
    n_scores = 1 if len(domain) <= 2 else len(domain)
    shapes = ((n_scores, width), (n_scores,)) if domain else ((width,), ())
    if (coef.shape, intercept.shape) != shapes:
        raise FileError(DO_NOT_FIT)
    row_bound.check_width(width)
    return LinearModel(np.atleast_2d(coef), np.atleast_1d(intercept), row_bound)


def _guarantee(content: dict[str, Any]) -> Guarantee:
    guarantee = Guarantee.from_dict(content)
    if guarantee.void is None and not guarantee.budget.is_private:
        raise FileError("the model claims a guarantee that an infinite budget cannot give.")
    if not isinstance(guarantee.void, str | None):
        raise FileError(WRONG_KIND)
    return guarantee


def _belongs_to(evidence: WeightsEvidence, scoring: LinearModel) -> bool:
    """Whether what intervals are computed from was released with exactly these weights."""
    if evidence.n_outputs != len(scoring.coef):
        return False
    return _are_its_weights(evidence.weights, evidence.intercept, evidence.shift, scoring)


def _are_its_weights(released: Array, constant: float, shift: float, scoring: LinearModel) -> bool:
    """Whether these are the weights of the model, those of the constant of the intercept last."""
    n_vectors, width = scoring.coef.shape
    if released.size != n_vectors * (width + (constant > 0.0)):
        return False
    weights = released.reshape(n_vectors, -1)
    intercept = constant * weights[:, width:].ravel() + shift if constant > 0.0 else np.zeros(n_vectors)
    return np.array_equal(weights[:, :width], scoring.coef) and np.array_equal(intercept, scoring.intercept)


def check_keys(value: dict[str, Any], known: set[str], optional: Collection[str] = ()) -> None:
    """Refuse parts that are unknown or missing. Names of unknown parts are not shown: they are not confide's own text."""
    missing = known - set(optional) - set(value)
    if missing:
        raise FileError(wording("model file lacks parts", parts=", ".join(sorted(missing))))
    if set(value) - known:
        raise FileError(wording("model file holds unknown parts"))


def is_reproduced(written: Any, read: Any, name: str = "") -> bool:
    """Whether a restored model writes everything that was read, and each value as one of the same type.

    What it leaves out or changes was not understood. Readers turn each value into the type that it should have, so a value
    of another type is not written as it was read: true is no number, and a number is no text.
    """
    if isinstance(written, dict) and isinstance(read, dict):
        return all(key in written and is_reproduced(written[key], value, key) for key, value in read.items())
    if isinstance(written, list) and isinstance(read, list):
        return len(written) == len(read) and all(map(is_reproduced, written, read))
    # Two differences are allowed: every version writes its own number, and the first one wrote a budget as a number.
    if (name == "version" and type(read) is str) or (name == "budget" and type(read) in (int, float)):
        return True
    return type(written) is type(read) and bool(written == read)


def row_bound_from_dict(value: dict[str, Any], width: int | None = None) -> RowBound:
    """The row bound that was written in this form, for rows of `width` columns if that is known."""
    if value["kind"] == "ball":
        check_keys(value, {"kind", "norm"})
        return BallBound(math.inf if value["norm"] == "inf" else float(value["norm"]))
    if value["kind"] == "form":
        check_keys(value, {"kind", "inner", "norm", "form"})
        form = QuadraticForm.from_dict(value["form"])
        return ShortenedInNorm(row_bound_from_dict(value["inner"], width), form, float(_finite(float(value["norm"]))))
    if value["kind"] == "groups":
        check_keys(value, {"kind", "sizes", "scales", "linked"}, optional={"linked"})
        # Groups of too many columns would take memory before they were compared with the weights.
        if width is not None and sum(size for size in value["sizes"] if isinstance(size, int)) > width:
            raise FileError(DO_NOT_FIT)
        return GroupBound(tuple(value["sizes"]), tuple(value["scales"]), tuple(value.get("linked", ())))
    raise FileError(wording("unknown bound on rows"))


def _finite(values: Any) -> Any:
    array = np.array(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise FileError("the model holds weights that are not finite.")
    return array
