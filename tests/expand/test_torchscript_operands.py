"""Operators get what their schemas say, in any number and shape: each gives a value, or says what does not fit."""
from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irscope.api import load
from irscope.expand import bind_types, expand
from irscope.expand.torchscript.branches import Raise
from irscope.expand.torchscript.interpreter import TorchInterpreter
from irscope.expand.torchscript.kinds import Kinds
from irscope.expand.torchscript.program import Given
from irscope.expand.torchscript.structure import flatten
from irscope.formats.torchscript.abstract import Scalar, Tensor
from irscope.formats.torchscript.operators import names, overloads
from irscope.formats.torchscript.schema import SchemaArgument
from irscope.graph import UNKNOWN, Node, TensorType
from irscope.graph.dtypes import BF16, C64, F16, F32, F64, PRED, S32, S64, U8
from irscope.graph.node import unknown_op
from irscope.ops.checked import Items, Sizes, in_step
from irscope.ops.faults import TypeFault
from irscope.ops.registry import lookup_declared
from irscope.source import UserError
from tests.expand.torchscript_runs import graph, module_of, run

DRAWS = 4_000
MODULE = load("graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  return (%1)\n", format="torchscript").module()
DTYPES = [F32] * 8 + [S64] * 4 + [PRED] * 2 + [F64, F16, BF16, C64, U8, S32]
NUMBERS: dict[str, list[Any]] = {
    "int": [0, 0, 1, 1, 1, 2, 2, 3, -1, -1, -2, 4, 5, -7, 100], "ScalarType": [6, 6, 4, 7, 11, 5, 3, 0, 9, 15, 77, 20],
    "float": [0.0, 1.0, 0.5, -1.0, 2.0, 1e30, float("inf"), float("nan")], "bool": [True, False],
    "Scalar": [0, 1, 2, -1, 0.5, 2.5, True, float("inf"), float("nan"), 1j, 1 << 40],
    "str": ["mean", "sum", "none", "linear", "constant", "reflect", "abc", "fro", "max", ""],
}
NUMBERS |= {"SymInt": NUMBERS["int"], "number": NUMBERS["Scalar"]}


def sizes(random: random.Random, of: list[int]) -> tuple[int, ...]:
    return tuple(random.choice(of) for _ in range(random.choice([0, 1, 2, 2, 3, 3, 4, 4, 5])))


def one(random: random.Random, program: TorchInterpreter, node: Node, kind: str, shape: tuple[int, ...]) -> object:
    if kind in ("float", "Scalar", "bool") and random.random() < 0.15:
        depends = "bool" if kind == "bool" else random.choice(["int", "float"])
        type = TensorType({"int": S64, "float": F64, "bool": PRED}[depends], ())
        return Scalar(program.t.own(program.parameter(type, node, "s")), depends)
    if kind != "Tensor":
        return random.choice(NUMBERS.get(kind, [None, 1, "abc"]))
    if random.random() < 0.05:
        return Tensor(known=np.asarray(random.choice([0, 1, 2, -1, 5])), make=lambda: program.t.array(1, S64))
    if random.random() < 0.4:
        shape = sizes(random, [0, 1, 2, 2, 3, 4, 6])
    return Tensor(program.t.own(program.parameter(TensorType(random.choice(DTYPES), shape), node, "p")))


def operand(random: random.Random, program: TorchInterpreter, node: Node, argument: SchemaArgument, shape: tuple[int, ...]) -> object:
    if argument.optional and random.random() < 0.4:
        return None
    if not argument.is_list or (argument.size and random.random() < 0.2):
        return one(random, program, node, argument.type, shape)
    count = argument.size if argument.size and random.random() < 0.7 else random.randrange(5)
    return [one(random, program, node, argument.type, shape) for _ in range(count)]


def run_drawn(seed: int) -> str:
    """Run an operator on drawn operands; returns what it was."""
    draw = random.Random(seed)
    name = draw.choice(names())
    found = overloads(name)
    assert found is not None
    program = TorchInterpreter(MODULE, Given())
    node = Node(lookup_declared(name, "torchscript") or unknown_op(name, "torchscript"), "n", UNKNOWN, (), {})
    program.t.builder.at = (node,)
    shape = sizes(draw, [1, 2, 2, 3, 4, 6])
    arguments = draw.choice(found.choices).schema.arguments
    values = [operand(draw, program, node, argument, shape) for argument in arguments]
    while values and arguments[len(values) - 1].has_default and draw.random() < 0.3:
        values.pop()
    if values and draw.random() < 0.03:
        values[draw.randrange(len(values))] = draw.choice([None, "x", [], [1, 2], {}, 1.5, 3])
    try:
        made = program.operator(node, name, values)
        for leaf in flatten(made):
            if isinstance(leaf, Tensor):
                leaf.get()
    except (UserError, TypeFault, Raise):
        pass
    return name


def test_an_operator_on_any_operands_gives_a_value_or_says_what_does_not_fit() -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(DRAWS):
            try:
                run_drawn(seed)
            except Exception as fault:
                raise AssertionError(f"seed {seed}") from fault


def test_a_size_or_an_item_that_is_not_there_is_a_fault_of_the_program() -> None:
    shape, items = Sizes((2, 3)), Items([1])
    assert shape[-1] == 3 and shape[:1] == (2,) and shape.index(3) == 1 and items[0] == 1
    for read in (lambda: shape[2], lambda: shape.index(5), lambda: items[1]):
        with pytest.raises(TypeFault):
            read()
    with pytest.raises(TypeFault, match="sizes and strides must have equal lengths, not 1, 2"):
        in_step("sizes and strides", [1], [1, 2])


def test_the_kinds_of_operands_are_checked_before_a_construct_runs() -> None:
    kinds = Kinds("tuple|list int none?")
    kinds.check([(), 1])
    kinds.check([[], 1, None])
    for values in ([], [1], ["a", 1], [(), 1, 2], [(), 1, None, 1]):
        with pytest.raises(TypeFault, match=r"operands of the kinds \(tuple\|list int none\?\)"):
            kinds.check(values)
    Kinds("any*").check([1, "a"])


PROGRAMS = {
    "prim::TupleIndex": "  %t : (int, int) = prim::TupleConstruct(%1, %1)\n  %r : int = prim::TupleIndex(%t, %7)\n",
    "prim::TupleUnpack": "  %t : int[] = prim::ListConstruct()\n  %r : int = prim::TupleUnpack(%t)\n",
    "prim::ConstantChunk": "  %r : Tensor, %s : Tensor = prim::ConstantChunk(%x)\n",
    "prim::TupleSlice": "  %t : (int, int) = prim::TupleConstruct(%1, %1)\n  %r : (int) = prim::TupleSlice[beg=\"a\", end=1](%t)\n",
    "aten::popitem": "  %d : Dict(str, int) = prim::DictConstruct()\n  %r : (str, int) = aten::popitem(%d)\n",
    "aten::floordiv": "  %z : int = prim::Constant[value=0]()\n  %r : int = aten::floordiv(%1, %z)\n",
    "aten::__getitem__": "  %t : int[] = prim::ListConstruct(%1)\n  %r : int = aten::__getitem__(%t, %7)\n",
    "aten::permute": "  %t : int[] = prim::ListConstruct(%1, %1)\n  %r : Tensor = aten::permute(%x, %t)\n",
    "aten::slice": "  %z : int = prim::Constant[value=0]()\n  %r : Tensor = aten::slice(%x, %z, %z, %7, %z)\n",
    "aten::conv2d": "  %t : int[] = prim::ListConstruct(%1, %1, %1)\n  %n : NoneType = prim::Constant()\n"
                    "  %r : Tensor = aten::conv2d(%x, %x, %n, %t, %t, %t, %1)\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_fault_of_a_program_is_reported_with_its_place(name: str) -> None:
    text = (f"graph(%x : Float(2, 3, strides=[3, 1])):\n  %1 : int = prim::Constant[value=1]()\n  %7 : int = prim::Constant[value=7]()\n"
            f"{PROGRAMS[name]}  return (%r)\n")
    module = load(text, format="torchscript").module()
    with pytest.raises(UserError, match=rf":\d+:.*{name}"):
        TorchInterpreter(module, Given()).run()


def test_a_number_that_a_schema_has_as_the_default_of_a_list_stands_for_all_of_its_elements() -> None:
    program, node = TorchInterpreter(MODULE, Given()), Node(unknown_op("aten::slow_conv_dilated2d", "torchscript"), "n", UNKNOWN, (), {})
    program.t.builder.at = (node,)
    x, w = (Tensor(program.t.own(program.parameter(TensorType(F32, shape), node, "p"))) for shape in ((1, 1, 4, 4), (1, 1, 2, 2)))
    made = program.operator(node, "aten::slow_conv_dilated2d", [x, w, [2, 2]])
    assert program.t.shape(made.get()) == (1, 1, 3, 3)


HUGE = "int = prim::Constant[value=9223372036854775807]()"


@pytest.mark.parametrize(("call", "constants", "message"), [
    ("aten::special_round(%x, %a)", [HUGE], "decimals are more than a float has"),
    ("aten::special_round(%x, %a)", ["int = prim::Constant[value=-400]()"], "decimals are more than a float has"),
    ("aten::fft_rfftfreq(%a)", [HUGE], "more than 268,435,456 elements"), ("aten::fft_fftfreq(%a)", [HUGE], "more than 268,435,456 elements"),
    ("aten::triu_indices(%a, %a)", ["int = prim::Constant[value=1000000]()"], "more than 268,435,456 elements"),
    ("aten::tril_indices(%a, %b)", ["int = prim::Constant[value=3]()", "int = prim::Constant[value=-1]()"], "the columns must be at least 0"),
    ("aten::hann_window(%a)", [HUGE], "more than 268,435,456 elements"),
    ("aten::logspace(%b, %b, %a, %b)", [HUGE, "float = prim::Constant[value=2.]()"], "more than 268,435,456 elements"),
    ("aten::vander(%x, %a)", [HUGE], "more than 268,435,456 elements"),
    ("aten::upsample_linear1d(%y, %l, %b)", [HUGE, "bool = prim::Constant[value=0]()"], "more than 268,435,456 elements"),
    ("aten::upsample_nearest1d(%y, %l)", [HUGE], "more than 268,435,456 elements"),
    ("aten::upsample_nearest1d(%y, %l, %b)", ["int = prim::Constant[value=3]()", "float = prim::Constant[value=1e-300]()"], "a factor must be at least"),
    ("aten::multilabel_margin_loss(%e, %k)", ["int = prim::Constant[value=1]()"], "the number of classes must not be 0"),
])
def test_numbers_of_a_text_make_no_table_of_any_size(call: str, constants: list[str], message: str) -> None:
    """Found by calls of every operator with odd numbers."""
    lines = "\n".join(f"%{name} : {constant}" for name, constant in zip("ab", constants))
    body = f"{lines}\n%l : int[] = prim::ListConstruct(%a)\n%r : Tensor = {call}\nreturn (%r)"
    module = module_of(graph(body, "%x : Tensor, %y : Tensor, %e : Tensor, %k : Tensor"))
    given = {"x": (3,), "y": (1, 2, 6), "e": (3, 0), "k": (3, 0)}
    with pytest.raises(UserError, match=message):
        expand(bind_types(module, given, {"x": "f32", "y": "f32", "e": "f32", "k": "s64"}))


SCATTERS: dict[str, tuple[tuple[int, ...], Callable[[np.ndarray], np.ndarray]]] = {
    "diagonal_scatter(%x, %y, %0, %0, %1)": ((3,), lambda x: np.einsum("ii->i", x[:, :3])),
    "select_scatter(%x, %y, %1, %1)": ((3,), lambda x: x[:, 1]),
    "slice_scatter(%x, %y, %1, %0, %1, %1)": ((3, 1), lambda x: x[:, :1]),
}
"""By call: the shape of the part that is replaced, and that part of an array, as a view."""


@pytest.mark.parametrize("call", SCATTERS)
def test_what_is_scattered_has_the_shape_of_the_part(call: str) -> None:
    """As torch asks of it; an element type that differs is converted."""
    text = graph(f"""
        %0 : int = prim::Constant[value=0]()
        %1 : int = prim::Constant[value=1]()
        %r : Tensor = aten::{call}
        return (%r)
    """, "%x : Tensor, %y : Tensor")
    x, (shape, part) = np.zeros((3, 4), np.float32), SCATTERS[call]
    got = run(text, x=x, y=np.arange(1, 4).reshape(shape))[0]
    part(x)[...] = np.arange(1, 4).reshape(shape)
    np.testing.assert_array_equal(got, x)
    for wrong in ((2,), (), (1, 1), (3, 4)):
        with pytest.raises(UserError, match=re.escape(f"expected a source of shape {list(shape)}, like the part that it replaces, got {list(wrong)}")):
            run(text, x=x, y=np.ones(wrong, np.float32))
