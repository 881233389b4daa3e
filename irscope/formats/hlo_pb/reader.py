"""From the bytes or the text of a proto to a Reading: which message it is, its module, its arguments and its buffers."""
from __future__ import annotations

from dataclasses import dataclass, replace

from irscope.formats.hlo import read as read_hlo
from irscope.formats.hlo.arrays import in_tuples
from irscope.formats.hlo.faults import PROTO
from irscope.formats.hlo_pb.buffers import allocations_of
from irscope.formats.hlo_pb.literals import values_of
from irscope.formats.hlo_pb.module_text import Printed, print_proto
from irscope.formats.hlo_pb.record import Malformed, Record
from irscope.formats.hlo_pb.schema import message
from irscope.formats.hlo_pb.text_proto import decode_text
from irscope.formats.hlo_pb.wire import decode
from irscope.formats.neighbours import text_beside
from irscope.graph import Reading, TupleType, Type
from irscope.lazy import Array
from irscope.ops.attrs import Literal
from irscope.source import Finding, SourceText, UserError

AGAIN = "copy it again, or wait until its writer is done"


@dataclass(frozen=True, slots=True)
class Parts:
    """What a file holds: the module, and where the message has them its arguments and its assignment of buffers."""

    module: Record
    arguments: tuple[Record, ...] = ()
    buffers: Record | None = None


def read_binary(data: bytes, name: str, kind: str) -> Reading:
    """Read a binary proto of a message. Raises UserError where the data is no such message, or not all of it."""
    try:
        return _reading(parts_of(decode(data, message(kind))), name)
    except Malformed as error:
        beside = text_beside(name)
        raise UserError(f"{name} is an HLO proto ({kind}), but damaged or cut off at byte {error.offset:,} of {len(data):,}: {error}",
                        f"its text is in the same folder: {beside}" if beside else AGAIN) from None


def read_text(source: SourceText, kind: str) -> Reading:
    """Read the text form of a message. A fault in it is a finding, at its place."""
    try:
        return _reading(parts_of(decode_text(source.text, message(kind))), source.name)
    except Malformed as error:
        reading = Reading(source, "hlo-pb", ok=False)
        reading.findings.append(Finding(PROTO.code, PROTO.name, PROTO.severity, f"the text of the proto ({kind}) is not whole: {error}",
                                        source, max(0, error.offset), help=AGAIN))
        return reading


def parts_of(whole: Record) -> Parts:
    """The parts of any of the messages that hold a module. Raises Malformed where there is none."""
    name = whole.message.name
    if name == "HloModuleProto":
        parts = Parts(whole)
    elif name == "HloProto":
        parts = Parts(whole.record("hlo_module"), (), whole.record("buffer_assignment") if whole.has("buffer_assignment") else None)
    elif name == "HloUnoptimizedSnapshot":
        first = whole.records("partitions")[:1]
        parts = Parts(whole.record("hlo_module"), tuple(argument for inputs in first for argument in inputs.records("arguments")))
    else:
        parts = replace(parts_of(whole.record("hlo")), arguments=tuple(whole.records("arguments")))
    if not parts.module.records("computations"):
        raise Malformed("its module has no computations", 0)
    return parts


def _reading(parts: Parts, name: str) -> Reading:
    printed = print_proto(parts.module)
    reading = read_hlo(SourceText(name, "\n".join(printed.lines) + "\n"))
    reading.format = "hlo-pb"
    _put_constants(reading, printed)
    starts = reading.source.starts()
    for line, text in printed.faults:
        reading.ok = False
        reading.findings.append(Finding(PROTO.code, PROTO.name, PROTO.severity, text, reading.source, starts[line] + 2))
    reading.arguments = _arguments(parts)
    if parts.buffers is not None:
        reading.buffers = allocations_of(parts.buffers, parts.module)
    return reading


def _put_constants(reading: Reading, printed: Printed) -> None:
    """Give the constants that the text elides their values."""
    for module in reading.modules:
        for (graph, name), (type, arrays) in printed.constants.items():
            node = next((node for node in module.graphs[graph].nodes if node.name == name), None) if graph in module.graphs else None
            if node is not None and str(node.type) == str(type):
                node.attrs = {**node.attrs, "literal": _literal(type, arrays)}


def _literal(type: Type, arrays: list[Array]) -> Literal:
    return Literal(type, _value=in_tuples(iter(arrays), type)) if isinstance(type, TupleType) else Literal.of(arrays[0], type)


def _arguments(parts: Parts) -> tuple[Array, ...]:
    """The arguments of a snapshot, tuples flattened; none where one of them is damaged."""
    found: list[Array] = []
    for argument in parts.arguments:
        try:
            found += values_of(argument)[1]
        except Malformed:
            return ()
    return tuple(found)
