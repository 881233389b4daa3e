"""ALG004: the result of a product is scaled per channel, though the scale could be folded into the weights."""

from __future__ import annotations

from functools import partial

from irscope.analysis.values import ARITHMETIC, MOVES, dims, number, other, size
from irscope.graph import Graph, Kind, Node
from irscope.graph.walk import behind
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, human_bytes, plural
from irscope.lint.quantised import products, stored
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Convolution

SCALES = hlo.named("multiply divide")
LONGEST = 8


class BnUnfolded(Rule):
    """A convolution or matrix product with stored weights is followed by a per-channel scale that does not depend on data.

    ## What it does
    Follows the result of a convolution or product through `multiply`, `divide`, `add` and `subtract` with vectors along its output
    channels that depend only on parameters and constants: batch normalisation in inference, a layer scale. At least one of them must be a
    scale with more than one element. One finding per module, at the largest product; information if the weights are parameters.

    ## Why is this bad?
    `(w x) * s + b` equals `(w * s) x + b`. Folding the scale into the weights saves operations on every image, and one operand.

    ## Use instead
    Fold it when the model is exported: `torch.nn.utils.fusion.fuse_conv_bn_eval`, or multiply the kernel by the scale. The results differ
    in the last digits. `irscope run --weights` folds it automatically.

    ## Known false positives
    Training graphs, whose scales change between runs.
    """

    code, name, severity = "ALG004", "bn-unfolded", Severity.WARNING
    fix = Fix.REWRITE
    passes = ("fold-batch-norm",)
    structural = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[1,56,56,64] parameter(0)
              w = f32[3,3,64,64] constant({...})
              gamma = f32[64] parameter(1)
              beta = f32[64] parameter(2)
              c = f32[1,56,56,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
              s = f32[1,56,56,64] broadcast(gamma), dimensions={3}
              m = f32[1,56,56,64] multiply(c, s)
              b = f32[1,56,56,64] broadcast(beta), dimensions={3}
              ROOT y = f32[1,56,56,64] add(m, b)
            }
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[64,128] parameter(0)
              w = f32[128,256] parameter(1)
              v = f32[256] parameter(2)
              d = f32[64,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              r = f32[256] rsqrt(v)
              s = f32[64,256] broadcast(r), dimensions={1}
              ROOT y = f32[64,256] multiply(d, s)
            }
        """,
            "y",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(1, 3, 32, 32), %w : Float(8, 3, 3, 3), %g : Float(8), %b : Float(8), %m : Float(8), %v : Float(8)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %mom : float = prim::Constant[value=0.1]()
              %eps : float = prim::Constant[value=1e-05]()
              %ones : int[] = prim::ListConstruct(%one, %one)
              %c : Float(1, 8, 32, 32) = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)
              %y : Float(1, 8, 32, 32) = aten::batch_norm(%c, %g, %b, %m, %v, %f, %mom, %eps, %t)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay("""
            def @main(%x: Tensor[(1, 3, 32, 32), float32], %w: Tensor[(8, 3, 3, 3), float32], %g: Tensor[(8), float32], %b: Tensor[(8),
            float32], %m: Tensor[(8), float32], %v: Tensor[(8), float32]) {
              %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
              %1 = nn.batch_norm(%0, %g, %b, %m, %v);
              %1.0
            }
        """),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[1,56,56,64] parameter(0)
              w = f32[3,3,64,64] parameter(1)
              beta = f32[64] parameter(2)
              c = f32[1,56,56,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
              b = f32[1,56,56,64] broadcast(beta), dimensions={3}
              ROOT y = f32[1,56,56,64] add(c, b)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[64,128] parameter(0)
              w = f32[128,256] parameter(1)
              d = f32[64,256] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              z = f32[] constant(0)
              v = f32[256] reduce(d, z), dimensions={0}, to_apply=sum
              r = f32[256] rsqrt(v)
              s = f32[64,256] broadcast(r), dimensions={1}
              ROOT y = f32[64,256] multiply(d, s)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(1, 3, 32, 32), %w : Float(8, 3, 3, 3), %s : Float(1, 8, 32, 32)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %ones : int[] = prim::ListConstruct(%one, %one)
              %c : Float(1, 8, 32, 32) = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)
              %y : Float(1, 8, 32, 32) = aten::mul(%c, %s)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(1, 3, 32, 32), float32], %w: Tensor[(8, 3, 3, 3), float32]) {
              %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
              nn.relu(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        main = context.module.main()
        fixed = _small_and_stored(main)
        found: list[tuple[Node, list[Node], list[Node]]] = []
        for node, graph in products(context.view):
            if graph is main and len(node.operands) > 1 and stored(node.operands[1]) is not None:
                chain, scales = self._chain(context, graph, node, fixed)
                if scales:
                    found.append((node, chain, scales))
        if not found:
            return
        node, chain, scales = max(found, key=lambda f: size(f[0]))
        weights = stored(node.operands[1])
        more = f"; so {'is' if len(found) == 2 else 'are'} {plural(len(found) - 1, 'more product')}" if len(found) > 1 else ""
        yield self.finding(
            context,
            chain[-1],
            f"%{node.name} ({node.op.name}, {human_bytes(size(node))}) is scaled per channel: the scale could be folded into its "
            f"weights{more}",
            notes=(Note(f"%{node.name} is here", node.loc), *(Note(f"%{s.name} scales", s.loc) for s in scales)),
            help="fold the scale into the weights when the model is exported",
            saves=Edit({scale: partial(_unscaled, scale, fixed) for _, _, all_scales in found for scale in all_scales}),
        ).with_severity(None if weights is not None and weights.op is hlo.constant else Severity.INFO)

    def _chain(self, context: Context, graph: Graph, node: Node, fixed: list[bool]) -> tuple[list[Node], list[Node]]:
        """The affine operators that follow the product, and those of them that scale."""
        channel = Convolution.of(node).dim_labels.out_feature if node.op is hlo.convolution else len(dims(node)) - 1
        chain: list[Node] = []
        scales: list[Node] = []
        at = node
        for _ in range(LONGEST):
            user = context.view.only_user(at, graph)
            if user is None or user.op not in ARITHMETIC or dims(user) != dims(node) or user.operands[0] is user.operands[1]:
                break
            if user.op is hlo.divide and user.operands[0] is not at:
                break
            if number(other(user, at)) is None:
                spread = behind(other(user, at), MOVES)
                if spread.op is not hlo.broadcast or Broadcast.of(spread).dimensions not in ((channel,), _padded(spread, channel)):
                    break
                if not fixed[spread.index]:
                    break
                if user.op in SCALES:
                    scales.append(user)
            chain.append(user)
            at = user
        return chain, scales


def _unscaled(scale: Node, fixed: list[bool], site: Site) -> Node:
    """The scaled value without its scale, which the weights contain."""
    return site.new(next((o for o in scale.operands if not fixed[o.index] and number(o) is None), scale.operands[0]))


def _padded(broadcast: Node, channel: int) -> tuple[int, ...]:
    """The dimensions of a broadcast whose operand has the channel and otherwise only axes of length 1; empty for any other broadcast."""
    kept, shape = Broadcast.of(broadcast).dimensions, dims(broadcast.operands[0])
    long = tuple(k for k, d in zip(kept, shape, strict=False) if d != 1)
    return kept if long == (channel,) else ()


def _small_and_stored(graph: Graph) -> list[bool]:
    """For each node, by index, whether it depends only on constants and on parameters that are vectors."""
    found: list[bool] = []
    for node in graph.nodes:
        if node.op is hlo.parameter:
            shape = dims(node)
            found.append(bool(shape) and sum(d > 1 for d in shape) <= 1)
        elif node.op is hlo.constant:
            found.append(True)
        else:
            found.append(
                node.op.kind in (Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE) and all(found[o.index] for o in node.operands)
            )
    return found

