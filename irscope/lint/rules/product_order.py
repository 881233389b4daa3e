"""ALG010: products in a row that cost less in another order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from irscope.analysis.einsum import Chain, chain, contracted, dot_attrs
from irscope.analysis.values import dims
from irscope.graph import Graph, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, if_it_saves
from irscope.ops import hlo

ORDERS = ((1, 2), (0, 2))
"""The factors that are multiplied first in the two other orders of ``(a b) c``."""
WORTH = 2.0
"""The smallest ratio of operations, in the order of the text to the best order, that is reported: libraries differ by less."""
FEWEST = 1e6
"""Products of fewer operations cost a kernel each, in any order."""

_CHAIN = """
    ENTRY e {{
      a = f32[512,512] parameter(0)
      b = f32[512,512] parameter(1)
      v = f32[512] parameter(2)
      p = f32[512,512] {0}
      ROOT r = f32[512] {1}
    }}
"""
_MV = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


class ProductOrder(Rule):
    """Matrix products in a row take fewer operations in another order.

    ## What it does
    Finds two products, the first of which only the second reads, and counts the operations of the three orders of their factors:
    `(a b) c`, `a (b c)`, `(a c) b`. Reports the best order if it takes half as many operations or less, and saves time in a copy of the
    graph that is planned again.

    ## Why is this bad?
    `(A @ B) @ v` multiplies two matrices, `A @ (B @ v)` only a matrix and a vector, twice (measured, 512 x 512: 2.1 ms and 0.14 ms). No
    compiler changes the order, because it changes rounding.

    ## Use instead
    Parentheses; `jnp.linalg.multi_dot`, `torch.linalg.multi_dot`, or one `einsum` with `optimize=True`.

    ## Known false positives
    Products of weights alone that are computed once and cached outside of the graph; results that must be equal bit for bit.
    """

    code, name, severity = "ALG010", "product-order", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(_CHAIN.format(f"dot(a, b), {_MV}", f"dot(p, v), {_MV}"), "r"),
        Fixture.hlo(
            """
            ENTRY e {
              q = f32[8,1024,64] parameter(0)
              k = f32[8,1024,64] parameter(1)
              v = f32[8,1024,64] parameter(2)
              s = f32[8,1024,1024] dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={2}
              ROOT r = f32[8,1024,64] dot(s, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
            }
        """,
            "r",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              v = f32[4,8,256] parameter(0)
              a = f32[8,320,384] parameter(1)
              b = f32[384,256] parameter(2)
              p = f32[8,320,256] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}
              t = f32[256,8,320] transpose(p), dimensions={2,0,1}
              ROOT r = f32[8,4,320] dot(v, t), lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "r",
        ),
        Fixture.torchscript(
            """
            graph(%a : Float(512, 512), %b : Float(512, 512), %v : Float(512)):
              %p : Float(512, 512) = aten::matmul(%a, %b)
              %r : Float(512) = aten::matmul(%p, %v)
              return (%r)
        """,
            "r",
        ),
        Fixture.relay(
            """
            def @main(%a: Tensor[(512, 512), float32], %b: Tensor[(512, 512), float32], %v: Tensor[(512, 1), float32]) {
              %0 = nn.matmul(%a, %b);
              %1 = nn.matmul(%0, %v);
              %1
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              a = f32[512,512] parameter(0)
              b = f32[512,512] parameter(1)
              v = f32[512] parameter(2)
              p = f32[512] dot(b, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT r = f32[512] dot(a, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,1024] parameter(0)
              a = f32[1024,16] parameter(1)
              b = f32[16,1024] parameter(2)
              p = f32[64,16] dot(x, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT r = f32[64,1024] dot(p, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              a = f32[512,512] parameter(0)
              b = f32[512,512] parameter(1)
              v = f32[512] parameter(2)
              p = f32[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              r = f32[512] dot(p, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT t = (f32[512,512], f32[512]) tuple(p, r)
            }
        """),
        Fixture.torchscript("""
            graph(%a : Float(512, 512), %b : Float(512, 512), %v : Float(512)):
              %p : Float(512) = aten::matmul(%b, %v)
              %r : Float(512) = aten::matmul(%a, %p)
              return (%r)
        """),
        Fixture.relay("""
            def @main(%a: Tensor[(512, 512), float32], %b: Tensor[(512, 512), float32], %v: Tensor[(512, 1), float32]) {
              %0 = nn.matmul(%b, %v);
              nn.matmul(%a, %0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for outer, graph in context.view.primitives(hlo.dot):
            for found in _chains(context, graph, outer):
                now = found.flops(0, 1)
                order = min(ORDERS, key=lambda order: found.flops(*order))
                least = found.flops(*order)
                if now < FEWEST or now < WORTH * least:
                    continue
                (last,) = {0, 1, 2} - set(order)
                one, two, third = (found.factors[i] for i in (*order, last))
                yield from if_it_saves(self.finding(
                    context, outer,
                    f"%{found.inner.name} and %{outer.name} take {_count(now)} operations; %{one.name} times %{two.name} first, and then "
                    f"%{third.name}, takes {_count(least)}",
                    notes=(Note(f"%{found.inner.name} is the first product: {found.inner.type}", found.inner.loc),),
                    help=f"multiply %{one.name} and %{two.name} first",
                    saves=Edit({outer: partial(_reordered, found, order)}, found.factors),
                ))


def _chains(context: Context, graph: Graph, outer: Node) -> Iterator[Chain]:
    """The products in a row that end in a product; the first one has no other user, and all have one element type."""
    if graph in context.view.inlined or len(outer.operands) != 2:
        return
    for side in (0, 1):
        at = outer.operands[side]
        if behind(at, (hlo.transpose,)).op is not hlo.dot:
            continue
        while at.op is hlo.transpose and context.view.only_user(at, graph) is not None:
            at = at.operands[0]
        found = chain(outer, side) if at.op is hlo.dot and context.view.only_user(at, graph) is not None else None
        if found is not None and len({_dtype(node) for node in (outer, found.inner, *found.factors)}) == 1:
            yield found


def _dtype(node: Node) -> str:
    return node.type.dtype.name if isinstance(node.type, TensorType) else ""


def _count(flops: float) -> str:
    """Operations in the unit that leaves few digits: ``268 M``."""
    return f"{flops / 1e9:.3g} G" if flops >= 1e9 else f"{flops / 1e6:.3g} M"


def _reordered(found: Chain, order: tuple[int, int], site: Site) -> Node:
    """The two products in another order, and a transpose where the result's dimensions are in another one."""
    first, second = order
    (last,) = {0, 1, 2} - {first, second}
    one, two, three = (found.letters[i] for i in (first, second, last))
    a, b, c = (site.new(found.factors[i]) for i in (first, second, last))
    needed = {*three, *found.result}
    pair = site.op(hlo.dot, a, b, attrs=dot_attrs(one, two, needed))
    letters = contracted(one, two, needed)
    whole = set(found.result)
    made = site.op(hlo.dot, pair, c, attrs=dot_attrs(letters, three, whole))
    given = contracted(letters, three, whole)
    turn = tuple(map(given.index, found.result))
    if turn == tuple(range(len(turn))) or not dims(found.outer):
        return made
    return site.op(hlo.transpose, made, type=found.outer.type, attrs={"dimensions": turn})
