"""DTY007: indices are worked out in 64 bits."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.graph import Kind, Node, TensorType, Typing
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.lint.savings import human_bytes, saving
from irscope.lint.values import CASTS_AND_MOVES, behind, size
from irscope.ops import hlo
from irscope.ops.sets import torchscript
from irscope.source import Note, Severity

ARITHMETIC = torchscript("add sub mul floor_divide remainder cumsum rsub div arange bucketize")
READERS = ((1, torchscript("embedding take take_along_dim")), (2, torchscript("gather index_select scatter scatter_add index_add")))
"""Operators that take indices, behind which operand these are."""
SAME_NUMBERS = CASTS_AND_MOVES | hlo.named("broadcast")
WORTH_BYTES = 4096
"""Fewer indices than this cost nothing, however wide."""


class Int64Indices(Rule):
    """Indices are computed as 64-bit integers.

    ## What it does
    Finds indices of `embedding`, `gather`, `index_select`, `scatter` and their like that come out of arithmetic on Long tensors; in HLO,
    those of `gather` and `scatter` that come out of arithmetic on s64. From 4 KiB on, where the size is known.

    ## Why is this bad?
    Vectors hold half as many 64-bit integers, gathers by them are slower, and multiplication has no instruction before AVX-512.

    ## Example
    ```
    %3 : Long(8, 128) = aten::add(%positions, %offset, %one)
    %4 : Float(8, 128, 64) = aten::embedding(%weight, %3, ...)
    ```

    ## Use instead
    `torch.int32` for positions and offsets: `embedding`, `index_select` and `index` take it.

    ## Known false positives
    Tables of more than 2^31 rows. `gather` and `scatter` insist on Long: there only the arithmetic before can be narrower.
    """

    code, name, severity = "DTY007", "int64-indices", Severity.INFO
    bad = (
        Fixture.torchscript(
            """
            graph(%w : Float(100, 64), %p : Long(8, 128), %o : Long(8, 1), %one : int, %no : bool):
              %3 : Long(8, 128) = aten::add(%p, %o, %one)
              %4 : Float(8, 128, 64) = aten::embedding(%w, %3, %one, %no, %no)
              return (%4)
        """,
            "3",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(8, 128), %p : Long(8, 64), %two : int, %one : int, %no : bool):
              %3 : Long(8, 64) = aten::floor_divide(%p, %two)
              %4 : Float(8, 64) = aten::gather(%x, %one, %3, %no)
              return (%4)
        """,
            "3",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1000,64] parameter(0)
              i = s64[2048,1] parameter(1)
              o = s64[] constant(3)
              b = s64[2048,1] broadcast(o), dimensions={}
              s = s64[2048,1] add(i, b)
              ROOT g = f32[2048,64] gather(x, s), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
              slice_sizes={1,64}
            }
        """,
            "s",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%w : Float(100, 64), %p : Int(8, 128), %o : Int(8, 1), %one : int, %no : bool):
              %3 : Int(8, 128) = aten::add(%p, %o, %one)
              %4 : Float(8, 128, 64) = aten::embedding(%w, %3, %one, %no, %no)
              return (%4)
        """),
        Fixture.torchscript("""
            graph(%w : Float(100, 64), %p : Long(8, 128), %one : int, %no : bool):
              %4 : Float(8, 128, 64) = aten::embedding(%w, %p, %one, %no, %no)
              return (%4)
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[1000,64] parameter(0)
              i = s32[2048,1] parameter(1)
              o = s32[] constant(3)
              b = s32[2048,1] broadcast(o), dimensions={}
              s = s32[2048,1] add(i, b)
              ROOT g = f32[2048,64] gather(x, s), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
              slice_sizes={1,64}
            }
        """),
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        yield from self._primitives(context)
        told: set[Node] = set()
        for graph in context.graphs if context.module.dialect.typing is Typing.EXECUTED else ():
            for node in graph.shown():
                at = next((place for place, ops in READERS if node.op in ops), None)
                if at is None or at >= len(node.operands):
                    continue
                index = node.operands[at]
                if index in told or index.op not in ARITHMETIC or not isinstance(index.type, TensorType):
                    continue
                few = index.type.is_static and size(index) < WORTH_BYTES
                if index.type.dtype.name == "s64" and index.type.rank and not few:
                    told.add(index)
                    bytes = size(index)
                    yield context.finding(
                        self,
                        index,
                        graph,
                        f"the indices of {node.op.name} are worked out in 64 bits" + (f" ({human_bytes(bytes)})" if bytes else ""),
                        notes=(Note(f"%{node.name} reads them", node.loc),),
                        help="torch.int32 where the table has fewer than 2^31 rows",
                        saves=saving(bytes=bytes / 2),
                    )

    def _primitives(self, context: Context) -> Iterator[RuleFinding]:
        """The same of HLO: gathers and scatters by arithmetic on s64 or u64."""
        told: set[Node] = set()
        for node, graph in context.primitives(hlo.gather, hlo.scatter) if context.module.dialect.primitive else ():
            index = behind(node.operands[1], SAME_NUMBERS) if len(node.operands) > 1 else node
            wide = isinstance(index.type, TensorType) and index.type.dtype.name in ("s64", "u64")
            if not wide or index in told or index.op.kind is not Kind.ELEMENTWISE or size(index) < WORTH_BYTES:
                continue
            told.add(index)
            yield context.finding(
                self,
                index,
                graph,
                f"the indices of {node.op.name} are worked out in 64 bits ({human_bytes(size(index))})",
                notes=(Note(f"%{node.name} reads them", node.loc),),
                help="int32 where the table has fewer than 2^31 rows (jax.numpy without x64 does so)",
                saves=saving(bytes=size(index) / 2),
            )
