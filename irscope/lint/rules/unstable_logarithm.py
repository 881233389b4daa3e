"""ALG017: the logarithm of a softmax or a sigmoid, or of one plus an exponential, computed step by step."""
from __future__ import annotations

from math import isnan

from irscope.analysis.exponentials import is_bounded, limit_of
from irscope.analysis.recognise.parts import find, patterns, sigmoid
from irscope.analysis.recognise.softmax import softmax
from irscope.analysis.values import SPREADS, number
from irscope.graph import Node
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops import hlo

PICKED = SPREADS | hlo.named("gather slice dynamic-slice")
"""Operators between a softmax and its logarithm that only pick or move elements, as a loss picks those of its labels."""
ONE_PLUS = patterns("add(1, exponentials:exponential(x))", through=SPREADS)
COMPLEMENT = patterns("subtract(1, part)", through=SPREADS)


class UnstableLogarithm(Rule):
    """The logarithm of a softmax, of a sigmoid or of `1 + exp(x)` is computed from a value that rounds to 0, 1 or infinity first.

    ## What it does
    Finds `log(softmax(x))`, also behind a gather or a slice, `log(sigmoid(x))` and `log(1 - sigmoid(x))`, with the sigmoid as an operator
    or written out, and `log(1 + exp(x))` or `log1p(exp(x))` whose `x` can be large.

    ## Why is this bad?
    In f32 a softmax is 0 from 104 below its maximum on, a sigmoid is 0 below -104 and exactly 1 above 17, and `exp(x)` is infinite
    above 88. The logarithm is then infinite, or 0 with a gradient of `nan`: the loss is lost, although its true value is a number of that
    size.

    ## Use instead
    `jax.nn.log_softmax`, `jax.nn.log_sigmoid`, `jax.nn.softplus`; `torch.log_softmax`, `torch.nn.functional.logsigmoid`, `softplus`,
    and for losses `cross_entropy` and `binary_cross_entropy_with_logits`.

    ## Known false positives
    Logits that are known to be small. With an epsilon inside the logarithm nothing is reported.
    """

    code, name, severity = "ALG017", "unstable-logarithm", Severity.WARNING
    timed = False
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,128] parameter(0)
              z = f32[] constant(0)
              i = f32[] constant(-inf)
              m = f32[8] reduce(x, i), dimensions={1}, to_apply=max
              n = f32[8,128] broadcast(m), dimensions={0}
              d = f32[8,128] subtract(x, n)
              y = f32[8,128] exponential(d)
              s = f32[8] reduce(y, z), dimensions={1}, to_apply=sum
              b = f32[8,128] broadcast(s), dimensions={0}
              p = f32[8,128] divide(y, b)
              ROOT l = f32[8,128] log(p)
            }
        """,
            "l",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              k = f32[] constant(1)
              o = f32[8] broadcast(k), dimensions={}
              n = f32[8] negate(x)
              y = f32[8] exponential(n)
              t = f32[8] add(o, y)
              s = f32[8] divide(o, t)
              c = f32[8] subtract(o, s)
              l = f32[8] log(c)
              e = f32[8] exponential(x)
              q = f32[8] log-plus-one(e)
              ROOT r = f32[8] add(l, q)
            }
        """,
            "l", "q",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 128)):
              %one : int = prim::Constant[value=1]()
              %y : Float(8, 128) = aten::sigmoid(%x)
              %l : Float(8, 128) = aten::log(%y)
              %e : Float(8, 128) = aten::exp(%x)
              %t : Float(8, 128) = aten::add(%e, %one, %one)
              %q : Float(8, 128) = aten::log(%t)
              %r : Float(8, 128) = aten::mul(%l, %q)
              return (%r)
        """,
            "l", "q",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 128), float32]) {
              %0 = nn.softmax(%x);
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
              a = f32[8] abs(x)
              n = f32[8] negate(a)
              y = f32[8] exponential(n)
              q = f32[8] log-plus-one(y)
              s = f32[8] logistic(x)
              k = f32[] constant(1e-06)
              o = f32[8] broadcast(k), dimensions={}
              t = f32[8] add(s, o)
              l = f32[8] log(t)
              ROOT r = f32[8] add(l, q)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              z = f32[] constant(0)
              o = f32[8] broadcast(z), dimensions={}
              m = f32[8] maximum(x, o)
              n = f32[8] negate(m)
              y = f32[8] exponential(n)
              l = f32[8] log-plus-one(y)
              h = f32[] constant(-0.5)
              b = f32[8] broadcast(h), dimensions={}
              q = f32[8] multiply(x, x)
              t = f32[8] multiply(b, q)
              e = f32[8] exponential(t)
              k = f32[8] log-plus-one(e)
              ROOT r = f32[8] add(l, k)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 128)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %l : Float(8, 128) = aten::log_softmax(%x, %one, %none)
              return (%l)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 128), float32]) {
              nn.log_softmax(%x)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.log, hlo.log_plus_one):
            if not node.operands:
                continue
            hazard = _hazard(node)
            if hazard is not None:
                says, help, source = hazard
                yield self.finding(context, node, says, notes=(Note(f"%{source.name} is {source.op.name}", source.loc),), help=help)


def _hazard(node: Node) -> tuple[str, str, Node] | None:
    """What the logarithm does with large arguments, the change, and the operator that rounds; None for a sound one."""
    operand = _picked_from(node.operands[0])
    if node.op is hlo.log_plus_one:
        return _overflow(operand)
    if softmax(operand) is not None:
        return ("the logarithm of a softmax is -inf where the softmax rounds to 0",
                "use the framework's log_softmax or cross_entropy", operand)
    if sigmoid(operand) is not None:
        return "the logarithm of a sigmoid is -inf where the sigmoid rounds to 0", "use the framework's log_sigmoid", operand
    complement = find(operand, COMPLEMENT)
    part = behind(complement["part"], PICKED) if complement is not None else None
    if part is not None and (softmax(part) is not None or sigmoid(part) is not None):
        what = "softmax" if softmax(part) is not None else "sigmoid"
        return (f"the logarithm of one minus a {what} is -inf where the {what} rounds to 1",
                "use log_sigmoid(-x), or the framework's loss that takes logits", part)
    one_plus = find(operand, ONE_PLUS)
    return _overflow(one_plus["exponentials"]) if one_plus is not None else None


def _picked_from(node: Node) -> Node:
    """The value that a value is picked from; JAX writes NaN in place of elements that an index out of bounds would pick."""
    node = behind(node, PICKED)
    if node.op is hlo.select and isnan(number(node.operands[2]) or 0.0):
        node = behind(node.operands[1], PICKED)
    return node


def _overflow(exponential: Node) -> tuple[str, str, Node] | None:
    """The logarithm of one plus an exponential that can be infinite."""
    if exponential.op is not hlo.exponential or not exponential.operands or is_bounded(exponential.operands[0]):
        return None
    return (f"log(1 + exp(x)) is infinite for x above {limit_of(exponential)}, where it should be x",
            "use the framework's softplus, or logaddexp(x, 0)", exponential)
