"""Shardy: meshes, and regions that each device runs on its own shards."""
from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping

from irscope.formats.stablehlo.building.text import text_of
from irscope.formats.stablehlo.building.work import Work, builds
from irscope.formats.stablehlo.operations import Operation
from irscope.graph import Node, TupleType, Type
from irscope.ops import hlo
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain
from irscope.ops.shapes import fits

AXES = re.compile(r'"([^"]+)"\s*=\s*(\d{1,9})')


def read_mesh(operation: Operation, meshes: MutableMapping[str, Mapping[str, int]]) -> None:
    """Enter the axes of a ``sdy.mesh`` under its name."""
    name = operation.attributes.get("sym_name")
    mesh = operation.attributes.get("mesh")
    if isinstance(name, str) and mesh is not None:
        meshes[name] = {axis: int(size) for axis, size in AXES.findall(text_of(mesh))}


@builds("sdy.manual_computation")
def _manual_computation(work: Work) -> None:
    """Custom calls cut the operands into shards and join the results; between them, a call of the region."""
    body = work.region()
    if len(body.params) != len(work.operands):
        raise TypeFault(f"'{work.operation.name}' has {len(work.operands)} operands, but its region takes {len(body.params)} arguments")
    operands = [_boundary(work, x, param.type) for x, param in zip(work.operands, body.params, strict=True)]
    inner = body.result()
    node = work.scope.add(hlo.call, operands, inner.type, {}, (body,))
    parts = [node]
    if isinstance(inner.type, TupleType):
        parts = work.scope.parts(node, [f"{node.name}.{i}" for i in range(len(inner.type.elements))])
    if len(parts) != len(work.types):
        raise TypeFault(f"the region of '{work.operation.name}' returns {len(parts)} values, but it has {len(work.types)} results")
    shards = [work.scope.step(hlo.custom_call, [part], type, {"custom_call_target": "xla.sdy.LocalToGlobalShape"})
              for part, type in zip(parts, work.types, strict=True)]
    work.give(*shards)
    fields = work.fields.values
    frontend = []
    for name in ("in_shardings", "out_shardings", "manual_axes"):
        value = fields.get(name)
        if value is not None:
            text = text_of(value).replace('"', '\\"')
            frontend.append(f'xla.sdy.{name}="{text}"')
    work.program.keep(node, {"frontend_attributes": "{" + ",".join(frontend) + "}"})


def _boundary(work: Work, x: Node, type: Type) -> Node:
    """A shard of an operand."""
    if fits(x.type, type) and plain(x.type) == plain(type):
        return x
    return work.scope.step(hlo.custom_call, [x], type, {"custom_call_target": "xla.sdy.GlobalToLocalShape"})
