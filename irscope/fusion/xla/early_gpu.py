"""What XLA's GPU compiler makes of a module before ``priority-fusion``: the text rewritten, and Triton kernels in place.

Which of XLA's passes have run shows in the text: one from before its rewriting is rewritten first; where products are left that GemmFusion
would take, it and the softmax rewriter, which follows it, are still to come; a text that holds their kernels is judged as it stands.
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
from irscope.fusion.xla.stage import computations
from irscope.graph import Graph, Module, Node
from irscope.graph.trace import Trace


def rewritten(module: Module, device: Device) -> tuple[list[str], Canonical | None]:
    """The module as XLA's GPU compiler would rewrite it, and what shows that it has not done so yet; None where it has."""
    signs = early_signs(module, on_gpu=True)
    if not signs and may_be_early(module) and is_early(module):
        signs = ["a product of other than two matrices"]
    return rewrite_early(module, signs, lambda body, kept: run_gpu(body, device, kept))


def put_kernels(computation: Computation, device: Device, early: bool, normalises: bool = True) -> None:
    """Triton kernels in place of products and, where GemmFusion is still to come, of normalisations.

    ``early``: the text is from before XLA's rewriting, so that it is to come even where there are no products. ``normalises``: kernels of
    normalisations are made, as priority fusion wants them.
    """
    made = any(product.is_made for product in rewrite(computation, device))
    for instruction in computation.instructions:
        if instruction.kind == "triton" and instruction.node is None:
            instruction.kind = "kCustom"  # priority-fusion adds nothing to the kernel of a product
    if made or early:
        if normalises:
            softmax.rewrite(computation, device)
        group_reductions(computation)
        for kernel in list(computation.instructions):
            if kernel.body is not None and kernel.node is None:
                widen_floats(kernel.body, device)
        widen_floats(computation, device)


def with_kernels(canonical: Canonical, device: Device, normalises: bool = True) -> tuple[Canonical, list[tuple[Graph, Computation]]]:
    """A module with Triton kernels in place: its computations, callees first, each with a graph that has a node for each instruction."""
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
