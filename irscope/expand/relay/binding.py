"""Binds input types that a Relay text leaves open or the user overrides: infers the types downstream again and solves for weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.formats.relay import structure
from irscope.formats.relay.attributes import Convolution, MatMul
from irscope.formats.relay.filling import fill_types
from irscope.formats.relay.operators import declared
from irscope.graph import UNKNOWN, FunctionType, Graph, Module, Node, TensorType, Type, callees_first, rewrite_module
from irscope.ops import TypeFault, hlo
from irscope.ops.sets import relay
from irscope.source import UserError

STRUCTURE = hlo.named("tuple get-tuple-element") | {structure.FUNCTION, structure.CALL, structure.IF, structure.MATCH}
DENSE, MATMUL = relay("nn.dense"), relay("nn.matmul")
CONVOLUTIONS = relay("nn.conv2d nn.conv2d_backward_weight nn.conv2d_relu nn.conv2d_transpose")


def rebound(module: Module, types: Mapping[str, Type]) -> Module:
    """The module whose entry takes these types, by name of parameter.

    Infers open types again; where a type that the text states in full changes, infers all types, and drops what the text claims
    of results. Raises UserError for an operator that does not take the new types.
    """
    changed = {p.name: types[p.name] for p in module.main().params if p.name in types and types[p.name] != p.type}
    if not changed:
        return module
    made = rewrite_module(module, lambda builder, node, operands: None, keep_dead=True)
    main = made.main()
    everything = any(_whole(p.type) for p in main.params if p.name in changed)
    for graph in callees_first(made):
        _open(graph, everything, graph is main)
    for param in main.params:
        param.type = changed.get(param.name, param.type)
    fill_types(made)
    for graph in callees_first(made):
        for node in graph.nodes:
            _require_fitting(made, node)
    return made


def _open(graph: Graph, everything: bool, is_main: bool) -> None:
    """Clear the types that may change."""
    for node in graph.nodes:
        op = node.op
        inferred = op in STRUCTURE or (not op.is_primitive and declared(op.name) is not None)
        if (not is_main if op is hlo.parameter else inferred) and (everything or not _whole(node.type)):
            node.type = UNKNOWN
    result = graph.notes.get("result")
    if isinstance(result, Type) and (everything or not _whole(result)):
        graph.notes = {key: value for key, value in graph.notes.items() if key != "result"}


def _whole(type: Type) -> bool:
    """Whether a type has every dimension."""
    if isinstance(type, FunctionType):
        return _whole(type.result) and all(_whole(p) for p in type.params)
    return type is not UNKNOWN and all(isinstance(leaf, TensorType) and leaf.is_static for leaf in type.leaves())


def _require_fitting(module: Module, node: Node) -> None:
    """Raise UserError for a node that does not take the types of its operands."""
    if node.type is not UNKNOWN or node.op.infer is None or any(o.type is UNKNOWN for o in node.operands):
        return
    try:
        node.op.infer(node)
    except TypeFault as fault:
        where = f" (line {module.source.place(node.loc).line})" if node.loc >= 0 and module.source.text else ""
        raise UserError(f"%{node.name} does not take the bound shapes: {fault.message}{where}", fault.help) from None


def unsolved(module: Module, param: Node, name: str) -> UserError:
    """The error for a parameter whose type cannot be inferred: the operator that reads it, and the option that sets it."""
    readers = [(node, node.operands.index(param)) for node in module.main().nodes if param in node.operands]
    plain = f"input %{name} has no type in the text"
    if not readers:
        return UserError(plain, f"give it by --inputs, or --shape {name}=1,3,224,224 and --dtype {name}=f32")
    node, at = readers[0]
    others = [o.type for i, o in enumerate(node.operands) if i != at and isinstance(o.type, TensorType)]
    beside = f" with {others[0]}" if others else ""
    line = f" in line {module.source.place(node.loc).line}" if node.loc >= 0 and module.source.text else ""
    return UserError(f"{plain}, and none follows: {node.op.name}{line} reads it{beside}", _advice(node, at, name, others))


def _advice(node: Node, at: int, name: str, others: Sequence[TensorType]) -> str:
    """The option that sets the type, with the dimensions named where the operator defines them."""
    data = others[0] if others else None
    dims = ""
    if data is not None and at == 1 and data.rank:
        if node.op in DENSE:
            dims = f"UNITS,{data.shape[-1]}"
        elif node.op in MATMUL:
            dims = f"UNITS,{data.shape[-1]}" if MatMul.of(node).transpose_b else f"{data.shape[-1]},UNITS"
        elif node.op in CONVOLUTIONS and data.rank == 4 and not Convolution.of(node).kernel_layout:
            dims = f"CHANNELS,{data.shape[1]},HEIGHT,WIDTH"
    if not dims and data is not None and len(node.operands) == 2 and data.is_static:
        dims = ",".join(map(str, data.shape))
    how = f"give it by --inputs, or --shape {name}={dims or '1,3,224,224'}"
    return how + f" and --dtype {name}=f32 (float32 is taken where no --dtype is given)"
