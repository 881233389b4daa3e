"""The order of the passes that XLA's compilers run on a module before they fuse (cpu_compiler.cc and gpu_compiler.cc of jaxlib 0.10.2).

What other releases of the CPU compiler do otherwise is a :class:`irscope.fusion.xla.releases.Rewriting`.
"""
from __future__ import annotations

from collections.abc import Container
from functools import partial

from irscope.fusion.canonicalise.branches import simplify_branches, wrap_branches
from irscope.fusion.canonicalise.calls import drop_sharding, inline_calls, open_barriers
from irscope.fusion.canonicalise.computation import HloComputation
from irscope.fusion.canonicalise.convolutions import canonicalise_convolution
from irscope.fusion.canonicalise.cudnn import call_cudnn
from irscope.fusion.canonicalise.dots import decompose, fold_transposes, upcast_whole_numbers, widen_vector
from irscope.fusion.canonicalise.dots_gpu import merge_batches, merge_products, reduce_vector, split_products
from irscope.fusion.canonicalise.expansions import expand_operators
from irscope.fusion.canonicalise.floats import join_conversions, normalise_floats, widen_half_product
from irscope.fusion.canonicalise.fold import fold_constants
from irscope.fusion.canonicalise.gathers import expand_scatter, simplify_gather, simplify_scatter, unbatch
from irscope.fusion.canonicalise.layouts import assign_layouts, lay_out, sink_transposes
from irscope.fusion.canonicalise.loops import simplify_loop
from irscope.fusion.canonicalise.movement import move_rearrangements
from irscope.fusion.canonicalise.pools import expand_select_and_scatter
from irscope.fusion.canonicalise.reductions import split_apart, split_reductions
from irscope.fusion.canonicalise.running import rewrite_windows
from irscope.fusion.canonicalise.share import share
from irscope.fusion.canonicalise.simplify import simplify
from irscope.fusion.canonicalise.sorts import call_top, order_sort
from irscope.fusion.canonicalise.ynnpack import call_library, takes
from irscope.fusion.xla.gpu_device import Device
from irscope.fusion.xla.releases import GPU_REWRITING, LATEST, Rewriting
from irscope.graph import Node
from irscope.ops import hlo

MAX_ROUNDS = 20
"""The limit on rounds of simplification, in case no fixpoint is reached."""


def run_cpu(entry: HloComputation, kept: Container[Node] = (), rewriting: Rewriting = LATEST.rewriting) -> None:
    """Rewrite a computation and all that it calls, as XLA's CPU compiler would. ``kept`` are calls that the text forbids to inline."""
    for computation in entry.computations():
        computation.rewriting = rewriting
        inline_calls(computation, kept)
    for computation in entry.computations():
        computation.apply(decompose, hlo.dot)
        computation.apply(upcast_whole_numbers(lambda instr: instr.op is hlo.dot and takes(rewriting.library, instr)),
                          hlo.dot, hlo.convolution)
        normalise_floats(computation)
        rewrite_windows(computation)
        computation.apply(call_top, hlo.topk)
        computation.apply(unbatch, hlo.gather, hlo.scatter)
        expand_operators(computation)
        computation.apply(canonicalise_convolution, hlo.convolution)
        computation.apply(widen_half_product, hlo.dot, hlo.convolution)
        computation.apply(wrap_branches, hlo.conditional)
    simplify_all(entry)
    changed = False
    for computation in entry.computations():
        changed = computation.apply(expand_select_and_scatter, hlo.select_and_scatter) or changed
        changed = computation.apply(simplify_scatter, hlo.scatter) or changed
        changed = computation.apply(expand_scatter, hlo.scatter) or changed
    if changed:
        simplify_all(entry)
    for computation in entry.computations():
        if rewriting.columns:
            computation.apply(widen_vector, hlo.dot)
        computation.apply(fold_transposes, hlo.dot)
        share(computation)
        if rewriting.opens_barriers:
            open_barriers(computation)
        computation.erase_all_dead()
        assign_layouts(computation)
        call_library(computation)


def run_common(entry: HloComputation, kept: Container[Node] = ()) -> None:
    """Rewrite a computation as XLA does for every target: without reductions in tiles, library calls, or floats computed wide."""
    for computation in entry.computations():
        inline_calls(computation, kept)
    for computation in entry.computations():
        computation.apply(decompose, hlo.dot)
        expand_operators(computation)
        computation.apply(wrap_branches, hlo.conditional)
    simplify_all(entry, tiled=False)
    for computation in entry.computations():
        share(computation)
        open_barriers(computation)
        computation.erase_all_dead()
        assign_layouts(computation)


def run_gpu(entry: HloComputation, device: Device, kept: Container[Node] = (), rewriting: Rewriting = GPU_REWRITING) -> None:
    """Rewrite a computation and everything that it calls, as XLA's GPU compiler would for a device before GemmFusion and what follows it.

    ``kept`` are calls that the text forbids to inline, ``rewriting`` says how the release rewrites.
    """
    for computation in entry.computations():
        computation.on_gpu, computation.rewriting = True, rewriting
        inline_calls(computation, kept)
    for computation in entry.computations():
        computation.apply(drop_sharding, hlo.custom_call)
        computation.apply(decompose, hlo.dot)
        rewrite_windows(computation)
        computation.apply(unbatch, hlo.gather, hlo.scatter)
        expand_operators(computation)
        computation.apply(wrap_branches, hlo.conditional)
    _simplify_gpu(entry)
    changed = False
    for computation in entry.computations():
        changed = merge_products(computation) or changed
        changed = computation.apply(fold_transposes, hlo.dot) or changed
        changed = computation.apply(call_cudnn(device), hlo.convolution) or changed
        changed = sink_transposes(computation) or changed
        changed = computation.apply(expand_select_and_scatter, hlo.select_and_scatter) or changed
        changed = computation.apply(simplify_scatter, hlo.scatter) or changed
    if changed:
        _simplify_gpu(entry)
    for computation in entry.computations():
        share(computation)
        computation.apply(order_sort, hlo.sort)
        join_conversions(computation)
        computation.erase_all_dead()
        computation.apply(split_apart, hlo.reduce)
        computation.apply(merge_batches, hlo.dot)
        computation.apply(split_products(device), hlo.dot)
        lay_out(computation)


def simplify_all(entry: HloComputation, tiled: bool = True) -> None:
    """XLA's simplification pipeline, to a fixpoint; ``tiled``: with reductions in tiles, as on the CPU."""
    for _ in range(MAX_ROUNDS):
        changed = False
        for computation in entry.computations():
            changed = simplify(computation) or changed
            changed = computation.apply(simplify_gather, hlo.gather) or changed
            changed = (tiled and split_reductions(computation, partial(takes, computation.rewriting.library))) or changed
            changed = computation.apply(simplify_loop, hlo.while_) or changed
            changed = computation.apply(simplify_branches, hlo.conditional) or changed
            computation.erase_all_dead()
            changed = move_rearrangements(computation) or changed
            changed = fold_constants(computation) or changed
        if not changed:
            return


def _simplify_gpu(entry: HloComputation) -> None:
    """XLA's simplification pipeline, with strength reduction of dots with vectors."""
    for _ in range(MAX_ROUNDS):
        simplify_all(entry, tiled=False)
        changed = False
        for computation in entry.computations():
            changed = computation.apply(reduce_vector, hlo.dot) or changed
            changed = computation.apply(decompose, hlo.dot) or changed
            changed = computation.apply(fold_transposes, hlo.dot) or changed
            changed = share(computation) or changed
        if not changed:
            return
