"""Binds what the text leaves open: shapes and element types of inputs, fixed weights, elided constants."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.expand.programs import inferred, torchscript
from irscope.expand.specialise import has_open_sizes, specialised
from irscope.expand.symbolic_sizes import check_sizes
from irscope.graph import DTYPES, UNKNOWN, Builder, Graph, Module, Node, TensorType, Type, Typing, rewrite
from irscope.graph.dtypes import F32
from irscope.graph.rewrite import copy_node
from irscope.lazy import Array
from irscope.ops import TypeFault, hlo
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.source import UserError, did_you_mean


def bind_types(module: Module, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str] | None = None) -> Module:
    """The module with inputs of the given shapes and element types, with all types downstream inferred again.

    Raises UserError for a name that is not an input, and where an operator does not take the new types.
    """
    dtypes = dtypes or {}
    if module.dialect.typing is Typing.EXECUTED and not module.is_primitive and (shapes or dtypes):
        check_sizes(module, shapes)
        return torchscript.with_shapes(module, shapes, dtypes)
    main = module.main()
    names = {p.name: p for p in main.params} | {f"arg{i}": p for i, p in enumerate(main.params)}
    for name in [*shapes, *dtypes]:
        if name not in names:
            known = ", ".join(p.name for p in main.params)
            raise UserError(f"there is no input {name!r}", did_you_mean(name, names) or f"the inputs are {known}")
    if not shapes and not dtypes:
        return module
    bound: dict[int, Type] = {}
    for name in dict.fromkeys([*shapes, *dtypes]):
        param = names[name]
        old = bound.get(param.index, param.type)
        if old is UNKNOWN and name in shapes and module.dialect.typing is Typing.INFERRED:
            old = TensorType(F32, ())  # a program from a lesson has no types
        if not isinstance(old, TensorType):
            raise UserError(f"input {name} is {old}, not a tensor: --shape cannot bind it")
        bound[param.index] = TensorType(DTYPES[dtypes[name]] if name in dtypes else old.dtype, shapes.get(name, old.shape))
    if has_open_sizes(module) and not dtypes:
        return specialised(module, {number: bound[p.index] for number, p in enumerate(main.params) if p.index in bound})
    if module.dialect.typing is Typing.INFERRED and not module.is_primitive:
        return inferred(module).rebound(module, {p.name: bound[p.index] for p in main.params if p.index in bound})
    made = module.derived()
    retyped = _retyped(main, bound)
    made.graphs = {name: retyped if graph is main else graph for name, graph in module.graphs.items()}
    return made


def bind_inputs(module: Module, values: Mapping[int, Array]) -> Module:
    """The module with the entry parameters of these numbers replaced by constants, for weights that stay fixed.

    The remaining parameters keep their ``number`` and their order.
    """
    if not values:
        return module
    main = module.main()
    fixed = {main.params[number].index: value for number, value in values.items()}
    made_graph = Graph(main.name, loc=main.loc, notes=dict(main.notes))
    builder = Builder(made_graph)
    new: list[Node] = []
    for node in main.nodes:
        if node.index in fixed:
            builder.at = node.origin or (node,)
            made = builder.add(hlo.constant, (), {"literal": Literal.of(fixed[node.index], node.type)}, node.type, name=node.name)
        else:
            made = copy_node(builder, node, [new[o.index] for o in node.operands])
            made.origin = node.origin or (node,)
        new.append(made)
    made_graph.params = [new[p.index] for p in main.params if p.index not in fixed]
    made_graph.root = new[main.result().index]
    made_module = module.derived()
    made_module.graphs = {**module.graphs, module.entry: made_graph}
    return made_module


def bind_constants(module: Module, values: Mapping[str, Array]) -> Module:
    """The module with values for constants that the text elides, by name. Literals are shared, so every graph sees them."""
    for graph in module.graphs.values():
        for node in graph.nodes:
            if node.op is hlo.constant and node.name in values:
                node.attrs = {**node.attrs, "literal": Literal.of(values[node.name], Constant.of(node).literal.type)}
    return module


def elided_constants(module: Module) -> list[Node]:
    """The constants, in every graph, whose values the text omits."""
    constants = (node for graph in module.graphs.values() for node in graph.nodes if node.op is hlo.constant)
    return [node for node in constants if Constant.of(node).literal.elided]


def _retyped(graph: Graph, bound: Mapping[int, Type]) -> Graph:
    made = rewrite(graph, lambda builder, node, operands: None, keep_dead=True)
    for node, copied in zip(graph.nodes, made.nodes, strict=True):
        if node.index in bound:
            copied.type = bound[node.index]
        elif node.op.infer is not None and any(a.type is not b.type for a, b in zip(copied.operands, node.operands)):
            copied.type = _carried(node, copied)
            try:
                copied.type = node.op.infer(copied)
            except TypeFault as fault:
                raise UserError(f"%{node.name} does not take the bound shapes: {fault.message}", fault.help) from None
    made.root = made.nodes[graph.result().index]
    return made


def _carried(node: Node, copied: Node) -> Type:
    """The declared type, with the new element type of the first operand where it had the old one.

    Inference reads it: a broadcast, for example, takes its shape from the declared type.
    """
    declared, before, after = node.type, node.operands[0].type, copied.operands[0].type
    if not (isinstance(declared, TensorType) and isinstance(before, TensorType) and isinstance(after, TensorType)):
        return declared
    return declared.with_dtype(after.dtype) if declared.dtype is before.dtype else declared
