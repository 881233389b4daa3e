"""A storage as a vector of elements: reads and writes by address, for views that no slice or permutation describes.

    x = zeros(2, 3); x.expand(2, 2, 3)[0]   the elements 0 to 5 of the storage of x
"""
from __future__ import annotations

from math import prod

from irscope.formats.torchscript.operators.indexing import scattered
from irscope.formats.torchscript.strides import Strided
from irscope.formats.torchscript.torch import Torch
from irscope.graph import Node
from irscope.graph.dtypes import S64
from irscope.ops.faults import TypeFault


def read_places(t: Torch, whole: Node, at: Strided, layout: Strided) -> Node:
    """The elements at ``layout`` of a storage whose value ``whole`` has the layout ``at``."""
    flat = t.reshape(t.transpose(whole, _order(at)), (prod(t.shape(whole)),))
    return t.take(flat, _places(t, layout), 0) if layout.elements else t.full(layout.sizes, 0, t.dtype(whole))


def write_places(t: Torch, whole: Node, at: Strided, layout: Strided, new: Node) -> Node:
    """The value of the storage with ``new`` written at ``layout``."""
    if not layout.elements:
        return whole
    order = _order(at)
    turned = t.transpose(whole, order)
    shape, n = t.shape(turned), prod(t.shape(whole))
    places = t.reshape(_places(t, layout), (layout.elements,))
    flat = scattered(t, t.reshape(turned, (n,)), 0, places, t.reshape(new, (layout.elements,)), None)
    return t.transpose(t.reshape(flat, shape), [order.index(d) for d in range(len(order))])


def check_places(at: Strided | None, layout: Strided | None) -> tuple[Strided, Strided]:
    """Both layouts, if they can address elements. Raises TypeFault, with the reason, otherwise."""
    if at is None or layout is None or layout.offset is None:
        raise TypeFault("the strides of the tensor are not known: print traced.inlined_graph, whose types state them")
    if not at.is_dense() or at.offset != 0:
        raise TypeFault(f"the storage has gaps or repeats elements (sizes {at.sizes}, strides {at.strides}): clone() the tensor first")
    if at.conjugated or at.negated or layout.conjugated or layout.negated:
        raise TypeFault("places of conjugated numbers in memory are not supported: call resolve_conj() first")
    if len(layout.sizes) != len(layout.strides):
        raise TypeFault(f"sizes {layout.sizes} and strides {layout.strides} have different lengths")
    if layout.elements and layout.offset + sum((n - 1) * s for n, s in zip(layout.sizes, layout.strides, strict=True)) >= at.elements:
        raise TypeFault(f"sizes {layout.sizes}, strides {layout.strides} and offset {layout.offset} reach beyond {at.elements} elements")
    return at, layout


def _order(at: Strided) -> list[int]:
    """The dimensions, outermost in memory first."""
    return sorted(range(at.rank), key=lambda d: (-at.strides[d], at.sizes[d] != 1, d))


def _places(t: Torch, layout: Strided) -> Node:
    """The address of each element."""
    places = t.full(layout.sizes, layout.offset or 0, S64)
    for d, stride in enumerate(layout.strides):
        if layout.sizes[d] > 1:
            places = t.add(places, t.scale(t.iota(layout.sizes, d, S64), stride))
    return places

