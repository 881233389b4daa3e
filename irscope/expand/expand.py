"""The primitive graph of a module, which lowering, fusion and the cost model read.

    fused { p = f32[2] parameter(0)                     ENTRY main { x = f32[2] parameter(0)
            ROOT n = f32[2] negate(p) }          ->                  ROOT n = f32[2] negate(x) }
    ENTRY main { x = f32[2] parameter(0)
                 ROOT f = f32[2] fusion(x), kind=kLoop, calls=fused }

Inlines calls and fusions, expands composites, turns asynchronous pairs into plain operators, and takes tuples apart
wherever both ends are visible. The remaining bodies belong to ``while``, ``conditional`` and to operators with a scalar function
(``reduce``, ``sort``, ``scatter``). Each node keeps its name and its place in the text; ``origin`` is the written node that it stands for.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from irscope.expand.bitcast import as_movement
from irscope.expand.programs import inferred, torchscript
from irscope.expand.values import Value, as_node, parts_of
from irscope.graph import UNKNOWN, Builder, Graph, Module, Node, TupleType, Typing, callees_first, live, rewrite, see_through, tensor
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant, GetTupleElement
from irscope.ops.attrs import Literal
from irscope.ops.exchange import moves_slices
from irscope.ops.faults import TypeFault
from irscope.ops.shapes import fits
from irscope.source import UserError, budget

GROWTH = 20
"""A module may grow by this factor, and to :data:`MOST_INLINED` nodes in any case, while calls are inlined."""
MOST_INLINED = 200_000
"""The number of nodes that any module may become while its calls are inlined: a few short lines double it at each level of calls. A model
of a hundred layers, each a call of the same function, has a tenth of it."""

INLINED = hlo.named("call fusion")
CALLS = INLINED | {hlo.async_start}
IDENTITIES = hlo.named("copy opt-barrier domain add-dependency async-update all-reduce-done")
DONE = hlo.named("copy-done async-done all-gather-done collective-permute-done")
STRUCTURAL = DONE | hlo.named("get-tuple-element bitcast copy-start")
"""Operators that are taken apart by their types, which must therefore be correct."""
STARTED = {hlo.all_reduce_start: hlo.all_reduce, hlo.all_gather_start: hlo.all_gather,
           hlo.collective_permute_start: hlo.collective_permute}
"""Operators that start something asynchronous; on one machine they run at once."""
UPDATES = hlo.named("async-update async-done")
TAKEN_APART = CALLS | IDENTITIES | STRUCTURAL | STARTED.keys()
"""Operators that expansion removes. Tuples stay where only one end of them is visible."""


def expand(module: Module, outline: bool = False, seen: Callable[[Node, object], None] | None = None) -> Module:
    """The primitive graphs of what the entry runs, in a new module. Raises UserError when inlining would not end.

    A TorchScript program is run with the shapes in its text; UserError where they are not enough. ``outline``: the caller does not
    run the result, so a tensor whose value the text elides may become a parameter of its type. ``seen`` is called with each node of such a
    program and its value.
    """
    built = not module.is_primitive
    if built and module.dialect.no_program:
        raise UserError(f"{module.name} is {module.dialect.module}: it records what a compiler made, and is no program",
                        module.dialect.no_program)
    if built and module.dialect.typing is Typing.EXECUTED:
        module = torchscript.run_program(module, torchscript.Given(outline=outline), seen)
    elif built:
        module = inferred(module).run_program(module)
    if built:
        module.attrs |= {"primitive": True}

    def expanded(graph: Graph, became: dict[Graph, Graph]) -> Graph:
        if built and _is_primitive(graph, became):
            return graph  # nothing else refers to it: a copy would be the same
        return _expand_composites(module, _Expansion(module, graph, became).run())
    return _with_graphs(module, expanded)


def inline(module: Module, keep: Collection[str] = ()) -> Module:
    """The module with calls and fusions inlined, asynchronous pairs made plain and tuples taken apart; composites stay as they are.

    ``keep`` names operators that return their operand, as a copy does, and are not to be removed.
    """
    return _with_graphs(module, lambda graph, became: _Expansion(module, graph, became, keep).run())


def _with_graphs(module: Module, change: Callable[[Graph, dict[Graph, Graph]], Graph]) -> Module:
    """The graphs that the entry reaches, each changed after those that it calls."""
    made = module.derived()
    became: dict[Graph, Graph] = {}
    order = callees_first(module, module.main())
    for graph in order:
        if graph.root is None:
            raise UserError(f"{graph.name} has no result", "the text may be cut off; irscope check FILE names the place")
    _require_small(module, order)
    for graph in order:
        became[graph] = change(graph, became)
    main = became[module.main()]
    made.entry = main.name
    for graph in callees_first(module, main):
        made.graphs[graph.name if graph.name not in made.graphs else made.fresh_name(graph.name)] = graph
    return made


def _require_small(module: Module, order: Sequence[Graph]) -> None:
    """Raise BudgetExceeded where inlining makes more nodes than any program has, before it makes them. ``order`` has callees first.

    Each graph is counted once, however many calls it has: forty functions that each call the previous one twice make 2**40 calls.
    """
    limit = max(MOST_INLINED, GROWTH * sum(len(graph.nodes) for graph in module.graphs.values()))
    count: dict[Graph, int] = {}
    for graph in order:
        inlined = (node.bodies[0] for node in graph.nodes if node.bodies and node.op in CALLS)
        count[graph] = len(graph.nodes) + sum(count[body] for body in inlined)
        budget.require_nodes(count[graph], f"inlining the calls of {graph.name}", limit)


class _Expansion:
    """One graph being copied with its calls inlined; ``became`` maps the graphs that it calls to their primitive graphs."""

    def __init__(self, module: Module, graph: Graph, became: dict[Graph, Graph], keep: Collection[str] = ()) -> None:
        self.module = module
        self.keep = keep
        self.graph = graph
        self.became = became
        self.made = Graph(graph.name, loc=graph.loc, notes=dict(graph.notes))
        self.builder = Builder(self.made)

    def run(self) -> Graph:
        self.made.params = [self._param(p) for p in self.graph.params]
        root = self._copy(self.graph, {p.index: parts_of(self.builder, made) for p, made in zip(self.graph.params, self.made.params)})
        self.builder.at = (self.graph.result(),)
        self.made.root = as_node(self.builder, root)
        return self.made

    def _param(self, param: Node) -> Node:
        self.builder.at = (param,)
        return self.builder.add(param.op, (), param.attrs, param.type, name=param.name)

    def _copy(self, graph: Graph, values: dict[int, Value]) -> Value:
        """Append the nodes of ``graph``; ``values`` holds its parameters by index. Callees come first, so calls are one level deep."""
        for node in _needed(graph):
            if node.index in values:
                continue
            operands = [values[o.index] for o in node.operands]
            if node.bodies and node.op in CALLS and len(operands) == len(node.bodies[0].params):
                _require_sound(node, node)
            if node.bodies and node.op in INLINED:
                values[node.index] = self._inlined(node.bodies[0], operands)
            elif (late := _bound_late(node)) is not None:
                done = node.op is hlo.async_done
                values[node.index] = self._inlined(late[0].bodies[0], [values[o.index] for o in late[1]]) if done else []
            elif node.bodies and node.op is hlo.async_start:
                values[node.index] = [operands, self._inlined(node.bodies[0], operands)]
            else:
                values[node.index] = self._value(node, operands)
        return values[graph.result().index]

    def _inlined(self, written: Graph, operands: list[Value]) -> Value:
        body = self.became[written]
        if len(operands) != len(body.params):
            raise UserError(f"{written.name} takes {len(body.params)} operands and is called with {len(operands)} in {self.graph.name}",
                            "irscope check FILE names the place")
        values = {p.index: value for p, value in zip(body.params, operands, strict=True)}
        for node in _needed(body):
            if node.index not in values:
                values[node.index] = self._value(node, [values[o.index] for o in node.operands])
        return values[body.result().index]

    def _value(self, node: Node, operands: Sequence[Value]) -> Value:
        """The expansion of a node that calls nothing."""
        op = node.op
        self.builder.at = node.origin or (node,)
        if op is hlo.tuple:
            return list(operands)
        if op in STRUCTURAL:
            _require_sound(node, node.origin[0] if node.origin else node)
        if op is hlo.get_tuple_element:
            whole, index = operands[0], GetTupleElement.of(node).index
            if isinstance(whole, list):
                return whole[index]
            if whole.op is hlo.tuple:
                return parts_of(self.builder, whole.operands[index])
        if op in IDENTITIES and op.name not in self.keep and operands:
            return operands[0]
        if op is hlo.bitcast:
            return as_movement(self.builder, node, as_node(self.builder, operands[0]))
        if op is hlo.copy_start:
            return [operands[0], operands[0], self._zero(node)]
        if op in DONE and isinstance(operands[0], list):
            return operands[0][0 if op is hlo.copy_done else 1]
        if op in STARTED:
            return self._started(node, operands)
        if op is hlo.constant and isinstance(node.type, TupleType):
            return self._constant_tuple(node.type, Constant.of(node).literal, node)
        return self._plain(node, operands)

    def _plain(self, node: Node, operands: Sequence[Value]) -> Value:
        nodes = [as_node(self.builder, operand) for operand in operands]
        bodies = [self.became.get(body, body) for body in node.bodies]
        return parts_of(self.builder, self.builder.copy(node, nodes, bodies=bodies))

    def _started(self, node: Node, operands: Sequence[Value]) -> Value:
        """``all-gather-start`` has the type (operand, result, context...); the operator that it starts has the result's."""
        op = STARTED[node.op]
        nodes = [as_node(self.builder, operand) for operand in operands]
        bodies = [self.became.get(body, body) for body in node.bodies]
        if node.op is hlo.all_reduce_start:
            return self.builder.add(op, nodes, node.attrs, node.type, bodies, node.name)
        if not isinstance(node.type, TupleType) or len(node.type.elements) < 2:
            raise UserError(f"{node.op.name} returns its operand and its result, but %{node.name} is declared {node.type}",
                            "irscope check FILE names the place")
        done = self.builder.add(op, nodes, node.attrs, node.type.elements[1], bodies, node.name)
        alone = len(operands) == 1 or moves_slices(node)
        return [operands[0] if alone else list(operands), done, *(self._zero(node) for _ in node.type.elements[2:])]

    def _zero(self, node: Node) -> Node:
        """The context of an asynchronous copy: a scalar that nothing reads."""
        type = tensor("u32")
        attrs = {"literal": Literal.of(np.zeros((), np.uint32), type)}
        return self.builder.add(hlo.constant, (), attrs, type, name=node.name + ".context")

    def _constant_tuple(self, type: TupleType, literal: Literal, node: Node) -> Value:
        """A tuple constant as constants of its elements. The text of the value is not parsed until one of them is needed."""
        values: list[Value] = []
        for i, element in enumerate(type.elements):
            part = Literal(element, elided=literal.elided, parse=None if literal.elided else lambda _, i=i: literal.value()[i])  # type: ignore[misc]
            if isinstance(element, TupleType):
                values.append(self._constant_tuple(element, part, node))
            else:
                values.append(self.builder.add(node.op, (), {**node.attrs, "literal": part}, element, name=f"{node.name}.{i}"))
        return values


def _bound_late(node: Node) -> tuple[Node, list[Node]] | None:
    """The ``async-start`` of a node in a chain, and the operands bound so far, where the start does not bind all of them.

        start = async-start(), calls=add        update = async-update(start, x)        done = async-done(update, y)
    """
    bound: list[Node] = []
    while node.op in UPDATES and node.operands:
        bound[:0] = node.operands[1:]
        node = node.operands[0]
    if node.op is not hlo.async_start or not node.bodies or len(node.operands) >= len(node.bodies[0].params):
        return None
    return node, [*node.operands, *bound]


def _require_sound(node: Node, written: Node) -> None:
    """Expansion relies on type inference. Raises UserError where the types in the text do not fit their operator."""
    try:
        inferred = node.op.infer(node) if node.op.infer is not None else node.type
    except TypeFault as fault:
        raise UserError(f"%{written.name}: {fault.message}", fault.help) from None
    if node.type is not UNKNOWN and not fits(node.type, inferred, any_precision=True):
        raise UserError(f"%{written.name} is declared {node.type}, but {node.op.name} returns {inferred}",
                        f"declare {inferred}, or fix the operands")


def _is_primitive(graph: Graph, became: dict[Graph, Graph]) -> bool:
    """Whether expansion would leave the graph unchanged."""
    for node in graph.nodes:
        if node.op in TAKEN_APART or node.op.expand is not None or isinstance(node.type, TupleType):
            return False
        if node.bodies and any(became.get(body) is not body for body in node.bodies):
            return False
    return all(live(graph))


def _needed(graph: Graph) -> list[Node]:
    alive = live(graph)
    return [node for node in graph.nodes if alive[node.index]]


def _expand_composites(module: Module, graph: Graph) -> Graph:
    """Replace composites by their expansions up to a fixpoint, and remove the nodes that this leaves unused."""
    for _ in range(8):
        if not any(node.op.expand for node in graph.nodes):
            break
        changed = False

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            nonlocal changed
            if node.op.expand is None:
                return None
            written = node.origin[0] if node.origin else node
            _require_sound(node, written)
            builder.at = node.origin or (node,)
            became = node.op.expand(builder, node, operands, module.raw(written))
            assert became is None or isinstance(became, Node)
            changed = changed or became is not None
            return became
        graph = see_through(rewrite(graph, rule), graph)
        if not changed:
            break
        graph = _Expansion(module, graph, {}).run()
    return see_through(rewrite(graph, lambda builder, node, operands: None), graph) if not all(live(graph)) else graph
