"""ALG019: exp(x) - 1 and log(1 + x), which lose the digits of a small x."""
from __future__ import annotations

from irscope.analysis.recognise.parts import find, moves_behind, patterns
from irscope.analysis.values import COPIES, SPREADS, body_operator
from irscope.graph import Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops import hlo

MINUS_ONE = patterns("subtract(exponentials:exponential(x), 1)", "add(exponentials:exponential(x), -1)", through=COPIES)
ONE_PLUS = patterns("add(1, x)", through=COPIES)
COMPUTED = hlo.named("exponential logistic constant abs")
"""What is added to one inside a logarithm for other reasons: an exponential, or a sum of them, is the concern of unstable-logarithm, and a
literal is no small number that was computed."""


class LostSmallDigits(Rule):
    """`exp(x) - 1` or `log(1 + x)` loses the digits of a small `x`.

    ## What it does
    Finds one subtracted from an exponential, and the logarithm of a value plus one, written as separate operators.

    ## Why is this bad?
    The sum rounds to the distance of floats near 1, 1.2e-7 in f32: of `x = 1e-6` one digit is left, of `x = 1e-8` none.

    ## Use instead
    `expm1` and `log1p`, which every framework has and compilers compute as fast.

    ## Known false positives
    Values that are never small, such as counts.
    """

    code, name, severity = "ALG019", "lost-small-digits", Severity.INFO
    timed = False
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              k = f32[] constant(1)
              o = f32[8] broadcast(k), dimensions={}
              y = f32[8] exponential(x)
              m = f32[8] subtract(y, o)
              t = f32[8] add(x, o)
              l = f32[8] log(t)
              ROOT r = f32[8] add(m, l)
            }
        """,
            "m", "l",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8)):
              %one : int = prim::Constant[value=1]()
              %e : Float(8) = aten::exp(%x)
              %m : Float(8) = aten::sub(%e, %one, %one)
              return (%m)
        """,
            "m",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8), float32]) {
              %0 = add(%x, 1f);
              %1 = log(%0);
              %1
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              m = f32[8] exponential-minus-one(x)
              l = f32[8] log-plus-one(x)
              ROOT r = f32[8] add(m, l)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              n = s32[8] parameter(0)
              x = f32[8] convert(n)
              k = f32[] constant(1)
              o = f32[8] broadcast(k), dimensions={}
              t = f32[8] add(x, o)
              ROOT l = f32[8] log(t)
            }
        """),
        Fixture.hlo("""
            add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
            ENTRY e {
              x = f32[8,16] parameter(0)
              z = f32[] constant(0)
              e = f32[8,16] exponential(x)
              s = f32[8] reduce(e, z), dimensions={1}, to_apply=add
              k = f32[] constant(1)
              o = f32[8] broadcast(k), dimensions={}
              t = f32[8] add(s, o)
              ROOT l = f32[8] log(t)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8)):
              %m : Float(8) = aten::expm1(%x)
              return (%m)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8), float32]) {
              %0 = exp(%x);
              add(%0, 1f)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.subtract, hlo.add):
            found = find(node, MINUS_ONE)
            if found is not None:
                source = found["exponentials"]
                yield self.finding(context, node, "exp(x) - 1 loses the digits of a small x", help="use expm1(x)",
                                   notes=(Note(f"%{source.name} is the exponential", source.loc),))
        for node, _ in context.view.primitives(hlo.log):
            total = _one_plus(node.operands[0]) if node.operands else None
            if total is not None:
                yield self.finding(context, node, "log(1 + x) loses the digits of a small x", help="use log1p(x)",
                                   notes=(Note(f"%{total.name} is 1 + x", total.loc),))


def _one_plus(node: Node) -> Node | None:
    """The sum of one and something that was computed and may be small; None for another value."""
    total = behind(node, COPIES)
    found = find(total, ONE_PLUS)
    return total if found is not None and _summed(found["x"]).op not in COMPUTED and not _is_count(found["x"]) else None


def _summed(node: Node) -> Node:
    """What a value is the sum of, where it is one; else what it is spread from."""
    source = behind(node, SPREADS)
    return behind(source.operands[0], SPREADS) if source.op is hlo.reduce and body_operator(source) is hlo.add else source


def _is_count(node: Node) -> bool:
    """Whether a value was converted from integers: it is 0 or not small."""
    return any(isinstance(one.type, TensorType) and not one.type.dtype.is_float for one in (node, *_converted(node)))


def _converted(node: Node) -> list[Node]:
    return [move.operands[0] for move in moves_behind(node)]
