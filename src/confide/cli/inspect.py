"""`confide inspect`: the guarantee and the weights of a model file."""

from __future__ import annotations

from confide.cli.options import Format, ModelFile
from confide.cli.outputs import exit_without_guarantee


def inspect(model_file: ModelFile, output_format: Format = "text") -> None:
    """Show the guarantee, effects and weights of a model file, with intervals if a share of the budget paid for them."""
    from confide.cli import display
    from confide.report.findings import has_interest, has_intervals
    from confide.saved_models.loading import load

    model = load(model_file)
    if output_format == "json":
        display.print_json({"model": str(model_file), **display.model_document(model)})
    else:
        screen = display.Screen()
        screen.verbatim(f"{model_file}: {type(model).__name__}, alpha {model.alpha_:.6g}")
        screen.guarantee(model.guarantee_)
        screen.effects(model)
        if has_intervals(model):
            screen.coefficients(model)
        else:
            screen.weights(model)
            if has_interest(model):
                screen.coefficients(model)
        screen.text("The file was read, not checked: `confide verify` makes its plan again and compares.")
    exit_without_guarantee(model)
