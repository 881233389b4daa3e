"""Operators of ONNX get operands and attributes of any kind: each gives a value, or says what does not fit."""
from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import pytest

from irscope.expand.onnx.program import FramedOnnx
from irscope.formats.onnx.attributes import Sparse
from irscope.formats.onnx.declarations import Attribute, Operator
from irscope.formats.onnx.inference import built, cost_of, infer_node
from irscope.formats.onnx.operands import ELEMENTS, Operand
from irscope.formats.onnx.operators import declared, names
from irscope.formats.onnx.types import ABSENT
from irscope.graph import UNKNOWN, DType, DynamicDim, Graph, NamedType, Node, TensorType, TupleType
from irscope.graph.dtypes import BF16, C64, DTYPES, F16, F32, F64, PRED, S8, S32, S64, U8
from irscope.ops import hlo
from irscope.ops.attrs import Literal
from irscope.ops.faults import TypeFault
from irscope.ops.registry import lookup_declared
from irscope.source import UserError
from tests.expand.onnx_calls import CALLS

DRAWS = 5_000
COMPUTED = [name for name in names() if declared(name).build is not None]  # type: ignore[union-attr]
KINDS = [F32] * 8 + [S64] * 5 + [PRED] * 2 + [F64, F16, BF16, C64, U8, S8, S32, DTYPES["s4"], DTYPES["u4"], DTYPES["f8e4m3fn"], DTYPES["f8e8m0fnu"]]
INTS = [0, 0, 1, 1, 1, 2, 2, 3, -1, -1, -2, 4, 5, -7, 100, 1 << 40, -(1 << 63), (1 << 63) - 1]
FLOATS = [0.0, 1.0, 0.5, -1.0, 2.0, 1e30, -1e-30, float("inf"), float("nan"), 3]
WORDS = ["", "x", "SAME_UPPER", "SAME_LOWER", "VALID", "linear", "cubic", "nearest", "constant", "reflect", "edge", "wrap", "mean", "none",
         "add", "max", "avg", "tf_crop_and_resize", "align_corners", "half_pixel_symmetric", "pytorch_half_pixel", "floor", "ceil", "TF", "IDF",
         "LEFT", "RIGHT", "tanh", "Relu", "Affine", "bidirectional", "reverse", "not_larger", "circular", "ij,jk->ik", "ii->i", "...i->...",
         "i,->", "i", "->", "FLOAT", "down", "nearest", "CRD", "zeros", "border", "reflection"]
VERSIONS = [1, 4, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 20, 21, 23]


def sizes(draw: random.Random) -> tuple[int, ...]:
    return tuple(draw.choice([0, 1, 1, 2, 2, 3, 4, 6]) for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 3, 4, 4, 5])))


def literal(draw: random.Random, dtype: DType, shape: tuple[int, ...]) -> Literal:
    values = np.array([draw.choice([0, 1, 1, 2, 3, -1, -2, 4, 7]) for _ in range(int(np.prod(shape)))])
    return Literal.of(values.reshape(shape).astype(dtype.numpy()), TensorType(dtype, shape))


class Case:
    """Drawn operands and attributes of an operator."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        found = declared(draw.choice(COMPUTED))
        assert found is not None
        self.operator: Operator = found
        self.t = FramedOnnx(Graph("drawn"))
        self.shape, self.dtype = sizes(draw), draw.choice(KINDS)
        self.form = draw.choice(VERSIONS), draw.choice([0, 1, 1, 1, 1, 2, 2, 3, 4])
        if found.name in CALLS and draw.random() < 0.7:
            self.almost(*draw.choice(CALLS[found.name]))
            return
        self.values = [v for operand in found.operands for v in self.operands(operand)]
        while self.values and draw.random() < 0.06:
            self.values.pop()
        if draw.random() < 0.04:
            self.values.append(draw.choice([self.tensor(), None, []]))
        self.attrs = {a.name: self.attribute(a) for a in found.attributes if (a.required and draw.random() < 0.97) or draw.random() < 0.3}

    def almost(self, operands: list[Any], attrs: dict[str, Any]) -> None:
        """A call that fits the declaration, with up to three changes."""
        draw = self.draw
        self.values, self.attrs = [self.given(value) for value in operands], dict(attrs)
        for _ in range(draw.choice([0, 1, 1, 1, 2, 2, 3])):
            at, attribute = draw.randrange(len(self.values)), draw.choice([*self.operator.attributes, None])
            value = self.values[at]
            if attribute is not None and draw.random() < 0.5:
                self.attrs[attribute.name] = self.attribute(attribute)
            elif isinstance(value, Node) and isinstance(value.type, TensorType) and draw.random() < 0.9:
                self.values[at] = self.changed(value, value.type)
            else:
                self.values[at] = draw.choice([None, self.tensor(), []])

    def given(self, value: Any) -> Node | None:
        """An operand of a call: a constant of numbers, or a parameter of a type."""
        if isinstance(value, str):
            dtype, _, shape = value.rstrip("]").partition("[")
            return self.parameter(DTYPES[dtype], tuple(map(int, shape.split(","))) if shape else ())
        if value is None:
            return None
        array = np.asarray(value)
        return self.constant(array.astype(np.float32) if array.dtype.kind == "f" else array, F32 if array.dtype.kind == "f" else S64)

    def constant(self, array: Any, dtype: DType) -> Node:
        type = TensorType(dtype, array.shape)
        return self.t.own(self.t.builder.add(hlo.constant, (), {"literal": Literal.of(array.astype(dtype.numpy()), type)}, type))

    def changed(self, node: Node, type: TensorType) -> Node:
        """An operand with another size, rank, element type or number."""
        draw = self.draw
        shape, way = list(type.dims()), draw.randrange(5)
        if way == 0:
            return self.parameter(draw.choice(KINDS), tuple(shape))
        if way == 1 and node.op is hlo.constant:
            array = np.array(node.attrs["literal"].value())
            array.reshape(-1)[:1] = draw.choice([0, -1, 1, 7, -(1 << 40)] if type.dtype is S64 else [0, -1, 1e30, float("nan"), float("inf")])
            return self.constant(array if draw.random() < 0.6 else array.reshape(-1)[:draw.randrange(3)], type.dtype)
        if way == 2 and shape:
            shape.pop(draw.randrange(len(shape)))
        elif way == 3 or not shape:
            shape.insert(draw.randrange(len(shape) + 1), draw.choice([0, 1, 2]))
        else:
            shape[draw.randrange(len(shape))] = draw.choice([0, 1, 2, 3, 9])
        return self.parameter(type.dtype, tuple(shape))

    def operands(self, operand: Operand) -> list[Any]:
        draw = self.draw
        if operand.variadic:
            return [self.operand(operand) for _ in range(draw.choice([0, 1, 2, 2, 3]))]
        return [None if draw.random() < (0.4 if operand.optional else 0.02) else self.operand(operand)]

    def operand(self, operand: Operand) -> Any:
        draw = self.draw
        if (operand.kind == "seq" and draw.random() < 0.9) or draw.random() < 0.02:
            return [self.tensor() if draw.random() < 0.97 else draw.choice([[], None]) for _ in range(draw.randrange(4))]
        if draw.random() < 0.1:
            return "strings" if draw.random() < 0.1 else self.tensor()
        return self.fitting(operand)

    def fitting(self, operand: Operand) -> Node:
        """A tensor that the operator takes by its declaration; integers in a vector or a scalar are often known."""
        draw = self.draw
        shape = self.shape if draw.random() < 0.7 else sizes(draw)
        most = 5 if operand.most is None else operand.most
        shape = (*shape, *sizes(draw), 2, 2, 2, 2)[:operand.least] if len(shape) < operand.least else shape[:most]
        allowed = ELEMENTS.get(operand.kind, ELEMENTS["tensor"])[1]
        dtype = self.dtype if allowed(self.dtype) else draw.choice([d for d in KINDS if allowed(d)])
        if most < 2 and draw.random() < 0.75:
            shape = () if most == 0 or (not operand.least and draw.random() < 0.3) else draw.choice([(1,), (len(self.shape),), (2,), (4,), (0,)])
            made = literal(draw, S64 if operand.kind == "int" and draw.random() < 0.8 else dtype, shape)
            return self.t.own(self.t.builder.add(hlo.constant, (), {"literal": made}, made.type))
        return self.parameter(dtype, shape)

    def parameter(self, dtype: DType, shape: tuple[int, ...]) -> Node:
        return self.t.own(self.t.builder.add(hlo.parameter, (), {"number": 0}, TensorType(dtype, shape)))

    def tensor(self) -> Node:
        """Any tensor, often of the common type."""
        draw = self.draw
        shape = self.shape if draw.random() < 0.6 else sizes(draw)
        dtype = self.dtype if draw.random() < 0.6 else draw.choice(KINDS)
        if draw.random() < 0.3:
            made = literal(draw, draw.choice([S64, S64, dtype]), draw.choice([(), (1,), (len(self.shape),), (2,), (4,), shape]))
            return self.t.own(self.t.builder.add(hlo.constant, (), {"literal": made}, made.type))
        return self.parameter(dtype, shape)

    def attribute(self, a: Attribute) -> Any:
        draw = self.draw
        kind = a.kind if draw.random() < 0.94 else draw.choice(["int", "float", "str", "ints", "floats", "strs", "tensor", "sparse"])
        if a.default is not None and draw.random() < 0.3:
            return a.default
        few = draw.choice([len(self.shape), max(len(self.shape) - 2, 0), 2 * len(self.shape), 1, draw.randrange(5)])
        match kind.partition("|")[0]:
            case "int":
                return draw.choice(INTS)
            case "float":
                return draw.choice(FLOATS)
            case "str":
                return draw.choice(WORDS)
            case "ints":
                return [draw.choice(INTS[:-3] if draw.random() < 0.9 else INTS) for _ in range(few)]
            case "floats":
                return [draw.choice(FLOATS) for _ in range(few)]
            case "strs":
                return [draw.choice(WORDS) for _ in range(few)]
            case "tensor":
                return draw.choice([literal(draw, draw.choice(KINDS), sizes(draw)), Literal(UNKNOWN, _value=np.array(["a"])),
                                    Literal(TensorType(F32, (1,)), elided=True)])
            case "sparse":
                return Sparse(literal(draw, F32, (2,)), literal(draw, S64, draw.choice([(2,), (2, 1), (2, 2), (1,)])),
                              draw.choice([sizes(draw), (-1, 2), (9,), (9, 9)]))
        return draw.choice([None, 1, "x", []])

    def node(self) -> Node:
        """A node of a model with these operands, whose sizes may be open."""
        draw = self.draw
        opened = draw.random() < 0.5
        operands = []
        for value in self.values:
            type = value.type if isinstance(value, Node) else ABSENT if value is None else NamedType("seq(f32[?])")
            if isinstance(type, TensorType) and opened:
                type = TensorType(type.dtype, tuple(d if draw.random() < 0.6 else DynamicDim(draw.choice(["", "n"])) for d in type.shape))
            constant = isinstance(value, Node) and value.op is hlo.constant and type == value.type
            operands.append(Node(hlo.constant if constant else hlo.parameter, "v", type, (), value.attrs if constant else {"number": 0}))
        op = lookup_declared(self.operator.name, "onnx")
        assert op is not None
        version, results = self.form
        type = UNKNOWN if results == 1 else TupleType((UNKNOWN,) * results)
        return Node(op, "n", type, tuple(operands), {**self.attrs, "opset": version})


def run_drawn(seed: int) -> None:
    """Expand an operator on drawn operands, and infer its type and cost."""
    case = Case(seed)
    try:
        built(case.operator, case.t, case.attrs, case.values, case.form)
    except (UserError, TypeFault):
        pass
    node = case.node()
    try:
        infer_node(node)
    except (UserError, TypeFault):
        pass
    cost_of(node)


def test_an_operator_on_any_operands_gives_a_value_or_says_what_does_not_fit() -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for seed in range(DRAWS):
            try:
                run_drawn(seed)
            except Exception as fault:
                raise AssertionError(f"seed {seed}") from fault


@pytest.mark.parametrize(("schema", "value", "message"), [
    ("X: float[3+]", (F32, (2, 3)), "the operand X is a tensor of floats of 3 or more dimensions, not float[2,3]"),
    ("X: float[3+]", (S64, (1, 2, 3)), "the operand X is a tensor of floats of 3 or more dimensions, not int64[1,2,3]"),
    ("axes?: int[0-1]", (S64, (1, 1)), "the operand axes is a tensor of integers of 0 to 1 dimensions, not int64[1,1]"),
    ("x: [4]", (F32, ()), "the operand x is a tensor of 4 dimensions, not float[]"),
    ("xs: seq", (F32, ()), "the operand xs is a sequence of tensors, not float[]"),
    ("x", [], "the operand x is a tensor, not a sequence"), ("x", "a", "the operand x is a tensor, not a string"),
])
def test_a_schema_says_what_an_operand_must_be(schema: str, value: Any, message: str) -> None:
    made = Node(hlo.parameter, "v", TensorType(*value), (), {"number": 0}) if isinstance(value, tuple) else value
    with pytest.raises(TypeFault) as fault:
        Operand.parse(schema).check(made)
    assert fault.value.message == message


def test_a_schema_with_an_unknown_kind_of_operand_is_refused() -> None:
    for text in ("X: floats", "X: float[2", "X??", "X Y"):
        with pytest.raises(ValueError, match="is not an operand"):
            Operand.parse(text)


def test_a_pooling_without_windows_has_results_without_elements() -> None:
    t, found = FramedOnnx(Graph("pool")), declared("MaxPool")
    assert found is not None
    x = t.own(t.builder.add(hlo.parameter, (), {"number": 0}, TensorType(F32, (1, 2, 0, 5))))
    made = built(found, t, {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 1, 1], "ceil_mode": 1}, [x], (11, 2))
    assert [value.type for value in made] == [TensorType(F32, (1, 2, 0, 3)), TensorType(S64, (1, 2, 0, 3))]


def test_the_lengths_of_a_split_of_version_1_are_floats() -> None:
    t, found = FramedOnnx(Graph("split")), declared("Split")
    assert found is not None
    x = t.own(t.builder.add(hlo.parameter, (), {"number": 0}, TensorType(F32, (5,))))
    made = built(found, t, {}, [x, t.array(np.array([2.0, 3.0]), F32)], (1, 2))
    assert [value.type for value in made] == [TensorType(F32, (2,)), TensorType(F32, (3,))]
