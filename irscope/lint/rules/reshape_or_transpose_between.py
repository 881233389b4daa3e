"""FUS003: a reshape or transpose prevents fusion of elementwise operators into a product."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import dims, size
from irscope.graph import Graph, Kind, Node, TensorType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site
from irscope.lint.unfused import unfused_edges
from irscope.ops import hlo
from irscope.ops.attributes import Transpose

ANCHORS = (hlo.dot, hlo.convolution, hlo.reduce_window)
MOVEMENT = hlo.named("reshape transpose")
WORTH_BYTES = 64 * 1024
"""Values smaller than this stay in the caches on their way to the next kernel."""


class ReshapeOrTransposeBetween(Rule):
    """A reshape or transpose between a product and elementwise operators on its result prevents their fusion.

    ## What it does
    Finds a matrix product or convolution whose only user is a reshape or transpose, whose only user is elementwise. In a copy of the
    graph it moves the reshape or transpose after the elementwise operator, and plans the copy again by the chosen policy: reports only
    what saves time.

    ## Why is this bad?
    An epilogue runs in registers at the end of the product; in another shape it needs a separate loop nest, and the whole result goes
    through memory once more.

    ## Use instead
    Add before the reshape, in the shape that the product has.

    ## Known false positives
    Backends for which a reshape of a product is free; then the change neither gains nor loses.
    """

    code, name, severity = "FUS003", "reshape-or-transpose-between", Severity.WARNING
    fix = Fix.REWRITE
    structural, only_gains = True, True
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
            policy="irscope",
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
            policy="irscope",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(512, 768), %w : Float(768, 768), %s : Float(4, 128, 768), %v : Float(768, 64)):
              %a : int = prim::Constant[value=4]()
              %b : int = prim::Constant[value=128]()
              %c : int = prim::Constant[value=768]()
              %one : int = prim::Constant[value=1]()
              %shape : int[] = prim::ListConstruct(%a, %b, %c)
              %d : Float(512, 768) = aten::mm(%x, %w)
              %r : Float(4, 128, 768) = aten::view(%d, %shape)
              %y : Float(4, 128, 768) = aten::add(%r, %s, %one)
              %z : Float(4, 128, 64) = aten::matmul(%y, %v)
              return (%z)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(512, 768), float32], %w: Tensor[(768, 768), float32], %s: Tensor[(4, 128, 768), float32], %v: Tensor[(4,
            64, 768), float32]) {
              %0 = nn.dense(%x, %w);
              %1 = reshape(%0, newshape=[4, 128, 768]);
              %2 = add(%1, %s);
              %3 = nn.batch_matmul(%2, %v, transpose_b=True);
              %3
            }
        """,
            "2",
            policy="irscope",
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
        Fixture.torchscript("""
            graph(%x : Float(512, 768), %w : Float(768, 768), %s : Float(512, 768)):
              %one : int = prim::Constant[value=1]()
              %d : Float(512, 768) = aten::mm(%x, %w)
              %y : Float(512, 768) = aten::add(%d, %s, %one)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(512, 768), float32], %w: Tensor[(768, 768), float32], %s: Tensor[(512, 768), float32]) {
              %0 = nn.dense(%x, %w);
              %1 = add(%0, %s);
              reshape(%1, newshape=[4, 128, 768])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        if context.view.optimised:
            return
        places = [(anchor, place) for anchor, graph in context.view.primitives(*ANCHORS) if (place := _between(context, graph, anchor))]
        apart = {(edge.producer, edge.consumer): edge.verdict for edge in unfused_edges(context)} if places else {}
        for anchor, (reshape, node) in places:
            verdicts = [apart[pair] for pair in ((anchor, reshape), (reshape, node), (anchor, node)) if pair in apart]
            if not verdicts:
                continue
            yield self.finding(
                context, node,
                f"%{node.name} ({node.op.name}) is not fused into %{anchor.name} ({anchor.op.name}): the {reshape.op.name} "
                f"%{reshape.name} is between them",
                notes=(Note(f"%{reshape.name} turns {anchor.type} into {reshape.type}", reshape.loc),),
                help=f"do the {node.op.name} in the shape of %{anchor.name}, and the {reshape.op.name} afterwards",
                saves=Edit({node: partial(_moved, node, reshape)}, (anchor,)),
            ).stating(verdicts)


def _between(context: Context, graph: Graph, anchor: Node) -> tuple[Node, Node] | None:
    """The movement that is the only user of a large product, and the elementwise operator that is its only user."""
    if size(anchor) < WORTH_BYTES or graph in context.view.inlined:
        return None
    moved = context.view.only_user(anchor, graph)
    if moved is None or moved.op not in MOVEMENT:
        return None
    work = context.view.only_user(moved, graph)
    if work is None or work.op.kind is not Kind.ELEMENTWISE or dims(work) != dims(moved):
        return None
    return moved, work


def _moved(node: Node, movement: Node, site: Site) -> Node:
    """The elementwise node in the shape before the movement, followed by the movement."""
    source = movement.operands[0]
    assert isinstance(node.type, TensorType) and isinstance(source.type, TensorType)
    inner: list[Node] = []
    for operand in node.operands:
        if operand is movement:
            inner.append(site.new(source))
        elif dims(operand):
            inner.append(_back(site, site.new(operand), movement))
        else:
            inner.append(site.new(operand))
    work = site.copy(node, *inner, type=TensorType(node.type.dtype, source.type.shape))
    return site.copy(movement, work, type=TensorType(node.type.dtype, node.type.shape))


def _back(site: Site, value: Node, movement: Node) -> Node:
    """Another operand in the shape before the movement."""
    source = movement.operands[0].type
    assert isinstance(source, TensorType) and isinstance(value.type, TensorType)
    shape = TensorType(value.type.dtype, source.shape)
    if movement.op is hlo.reshape:
        return site.op(hlo.reshape, value, type=shape)
    order = Transpose.of(movement).dimensions
    return site.op(hlo.transpose, value, type=shape, attrs={"dimensions": tuple(order.index(d) for d in range(len(order)))})
