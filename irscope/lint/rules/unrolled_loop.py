"""CTL002: the same sequence of operations is repeated many times in a row."""

from __future__ import annotations

from irscope.analysis.repeats import RepeatedStretch, repeats
from irscope.analysis.values import PLUMBING
from irscope.graph import Node
from irscope.graph.numbering import Numbering
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity

TIMES = 8
"""The number of copies from which a finding is reported."""
SHORTEST = 2
SMALLEST = 64
"""The smallest number of operations of all copies together."""


class UnrolledLoop(Rule):
    """Eight or more equal sequences of operations follow each other.

    ## What it does
    Compares operators, types and attributes along the text, and finds sequences of two or more operators that repeat eight times or more,
    64 operators in all; parameters and constants do not count.

    ## Why is this bad?
    The graph is that many times larger: tracing, compiling and every dump take longer. A loop has one body.

    ## Use instead
    `jax.lax.scan` over stacked weights, `fori_loop`; with `jax.checkpoint` inside if memory is short.

    ## Known false positives
    A loop is sometimes slower than its unrolled form, because nothing fuses across iterations: measure.
    """

    code, name, severity, default = "CTL002", "unrolled-loop", Severity.INFO, False
    structural = True
    bad = (
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[8,8] parameter(0)\n"
            + "".join(
                f"  a{i} = f32[8,8] tanh(v{i - 1})\n  b{i} = f32[8,8] negate(a{i})\n  c{i} = f32[8,8] sine(b{i})\n"
                f"  d{i} = f32[8,8] cosine(c{i})\n  v{i} = f32[8,8] multiply(d{i}, v{i - 1})\n"
                for i in range(1, 17)
            )
            + "  ROOT r = f32[8,8] abs(v16)\n}",
            "a1",
        ),
        Fixture.hlo(
            "ENTRY e {\n  w = f32[8,8] parameter(0)\n  v0 = f32[8,8] parameter(1)\n"
            + "".join(
                f"  a{i} = f32[8,8] dot(v{i - 1}, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n"
                f"  b{i} = f32[8,8] tanh(a{i})\n  c{i} = f32[8,8] exponential(b{i})\n  v{i} = f32[8,8] add(c{i}, b{i})\n"
                for i in range(1, 21)
            )
            + "  ROOT r = f32[8,8] negate(v20)\n}",
            "a1",
        ),
        Fixture.torchscript(
            "graph(%v0 : Float(8, 8)):\n"
            + "".join(
                f"  %a{i} : Float(8, 8) = aten::tanh(%v{i - 1})\n  %b{i} : Float(8, 8) = aten::neg(%a{i})\n"
                f"  %c{i} : Float(8, 8) = aten::sin(%b{i})\n  %v{i} : Float(8, 8) = aten::mul(%c{i}, %v{i - 1})\n"
                for i in range(1, 21)
            )
            + "  return (%v20)",
            "a1",
        ),
        Fixture.relay(
            "def @main(%x: Tensor[(8, 8), float32]) {\n  %0 = abs(%x);\n"
            + "".join(
                f"  %{4 * i + 1} = tanh(%{4 * i});\n  %{4 * i + 2} = negative(%{4 * i + 1});\n  %{4 * i + 3} = sin(%{4 * i + 2});\n"
                f"  %{4 * i + 4} = multiply(%{4 * i + 3}, %{4 * i});\n"
                for i in range(20)
            )
            + "  %80\n}",
            "1",
        ),
    )
    good = (
        Fixture.hlo(
            "ENTRY e {\n  v0 = f32[8,8] parameter(0)\n"
            + "".join(
                f"  a{i} = f32[8,8] tanh(v{i - 1})\n  b{i} = f32[8,8] negate(a{i})\n  c{i} = f32[8,8] sine(b{i})\n"
                f"  v{i} = f32[8,8] multiply(c{i}, v{i - 1})\n"
                for i in range(1, 4)
            )
            + "  ROOT r = f32[8,8] abs(v3)\n}"
        ),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,8] parameter(0)
              ROOT r = f32[8,8] abs(x)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 8)):
              %a : Float(8, 8) = aten::tanh(%x)
              %b : Float(8, 8) = aten::neg(%a)
              return (%b)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 8), float32]) {
              %0 = tanh(%x);
              negative(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        numbering = Numbering()
        for graph in context.view.array_graphs:
            if len(graph.nodes) < SMALLEST or graph in context.view.inlined:
                continue
            counted = [n for n in graph.nodes if n.op not in PLUMBING and not n.synthetic]
            numbers: dict[object, int] = {}
            sequence = [numbers.setdefault((n.op, n.type, numbering.attrs(n.attrs)), len(numbers)) for n in counted]
            for repeat in repeats(sequence):
                if repeat.times >= TIMES and repeat.period >= SHORTEST and repeat.times * repeat.period >= SMALLEST:
                    yield self._finding(context, counted, repeat)

    def _finding(self, context: Context, counted: list[Node], repeat: RepeatedStretch) -> RuleFinding:
        first, second = counted[repeat.begin], counted[repeat.begin + repeat.period]
        share = 100 * repeat.times * repeat.period / max(1, len(counted))
        return self.finding(
            context, first,
            f"{repeat.times} equal sequences of {repeat.period} operations follow each other from here: {share:.0f} % of the graph",
            notes=(Note(f"the second begins with %{second.name}", second.loc),),
            help="a loop over stacked weights has one body: lax.scan, fori_loop",
        )
