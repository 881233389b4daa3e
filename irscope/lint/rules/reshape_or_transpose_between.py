"""FUS003: a reshape keeps elementwise work out of the kernel of a product."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from irscope.fusion import Plan
from irscope.graph import Builder, Kind, Node, TensorType, bytes_of
from irscope.lint.claims import claim
from irscope.lint.context import Context
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import human_bytes
from irscope.ops import get
from irscope.source import Finding, Note, Severity

ANCHORS = frozenset(("dot", "convolution", "reduce-window"))
WORTH_BYTES = 64 * 1024
"""Values smaller than this stay in the caches on their way to the next kernel."""
LISTED = 5


class ReshapeOrTransposeBetween(Rule):
    """A reshape between a product and elementwise work on its result keeps them in two kernels.

    ## What it does
    Finds a matrix product or convolution whose one user is a reshape, whose one user is elementwise. The reshape is moved behind the
    elementwise operator in a copy of the graph, and the copy is planned again by irscope's own policy: only what saves kernels or traffic
    is told. One finding for all such places of a graph.

    ## Why is this bad?
    An epilogue is finished in registers where the product ends; in another shape it needs loops of its own, and the whole result goes
    through memory once more.

    ## Example
    ```
    %d = f32[512,768] dot(%x, %w), ...
    %r = f32[4,128,768] reshape(%d)
    %y = f32[4,128,768] add(%r, %residual)
    ```

    ## Use instead
    Add before the reshape, in the shape that the product has.

    ## Known false positives
    Backends for which a reshape of a product is a change of name only; then the finding is no gain, and no loss.
    """

    code, name, severity = "FUS003", "reshape-or-transpose-between", Severity.WARNING
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512,768] parameter(0)
              w = f32[768,768] parameter(1)
              s = f32[4,128,768] parameter(2)
              v = f32[768,64] parameter(3)
              d = f32[512,768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              r = f32[4,128,768] reshape(d)
              y = f32[4,128,768] add(r, s)
              ROOT z = f32[4,128,64] dot(y, v), lhs_contracting_dims={2}, rhs_contracting_dims={0}
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1,32,32,64] parameter(0)
              w = f32[1,1,64,64] parameter(1)
              s = f32[1024,64] parameter(2)
              v = f32[64,8] parameter(3)
              c = f32[1,32,32,64] convolution(x, w), window={size=1x1}, dim_labels=b01f_01io->b01f
              r = f32[1024,64] reshape(c)
              y = f32[1024,64] multiply(s, r)
              ROOT z = f32[1024,8] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "y",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,768] parameter(0)
              w = f32[768,768] parameter(1)
              s = f32[512,768] parameter(2)
              d = f32[512,768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              y = f32[512,768] add(d, s)
              ROOT r = f32[4,128,768] reshape(y)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[4,8] parameter(0)
              w = f32[8,8] parameter(1)
              s = f32[2,2,8] parameter(2)
              d = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              r = f32[2,2,8] reshape(d)
              ROOT y = f32[2,2,8] add(r, s)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,768] parameter(0)
              w = f32[768,768] parameter(1)
              s = f32[4,128,768] parameter(2)
              d = f32[512,768] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              r = f32[4,128,768] reshape(d)
              y = f32[4,128,768] add(r, s)
              ROOT z = f32[4,128,768] reverse(y), dimensions={2}
            }
        """),
    )

    def check(self, context: Context) -> Iterator[Finding]:
        if context.module.format != "hlo" or context.optimised or not _likely(context) or context.planned is None:
            return
        for plan in context.planned.plans:
            places = _places(plan)
            if not places:
                continue
            brings = claim(plan, lambda builder, node, operands, places=places: _moved(builder, node, operands, places))  # type: ignore[misc]
            if not brings.holds:
                continue
            node, reshape = max(places.items(), key=lambda p: bytes_of(p[0].type))
            anchor = reshape.operands[0]
            more = f"; {len(places) - 1} more places like this" if len(places) > 1 else ""
            yield context.finding(
                self,
                node,
                plan.graph,
                f"%{node.name} ({node.op.name}) is kept out of the kernel of %{anchor.name} by the reshape %{reshape.name} between{more}: "
                f"moved, they save {brings.kernels} kernels and {human_bytes(brings.bytes)}",
                notes=tuple(Note(f"%{r.name} reshapes {r.operands[0].type} to {r.type}", r.loc) for r in list(places.values())[:LISTED]),
                help=f"do the {node.op.name} in the shape of %{anchor.name}, and reshape afterwards",
                saves=brings.saves,
            )


def _likely(context: Context) -> bool:
    """Whether any product is reshaped at all: planning is worth its time only then."""
    return any(node.operands and node.operands[0].op.name in ANCHORS for node, _ in context.primitives("reshape"))


def _places(plan: Plan) -> dict[Node, Node]:
    """Elementwise nodes, with the reshape of a product that each reads and that nobody else reads."""
    users = plan.graph.users()
    found: dict[Node, Node] = {}
    for anchor in plan.graph.nodes:
        if anchor.op.name not in ANCHORS or bytes_of(anchor.type) < WORTH_BYTES or len(users[anchor.index]) != 1:
            continue
        reshape = users[anchor.index][0]
        if reshape.op.name != "reshape" or len(users[reshape.index]) != 1:
            continue
        user = users[reshape.index][0]
        if user.op.kind is Kind.ELEMENTWISE and isinstance(user.type, TensorType) and user not in found:
            found[user] = reshape
    return found


def _moved(builder: Builder, node: Node, operands: Sequence[Node], places: dict[Node, Node]) -> Node | None:
    """The elementwise node in the shape before its reshape, with the reshape behind it."""
    if node not in places or not isinstance(node.type, TensorType):
        return None
    reshape = places[node]
    source = reshape.operands[0].type
    assert isinstance(source, TensorType)
    inner: list[Node] = []
    for old, new in zip(node.operands, operands, strict=True):
        if old is reshape:
            inner.append(new.operands[0])
        elif isinstance(new.type, TensorType) and new.type.rank:
            inner.append(builder.add(get("reshape"), (new,), {}, TensorType(new.type.dtype, source.shape)))
        else:
            inner.append(new)
    work = builder.add(node.op, inner, node.attrs, TensorType(node.type.dtype, source.shape))
    return builder.add(get("reshape"), (work,), {}, node.type, name=node.name)
