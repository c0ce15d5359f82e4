"""What stands beside a plan in `confide plan`: a bound on the cost of its noise, other mechanisms, and other budgets."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from confide.errors import ParameterError
from confide.planning.comparison import compare_mechanisms, equivalent_budgets
from confide.planning.estimator_copies import estimator_with
from confide.planning.simulation import simulate
from confide.planning.utility import has_utility_bound, utility_bound
from confide.privacy.budgets import ApproxDP, PureDP, as_budget
from confide.privacy.ridges_of_columns import ridge_factors

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.planning.comparison import Compared
    from confide.planning.simulation import Forecast
    from confide.planning.utility import UtilityBound
    from confide.privacy.budgets import Budget
    from confide.privacy.mechanism import Plan

_HOW_TO_COMPARE = (
    "Compare plans by their noise in rows, as a share of all rows: the smaller the better. Compare distances at the same "
    "alpha only: the automatic alpha falls as rows are added, and weights grow."
)
_NO_BOUND = (
    "No bound on what the noise can cost is proven for noisy gradients or for centred rows. A forecast needs a guess of the "
    "error without privacy."
)
_OTHER_WEIGHTS = (
    "another loss, bound, alpha or ridge of a column: distances from other non-private weights cannot be compared"
)


_DELTA = 1e-6
_LEAST_GAIN, _LEAST_PART = 0.04, 0.25
"""A delta brings a lot if it lowers the forecast error by this share of that of a constant answer, and by this part of what
privacy adds to the error."""


def with_delta(
    estimator: Any, n_rows: int | None, n_features: int | None, forecast: Forecast, rate: float | None, is_given: bool
) -> Forecast | None:
    """The forecast with a delta beside a pure epsilon, where it brings a lot; None elsewhere.

    Parameters
    ----------
    forecast : of the estimator as it is
    rate, is_given : the share of a class, and whether somebody gave the guess of the error, as for that forecast
    """
    budget, added = as_budget(estimator.budget), forecast.error - forecast.non_private_error
    least = max(_LEAST_GAIN * forecast.constant_error, _LEAST_PART * added)
    if not isinstance(budget, PureDP) or added < least:
        return None
    other = estimator_with(estimator, budget=ApproxDP(budget.epsilon, min(_DELTA, 0.1 / forecast.plan.problem.n_rows_high)))
    try:
        asked: dict[str, Any] = {
            "error": forecast.non_private_error,
            "positive_rate": rate,
            "n_designs": None if is_given else 2,
        }
        found = simulate(other, n_rows, n_features, **asked)
    except ParameterError:
        return None
    return found if forecast.error - found.error >= least else None


@dataclass(frozen=True)
class Alternatives:
    """A bound on the cost of a plan's noise, and what other mechanisms and kinds of budget would do instead.

    Attributes
    ----------
    decided : the plan
    bound : what its noise can cost at most; None where none is proven
    mechanisms : plans of all mechanisms at the alpha of the plan
    budgets : budgets of other kinds at which the plan has as much noise; empty if there are none
    errors : test error forecast for each other mechanism, with the alpha and the loss that it would choose
    """

    decided: Plan
    bound: UtilityBound | None
    mechanisms: tuple[Compared, ...]
    budgets: tuple[Budget, ...]
    errors: dict[str, float]

    @classmethod
    def of(
        cls,
        model: PrivateLinearModel,
        decided: Plan,
        rows: int | None,
        features: int | None,
        guesses: dict[str, Any] | None,
    ) -> Alternatives:
        """The alternatives to the plan of a model.

        Parameters
        ----------
        model : a classifier with a finite budget
        decided : its plan
        rows, features : as in the plan
        guesses : `error` and `positive_rate` for `simulate`; None for no forecasts
        """
        bound = utility_bound(decided) if has_utility_bound(decided) else None
        mechanisms = compare_mechanisms(estimator_with(model, alpha=decided.alpha), rows, features)
        errors = {}
        if guesses is not None:
            for name in (other.mechanism for other in mechanisms if other.mechanism != decided.mechanism):
                with suppress(ParameterError):
                    errors[name] = simulate(estimator_with(model, mechanism=name), rows, features, **guesses).error
        budgets: tuple[Budget, ...] = ()
        with suppress(ParameterError):
            # Without a centre, "auto" might take another mechanism than the plan did.
            budgets = equivalent_budgets(estimator_with(model, mechanism=decided.mechanism), rows, features)
        return cls(decided, bound, mechanisms, budgets, errors)

    def sentences(self) -> list[str]:
        """For people, each a paragraph or an item of a list."""
        said = [_HOW_TO_COMPARE, _NO_BOUND if self.bound is None else str(self.bound)]
        distances = self._distances()
        if len(distances) > 1:
            said.append(
                "Distance from the same non-private weights at the alpha of the plan: upper bounds, which do not count that "
                "the loss damps noise in the objective."
            )
            said += [f"- {name} {distance:.4g}" for name, distance in distances.items()]
        if len(self.budgets) > 1:
            said.append(
                "Budgets with as much noise, if alpha, loss and mechanism stay as planned. They do not protect equally:"
            )
            said += [f"- {type(each)(*(float(f'{getattr(each, n):.4g}') for n in each.ranges))}" for each in self.budgets]
        if self.errors:
            said.append("Forecast accuracy of other mechanisms, each at the alpha that it would choose:")
            said += [f"- {name} {1.0 - error:.4f}" for name, error in self.errors.items()]
        return said

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        distances = self._distances()
        mechanisms = {m.mechanism: distances.get(m.mechanism, m.refusal or _OTHER_WEIGHTS) for m in self.mechanisms}
        budgets = [budget.to_dict() for budget in self.budgets]
        utility = None if self.bound is None else asdict(self.bound)
        document = {"utility": utility, "mechanisms": mechanisms, "equivalent_budgets": budgets}
        return document | ({"mechanism_errors": self.errors} if self.errors else {})

    def _distances(self) -> dict[str, float]:
        """Expected distances of the mechanisms whose non-private weights are those of the plan."""
        return {
            other.mechanism: other.plan.expected_distance
            for other in self.mechanisms
            # After a fixed number of steps, noisy gradients need not be near the non-private weights.
            if other.plan is not None
            and other.plan.descent is None
            and _problem_minimised(other.plan) == _problem_minimised(self.decided)
        }


def _problem_minimised(plan: Plan) -> tuple[Any, ...]:
    """What determines the non-private weights: loss, bound, alpha and the factors of ridges of single weights."""
    return plan.problem.loss, plan.problem.row_bound, float(f"{plan.alpha:.9g}"), ridge_factors(plan.problem)
