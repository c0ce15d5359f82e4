"""One fit of a table on disk: checked, planned, charged, trained and written, as `confide fit` and `confide run` do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.blocks import Block, heading, table, text
from confide.cli.options import ModelOptions, Spending, files_of_ledger, schema_with_target

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.features.fourier import FourierMap
    from confide.features.schema import Schema
    from confide.planning.advice import Verdict
    from confide.planning.simulation import Forecast
    from confide.training.plan import AnyPlan


def prepared_fit(
    *,
    data: str | Path,
    schema: Path,
    options: ModelOptions,
    spending: Spending,
    out: Path,
    cache: Path | None = None,
    report: Path | None = None,
    force: bool = False,
    cohort: tuple[str, str] | None = None,
) -> PreparedFit:
    """The fit, once files, schema and options are known to fit together. No row is read.

    Parameters
    ----------
    data : path or pattern of the table, or the private file of the answer to a query
    schema : file of the schema
    options : the model
    spending : what the model may cost, and where it is charged
    out : file of the model
    cache : folder for encoded rows; None for none
    report : file of the report; None for none
    force : whether files that exist are replaced
    cohort : column and value of the rows that are used alone, where the schedule of a study says so
    """
    from confide.cli import output
    from confide.data.files import opened
    from confide.data.sources import files_of
    from confide.intake.rows import checked_cache

    budget, columns = spending.budget, schema_with_target(schema, cohort)
    files = files_of(data, columns)
    for path in files:
        with opened(path):
            pass
    if cache is not None:
        checked_cache(cache)
    inputs = [*files, schema, *options.files, *files_of_ledger(spending.ledger)]
    output.check_path(out, inputs, overwrite=force)
    if report is not None:
        output.check_path(report, [*inputs, out], (".html", ".htm"), overwrite=force)
    charges = spending.charges(out, options.max_rows_per_person)
    return PreparedFit(data, files, options.estimator(budget, columns, charges.ledger), charges, out, cache, force)


@dataclass(slots=True)
class PreparedFit:
    """A fit that can be planned, and then released.

    Attributes
    ----------
    data : path or pattern of the table
    files : its files
    model : the estimator
    charges : what it charges, and where its model is
    out, cache, force : as in `prepared_fit`
    public_rows : the number of rows once it is planned; None where it is private
    chosen : the schema with the curves that were chosen for it; None if nothing was left to choose
    fourier : the random features that were chosen for it, or None
    verdict : the verdict on its plan, once it was asked for
    """

    data: str | Path
    files: Any
    model: PrivateLinearModel
    charges: Charges
    out: Path
    cache: Path | None
    force: bool
    public_rows: int | None = None
    chosen: Schema | None = None
    fourier: FourierMap | None = None
    verdict: Verdict | None = None

    def planned(self) -> AnyPlan:
        """The plan. Rows are counted; nothing is charged."""
        from confide.cli import output
        from confide.intake.rows import open_rows

        model = self.model
        with output.working("counting the rows"):
            rows: Any = open_rows(self.files, model.schema)
            n_rows = rows.count()
        self.public_rows = n_rows if model.n_rows_bounds is None else None
        self.chosen = output.chosen_schema(model, self.public_rows)
        if self.chosen is not None:
            # Nothing is left to be chosen, so the fit need not count the rows again.
            model.set_params(schema=self.chosen, interactions=())
        self.fourier = output.chosen_map(model, self.public_rows)
        if hasattr(model, "chosen_map"):
            model.set_params(n_features=0 if self.fourier is None else self.fourier.n_features)
        return model.plan(self.public_rows)  # type: ignore[no-any-return]

    def blocks(self, plan: AnyPlan) -> Iterator[Block]:
        """The plan, and what was chosen from public facts."""
        from confide.cli import output

        names = () if self.model.schema is None else self.model.schema.raw_names
        yield text(*output.separator_sentences(self.files, names))
        yield from output.blocks_of_plan(plan)
        yield from output.blocks_of_choices(self.model, self.chosen, self.fourier)
        yield heading("Verdict, from public facts alone")
        yield Block("list", self.judged(plan).sentences)

    def judged(self, plan: AnyPlan) -> Verdict:
        """The verdict of `confide plan`, but of two classes without the forecast, which would take longer than many fits."""
        from confide.planning.advice import verdict_of

        if self.verdict is None:
            self.verdict = verdict_of(self.model, self.public_rows, plan=plan, with_forecast=False, alone=True)
        return self.verdict

    def release(self, plan: AnyPlan | None, noted: Callable[[str], None] | None = None) -> None:
        """Charge the plan, train on the rows of the files, tell `noted` the checksum of the model, and write it."""
        from confide.cli import output
        from confide.intake.rows import open_rows

        cache = False if self.cache is None else self.cache
        # A bar that shows which part of the rows was read would reveal their number.
        with output.row_progress(self.public_rows, n_passes=getattr(plan, "n_passes", None)) as progress:
            self.model.fit(open_rows(self.files, self.model.schema, cache=cache, progress=progress))
        self.charges.write_model(self.model, self.out, overwrite=self.force, noted=noted)


# How `confide plan` shows forecasts of accuracy: as a table with bars for people, as JSON for programs.

_BAR_WIDTH = 40


def blocks_of_forecasts(forecasts: list[Forecast]) -> Iterator[Block]:
    """One line for each forecast: accuracy, its range, and a bar, empty at no model, full at that without privacy."""
    from confide.report.accuracy import forecast_note

    yield heading("Accuracy to be expected, simulated")
    name, rows = forecasts[0].plan.budget.symbol, []
    for one in forecasts:
        reached = (one.constant_error - one.error) / (one.constant_error - one.non_private_error)
        bar = "#" * round(_BAR_WIDTH * min(1.0, max(0.0, reached)))
        cells = (f"{1.0 - one.error:.4f}", f"{1.0 - one.high:.4f} to {1.0 - one.low:.4f}", f"|{bar.ljust(_BAR_WIDTH)}|")
        rows.append((f"{one.plan.event.budget.amount:.4g}", *cells))
    yield table((name, "accuracy", "4 in 5 within", ""), rows, words=("",), optional=("",))
    yield text(forecast_note(forecasts))
