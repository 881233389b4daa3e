"""ALG018: a variance computed as the difference of two large numbers."""
from __future__ import annotations

from irscope.analysis.recognise.parts import SQUARE, find, squared, summed
from irscope.analysis.values import COPIES, SPREADS
from irscope.graph import Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.lint.islands import HALF
from irscope.ops import hlo
from irscope.ops.attributes import Reduce


class CancellingVariance(Rule):
    """A variance is computed as the mean of the squares minus the square of the mean.

    ## What it does
    Finds `mean(x * x) - mean(x) ** 2` over the same values and axes. In half precision the finding is a warning, otherwise a fact.

    ## Why is this bad?
    Where the mean is large beside the spread, both terms are nearly equal and their difference has few correct digits: about one in f32
    with a mean of 1000 and a spread of 1, none in bf16 with a mean of 16. The difference may be negative, and its root `nan`.

    ## Use instead
    `mean((x - mean(x)) ** 2)`: `jnp.var`, `torch.var`; in flax `use_fast_variance=False`. Or compute in f32 and keep the difference
    above 0.

    ## Known false positives
    One pass over a large value is faster than two, and precise enough where the mean is near 0, as in most normalisations of a net.
    """

    code, name, severity = "ALG018", "cancelling-variance", Severity.WARNING
    timed = False
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = bf16[8,128] parameter(0)
              z = bf16[] constant(0)
              n = bf16[] constant(128)
              c = bf16[8] broadcast(n), dimensions={}
              s = bf16[8] reduce(x, z), dimensions={1}, to_apply=sum
              m = bf16[8] divide(s, c)
              q = bf16[8,128] multiply(x, x)
              t = bf16[8] reduce(q, z), dimensions={1}, to_apply=sum
              u = bf16[8] divide(t, c)
              w = bf16[8] multiply(m, m)
              ROOT v = bf16[8] subtract(u, w)
            }

            sum {
              a = bf16[] parameter(0)
              b = bf16[] parameter(1)
              ROOT sum.r = bf16[] add(a, b)
            }
        """,
            "v",
        ),
        Fixture.torchscript(
            """
            graph(%x : Half(8, 128)):
              %one : int = prim::Constant[value=1]()
              %two : int = prim::Constant[value=2]()
              %none : NoneType = prim::Constant()
              %t : bool = prim::Constant[value=1]()
              %at : int[] = prim::ListConstruct(%one)
              %q : Half(8, 128) = aten::mul(%x, %x)
              %u : Half(8, 1) = aten::mean(%q, %at, %t, %none)
              %m : Half(8, 1) = aten::mean(%x, %at, %t, %none)
              %w : Half(8, 1) = aten::pow(%m, %two)
              %v : Half(8, 1) = aten::sub(%u, %w, %one)
              return (%v)
        """,
            "v",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 128), float16]) {
              %0 = multiply(%x, %x);
              %1 = mean(%0, axis=[1]);
              %2 = mean(%x, axis=[1]);
              %3 = multiply(%2, %2);
              %4 = subtract(%1, %3);
              %4
            }
        """,
            "4",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,128] parameter(0)
              z = f32[] constant(0)
              n = f32[] constant(128)
              c = f32[8] broadcast(n), dimensions={}
              s = f32[8] reduce(x, z), dimensions={1}, to_apply=sum
              m = f32[8] divide(s, c)
              b = f32[8,128] broadcast(m), dimensions={0}
              d = f32[8,128] subtract(x, b)
              q = f32[8,128] multiply(d, d)
              t = f32[8] reduce(q, z), dimensions={1}, to_apply=sum
              ROOT u = f32[8] divide(t, c)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,128] parameter(0)
              y = f32[8,128] parameter(1)
              z = f32[] constant(0)
              s = f32[8] reduce(x, z), dimensions={1}, to_apply=sum
              q = f32[8,128] multiply(y, y)
              t = f32[8] reduce(q, z), dimensions={1}, to_apply=sum
              w = f32[8] multiply(s, s)
              ROOT v = f32[8] subtract(t, w)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[128,128] parameter(0)
              y = f32[128,128] transpose(x), dimensions={1,0}
              z = f32[] constant(0)
              n = f32[] constant(128)
              c = f32[128] broadcast(n), dimensions={}
              s = f32[128] reduce(y, z), dimensions={1}, to_apply=sum
              m = f32[128] divide(s, c)
              q = f32[128,128] multiply(x, x)
              t = f32[128] reduce(q, z), dimensions={1}, to_apply=sum
              u = f32[128] divide(t, c)
              w = f32[128] multiply(m, m)
              ROOT v = f32[128] subtract(u, w)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Half(8, 128)):
              %one : int = prim::Constant[value=1]()
              %f : bool = prim::Constant[value=0]()
              %at : int[] = prim::ListConstruct(%one)
              %v : Half(8) = aten::var(%x, %at, %f, %f)
              return (%v)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 128), float16]) {
              variance(%x, %x, axis=[1])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.subtract):
            mean = _squared_mean(node)
            if mean is None or not isinstance(node.type, TensorType):
                continue
            half = node.type.dtype.name in HALF
            yield self.finding(
                context, node,
                f"the variance of %{behind(mean.operands[0], SPREADS).name} is a difference of two means in {node.type.dtype.name}: it "
                "loses digits where the mean is large beside the spread",
                notes=(Note(f"%{mean.name} is the mean's sum", mean.loc),),
                help="take the mean of (x - mean) ** 2" + (", or compute in f32" if half else ""),
            ).with_severity(self.severity if half else Severity.INFO)


def _squared_mean(node: Node) -> Node | None:
    """The sum of the mean whose square is subtracted from the mean square of the same values over the same axes; None elsewhere."""
    if len(node.operands) != 2:
        return None
    mean = squared(node.operands[1])
    one, terms = summed(mean) if mean is not None else (None, 1.0)
    two, of_squares = summed(node.operands[0]) if one is not None else (None, 1.0)
    if one is None or two is None or terms != of_squares or terms == 1 or Reduce.of(one).dimensions != Reduce.of(two).dimensions:
        return None
    square = find(behind(two.operands[0], COPIES), SQUARE)
    return one if square is not None and behind(square["x"], COPIES) is behind(one.operands[0], COPIES) else None
