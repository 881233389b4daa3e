"""DTY006: some products of a model are quantised and others are not."""

from __future__ import annotations

from irscope.analysis.values import CASTS_AND_MOVES, size
from irscope.graph import Node
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes
from irscope.lint.quantised import dequantised, narrow, products, stored

WORTH_BYTES = 16 * 1024
"""Smaller weights are not worth quantising."""
LISTED = 5


class QuantisationIncomplete(Rule):
    """Some products of a kind have quantised weights and others have float weights.

    ## What it does
    Counts matrix products and convolutions whose weights (parameters or constants of 16 KiB and more) have 8 bits or fewer, and those
    of the same operator whose weights are floats. If there are both, reports the first float product, and lists the others.

    ## Why is this bad?
    A layer that an observer or a pattern missed silently runs at float speed.

    ## Use instead
    Write the layer in the form that the quantiser's pattern expects; give it an observer.

    ## Known false positives
    First and last layers are often kept in floats on purpose, for accuracy.
    """

    code, name, severity = "DTY006", "quantisation-incomplete", Severity.INFO
    structural = True
    timed = False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = s8[8,512] parameter(0)
              q = s8[512,512] parameter(1)
              w = f32[512,512] parameter(2)
              a = s32[8,512] dot(x, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              f = f32[8,512] convert(a)
              ROOT b = f32[8,512] dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,512] parameter(0)
              q = s8[512,512] parameter(1)
              w = f32[512,512] parameter(2)
              d = f32[512,512] convert(q)
              a = f32[8,512] dot(x, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              t = f32[512,512] transpose(w), dimensions={1,0}
              ROOT b = f32[8,512] dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "b",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 512), %q : Char(512, 512), %w : Float(512, 512)):
              %six : int = prim::Constant[value=6]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %d : Float(512, 512) = aten::to(%q, %six, %f, %f, %none)
              %a : Float(8, 512) = aten::mm(%x, %d)
              %y : Float(8, 512) = aten::mm(%a, %w)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%a: Tensor[(8, 512), int8], %b: Tensor[(512, 512), int8], %x: Tensor[(8, 512), float32], %w: Tensor[(512, 512),
            float32]) {
              %0 = nn.dense(%a, %b, out_dtype="int32");
              %1 = nn.dense(%x, %w);
              %2 = (%0, %1);
              %2
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,512] parameter(0)
              v = f32[512,512] parameter(1)
              w = f32[512,512] parameter(2)
              a = f32[8,512] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT b = f32[8,512] dot(a, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = s8[8,512] parameter(0)
              q = s8[512,512] parameter(1)
              w = f32[512,2] parameter(2)
              a = s32[8,512] dot(x, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              f = f32[8,512] convert(a)
              ROOT b = f32[8,2] dot(f, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(32, 512), %w : Float(512, 512)):
              %y : Float(32, 512) = aten::mm(%x, %w)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%a: Tensor[(8, 512), int8], %b: Tensor[(512, 512), int8]) {
              nn.dense(%a, %b, out_dtype="int32")
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        quantised: dict[str, list[Node]] = {}
        floats: dict[str, list[tuple[Node, Node]]] = {}
        for node, _ in products(context.view):
            if any(narrow(behind(o, CASTS_AND_MOVES)) or dequantised(o) for o in node.operands[:2]):
                quantised.setdefault(node.op.name, []).append(node)
                continue
            weights = [w for o in node.operands[:2] if (w := stored(o)) is not None and size(w) >= WORTH_BYTES]
            if weights:
                floats.setdefault(node.op.name, []).append((node, max(weights, key=size)))
        for kind, left in floats.items():
            if kind not in quantised:
                continue
            node = left[0][0]
            total = sum(size(w) for _, w in left)
            yield self.finding(
                context, node,
                f"{len(quantised[kind])} of {len(quantised[kind]) + len(left)} {kind} operations are quantised; "
                f"{len(left)} with {human_bytes(total)} of weights are not",
                notes=tuple(Note(f"%{n.name} reads %{w.name} {w.type}", n.loc) for n, w in left[:LISTED]),
                help="give the remaining layers observers, or say why they stay in floats",
            )
