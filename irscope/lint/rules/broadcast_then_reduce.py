"""BRD004: a reduction over axes along which all elements are equal."""

from __future__ import annotations

from functools import partial
from math import prod

from irscope.analysis.recognise.parts import axes_text
from irscope.analysis.values import body_operator, dims, number, size
from irscope.graph import Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Rule, Severity, Site, human_bytes
from irscope.ops import hlo
from irscope.ops.attributes import Reduce

SAYS = {
    hlo.add: "multiply by the number of terms",
    hlo.maximum: "the maximum of equal elements is the element",
    hlo.minimum: "the minimum of equal elements is the element",
    hlo.and_: "equal elements stay what they are",
    hlo.or_: "equal elements stay what they are",
    hlo.multiply: "raise to the number of factors",
}
WORTH = 1024
"""Below this number of elements the repeated sum costs nothing."""


class BroadcastThenReduce(Rule):
    """A value is broadcast along an axis and then reduced along the same axis.

    ## What it does
    Finds `reduce` over axes along which the operand is only broadcast, also through elementwise operators on values broadcast along the
    same axes, and also when further axes are reduced. In text from before optimisation it is information if only the broadcast axes are
    reduced: compilers simplify that case.

    ## Why is this bad?
    The work grows with the length of the axis, though the result follows from one element: a sum of N equal terms is N times the term.

    ## Use instead
    `x * 64`; for a maximum, `x` itself. Often a sum was meant along another axis.

    ## Known false positives
    A broadcast that a later change of the model will fill with different values. Constants are not reported.
    """

    code, name, severity = "BRD004", "broadcast-then-reduce", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1024] parameter(0)
              b = f32[64,1024] broadcast(x), dimensions={1}
              z = f32[] constant(0)
              ROOT r = f32[1024] reduce(b, z), dimensions={0}, to_apply=sum
            }
        """,
            "r",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[32] parameter(0)
              y = f32[] parameter(1)
              b = f32[32,64] broadcast(x), dimensions={0}
              c = f32[32,64] broadcast(y), dimensions={}
              m = f32[32,64] multiply(b, c)
              z = f32[] constant(0)
              ROOT r = f32[32] reduce(m, z), dimensions={1}, to_apply=max
            }
        """,
            "r",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[32,64] parameter(0)
              b = f32[16,32,64] broadcast(x), dimensions={1,2}
              z = f32[] constant(0)
              ROOT r = f32[64] reduce(b, z), dimensions={0,1}, to_apply=sum
            }
        """,
            "r",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(1024), float32]) {
              %0 = broadcast_to(%x, shape=[64, 1024]);
              %1 = sum(%0, axis=[0]);
              %1
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[1024] parameter(0)
              b = f32[64,1024] broadcast(x), dimensions={1}
              z = f32[] constant(0)
              ROOT r = f32[64] reduce(b, z), dimensions={1}, to_apply=sum
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,1024] parameter(0)
              y = f32[1024] parameter(1)
              b = f32[64,1024] broadcast(y), dimensions={1}
              m = f32[64,1024] add(x, b)
              z = f32[] constant(0)
              ROOT r = f32[1024] reduce(m, z), dimensions={0}, to_apply=sum
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(1024), float32]) {
              %0 = broadcast_to(%x, shape=[64, 1024]);
              sum(%0, axis=[1])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.reduce):
            operator = body_operator(node)
            says = SAYS.get(operator) if operator is not None else None
            if says is None or len(node.operands) != 2 or number(node.operands[0]) is not None:
                continue
            source, shape = node.operands[0], dims(node.operands[0])
            over = [d for d in Reduce.of(node).dimensions if d < len(shape) and shape[d] > 1]
            same = [d for d in over if d in context.view.uniform(graph)[source.index]]
            if not same:
                continue
            repeats = prod(shape[d] for d in same)
            known = same == over and not context.view.optimised  # compilers simplify that
            small = source.type.elements < WORTH  # type: ignore[attr-defined]
            dtype = node.type.dtype  # type: ignore[attr-defined]
            countable = not dtype.is_float or repeats <= dtype.largest
            yield self.finding(
                context, node,
                f"{repeats} equal elements are reduced to one: %{source.name} ({human_bytes(size(source))}) repeats along "
                f"{axes_text(same)}",
                help=f"{says}, without the broadcast",
                saves=Edit({node: partial(_counted, node, tuple(same))}, (source,)) if countable else None,
            ).with_severity(Severity.INFO if small or known else None)


def _counted(node: Node, same: tuple[int, ...], site: Site) -> Node:
    """One of the elements that are equal along ``same``, reduced over the remaining axes and multiplied by their number."""
    source = node.operands[0]
    assert isinstance(source.type, TensorType) and isinstance(node.type, TensorType)
    limits = tuple(1 if d in same else n for d, n in enumerate(dims(source)))
    attrs = {"slice": tuple((0, n, 1) for n in limits)}
    one = site.op(hlo.slice, site.new(source), type=TensorType(source.type.dtype, limits), attrs=attrs)
    rest = any(limits[d] > 1 for d in Reduce.of(node).dimensions)
    kept = site.copy(node, one, site.new(node.operands[1])) if rest else site.op(hlo.reshape, one, type=node.type)
    if body_operator(node) is not hlo.add:
        return kept
    return site.op(hlo.multiply, kept, site.number(float(prod(dims(source)[d] for d in same)), node.type), type=node.type)
