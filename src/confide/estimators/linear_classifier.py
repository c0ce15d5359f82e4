"""The base class of all linear classifiers. Its subclasses differ in their loss."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit
from sklearn.utils.validation import check_is_fitted

from confide.array_types import Array, ClassLabels
from confide.callers import labels_are_encoded
from confide.errors import ParameterError, is_whole
from confide.estimators.linear_model import PrivateLinearModel, released_model
from confide.estimators.parameters import ClassifierMixin, ClassParameters, SampleWeightParameter
from confide.features.cells import positions_of
from confide.features.encoder import Encoder
from confide.intake.arrays import weights_of
from confide.intake.parameters import checked_schema
from confide.intake.rows import with_target
from confide.intake.targets import MOST_CLASSES, Classes, declared_domain
from confide.models.model import Link, ReleasedModel, ShownClass
from confide.models.prior import USUAL_EFFECT
from confide.models.scores import LinearModel, favoured
from confide.privacy.mechanism import Plan
from confide.training.settings import ScoreLoss


class LinearClassifier(ClassParameters, SampleWeightParameter, ClassifierMixin, PrivateLinearModel):
    """A linear classifier, released under differential privacy. A subclass says which loss it minimises."""

    intercept_: Array

    _gives_positions = False
    """Whether `classes_` are the positions of the declared labels, as scikit-learn's ensembles want them."""

    def plan(self, n_rows: int | None = None, n_features: int | None = None, *, n_classes: int | None = None) -> Plan:
        """Show everything that a fit would decide from public facts. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int or None
            Number of rows, at least 1. Not used if `n_rows_bounds` is given.
        n_features : int or None
            Number of columns of X, at least 1. With a schema leave it out: the schema has the number.
        n_classes : int or None
            Number of classes, from 2 to 100. Leave it out if the classes are declared; otherwise None means 2.

        Returns
        -------
        Plan
            Budget, alpha, mechanism and noise. It prints.

        Raises
        ------
        ParameterError
            If a parameter cannot be used, or there is no private fit with these parameters.
        """
        return self._plan(n_rows, n_features, n_classes)

    def _plan(
        self, n_rows: int | None, n_features: int | None, n_classes: int | None = None, *, set_aside: float = 0.0
    ) -> Plan:
        domain = self._target(checked_schema(self.schema)).domain
        declared = 2 if domain is None else len(domain)
        n_classes = declared if n_classes is None else n_classes
        is_wrong = not is_whole(n_classes) or not 2 <= n_classes <= MOST_CLASSES
        if is_wrong or (domain is not None and n_classes != declared):
            must = f"n_classes must be a whole number from 2 to {MOST_CLASSES}"
            raise ParameterError(f"{must}. If classes are declared, it must be their number, or be left out.")
        return super()._plan(n_rows, n_features, int(n_classes), set_aside=set_aside)  # type: ignore[return-value]

    def fit(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows, charge the ledger, and release the model.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d), or rows from `open_rows`
            Real numbers; with a schema, a frame of raw columns. Frames may come from any library that narwhals reads.
            float32 stays float32; a frame only if all its columns are float32. Rows from `open_rows` bring their schema.
        y : (n,) labels, or None
            None for rows from `open_rows`, which bring their labels, and for a frame that has the schema's as a column.
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None
            How much each row counts; None means 1 each. Weights are part of the data: the weight of a row must be made from
            that row alone.

        Returns
        -------
        self

        Raises
        ------
        ParameterError, InputError
            If a parameter or the rows cannot be used. Nothing was charged.
        BudgetExceeded
            If the ledger has too little left. Nothing was charged, and no row was used.
        """
        labels, are_positions = labels_given(y, self.classes, self.schema)
        self._train(X, labels, sample_weight)
        if are_positions:
            self._give_positions()
        return self

    def _give_positions(self) -> None:
        """Predict positions in place of labels, as scikit-learn's ensembles want what they handed over."""
        self.classes_, self._gives_positions = np.arange(len(self.classes_)), True

    def decision_function(self, X: Any) -> Array:
        """Compute scores in favour of `classes_[1]`, (n,); for three or more classes, of every class, (n, n_classes).

        Rows are clipped to the same bound as in the fit. With one-vs-rest the score of a class is against all others; with
        softmax it is the log-probability of the class, up to a number that is the same for all classes of a row.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.

        Returns
        -------
        array (n,) of float64, or (n, n_classes)
            Scores without a unit, or log-odds for a logistic loss.

        Raises
        ------
        InputError
            If the rows cannot be used. The message shows no value from them.
        """
        blocks = self._blocks_to_score(X)  # an unfitted model is refused here
        return LinearModel(self.coef_, self.intercept_, self._row_bound).scores(blocks)

    def _scores_at(self, probabilities: Array) -> Array:
        """The scores (n,) of two classes at which `classes_[1]` has these probabilities, as if scores were log-odds."""
        return np.asarray(logit(probabilities))

    def predict(self, X: Any) -> ClassLabels:
        """Predict the class of each row, (n,): the class that its score favours.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.

        Returns
        -------
        array (n,)
            Labels of `classes_`.

        Raises
        ------
        InputError
            If the rows cannot be used. The message shows no value from them.
        """
        positions = favoured(self.decision_function(X))  # an unfitted model is refused here
        return self.classes_[positions]  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the accuracy on the given rows; labels are read as in `fit`.

        On private rows this number is outside every guarantee; use `confide.evaluate` there.

        Parameters
        ----------
        X : array, SciPy sparse matrix or frame (n, d)
            Rows, in the units of the fit; with a schema a frame that has its columns.
        y : (n,) labels, or None
            As in `fit`: None for a frame that has the schema's as a column.
        sample_weight : (n,) numbers that are not negative, or None
            The weight of each row in the mean.

        Returns
        -------
        float, from 0 to 1
            The share of rows whose label is predicted.

        Raises
        ------
        InputError, ParameterError
            If rows, labels or weights cannot be used. The message shows no value from them.
        """
        check_is_fitted(self)
        return share_right(self, X, y, sample_weight, lambda rows: favoured(self.decision_function(rows)))

    def _units_of_effects(self, encoder: Encoder | None) -> tuple[float, Callable[[float], float]]:
        losses, target = self._minimised(encoder), None if encoder is None else encoder.schema.target
        margin = (losses.if_noisy or losses.loss).constants.margin
        link = Link("logistic", margin if margin > 1.0 else 0.0)  # 1 is that of losses without a margin
        is_first = target is not None and (self._target(encoder).domain or ())[:1] == (target.positive,)
        sign = -2.0 if is_first else 2.0
        return USUAL_EFFECT, lambda change: sign * float(link.scores_at(expit(np.array(change / 2.0))))

    @abstractmethod
    def _minimised(self, encoder: Encoder | None) -> ScoreLoss:
        """The loss, from checked parameters."""

    @property
    def _link(self) -> Link:
        return Link("none")

    def _target(self, encoder: Encoder | None) -> Classes:
        return Classes.declared(self.classes, None if encoder is None else encoder.schema)

    def _hold(self, released: ReleasedModel) -> None:
        super()._hold(released)
        self.intercept_ = released.scoring.intercept
        self.classes_, self._gives_positions = np.array(released.domain), False

    def _released_labels(self) -> tuple[Any, ...]:
        if not self._gives_positions:
            return tuple(self.classes_.tolist())
        return self._target(self._encoder).domain or ()

    def _shown_outcome(self) -> tuple[float, str]:
        shown = ShownClass.of(released_model(self))
        return shown.sign, "the class named before each" if shown.position is None else str(shown)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        try:
            # A user's loss is for two classes; to look at it would check it on a grid at each question of scikit-learn.
            tags.classifier_tags.multi_class = not self._has_own_loss and bool(self._minimised(None).for_classes(3))
        except ParameterError:
            tags.classifier_tags.multi_class = False
        return tags


def labels_given(y: Any, classes: Any, schema: Any) -> tuple[Any, bool]:
    """The labels of rows, and whether scikit-learn handed over their positions among the sorted labels in their place."""
    is_array = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iu"
    if not is_array or not labels_are_encoded():
        return y, False
    labels = np.asarray(declared_domain(classes, schema))
    if labels.dtype.kind != "U" or any(label.lstrip("+-").isdecimal() for label in labels.tolist()):
        return y, False  # numbers are labels themselves
    return (labels[y], True) if np.isin(y, np.arange(len(labels))).all() else (y, False)


def share_right(model: LinearClassifier, X: Any, y: Any, sample_weight: Any, predicted: Callable[[Any], Array]) -> float:
    """The share of rows whose label is at the place among the classes of the model that is predicted."""
    X, y = with_target(X, y, model.schema)
    places = predicted(X)
    labels = classes_of(model).read(y, len(places))
    right = places == positions_of(labels.values, len(labels.domain))
    return float(np.average(right, weights=weights_of(sample_weight, len(places))))


def classes_of(model: LinearClassifier) -> Classes:
    """How labels are read for a fitted model: they must be among its classes, recognised as in its fit."""
    schema = model.schema if model.schema is not None or model._encoder is None else model._encoder.schema
    return Classes(tuple(model.classes_.tolist()), schema is not None and schema.target is not None)
