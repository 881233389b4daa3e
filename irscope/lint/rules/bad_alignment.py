"""SHP002: a dimension of a product falls just short of a multiple that vector and matrix units need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from irscope.analysis.values import dims
from irscope.graph import Graph, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.quantised import products, stored
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Dot

UNIT = 64
"""Padding aims at a multiple of this, which suits every vector and matrix unit."""
MINIMUM = {64: 8, 32: 8, 16: 8, 8: 16}
"""By the bits of the element type: a dimension that is no multiple of this leaves a part of the units idle."""
MOST = 0.12
"""The largest share of a dimension that padding may add."""
SMALLEST = 64


@dataclass(slots=True)
class _Seen:
    """A dimension of weights, and the products that have it."""

    graph: Graph
    axis: str
    nodes: list[Node] = field(default_factory=list)


class BadAlignment(Rule):
    """A weight dimension of a product is not a multiple of 8 (16 for 8-bit types), and padding it would cost little.

    ## What it does
    Checks weight dimensions of matrix products and channels of convolutions, from 64 up. Reports a dimension that is not a multiple of 8
    (16 for 8-bit types) if padding it to the next multiple of 64 adds at most 12 %. One finding per size.

    ## Why is this bad?
    Every row ends in a scalar remainder loop, rows begin at unaligned addresses, and matrix units (tensor cores) stay unused or run
    partly empty.

    ## Use instead
    Pad the vocabulary to 50304 (a multiple of 64); mask or ignore the extra logits.

    ## Known false positives
    Sizes that an interface fixes; libraries that pad the weights themselves when they pack them.
    """

    code, name, severity = "SHP002", "bad-alignment", Severity.WARNING
    structural = inside = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,768] parameter(0)
              w = f32[768,50257] parameter(1)
              ROOT d = f32[8,50257] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = s8[8,1000] parameter(0)
              w = s8[512,1000] parameter(1)
              t = s8[1000,512] transpose(w), dimensions={1,0}
              ROOT d = s32[8,512] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 300), float32], %w: Tensor[(512, 300), float32]) {
              %0 = nn.dense(%x, %w, units=512);
              nn.relu(%0)
            }
        """,
            "0",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 768), %w : Float(50257, 768), %b : Float(50257)):
              %y : Float(8, 50257) = aten::linear(%x, %w, %b)
              return (%y)
        """,
            "y",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[197,768] parameter(0)
              w = f32[768,1000] parameter(1)
              ROOT d = f32[197,1000] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,75] parameter(0)
              w = f32[75,10] parameter(1)
              ROOT d = f32[8,10] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 320), float32], %w: Tensor[(512, 320), float32]) {
              %0 = nn.dense(%x, %w, units=512);
              nn.relu(%0)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 768), %w : Float(50304, 768), %b : Float(50304)):
              %y : Float(8, 50304) = aten::linear(%x, %w, %b)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Findings:
        found: dict[int, _Seen] = {}
        for node, graph in products(context.view):
            if graph is not context.module.main():
                continue  # a parameter of a called computation may be anything
            for axis, size, bits in _weight_axes(node):
                step = MINIMUM.get(bits, 8)
                padded = -(-size // UNIT) * UNIT
                if size >= SMALLEST and size % step and padded <= size * (1 + MOST):
                    found.setdefault(size, _Seen(graph, axis)).nodes.append(node)
        for size, seen in found.items():
            first = seen.nodes[0]
            padded = -(-size // UNIT) * UNIT
            products_ = f"{len(seen.nodes)} products" if len(seen.nodes) > 1 else f"%{first.name}"
            yield self.finding(
                context, first,
                f"the {seen.axis} of {products_} is {size}, not a multiple of {MINIMUM.get(_bits(first), 8)}",
                help=f"pad it to {padded}: {100 * (padded - size) / size:.1f} % more work in whole vectors",
            )


def _bits(node: Node) -> int:
    source = node.operands[0].type
    return source.dtype.bits if isinstance(source, TensorType) else 32


def _weight_axes(node: Node) -> Iterator[tuple[str, int, int]]:
    """The weight dimensions of a product: for each, what it is, its length, and the bits of an element."""
    if len(node.operands) < 2 or stored(node.operands[1]) is None:
        return
    shape, bits = dims(node.operands[1]), _bits(node)
    if node.op is hlo.dot:
        summed, batch = Dot.of(node).rhs_contracting_dims, Dot.of(node).rhs_batch_dims
        for i, size in enumerate(shape):
            if i not in batch:
                yield ("depth" if i in summed else "width"), size, bits
    elif len(shape) > 2:
        labels = Convolution.of(node).dim_labels
        if max(labels.rhs_input, labels.rhs_output) >= len(shape):
            return  # SHP006 reports that the labels do not match the weights
        yield "input channels", shape[labels.rhs_input], bits
        yield "output channels", shape[labels.rhs_output], bits
