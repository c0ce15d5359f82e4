"""`confide inspect`: the guarantee and the weights of a model file."""

from __future__ import annotations

from confide.cli.options import Adjust, Format, ModelFile, exit_without_guarantee
from confide.errors import ParameterError


def inspect(model_file: ModelFile, adjust: Adjust = None, output_format: Format = "text") -> None:
    """Show the guarantee, effects and weights of a model file, with intervals if a share of the budget paid for them."""
    from confide.cli import output
    from confide.estimators.loading import load
    from confide.report.findings import has_interest, has_intervals

    model = load(model_file)
    if adjust is not None and not (has_intervals(model) or has_interest(model)):
        raise ParameterError("--adjust is for models with intervals, and this model released nothing for them.")
    if output_format == "json":
        output.print_json({"model": str(model_file), **output.model_document(model, adjust)})
    else:
        screen = output.Screen()
        screen.verbatim(f"{model_file}: {type(model).__name__}, alpha {model.alpha_:.6g}")
        screen.guarantee(model.guarantee_)
        screen.effects(model)
        if has_intervals(model):
            screen.coefficients(model, adjust)
        else:
            screen.weights(model)
            if has_interest(model):
                screen.coefficients(model, adjust)
        screen.text("The file was read, not checked: `confide verify` makes its plan again and compares.")
    exit_without_guarantee(model)
