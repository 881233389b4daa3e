"""Shardings, meshes and replica groups as HLO text."""
from __future__ import annotations

from collections.abc import Sequence

from irscope.formats.hlo.devices import iota_text
from irscope.formats.hlo.spelling import braced, ints_text, quoted
from irscope.formats.hlo_pb.record import Record

_KINDS = {"REPLICATED": "replicated", "MANUAL": "manual", "UNKNOWN": "unknown", "UNREDUCED": "unreduced"}


def sharding_text(sharding: Record) -> str:
    """The value of ``sharding=``."""
    if sharding.has("named_sharding"):
        return _named(sharding.record("named_sharding"))
    if sharding.word("type") == "TUPLE":
        return "{" + ", ".join(map(sharding_text, sharding.records("tuple_shardings"))) + "}"
    return "{" + " ".join(_parts(sharding)) + "}"


def _parts(sharding: Record) -> list[str]:
    kind = sharding.word("type")
    parts = []
    if kind == "MAXIMAL":
        parts.append(f"maximal device={next(iter(sharding.numbers('tile_assignment_devices')), 0)}")
    elif kind in _KINDS:
        parts.append(_KINDS[kind])
    else:
        dims = ",".join(map(str, sharding.numbers("tile_assignment_dimensions")))
        reshape = sharding.numbers("iota_reshape_dims")
        devices = iota_text(reshape, sharding.numbers("iota_transpose_perm")) if reshape \
            else ",".join(map(str, sharding.numbers("tile_assignment_devices")))
        parts.append(f"devices=[{dims}]{'<=' if reshape else ''}{devices}")
        if sharding.flag("replicate_on_last_tile_dim"):
            parts.append("last_tile_dim_replicate")
        last = [_KINDS.get(word, word.lower()) for word in sharding.words("last_tile_dims")]
        if last:
            parts.append("last_tile_dims={" + ", ".join(last) + "}")
    if sharding.flag("is_shard_group"):
        word = "shard_like" if sharding.word("shard_group_type") == "LIKE" else "shard_as"
        parts.append(f"{word} {sharding.number('shard_group_id')}")
    return parts


def groups_text(instruction: Record) -> str:
    """The value of ``replica_groups=``, in whichever of its forms the proto has it."""
    if instruction.has("mesh_axes_replica_group_list"):
        listed = instruction.record("mesh_axes_replica_group_list")
        mesh = listed.record("mesh")
        return f"{_mesh(mesh)} {_axes(_names(mesh), listed.records('axes'))}"
    within = instruction.record("collective_device_list")
    if instruction.has("iota_collective_device_list") or within.has("iota_replica_group_list"):  # releases differ in where it is
        iota = (within.record("iota_replica_group_list") if within.has("iota_replica_group_list")
                else instruction.record("iota_collective_device_list"))
        dims = f"[{iota.number('num_replica_groups')},{iota.number('num_devices_per_group')}]"
        return f"{dims}<={iota_text(iota.numbers('iota_reshape_dims'), iota.numbers('iota_transpose_perm'))}"
    groups = (within if instruction.has("collective_device_list") else instruction).records("replica_groups")
    return braced(ints_text(group.numbers("replica_ids")) for group in groups)


def _mesh(mesh: Record) -> str:
    axes = ",".join(f"'{axis.text('name')}'={axis.number('size')}" for axis in mesh.records("axes"))
    devices = ""
    if mesh.has("iota_transform"):
        iota = mesh.record("iota_transform")
        devices = f", device_ids=({iota_text(iota.numbers('reshape_dims'), iota.numbers('transpose_perm'))})"
    elif mesh.numbers("device_ids"):
        devices = f", device_ids=({','.join(map(str, mesh.numbers('device_ids')))})"
    return f"mesh[{axes}]{devices}"


def _names(mesh: Record) -> list[str]:
    """The names of the axes of a mesh."""
    return [axis.text("name") for axis in mesh.records("axes")]


def _axes(names: Sequence[str], axes: Sequence[Record], more: str = "") -> str:
    texts = [_axis(names, axis) for axis in axes]
    return "{" + ", ".join(texts + ([more] if more else [])) + "}"


def _axis(names: Sequence[str], axis: Record) -> str:
    index = axis.number("mesh_axis_index")
    name = quoted(names[index] if 0 <= index < len(names) else str(index)).replace('"', "'")
    if not axis.has("sub_axis_info"):
        return name
    sub = axis.record("sub_axis_info")
    return f"{name}:({sub.number('pre_size')}){sub.number('size')}"


def _named(sharding: Record) -> str:
    """A sharding by the names of a mesh: ``{mesh['x'=2,'y'=4], [{'x'}, {?}], replicated={'y'}}``."""
    mesh = sharding.record("mesh")
    if not mesh.records("axes"):
        devices = mesh.numbers("device_ids")
        return f"{{maximal_mesh[device_id={devices[0]}]}}" if devices else "{replicated}"
    names = _names(mesh)
    dims = [_axes(names, dim.records("axes"), "" if dim.flag("is_closed") else "?") for dim in sharding.records("dim_shardings")]
    parts = [_mesh(mesh), "[" + ", ".join(dims) + "]"]
    for word in ("replicated", "unreduced", "manual"):
        axes = sharding.records(f"{word}_axes")
        if axes:
            parts.append(f"{word}={_axes(names, axes)}")
    return "{" + ", ".join(parts) + "}"
