"""The values of a dump that the buffers of an out-of-memory error are."""
from __future__ import annotations

from collections import defaultdict

from irscope.analysis.summary import describe_type
from irscope.analysis.survey import Survey
from irscope.fleet.out_of_memory import OutOfMemory, PeakBuffer
from irscope.graph import Module, Node
from irscope.lint.audits import Table
from irscope.lint.savings import human_bytes
from irscope.ops import hlo


def peak_buffers(module: Module, error: OutOfMemory) -> Table:
    """One row per buffer: its bytes, the value, and how the value was found.

    A buffer is the value that its label names; else the one of its type with the same operator and the same ``op_name``; else the only
    one of its type and operator. Parameters are found by type. Where several fit, the first is shown with their number.
    """
    table = Table("memory", "", ("bytes", "value", "type", "found by", "scope", "source"))
    index = _Index(Survey(module))
    found = 0
    for buffer in error.buffers:
        nodes, way = index.find(buffer)
        found += bool(nodes)
        name = f"%{nodes[0].name}" + (f" or {len(nodes) - 1} like it" if len(nodes) > 1 else "") if nodes else "not in this text"
        size = "?" if buffer.bytes is None else human_bytes(buffer.bytes)
        table.rows.append((size, name, buffer.type, way, buffer.op_name, buffer.source))
    requested = f" when {human_bytes(error.requested)} more were requested" if error.requested is not None else ""
    table.title = f"XLA ran out of memory{requested}; {found} of its {len(error.buffers)} largest buffers are found in this text"
    padded = sum(buffer.padding for buffer in error.buffers)
    if padded:
        table.notes.append(f"{human_bytes(padded)} of them are padding of the layout")
    if error.buffers and found < len(error.buffers):
        table.notes.append("the error is about the optimised module: XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_as_text' writes it as "
                           "*after_optimizations.txt")
    return table


class _Index:
    """The values of a module by name, and by type with operator and scope: each buffer is looked up, and an error may list many."""

    def __init__(self, survey: Survey) -> None:
        self.by_name: dict[str, Node] = {}
        self.params: dict[str, list[Node]] = defaultdict(list)
        self.alike: dict[tuple[str, str], list[Node]] = defaultdict(list)
        self.exact: dict[tuple[str, str, str], list[Node]] = defaultdict(list)
        params = set(survey.entry.params) if survey.entry is not None else set()
        for graph in survey.memory.graphs:
            for node in graph.nodes:
                self.by_name.setdefault(node.name, node)
                if node.op is hlo.tuple or node.op is hlo.get_tuple_element:
                    continue
                for type in {describe_type(leaf) for leaf in node.type.leaves()}:
                    if node in params:
                        self.params[type].append(node)
                    if node.op is not hlo.parameter:
                        for opcode in ("", node.op.name):
                            self.alike[type, opcode].append(node)
                            self.exact[type, opcode, survey.module.scope(node)].append(node)

    def find(self, buffer: PeakBuffer) -> tuple[list[Node], str]:
        """The values that a buffer may be, in the order of the text, and how they were found."""
        if buffer.name in self.by_name:
            return [self.by_name[buffer.name]], "name"
        if buffer.sort == "parameter":
            return self.params.get(buffer.type, []), "type"
        exact = self.exact.get((buffer.type, buffer.opcode, buffer.op_name), []) if buffer.op_name else []
        alike = self.alike.get((buffer.type, buffer.opcode), [])
        return (exact, "op_name") if exact else (alike, "type") if len(alike) == 1 else ([], "")
