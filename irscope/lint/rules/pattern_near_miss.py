"""FUS016: a well-known composite, except for one node."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.recognise import RECOGNISERS
from irscope.analysis.recognise.parts import Composite
from irscope.graph import Graph
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.lint.softmax_rewriter import SoftmaxRewriter
from irscope.lint.view import ModuleView

_SOFTMAX = """
            ENTRY e {{
              {3}
              v = f32[8,16] parameter(1)
              z = f32[] constant(0)
              i = f32[] constant(-inf)
              m = f32[8] reduce(x, i), dimensions={{{0}}}, to_apply=max
              n = f32[8,8] broadcast(m), dimensions={{{1}}}
              d = f32[8,8] subtract(x, n)
              y = f32[8,8] exponential(d)
              t = f32[8] reduce(y, z), dimensions={{1}}, to_apply=sum
              b = f32[8,8] broadcast(t), dimensions={{0}}
              p = f32[8,8] divide(y, b)
              ROOT r = f32[8,16] dot(p, v), lhs_contracting_dims={{{2}}}, rhs_contracting_dims={{0}}
            }}
        """
_SCORES = """q = f32[8,4] parameter(0)
              k = f32[8,4] parameter(2)
              x = f32[8,8] dot(q, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}"""
_LOGITS = """
            ENTRY e {{
              x = f32[8,{1}] parameter(0)
              i = f32[] parameter(1)
              z = f32[] constant(0)
              p = f32[] constant(-inf)
              m = f32[8] reduce(x, {0}), dimensions={{1}}, to_apply=max
              n = f32[8,{1}] broadcast(m), dimensions={{0}}
              d = f32[8,{1}] subtract(x, n)
              y = f32[8,{1}] exponential(d)
              t = f32[8] reduce(y, z), dimensions={{1}}, to_apply=sum
              b = f32[8,{1}] broadcast(t), dimensions={{0}}
              ROOT q = f32[8,{1}] divide(y, b)
            }}
        """
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

_TURNED = """
            graph(%x : Float(2, 8, 16), %c : Float(8, 16), %s : Float(8, 16)):
              %last : int = prim::Constant[value=-1]()
              %one : int = prim::Constant[value=1]()
              %zero : int = prim::Constant[value=0]()
              %half : int = prim::Constant[value=8]()
              %end : int = prim::Constant[value=16]()
              %a : Float(2, 8, 8) = aten::slice(%x, %last, %zero, %half, %one)
              %b : Float(2, 8, 8) = aten::slice(%x, %last, %half, %end, %one)
              %n : Float(2, 8, 8) = aten::neg(%b)
              %parts : Tensor[] = prim::ListConstruct({1})
              %cat : Float(2, 8, 16) = aten::{0}
              %u : Float(2, 8, 16) = aten::mul(%x, %c)
              %v : Float(2, 8, 16) = aten::mul(%cat, %s)
              %y : Float(2, 8, 16) = aten::add(%u, %v, %one)
              return (%y)
        """
_RMS = """
            def @main(%x: Tensor[(8, 16), float32]) {{
              %0 = multiply(%x, %x);
              {0}
              {1}
              multiply(%x, %3)
            }}
        """


class PatternNearMiss(Rule):
    """A softmax, an attention, a normalisation, a GELU, a SwiGLU, a rotary embedding or the tail of a layer, except for one node.

    ## What it does
    Recognises composites by their structure, in every format, and reports the difference from the canonical form:

    * a softmax whose maximum is taken over other axes than its sum; an attention whose product sums over another axis than the softmax, or
      that scales after the softmax;
    * a layer or RMS normalisation whose mean and variance are over different axes, that adds no epsilon or adds it after the root, or that
      divides by one term less;
    * a GELU with other constants; a SwiGLU that scales its gate, converts it on one path, or computes its products from two values;
    * a rotary embedding that negates neither half or the wrong one, or does not split in the middle;
    * a product, its bias and a GELU, or a convolution, its normalisation and a ReLU, with a conversion or transpose between them, or
      along another axis than the channels.

    Under `--policy xla-gpu` it also reports softmaxes and normalisations of HLO, including canonical ones, that XLA's softmax rewriter does
    not turn into Triton kernels, with XLA's reason; whether XLA's cost model accepts the others is not simulated.

    ## Why is this bad?
    Kernels for whole composites match only the canonical form, so a near miss runs as a dozen operators. It is often a mistake: if the
    shift of a softmax changes along its sum, or an embedding negates nothing, the result is wrong.

    ## Use instead
    The operator of the framework: `jax.nn.softmax(x, axis=-1)`, `jax.nn.dot_product_attention`, `nn.LayerNorm`, `nn.RMSNorm`,
    `jax.nn.gelu`.

    ## Known false positives
    The model may be an intended variant. Then the finding is information, except for differences that cannot be intended.
    """

    code, name, severity = "FUS016", "pattern-near-miss", Severity.WARNING
    timed = False
    structural = inside = True
    bad = (
        Fixture.hlo(_SOFTMAX.format("0", "1", "1", _SCORES), "m"),
        Fixture.hlo(_SOFTMAX.format("1", "0", "0", _SCORES), "r"),
        Fixture.hlo(_GELU.format("0.0347", "0.79788456"), "t"),
        Fixture.torchscript(_TURNED.format("cat(%parts, %last)", "%a, %b"), "cat"),
        Fixture.relay(_RMS.format("%1 = mean(%0, axis=[-1], keepdims=True);", "%3 = rsqrt(%1);"), "3"),
        Fixture.hlo(_LOGITS.format("p", 32768), "x", policy="xla-gpu"),
        Fixture.hlo(_LOGITS.format("i", 512), "m", policy="xla-gpu"),
    )
    good = (
        Fixture.hlo(_SOFTMAX.format("1", "0", "1", _SCORES)),
        Fixture.hlo(_SOFTMAX.format("1", "0", "0", "x = f32[8,8] parameter(0)")),
        Fixture.hlo(_GELU.format("0.044715", "0.79788456")),
        Fixture.torchscript(_TURNED.format("cat(%parts, %last)", "%n, %a")),
        Fixture.relay(_RMS.format("%1 = mean(%0, axis=[-1], keepdims=True);\n  %2 = add(%1, 1e-06f);", "%3 = rsqrt(%2);")),
        Fixture.hlo(_LOGITS.format("p", 512), policy="xla-gpu"),
        Fixture.hlo(_LOGITS.format("p", 32768)),
    )

    def check(self, context: Context) -> Findings:
        rewriter = SoftmaxRewriter(context)
        for found, graph in composites(context.view):
            odd = found.odd
            if odd is None:
                yield from self._apart(context, rewriter, found, graph)
                continue
            yield self.finding(
                context, odd.node,
                f"this is {found.article} {found.what}, but {odd.says}",
                notes=tuple(Note(f"%{node.name} {role}", node.loc) for node, role in odd.others) + rewriter.notes(found, graph),
                help=odd.help,
            ).with_severity(None if odd.wrong else Severity.INFO)

    def _apart(self, context: Context, rewriter: SoftmaxRewriter, found: Composite, graph: Graph) -> Findings:
        """A canonical softmax or normalisation that XLA's rewriter does not match."""
        answer = rewriter.answer(found, graph)
        if answer is None or answer.refused is None:
            return
        yield self.finding(
            context, answer.node,
            f"XLA's softmax rewriter does not make one kernel of this {found.what}: {answer.refused}",
            notes=(Note(f"%{answer.reduce.name} is the reduction", answer.reduce.loc),),
            help=answer.help,
        ).with_severity(Severity.INFO)


def composites(view: ModuleView) -> Iterator[tuple[Composite, Graph]]:
    """Every composite of a module with its graph, canonical or with an odd node, family by family."""
    for ops, recognise, in_fusions in RECOGNISERS:
        left_out = frozenset[Graph]() if in_fusions else view.inlined
        for node, graph in view.primitives(*ops):
            if graph not in left_out:
                for found in recognise(node, view.survey.users(graph)):
                    yield found, graph
