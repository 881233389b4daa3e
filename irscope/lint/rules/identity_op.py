"""ALG005: an operation that returns its operand unchanged."""

from __future__ import annotations

from irscope.analysis.values import dims, number
from irscope.graph import Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Rule
from irscope.ops import hlo
from irscope.ops.attributes import Pad, Transpose
from irscope.source import Severity

SAME_TYPE = {hlo.reshape: "reshapes to the same shape", hlo.convert: "converts to the same type"}


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
            for node in graph.nodes:
                judge = _JUDGES.get(node.op) if node.operands else None
                if judge is None or not isinstance(node.type, TensorType) or not node.type.is_static:
                    continue
                why, kept = judge(node)
                if why:
                    yield self.finding(
                        context, node, f"{node.op.name} changes nothing: it {why}", help=f"use %{kept.name}",
                        saves=Edit.use(node, kept),
                    )


def _same_type(node: Node) -> tuple[str, Node]:
    same = node.operands[0].type == node.type
    return (SAME_TYPE[node.op] if same else ""), node.operands[0]


def _product(node: Node) -> tuple[str, Node]:
    left, right = node.operands
    if number(right) == 1:
        return "multiplies by 1", left
    return ("multiplies by 1" if number(left) == 1 else ""), right


def _quotient(node: Node) -> tuple[str, Node]:
    return ("divides by 1" if number(node.operands[1]) == 1 else ""), node.operands[0]


def _power(node: Node) -> tuple[str, Node]:
    return ("raises to the power of 1" if number(node.operands[1]) == 1 else ""), node.operands[0]


def _sum(node: Node) -> tuple[str, Node]:
    left, right = node.operands
    if number(right) == 0:
        return "adds 0", left
    return ("adds 0" if number(left) == 0 else ""), right


def _difference(node: Node) -> tuple[str, Node]:
    return ("subtracts 0" if number(node.operands[1]) == 0 else ""), node.operands[0]


def _slice(node: Node) -> tuple[str, Node]:
    return ("takes everything" if dims(node) == dims(node.operands[0]) else ""), node.operands[0]


def _pad(node: Node) -> tuple[str, Node]:
    return ("pads by nothing" if not any(map(any, Pad.of(node).padding)) else ""), node.operands[0]


def _transpose(node: Node) -> tuple[str, Node]:
    order = Transpose.of(node).dimensions
    return ("keeps the order of axes" if order == tuple(range(len(order))) else ""), node.operands[0]


def _concatenate(node: Node) -> tuple[str, Node]:
    return ("joins one piece" if len(node.operands) == 1 else ""), node.operands[0]


def _select(node: Node) -> tuple[str, Node]:
    return ("chooses between a value and itself" if node.operands[1] is node.operands[2] else ""), node.operands[1]


_JUDGES = {
    hlo.reshape: _same_type, hlo.convert: _same_type, hlo.multiply: _product, hlo.divide: _quotient, hlo.power: _power,
    hlo.add: _sum, hlo.subtract: _difference, hlo.slice: _slice, hlo.pad: _pad, hlo.transpose: _transpose, hlo.concatenate: _concatenate,
    hlo.select: _select,
}
