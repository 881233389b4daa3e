"""LAY001: a transpose that a later transpose undoes."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from irscope.analysis.values import written
from irscope.formats.relay.attributes import Transpose as RelayTranspose
from irscope.graph import Kind, Node, TensorType, bytes_of
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, human_bytes
from irscope.ops import hlo, sets
from irscope.ops.attributes import Broadcast, Transpose

TRANSPOSES = sets.hlo("transpose") | sets.relay("transpose")


class TransposePair(Rule):
    """A later transpose undoes a transpose, with only elementwise operators between them.

    ## What it does
    Follows an operand chain of elementwise operators from a ``transpose`` up to another whose permutation is the inverse.
    Reports two transposes in direct succession whatever their permutations, because one can do the work of both.

    ## Why is this bad?
    Each transpose reads and writes the whole tensor, and most compilers do not fuse across it.

    ## Use instead
    Do the elementwise work in the original order of the axes; keep one layout (e.g. channels last) through the whole model.

    ## Known false positives
    The intermediate value may have another user that needs the transposed order; then only one of the two can be removed.
    """

    code, name, severity = "LAY001", "transpose-pair", Severity.WARNING
    fix = Fix.REWRITE
    passes = ("cancel-transposes",)
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[8,4] parameter(0)
              t = f32[4,8] transpose(p), dimensions={1,0}
              x = f32[4,8] exponential(t)
              ROOT b = f32[8,4] transpose(x), dimensions={1,0}
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              p = f32[2,3,4] parameter(0)
              t = f32[4,2,3] transpose(p), dimensions={2,0,1}
              ROOT b = f32[3,4,2] transpose(t), dimensions={2,0,1}
            }
        """,
            "b",
        ),
        Fixture(
            "relay",
            """def @main(%p: Tensor[(8, 4), float32]) {
  %0 = transpose(%p, axes=[1, 0]);
  %1 = exp(%0);
  %2 = transpose(%1);
  return %2;
}
""",
            ("2",),
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 4)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %a : Float(4, 8) = aten::transpose(%x, %zero, %one)
              %e : Float(4, 8) = aten::exp(%a)
              %b : Float(8, 4) = aten::transpose(%e, %zero, %one)
              return (%b)
        """,
            "b",
        ),
    )
    good = (
        Fixture(
            "relay",
            """def @main(%p: Tensor[(2, 3, 4), float32]) {
  %0 = transpose(%p, axes=[2, 0, 1]);
  %1 = negative(%0);
  %2 = transpose(%1, axes=[-1, 0, 1]);
  return %2;
}
""",
        ),
        Fixture.hlo("""
            ENTRY e {
              p = f32[2,3,4] parameter(0)
              t = f32[4,2,3] transpose(p), dimensions={2,0,1}
              x = f32[4,2,3] negate(t)
              ROOT b = f32[3,4,2] transpose(x), dimensions={2,0,1}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              p = f32[8,4] parameter(0)
              q = f32[4,8] parameter(1)
              t = f32[4,8] transpose(p), dimensions={1,0}
              x = f32[4,8] add(t, q)
              ROOT b = f32[8,4] transpose(x), dimensions={1,0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 4)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %a : Float(4, 8) = aten::transpose(%x, %zero, %one)
              %e : Float(4, 8) = aten::exp(%a)
              return (%e)
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            for node in context.view.with_op(TRANSPOSES, graph):
                way = _way_back(node)
                if not way or written(node).op.work == "contraction":
                    continue  # a product of TorchScript or Relay that transposes its own operand
                first, *between = way
                outer, inner = _order(node), _order(first)
                identity = len(outer) == len(inner) and [inner[d] for d in outer if d < len(inner)] == list(range(len(outer)))
                if not identity and between:
                    continue
                saved = bytes_of(node.type) * (4 if identity else 2)
                what = f"%{node.name} undoes %{first.name}" if identity else f"%{first.name} and %{node.name} can be one transpose"
                yield self.finding(
                    context, node,
                    f"{what} ({human_bytes(saved)} of traffic)",
                    notes=(Note(f"%{first.name} is here", first.loc),),
                    help="remove both" if identity else "transpose once, with the product of the permutations",
                    saves=Edit({node: partial(_turned_less, node, way, identity)}, (first.operands[0],)),
                )


def _way_back(node: Node) -> list[Node]:
    """An earlier transpose that the operand of a transpose is computed from, and the elementwise operators between, in order.

    Empty if other operators are between, or an operator with several different operands that are not uniform.
    """
    way = list(node.operands[:1])
    while way and way[-1].op not in TRANSPOSES:
        varying = {o for o in way[-1].operands if not _uniform(o)} if way[-1].op.kind is Kind.ELEMENTWISE else set()
        if len(varying) != 1:
            return []
        way += varying
    return way[::-1]


def _turned_less(node: Node, way: list[Node], identity: bool, site: Site) -> Node:
    """The operand of the first transpose, with the operators between applied in its own order of axes; one transpose replaces two."""
    first = way[0]
    source = first.operands[0].type
    assert isinstance(source, TensorType) and isinstance(node.type, TensorType)
    at = site.new(first.operands[0])
    for last, step in pairwise(way):
        given = [at if o is last else _filled(o, source, site) for o in step.operands]
        assert isinstance(step.type, TensorType)
        at = site.copy(step, *given, type=TensorType(step.type.dtype, source.shape))
    if identity:
        return at
    inner, outer = _order(first), _order(node)
    return site.op(hlo.transpose, at, type=node.type, attrs={"dimensions": tuple(inner[d] for d in outer)})


def _filled(node: Node, like: TensorType, site: Site) -> Node:
    """A splat of one number in another shape."""
    assert isinstance(node.type, TensorType)
    return site.copy(node, *map(site.new, node.operands), type=TensorType(node.type.dtype, like.shape))


def _order(node: Node) -> tuple[int, ...]:
    """Dimension i of the result is dimension order[i] of the operand; Relay also counts from the end, and None reverses all axes."""
    if node.op is hlo.transpose:
        return Transpose.of(node).dimensions
    rank = node.type.rank if isinstance(node.type, TensorType) else 0
    axes = RelayTranspose.of(node).axes
    return tuple(a % rank for a in axes) if axes and rank else tuple(reversed(range(rank)))


def _uniform(node: Node) -> bool:
    """Whether all elements are one value, so that no order of axes matters."""
    return node.op is hlo.broadcast and not Broadcast.of(node).dimensions
