"""What linear classifiers have in common; they differ in their loss."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from confide.errors import ParameterError
from confide.estimators.linear_model import PrivateLinearModel, WeightsOfRows, released_model, sample_weight_of
from confide.estimators.shared_parameters import ClassParameters, SampleWeightParameter
from confide.features.encoder import Encoder
from confide.features.labels import positions_of
from confide.intake.row_weights import weights_of
from confide.intake.targets import MOST_CLASSES, Classes, declared_domain
from confide.privacy.mechanism import Plan
from confide.released_models.model import ReleasedModel
from confide.released_models.scores import LinearModel, favoured
from confide.released_models.shown_class import ShownClass
from confide.training.settings import ScoreLoss
from confide.types import Array


class LinearClassifier(ClassParameters, SampleWeightParameter, ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]  # scikit-learn ships no types
    """A linear classifier, released under differential privacy. Its loss is that of a subclass."""

    # How scikit-learn is told of a parameter that is not written out in `fit`, see there.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}

    coef_: Array
    intercept_: Array
    classes_: Any

    def plan(self, n_rows: int | None = None, n_features: int | None = None, *, n_classes: int | None = None) -> Plan:
        """Everything a fit would decide from public facts. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int
            Number of rows; not used where `n_rows_bounds` are given.
        n_features : int
            Number of columns of X; with a schema its own, and not needed.
        n_classes : int
            Number of classes; where they are declared theirs, and not needed; otherwise 2 by default.
        """
        plan: Plan = self._plan_one_of_several(n_rows, n_features, n_classes, set_aside=0.0)
        return plan

    def _plan_one_of_several(
        self, n_rows: int | None, n_features: int | None, n_classes: int | None, *, set_aside: float
    ) -> Any:
        """The same, where the fit is one of several that leave together, or of which one leaves; see `Problem`."""
        domain = declared_domain(self.classes, self.schema)
        declared = 2 if domain is None else len(domain)
        n_classes = declared if n_classes is None else n_classes
        whole = isinstance(n_classes, (int, np.integer)) and not isinstance(n_classes, bool)
        if not whole or not 2 <= n_classes <= MOST_CLASSES or (domain is not None and n_classes != declared):
            raise ParameterError(
                f"n_classes must be a whole number from 2 to {MOST_CLASSES}, and where classes are declared their number."
            )
        return self._plan(n_rows, n_features, int(n_classes), set_aside=set_aside)

    def fit(self, X: Any, y: Any = None, **weights_of_rows: Unpack[WeightsOfRows]) -> Self:
        """Train and release.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d) of real numbers; with a schema a frame of raw columns. Frames are of
            any library that narwhals reads. float32 stays float32, in a frame where all columns are. Or rows from
            `open_rows`, which bring their schema
        y : (n,) labels; None for rows from `open_rows`
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None for 1 each. Part of the data: each must be made
            from its own row alone.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            Before anything is charged.
        BudgetExceeded
            If the ledger has too little left; no row was used.

        Notes
        -----
        `sample_weight` is given by name. It is not written out in the signature because ensembles that find it
        there pass how often they drew a row, far above any cap on a weight. So they draw rows instead.
        """
        return self._train(X, y, sample_weight_of(weights_of_rows))

    def decision_function(self, X: Any) -> Array:
        """Scores in favour of `classes_[1]`, (n,); of three classes and more those of each, (n, k).

        Rows are clipped to the bound of the fit, as in the fit.
        """
        blocks = self._blocks_to_score(X)
        return LinearModel(self.coef_, self.intercept_, self._row_bound).scores(blocks)

    def predict(self, X: Any) -> Any:
        """The class that the score of each row is in favour of, (n,)."""
        positions = favoured(self.decision_function(X))
        return self.classes_[positions]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy on the given rows; labels are read as in `fit`. On private rows it is outside every guarantee."""
        check_is_fitted(self)
        scores = self.decision_function(X)
        labels = classes_of(self).read(y, scores.shape[0])
        right = favoured(scores) == positions_of(labels.values, len(labels.domain))
        return float(np.average(right, weights=weights_of(sample_weight, scores.shape[0])))

    @abstractmethod
    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        """The loss, from checked parameters."""

    def _target(self, encoder: Encoder | None) -> Classes:
        return Classes.declared(self.classes, None if encoder is None else encoder.schema)

    def _hold(self, released: ReleasedModel) -> None:
        super()._hold(released)
        self.intercept_ = released.scoring.intercept
        self.classes_ = np.array(released.domain)

    def _why_no_intervals(self) -> str:
        if self._fourier is not None:
            return (
                "the weights of random features have no meaning one by one, so there are no intervals for them; use "
                "LinearSVC or LogisticRegression."
            )
        return super()._why_no_intervals()

    def _spoken_of(self) -> tuple[float, str]:
        shown = ShownClass.of(released_model(self))
        return shown.sign, "the class named before each" if shown.position is None else str(shown)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            self._minimised(None).for_classes(3)
        except ParameterError:
            tags.classifier_tags.multi_class = False
        return tags


def classes_of(model: LinearClassifier) -> Classes:
    """How labels are read for a fitted model: its classes, recognised as in its fit."""
    schema = model.schema if model.schema is not None or model._encoder is None else model._encoder.schema
    return Classes(tuple(model.classes_.tolist()), schema is not None and schema.target is not None)
