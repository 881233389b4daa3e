"""BRD003: a column combined with a vector broadcasts to a square matrix, which is then reduced whole."""

from __future__ import annotations

from irscope.analysis.values import MOVES, dims, reduces, size
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, saving
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Reduce

JOINS = (hlo.subtract, hlo.add, hlo.multiply, hlo.divide)
SHORTEST = 4
"""Vectors shorter than this may well be crossed on purpose."""


class OuterProductByAccident(Rule):
    """A column combined with a vector of the same length broadcasts to a square matrix, which is then reduced whole.

    ## What it does
    Finds `add`, `subtract`, `multiply` and `divide` of an `(N, 1)` and an `(N,)`, broadcast to `(N, N)`, whose result, after elementwise
    operators, is reduced over both axes.

    ## Why is this bad?
    The result is wrong: a loss over N terms becomes one over all N x N pairs. The model runs and even trains, but badly.

    ## Use instead
    Bring both to one shape first: `pred.squeeze(-1)`, `pred[:, 0]`, or `target[:, None]`.

    ## Known false positives
    An intended sum over all pairs of a column and a vector; written as `x[:, None] - y[None, :]` of two vectors it is not reported.
    """

    code, name, severity = "BRD003", "outer-product-by-accident", Severity.ERROR
    timed = False
    structural = inside = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              guess = f32[64,1] parameter(0)
              target = f32[64] parameter(1)
              column = f32[64] reshape(guess)
              p = f32[64,64] broadcast(column), dimensions={0}
              t = f32[64,64] broadcast(target), dimensions={1}
              d = f32[64,64] subtract(p, t)
              q = f32[64,64] multiply(d, d)
              z = f32[] constant(0)
              ROOT loss = f32[] reduce(q, z), dimensions={0,1}, to_apply=sum
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[32] parameter(0)
              w = f32[32,1] parameter(1)
              row = f32[1,32] reshape(x)
              flat = f32[32] reshape(row)
              column = f32[32] reshape(w)
              a = f32[32,32] broadcast(flat), dimensions={1}
              b = f32[32,32] broadcast(column), dimensions={0}
              d = f32[32,32] multiply(a, b)
              m = f32[32,32] abs(d)
              z = f32[] constant(0)
              ROOT loss = f32[] reduce(m, z), dimensions={0,1}, to_apply=sum
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              guess = f32[64,1] parameter(0)
              same = f32[64,1] broadcast(guess), dimensions={0,1}
              column = f32[64] reshape(same)
              p = f32[64,64] broadcast(column), dimensions={0}
              target = f32[64] parameter(1)
              row = f32[1,64] reshape(target)
              still = f32[1,64] broadcast(row), dimensions={0,1}
              flat = f32[64] reshape(still)
              t = f32[64,64] broadcast(flat), dimensions={1}
              d = f32[64,64] subtract(p, t)
              q = f32[64,64] multiply(d, d)
              z = f32[] constant(0)
              ROOT loss = f32[] reduce(q, z), dimensions={0,1}, to_apply=sum
            }
        """,
            "d",
        ),
        Fixture.torchscript(
            """
            graph(%guess : Float(64, 1), %target : Float(64)):
              %one : int = prim::Constant[value=1]()
              %two : int = prim::Constant[value=2]()
              %none : NoneType = prim::Constant()
              %d : Float(64, 64) = aten::sub(%guess, %target, %one)
              %q : Float(64, 64) = aten::pow(%d, %two)
              %m : Float() = aten::sum(%q, %none)
              return (%m)
        """,
            "d",
        ),
        Fixture.relay(
            """
            def @main(%a: Tensor[(64, 1), float32], %b: Tensor[(64), float32]) {
              %0 = subtract(%a, %b);
              %1 = multiply(%0, %0);
              %2 = mean(%1);
              %2
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[64] parameter(0)
              y = f32[64] parameter(1)
              p = f32[64,64] broadcast(x), dimensions={0}
              t = f32[64,64] broadcast(y), dimensions={1}
              d = f32[64,64] subtract(p, t)
              q = f32[64,64] multiply(d, d)
              z = f32[] constant(0)
              ROOT loss = f32[] reduce(q, z), dimensions={0,1}, to_apply=sum
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              guess = f32[64,1] parameter(0)
              target = f32[64] parameter(1)
              column = f32[64] reshape(guess)
              p = f32[64,64] broadcast(column), dimensions={0}
              t = f32[64,64] broadcast(target), dimensions={1}
              d = f32[64,64] subtract(p, t)
              z = f32[] constant(0)
              ROOT rows = f32[64] reduce(d, z), dimensions={1}, to_apply=sum
            }
        """),
        Fixture.torchscript("""
            graph(%guess : Float(64), %target : Float(64)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %d : Float(64) = aten::sub(%guess, %target, %one)
              %m : Float() = aten::sum(%d, %none)
              return (%m)
        """),
        Fixture.relay("""
            def @main(%a: Tensor[(64, 1), float32], %b: Tensor[(64), float32]) {
              %0 = squeeze(%a, axis=[1]);
              %1 = subtract(%0, %b);
              %2 = multiply(%1, %1);
              mean(%2)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(*JOINS):
            shape = dims(node)
            if len(shape) != 2 or shape[0] != shape[1] or shape[0] < SHORTEST or graph in context.view.inlined:
                continue
            sources = [_vector(o) for o in node.operands]
            if None in sources or {axis for axis, _ in sources if axis is not None} != {0, 1}:  # type: ignore[misc]
                continue
            ranks = {source.type.rank for _, source in sources if isinstance(source.type, TensorType)}  # type: ignore[misc]
            if ranks != {1, 2} or not _summed_whole(context, node, graph):
                continue
            n = shape[0]
            names = " and ".join(f"%{source.name} {source.type}" for _, source in sources)  # type: ignore[misc]
            yield self.finding(
                context, node,
                f"{names} are broadcast to {n} x {n}, and all {n * n} pairs are summed, though {n} terms were probably intended",
                notes=tuple(Note(f"%{source.name} is {source.type}", source.loc) for _, source in sources),  # type: ignore[misc]
                help="give both one shape before: squeeze the column, or keep its axis in the other",
                saves=saving(bytes=float(size(node))),
            )


def _vector(node: Node) -> tuple[int, Node] | None:
    """The axis of a broadcast vector in the result, and the vector before reshapes."""
    kept = Broadcast.of(node).dimensions if node.op is hlo.broadcast else ()
    if len(kept) != 1:
        return None
    source = behind(node.operands[0], MOVES)
    while source.op is hlo.broadcast and dims(source) == dims(source.operands[0]):  # as JAX aligns ranks
        source = behind(source.operands[0], MOVES)
    if not any(d > 1 for d in dims(source)) or len(dims(source)) > 2:
        return None
    return kept[0], source


def _summed_whole(context: Context, node: Node, graph: Graph) -> bool:
    """Whether the square, after elementwise operators, is summed over both axes and has no other user."""
    at, summed = [node], False
    for step in at:
        if len(at) > 16:
            return False
        for user in context.view.users(step, graph):
            if reduces(user, hlo.add) and len(Reduce.of(user).dimensions) == 2:
                summed = True
            elif user.op.kind is Kind.ELEMENTWISE and dims(user) == dims(node):
                if user not in at:
                    at.append(user)
            else:
                return False
    return summed
