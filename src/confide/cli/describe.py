"""`confide describe`: counts, means, quantiles and cross tables of private rows, in one charge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.fit import DataFiles, SchemaFile
from confide.cli.options import (
    Force,
    Format,
    NeighboursName,
    RowsPerPerson,
    Seed,
    Spending,
    exit_if_void,
    files_of_ledger,
    takes_spending,
)
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.output import Screen
    from confide.features.schema import Schema
    from confide.inference.description import CrossTable, Description

ColumnNames = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="NAME", help="A column to describe; repeat it for several. Fewer columns have less noise, "
        "and for several columns --delta or --rho gives less than --epsilon alone.  "
        "[default: all columns and the target]",
    ),
]  # fmt: skip
CrossTables = Annotated[
    list[str] | None,
    typer.Option(
        "--cross", metavar="NAME:NAME", help="Count rows by two columns of categories; repeat it for several tables.",
    ),
]  # fmt: skip
QuantilesToShow = Annotated[
    list[float] | None,
    typer.Option(
        "--quantile", metavar="Q", help="A quantile of numbers; repeat it for several.  [default: .25, .5, .75]",
    ),
]  # fmt: skip
DescriptionOut = Annotated[Path, typer.Option(metavar="FILE.json", help="File to write the description to.")]


@takes_spending()
def describe(
    data: DataFiles,
    schema: SchemaFile,
    *,
    spending: Spending,
    column: ColumnNames = None,
    cross: CrossTables = None,
    quantile: QuantilesToShow = None,
    level: Annotated[float, typer.Option(metavar="L", help="Level of the intervals, between 0 and 1.")] = 0.95,
    neighbours: NeighboursName = "replace-one",
    max_rows_per_person: RowsPerPerson = 1,
    out: DescriptionOut = Path("description.json"),
    seed: Seed = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Describe private rows: counts of levels, means, standard deviations, quantiles and cross tables, with intervals.

    All of it is one release and one charge. Rows are read block by block, and checked before anything is charged.
    """
    from confide.cli import output
    from confide.data.files import files_of
    from confide.estimators.description import describe as described
    from confide.features.schema import Schema

    budget, files = spending.budget, files_of(data)
    output.check_path(out, [*files, schema, *files_of_ledger(spending.ledger)], (".json",), overwrite=force)
    known = Schema.from_toml(schema)
    charges = spending.charges(out, max_rows_per_person)
    with spending.charged(charges, "description"):
        with output.working(f"reading {data}"):
            description = described(
                files, known, budget=budget, columns=column or None, cross_tables=_pairs(cross or [], known),
                quantiles=tuple(quantile or (0.25, 0.5, 0.75)), level=level, ledger=charges.ledger, neighbours=neighbours,
                max_rows_per_person=max_rows_per_person, random_state=seed,
            )  # fmt: skip
        document = description.to_dict()
        text = json.dumps(document, indent=2, allow_nan=False) + "\n"
        charges.write(text, out, overwrite=force, released="description")
        if output_format == "json":
            output.print_json(document | {"file": str(out), "charge": charges.document()})
        else:
            _show(output.Screen(), description, charges, out)
    exit_if_void(description.void)


def _pairs(given: list[str], schema: Schema) -> list[tuple[str, str]]:
    """Pairs of names of columns. A name may hold colons."""
    from confide.known_words import listed_unknown

    names = {*schema.column_names, *(() if schema.target is None else (schema.target.column,))}
    pairs = []
    for text in given:
        ends = [place for place, sign in enumerate(text) if sign == ":"]
        divisions = [(text[:place], text[place + 1 :]) for place in ends if {text[:place], text[place + 1 :]} <= names]
        if len(divisions) != 1:
            unknown = [name for name in text.split(":") if name not in names]
            raise ParameterError(
                f"--cross must name two columns of the schema with a colon between them, such as sex:income. No columns are "
                f"{listed_unknown(unknown, names)}."
                if unknown
                else "--cross must name two columns of the schema with a colon between them, such as sex:income."
            )
        pairs += divisions
    return pairs


def _show(screen: Screen, description: Description, charges: Charges, out: Path) -> None:
    if description.void is not None:
        screen.text(f"NOT PRIVATE. {description.void}", style="bold red")
    rows = (
        f"{description.n_rows:,.0f} rows"
        if description.n_rows_is_public
        else f"about {description.n_rows:,.0f} rows, a noisy number"
    )
    screen.heading(f"Description of {rows}, with intervals at {description.level:g}")
    if description.numbers:
        screen.table(
            ("column", "number", "value", "low", "high"), [row for number in description.numbers for row in number.cells()]
        )
    for category in description.categories:
        screen.heading(category.name)
        screen.table(("level", "rows", "share", "low", "high"), category.cells())
    for table in description.cross_tables:
        screen.heading(f"{table.names[0]} by {table.names[1]}")
        screen.table((table.names[0], *table.levels[1]), _cells(table))
    screen.heading("Guarantee")
    screen.text(
        f"All of it is one release, with {description.plan.budget} ({description.plan.neighbours}). Each "
        f"count has noise of standard deviation {description.plan.deviation:.3g}. Intervals are about these rows; they say "
        f"nothing about a population."
    )
    for sentence in (*description.interrupted, charges.closing_sentence()):
        screen.text(sentence)
    screen.verbatim(f"Wrote {out}.")


def _cells(table: CrossTable) -> list[tuple[Any, ...]]:
    from confide.inference.description import shown_count

    return [(level, *map(shown_count, row)) for level, row in zip(table.levels[0], table.counts, strict=True)]
