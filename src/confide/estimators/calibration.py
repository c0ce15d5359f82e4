"""Probabilities of a released classifier that follow from private counts of rows held out."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np
from sklearn.isotonic import isotonic_regression

from confide.array_types import Array
from confide.blocks import Shown
from confide.errors import ParameterError
from confide.estimators.linear_classifier import LinearClassifier
from confide.estimators.linear_model import checksum_of_model, released_model
from confide.estimators.parameters import BaseEstimator, ClassifierMixin, estimator
from confide.inference.rates import Evaluation
from confide.models.model import Link, ShownClass

_LEAST_CHANCE = 0.001
"""No bin is certain of a class: a log loss would be infinite."""


@estimator
class CalibratedClassifier(ClassifierMixin, BaseEstimator):
    """A released classifier of two classes with probabilities from the private counts of its evaluation.

    `confide.evaluate` releases how many rows of each class lie in each bin of the score. Isotonic regression of these counts
    gives the probability at the middle of each bin, which never falls as the score rises, and straight lines lie between.
    That is for classifiers without probabilities, such as `LinearSVC`, and where those of the model are too sure or too
    cautious. It needs no `fit`: it is made of what was released, and costs nothing more.

    Parameters
    ----------
    model : LinearClassifier
        A fitted or loaded model of two classes.
    evaluation : Evaluation
        What `confide.evaluate` gave for this very model, on rows from which it did not learn. 50 bins serve well:
        ``confide.evaluate(model, X, y, budget=0.5, n_bins=50, ledger=ledger)``.

    Attributes
    ----------
    classes_ : array (2,)
        Those of the model.
    chances_ : array (n_bins,)
        The probability of the class that the evaluation calls positive, at the middle of each bin.

    Raises
    ------
    ParameterError
        When it is first used, if the model is not the one that was evaluated, or the evaluation has no such counts.

    Notes
    -----
    Guarantee: those of the model and of the evaluation, each for its own rows; `statement` says both. Where both are of the
    same people, one ledger adds them up. Source: Zadrozny and Elkan, Transforming Classifier Scores into Accurate Multiclass
    Probability Estimates, KDD 2002.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LinearSVC(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    >>> counts = confide.evaluate(model, adult.X_test[:8000], adult.y_test[:8000], budget=1.0, n_bins=50)
    >>> calibrated = confide.CalibratedClassifier(model, counts)
    >>> calibrated.predict_proba(adult.X_test[8000:]).shape
    (8281, 2)
    """

    model: LinearClassifier = field(kw_only=False)
    evaluation: Shown = field(kw_only=False)

    def _checked(self) -> tuple[LinearClassifier, Evaluation, ShownClass]:
        model, counts = self.model, self.evaluation
        if not isinstance(counts, Evaluation) or not isinstance(model, LinearClassifier):
            raise ParameterError(
                "give a fitted classifier of two classes, and the Evaluation that confide.evaluate gave for it on rows held "
                "out, as it was returned: not with groups, and neither a file nor a dict of it."
            )
        if counts.model_checksums != (checksum_of_model(model),):
            raise ParameterError("the evaluation is that of another model: evaluate this one, on rows held out.")
        return model, counts, ShownClass.of(released_model(model))

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> Array:
        return np.asarray(self._checked()[0].classes_)

    @property
    def chances_(self) -> Array:
        return _curve(self._checked()[1])[1]

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
        model, counts, shown = self._checked()
        # The bins of an evaluation are those of probabilities, or of scores as if they were log-odds.
        link = model._link if model._link.has_probabilities else Link("logistic")
        binned = link.mean(shown.of_rows(model.decision_function(X)))
        chances = np.interp(binned, *_curve(counts))
        pair = (1.0 - chances, chances) if shown.sign > 0.0 else (chances, 1.0 - chances)
        return np.column_stack(pair)

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

    def statement(self) -> str:
        """What is promised: the statement of the model, and that of the evaluation.

        Returns
        -------
        str
            Whole sentences, a paragraph or a point a line.
        """
        model, counts, _ = self._checked()
        held_out = f"Probabilities follow from counts of rows held out. {counts.guarantee_in_words()}"
        return f"{model.guarantee_.statement()}\n{held_out}"

    def to_sql(self, table: str = "people", dialect: str = "postgresql") -> str:
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
        model, counts, _ = self._checked()
        lines = model.to_sql(table, dialect).rstrip().rstrip(";").split("\n")
        comments, query = [line for line in lines if line.startswith("--")], [x for x in lines if not x.startswith("--")]
        binned = "c.probability" if model._link.has_probabilities else "1e0 / (1e0 + EXP(-c.score))"
        middles, chances = _curve(counts)
        slopes = np.append(np.diff(chances) * chances.size, 0.0)
        # Some databases refuse exponentials that overflow.
        far = [] if model._link.has_probabilities else [f"WHEN c.score < -700e0 THEN {chances[0]:.17e}"]
        cases = [*far, f"WHEN {binned} < {middles[0]:.17e} THEN {chances[0]:.17e}"]
        for start, stop, chance, slope in zip(middles, np.append(middles[1:], 2.0), chances, slopes, strict=True):
            cases.append(f"WHEN {binned} < {stop:.17e} THEN {chance:.17e} + {slope:.17e} * ({binned} - {start:.17e})")
        case = "\n".join(["CASE", *(f"  {case}" for case in cases), "END"])
        return "\n".join([*comments, "SELECT c.*,", case, "AS calibrated FROM (", *query, ") AS c", ""])


def _curve(counts: Evaluation) -> tuple[Array, Array]:
    """The middles of the bins, and the probability of the positive class there, which never falls from bin to bin."""
    negative, positive = np.maximum(counts.counts, 0.0)
    rows = negative + positive
    # Half a row of either class is added, so that a bin that noise emptied says nothing.
    chances = isotonic_regression((positive + 0.5) / (rows + 1.0), sample_weight=rows + 1e-9)
    middles = (np.arange(rows.size) + 0.5) / rows.size
    return middles, np.asarray(np.clip(chances, _LEAST_CHANCE, 1.0 - _LEAST_CHANCE))
