"""Values that hold others: their leaves, their text in messages, and shapes of weights by each rule."""
from __future__ import annotations

from typing import Any

import pytest

from irscope.expand.torchscript.merging import MISSING, MergedLeaf, unified
from irscope.expand.torchscript.structure import describe, flatten, has_optional, has_tensor, node_of, rebuild
from irscope.expand.torchscript.weights import (
    ELEMENTWISE,
    GATES,
    PARTS,
    RESHAPING,
    RULES,
    SAME,
    ShapeRequest,
    _beside,
    nearest,
    recurrent_names,
)
from irscope.formats.torchscript.abstract import UNINITIALIZED, FunctionRef, Maybe, ModuleRef, Scalar, Tensor
from irscope.graph import Builder, Graph, TensorType
from irscope.graph.dtypes import F32, S64
from irscope.ops import hlo
from tests.expand.test_torchscript_weights import get, net, shapes_of
from tests.expand.torchscript_runs import primitive

BUILDER = Builder(Graph("g"))
NODE = BUILDER.param(hlo.parameter, TensorType(F32, (2, 3)), "x")
NUMBER = BUILDER.param(hlo.parameter, TensorType(S64, ()), "n")
T, S = Tensor(NODE), Scalar(NUMBER, "int")


@pytest.mark.parametrize(("value", "leaves"), [
    ([1, [2, (3, None)]], [1, 2, 3]), ({"a": 1, "b": [2]}, [1, 2]), (Maybe(True, [1, 2]), [True, 1, 2]), (None, []), (5, [5]), ("ab", ["ab"]), ([], []),
])
def test_leaves_of_a_value_and_back(value: Any, leaves: list[Any]) -> None:
    assert flatten(value) == leaves
    again = rebuild(value, leaves)
    assert type(again) is type(value) and flatten(again) == leaves
    assert repr(again) == repr(value)


@pytest.mark.parametrize(("value", "text"), [
    (T, "f32[2,3]"), (S, "int"), (3, "3"), ("a", "'a'"), ([1, 2, 3, 4], "[1, 2, 3, 4]"), ([1, 2, 3, 4, 5], "[1, 2, 3, 4, ...]"), ([], "[]"),
    ((1, T), "(1, f32[2,3])"), ((1, 2, 3, 4, 5), "(1, 2, 3, 4, ...)"), ({"a": T}, "{'a': f32[2,3]}"),
    (dict.fromkeys("abcd", 1), "{'a': 1, 'b': 1, 'c': 1, 'd': 1}"), (dict.fromkeys("abcde", 1), "{'a': 1, 'b': 1, 'c': 1, 'd': 1, ...}"),
    (Maybe(True, T), "f32[2,3] or None, which depends on data"), (FunctionRef("sub"), "the attribute 'sub', which the text does not have"),
    (ModuleRef("net.fc", "M"), "object net.fc"), (None, "None"),
])
def test_a_value_in_a_message(value: Any, text: str) -> None:
    assert describe(value) == text


def test_what_a_value_holds() -> None:
    assert has_tensor([1, {"a": (S,)}]) and has_tensor(T) and not has_tensor([1, "a", None])
    assert has_optional([1, ({"a": Maybe(True, 1)},)]) and not has_optional([1, {"a": T}])
    inner: Any = (1,)
    for _ in range(60):
        inner = (inner, inner)
    assert not has_optional(inner)
    assert node_of([T, [1]]) == [NODE, [1]] and node_of(T) is NODE and node_of(5) == 5


def test_two_ways_are_merged() -> None:
    other = Tensor(NUMBER)
    assert unified(T, T) is T
    assert unified(2, 2) == 2 and unified("a", "a") == "a"
    leaf = unified([T, 1], [other, 1])
    assert isinstance(leaf[0], MergedLeaf) and (leaf[0].first, leaf[0].second, leaf[1]) == (T, other, 1)
    assert isinstance(unified(1, 2), MergedLeaf) and isinstance(unified(True, 1), MergedLeaf) and isinstance(unified(S, 1), MergedLeaf)
    one = unified(UNINITIALIZED, (T, {"a": 3}))
    assert type(one) is tuple and (one[0].first, one[0].second) == (MISSING, T) and one[1] == {"a": 3}
    two = unified([T], UNINITIALIZED)
    assert (two[0].first, two[0].second) == (T, MISSING)
    both = unified({"a": T}, {"a": other})
    assert list(both) == ["a"] and both["a"].second is other


@pytest.mark.parametrize(("a", "b", "said"), [
    ([1], [1, 2], "one way has a list of 1, the other a list of 2"), ((1,), [1], r"one way returns \(1\), the other \[1\]"),
    ({"a": 1}, {"b": 1}, r"the keys \['a'\], the other \['b'\]"), ("a", "b", "one way returns 'a', the other 'b'"), ("a", 1, "one way returns 'a', the other 1"),
])
def test_ways_that_cannot_be_merged(a: Any, b: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        unified(a, b)


LIST = "  %{0} : int[] = prim::Constant[value=[{1}]]()\n"
NUM = "  %{0} : int = prim::Constant[value={1}]()\n"
FALSE = "  %f : bool = prim::Constant[value=0]()\n"
EPS = "  %e : float = prim::Constant[value=1e-05]()\n"
WEIGHTS = {
    "linear of three dimensions": (get("w") + "  %b : NoneType = prim::Constant()\n  %y : Float(2, 5, 4) = aten::linear(%x, %w, %b)\n  return (%y)\n",
                                   "Float(2, 5, 6)", {"w": (4, 6)}),
    "mm": (get("w") + "  %y : Float(2, 4) = aten::mm(%x, %w)\n  return (%y)\n", "Float(2, 6)", {"w": (6, 4)}),
    "prelu": (get("w") + "  %y : Float(2, 6) = aten::prelu(%x, %w)\n  return (%y)\n", "Float(2, 6)", {"w": (1,)}),
    "outer": (get("w", "v") + "  %o : Float(2, 6) = aten::outer(%w, %v)\n  %y : Float(2, 6) = aten::add(%x, %o, %i)\n  return (%y)\n", "Float(2, 6)",
              {"w": (2,), "v": (6,)}),
    "group norm": (get("w", "b") + NUM.format("g", 2) + EPS + FALSE + "  %y : Float(2, 6, 5) = aten::group_norm(%x, %g, %w, %b, %e, %f)\n  return (%y)\n",
                   "Float(2, 6, 5)", {"w": (6,), "b": (6,)}),
    "rms norm": (get("w") + LIST.format("s", "5") + EPS + "  %y : Float(2, 6, 5) = aten::rms_norm(%x, %s, %w, %e)\n  return (%y)\n", "Float(2, 6, 5)", {"w": (5,)}),
    "instance norm": (get("w", "b") + "  %n : NoneType = prim::Constant()\n" + EPS + FALSE + "  %t : bool = prim::Constant[value=1]()\n"
                      "  %y : Float(2, 6, 5) = aten::instance_norm(%x, %w, %b, %n, %n, %t, %e, %e, %f)\n  return (%y)\n", "Float(2, 6, 5)", {"w": (6,), "b": (6,)}),
    "viewed": (get("w") + LIST.format("s", "1, 6") + "  %v : Float(1, 6) = aten::view(%w, %s)\n  %y : Float(2, 6) = aten::mul(%x, %v)\n  return (%y)\n",
               "Float(2, 6)", {"w": (6,)}),
    "an embedding of known indices": (get("w") + LIST.format("s", "0, 3, 9") + "  %n : NoneType = prim::Constant()\n" + NUM.format("m", -1) + FALSE
                                      + "  %k : Long(3) = aten::tensor(%s, %n, %n, %f)\n  %u : Float(3, 6) = aten::embedding(%w, %k, %m, %f, %f)\n"
                                      + LIST.format("d", "0") + "  %r : Float(6) = aten::sum(%u, %d, %f, %n)\n  %y : Float(2, 6) = aten::add(%x, %r, %i)\n"
                                      "  return (%y)\n", "Float(2, 6)", {"w": (1000, 6)}),
    "a group of channels": (get("w", "b") + LIST.format("s", "1") + LIST.format("p", "1") + LIST.format("d", "1") + NUM.format("g", 3)
                            + "  %y : Float(2, 6, 8) = aten::conv1d(%x, %w, %b, %s, %p, %d, %g)\n  return (%y)\n", "Float(2, 3, 8)", {"w": (6, 1, 3), "b": (6,)}),
    "a dilated kernel": (get("w", "b") + LIST.format("s", "1") + LIST.format("p", "2") + LIST.format("d", "2") + NUM.format("g", 1)
                         + "  %y : Float(2, 6, 8) = aten::conv1d(%x, %w, %b, %s, %p, %d, %g)\n  return (%y)\n", "Float(2, 3, 8)", {"w": (6, 3, 3), "b": (6,)}),
    "through other operators": (get("w") + "  %t : Float(6) = aten::relu(%w)\n  %u : Float(6) = aten::sigmoid(%t)\n  %y : Float(2, 6) = aten::mul(%x, %u)\n"
                                "  return (%y)\n", "Float(2, 6)", {"w": (6,)}),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_shape_of_a_weight(name: str) -> None:
    body, x, shapes = WEIGHTS[name]
    text = net(NUM.format("i", 1) + body, x)
    assert {name: shape for name, shape in shapes_of(primitive(text, {})).items() if name != "x"} == shapes


@pytest.mark.parametrize(("kind", "gates"), [("lstm", 4), ("gru", 3), ("rnn_tanh", 1), ("rnn_relu", 1)])
@pytest.mark.parametrize(("layers", "both", "biases"), [(1, False, True), (2, True, True), (2, False, False)])
def test_the_weights_of_a_recurrent_network(kind: str, gates: int, layers: int, both: bool, biases: bool) -> None:
    ways = 1 + both
    names = [f"{part}{layer}{way}" for layer in range(layers) for way in "ab"[:ways] for part in ("i", "h", *(("p", "q") if biases else ()))]
    state = f"Float({layers * ways}, 2, 5)"
    zeros = LIST.format("z", f"{layers * ways}, 2, 5") + "  %n : NoneType = prim::Constant()\n" + f"  %s : {state} = aten::zeros(%z, %n, %n, %n, %n)\n"
    given = "  %hx : Tensor[] = prim::ListConstruct(%s, %s)\n" if kind == "lstm" else ""
    results = "%y : Float, %hn : Tensor, %cn : Tensor" if kind == "lstm" else "%y : Float, %hn : Tensor"
    text = net(get(*names) + zeros + given + f"  %ws : Tensor[] = prim::ListConstruct({', '.join('%' + n for n in names)})\n"
               f"  %has : bool = prim::Constant[value={int(biases)}]()\n" + NUM.format("l", layers) + FALSE
               + f"  %both : bool = prim::Constant[value={int(both)}]()\n  %d : float = prim::Constant[value=0]()\n"
               f"  {results} = aten::{kind}(%x, %{'hx' if kind == 'lstm' else 's'}, %ws, %has, %l, %d, %f, %both, %f)\n  return (%y)\n", "Float(7, 2, 3)")
    shapes = [{"i": (gates * 5, 5 * ways if layer else 3), "h": (gates * 5, 5), "p": (gates * 5,), "q": (gates * 5,)} for layer in range(layers)]
    found = shapes_of(primitive(text, {}))
    assert {n: s for n, s in found.items() if n != "x"} == {name: shapes[int(name[1])][name[0]] for name in names}


def test_parameters_of_a_recurrent_module_are_in_its_order() -> None:
    known = ["rnn.bias_hh_l0", "rnn.weight_ih_l1", "rnn.weight_hh_l0_reverse", "rnn.weight_hh_l0", "rnn.weight_ih_l0", "rnn.bias_ih_l0", "rnn.weight_hr_l0",
             "rnn.other", "fc.weight_ih_l0", "rnn.weight_ih_l10", "rnn.weight_ih_l0_reverse"]
    assert recurrent_names("rnn", known) == ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0", "weight_ih_l0_reverse",
                                             "weight_hh_l0_reverse", "weight_ih_l1", "weight_ih_l10"]
    assert recurrent_names("", ["weight_ih_l0", "a.weight_ih_l0"]) == ["weight_ih_l0"]


@pytest.mark.parametrize(("path", "known", "said"), [
    ("fc.weight", ["model.fc.weight"], "the file has 'model.fc.weight': rename its entries"),
    ("model.fc.weight", ["fc.weight"], "the file has 'fc.weight': rename its entries"),
    ("fc.weight", ["fc.weigth"], "did you mean fc.weigth?"),
    ("fc.weight", list("abcde"), "the file has a, b, c, d, e; torch.save"),
    ("fc.weight", list("abcdefg"), "the file has a, b, c, d, e and 2 more; torch.save"),
])
def test_the_nearest_name_in_a_file(path: str, known: list[str], said: str) -> None:
    assert nearest(path, known).startswith(said)


def test_every_rule_of_weights_is_named() -> None:
    assert PARTS == ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "weight_hr") and GATES == {
        "aten::lstm": 4, "aten::gru": 3, "aten::rnn_tanh": 1, "aten::rnn_relu": 1}
    assert {name.removeprefix("aten::") for name in RULES} == set(
        "linear matmul mm addmm embedding _convolution convolution _convolution_mode conv1d conv2d conv3d expand index unsqueeze transpose t outer prelu "
        "group_norm batch_norm instance_norm layer_norm rms_norm view reshape flatten".split())


def array(*shape: int) -> Tensor:
    """A tensor of a known shape."""
    return Tensor(BUILDER.param(hlo.parameter, TensorType(F32, shape), "t"))


def inferred(name: str, values: list[Any], place: int, result: tuple[int, ...] | None) -> tuple[int, ...] | None:
    first = values[0] if values else None
    type = first.get().type if isinstance(first, Tensor) else None
    x = type.dims() if isinstance(type, TensorType) else None
    return RULES[f"aten::{name}"](ShapeRequest(None, values, place, x, result))  # type: ignore[arg-type]


X6, M46, B4 = array(2, 6), array(4, 6), array(4)
CONV = [array(2, 3, 8), None, None, [1], [1], [1], 1]


@pytest.mark.parametrize(("name", "values", "place", "result", "shape"), [
    ("linear", [X6, None, None], 1, (2, 4), (4, 6)), ("linear", [X6, None, B4], 1, None, (4, 6)), ("linear", [X6, M46, None], 2, None, (4,)),
    ("linear", [X6, None, None], 2, (2, 4), (4,)), ("linear", [X6, None, None], 1, None, None), ("linear", [None, None, None], 1, (2, 4), None),
    ("linear", [None, None, None], 2, (2, 4), (4,)),
    ("matmul", [X6, None], 1, (2, 4), (6, 4)), ("matmul", [None, X6], 0, (3, 6), None), ("matmul", [X6, None], 1, None, None),
    ("addmm", [None, X6, M46], 0, (2, 4), (4,)), ("addmm", [None, X6, None], 2, (2, 4), (6, 4)), ("addmm", [None, X6, None], 0, None, None),
    ("embedding", [None, X6], 1, (2, 6, 5), None), ("embedding", [None, X6], 0, None, None),
    ("index", [None, [X6]], 1, (2, 6, 5), None), ("index", [None, [X6]], 0, None, None), ("index", [None, X6], 0, (2, 6, 5), None),
    ("index", [None, [X6, X6]], 0, (2, 6, 5), None),
    ("expand", [None, [2, -1, -1]], 0, (2, 3, 4), (1, 3, 4)), ("expand", [None, [2, -1]], 1, (2, 3), None), ("expand", [None, [2, -1]], 0, None, None),
    ("expand", [None, 3], 0, (2, 3), None),
    ("unsqueeze", [None, 0], 0, (1, 6), (6,)), ("unsqueeze", [None, -1], 0, (6, 1), (6,)), ("unsqueeze", [None, 1], 0, (2, 1, 6), (2, 6)),
    ("unsqueeze", [None, 1], 0, None, None),
    ("transpose", [None, 0, 1], 0, (2, 3, 4), (3, 2, 4)), ("transpose", [None, -1, 0], 0, (2, 3, 4), (4, 3, 2)), ("transpose", [None, 0, 1], 0, None, None),
    ("t", [None], 0, (2, 3), (3, 2)), ("t", [None], 0, None, None), ("outer", [None, None], 0, (2, 3), (2,)), ("outer", [None, None], 1, (2, 3), (3,)),
    ("outer", [None, None], 1, None, None), ("prelu", [X6, None], 1, None, (1,)), ("prelu", [None, X6], 0, None, None),
    ("group_norm", [X6, 2, None, None], 2, None, (6,)), ("group_norm", [X6, 2, None, None], 1, None, None), ("group_norm", [None, 2, None, None], 2, (2, 6), None),
    ("batch_norm", [X6, None], 1, None, (6,)), ("batch_norm", [B4, None], 1, None, None), ("instance_norm", [X6, None], 1, None, (6,)),
    ("batch_norm", [None, None], 1, (2, 6), None),
    ("layer_norm", [X6, [6], None], 2, None, (6,)), ("rms_norm", [X6, [2, 6], None], 2, None, (2, 6)), ("layer_norm", [X6, None, None], 2, None, None),
    ("view", [None, [2, 3]], 0, (2, 3), (6,)), ("reshape", [None, [2, 3]], 0, (2, 3), (6,)), ("flatten", [None], 0, (2, 3), (6,)), ("view", [None], 0, None, None),
    ("conv1d", CONV, 1, (2, 5, 8), (5, 3, 3)), ("conv1d", CONV, 2, (2, 5, 8), (5,)), ("conv1d", CONV, 1, None, None),
    ("conv1d", [CONV[0], None, B4, *CONV[3:]], 2, None, (4,)), ("conv1d", [CONV[0], None, B4, *CONV[3:]], 1, None, None),
    ("conv1d", [None, *CONV[1:]], 1, (2, 5, 8), None), ("conv1d", [*CONV[:3], [1], ["same"], [1], 1], 1, (2, 5, 8), None),
    ("conv1d", [*CONV[:3], [1], ["valid"], [1], 1], 1, (2, 5, 6), (5, 3, 3)), ("conv1d", [*CONV[:3], [1], [1], [1], 3], 1, (2, 6, 8), (6, 1, 3)),
    ("conv1d", [*CONV[:3], [1], [0], [1], 1], 1, (2, 5, 9), None), ("conv1d", [*CONV[:3], [1], [2], [2], 1], 1, (2, 5, 8), (5, 3, 3)),
    ("conv1d", [*CONV[:3], [2], [1], [1], 1], 1, (2, 5, 4), (5, 3, 3)), ("conv1d", [*CONV[:3], [4], [0], [1], 1], 1, (2, 5, 2), (5, 3, 4)),
    ("conv1d", [*CONV[:3], [2], [0], [1], 1], 1, (2, 5, 4), (5, 3, 1)), ("conv1d", [*CONV[:2], B4, [2], [0], [1], 1], 1, (2, 5, 4), (5, 3, 2)),
    ("conv1d", [*CONV[:3], [1], [0], [3], 1], 1, (2, 5, 2), (5, 3, 3)), ("conv1d", [*CONV[:3], [1], [0], [1], 1], 1, (2, 5, 5), (5, 3, 4)),
    ("conv1d", [*CONV[:3], [2], [1], [1], 1], 1, (2, 5, 5), (5, 3, 2)), ("conv1d", [*CONV[:3], [2], [2], [2], 1], 1, (2, 5, 4), (5, 3, 3)),
    ("conv1d", [*CONV[:3], [3], [2], [1], 1], 1, (2, 5, 4), (5, 3, 3)), ("conv1d", [*CONV[:3], [1], [3], [1], 1], 1, (2, 5, 8), (5, 3, 7)),
    ("_convolution", [*CONV[:3], [2], [1], [1], True, [1], 1], 1, (2, 5, 16), (3, 5, 3)),
    ("_convolution", [*CONV[:3], [1], [1], [2], True, [0], 3], 1, (2, 6, 10), (3, 2, 3)),
    ("_convolution", [*CONV[:3], [1], [1], [1], False, [0], 1], 1, (2, 5, 8), (5, 3, 3)),
])
def test_a_rule_for_the_shape_of_a_weight(name: str, values: list[Any], place: int, result: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> None:
    assert inferred(name, values, place, result) == shape


@pytest.mark.parametrize(("values", "place", "result", "shape"), [
    ([X6, None], 1, None, (6,)), ([X6, None], 1, (2, 6), (6,)), ([None, X6], 0, (2, 6), (6,)), ([X6, None], 1, (3, 2, 6), (3, 2, 6)), ([None, 2], 0, (2, 6), (2, 6)),
    ([None, None], 0, None, None), ([array(), None], 1, (2, 6), (2, 6)),
])
def test_a_weight_beside_another_operand(values: list[Any], place: int, result: tuple[int, ...] | None, shape: tuple[int, ...] | None) -> None:
    assert _beside(ShapeRequest(None, values, place, None, result)) == shape  # type: ignore[arg-type]


def test_operators_that_keep_a_shape_are_named() -> None:
    names = "detach contiguous clone relu exp neg sigmoid tanh softplus softmax abs sqrt slice dropout alias to float"
    assert {f"aten::{name}" for name in names.split()} == SAME
    assert {f"aten::{name}" for name in "expand unsqueeze transpose view reshape flatten index".split()} == RESHAPING
    assert {f"aten::{name}" for name in "add sub mul div rsub maximum minimum pow".split()} == ELEMENTWISE
