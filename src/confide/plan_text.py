"""How a plan is shown, to people and to machines. It decides nothing."""

from __future__ import annotations

import math
from typing import Any, Protocol

from confide.blocks import Block, as_json
from confide.budget_warnings import cautions, of_many_classes
from confide.errors import wording
from confide.expected_noise import l1_ratio, noise_in_rows

_NAMES = {"none": "none", "gradient": "noisy gradients"}
"""Mechanisms that are not called a perturbation."""


class Intervals(Protocol):
    """What a plan and a guarantee tell of what is released beside the weights for intervals."""

    @property
    def share(self) -> float:
        """The share of the budget."""

    @property
    def is_joint(self) -> bool:
        """Whether weights and sums share one account."""

    @property
    def releases(self) -> tuple[Any, ...]:
        """The plans of the sums."""

    @property
    def design(self) -> Any:
        """What is declared about the sample."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""

    def lines(self) -> dict[str, str]:
        """Lines of a plan: text by name."""

    def sentences(self) -> tuple[str, ...]:
        """What to expect of each named coefficient."""

    def check(self) -> None:
        """Raise ParameterError if intervals cannot be trusted."""

    def released(self, ready: Any, minimiser: Any, source: Any, entropy: Any) -> tuple[Any, Any]:
        """Release the sums at released weights, those of a plan that is ready; what follows for all, and for named ones."""

    def sentence(self, *, is_private: bool) -> str:
        """What is released, for the guarantee."""

    def multiples(self) -> tuple[str, str]:
        """What it is called, and what of it is a multiple of which power of two, for the guarantee."""


class Part(Protocol):
    """What a share of the budget pays for before or after the weights: the plan of a sum, whose query knows what to tell.

    Of the query: `name`, in documents; `pays_for`, `line`, `sentence` and `of_grid`, in words; and what it does `before`
    and `after` the weights (`confide.privacy.noisy_sum.SumQuery`).
    """

    @property
    def query(self) -> Any:
        """What is summed."""

    @property
    def lattice(self) -> Any:
        """The noise."""

    @property
    def share(self) -> float:
        """The share of the budget."""

    @property
    def mu(self) -> float:
        """Shift over deviation for one row, or infinity."""


def part_named(name: str) -> property:
    """The part of a plan with this name, as a property; None without it."""
    return property(lambda plan: next((part for part in plan.parts if part.query.name == name), None))


def perturbs_objective(plan: Any) -> bool:
    """Whether the main noise lies in the objective; otherwise it lies on weights or sums, or there is none."""
    return plan.noise is not None and bool(plan.noise.in_objective)


def weights_on_grid(plan: Any) -> bool:
    """Whether the released weights, but for the intercept, are multiples of the step of the noise on them."""
    return bool(plan.minimises and plan.lattice is not None and not plan.problem.is_centred)


def multiples(plan: Any) -> str:
    """Which numbers of a release are multiples of which power of two."""
    of_parts = (f" and, {part.query.of_grid}, of 2^{part.lattice.exponent}" for part in plan.parts)
    other = getattr(plan, "without", None)
    without = "" if other is None else f" or, without random features, {multiples(other)}"
    return f"multiples of 2^{plan.lattice.exponent}{''.join(of_parts)}{without}"


def grid_sentence(plan: Any) -> str:
    """Which numbers of the weights, and of what is released for intervals, lie on which grid: for the guarantee."""
    if plan.intervals is not None:
        others, on_grids = plan.intervals.multiples()
        return f" and {others}, which are {multiples(plan)} and, up to {on_grids}"
    return f", which are computed only from {multiples(plan)}" if plan.parts else f", which are {multiples(plan)}"


def plan_document(plan: Any) -> dict[str, Any]:
    """A JSON form; the number of rows appears as its public bounds."""
    problem, noise, lattice = plan.problem, plan.noise, plan.lattice
    return {
        **_facts(plan),
        "loss": problem.loss.constants.name,
        "smoothing": getattr(problem.loss, "smoothing", None),
        **({} if problem.loss.constants.threshold is None else {"threshold": problem.loss.constants.threshold}),
        "largest_weight": problem.largest_weight,
        "alpha": plan.alpha,
        "added_alpha": plan.added_l2 / problem.n_rows_low,
        **_of_penalty(plan),
        **({"largest_ridge_factor": max(problem.penalty.factors)} if problem.penalty.factors else {}),
        "noise": as_json(noise, "law shape scale norm", shape=noise.shape.name) if noise else None,
        **as_json(
            plan,
            "noise_norm noise_in_rows seal_norm seal_share grid_exponent tolerance expected_distance intervals",
            noise_in_rows=noise_in_rows(plan),
            grid_exponent=lattice.exponent if lattice else None,
        ),
        **{part.query.name: part.query.document(part) for part in plan.parts},
        **({} if plan.without is None else {"without": plan.without.to_dict()}),
    }


def document_of_sum(plan: Any) -> dict[str, Any]:
    """A JSON form of a sum beside the weights."""
    return {"share": plan.share, "deviation": plan.lattice.deviation, "grid_exponent": plan.lattice.exponent}


def plan_blocks(plan: Any) -> tuple[Block]:
    """The facts of a plan."""
    noise, lattice, lines = plan.noise, plan.lattice, dict[str, str]()
    if lattice is not None:
        if noise is None:
            lines["noise"] = f"{_law(lattice)}, norm {lattice.norm:.6g} on the weights"
            if plan.mechanism == "output-laplace":
                lines["noise"] += "; twice as much with the constant published in 2012"
        else:
            where = "in the summed objective" if noise.in_objective else "on the weights"
            lines["noise"] = f"{noise.law}, shape {noise.shape.name}, norm {noise.norm:.6g} {where}"
            lines["seal"] = f"{plan.seal_share:.2g} of the budget, norm {plan.seal_norm:.3g} on the weights"
        lines["noise in rows"] = _noise_in_rows_text(plan)
        lines["grid"] = f"weights are multiples of 2^{lattice.exponent}"
        lines["tolerance"] = f"gradient norm {plan.tolerance:.3g} in the summed objective"
        of_moved = ", both for the moved rows" if plan.problem.is_centred else ""
        distance = f"at most {plan.expected_distance:.4g} from weights without noise at this alpha"
        lines["expected distance"] = distance + of_moved
    return blocks_with(plan, lines)


def blocks_with(plan: Any, of_noise: dict[str, str]) -> tuple[Block]:
    """The facts of a plan with these on its noise."""
    place, _, law = plan.mechanism.partition("-")
    named = f"{place} perturbation" + (f", {law.capitalize()} noise alone" if law else "")
    lines = _opening(plan, _NAMES.get(plan.mechanism, named))
    if loss := _loss(plan.problem.loss.constants):
        lines["loss"] = loss
    alpha = plan.added_l2 / plan.problem.n_rows_low
    added = f", of which {alpha:.6g} was added for the proof" if alpha > 0.0 else ""
    lines["alpha"] = f"{plan.alpha:.6g}{added}{_shares(plan)}"
    lines |= of_noise
    for part in plan.parts:
        name, text = part.query.line
        lines[name] = f"{part.share:.2g} of the budget {text}"
    if plan.intervals is not None:
        lines |= plan.intervals.lines()
    return _facts_of(lines)


def plan_reasons(plan: Any) -> str:
    """Say why the plan is as it is: what was asked for, what "auto" stands for, and why.

    Returns
    -------
    str
        Whole sentences, one a line: on the mechanism, on each choice that was open, and on alpha.

    Notes
    -----
    Guarantee: none is touched. Every choice follows from public facts: the parameters, the schema, the numbers of rows and
    columns. Sources: each rule stands beside the benchmark that chose it in confide/training/plan.py.

    Examples
    --------
    >>> import confide
    >>> print(confide.LogisticRegression(budget=1.0, alpha=0.01).plan(10_000, 5).why())
    Noise is added to the objective: the loss is smooth, and its curvature damps noise there.
    alpha is 0.01, which was asked for.
    """
    return "\n".join(plan.reasons)


def _of_penalty(plan: Any) -> dict[str, Any]:
    """The share of an l1 penalty, where there is one, or the constants of a penalty of the user's."""
    share, function = l1_ratio(plan), plan.problem.penalty.function
    return {"l1_ratio": share} if share > 0.0 else {} if function is None else {"penalty": function.to_dict()}


def _shares(plan: Any) -> str:
    """What an l1 penalty has of alpha, and what becomes of small weights; or which own penalty alpha multiplies."""
    penalty = plan.problem.penalty
    if penalty.factors:
        return f", the least ridge of a column; others have more, up to {max(penalty.factors):.3g} times as much"
    if (own := penalty.function) is not None:
        return f", the strength of {own.name}, which is {own.strong_convexity:.6g}-strongly convex"
    if not (share := l1_ratio(plan)):
        return ""
    zeros = "; weights no larger than chance alone makes them become 0" if plan.lattice is not None else ""
    return f", {share:.6g} of it an l1 penalty{zeros}"


def _noise_in_rows_text(plan: Any) -> str:
    rows = noise_in_rows(plan)
    return f"as much as {rows:.4g} rows can pull together, {rows / plan.problem.n_rows_low:.3g} of all"


def gradient_lines(plan: Any, descent: Any) -> dict[str, str]:
    """What a plan says of noisy gradients."""
    lattice = plan.lattice
    in_the_mean = lattice.norm / math.sqrt(descent.n_steps)
    return {
        "sums": f"{descent.n_steps} sums of slopes over all rows, each with noise, at points that follow from those before",
        "steps": str(descent.steps),
        "clipping": f"the gradient of a row is clipped to norm {plan.longest_gradient:.6g}",
        "noise": f"{_law(lattice)}, norm {lattice.norm:.6g} on each sum, {in_the_mean:.6g} on their mean",
        "noise in rows": _noise_in_rows_text(plan),
        "grid": f"noisy sums are multiples of 2^{lattice.exponent}",
        "points": f"at most {descent.radius:.4g} long, where rounding moves a sum by {descent.rounding(plan.problem):.3g} "
        f"at most",
    }


def statistics_document(plan: Any) -> dict[str, Any]:
    """A JSON form of a plan for sums over rows."""
    bound, lattice, noise = plan.problem.target_bound, plan.lattice, plan.noise
    law = None if lattice is None else _law(lattice) if noise is None else f"{noise.law}, shape {noise.shape.name}"
    return {
        **_facts(plan),
        "target_bound": bound if math.isfinite(bound) else "inf",
        "alpha": plan.alpha,
        **_of_penalty(plan),
        "noise": law,
        **as_json(plan, "diagonal_deviation product_deviation target_deviation"),
        "square_deviation": plan.square_deviation if plan.problem.with_square else None,
        "grid_exponent": lattice.exponent if lattice else None,
        **as_json(plan, "forecast intervals"),
    }


def statistics_blocks(plan: Any) -> tuple[Block]:
    """The facts of a plan for sums over rows."""
    lines = _opening(plan, plan.mechanism.replace("-", " "))
    lines["target bound"] = f"{plan.problem.target_bound:.6g}"
    lines["alpha"] = f"{plan.alpha:.6g}{_shares(plan)}"
    if plan.lattice is not None:
        lines["noise"] = wording("noise of sums", noise=statistics_document(plan)["noise"], plan=plan)
        lines["grid"] = f"scaled sums are multiples of 2^{plan.lattice.exponent}"
    if plan.forecast is not None:
        lines |= plan.forecast.lines()
    if plan.intervals is not None:
        lines |= plan.intervals.interval_lines()
    return _facts_of(lines)


def search_blocks(plan: Any) -> tuple[Block]:
    """The facts of a plan for a search over candidates."""
    *training, held_out = plan.part_sizes
    rows_of_part = f"{min(training):,}" if min(training) == max(training) else f"{min(training):,} to {max(training):,}"
    lines = {
        "method": plan.method,
        "budget": f"{plan.budget} ({plan.problem.neighbours})",
        "rows": f"{plan.n_rows:,}, of which {rows_of_part} to train a candidate and {held_out:,} held out",
    }
    if sentences := (*cautions(plan.budget, plan.n_rows, plan.n_rows), *of_many_classes(*plan.plans)):
        lines["caution"] = " ".join(sentences)
    if plan.repetition is not None:
        lines["tries"] = f"{plan.repetition.mean:.4g} in the mean, each with {plan.plans[0].budget}"
    else:
        lines["choice"] = f"epsilon {plan.selection.epsilon:.6g}"
    if plan.score_noise is not None:
        of_what = "a sum of errors" if plan.errors else "a number of mistakes"
        lines["score"] = f"{_law(plan.score_noise)}, standard deviation {plan.score_noise.deviation:.4g} on {of_what}"
    if plan.errors:
        lines["errors"] = f"a residual of {plan.errors[0].clip:.6g} or more counts 1, a smaller one less"
    # Measured: benchmarks/notes/is_a_private_search_worth_it.md.
    lines["beside a fit"] = wording("beside a fit", times_the_noise=plan.times_the_noise)
    for number, (name, candidate) in enumerate(zip(plan.names, plan.plans, strict=True)):
        mechanism = _NAMES.get(candidate.mechanism, f"{candidate.mechanism} perturbation")
        distance = f"expected distance at most {candidate.expected_distance:.4g}"
        lines[f"candidate {number}"] = f"{name}: {mechanism}, alpha {candidate.alpha:.6g}, {distance}"
    return _facts_of(lines)


def prior_of(plan: Any) -> tuple[float, ...]:
    """The public weights towards which the ridge of a plan pulls; empty for 0."""
    return plan.problem.prior if hasattr(plan.problem, "prior") else plan.prior  # type: ignore[no-any-return]


def _facts(plan: Any) -> dict[str, Any]:
    problem = plan.problem
    # What a plan without intervals costs, or what the weights cost beside them.
    budget = plan.event.budget if plan.intervals is None else plan.budget
    return {
        "mechanism": plan.mechanism,
        "budget": budget.to_dict(),
        "neighbours": str(problem.neighbours),
        "n_rows_bounds": [problem.n_rows_low, problem.n_rows_high],
        "max_rows_per_person": problem.rows_per_person,
        "n_features": problem.n_features,
        "n_scores": problem.loss.constants.n_outputs if hasattr(problem, "loss") else 1,
        **as_json(problem, "n_weights row_bound"),
        **({"prior_norm": math.hypot(*prior)} if (prior := prior_of(plan)) else {}),
        "row_norm": problem.row_norm if math.isfinite(problem.row_norm) else "inf",
        "cautions": [*cautions(plan.event.budget, problem.n_rows_low, problem.n_rows_high), *of_many_classes(plan)],
    }


_NAMES_OF_LOSSES = dict.fromkeys(("huber", "clipped_squared"), "half the squared residual") | {"poisson": "Poisson"}
"""Losses that are clipped at a threshold, in words."""


def _loss(loss: Any) -> str:
    """What the name of the loss does not say, from its constants; "" where it says all."""
    if loss.is_declared and loss.joint is not None:
        return f"{loss.name}, slopes at multiples of {2.0 * loss.joint:.3g} and straight lines between them"
    if loss.is_declared or loss.n_outputs > 1:
        return ""
    if loss.threshold is not None:
        longest = " times the largest norm of a row over its norm" if loss.by_length else ""
        return f"{_NAMES_OF_LOSSES.get(loss.name, loss.name)}, slopes clipped at the threshold {loss.threshold:.6g}{longest}"
    if loss.joint is not None:
        kind = "hinge" if loss.target_bound is None else f"{loss.name} error"
        return f"{kind} with a joint of half-width {loss.joint:.3g}"
    return f"logistic hinge, its corner at margin {loss.margin:.3g}" if loss.name == "logistic_hinge" else ""


def _opening(plan: Any, mechanism: str) -> dict[str, str]:
    problem = plan.problem
    budget = plan.event.budget if plan.intervals is None else plan.budget
    low, high, has_intercept = problem.n_rows_low, problem.n_rows_high, problem.intercept > 0.0
    lines = {
        "mechanism": mechanism,
        "budget": f"{budget} ({problem.neighbours})" if plan.budget.is_private else str(plan.budget),
        "rows": f"{low:,}" if low == high else f"between {low:,} and {high:,} (private)",
    }
    if sentences := (*cautions(plan.event.budget, low, high), *of_many_classes(plan)):
        lines["caution"] = " ".join(sentences)
    if problem.rows_per_person > 1:
        lines["person"] = f"at most {problem.rows_per_person:,} rows each"
    if getattr(problem, "largest_weight", 1.0) != 1.0:
        lines["weight of a row"] = wording("weight of a row", most=problem.largest_weight)
    if getattr(problem, "loss", None) is not None and problem.loss.constants.n_outputs > 1:
        lines["classes"] = f"{problem.loss.constants.n_outputs}, each with its weights ({problem.loss.constants.name})"
    if prior := prior_of(plan):
        lines["prior"] = f"the ridge pulls towards public weights of length {math.hypot(*prior):.6g}"
    weights = f"{problem.n_weights} weights with the intercept" if has_intercept else "no intercept"
    lines["features"] = f"{problem.n_features} ({weights})"
    lines["row norm"] = f"{problem.row_norm:.6g}" + (" with the intercept" if has_intercept else "")
    return lines


def _law(lattice: Any) -> str:
    return f"discrete {type(lattice).__name__.removeprefix('Lattice').lower()}"


_OF_THE_PROOF = ("loss", "row norm", "alpha", "noise", "seal", "grid", "tolerance", "expected distance", "moments")
"""What a page folds: it decides about the guarantee, and says little of what a reader may expect."""


def _facts_of(lines: dict[str, str]) -> tuple[Block]:
    title = "Noise and numbers of the proof"
    return (Block("facts", tuple(lines.items()), ("name", "value"), title, optional=_OF_THE_PROOF),)
