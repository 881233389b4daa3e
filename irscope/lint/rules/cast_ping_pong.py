"""DTY003: a value is converted to another type and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from irscope.graph import Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, RuleFinding, Severity, Site, human_bytes
from irscope.ops.sets import hlo, relay

MOVEMENT = hlo("reshape transpose broadcast slice reverse copy bitcast") | relay("reshape transpose reverse copy")
"""Operators that move elements and do not change them."""

CASTS = hlo("convert") | relay("cast")
FAR = 64
"""The data movements that are looked through: each is moved for each conversion behind it."""


class CastPingPong(Rule):
    """A value is converted to another element type and back, with nothing computed between.

    ## What it does
    Finds ``convert`` to a type and ``convert`` back to the original type, also across reshapes, transposes, broadcasts and slices.
    Does not report integers truncated to fewer bits and back (a mask), floats to integers and back (deliberate rounding), types of 8 bits
    and fewer (quantisation), and narrower floats in compiled text: a compiler emulates bfloat16 this way on machines without it.

    ## Why is this bad?
    Both conversions cost time and, if a kernel boundary separates them, memory traffic. If the intermediate type is narrower, the value
    loses precision: an error of the model unless it is intended.

    ## Use instead
    Use the value before the first conversion; convert once, after the last operation that needs the other type.

    ## Known false positives
    A value is rounded to a narrower type and back on purpose, to match a model that does so; allow the rule for those scopes.
    """

    code, name, severity = "DTY003", "cast-ping-pong", Severity.WARNING
    fix = Fix.REWRITE
    passes = ("simplify-algebra",)
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              p = bf16[1024] parameter(0)
              w = f32[1024] convert(p)
              ROOT b = bf16[1024] convert(w)
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8,4] parameter(0)
              n = f16[8,4] convert(p)
              t = f16[4,8] transpose(n), dimensions={1,0}
              ROOT b = f32[4,8] convert(t)
            }
        """,
            "b",
        ),
        Fixture(
            "relay",
            """def @main(%p: Tensor[(1024), float16]) {
  %0 = cast(%p, dtype="float32");
  %1 = cast(%0, dtype="float16");
  return %1;
}
""",
            ("1",),
        ),
        Fixture.torchscript(
            """
            graph(%x : Half(1024)):
              %five : int = prim::Constant[value=5]()
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %w : Float(1024) = aten::to(%x, %six, %f, %f, %none)
              %b : Half(1024) = aten::to(%w, %five, %f, %f, %none)
              %y : Half(1024) = aten::relu(%b)
              return (%y)
        """,
            "b",
        ),
    )
    good = (
        Fixture(
            "relay",
            """def @main(%p: Tensor[(1024), float16]) {
  %0 = cast(%p, dtype="float32");
  %1 = exp(%0);
  %2 = cast(%1, dtype="float16");
  return %2;
}
""",
        ),
        Fixture.hlo("""
            ENTRY e {
              p = bf16[1024] parameter(0)
              w = f32[1024] convert(p)
              s = f32[1024] exponential(w)
              ROOT b = bf16[1024] convert(s)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              p = s32[8] parameter(0)
              w = f32[8] convert(p)
              ROOT b = f64[8] convert(w)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              key = u64[8] parameter(0)
              low = u32[8] convert(key)
              masked = u64[8] convert(low)
              x = f32[8] parameter(1)
              whole = s32[8] convert(x)
              rounded = f32[8] convert(whole)
              narrow = f8e4m3fn[8] convert(x)
              coarse = f32[8] convert(narrow)
              ROOT t = (u64[8], f32[8], f32[8]) tuple(masked, rounded, coarse)
            }
        """),
        Fixture(
            "hlo",
            """HloModule m, is_scheduled=true

fused {
  a = f32[8] parameter(0)
  s = f32[8] multiply(a, a)
  n = bf16[8] convert(s)
  w = f32[8] convert(n)
  e = f32[8] exponential(w)
  ROOT r = bf16[8] convert(e)
}

ENTRY e {
  x = f32[8] parameter(0)
  ROOT f = bf16[8] fusion(x), kind=kLoop, calls=fused
}
""",
        ),
        Fixture.torchscript("""
            graph(%x : Half(1024)):
              %five : int = prim::Constant[value=5]()
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %w : Float(1024) = aten::to(%x, %six, %f, %f, %none)
              %e : Float(1024) = aten::exp(%w)
              %b : Half(1024) = aten::to(%e, %five, %f, %f, %none)
              return (%b)
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            for node in context.view.with_op(CASTS, graph):
                way = _undone(node)
                if way and not _meant(node, way[0], context.view.optimised):
                    yield self._finding(context, node, *way)

    def _finding(self, context: Context, node: Node, first: Node, *moves: Node) -> RuleFinding:
        outer, inner = node.type, first.type
        assert isinstance(outer, TensorType) and isinstance(inner, TensorType)
        lossy = not inner.dtype.holds(outer.dtype)
        what = "loses digits on the way" if lossy else "changes nothing"
        found = self.finding(
            context, node,
            f"{outer.dtype} -> {inner.dtype} -> {outer.dtype} {what} ({human_bytes(inner.bytes + outer.bytes)} written)",
            notes=(Note(f"the first conversion is %{first.name}", first.loc),),
            help=f"use %{first.operands[0].name} where %{node.name} is used" + (", if the rounding is not meant" if lossy else ""),
            saves=Edit({node: partial(_moved, moves, first, outer)}, (first.operands[0], *moves)),
        )
        found.timed = not lossy
        return found


def _undone(node: Node) -> list[Node]:
    """The conversion that a conversion undoes, and the data movement between them, in order; empty where it undoes none."""
    if not node.operands or not isinstance(node.type, TensorType):
        return []
    way = [node.operands[0]]
    while way[-1].op in MOVEMENT and way[-1].operands and len(way) <= FAR:
        way.append(way[-1].operands[0])
    first = way[-1]
    if first.op not in CASTS or not isinstance(first.type, TensorType):
        return []
    source = first.operands[0].type
    undoes = isinstance(source, TensorType) and source.dtype is node.type.dtype and first.type.dtype is not node.type.dtype
    return way[::-1] if undoes else []


def _meant(node: Node, first: Node, compiled: bool) -> bool:
    """Whether the loss is intended: masked bits, rounded numbers, quantisation, emulated arithmetic."""
    outer, inner = node.type, first.type
    assert isinstance(outer, TensorType) and isinstance(inner, TensorType)
    if inner.dtype.holds(outer.dtype):
        return False
    return inner.dtype.is_integer or inner.dtype.bits <= 8 or (compiled and inner.dtype.is_float and outer.dtype.is_float)


def _moved(moves: Sequence[Node], first: Node, outer: TensorType, site: Site) -> Node:
    """The operand of the first conversion, moved in its own type."""
    at = site.new(first.operands[0])
    for move in moves:
        assert isinstance(move.type, TensorType)
        at = site.copy(move, at, *map(site.new, move.operands[1:]), type=move.type.with_dtype(outer.dtype))
    return at
