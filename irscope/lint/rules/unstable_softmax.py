"""ALG006: a softmax that does not subtract the maximum first."""

from __future__ import annotations

from irscope.analysis.exponentials import is_bounded, limit_of
from irscope.analysis.recognise.norms import LAYER, normalisations
from irscope.analysis.recognise.parts import readers
from irscope.analysis.values import SPREADS, reduces, size, written
from irscope.graph import Graph, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.lint.view import ModuleView
from irscope.ops import hlo

WORTH_BYTES = 1 << 20
"""Smaller values stay in the nearest caches, where reading them twice costs nothing."""

_VARIANCE = """
            ENTRY e {{
              x = f32[{0},{1}] parameter(0)
              z = f32[] constant(0)
              n = f32[] constant({1})
              c = f32[] constant(1e-05)
              s = f32[{0}] reduce(x, z), dimensions={{1}}, to_apply=sum
              nb = f32[{0}] broadcast(n), dimensions={{}}
              m = f32[{0}] divide(s, nb)
              mb = f32[{0},{1}] broadcast(m), dimensions={{0}}
              d = f32[{0},{1}] subtract(x, mb)
              q = f32[{0},{1}] multiply(d, d)
              v = f32[{0}] reduce(q, z), dimensions={{1}}, to_apply=sum
              w = f32[{0}] divide(v, nb)
              cb = f32[{0}] broadcast(c), dimensions={{}}
              a = f32[{0}] add(w, cb)
              r = f32[{0}] rsqrt(a)
              rb = f32[{0},{1}] broadcast(r), dimensions={{0}}
              ROOT y = f32[{0},{1}] multiply(d, rb)
            }}
        """


class UnstableSoftmax(Rule):
    """Exponentials are divided by their sum, or the logarithm of their sum is computed, without subtracting the maximum first.

    ## What it does
    Finds `exp(x) / sum(exp(x))`, with the exponential written once or twice, and `log(sum(exp(x)))`, where `x` is not a difference from a
    maximum and is not bounded (`tanh`, `clamp`). Also, as information, normalisations from 1 MiB up that compute the mean and the mean
    square of the differences in two kernels of the chosen policy: each kernel reads the whole value.

    ## Why is this bad?
    `exp` of 89 is infinite in f32, and of 12 in f16: one large logit makes the result `nan`. A second pass over a value that does not fit
    in a cache reads all of it again (measured: one pass was 1.7 times as fast).

    ## Use instead
    `jax.nn.softmax`, `jax.nn.logsumexp`, `torch.softmax`: they subtract the maximum, which leaves the result the same.
    The mean of squares less the square of the mean needs one pass, if the mean is small compared with the spread (`flax` calls it fast
    variance).

    ## Known false positives
    Arguments that are negative by construction, such as negated squares (reported only if the text does not show it).
    Two passes lose fewer digits than one.
    """

    code, name, severity = "ALG006", "unstable-softmax", Severity.ERROR
    timed = False
    structural = inside = True
    bad = (
        Fixture.hlo(_VARIANCE.format(64, 131072), "v"),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,128] parameter(0)
              z = f32[] constant(0)
              y = f32[8,128] exponential(x)
              s = f32[8] reduce(y, z), dimensions={1}, to_apply=sum
              b = f32[8,128] broadcast(s), dimensions={0}
              ROOT r = f32[8,128] divide(y, b)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,128] parameter(0)
              t = f32[] parameter(1)
              w = f32[8,128] broadcast(t), dimensions={}
              q = f32[8,128] divide(x, w)
              z = f32[] constant(0)
              y = f32[8,128] exponential(q)
              s = f32[8] reduce(y, z), dimensions={1}, to_apply=sum
              ROOT l = f32[8] log(s)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,128] parameter(0)
              z = f32[] constant(0)
              h = f32[] constant(2)
              w = f32[8,128] broadcast(h), dimensions={}
              q = f32[8,128] multiply(x, w)
              y = f32[8,128] exponential(q)
              s = f32[8] reduce(y, z), dimensions={1}, to_apply=sum
              q2 = f32[8,128] multiply(x, w)
              y2 = f32[8,128] exponential(q2)
              b = f32[8,128] broadcast(s), dimensions={0}
              ROOT r = f32[8,128] divide(y2, b)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,128] parameter(0)
              v = f32[128,16] parameter(1)
              z = f32[] constant(0)
              y = f32[8,128] exponential(x)
              s = f32[8] reduce(y, z), dimensions={1}, to_apply=sum
              w = f32[8,16] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              b = f32[8,16] broadcast(s), dimensions={0}
              ROOT r = f32[8,16] divide(w, b)
            }
        """,
            "y",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 128)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %e : Float(8, 128) = aten::exp(%x)
              %at : int[] = prim::ListConstruct(%one)
              %s : Float(8, 1) = aten::sum(%e, %at, %t, %none)
              %y : Float(8, 128) = aten::div(%e, %s)
              return (%y)
        """,
            "e",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 128), float32]) {
              %0 = exp(%x);
              %1 = sum(%0, axis=[1], keepdims=True);
              %2 = divide(%0, %1);
              %2
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            left_behind {
              x = f32[8,64] parameter(0)
              e = f32[8,64] exponential(x)
              z = f32[] constant(0)
              s = f32[8] reduce(e, z), dimensions={1}, to_apply=sum
              ROOT l = f32[8] log(s)
            }
            ENTRY e {
              x = f32[8,64] parameter(0)
              ROOT n = f32[8,64] negate(x)
            }
        """),
        Fixture.hlo(_VARIANCE.format(64, 4096), policy="irscope"),
        Fixture.hlo("""
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
              ROOT r = f32[8,128] divide(y, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,128] parameter(0)
              z = f32[] constant(0)
              q = f32[8,128] multiply(x, x)
              n = f32[8,128] negate(q)
              y = f32[8,128] exponential(n)
              s = f32[8] reduce(y, z), dimensions={1}, to_apply=sum
              b = f32[8,128] broadcast(s), dimensions={0}
              ROOT r = f32[8,128] divide(y, b)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 128)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %y : Float(8, 128) = aten::softmax(%x, %one, %none)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 128), float32]) {
              nn.softmax(%x)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.exponential):
            if graph in context.view.inlined or not node.operands or not isinstance(node.type, TensorType) or not node.type.rank:
                continue
            total = next((u for u in context.view.users(node, graph) if reduces(u, hlo.add)), None)
            if total is None or is_bounded(node.operands[0]):
                continue
            what = _normalised(context, graph, node, total)
            if what:
                yield self.finding(
                    context, node,
                    f"{what} without the maximum subtracted first: exp overflows above {limit_of(node)}",
                    notes=(Note(f"%{total.name} sums them up", total.loc),),
                    help="subtract the maximum over the same axes, or use the framework's softmax or logsumexp",
                )
        yield from self._two_walks(context)

    def _two_walks(self, context: Context) -> Findings:
        """Normalisations whose mean and variance are in two kernels."""
        norms = (found for root, graph in context.view.primitives(hlo.rsqrt, hlo.sqrt) if graph not in context.view.inlined
                 for found in normalisations(root, context.view.survey.users(graph)))
        for found in norms:
            if found.what != LAYER or context.costs.planned is None:
                continue
            _, mean, spread = found.nodes
            own = written(mean) is written(spread)  # one operator of the text: the user does not choose its passes
            x = mean.operands[0]
            if own or size(x) < WORTH_BYTES or _together(context, mean, spread):
                continue
            yield self.finding(
                context, spread,
                f"the variance is a second pass over %{x.name} ({human_bytes(size(x))}), after that of its mean",
                notes=(Note(f"%{mean.name} is the mean's sum", mean.loc),),
                help="sum the values and their squares in one pass, if the mean is small beside the spread",
                saves=saving(bytes=float(size(x)), kernels=1.0),
            ).with_severity(Severity.INFO)


def _together(context: Context, one: Node, two: Node) -> bool:
    """Whether one kernel of the plan holds both."""
    assert context.costs.planned is not None
    names = {one.name, two.name}
    return any(names <= {node.name for node in group.nodes} for plan in context.costs.planned.plans for group in plan.groups)


def _normalised(context: Context, graph: Graph, node: Node, total: Node) -> str:
    """How the program uses the exponentials and their sum, as text; empty if it is neither softmax nor log-sum-exp."""
    for user, through in readers(context.view.survey.users(graph), total):
        if user.op is hlo.log:
            return "the logarithm of a sum of exponentials"
        if user.op is not hlo.divide or user.operands[1] is not through:
            continue
        above = behind(user.operands[0], SPREADS)
        weights = above.operands if above.op is hlo.dot else (above,)  # attention may divide what its values were weighted to
        if any(_is_same(context.view, graph, behind(one, SPREADS), node) for one in weights):
            return "a softmax"
    return ""


def _is_same(view: ModuleView, graph: Graph, one: Node, exponential: Node) -> bool:
    """Whether a node is the exponential, or has its value: programs write ``exp(x) / exp(x).sum()``."""
    if one is exponential or one.op is not hlo.exponential:
        return one is exponential
    numbers = view.values(graph)
    return numbers[one.index] == numbers[exponential.index]
