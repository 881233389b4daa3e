"""SHP004: a tensor without elements, or a loop that runs once or never."""

from __future__ import annotations

from irscope.analysis.trips import trip_count
from irscope.analysis.values import dims
from irscope.graph import Kind, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.ops import hlo


class ZeroSizeOrUnitLoop(Rule):
    """A computed tensor has no elements, or a loop runs once or not at all.

    ## What it does
    Finds the operations where a dimension of 0 first appears, except lists of integers, and `while` loops whose trip count is known to be
    0 or 1.

    ## Why is this bad?
    A tensor without elements is usually a wrong slice or an unnoticed empty batch. A loop with one trip needlessly hides its body from the
    compiler.

    ## Use instead
    Correct the slice; remove the loop, or correct its trip count.

    ## Known false positives
    Generic code that is traced for a special case, such as a cache of length 0.
    """

    code, name, severity = "SHP004", "zero-size-or-unit-loop", Severity.INFO
    structural = True
    timed = False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4,8] parameter(0)
              s = f32[0,8] slice(x), slice={[4:4], [0:8]}
              ROOT r = f32[0,8] negate(s)
            }
        """,
            "s",
        ),
        Fixture.hlo(
            """
            cond {
              p = (s32[], f32[8]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              n = s32[] constant(1)
              ROOT c = pred[] compare(i, n), direction=LT
            }
            body {
              p = (s32[], f32[8]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              x = f32[8] get-tuple-element(p), index=1
              o = s32[] constant(1)
              j = s32[] add(i, o)
              y = f32[8] negate(x)
              ROOT t = (s32[], f32[8]) tuple(j, y)
            }
            ENTRY e {
              x = f32[8] parameter(0)
              z = s32[] constant(0)
              t = (s32[], f32[8]) tuple(z, x)
              ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body
            }
        """,
            "w",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 16)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %e : Float(0, 16) = aten::slice(%x, %zero, %zero, %zero, %one)
              %y : Float(0, 16) = aten::tanh(%e)
              return (%y)
        """,
            "e",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 16), float32]) {
              %0 = strided_slice(%x, begin=[2], end=[2], strides=[1], axes=[0]);
              %1 = tanh(%0);
              %1
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[4,8] parameter(0)
              s = f32[1,8] slice(x), slice={[3:4], [0:8]}
              ROOT r = f32[1,8] negate(s)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = s64[2] parameter(0)
              s = s64[0] slice(x), slice={[2:2]}
              ROOT r = s64[2] concatenate(x, s), dimensions={0}
            }
        """),
        Fixture.hlo("""
            cond {
              p = (s32[], f32[8]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              n = s32[] constant(5)
              ROOT c = pred[] compare(i, n), direction=LT
            }
            body {
              p = (s32[], f32[8]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              x = f32[8] get-tuple-element(p), index=1
              o = s32[] constant(1)
              j = s32[] add(i, o)
              y = f32[8] negate(x)
              ROOT t = (s32[], f32[8]) tuple(j, y)
            }
            ENTRY e {
              x = f32[8] parameter(0)
              z = s32[] constant(0)
              t = (s32[], f32[8]) tuple(z, x)
              ROOT w = (s32[], f32[8]) while(t), condition=cond, body=body
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 16)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %e : Float(1, 16) = aten::slice(%x, %zero, %zero, %one, %one)
              %y : Float(1, 16) = aten::tanh(%e)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 16), float32]) {
              %0 = strided_slice(%x, begin=[2], end=[4], strides=[1], axes=[0]);
              tanh(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            if graph in context.view.inlined:
                continue
            for node, type in context.view.tensors(graph):
                if type.rank == 1 and type.dtype.is_integer:
                    continue  # a list of sizes or indices that happens to be empty
                if 0 in type.shape and node.op.kind not in (Kind.LEAF, Kind.TUPLE) and not any(_empty(o) for o in node.operands):
                    yield self.finding(context, node, f"{type} has no elements", help="is the slice or the batch meant to be empty?")
        for node, _ in context.view.primitives(hlo.while_):
            trips = trip_count(context.module, node)
            if trips is not None and trips <= 1:
                how = "never runs" if trips == 0 else "runs once"
                yield self.finding(context, node, f"this loop {how}", help="remove it" if trips == 0 else "inline its body")


def _empty(node: Node) -> bool:
    return isinstance(node.type, TensorType) and 0 in dims(node)
