"""Makes a whole module static: adds hidden size scalars to the entry, and passes sizes through loops and branches."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.expand.dynamic.padded_arrays import PaddedArray, Place, Tree, bounded, leaves, places, rebuilt, static_array, static_value
from irscope.expand.dynamic.rules import rule_for
from irscope.expand.dynamic.varying import KEY, Varying
from irscope.expand.dynamic.work import GraphExpansion
from irscope.expand.steps import Steps, drive
from irscope.expand.values import Value, as_node, synthetic_part
from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type, live
from irscope.graph.dtypes import S32
from irscope.graph.walk import callees_first, callees_first_of
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attributes import Constant, CustomCall, GetTupleElement

MAKES_DYNAMIC = hlo.named("set-dimension-size get-dimension-size dynamic-reshape")
STEPS = hlo.named("while conditional")
CALLS = ("PadToStatic", "SliceToDynamic")
SIZE = TensorType(S32, ())


def is_dynamic(module: Module) -> bool:
    """Whether anything that the entry runs has bounded dynamic sizes."""
    return bool(_dynamic_graphs(module))


def pad_dynamic(module: Module) -> Module:
    """The primitive module with static sizes only; the module itself where it has no dynamic ones.

    ``attrs["varying"]`` of the result is a :class:`Varying`: the s32[] parameters and results that follow the arrays. Raises UserError,
    with its place, for an operator that has no meaning for such sizes.
    """
    dynamic = _dynamic_graphs(module)
    return _Program(module, dynamic).run() if dynamic else module


def _dynamic_graphs(module: Module) -> set[Graph]:
    """The graphs of a module that have dynamic sizes, or call a graph that has."""
    found: set[Graph] = set()
    known: dict[int, bool] = {}
    for graph in callees_first(module, module.main()):
        for node in graph.nodes:
            if id(node.type) not in known:
                known[id(node.type)] = any(bounded(t) for t in node.type.leaves())
            if known[id(node.type)] or node.op in MAKES_DYNAMIC or any(b in found for b in node.bodies) \
                    or CustomCall.of(node).custom_call_target in CALLS:
                found.add(graph)
                break
    return found


@dataclass(slots=True)
class _Made:
    """A body under construction: its value is known, its root is not written yet."""

    graph: Graph
    work: GraphExpansion
    value: Tree


class _Program:
    def __init__(self, module: Module, dynamic: set[Graph]) -> None:
        self.module, self.dynamic = module, dynamic
        self.inputs: list[tuple[int, int]] = []

    def run(self) -> Module:
        old = self.module.main()
        main = Graph(old.name, loc=old.loc, notes=dict(old.notes))
        work = GraphExpansion(self.module, main)
        values = {p.index: value for p, value in zip(old.params, self._parameters(work, old), strict=True)}
        result = drive(self._graph(old, values, work))
        work.standing_for(old.result())
        outputs = [(number, d, held.sizes[d]) for number, held in enumerate(_arrays(result)) for d in sorted(held.sizes)]
        if outputs:
            parts = [*(held.node for held in _arrays(result)), *(size for _, _, size in outputs)]
            main.root = work.emit("tuple", parts, type=TupleType(tuple(p.type for p in parts)))
        else:
            main.root = as_node(work.builder, _value(result))
        made = self.module.derived()
        for graph in callees_first_of([main]):
            made.graphs[made.fresh_name(graph.name)] = graph
        made.entry = main.name
        made.attrs[KEY] = Varying(tuple(self.inputs), tuple((number, d) for number, d, _ in outputs))
        return made

    def _parameters(self, work: GraphExpansion, old: Graph) -> list[Tree]:
        """The parameters of the entry, followed by the size of each of their dynamic dimensions."""
        made: list[tuple[Type, list[PaddedArray]]] = []
        for param in old.params:
            work.standing_for(param)
            attrs = {name: value for name, value in param.attrs.items() if name != "number"}
            new = work.builder.param(param.op, static_value(param.type), param.name, attrs)
            made.append((param.type, leaves(work.parts(new))))
        number = 0
        trees: list[Tree] = []
        for (type, held), param in zip(made, old.params, strict=True):
            work.standing_for(param)
            sized: list[PaddedArray] = []
            for one, leaf in zip(held, type.leaves(), strict=True):
                sizes = {}
                for d in bounded(leaf):
                    self.inputs.append((number, d))
                    sizes[d] = work.builder.param(hlo.parameter, SIZE, f"{param.name}.size")
                sized.append(PaddedArray(one.node, sizes))
                number += isinstance(leaf, TensorType)
            trees.append(rebuilt(type, iter(sized)))
        return trees

    # ------------------------------------------------------------------ a graph

    def _graph(self, graph: Graph, values: dict[int, Tree], work: GraphExpansion) -> Steps:
        """The value of a graph whose parameters have these values."""
        alive = live(graph)
        for node in graph.nodes:
            if not alive[node.index] or node.index in values:
                continue
            work.standing_for(node)
            operands = [values[o.index] for o in node.operands]
            if node.op is hlo.tuple:
                values[node.index] = operands
            elif node.op is hlo.get_tuple_element:
                whole = operands[0]
                assert isinstance(whole, list)
                values[node.index] = whole[GetTupleElement.of(node).index]
            elif node.op in STEPS and (any(places(o) for o in operands) or any(b in self.dynamic for b in node.bodies)):
                values[node.index] = yield (self._loop if node.op is hlo.while_ else self._branches)(node, operands, work)
            else:
                values[node.index] = self._node(node, operands, work)
        return values[graph.result().index]

    def _node(self, node: Node, operands: list[Tree], work: GraphExpansion) -> Tree:
        if node.op in MAKES_DYNAMIC or CustomCall.of(node).custom_call_target in CALLS or any(places(o) for o in operands):
            rule = rule_for(node)
            if rule is None or not all(isinstance(o, PaddedArray) for o in operands):
                raise work.refusal(node, f"irscope has no rule for {node.op.name}, XLA none that runs on a CPU")
            return rule(work, node, [o for o in operands if isinstance(o, PaddedArray)])
        if node.op is hlo.constant and bounded(node.type):
            return _constant(work, node)
        nodes = [as_node(work.builder, _value(o)) for o in operands]
        return work.parts(work.copy(node, nodes))

    # ------------------------------------------------------------------ bodies

    def _loop(self, node: Node, operands: list[Tree], work: GraphExpansion) -> Steps:
        """A loop whose state includes sizes; a dimension that its body makes dynamic is dynamic from the start."""
        condition, body = node.bodies
        state = operands[0]
        passed = places(state) | _declared(node.type)
        while True:
            turn: _Made = yield self._body(body, state, passed)
            if places(turn.value) <= passed:
                break
            passed |= places(turn.value)
        test: _Made = yield self._body(condition, state, passed)
        test.graph.root = leaves(test.value)[0].node
        _finish(turn, passed)
        given = _flat(work, state, passed)
        made = work.builder.add(node.op, (given,), node.attrs, given.type, (test.graph, turn.graph), node.name)
        return _unflattened(work, made, node.type, state, passed)

    def _branches(self, node: Node, operands: list[Tree], work: GraphExpansion) -> Steps:
        """A conditional whose branches may return different sizes."""
        chooser, *given = operands
        made: list[_Made] = []
        passed = _declared(node.type)
        for body, operand in zip(node.bodies, given, strict=True):
            branch: _Made = yield self._body(body, operand, places(operand) | _declared(body.params[0].type))
            passed |= places(branch.value)
            made.append(branch)
        for branch in made:
            _finish(branch, passed)
        taken = [_flat(work, o, places(o) | _declared(b.params[0].type)) for o, b in zip(given, node.bodies, strict=True)]
        chosen = leaves(chooser)[0].node
        whole = work.builder.add(node.op, (chosen, *taken), node.attrs, made[0].graph.result().type, [b.graph for b in made], node.name)
        return _unflattened(work, whole, node.type, made[0].value, passed)

    def _body(self, body: Graph, outside: Tree, passed: set[Place]) -> Steps:
        """A body with one flat tuple as its parameter: arrays, then sizes."""
        made = Graph(body.name, loc=body.loc, notes=dict(body.notes))
        work = GraphExpansion(self.module, made)
        param = body.params[0]
        work.standing_for(param)
        types = [held.node.type for held in leaves(outside)] + [SIZE] * len(passed)
        whole = work.builder.param(param.op, TupleType(tuple(types)), param.name)
        inside = _unflattened(work, whole, param.type, outside, passed)
        value: Tree = yield self._graph(body, {param.index: inside}, work)
        work.standing_for(body.result())
        return _Made(made, work, value)


def _declared(type: Type) -> set[Place]:
    """The dimensions that a type declares dynamic."""
    return {(number, d) for number, leaf in enumerate(type.leaves()) for d in bounded(leaf)}


def _constant(work: GraphExpansion, node: Node) -> Tree:
    """A constant of bounded type; one that was bound to a given array may be shorter than the bound."""
    t = static_array(node)
    literal = Constant.of(node).literal
    if literal.elided or np.shape(literal.value()) == t.dims():
        return PaddedArray(work.copy(node, ()))
    given = np.asarray(literal.value())
    whole = np.zeros(t.dims(), given.dtype)
    whole[tuple(slice(0, n) for n in given.shape)] = given
    made = work.array(whole, t.dtype)
    return PaddedArray(made, {d: work.number(given.shape[d]) for d in bounded(node.type) if given.shape[d] != t.dims()[d]})


def _flat(work: GraphExpansion, value: Tree, passed: set[Place]) -> Node:
    """A value as one flat tuple: its arrays, then the sizes that are passed."""
    held = leaves(value)
    parts = [h.node for h in held] + [work.size(held[number], d) for number, d in sorted(passed)]
    return work.emit("tuple", parts, type=TupleType(tuple(p.type for p in parts)))


def _unflattened(work: GraphExpansion, whole: Node, type: Type, like: Tree, passed: set[Place]) -> Tree:
    """The value that a flat tuple holds; ``like`` is a value with as many arrays."""
    n = len(leaves(like))
    sizes: list[dict[int, Node]] = [{} for _ in range(n)]
    for i, (number, d) in enumerate(sorted(passed)):
        sizes[number][d] = synthetic_part(work.builder, whole, n + i)
    return rebuilt(type, iter([PaddedArray(synthetic_part(work.builder, whole, i), sizes[i]) for i in range(n)]))


def _finish(made: _Made, passed: set[Place]) -> None:
    """Write the result of a body: its arrays and the sizes that all iterations or branches pass."""
    made.graph.root = _flat(made.work, made.value, passed)


def _arrays(value: Tree) -> list[PaddedArray]:
    """The arrays of a value, without its tokens."""
    return [held for held in leaves(value) if isinstance(held.node.type, TensorType)]


def _value(tree: Tree) -> Value:
    return tree.node if isinstance(tree, PaddedArray) else [_value(part) for part in tree]
