"""FUS001: elementwise operators on the result of a product are not fused into the product's kernel as an epilogue."""

from __future__ import annotations

from irscope.analysis.values import size
from irscope.graph import Graph, Kind, Node
from irscope.lint import Context, Findings, Fixture, Note, Rule, RuleFinding, Severity, human_bytes, saving
from irscope.lint.unfused import UnfusedEdge, proven_help, unfused_edges
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall

EPILOGUES = {"irscope": hlo.named("dot convolution reduce-window"), "tvm": hlo.named("dot convolution")}
"""Per policy, the operators whose kernels may end in elementwise work. XLA's CPU compiler hands products to a library before it fuses, and
Inductor calls one; where a back end has no such kernels, nothing can be done about it."""
CALLS = dict.fromkeys(("__cublas$lt$matmul", "__cudnn$convForward"), hlo.named("add maximum"))
"""Library calls of XLA's GPU compiler that take a bias and an activation, and what those are in HLO."""
INHERENT = ("one-anchor",)
"""Refusals that nothing can be done about: a sum of two products is the end of one of them, and reads the other."""
ALONG = (Kind.ELEMENTWISE, Kind.REDUCTION, Kind.BROADCAST, Kind.INJECTIVE)
REACH = 48
"""Operators between the scores of an attention and the product with its values: a softmax with its mask has 10 to 20."""
SHARE = 0.05
"""Of the module's traffic: below that it is information."""


class OpaqueBoundary(Rule):
    """Elementwise operators after a product or convolution form a separate kernel, though they could be the product's epilogue.

    ## What it does
    Finds matrix products, convolutions and pooling windows whose result elementwise operators read from memory, under a policy whose
    kernels may have such an epilogue: `irscope` and `tvm`, and under `xla-gpu` the cuBLASLt and cuDNN calls that accept a bias and an
    activation. Gives the policy's reason. It is a warning if more than 5 % of the traffic is at stake and there is a remedy: the result
    goes through a softmax into another product (attention has one operator), or a library call could compute the epilogue.

    ## Why is this bad?
    The result of the product is written to memory and read again for one operation per element.

    ## Use instead
    The fused operator of the framework (`F.scaled_dot_product_attention`, `jax.nn.dot_product_attention`, a linear layer with its bias and
    activation), or the elementwise operators directly after the product, before any other user.

    ## Known false positives
    A reduction over the whole row needs all of the product's result first; only a kernel for the whole composite avoids that.
    """

    code, name, severity = "FUS001", "opaque-boundary", Severity.WARNING
    structural = True
    policies = ("irscope", "tvm", "xla-gpu")
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512,256] parameter(0)
              w = f32[256,512] parameter(1)
              i = f32[] constant(-inf)
              d = f32[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              m = f32[512] reduce(d, i), dimensions={1}, to_apply=max
              b = f32[512,512] broadcast(m), dimensions={0}
              ROOT r = f32[512,512] subtract(d, b)
            }
        """,
            "d",
            policy="irscope",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512,256]{1,0} parameter(0)
              w = f32[256,512]{1,0} parameter(1)
              c = f32[] constant(0)
              z = f32[512,512]{1,0} broadcast(c), dimensions={}
              d = f32[512,512]{1,0} custom-call(x, w), custom_call_target="__cublas$lt$matmul"
              ROOT r = f32[512,512]{1,0} maximum(d, z)
            }
        """,
            "d",
            policy="xla-gpu",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(512, 256), %w : Float(256, 512)):
              %one : int = prim::Constant[value=1]()
              %none : NoneType = prim::Constant()
              %f : bool = prim::Constant[value=0]()
              %t : bool = prim::Constant[value=1]()
              %at : int[] = prim::ListConstruct(%one)
              %d : Float(512, 512) = aten::mm(%x, %w)
              %m : Float(512, 1) = aten::amax(%d, %at, %t)
              %y : Float(512, 512) = aten::sub(%d, %m, %one)
              return (%y)
        """,
            "d",
            policy="irscope",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(512, 256), float32], %w: Tensor[(512, 256), float32]) {
              %0 = nn.dense(%x, %w);
              %1 = max(%0, axis=[1], keepdims=True);
              %2 = subtract(%0, %1);
              %2
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,256] parameter(0)
              w = f32[256,512] parameter(1)
              d = f32[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT r = f32[512,512] tanh(d)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,256] parameter(0)
              w = f32[256,512] parameter(1)
              v = f32[256,512] parameter(2)
              a = f32[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              b = f32[512,512] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT r = f32[512,512] add(a, b)
            }
        """),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512,256]{1,0} parameter(0)
              w = f32[256,512]{1,0} parameter(1)
              d = f32[512,512]{1,0} custom-call(x, w), custom_call_target="__cublas$gemm"
              ROOT r = f32[512,512]{1,0} tanh(d)
            }
        """,
            policy="xla-gpu",
        ),
        Fixture.torchscript("""
            graph(%x : Float(512, 256), %w : Float(256, 512)):
              %d : Float(512, 512) = aten::mm(%x, %w)
              %y : Float(512, 512) = aten::tanh(%d)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(512, 256), float32], %w: Tensor[(512, 256), float32]) {
              %0 = nn.dense(%x, %w);
              tanh(%0)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        found: dict[Node, list[UnfusedEdge]] = {}
        for edge in unfused_edges(context):
            if edge.verdict.rule in INHERENT:
                continue
            if edge.consumer.op.kind is Kind.ELEMENTWISE and _takes(context, edge.producer, edge.consumer):
                found.setdefault(edge.producer, []).append(edge)
        traffic = context.costs.planned.traffic if context.costs.planned is not None else 0.0
        for anchor, edges in found.items():
            yield self._finding(context, context.view.graph_of[anchor], anchor, edges, traffic)

    def _finding(self, context: Context, graph: Graph, anchor: Node, edges: list[UnfusedEdge], traffic: float) -> RuleFinding:
        first = edges[0]
        others = len(context.view.users(anchor, graph)) > len(edges)
        moved = size(anchor) * (1.0 if others else 2.0)
        found = self.finding(
            context, anchor,
            f"%{anchor.name} ({anchor.op.name}) goes through memory to %{first.consumer.name} ({first.consumer.op.name}), "
            f"{human_bytes(size(anchor))}: {first.why}",
            notes=tuple(Note(f"%{edge.consumer.name} ({edge.consumer.op.name}) reads it", edge.consumer.loc) for edge in edges),
            help=proven_help(context, first) or "use the fused operator of the framework, where it has one",
            saves=saving(bytes=moved, kernels=1.0),
        ).stating(edge.verdict for edge in edges)
        return found.with_severity(None if moved > SHARE * traffic and _mendable(context, graph, anchor) else Severity.INFO)


def _mendable(context: Context, graph: Graph, anchor: Node) -> bool:
    """Whether there is a remedy: a library call accepts the epilogue, or the result goes through a softmax into a product.

    For attention every framework has one operator. If a loss or a normalisation reads the product twice, it must be in memory.
    """
    if context.settings.compiler == "xla-gpu":
        return True
    todo, reduced = [anchor], False
    for at in todo:
        for user in context.view.users(at, graph):
            if user.op.kind is Kind.CONTRACTION:
                if reduced and anchor.op is hlo.dot and user.op is hlo.dot:
                    return True
            elif user not in todo and len(todo) < REACH and user.op.kind in ALONG:
                reduced = reduced or user.op.kind is Kind.REDUCTION
                todo.append(user)
    return False


def _takes(context: Context, anchor: Node, consumer: Node) -> bool:
    """Whether the kernel of the anchor may compute the consumer as its epilogue."""
    if context.settings.compiler != "xla-gpu":
        return anchor.op in EPILOGUES[context.settings.compiler]
    return consumer.op in CALLS.get(CustomCall.of(anchor).custom_call_target, ())
