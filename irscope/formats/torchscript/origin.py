"""The origin of a graph: traced (one run of the program), scripted (the program itself), or taken from the executor."""
from __future__ import annotations

from irscope.graph import Graph, Module, NamedType, TensorType

CONTROL = frozenset(("prim::If", "prim::Loop", "prim::RaiseException", "aten::__isnot__", "aten::__is__", "prim::unchecked_cast"))
EXECUTED = frozenset(("prim::TypeCheck", "prim::DifferentiableGraph", "prim::TensorExprGroup", "prim::BailOut", "prim::profile"))


def origin(module: Module) -> str:
    """``traced``, ``scripted``, ``executed`` (with guards and groups of the profiling executor), or empty where the text does not show it.

    A trace has the types of its inputs and no branches; torch.jit.script has no types and keeps source columns.
    """
    main = module.main()
    names = {node.op.name for graph in module.graphs.values() for node in graph.nodes}
    if names & EXECUTED:
        return "executed"
    if names & CONTROL:
        return "scripted"
    values = [p for p in main.params if not (isinstance(p.type, NamedType) and "__torch__" in p.type.name)]
    if any(isinstance(p.type, TensorType) and p.type.is_static for p in values):
        return "traced"
    columns = [line[0].column for node in main.nodes if not node.synthetic and (line := module.call_stack(node))]
    if columns:
        return "scripted" if any(columns) else "traced"
    if any(module.scope(node) for node in main.nodes if not node.synthetic):
        return "traced"
    return "scripted" if any(p.name.rpartition(".")[2].isdecimal() for p in values) else ""


def is_function(graph: Graph) -> bool:
    """Whether a graph takes no object: the trace or script of a plain function."""
    return not any(isinstance(p.type, NamedType) and "__torch__" in p.type.name for p in graph.params)
