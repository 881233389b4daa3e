"""SHP003: axes of length 1 are added and removed in a row, or a value has too many axes."""

from __future__ import annotations

from irscope.analysis.values import dims
from irscope.graph import Kind, Node
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops import hlo
from irscope.source.plural import plural

HIGH_RANK = 6
"""Kernels with more loops than this are rarely written well."""


class DegenerateDims(Rule):
    """Reshapes in a row only add and remove axes of length 1, or a computed value has more than six axes.

    ## What it does
    Finds a `reshape` of a `reshape` where both only add or remove axes of length 1, and results with more than 6 axes.

    ## Why is this bad?
    It costs little in a compiled program, but makes graphs hard to read and hides patterns from pattern matchers.

    ## Use instead
    Keep one shape; `squeeze` and `expand_dims` once, where the shape is needed.

    ## Known false positives
    The broadcasting rules of a framework insert such pairs automatically.
    """

    code, name, severity, default = "SHP003", "degenerate-dims", Severity.INFO, False
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,4] parameter(0)
              a = f32[8,1,4] reshape(x)
              ROOT b = f32[1,8,4] reshape(a)
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[2,2,2,2,2,2,2] parameter(0)
              ROOT y = f32[2,2,2,2,2,2,2] negate(x)
            }
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 1, 16), float32]) {
              %0 = reshape(%x, newshape=[8, 16]);
              %1 = reshape(%0, newshape=[8, 16, 1]);
              %1
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,4] parameter(0)
              a = f32[32] reshape(x)
              ROOT b = f32[1,32] reshape(a)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[2,2,2,2,2,2] parameter(0)
              ROOT y = f32[2,2,2,2,2,2] negate(x)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 1, 16), float32]) {
              reshape(%x, newshape=[8, 16])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.reshape):
            first = node.operands[0] if node.operands else None
            if first is not None and first.op is hlo.reshape and _only_ones(node) and _only_ones(first):
                shapes = " -> ".join(str(list(dims(n))) for n in (first.operands[0], first, node))
                yield self.finding(
                    context, node,
                    f"two reshapes in a row move axes of length 1 only: {shapes}",
                    notes=(Note(f"%{first.name} is the first", first.loc),),
                    help=f"reshape %{first.operands[0].name} once",
                )
        for graph in context.view.array_graphs:
            crowded = [n for n, type in context.view.tensors(graph) if type.rank > HIGH_RANK and n.operands and n.op.kind is not Kind.TUPLE]
            if crowded:
                which = plural(len(crowded), "value of this graph has", "values of this graph have")
                yield self.finding(
                    context, crowded[0],
                    f"{len(dims(crowded[0]))} axes; {which} more than {HIGH_RANK}",
                    help="merge axes that always go together",
                )


def _only_ones(node: Node) -> bool:
    """Whether the reshape only adds or removes axes of length 1."""
    before, after = dims(node.operands[0]), dims(node)
    return before != after and [d for d in before if d != 1] == [d for d in after if d != 1]
