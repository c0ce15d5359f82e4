"""Private choice of a model and its parameters: the whole search is one release and is charged once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial, wraps
from textwrap import shorten
from typing import Any, Literal, NoReturn, Self, TypeAlias

import joblib
import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.model_selection import ParameterGrid as ParameterGrid
from sklearn.pipeline import Pipeline as Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from confide.accounting.ledger import Batch, Ledger
from confide.blocks import Shown
from confide.budget_warnings import cautions, of_many_classes, tell_of_unknown_size, warn
from confide.errors import AccuracyWarning, ParameterError, checked_count, is_text, wording
from confide.estimators.linear_classifier import labels_given
from confide.estimators.linear_model import (
    PrivateLinearModel,
    TellsOfRepeatedFits,
    released_model,
)
from confide.estimators.logistic import LogisticRegression
from confide.estimators.parameters import AdviceOnParameters, BaseEstimator, MetaEstimatorMixin, advice, estimator
from confide.estimators.transformers import RandomFourierFeatures, SchemaEncoder
from confide.expected_noise import noise_on_a_weight, wasted
from confide.features.encoder import Encoder
from confide.guarantee import Circumstances, Guarantee, Search
from confide.intake import parameters
from confide.intake.rows import GivenRows, checked_input
from confide.intake.specification import CheckedRows, RowSpecification
from confide.intake.targets import declared_domain
from confide.parameters import checked, checked_choice
from confide.plan_text import search_blocks
from confide.privacy.budgets import ZCDP, Budget, Neighbours, PureDP, as_budget, budget_of_row, pure_epsilon
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, lattice_exponent
from confide.privacy.mechanism import ProblemFacts
from confide.privacy.noise import Entropy
from confide.privacy.selection import Repetition, Selection
from confide.training.assumptions import circumstances_of, guarantee_of, sentences_of_rows
from confide.training.auto_features import SLOTS
from confide.training.charge import (
    Charge,
    ErrorsOfNumbers,
    before_charge,
    charge_and_release,
    deciding_fit,
    divided,
    keeps_released,
    mistakes,
    refuse_in_parts,
    refuse_persons,
    refuse_undivided,
)
from confide.training.fit import Fit, lattices_of, model_of, released
from confide.training.plan import AnyPlan, of_all_rows
from confide.training.settings import Settings

PublicNumbers: TypeAlias = tuple[int | None, int | None]
"""Numbers of columns and of classes, as the `plan` of a classifier takes them."""

METHODS = ("auto", "permute-and-flip", "exponential", "repeated")

_SAME_FOR_ALL = (
    "neighbours", "n_rows_bounds", "max_rows_per_person", "schema", "classes", "inference_share", "intervals", "interest",
    "prior", "target_bound", "target_low", "target_high", "exposure_range",
)  # fmt: skip
FIXED = dict.fromkeys(_SAME_FOR_ALL, "must be the same for all")
FIXED |= dict.fromkeys(("budget", "ledger", "random_state"), "is a parameter of the search")
"""What no grid can vary, and why."""

_SHAPE = Fraction(1, 2)
"""Shape eta of the distribution of the number of tries. With 1/2, a search costs 2.5 times the epsilon of one try. Chosen by
benchmarks/private_search.py."""
_TRIES_OF_A_CANDIDATE = 10
"""Mean number of tries for each candidate. Chosen by benchmarks/private_search.py."""
_HELD_OUT_SHARE = 0.1
_CLIP_SHARE = 0.25
"""The largest residual that tells candidates apart, as a share of the target's range. Chosen by
benchmarks/private_search.py."""
_PUBLIC_STEPS = (SchemaEncoder, RandomFourierFeatures)
"""Steps that learn nothing from rows, and make each row from that row alone, to the bit."""
_DOWNWARDS = 1.0 - 2.0**-40
"""Factor on a part of a budget, so that rounding cannot make the parts larger than the whole."""


@dataclass(frozen=True, slots=True)
class SearchPlan(Shown):
    """Everything that a search decides before any row is read. It is public: safe to print, store and review.

    Attributes
    ----------
    budget : what the whole search costs
    plans : one plan for each candidate, in the order of the grid
    n_rows : number of rows
    part_sizes : numbers of rows in the parts: first those for training, last the one held out
    selection : how the choice is made, or None if tries are repeated
    repetition : the distribution of the number of tries, or None if each candidate is trained once
    score_noise : the noise on a number of mistakes, or a sum of errors, added before it is compared or released; None if no
        score is released
    event : what a ledger counts
    errors : for each regressor how far it errs on a row held out, from 0 to 1; empty for classifiers, which count mistakes
    times_the_noise : the largest noise of a candidate beside its rows, over that of the same model without a search, which
        has the whole budget and all rows
    names : what each candidate is called: the parameters that the grid gives it
    """

    budget: Budget
    plans: tuple[AnyPlan, ...]
    n_rows: int
    part_sizes: tuple[int, ...]
    selection: Selection | None
    repetition: Repetition | None
    score_noise: LatticeLaplace | LatticeGaussian | None
    event: Event
    errors: tuple[ErrorsOfNumbers, ...] = ()
    times_the_noise: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def problem(self) -> ProblemFacts:
        """The public facts of the first candidate. Number of rows and neighbours are the same for all candidates."""
        return self.plans[0].problem

    @property
    def method(self) -> str:
        """The method that "auto" stands for."""
        return "repeated" if self.selection is None else self.selection.law

    @property
    def noise(self) -> float:
        """The sum over the candidates of how far the noise displaces their weights. "auto" compares methods by it."""
        return float(sum(map(_displacement, self.plans)))

    blocks = search_blocks


def _steps_of(candidate: Any) -> list[Any]:
    """The steps of a pipeline, without those that are left out, or the estimator itself; the last one is the model."""
    steps = [step for _, step in candidate.steps] if hasattr(candidate, "steps") else [candidate]
    return [step for step in steps if step is not None and not is_text(step)] or [None]


def _named(point: Mapping[str, Any]) -> str:
    """What a point of the grid is called: its estimators by their classes, and its parameters with their values."""
    kinds = [type(value).__name__ for value in point.values() if hasattr(value, "get_params")]
    others = {name.rpartition("__")[2]: value for name, value in point.items() if not hasattr(value, "get_params")}
    return ", ".join([*kinds, *(f"{name} {shorten(str(value), 40)}" for name, value in others.items())]) or "as it is"


def _of_choice(name: str) -> Any:
    """A method of the released model, or of the pipeline that ends with it, as one of the search."""

    def has(search: Any) -> bool:
        chosen = getattr(search, "best_estimator_", search.estimator)
        return hasattr(chosen, name) or hasattr(_steps_of(chosen)[-1], name)

    @wraps(getattr(LogisticRegression, name))
    def method(search: Any, *given: Any, **named: Any) -> Any:
        check_is_fitted(search)
        chosen = search.best_estimator_
        *steps, model = _steps_of(chosen)
        if steps and not hasattr(chosen, name):
            raise ParameterError("the choice is a pipeline, and files have models alone: write its last step.")
        return getattr(chosen if hasattr(chosen, name) else model, name)(*given, **named)

    return available_if(has)(method)


@estimator
class PrivateSearchCV(TellsOfRepeatedFits, AdviceOnParameters, MetaEstimatorMixin, BaseEstimator):
    """Choose parameters from a public grid, and release the choice and the chosen model together under one budget.

    What the search learns about the other candidates stays private, so there is no ``cv_results_``. The whole search is one
    charge on the ledger. Some rows are held out to count mistakes on, or to add up errors of predicted numbers. They are
    drawn at random, in secret and anew for every fit; the draw depends only on the number of rows.

    - "permute-and-flip" and "exponential" train each candidate once, at the whole budget, on a part of the rows that no
      other candidate uses. They choose privately by the mistakes on the rows held out, also at the whole budget. Each
      candidate has few rows, so these methods are for two or three candidates, or for concentrated budgets.
    - "repeated" draws a candidate at random, trains it on all rows that are not held out, and counts its mistakes with
      noise. It does so a random number of times, which does not depend on the data, and releases the best try. It costs 2.5
      times the epsilon of one try, whatever the number of tries.

    Parameters
    ----------
    estimator : a classifier or regressor of confide, or a scikit-learn Pipeline that ends with one
        The steps before it may be `SchemaEncoder` and `RandomFourierFeatures`, which learn nothing from rows. Its budget is
        not used. Give ledger and random_state to the search, not to the estimator, which needs neighbours="replace-one" and
        a schema without a column of persons.
    param_grid : dict or list of dicts
        Public values of parameters, as for scikit-learn's GridSearchCV, chosen without looking at the rows. Of a pipeline
        they are named as there, "model__alpha", and a whole step may be a value: several estimators are compared with
        ``[{"model": [LogisticRegression()]}, {"model": [AdditiveClassifier()], "model__knots": [4, 8]}]``.
    budget : float, PureDP, ApproxDP or ZCDP, default 1.0
        What the whole search costs; finite.
    method : {"auto", "permute-and-flip", "exponential", "repeated"}, default "auto"
        "auto" compares "repeated" with training each candidate once, and takes the one whose candidates have less noise,
        which is a public fact. If candidates are trained once, it takes the mechanism that promises fewer mistakes.
    held_out : float or None, default None
        Share of the rows that is held out, strictly between 0 and 1. None means as many rows as each candidate is trained
        on, and for "repeated" a tenth.
    score_share : float, default 0.0
        Share of the budget of the choice that is kept to release the score of the winner, from 0 to below 1. "repeated"
        needs no share, because the noisy score is a part of each try.
    clip : float or None, default None
        For regressors: the residual, in the unit of the target, from which an error grows no more; positive. None means a
        quarter of the declared range of the target. Candidates are compared by squared residuals, and those that predict a
        quantile by its own loss. What a row counts never leaves 0 to 1, so that one row changes their sum by at most 1.
    expected_tries : float or None, default None
        For "repeated": the mean number of tries, from 1.01 to 1e6. None means ten times the number of candidates. More tries
        take more time. They cost no privacy under a pure budget, and a little under an approximate one.
    ledger : Ledger, batch of one, or None
        Charged once, for the whole search, before a row is used.
    random_state : int or None
        For tests only: a seed makes noise and choice reproducible and the guarantee void.

    Attributes
    ----------
    best_estimator_ : classifier, regressor or Pipeline
        The released model.
    best_params_ : dict
        The chosen point of the grid.
    best_index_ : int
        Position of the choice in the grid.
    best_score_ : float
        Accuracy of the winner on the rows held out, with noise; for a regressor minus its mean clipped error, in the squared
        unit of the target, or for a quantile in its unit. Missing if no score was released. It is the best of several
        scores, so on average it is too high.
    best_score_deviation_ : float
        Standard deviation of the noise on `best_score_`; missing if no score was released.
    plan_ : SearchPlan
        What was decided before any row was read.
    guarantee_ : Guarantee
        The guarantee of the whole search.
    classes_ : array (n_classes,)
        The label domain, sorted; a regressor has none.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Names of the columns of X; missing if X has none.

    Notes
    -----
    Guarantee: model, choice and score together are differentially private at the budget, under the assumptions that
    `guarantee_.statement()` lists. scikit-learn's GridSearchCV with the same classifiers charges every fit, and its choice
    and its scores are not private.

    alpha="auto" and other automatic parameters are chosen from public facts and cost nothing; on Adult they do better than a
    search. Search over parameters for which there is no such rule, such as the length scale of a kernel. `plan` says how
    much noise a search adds.

    Sources: Chaudhuri, Monteleoni and Sarwate, JMLR 2011, on parameter tuning; McKenna and Sheldon, NeurIPS 2020 (permute
    and flip); Papernot and Steinke, ICLR 2022 (repetition). Proof: confide/privacy/proofs/selection.md.

    Examples
    --------
    >>> import numpy as np, confide
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(20_000, 2))
    >>> y = X[:, 0] > X[:, 1]
    >>> model = confide.LogisticRegression(classes=[0, 1])
    >>> search = PrivateSearchCV(model, {"alpha": [0.001, 10.0]}, method="permute-and-flip")
    >>> bool(search.fit(X, y).score(X, y) > 0.9)
    True
    """

    estimator: PrivateLinearModel | Pipeline = field(kw_only=False)
    param_grid: Mapping[str, Sequence[object]] | Sequence[Mapping[str, Sequence[object]]] = field(kw_only=False)
    budget: float | Budget = 1.0
    method: Literal["auto", "permute-and-flip", "exponential", "repeated"] = "auto"
    held_out: float | None = None
    score_share: float = 0.0
    clip: float | None = None
    expected_tries: float | None = None
    ledger: Ledger | Batch | None = None
    random_state: int | None = None

    def __getattr__(self, name: str) -> NoReturn:
        # Called only where there is no such attribute.
        kind, absent = type(self).__name__, advice()["absent"]
        if name in absent and "plan_" in self.__dict__:
            raise AttributeError(f"{kind} has no {name}: {absent[name]}", name=name, obj=self)
        fitted = "; it is not fitted yet: call fit(X, y) first." if name in absent else ""
        raise AttributeError(f"{kind!r} object has no attribute {name!r}{fitted}", name=name, obj=self)

    def plan(self, n_rows: int, n_features: int | None = None, *, n_classes: int | None = None) -> SearchPlan:
        """Show everything that a fit would decide from public facts. Reads no data and charges nothing.

        Parameters
        ----------
        n_rows : int
            Number of rows, at least 1.
        n_features : int or None
            Number of columns of X, at least 1. With a schema leave it out: the schema has the number.
        n_classes : int or None
            Number of classes, from 2 to 100. Leave it out if the classes are declared; otherwise None means 2.

        Returns
        -------
        SearchPlan
            Method, sizes of the parts, and the plan of each candidate. It prints.

        Raises
        ------
        ParameterError
            If a parameter cannot be used, or there is no private search with these parameters.
        """
        budget = self._checked_budget()
        facts, models = [], []
        for *steps, model in map(_steps_of, self._candidates(budget)):
            columns, count = _columns_after(steps, n_features), partial(checked_count, "n_rows", n_rows)
            has_schema = model.schema is not None
            model._take_choices(model._schema_of_plan(n_rows, columns, n_classes or 2 * is_classifier(model)), count)
            # If the schema was made of bounds, the number of columns was used for it.
            facts.append((None if model.schema is not None and not has_schema else columns, n_classes))
            models.append(model)
        return self._plan(budget, models, n_rows, facts)

    def _plan(self, budget: Budget, candidates: list[Any], n_rows: int, facts: list[PublicNumbers]) -> SearchPlan:
        method = checked_choice("method", self.method, METHODS)
        checked_count("n_rows", n_rows)
        least = len(candidates) + 1 if method in METHODS[1:3] else 2
        if n_rows < least:
            # scikit-learn's checks look for the words "1 sample" in a refusal of a single row.
            raise ParameterError(f"this search needs at least {least} rows, one for each part; it got {n_rows} sample(s).")
        once = None if method == "repeated" or n_rows <= len(candidates) else self._plan_once
        repeated = self._plan_repeated if method in ("auto", "repeated") else None
        plans = [make(budget, candidates, int(n_rows), facts) for make in (once, repeated) if make is not None]
        chosen: SearchPlan = min(plans, key=lambda plan: plan.noise)
        alone = self._plans(budget, candidates, [int(n_rows)] * len(candidates), facts, 0.0)
        noises = ([noise_on_a_weight(one) / one.problem.n_rows_low for one in of] for of in (chosen.plans, alone))
        times = max(searched / fitted for searched, fitted in zip(*noises, strict=True))
        points, found = list(ParameterGrid(self.param_grid)), dict[str, int]()
        names = tuple(map(_named, points))
        for number, (point, its_plan) in enumerate(zip(points, chosen.plans, strict=True)):
            if getattr(its_plan, "added_l2", 0.0) == 0.0:
                continue
            others = {name: value for name, value in point.items() if name.rpartition("__")[2] != "alpha"}
            first = found.setdefault(joblib.hash([others, f"{its_plan.l2:.6g}"]), number)
            if first != number:
                raise ParameterError(wording("same candidates", first=first, second=number, alpha=its_plan.alpha))
        return replace(chosen, errors=self._errors(candidates), times_the_noise=times, names=names)

    @keeps_released
    def fit(
        self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None, *, exposure: ArrayLike | None = None
    ) -> Self:
        """Search, charge the ledger once, and release the choice and the chosen model.

        Parameters
        ----------
        X, y : as for the estimator's `fit`
            Rows must be in memory, or in files that were opened with `open_rows` without a client.
        sample_weight : (n,) numbers from 0 to `max_sample_weight`, or None
            How much each row counts in training; None means 1 each. A mistake on a row held out always counts 1.
        exposure : (n,) numbers above 0, or None
            Of counts, as for the estimator's `fit`.

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
        budget = self._checked_budget()
        candidates, grid = self._candidates(budget), list(ParameterGrid(self.param_grid))
        models = [_steps_of(candidate)[-1] for candidate in candidates]
        seed, ledger = checked("random_state", self.random_state), parameters.checked_ledger(self.ledger)
        classified = is_classifier(models[0])
        labels, are_positions = labels_given(y, models[0].classes, models[0].schema) if classified else (y, False)
        given = _given_to_each(candidates, X, labels, sample_weight, exposure)
        schemas, settings, specifications = [], [], []
        for model, own in zip(models, given, strict=True):
            schemas.append(model._schema_of_rows(own))
            refuse_persons(schemas[-1], "a search needs")
            model._take_choices(schemas[-1], own.n_rows_given, own.column_names)
            encoder = parameters.checked_schema(model.schema)
            settings.append(model._settings(encoder))
            specifications.append(model._specification(settings[-1], encoder, seed))
        charge = Charge(ledger, seed, f"{type(self).__name__}.fit")
        tell_of_unknown_size(models[0], has_schema=schemas[0] is not None)
        with _checked_together(given, specifications) as rows_of_all:
            rows = rows_of_all[0]
            for its, of_one in zip(settings, rows_of_all, strict=True):
                if its.prior is not None:
                    its.prior.refuse_rows(of_one)
            # The plan and the models get the same classes, which may have been taken from the labels present.
            if classified and declared_domain(models[0].classes, schemas[0]) is None:
                for model in models:
                    model.set_params(classes=list(rows.domain))
            # With a schema, the number of columns follows from it.
            columns = (of_one.columns.n_features_in if of_one.encoder is None else None for of_one in rows_of_all)
            plan = self._plan(budget, models, rows.n_rows, [(own, len(rows.domain) or None) for own in columns])
            steps = joblib.hash([_steps_of(candidate)[:-1] for candidate in candidates])
            of_choice = plan.selection, plan.score_noise, plan.errors
            facts = plan.method, plan.n_rows, plan.part_sizes, grid, steps, of_choice, [its.to_dict() for its in plan.plans]
            charge = charge.of_release(plan.event, lambda: (*facts, *map(deciding_fit, settings, rows_of_all)), None)
            warn(of_many_classes(*plan.plans), AccuracyWarning)
            unusual = cautions(plan.event.budget, rows.n_rows, rows.n_rows)
            # The guarantee that holds if a candidate is chosen.
            of_each = zip(rows_of_all, settings, plan.plans, strict=True)
            guarantees = [_guarantee(plan, *candidate, charge, unusual) for candidate in of_each]
            for model in models:
                model.set_params(ledger=ledger, random_state=seed)
            first_steps = [_steps_of(candidate)[0] for candidate in candidates]
            noises = [plan.score_noise, *(noise for its_plan in plan.plans for noise in lattices_of(its_plan))]
            best = min((wasted(its_plan) or "" for its_plan in plan.plans), key=len)
            learned = getattr(guarantees[0].circumstances, "learned_steps", ())
            before_charge(charge, plan.event.budget, noises, unusual, learned, best or None)
            release = partial(_chosen, plan, rows_of_all)
            index, fit, noisy_score = charge_and_release(release, plan.event, Neighbours.REPLACE_ONE, charge)
            chosen = model_of(fit, plan.plans[index], guarantees[index], rows_of_all[index], settings[index])
        models[index]._hold(chosen)
        if are_positions:
            models[index]._give_positions()
        self.best_index_, self.best_params_, self.best_estimator_ = index, grid[index], candidates[index]
        self.plan_, self.guarantee_ = plan, chosen.guarantee
        self._hold(noisy_score, vars(models[index]) | vars(first_steps[index]))
        return self

    def _hold(self, noisy_score: float | None, known: Mapping[str, Any]) -> None:
        """Keep the score, and what the first step of a pipeline knows of columns, and its model of classes."""
        for name in ("classes_", "n_features_in_", "feature_names_in_", "best_score_", "best_score_deviation_"):
            self.__dict__.pop(name, None)
            self.__dict__ |= {name: known[name]} if name in known else {}
        plan = self.plan_
        if noisy_score is not None and plan.score_noise is not None:
            unit, n_held = plan.errors[0].unit if plan.errors else 1.0, plan.part_sizes[-1]
            self.best_score_ = (0.0 if plan.errors else 1.0) - unit * noisy_score / n_held
            self.best_score_deviation_ = unit * plan.score_noise.deviation / n_held

    predict = _of_choice("predict")
    decision_function = _of_choice("decision_function")
    predict_proba = _of_choice("predict_proba")
    predict_log_proba = _of_choice("predict_log_proba")
    score = _of_choice("score")
    save = _of_choice("save")
    to_sklearn = _of_choice("to_sklearn")
    to_onnx = _of_choice("to_onnx")
    to_sql = _of_choice("to_sql")
    to_python = _of_choice("to_python")

    def _checked_budget(self) -> Budget:
        budget = as_budget(self.budget)
        if not budget.is_private:
            raise ParameterError("a private search needs a finite budget; without privacy use scikit-learn's GridSearchCV.")
        for name in ("held_out", "score_share", "clip", "expected_tries"):
            checked(name, getattr(self, name))
        return budget

    def _candidates(self, budget: Budget) -> list[Any]:
        """One estimator for each point of the grid, unfitted, with no ledger and no seed, and with the whole budget.

        What a candidate chooses from public facts depends on the budget of the search, never on its own.
        """
        grid: list[Any] = []
        with suppress(TypeError, ValueError):
            grid = list(ParameterGrid(self.param_grid))
        if not grid:
            raise ParameterError("param_grid must be a dict of parameter names and lists of values, or a list of dicts.")
        last = f"{self.estimator.steps[-1][0]}__" if hasattr(self.estimator, "steps") else ""
        names = {name.removeprefix(last) for point in grid for name in point}
        for name in sorted(names & FIXED.keys()):
            rests = f"which {FIXED[name]}: the guarantee rests on it"
            raise ParameterError(f"param_grid cannot vary {name}, {rests}. Take {name} out of param_grid.")
        if not last:
            _refuse_candidate([], self.estimator)
        points = ({name: clone(value, safe=False) for name, value in point.items()} for point in grid)
        made = [clone(self.estimator).set_params(**point) for point in points]
        models = [_steps_of(candidate)[-1] for candidate in made]
        for *steps, model in map(_steps_of, made):
            _refuse_candidate(steps, model)
            for name in filter(partial(hasattr, model), _SAME_FOR_ALL):
                own, first = getattr(model, name), getattr(models[0], name, getattr(model, name))
                if own is not first and (name == "prior" or joblib.hash(own) != joblib.hash(first)):
                    raise ParameterError(f"all candidates of a search need the same {name}, on which the guarantee rests.")
            if is_classifier(model) != is_classifier(models[0]) or model._quantile != models[0]._quantile:
                raise ParameterError("all candidates must predict the same: classes, numbers, or one quantile of numbers.")
            model.set_params(budget=budget)
        return made

    def _plan_once(self, budget: Budget, candidates: list[Any], n_rows: int, facts: list[PublicNumbers]) -> SearchPlan:
        """The plan to train each candidate once, on a part of its own, and to choose privately."""
        n_held, m = self._held_out(n_rows, 1.0 / (len(candidates) + 1), len(candidates)), len(candidates)
        sizes = tuple((n_rows - n_held) // m + (part < (n_rows - n_held) % m) for part in range(m))
        plans = self._plans(budget, candidates, sizes, facts, math.log(m))
        problem = plans[0].problem
        row = budget_of_row(budget, problem.rows_per_person)
        share = float(self.score_share)
        noise = None if share == 0.0 else _score_noise(_part_of(row, share))
        selection = Selection.of_budget("auto" if self.method == "auto" else self.method, _part_of(row, 1.0 - share))
        return SearchPlan(budget, plans, n_rows, (*sizes, n_held), selection, None, noise, problem.event(budget))

    def _plan_repeated(self, budget: Budget, candidates: list[Any], n_rows: int, facts: list[PublicNumbers]) -> SearchPlan:
        """The plan to train random candidates on all rows that are not held out, each with a noisy score."""
        persons = checked("max_rows_per_person", candidates[0].max_rows_per_person)
        tries = max(1.01, float(self.expected_tries or _TRIES_OF_A_CANDIDATE * len(candidates)))
        repetition = Repetition.of_mean(_SHAPE, tries)
        n_held = self._held_out(n_rows, _HELD_OUT_SHARE, 1)
        sizes = (n_rows - n_held,)
        search_plans = []
        for base in _bases(budget, persons, repetition):
            plans = self._plans(base, candidates, sizes * len(candidates), facts, _set_aside(budget, base, repetition))
            noise, event = _score_noise(budget_of_row(base, persons)), plans[0].problem.event(budget)
            search_plans.append(SearchPlan(budget, plans, n_rows, (*sizes, n_held), None, repetition, noise, event))
        return min(search_plans, key=lambda plan: plan.noise)

    def _held_out(self, n_rows: int, share: float, others: int) -> int:
        share = share if self.held_out is None else float(self.held_out)
        return min(max(1, round(share * n_rows)), n_rows - others)

    def _errors(self, candidates: list[Any]) -> tuple[ErrorsOfNumbers, ...]:
        """How the errors of each candidate on rows held out are added up; empty for classifiers."""
        if is_classifier(candidates[0]):
            return ()
        targets = [model._target(parameters.checked_schema(model.schema)) for model in candidates]
        width = min(target.high - target.low for target in targets)
        clip = _CLIP_SHARE * width if self.clip is None else min(float(self.clip), width)
        errors = []
        for model, target in zip(candidates, targets, strict=True):
            ends = target.low - target.shift, target.high - target.shift
            offset = 0.0 if target.exposure else -math.log(target.unit)
            errors.append(ErrorsOfNumbers(model._link, *ends, clip, model._quantile, offset))
        return tuple(errors)

    def _plans(
        self, budget: Budget, candidates: list[Any], sizes: Sequence[int], facts: list[PublicNumbers], set_aside: float
    ) -> tuple[AnyPlan, ...]:
        return tuple(
            clone(model).set_params(budget=budget)._plan(size, *known, set_aside=set_aside)
            for model, size, known in zip(candidates, sizes, facts, strict=True)
        )

    def __sklearn_tags__(self) -> Any:
        return get_tags(self.estimator)


def _columns_after(steps: Sequence[Any], n_features: int | None) -> int | None:
    """The number of columns that public steps make of so many."""
    for step in steps:
        n_features = len(step.get_feature_names_out()) if type(step) is SchemaEncoder else step.n_features
    return n_features


def _refuse_candidate(steps: Sequence[Any], model: Any) -> None:
    """Refuse a candidate that a private search cannot compare with others."""
    if PrivateLinearModel not in type(model).__mro__:
        raise ParameterError("estimator must be a classifier or regressor of confide, or a Pipeline that ends with one.")
    if foreign := [type(step).__name__ for step in steps if type(step) not in _PUBLIC_STEPS]:
        known = "steps before a model must learn nothing from rows: SchemaEncoder or RandomFourierFeatures"
        raise ParameterError(f"{known}, and {foreign[0]} is none of them. Leave it out, or give the model a schema.")
    refuse_in_parts(model, "the search", "the model was chosen among several")
    for schema in (model.schema, *(getattr(step, "schema", None) for step in steps)):
        refuse_persons(schema, "a search needs")


def _given_to_each(candidates: list[Any], X: Any, y: Any, *beside: Any) -> list[GivenRows]:
    """The rows as each candidate gets them from its public steps, which are applied once where they are the same."""
    given: dict[str, tuple[GivenRows, list[Any]]] = {}
    made = []
    for candidate in candidates:
        *steps, model = _steps_of(candidate)
        if (known := joblib.hash(steps)) not in given:
            rows = X
            for step in steps:
                rows = step.fit(rows).transform(rows)
            given[known] = checked_input(rows, y, beside[0], model, beside[1]), getattr(candidate, "steps", [])[:-1]
            refuse_undivided(given[known][0])
        if steps:
            candidate.steps[:-1] = given[known][1]
        made.append(given[known][0])
    return made


@contextmanager
def _checked_together(given: list[GivenRows], specifications: list[RowSpecification]) -> Iterator[list[CheckedRows]]:
    """The rows of each candidate, checked; rows that several get are read once."""
    with ExitStack() as until_released:
        found: dict[int, CheckedRows] = {}
        for own in dict.fromkeys(given):
            places = [place for place, one in enumerate(given) if one is own]
            rows = until_released.enter_context(own.checked([specifications[place] for place in places]))
            found |= dict(zip(places, rows, strict=True))
        yield [found[place] for place in range(len(given))]


def _displacement(plan: Any) -> float:
    """How far the noise displaces weights where nothing but the ridge holds them."""
    has_sums = hasattr(plan, "target_deviation")
    return math.sqrt(plan.problem.n_weights) * plan.target_deviation / plan.l2 if has_sums else plan.noise_norm  # type: ignore[no-any-return]


def _guarantee(
    plan: SearchPlan, rows: CheckedRows, settings: Settings, its_plan: AnyPlan, charge: Charge, unusual: tuple[str, ...]
) -> Guarantee:
    """The guarantee of the search if this candidate is chosen: the sentences of its model and those of the search."""
    mean_tries = None if plan.repetition is None else plan.repetition.mean
    search = Search(plan.method, len(plan.plans), its_plan.problem.n_rows_high, mean_tries, its_plan.budget)
    whole = _of_the_search(its_plan, plan.budget, plan.n_rows)
    facts = circumstances_of(whole.problem, rows, settings.prior, charge, search)
    of_rows = sentences_of_rows(rows.target_sentence, settings, facts, rows.encoder, rows.fourier)
    return guarantee_of(whole, (*of_rows, *sentences_of_search(facts)), rows.encoder, facts, unusual)


def _of_the_search(plan: AnyPlan, budget: Budget, n_rows: int) -> AnyPlan:
    """The plan of a candidate, for the rows and the budget of the search in place of those of its part or its try."""
    of_all: AnyPlan = of_all_rows(plan, n_rows)
    return replace(of_all, budget=budget, event=of_all.problem.event(budget))


def sentences_of_search(circumstances: Circumstances) -> tuple[str, ...]:
    """What is said of a private search; nothing of a single fit."""
    search = circumstances.search
    if search is None:
        return ()
    how = f"chosen by the {search.method} mechanism"
    if search.mean_tries is not None:
        how = wording("random number of tries", mean=search.mean_tries)
    whole = wording("whole search", how=how, candidates=search.candidates)
    return whole, wording("part of all rows", n_rows=circumstances.n_rows[1])


def plans_again(model: Any) -> tuple[AnyPlan, AnyPlan]:
    """The plan by which the model was trained, and the one that its guarantee speaks of: another one for a search.

    They are made again from the public facts in the model's file.

    Raises
    ------
    ParameterError
        If these facts allow no plan.
    """
    facts, released, model = model.guarantee_.circumstances, released_model(model), before_fit(model)
    n_features = None if model.schema is not None else model.n_features_in_
    if facts.search is not None:
        return _plans_of_chosen(model, facts, n_features, len(released.domain) or None)
    n_rows = None if model.n_rows_bounds is not None else facts.n_rows[0]
    classes = {"n_classes": len(released.domain)} if len(released.domain) > 2 else {}
    plan: AnyPlan = model.plan(n_rows, n_features, **classes)
    if released.encoder is None or released.encoder.schema.features_not_found is None:
        return plan, plan
    if (without := getattr(plan, "without", None)) is None:
        raise ParameterError("no fit of this schema and budget leaves its random features out.")
    return without, plan


def before_fit(model: Any) -> Any:
    """The model with the schema and the parameters of which its plan was made: without what its fit found."""
    made, facts = copy(model), model.guarantee_.circumstances
    if hasattr(model, "atoms") and facts is not None and facts.place == "parties":
        made.atoms = False  # parties send no counts
    if model.schema is not None:
        made.schema = model.schema.before_fit
        made._encoder = Encoder(made.schema.for_another_fit)
    return made


def encoder_with_slots(encoder: Encoder, part: Any) -> Encoder:
    """The encoder by which rows were encoded before a part of the plan found atoms."""
    return Encoder(encoder.schema.before_fit, slots=SLOTS, in_one=len(part.query.columns) == 1)


def _plans_of_chosen(
    model: Any, circumstances: Circumstances, n_features: int | None, n_classes: int | None
) -> tuple[AnyPlan, AnyPlan]:
    """Two plans of a model that a search chose: by which it was trained, and the same for the whole search.

    Raises
    ------
    ParameterError
        If no search has such facts.
    """
    search, budget, n_rows = circumstances.search, as_budget(model.budget), circumstances.n_rows[1]
    impossible = ParameterError("no search has such numbers of candidates, rows and tries at this budget.")
    repeated = METHODS[3]
    if search is None or search.method not in METHODS[1:] or (search.method == repeated) != (search.mean_tries is not None):
        raise impossible
    if search.candidates < 1 or not 1 <= search.trained_on < n_rows:
        raise impossible
    if search.mean_tries is None:
        # Each candidate has a part of its own, and parts differ by one row at most.
        most, more = (n_rows - 1) // search.candidates + 1, math.log(search.candidates)
        if search.trained_on > most or search.budget_of_try != budget:
            raise impossible
    else:
        repetition = Repetition.of_mean(_SHAPE, search.mean_tries)
        persons = checked("max_rows_per_person", model.max_rows_per_person)
        if repetition.mean != search.mean_tries or search.budget_of_try not in _bases(budget, persons, repetition):
            raise impossible
        more = _set_aside(budget, search.budget_of_try, repetition)
    candidate = clone(model).set_params(budget=search.budget_of_try)
    plan = candidate._plan(search.trained_on, n_features, n_classes, set_aside=more)
    return plan, _of_the_search(plan, budget, n_rows)


def _set_aside(total: Budget, base: Budget, repetition: Repetition) -> float:
    """What each try sets aside: an event whose probability has to be smaller than for a single release.

    It is smaller by the factor E[K] exp(total - base), K the number of tries: proofs/selection.md, section 5.
    """
    whole, one = (0.0 if budget.is_concentrated else budget.amount for budget in (total, base))
    return max(0.0, whole - one) + math.log(repetition.mean)


def _chosen(plan: SearchPlan, rows_of_all: Sequence[CheckedRows], entropy: Entropy) -> tuple[int, Fit, float | None]:
    """Divide the rows, train, count mistakes and choose. Everything was charged before this call.

    What is released is the position of the chosen candidate, its fit, and its noisy number of mistakes, or sum of errors, if
    that was paid for.
    """
    *parts, held_out = divided(plan.part_sizes, entropy)

    def trained(index: int) -> tuple[Fit, int | Fraction]:
        rows = rows_of_all[index]
        fit, others = released(plan.plans[index], rows.part(parts[index % len(parts)]).source, entropy), rows.part(held_out)
        if scales := fit[3].get("scaling"):
            others = replace(others, source=others.source.remapped(lambda features: features.scaled(scales)))
        return fit, plan.errors[index].of(fit[0], others) if plan.errors else mistakes(fit[0], others)

    def noisy(number: int | Fraction) -> float:
        assert plan.score_noise is not None  # noqa: S101 - called where it is there
        return float(plan.score_noise.release(np.array([[float(number)]]), entropy)[0, 0])

    if plan.selection is not None:
        fits, numbers = zip(*map(trained, range(len(rows_of_all))), strict=True)
        index = plan.selection.choose(numbers, entropy)
        return index, fits[index], None if plan.score_noise is None else noisy(numbers[index])
    assert plan.repetition is not None  # noqa: S101 - one of the two is there
    tries = [entropy.below(len(rows_of_all)) for _ in range(plan.repetition.draw(entropy))]
    best: tuple[int, Fit, float] | None = None
    for index in tries:
        fit, number = trained(index)
        score = noisy(number)
        # Of tries with equal scores the first is kept: tries are exchangeable, so this breaks ties without using data.
        if best is None or score < best[2]:
            best = index, fit, score
    assert best is not None  # noqa: S101 - there is at least one try
    return best


def _part_of(budget: Budget, share: float) -> Budget:
    """A part of the budget of a row, rounded down, for a choice or a score; both need no delta."""
    return (ZCDP if budget.is_concentrated else PureDP)(share * budget.amount * _DOWNWARDS)


def _score_noise(budget: Budget) -> LatticeLaplace | LatticeGaussian:
    """The noise on one number of mistakes, or sum of errors. One row changes that number by at most 1."""
    if budget.is_concentrated:
        return LatticeGaussian.of_multiplier(1, lattice_exponent(1.0, 1), 1.0, (2.0 * budget.amount) ** -0.5)
    return LatticeLaplace.of_l1(1, 1.0, budget.amount)


def _bases(budget: Budget, persons: int, repetition: Repetition) -> list[Budget]:
    """The budgets that one try may cost a person, so that the release of the best try costs the whole budget."""
    row = budget_of_row(budget, persons)
    bases: list[Budget] = [PureDP(repetition.pure_base(pure_epsilon(row)) * persons)]
    if row.is_approximate:
        rho = repetition.concentrated_base(row.amount, row.slack) * persons**2
        bases += [ZCDP(rho)] if rho >= ZCDP.ranges["rho"][0] * persons**2 else []
    return bases
