"""The replica groups of collectives, in the three forms in which HLO writes them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from irscope.formats.hlo.faults import ATTRIBUTE_VALUE, Refused
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.spelling import spell


@dataclass(frozen=True, slots=True)
class MeshAxis:
    """A mesh axis that a group runs over; ``pre`` and ``size`` select a part of it (``"x":(2)4``), 0 where it is whole."""

    index: int
    pre: int = 0
    size: int = 0


MAX_DEVICES = 1 << 22
"""Devices in the groups of a collective that are written out one by one; the largest machines have a hundred times fewer."""


@dataclass(frozen=True, slots=True)
class ReplicaGroups:
    """The groups as written, expanded on demand: a mesh of ten thousand devices is one short line.

    Either ``listed`` has them, or ``dims`` has their number and size, taken from ``iota(reshape)`` transposed by ``perm``,
    or a ``mesh`` of axis sizes is cut along ``axes``; ``devices`` is the order of devices in the mesh where it is not 0, 1, 2...
    """

    text: str
    listed: tuple[tuple[int, ...], ...] = ()
    dims: tuple[int, ...] = ()
    reshape: tuple[int, ...] = ()
    perm: tuple[int, ...] = ()
    mesh: tuple[int, ...] = ()
    axes: tuple[MeshAxis, ...] = ()
    devices: tuple[int, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether ``dims`` and ``reshape`` count equally many devices."""
        return not self.dims or prod(self.dims) == prod(self.reshape)

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Device numbers, one tuple per group, in order. Raises ValueError for more devices than any machine has."""
        if max(prod(self.reshape), prod(self.mesh)) > MAX_DEVICES:
            raise ValueError(f"{max(prod(self.reshape), prod(self.mesh))} devices are more than any machine has")
        if self.dims:
            flat = _transposed(self.reshape, self.perm)
            size = self.dims[-1]
            return tuple(tuple(flat[i:i + size]) for i in range(0, len(flat), size)) if size else ()
        if self.mesh:
            return self._along_axes()
        return self.listed

    def _along_axes(self) -> tuple[tuple[int, ...], ...]:
        # Every axis is split into (before, selected part, after); the selected parts are moved to the end.
        sizes: list[int] = []
        meant: dict[tuple[int, int], int] = {}
        for index, size in enumerate(self.mesh):
            parts = [axis for axis in self.axes if axis.index == index and axis.size]
            cuts = sorted({1, size} | {axis.pre for axis in parts} | {axis.pre * axis.size for axis in parts})
            if cuts[0] < 1 or any(post % pre for pre, post in pairwise(cuts)):
                raise ValueError(f"an axis of {size} devices is not cut into {', '.join(map(str, cuts))}")
            for pre, post in pairwise(cuts):
                meant[index, pre] = len(sizes)
                sizes.append(post // pre)
            if size == 1:
                meant[index, 1] = len(sizes)
                sizes.append(1)
        last = [meant[axis.index, axis.pre or 1] for axis in self.axes]
        perm = [i for i in range(len(sizes)) if i not in last] + last
        flat = _transposed(tuple(sizes), tuple(perm))
        if self.devices:
            flat = [self.devices[i] for i in flat]
        size = prod(sizes[i] for i in last)
        return tuple(tuple(flat[i:i + size]) for i in range(0, len(flat), size))

    def __str__(self) -> str:
        return self.text


def _transposed(sizes: tuple[int, ...], perm: tuple[int, ...]) -> list[int]:
    """``iota(prod(sizes))`` shaped by ``sizes`` and transposed by ``perm``, flat."""
    strides = [prod(sizes[i + 1:]) for i in range(len(sizes))]
    flat = [0]
    for axis in perm:
        flat = [base + i * strides[axis] for base in flat for i in range(sizes[axis])]
    return flat


def read_groups(cursor: Cursor) -> ReplicaGroups:
    """Step over the value of ``replica_groups``."""
    begin = cursor.at
    if cursor.sees("{"):
        listed = int_lists(cursor)
        return ReplicaGroups(spell("intlists", listed), listed)
    if cursor.sees_word("mesh"):
        return _mesh_groups(cursor)
    dims = _square(cursor, "the number and size of the groups")
    if len(dims) != 2:
        raise Refused(ATTRIBUTE_VALUE, f"replica groups are [number,size]<=[...], not {len(dims)} dimensions", begin, cursor.at - begin)
    cursor.expect("<=", "after [number,size]", ATTRIBUTE_VALUE)
    reshape, perm = read_iota(cursor)
    return ReplicaGroups(f"[{_commas(dims)}]<={iota_text(reshape, perm)}", (), dims, reshape, perm)


def iota_text(reshape: Sequence[int], perm: Sequence[int]) -> str:
    """The numbering of devices as text: ``[4,2]T(1,0)``."""
    return f"[{_commas(reshape)}]" + (f"T({_commas(perm)})" if len(reshape) > 1 else "")


def read_iota(cursor: Cursor) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Step over ``[4,2]T(1,0)``, the numbering of devices; returns its sizes and their permutation."""
    begin = cursor.at
    reshape = _square(cursor, "the device numbering")
    _check_sizes(reshape, begin, cursor.at - begin)
    if len(reshape) == 1:
        return reshape, (0,)
    begin = cursor.at
    if not cursor.eat_word("T"):
        cursor.refuse("expected T(...), the order of the dimensions", ATTRIBUTE_VALUE)
    cursor.expect("(", "after T", ATTRIBUTE_VALUE)
    perm = cursor.integers("a dimension", ATTRIBUTE_VALUE)
    cursor.expect(")", "after T(...", ATTRIBUTE_VALUE)
    if sorted(perm) != list(range(len(reshape))):
        raise Refused(ATTRIBUTE_VALUE, f"T({_commas(perm)}) must list each of the dimensions 0 to {len(reshape) - 1} once", begin,
                      cursor.at - begin)
    return reshape, perm


def int_lists(cursor: Cursor) -> tuple[tuple[int, ...], ...]:
    """Step over ``{{0,1},{2,3}}``."""
    cursor.expect("{", "before a list of lists", ATTRIBUTE_VALUE)
    if cursor.eat("}"):
        return ()
    lists = tuple([ints(cursor) for _ in cursor.elements()])
    cursor.expect("}", "at the end of the list of lists", ATTRIBUTE_VALUE)
    return lists


def ints(cursor: Cursor) -> tuple[int, ...]:
    """Step over ``{0,1}``."""
    cursor.expect("{", "before a list of integers", ATTRIBUTE_VALUE)
    values = () if cursor.sees("}") else cursor.integers("an integer", ATTRIBUTE_VALUE)
    cursor.expect("}", "at the end of the list", ATTRIBUTE_VALUE)
    return values


def read_alias(cursor: Cursor, what: str, form: str) -> tuple[tuple[int, ...], int, tuple[int, ...]]:
    """Step over ``{0}: (1, {}``, but not over the closing parenthesis.

    Returns the index of an output, the number of an operand or parameter, and an index in that. ``what`` and ``form`` are for messages.
    """
    output = ints(cursor)
    cursor.expect(":", form, ATTRIBUTE_VALUE)
    cursor.expect("(", form, ATTRIBUTE_VALUE)
    number = cursor.integer(f"the number of {what}", ATTRIBUTE_VALUE)
    cursor.expect(",", form, ATTRIBUTE_VALUE)
    return output, number, ints(cursor)


@dataclass(slots=True)
class Mesh:
    """``mesh["x"=2,"y"=4, device_ids=(...)]``."""

    names: list[str]
    sizes: list[int]
    devices: tuple[int, ...] = ()


def read_mesh(cursor: Cursor) -> Mesh:
    """Step over a mesh; the cursor is at the word ``mesh``."""
    cursor.next()
    mesh = Mesh([], [])
    begin = cursor.at
    cursor.expect("[", "after mesh", ATTRIBUTE_VALUE)
    while not cursor.sees("]"):
        if cursor.eat_field("device_ids"):
            mesh.devices = _device_ids(cursor, mesh)
        else:
            mesh.names.append(_axis_name(cursor))
            mesh.sizes.append(cursor.integer("the size of an axis", ATTRIBUTE_VALUE))
            _check_sizes(mesh.sizes, begin, cursor.at - begin)
        if not cursor.eat(","):
            break
    cursor.expect("]", "at the end of the mesh", ATTRIBUTE_VALUE)
    if cursor.sees(",") and cursor.peek() == ("attribute", "device_ids"):  # where older printers wrote it
        cursor.next()
        cursor.next()
        mesh.devices = _device_ids(cursor, mesh)
    return mesh


def read_axis(cursor: Cursor, mesh: Mesh) -> MeshAxis:
    """``"x"`` or ``"x":(2)4``, by name or by number."""
    begin, length = cursor.at, cursor.after - cursor.at
    if cursor.kind == "string":
        name = cursor.string()
        part = cursor.eat(":")
    else:
        part = cursor.text.endswith(":", cursor.at, cursor.after)
        name = str(cursor.integer()) if cursor.kind == "int" else cursor.name("the name of an axis", ATTRIBUTE_VALUE)
    if name in mesh.names:
        index = mesh.names.index(name)
    elif name.isdecimal():
        index = int(name)
        if index >= len(mesh.names):
            raise Refused(ATTRIBUTE_VALUE, f"axis {index} is out of bounds for mesh of {len(mesh.names)} axes", begin, length)
    else:
        raise Refused(ATTRIBUTE_VALUE, f"'{name}' is not a valid axis name or index in the mesh", begin, length,
                      f"its axes are {', '.join(mesh.names)}" if mesh.names else "")
    if part or cursor.sees("("):
        cursor.expect("(", "before the size that precedes a sub-axis", ATTRIBUTE_VALUE)
        pre = cursor.integer("a size", ATTRIBUTE_VALUE)
        cursor.expect(")", "after the size", ATTRIBUTE_VALUE)
        size = cursor.integer("the size of the sub-axis", ATTRIBUTE_VALUE)
        if pre < 1 or size < 2 or mesh.sizes[index] % (pre * size):
            raise Refused(ATTRIBUTE_VALUE, f"({pre}){size} is not a part of an axis of {mesh.sizes[index]}", begin, cursor.at - begin)
        return MeshAxis(index, pre, size)
    return MeshAxis(index)


def read_axes(cursor: Cursor, mesh: Mesh, open_ok: bool = False) -> tuple[MeshAxis, ...]:
    """``{"x", "y"}``; with ``open_ok``, ``?`` may come last."""
    cursor.expect("{", "before the axes", ATTRIBUTE_VALUE)
    axes: list[MeshAxis] = []
    while not cursor.sees("}"):
        if open_ok and cursor.eat("?"):
            break
        begin = cursor.at
        axes.append(read_axis(cursor, mesh))
        _check_apart(axes, mesh, begin, cursor.at - begin)
        if not cursor.eat(","):
            break
    cursor.expect("}", "after the axes", ATTRIBUTE_VALUE)
    return tuple(axes)


def _mesh_groups(cursor: Cursor) -> ReplicaGroups:
    begin = cursor.at
    mesh = read_mesh(cursor)
    axes = read_axes(cursor, mesh)
    text = " ".join(cursor.text[begin:cursor.at].split())
    return ReplicaGroups(text, (), (), (), (), tuple(mesh.sizes), axes, mesh.devices)


def _device_ids(cursor: Cursor, mesh: Mesh) -> tuple[int, ...]:
    begin = cursor.at
    cursor.expect("(", "before the device_ids", ATTRIBUTE_VALUE)
    if cursor.sees("["):
        reshape, perm = read_iota(cursor)
        count, devices = prod(reshape), tuple(_transposed(reshape, perm)) if prod(reshape) <= 1 << 20 else ()
    else:
        listed: list[int] = []
        while not cursor.sees(")"):
            listed.append(cursor.integer("a device number", ATTRIBUTE_VALUE))
            if not cursor.eat(","):
                break
        count, devices = len(listed), tuple(listed)
    cursor.expect(")", "after the device_ids", ATTRIBUTE_VALUE)
    if count != prod(mesh.sizes):
        raise Refused(ATTRIBUTE_VALUE, f"{count} device_ids for a mesh of {prod(mesh.sizes)} devices", begin, cursor.at - begin)
    return devices


def _axis_name(cursor: Cursor) -> str:
    if cursor.kind == "string":
        name = cursor.string()
        cursor.expect("=", "after the name of an axis", ATTRIBUTE_VALUE)
        return name
    return cursor.field((), "expected an axis, name=size", ATTRIBUTE_VALUE)


def _check_sizes(sizes: Sequence[int], begin: int, length: int) -> None:
    """Refuse sizes that number no devices, or more of them than 64 bits count: groups are made of all these numbers."""
    if min(sizes) < 1:
        raise Refused(ATTRIBUTE_VALUE, f"devices cannot be numbered along {min(sizes)} places", begin, max(1, length))
    if prod(sizes) >= 1 << 63:
        raise Refused(ATTRIBUTE_VALUE, "the number of devices does not fit into 64 bits", begin, max(1, length))


def _check_apart(axes: Sequence[MeshAxis], mesh: Mesh, begin: int, length: int) -> None:
    """Refuse the last of the axes where it shares devices with one before it: groups would have some devices several times."""
    first, last = _part(axes[-1], mesh)
    for axis in axes[:-1]:
        low, high = _part(axis, mesh)
        if axis.index == axes[-1].index and (axis == axes[-1] or max(first, low) < min(last, high)):
            raise Refused(ATTRIBUTE_VALUE, f"axis {mesh.names[axis.index]} is given twice, or in parts that overlap", begin, max(1, length))


def _part(axis: MeshAxis, mesh: Mesh) -> tuple[int, int]:
    """The products of the sizes before a part of an axis and at its end."""
    return (axis.pre, axis.pre * axis.size) if axis.size else (1, mesh.sizes[axis.index])


def _square(cursor: Cursor, what: str) -> tuple[int, ...]:
    cursor.expect("[", f"before {what}", ATTRIBUTE_VALUE)
    values = cursor.integers("an integer", ATTRIBUTE_VALUE)
    cursor.expect("]", f"after {what}", ATTRIBUTE_VALUE)
    return values


def _commas(values: Sequence[int]) -> str:
    return ",".join(map(str, values))
