"""DTY006: some products of a model are quantised and others are not."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Node
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.quantised import dequantised, narrow, products, stored
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import human_bytes
from irscope.lint.values import size
from irscope.source import Note, Severity

WORTH_BYTES = 16 * 1024
"""Smaller weights are not worth quantising."""
LISTED = 5


class QuantisationIncomplete(Rule):
    """Products with quantised weights stand beside products of the same kind with float weights.

    ## What it does
    Counts matrix products and convolutions whose weights (parameters or constants of 16 KiB and more) are of 8 bits or fewer, and those
    of the same operator whose weights are floats. Where there are both, the first float one is told, with the others.

    ## Why is this bad?
    A layer that was left out by an observer or a pattern that did not match runs at float speed, and nobody sees it.

    ## Example
    ```
    %a = s32[8,512] dot(s8[8,512] %x, s8[512,512] %q), ...
    %b = f32[8,512] dot(f32[8,512] %y, f32[512,512] %w), ...
    ```

    ## Use instead
    Look at how the layer is written where the quantiser expects a pattern; give it an observer.

    ## Known false positives
    First and last layers are often left in floats on purpose, for accuracy.
    """

    code, name, severity, default = "DTY006", "quantisation-incomplete", Severity.WARNING, False
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
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        quantised: dict[str, list[Node]] = {}
        floats: dict[str, list[tuple[Node, Node]]] = {}
        homes = {}
        for node, graph in products(context):
            homes[node] = graph
            if any(narrow(o) or dequantised(o) for o in node.operands[:2]):
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
            yield context.finding(
                self,
                node,
                homes[node],
                f"{len(quantised[kind])} of {len(quantised[kind]) + len(left)} {kind} operations are quantised; "
                f"{len(left)} with {human_bytes(total)} of weights are not",
                notes=tuple(Note(f"%{n.name} reads %{w.name} {w.type}", n.loc) for n, w in left[:LISTED]),
                help="give the remaining layers observers, or say why they stay in floats",
            )
