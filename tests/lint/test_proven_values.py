"""Programs in which a change of :mod:`irscope.lint.proven` would change the values: the candidate does not apply."""

from __future__ import annotations

import pytest

import irscope
from irscope.graph import Graph
from irscope.lint.edits import Edit, built
from irscope.lint.proven.site import RefusedEdge
from irscope.lint.proven.table import TABLE
from irscope.lint.proven.trial import TrialScope, apply_edit
from tests.lint.proven_texts import REDUCERS

HALVES = REDUCERS.replace("f32", "f16")

REFUSED = {
    "products of which the first accumulates in a wider type": ("product-reordered", "d e", """
        a = bf16[512,512] parameter(0)
        b = bf16[512,512] parameter(1)
        v = f32[512,1] parameter(2)
        d = f32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[512,1] dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""),
    "integers of 8 bits, of which the products are of 32": ("product-reordered", "d e", """
        a = s8[512,512] parameter(0)
        b = s8[512,512] parameter(1)
        v = s32[512,1] parameter(2)
        d = s32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = s32[512,1] dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""),
    "a dimension of length zero": ("product-reordered", "d e", """
        a = f32[4,3] parameter(0)
        b = f32[3,0] parameter(1)
        v = f32[0,2] parameter(2)
        d = f32[4,0] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = f32[4,2] dot(d, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""),
    "a product in half precision, which the library sums in single": ("sum-of-products", "d e", """
        x = bf16[8,4096] parameter(0)
        w = bf16[4096,8] parameter(1)
        d = bf16[8,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        ROOT e = bf16[8,8] negate(d)"""),
    "a division of integers": ("scale-after-product", "s d", """
        x = s32[8,16] parameter(0)
        n = s32[] parameter(1)
        w = s32[16,8] parameter(2)
        b = s32[8,16] broadcast(n), dimensions={}
        s = s32[8,16] divide(x, b)
        ROOT d = s32[8,8] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""),
    "a scale that keeps a product in the range of f16": ("scale-after-product", "s d", """
        x = f16[8,16] parameter(0)
        n = f16[] parameter(1)
        w = f16[16,8] parameter(2)
        b = f16[8,16] broadcast(n), dimensions={}
        s = f16[8,16] multiply(x, b)
        ROOT d = f16[8,8] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""),
    "a mean in f16, of which the summands would be too small": ("scale-before-sum", "s m", """
        x = f16[8,4096] parameter(0)
        n = f16[8] parameter(1)
        z = f16[] constant(0)
        s = f16[8] reduce(x, z), dimensions={1}, to_apply=sum
        ROOT m = f16[8] divide(s, n)"""),
    "a reciprocal that f16 does not hold": ("reciprocal", "d a", """
        x = f16[8,64] parameter(0)
        n = f16[8] parameter(1)
        b = f16[8,64] broadcast(n), dimensions={0}
        d = f16[8,64] divide(x, b)
        ROOT a = f16[8,64] add(d, x)"""),
    "an effect": ("duplicate", "c a", """
        x = f32[8] parameter(0)
        c = f32[8] custom-call(x), custom_call_target="callback", custom_call_has_side_effect=true
        a = f32[8] negate(c)
        b = f32[8] tanh(c)
        ROOT r = (f32[8], f32[8]) tuple(a, b)"""),
    "random numbers": ("duplicate", "c a", """
        x = f32[] parameter(0)
        y = f32[] parameter(1)
        c = f32[8] rng(x, y), distribution=rng_uniform
        a = f32[8] negate(c)
        b = f32[8] tanh(c)
        ROOT r = (f32[8], f32[8]) tuple(a, b)"""),
    "a type that has no sign": ("cast-after", "c a", """
        x = f8e8m0fnu[8] parameter(0)
        c = f32[8] convert(x)
        ROOT a = f32[8] negate(c)"""),
    "a type that has no negative zero": ("cast-after", "c a", """
        x = f8e4m3fnuz[8] parameter(0)
        c = f32[8] convert(x)
        ROOT a = f32[8] negate(c)"""),
    "a type that has no sign, of one that has": ("cast-after", "c a", """
        x = f4e2m1fn[8] parameter(0)
        c = f8e8m0fnu[8] convert(x)
        ROOT a = f8e8m0fnu[8] abs(c)"""),
    "a bitcast, which reads the layout of a copy": ("movement-before", "c b", """
        x = f32[2,4]{1,0} parameter(0)
        c = f32[2,4]{0,1} copy(x)
        ROOT b = f32[8]{0} bitcast(c)"""),
    "a bitcast to another layout": ("movement-after", "b c", """
        x = f32[2,4]{0,1} parameter(0)
        b = f32[8]{0} bitcast(x)
        ROOT c = f32[8]{0} negate(b)"""),
}


def change(key: str, ends: str, body: str) -> tuple[Graph, Edit | None]:
    """The entry of a program, and what a candidate makes of its edge."""
    reducers = HALVES if "reduce(" in body and "f16" in body else REDUCERS
    graph = irscope.load(f"HloModule m\n{reducers}\nENTRY main {{{body}\n}}\n", format="hlo").module().main()
    named = {node.name: node for node in graph.nodes}
    producer, consumer = (named[end] for end in ends.split())
    candidate = next(one for one in TABLE if one.key == key)
    return graph, candidate.change(RefusedEdge(graph, producer, consumer, "", "", graph.users()))


@pytest.mark.parametrize("name", REFUSED)
def test_a_change_of_the_values_is_not_tried(name: str) -> None:
    assert change(*REFUSED[name])[1] is None


def test_the_sides_of_a_product_are_swapped_with_their_precisions() -> None:
    graph, edit = change("product-swapped", "d t", """
        x = f32[8,16] parameter(0)
        w = f32[16,4] parameter(1)
        d = f32[8,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, operand_precision={highest,default}
        ROOT t = f32[4,8] transpose(d), dimensions={1,0}""")
    assert edit is not None
    made = built(graph.nodes, [graph.result()], edit, "main").result()
    assert [operand.name for operand in made.operands] == ["w", "x"]
    assert made.attrs["operand_precision"] == ("default", "highest")


def test_a_changed_computation_keeps_the_order_of_its_parameters() -> None:
    """A text may define parameter 1 first; the caller passes its operands by number."""
    module = irscope.load("""HloModule m

f {
  b = f32[4,8] parameter(1)
  a = f32[2,4] parameter(0)
  ROOT d = f32[2,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

ENTRY main {
  y = f32[4,8] parameter(1)
  x = f32[2,4] parameter(0)
  ROOT c = f32[2,8] call(x, y), to_apply=f
}
""").module()
    graph = module.graphs["f"]
    made = apply_edit(TrialScope(module, graph, graph.nodes, [graph.result()], True), None)
    for name, before in module.graphs.items():
        assert [param.name for param in made.graphs[name].params] == [param.name for param in before.params]
