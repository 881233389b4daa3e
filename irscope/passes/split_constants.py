"""Separates values that depend only on constants from the rest of the program, to compute them once when the program is loaded."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irscope.analysis.constant import computed_early
from irscope.graph import Builder, Graph, Kind, Module, Node, TensorType, TupleType, reachable, rewrite, see_through
from irscope.graph.rewrite import Rule, copy_node
from irscope.lazy import Array, np
from irscope.ops import hlo
from irscope.ops.attributes import Constant, Slice, Transpose
from irscope.ops.attrs import Literal
from irscope.passes.algebra.simplifier import dims_of
from irscope.passes.visitor import without_dead

REPEATS = hlo.named("broadcast iota constant")
"""Operators that make more bytes than they read: they stay where they are used."""
MOVES = hlo.named("reshape transpose slice")
HEAVY = 12
"""The weight of an operator from which on one number is work enough."""
SMALL_WORK = 12
"""Simple operations an element on constants of one element that are not worth a program of their own."""


@dataclass(slots=True)
class Split:
    """``early`` computes, without inputs, the values of ``nodes`` (of the entry of ``module``); None if there is nothing to compute."""

    module: Module
    early: Module | None
    nodes: list[Node]

    def with_values(self, values: Sequence[Array]) -> Module:
        """The module with these values in place of the nodes that ``early`` computes."""
        if not self.nodes:
            return self.module
        found = {node.index: value for node, value in zip(self.nodes, values, strict=True)}

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            if node.index not in found:
                return None
            return builder.add(hlo.constant, (), {"literal": Literal.of(found[node.index], node.type)}, node.type, name=node.name)
        return _with_main(self.module, rule)


def _with_main(module: Module, rule: Rule) -> Module:
    """The module with its entry rewritten by a rule, without dead nodes."""
    main, made = module.main(), module.derived()
    made.graphs = {**module.graphs, module.entry: without_dead(see_through(rewrite(main, rule), main))}
    return made


def split_constants(module: Module) -> Split:
    """Find the values that the entry computes from constants alone and that are worth computing early.

    Reshapes, transposes and slices of constants are applied at once. Values that are costly, or may not terminate, are left to the run.
    """
    module = _moved(module)
    graph = module.main()
    known = computed_early(module, graph)
    work = _work(graph, known)
    frontier = [node for node in _frontier(graph, known) if work[node.index] >= SMALL_WORK]
    if not frontier:
        return Split(module, None, [])
    return Split(module, _early(module, graph, frontier), frontier)


def _frontier(graph: Graph, known: list[bool]) -> list[Node]:
    """The known tensors that an unknown node reads, without the broadcasts between."""
    wanted: dict[int, Node] = {}
    stack = [o for node in graph.nodes if not known[node.index] for o in node.operands if known[o.index]]
    if graph.root is not None and known[graph.root.index]:
        stack.append(graph.root)
    while stack:
        node = stack.pop()
        if node.op in REPEATS or node.op is hlo.tuple:
            stack.extend(node.operands)
        elif isinstance(node.type, TensorType):
            wanted[node.index] = node
    return [wanted[i] for i in sorted(wanted)]


def _work(graph: Graph, known: list[bool]) -> list[int]:
    """An estimate of the work to compute each known node; arithmetic on whole arrays always counts as enough."""
    work = [0] * len(graph.nodes)
    for node in graph.nodes:
        if not known[node.index]:
            continue
        total = sum(work[o.index] for o in node.operands)
        if node.op.scalar is not None:
            heavy = node.op.weight >= HEAVY
            arrays = any(isinstance(o.type, TensorType) and o.type.elements > 1 and o.op not in REPEATS for o in node.operands)
            total += SMALL_WORK if heavy or arrays or _array_behind(node) else 1
        elif node.op not in REPEATS and node.op.kind not in (Kind.TUPLE, Kind.LEAF):
            total += SMALL_WORK if node.op not in MOVES or _array_behind(node) else 0
        work[node.index] = min(total, 1000 * SMALL_WORK)
    return work


def _array_behind(node: Node) -> bool:
    """Whether an operand is an array in memory, or a broadcast of one."""
    for operand in node.operands:
        while operand.op is hlo.broadcast:
            operand = operand.operands[0]
        if operand.op is hlo.constant and isinstance(operand.type, TensorType) and operand.type.elements > 1:
            return True
    return False


def _early(module: Module, graph: Graph, frontier: list[Node]) -> Module:
    """A module that computes these nodes and has no inputs."""
    needed = reachable(graph, frontier)
    made = Graph(f"{graph.name}.constants", loc=graph.loc)
    builder = Builder(made)
    new: dict[int, Node] = {}
    for node in graph.nodes:
        if needed[node.index]:
            new[node.index] = copy_node(builder, node, [new[o.index] for o in node.operands])
            new[node.index].origin = node.origin or (node,)
    made.root = builder.add(hlo.tuple, [new[n.index] for n in frontier], type=TupleType(tuple(n.type for n in frontier)))
    early = module.derived(f"{module.name}.constants")
    early.entry = made.name
    early.graphs = {made.name: made}
    return early


def _moved(module: Module) -> Module:
    """The module with reshapes, transposes and slices of constants applied to the arrays; the same module if there are none."""
    if not any(n.op in MOVES and (n.operands[0].op in MOVES or n.operands[0].op is hlo.constant) for n in module.main().nodes):
        return module
    changed = False

    def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        nonlocal changed
        literal = Constant.of(operands[0]).known if node.op in MOVES and operands[0].op is hlo.constant else None
        if literal is None or not isinstance(node.type, TensorType) or node.type.elements == 1:
            return None
        changed = True
        value = _move(node, literal.value())
        return builder.add(hlo.constant, (), {"literal": Literal.of(value, node.type)}, node.type, name=node.name)
    made = _with_main(module, rule)
    return made if changed else module


def _move(node: Node, array: Array) -> Array:
    if node.op is hlo.reshape:
        return array.reshape(dims_of(node))
    if node.op is hlo.transpose:
        return np.ascontiguousarray(array.transpose(Transpose.of(node).dimensions))
    return np.ascontiguousarray(array[tuple(slice(a, b, c) for a, b, c in Slice.of(node).slice)])
