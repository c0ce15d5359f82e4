"""The sentences that must be true for a guarantee to hold."""

from __future__ import annotations

from confide.privacy.guarantee import Guarantee, Neighbours
from confide.privacy.ledger import Ledger
from confide.privacy.mechanism import Plan
from confide.privacy.noise import LARGEST_PROVEN_EPSILON


def guarantee_of(plan: Plan, label_sentence: str, ledger: Ledger | None, seed: int | None) -> Guarantee:
    """What the release of this plan promises, and on what it rests."""
    problem = plan.problem
    sentences = ["Each person contributed one row at most."]
    if problem.neighbours is Neighbours.REPLACE_ONE:
        sentences.append(f"The number of rows, {problem.n_rows_low:,}, is public.")
    else:
        sentences.append(
            f"The number of rows is private; it lies between the declared bounds {problem.n_rows_low:,} and "
            f"{problem.n_rows_high:,}, which were not learned from the rows."
        )
    sentences += [
        (
            f"Every row is clipped to its declared bound (L2 norm {problem.row_norm:.6g}"
            f"{' with the intercept' if problem.intercept > 0.0 else ''}); bounds, categories and parameters were chosen "
            f"without looking at the rows."
        ),
        "How the rows were read into memory, such as the types of columns, did not depend on single rows.",
        label_sentence,
        "The rows were checked for shape, finite values and labels before the charge; that they passed is not protected.",
    ]
    if plan.budget.is_private:
        sentences.append(
            "Noise has its exact law in real arithmetic, and the rounding of rows, gradients and minimiser is covered by a "
            "proven bound; but the last noise is added in floating point, whose exact treatment is not part of this "
            "version. An attack on the lowest bits of the weights is therefore not excluded."
        )
        if plan.mechanism == "objective":
            sentences.append(
                "It holds apart from an event of probability below 2^-199: a draw of noise beyond the bound that the "
                "rounding proof allows for."
                if plan.budget.epsilon <= LARGEST_PROVEN_EPSILON
                else f"The rounding proof claims nothing above epsilon = {LARGEST_PROVEN_EPSILON:g}; such a budget protects "
                f"nobody."
            )
        sentences.append(
            f"It was charged to a ledger with limit epsilon = {ledger.limit.epsilon:g}; what is not charged there is not "
            f"counted."
            if ledger is not None
            else "It covers this one fit alone; no other fit on these rows is counted. Scores computed on private rows, "
            "and choices made from them, are outside."
        )
    void = None
    if not plan.budget.is_private:
        void = "The budget is infinite: no noise was added, and the model may reveal any row."
    elif seed is not None:
        void = "The noise came from a fixed seed (random_state): whoever knows or guesses the seed can take it away."
    return Guarantee(plan.budget, problem.neighbours, plan.mechanism, tuple(sentences), void)
