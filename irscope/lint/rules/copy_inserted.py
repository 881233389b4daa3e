"""LAY003: the compiler copies a value into another layout."""

from __future__ import annotations

from irscope.analysis.values import LEAVES, MOVES, size
from irscope.graph import Graph, Layout, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.ops import hlo

WORTH_BYTES = 64 * 1024
"""Less than this in all is information."""
LISTED = 5
PARTS = hlo.named("bitcast get-tuple-element")
ONLY_MOVES = MOVES | hlo.named("parameter tuple")


class CopyInserted(Rule):
    """A `copy` changes only the layout of a value.

    ## What it does
    Finds `copy` in compiled text whose result has another layout than its operand, and names the user that requires the new layout;
    inside a fusion only if the fusion does nothing else. Does not report a transpose that the program contains itself.
    One finding for stored values and one for computed values, at the largest copy, with the sum over all.

    ## Why is this bad?
    The copy reads the whole tensor with one stride and writes it with another, because two operators require different layouts.

    ## Use instead
    Transpose weights once, when they are stored; write the product so that it reads the operand in its existing layout; pass parameters
    in the layout that their first user requires.

    ## Known false positives
    One copy at the edge of a program is often the cheapest way.
    """

    code, name, severity = "LAY003", "copy-inserted", Severity.WARNING
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512,512]{1,0} parameter(0)
              y = f32[512,512]{1,0} exponential(x)
              ROOT c = f32[512,512]{0,1} copy(y)
            }
        """,
            "c",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4,8]{1,0} parameter(0)
              c = f32[4,8]{0,1} copy(x)
              ROOT n = f32[4,8]{0,1} negate(c)
            }
        """,
            "c",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,512]{1,0} parameter(0)
              ROOT c = f32[512,512]{1,0} copy(x)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[1,512]{1,0} parameter(0)
              ROOT c = f32[1,512]{0,1} copy(x)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,512]{1,0} parameter(0)
              y = f32[512,512]{0,1} bitcast(x), metadata={op_name="jit(f)/attention/transpose"}
              ROOT c = f32[512,512]{1,0} copy(y), metadata={op_name="jit(f)/attention/transpose"}
            }
        """),
        Fixture.hlo("""
            fused {
              a = f32[512,512]{1,0} parameter(0)
              b = f32[512,512]{0,1} parameter(1)
              c = f32[512,512]{0,1} copy(a)
              ROOT s = f32[512,512]{0,1} add(c, b)
            }
            ENTRY e {
              x = f32[512,512]{1,0} parameter(0)
              y = f32[512,512]{0,1} parameter(1)
              ROOT f = f32[512,512]{0,1} fusion(x, y), kind=kLoop, calls=fused
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        found: dict[str, list[tuple[Node, Graph]]] = {}
        for node, graph in context.view.primitives(hlo.copy):
            if _reorders(node) and not _own(context, node) and (graph not in context.view.inlined or _only_copies(graph)):
                found.setdefault(_advice(node), []).append((node, graph))
        for advice, copies in found.items():
            copies.sort(key=lambda c: -size(c[0]))
            node, graph = copies[0]
            source = node.operands[0]
            total = sum(size(n) for n, _ in copies)
            such = "more such copy" if len(copies) == 2 else "more such copies"
            more = f"; {len(copies) - 1} {such}, {human_bytes(total)} in all" if len(copies) > 1 else ""
            yield self.finding(
                context, node,
                f"{source.type} is copied to {node.type} ({human_bytes(size(node))}), because {_wanted(context, graph, node)}{more}",
                notes=(
                    Note(f"%{source.name} has the other layout", source.loc),
                    *(Note(f"%{n.name} is copied too, {human_bytes(size(n))}", n.loc) for n, _ in copies[1:LISTED]),
                ),
                help=advice,
                saves=saving(bytes=2.0 * total, kernels=float(len(copies))),
            ).with_severity(None if total >= WORTH_BYTES else Severity.INFO)


def _own(context: Context, node: Node) -> bool:
    """Whether the program itself transposes there, so that the compiler inserted nothing."""
    return context.module.scope(node).rpartition("/")[2] in ("transpose", "swapaxes")


def _only_copies(body: Graph) -> bool:
    """Whether a fusion only copies; in any other, the copy only changes the order in which the kernel reads its operand."""
    return all(node.op in ONLY_MOVES for node in body.nodes)


def _reorders(node: Node) -> bool:
    """Whether a copy changes the order of the axes in memory."""
    before, after = node.operands[0].type if node.operands else None, node.type
    if not isinstance(before, TensorType) or not isinstance(after, TensorType) or before.layout is None or after.layout is None:
        return False
    return _order(before, before.layout) != _order(after, after.layout)


def _order(type: TensorType, layout: Layout) -> tuple[int, ...]:
    """Axes from minor to major, without those of length 1, whose position does not matter."""
    return tuple(d for d in layout.minor_to_major if d < type.rank and type.shape[d] != 1)


def _wanted(context: Context, graph: Graph, node: Node) -> str:
    if node is graph.root:
        return "the caller requires that layout" if graph is context.module.main() else "a user of the kernel requires that layout"
    users = [f"%{u.name} ({u.op.name})" for u in context.view.users(node, graph)]
    return f"{' and '.join(users[:2])} {'require' if len(users) > 1 else 'requires'} that layout" if users else "of nobody"


def _advice(node: Node) -> str:
    if behind(node.operands[0], PARTS).op in LEAVES:
        return "store the parameter in the layout that its user requires"
    return "use one layout on both sides"
