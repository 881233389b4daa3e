"""Calls are compared with what operators declare: whatever the operands and attributes, a fault is one of types and none of Python's."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from irscope.formats.relay.inference import infer_node
from irscope.formats.relay.operators import declared, names
from irscope.formats.relay.signature import DeclaredAttribute, DeclaredOperand, check_operands
from irscope.graph import DTYPES, UNKNOWN, Node, TensorType, TupleType, Type
from irscope.ops import TypeFault, get
from irscope.ops.attrs import Literal

CALLS = 30
"""Random calls of each operator."""
ELEMENTS = [DTYPES[name] for name in ("f32", "f32", "f32", "s32", "s64", "pred", "u8", "f16", "s8")]
CLASSES = {"int": DTYPES["s32"], "bool": DTYPES["pred"], "bits": DTYPES["s32"], "mask": DTYPES["pred"], "float": DTYPES["f32"]}
NUMBERS = [0, 1, 1, 2, 3, 4, -1, -2, 5, 8, -7, 100]
WORDS = ["NCHW", "NHWC", "NCHW4c", "OIHW", "HWIO", "NCW", "linear", "cubic", "asymmetric", "", "zz", "constant", "edge", "reflect", "ij,jk->ik",
         "CDR", "update", "add", "min", "both", "values", "size", "floor", "tf_crop_and_resize", "nearest_neighbor"]


def some_type(draw: random.Random, takes: str, rank: int | None = None) -> Type:
    if takes in ("tuple", "filled"):
        field = some_type(draw, "tensor")
        same = draw.random() < 0.6
        return TupleType(tuple(field if same else some_type(draw, "tensor") for _ in range(draw.randint(0, 3))))
    dims = draw.choice([0, 1, 2, 2, 3, 3, 4, 4, 5]) if rank is None else rank
    return TensorType(CLASSES.get(takes) or draw.choice(ELEMENTS), tuple(draw.choice([0, 1, 1, 2, 3, 4, 8]) for _ in range(dims)))


def some_value(draw: random.Random, attribute: DeclaredAttribute) -> Any:
    if draw.random() < 0.04:
        return draw.choice([None, "x", 3, 2.5, [], [1, 2], True])
    numbers = [draw.choice(NUMBERS) for _ in range(draw.randint(0, 5))]
    match attribute.kind:
        case "int" | "size":
            return draw.choice(NUMBERS)
        case "number":
            return draw.choice([0.0, 1.0, 2.0, -1.0, 0.5, float("inf"), float("nan"), 1e30, 3])
        case "bool":
            return draw.random() < 0.5
        case "string":
            return draw.choice([attribute.default, attribute.default, *WORDS])
        case "dtype":
            return draw.choice(["float32", "int32", "int8", "bool", "int64", None, ""])
        case "numbers":
            return [draw.choice([0.0, 1.0, 0.5, 2.0, -1.0]) for _ in range(draw.randint(0, 6))]
        case "pairs":
            return [[draw.choice([0, 1, 2, -1, -9]) for _ in range(2)] for _ in range(draw.randint(0, 5))]
        case "any":
            return draw.choice([None, 1, "x"])
    return draw.choice([draw.choice(NUMBERS), numbers, [1, 1], [2, 2], [1], [3, 3]])


def some_node(draw: random.Random, type: Type) -> Node:
    if isinstance(type, TupleType):
        return Node(get("tuple"), "t", type, tuple(some_node(draw, element) for element in type.elements))
    assert isinstance(type, TensorType)
    if type.rank < 2 and draw.random() < 0.6:
        values = np.array([draw.choice(NUMBERS) for _ in range(int(np.prod(type.dims())))]).reshape(type.dims()).astype(type.dtype.numpy())
        return Node(get("constant"), "c", type, (), {"literal": Literal.of(values, type)})
    return Node(get("parameter"), "p", type, (), {"number": 0})


def some_call(draw: random.Random, name: str) -> Node:
    """A call that is often nearly as declared."""
    operator = declared(name)
    assert operator is not None
    given = [o for o in operator.takes if not o.optional or draw.random() < 0.5]
    types = [some_type(draw, o.takes, draw.randint(o.ranks[0], min(o.ranks[1], 5)) if o.ranks and draw.random() < 0.9 else None) for o in given]
    if len(types) > 1 and isinstance(types[0], TensorType) and draw.random() < 0.4:
        types = [TensorType(t.dtype, types[0].shape) if isinstance(t, TensorType) else t for t in types]
    attrs = {a.name: some_value(draw, a) for a in operator.attributes if a.needed or draw.random() < 0.35}
    return Node(get(name, "relay"), "call", UNKNOWN, operands=tuple(some_node(draw, type) for type in types), attrs=attrs)


@pytest.mark.parametrize("part", range(4))
def test_whatever_is_given_to_an_operator_is_typed_or_a_type_fault(part: int) -> None:
    typed = 0
    for name in names()[part::4]:
        for seed in range(CALLS):
            try:
                infer_node(some_call(random.Random(f"{name} {seed}"), name))
                typed += 1
            except TypeFault as fault:
                assert name in fault.message
    assert typed > 300


def test_every_attribute_has_a_kind() -> None:
    for name in names():
        operator = declared(name)
        assert operator is not None
        for attribute in operator.attributes:
            if attribute.default is not None and attribute.kind not in ("any", "numbers"):
                infer = {"bool": bool, "int": int, "size": int, "number": float, "string": str, "dtype": str}.get(attribute.kind, list)
                assert isinstance(attribute.default, infer), (name, attribute)


@pytest.mark.parametrize(("operand", "type", "message"), [
    ("x: 4d", TensorType(DTYPES["f32"], (2, 3)), "f takes 4 dimensions as x, got Tensor[(2, 3), float32]"),
    ("x: 2-3d", TensorType(DTYPES["f32"], ()), "f takes 2 to 3 dimensions as x, got float32"),
    ("x: 1d+", TensorType(DTYPES["f32"], ()), "f takes 1 dimension or more as x, got float32"),
    ("x: int", TensorType(DTYPES["f32"], (4,)), "f takes integers as x, got Tensor[(4), float32]"),
    ("x: bool", TensorType(DTYPES["s32"], ()), "f takes bool as x, got int32"),
    ("x: filled", TupleType(()), "f takes at least one tensor as x, got an empty tuple"),
    ("x", TupleType((TensorType(DTYPES["f32"], ()),)), "f takes a tensor as x, got a tuple of 1: (float32,)"),
])
def test_operands_of_a_class(operand: str, type: Type, message: str) -> None:
    with pytest.raises(TypeFault) as caught:
        check_operands("f", [DeclaredOperand.of(operand, "tensor")], [type])
    assert caught.value.message == message


def test_a_class_that_there_is_not_is_a_fault_of_the_declaration() -> None:
    with pytest.raises(ValueError, match="there is no class 'strings'"):
        DeclaredOperand.of("x: strings", "tensor")
