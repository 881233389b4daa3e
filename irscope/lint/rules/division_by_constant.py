"""ALG007: a division, power or logarithm that a cheaper operator can replace."""

from __future__ import annotations

from math import frexp

from irscope.analysis.values import number
from irscope.graph import DType, Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Rule, Severity
from irscope.ops import hlo

POWERS = {2.0: "x * x", 3.0: "x * x * x", 0.5: "sqrt(x)", -0.5: "rsqrt(x)", -1.0: "1 / x"}
INVERSE = {hlo.log: hlo.exponential, hlo.exponential: hlo.log}
WORTH = 1024
"""The number of elements from which the arithmetic is reported."""


class DivisionByConstant(Rule):
    """A division by a constant, a power with a small constant exponent, or the logarithm of an exponential.

    ## What it does
    Finds floating-point `divide` by a splat constant, `power` by 2, 3, 0.5, -0.5 or -1, `log(exp(x))` and `exp(log(x))`, on 1024
    elements and more.

    ## Why is this bad?
    A division takes several times as long as a product, a power twenty times; both matter in compute-bound kernels.

    ## Use instead
    `x * 0.125`; `x * x`; `x`. For a power of two the product is exact to the last bit; otherwise the last digit may differ.

    ## Known false positives
    Results that must not change in the last digit. Compilers replace the exact cases themselves.
    """

    code, name, severity, default = "ALG007", "division-by-constant", Severity.INFO, False
    fix = Fix.REWRITE
    passes = ("simplify-algebra",)
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096] parameter(0)
              c = f32[] constant(8)
              b = f32[4096] broadcast(c), dimensions={}
              ROOT y = f32[4096] divide(x, b)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096] parameter(0)
              c = f32[] constant(2)
              b = f32[4096] broadcast(c), dimensions={}
              p = f32[4096] power(x, b)
              u = f32[4096] exponential(p)
              ROOT l = f32[4096] log(u)
            }
        """,
            "p",
            "l",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4096), float32]) {
              %0 = divide(%x, 8f);
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
              x = f32[4096] parameter(0)
              y = f32[4096] parameter(1)
              ROOT d = f32[4096] divide(x, y)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[4096] parameter(0)
              c = f32[] constant(8)
              b = f32[4096] broadcast(c), dimensions={}
              ROOT d = f32[4096] divide(b, x)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(4096), float32]) {
              %0 = multiply(%x, 0.125f);
              tanh(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.divide, hlo.power, hlo.log, hlo.exponential):
            if not isinstance(node.type, TensorType) or not node.type.dtype.is_float or node.type.elements < WORTH:
                continue
            cheaper = _cheaper(node)
            if cheaper:
                message = f"{node.op.name} of {node.type.elements} elements, which a cheaper operator can compute"
                yield self.finding(context, node, message, help=cheaper, saves=_edit(node))


def _edit(node: Node) -> Edit | None:
    """The edit that puts the cheaper operator in the node's place; None for powers that take several operators."""
    x = node.operands[0]
    if node.op in INVERSE:
        return Edit.use(node, x.operands[0])
    value, type = number(node.operands[1]), node.type
    assert value is not None and isinstance(type, TensorType)
    if node.op is hlo.divide:
        return Edit({node: lambda site: site.op(hlo.multiply, site.new(x), site.number(1 / value, type), type=type)})
    if value == 2:
        return Edit({node: lambda site: site.op(hlo.multiply, site.new(x), site.new(x), type=node.type)})
    return Edit({node: lambda site: site.op(hlo.sqrt, site.new(x), type=node.type)}) if value == 0.5 else None


def _cheaper(node: Node) -> str:
    """The cheaper equivalent, as text; empty when there is none."""
    if node.op in INVERSE:
        return f"%{node.operands[0].operands[0].name} is the same" if node.operands[0].op is INVERSE[node.op] else ""
    value = number(node.operands[1])
    if value is None or (node.op is hlo.divide and not _is_inverted(value, node.type.dtype)):  # type: ignore[attr-defined]
        return ""
    if node.op is hlo.power:
        return f"{POWERS[value]} is the same" if value in POWERS else ""
    exact = abs(frexp(value)[0]) == 0.5
    return f"x * {1 / value:.9g} is " + ("the same to the last bit" if exact else "the same but for the last digit")


def _is_inverted(value: float, dtype: DType) -> bool:
    """Whether a multiplication by 1 / value can stand for the division: the inverse is a normal number of the type, and not 1."""
    return value not in (0.0, 1.0) and 2.0 ** dtype.min_exponent <= abs(1 / value) <= dtype.largest
