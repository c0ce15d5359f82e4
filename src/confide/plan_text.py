"""How a plan is shown, to people and to machines. It decides nothing."""

from __future__ import annotations

import math
from typing import Any


def plan_document(plan: Any) -> dict[str, Any]:
    """A JSON form; the number of rows appears as its public bounds."""
    problem, noise, lattice = plan.problem, plan.noise, plan.lattice
    return {
        "mechanism": plan.mechanism,
        "budget": plan.budget.to_dict(),
        "neighbours": str(problem.neighbours),
        "n_rows_bounds": [problem.n_rows_low, problem.n_rows_high],
        "max_rows_per_person": problem.rows_per_person,
        "n_features": problem.n_features,
        "n_weights": problem.n_weights,
        "loss": problem.loss.name,
        "largest_weight": problem.largest_weight,
        "row_bound": problem.row_bound.to_dict(),
        "row_norm": problem.row_norm if math.isfinite(problem.row_norm) else "inf",
        "alpha": plan.alpha,
        "added_alpha": plan.added_l2 / problem.n_rows_low,
        "noise": {"law": noise.law, "shape": noise.shape.name, "scale": noise.scale, "norm": noise.norm} if noise else None,
        "noise_norm": plan.noise_norm,
        "seal_norm": plan.seal_norm,
        "seal_share": plan.seal_share,
        "grid_exponent": lattice.exponent if lattice else None,
        "tolerance": plan.tolerance,
        "expected_distance": plan.expected_distance,
    }


def plan_text(plan: Any) -> str:
    """One fact a line, in two columns."""
    problem, noise, lattice = plan.problem, plan.noise, plan.lattice
    low, high = problem.n_rows_low, problem.n_rows_high
    has_intercept = problem.intercept > 0.0
    lines = {
        "mechanism": "none" if plan.mechanism == "none" else f"{plan.mechanism} perturbation",
        "budget": f"{plan.budget} ({problem.neighbours})" if plan.budget.is_private else str(plan.budget),
        "rows": f"{low:,}" if low == high else f"between {low:,} and {high:,} (private)",
    }
    if problem.rows_per_person > 1:
        lines["person"] = f"at most {problem.rows_per_person:,} rows each"
    if problem.largest_weight != 1.0:
        lines["weight of a row"] = f"at most {problem.largest_weight:.6g}"
    weights = f"{problem.n_weights} weights with the intercept" if has_intercept else "no intercept"
    lines["features"] = f"{problem.n_features} ({weights})"
    lines["row norm"] = f"{problem.row_norm:.6g}" + (" with the intercept" if has_intercept else "")
    added = f", of which {plan.added_l2 / low:.6g} was added for the proof" if plan.added_l2 > 0.0 else ""
    lines["alpha"] = f"{plan.alpha:.6g}{added}"
    if lattice is not None:
        if noise is None:
            law = type(lattice).__name__.removeprefix("Lattice").lower()
            lines["noise"] = f"discrete {law}, norm {lattice.norm:.6g} on the weights"
        else:
            where = "in the summed objective" if plan.mechanism == "objective" else "on the weights"
            lines["noise"] = f"{noise.law}, shape {noise.shape.name}, norm {noise.norm:.6g} {where}"
            lines["seal"] = f"{plan.seal_share:.2g} of the budget, norm {plan.seal_norm:.3g} on the weights"
        lines["grid"] = f"weights are multiples of 2^{lattice.exponent}"
        lines["tolerance"] = f"gradient norm {plan.tolerance:.3g} in the summed objective"
        lines["expected distance"] = f"at most {plan.expected_distance:.4g} from the non-private weights at this alpha"
    width = max(map(len, lines))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in lines.items())
