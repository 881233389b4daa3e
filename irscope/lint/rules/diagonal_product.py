"""ALG011: a matrix product with a diagonal matrix scales rows or columns."""

from __future__ import annotations

from functools import partial

from irscope.analysis.diagonal import Diagonal, diagonal
from irscope.analysis.values import dims
from irscope.graph import Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site
from irscope.ops import hlo
from irscope.ops.attributes import Dot

FEWEST = 16
"""A smaller matrix costs less than a kernel, whatever it holds."""

_DIAGONAL = """
    ENTRY e {{
      x = f32[512,1024] parameter(0)
      d = f32[1024] parameter(1)
      i = s32[1024,1024] iota(), iota_dimension=0
      j = s32[1024,1024] iota(), iota_dimension=1
      c = pred[1024,1024] compare(i, j), direction={0}
      b = f32[1024,1024] broadcast(d), dimensions={{0}}
      z = f32[] constant(0)
      o = f32[1024,1024] broadcast(z), dimensions={{}}
      m = f32[1024,1024] select(c, b, o)
      ROOT y = f32[512,1024] dot(x, m), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
    }}
"""


class DiagonalProduct(Rule):
    """A matrix product with a diagonal matrix multiplies each row or column by a number.

    ## What it does
    Finds products where one operand is zero off its diagonal, as `diag(d)`, `eye(n)` and `d * eye(n)` make it, from 16 rows up.

    ## Why is this bad?
    All but one of the terms of each sum are zero (measured, 512 rows by 1024 numbers: 9.1 ms and 0.5 ms), and the zeros are written to
    memory first.

    ## Use instead
    `x @ diag(d)` is `x * d`; `diag(d) @ x` is `x * d[:, None]`; `x @ eye(n)` is `x`.

    ## Known false positives
    None known.
    """

    code, name, severity = "ALG011", "diagonal-product", Severity.WARNING
    fix = Fix.REWRITE
    structural = True
    bad = (
        Fixture.hlo(_DIAGONAL.format("EQ"), "y"),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1024,512] parameter(0)
              d = f32[1024] parameter(1)
              n = s32[1024] iota(), iota_dimension=0
              i = s32[1024,1024] broadcast(n), dimensions={0}
              j = s32[1024,1024] broadcast(n), dimensions={1}
              c = pred[1024,1024] compare(j, i), direction=EQ
              e = f32[1024,1024] convert(c)
              b = f32[1024,1024] broadcast(d), dimensions={1}
              m = f32[1024,1024] multiply(b, e)
              ROOT y = f32[1024,512] dot(m, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """,
            "y",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(512, 1024), %d : Float(1024)):
              %n : int = prim::Constant[value=0]()
              %m : Float(1024, 1024) = aten::diag(%d, %n)
              %y : Float(512, 1024) = aten::matmul(%x, %m)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(512, 1024), float32], %d: Tensor[(1024), float32]) {
              %0 = zeros(shape=[1024, 1024], dtype="float32");
              %1 = matrix_set_diag(%0, %d);
              %2 = nn.matmul(%x, %1);
              %2
            }
        """,
            "2",
        ),
    )
    good = (
        Fixture.hlo(_DIAGONAL.format("LE")),
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,1024] parameter(0)
              d = f32[1024] parameter(1)
              b = f32[512,1024] broadcast(d), dimensions={1}
              ROOT y = f32[512,1024] multiply(x, b)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(512, 1024), %d : Float(1024)):
              %y : Float(512, 1024) = aten::mul(%x, %d)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(512, 1024), float32], %d: Tensor[(1024), float32]) {
              multiply(%x, %d)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.dot):
            attrs = Dot.of(node)
            if graph in context.view.inlined or attrs.lhs_batch_dims or len(node.operands) != 2:
                continue
            for side, summed in enumerate(attrs.contracting_dims):
                n = dims(node.operands[side])[:1]
                found = diagonal(node.operands[side], context.view.uniform(graph)) if n and n[0] >= FEWEST and len(summed) == 1 else None
                if found is None:
                    continue
                x = node.operands[1 - side]
                times = "" if found.values is None else f" with each {'row' if side == 0 else 'column'} times a number"
                yield self.finding(
                    context, node,
                    f"the product of %{x.name} and a diagonal matrix of {n[0]} x {n[0]} is %{x.name}{times}",
                    notes=(Note(f"%{found.matrix.name} is zero off its diagonal", found.matrix.loc),),
                    help="use the operand" if found.values is None else "multiply by the vector: x * d, or x * d[:, None]",
                    saves=_edit(node, side, found, context.view.uniform(graph)),
                )
                break


def _edit(node: Node, side: int, found: Diagonal, uniform: list[frozenset[int]]) -> Edit | None:
    """The multiplication in place of the product, where the diagonal is a vector and the element types are one."""
    x = node.operands[1 - side]
    types = {value.type.dtype.name for value in (node, *node.operands, found.values or x) if isinstance(value.type, TensorType)}
    if len(types) > 1 or (found.values is not None and not uniform[found.values.index]):
        return None
    return Edit({node: partial(_scaled, node, side, found.values, uniform)}, (x, *((found.values,) if found.values is not None else ())))


def _scaled(node: Node, side: int, values: Node | None, uniform: list[frozenset[int]], site: Site) -> Node:
    """The other operand with the summed dimension where the product's free one is, times the diagonal along it."""
    x = node.operands[1 - side]
    (along,) = Dot.of(node).contracting_dims[1 - side]
    order = [d for d in range(len(dims(x))) if d != along]
    place = 0 if side == 0 else len(order)
    order.insert(place, along)
    made = site.new(x)
    if order != sorted(order):
        made = site.op(hlo.transpose, made, type=node.type, attrs={"dimensions": tuple(order)})
    if values is None:
        return made
    assert isinstance(values.type, TensorType)
    n, flat = dims(values)[0], min(uniform[values.index])
    row = ((0, 1, 1), (0, n, 1)) if flat == 0 else ((0, n, 1), (0, 1, 1))
    one = site.op(hlo.slice, site.new(values), type=TensorType(values.type.dtype, (1, n) if flat == 0 else (n, 1)), attrs={"slice": row})
    vector = site.op(hlo.reshape, one, type=TensorType(values.type.dtype, (n,)))
    spread = site.op(hlo.broadcast, vector, type=node.type, attrs={"dimensions": (place,)})
    return site.op(hlo.multiply, made, spread, type=node.type)
