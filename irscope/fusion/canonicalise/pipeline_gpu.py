"""The order in which XLA's GPU compiler rewrites a module before GemmFusion and what follows it (gpu_compiler.cc of jaxlib 0.10.2)."""
from __future__ import annotations

from collections.abc import Container

from irscope.fusion.canonicalise.branches import wrap_branches
from irscope.fusion.canonicalise.calls import drop_shardings, inline_calls
from irscope.fusion.canonicalise.cudnn import call_cudnn
from irscope.fusion.canonicalise.dots import decompose, fold_transposes
from irscope.fusion.canonicalise.dots_gpu import merge_batches, merge_products, reduce_vectors, split_products
from irscope.fusion.canonicalise.expansions import expand_operators
from irscope.fusion.canonicalise.gathers import simplify_scatters, unbatch
from irscope.fusion.canonicalise.layouts_gpu import lay_out, sink_transposes
from irscope.fusion.canonicalise.pipeline import MAX_ROUNDS, simplify_all
from irscope.fusion.canonicalise.pools import expand_select_and_scatter
from irscope.fusion.canonicalise.reductions_gpu import join_conversions, order_sorts, split_apart
from irscope.fusion.canonicalise.running import rewrite_windows
from irscope.fusion.canonicalise.share import share
from irscope.fusion.canonicalise.terms import Body
from irscope.fusion.xla.gpu_device import Device
from irscope.graph import Node


def run_gpu(body: Body, device: Device, kept: Container[Node] = ()) -> None:
    """Rewrite a body and all that it runs, as XLA's GPU compiler would for a device. ``kept`` are calls that the text forbids to write
    out."""
    for inner in body.computations():
        inner.on_gpu = True
        inline_calls(inner, kept)
    for inner in body.computations():
        drop_shardings(inner)
        decompose(inner)
        rewrite_windows(inner)
        unbatch(inner)
        expand_operators(inner)
        wrap_branches(inner)
    _simplify(body)
    changed = False
    for inner in body.computations():
        changed = merge_products(inner) or changed
        changed = fold_transposes(inner) or changed
        changed = call_cudnn(inner, device) or changed
        changed = sink_transposes(inner) or changed
        changed = expand_select_and_scatter(inner) or changed
        changed = simplify_scatters(inner) or changed
    if changed:
        _simplify(body)
    for inner in body.computations():
        share(inner)
        order_sorts(inner)
        join_conversions(inner)
        inner.erase_all_dead()
        split_apart(inner)
        merge_batches(inner)
        split_products(inner, device)
        lay_out(inner)


def _simplify(body: Body) -> None:
    """XLA's simplification pipeline, with products of vectors reduced."""
    for _ in range(MAX_ROUNDS):
        simplify_all(body, tiled=False)
        changed = False
        for inner in body.computations():
            changed = reduce_vectors(inner) or changed
            changed = decompose(inner) or changed
            changed = fold_transposes(inner) or changed
            changed = share(inner) or changed
        if not changed:
            return
