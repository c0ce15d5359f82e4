"""`confide demo`: a private model of public data, and what its privacy costs."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from confide.cli.option_values import Delta, Epsilon, amounts_text, chosen_budget, new_estimator
from confide.cli.options import Force, Format, ModelOut, exit_if_void

if TYPE_CHECKING:
    from confide.cli.output import Screen
    from confide.datasets import SplitData
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.privacy.mechanism import Plan


def demo(
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    out: ModelOut = Path("model.json"),
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Train on real data and see what privacy costs.

    The data are the Adult census of 1994, which ship with confide. The model is compared with one without privacy.
    """
    from confide.cli import output
    from confide.cli.output import chosen_schema
    from confide.datasets import load_adult

    budget = chosen_budget(epsilon, delta, None)
    output.check_path(out, (), overwrite=force)
    with output.working("reading the Adult data"):
        adult = load_adult()
    model = new_estimator("additive", budget, adult.schema)
    chosen = chosen_schema(model, len(adult.X_train))
    plan = model.plan(len(adult.X_train))
    screen = output.Screen() if output_format == "text" else None
    if screen:
        _show_task(screen, adult, plan)
        screen.curves(chosen)
    with output.working("training the private model"):
        model.fit(adult.X_train, adult.y_train)
        model.save(out, overwrite=force)
    accuracies = _test_accuracies(model, adult)
    commands = _commands_to_try(out)
    if screen:
        _show_results(screen, model, plan, accuracies, _majority_class(adult))
        _show_next_steps(screen, out, commands)
    else:
        output.print_json(_document(model, plan, out) | {"test_accuracy": accuracies, "next": commands})
    exit_if_void(model.guarantee_.void)


def _test_accuracies(model: PrivateLinearModel, adult: SplitData) -> dict[str, float]:
    """Accuracy on the test part: of the model, of one without privacy, and of always naming the most frequent class."""
    from confide.cli import output

    with output.working("training a model without privacy, to compare"):
        without_privacy = new_estimator("additive", chosen_budget(math.inf, None, None), adult.schema)
        without_privacy.fit(adult.X_train, adult.y_train)
    with output.working("testing"):
        return {
            "released": float(model.score(adult.X_test, adult.y_test)),
            "without_privacy": float(without_privacy.score(adult.X_test, adult.y_test)),
            "majority_class": float((adult.y_test == _majority_class(adult)).mean()),
        }


def _majority_class(adult: SplitData) -> str:
    return str(adult.y_train.mode()[0])


def _commands_to_try(out: Path) -> list[str]:
    page = out.with_suffix(".html")
    return [
        f"confide inspect {shlex.quote(str(out))}",
        f"confide report {shlex.quote(str(out))} --out {shlex.quote(str(page))}",
    ]


def _document(model: PrivateLinearModel, plan: Plan, out: Path) -> dict[str, object]:
    """The plan and the released model, for programs."""
    from confide.cli import output
    from confide.cli.charges import Charges

    charge = {"charge": Charges(None).document()}
    return {"model": str(out), "plan": plan.to_dict(), **output.model_document(model)} | charge


def _show_task(screen: Screen, adult: SplitData, plan: Plan) -> None:
    screen.text(
        f"Adult: census income in the United States, 1994. {len(adult.X_train):,} people to learn from, "
        f"{len(adult.X_test):,} to test on. Who earns more than 50,000 dollars a year?"
    )
    screen.plan(plan)


def _show_results(
    screen: Screen, model: PrivateLinearModel, plan: Plan, accuracies: dict[str, float], majority: str
) -> None:
    screen.guarantee(model.guarantee_)
    screen.effects(model)
    names = {
        "released": f"private, {amounts_text(plan.budget)}" if plan.budget.is_private else "the model written, NOT PRIVATE",
        "without_privacy": "without privacy (its guarantee is void)",
        "majority_class": f'always "{majority}"',
    }
    screen.heading("On the test part")
    screen.table(
        ("model", "accuracy", "error"),
        [(names[key], f"{value:.1%}", f"{1 - value:.1%}") for key, value in accuracies.items()],
    )
    screen.text(
        "These data are public, so their scores may be shown. A score on private rows is not covered by the guarantee."
    )


def _show_next_steps(screen: Screen, out: Path, commands: list[str]) -> None:
    screen.heading("Next")
    screen.text(
        "Charged to no ledger: these data are public. For your own rows, create a ledger with `confide ledger init`."
    )
    screen.verbatim(f"Wrote {out}. Try:")
    for command in commands:
        screen.verbatim(f"  {command}")
