"""Raw columns as encoded rows, in an ONNX graph: the encoding that features/encoder.py makes of a frame.

The hats of a number with knots are differences of ramps. The ramp of an interval between two knots is 0 before it, 1 after
it, and a straight line within.
"""

from __future__ import annotations

import math
import unicodedata
from functools import reduce

import numpy as np

from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError
from confide.exports.onnx_graphs import OnnxGraph
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.column_encodings import HAT_HEIGHT, CategoryEncoding, ColumnEncoding, NumberEncoding
from confide.features.column_names import names_by_position
from confide.features.columns import NumberColumn
from confide.features.curves_and_features import CurvesAndFeatures
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.public_maps import PublicMap


def encoded_rows(graph: OnnxGraph, encoder: Encoder) -> str:
    """Add inputs for the raw columns of a schema, and give the encoded rows (n, n_features)."""
    inputs = _inputs(graph, encoder)
    blocks = []
    for factors, scale in zip(encoder.factors, encoder.row_bound.scales, strict=True):
        members = [(_block(graph, inputs, each), len(each.names)) for each in factors]
        block, _ = reduce(lambda left, right: _products(graph, left, right), members)
        blocks.append(block if scale == 1.0 else graph.node("Mul", block, graph.constant(scale)))
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
        longest = graph.node("Max", graph.node("Sqrt", squares), graph.constant(bound.norm))
        return graph.node("Mul", rows, graph.node("Div", graph.constant(bound.norm), longest))
    if isinstance(bound, GroupBound) and not any(bound.linked) and set(bound.sizes) == {1}:
        limits = np.array(bound.scales)
        return graph.node("Max", graph.node("Min", rows, graph.constant(limits)), graph.constant(-limits))
    raise ParameterError(
        "to_onnx can clip rows to a ball or a box, and the row_norm of this model is a bound with groups of columns. "
        "to_sklearn can export it."
    )


def mapped_rows(graph: OnnxGraph, rows: str, public_map: PublicMap) -> str:
    """Rows with random features: in place of their columns, or after them."""
    if isinstance(public_map, CurvesAndFeatures):
        features = _fourier(graph, rows, public_map.features, public_map.feature_norm)
        return graph.node("Concat", rows, features, axis=1)
    if isinstance(public_map, FourierMap):
        return _fourier(graph, rows, public_map, 1.0)
    raise ParameterError("to_onnx does not know the public map of this model.")


def _fourier(graph: OnnxGraph, rows: str, fourier: FourierMap, norm: float) -> str:
    angles = graph.node("MatMul", rows, graph.constant(np.ascontiguousarray(fourier.frequencies.T)))
    waves = graph.node("Concat", graph.node("Cos", angles), graph.node("Sin", angles), axis=1)
    return graph.node("Mul", waves, graph.constant(norm / math.sqrt(fourier.n_features // 2)))


def _inputs(graph: OnnxGraph, encoder: Encoder) -> dict[str, str]:
    """The raw columns (n, 1) by their names."""
    columns, names = encoder.schema.columns, encoder.schema.column_names
    if names == names_by_position(len(names)) and all(isinstance(column, NumberColumn) for column in columns):
        rows = graph.input("X", "double", len(names))
        return {
            name: graph.node("Gather", rows, graph.constant(np.array([place])), axis=1) for place, name in enumerate(names)
        }
    kinds = ("double" if isinstance(column, NumberColumn) else "text" for column in columns)
    return {name: graph.input(name, kind, 1) for name, kind in zip(names, kinds, strict=True)}


def _block(graph: OnnxGraph, inputs: dict[str, str], encoding: ColumnEncoding) -> str:
    """The encoded columns (n, size) of one column."""
    if isinstance(encoding, NumberEncoding):
        return _number(graph, inputs[encoding.column.name], encoding)
    assert isinstance(encoding, CategoryEncoding)  # noqa: S101  # there are two kinds of columns
    return _category(graph, inputs[encoding.column.name], encoding)


def _number(graph: OnnxGraph, numbers: str, encoding: NumberEncoding) -> str:
    column = encoding.column
    absent = graph.node("IsNaN", numbers)
    for code in column.missing_codes:
        absent = graph.node("Or", absent, graph.node("Equal", numbers, graph.constant(code)))
    stretched = graph.node("Where", absent, graph.constant(0.0), _stretched(graph, numbers, column))
    if column.knots:
        points = column.stretched(np.array(column.knots_with_bounds))
        widths = np.diff(points)
        shares = graph.node("Div", graph.node("Sub", stretched, graph.constant(points[:-1])), graph.constant(widths))
        ramps = graph.node("Clip", shares, graph.constant(0.0), graph.constant(1.0))
        # The first hat is 1 minus the first ramp, and each other one is a ramp minus the next.
        steps = HAT_HEIGHT * (np.eye(len(widths), len(points), 1) - np.eye(len(widths), len(points)))
        first = HAT_HEIGHT * np.eye(1, len(points))
        block = graph.node("Add", graph.node("MatMul", ramps, graph.constant(steps)), graph.constant(first))
    else:
        block = stretched
    if not column.missing:
        return block
    block = graph.node("Where", absent, graph.constant(0.0), block)
    return graph.node("Concat", block, graph.cast(absent, "double"), axis=1)


def _stretched(graph: OnnxGraph, numbers: str, column: NumberColumn) -> str:
    """Numbers clipped to the bounds of their column, on its scale from -1 to 1."""
    within = graph.node("Clip", numbers, graph.constant(column.low), graph.constant(column.high))
    above = graph.node("Sub", within, graph.constant(column.low))
    width = column.high - column.low
    if column.is_log:
        doublings = graph.node("Div", above, graph.constant(column.doubling))
        above, width = (
            graph.node("Log", graph.node("Add", doublings, graph.constant(1.0))),
            math.log1p(width / column.doubling),
        )
    return graph.node("Sub", graph.node("Mul", above, graph.constant(2.0 / width)), graph.constant(1.0))


def _category(graph: OnnxGraph, texts: str, encoding: CategoryEncoding) -> str:
    column, size = encoding.column, len(encoding.names)
    known = {canonical_label(category): level for level, category in enumerate(column.categories)}
    n_levels = len(known) + (column.other is True) + bool(column.missing)
    # The last line of the table is that of a cell without a level.
    table = encoding.single[:, None] if encoding.single.size else np.eye(n_levels + 1, size)
    unlisted = len(known) if column.other is True else known[column.other] if column.other else n_levels
    missing = len(known) + (column.other is True) if column.missing else unlisted
    levels = dict.fromkeys(("", *MISSING_WORDS), missing)
    for code in map(canonical_label, column.missing_codes):
        levels |= dict.fromkeys(() if code is None else _spellings(code), missing)
    levels |= {text: known[label] for label in known if label is not None for text in _spellings(label)}
    level = graph.node(
        "LabelEncoder",
        texts,
        domain="ai.onnx.ml",
        keys_strings=list(levels),
        values_int64s=list(levels.values()),
        default_int64=unlisted,
    )
    rows = graph.node("Gather", graph.constant(np.array(table, dtype=np.float64)), level, axis=0)
    return graph.node("Reshape", rows, graph.constant(np.array([-1, size])))


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
    first = graph.node("Reshape", first, graph.constant(np.array([-1, n_first, 1])))
    second = graph.node("Reshape", second, graph.constant(np.array([-1, 1, n_second])))
    size = n_first * n_second
    return graph.node("Reshape", graph.node("Mul", first, second), graph.constant(np.array([-1, size]))), size
