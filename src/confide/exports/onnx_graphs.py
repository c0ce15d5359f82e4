"""An ONNX graph while it is being built: nodes, constants, inputs and outputs, all in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from confide._version import __version__
from confide.errors import lacking

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
        self._make, self._constants_of = helper, numpy_helper
        self._kinds = {
            "double": TensorProto.DOUBLE,
            "text": TensorProto.STRING,
            "integer": TensorProto.INT64,
            "boolean": TensorProto.BOOL,
        }
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output, and give the name of the output."""
        # Two leading underscores: no input has such a name, unless a column has.
        name = f"__value{len(self._nodes)}"
        self._nodes.append(self._make.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: Any) -> str:
        """Add a constant. Numbers are doubles, unless the array has another type."""
        array = np.asarray(values)
        if array.dtype.kind == "U":
            array = array.astype(object)
        name = f"__constant{len(self._constants)}"
        self._constants.append(self._constants_of.from_array(array, name))
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
        while any(each.name == name for each in self._inputs):
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
            self._make.make_opsetid("", _OPERATORS),
            self._make.make_opsetid("ai.onnx.ml", _OPERATORS_OF_LEARNING),
        ]
        model = self._make.make_model(
            graph, opset_imports=versions, ir_version=_FORMAT, producer_name="confide", producer_version=__version__
        )
        self._make.set_model_props(model, facts)
        onnx.checker.check_model(model, full_check=True)
        return model
