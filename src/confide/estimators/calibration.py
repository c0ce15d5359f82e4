"""Probabilities of a released classifier that follow from private counts of rows held out."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.isotonic import isotonic_regression

from confide._version import __version__
from confide.array_types import Array
from confide.blocks import Shown
from confide.errors import ParameterError, wording
from confide.estimators.evaluation import said_by_model
from confide.estimators.linear_classifier import LinearClassifier, share_right
from confide.estimators.linear_model import checksum_of_model, document_of_model, released_model
from confide.estimators.parameters import BaseEstimator, ClassifierMixin, estimator
from confide.evaluations.documents import checked_evaluation
from confide.files import write_document
from confide.guarantee import Guarantee
from confide.inference.rates import guarantee_in_words
from confide.models.exports import binned_by, calibrated_sql, onnx_model_of, python_of, sql_of
from confide.models.model import Link, ReleasedModel, ShownClass

_LEAST_CHANCE = 0.001
"""No bin is certain of a class: a log loss would be infinite."""


@estimator
class CalibratedClassifier(ClassifierMixin, BaseEstimator):
    """A released classifier of two classes with probabilities from the private counts of its evaluation.

    `confide.evaluate` releases how many rows of each class lie in each bin of the score. Isotonic regression of these counts
    gives the probability at the middle of each bin, which never falls as the score rises, and straight lines lie between.
    That is for classifiers without probabilities, such as `LinearSVC`, and where those of the model are too sure or too
    cautious. It needs no `fit`: it is made of what was released, and costs nothing more. Clones
    share model and evaluation.

    Parameters
    ----------
    model : LinearClassifier
        A fitted or loaded model of two classes.
    evaluation : Evaluation, dict, or path of a file of JSON
        What `confide.evaluate` gave for this very model, on rows from which it did not learn, or the document that
        `confide evaluate` writes. 50 bins serve well:
        ``confide.evaluate(model, X, y, budget=0.5, n_bins=50, ledger=ledger)``.

    Attributes
    ----------
    classes_ : array (2,)
        Those of the model.
    guarantee_ : Guarantee
        That of the model, with a sentence on what the counts cost and whom that concerns. It is void also where that of
        the evaluation is.
    chances_ : array (n_bins,)
        The probability of the class that the evaluation calls positive, at the middle of each bin.

    Raises
    ------
    ParameterError, FileError
        When it is first used, if the model is not the one that was evaluated, the evaluation has no such counts or says what
        does not follow from them, or its file cannot be read.

    Notes
    -----
    Guarantee: those of the model and of the evaluation, each for its own rows; `statement` says both. Where both are of the
    same people, one ledger adds them up. Source: Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass
    Probability Estimates, KDD 2002.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LinearSVC(1.0, schema=adult.schema)
    >>> model = model.fit(adult.X_train, adult.y_train)
    >>> X, y = adult.X_test[:8000], adult.y_test[:8000]
    >>> counts = confide.evaluate(model, X, y, budget=1.0, n_bins=50)
    >>> calibrated = confide.CalibratedClassifier(model, counts)
    >>> calibrated.predict_proba(adult.X_test[8000:]).shape
    (8281, 2)
    """

    model: LinearClassifier = field(kw_only=False)
    evaluation: Shown | Mapping[str, object] | str | os.PathLike[str] = field(kw_only=False)

    def _checked(self) -> tuple[LinearClassifier, dict[str, Any], Array]:
        """The model; what the evaluation says, as JSON values; and the probability at the middle of each bin."""
        model, facts = self.model, None
        if isinstance(model, LinearClassifier):
            known = None if self.evaluation is self.__dict__.get("_read_from") else partial(said_by_model, model)
            facts = checked_evaluation(self.evaluation, (checksum_of_model(model),), known=known)
        with suppress(KeyError, TypeError, ValueError):
            facts = facts or {}
            counts, is_known = np.asarray(facts["counts"]), math.isfinite(facts["count_deviation"])
            if is_known and counts.shape == (2, counts.size // 2) and counts.size >= 4 and counts.dtype.kind in "if":
                return model, facts, _chances(counts.astype(np.float64))
        raise ParameterError(wording("no evaluation to calibrate by"))

    def _as_read(self) -> Self:
        """What a file holds, checked, but for its rates: another version may have computed them in another way."""
        self.__dict__["_read_from"] = self.evaluation
        return self.fit()

    def __sklearn_clone__(self) -> Self:
        return copy(self)  # nothing is learned that a clone must lose

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Array:
        return np.asarray(self._checked()[0].classes_)

    @property
    def chances_(self) -> Array:
        return self._checked()[2]

    @property
    def guarantee_(self) -> Guarantee:
        """The guarantee of the model, with what the counts cost. It is void also where that of the evaluation is."""
        model, facts, _ = self._checked()
        own, said = model.guarantee_, f"Probabilities follow from counts of rows held out. {guarantee_in_words(facts)}"
        said = said if facts["void"] is not None else wording("promised to whom", said=said)
        return replace(own, void=own.void or facts["void"], assumptions=(*own.assumptions, said))

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Check that the evaluation is that of the model. Nothing is learned: as in scikit-learn's FrozenEstimator.

        Parameters
        ----------
        X, y : as in `fit` of the model
            Not used.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, FileError
            If the evaluation is that of another model, or none, or its file cannot be read.

        Notes
        -----
        Guarantee: none is needed, because no row is used. Source: this is no method of learning.
        """
        self._checked()
        return self

    def predict_proba(self, X: Any) -> Array:
        """Compute the calibrated probability of each class in `classes_`, (n, 2).

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            As in `predict_proba` of the model.

        Returns
        -------
        array (n, 2) of float64

        Raises
        ------
        ParameterError, InputError
            If the evaluation is that of another model, or the rows cannot be used. The message shows no value from them.
        """
        model, _, at_middles = self._checked()
        shown, n_bins = ShownClass.of(released_model(model)), at_middles.size
        binned = binned_by(model._link).mean(shown.of_rows(model.decision_function(X)))
        chances = np.interp(binned * n_bins - 0.5, np.arange(n_bins), at_middles)
        return np.column_stack((1.0 - chances, chances) if shown.sign > 0.0 else (chances, 1.0 - chances))

    def predict(self, X: Any) -> Array:
        """Predict the class of each row that is more probable, (n,).

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            As in `predict_proba`.

        Returns
        -------
        array (n,)
            Labels of `classes_`.

        Raises
        ------
        ParameterError, InputError
            As in `predict_proba`.
        """
        return np.asarray(self.model.classes_[self.predict_proba(X).argmax(axis=1)])

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the accuracy on the given rows. On private rows it is outside every guarantee.

        Parameters
        ----------
        X, y, sample_weight : as in `score` of the model

        Returns
        -------
        float, from 0 to 1
            The share of rows whose label is predicted.

        Raises
        ------
        ParameterError, InputError
            As in `predict_proba`, or if labels or weights cannot be used.
        """
        return share_right(self.model, X, y, sample_weight, lambda rows: self.predict_proba(rows).argmax(axis=1))

    def statement(self) -> str:
        """What is promised: the statement of the model, and that of the evaluation.

        Returns
        -------
        str
            Whole sentences, a paragraph or a point a line.
        """
        return self.guarantee_.statement()

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model and the evaluation as one file of JSON, with a checksum. `confide.load` reads it.

        Parameters
        ----------
        path : str or path
            Where to write.
        overwrite : bool, default False
            Whether to replace a file that exists.

        Raises
        ------
        ParameterError, FileError
            If the evaluation is that of another model; if the file exists and `overwrite` is false, or it cannot be written.
        """
        model, facts, _ = self._checked()
        parts = {"model": document_of_model(model), "evaluation": facts}
        write_document(path, {"version": __version__, "estimator": type(self).__name__} | parts, overwrite=overwrite)

    def report(self, path: str | os.PathLike[str] | None = None, **given: Any) -> None:
        """Write the report of the model with the rates of this evaluation. It says that probabilities follow from them.

        Parameters
        ----------
        path, **given : as in `report` of the model

        Raises
        ------
        ParameterError, FileError
            As there, or if the evaluation is that of another model.
        """
        self.model.report(path, evaluation=counts_of(self), **given)

    def to_onnx(self) -> Any:
        """Write the model as an ONNX graph with one more output: `calibrated`, (n, 2), which `predict_proba` gives here.

        Returns
        -------
        onnx.ModelProto
            That of the model; the other outputs are the model's own.

        Raises
        ------
        ParameterError
            As in `to_onnx` of the model, or if the evaluation is that of another model.
        """
        return onnx_model_of(*self._exported())

    def to_python(self) -> str:
        """Write the model as a file of Python, whose predictions have the calibrated probability as `calibrated`.

        Returns
        -------
        str
            As `to_python` of the model; `calibrated` is that of the class whose score or probability it has.

        Raises
        ------
        ParameterError
            As in `to_python` of the model, or if the evaluation is that of another model.
        """
        return python_of(*self._exported())

    def to_sql(self, table: str = "people", dialect: Literal["postgresql", "duckdb", "spark"] = "postgresql") -> str:
        """Write the model as a query in SQL, with the calibrated probability as the column `calibrated`.

        Parameters
        ----------
        table : str, default "people"
            As in `to_sql` of the model.
        dialect : {"postgresql", "duckdb", "spark"}, default "postgresql"
            The same.

        Returns
        -------
        str
            The query of the model in another one; `calibrated` is that of the class whose score or probability it has.

        Raises
        ------
        ParameterError
            As in `to_sql` of the model, or if the evaluation is that of another model.
        """
        released, link, chances = self._exported()
        return calibrated_sql(sql_of(released, link, table, dialect), link, chances)

    def _exported(self) -> tuple[ReleasedModel, Link, Array]:
        """What is written for other programs, with the guarantee of both releases."""
        model, _, chances = self._checked()
        return replace(released_model(model), guarantee=self.guarantee_), model._link, chances


def counts_of(calibrated: CalibratedClassifier) -> dict[str, Any]:
    """The evaluation of a calibrated classifier as a document, which says that probabilities follow from its counts."""
    return calibrated._checked()[1] | {"calibrates": True}


def _chances(counts: Array) -> Array:
    """The probability of the positive class at the middle of each bin, which never falls from bin to bin."""
    negative, positive = np.maximum(counts, 0.0)
    rows = negative + positive
    # Half a row of either class is added, so that a bin that noise emptied says nothing.
    chances = isotonic_regression((positive + 0.5) / (rows + 1.0), sample_weight=rows + 1e-9)
    return np.asarray(np.clip(chances, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE))
