"""A module as XLA's GPU compiler has it before ``priority-fusion``: the text rewritten, with Triton kernels in place.

The text shows which of XLA's passes have run: one from before its rewriting is rewritten first; if it still has dots that GemmFusion
would take, that pass and the softmax rewriter after it have yet to run; a text with their kernels is judged as it is.
"""
from __future__ import annotations

from irscope.fusion.canonicalise import Canonical, early_signs, may_be_early, rewrite_early
from irscope.fusion.canonicalise.pipeline import run_gpu
from irscope.fusion.xla import softmax
from irscope.fusion.xla.gemm.products import rewrite
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.gpu_floats import widen_floats
from irscope.fusion.xla.grouping import group_reductions
from irscope.fusion.xla.instructions import Computation
from irscope.fusion.xla.normalised import is_early
from irscope.fusion.xla.rebuilt import rebuilt
from irscope.fusion.xla.releases import GPU_REWRITING, Rewriting
from irscope.fusion.xla.stage import computations
from irscope.graph import Graph, Module, Node
from irscope.graph.trace import Trace


def rewritten(module: Module, device: Device, rewriting: Rewriting = GPU_REWRITING) -> tuple[list[str], Canonical | None]:
    """The module as XLA's GPU compiler would rewrite it, and the signs that it was not rewritten yet; None if it was."""
    signs = early_signs(module, on_gpu=True, rewriting=rewriting)
    if not signs and may_be_early(module) and is_early(module):
        signs = ["a product of other than two matrices"]
    return rewrite_early(module, signs, lambda body, kept: run_gpu(body, device, kept, rewriting))


def put_kernels(computation: Computation, device: Device, early: bool, normalises: bool = True) -> None:
    """Put Triton kernels in place of dots and, if GemmFusion has yet to run, of normalisations.

    ``early``: the text is from before XLA's rewriting, so that GemmFusion has yet to run even if there are no dots. ``normalises``: make
    kernels of normalisations, as priority fusion expects them.
    """
    made = any(product.is_made for product in rewrite(computation, device))
    for instruction in computation.instructions:
        if instruction.kind == "triton" and instruction.node is None:
            instruction.kind = "kCustom"  # priority-fusion adds nothing to the kernel of a dot
    if made or early:
        if normalises:
            softmax.rewrite(computation, device)
        group_reductions(computation)
        for kernel in list(computation.instructions):
            if kernel.body is not None and kernel.node is None:
                widen_floats(kernel.body, device)
        widen_floats(computation, device)


def with_kernels(canonical: Canonical, device: Device, normalises: bool = True) -> tuple[Canonical, list[tuple[Graph, Computation]]]:
    """A module with its Triton kernels: its computations, callees first, each with a graph that has a node for each instruction."""
    module = canonical.module.derived()
    made = Canonical(module)
    graphs: dict[Graph, Graph] = {}
    became: dict[Node, Node] = {}
    found: list[tuple[Graph, Computation]] = []
    for graph in computations(canonical.module):
        computation = Computation.of(graph)
        put_kernels(computation, device, True, normalises)
        graphs[graph], here = rebuilt(computation, graph, graphs)
        became |= here
        found.append((graphs[graph], computation))
    module.graphs.update({graph.name: graphs.get(graph, graph) for graph in canonical.module.graphs.values()})
    made.trace = Trace({old: became[node] for old, node in canonical.trace.became.items() if node in became})
    return made, found
