"""The higher-order operators of FX graphs, which take graphs: branches, loops, scans and wrappers, by torch's names."""
from __future__ import annotations

from irscope.graph import Effect, Op
from irscope.ops.registry import declare

BATCHES = "torch._functorch.predispatch."
"""The functions of ``vmap`` in graphs before dispatch."""


def _taking_graphs(name: str, doc: str, work: str = "control") -> Op:
    return declare(Op(f"higher_order::{name}", "torchscript", doc, effect=Effect.CONTROL, known=False, work=work))


COND = _taking_graphs("cond", "One of two graphs, by a bool.")
WHILE_LOOP = _taking_graphs("while_loop", "A graph again and again, while another one returns true.")
MAP_IMPL = _taking_graphs("map_impl", "A graph for each row of tensors.")
SCAN = _taking_graphs("scan", "A graph for each row of tensors, with values that it passes on.")
ASSOCIATIVE_SCAN = _taking_graphs("associative_scan", "The running results of a graph of two operands.")
WITH_EFFECTS = _taking_graphs("with_effects", "An operator with effects, in the order of tokens.")
FLEX_ATTENTION = _taking_graphs("flex_attention", "Attention whose scores a graph changes.", "contraction")
FLAT_APPLY = _taking_graphs("flat_apply", "A function of Python, of flat operands.")
OUT_DTYPE = _taking_graphs("out_dtype", "An operator whose result has another element type.", "elementwise")
WRAPPERS = {name: _taking_graphs(name, doc) for name, doc in {
    "wrap": "A graph.", "wrap_with_set_grad_enabled": "A graph with gradients on or off.",
    "wrap_with_autocast": "A graph whose operators run in other element types.", "tag_activation_checkpoint": "A graph that is recomputed.",
    "wrap_activation_checkpoint": "A graph that is recomputed.", "invoke_subgraph": "A graph that is called from several places.",
    "strict_mode": "A graph.", "hints_wrapper": "A graph with hints for a compiler.", "run_const_graph": "A graph of constants.",
    "_export_tracepoint": "Values at the border of a module.",
}.items()}
