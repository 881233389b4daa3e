"""ALG005: an operation that returns its operand unchanged."""

from __future__ import annotations

from collections.abc import Callable

from irscope.analysis.values import dims, number
from irscope.graph import Node, Op, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Rule, Severity
from irscope.ops import hlo
from irscope.ops.attributes import Pad, Transpose

NEUTRAL = {
    hlo.multiply: (1, "multiplies by 1"), hlo.divide: (1, "divides by 1"), hlo.power: (1, "raises to the power of 1"),
    hlo.add: (0, "adds 0"), hlo.subtract: (0, "subtracts 0"),
}
"""By arithmetic operator: the second operand that makes it an identity, and what the finding says."""
COMMUTING = (hlo.multiply, hlo.add)
KEEPERS: dict[Op, tuple[Callable[[Node], bool], str]] = {
    hlo.reshape: (lambda node: node.operands[0].type == node.type, "reshapes to the same shape"),
    hlo.convert: (lambda node: node.operands[0].type == node.type, "converts to the same type"),
    hlo.slice: (lambda node: dims(node) == dims(node.operands[0]), "takes everything"),
    hlo.pad: (lambda node: not any(map(any, Pad.of(node).padding)), "pads by nothing"),
    hlo.transpose: (lambda node: Transpose.of(node).dimensions == tuple(range(len(dims(node)))), "keeps the order of axes"),
    hlo.concatenate: (lambda node: len(node.operands) == 1, "joins one piece"),
    hlo.select: (lambda node: node.operands[1] is node.operands[2], "chooses between a value and itself"),
}
"""By operator that moves or selects elements: the condition under which it is an identity, and what the finding says."""
JUDGED = frozenset((*NEUTRAL, *KEEPERS))


class IdentityOp(Rule):
    """An operation returns its operand unchanged (an identity).

    ## What it does
    Finds `x * 1`, `x / 1`, `x + 0`, `x - 0`, `x ** 1`, reshapes to the same shape, conversions to the same type, slices of the whole
    operand, padding by nothing, transposes that keep the order of axes, concatenations of one operand, selects between the same value.

    ## Why is this bad?
    Compilers remove most identities. Each one that remains costs a pass over memory, and may indicate that something else was meant.

    ## Use instead
    The operand itself.

    ## Known false positives
    `x + 0`, which turns `-0` into `0`; a scale that is 1 in this configuration and not in others.
    Broadcasts to the same shape, which JAX emits everywhere, are not reported.
    """

    code, name, severity, default = "ALG005", "identity-op", Severity.INFO, False
    fix = Fix.REWRITE
    passes = ("simplify-algebra",)
    structural = True
    tidied = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              one = f32[] constant(1)
              b = f32[8] broadcast(one), dimensions={}
              ROOT y = f32[8] multiply(x, b)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,4] parameter(0)
              s = f32[8,4] slice(x), slice={[0:8], [0:4]}
              t = f32[8,4] transpose(s), dimensions={0,1}
              ROOT r = f32[8,4] reshape(t)
            }
        """,
            "s",
            "t",
            "r",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(64)):
              %one : float = prim::Constant[value=1.]()
              %y : Float(64) = aten::mul(%x, %one)
              %z : Float(64) = aten::tanh(%y)
              return (%z)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(64), float32]) {
              %0 = add(%x, 0f);
              %1 = tanh(%0);
              %1
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              one = f32[] constant(1)
              b = f32[8] broadcast(one), dimensions={}
              a = f32[8] add(x, b)
              ROOT y = f32[8] divide(b, a)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,8] parameter(0)
              s = f32[7,8] slice(x), slice={[0:7], [0:8]}
              t = f32[8,7] transpose(s), dimensions={1,0}
              ROOT r = f32[56] reshape(t)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(64)):
              %two : float = prim::Constant[value=2.]()
              %y : Float(64) = aten::mul(%x, %two)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(64), float32]) {
              add(%x, 1f)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            for node in context.view.with_op(JUDGED, graph):
                if not node.operands or not isinstance(node.type, TensorType) or not node.type.is_static:
                    continue
                why, kept = _identity(node)
                if why:
                    yield self.finding(
                        context, node, f"{node.op.name} changes nothing: it {why}", help=f"use %{kept.name}",
                        saves=Edit.use(node, kept),
                    )


def _identity(node: Node) -> tuple[str, Node]:
    """What the finding says of an identity, and the operand that it returns; an empty text for any other node."""
    if node.op in KEEPERS:
        is_identity, why = KEEPERS[node.op]
        return (why if is_identity(node) else ""), node.operands[1 if node.op is hlo.select else 0]
    value, why = NEUTRAL[node.op]
    left, right = node.operands
    if number(right) == value:
        return why, left
    return (why if node.op in COMMUTING and number(left) == value else ""), right
