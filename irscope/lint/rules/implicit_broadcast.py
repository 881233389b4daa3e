"""BRD007: how many elementwise operators broadcast a vector or a column, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.values import FILLS, MOVES, is_annotation, size, written
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes, plural
from irscope.lint.rules.rank_mismatch_elementwise import RankMismatchElementwise
from irscope.lint.spread import cost_of_broadcasts, stored_broadcasts
from irscope.ops import hlo

LISTED = 5
"""Operators that are named."""
SAME_ELEMENTS = MOVES | hlo.named("broadcast")
"""Operators that keep all elements, where the size stays."""


class ImplicitBroadcast(Rule):
    """Elementwise operators broadcast a vector or a column to the shape of their other operand.

    ## What it does
    Counts the elementwise operators with one operand that is a broadcast of a smaller tensor: biases, scales, columns. Numbers, results of
    reductions (as in a normalisation) and what rank-mismatch-elementwise reports are not counted. Reports one fact for a module, at the
    operator with the largest result, with the bytes of those broadcasts that are written to memory. Does not look at optimised text.

    ## Why is this bad?
    Mostly it is not: a compiler reads the small operand again for every row. It costs time where the policy's compiler writes the broadcast
    out, and it hides mistakes, because shapes that do not match still run.

    ## Use instead
    Nothing, where no bytes are written. Else give the operand its full shape once, or move the operator before the broadcast.

    ## Known false positives
    Every bias: the rule reports a fact, not a fault.
    """

    code, name, severity = "BRD007", "implicit-broadcast", Severity.INFO
    fix = Fix.NONE
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128] parameter(0)
              s = f32[128] parameter(1)
              b = f32[64,128] broadcast(s), dimensions={1}
              ROOT r = f32[64,128] add(x, b)
            }
        """,
            "r",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(32, 64), float32], %b: Tensor[(64), float32], %c: Tensor[(32, 1), float32]) {
              %0 = add(%x, %b);
              multiply(%0, %c)
            }
        """
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 32), %b : Float(32)):
              %one : int = prim::Constant[value=1]()
              %y : Float(8, 32) = aten::add(%x, %b, %one)
              return (%y)
        """,
            "y",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,128] parameter(0)
              c = f32[] constant(2)
              b = f32[64,128] broadcast(c), dimensions={}
              ROOT r = f32[64,128] add(x, b)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(32, 64), float32], %y: Tensor[(32, 64), float32]) {
              add(%x, %y)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 32), %y : Float(8, 32)):
              %one : int = prim::Constant[value=1]()
              %z : Float(8, 32) = aten::add(%x, %y, %one)
              return (%z)
        """),
    )

    def check(self, context: Context) -> Findings:
        if context.view.optimised:
            return
        text = Context(context.costs.text.view.module, costs=context.costs.text) if context.costs.text is not None else context
        reported = {found.node for one in (text, context) for found in RankMismatchElementwise.found_in(one)}
        places = [(node, small) for graph in context.view.array_graphs if graph not in context.view.inlined
                  for node, small in _broadcasts(graph) if written(node).name not in reported]
        if not places:
            return
        node, _ = max(places, key=lambda place: size(place[0]))
        stored = stored_broadcasts(context)
        saves = cost_of_broadcasts(stored, *(one for one, _ in places))
        cost = f", {human_bytes(saves['bytes'] / 2) if saves['bytes'] else 'none'} of it written to memory" if saves is not None else ""
        yield self.finding(
            context, node,
            f"{plural(len(places), 'elementwise operator')} {'broadcasts' if len(places) == 1 else 'broadcast'} a smaller tensor to the "
            f"shape of the other operand{cost}",
            notes=tuple(Note(f"%{one.name} broadcasts {small.type} to {one.type}", one.loc) for one, small in places[:LISTED]),
            saves=saves,
        )


def _broadcasts(graph: Graph) -> Iterator[tuple[Node, Node]]:
    """Elementwise operators that the user wrote, with the smaller tensor that one operand is a broadcast of."""
    begins: dict[Node, Node] = {}
    for node in graph.nodes:
        if node.op.kind is not Kind.ELEMENTWISE or len(node.operands) < 2:
            continue
        pairs = [(operand, small) for operand in node.operands if (small := _small(operand, begins)) is not None]
        full = [operand for operand in node.operands if operand.op is not hlo.broadcast]
        # A library operator's own steps (a linear's bias, a normalisation's mean) are not the user's broadcast.
        if len(pairs) == 1 and full and not is_annotation(node) and not (node.origin and any(written(o) is written(node) for o in full)):
            yield node, pairs[0][1]


def _small(node: Node, begins: dict[Node, Node]) -> Node | None:
    """What a broadcast repeats, without axes of length one; None for single numbers, results of reductions, and everything else.

    ``begins`` keeps where the chains of operators begin that were followed before.
    """
    if node.op is not hlo.broadcast or not isinstance(node.type, TensorType):
        return None
    small = node.operands[0]
    while small.op in SAME_ELEMENTS and size(small.operands[0]) == size(small):
        small = small.operands[0]
    if not isinstance(small.type, TensorType) or not small.type.is_static or small.type.elements < 2 or size(small) >= size(node):
        return None
    at, chain = small, [small]
    while at not in begins and (at.op.kind is Kind.ELEMENTWISE or at.op in SAME_ELEMENTS):
        inner = [operand for operand in at.operands if not _is_number(operand)]
        if len(inner) != 1:
            break
        at = inner[0]
        chain.append(at)
    at = begins.get(at, at)
    begins.update(dict.fromkeys(chain, at))
    return None if at.op.kind is Kind.REDUCTION or at.op is hlo.constant else small


def _is_number(node: Node) -> bool:
    """Whether a node is a constant, or one number that is broadcast."""
    return node.op in FILLS and (not node.operands or getattr(node.operands[0].type, "elements", 0) == 1)
