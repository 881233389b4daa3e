"""FUS007: a conditional with two cheap branches prevents fusion of the operators before and after it."""

from __future__ import annotations

from functools import partial

from irscope.graph import DTYPES, Effect, Graph, Kind, Node, TensorType, TupleType
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Rule, Severity, Site, human_bytes
from irscope.ops import hlo

PRED = DTYPES["pred"]
LARGEST = 32
"""The largest number of operators of both branches together that count as cheap."""
CHEAP = hlo.named("parameter constant tuple get-tuple-element iota copy bitcast")

_BRANCH = """
            plus {{
              a = f32[256,1024] parameter(0)
              ROOT r = f32[256,1024] {0}
            }}
            minus {{
              b = f32[256,1024] parameter(0)
              ROOT s = f32[256,1024] {1}
            }}
            ENTRY e {{
              p = pred[] parameter(0)
              x = f32[256,1024] parameter(1)
              y = f32[256,1024] negate(x)
              c = f32[256,1024] conditional(p, y, y), true_computation=plus, false_computation=minus
              ROOT z = f32[256,1024] abs(c)
            }}
        """


class ControlFlowBoundary(Rule):
    """A conditional on data prevents fusion, though both of its branches are only a few elementwise operators.

    ## What it does
    Finds conditionals on a scalar whose branches contain only a few elementwise operators and data movement. In a copy of the graph it
    computes both branches and selects the result element by element; it plans the copy again by the chosen policy, and reports the
    conditional if the copy is faster.

    ## Why is this bad?
    No compiler fuses across a conditional: its inputs and results are stored, and a kernel starts on each side.

    ## Use instead
    `jnp.where(flag, x + 1, x - 1)`, `torch.where`. The rule ignores loops: unrolling them was slower wherever it was measured.

    ## Known false positives
    A branch that is rarely taken and expensive after all (a kernel that mostly computes nothing is bound by memory in any case).
    """

    code, name, severity = "FUS007", "control-flow-boundary", Severity.WARNING
    fix = Fix.REWRITE
    structural, only_gains = True, True
    bad = (
        Fixture.hlo(_BRANCH.format("negate(a)", "abs(b)"), "c"),
        Fixture.torchscript(
            """
            graph(%x : Float(256, 1024), %flag : Bool()):
              %one : int = prim::Constant[value=1]()
              %two : float = prim::Constant[value=2.]()
              %y : Float(256, 1024) = aten::neg(%x)
              %b : bool = aten::Bool(%flag)
              %c : Float(256, 1024) = prim::If(%b)
                block0():
                  %p : Float(256, 1024) = aten::add(%y, %two, %one)
                  -> (%p)
                block1():
                  %m : Float(256, 1024) = aten::mul(%y, %two)
                  -> (%m)
              %z : Float(256, 1024) = aten::abs(%c)
              return (%z)
        """,
            "c",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(256, 1024), float32], %flag: bool) -> Tensor[(256, 1024), float32] {
              %0 = negative(%x);
              %1 = if (%flag) { add(%0, 2f) } else { multiply(%0, 2f) };
              abs(%1)
            }
        """
        ),
    )
    good = (
        Fixture.hlo(_BRANCH.format("dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}", "dot(b, b)").replace(
            "f32[256,1024]", "f32[512,512]").replace("dot(b, b)", "negate(b)")),
        Fixture.hlo("""
            ENTRY e {
              p = pred[] parameter(0)
              x = f32[256,1024] parameter(1)
              y = f32[256,1024] negate(x)
              a = f32[256,1024] abs(x)
              b = pred[256,1024] broadcast(p), dimensions={}
              ROOT z = f32[256,1024] select(b, y, a)
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(256, 1024), %flag : Bool()):
              %y : Float(256, 1024) = aten::neg(%x)
              %b : bool = aten::Bool(%flag)
              %c : Float(256, 1024) = prim::If(%b)
                block0():
                  %v : Float(256, 1024), %i : Long(256, 1024) = aten::sort(%y)
                  -> (%v)
                block1():
                  -> (%y)
              %z : Float(256, 1024) = aten::abs(%c)
              return (%z)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(256, 1024), float32], %flag: Tensor[(256, 1024), bool]) -> Tensor[(256, 1024), float32] {
              %0 = negative(%x);
              %1 = where(%flag, %0, %x);
              abs(%1)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, _ in context.view.primitives(hlo.conditional):
            if len(node.bodies) != 2 or len(node.operands) != 3 or not _cheap(node.bodies):
                continue
            if not isinstance(node.type, TensorType | TupleType):  # a token: there is nothing to select
                continue
            moved = sum(leaf.bytes for leaf in node.type.leaves() if isinstance(leaf, TensorType))
            yield self.finding(
                context, node,
                f"%{node.name} prevents fusion: its operands and results are stored ({human_bytes(moved)} of results), and both "
                "of its branches are cheap",
                help="compute both branches and select: jnp.where, torch.where",
                saves=Edit({node: partial(_selected, node)}, node.operands),
            )


def _cheap(bodies: tuple[Graph, ...]) -> bool:
    """Whether the branches contain only elementwise operators and data movement, and few of them."""
    nodes = [node for body in bodies for node in body.nodes]
    return len(nodes) <= LARGEST and all(
        node.op.effect is Effect.PURE
        and not node.bodies
        and (node.op.kind in (Kind.ELEMENTWISE, Kind.BROADCAST, Kind.INJECTIVE) or node.op in CHEAP)
        for node in nodes
    )


def _selected(node: Node, site: Site) -> Node:
    """Both branches computed, and a select for each result. If the condition is an integer, 0 chooses the first branch."""
    choice = node.operands[0]
    ways = [_inlined(body, site.new(operand), site) for body, operand in zip(node.bodies, node.operands[1:], strict=True)]
    assert isinstance(choice.type, TensorType)
    yes = site.new(choice)
    if choice.type.dtype.kind != "pred":
        yes = site.op(hlo.convert, yes, type=choice.type.with_dtype(PRED))
        ways.reverse()
    if not isinstance(node.type, TupleType):
        return _select(yes, ways[0], ways[1], site)
    parts = []
    for i, type in enumerate(node.type.elements):
        one, two = (site.op(hlo.get_tuple_element, way, type=type, attrs={"index": i}) for way in ways)
        parts.append(_select(yes, one, two, site) if isinstance(type, TensorType) else one)
    return site.op(hlo.tuple, *parts, type=node.type)


def _select(yes: Node, one: Node, two: Node, site: Site) -> Node:
    assert isinstance(one.type, TensorType)
    mask = TensorType(PRED, one.type.shape)
    wide = yes if not one.type.shape else site.op(hlo.broadcast, yes, type=mask, attrs={"dimensions": ()})
    return site.op(hlo.select, wide, one, two, type=one.type)


def _inlined(body: Graph, operand: Node, site: Site) -> Node:
    """The result of a branch, inlined over the copy's operand."""
    became: dict[Node, Node] = dict.fromkeys(body.params, operand)
    for inner in body.nodes:
        if inner not in became:
            became[inner] = site.copy(inner, *(became[o] for o in inner.operands))
    return became[body.result()]
