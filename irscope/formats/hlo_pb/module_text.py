"""An HloModuleProto as HLO text: what XLA would print of it, one line an instruction, and the constants that are too large for a text.

The text is read by the reader of HLO text. So a proto and the text of the same module are one graph, with the same checks, and a finding
shows the instruction that it is about.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from irscope.formats.hlo.arrays import in_tuples, text_of
from irscope.formats.hlo.opcodes import opcode_named
from irscope.formats.hlo.spelling import KEYWORDS, LEGAL, quoted, spell_module_attribute
from irscope.formats.hlo_pb.attributes import Instruction, attribute
from irscope.formats.hlo_pb.common import common_attributes, config_text, frontend_text, metadata_text
from irscope.formats.hlo_pb.literals import values_of
from irscope.formats.hlo_pb.order import callees_first, operands_first
from irscope.formats.hlo_pb.record import Malformed, Record
from irscope.formats.hlo_pb.shapes import shape_text
from irscope.graph import TupleType, Type
from irscope.lazy import Array
from irscope.source.budget import tick

SHOWN = 1024
"""Constants of more elements are elided in the text, and their arrays are kept beside it."""
OPCODE = re.compile(r"[a-z][a-z0-9\-]*")
LOCAL = (1 << 32) - 1
"""The low bits of an id number the instruction; in newer releases the bits above number the computation."""


@dataclass(slots=True)
class Printed:
    """The text, the values of elided constants by computation and instruction, and what of the proto does not fit together."""

    lines: list[str] = field(default_factory=list)
    constants: dict[tuple[str, str], tuple[Type, list[Array]]] = field(default_factory=dict)
    faults: list[tuple[int, str]] = field(default_factory=list)
    """The number of a line, and what is wrong with its instruction."""

    def report(self, faults: Iterable[str]) -> None:
        """Add faults of the line that comes next."""
        self.faults += [(len(self.lines), fault) for fault in faults]


def print_proto(module: Record) -> Printed:
    """The text of a module. The reader of the text reports inconsistencies that it can see; the others are ``faults``."""
    printed = Printed()
    twins = _twins(module.records("computations"))
    computations = callees_first(module.records("computations"))
    names = _names(computations)
    printed.lines += _header(module)
    schedule = {entry.number("key"): entry.record("value").numbers("instruction_ids")
                for entry in module.record("schedule").records("sequences")}
    entry = _entry(module, computations)
    for computation in computations:
        writer = _Computation(printed, computation, names, schedule.get(computation.number("id"), ()))
        printed.lines.append("")
        printed.report(f"two computations have the id {computation.number('id')}: {computation.text('name')} and {twin}"
                       for twin in twins.get(computation.number("id"), ()))
        if entry is None and computation is computations[-1]:
            printed.report([f"no computation has the id {module.number('entry_computation_id')} or the name "
                            f"{module.text('entry_computation_name')!r:.80} of the entry"])
        writer.print(computation is entry)
    return printed


def _entry(module: Record, computations: Sequence[Record]) -> Record | None:
    """The computation that runs: by its number, else by its name."""
    number, name = module.number("entry_computation_id"), module.text("entry_computation_name")
    if number or not name:
        return next((c for c in computations if c.number("id") == number), None)
    return next((c for c in computations if c.text("name") == name), None)


def _header(module: Record) -> Iterator[str]:
    parts = [f"HloModule {_legal(module.text('name'), 'module')}"]
    if module.record("schedule").records("sequences"):
        parts.append("is_scheduled=true")
    aliases = tuple((e.numbers("output_shape_index"), (e.number("parameter_number"), e.numbers("parameter_shape_index"),
                                                       "must-alias" if e.word("kind") == "MUST_ALIAS" else "may-alias"))
                    for e in module.record("input_output_alias").records("entries"))
    donors = tuple((e.number("parameter_number"), e.numbers("parameter_shape_index"))
                   for e in module.record("buffer_donor").records("entries"))
    parts += [f"{name}={spell_module_attribute(name, value)}" for name, value in (("input_output_alias", aliases), ("buffer_donor", donors))
              if value]
    if module.has("host_program_shape"):
        shape = module.record("host_program_shape")
        parameters = ", ".join(map(shape_text, shape.records("parameters")))
        parts.append(f"entry_computation_layout={{({parameters})->{shape_text(shape.record('result'))}}}")
    frontend = frontend_text(module.record("frontend_attributes"))
    if frontend:
        parts.append(f"frontend_attributes={frontend}")
    yield ", ".join(parts)
    yield from _frames(module.record("stack_frame_index"))


def _frames(index: Record) -> Iterator[str]:
    """The tables of stack frames. The text numbers the parent of a frame from 1, where 1 is none."""
    if not index.records("stack_frames"):
        return
    for title, name in (("FileNames", "file_names"), ("FunctionNames", "function_names")):
        yield from ("", title, *(f"{i} {quoted(text)}" for i, text in enumerate(index.texts(name), 1)))
    places = [" ".join(f"{name}={place.number(name)}" for name in ("file_name_id", "function_name_id", "line", "end_line", "column",
                                                                    "end_column")) for place in index.records("file_locations")]
    yield from ("", "FileLocations", *(f"{i} {{{place}}}" for i, place in enumerate(places, 1)))
    frames = [f"file_location_id={frame.number('file_location_id')} parent_frame_id={frame.number('parent_frame_id') + 1}"
              for frame in index.records("stack_frames")]
    yield from ("", "StackFrames", *(f"{i} {{{frame}}}" for i, frame in enumerate(frames, 1)))


class _Computation:
    """Prints one computation."""

    def __init__(self, printed: Printed, computation: Record, graphs: Mapping[int, str], schedule: Sequence[int]) -> None:
        self.printed, self.computation, self.graphs = printed, computation, graphs
        self.name = graphs[computation.number("id")]
        found = computation.records("instructions")
        self.by_id = {one.number("id"): one for one in found}
        self.twins = _twins(found)
        self.names = _unique({number: one.text("name") for number, one in self.by_id.items()})
        self.kinds = {number: one.record("shape").word("element_type") for number, one in self.by_id.items()}
        scheduled = [self.by_id[number] for number in dict.fromkeys(map(self.known, schedule)) if number in self.by_id]
        self.order = operands_first(scheduled if len(scheduled) == len(self.by_id) else list(self.by_id.values()), self.known)

    def known(self, number: int) -> int:
        """The id of an instruction in this computation; some releases write only the low bits."""
        if number in self.by_id:
            return number
        wide = (self.computation.number("id") << 32) | (number & LOCAL)
        return wide if wide in self.by_id else number & LOCAL

    def print(self, is_entry: bool) -> None:
        """Append the lines of the computation."""
        root = self.known(self.computation.number("root_id"))
        parameters = [one for one in self.order if one.text("opcode") == "parameter"]
        parameters.sort(key=lambda one: one.number("parameter_number"))
        signature = ", ".join(f"{self.names[one.number('id')]}: {shape_text(one.record('shape'), False)}" for one in parameters)
        result = f" -> {shape_text(self.by_id[root].record('shape'), False)}" if root in self.by_id else ""
        lines = self.printed.lines
        lines.append(f"{'ENTRY ' if is_entry else ''}%{self.name} {f'({signature}){result} ' if result else ''}{{")
        if root not in self.by_id and self.by_id:
            self.printed.report([f"no instruction of {self.computation.text('name')} has the id {root} of its root"])
        for one in self.order:
            tick()
            self.printed.report(f"two instructions of {self.computation.text('name')} have the id {one.number('id')}: "
                                f"{one.text('name')} and {twin}" for twin in self.twins.get(one.number("id"), ()))
            lines.append(f"  {'ROOT ' if one.number('id') == root else ''}{self._instruction(one)}")
        thread = self.computation.text("execution_thread")
        lines.append("}" + (f", execution_thread={quoted(thread)}" if thread not in ("", "main") else ""))

    def _instruction(self, one: Record) -> str:
        opcode = one.text("opcode")
        opcode = opcode if OPCODE.fullmatch(opcode) else "unknown"
        name = self.names[one.number("id")]
        operands = [self.known(number) for number in one.numbers("operand_ids")]
        if opcode == "parameter":
            inside = str(one.number("parameter_number"))
        elif opcode == "constant":
            inside = self._constant(one, name)
        else:
            inside = ", ".join("%" + self.names.get(number, f"missing.{number & LOCAL}") for number in operands)
        parts = [f"%{name} = {shape_text(one.record('shape'))} {opcode}({inside})", *self._attributes(one, opcode, operands)]
        return ", ".join(parts)

    def _attributes(self, one: Record, opcode: str, operands: Sequence[int]) -> Iterator[str]:
        called = tuple(self.graphs.get(number, f"missing.{number & LOCAL}") for number in one.numbers("called_computation_ids"))
        instruction = Instruction(one, tuple(self.kinds.get(number, "") for number in operands), called)
        grammar = opcode_named(opcode)
        known, required = (grammar.attributes, grammar.required) if grammar is not None else ({}, ())
        for name, kind in known.items():
            value = self._literal(one) if kind == "literal" else attribute(name, kind, instruction, name in required)
            if value is not None:
                yield f"{name}={value}"
        yield from common_attributes(one)
        before = [self.known(number) for number in one.numbers("control_predecessor_ids")]
        if before:
            yield "control-predecessors={" + ", ".join("%" + self.names.get(number, f"missing.{number & LOCAL}") for number in before) + "}"
        metadata = metadata_text(one.record("metadata"))
        if metadata:
            yield f"metadata={metadata}"
        config = one.text("backend_config")
        if config:
            yield f"backend_config={config_text(config)}"

    def _constant(self, one: Record, name: str) -> str:
        """The value of a constant; ``{...}`` where it is missing, wrong or too long."""
        found = self._values(one)
        if found is None:
            return "{...}"
        type, arrays = found
        if sum(array.size for array in arrays) <= SHOWN:
            return _text(type, arrays)
        self.printed.constants[self.name, name] = found
        return "{...}"

    def _literal(self, one: Record) -> str | None:
        """The literal of a custom call, with its type."""
        found = self._values(one)
        if found is None or isinstance(found[0], TupleType):
            return None
        return f"{shape_text(one.record('literal').record('shape'))} {_text(*found)}"

    def _values(self, one: Record) -> tuple[Type, list[Array]] | None:
        """The type and the arrays of a literal; None where it is missing, and where it is damaged, which is a fault."""
        if not one.has("literal"):
            return None
        try:
            return values_of(one.record("literal"))
        except Malformed as error:
            self.printed.report([str(error)])
            return None


def _text(type: Type, arrays: Sequence[Array]) -> str:
    return text_of(in_tuples(iter(arrays), type), type)


def _twins(things: Sequence[Record]) -> dict[int, list[str]]:
    """The names of the computations or instructions that have the id of a later one, by the id."""
    if len({one.number("id") for one in things}) == len(things):
        return {}
    named: dict[int, list[str]] = {}
    for one in things:
        named.setdefault(one.number("id"), []).append(one.text("name"))
    return {number: names[:-1] for number, names in named.items() if len(names) > 1}


def _names(computations: Sequence[Record]) -> dict[int, str]:
    """A legal name for each computation, by its number."""
    return _unique({one.number("id"): one.text("name") for one in computations})


def _unique(wanted: Mapping[int, str]) -> dict[int, str]:
    names: dict[int, str] = {}
    taken: dict[str, int] = {}
    for number, name in wanted.items():
        legal = free = _legal(name, "v")
        while free in taken:
            taken[legal] = taken.get(legal, 0) + 1
            free = f"{legal}.{taken[legal]}"
        taken.setdefault(free, 0)
        names[number] = free
    return names


def _legal(name: str, otherwise: str) -> str:
    """A name that HLO text may have."""
    if LEGAL.fullmatch(name) and name not in KEYWORDS and not (name.startswith("__") and not name.startswith("__xla_")):
        return name
    cleaned = re.sub(r"[^A-Za-z0-9_.\-]", "_", name).strip("_")
    return f"{otherwise}_{cleaned}" if cleaned else otherwise
