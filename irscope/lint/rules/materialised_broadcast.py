"""BRD001: a broadcast is written to memory because its consumer cannot take it in."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint.context import Context
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import human_bytes, saving
from irscope.source import Finding, Severity

WORTH_BYTES = 64 * 1024
"""Smaller results stay in the caches."""

PASS_ON = frozenset(("reshape", "transpose", "bitcast", "copy", "convert"))
READ_MEMORY = frozenset(
    ("sort", "concatenate", "custom-call", "fft", "cholesky", "triangular-solve", "scatter", "gather", "while", "call", "conditional")
)


class MaterialisedBroadcast(Rule):
    """A broadcast is written out in full, because what follows reads it from memory.

    ## What it does
    Finds broadcasts of 64 KiB and more whose user is a matrix product, a convolution, a sort, a concatenation, a library call, a loop,
    or the result of the program; also behind reshapes, transpositions and conversions.

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
            ENTRY e {
              x = f32[8] parameter(0)
              ROOT b = f32[4,8] broadcast(x), dimensions={1}
            }
        """),
    )

    def check(self, context: Context) -> Iterator[Finding]:
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
                if reader:
                    yield context.finding(
                        self,
                        node,
                        graph,
                        f"{small} is written out as {type}, {type.elements // max(1, small.elements)} times its size "
                        f"({human_bytes(type.bytes)}), because {reader} reads it from memory",
                        help="use the small operand there, and broadcast afterwards",
                        saves=saving(bytes=2.0 * (type.bytes - small.bytes), kernels=1.0),
                    )

    def _reader(self, context: Context, graph: Graph, node: Node) -> str:
        """What reads the broadcast from memory, in words; empty when everything may take it in."""
        stack, seen = [node], {node.index}
        while stack:
            at = stack.pop()
            if at is graph.root and graph is context.module.main():
                return "the caller"
            for user in context.users(at, graph):
                if user.op.kind == Kind.CONTRACTION or user.op.name in READ_MEMORY:
                    return f"%{user.name} ({user.op.name})"
                if user.op.name in PASS_ON and user.index not in seen:
                    seen.add(user.index)
                    stack.append(user)
        return ""
