"""ALG009: a matrix product with a one-hot matrix looks up rows of a table."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import SPREADS, dims, number
from irscope.graph import Graph, Node, TensorType
from irscope.graph.walk import behind
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site
from irscope.ops import hlo
from irscope.ops.attributes import Compare, Dot

CASTS = hlo.named("convert")
FEWEST = 32
"""A product over fewer rows costs about what looking them up does."""

_HLO = """
    ENTRY e {{
      i = s32[64] parameter(0)
      t = f32[1024,128] parameter(1)
      b = s32[64,1024] broadcast(i), dimensions={{0}}
      n = s32[1024] iota(), iota_dimension=0
      r = s32[64,1024] broadcast(n), dimensions={{1}}
      c = pred[64,1024] compare(b, r), direction={0}
      h = f32[64,1024] convert(c)
      ROOT d = f32[64,128] dot(h, t), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    }}
"""


class OneHotProduct(Rule):
    """A matrix product with one-hot rows looks up rows of a table.

    ## What it does
    Finds products where one operand is a comparison of indices with an iota, converted to numbers, and the product contracts the dimension
    of the iota, from 32 rows up.

    ## Why is this bad?
    All but one of the terms of each sum are zero: the product reads the whole table for every index; a lookup reads one row
    (measured: 512 rows of 4096 in 2.5 ms and in 11 us).

    ## Use instead
    `jnp.take(table, indices, axis=0)`, `torch.nn.Embedding`, `take`. An index out of range gives zeros in the product, and the last row or
    NaN in a lookup: `mode="fill", fill_value=0`.

    ## Known false positives
    Machines that multiply faster than they gather (TPU), and tables that are sharded over devices.
    """

    code, name, severity = "ALG009", "one-hot-product", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(_HLO.format("EQ"), "d"),
        Fixture.hlo(
            """
            ENTRY e {
              i = s32[8,16] parameter(0)
              t = f32[1024,512] parameter(1)
              b = s32[8,16,1024] broadcast(i), dimensions={0,1}
              r = s32[8,16,1024] iota(), iota_dimension=2
              c = pred[8,16,1024] compare(r, b), direction=EQ
              h = f32[8,16,1024] convert(c)
              ROOT d = f32[8,16,512] dot(h, t), lhs_contracting_dims={2}, rhs_contracting_dims={0}
            }
        """,
            "d",
        ),
        Fixture.torchscript(
            """
            graph(%i : Long(64), %t : Float(1024, 128)):
              %n : int = prim::Constant[value=1024]()
              %six : int = prim::Constant[value=6]()
              %no : bool = prim::Constant[value=0]()
              %none : NoneType = prim::Constant()
              %h : Long(64, 1024) = aten::one_hot(%i, %n)
              %f : Float(64, 1024) = aten::to(%h, %six, %no, %no, %none)
              %d : Float(64, 128) = aten::matmul(%f, %t)
              return (%d)
        """,
            "d",
        ),
        Fixture.relay(
            """
            def @main(%i: Tensor[(64), int32], %t: Tensor[(128, 1024), float32]) {
              %0 = one_hot(%i, 1f, 0f, depth=1024, axis=-1, dtype="float32");
              %1 = nn.dense(%0, %t, units=128);
              %1
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo(_HLO.format("LT")),
        Fixture.hlo("""
            ENTRY e {
              i = s32[64] parameter(0)
              g = f32[64,128] parameter(1)
              b = s32[64,1024] broadcast(i), dimensions={0}
              r = s32[64,1024] iota(), iota_dimension=1
              c = pred[64,1024] compare(b, r), direction=EQ
              h = f32[64,1024] convert(c)
              ROOT d = f32[1024,128] dot(h, g), lhs_contracting_dims={0}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%i : Long(64), %t : Float(1024, 128)):
              %m : int = prim::Constant[value=-1]()
              %no : bool = prim::Constant[value=0]()
              %d : Float(64, 128) = aten::embedding(%t, %i, %m, %no, %no)
              return (%d)
        """),
        Fixture.relay("""
            def @main(%i: Tensor[(64), int32], %t: Tensor[(1024, 128), float32]) {
              take(%t, %i, axis=0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.dot):
            attrs = Dot.of(node)
            for side, summed in enumerate(attrs.contracting_dims):
                if len(summed) != 1 or attrs.lhs_batch_dims or len(node.operands) != 2:
                    continue
                other = dims(node.operands[1 - side])
                if not other:
                    continue  # an unknown size
                hot = _comparison(node.operands[side])
                length = other[attrs.contracting_dims[1 - side][0]]
                indices = _indices(context, graph, hot, summed[0]) if length >= FEWEST else None
                if indices is None:
                    continue
                table = node.operands[1 - side]
                yield self.finding(
                    context, node,
                    f"a product with one-hot rows looks up rows of %{table.name} {table.type}: {length} terms per element, one of "
                    "them not zero",
                    notes=(Note(f"%{hot.name} compares the indices with an iota", hot.loc),),
                    help="look the rows up: jnp.take(table, indices, axis=0), an embedding",
                    saves=_edit(node, side, indices, summed[0]),
                )


def _comparison(node: Node) -> Node:
    """The comparison that places the ones, found through conversions and a select between one and zero."""
    at = behind(node, CASTS)
    if at.op is hlo.select and (number(at.operands[1]), number(at.operands[2])) == (1.0, 0.0):
        at = behind(at.operands[0], CASTS)
    return at


def _indices(context: Context, graph: Graph, hot: Node, axis: int) -> Node | None:
    """The operand of a comparison that holds the indices, broadcast along ``axis``, if the other one is an iota along it."""
    if hot.op is not hlo.compare or Compare.of(hot).direction != "EQ" or not dims(hot):
        return None
    uniform = context.view.uniform(graph)
    others = {d for d, n in enumerate(dims(hot)) if d != axis and n > 1}
    for indices, counted in (hot.operands, hot.operands[::-1]):
        counts = behind(counted, SPREADS).op is hlo.iota and axis not in uniform[counted.index]
        if counts and _stays(counted, others, uniform[counted.index]) and axis in uniform[indices.index]:
            return indices
    return None


def _stays(counted: Node, others: set[int], uniform: frozenset[int]) -> bool:
    """Whether an iota is constant along all other axes."""
    return others <= uniform or (counted.op is hlo.iota)


def _edit(node: Node, side: int, indices: Node, axis: int) -> Edit | None:
    """The lookup in place of the product, if the table is a matrix and the one-hot rows are the left operand."""
    table = node.operands[1]
    if side != 0 or axis != len(dims(indices)) - 1 or len(dims(table)) != 2:
        return None
    return Edit({node: partial(_looked_up, node, indices)}, (table, indices))


def _looked_up(node: Node, indices: Node, site: Site) -> Node:
    table = node.operands[1]
    assert isinstance(indices.type, TensorType) and isinstance(node.type, TensorType) and isinstance(table.type, TensorType)
    shape = dims(indices)[:-1]
    cut = (*((0, n, 1) for n in shape), (0, 1, 1))
    column = site.op(hlo.slice, site.new(indices), type=TensorType(indices.type.dtype, (*shape, 1)), attrs={"slice": cut})
    (along,) = Dot.of(node).rhs_contracting_dims
    width = dims(table)[1 - along]
    attrs = {
        "offset_dims": (len(shape),),
        "collapsed_slice_dims": (along,),
        "start_index_map": (along,),
        "index_vector_dim": len(shape),
        "slice_sizes": (1, width) if along == 0 else (width, 1),
    }
    rows = site.op(hlo.gather, site.new(table), column, type=TensorType(table.type.dtype, (*shape, width)), attrs=attrs)
    return rows if table.type.dtype is node.type.dtype else site.op(hlo.convert, rows, type=node.type)
