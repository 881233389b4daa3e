"""Regions of a program that each device runs on its own shards, as jax's ``shard_map`` emits them, and their boundaries.

    s = f32[2,4] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape"    on each device: its shard of x
    r = f32[16,4] custom-call(y), custom_call_target="xla.sdy.LocalToGlobalShape"   on all devices: the y of each, side by side

Between a join and the next cut the text describes whole arrays, as its inputs and results are. Shardings are Shardy's
(``#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>``, https://openxla.org/shardy/sharding_representation) or, of older jax, XLA's own
(``devices=[8,1]<=[8]``, xla/hlo/ir/hlo_sharding.h) at ``SPMDFullToShardShape`` and ``SPMDShardToFullShape``.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from math import prod

from irscope.graph import Graph, Module, Node, TensorType, TupleType, Type
from irscope.ops import hlo
from irscope.ops.custom_calls import target_of
from irscope.ops.module_attributes import HloModule
from irscope.ops.tensors import Tensors
from irscope.source import UserError

CUTS = frozenset(("xla.sdy.GlobalToLocalShape", "SPMDFullToShardShape"))
JOINS = frozenset(("xla.sdy.LocalToGlobalShape", "SPMDShardToFullShape"))

MAX_DEVICES = 1024
"""As many as ``--partitions`` takes."""

_MESH = re.compile(r'"?([\w.$\-]+)"?\s*=\s*#sdy\.mesh<\[([^\]]*)\](?:,\s*device_ids=\[([\d,\s]*)\])?>')
_INLINE = re.compile(r'mesh<\[([^\]]*)\](?:,\s*device_ids=\[([\d,\s]*)\])?>')
_AXIS = re.compile(r'"([^"]+)"\s*=\s*(\d{1,18})')
_VALUE = re.compile(r'<(@"?[\w.$\-]+"?|mesh<\[[^\]]*\](?:,\s*device_ids=\[[^\]]*\])?>),\s*\[((?:\{[^{}]*\}(?:p\d+)?(?:,\s*)?)*)\]')
_MANUAL = re.compile(r"manual_axes\{([^}]*)\}")
_NAME = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')
_TILES = re.compile(r"devices=\[([\d,]+)\](?:<=\[([\d,]+)\](?:T\(([\d,]+)\))?|([\d,]+))")


@dataclass(frozen=True, slots=True)
class Shards:
    """How a value is cut: the number of shards along each dimension, and the shard of each device."""

    counts: tuple[int, ...]
    places: tuple[tuple[int, ...], ...]


def is_boundary(node: Node) -> bool:
    """Whether a node cuts values into shards of another shape, or joins them; on a mesh of one device it does neither."""
    if node.op is not hlo.custom_call or target_of(node) not in CUTS | JOINS:
        return False
    return any(a != b for operand, t in zip(node.operands, parts(node.type), strict=False) for a, b in [(_shape(operand.type), _shape(t))])


def cuts(node: Node) -> bool:
    """Whether a boundary cuts; else it joins."""
    return target_of(node) in CUTS


def boundary(graphs: Iterable[Graph]) -> Node | None:
    """The first boundary in some graphs; None in a text that describes only the arrays of one device, or only whole ones."""
    return next((node for graph in graphs for node in graph.nodes if is_boundary(node)), None)


def parts(t: Type) -> tuple[Type, ...]:
    """The values of a boundary's type: one, or those of a tuple."""
    return t.elements if isinstance(t, TupleType) else (t,)


def devices_of(module: Module, node: Node) -> int:
    """The number of devices of a boundary. Raises UserError for a sharding of unknown form."""
    return max(len(shards.places) for shards in shards_of(module, node))


def shards_of(module: Module, node: Node) -> list[Shards]:
    """How a boundary cuts each of its values. Raises UserError for a sharding of unknown form."""
    shapes = [_shape(t) for t in ([o.type for o in node.operands] if cuts(node) else parts(node.type))]
    raw = module.raw(node)
    try:
        if target_of(node).startswith("xla.sdy"):
            found = _of_shardy(module, raw["frontend_attributes"].replace('\\"', '"'))
        else:
            attributes = module.raw(node.operands[0]) if cuts(node) else raw
            found = [_of_tiles(attributes["sharding"])]
        if len(found) == len(shapes) == len(node.operands) == len(parts(node.type)) and all(map(_divides, found, shapes)):
            return found
    except (KeyError, ValueError, IndexError):
        pass
    raise UserError(f"%{node.name}: the sharding by which it cuts or joins is of no form that irscope knows",
                    "run what XLA's partitioner made of the program: lowered.compile().as_text()")


def cut(t: Tensors, whole: Node, shards: Shards, device: int) -> Node:
    """The shard of a value on a device."""
    for dim, (count, place) in enumerate(zip(shards.counts, shards.places[device], strict=True)):
        size = t.shape(whole)[dim] // count
        if count > 1:
            whole = t.slice_dim(whole, dim, place * size, (place + 1) * size)
    return whole


def joined(t: Tensors, shards: Shards, values: list[Node]) -> Node:
    """The whole value, joined from the shards of the devices; where shards are replicated, the first device's."""
    holder = {place: device for device, place in reversed(list(enumerate(shards.places)))}
    grid = [values[holder[place]] for place in product(*map(range, shards.counts))]
    for dim in reversed(range(len(shards.counts))):
        count = shards.counts[dim]
        if count > 1:
            grid = [t.concat(grid[i:i + count], dim) for i in range(0, len(grid), count)]
    return grid[0]


def _shape(t: Type) -> tuple[object, ...]:
    return t.shape if isinstance(t, TensorType) else ()


def _divides(shards: Shards, shape: tuple[object, ...]) -> bool:
    if len(shards.counts) != len(shape):
        return False
    return all(isinstance(n, int) and n % count == 0 for n, count in zip(shape, shards.counts, strict=True))


def _of_shardy(module: Module, text: str) -> list[Shards]:
    """The shards according to the attributes of a boundary; only its manual axes cut."""
    named = {m[1]: (m[2], m[3]) for m in _MESH.finditer(str(HloModule.of(module).frontend_attributes).replace('\\"', '"'))}
    by_hand = _MANUAL.search(text)
    manual = {m[1] for m in _NAME.finditer(by_hand[1])} if by_hand else set()
    found = []
    for value in _VALUE.finditer(text):
        inline = _INLINE.fullmatch(value[1])
        axes, ids = (inline[1], inline[2]) if inline else named[value[1].lstrip("@").strip('"')]
        sizes = {m[1]: int(m[2]) for m in _AXIS.finditer(axes)}
        dims = []
        for dim in re.findall(r"\{([^{}]*)\}", value[2]):
            names = [(m[1], m[2]) for m in _NAME.finditer(dim)]
            if any(part for _, part in names):
                raise ValueError("a part of an axis")
            dims.append([name for name, _ in names if name in manual])
        used = [name for dim in dims for name in dim]
        if len(set(used)) != len(used):
            raise ValueError("an axis cuts twice")
        listed = _devices(prod(sizes.values()), [int(i) for i in ids.split(",")] if ids else None)
        places: list[tuple[int, ...]] = [()] * len(listed)
        for at, device in zip(product(*map(range, sizes.values())), listed, strict=True):
            place = dict(zip(sizes, at, strict=True))
            places[device] = tuple(_number([place[a] for a in dim], [sizes[a] for a in dim]) for dim in dims)
        found.append(Shards(tuple(prod(sizes[a] for a in dim) for dim in dims), tuple(places)))
    return found


def _devices(count: int, listed: list[int] | None) -> list[int]:
    """The devices of a mesh in its order; raises ValueError where they are not 0, 1, 2, ... or too many to simulate."""
    if not 0 < count <= MAX_DEVICES or sorted(listed or range(count)) != list(range(count)):
        raise ValueError("no devices to simulate")
    return listed or list(range(count))


def _number(digits: list[int], bases: list[int]) -> int:
    number = 0
    for digit, base in zip(digits, bases, strict=True):
        number = number * base + digit
    return number


def _of_tiles(text: str) -> Shards:
    """XLA's own form: the devices in the order of the tiles, listed or as a transposed count; a last dimension may only repeat."""
    m = _TILES.search(text)
    if m is None:
        raise ValueError("no tiles")
    tiles = [int(n) for n in m[1].split(",") if n]
    if m[4]:
        order = _devices(prod(tiles), [int(n) for n in m[4].split(",") if n])
    else:
        sizes = [int(n) for n in m[2].split(",") if n]
        _devices(prod(sizes), None)
        perm = [int(n) for n in m[3].split(",")] if m[3] else list(range(len(sizes)))
        strides = [prod(sizes[i + 1:]) for i in range(len(sizes))]
        order = _devices(prod(tiles), [sum(a * strides[p] for a, p in zip(at, perm, strict=True))
                                       for at in product(*(range(sizes[p]) for p in perm))])
    rank = len(tiles) - ("last_tile_dim_replicate" in text) - _subgroups(text)
    places: list[tuple[int, ...]] = [()] * len(order)
    for at, device in zip(product(*map(range, tiles)), order, strict=True):
        places[device] = at[:rank]
    return Shards(tuple(tiles[:rank]), tuple(places))


def _subgroups(text: str) -> int:
    last = re.search(r"last_tile_dims=\{([^}]*)\}", text)
    return len([kind for kind in last[1].split(",") if kind.strip()]) if last else 0
