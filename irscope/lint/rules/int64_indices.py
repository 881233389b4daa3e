"""DTY007: indices are computed in 64 bits."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.values import CASTS_AND_MOVES, size
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.ops import hlo
from irscope.ops.sets import torchscript

ARITHMETIC = torchscript("add sub mul floor_divide remainder cumsum rsub div arange bucketize")
THIRD = torchscript("gather index_select scatter scatter_add index_add")
READERS = THIRD | torchscript("embedding take take_along_dim")
"""Operators with indices as their second operand, or, for those in :data:`THIRD`, as their third."""
SAME_NUMBERS = CASTS_AND_MOVES | hlo.named("broadcast")
WORTH_BYTES = 4096
"""Fewer indices than this cost nothing, however wide."""


class Int64Indices(Rule):
    """Indices are computed as 64-bit integers.

    ## What it does
    Finds indices of `embedding`, `gather`, `index_select`, `scatter` and similar operators that result from arithmetic on Long tensors; in
    HLO, those of `gather` and `scatter` that result from arithmetic on s64. From 4 KiB up, if the size is known.

    ## Why is this bad?
    Vectors hold half as many 64-bit integers, gathers with them are slower, and x86 has no vector instruction to multiply them before
    AVX-512.

    ## Use instead
    `torch.int32` for positions and offsets: `embedding`, `index_select` and `index` accept it.

    ## Known false positives
    Tables of more than 2^31 rows. `gather` and `scatter` require Long: there only the arithmetic before them can be narrower.
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

    def check(self, context: Context) -> Findings:
        where = "int32 where the table has fewer than 2^31 rows"
        help = f"{where} (jax.numpy without x64 does so)" if context.module.dialect.primitive else f"torch.{where}"
        reported: set[Node] = set()
        for index, node, _ in _indices(context):
            type, bytes = index.type, size(index)
            if index in reported or not isinstance(type, TensorType) or type.dtype.name not in ("s64", "u64") or not type.rank:
                continue
            if bytes < WORTH_BYTES and (type.is_static or index.op.is_primitive):
                continue
            reported.add(index)
            yield self.finding(
                context, index,
                f"the indices of {node.op.name} are computed in 64 bits" + (f" ({human_bytes(bytes)})" if bytes else ""),
                notes=(Note(f"%{node.name} reads them", node.loc),),
                help=help,
                saves=saving(bytes=bytes / 2),
            )


def _indices(context: Context) -> Iterator[tuple[Node, Node, Graph]]:
    """Indices that arithmetic produces, their user, and the graph: in HLO through changes of shape and type, in TorchScript directly."""
    if context.module.dialect.primitive:
        for node, graph in context.view.primitives(hlo.gather, hlo.scatter):
            index = behind(node.operands[1], SAME_NUMBERS)
            if index.op.kind is Kind.ELEMENTWISE:
                yield index, node, graph
        return
    for graph in context.view.graphs:
        for node in context.view.with_op(READERS, graph):
            operands = node.operands[2 if node.op in THIRD else 1 :]
            if operands and operands[0].op in ARITHMETIC:
                yield operands[0], node, graph
