"""BRD002: operands of different rank were aligned by broadcasting."""

from __future__ import annotations

from itertools import dropwhile

from irscope.analysis.values import FILLS, dims
from irscope.graph import Kind, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.spread import Stored, cost_of_broadcasts, stored_broadcasts
from irscope.ops import hlo, sets
from irscope.ops.attributes import Broadcast


class RankMismatchElementwise(Rule):
    """An elementwise operator combines tensors of different rank, one of them broadcast to fit.

    ## What it does
    Finds elementwise operators with one operand that is a broadcast of a tensor of lower rank, and one that has the full rank.
    Does not report a vector along the last axis (a bias), scalars, results of a reduction (the mean of a normalisation), or tensors with
    explicit axes of length one (``keepdims``).
    If both operands are vectors broadcast along different axes, the result is an outer product: that is a warning.

    ## Why is this bad?
    Frameworks align axes silently from the right. Without the ``keepdims`` or ``unsqueeze`` the program still runs, but means another:
    ``(N, 1) - (N,)`` is an N x N matrix.

    ## Use instead
    Write the axes out: ``scale[:, None]``, ``keepdims=True``, ``unsqueeze(-1)``; for an outer product ``jnp.outer``.

    ## Known false positives
    Per-row scales, masks and pairwise distances are written this way on purpose; therefore most findings are facts.
    """

    code, name, severity = "BRD002", "rank-mismatch-elementwise", Severity.INFO
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128] parameter(0)
              s = f32[64] parameter(1)
              b = f32[64,128] broadcast(s), dimensions={0}
              ROOT r = f32[64,128] multiply(x, b)
            }
        """,
            "r",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64] parameter(0)
              y = f32[64] parameter(1)
              a = f32[64,64] broadcast(x), dimensions={0}
              b = f32[64,64] broadcast(y), dimensions={1}
              ROOT r = f32[64,64] subtract(a, b)
            }
        """,
            "r",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(8, 16, 32), float32], %y: Tensor[(16, 1), float32]) {
              %0 = add(%x, %y);
              %0
            }
        """,
            "0",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 16, 32), %b : Float(16, 1)):
              %one : int = prim::Constant[value=1]()
              %y : Float(8, 16, 32) = aten::add(%x, %b, %one)
              return (%y)
        """,
            "y",
        ),
    )
    good = (
        Fixture(
            "relay",
            """def @main(%x: Tensor[(64, 128), float32], %b: Tensor[(128), float32]) {
  %0 = add(%x, %b);
  return %0;
}
""",
        ),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,128] parameter(0)
              s = f32[128] parameter(1)
              b = f32[64,128] broadcast(s), dimensions={1}
              ROOT r = f32[64,128] add(x, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,128] parameter(0)
              c = f32[] constant(2)
              b = f32[64,128] broadcast(c), dimensions={}
              ROOT r = f32[64,128] add(x, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[1,112,112,64] parameter(0)
              s = f32[1,1,1,64] parameter(1)
              b = f32[1,1,1,64] broadcast(s), dimensions={0,1,2,3}
              t = f32[1,64] reshape(b)
              w = f32[1,112,112,64] broadcast(t), dimensions={0,3}
              ROOT r = f32[1,112,112,64] multiply(x, w)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[2,63,768] parameter(0)
              s = f32[2,63,1] parameter(1)
              b = f32[2,63,1] broadcast(s), dimensions={0,1,2}
              t = f32[2,63] reshape(b)
              w = f32[2,63,768] broadcast(t), dimensions={0,1}
              ROOT r = f32[2,63,768] multiply(x, w)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(8, 16, 32), %b : Float(32)):
              %one : int = prim::Constant[value=1]()
              %y : Float(8, 16, 32) = aten::add(%x, %b, %one)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Findings:
        stored = stored_broadcasts(context)
        for graph in context.view.array_graphs:
            if graph in context.view.inlined or (context.view.optimised and context.module.dialect.primitive):
                continue  # simplified text no longer shows how the program wrote its axes
            for node, type in context.view.tensors(graph):
                if not node.op.is_primitive:
                    yield from self._by_itself(context, node, type, stored)
                    continue
                if node.op.kind is not Kind.ELEMENTWISE or len(node.operands) < 2 or type.rank < 2:
                    continue
                stretched = [(o, s) for o in node.operands if (s := _stretched(o)) is not None]
                if not stretched:
                    continue
                (first, small), full = stretched[0], [o for o in node.operands if o.op is not hlo.broadcast]
                axes = Broadcast.of(first).dimensions
                if full:
                    if {axis for axis, length in zip(axes, dims(small), strict=False) if length != 1} == {type.rank - 1}:
                        continue
                    yield self.finding(
                        context, node,
                        f"{small.type} is broadcast along axes {_others(axes, type.rank)} to match {full[0].type}",
                        help="if this is intended, write the axes out in the model (keepdims, [:, None])",
                        saves=cost_of_broadcasts(stored, first),
                    )
                elif len(stretched) == 2 and _outer(stretched[0][0], stretched[1][0]):
                    other = stretched[1][1]
                    yield self.finding(
                        context, node,
                        f"{small.type} and {other.type} form an outer product {type}",
                        help="if both should run along the same axis, squeeze or reshape one of them before",
                    ).with_severity(Severity.WARNING)

    def _by_itself(self, context: Context, node: Node, type: TensorType, stored: Stored | None) -> Findings:
        """Relay's and torch's operators, which broadcast their operands implicitly."""
        if node.op not in STRETCHING or len(node.operands) < 2 or type.rank < 2:
            return
        a, b = (o.type for o in node.operands[:2])
        if not (isinstance(a, TensorType) and isinstance(b, TensorType)) or a.rank == b.rank:
            return
        small, full = (a, b) if a.rank < b.rank else (b, a)
        if not small.rank or small.elements <= 1:
            return
        # stretched-both-ways reports operators that broadcast both operands.
        if full.shape == type.shape and (small.rank > 1 or small.shape[0] != type.shape[-1]):
            said = f"{small} is broadcast over {type.rank - small.rank} more axes to match {full}"
            fix = "if this is intended, write the axes out in the model (expand_dims, unsqueeze, nn.bias_add)"
            yield self.finding(context, node, said, help=fix, saves=cost_of_broadcasts(stored, node))


STRETCHING = sets.relay("add subtract multiply divide maximum minimum power mod floor_divide floor_mod") | sets.torchscript(
    "add sub mul div maximum minimum pow remainder"
)
"""Arithmetic of two operands in Relay and torch; comparisons and masks are stretched on purpose."""
RESHAPES = hlo.named("reshape bitcast")
CONSTANTS = hlo.named("iota constant")


def _stretched(node: Node) -> Node | None:
    """The tensor of lower rank that ``node`` broadcasts; None for scalars, results of reductions, and everything else."""
    if node.op is not hlo.broadcast or not node.operands or not isinstance(node.type, TensorType):
        return None
    small = node.operands[0]
    if not isinstance(small.type, TensorType) or not 0 < small.type.rank < node.type.rank or small.type.elements <= 1:
        return None
    at = small
    while at.op.kind is Kind.ELEMENTWISE or at.op in RESHAPES:
        inner = [o for o in at.operands if o.op not in FILLS]
        if len(inner) != 1:
            break
        at = inner[0]
    if at.op.kind is Kind.REDUCTION or at.op in CONSTANTS:
        return None
    return None if _has_all_axes(small, node.type) else small


def _has_all_axes(small: Node, full: TensorType) -> bool:
    """Whether the program gave the tensor all axes before the broadcast: JAX emits them as reshapes and broadcasts of equal size.

    Leading axes of length one may come from rank promotion; those elsewhere are explicit (``keepdims``, ``[:, None]``).
    """
    at = small
    while (at.op in RESHAPES or at.op is hlo.broadcast) and at.operands:
        at = at.operands[0]
        type = at.type
        if not isinstance(type, TensorType) or not isinstance(small.type, TensorType) or type.elements != small.type.elements:
            return False
        if type.rank == full.rank:
            inside = list(dropwhile(lambda pair: pair[0] == 1, zip(type.shape, full.shape, strict=True)))
            return any(own == 1 and wide != 1 for own, wide in inside)
    return False


def _outer(a: Node, b: Node) -> bool:
    """Whether two broadcasts of vectors keep different axes."""
    x, y = Broadcast.of(a).dimensions, Broadcast.of(b).dimensions
    return len(x) == len(y) == 1 and x != y


def _others(axes: tuple[int, ...], rank: int) -> str:
    return ", ".join(str(d) for d in range(rank) if d not in axes)
