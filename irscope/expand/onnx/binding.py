"""Binds input types that an ONNX model leaves open: runs the model for them, and takes the types of its values from the run."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from irscope.expand.onnx.interpreter import run_program
from irscope.graph import DynamicDim, Module, Node, TensorType, TupleType, Type, rewrite_module
from irscope.graph.types import Dim
from irscope.ops import hlo
from irscope.source import UserError


def rebound(module: Module, types: Mapping[str, Type]) -> Module:
    """The module whose inputs have these types, by name. Raises UserError for an input whose number of dimensions differs."""
    changed = {p.name: types[p.name] for p in module.main().params if p.name in types and types[p.name] != p.type}
    if not changed:
        return module
    sizes: dict[Dim, int] = {}
    for param in module.main().params:
        new = changed.get(param.name)
        if isinstance(param.type, TensorType) and isinstance(new, TensorType):
            _bind(param, param.type, new, sizes)
    made = rewrite_module(module, lambda builder, node, operands: None, keep_dead=True)
    for graph in made.graphs.values():
        for node in graph.nodes:
            node.type = _closed(node.type, sizes)
    for param in made.main().params:
        param.type = changed.get(param.name, param.type)
    _typed_by_run(made)
    return made


def _bind(param: Node, old: TensorType, new: TensorType, sizes: dict[Dim, int]) -> None:
    """Note the sizes of named dimensions."""
    if old.rank != new.rank:
        raise UserError(f"the input {param.name} is {old}, but {new} is given", "the number of dimensions of an input is fixed")
    pairs = zip(old.shape, new.shape, strict=True)
    sizes.update({before: after for before, after in pairs if isinstance(before, DynamicDim) and before.name and isinstance(after, int)})


def _closed(type: Type, sizes: Mapping[Any, int]) -> Type:
    if isinstance(type, TupleType):
        return TupleType(tuple(_closed(e, sizes) for e in type.elements))
    return TensorType(type.dtype, tuple(sizes.get(d, d) for d in type.shape)) if isinstance(type, TensorType) else type


def _typed_by_run(module: Module) -> None:
    """The types that a run finds, where it runs: nothing changes where sizes are still open or depend on data."""
    found: dict[Node, Type] = {}

    def seen(node: Node, value: Any) -> None:
        if isinstance(value, Node):
            found[node] = value.type
        elif isinstance(value, list) and value and all(isinstance(v, Node) for v in value) and isinstance(node.type, TupleType):
            found[node] = TupleType(tuple(v.type for v in value))
    try:
        run_program(module, partial=True, seen=seen)
    except UserError:
        pass
    for node, type in found.items():
        if node.op is not hlo.parameter:
            node.type = type


def parameter_names(module: Module) -> list[str]:
    """The inputs that are weights: none, as weights are initializers."""
    return []
