"""Small ONNX models for tests, as bytes."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from onnx import ModelProto, TensorProto, helper, numpy_helper

__all__ = ["BOOL", "FLOAT", "INT64", "ModelProto", "TensorProto", "Value", "graph", "model", "node"]

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
Value = tuple[str, int, Sequence[int | str] | None]
"""Name, element type and shape of an input or output."""
node = helper.make_node


def model(nodes: Sequence[Any], inputs: Sequence[Value], outputs: Sequence[Value], constants: Mapping[str, Any] | None = None,
          opset: int = 21, **rest: Any) -> bytes:
    """A model of these nodes; ``rest`` goes to ``make_model`` (functions, domains)."""
    domains = rest.pop("domains", {})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, version) for name, version in domains.items())]
    made = helper.make_model(graph(nodes, inputs, outputs, constants), opset_imports=imports, **rest)
    made.ir_version = 10
    data: bytes = made.SerializeToString()
    return data


def graph(nodes: Sequence[Any], inputs: Sequence[Value], outputs: Sequence[Value], constants: Mapping[str, Any] | None = None,
          name: str = "g") -> Any:
    """A graph, for a model or as the body of a node."""
    tensors = [numpy_helper.from_array(np.asarray(value), key) for key, value in (constants or {}).items()]
    given, made = ([helper.make_tensor_value_info(*v) for v in values] for values in (inputs, outputs))
    return helper.make_graph(nodes, name, given, made, tensors)
