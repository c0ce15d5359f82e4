"""The steps of a study as Python: what the script and the notebook both contain, so that they do the same."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from confide.starting.drafts import SchemaDraft, StudyDraft
from confide.starting.study_text import ledger_command


@dataclass(frozen=True, slots=True)
class Step:
    """One step.

    Parameters
    ----------
    title : its heading
    text : what it does, in Markdown
    code : Python, without a line break at its end
    spends : whether it uses rows and spends budget
    """

    title: str
    text: str
    code: str
    spends: bool = False


def steps_of(schema: SchemaDraft, study: StudyDraft) -> tuple[Step, ...]:
    """The steps in order: those that read no row, then those that do. They expect the variable `folder`."""
    return (
        Step(
            "The schema",
            f"`{study.schema}` says what is publicly known of the columns. It is refused while something in it is still to "
            f"be filled in.",
            f"schema = confide.Schema.from_toml(folder / {_text(study.schema)})\nprint(schema)",
        ),
        Step(
            "The plan",
            "What a fit would cost, and how much noise it would add. It reads no row and spends nothing, so change the "
            "budget or the columns and plan again, as often as you like.",
            _model_code(schema, study) + f"\nn_rows = {_n_rows(study)}\nprint(model.plan(n_rows))",
        ),
        Step(
            "A preview on simulated rows",
            "Two public guesses, the error without privacy and the share of the second label, lead to a forecast of the "
            "error with privacy. Take the guesses from the literature, not from the rows.",
            "if len(schema.target.labels) == 2:\n"
            "    forecast = confide.planning.simulate(model, n_rows, error=0.2, positive_rate=0.3)\n"
            '    print("If a model without privacy erred by 0.20, and the rarer label had a share of 0.30")\n'
            '    print("(both are guesses: put yours here), this one")\n'
            '    print(f"would err by {forecast.error:.3f}, probably by {forecast.low:.3f} to {forecast.high:.3f}.")',
        ),
        Step(
            "The fit",
            f"This spends the budget. The ledger must exist: `{ledger_command(study)}`, once for each body of data.",
            f"model.set_params(ledger=confide.Ledger(folder / {_text(study.ledger)}))\n"
            f"model.fit(confide.open_rows(folder / {_text(study.data)}, schema))\n"
            "print(model.guarantee_.statement())",
            spends=True,
        ),
        Step(
            "The model and its report",
            "Both are made from the release and from public facts alone. Files that exist are not replaced.",
            'model.save(folder / "model.json")\nconfide.report.write_report(model, folder / "report.html")',
            spends=True,
        ),
    )


def _model_code(schema: SchemaDraft, study: StudyDraft) -> str:
    numbers = schema.predicts_numbers
    before, kind = "", "confide.AdditiveRegressor" if numbers else "confide.AdditiveClassifier"
    if numbers is None:
        before = "Estimator = confide.AdditiveRegressor if schema.target.bounds else confide.AdditiveClassifier\n"
        kind = "Estimator"
    budget = f"confide.PureDP({study.epsilon!r})"
    if study.rho is not None:
        budget = f"confide.ZCDP({study.rho!r})"
    elif study.delta is not None:
        budget = f"confide.ApproxDP({study.epsilon!r}, {study.delta!r})"
    parameters: dict[str, Any] = {"budget": budget, "schema": "schema"}
    if study.n_rows_bounds is not None:
        parameters |= {"neighbours": _text(study.neighbours), "n_rows_bounds": repr(study.n_rows_bounds)}
    if study.max_rows_per_person > 1:
        parameters["max_rows_per_person"] = study.max_rows_per_person
    listed = ", ".join(f"{name}={value}" for name, value in parameters.items())
    return f"{before}model = {kind}({listed})"


def _text(text: str) -> str:
    """A literal of Python in double quotes; JSON escapes what has to be escaped."""
    return json.dumps(text, ensure_ascii=False)


def _n_rows(study: StudyDraft) -> str:
    if study.n_rows_bounds is not None:
        return "None  # the number of rows is private; the model knows its bounds"
    return f"{study.n_rows}  # about how many rows there are: a public guess, for the plan alone"
