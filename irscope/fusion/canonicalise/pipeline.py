"""The order in which XLA's CPU compiler rewrites a module before it fuses (cpu_compiler.cc of jaxlib 0.10.2)."""
from __future__ import annotations

from collections.abc import Container

from irscope.fusion.canonicalise.branches import simplify_branches, wrap_branches
from irscope.fusion.canonicalise.calls import inline_calls, open_barriers
from irscope.fusion.canonicalise.convolutions import canonicalise_convolutions
from irscope.fusion.canonicalise.dots import decompose, fold_transposes, upcast_whole_numbers, widen_vectors
from irscope.fusion.canonicalise.expansions import expand_operators
from irscope.fusion.canonicalise.floats import normalise_floats, widen_half_products
from irscope.fusion.canonicalise.fold import fold_constants
from irscope.fusion.canonicalise.gathers import simplify_gathers, simplify_scatters, unbatch
from irscope.fusion.canonicalise.layouts import assign_layouts
from irscope.fusion.canonicalise.loops import simplify_loops
from irscope.fusion.canonicalise.movement import move_rearrangements
from irscope.fusion.canonicalise.pools import expand_select_and_scatter
from irscope.fusion.canonicalise.reductions import split_reductions
from irscope.fusion.canonicalise.running import rewrite_windows
from irscope.fusion.canonicalise.share import share
from irscope.fusion.canonicalise.simplify import simplify
from irscope.fusion.canonicalise.single_scatters import expand_single_scatters
from irscope.fusion.canonicalise.sorts import call_top
from irscope.fusion.canonicalise.terms import Body
from irscope.fusion.canonicalise.ynnpack import call_library, takes_dot, takes_reduction
from irscope.graph import Node
from irscope.ops import hlo

MAX_ROUNDS = 20
"""Rounds of simplification after which it ends although something still changes."""


def run_cpu(body: Body, kept: Container[Node] = ()) -> None:
    """Rewrite a body and all that it runs, as XLA's CPU compiler would. ``kept`` are calls that the text forbids to write out."""
    for inner in body.computations():
        inline_calls(inner, kept)
    for inner in body.computations():
        decompose(inner)
        upcast_whole_numbers(inner, lambda t: t.op is hlo.dot and takes_dot(t))
        normalise_floats(inner)
        rewrite_windows(inner)
        call_top(inner)
        unbatch(inner)
        expand_operators(inner)
        canonicalise_convolutions(inner)
        widen_half_products(inner)
        wrap_branches(inner)
    simplify_all(body)
    changed = False
    for inner in body.computations():
        changed = expand_select_and_scatter(inner) or changed
        changed = simplify_scatters(inner) or changed
        changed = expand_single_scatters(inner) or changed
    if changed:
        simplify_all(body)
    for inner in body.computations():
        widen_vectors(inner)
        fold_transposes(inner)
        share(inner)
        open_barriers(inner)
        inner.erase_all_dead()
        assign_layouts(inner)
        call_library(inner)


def run_common(body: Body, kept: Container[Node] = ()) -> None:
    """Rewrite a body as XLA does for every target: no reduction in tiles, no library, no floats computed wide."""
    for inner in body.computations():
        inline_calls(inner, kept)
    for inner in body.computations():
        decompose(inner)
        expand_operators(inner)
        wrap_branches(inner)
    simplify_all(body, tiled=False)
    for inner in body.computations():
        share(inner)
        open_barriers(inner)
        inner.erase_all_dead()
        assign_layouts(inner)


def simplify_all(body: Body, tiled: bool = True) -> None:
    """XLA's simplification pipeline, until nothing changes; ``tiled``: with reductions in tiles, as on the CPU."""
    for _ in range(MAX_ROUNDS):
        changed = False
        for inner in body.computations():
            changed = simplify(inner) or changed
            changed = simplify_gathers(inner) or changed
            changed = (tiled and split_reductions(inner, takes_reduction)) or changed
            changed = simplify_loops(inner) or changed
            changed = simplify_branches(inner) or changed
            inner.erase_all_dead()
            changed = move_rearrangements(inner) or changed
            changed = fold_constants(inner) or changed
        if not changed:
            return
