"""The coarsest rounding of a result: the narrowest float type among the values that it is computed from."""
from __future__ import annotations

from irscope.graph import DType, Graph, Module, Node, TensorType, callees_first
from irscope.ops import hlo

_GIVEN = hlo.named("parameter constant")


def step(dtype: DType) -> float:
    """The distance from 1 to the next larger value of a float type, or of the parts of a complex one; 0 for other types."""
    return 2.0 ** -dtype.fraction if dtype.significand else 0.0


def coarsest_types(module: Module) -> list[DType | None]:
    """For each output, flattened, the coarsest float or complex type of a computed value that it depends on; None where there is none.

    Two orders of the same sum differ in their last bits; where such a sum is rounded to a narrow type, they may differ by a whole step.
    """
    whole: dict[Graph, DType | None] = {}
    found: list[DType | None] = []
    for graph in [*callees_first(module, module.main()), module.main()]:
        found = _coarsest(graph, whole)
        whole[graph] = max(found, key=_step, default=None)
    root = module.main().result()
    outputs = root.operands if root.op is hlo.tuple else (root,)
    return [found[node.index] for node in outputs for _ in node.type.leaves()]


def _coarsest(graph: Graph, whole: dict[Graph, DType | None]) -> list[DType | None]:
    """For each node, by index, the coarsest type of it and what it is computed from; a called graph counts as a whole."""
    found: list[DType | None] = []
    for node in graph.nodes:
        before = [found[o.index] for o in node.operands] + [whole[body] for body in node.bodies]
        found.append(max([_own(node), *before], key=_step))
    return found


def _step(dtype: DType | None) -> float:
    return step(dtype) if dtype is not None else 0.0


def _own(node: Node) -> DType | None:
    """The type of a computed node; None for inputs and constants, which are not rounded."""
    if node.op in _GIVEN or not isinstance(node.type, TensorType):
        return None
    return node.type.dtype if step(node.type.dtype) else None
