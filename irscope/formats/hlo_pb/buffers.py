"""The assignment of buffers that an HloProto may hold, as XLA's report beside a text has it."""
from __future__ import annotations

from irscope.formats.hlo_pb.record import Record
from irscope.graph import Allocation, BufferAssignment


def allocations_of(assignment: Record, module: Record) -> BufferAssignment:
    """The allocations of a module, with the instructions whose values lie in each, the largest first."""
    instructions = {one.number("id"): one.text("name") for computation in module.records("computations")
                    for one in computation.records("instructions")}
    places = {buffer.number("id"): buffer.record("defined_at") for buffer in assignment.records("logical_buffers")}
    names = {number: place.text("instruction_name") or instructions.get(place.number("instruction_id"), "")
             for number, place in places.items()}
    found = []
    for record in assignment.records("buffer_allocations"):
        values = [(names.get(one.number("logical_buffer_id"), ""), one.number("size")) for one in record.records("assigned")]
        values.sort(key=lambda value: -value[1])
        found.append(Allocation(record.number("index"), record.number("size"), _sort(record), tuple(values)))
    return BufferAssignment(found)


def _sort(record: Record) -> str:
    """The kind of an allocation, in the words of the report."""
    if record.flag("is_entry_computation_parameter"):
        return "parameter"
    if record.flag("is_thread_local"):
        return "thread-local"
    if record.flag("is_constant"):
        return "constant"
    return "output" if record.flag("maybe_live_out") else "temporary"
