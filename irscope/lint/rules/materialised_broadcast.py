"""BRD001: a broadcast is written to memory because its consumer cannot fuse it."""

from __future__ import annotations

from irscope.analysis.values import CASTS_AND_MOVES, is_annotation
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Findings, Fix, Fixture, Rule, Severity, human_bytes, saving
from irscope.lint.small_operand import with_small
from irscope.ops import hlo

WORTH_BYTES = 64 * 1024
"""Smaller results stay in the caches."""

FAR = 32
"""Changes of shape between a broadcast and its reader, at most."""
READ_MEMORY = hlo.named("sort concatenate custom-call fft cholesky triangular-solve scatter gather while conditional")
"""Operators that read a whole tensor from memory. A call does not: compilers inline it."""


class MaterialisedBroadcast(Rule):
    """A broadcast is written out in full, because its consumer reads it from memory.

    ## What it does
    Finds broadcasts of 64 KiB and more whose user is a matrix product, a convolution, a sort, a concatenation, a library call or a loop,
    also through reshapes, transposes and conversions, if a kernel of the policy writes them; and products and sorts that process every
    copy though no kernel writes it. A broadcast that is the result of the program is information: the caller may need all of it.

    ## Why is this bad?
    A broadcast costs nothing inside a fused kernel. In memory it is written and read in full; a matrix product over broadcast rows
    repeats the same arithmetic for every copy (measured: 416 ms became 1.4 ms with the product computed before the broadcast).

    ## Use instead
    Contract with the small operand (``jnp.einsum('bik,kj->bij', x, w)``), broadcast afterwards, or keep the dimension at 1.

    ## Known false positives
    Some backends read a broadcast operand with a stride of zero.
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
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,512] parameter(0)
              w = f32[512,256] parameter(1)
              b = f32[64,16,512] broadcast(x), dimensions={0,2}
              ROOT d = f32[64,16,256] dot(b, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
            }
        """,
            "b",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              q = f32[2,16,64,32] parameter(0)
              k = f32[2,4,64,32] parameter(1)
              b = f32[2,4,4,64,32] broadcast(k), dimensions={0,1,3,4}
              r = f32[2,16,64,32] reshape(b)
              ROOT d = f32[2,16,64,64] dot(q, r), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3},
                rhs_contracting_dims={3}
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
            "e",
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
              x = f32[1024] parameter(0)
              y = f32[1024,1024] parameter(1)
              b = f32[1024,1024] broadcast(x), dimensions={1}
              s = f32[1024,1024] custom-call(b), custom_call_target="Sharding", sharding={devices=[2,1]<=[2]}
              ROOT r = f32[1024,1024] add(y, s)
            }
        """),
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

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            if graph in context.view.inlined:
                continue
            for node, type in context.view.tensors(graph):
                if node.op is not hlo.broadcast or type.bytes < WORTH_BYTES or not node.operands:
                    continue
                small = node.operands[0].type
                if not isinstance(small, TensorType) or small.elements * 2 > type.elements:
                    continue
                if node.operands[0].op is hlo.constant and not small.rank:
                    continue
                reader, through = self._reader(context, graph, node)
                edit = with_small(node, reader) if reader is not None else None
                written = _written_out(context, through)
                if reader is None or (edit is None and not written):
                    continue
                who = "the caller" if reader is node else f"%{reader.name} ({reader.op.name})"
                times = f"{type.elements // max(1, small.elements)} times its size ({human_bytes(type.bytes)})"
                harm = f"written out as {type}, {times}, because {who} reads it from memory"
                yield self.finding(
                    context, node,
                    f"{small} is {harm if written else f'broadcast to {type}, {times}, and {who} processes every copy'}",
                    help="use the small operand there, and broadcast afterwards",
                    saves=edit or saving(bytes=2.0 * (type.bytes - small.bytes), kernels=1.0),
                ).with_severity(Severity.INFO if reader is node else None)

    def _reader(self, context: Context, graph: Graph, node: Node) -> tuple[Node | None, list[Node]]:
        """The user that reads the broadcast from memory, and the nodes between them.

        The node itself represents the caller; None if every user may fuse it.
        """
        seen = [node]
        for at in seen:
            if at is graph.root and graph is context.module.main():
                return node, seen
            for user in context.view.users(at, graph):
                passes = user.op in CASTS_AND_MOVES or is_annotation(user)
                if not passes and (user.op.kind == Kind.CONTRACTION or user.op in READ_MEMORY):
                    return user, seen
                if passes and user not in seen and len(seen) < FAR:
                    seen.append(user)
        return None, seen


def _written_out(context: Context, nodes: list[Node]) -> bool:
    """Whether the policy's kernels write any of these values; true if that is unknown."""
    return context.costs.planned is None or not context.costs.stored.isdisjoint(nodes)
