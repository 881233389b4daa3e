"""FUS005: a skip connection keeps a value in memory across several products."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.values import size
from irscope.graph import Graph, Kind, Node
from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity, human_bytes
from irscope.ops.sets import hlo, relay

APART = 2
"""Products and convolutions between the value and the addition that uses it again."""
WORTH_BYTES = 64 * 1024
SEARCHED = 400
"""Nodes that are looked at on the way back from an addition to the value."""
LISTED = 3
ADDS = hlo("add") | relay("add")
KEPT_ANYWAY = hlo("parameter constant broadcast")

_CONV = "convolution({0}, {1}), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f"


class ResidualKeepsAlive(Rule):
    """Skip connections keep values alive across two products or more.

    ## What it does
    Finds additions one side of which is also computed from the other through at least two matrix products or convolutions. One finding per
    graph, with their number and the bytes that they keep in memory.

    ## Why is this bad?
    Mostly it is not: residual networks work this way. But the value stays in memory while the layers between run, and is read once more;
    if memory limits a model, these values are a large part of it.

    ## Use instead
    Add in the last product's kernel, into the accumulator (an in-place sum, as oneDNN and irscope do); in training, rematerialise the
    value (`jax.checkpoint`, `torch.utils.checkpoint`).

    ## Known false positives
    Every residual network: the rule is therefore off by default, and reports one line of information per graph.
    """

    code, name, severity, default = "FUS005", "residual-keeps-alive", Severity.INFO, False
    fix = Fix.NONE
    structural = True
    bad = (
        Fixture.hlo(
            f"""
            ENTRY e {{
              x = f32[1,32,32,64] parameter(0)
              v = f32[3,3,64,64] parameter(1)
              w = f32[3,3,64,64] parameter(2)
              t = f32[1,32,32,64] tanh(x)
              c = f32[1,32,32,64] {_CONV.format("t", "v")}
              a = f32[1,32,32,64] abs(c)
              d = f32[1,32,32,64] {_CONV.format("a", "w")}
              ROOT y = f32[1,32,32,64] add(d, t)
            }}
        """,
            "y",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[512,512] parameter(0)
              w = f32[512,512] parameter(1)
              t = f32[512,512] tanh(x)
              c = f32[512,512] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              d = f32[512,512] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              n = f32[512,512] negate(d)
              ROOT y = f32[512,512] add(t, n)
            }
        """,
            "y",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(512, 512), %w : Float(512, 512)):
              %one : int = prim::Constant[value=1]()
              %h : Float(512, 512) = aten::tanh(%x)
              %c : Float(512, 512) = aten::mm(%h, %w)
              %d : Float(512, 512) = aten::mm(%c, %w)
              %y : Float(512, 512) = aten::add(%h, %d, %one)
              return (%y)
        """,
            "y",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(512, 512), float32], %w: Tensor[(512, 512), float32]) {
              %0 = tanh(%x);
              %1 = nn.dense(%0, %w);
              %2 = nn.dense(%1, %w);
              %3 = add(%0, %2);
              %3
            }
        """,
            "3",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,512] parameter(0)
              w = f32[512,512] parameter(1)
              t = f32[512,512] tanh(x)
              c = f32[512,512] dot(t, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              ROOT y = f32[512,512] add(t, c)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              x = f32[512,512] parameter(0)
              z = f32[512,512] parameter(1)
              w = f32[512,512] parameter(2)
              c = f32[512,512] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              d = f32[512,512] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
              t = f32[512,512] tanh(z)
              ROOT y = f32[512,512] add(t, d)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(512, 512), %w : Float(512, 512)):
              %one : int = prim::Constant[value=1]()
              %h : Float(512, 512) = aten::tanh(%x)
              %c : Float(512, 512) = aten::mm(%h, %w)
              %y : Float(512, 512) = aten::add(%h, %c, %one)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(512, 512), float32], %w: Tensor[(512, 512), float32]) {
              %0 = tanh(%x);
              %1 = nn.dense(%0, %w);
              add(%0, %1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.array_graphs:
            if graph in context.view.inlined:
                continue
            found = list(_skips(graph))
            if not found:
                continue
            add, kept, between = found[0]
            total = sum(size(value) for value in dict.fromkeys(value for _, value, _ in found))
            more = f" and {len(found) - 1} others" if len(found) > 1 else ""
            yield self.finding(
                context, add,
                f"%{kept.name} ({human_bytes(size(kept))}) stays alive across {between} products for this addition{more}: "
                f"{human_bytes(total)} in all",
                notes=tuple(Note(f"%{value.name} stays alive until %{node.name}", value.loc) for node, value, _ in found[1 : 1 + LISTED]),
                help="add in the kernel of the last product; in training, rematerialise the value",
            )


def _skips(graph: Graph) -> Iterator[tuple[Node, Node, int]]:
    """Each addition with the value that it keeps alive, and the number of products between."""
    depth: list[int] = []
    for node in graph.nodes:
        own = max((depth[o.index] for o in node.operands), default=0)
        depth.append(own + (node.op.kind is Kind.CONTRACTION))
        if len(node.operands) != 2 or node.op not in ADDS or size(node) < WORTH_BYTES:
            continue
        early, late = sorted(node.operands, key=lambda o: o.index)
        between = depth[late.index] - depth[early.index]
        if between >= APART and early.op not in KEPT_ANYWAY and _comes_from(late, early):
            yield node, early, between


def _comes_from(node: Node, source: Node) -> bool:
    """Whether a node is computed from another, earlier node."""
    seen, stack = {node}, [node]
    while stack and len(seen) < SEARCHED:
        for operand in stack.pop().operands:
            if operand is source:
                return True
            if operand.index > source.index and operand not in seen:
                seen.add(operand)
                stack.append(operand)
    return False
