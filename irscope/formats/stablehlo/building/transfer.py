"""Operations that talk to other devices or to the host: collectives, sends, feeds, tokens."""
from __future__ import annotations

import re
from math import prod
from typing import Any

from irscope.formats.hlo.devices import MeshAxis, ReplicaGroups
from irscope.formats.hlo.spelling import spell
from irscope.formats.stablehlo.attributes import Record
from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.text import text_of
from irscope.formats.stablehlo.building.work import Unsupported, Work, builds, declare, primitive
from irscope.graph import TOKEN, Node, TensorType, TupleType, Type
from irscope.graph.dtypes import U32
from irscope.ops import hlo
from irscope.ops.faults import TypeFault

SUB_AXIS = re.compile(r"\((\d{1,9})\)(\d{1,9})")


def collective(work: Work) -> dict[str, Any]:
    """The attributes that all collectives have: groups, channel, numbering of the devices."""
    fields = work.fields
    groups = {"replica_groups": _groups(work)} if "replica_groups" in fields else {}
    return {**groups, **_channel_id(fields), **fields.true_flags("use_global_device_ids")}


def _channel(fields: Fields) -> int:
    return fields.record("channel_handle").integer("handle", 0) if "channel_handle" in fields else 0


def _channel_id(fields: Fields) -> dict[str, int]:
    """The attribute ``channel_id``; none for channel 0, which is the default."""
    return {"channel_id": channel} if (channel := _channel(fields)) else {}


def _groups(work: Work) -> ReplicaGroups:
    value = work.fields.values["replica_groups"]
    if isinstance(value, Record):
        return _mesh_groups(work)
    rows = work.fields.rows("replica_groups")
    listed = tuple(tuple(device for device in row if device >= 0) for row in rows)
    return ReplicaGroups(spell("intlists", listed), listed)


def _mesh_groups(work: Work) -> ReplicaGroups:
    """``#stablehlo.replica_group_mesh_axes<mesh = @mesh, axes = [#stablehlo.axis_ref<name = "x">]>``."""
    given = work.fields.record("replica_groups")
    sizes = work.program.mesh(given.symbol("mesh"))
    order = list(sizes)
    axes, shown = [], []
    for reference in given.records("axes"):
        name = reference.text("name")
        if name not in sizes:
            raise TypeFault(f"replica_groups of '{work.operation.name}' name an axis {name!r} that the mesh does not have")
        part = SUB_AXIS.search(text_of(reference.values.get("sub_axis_info", "")))
        axes.append(MeshAxis(order.index(name), *(map(int, part.groups()) if part else ())))
        shown.append(f"'{name}'" + (f":({part[1]}){part[2]}" if part else ""))
    mesh = ", ".join(f"'{name}'={size}" for name, size in sizes.items())
    return ReplicaGroups(f"mesh[{mesh}] {{{', '.join(shown)}}}", mesh=tuple(sizes.values()), axes=tuple(axes))


@builds("cross-replica-sum")
def _cross_replica_sum(work: Work) -> None:
    raise Unsupported("cross-replica-sum has no equivalent", "write it as all_reduce")


declare("all_reduce", lambda work: work.emit(hlo.all_reduce, collective(work), None, [work.region()]))
declare("all_gather", lambda work: work.emit(hlo.all_gather, {"dimensions": (work.fields.integer("all_gather_dim"),), **collective(work)}))
declare("reduce_scatter", lambda work: work.emit(
    hlo.reduce_scatter, {"dimensions": (work.fields.integer("scatter_dimension"),), **collective(work)}, None, [work.region()]))
declare("collective_broadcast", lambda work: work.emit(hlo.collective_broadcast, collective(work)))
primitive("collective_permute", hlo.collective_permute, lambda fields: {
    "source_target_pairs": fields.pairs("source_target_pairs"), **_channel_id(fields)})


@builds("all_to_all")
def _all_to_all(work: Work) -> None:
    """XLA's all-to-all exchanges along one dimension; where the parts are joined along another, a transpose moves them there."""
    fields, attrs = work.fields, collective(work)
    if "split_dimension" not in fields:
        work.emit(hlo.all_to_all, attrs)
        return
    split, joined, count = (fields.integer(name) for name in ("split_dimension", "concat_dimension", "split_count"))
    operand = work.array()
    if not (0 <= split < operand.rank and 0 <= joined < operand.rank and count > 0):
        raise TypeFault(f"split_dimension {split}, concat_dimension {joined} or split_count {count} of '{work.operation.name}' "
                        f"do not fit {operand}")
    attrs = {"dimensions": (split,), **attrs}
    if split == joined or len(work.operands) != 1:
        work.emit(hlo.all_to_all, attrs)
        return
    operand = work.sized()
    x = work.step(hlo.all_to_all, work.operands, operand, attrs)
    sizes = list(operand.dims())
    sizes[split:split + 1] = [count, sizes[split] // count]
    x = work.step(hlo.reshape, [x], operand.with_shape(tuple(sizes)))
    order = list(range(len(sizes)))
    order.remove(split)
    order.insert(joined, split)
    x = work.step(hlo.transpose, [x], operand.with_shape(tuple(sizes[d] for d in order)), {"dimensions": tuple(order)})
    if prod(sizes) != work.result_array().elements:
        raise TypeFault(f"'{work.operation.name}' of {operand} does not give {work.result_array()}")
    work.emit(hlo.reshape, {}, [x])


# ---- tokens

primitive("create_token", hlo.after_all, None, 0)
primitive("after_all", hlo.after_all)


def _data(work: Work) -> list[Node]:
    """The operands before the token."""
    if not work.operands or work.operands[-1].type != TOKEN:
        raise TypeFault(f"the last operand of '{work.operation.name}' must be a token")
    return work.operands[:-1]


def _received(work: Work) -> list[Type]:
    """The types of the results before the token."""
    if not work.types:
        raise TypeFault(f"'{work.operation.name}' op needs a token as its last result")
    return work.types[:-1]


def _config(fields: Fields, name: str) -> dict[str, str]:
    return {name: config} if (config := fields.text(name, "")) else {}


@builds("infeed")
def _infeed(work: Work) -> None:
    """Data of a tuple type, and a token."""
    work.count(1)
    type = TupleType((TupleType(tuple(_received(work))), work.types[-1]))
    node = work.add(hlo.infeed, work.operands, _config(work.fields, "infeed_config"), type=type)
    inner = work.scope.part(node, 0)
    work.give(*work.scope.parts(inner, [result.name for result in work.operation.results[:-1]]),
              work.scope.part(node, 1, work.operation.results[-1].name))


@builds("outfeed")
def _outfeed(work: Work) -> None:
    data = work.scope.tuple(_data(work))
    work.emit(hlo.outfeed, {"outfeed_shape": data.type, **_config(work.fields, "outfeed_config")}, [data, work.operands[-1]])


def _transfer(work: Work) -> dict[str, Any]:
    return {"channel_id": _channel(work.fields), **work.fields.true_flags("is_host_transfer")}


@builds("send")
def _send(work: Work) -> None:
    data, attrs = work.scope.together(_data(work)), _transfer(work)
    started = TupleType((data.type, TensorType(U32, ()), TOKEN))
    work.emit(hlo.send_done, attrs, [work.step(hlo.send, [data, work.operands[-1]], started, attrs)])


@builds("recv")
def _recv(work: Work) -> None:
    work.count(1)
    attrs, data = _transfer(work), _received(work)
    inner: Type = data[0] if len(data) == 1 else TupleType(tuple(data))
    start = work.step(hlo.recv, work.operands, TupleType((inner, TensorType(U32, ()), TOKEN)), attrs)
    done = work.add(hlo.recv_done, [start], attrs, type=TupleType((inner, TOKEN)))
    results = work.operation.results
    first = work.scope.part(done, 0, results[0].name if len(data) == 1 else "")
    given = [first] if len(data) == 1 else work.scope.parts(first, [result.name for result in results[:-1]])
    work.give(*given, work.scope.part(done, 1, results[-1].name))
