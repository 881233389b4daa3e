"""Signs that a text is HLO from before XLA's own rewriting."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from irscope.fusion.canonicalise.calls import SHARDING
from irscope.fusion.canonicalise.canonical import Canonical, Rewrite, canonicalise, is_kept_call
from irscope.fusion.canonicalise.computation import HloComputation
from irscope.fusion.canonicalise.pipeline import run_cpu
from irscope.fusion.canonicalise.simplify import simplify_instruction
from irscope.fusion.xla.releases import GPU_REWRITING, Rewriting
from irscope.fusion.xla.stage import computations, names_of
from irscope.graph import Graph, Module, Node, Op, TensorType, reachable
from irscope.graph.collector import collector_paused
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall
from irscope.ops.module_attributes import HloModule

EARLY = hlo.named("reshape logistic batch-norm-inference batch-norm-training batch-norm-grad opt-barrier dynamic-reshape rng-bit-generator "
                  "topk cholesky")
"""Operators that XLA replaces before it fuses: reshapes become bitcasts, batch normalisations are expanded."""
BARRIERS = hlo.named("opt-barrier")
"""Operators that its GPU compiler, and its CPU compiler in some releases, keep until after fusion."""
LATE = hlo.named("fusion bitcast")
"""Operators that only XLA's own passes emit."""
UNFOLLOWED = hlo.named("rng rng-bit-generator cholesky triangular-solve reduce-window scan custom-call all-gather all-reduce all-to-all "
                       "collective-permute reduce-scatter fft map dynamic-reshape set-dimension-size")
"""Operators that XLA may expand or rewrite in ways that are not simulated here."""
DOUBTED = hlo.named("copy dot tuple get-tuple-element")
"""Operators whose rules also apply to what XLA leaves before its fusion pass, and which are therefore no sign."""
REARRANGED = hlo.named("parameter copy tuple get-tuple-element")
"""Operators that come and go without arithmetic being rewritten; fewer of them are no sign."""

REMATERIALISED = "/rematted_computation/"
"""What jax writes into the names of operators that it computes again (``jax.checkpoint``)."""

DEFINED = re.compile(r"^[ \t]*(?:ROOT )?%?([^\s=]+) = ", re.MULTILINE)
"""The name that a line of HLO defines."""


def early_signs(module: Module, on_gpu: bool = False, rewriting: Rewriting = GPU_REWRITING) -> list[str]:
    """The signs that a text is HLO from before XLA's own rewriting, for a CPU or for a GPU; empty if there are none.

    One sign is enough: the name of the dump, an operator that XLA replaces before it fuses, a text without layouts, or arithmetic in a
    text with layouts that XLA would have simplified. What only XLA's passes emit (fusions, bitcasts, a schedule) outweighs them. A text
    that XLA did not print (its first line has no layout of the entry) was written by hand, and is judged as it is. A format that is
    translated to HLO is always from before.
    """
    if not may_be_early(module):
        return []
    if module.dialect.translate is not None:
        return [module.dialect.module]
    if "before_optimizations" in module.source.name:
        return ["the name of the dump"]
    graphs = computations(module)
    nodes = [node for graph in graphs for node in graph.nodes]
    signs = names_of(nodes, EARLY - BARRIERS if on_gpu or not rewriting.opens_barriers else EARLY)
    if any(node.op is hlo.call and not is_kept_call(module, node) for node in nodes):
        signs.append("call")
    if on_gpu and any(node.op is hlo.custom_call and CustomCall.of(node).custom_call_target in SHARDING for node in nodes):
        signs.append("sharding annotations")
    if not any(isinstance(node.type, TensorType) and node.type.layout is not None for node in nodes):
        signs.append("no layouts")
    if not signs and not _has_complex(nodes) and not shows_passes(module) and _simplifies(graphs, on_gpu, rewriting):
        signs = ["arithmetic that XLA simplifies"]
    return signs


def may_be_early(module: Module) -> bool:
    """Whether a text is translated to HLO, or XLA printed it and it shows no sign, neither in its operators nor in its name, that its
    passes have rewritten it."""
    if module.dialect.translate is not None:
        return True
    name = module.source.name
    attrs = HloModule.of(module)
    return (attrs.entry_computation_layout is not None and not attrs.is_scheduled
            and "before_fusion" not in name and "before_priority-fusion" not in name
            and not any(node.op in LATE for graph in computations(module) for node in graph.nodes))


def shows_passes(module: Module) -> bool:
    """Whether a text shows that XLA's passes have run, so that arithmetic which they would rewrite again is no sign.

    What XLA reads is numbered from 1 (``multiply.3``); a pass names what it makes after the operator alone, and what it copies
    ``multiply.0``, in computations called ``sum.clone``. Rematerialised code of jax stands behind a barrier, and XLA does not simplify once
    more after it has removed that. Names that are not in the text, as of a proposed edit, show nothing.
    """
    nodes = [node for graph in module.graphs.values() for node in graph.nodes]
    named = {node.name for node in nodes if node.name == node.op.name or node.name.endswith(".0")}
    return ((bool(named) and any(found[1] in named for found in DEFINED.finditer(module.source.text)))
            or any(".clone" in graph.name for graph in module.graphs.values())
            or (REMATERIALISED in module.source.text and not any(node.op in BARRIERS for node in nodes)))


def is_rewritten(module: Module, made: Module) -> bool:
    """Whether rewriting changed more than the order and the copies of a module: the remaining sign for a text without others.

    A text from right before XLA's fusion pass does not change. Custom calls, and complex arithmetic, which XLA expands late, hide the sign.
    """
    graphs = computations(module)
    before, after = _counted(graphs), _counted(computations(made))
    return hlo.custom_call not in before and not _has_complex(node for graph in graphs for node in graph.nodes) and any(
        after[op] > before[op] or (op not in REARRANGED and after[op] < before[op]) for op in before.keys() | after.keys())


def rewrite_early(module: Module, signs: list[str], rewrite: Rewrite = run_cpu) -> tuple[list[str], Canonical | None]:
    """The module as XLA would rewrite it, and the signs that it was not rewritten yet, added to ``signs``; None if it was."""
    if not signs and not may_be_early(module):
        return [], None
    with collector_paused():
        canonical = canonicalise(module, rewrite)
    if not signs and not shows_passes(module) and is_rewritten(module, canonical.module):
        signs = ["what XLA would still rewrite"]
    return signs, canonical if signs else None


def unfollowed(module: Module) -> list[str]:
    """The operators of a module that XLA may expand or rewrite in ways that are not simulated here."""
    return names_of((node for graph in computations(module) for node in graph.nodes), UNFOLLOWED)


def _has_complex(nodes: Iterable[Node]) -> bool:
    return any(isinstance(node.type, TensorType) and node.type.dtype.is_complex for node in nodes)


def _counted(graphs: Iterable[Graph]) -> Counter[Op]:
    """How many live instructions of each operator these graphs have."""
    found: Counter[Op] = Counter()
    for graph in graphs:
        needed = reachable(graph, [graph.result()])
        found.update(node.op for node in graph.nodes if needed[node.index])
    return found


def _simplifies(graphs: Iterable[Graph], on_gpu: bool, rewriting: Rewriting) -> bool:
    """Whether a rule of the simplifier applies to graphs as they are."""
    for graph in graphs:
        rewriter = HloComputation.of(graph)
        rewriter.on_gpu, rewriter.rewriting = on_gpu, rewriting
        for instr in rewriter.post_order():
            if instr.op not in DOUBTED and not instr.erased and simplify_instruction(rewriter, instr):
                return True
    return False
