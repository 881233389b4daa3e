"""DTY010: a part of a half-precision program runs in a wider type."""

from __future__ import annotations

from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes
from irscope.lint.islands import CASTS, HALF, float_type, is_accumulator, is_odd, islands_of, results_bytes

MOST = 20
"""Islands that are reported, the largest first."""
LISTED = 3
"""Casts of an island that are named."""

_WIDE = """
            ENTRY e {{
              x = f16[32,64] parameter(0)
              w = f16[64,64] parameter(1)
              v = f16[64,64] parameter(2)
              a = f16[32,64] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
              {0}
            }}
        """


class WideIsland(Rule):
    """A part of a half-precision program runs in a wider type.

    ## What it does
    Looks at programs whose float inputs and weights are mostly, by bytes, `f16` or `bf16`. Reports connected operators of another floating
    type: products of converted operands, and elementwise operators between two conversions. Wide accumulators are no findings: softmax,
    normalisations, sums, products that convert their result back at once. Does not look at optimised text, where the compiler widens.

    ## Why is this bad?
    One literal or library call in `f32` promotes its neighbours: twice the traffic, conversions on both sides, and an idle matrix unit.

    ## Use instead
    Convert the operand that brings in the wide type; give literals the type of the model; use `preferred_element_type` where only the
    accumulator should be wide. `--expect-dtype bf16` makes it a demand.

    ## Known false positives
    Positions, rotary embeddings and losses that are wide for accuracy.
    """

    code, name, severity = "DTY010", "wide-island", Severity.INFO
    fix = Fix.NONE
    timed = False
    bad = (
        Fixture.hlo(
            _WIDE.format("""b = f32[32,64] convert(a)
              u = f32[64,64] convert(v)
              d = f32[32,64] dot(b, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT r = f32[32,64] tanh(d)"""),
            "d",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(32, 64), float16], %w: Tensor[(64, 64), float16]) {
              %0 = nn.dense(%x, %w);
              %1 = cast(%0, dtype="float32");
              %2 = exp(%1);
              %3 = cast(%2, dtype="float16");
              nn.dense(%3, %w)
            }
        """,
            "2",
        ),
        Fixture.torchscript(
            """
            graph(%x : Half(32, 64), %w : Half(64, 64)):
              %six : int = prim::Constant[value=6]()
              %five : int = prim::Constant[value=5]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %a : Half(32, 64) = aten::mm(%x, %w)
              %b : Float(32, 64) = aten::to(%a, %six, %f, %f, %none)
              %c : Float(32, 64) = aten::tanh(%b)
              %d : Half(32, 64) = aten::to(%c, %five, %f, %f, %none)
              return (%d)
        """,
            "c",
        ),
    )
    good = (
        Fixture.hlo(_WIDE.format("ROOT b = f16[32,64] tanh(a)")),
        Fixture.hlo(
            _WIDE.format("""d = f32[32,64] dot(a, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT r = f16[32,64] convert(d)""")
        ),
        Fixture.relay("""
            def @main(%x: Tensor[(32, 64), float32], %w: Tensor[(64, 64), float32]) {
              %0 = nn.dense(%x, %w);
              tanh(%0)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Half(32, 64), %w : Half(64, 64)):
              %six : int = prim::Constant[value=6]()
              %one : int = prim::Constant[value=1]()
              %five : int = prim::Constant[value=5]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %b : Float(32, 64) = aten::to(%x, %six, %f, %f, %none)
              %s : Float(32, 64) = aten::softmax(%b, %one, %none)
              %d : Half(32, 64) = aten::to(%s, %five, %f, %f, %none)
              %a : Half(32, 64) = aten::mm(%d, %w)
              return (%a)
        """),
    )

    def check(self, context: Context) -> Findings:
        expected = "" if context.view.optimised else _meant(context)
        if not expected:
            return
        odd = [(graph, [node for node in graph.nodes if is_odd(node, expected)]) for graph in context.view.array_graphs]
        found = [island for graph, nodes in odd for island in islands_of(nodes) if not is_accumulator(island, graph, expected, context)]
        for island in sorted(found, key=lambda nodes: -results_bytes(nodes))[:MOST]:
            first = next((node for node in island if node.op not in CASTS), island[0])
            types = ", ".join(sorted({float_type(node) for node in island}))
            runs = "1 operator runs" if len(island) == 1 else f"{len(island)} operators run"
            yield self.finding(
                context, first,
                f"{runs} in {types} in a program of {expected}: {human_bytes(results_bytes(island))} of results",
                notes=tuple(Note(f"%{n.name} converts to {float_type(n)}", n.loc) for n in [n for n in island if n.op in CASTS][:LISTED]),
                help=f"convert what brings {types} in, or leave it where the accuracy needs it",
            )


def _meant(context: Context) -> str:
    """The half type that most bytes of the program's float inputs and weights have; empty where most have another."""
    by_type: dict[str, int] = {}
    for leaf in _leaves(context.module.main()):
        by_type[leaf.dtype.name] = by_type.get(leaf.dtype.name, 0) + leaf.bytes
    most = max(by_type, key=lambda name: by_type[name], default="")
    return most if most in HALF and 2 * by_type[most] > sum(by_type.values()) else ""


def _leaves(graph: Graph) -> list[TensorType]:
    """The float tensors that go into a graph: inputs, weights, constants."""
    nodes: list[Node] = [*graph.params, *(node for node in graph.nodes if node.op.kind is Kind.LEAF and node not in graph.params)]
    types = [leaf for node in nodes for leaf in node.type.leaves()]
    return [leaf for leaf in types if isinstance(leaf, TensorType) and leaf.dtype.is_float and leaf.shape and leaf.is_static]
