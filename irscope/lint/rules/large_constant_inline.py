"""MEM003: a large constant is part of the graph."""

from __future__ import annotations

from irscope.analysis.values import size
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes
from irscope.ops.sets import hlo, torchscript

LARGE = 1 << 20
"""1 MiB: as text such a constant is several times as long."""
CONSTANTS = hlo("constant") | torchscript("prim::Constant")
FROZEN = "self."
"""How `torch.jit.freeze` names what was an attribute."""
LISTED = 5


class LargeConstantInline(Rule):
    """A constant of more than 1 MiB is part of the graph.

    ## What it does
    Finds constants whose values take 1 MiB or more, one finding per graph, at the largest. Does not report broadcasts of a small
    constant, or the weights of a module that torch froze, where constants are intended. In TorchScript and Relay it is information: they
    keep the values outside the text, and constant weights can be folded.

    ## Why is this bad?
    The values are compiled in: the file, the compiler and the compilation cache each keep a copy, and the compiler hashes or folds them.

    ## Use instead
    Pass it as a parameter: make the array an argument of the function under `jax.jit` instead of closing over it.

    ## Known false positives
    Programs that are deliberately shipped as one file with their weights.
    """

    code, name, severity = "MEM003", "large-constant-inline", Severity.INFO
    timed = False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8,1024] parameter(0)
              w = f32[1024,1024] constant({...})
              ROOT d = f32[8,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "w",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f64[512,512] parameter(0)
              w = f64[512,512] constant({...})
              ROOT d = f64[512,512] add(x, w)
            }
        """,
            "w",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(1024, 1024)):
              %w : Float(1024, 1024) = prim::Constant[value=<Tensor>]()
              %y : Float(1024, 1024) = aten::mm(%x, %w)
              return (%y)
        """,
            "w",
        ),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 1024), float32]) {
              let %w = meta[relay.Constant][0] /* ty=Tensor[(512, 1024), float32] */;
              nn.dense(%x, %w)
            }
        """),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[8,1024] parameter(0)
              w = f32[1024,1024] parameter(1)
              ROOT d = f32[8,1024] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[1024,1024] parameter(0)
              c = f32[] constant(2)
              w = f32[1024,1024] broadcast(c), dimensions={}
              ROOT d = f32[1024,1024] multiply(x, w)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(1024, 1024)):
              %self.proj.weight : Float(1024, 1024) = prim::Constant[value=<Tensor>]()
              %y : Float(1024, 1024) = aten::mm(%x, %self.proj.weight)
              return (%y)
        """),
        Fixture.torchscript("""
            graph(%x : Float(1024, 1024), %w : Float(1024, 1024)):
              %y : Float(1024, 1024) = aten::mm(%x, %w)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(8, 1024), float32], %w: Tensor[(512, 1024), float32]) {
              nn.dense(%x, %w)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            large = [n for n in context.view.with_op(CONSTANTS, graph) if size(n) >= LARGE and not n.name.startswith(FROZEN)]
            if large:
                node = max(large, key=size)
                more = f"; {len(large) - 1} more, {human_bytes(sum(map(size, large)))} in all" if len(large) > 1 else ""
                said = f"{human_bytes(size(node))} of constants are part of the graph: {node.type}{more}"
                notes = tuple(Note(f"%{n.name} is another", n.loc) for n in [n for n in large if n is not node][:LISTED])
                yield self.finding(context, node, said, notes=notes, help="make it a parameter")
