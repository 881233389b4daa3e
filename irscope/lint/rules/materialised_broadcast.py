"""BRD001: a broadcast is written to memory because its consumer cannot take it in."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint.context import Context
from irscope.lint.edits import Edit, Site
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fix, Fixture, Rule
from irscope.lint.savings import human_bytes, saving
from irscope.lint.values import dims
from irscope.source import Severity

SIDES = ("lhs", "rhs")
WORTH_BYTES = 64 * 1024
"""Smaller results stay in the caches."""

PASS_ON = frozenset(("reshape", "transpose", "bitcast", "copy", "convert"))
READ_MEMORY = frozenset(
    ("sort", "concatenate", "custom-call", "fft", "cholesky", "triangular-solve", "scatter", "gather", "while", "conditional")
)
"""Who wants a whole tensor in memory. A call does not: compilers write it out where it stands."""


class MaterialisedBroadcast(Rule):
    """A broadcast is written out in full, because what follows reads it from memory.

    ## What it does
    Finds broadcasts of 64 KiB and more whose user is a matrix product, a convolution, a sort, a concatenation, a library call, a loop,
    or the result of the program; also behind reshapes, transpositions and conversions. For the result it is information: the caller may
    want it whole.

    ## Why is this bad?
    A broadcast costs nothing inside a fused kernel. Written to memory it costs its whole size twice; a matrix product over broadcast
    rows does the same arithmetic again and again (measured: 416 ms became 1.4 ms when the product was taken before the broadcast).

    ## Example
    ```
    %wide = f32[64,1024,1024] broadcast(f32[1024,1024] %w), dimensions={1,2}
    %dot = f32[64,8,1024] dot(%x, %wide), lhs_batch_dims={0}, rhs_batch_dims={0}, ...
    ```

    ## Use instead
    Contract with the small operand (``jnp.einsum('bik,kj->bij', x, w)``), broadcast afterwards, or keep the dimension at 1.

    ## Known false positives
    Some backends take a broadcast operand in as a stride of zero.
    """

    code, name, severity = "BRD001", "materialised-broadcast", Severity.WARNING
    fix = Fix.REWRITE
    structural = inside = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4,8,256] parameter(0)
              w = f32[256,256] parameter(1)
              b = f32[4,256,256] broadcast(w), dimensions={1,2}
              ROOT d = f32[4,8,256] dot(x, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1024] parameter(0)
              ROOT b = f32[64,1024] broadcast(x), dimensions={1}
            }
        """,
            "b",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4, 8, 256), %w : Float(256, 256)):
              %four : int = prim::Constant[value=4]()
              %n : int = prim::Constant[value=256]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %shape : int[] = prim::ListConstruct(%four, %n, %n)
              %e : Float(4, 256, 256) = aten::expand(%w, %shape, %f)
              %y : Float(4, 8, 256) = aten::bmm(%x, %e)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4, 8, 256), float32], %w: Tensor[(256, 256), float32]) {
              %0 = broadcast_to(%w, shape=[4, 256, 256]);
              %1 = nn.batch_matmul(%x, %0, transpose_b=True);
              %1
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,1024] parameter(0)
              y = f32[1024] parameter(1)
              b = f32[64,1024] broadcast(y), dimensions={1}
              ROOT r = f32[64,1024] add(x, b)
            }
        """),
        Fixture.hlo("""
            where {
              m = pred[64,1024] parameter(0)
              a = f32[64,1024] parameter(1)
              z = f32[] constant(0)
              n = f32[64,1024] broadcast(z), dimensions={}
              ROOT s = f32[64,1024] select(m, a, n)
            }
            ENTRY e {
              x = f32[64,1024] parameter(0)
              k = pred[1024] parameter(1)
              m = pred[64,1024] broadcast(k), dimensions={1}
              ROOT r = f32[64,1024] call(m, x), to_apply=where
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[8] parameter(0)
              ROOT b = f32[4,8] broadcast(x), dimensions={1}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, 8, 256), %w : Float(256, 256)):
              %y : Float(4, 8, 256) = aten::matmul(%x, %w)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(4, 8, 256), float32], %w: Tensor[(256), float32]) {
              %0 = broadcast_to(%w, shape=[4, 8, 256]);
              multiply(%x, %0)
            }
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        for graph in context.array_graphs:
            if graph in context.inlined:
                continue
            for node, type in context.tensors(graph):
                if node.op.name != "broadcast" or type.bytes < WORTH_BYTES or not node.operands:
                    continue
                small = node.operands[0].type
                if (
                    not isinstance(small, TensorType)
                    or small.elements * 2 > type.elements
                    or (node.operands[0].op.name == "constant" and small.rank == 0)
                ):
                    continue
                reader = self._reader(context, graph, node)
                if reader is None:
                    continue
                told = "the caller" if reader is node else f"%{reader.name} ({reader.op.name})"
                edit = _edit(node, reader)
                yield context.finding(
                    self,
                    node,
                    graph,
                    f"{small} is written out as {type}, {type.elements // max(1, small.elements)} times its size "
                    f"({human_bytes(type.bytes)}), because {told} reads it from memory",
                    help="use the small operand there, and broadcast afterwards",
                    severity=Severity.INFO if reader is node else None,
                    saves=None if edit is not None else saving(bytes=2.0 * (type.bytes - small.bytes), kernels=1.0),
                    edit=edit,
                )

    def _reader(self, context: Context, graph: Graph, node: Node) -> Node | None:
        """What reads the broadcast from memory: the node itself stands for the caller; None when everything may take it in."""
        stack, seen = [node], {node.index}
        while stack:
            at = stack.pop()
            if at is graph.root and graph is context.module.main():
                return node
            for user in context.users(at, graph):
                if user.op.kind == Kind.CONTRACTION or user.op.name in READ_MEMORY:
                    return user
                if user.op.name in PASS_ON and user.index not in seen:
                    seen.add(user.index)
                    stack.append(user)
        return None


def _edit(node: Node, reader: Node) -> Edit | None:
    """The small operand in the broadcast's place, where that can be said: for the caller, in a sort, and in a product of batches."""
    small = node.operands[0]
    if reader is node:
        return Edit.use(node, small)
    if reader.op.name == "sort" and reader.operands == (node,) and _sorted_axis(reader) in node.attrs.get("dimensions", ()):
        return Edit({reader: partial(_sorted_before, reader)}, (small,))
    if reader.op.name != "dot" or node not in reader.operands or reader.operands[0] is reader.operands[1]:
        return None
    side = reader.operands.index(node)
    batch = tuple(reader.attrs.get(f"{SIDES[side]}_batch_dims", ()))
    kept = tuple(node.attrs.get("dimensions", ()))
    if not all(d in batch for d in range(len(dims(node))) if d not in kept):
        return None
    return Edit({reader: partial(_product, reader, side, kept)}, (small,))


def _sorted_axis(sort: Node) -> int:
    return int(next(iter(sort.attrs.get("dimensions", ())), -1))


def _sorted_before(sort: Node, site: Site) -> Node:
    """One of the equal rows sorted, and then repeated."""
    wide = sort.operands[0]
    small = wide.operands[0]
    axis = wide.attrs["dimensions"].index(_sorted_axis(sort))
    one = site.copy(sort, site.new(small), type=small.type, attrs={**sort.attrs, "dimensions": (axis,)})
    return site.op("broadcast", one, type=sort.type, attrs=wide.attrs)


def _product(dot: Node, side: int, kept: tuple[int, ...], site: Site) -> Node:
    """The product with the small operand: what was a batch of copies is a free dimension of the other operand."""
    batches = [tuple(dot.attrs.get(f"{name}_batch_dims", ())) for name in SIDES]
    summed = [tuple(dot.attrs.get(f"{name}_contracting_dims", ())) for name in SIDES]
    stays = [i for i, d in enumerate(batches[side]) if d in kept]
    new_batches, new_summed = [tuple(b[i] for i in stays) for b in batches], list(summed)
    new_batches[side] = tuple(kept.index(d) for d in new_batches[side])
    new_summed[side] = tuple(kept.index(d) for d in summed[side])
    given = [site.new(dot.operands[0]), site.new(dot.operands[1])]
    given[side] = site.new(dot.operands[side].operands[0])
    attrs = {**dot.attrs}
    for i, name in enumerate(SIDES):
        attrs[f"{name}_batch_dims"], attrs[f"{name}_contracting_dims"] = new_batches[i], new_summed[i]
    # The dimensions of the result by the operand and axis that they come from, before and after.
    other = 1 - side
    before = [(other, d) for d in batches[other]]
    after = [(other, d) for d in new_batches[other]]
    for one in (0, 1):
        before += [(one, d) for d in range(len(dims(dot.operands[one]))) if d not in batches[one] and d not in summed[one]]
        free = [d for d in range(len(dims(given[one]))) if d not in new_batches[one] and d not in new_summed[one]]
        after += [(one, kept[d] if one == side else d) for d in free]
    assert isinstance(dot.type, TensorType)
    shape = dict(zip(before, dot.type.shape, strict=True))
    made = site.copy(dot, *given, type=TensorType(dot.type.dtype, tuple(shape[axis] for axis in after)), attrs=attrs)
    if after == before:
        return made
    return site.op("transpose", made, type=dot.type, attrs={"dimensions": tuple(after.index(axis) for axis in before)})
