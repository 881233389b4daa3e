"""Forward and backward graphs of a training step, by the names that AOTAutograd gives their inputs."""
from __future__ import annotations

from irscope.graph import Graph, Node

OF_THE_PROGRAM = "primals_"
"""The prefix of the inputs of the traced program."""
OF_RESULTS = "tangents_"
"""The prefix of the gradients of its results, which only a backward graph has."""
KEPT = (OF_THE_PROGRAM, OF_RESULTS, "arg", "fwd_rng_state", "bwd_rng_state")
"""The prefixes of inputs that belong to the caller (``is_nonfreeable_buffers`` of utils.py)."""


def is_for_training(graph: Graph) -> bool:
    """Whether a graph is the forward or the backward graph of a training step."""
    return any(node.name.startswith((OF_THE_PROGRAM, OF_RESULTS)) for node in graph.params)


def saved_inputs(graph: Graph) -> list[Node]:
    """The inputs of a backward graph that the forward graph saved for it alone; none of any other graph."""
    if not any(node.name.startswith(OF_RESULTS) for node in graph.params):
        return []
    return [node for node in graph.params if not node.name.startswith(KEPT)]
