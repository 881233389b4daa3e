"""BRD005: scalar arithmetic is done after the scalar is broadcast to a tensor."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import COPIES, dims, number
from irscope.graph import Kind, Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Rule, Severity, Site
from irscope.ops import hlo

WORTH = 1024
"""The number of elements from which repeated arithmetic is reported."""


class ScalarTensorBroadcastLate(Rule):
    """Scalar arithmetic is done on tensors whose elements are all equal.

    ## What it does
    Finds elementwise operators of at least 1024 elements that are all equal, because every operand is a scalar broadcast to the full
    shape. Reports the last operator of such a chain. Ignores chains of constants alone: compilers fold them.

    ## Why is this bad?
    One operation would be enough, but the program does one per element.

    ## Use instead
    Multiply the scalars first, in parentheses: `x * (rate * decay)`.

    ## Known false positives
    Compilers that move scalar arithmetic before the broadcast themselves (XLA and irscope do).
    """

    code, name, severity, default = "BRD005", "scalar-tensor-broadcast-late", Severity.INFO, False
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096] parameter(0)
              rate = f32[] parameter(1)
              decay = f32[] parameter(2)
              a = f32[4096] broadcast(rate), dimensions={}
              b = f32[4096] broadcast(decay), dimensions={}
              s = f32[4096] multiply(a, b)
              ROOT r = f32[4096] multiply(x, s)
            }
        """,
            "s",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,64] parameter(0)
              t = f32[] parameter(1)
              a = f32[64,64] broadcast(t), dimensions={}
              s = f32[64,64] sqrt(a)
              n = f32[64,64] negate(s)
              ROOT r = f32[64,64] divide(x, n)
            }
        """,
            "n",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4096), float32], %s: float32, %u: float32) {
              %0 = broadcast_to(%s, shape=[4096]);
              %1 = broadcast_to(%u, shape=[4096]);
              %2 = divide(%0, %1);
              %3 = multiply(%x, %2);
              %3
            }
        """,
            "2",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[4096] parameter(0)
              rate = f32[] parameter(1)
              decay = f32[] parameter(2)
              s = f32[] multiply(rate, decay)
              a = f32[4096] broadcast(s), dimensions={}
              ROOT r = f32[4096] multiply(x, a)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[4096] parameter(0)
              one = f32[] constant(1)
              two = f32[] constant(2)
              a = f32[4096] broadcast(one), dimensions={}
              b = f32[4096] broadcast(two), dimensions={}
              s = f32[4096] divide(a, b)
              ROOT r = f32[4096] multiply(x, s)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(4096), float32], %s: float32, %u: float32) {
              %0 = divide(%s, %u);
              %1 = broadcast_to(%0, shape=[4096]);
              multiply(%x, %1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            uniform = context.view.uniform(graph)
            for node in graph.nodes:
                if not uniform[node.index] or not _filled(node, uniform):
                    continue
                users = context.view.users(node, graph)
                if any(_filled(u, uniform) for u in users) or _of_constants(node):
                    continue
                n = node.type.elements  # type: ignore[attr-defined]
                yield self.finding(
                    context, node,
                    f"{node.op.name} computes {n} equal elements: its operands are broadcast scalars",
                    help="do the arithmetic on the scalars, then broadcast",
                    saves=Edit({node: partial(_scalar, node)}),
                )


def _scalar(node: Node, site: Site) -> Node:
    """The same value, computed on a scalar and broadcast once."""
    assert isinstance(node.type, TensorType)
    one = site.builder.param(hlo.parameter, TensorType(node.type.dtype, ()), node.name)
    return site.op(hlo.broadcast, one, type=node.type, attrs={"dimensions": ()})


def _filled(node: Node, uniform: list[frozenset[int]]) -> bool:
    """Whether an elementwise operator fills a large tensor with one number."""
    if node.op.kind is not Kind.ELEMENTWISE or not node.operands or node.op in COPIES:
        return False
    shape = dims(node)
    axes = uniform[node.index]
    return bool(shape) and all(d == 1 or i in axes for i, d in enumerate(shape)) and node.type.elements >= WORTH  # type: ignore[attr-defined]


def _of_constants(node: Node) -> bool:
    """Whether the number is known before the program runs."""
    stack, seen = [node], {node.index}
    while stack and len(seen) < 64:
        at = stack.pop()
        for operand in at.operands:
            if number(operand) is None and operand.index not in seen:
                if operand.op.kind is not Kind.ELEMENTWISE:
                    return False
                seen.add(operand.index)
                stack.append(operand)
    return True
