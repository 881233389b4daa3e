"""FUS016: a well-known composite, but for one odd node."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, pi, sqrt

from irscope.graph import Graph, Kind
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.patterns import Softmax, gelus, normalisations, softmaxes
from irscope.lint.rule import Fixture, Rule
from irscope.lint.values import SPREADS, behind, dims
from irscope.source import Note, Severity

CLOSE = 2e-3
"""How far a constant may be from what a pattern has: half-precision literals are rounded."""
FAR = 0.25
"""A constant farther away than this is another function."""
STEPS = 4
"""Operators between a softmax and the product that reads it, at most."""

_REDUCERS = """
            sum {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT s = f32[] add(a, b)
            }
            max {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT s = f32[] maximum(a, b)
            }
"""
_SOFTMAX = (
    _REDUCERS
    + """
            ENTRY e {{
              x = f32[8,8] parameter(0)
              v = f32[8,16] parameter(1)
              z = f32[] constant(0)
              i = f32[] constant(-inf)
              m = f32[8] reduce(x, i), dimensions={{{0}}}, to_apply=max
              n = f32[8,8] broadcast(m), dimensions={{{1}}}
              d = f32[8,8] subtract(x, n)
              y = f32[8,8] exponential(d)
              t = f32[8] reduce(y, z), dimensions={{1}}, to_apply=sum
              b = f32[8,8] broadcast(t), dimensions={{0}}
              q = f32[8,8] divide(y, b)
              ROOT r = f32[8,16] dot(q, v), lhs_contracting_dims={{{2}}}, rhs_contracting_dims={{0}}
            }}
        """
).replace("sum {\n", "sum {{\n").replace("max {\n", "max {{\n").replace("            }\n", "            }}\n")
_GELU = """
            ENTRY e {{
              x = f32[64] parameter(0)
              k = f32[] constant({0})
              kb = f32[64] broadcast(k), dimensions={{}}
              s = f32[] constant({1})
              sb = f32[64] broadcast(s), dimensions={{}}
              x2 = f32[64] multiply(x, x)
              x3 = f32[64] multiply(x, x2)
              c = f32[64] multiply(x3, kb)
              a = f32[64] add(x, c)
              u = f32[64] multiply(a, sb)
              ROOT t = f32[64] tanh(u)
            }}
        """


class PatternNearMiss(Rule):
    """A softmax, a normalisation, a GELU or an attention, but for one odd node.

    ## What it does
    Recognises composites by their structure, and names what keeps one from being what it looks like: a softmax whose maximum is taken over
    other axes than its sum; an attention whose product sums over another axis than the softmax, or that scales behind the softmax; a
    normalisation whose mean and variance are over different axes, or that adds no epsilon; a GELU with other constants.

    ## Why is this bad?
    Kernels for whole composites match the canonical form alone, so a near miss runs as a dozen operators. And it is often a mistake: where
    the shift of a softmax changes along its sum, the result is wrong.

    ## Example
    ```
    %m = f32[8] reduce(f32[8,8] %x, ...), dimensions={0}, to_apply=%max
    %t = f32[8] reduce(f32[8,8] %exp, ...), dimensions={1}, to_apply=%sum
    ```

    ## Use instead
    The operator of the framework: `jax.nn.softmax(x, axis=-1)`, `jax.nn.dot_product_attention`, `nn.LayerNorm`, `jax.nn.gelu`.

    ## Known false positives
    The odd node may be the model: a variant of its own. Then the finding is information, but for axes that cannot be meant.
    """

    code, name, severity = "FUS016", "pattern-near-miss", Severity.WARNING
    timed = False
    structural = True
    bad = (
        Fixture.hlo(_SOFTMAX.format("0", "1", "1"), "m"),
        Fixture.hlo(_SOFTMAX.format("1", "0", "0"), "r"),
        Fixture.hlo(_GELU.format("0.0347", "0.79788456"), "t"),
    )
    good = (
        Fixture.hlo(_SOFTMAX.format("1", "0", "1")),
        Fixture.hlo(_GELU.format("0.044715", "0.79788456")),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        for softmax, graph in softmaxes(context):
            if graph not in context.inlined:
                yield from self._softmax(context, graph, softmax)
        yield from self._normalisations(context)
        for gelu, graph in gelus(context):
            right = sqrt(2 / pi) if gelu.cubic is not None else sqrt(0.5)
            for what, value, wanted in (("scale", gelu.scale, right), ("cubic term", gelu.cubic, 0.044715)):
                if value is not None and not isclose(value, wanted, rel_tol=CLOSE) and isclose(value, wanted, rel_tol=FAR):
                    message = f"this is a GELU, but its {what} is {value:.6g} and not {wanted:.6g}"
                    yield context.finding(self, gelu.function, graph, message, severity=Severity.INFO, help="use the framework's gelu")

    def _softmax(self, context: Context, graph: Graph, softmax: Softmax) -> Iterator[RuleFinding]:
        if softmax.largest is not None:
            shift = tuple(sorted(softmax.largest.attrs.get("dimensions", ())))
            axes = tuple(sorted(softmax.total.attrs.get("dimensions", ())))
            if shift != axes:
                wrong = not set(axes) <= set(shift)
                yield context.finding(
                    self,
                    softmax.largest,
                    graph,
                    f"this softmax sums over {_axes(axes)} and takes its maximum over {_axes(shift)}"
                    + (": the shift changes along the sum, and the result is wrong" if wrong else ""),
                    severity=None if wrong else Severity.INFO,
                    notes=(Note(f"%{softmax.total.name} is the sum", softmax.total.loc),),
                    help="take both over the same axes: softmax(x, axis=...)",
                )
        yield from self._attention(context, graph, softmax)

    def _attention(self, context: Context, graph: Graph, softmax: Softmax) -> Iterator[RuleFinding]:
        """The product behind a softmax sums over the softmax's axis, and nothing scales in between."""
        at, odd = softmax.result, None
        for _ in range(STEPS):
            users = context.users(at, graph)
            if len(users) != 1:
                return
            user = users[0]
            if user.op.name == "dot":
                side = "lhs" if user.operands[0] is at else "rhs"
                summed = tuple(sorted(user.attrs.get(f"{side}_contracting_dims", ())))
                if dims(at) == dims(softmax.result) and len(summed) == 1 and len(softmax.axes) == 1 and summed != softmax.axes:
                    yield context.finding(
                        self,
                        user,
                        graph,
                        f"this is an attention, but the softmax is over {_axes(softmax.axes)} and the product sums over {_axes(summed)}",
                        notes=(Note(f"%{softmax.result.name} is the softmax", softmax.result.loc),),
                        help="take the softmax over the axis of the keys, which the product with the values sums over",
                    )
                elif odd is not None:
                    yield context.finding(
                        self,
                        odd,
                        graph,
                        f"this is an attention, but %{odd.name} scales behind the softmax",
                        severity=Severity.INFO,
                        notes=(Note(f"%{softmax.result.name} is the softmax", softmax.result.loc),),
                        help="scale the queries, or the result",
                    )
                return
            if user.op.name == "multiply" and any(behind(o, SPREADS).op.kind is Kind.LEAF for o in user.operands):
                odd = user
            elif user.op.name != "convert":
                return
            at = user

    def _normalisations(self, context: Context) -> Iterator[RuleFinding]:
        for found, graph in normalisations(context):
            if graph in context.inlined:
                continue
            mean, spread = (tuple(sorted(n.attrs.get("dimensions", ()))) for n in (found.mean, found.spread))
            if mean != spread and dims(found.mean.operands[0]) == dims(found.spread.operands[0]):
                yield context.finding(
                    self,
                    found.spread,
                    graph,
                    f"this is a normalisation, but its mean is over {_axes(mean)} and its variance over {_axes(spread)}",
                    notes=(Note(f"%{found.mean.name} is the mean's sum", found.mean.loc),),
                    help="take both over the same axes",
                )
            elif not found.epsilon and found.root.op.name == "rsqrt":
                yield context.finding(
                    self,
                    found.root,
                    graph,
                    "this is a normalisation without epsilon: where all elements are equal it divides by zero",
                    severity=Severity.INFO,
                    help="add a small number to the variance before the root",
                )


def _axes(axes: tuple[int, ...]) -> str:
    return ("axis " if len(axes) == 1 else "axes ") + ", ".join(map(str, axes))
