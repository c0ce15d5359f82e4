"""`confide fit`: train a private model from a table on disk, charge its ledger, and write it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from confide.blocks import Block, heading, text, verbatim
from confide.cli.options import Format, ModelOptions, Spending, exit_if_void, options_of_command

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.training.plan import AnyPlan

MOST_WEIGHTS_SHOWN = 10


@options_of_command("fit", without=("row_norm",))
def fit(
    data: str,
    schema: Path,
    *,
    spending: Spending,
    options: ModelOptions,
    cache: Path | None = None,
    out: Path = Path("model.json"),
    report: Path | None = None,
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Train a private model and write it to a file.

    Rows are read block by block and need not fit into memory. All rows are checked before anything is charged.

    Nothing about the columns is learned from the data: types, bounds, categories and labels come from the schema. Apart
    from the released weights, nothing is shown that depends on the rows.
    """
    from confide.cli import output
    from confide.cli.fitting import prepared_fit

    prepared = prepared_fit(
        data=data, schema=schema, options=options, spending=spending, out=out, cache=cache, report=report, force=force
    )
    model, charges, screen = prepared.model, prepared.charges, output.Screen(output_format)
    with spending.charged(charges):
        plan = prepared.planned()
        screen.show(prepared.blocks(plan))
        prepared.release(plan)
        if report is not None:
            from confide.report.writing import write_report

            write_report(
                model, report, overwrite=force, ledger=charges.ledger, ledger_name=spending.ledger or "", model_name=out.name
            )
        screen.show(blocks_of_release(model, plan, charges))
        written = [verbatim(f"Wrote {report}")] if report is not None else []
        screen.answer(
            lambda: (
                {"model": str(out), "plan": plan.to_dict(), "verdict": prepared.judged(plan).to_dict()}
                | output.model_document(model)
                | {"charge": charges.document()}
            ),
            [*written, verbatim(f"Wrote {out}; show it with: confide inspect {shlex.quote(str(out))}")],
        )
    exit_if_void(model.guarantee_.void)


def blocks_of_release(model: PrivateLinearModel, plan: AnyPlan, charges: Charges) -> Iterator[Block]:
    """What was released, its guarantee, and where the budget went."""
    from confide.cli import output
    from confide.planning.advice import budget_sentence

    yield from output.blocks_of_guarantee(model)
    yield from output.blocks_of_model(model, MOST_WEIGHTS_SHOWN)
    yield heading("Done")
    yield text(f"{charges.closing_sentence()} {budget_sentence(plan)}")
