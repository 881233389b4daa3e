"""SHP001: a dynamic dimension where kernels need a static one."""

from __future__ import annotations

from irscope.graph import DynamicDim, Graph, Node, TensorType, bytes_of
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity, plural
from irscope.ops import hlo
from irscope.ops.attributes import Dot


class DynamicDimBlocks(Rule):
    """A parameter has a dynamic dimension that becomes an innermost axis or the contracting dimension of a matrix product.

    ## What it does
    Reports parameters of the program with a dynamic dimension (`?`, a name, `<=8`), and counts the values that inherit it.
    It is information if the dimension is always the first (a batch); a dimension that no other value inherits is not reported.

    ## Why is this bad?
    Vector loops over an innermost axis of unknown length need a remainder, products of unknown depth cannot be tiled well, and buffers are
    allocated for the bound. Some compilers do not fuse such operators.

    ## Use instead
    Pad to a few fixed lengths (buckets), and compile one program for each; keep only the batch dynamic.

    ## Known false positives
    Programs that must accept any length, and whose speed does not matter.
    """

    code, name, severity = "SHP001", "dynamic-dim-blocks", Severity.INFO
    timed = False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4,<=512] parameter(0)
              ROOT r = f32[4,<=512] negate(x)
            }
        """,
            "x",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[<=64,8] parameter(0)
              ROOT r = f32[<=64,8] exponential(x)
            }
        """,
            "x",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4, ?), float32]) {
              nn.relu(%x)
            }
        """,
            "x",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, *)):
              %y : Float(8, *) = aten::tanh(%x)
              return (%y)
        """,
            "x",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[4,512] parameter(0)
              ROOT r = f32[4,512] negate(x)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = (f32[4,8], s32[]) parameter(0)
              y = f32[4,8] get-tuple-element(x), index=0
              ROOT r = f32[4,8] negate(y)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(?, ?), float32]) {
              shape_of(%x, dtype="int64")
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(4, 8), float32]) {
              nn.relu(%x)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 128)):
              %y : Float(8, 128) = aten::tanh(%x)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Findings:
        graph = context.module.main()
        for node in graph.params:
            for leaf in node.type.leaves():
                if isinstance(leaf, TensorType) and not leaf.is_static:
                    tainted = _tainted(graph, node)
                    if tainted:
                        yield self._finding(context, node, leaf, tainted)
                    break

    def _finding(self, context: Context, node: Node, type: TensorType, tainted: list[Node]) -> RuleFinding:
        axes = [i for i, d in enumerate(type.shape) if isinstance(d, DynamicDim)]
        summed = next((n for n in tainted if n.op is hlo.dot and _sums_open(n)), None)
        inner = axes[-1] == type.rank - 1 and type.rank > 1
        where = "innermost axis" if inner else "axis " + ", ".join(map(str, axes))
        return self.finding(
            context, node,
            f"%{node.name} is {type}: its {where} is dynamic, and propagates to {plural(len(tainted), 'value')}",
            notes=(Note(f"%{summed.name} contracts a dynamic dimension", summed.loc),) if summed is not None else (),
            help="pad to a few fixed lengths and compile for each",
        )


def _tainted(graph: Graph, start: Node) -> list[Node]:
    """The nodes computed from ``start`` whose type also has a dynamic dimension."""
    reached = [False] * len(graph.nodes)
    reached[start.index] = True
    found = []
    for node in graph.nodes[start.index + 1 :]:
        if any(reached[o.index] for o in node.operands) and not _is_static(node):
            reached[node.index] = True
            found.append(node)
    return found


def _is_static(node: Node) -> bool:
    return bytes_of(node.type) > 0 and all(leaf.is_static for leaf in node.type.leaves() if isinstance(leaf, TensorType))


def _sums_open(node: Node) -> bool:
    left = node.operands[0].type
    axes = Dot.of(node).lhs_contracting_dims
    return isinstance(left, TensorType) and any(isinstance(left.shape[d], DynamicDim) for d in axes if d < left.rank)
