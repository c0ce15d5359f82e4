"""A released model for other programs: an ONNX graph, a query in SQL, and one file of Python without dependencies."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Sequence
from functools import partial, reduce
from importlib.resources import files
from pprint import pformat
from typing import Any

import numpy as np

from confide._version import __version__
from confide.array_types import Array
from confide.erm.group_bounds import groups_of
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError, imported, is_text, wording
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.codes import HAT_HEIGHT, CategoryEncoding, ColumnEncoding, NumberEncoding
from confide.features.columns import Column, NumberColumn
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.known_words import listed, names_by_position
from confide.models.model import Link, ReleasedModel, ShownClass
from confide.parameters import checked_choice

# An ONNX graph while it is being built: nodes, constants, inputs and outputs, all in double precision.

_OPERATORS, _OPERATORS_OF_LEARNING, _FORMAT = 17, 3, 8
"""Versions that onnxruntime has had since 1.14."""


class OnnxGraph:
    """A graph to which nodes are added one after the other. Each value in it is known by its name.

    Raises
    ------
    ParameterError
        If onnx is not installed.
    """

    def __init__(self) -> None:
        onnx: Any = imported("onnx", "to_onnx", "onnx")
        self._make, self._constant_of, kind = onnx.helper, onnx.numpy_helper.from_array, onnx.TensorProto
        double, text, integer, boolean = kind.DOUBLE, kind.STRING, kind.INT64, kind.BOOL
        self._kinds = {"double": double, "text": text, "integer": integer, "boolean": boolean}
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def node(self, operator: str, *inputs: Any, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and give the name of the output.

        An input is the name of a value, or a constant: a number, a double, or an array of any type.
        """
        names = [value if isinstance(value, str) else self.constant(value) for value in inputs]
        # Two leading underscores: no input has such a name, unless a column has.
        name = f"__value{len(self._nodes)}"
        self._nodes.append(self._make.make_node(operator, names, [name], domain=domain, **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant, and give its name."""
        array, name = np.asarray(values), f"__constant{len(self._constants)}"
        self._constants.append(self._constant_of(array.astype(object) if array.dtype.kind == "U" else array, name))
        return name

    def cast(self, value: str, kind: str) -> str:
        """A value in another type."""
        return self.node("Cast", value, to=self._kinds[kind])

    def input(self, name: str, kind: str, n_columns: int) -> str:
        """Declare an input (n, n_columns)."""
        self._inputs.append(self._make.make_tensor_value_info(name, self._kinds[kind], [None, n_columns]))
        return name

    def output(self, name: str, value: str, kind: str, *n_columns: int) -> None:
        """Declare a value as an output (n, *n_columns). If an input has this name, its name begins with "model_"."""
        while any(known_input.name == name for known_input in self._inputs):
            name = f"model_{name}"
        self._nodes.append(self._make.make_node("Identity", [value], [name]))
        self._outputs.append(self._make.make_tensor_value_info(name, self._kinds[kind], [None, *n_columns]))

    def model(self, name: str, description: str, facts: dict[str, str]) -> Any:
        """The finished model, checked by onnx.

        Parameters
        ----------
        name, description : what is shown of the graph
        facts : kept in the metadata of the model
        """
        import onnx

        of_graph = (self._nodes, name, self._inputs, self._outputs)
        graph = self._make.make_graph(*of_graph, initializer=self._constants, doc_string=description)
        known = (("", _OPERATORS), ("ai.onnx.ml", _OPERATORS_OF_LEARNING))
        versions = [self._make.make_opsetid(*version) for version in known]
        names = {"producer_name": "confide", "producer_version": __version__}
        model = self._make.make_model(graph, opset_imports=versions, ir_version=_FORMAT, **names)
        self._make.set_model_props(model, facts)
        onnx.checker.check_model(model, full_check=True)
        return model


# Raw columns as encoded rows, in an ONNX graph: the encoding that features/encoder.py makes of a frame.
#
# The hats of a number with knots are differences of ramps. The ramp of an interval between two knots is 0 before it, 1
# after it, and a straight line within.


def encoded_rows(graph: OnnxGraph, encoder: Encoder) -> str:
    """Add inputs for the raw columns of a schema, and give the encoded rows (n, n_features)."""
    inputs = _inputs(graph, encoder)
    blocks = []
    for factors, scale in zip(encoder.factors, encoder.row_bound.scales, strict=True):
        members = []
        for factor in factors:
            value = inputs[factor.column.name]
            block = _number(graph, value, factor) if factor.is_number else _category(graph, value, factor)
            members.append((block, len(factor.names)))
        block, _ = reduce(partial(_products, graph), members)
        blocks.append(block if scale == 1.0 else graph.node("Mul", block, scale))
    return graph.node("Concat", *blocks, axis=1)


def clipped_rows(graph: OnnxGraph, rows: str, bound: RowBound) -> str:
    """Rows scaled down, or cut off, until they obey a bound.

    Raises
    ------
    ParameterError
        If the bound has groups of several columns.
    """
    if isinstance(bound, BallBound):
        if bound.norm == math.inf:
            return rows
        squares = graph.node("ReduceSumSquare", rows, axes=[1], keepdims=1)
        # Rows that are short enough are divided by the norm of the ball, and multiplied by it again: by 1.
        longest = graph.node("Max", graph.node("Sqrt", squares), bound.norm)
        return graph.node("Mul", rows, graph.node("Div", bound.norm, longest))
    sizes, scales, linked = groups_of(bound)
    if set(sizes) == {1} and not any(linked):
        limits = np.array(scales)
        return graph.node("Max", graph.node("Min", rows, limits), -limits)
    raise ParameterError(wording("bound in an ONNX graph"))


def mapped_rows(graph: OnnxGraph, rows: str, public_map: PublicMap) -> str:
    """Rows with random features: in place of their columns, or after them."""
    if isinstance(public_map, CurvesAndFeatures):
        return graph.node("Concat", rows, _fourier(graph, rows, public_map.features, public_map.feature_norm), axis=1)
    if isinstance(public_map, FourierMap):
        return _fourier(graph, rows, public_map, 1.0)
    raise ParameterError("an ONNX graph cannot have the public map of this model.")


def _fourier(graph: OnnxGraph, rows: str, fourier: FourierMap, norm: float) -> str:
    angles = graph.node("MatMul", rows, np.ascontiguousarray(fourier.frequencies.T))
    waves = graph.node("Concat", graph.node("Cos", angles), graph.node("Sin", angles), axis=1)
    return graph.node("Mul", waves, norm / math.sqrt(fourier.n_features // 2))


def _inputs(graph: OnnxGraph, encoder: Encoder) -> dict[str, str]:
    """The raw columns (n, 1) by their names."""
    columns, names = encoder.schema.columns, encoder.schema.column_names
    if others := [one.name for one in columns if one.column or (not one.holds_numbers if one.is_number else one.prefix)]:
        raise ParameterError(wording("columns in an ONNX graph", columns=listed(others)))
    if names == names_by_position(len(names)) and all(column.is_number for column in columns):
        rows = graph.input("X", "double", len(names))
        return {name: graph.node("Gather", rows, np.array([place]), axis=1) for place, name in enumerate(names)}
    kinds = ("double" if column.is_number else "text" for column in columns)
    return {name: graph.input(name, kind, 1) for name, kind in zip(names, kinds, strict=True)}


def _number(graph: OnnxGraph, numbers: str, encoding: NumberEncoding) -> str:
    column = encoding.column
    absent = graph.node("IsNaN", numbers)
    for code in column.missing_codes:
        absent = graph.node("Or", absent, graph.node("Equal", numbers, code))
    stretched = graph.node("Where", absent, 0.0, _stretched(graph, numbers, column))
    if column.knots:
        points = column.stretched(np.array(column.knots_with_bounds))
        widths = np.diff(points)
        shares = graph.node("Div", graph.node("Sub", stretched, points[:-1]), widths)
        ramps = graph.node("Clip", shares, 0.0, 1.0)
        # The first hat is 1 minus the first ramp, and each other one is a ramp minus the next.
        steps = HAT_HEIGHT * (np.eye(len(widths), len(points), 1) - np.eye(len(widths), len(points)))
        block = graph.node("Add", graph.node("MatMul", ramps, steps), HAT_HEIGHT * np.eye(1, len(points)))
    else:
        block = stretched
    if not column.missing:
        return block
    return graph.node("Concat", graph.node("Where", absent, 0.0, block), graph.cast(absent, "double"), axis=1)


def _atoms(graph: OnnxGraph, numbers: str, column: NumberColumn) -> str:
    equal = graph.node("Equal", graph.node("Clip", numbers, column.low, column.high), np.array(column.atoms))
    for code in column.missing_codes:
        equal = graph.node("And", equal, graph.node("Not", graph.node("Equal", numbers, code)))
    return graph.cast(equal, "double")


def _stretched(graph: OnnxGraph, numbers: str, column: NumberColumn) -> str:
    """Numbers clipped to the bounds of their column, on its scale from -1 to 1."""
    above = graph.node("Sub", graph.node("Clip", numbers, column.low, column.high), column.low)
    width = column.high - column.low
    if column.is_log:
        doublings = graph.node("Div", above, column.doubling)
        above, width = graph.node("Log", graph.node("Add", doublings, 1.0)), math.log1p(width / column.doubling)
    return graph.node("Sub", graph.node("Mul", above, 2.0 / width), 1.0)


def _category(graph: OnnxGraph, texts: str, encoding: CategoryEncoding) -> str:
    if encoding.number is not None:
        return _atoms(graph, texts, encoding.number)
    column, size = encoding.column, len(encoding.names)
    # The last line of the table is that of a cell without a level.
    table = encoding.single[:, None] if encoding.single.size else np.eye(len(column.levels) + 1, size)
    levels, unlisted = _spelled_levels(column)
    pairs = {"keys_strings": list(levels), "values_int64s": list(levels.values()), "default_int64": unlisted}
    level = graph.node("LabelEncoder", texts, domain="ai.onnx.ml", **pairs)
    rows = graph.node("Gather", np.array(table, dtype=np.float64), level, axis=0)
    return graph.node("Reshape", rows, np.array([-1, size]))


def _spelled_levels(column: Column) -> tuple[dict[str, int], int]:
    """The level of each spelling of a cell, and that of all other cells; one more than the last level for none."""
    missing = -1 if column.is_number else column.missing_level
    unlisted, n_levels = (-1, len(column.ordered)) if column.is_number else (column.unlisted_level, len(column.levels))
    labels = dict.fromkeys(map(canonical_label, column.missing_codes), missing) | column.known
    spelled = {text: level for label, level in labels.items() if label is not None for text in _spellings(label)}
    levels = dict.fromkeys(("", *MISSING_WORDS), missing) | spelled
    return {text: level % (n_levels + 1) for text, level in levels.items()}, unlisted % (n_levels + 1)


def _spellings(label: str) -> tuple[str, ...]:
    """How programs write a label that schemas compare in its canonical form."""
    if label in ("true", "false"):
        return label, label.capitalize(), label.upper()
    if label.lstrip("-").isdigit():
        return label, f"{label}.0"
    return tuple(dict.fromkeys(unicodedata.normalize(form, label) for form in ("NFC", "NFD")))


def _products(graph: OnnxGraph, left: tuple[str, int], right: tuple[str, int]) -> tuple[str, int]:
    """All products of two blocks of columns, with their number; those of the right one run fastest."""
    (first, n_first), (second, n_second) = left, right
    first = graph.node("Reshape", first, np.array([-1, n_first, 1]))
    second = graph.node("Reshape", second, np.array([-1, 1, n_second]))
    size = n_first * n_second
    return graph.node("Reshape", graph.node("Mul", first, second), np.array([-1, size])), size


def binned_by(link: Link) -> Link:
    """How scores lie in the bins of an evaluation: by their probabilities, or as if they were log-odds."""
    return link if link.has_probabilities else Link("logistic")


def onnx_model_of(released: ReleasedModel, link: Link, chances: Array | None = None) -> Any:
    """The graph of a released model.

    Parameters
    ----------
    released : the model
    link : how its scores become predictions
    chances : of a calibrated classifier the probability at the middle of each bin, or None

    Returns
    -------
    onnx.ModelProto
        Its inputs and outputs are described at `to_onnx` of the models.

    Raises
    ------
    ParameterError
        If onnx is not installed, or the bound on rows has groups of several columns and no schema.
    """
    graph = OnnxGraph()
    rows = _rows(graph, released)
    coef, intercept = released.scoring.coef, released.scoring.intercept
    scores = graph.node("Add", graph.node("MatMul", rows, np.ascontiguousarray(coef.T)), intercept)
    if released.domain:
        _classes(graph, scores, released.domain, link)
        if chances is not None:
            _calibrated(graph, scores, ShownClass.of(released).position or 0, link, chances)
    elif link.kind == "exponential":
        graph.output("prediction", graph.node("Min", graph.node("Exp", scores), np.finfo(np.float64).max), "double", 1)
    else:
        graph.output("prediction", scores, "double", 1)
    statement = released.guarantee.statement()
    facts = {"guarantee": json.dumps(released.guarantee.to_dict()), "statement": statement}
    return graph.model("confide", statement.split("\n")[0], facts)


def _rows(graph: OnnxGraph, released: ReleasedModel) -> str:
    """The rows (n, d) as they are scored."""
    bound, encoder = released.scoring.row_bound, released.encoder
    if encoder is None:
        rows = graph.input("X", "double", int(released.columns.n_features_in))
    else:
        rows = encoded_rows(graph, encoder)
    if released.fourier is not None:
        rows = mapped_rows(graph, rows, released.fourier)
    elif encoder is not None and bound == encoder.row_bound:
        return rows  # encoded rows obey the bound of their encoder
    return clipped_rows(graph, rows, bound)


def _classes(graph: OnnxGraph, scores: str, domain: tuple[Any, ...], link: Link) -> None:
    labels, several = np.array(domain), len(domain) > 2
    if several:
        favoured = graph.node("ArgMax", scores, axis=1, keepdims=0)
    else:
        favoured = graph.node("Reshape", graph.cast(graph.node("Greater", scores, 0.0), "integer"), np.array([-1]))
    kind = {"U": "text", "i": "integer", "b": "boolean"}.get(labels.dtype.kind, "double")
    graph.output("label", graph.node("Gather", labels, favoured, axis=0), kind)
    graph.output("scores", scores, "double", len(domain) if several else 1)
    if link.has_probabilities:
        graph.output("probabilities", _probabilities(graph, scores, link, several), "double", len(domain))


def _probabilities(graph: OnnxGraph, scores: str, link: Link, several: bool) -> str:
    """The probability of each class, (n, k)."""
    if link.kind == "softmax":
        return graph.node("Softmax", scores, axis=1)
    odds = scores
    if link.margin:
        margin = link.margin
        favour = _softplus(graph, graph.node("Sub", scores, margin))
        against = _softplus(graph, graph.node("Neg", graph.node("Add", scores, margin)))
        # The probability for a score is the logistic function of this difference.
        odds = graph.node("Sub", favour, against)
    if several:
        return graph.node("Softmax", graph.node("Neg", _softplus(graph, graph.node("Neg", odds))), axis=1)
    return graph.node("Concat", graph.node("Sigmoid", graph.node("Neg", odds)), graph.node("Sigmoid", odds), axis=1)


def _calibrated(graph: OnnxGraph, scores: str, position: int, link: Link, chances: Array) -> None:
    """Add the calibrated probability of both classes as an output. Between the middles of bins lie straight lines."""
    binned = graph.node("Gather", _probabilities(graph, scores, binned_by(link), False), np.array([position]), axis=1)
    place = graph.node("Sub", graph.node("Mul", binned, float(chances.size)), np.arange(chances.size - 1) + 0.5)
    ramps = graph.node("Clip", place, 0.0, 1.0)
    chance = graph.node("Add", graph.node("MatMul", ramps, np.diff(chances)[:, None]), chances[0])
    pair = (graph.node("Sub", 1.0, chance), chance)[:: 1 if position else -1]
    graph.output("calibrated", graph.node("Concat", *pair, axis=1), "double", 2)


def _softplus(graph: OnnxGraph, value: str) -> str:
    """log(1 + e^x), from functions that are there for doubles, without overflow."""
    small = graph.node("Log", graph.node("Add", graph.node("Exp", graph.node("Neg", graph.node("Abs", value))), 1.0))
    return graph.node("Add", graph.node("Max", value, 0.0), small)


# A model as text that scores rows elsewhere: a query in SQL, and one file of Python.
#
# Both are made of one table of effects. For each group of encoded columns it has the values of the columns at which an
# effect is given, and the effect at each of them, or at each pair for an interaction. Between two numbers the effect is a
# straight line on the column's own scale. So the effects and the intercept add up to the score of every row.

DIALECTS = {
    "postgresql": ("TEXT", "DOUBLE PRECISION", '"'),
    "duckdb": ("VARCHAR", "DOUBLE", '"'),
    "spark": ("STRING", "DOUBLE", "`"),
}
"""For each dialect of SQL, its types for text and for numbers, and what stands around names."""
_LARGEST_EXPONENT = 700.0
"""Beyond it some databases refuse exponentials. A probability there is 0 or 1 to 300 digits."""


def table_of_effects(released: ReleasedModel) -> list[dict[str, Any]]:
    """The effects of a released model on its scores: for each group of encoded columns, their columns and values.

    The values of a group are an array with one axis for each of its columns, and a last one for the scores. Where rows are
    shortened, columns also have the squared lengths of what they are encoded to, from which that of a row is made.

    Raises
    ------
    ParameterError
        If the model has no schema, random features, or columns that are read in parts.
    """
    encoder, why, clips = released.encoder, None, _norm_of(released) is not None
    if released.fourier is not None:
        why = 'it has random features. Write an ONNX graph, or fit it with interactions="pairs"'
    elif encoder is None or not (clips or released.scoring.row_bound == encoder.row_bound):
        why = "it has no schema, or a row_norm of its own. Write an ONNX graph"
    elif read := [one.name for one in encoder.schema.columns if one.part or (not one.is_number and one.prefix)]:
        why = f"these columns are dates, or first characters of codes: {listed(read)}. Keep the file of the model"
    if why is not None or encoder is None:
        raise ParameterError(f"this model cannot be written as SQL or Python: {why}.")
    blocks = []
    for factors, group, scale in zip(encoder.factors, encoder.groups, encoder.row_bound.scales, strict=True):
        axes, matrices = zip(*map(_axis, factors), strict=True)
        values = released.scoring.coef.T[group.place] * scale
        values = values.reshape(*[matrix.shape[1] for matrix in matrices], -1)
        for place, matrix in enumerate(matrices):
            values = np.moveaxis(np.tensordot(matrix, values, axes=(1, place)), 0, place)
            # |(1 - f) a + f b|^2 = (1 - f) |a|^2 + f |b|^2 - f (1 - f) |b - a|^2
            squares, bends = (matrix**2).sum(axis=1), (np.diff(matrix[:-1], axis=0) ** 2).sum(axis=1)
            axes[place].update({"squares": squares.tolist(), "bends": bends.tolist()} if clips else {})
        blocks.append({"columns": list(axes), "values": values} | ({"scale": float(scale)} if clips else {}))
    return blocks


def _norm_of(released: ReleasedModel) -> float | None:
    """The length to which encoded rows are shortened before they are scored; None where they are scored as they are."""
    bound: Any = released.scoring.row_bound
    return float(bound.norm) if type(bound) is BallBound and released.encoder is not None else None


def _axis(encoding: ColumnEncoding) -> tuple[dict[str, Any], Array]:
    """What must be known of a column to find its effect; and how each of its values is encoded, the last one for all others.

    A number with a curve has its points; the last value is that of a missing cell. A category has the place of each
    spelling of a level. Atoms have their numbers.
    """
    column, given = encoding.column, np.append(np.arange(float(len(encoding.names))), -1.0)
    if column.is_number and not column.ordered:
        points = column.knots_with_bounds or (column.low, column.high)
        axis: dict[str, Any] = {"column": column.raw_name, "points": list(points), "codes": list(column.missing_codes)}
        axis |= {"doubling": column.doubling} if column.is_log else {}
        given = np.array([*points, math.nan])
    elif not encoding.is_number and (number := encoding.number) is not None:
        axis = {"column": number.raw_name, "atoms": list(number.atoms), "ends": list(number.bounds)}
        axis["codes"] = list(number.missing_codes)
    else:
        levels, other = _spelled_levels(column)
        axis = {"column": column.raw_name, "levels": levels, "other": other}
        n_levels = len(column.ordered) if column.is_number else len(column.levels)
        given = np.append(np.arange(float(n_levels)), math.nan if column.is_number else -1.0)
    if encoding.is_number:
        codes: Any = encoding.column.stretched(given) if encoding.is_plain else encoding.codes(given)
    else:
        codes = given.astype(np.intp)
    encoded = np.zeros((len(encoding.names), len(codes)))
    encoding.write(codes, encoded)
    return axis, np.nan_to_num(encoded).T


# SQL.


def sql_of(released: ReleasedModel, link: Link, table: str, dialect: str) -> str:
    """A query that gives the rows of a table with the predictions of a model beside them.

    Parameters
    ----------
    released : the model
    link : how its scores become predictions
    table : the name of the table, as it is written in SQL
    dialect : one of `DIALECTS`

    Raises
    ------
    ParameterError
        If the model cannot be written so, or the dialect is not known.
    """
    if not is_text(table) or not table.strip():
        raise ParameterError('table must be the name of a table as SQL writes it, such as "people" or "study.people".')
    number_type = DIALECTS[checked_choice("dialect", dialect, tuple(DIALECTS))][1]
    blocks, n_scores = table_of_effects(released), len(released.scoring.intercept)
    names = ["score"] if n_scores == 1 else [f"score_{place}" for place in range(1, n_scores + 1)]
    scores, lateral, norm, factor = [], "\nCROSS JOIN LATERAL (\n  SELECT\n{}\n) AS {}", _norm_of(released), ""
    for place, name in enumerate(names):
        summed = "\n    + ".join(_effect(dialect, block["columns"], block["values"][..., place]) for block in blocks)
        summed = summed if norm is None else f"f.factor * (\n    {summed})"
        scores.append(f"    CAST({_literal(released.scoring.intercept[place])}\n    + {summed} AS {number_type}) AS {name}")
    if norm is not None:
        squares = [
            f"{_literal(block['scale'] ** 2)} * "
            + " * ".join(
                f"({_effect(dialect, [axis], np.array(axis['squares']), axis['bends'])})" for axis in block["columns"]
            )
            for block in blocks
        ]
        square = f"GREATEST({_literal(norm**2)},\n      " + "\n      + ".join(squares) + ")"
        factor = lateral.format(f"    {_literal(norm)} / SQRT(CAST({square} AS {number_type})) AS factor", "f")
    shown = [f"{value} AS {name}" for name, value in _columns_of(released, link, [f"s.{name}" for name in names], dialect)]
    comment = "".join(f"-- {line}\n" for line in released.guarantee.statement().splitlines())
    columns, summed = ",\n  ".join(["r.*", *shown]), ",\n".join(scores)
    return f"{comment}SELECT\n  {columns}\nFROM {table} AS r{factor}{lateral.format(summed, 's')}\n"


def _quoted(dialect: str, name: str, sign: str = "") -> str:
    """A name in SQL, or between single quotes a text."""
    sign = sign or DIALECTS[dialect][2]
    if dialect == "spark" and sign == "'":
        return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return sign + name.replace(sign, 2 * sign) + sign


def _effect(dialect: str, axes: Sequence[dict[str, Any]], values: Array, bends: Sequence[float] = ()) -> str:
    """The effect at the cells of a row, or the only value where no column is left.

    `bends` say how far below its straight line the value of one column is between two numbers: see `table_of_effects`.
    """
    if not axes or (np.ptp(values) == 0.0 and not any(bends)):
        return _literal(values.flat[0])
    axis, within = axes[0], [_effect(dialect, axes[1:], part) for part in values]
    name, (text_type, number_type, _) = _quoted(dialect, axis["column"]), DIALECTS[dialect]
    if "levels" in axis:
        other = within[axis["other"]]
        others = ((spelling, within[level]) for spelling, level in axis["levels"].items() if within[level] != other)
        cases = [f"WHEN {_quoted(dialect, spelling, chr(39))} THEN {effect}" for spelling, effect in others]
        level = f"COALESCE(TRIM(CAST({name} AS {text_type})), '')"
        return f"CASE {level} {' '.join(cases)} ELSE {other} END" if cases else other
    x = f"CAST({name} AS {number_type})"
    absent = f"{x} IS NULL OR {x} = CAST('NaN' AS {number_type})"
    if axis["codes"]:
        absent += f" OR {x} IN ({', '.join(map(_literal, axis['codes']))})"
    cases = [f"WHEN {absent} THEN {within[-1]}"]
    if "atoms" in axis:
        low, high = axis["ends"]
        for atom, value in zip(axis["atoms"], within[:-1], strict=True):
            sign = "<=" if atom == low else ">=" if atom == high else "="
            cases.append(f"WHEN {x} {sign} {_literal(atom)} THEN {value}")
        return f"CASE {' '.join([*cases, 'ELSE', within[-1]])} END"
    points = axis["points"]
    cases.append(f"WHEN {x} <= {_literal(points[0])} THEN {within[0]}")
    for place in range(len(points) - 1):
        value = _between(axis, x, place, within, values if len(axes) == 1 else None, bends[place] if bends else 0.0)
        cases.append(f"WHEN {x} < {_literal(points[place + 1])} THEN {value}")
    return f"CASE {' '.join([*cases, 'ELSE', within[-2]])} END"


def _literal(number: Any) -> str:
    """A number as a double: without an exponent some dialects would read a decimal of few digits."""
    text = repr(float(number))
    return text if "e" in text else f"{text}e0"


def _between(axis: dict[str, Any], x: str, place: int, within: Sequence[str], values: Array | None, bend: float) -> str:
    """The effect between two points of a number, from the effects at the points: as numbers if `values` are given."""
    low, ends = axis["points"][0], np.array(axis["points"][place : place + 2])
    if doubling := axis.get("doubling"):
        x, ends = f"LN(1e0 + ({x} - {_literal(low)}) / {_literal(doubling)})", np.log1p((ends - low) / doubling)
    start, width = ends[0], ends[1] - ends[0]
    share = f"(({x} - {_literal(start)}) / {_literal(width)})"
    if values is not None:
        slope = _literal((values[place + 1] - values[place]) / width)
        bent = f" - {_literal(bend)} * {share} * (1e0 - {share})" if bend else ""
        return f"{_literal(values[place])} + {slope} * ({x} - {_literal(start)}){bent}"
    return f"(1e0 - {share}) * ({within[place]}) + {share} * ({within[place + 1]})"


def _columns_of(released: ReleasedModel, link: Link, scores: list[str], dialect: str) -> list[tuple[str, str]]:
    """The names of the columns that are added, and their values in SQL."""

    def exponential(of: str) -> str:
        return f"EXP(LEAST(GREATEST({of}, -{_LARGEST_EXPONENT}e0), {_LARGEST_EXPONENT}e0))"

    def favour(score: str) -> str:
        if not link.margin:
            return f"1e0 / (1e0 + {exponential(f'-({score})')})"
        above, below = (exponential(f"{of} - {_literal(link.margin)}") for of in (f"({score})", f"-({score})"))
        return f"(1e0 + {above}) / (2e0 + {above} + {below})"

    if not released.domain:
        return [("prediction", exponential(scores[0]) if link.kind == "exponential" else scores[0])]
    labels = [_quoted(dialect, label, "'") if isinstance(label, str) else str(label) for label in released.domain]
    if len(scores) == 1:
        shown = ShownClass.of(released)
        prediction = f"CASE WHEN {scores[0]} > 0 THEN {labels[1]} ELSE {labels[0]} END"
        value = f"({scores[0]})" if shown.sign > 0.0 else f"-({scores[0]})"
        name, value = ("probability", favour(value)) if link.has_probabilities else ("score", value)
        return [("prediction", prediction), (name, value)]
    most = f"GREATEST({', '.join(scores)})"
    cases = [f"WHEN {score} = {most} THEN {label}" for score, label in zip(scores, labels, strict=True)]
    prediction = f"CASE {' '.join(cases)} END"
    if not link.has_probabilities:
        return [("prediction", prediction), ("score", most)]
    if link.kind == "softmax":
        parts = [exponential(f"{score} - {most}") for score in scores]
        return [("prediction", prediction), ("probability", f"1e0 / ({' + '.join(parts)})")]
    return [("prediction", prediction), ("probability", f"{favour(most)} / ({' + '.join(map(favour, scores))})")]


def calibrated_sql(query: str, link: Link, chances: Array) -> str:
    """The query of a classifier of two classes with the calibrated probability beside the columns that it gives.

    Parameters
    ----------
    query, link : of the model
    chances : the probability at the middle of each bin
    """
    comment, select, body = query.partition("\nSELECT\n")  # lines of the comment begin with dashes
    exponent = f"LEAST(GREATEST(-c.score, -{_LARGEST_EXPONENT}e0), {_LARGEST_EXPONENT}e0)"
    binned = "c.probability" if link.has_probabilities else f"1e0 / (1e0 + EXP({exponent}))"
    steps, place = enumerate(np.diff(chances)), f"{_literal(chances.size)} * {binned}"
    known = ((_literal(step), _literal(at + 0.5)) for at, step in steps if step)
    ramps = (f"{step} * LEAST(GREATEST({place} - {middle}, 0e0), 1e0)" for step, middle in known)
    chance = "\n  + ".join([_literal(chances[0]), *ramps])
    return f"{comment}\nSELECT c.*,\n  {chance} AS calibrated\nFROM ({select}{body}) AS c\n"


# Python.


def python_of(released: ReleasedModel, link: Link, chances: Array | None = None) -> str:
    """The text of a file of Python that predicts rows: as a module by `predict`, and as a program on tables of text.

    Parameters
    ----------
    released, link, chances : as for `onnx_model_of`
    """
    shown = ShownClass.of(released) if released.domain else None
    model = {
        "intercept": released.scoring.intercept.tolist(),
        "norm": _norm_of(released),
        "missing": ["", *MISSING_WORDS],
        "blocks": [block | {"values": block["values"].tolist()} for block in table_of_effects(released)],
        "classes": list(released.domain),
        "shown": None if shown is None else shown.position,
        "link": link.kind,
        "margin": link.margin,
        "chances": [] if chances is None else chances.tolist(),
    }
    text = files(__package__).joinpath("scoring.txt").read_text(encoding="utf-8")
    statement = released.guarantee.statement().replace("\\", "/").replace('"""', "'''")
    # Each mark is looked for in the text of the package alone, never in what was put in: names may hold a mark too.
    head, _, tail = text.partition("None  # the model")
    return head.replace("STATEMENT", statement) + pformat(model, width=120, compact=True) + tail
