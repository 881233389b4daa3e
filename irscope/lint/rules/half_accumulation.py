"""DTY004: a long sum in half precision."""

from __future__ import annotations

from irscope.analysis.values import dims
from irscope.graph import Node, TensorType
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity, plural
from irscope.lint.islands import HALF
from irscope.lint.rules.narrow_integer_sum import terms_of
from irscope.ops import hlo

LONG = 1024
"""The least number of terms of a sum that is reported: of 1024 equal terms, a bf16 sum (8 bits of mantissa) keeps the first 256."""

SUMS = hlo.named("reduce dot convolution")
LISTED = 5
"""Other sums that are named."""


class HalfAccumulation(Rule):
    """A sum of many terms is declared to accumulate in half precision.

    ## What it does
    Finds ``reduce`` whose computation adds, and ``dot``/``convolution``, whose result is ``f16`` or ``bf16`` and whose sums have
    1024 terms or more. One finding per graph and type, at the longest sum.

    ## Why is this bad?
    ``bf16`` has 8 bits of mantissa: once a running sum is 256 times its next term, the term is lost. Means and losses come out wrong
    (measured: XLA on a CPU sums 4096 times 0.1 to 400, in five times as long as in ``f32``; irscope itself accumulates in ``f32``).

    ## Use instead
    Sum in ``f32`` and convert the result: ``jnp.sum(x, dtype=jnp.float32)``, ``preferred_element_type=jnp.float32`` for matrix products.

    ## Known false positives
    Matrix units accumulate in ``f32`` whatever the text says; findings about ``dot`` and ``convolution`` are therefore information only.
    """

    code, name, severity = "DTY004", "half-accumulation", Severity.WARNING
    structural = inside = True
    timed = False
    bad = (
        Fixture.hlo(
            """
            add {
              a = bf16[] parameter(0)
              b = bf16[] parameter(1)
              ROOT s = bf16[] add(a, b)
            }
            ENTRY e {
              p = bf16[4096] parameter(0)
              z = bf16[] constant(0)
              ROOT r = bf16[] reduce(p, z), dimensions={0}, to_apply=add
            }
        """,
            "r",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              a = f16[8,2048] parameter(0)
              b = f16[2048,8] parameter(1)
              ROOT d = f16[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.torchscript(
            """
            graph(%x : Half(8, 4096), %w : Half(4096, 8)):
              %y : Half(8, 8) = aten::mm(%x, %w)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 4096), float16]) {
              %0 = sum(%x, axis=[1]);
              %0
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            add {
              a = bf16[] parameter(0)
              b = bf16[] parameter(1)
              ROOT s = bf16[] add(a, b)
            }
            ENTRY e {
              p = bf16[64] parameter(0)
              z = bf16[] constant(0)
              ROOT r = bf16[] reduce(p, z), dimensions={0}, to_apply=add
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              a = bf16[8,2048] parameter(0)
              b = bf16[2048,8] parameter(1)
              ROOT d = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Half(8, 64), %w : Half(64, 8)):
              %y : Half(8, 8) = aten::mm(%x, %w)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 4096), float16]) {
              %0 = cast(%x, dtype="float32");
              sum(%0, axis=[1])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            found: dict[tuple[str, bool], list[Node]] = {}
            for node in context.view.with_op(SUMS, graph):
                if isinstance(node.type, TensorType) and node.type.dtype.name in HALF and _terms(node) >= LONG:
                    found.setdefault((node.type.dtype.name, node.op is hlo.reduce), []).append(node)
            for (dtype, reduces), nodes in found.items():
                yield self._finding(context, nodes, dtype, reduces)

    def _finding(self, context: Context, nodes: list[Node], dtype: str, reduces: bool) -> RuleFinding:
        """One finding for all sums of a graph in one type, or all products, at the longest."""
        node = max(nodes, key=_terms)
        more = f"; {plural(len(nodes) - 1, 'more sum' if reduces else 'more product')} like it" if len(nodes) > 1 else ""
        return self.finding(
            context, node,
            f"{_terms(node)} terms are summed in {dtype}{more}",
            notes=tuple(Note(f"%{n.name} sums {_terms(n)}", n.loc) for n in [n for n in nodes if n is not node][:LISTED]),
            help="accumulate in f32 and convert the result"
            if reduces
            else "declare an f32 result (preferred_element_type) and convert after it",
        ).with_severity(self.severity if reduces else Severity.INFO)


def _terms(node: Node) -> int:
    """How many terms each result element sums; 0 for a reduction by another operator, and for unknown sizes."""
    root = node.bodies[0].root if node.bodies else None
    is_sum = node.op is not hlo.reduce or (root is not None and root.op is hlo.add)
    return terms_of(node) if is_sum and dims(node.operands[0]) else 0
