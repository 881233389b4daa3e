"""Moves a bitcast past a broadcast or a transpose, and computes their new shapes (bitcast_utils.cc).

``bitcast(broadcast(x))`` is ``broadcast(bitcast(x))`` if no result dimension combines broadcast and kept ones; a bitcast moves past
a transpose if the dimensions that it merges or splits are adjacent on the other side, too.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

from irscope.fusion.dimensions import common_factors, inverse
from irscope.fusion.xla.gemm.bitcasts import ArrayForm, form_of
from irscope.fusion.xla.instructions import Instruction
from irscope.graph import Op
from irscope.ops import hlo
from irscope.ops.attributes import Broadcast, Transpose

Moved = tuple[ArrayForm, tuple[int, ...]]
"""The form of the operation that is first now, and the dimensions of the broadcast or transpose."""


def bitcast_above_broadcast(broadcast: Instruction, result: ArrayForm) -> Moved | None:
    """``bitcast(broadcast(x))`` of form ``result`` as ``broadcast(bitcast(x))``: the form of the bitcast and the dimensions."""
    kept = set(Broadcast.of(broadcast).dimensions)
    sizes = form_of(broadcast).in_memory
    chosen: list[int] = []
    for (from_, first), (to, last) in pairwise(common_factors(result.in_memory, sizes)):
        groups = {broadcast.minor[j] in kept for j in range(first, last) if sizes[j] != 1}
        if groups == {True, False}:
            return None
        if True in groups:
            chosen += result.minor[from_:to]
    chosen.sort()
    return ArrayForm(tuple(result.dims[d] for d in chosen), tuple(chosen.index(d) for d in result.minor if d in chosen)), tuple(chosen)


def broadcast_above_bitcast(broadcast: Instruction, source: ArrayForm) -> Moved | None:
    """``broadcast(bitcast(x))`` with ``x`` of form ``source`` as ``bitcast(broadcast(x))``: the form of the broadcast and its dimensions.

    The broadcast dimensions are last in the new broadcast.
    """
    bitcast = form_of(broadcast.operands[0])
    places = {d: n for n, d in enumerate(broadcast.minor)}
    ranges: dict[int, range] = {}
    for (first, from_), (last, to) in pairwise(common_factors(bitcast.in_memory, source.in_memory)):
        dims = [Broadcast.of(broadcast).dimensions[bitcast.minor[j]] for j in range(first, last)]
        for number, dim in enumerate(dims):
            ranges[dim] = range(to if number else from_, to)
        if not _together([places[dim] for dim in dims]):
            return None
    rank = len(source.dims) + len(broadcast.dims) - len(bitcast.dims)
    sizes, minor, added = [0] * rank, [], len(source.dims)
    for dim in broadcast.minor:
        if dim in ranges:
            for place in ranges[dim]:
                sizes[source.minor[place]] = source.dims[source.minor[place]]
                minor.append(source.minor[place])
        else:
            sizes[added] = broadcast.dims[dim]
            minor.append(added)
            added += 1
    return ArrayForm(tuple(sizes), tuple(minor)), tuple(range(len(source.dims)))


def bitcast_above_transpose(transpose: Instruction, result: ArrayForm) -> Moved | None:
    """``bitcast(transpose(x))`` of form ``result`` as ``transpose(bitcast(x))``: the form of the bitcast and the permutation."""
    found = _turned(transpose, result, form_of(transpose), form_of(transpose.operands[0]), Transpose.of(transpose).dimensions)
    return None if found is None else (found[0], inverse(found[1]))


def transpose_above_bitcast(transpose: Instruction, source: ArrayForm) -> Moved | None:
    """``transpose(bitcast(x))`` with ``x`` of form ``source`` as ``bitcast(transpose(x))``: the form and permutation of the transpose."""
    back = inverse(Transpose.of(transpose).dimensions)
    return _turned(transpose, source, form_of(transpose.operands[0]), form_of(transpose), back)


BITCAST_ABOVE: Mapping[Op, Callable[[Instruction, ArrayForm], Moved | None]] = {
    hlo.broadcast: bitcast_above_broadcast, hlo.transpose: bitcast_above_transpose}
"""How a bitcast of the result of an operator becomes one of its operand."""
ABOVE_BITCAST: Mapping[Op, Callable[[Instruction, ArrayForm], Moved | None]] = {
    hlo.broadcast: broadcast_above_bitcast, hlo.transpose: transpose_above_bitcast}
"""How a bitcast of the operand of an operator becomes one of its result."""


def _turned(transpose: Instruction, result: ArrayForm, turned: ArrayForm, source: ArrayForm, permutation: tuple[int, ...]) -> Moved | None:
    """The form on the other side of a transpose whose result gets another form; the permutation maps that form's dimensions to it."""
    if transpose.minor != transpose.operands[0].minor:
        return None
    places = {d: n for n, d in enumerate(source.minor)}
    ranges = [range(0)] * len(source.dims)
    for (from_, first), (to, last) in pairwise(_merged(common_factors(result.in_memory, turned.in_memory))):
        together: list[int] = []
        for dim in turned.minor[first:last]:
            if turned.dims[dim] != 1:
                place = places[permutation[dim]]
                ranges[place] = range(to if together else from_, to)
                together.append(place)
        if not _together(together):
            return None
    sizes, swapped = [0] * len(result.dims), [0] * len(result.dims)
    covered = [place for range_ in ranges for place in range_]
    covered += [place for place in range(len(result.dims)) if place not in covered]
    for new, place in zip(result.minor, covered, strict=True):
        old = result.minor[place]
        sizes[new], swapped[new] = result.dims[old], old
    return ArrayForm(tuple(sizes), result.minor), tuple(swapped)


def _together(places: list[int]) -> bool:
    """Whether positions are consecutive."""
    return places == list(range(places[0], places[0] + len(places))) if places else True


def _merged(bounds: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Merges groups that are empty on one side, which consist of ones on the other, into a neighbour."""
    made, at = list(bounds), 0
    while at + 1 < len(made) and len(made) > 2:
        (a, b), (c, d) = made[at], made[at + 1]
        if a != c and b != d:
            at += 1
        elif at + 2 == len(made):
            del made[at]
        else:
            del made[at + 1]
    return made
