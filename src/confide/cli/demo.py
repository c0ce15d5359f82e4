"""`confide demo`: a private model of public data, and what its privacy costs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.option_values import chosen_budget, new_estimator
from confide.cli.options import Format, exit_if_void, options_of_command
from confide.errors import wording

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.training.plan import AnyPlan


@options_of_command("demo")
def demo(
    epsilon: float | None = 1.0,
    delta: float | None = None,
    out: Path = Path("model.json"),
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Train on real data and see what privacy costs.

    The data are the Adult census of 1994, which ship with confide. The model is compared with one without privacy.
    """
    from confide.cli import output
    from confide.cli.charges import Charges
    from confide.datasets import load_adult

    budget = chosen_budget(epsilon, delta, None)
    output.check_path(out, (), overwrite=force)
    with output.working("reading the Adult data"):
        adult = load_adult()
    model, n_rows = new_estimator("additive", budget, adult.schema), len(adult.X_train)
    plan = model.plan(n_rows)
    screen = output.Screen(output_format)
    screen.show([text(wording("task of the demo", n_rows=n_rows, n_test=len(adult.X_test))), *output.blocks_of_plan(plan)])
    screen.show(output.blocks_of_choices(model, output.chosen_schema(model, n_rows), None))
    with output.working("training the private model"):
        model.fit(adult.X_train, adult.y_train)
        model.save(out, overwrite=force)
    with output.working("training a model without privacy, to compare"):
        without_privacy = new_estimator("additive", chosen_budget(math.inf, None, None), adult.schema)
        without_privacy.fit(adult.X_train, adult.y_train)
    with output.working("testing"):
        majority = str(adult.y_train.mode()[0])
        models = {"released": model, "without_privacy": without_privacy}
        accuracies = {name: float(one.score(adult.X_test, adult.y_test)) for name, one in models.items()}
        accuracies["majority_class"] = float((adult.y_test == majority).mean())
    quoted = shlex.quote(str(out))
    commands = [f"confide inspect {quoted}", f"confide report {quoted} --out {shlex.quote(str(out.with_suffix('.html')))}"]

    next_steps = [
        heading("Next"),
        text("Charged to no ledger: these data are public. For your own rows, create a ledger with `confide ledger init`."),
        verbatim(f"Wrote {out}. Try:", *[f"  {command}" for command in commands]),
    ]
    screen.show(_results(model, plan, accuracies, majority))
    facts = {"charge": Charges(None).document(), "test_accuracy": accuracies, "next": commands}
    screen.answer(lambda: {"model": str(out), "plan": plan.to_dict()} | output.model_document(model) | facts, next_steps)
    exit_if_void(model.guarantee_.void)


def _results(model: PrivateLinearModel, plan: AnyPlan, accuracies: dict[str, float], majority: str) -> Iterator[Block]:
    from confide.cli import output
    from confide.privacy.budgets import shown_amounts

    yield from output.blocks_of_guarantee(model)
    yield from output.blocks_of_effects(model)
    names = {
        "released": f"private, {shown_amounts(plan.budget)}" if plan.budget.is_private else "the model written, NOT PRIVATE",
        "without_privacy": "without privacy (its guarantee is void)",
        "majority_class": f'always "{majority}"',
    }
    yield heading("On the test part")
    rows = [(names[key], f"{value:.1%}", f"{1 - value:.1%}") for key, value in accuracies.items()]
    yield table(("model", "accuracy", "error"), rows)
    yield text("These data are public, so their scores may be shown. No guarantee covers a score on private rows.")
