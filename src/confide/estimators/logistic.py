"""Private logistic regression."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from confide.accounting.ledger import Batch, Ledger
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import LogisticLoss, Loss
from confide.estimators import parameters
from confide.estimators.linear import LinearClassifier
from confide.features.schema import Schema
from confide.privacy.budgets import Budget, Neighbours
from confide.types import Array


class LogisticRegression(LinearClassifier):
    """Logistic regression released under differential privacy.

    Minimises mean log(1 + exp(-y w . x)) + alpha / 2 |w|^2 over clipped rows, perturbed so that the released weights are
    differentially private. The intercept is a penalised coordinate of w: its constant is part of every row.

    Three classes and more have a vector of weights each, all released together under the one budget: with one joint loss,
    minus the log-probability of a row's class (softmax), or one logistic loss for each class against all others.

    Parameters
    ----------
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
        A number is the epsilon of pure differential privacy. ``float("inf")`` gives the model without privacy, and its
        guarantee says so.
    alpha : "auto" or float, default "auto"
        Ridge of the mean objective, positive. "auto" is a function of public facts alone: number of rows, features,
        budget and row bound. It is raised, and the plan says so, where the proof needs more.
    schema : Schema or None
        Public knowledge about raw columns. With it X is a pandas or Polars frame, columns are matched by name, and the
        row bound comes from the schema, with noise shaped by its columns.
    row_norm : float, row bound or None
        Every row is clipped to this L2 norm, default 1.0. Never inferred. Not together with a schema. A `BallBound`,
        `BoxBound` or `GroupBound` clips rows its own way and shapes the noise. ``float("inf")`` needs an infinite budget.
    fit_intercept : bool, default True
    intercept_scaling : float, default 1.0
        The constant appended to every clipped row. Larger values shrink the intercept less and cost noise. Where rows
        are not about 1 long take about `row_norm`: beside rows of norm 1000 a constant of 1 shifts no score, and
        beside rows of norm 0.001 nearly all noise is on its account.
    classes : sequence of labels or None
        The label domain, 2 to 100 labels. None: the schema's target; else {0, 1}, {-1, 1} or {False, True} where the labels
        fit; else the labels present, which the guarantee names as an assumption.
    multiclass : {"softmax", "one-vs-rest"}, default "softmax"
        The loss of three classes and more.
    mechanism : {"auto", "objective", "output", "output-laplace"}, default "auto"
        Where the noise goes: into the objective, or on the weights; "auto" is "objective" where the loss is smooth.
        "output-laplace" is the PrivateSVM of Rubinstein et al., independent Laplace noise, pure privacy, for comparison.
    neighbours : {"replace-one", "add-or-remove-one"}
        Which data sets the guarantee calls neighbours.
    n_rows_bounds : (int, int) or None
        Public bounds on the number of rows, for "add-or-remove-one", where that number is private. The ridge of the sum
        is alpha times the lower bound.
    max_rows_per_person : int, default 1
        A public cap k on the rows of one person: the guarantee then protects a person, by group privacy. Where the schema
        names a column of persons, k rows of each are drawn anew in every fit; otherwise the cap is an assumption.
    class_weight : dict or None
        A public weight for each class, label: number. Noise grows with the largest. "balanced" would be learned from labels.
    max_sample_weight : float, default 1.0
        A public cap on the `sample_weight` of a row in `fit`. Noise grows with it; the mean is over the number of rows,
        whatever they weigh.
    inference_share : float or "auto", default 0.0
        The part of the budget kept for intervals: then `conf_int`, `summary` and `uncertainty` say how far the coefficients
        may lie from those of the population. "auto" takes the share at which they are narrowest, by public facts. Refused,
        before anything is charged, where the intervals could not be trusted.
    ledger : Ledger, batch of one, or None
        Charged before a row is used.
    n_jobs : int or None
        Threads that share the rows: None is 1, or what `joblib.parallel_config` says; -1 is one for each core. Fits are the
        same to the bit whatever their number. Small calls of NumPy take turns, so measure before you ask for more than one.
    random_state : int or None
        For tests: a seed makes the noise reproducible and the guarantee void.

    Attributes
    ----------
    coef_ : array (1, n_coefficients), or (n_classes, n_coefficients) for three classes and more
        Weights for `classes_[1]`, or for each class: one a column of X, or of the encoded columns with a schema.
    intercept_ : array (1,) or (n_classes,)
    classes_ : array (n_classes,), sorted
    coefficient_names_ : array (n_coefficients,) of str
    n_features_in_ : int
    feature_names_in_ : array of str, where X has names
    alpha_ : float
        The ridge used, a public number.
    guarantee_ : Guarantee

    Notes
    -----
    Guarantee: `coef_`, `intercept_` and what intervals are made of are together differentially private at the budget for the
    stated neighbour relation, in the sense and under the assumptions that `guarantee_.statement()` lists. Nothing else that
    depends on rows is kept.

    Sources: Chaudhuri, Monteleoni and Sarwate, Differentially Private Empirical Risk Minimization, JMLR 2011; proofs
    beside the mechanisms in confide/privacy/proofs.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(budget=1.0, schema=adult.schema)
    >>> bool(model.fit(adult.X_train, adult.y_train).score(adult.X_test, adult.y_test) > 0.8)
    True
    """

    def __init__(
        self,
        budget: float | Budget = 1.0,
        *,
        alpha: float | str = "auto",
        schema: Schema | None = None,
        row_norm: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        classes: Any = None,
        multiclass: str = "softmax",
        mechanism: str = "auto",
        neighbours: str | Neighbours = "replace-one",
        n_rows_bounds: tuple[int, int] | None = None,
        max_rows_per_person: int = 1,
        class_weight: Mapping[Any, float] | None = None,
        max_sample_weight: float = 1.0,
        inference_share: float | str = 0.0,
        ledger: Ledger | Batch | None = None,
        n_jobs: int | None = None,
        random_state: int | None = None,
    ) -> None:
        super().__init__(
            budget,
            alpha=alpha,
            schema=schema,
            row_norm=row_norm,
            fit_intercept=fit_intercept,
            intercept_scaling=intercept_scaling,
            classes=classes,
            mechanism=mechanism,
            neighbours=neighbours,
            n_rows_bounds=n_rows_bounds,
            max_rows_per_person=max_rows_per_person,
            class_weight=class_weight,
            max_sample_weight=max_sample_weight,
            inference_share=inference_share,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.multiclass = multiclass

    def decision_function(self, X: Any) -> Array:
        """Log-odds of `classes_[1]`, (n,). Rows are clipped to the bound of the fit, as the rows it learned from were.

        Of three classes and more the score of each, (n, k): the log-probability but for a number common to the row, or with
        one-vs-rest the log-odds of the class against all others.
        """
        return super().decision_function(X)

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, k) of the classes in `classes_`; with one-vs-rest those of each, divided by their sum."""
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of `predict_proba`, (n, k)."""
        from scipy.special import log_expit, log_softmax, logsumexp

        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.column_stack([log_expit(-scores), log_expit(scores)])
        if self.multiclass == "softmax":
            return np.asarray(log_softmax(scores, axis=1))
        logs = log_expit(scores)
        return np.asarray(logs - logsumexp(logs, axis=1, keepdims=True))

    def _loss(self, n_classes: int) -> Loss:
        multiclass = parameters.checked_choice("multiclass", self.multiclass, ("softmax", "one-vs-rest"))
        if n_classes == 2:
            return LogisticLoss()
        return Softmax(n_classes) if multiclass == "softmax" else OneVsRest(LogisticLoss(), n_classes)
