"""Weights of a program: given by path, solved from the operators beside them, or told by name when they do not fit."""
from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irscope.expand.torchscript.constants import elided_constants
from irscope.graph import Module, TensorType
from irscope.source import UserError
from tests.expand.torchscript_runs import graph, module_of, primitive, run
from tests.lower.whole import reference


def net(statements: str, x: str = "Float(2, 6)") -> str:
    """A graph with an object; ``statements`` are indented by two."""
    return f"graph(%self : __torch__.Net,\n      %x : {x}):\n{statements}"


def shapes_of(made: Module) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs by name."""
    return {p.name: p.type.dims() for p in made.main().params if isinstance(p.type, TensorType)}


def get(*names: str) -> str:
    return "".join(f'  %{n} : Tensor = prim::GetAttr[name="{n}"](%self)\n' for n in names)


SOLVED = {
    "linear": (net(get("w", "b") + "  %y : Float(2, 4) = aten::linear(%x, %w, %b)\n  return (%y)\n"), {"w": (4, 6), "b": (4,)}),
    "matmul": (net(get("w") + "  %y : Float(2, 4) = aten::matmul(%x, %w)\n  return (%y)\n"), {"w": (6, 4)}),
    "addmm": (net(get("w", "b") + "  %o : int = prim::Constant[value=1]()\n  %y : Float(2, 4) = aten::addmm(%b, %x, %w, %o, %o)\n  return (%y)\n"),
              {"w": (6, 4), "b": (4,)}),
    "transposed": (net(get("w") + "  %t : Float(6, 4) = aten::t(%w)\n  %y : Float(2, 4) = aten::matmul(%x, %t)\n  return (%y)\n"), {"w": (4, 6)}),
    "norm": (net(get("w", "b") + "  %s : int[] = prim::Constant[value=[6]]()\n  %e : float = prim::Constant[value=1e-05]()\n"
                 "  %c : bool = prim::Constant[value=0]()\n  %y : Float(2, 6) = aten::layer_norm(%x, %s, %w, %b, %e, %c)\n  return (%y)\n"),
             {"w": (6,), "b": (6,)}),
    "batch norm": (net(get("w", "b", "m", "v") + "  %f : bool = prim::Constant[value=0]()\n  %e : float = prim::Constant[value=1e-05]()\n"
                       "  %y : Float(2, 6) = aten::batch_norm(%x, %w, %b, %m, %v, %f, %e, %e, %f)\n  return (%y)\n"),
                   {"w": (6,), "b": (6,), "m": (6,), "v": (6,)}),
    "beside": (net(get("w") + "  %y : Float(2, 6) = aten::mul(%x, %w)\n  return (%y)\n"), {"w": (6,)}),
    "column": (net(get("w") + "  %o : int = prim::Constant[value=1]()\n  %u : Float(2, 1) = aten::unsqueeze(%w, %o)\n"
                   "  %y : Float(2, 6) = aten::mul(%x, %u)\n  return (%y)\n"), {"w": (2,)}),
    "column from the end": (net(get("w") + "  %o : int = prim::Constant[value=-2]()\n  %u : Float(1, 6) = aten::unsqueeze(%w, %o)\n"
                                "  %y : Float(2, 6) = aten::mul(%x, %u)\n  return (%y)\n"), {"w": (6,)}),
    "swapped": (net(get("w") + "  %a : int = prim::Constant[value=0]()\n  %b : int = prim::Constant[value=-1]()\n"
                    "  %t : Float(6, 4) = aten::transpose(%w, %a, %b)\n  %y : Float(2, 4) = aten::matmul(%x, %t)\n  return (%y)\n"), {"w": (4, 6)}),
    "token": (net(get("w") + "  %s : int[] = prim::Constant[value=[2, -1, -1]]()\n  %f : bool = prim::Constant[value=0]()\n"
                  "  %y : Float(2, 1, 6) = aten::expand(%w, %s, %f)\n  return (%y)\n"), {"w": (1, 1, 6)}),
}


@pytest.mark.parametrize("name", sorted(SOLVED))
def test_shapes_are_solved_from_neighbours(name: str) -> None:
    text, shapes = SOLVED[name]
    params = shapes_of(primitive(text, {}))
    assert {name: shape for name, shape in params.items() if name != "x"} == shapes


def convolution(made: tuple[int, int], stride: int, padding: int) -> str:
    return net(get("w", "b") + f"""  %s : int[] = prim::Constant[value=[{stride}, {stride}]]()
  %p : int[] = prim::Constant[value=[{padding}, {padding}]]()
  %d : int[] = prim::Constant[value=[1, 1]]()
  %z : int[] = prim::Constant[value=[0, 0]]()
  %f : bool = prim::Constant[value=0]()
  %g : int = prim::Constant[value=1]()
  %y : Float(1, 8, {made[0]}, {made[1]}) = aten::_convolution(%x, %w, %b, %s, %p, %d, %f, %z, %g, %f, %f, %f, %f)
  return (%y)
""", "Float(1, 3, 32, 32)")


@pytest.mark.parametrize(("made", "stride", "padding", "kernel"), [
    ((32, 32), 1, 1, 3), ((30, 30), 1, 0, 3), ((16, 16), 2, 1, 3), ((16, 16), 2, 3, 7), ((4, 4), 8, 0, 8), ((28, 28), 1, 0, 5),
])
def test_a_kernel_is_solved_from_the_sizes(made: tuple[int, int], stride: int, padding: int, kernel: int) -> None:
    shapes = shapes_of(primitive(convolution(made, stride, padding), {}))
    assert shapes["w"] == (8, 3, kernel, kernel)
    assert shapes["b"] == (8,)


def transposed(size: int, made: int, stride: int, padding: int, extra: int, dilation: int) -> str:
    lists = {"s": stride, "p": padding, "d": dilation, "z": extra}
    constants = "".join(f"  %{name} : int[] = prim::Constant[value=[{n}, {n}]]()\n" for name, n in lists.items())
    return net(get("w", "b") + constants + f"""  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %g : int = prim::Constant[value=2]()
  %y : Float(1, 8, {made}, {made}) = aten::_convolution(%x, %w, %b, %s, %p, %d, %t, %z, %g, %f, %f, %f, %f)
  return (%y)
""", f"Float(1, 6, {size}, {size})")


@pytest.mark.parametrize(("size", "stride", "padding", "extra", "dilation", "kernel"), [
    (8, 2, 0, 0, 1, 2), (8, 2, 1, 1, 1, 3), (8, 1, 1, 0, 1, 3), (8, 2, 1, 0, 1, 4), (5, 3, 2, 2, 2, 3), (4, 1, 0, 0, 3, 5),
])
def test_a_transposed_kernel_is_solved_from_the_sizes(size: int, stride: int, padding: int, extra: int, dilation: int, kernel: int) -> None:
    # The size of ConvTranspose2d, from torch's documentation.
    made = (size - 1) * stride - 2 * padding + dilation * (kernel - 1) + extra + 1
    shapes = shapes_of(primitive(transposed(size, made, stride, padding, extra, dilation), {}))
    assert (shapes["w"], shapes["b"]) == ((6, 4, kernel, kernel), (8,))


def test_a_step_of_two_is_a_shortcut_without_a_bias_and_merges_patches_with_one() -> None:
    with_bias = convolution((16, 16), 2, 0)
    without = with_bias.replace("%b : Tensor = prim::GetAttr", "%unused : Tensor = prim::GetAttr").replace(
        "  %s : int[]", "  %b : NoneType = prim::Constant()\n  %s : int[]")
    assert shapes_of(primitive(with_bias, {}))["w"] == (8, 3, 2, 2)
    assert shapes_of(primitive(without, {}))["w"] == (8, 3, 1, 1)


EMBEDDING = net(get("w") + "  %m : int = prim::Constant[value=-1]()\n  %f : bool = prim::Constant[value=0]()\n"
                "  %y : Float(2, 3, 5) = aten::embedding(%w, %x, %m, %f, %f)\n  return (%y)\n", "Long(2, 3)")


def test_an_embedding_has_the_rows_that_the_indices_need() -> None:
    made = primitive(EMBEDDING, {"x": np.array([[1, 2, 77], [0, 0, 3]])})
    assert shapes_of(made)["w"] == (78, 5)


def test_what_nothing_fixes_is_asked_for() -> None:
    text = net(get("w") + "  %y : Float(2, 6) = my::op(%x, %w)\n  %z : Float(6) = aten::sum(%w)\n  return (%z)\n").replace(
        "  %y : Float(2, 6) = my::op(%x, %w)\n", "").replace("aten::sum(%w)", "aten::sum(%w) # net.py:7:3")
    with pytest.raises(UserError) as raised:
        primitive(text, {})
    assert re.search(r"shape of weight 'w', which %z = aten::sum takes \(net.py:7:3\)", raised.value.message)
    assert "--weights w.pt" in raised.value.help
    assert "_get_trace_graph" in raised.value.help


LINEAR = SOLVED["linear"][0].replace("aten::linear(%x, %w, %b)", "aten::linear(%x, %w, %b) # net.py:7:3")


def test_a_file_with_other_names_is_told_with_the_nearest() -> None:
    x = np.zeros((2, 6), np.float32)
    with pytest.raises(UserError) as raised:
        primitive(LINEAR, {"x": x}, {"model.w": np.zeros((4, 6), np.float32), "model.b": np.zeros(4, np.float32)})
    assert "no weight 'w'" in raised.value.message
    assert "the file has 'model.w'" in raised.value.help


@pytest.mark.parametrize(("weight", "word"), [
    (np.zeros((4, 5), np.float32), "the weight w is f32[4,5]"), (np.zeros((4, 6), np.float64), "the weight w is f64[4,6]"),
])
def test_a_weight_that_does_not_fit_is_named(weight: np.ndarray[tuple[int, int], np.dtype[np.float32]], word: str) -> None:
    with pytest.raises(UserError) as raised:
        primitive(LINEAR, {"x": np.zeros((2, 6), np.float32)}, {"w": weight, "b": np.zeros(4, np.float32)})
    assert "%y = aten::linear" in raised.value.message
    assert "net.py:7" in raised.value.message
    assert word in raised.value.help


def test_an_input_of_another_type_is_named() -> None:
    with pytest.raises(UserError) as raised:
        primitive(EMBEDDING, {"x": np.zeros((2, 3), np.float32)}, {"w": np.zeros((9, 5), np.float32)})
    assert "the input x is given as f32[2,3], but the text says s64" in raised.value.help


def test_one_weight_used_twice_is_one_parameter() -> None:
    text = net(get("w") + '  %v : Tensor = prim::GetAttr[name="w"](%self)\n  %a : Float(2, 6) = aten::mul(%x, %w)\n'
               "  %y : Float(2, 6) = aten::mul(%a, %v)\n  return (%y)\n")
    x, w = np.ones((2, 6), np.float32), np.arange(6, dtype=np.float32)
    assert [p.name for p in primitive(text, {"x": x}, {"w": w}).main().params] == ["x", "w"]
    assert run(text, {"w": w}, x=x)[0].tolist() == (x * w * w).tolist()


LISTED = """graph(%x : Float(2, 3)):
  %7 : Tensor[] = prim::Constant[value=[<Tensors>]]()
  %a : Tensor, %b : Tensor = prim::ListUnpack(%7)
  %y : Tensor = aten::linear(%x, %a, %b)
  return (%y)
"""


def test_tensors_of_an_elided_list_are_given_by_their_places() -> None:
    x, w, b = np.ones((2, 3), np.float32), np.arange(12, dtype=np.float32).reshape(4, 3), np.arange(4, dtype=np.float32)
    assert run(LISTED, constants={"7.0": w, "7.1": b}, x=x)[0].tolist() == (x @ w.T + b).tolist()
    with pytest.raises(UserError) as raised:
        primitive(LISTED, {"x": x}, constants={"7": w})
    assert "give it by --constants FILE.npz as '7.0', '7.1' and so on" in raised.value.help


ELIDED = """graph(%x : Float(2, 2)):
  %7 : {type} = prim::Constant[value=<Tensor>]()
  %n : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %7, %n)
  return (%y)
"""


@pytest.mark.parametrize(("given", "message"), [
    (np.zeros((2, 2), "V2"), "the array given for the constant 7 has the type |V2, which is not supported for tensors"),
    (np.array([["a", "b"], ["c", "d"]]), "the array given for the constant 7 has the type <U1, which is not supported for tensors"),
    (np.zeros((3, 5), np.float32), "the array given for the constant 7 has the shape [3, 5], but the text declares Float(2, 2)"),
])
def test_an_array_that_is_no_value_of_a_constant_is_refused(given: np.ndarray[Any, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        primitive(ELIDED.format(type="Float(2, 2)"), {}, constants={"7": given})
    assert raised.value.message == message


def test_a_part_of_an_elided_list_that_is_no_tensor_is_refused() -> None:
    with pytest.raises(UserError) as raised:
        primitive(LISTED, {}, constants={"7.0": np.zeros((4, 3), np.float32), "7.1": np.zeros(4, "V2")})
    assert raised.value.message == "the array given for the constant 7.1 has the type |V2, which is not supported for tensors"


@pytest.mark.parametrize("bits", ["V2", "<u2"])
def test_the_bits_of_a_bf16_constant_are_what_an_npz_holds(bits: str) -> None:
    given = np.array([[1.5, -2], [3, 0.25]], ml_dtypes.bfloat16)
    (got,) = run(ELIDED.format(type="BFloat16(2, 2)"), constants={"7": given.view(bits)}, x=np.zeros((2, 2), np.float32))
    assert got.tolist() == [[1.5, -2], [3, 0.25]]


@pytest.mark.parametrize(("type", "given", "message"), [
    ("int", np.array([1, 2]), "array 'n' has 2 elements, but the input is one number"),
    ("int", np.zeros(0), "array 'n' has 0 elements, but the input is one number"),
    ("int", np.array(2.5), "array 'n' holds 2.5, but the input has the type int"),
    ("int", np.array(np.nan), "array 'n' holds nan, but the input has the type int"),
    ("bool", np.array(np.inf), "array 'n' holds inf, but the input has the type bool"),
    ("float", np.array(1j), "array 'n' holds 1j, but the input has the type float"),
    ("float", np.array("abc"), "array 'n' holds 'abc', but the input has the type float"),
    ("int?", np.array(b"abc"), "array 'n' holds b'abc', but the input has the type int"),
])
def test_an_array_that_is_no_number_is_refused(type: str, given: np.ndarray[Any, Any], message: str) -> None:
    with pytest.raises(UserError) as raised:
        primitive(f"graph(%x : Float(2), %n : {type}):\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n", {"n": given})
    assert raised.value.message == message


@pytest.mark.parametrize(("type", "given"), [("int", np.array(3.0)), ("float", np.array([3])), ("float", np.array(3, ml_dtypes.bfloat16)), ("int", np.uint8(3))])
def test_an_array_of_one_number_is_that_number(type: str, given: np.ndarray[Any, Any]) -> None:
    made = primitive(f"graph(%x : Float(2), %n : {type}):\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n", {"n": np.asarray(given)})
    assert reference(made, [np.array([1, -2], np.float32)])[0].tolist() == [3, -6]


def test_a_part_of_a_tuple_that_is_no_tensor_is_refused() -> None:
    text = "graph(%x : (Float(2), Float(2))):\n  %a : Float(2), %b : Float(2) = prim::TupleUnpack(%x)\n  %y : Tensor = aten::mul(%a, %b)\n  return (%y)\n"
    with pytest.raises(UserError) as raised:
        primitive(text, {"x.0": np.zeros(2, np.float32), "x.1": np.zeros(2, "V2")})
    assert raised.value.message == "array 'x.1' has the type |V2, which is not supported for tensors"


def test_an_elided_list_of_one_tensor_is_given_by_its_name() -> None:
    text = """graph(%x : Float(4)):
  %7 : Tensor?[] = prim::Constant[value=annotate(List[Optional[Tensor]], [<Tensor>])]()
  %y : Tensor = aten::index(%x, %7)
  return (%y)
"""
    assert run(text, constants={"7": np.array([3, 1])}, x=np.arange(4, dtype=np.float32))[0].tolist() == [3, 1]


@pytest.mark.parametrize(("name", "lists"), [("aten::mkldnn_convolution", "%p, %s"), ("prim::mkldnn_convolution", "%s, %p")])
def test_frozen_convolutions_take_the_stride_first(name: str, lists: str) -> None:
    text = f"""graph(%x : Float(1, 3, 9, 9), %w : Float(4, 3, 3, 3)):
  %b : NoneType = prim::Constant()
  %s : int[] = prim::Constant[value=[2, 2]]()
  %p : int[] = prim::Constant[value=[1, 1]]()
  %d : int[] = prim::Constant[value=[1, 1]]()
  %g : int = prim::Constant[value=1]()
  %y : Tensor = {name}(%x, %w, %b, {lists}, %d, %g)
  return (%y)
"""
    assert str(primitive(text, {}).main().result().type) == "f32[1,4,5,5]"


RECURRENT = """graph(%self : __torch__.Net,
      %x : Float(5, 2, 3)):
  %7 : Tensor[] = prim::Constant[value=[<Tensors>]]()
  %h : Float(1, 2, 4) = prim::Constant[value=<Tensor>]()
  %n : int = prim::Constant[value=1]()
  %p : float = prim::Constant[value=0.]()
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %y : Tensor, %z : Tensor = aten::gru(%x, %h, %7, %t, %n, %p, %f, %f, %f), scope: __module.tagger/__module.tagger.rnn
  return (%y)
"""


@pytest.mark.parametrize("names", [
    ("tagger.rnn.weight_ih_l0", "tagger.rnn.weight_hh_l0", "tagger.rnn.bias_ih_l0", "tagger.rnn.bias_hh_l0"), ("7.0", "7.1", "7.2", "7.3")])
def test_weights_give_the_list_of_a_frozen_recurrent_module(names: tuple[str, ...]) -> None:
    """By the state dict, whose module the trace names, or by the places in the list."""
    rng = np.random.default_rng(0)
    x, h, *listed = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 2, 3), (1, 2, 4), (12, 3), (12, 4), (12,), (12,)))
    wanted = run(RECURRENT, constants={"h": h} | {f"7.{i}": array for i, array in enumerate(listed)}, x=x)[0]
    given = dict(zip(names, listed, strict=True))
    assert run(RECURRENT, given, constants={"h": h}, x=x)[0].tolist() == wanted.tolist()
    at_root = RECURRENT.replace(", scope: __module.tagger/__module.tagger.rnn", "")
    assert run(at_root, {n.removeprefix("tagger.rnn."): a for n, a in given.items()}, constants={"h": h}, x=x)[0].tolist() == wanted.tolist()
    with pytest.raises(UserError) as raised:
        primitive(RECURRENT, {"x": x}, {"other.rnn.weight_ih_l0": listed[0]}, constants={"h": h})
    assert "'7.0', '7.1' and so on" in raised.value.help


def test_a_frozen_weight_is_given_by_its_path_or_its_name() -> None:
    """The text has four digits of it."""
    text = """graph(%self : __torch__.Net,
      %x : Float(2)):
  %self.fc.bias : Float(2, strides=[1]) = prim::Constant[value= 0.1235  1.0000 [ CPUFloatType{2} ]]()
  %n : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %self.fc.bias, %n)
  return (%y)
"""
    bias = np.array([0.12345678, 1], np.float32)
    for name in ("fc.bias", "self.fc.bias"):
        assert run(text, {name: bias}, x=np.zeros(2, np.float32))[0].tolist() == bias.tolist()


GATED = """graph(%self : __torch__.Net, %x : Float(3, 2, 5), %h : Float(2, 2, 4)):
  %m : __torch__.torch.nn.modules.rnn.GRU = prim::GetAttr[name="gru"](%self)
  %ws : Tensor[] = prim::GetAttr[name="_flat_weights"](%m)
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %layers : int = prim::Constant[value=1]()
  %p : float = prim::Constant[value=0.]()
  %y : Float(3, 2, 8), %hy : Float(2, 2, 4) = aten::gru(%x, %h, %ws, %yes, %layers, %p, %no, %yes, %no)
  return (%y)
"""


def test_a_recurrent_module_takes_its_weights_in_the_order_of_the_state_dict() -> None:
    # Two directions of one layer: the file lists them in another order.
    names = [f"gru.{part}_l0{way}" for way in ("_reverse", "") for part in ("bias_hh", "bias_ih", "weight_hh", "weight_ih")]
    rng = np.random.default_rng(0)
    shapes = {"weight_ih": (12, 5), "weight_hh": (12, 4), "bias_ih": (12,), "bias_hh": (12,)}
    weights = {name: rng.standard_normal(shapes[name[4:].partition("_l0")[0]]).astype(np.float32) for name in names}
    x, h = rng.standard_normal((3, 2, 5)).astype(np.float32), rng.standard_normal((2, 2, 4)).astype(np.float32)

    def gru(x: np.ndarray, h: np.ndarray, way: str) -> list[np.ndarray]:
        """torch.nn.GRU, from its documentation."""
        w_i, w_h, b_i, b_h = (weights[f"gru.{part}_l0{way}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        made = []
        for row in x:
            (ri, zi, ni), (rh, zh, nh) = np.split(row @ w_i.T + b_i, 3, 1), np.split(h @ w_h.T + b_h, 3, 1)
            r, z = 1 / (1 + np.exp(-ri - rh)), 1 / (1 + np.exp(-zi - zh))
            h = (1 - z) * np.tanh(ni + r * nh) + z * h
            made.append(h)
        return made
    expected = np.concatenate([np.stack(gru(x, h[0], "")), np.stack(gru(x[::-1], h[1], "_reverse")[::-1])], axis=2)
    np.testing.assert_allclose(run(GATED, weights, x=x, h=h)[0], expected, rtol=1e-5, atol=1e-6)


def test_a_recurrent_module_without_a_file_asks_for_one() -> None:
    with pytest.raises(UserError, match="the tensors of the list %ws are not in the text"):
        primitive(GATED, {"x": np.zeros((3, 2, 5), np.float32), "h": np.zeros((2, 2, 4), np.float32)})


def test_tensors_whose_values_the_text_elides_are_found_and_given() -> None:
    text = """graph(%x : Float(2)):
  %c : Float(2) = prim::Constant[value=<Tensor>]()
  %d : Float(2) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()
  %e : Tensor = aten::mul(%c, %d)
  %y : Tensor = aten::mul(%e, %x)
  return (%y)
"""
    assert [node.name for node in elided_constants(module_of(text))] == ["c"]
    x, c = np.array([1, 10], np.float32), np.array([3, 5], np.float32)
    assert [p.name for p in primitive(text, {"x": x}, {"c": c}).main().params] == ["x", "c"]
    assert run(text, {"c": c}, x=x)[0].tolist() == [3, 100]
    with pytest.raises(UserError, match="elide"):
        primitive(text, {"x": x})


def test_an_elided_list_in_a_module_has_the_weights_of_that_module() -> None:
    text = RECURRENT.replace("%7", "%self.tagger.rnn._flat_weights").replace(", scope: __module.tagger/__module.tagger.rnn", "")
    rng = np.random.default_rng(0)
    x, h, *listed = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 2, 3), (1, 2, 4), (12, 3), (12, 4), (12,), (12,)))
    wanted = run(RECURRENT, constants={"h": h} | {f"7.{i}": array for i, array in enumerate(listed)}, x=x)[0]
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    given = {f"tagger.rnn.{name}": array for name, array in zip(names, listed, strict=True)}
    assert run(text, given, constants={"h": h}, x=x)[0].tolist() == wanted.tolist()


@pytest.mark.parametrize(("shown", "dtype", "product"), [
    ("1.5  2 [ CPUFloatType{2} ]", "float32", "float32"), ("1.5  2 [ CPUDoubleType{2} ]", "float64", "float64"),
    ("1  2 [ CPUIntType{2} ]", "int32", "float32"), ("1  2 [ CPUByteType{2} ]", "uint8", "float32"), ("1  2 [ CUDAHalfType{2} ]", "float16", "float32"),
    ("1  0 [ CPUBoolType{2} ]", "bool", "float32"), ("1.5 [ CPUFloatType{} ]", "float32", "float32"),
])
def test_a_constant_whose_declared_type_was_lost_has_the_one_that_it_is_printed_with(shown: str, dtype: str, product: str) -> None:
    constant, made = run(graph(f"""
        %c : Tensor = prim::Constant[value= {shown}]()
        %y : Tensor = aten::mul(%x, %c)
        return (%c, %y)
    """), x=np.ones(2, np.float32))
    assert (str(constant.dtype), str(made.dtype)) == (dtype, product)


@pytest.mark.parametrize(("shown", "dtype"), [("1  2 [ CPULongType{2} ]", "int64"), ("{3}", "int64"), ("{3.5}", "float64")])
def test_a_constant_whose_type_was_lost_is_a_number_of_python(shown: str, dtype: str) -> None:
    """It is an integer where it is printed as one; beside a tensor of floats, it does not decide the type of the result."""
    constant, product = run(graph(f"""
        %c : Tensor = prim::Constant[value= {shown}]()
        %y : Tensor = aten::mul(%x, %c)
        return (%c, %y)
    """.replace("value= {", "value={")), x=np.ones(2, np.float32))
    assert str(constant.dtype) == dtype and product.dtype == np.float32
    assert product.tolist() == np.broadcast_to(constant, (2,)).tolist()
