"""LAY005: the minor-most dimension is shorter than a vector."""

from __future__ import annotations

from irscope.graph import Kind, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, RuleFinding, Severity
from irscope.ops import hlo

SHORT = 4
"""An axis of fewer elements than this fills no vector of any machine."""
LONG = 64
WORTH = 1 << 14
SPARED = hlo.named("reshape bitcast fusion pad")
MOVERS = (Kind.INJECTIVE, Kind.REDUCTION, Kind.OPAQUE, Kind.CONTRACTION)


class MinorDimSmall(Rule):
    """The minor-most dimension of a large computed tensor has fewer than four elements, while another is long.

    ## What it does
    Finds results of transposes, concatenations, gathers and reductions of at least 16384 elements whose minor-most dimension (by the
    layout, otherwise the last) has 2 or 3 elements while another has 64 or more. One finding per graph and shape.

    ## Why is this bad?
    Reductions and products along such an axis use one of four or eight vector lanes, and the inner loop ends after 2 or 3 steps.

    ## Use instead
    Put the long axis last: `f32[3,16384]`, coordinates in three planes.

    ## Known false positives
    Elementwise operators alone are unaffected: compilers merge axes. Images with three channels at the edge of a model.
    """

    code, name, severity, default = "LAY005", "minor-dim-small", Severity.INFO, False
    structural = inside = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[3,16384] parameter(0)
              ROOT t = f32[16384,3] transpose(x), dimensions={1,0}
            }
        """,
            "t",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[16384,1] parameter(0)
              y = f32[16384,1] parameter(1)
              ROOT c = f32[16384,2] concatenate(x, y), dimensions={1}
            }
        """,
            "c",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(65536, 3), float32]) {
              %0 = reverse(%x, axis=0);
              %0
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[16384,3] parameter(0)
              ROOT t = f32[3,16384] transpose(x), dimensions={1,0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[16384,3] parameter(0)
              ROOT y = f32[16384,3] negate(x)
            }
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(3, 65536), float32]) {
              reverse(%x, axis=1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            if graph in context.view.inlined:
                continue
            found: dict[tuple[object, ...], list[Node]] = {}
            for node, type in context.view.tensors(graph):
                if node.op.is_primitive and node.op.kind in MOVERS and node.op not in SPARED:
                    if _narrow(type):
                        found.setdefault(type.shape, []).append(node)
            yield from (self._finding(context, nodes) for nodes in found.values())

    def _finding(self, context: Context, nodes: list[Node]) -> RuleFinding:
        type = nodes[0].type
        assert isinstance(type, TensorType)
        more = f" (and {len(nodes) - 1} more of this shape)" if len(nodes) > 1 else ""
        message = f"{type}: the minor-most dimension has {_minor(type)} elements{more}"
        return self.finding(context, nodes[0], message, help="put a long axis last")


def _minor(type: TensorType) -> int:
    """The length of the minor-most dimension that is longer than 1."""
    order = type.layout.minor_to_major if type.layout is not None else tuple(reversed(range(type.rank)))
    shape = type.dims()
    return next((shape[d] for d in order if d < len(shape) and shape[d] > 1), 1)


def _narrow(type: TensorType) -> bool:
    return type.is_static and type.rank > 1 and type.elements >= WORTH and max(type.dims()) >= LONG and 1 < _minor(type) < SHORT
