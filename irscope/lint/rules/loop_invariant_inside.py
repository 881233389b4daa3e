"""CTL003: a loop computes the same value in every iteration."""

from __future__ import annotations

from functools import partial
from textwrap import dedent

from irscope.analysis.trips import trip_count
from irscope.analysis.values import size
from irscope.graph import Graph, Kind, Node, pure
from irscope.lint import Context, Edit, Findings, Fix, Fixture, Note, Rule, Severity, Site, human_bytes, saving
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement

FREE = hlo.named("get-tuple-element tuple constant broadcast iota bitcast reshape parameter copy slice")
CONSTANTS = hlo.named("constant iota")
COPIES = hlo.named("copy opt-barrier")
OPEN = hlo.named("tuple while parameter")
"""Operators whose value is not counted among those that no trip changes."""
WORTH_BYTES = 4096
"""Smaller results are not worth a place among what the loop carries."""
LARGE_BYTES = 64 * 1024
HOISTS = ("xla-cpu", "xla-gpu")
"""Policies whose compilers move such work out of loops by themselves (WhileLoopInvariantCodeMotion)."""


class LoopInvariantInside(Rule):
    """An operation in the body of a loop depends only on loop-invariant values.

    ## What it does
    Finds, in the body of a `while` and in the computations that it calls, the last operators of subgraphs that read only loop values that
    the body passes on unchanged. Results below 4 KiB are not reported. Results below 64 KiB, except those of products, are information; so
    is text from before XLA's own optimisation under its policies: XLA hoists the value, and the change saves nothing.

    ## Why is this bad?
    Every iteration does the same work.

    ## Use instead
    Compute it before the loop and close over the result.

    ## Known false positives
    A hoisted value is live for the whole loop, which costs memory.
    """

    code, name, severity = "CTL003", "loop-invariant-inside", Severity.WARNING
    fix = Fix.REWRITE
    passes = ("hoist-loop-invariant",)
    structural = True
    _loop = """
            cond {{
              p = (s32[], f32[128,128], f32[128,128]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              n = s32[] constant(10)
              ROOT c = pred[] compare(i, n), direction=LT
            }}
            body {{
              p = (s32[], f32[128,128], f32[128,128]) parameter(0)
              i = s32[] get-tuple-element(p), index=0
              x = f32[128,128] get-tuple-element(p), index=1
              w = f32[128,128] get-tuple-element(p), index=2
              o = s32[] constant(1)
              j = s32[] add(i, o)
              {0}
              ROOT t = (s32[], f32[128,128], f32[128,128]) tuple(j, y, {1})
            }}
            ENTRY e {{
              x = f32[128,128] parameter(0)
              w = f32[128,128] parameter(1)
              z = s32[] constant(0)
              t = (s32[], f32[128,128], f32[128,128]) tuple(z, x, w)
              ROOT l = (s32[], f32[128,128], f32[128,128]) while(t), condition=cond, body=body
            }}
        """
    bad = (
        Fixture.hlo(_loop.format("s = f32[128,128] exponential(w)\n              y = f32[128,128] add(x, s)", "w"), "s"),
        Fixture.hlo(
            _loop.format(
                "s = f32[128,128] dot(w, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                "              u = f32[128,128] negate(s)\n              y = f32[128,128] add(x, u)",
                "w",
            ),
            "u",
        ),
        Fixture.hlo(
            "step {\n"
            "  a = f32[128,128] parameter(0)\n  b = f32[128,128] parameter(1)\n"
            "  s = f32[128,128] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
            "  ROOT y = f32[128,128] add(a, s)\n}\n\n" + dedent(_loop.format("y = f32[128,128] call(x, w), to_apply=step", "w")).strip(),
            "s",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(64, 64), %w : Float(64, 64)):
              %t : bool = prim::Constant[value=1]()
              %n : int = prim::Constant[value=1000]()
              %y : Float(64, 64) = prim::Loop(%n, %t, %x)
                block0(%i : int, %acc : Float(64, 64)):
                  %p : Float(64, 64) = aten::mm(%w, %w)
                  %s : Float(64, 64) = aten::mm(%acc, %p)
                  -> (%t, %s)
              return (%y)
        """,
            "p",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32], %n: int32) -> Tensor[(64, 64), float32] {
              let %loop = fn (
                %i: int32, %acc: Tensor[(64, 64), float32], %v: Tensor[(64, 64), float32], %m: int32
              ) -> Tensor[(64, 64), float32] {
                if (less(%i, %m)) {
                  %0 = nn.dense(%v, %v);
                  %1 = nn.dense(%acc, %0);
                  %2 = add(%i, 1);
                  %loop(%2, %1, %v, %m)
                } else {
                  %acc
                }
              };
              %loop(0, %x, %w, %n)
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.hlo(
            _loop.format(
                "s = f32[128,128] exponential(w)\n              v = f32[128,128] negate(w)\n              y = f32[128,128] add(x, s)", "v"
            )
        ),
        Fixture.hlo(_loop.format("s = f32[128,128] exponential(x)\n              y = f32[128,128] add(s, w)", "w")),
        Fixture.torchscript("""
            graph(%x : Float(64, 64), %w : Float(64, 64)):
              %t : bool = prim::Constant[value=1]()
              %n : int = prim::Constant[value=1000]()
              %p : Float(64, 64) = aten::mm(%w, %w)
              %y : Float(64, 64) = prim::Loop(%n, %t, %x)
                block0(%i : int, %acc : Float(64, 64)):
                  %s : Float(64, 64) = aten::mm(%acc, %p)
                  -> (%t, %s)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(64, 64), float32], %w: Tensor[(64, 64), float32], %n: int32) -> Tensor[(64, 64), float32] {
              let %loop = fn (
                %i: int32, %acc: Tensor[(64, 64), float32], %v: Tensor[(64, 64), float32], %m: int32
              ) -> Tensor[(64, 64), float32] {
                if (less(%i, %m)) {
                  %0 = nn.dense(%acc, %v);
                  %1 = add(%i, 1);
                  %loop(%1, %0, %v, %m)
                } else {
                  %acc
                }
              };
              %loop(0, %x, %w, %n)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.while_):
            if len(node.bodies) == 2 and node.bodies[1].root is not None:
                yield from self._body(context, node, graph, node.bodies[1])

    def _body(self, context: Context, loop: Node, graph: Graph, body: Graph) -> Findings:
        trips = trip_count(context.module, loop)
        hoisted = context.settings.compiler in HOISTS and not context.view.optimised
        seen = {body}
        todo = [(body, *_invariant(body, _kept(body), frozenset()))]
        for inside, same, constant in todo:
            for node in inside.nodes:
                if node.op is hlo.call and len(node.bodies) == 1 and not same[node.index] and node.bodies[0] not in seen:
                    seen.add(node.bodies[0])
                    todo.append((node.bodies[0], *_entered(node, same, constant)))
                if not same[node.index] or node.op in FREE or size(node) < WORTH_BYTES:
                    continue
                users = context.view.users(node, inside)
                if users and all(same[u.index] and u.op not in FREE for u in users):
                    continue
                heavy = node.op.kind is Kind.CONTRACTION or any(o.op.kind is Kind.CONTRACTION and same[o.index] for o in node.operands)
                yield self.finding(
                    context, node,
                    f"%{node.name} ({node.op.name}, {human_bytes(size(node))}) is the same in every iteration"
                    + (f" of {trips}" if trips is not None else "")
                    + ("; XLA computes it before the loop by itself" if hoisted else ""),
                    notes=(Note(f"the loop is %{loop.name} in {graph.name}", loop.loc),),
                    help="compute it before the loop",
                    saves=saving() if hoisted else Edit({node: partial(_before, node)}),
                ).with_severity(None if (heavy or size(node) >= LARGE_BYTES) and not hoisted else Severity.INFO)


def _before(node: Node, site: Site) -> Node:
    """The value computed before the loop."""
    return site.given(node)


def _kept(body: Graph) -> frozenset[Node]:
    """The loop values that a body passes on unchanged."""
    root = body.result()
    return frozenset(
        node
        for node in body.nodes
        if node.op is hlo.get_tuple_element
        and node.operands[0].op is hlo.parameter
        and root.op is hlo.tuple
        and _passed_on(root.operands, node)
    )


def _entered(call: Node, same: list[bool], constant: list[bool]) -> tuple[list[bool], list[bool]]:
    """What is known of the nodes of a called graph, derived from what is known of the operands."""
    params = call.bodies[0].params
    given = frozenset(p for p, o in zip(params, call.operands, strict=False) if same[o.index])
    fixed = frozenset(p for p, o in zip(params, call.operands, strict=False) if constant[o.index])
    return _invariant(call.bodies[0], given, fixed)


def _invariant(graph: Graph, given: frozenset[Node], fixed: frozenset[Node]) -> tuple[list[bool], list[bool]]:
    """For each node of a graph, by index, whether it depends only on constants and on the invariant values ``given``;
    and whether it is a constant. ``fixed`` nodes are constants."""
    can_move = pure(graph)
    same: list[bool] = []
    constant: list[bool] = []
    for node in graph.nodes:
        if node in given or node in fixed:
            same.append(node in given)
            constant.append(node in fixed)
            continue
        leaf = node.op in CONSTANTS
        movable = can_move[node.index] and bool(node.operands) and node.op not in OPEN
        known = movable and all(same[o.index] or constant[o.index] for o in node.operands)
        varies = any(same[o.index] for o in node.operands)
        constant.append(leaf or (known and not varies))
        same.append(known and varies)
    return same, constant


def _passed_on(results: tuple[Node, ...], node: Node) -> bool:
    """Whether the body returns the loop value unchanged and in the same place."""
    index = GetTupleElement.of(node).index
    if index >= len(results):
        return False
    result = results[index]
    while result.op in COPIES and result.operands:
        result = result.operands[0]
    return result is node or (
        result.op is hlo.get_tuple_element and GetTupleElement.of(result).index == index and result.operands == node.operands
    )
