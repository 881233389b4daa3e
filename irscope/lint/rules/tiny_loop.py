"""CTL009: a loop of a few trips with a small body."""

from __future__ import annotations

from irscope.analysis.trips import trip_count
from irscope.analysis.values import CALLS, PLUMBING
from irscope.formats.torchscript import structure as torch
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.graph.walk import callees_first_of
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.ops import hlo

LOOPS = (hlo.while_, torch.LOOP)
FEW = range(2, 9)
"""The trips of a loop that is worth unrolling. A loop of one trip is reported by SHP004."""
SMALL = 32
"""The largest number of operators of a body and condition that can be written out eight times."""
SMALL_BYTES = 64 * 1024
"""The largest value of such a body: it stays in the nearest cache, so that starting kernels is what counts."""

_LOOP = """
    cond {{
      p = (s32[], f32[16,32]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      n = s32[] constant({0})
      ROOT c = pred[] compare(i, n), direction=LT
    }}
    body {{
      p = (s32[], f32[16,32]) parameter(0)
      i = s32[] get-tuple-element(p), index=0
      x = f32[16,32] get-tuple-element(p), index=1
      one = s32[] constant(1)
      j = s32[] add(i, one)
      t = f32[16,32] tanh(x)
      y = f32[16,32] add(x, t)
      ROOT r = (s32[], f32[16,32]) tuple(j, y)
    }}
    ENTRY e {{
      x = f32[16,32] parameter(0)
      z = s32[] constant(0)
      a = (s32[], f32[16,32]) tuple(z, x)
      l = (s32[], f32[16,32]) while(a), condition=cond, body=body
      ROOT g = f32[16,32] get-tuple-element(l), index=1
    }}
"""
_TORCH = """
            graph(%x : Float(16, 32)):
              %one : int = prim::Constant[value=1]()
              %t : bool = prim::Constant[value=1]()
              %n : int = prim::Constant[value={0}]()
              %y : Float(16, 32) = prim::Loop(%n, %t, %x)
                block0(%i : int, %v : Float(16, 32)):
                  %h : Float(16, 32) = aten::tanh(%v)
                  %s : Float(16, 32) = aten::add(%v, %h, %one)
                  -> (%t, %s)
              return (%y)
        """


class TinyLoop(Rule):
    """A loop of a few trips has a small body.

    ## What it does
    Finds loops of two to eight trips whose body and condition have at most 32 operators, on floats of at most 64 KiB, without side
    effects or communication. It claims no time: that depends on how the compiler runs loops.

    ## Why is this bad?
    Nothing fuses across the trips, and each one starts its kernels again and tests the condition.

    ## Use instead
    A loop of Python, which a trace writes out; `lax.scan(..., unroll=True)`, `lax.fori_loop(..., unroll=True)`.

    ## Known false positives
    Compilers that unroll such loops themselves; programs in which the time to compile counts more.
    """

    code, name, severity = "CTL009", "tiny-loop", Severity.INFO
    bad = (
        Fixture.hlo(_LOOP.format(3), "l"),
        Fixture.torchscript(_TORCH.format(3), "y"),
        Fixture.hlo(_LOOP.format(8), "l"),
    )
    good = (
        Fixture.hlo(_LOOP.format(100)),
        Fixture.torchscript(_TORCH.format(100)),
    )

    def check(self, context: Context) -> Findings:
        for loop, _ in context.view.primitives(*LOOPS):
            trips = trip_count(context.module, loop)
            if trips not in FEW or not _is_small(loop):
                continue
            yield self.finding(
                context, loop,
                f"this loop runs {trips} times, and its body is small: nothing fuses across its trips",
                help="write it out: a loop of Python, or unroll=True",
            )


def _is_small(loop: Node) -> bool:
    """Whether the bodies of a loop are few operators on small values, floats among them: integers alone are random bits or a search."""
    graphs: list[Graph] = callees_first_of(loop.bodies)
    nodes = [node for graph in graphs for node in graph.nodes if node.op not in PLUMBING]
    types = [node.type for node in nodes]
    tensors = [type for type in types if isinstance(type, TensorType)]
    if len(nodes) > SMALL or any(node.op.is_primitive and node.op.kind is Kind.OPAQUE and node.op not in CALLS for node in nodes):
        return False
    if any(not type.is_static or type.bytes > SMALL_BYTES for type in tensors):
        return False
    return len(tensors) < len(types) or any(type.dtype.is_float and type.shape for type in tensors)
