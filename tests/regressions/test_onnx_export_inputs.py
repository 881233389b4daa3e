"""Strangers' ONNX models and FX texts: each is read, or refused with a reason."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import irscope
from irscope.expand.onnx import interpreter
from irscope.formats.export.arguments import Arguments
from irscope.formats.export.records import BadRecord, Record
from irscope.formats.onnx import isolation
from irscope.formats.onnx.algebra import Onnx
from irscope.formats.onnx.functions import called
from irscope.formats.onnx.inference import built
from irscope.formats.onnx.operators import declared
from irscope.graph import Builder, Graph, TensorType
from irscope.graph.dtypes import F32, F64, S64
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from tests.effort import within


def expand(name: str, shape: tuple[int, ...], *values: object, **attributes: object) -> list[object]:
    t = Onnx(Builder(Graph("probe")))
    x = t.builder.add(hlo.parameter, (), {"number": 0}, TensorType(F32, shape))
    operands = [x, *(t.array(v, F64 if v.dtype == np.float64 else S64) if isinstance(v, np.ndarray) else None for v in values)]
    operator = declared(name)
    assert operator is not None
    return built(operator, t, attributes, operands, (20, 1))


@pytest.mark.parametrize("name, shape, values, attributes", [
    ("Resize", (4,), (np.array([-1e308, 1e308]), None, np.array([3])), {"coordinate_transformation_mode": "tf_crop_and_resize"}),
    ("Resize", (100,), (None, np.array([1e308])), {}),
    ("Resize", (8,), (None, None, np.array([1 << 22])), {}),
    ("RoiAlign", (1, 1, 4, 4), (np.array([[0, -1.7e308, 0, 1.7e308]]), np.array([0])), {}),
    ("Col2Im", (1, 1, 2), (np.array([1 << 62]), np.array([1])), {"pads": [1 << 62, 1 << 62], "strides": [(1 << 63) - 1]})])
def test_numbers_that_no_array_has_are_refused(name: str, shape: tuple[int, ...], values: tuple[object, ...],
                                               attributes: dict[str, object]) -> None:
    with pytest.raises(TypeFault):
        expand(name, shape, *values, **attributes)


def test_huge_operands_and_regions_are_read() -> None:
    assert expand("Resize", (1 << 28,), None, None, np.array([1]))
    assert expand("MaxRoiPool", (1, 1, 4, 4), np.array([[0, 0, -1.7e308, 0, 1.7e308]]), pooled_shape=[2, 2])


def test_both_names_of_the_standard_domain_are_one() -> None:
    assert called(onnx.helper.make_node("Softmax", ["x"], ["y"], domain="ai.onnx")) == ("", "Softmax", "")


def test_functions_that_double_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MAX_RUN", 1 << 13)
    monkeypatch.setattr(isolation, "MAX_SECONDS", 1)  # in which the onnx package finds no types of it
    h, sets = onnx.helper, [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("lab", 1)]
    functions = [h.make_function("lab", "f0", ["a"], ["b"], [h.make_node("Identity", ["a"], ["b"])], sets)]
    functions += [h.make_function("lab", f"f{i}", ["a"], ["b"], [h.make_node(f"f{i - 1}", [x], [y], domain="lab") for x, y in ("ac", "cb")],
                                  sets) for i in range(1, 45)]
    value = h.make_tensor_value_info
    graph = h.make_graph([h.make_node("f44", ["x"], ["y"], domain="lab")], "g", [value("x", 1, [2])], [value("y", 1, [2])])
    path = tmp_path / "double.onnx"
    path.write_bytes(h.make_model(graph, opset_imports=sets, functions=functions).SerializeToString())
    with pytest.raises(irscope.UserError, match="running functions and loops"):
        irscope.compile(str(path))


@pytest.mark.parametrize("statement", ["y = x not in x", "y = f(x, 1 + 1" + "0" * 400 + ")", "y = f(x, 0x" + "f" * 5000 + ")",
                                       "y = f(x, " + "not " * 700 + "1)", "+".join(["x"] * 1500)], ids=range(5))
def test_statements_that_fx_does_not_write_are_faults(statement: str) -> None:
    text = f'class GraphModule(torch.nn.Module):\n    def forward(self, x: "f32[3]"):\n        {statement}\n        return (x,)\n'
    assert irscope.load(text, format="export").findings


@pytest.mark.parametrize("text", [
    '    def forward(self, x: "f32[2]"):\n        # ' + "File: a:1 " * 4500 + "\n" + "".join(f"        y{i} = torch.ops.aten.relu.default(x)\n" for i in range(300)),
    '    def forward(self, x: "f32[2]"):\n        y = "' + '\\"' * 40_000 + "\n        return (x,)\n"], ids=["comments", "a string without end"])
def test_long_lines_of_fx_are_read_in_one_pass(text: str) -> None:
    with within(3):
        module = irscope.load("class GraphModule(torch.nn.Module):\n" + text, format="export").module()
        for node in module.main().nodes:
            module.call_stack(node)


@pytest.mark.parametrize("wrap", [lambda inner: {"as_optional_tensors": [inner]}, lambda inner: {"as_optional_tensor": inner}])
def test_optional_tensors_of_archives_hold_tensors_or_nothing(wrap: Callable[[dict[str, object]], dict[str, object]]) -> None:
    argument: dict[str, object] = {"as_none": True}
    assert Arguments({}).read(Record(wrap(argument), "inputs")) in (None, [None])
    for _ in range(5000):
        argument = wrap(argument)
    with pytest.raises(BadRecord, match="an optional tensor is as_tensor or as_none"):
        Arguments({}).read(Record(argument, "inputs"))
