"""Specialises a module to the sizes of its inputs, where the text computes sizes from them.

    x = f32[?,2] parameter(0)                                   x = f32[3,2] parameter(0)
    n = s32[] get-dimension-size(x), dimensions={0}      ->     ROOT y = f32[6] reshape(x)
    y = f32[?] dynamic-reshape-to(x, multiply(n, 2))

The sizes of inputs make the results of ``get-dimension-size`` constants; what is computed from constants is evaluated; an operator whose
sizes are operands becomes the static one; and all types are inferred again. A constant that a loop carries unchanged is one inside it.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.expand.expand import inline
from irscope.graph import UNKNOWN, Builder, Effect, Graph, Module, Node, TensorType, Type, live
from irscope.graph.dtypes import S32
from irscope.graph.rewrite import copy_node
from irscope.lazy import Array, np
from irscope.ops import TypeFault, hlo
from irscope.ops.attributes import Constant, DimensionSize, GetTupleElement
from irscope.ops.attrs import Literal
from irscope.source import UserError

MOST = 1024
"""Values of more elements are not evaluated: they are no sizes."""
Known = Mapping[int, Literal]
"""The parts of a state that are constants, by number."""


def has_open_sizes(module: Module) -> bool:
    """Whether a module of primitives leaves sizes open, so that only its inputs determine them."""
    if not module.dialect.primitive:
        return False
    return any(_is_open(node.type) for graph in module.graphs.values() for node in graph.nodes)


def specialised(module: Module, types: Mapping[int, Type]) -> Module:
    """The module with inputs of these types, by the index of their parameter. Raises UserError where a size stays unknown."""
    module = inline(module)
    main = module.main()
    made = module.derived()
    wanted = [types.get(number, param.type) for number, param in enumerate(main.params)]
    for param, type in zip(main.params, wanted, strict=True):
        if _is_open(type):
            sizes = ",".join(str(n) if isinstance(n, int) else "8" for n in type.shape) if isinstance(type, TensorType) else "8"
            raise UserError(f"input {param.name} is {type}: its sizes are open", f"give an array, or --shape {param.name}={sizes}")
    try:
        graph = _Specialisation(module, made).graph(main, wanted, {})
    except TypeFault as fault:
        raise UserError(f"the program does not take these shapes: {fault.message}", fault.help) from None
    made.graphs[graph.name] = graph
    return made


def _is_open(type: Type) -> bool:
    arrays = (leaf for leaf in type.leaves() if isinstance(leaf, TensorType))
    return any(not isinstance(size, int) and size.bound is None for array in arrays for size in array.shape)


class _Specialisation:
    """One module being specialised; the graphs of loops and branches are added to ``made``."""

    def __init__(self, module: Module, made: Module) -> None:
        self.module, self.made = module, made

    def graph(self, graph: Graph, types: Sequence[Type], known: Known) -> Graph:
        """A graph for parameters of these types; ``known`` are the constant parts of its one parameter, or the one parameter as part 0."""
        made = Graph(graph.name, loc=graph.loc, notes=dict(graph.notes))
        builder = Builder(made)
        new: list[Node | None] = [None] * len(graph.nodes)
        for param, type in zip(graph.params, types, strict=True):
            copied = copy_node(builder, param, ())
            copied.type = type
            made.params.append(copied)
            new[param.index] = copied
        alive = live(graph)
        for node in graph.nodes:
            if new[node.index] is None and alive[node.index]:
                operands = [_made(new[o.index]) for o in node.operands]
                builder.at = (node,)
                new[node.index] = self._node(builder, node, operands, known if len(graph.params) == 1 else {})
        made.root = _made(new[graph.result().index])
        return made

    def _node(self, builder: Builder, node: Node, operands: list[Node], known: Known) -> Node:
        op = node.op
        if op is hlo.get_tuple_element and operands[0].op is hlo.parameter and (index := GetTupleElement.of(node).index) in known:
            return _constant(builder, known[index])
        if op is hlo.get_dimension_size and isinstance(operands[0].type, TensorType) and operands[0].type.is_static:
            size = operands[0].type.shape[DimensionSize.of(node).axis]
            return _constant(builder, Literal.of(np.asarray(size, np.int32), TensorType(S32, ())))
        if op is hlo.constant:
            return copy_node(builder, node, operands)
        value = _evaluated(node, operands)
        if value is not None:
            return _constant(builder, value)
        if node.bodies and op in (hlo.while_, hlo.conditional):
            return self._control(builder, node, operands)
        if op.expand is not None and _is_open(node.type):
            became = op.expand(builder, node, operands, {})
            if isinstance(became, Node):
                return became
        return _retyped(builder, node, operands)

    def _control(self, builder: Builder, node: Node, operands: list[Node]) -> Node:
        bodies = []
        for number, body in enumerate(node.bodies):
            given = operands[0] if node.op is hlo.while_ else operands[number + 1]
            kept = _kept(node.bodies[1]) if node.op is hlo.while_ else None
            known = {i: literal for i, literal in _parts(given).items() if kept is None or i in kept}
            graph = self.graph(body, [given.type], known)
            graph.name = self.made.fresh_name(graph.name)
            self.made.graphs[graph.name] = graph
            bodies.append(graph)
        made = copy_node(builder, node, operands, bodies)
        made.type = operands[0].type if node.op is hlo.while_ else bodies[0].result().type
        return made


def _retyped(builder: Builder, node: Node, operands: list[Node]) -> Node:
    made = copy_node(builder, node, operands)
    moved = any(new.type is not old.type for new, old in zip(operands, node.operands, strict=True))
    if node.op.infer is not None and (moved or _is_open(node.type)):
        declared = made.type
        made.type = node.op.infer(made)
        if isinstance(made.type, TensorType) and isinstance(declared, TensorType):
            made.type = made.type.with_dtype(declared.dtype)
    if _is_open(made.type) or made.type is UNKNOWN:
        raise TypeFault(f"the sizes of %{node.name}, {made.type}, do not follow from those of the inputs")
    return made


def _evaluated(node: Node, operands: Sequence[Node]) -> Literal | None:
    """The value of a small node whose operands are constants."""
    op = node.op
    if not operands or op.effect is not Effect.PURE or op.reference is None or node.bodies or not isinstance(node.type, TensorType):
        return None
    if not node.type.dtype.is_integer and node.type.dtype.kind != "pred":
        return None
    values = [_value(operand) for operand in operands]
    arrays = [value for value in values if value is not None]
    if len(arrays) != len(values):
        return None
    like = Node(op, node.name, node.type, tuple(operands), node.attrs)
    try:
        type = op.infer(like) if op.infer is not None else node.type
    except TypeFault:
        return None
    if not isinstance(type, TensorType) or not type.is_static or type.elements > MOST:
        return None
    like.type = type
    with np.errstate(all="ignore"):
        found = np.asarray(op.reference(_no_run, like, *arrays))
    return Literal.of(found.astype(type.dtype.numpy()).reshape(type.dims()), type)


def _no_run(graph: Graph, arrays: Sequence[Array]) -> Array:
    raise TypeFault(f"{graph.name} is not evaluated")


def _value(node: Node) -> Array | None:
    literal = Constant.of(node).known if node.op is hlo.constant else None
    return None if literal is None or not isinstance(node.type, TensorType) or node.type.elements > MOST else literal.value()


def _parts(node: Node) -> dict[int, Literal]:
    """The constants among the parts of a tuple, by number."""
    if node.op is not hlo.tuple:
        return {}
    found = {i: Constant.of(part).known for i, part in enumerate(node.operands) if part.op is hlo.constant and not _is_large(part)}
    return {i: literal for i, literal in found.items() if literal is not None}


def _is_large(node: Node) -> bool:
    return not isinstance(node.type, TensorType) or node.type.elements > MOST


def _kept(body: Graph) -> set[int]:
    """The parts of its state that the body of a loop returns as they came."""
    root = body.result()
    if root.op is not hlo.tuple:
        return set()
    return {i for i, part in enumerate(root.operands) if part.op is hlo.get_tuple_element and part.operands[0] is body.params[0]
            and GetTupleElement.of(part).index == i}


def _constant(builder: Builder, literal: Literal) -> Node:
    return builder.add(hlo.constant, (), {"literal": literal}, literal.type)


def _made(node: Node | None) -> Node:
    assert node is not None, "operands stand before their users"
    return node
