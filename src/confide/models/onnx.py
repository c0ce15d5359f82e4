"""A released model as an ONNX graph: encoding, clipping, scores and predictions."""

from __future__ import annotations

import json
import math
import unicodedata
from functools import partial, reduce
from typing import Any

import numpy as np

from confide._version import __version__
from confide.erm.group_bounds import groups_of
from confide.erm.row_bounds import BallBound, RowBound
from confide.errors import ParameterError, lacking
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.codes import HAT_HEIGHT, CategoryEncoding, NumberEncoding
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.forms import PublicMap
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.known_words import listed, names_by_position
from confide.models.model import Link, ReleasedModel

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
        try:
            from onnx import TensorProto, helper, numpy_helper
        except ImportError:
            raise lacking("to_onnx", "the library onnx", "onnx") from None
        self._make, self._constant_of = helper, numpy_helper.from_array
        double, text, integer, boolean = TensorProto.DOUBLE, TensorProto.STRING, TensorProto.INT64, TensorProto.BOOL
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

        graph = self._make.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants, doc_string=description
        )
        versions = [
            self._make.make_opsetid(*version) for version in (("", _OPERATORS), ("ai.onnx.ml", _OPERATORS_OF_LEARNING))
        ]
        model = self._make.make_model(
            graph, opset_imports=versions, ir_version=_FORMAT, producer_name="confide", producer_version=__version__
        )
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
    angles = graph.node("MatMul", rows, np.ascontiguousarray(fourier.frequencies.T))
    waves = graph.node("Concat", graph.node("Cos", angles), graph.node("Sin", angles), axis=1)
    return graph.node("Mul", waves, norm / math.sqrt(fourier.n_features // 2))


def _inputs(graph: OnnxGraph, encoder: Encoder) -> dict[str, str]:
    """The raw columns (n, 1) by their names."""
    columns, names = encoder.schema.columns, encoder.schema.column_names
    if others := [one.name for one in columns if one.column or (not one.holds_numbers if one.is_number else one.prefix)]:
        raise ParameterError(
            f"to_onnx knows numbers and levels as the table holds them, and these columns are dates, ordered categories, or "
            f"parts of another column: {listed(others)}. Use save, or leave them out of the schema."
        )
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
        first = HAT_HEIGHT * np.eye(1, len(points))
        block = graph.node("Add", graph.node("MatMul", ramps, steps), first)
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
    within = graph.node("Clip", numbers, column.low, column.high)
    above = graph.node("Sub", within, column.low)
    width = column.high - column.low
    if column.is_log:
        doublings = graph.node("Div", above, column.doubling)
        above, width = graph.node("Log", graph.node("Add", doublings, 1.0)), math.log1p(width / column.doubling)
    return graph.node("Sub", graph.node("Mul", above, 2.0 / width), 1.0)


def _category(graph: OnnxGraph, texts: str, encoding: CategoryEncoding) -> str:
    if encoding.number is not None:
        return _atoms(graph, texts, encoding.number)
    column, size = encoding.column, len(encoding.names)
    known, n_levels = column.known, len(column.levels)
    # The last line of the table is that of a cell without a level.
    table = encoding.single[:, None] if encoding.single.size else np.eye(n_levels + 1, size)
    unlisted, missing = (n_levels if level < 0 else level for level in (column.unlisted_level, column.missing_level))
    levels = dict.fromkeys(("", *MISSING_WORDS), missing)
    for code in map(canonical_label, column.missing_codes):
        levels |= dict.fromkeys(() if code is None else _spellings(code), missing)
    levels |= {text: known[label] for label in known if label is not None for text in _spellings(label)}
    pairs = {"keys_strings": list(levels), "values_int64s": list(levels.values()), "default_int64": unlisted}
    level = graph.node("LabelEncoder", texts, domain="ai.onnx.ml", **pairs)
    rows = graph.node("Gather", np.array(table, dtype=np.float64), level, axis=0)
    return graph.node("Reshape", rows, np.array([-1, size]))


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


def onnx_model_of(released: ReleasedModel, link: Link) -> Any:
    """The graph of a released model.

    Parameters
    ----------
    released : the model
    link : how its scores become predictions

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
    products = graph.node("MatMul", rows, np.ascontiguousarray(coef.T))
    scores = graph.node("Add", products, intercept)
    if released.domain:
        _classes(graph, scores, released.domain, link)
    elif link.kind == "exponential":
        means = graph.node("Min", graph.node("Exp", scores), np.finfo(np.float64).max)
        graph.output("prediction", means, "double", 1)
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
        is_second = graph.cast(graph.node("Greater", scores, 0.0), "integer")
        favoured = graph.node("Reshape", is_second, np.array([-1]))
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
        logs = graph.node("Neg", _softplus(graph, graph.node("Neg", odds)))
        return graph.node("Softmax", logs, axis=1)
    return graph.node("Concat", graph.node("Sigmoid", graph.node("Neg", odds)), graph.node("Sigmoid", odds), axis=1)


def _softplus(graph: OnnxGraph, value: str) -> str:
    """log(1 + e^x), from functions that are there for doubles, without overflow."""
    small = graph.node("Log", graph.node("Add", graph.node("Exp", graph.node("Neg", graph.node("Abs", value))), 1.0))
    return graph.node("Add", graph.node("Max", value, 0.0), small)
