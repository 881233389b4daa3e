"""How coarsely a result was rounded on its way: what narrow floats in between leave of its digits."""
from __future__ import annotations

import re

from irscope.graph import DType, Graph, Module, Node, TensorType, callees_first

MANTISSA = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}
"""Bits of the fraction (IEEE 754; bfloat16 as in Intel's white paper); 8-bit floats and smaller say theirs in the name: ``f8e4m3``."""


def step(dtype: DType) -> float:
    """The distance from 1 to the next larger value of a float type; 0 for other types."""
    if not dtype.is_float:
        return 0.0
    named = re.search(r"m(\d)", dtype.name)
    return 2.0 ** -(MANTISSA.get(dtype.name) or (int(named[1]) if named else 0))


def result_steps(module: Module) -> list[float]:
    """For each output, flattened, the step of the coarsest float type that a computed value on its way has.

    Two orders of the same sum differ in their last bits; where such a sum is rounded to a narrow type, they may end a whole step apart.
    """
    whole: dict[Graph, float] = {}
    steps: list[float] = []
    for graph in [*callees_first(module, module.main()), module.main()]:
        steps = _steps(graph, whole)
        whole[graph] = max(steps, default=0.0)
    root = module.main().result()
    outputs = root.operands if root.op.name == "tuple" else (root,)
    return [steps[node.index] for node in outputs for _ in node.type.leaves()]


def _steps(graph: Graph, whole: dict[Graph, float]) -> list[float]:
    """For each node, by index, the coarsest step of it and what it is computed from; a called graph counts as a whole."""
    steps: list[float] = []
    for node in graph.nodes:
        before = [steps[o.index] for o in node.operands] + [whole[body] for body in node.bodies]
        steps.append(max(before + [_own(node)], default=0.0))
    return steps


def _own(node: Node) -> float:
    """Inputs and constants are given, and rounded by nobody."""
    if node.op.name in ("parameter", "constant") or not isinstance(node.type, TensorType):
        return 0.0
    return step(node.type.dtype)
