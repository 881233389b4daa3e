"""What XLA's softmax rewriter makes of the normalisations of a text, reported in sentences."""
from __future__ import annotations

from functools import lru_cache

from irscope.fusion.canonicalise import canonicalise, early_signs
from irscope.fusion.canonicalise.pipeline import run_common
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.softmax import Decision, Diamond, NoDiamond, bails_out, chains, of_reductions
from irscope.fusion.xla.stage import computations
from irscope.graph import Module, Node, TensorType
from irscope.graph.collector import collector_paused
from irscope.ops import hlo
from irscope.ops.attributes import Dot
from irscope.ops.module_attributes import HloModule
from irscope.source import UserError

SHOWN = 4
"""The number of normalisations that are named; a model repeats them layer by layer."""


@lru_cache(maxsize=1)
def decisions(module: Module) -> list[tuple[Node, Decision]]:
    """The decision on each reduction of an HLO module that is broadcast back, with its node in the text.

    A text from before XLA's rewriting is rewritten first as XLA does for every target. Raises UserError if the text elides something that
    matters.
    """
    with collector_paused():
        made: list[tuple[Node, Decision]] = []
        for graph in computations(judged(module)):
            for reduce, decision in of_reductions(Computation.of(graph)).items():
                if reduce.node is not None:
                    made.append((in_text(reduce.node), decision))
    return made


@lru_cache(maxsize=1)
def judged(module: Module) -> Module:
    """A module as XLA's rewriters before ``priority-fusion`` see it: rewritten as for every target, if it is from before that."""
    return canonicalise(module, run_common).module if is_early(module) else module


def is_early(module: Module) -> bool:
    """Whether XLA has yet to rewrite a text; a dot of anything but two matrices, batches aside, is a sign too."""
    return bool(early_signs(module, on_gpu=True)) or (HloModule.of(module).entry_computation_layout is not None and any(
        _is_loose(node) for graph in module.graphs.values() for node in graph.nodes if node.op is hlo.dot))


def _is_loose(dot: Node) -> bool:
    attrs = Dot.of(dot)
    for operand, batch, contracted in zip(dot.operands, attrs.batch_dims, attrs.contracting_dims, strict=False):
        shape = operand.type.shape if isinstance(operand.type, TensorType) else ()
        kept = [size for n, size in enumerate(shape) if n not in batch and n not in contracted]
        if len(contracted) != 1 or len(kept) != 1 or 1 in (kept[0], shape[contracted[0]]):
            return True
    return False


def in_text(node: Node) -> Node:
    """The node of the text that a rewritten one stands for."""
    return node.origin[0] if node.origin else node


def normalisations(module: Module, device: Device, placed: bool = False) -> list[str]:
    """One remark on what the rewriter takes and what it leaves; none if no reduction is broadcast back, if XLA has run it
    already, or if the text elides something that matters. ``placed``: the judged module contains its kernels."""
    if not module.dialect.primitive or '"__triton' in module.source.text:
        return []
    if words := bails_out(device):
        return [f"XLA's softmax rewriter makes no kernel of a normalisation on {device.name}: {words}"]
    try:
        found = decisions(module)
    except UserError:
        return []
    taken = [decision for _, decision in found if isinstance(decision, Diamond)]
    left = [(reduce, decision) for reduce, decision in found if isinstance(decision, NoDiamond)]
    if not taken and not left:
        return []
    parts = [f"XLA's softmax rewriter (SoftmaxRewriterTriton), which runs before this pass, takes {len(taken)} of "
             f"{len(taken) + len(left)} reductions that are broadcast back"]
    if taken:
        ways = [" then ".join(f"%{d.reduce.name} to %{d.root.name}" for d in chain) for chain in chains(taken)]
        parts.append(f"each a Triton kernel where XLA's cost model, which is not simulated, agrees: {_some(ways)}; the kernels "
                     f"reported here are those {'with' if placed else 'without'} it")
    if left:
        parts.append("not " + _some([f'%{reduce.name}: "{no.words}" ({no.cause})' for reduce, no in left]))
    return ["; ".join(parts)]


def _some(parts: list[str]) -> str:
    more = f" and {len(parts) - SHOWN} more" if len(parts) > SHOWN else ""
    return ", ".join(parts[:SHOWN]) + more
