"""BRD006: operands of different rank, neither with the shape of the result."""

from __future__ import annotations

from irscope.analysis.values import dims
from irscope.formats.torchscript.names import functional
from irscope.graph import Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.ops.sets import relay, torchscript

ARITHMETIC = relay("add subtract multiply divide maximum minimum power mod floor_divide floor_mod") | torchscript(
    "add sub rsub mul div maximum minimum pow remainder floor_divide"
)
"""Arithmetic of two operands, as Relay and TorchScript spell it; comparisons and masks are stretched on purpose."""

INSERTED = torchscript("unsqueeze") | relay("expand_dims")
"""Operators that insert an axis of length 1: their result is broadcast along it on purpose."""
CASTS = torchscript("to type_as") | relay("cast")


class StretchedBothWays(Rule):
    """Operands of different rank are both broadcast, to a shape that neither of them has.

    ## What it does
    Finds arithmetic of two tensors, as Relay or TorchScript wrote it, whose ranks differ and whose result has more elements than either.
    It is a warning if both are broadcast to the same length, as `(64, 1)` and `(64)` are; a table of 8 x 32 is information. Reports
    nothing if the program inserts the axis explicitly, by `unsqueeze` or `expand_dims`.

    ## Why is this bad?
    Frameworks align axes silently from the right: `(64, 1) + (64)` is a table of 64 x 64, though a column of 64 was meant. The program
    runs and may even train, and its memory and time grow with the square.

    ## Use instead
    Bring both to one rank first: `squeeze(%scores, axis=[1])`, or `expand_dims(%offsets, axis=1)`; in torch `scores.squeeze(-1)` or
    `offsets[:, None]`.

    ## Known false positives
    Tables of all pairs whose column comes with its axis of length 1, from a parameter or a reduction that keeps it.
    """

    code, name, severity = "BRD006", "stretched-both-ways", Severity.WARNING
    timed = False
    bad = (
        Fixture.relay(
            """
            def @main(%scores: Tensor[(64, 1), float32], %offsets: Tensor[(64), float32]) {
              %0 = add(%scores, %offsets);
              %0
            }
        """,
            "0",
        ),
        Fixture.torchscript(
            """
            graph(%scores : Float(64, 1), %offsets : Float(64)):
              %one : int = prim::Constant[value=1]()
              %d : Float(64, 64) = aten::sub(%scores, %offsets, %one)
              return (%d)
        """,
            "d",
        ),
    )
    good = (
        Fixture.relay("""
            def @main(%x: Tensor[(64, 128), float32], %b: Tensor[(128), float32]) {
              add(%x, %b)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(64, 1), float32], %y: Tensor[(1, 64), float32]) {
              subtract(%x, %y)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 16, 32), float32], %y: Tensor[(16, 1), float32]) {
              add(%x, %y)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(64, 1), %y : Float(1, 64)):
              %one : int = prim::Constant[value=1]()
              %d : Float(64, 64) = aten::sub(%x, %y, %one)
              return (%d)
        """),
        Fixture.torchscript("""
            graph(%position : Long(64), %frequency : Float(64)):
              %one : int = prim::Constant[value=1]()
              %six : int = prim::Constant[value=6]()
              %no : bool = prim::Constant[value=0]()
              %none : NoneType = prim::Constant()
              %c : Long(64, 1) = aten::unsqueeze(%position, %one)
              %f : Float(64, 1) = aten::to(%c, %six, %no, %no, %none)
              %d : Float(64, 64) = aten::mul(%f, %frequency)
              return (%d)
        """),
        Fixture.relay("""
            def @main(%position: Tensor[(64), float32], %frequency: Tensor[(64), float32]) {
              %0 = expand_dims(%position, axis=1);
              multiply(%0, %frequency)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            for node, type in context.view.tensors(graph):
                if node.op.is_primitive or functional(node.op) not in ARITHMETIC or not _both_stretched(node, type):
                    continue
                if any(behind(operand, CASTS).op in INSERTED for operand in node.operands[:2]):
                    continue
                a, b = node.operands[0].type, node.operands[1].type
                yield self.finding(
                    context, node,
                    f"{a} and {b} give {type}: axes align from the right, and both operands are broadcast",
                    help="if both should run along the same axis, squeeze or reshape one of them before",
                ).with_severity(None if _to_one_length(node, type) else Severity.INFO)


def _both_stretched(node: Node, type: TensorType) -> bool:
    """Whether the first two operands differ in rank, and each has fewer elements than the result along known axes."""
    types = [o.type for o in node.operands[:2] if isinstance(o.type, TensorType)]
    if len(types) != 2 or types[0].rank == types[1].rank or not all(t.rank and t.is_static for t in (*types, type)):
        return False
    return all(1 < t.elements < type.elements and t.rank <= type.rank for t in types)  # the types of a text may not fit together


def _to_one_length(node: Node, type: TensorType) -> bool:
    """Whether both operands are broadcast to the same length, along one axis each."""
    lengths = []
    for operand in node.operands[:2]:
        shape = (1,) * (type.rank - len(dims(operand))) + dims(operand)
        lengths.append({n for n, before in zip(dims(node), shape, strict=True) if n != before})
    return bool(lengths[0] & lengths[1])
