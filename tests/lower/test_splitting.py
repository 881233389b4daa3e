"""Groups that no template takes as a whole: lowering splits them into kernels of one operator each, which compute the same."""
from __future__ import annotations

import pytest

from irscope.fusion import Group
from irscope.fusion.views import VIEWS
from irscope.graph import Kind
from irscope.lower.kernels import KernelCache
from irscope.lower.templates import Built, Problem
from irscope.ops import hlo
from tests.lower.test_lowering import LAYER_NORM, SOFTMAX
from tests.lower.whole import ADD, MAX, check, entry, templates

TWO = """two { a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 s = f32[] add(a, b)
 m = s32[] maximum(i, j)
 ROOT r = (f32[], s32[]) tuple(s, m) }
"""
TEXTS: dict[str, tuple[str, list[str]]] = {  # text, the operators of its kernels in order
    "softmax": (SOFTMAX, ["reduce", "subtract", "exponential", "reduce", "divide"]),
    "layer norm": (LAYER_NORM, ["reduce", "multiply", "subtract", "multiply", "reduce", "multiply", "add", "rsqrt", "multiply", "multiply"]),
    "pointwise": ("""
        x = f32[3,4] parameter(0)
        i = f32[3,4] iota(), iota_dimension=1
        a = f32[3,4] add(x, i)
        t = f32[4,3] transpose(a), dimensions={1,0}
        e = f32[4,3] exponential(t)
        ROOT r = f32[4,3] multiply(e, t)""", ["add", "exponential", "multiply"]),
    "a value and views of it": ("""
        x = f32[3,4] parameter(0)
        y = f32[4] parameter(1)
        b = f32[3,4] broadcast(y), dimensions={1}
        i = f32[3,4] iota(), iota_dimension=0
        a = f32[3,4] add(x, i)
        m = f32[3,4] multiply(a, b)
        t = f32[4,3] transpose(m), dimensions={1,0}
        ROOT r = (f32[3,4], f32[4,3], f32[3,4], f32[3,4]) tuple(m, t, b, i)""", ["add", "multiply"]),
    "a result that is only shown": ("""
        x = f32[40,6] parameter(0)
        n = f32[40,6] negate(x)
        e = f32[40,6] cosine(n)
        t = f32[6,40] transpose(e), dimensions={1,0}
        ROOT s = f32[6,20] slice(t), slice={[0:6], [0:40:2]}""", ["negate", "cosine"]),
    "what a product is joined with": ("""
        x = f32[3,5] parameter(0)
        w = f32[5,4] parameter(1)
        b = f32[4] parameter(2)
        d = f32[3,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
        k = f32[3,4] broadcast(b), dimensions={1}
        s = f32[3,4] add(d, k)
        ROOT r = f32[3,4] tanh(s)""", ["dot", "add", "tanh"]),
    "a reduction of two values": ("""
        x = f32[3,6] parameter(0)
        z = f32[] constant(0)
        y = f32[3,6] negate(x)
        i = s32[3,6] iota(), iota_dimension=1
        n = s32[] constant(-1)
        p = (f32[3], s32[3]) reduce(y, i, z, n), dimensions={1}, to_apply=two
        s = f32[3] get-tuple-element(p), index=0
        m = s32[3] get-tuple-element(p), index=1
        c = f32[3] convert(m)
        ROOT r = f32[3] multiply(s, c)""", ["negate", "reduce", "convert", "multiply"]),
}

BY = {"dot": "contraction", "reduce": "reduction"}
"""What builds a product and a reduction of one value that stand alone, by operator."""


def computes(group: Group) -> list[str]:
    """The operators of a group that are not views, counts or parts of tuples."""
    return [n.op.name for n in group.nodes if n.op not in VIEWS and n.op is not hlo.iota and n.op.kind is not Kind.TUPLE]


@pytest.mark.parametrize("name", TEXTS)
def test_what_no_template_takes_as_a_whole_is_computed_operator_by_operator(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, wanted = TEXTS[name]
    build, built = KernelCache.build, []

    def refuse(self: KernelCache, problem: Problem) -> Built | None:
        found = computes(problem.group)
        if len(found) > 1:
            return None
        built.extend(found)
        return build(self, problem)

    monkeypatch.setattr(KernelCache, "build", refuse)
    model = check(entry(text, ADD + MAX + TWO), runs=1)
    assert built == wanted
    assert [t for t in templates(model) if t in ("contraction", "reduction")] == [BY[op] for op in wanted if op in BY and name != "a reduction of two values"]

