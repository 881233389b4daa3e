"""The shape and element type of a weight, from each operator that determines them and from one that does not."""
from __future__ import annotations

import numpy as np
import pytest

from irscope.graph import TensorType
from irscope.source import UserError
from tests.expand.test_torchscript_weights import get, net
from tests.expand.torchscript_runs import primitive


def constants(**values: object) -> str:
    """Constants by name: integers, floats, lists of integers and texts."""
    def line(name: str, value: object) -> str:
        kind = {int: "int", float: "float", str: "str", list: "int[]", bool: "bool", type(None): "NoneType"}[type(value)]
        text = f'"{value}"' if isinstance(value, str) else str(int(value)) if isinstance(value, bool) else str(value)
        return f"  %{name} : {kind} = prim::Constant{'' if value is None else f'[value={text}]'}()\n"
    return "".join(line(name, value) for name, value in values.items())


def solved(statements: str, x: str = "Float(2, 6)", array: np.ndarray | None = None) -> dict[str, str]:
    """The types of the weights of a graph over ``%x``."""
    made = primitive(net(statements + "  return (%y)\n", x), {} if array is None else {"x": array})
    return {p.name: str(p.type) for p in made.main().params if isinstance(p.type, TensorType) and p.name != "x"}


def beside(operator: str, arguments: str, made: str, then: str = "", names: tuple[str, ...] = ("w",), **more: object) -> str:
    """``%v`` is what an operator makes of the weights; another operator behind it gives ``%y``."""
    return get(*names) + constants(one=1, zero=0, no=False, none=None, **more) + f"  %v : {made} = aten::{operator}({arguments})\n" + (
        then or "  %y : Float(2, 6) = aten::mul(%x, %v)\n")


ROW = "Float(6)"


@pytest.mark.parametrize(("statements", "types"), [
    *((beside(name, "%w", ROW), {"w": "f32[6]"}) for name in "detach relu exp neg sigmoid tanh abs sqrt alias".split()),
    *((beside(name, "%w, %none", ROW), {"w": "f32[6]"}) for name in ("contiguous", "clone")),
    (beside("softmax", "%w, %zero, %none", ROW), {"w": "f32[6]"}),
    (beside("dropout", "%w, %p, %no", ROW, p=0.5), {"w": "f32[6]"}),
    (beside("softplus", "%w, %one, %t", ROW, t=20), {"w": "f32[6]"}),
    (beside("slice", "%w, %zero, %zero, %six, %one", ROW, six=6), {"w": "f32[6]"}),
    (beside("neg", "%w", "Half(6)", "  %y : Half(6) = aten::relu(%v)\n"), {"w": "f16[6]"}),
    (beside("neg", "%w", "Long(6)", "  %y : Long(6) = aten::relu(%v)\n"), {"w": "s64[6]"}),
    (beside("unsqueeze", "%w, %zero", "Double(1, 6)", "  %y : Double(1, 6) = aten::relu(%v)\n"), {"w": "f64[6]"}),
    (beside("unsqueeze", "%w, %zero", "Int(1, 6)", "  %y : Int(1, 6) = aten::relu(%v)\n"), {"w": "s32[6]"}),
    (beside("transpose", "%w, %zero, %one", "Float(2, 6)"), {"w": "f32[6,2]"}),
    (beside("t", "%w", "Float(2, 6)"), {"w": "f32[6,2]"}),
    (beside("view", "%w, %sizes", "Float(2, 6)", sizes=[2, 6]), {"w": "f32[12]"}),
    (beside("reshape", "%w, %sizes", "Float(2, 6)", sizes=[2, -1]), {"w": "f32[12]"}),
    (beside("flatten", "%w, %zero, %m", ROW, m=-1), {"w": "f32[6]"}),
    (beside("expand", "%w, %sizes, %no", "Float(2, 6)", sizes=[2, -1]), {"w": "f32[1,6]"}),
    (beside("outer", "%w, %u", "Float(2, 6)", names=("w", "u")), {"w": "f32[2]", "u": "f32[6]"}),
    (beside("prelu", "%x, %w", "Float(2, 6)"), {"w": "f32[1]"}),
    (beside("group_norm", "%x, %two, %w, %b, %e, %no", "Float(2, 6)", names=("w", "b"), two=2, e=1e-05), {"w": "f32[6]", "b": "f32[6]"}),
    (beside("rms_norm", "%x, %sizes, %w, %e", "Float(2, 6)", sizes=[6], e=1e-05), {"w": "f32[6]"}),
    (beside("layer_norm", "%x, %sizes, %w, %b, %e, %no", "Float(2, 6)", names=("w", "b"), sizes=[2, 6], e=1e-05), {"w": "f32[2,6]", "b": "f32[2,6]"}),
    (beside("mm", "%x, %w", "Float(2, 4)", "  %y : Float(2, 4) = aten::relu(%v)\n"), {"w": "f32[6,4]"}),
    (beside("addmm", "%b, %x, %w, %one, %one", "Float(2, 4)", "  %y : Float(2, 4) = aten::relu(%v)\n", ("w", "b")), {"b": "f32[4]", "w": "f32[6,4]"}),
    (beside("linear", "%x, %w, %none", "Float(2, 4)", "  %y : Float(2, 4) = aten::relu(%v)\n"), {"w": "f32[4,6]"}),
    *((beside(name, "%x, %w", "Float(2, 6)"), {"w": "f32[6]"}) for name in "mul div maximum minimum pow".split()),
    *((beside(name, "%x, %w, %one", "Float(2, 6)"), {"w": "f32[6]"}) for name in ("add", "sub", "rsub")),
    (beside("mul_", "%x, %w", "Float(2, 6)"), {"w": "f32[6]"}),
    (beside("mul", "%w, %x", "Float(2, 6)"), {"w": "f32[6]"}),
    (beside("mul", "%x, %w", "Float(3, 2, 6)", "  %y : Float(3, 2, 6) = aten::relu(%v)\n"), {"w": "f32[3,2,6]"}),
    (beside("mul", "%w, %two", "Float(4)", "  %y : Float(4) = aten::relu(%v)\n", two=2), {"w": "f32[4]"}),
    (beside("mul", "%x, %w", "Double(2, 6)", "  %y : Double(2, 6) = aten::relu(%v)\n"), {"w": "f64[6]"}),
])
def test_types_of_weights(statements: str, types: dict[str, str]) -> None:
    assert solved(statements) == types


@pytest.mark.parametrize(("indices", "made", "rows"), [([3, 1], "Float(2, 5)", 4), ([0, 0], "Float(2, 5)", 1), ([[6, 2]], "Float(1, 2, 5)", 7)])
def test_a_table_has_the_rows_that_its_indices_need(indices: list[int], made: str, rows: int) -> None:
    array = np.array(indices)
    shape = ", ".join(map(str, array.shape))
    statements = get("w") + f"  %i : Tensor?[] = prim::ListConstruct(%x)\n  %y : {made} = aten::index(%w, %i)\n"
    assert solved(statements, f"Long({shape})", array) == {"w": f"f32[{rows},5]"}


def convolution(operator: str, rank: int, made: str, tail: str, kernels: dict[str, object], bias: str = "b") -> str:
    """A convolution whose lists of sizes have an element for each of ``rank`` dimensions."""
    lists = {name: [n] * rank if isinstance(n, int) else n for name, n in {"s": 1, "p": 0, "d": 1, "z": 0, **kernels}.items()}
    g = lists.pop("g", [1])
    return get("w", *([bias] if bias == "b" else [])) + constants(no=False, none=None, g=g[0] if isinstance(g, list) else g, **lists) + (
        f"  %y : {made} = aten::{operator}(%x, %w, %{bias}, %s, %p, %d{tail})\n")


@pytest.mark.parametrize(("statements", "x", "types"), [
    (convolution("conv1d", 1, "Float(1, 8, 30)", ", %g", {}), "Float(1, 6, 32)", {"w": "f32[8,6,3]", "b": "f32[8]"}),
    (convolution("conv2d", 2, "Float(1, 8, 30, 28)", ", %g", {}), "Float(1, 6, 32, 32)", {"w": "f32[8,6,3,5]", "b": "f32[8]"}),
    (convolution("conv3d", 3, "Float(1, 8, 7, 7, 7)", ", %g", {}), "Float(1, 6, 9, 9, 9)", {"w": "f32[8,6,3,3,3]", "b": "f32[8]"}),
    (convolution("conv2d", 2, "Float(1, 8, 32, 32)", ", %g", {"p": 1, "g": 2}), "Float(1, 6, 32, 32)", {"w": "f32[8,3,3,3]", "b": "f32[8]"}),
    (convolution("conv2d", 2, "Float(1, 8, 32, 32)", ", %g", {"p": 2, "d": 2}), "Float(1, 6, 32, 32)", {"w": "f32[8,6,3,3]", "b": "f32[8]"}),
    (convolution("conv2d", 2, "Float(1, 8, 30, 30)", ", %g", {}, "none"), "Float(1, 6, 32, 32)", {"w": "f32[8,6,3,3]"}),
    (convolution("conv2d", 2, "Float(1, 8, 8, 8)", ", %g", {"s": 4}), "Float(1, 6, 32, 32)", {"w": "f32[8,6,4,4]", "b": "f32[8]"}),
    (convolution("conv2d", 2, "Float(1, 8, 7, 7)", ", %g", {"s": 4}), "Float(1, 6, 31, 31)", {"w": "f32[8,6,7,7]", "b": "f32[8]"}),
    (convolution("conv2d", 2, "Float(1, 8, 16, 16)", ", %g", {"s": 2}, "none"), "Float(1, 6, 32, 32)", {"w": "f32[8,6,1,1]"}),
    (convolution("convolution", 2, "Float(1, 8, 30, 30)", ", %no, %z, %g", {}), "Float(1, 6, 32, 32)", {"w": "f32[8,6,3,3]", "b": "f32[8]"}),
    (convolution("_convolution_mode", 2, "Float(1, 8, 30, 30)", ", %g", {"p": "valid"}), "Float(1, 6, 32, 32)", {"w": "f32[8,6,3,3]", "b": "f32[8]"}),
])
def test_kernels(statements: str, x: str, types: dict[str, str]) -> None:
    assert solved(statements, x) == types


def recurrent(operator: str, state: str, arguments: str, layers: int, biases: bool, both: bool) -> str:
    names = [f"w{i}" for i in range(layers * (1 + both) * (4 if biases else 2))]
    listed = ", ".join(f"%{name}" for name in names)
    result = "%y : Float(5, 2, 4), %h : Tensor, %c : Tensor" if operator == "lstm" else "%y : Float(5, 2, 4), %h : Tensor"
    return (get(*names) + state + constants(biases=biases, layers=layers, p=0.0, no=False, both=both)
            + f"  %ws : Tensor[] = prim::ListConstruct({listed})\n  {result} = aten::{operator}(%x, {arguments}, %ws, %biases, %layers, %p, %no, %both, %no)\n")


STATE = "  %sizes : int[] = prim::Constant[value=[{}, 2, 4]]()\n  %nil : NoneType = prim::Constant()\n" \
    "  %s : Float({}, 2, 4) = aten::zeros(%sizes, %nil, %nil, %nil, %nil)\n"
PAIR = "  %pair : Tensor[] = prim::ListConstruct(%s, %s)\n"


@pytest.mark.parametrize(("operator", "layers", "biases", "both", "shapes"), [
    ("gru", 1, True, False, ["12,3", "12,4", "12", "12"]), ("rnn_tanh", 1, True, False, ["4,3", "4,4", "4", "4"]), ("rnn_relu", 1, False, False, ["4,3", "4,4"]),
    ("lstm", 1, True, False, ["16,3", "16,4", "16", "16"]), ("lstm", 2, False, False, ["16,3", "16,4", "16,4", "16,4"]),
    ("gru", 1, False, True, ["12,3", "12,4"] * 2), ("gru", 2, False, True, ["12,3", "12,4"] * 2 + ["12,8", "12,4"] * 2),
])
def test_parameters_of_recurrent_networks(operator: str, layers: int, biases: bool, both: bool, shapes: list[str]) -> None:
    states = layers * (1 + both)
    state = STATE.format(states, states) + (PAIR if operator == "lstm" else "")
    made = solved(recurrent(operator, state, "%pair" if operator == "lstm" else "%s", layers, biases, both), "Float(5, 2, 3)")
    assert made == {f"w{i}": f"f32[{shape}]" for i, shape in enumerate(shapes)}


@pytest.mark.parametrize("statements", [
    convolution("conv2d", 2, "Tensor", ", %g", {}, "none"), convolution("conv2d", 2, "Float(1, 8, 32, 32)", ", %g", {"p": "same"}),
    convolution("conv2d", 2, "Float(1, 8, 40, 40)", ", %g", {}), get("w") + "  %y : Tensor = aten::relu(%w)\n", get("w") + "  %y : Tensor = aten::t(%w)\n",
    get("w") + "  %y : Tensor = aten::matmul(%x, %w)\n", get("w") + "  %y : Float(2, 6) = aten::cumsum(%w, %x)\n",
    *(get("w") + constants(a=a, b=b) + "  %y : Float(2, 6) = aten::transpose(%w, %a, %b)\n"
      for a, b in ((0, 2), (2, 0), (1, -3), (-3, 1), (0, None), (None, 0))),  # a dimension that the result does not have, or none
])
def test_shapes_that_nothing_determines(statements: str) -> None:
    with pytest.raises(UserError, match="the text does not say the shape of weight 'w'"):
        solved(statements, "Float(1, 6, 32, 32)")
