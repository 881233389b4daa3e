"""LAY002: convolutions between two transposes."""

from __future__ import annotations

from irscope.analysis.values import dims, size, written
from irscope.graph import Graph, Kind, Node
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes, saving
from irscope.lint.claims import TIDY
from irscope.lint.torch_nodes import TURNS
from irscope.ops import hlo
from irscope.ops.attributes import Convolution, Transpose

BETWEEN = hlo.named("pad convert copy bitcast")
FAR = 8
"""Elementwise operators between a convolution and the transposition behind it, at most."""


class ConvLayoutMismatch(Rule):
    """The input of a convolution is transposed, and its result is transposed back.

    ## What it does
    Finds convolutions of images whose input comes from a `transpose` that moves the channels and whose result, through elementwise
    operators, is the operand of another, if at least half of the convolutions are like this. One finding per graph, with the bytes that
    the transposes write. Under the policies of XLA and irscope it is information in text from before compilation: both read the
    convolution's operand in its existing layout (measured: no difference, docs/lint/evidence.md).

    ## Why is this bad?
    The whole image is written twice more for each layer (measured: 54.6 ms against 35.9 ms for one convolution).

    ## Use instead
    Keep channels last through the whole model (`memory_format=torch.channels_last`, `dimension_numbers=('NHWC', 'HWIO', 'NHWC')`), and
    transpose once, at the input.

    ## Known false positives
    Other backends that absorb the transpose into the convolution.
    """

    code, name, severity = "LAY002", "conv-layout-mismatch", Severity.WARNING
    passes = ("convert-layout",)
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1,64,56,56] parameter(0)
              w = f32[3,3,64,64] parameter(1)
              t = f32[1,56,56,64] transpose(x), dimensions={0,2,3,1}
              c = f32[1,56,56,64] convolution(t, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
              ROOT b = f32[1,64,56,56] transpose(c), dimensions={0,3,1,2}
            }
        """,
            "c",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1,56,56,64] parameter(0)
              w = f32[64,64,1,1] parameter(1)
              z = f32[] constant(0)
              t = f32[1,64,56,56] transpose(x), dimensions={0,3,1,2}
              c = f32[1,64,56,56] convolution(t, w), window={size=1x1}, dim_labels=bf01_oi01->bf01
              zeros = f32[1,64,56,56] broadcast(z), dimensions={}
              m = f32[1,64,56,56] maximum(c, zeros)
              ROOT b = f32[1,56,56,64] transpose(m), dimensions={0,2,3,1}
            }
        """,
            "c",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(1, 32, 32, 64), %w : Float(64, 64, 3, 3)):
              %zero : int = prim::Constant[value=0]()
              %one : int = prim::Constant[value=1]()
              %two : int = prim::Constant[value=2]()
              %three : int = prim::Constant[value=3]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %in : int[] = prim::ListConstruct(%zero, %three, %one, %two)
              %out : int[] = prim::ListConstruct(%zero, %two, %three, %one)
              %ones : int[] = prim::ListConstruct(%one, %one)
              %p : Float(1, 64, 32, 32) = aten::permute(%x, %in)
              %c : Float(1, 64, 32, 32) = aten::conv2d(%p, %w, %none, %ones, %ones, %ones, %one)
              %r : Float(1, 64, 32, 32) = aten::relu(%c)
              %q : Float(1, 32, 32, 64) = aten::permute(%r, %out)
              return (%q)
        """,
            "c",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(1, 32, 32, 64), float32], %w: Tensor[(64, 64, 3, 3), float32]) {
              %0 = transpose(%x, axes=[0, 3, 1, 2]);
              %1 = nn.conv2d(%0, %w, padding=[1, 1, 1, 1], channels=64, kernel_size=[3, 3]);
              %2 = nn.relu(%1);
              %3 = transpose(%2, axes=[0, 2, 3, 1]);
              %3
            }
        """,
            "1",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[1,64,56,56] parameter(0)
              w = f32[3,3,64,64] parameter(1)
              t = f32[1,56,56,64] transpose(x), dimensions={0,2,3,1}
              c = f32[1,56,56,64] convolution(t, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
              ROOT r = f32[1,56,56,64] negate(c)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[1,64,56,56] parameter(0)
              w = f32[64,64,1,1] parameter(1)
              ROOT c = f32[1,64,56,56] convolution(x, w), window={size=1x1}, dim_labels=bf01_oi01->bf01
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(1, 64, 32, 32), %w : Float(64, 64, 3, 3)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %ones : int[] = prim::ListConstruct(%one, %one)
              %c : Float(1, 64, 32, 32) = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)
              %r : Float(1, 64, 32, 32) = aten::relu(%c)
              return (%r)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(1, 32, 32, 64), float32], %w: Tensor[(3, 3, 64, 64), float32]) {
              %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=64, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");
              nn.relu(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        found: dict[Graph, list[tuple[Node, Node, Node]]] = {}
        total: dict[Graph, int] = {}
        for node, graph in context.view.primitives(hlo.convolution):
            total[graph] = total.get(graph, 0) + 1
            before = behind(node.operands[0], BETWEEN)
            labels = Convolution.of(node).dim_labels
            if before.op is not hlo.transpose or len(dims(before)) < 4 or not _moves(before, labels.lhs_feature):
                continue
            after = _transposed_later(context, node, graph)
            if after is not None and not _is_own(node, before) and not _is_own(node, after):
                found.setdefault(graph, []).append((node, before, after))
        for graph, sites in found.items():
            if 2 * len(sites) < total[graph]:
                continue  # a few at the edge are not a mismatch
            node, before, after = sites[0]
            moved = {n for _, *pair in sites for n in pair}
            moves = 2 * sum(size(n) for n in moved)
            folded = context.settings.compiler in TIDY and not context.view.optimised
            yield self.finding(
                context, node,
                f"{len(sites)} of {total[graph]} convolutions are between transposes, which move {human_bytes(moves)}",
                notes=(Note(f"%{before.name} moves the channels before", before.loc), Note(f"%{after.name} moves them back", after.loc)),
                help="keep one order of axes through the model, and transpose once at its edge",
                saves=None if folded else saving(bytes=float(moves), kernels=float(len(moved))),
            ).with_severity(Severity.INFO if folded else None)


def _is_own(node: Node, transpose: Node) -> bool:
    """Whether the convolution's operator in the text transposes itself, which the user cannot change; torch's views need no copy."""
    text = written(node)
    return text is written(transpose) and not any(operand.op in TURNS for operand in text.operands)


def _moves(transpose: Node, axis: int) -> bool:
    """Whether the transpose moves another axis to position ``axis``."""
    order = Transpose.of(transpose).dimensions
    return axis < len(order) and order[axis] != axis


def _transposed_later(context: Context, node: Node, graph: Graph) -> Node | None:
    """The transpose that reads the result, through elementwise operators on values with one user."""
    at = node
    for _ in range(FAR + 1):
        user = context.view.only_user(at, graph)
        if user is not None and user.op is hlo.transpose:
            return user if _moves(user, Convolution.of(node).dim_labels.out_feature) else None
        if user is None or (user.op.kind is not Kind.ELEMENTWISE and user.op not in BETWEEN):
            return None
        at = user
    return None
