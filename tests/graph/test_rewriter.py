"""Instructions that are rewritten: users follow operands, and names stay where they were taken. Types and derived modules."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import DynamicDim, TensorType, TupleType
from irscope.graph.dtypes import F32
from irscope.graph.rewriter import RewrittenNode
from irscope.ops import hlo

ARRAY = TensorType(F32, (2, DynamicDim(bound=5)))


def node(op: str, *operands: RewrittenNode) -> RewrittenNode:
    (found,) = hlo.named(op)
    return RewrittenNode(found, ARRAY, operands, {"number": len(operands)})


def test_an_instruction_knows_its_array() -> None:
    made = node("parameter")
    assert (made.is_array, made.dims, made.dtype, made.rank, made.attrs) == (True, (2, 5), "f32", 2, {"number": 0})
    made.set_type(TupleType((ARRAY,)))
    assert (made.is_array, made.dims, made.dtype, made.rank) == (False, (), "", 0)
    assert (made.bodies, made.calls, made.origin, made.replacement, made.erased) == ((), (), (), None, False)


def test_a_name_is_the_label_or_the_operator() -> None:
    first, second = node("parameter"), node("parameter")
    assert first.name == "parameter"
    first.label = "x"
    assert first.name == "x"
    assert repr(node("negate", first)) == "%negate = f32[2,<=5] negate(%x)"
    second.take_label(first)
    assert (first.name, second.name) == ("parameter", "x")


def test_users_follow_operands() -> None:
    x, y = node("parameter"), node("parameter")
    twice, once = node("add", x, x), node("add", y, x)
    assert list(x.users) == [twice, once] and list(y.users) == [once]
    twice.set_operand(0, y)
    assert twice in x.users and twice in y.users, "the other operand still reads it"
    twice.set_operand(1, y)
    assert list(x.users) == [once]
    x.replace_uses(y)
    assert not x.users and once.operands == [y, y] and set(y.users) == {twice, once}
    once.detach()
    assert list(y.users) == [twice]


def test_operands_by_operator_and_final_replacements() -> None:
    x = node("parameter")
    negated = node("negate", x)
    assert negated.operand(hlo.parameter) is x
    assert negated.operand(hlo.add) is None and negated.operand(hlo.parameter, 1) is None
    second, third = node("parameter"), node("parameter")
    x.replacement, second.replacement = second, third
    assert x.final() is third and third.final() is third


@pytest.mark.parametrize(("shape", "is_static", "elements", "dims"), [
    ((2, 3), True, 6, (2, 3)), ((), True, 1, ()), ((2, DynamicDim(bound=5)), False, 10, (2, 5)), ((2, DynamicDim(name="n")), False, 2, None),
])
def test_sizes_of_types(shape: tuple[int | DynamicDim, ...], is_static: bool, elements: int, dims: tuple[int, ...] | None) -> None:
    type = TensorType(F32, shape)
    assert (type.is_static, type.elements, type.rank) == (is_static, elements, len(shape))
    if dims is None:
        with pytest.raises(ValueError, match="open dimension"):
            type.dims()
    else:
        assert type.dims() == dims


def test_a_derived_module_keeps_all_but_the_graphs() -> None:
    module = irscope.load("HloModule m, is_scheduled=true\nENTRY e {\n  ROOT x = f32[2] parameter(0)\n}\n").module()
    made = module.derived()
    assert (made.name, made.entry, made.graphs, made.attrs) == (module.name, "e", {}, module.attrs)
    assert made.attrs is not module.attrs and made.source is module.source and made.dialect is module.dialect
    assert module.derived("other").name == "other"
