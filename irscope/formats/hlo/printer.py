"""Prints a module as HLO text: ``read(print_module(m))`` is the same graph, and XLA reads it too."""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from irscope.formats.hlo.assembly import SPOILT
from irscope.formats.hlo.asynchronous import start_of, wrapped_opcode
from irscope.formats.hlo.dialect import HLO
from irscope.formats.hlo.header import MODULE_ATTRIBUTES
from irscope.formats.hlo.opcodes import COMMON, KNOWN_ATTRIBUTES, OPCODES
from irscope.formats.hlo.provenance import HloProvenance
from irscope.formats.hlo.spelling import names_of, spell, spell_literal, spell_module_attribute, spell_type
from irscope.formats.hlo.types import compatible
from irscope.graph import Graph, Module, Node, TensorType, callees_first
from irscope.graph.module import still_true

RAW_ORDER = ("sharding", "frontend_attributes", "statistics", "parameter_replication", "origin", "original_value", "metadata",
             "backend_config")
# Attributes that remain valid on an instruction that replaces another; the rest is valid only on the original opcode.
CARRIED = frozenset(("metadata", "frontend_attributes"))
BODY_NAMES = {"call": ("to_apply",), "fusion": ("calls",), "async-start": ("calls",), "while": ("condition", "body"),
              "select-and-scatter": ("select", "scatter")}


def print_module(module: Module, style: str = "canonical") -> str:
    """The module as HLO text.

    ``canonical`` is XLA's own default form. ``input`` keeps the style of the text that was read: ``%``, signatures,
    types before operands, and tuple elements written ``%t#0``.
    """
    return "\n".join(_Printer(module, style).lines()) + "\n"


class _Printer:
    """Prints one module."""

    def __init__(self, module: Module, style: str) -> None:
        self.module = module
        self.provenance = module.provenance if isinstance(module.provenance, HloProvenance) else None
        self.percent = self.signature = True
        self.operand_types = self.compact = False
        if style == "input" and self.provenance is not None:
            self._take_style(self.provenance.text)
        self.graphs = [g for g in callees_first(module) if not g.notes.get("missing")]
        self.sign = "%" if self.percent else ""
        self.graph_names = names_of(self.graphs, self.percent)
        self.sugared = {id(g) for g in self.graphs if g.notes.get("implicit")}

    def lines(self) -> Iterator[str]:
        """The lines of the text."""
        yield self._header()
        if self.provenance is not None and self.provenance.tables():
            yield ""
            yield self.provenance.tables()
        for graph in self.graphs:
            if id(graph) not in self.sugared:
                yield ""
                yield from self._graph(graph)

    def _take_style(self, text: str) -> None:
        """Detect the style of the text that the module came from."""
        shown = [n for g in self.module.graphs.values() for n in g.nodes if n.loc > 0 and not n.synthetic and not g.notes.get("implicit")]
        if not shown:
            return
        self.percent = text[shown[0].loc - 1] == "%"
        graph = next((g for g in self.module.graphs.values() if g.loc >= 0 and not g.notes.get("inline")), None)
        self.signature = graph is not None and re.compile(r"[\w.\-]*\s*\(").match(text, graph.loc) is not None
        self.compact = True
        user = next((n for n in shown if n.operands and not n.operands[0].synthetic), None)
        if user is not None:
            name = re.escape(user.operands[0].name)
            self.operand_types = (
                re.compile(rf"[^\n]*?[({{]\s*[a-z(][^\n=]*[\])}}]\s+%?{name}\b").match(text, user.loc + len(user.name)) is not None
            )

    def _header(self) -> str:
        module = self.module
        parts = [f"HloModule {re.sub(r'[^A-Za-z0-9_.-]', '_', module.name) or 'module'}"]
        for name, value in module.attrs.items():
            if self._is_attribute_of_hlo(name, value) and (name != "entry_computation_layout" or self._fits_entry(value)):
                parts.append(f"{name}={spell_module_attribute(name, value)}")
        return ", ".join(parts)

    def _is_attribute_of_hlo(self, name: str, value: object) -> bool:
        """Whether a header of HLO has the attribute: one of its own, or one that the text has and irscope keeps as text."""
        return name in MODULE_ATTRIBUTES or (self.module.dialect is HLO and isinstance(value, str))

    def _fits_entry(self, layout: object) -> bool:
        """Whether the layout is still that of the entry: a pass may have changed its parameters or result."""
        if not isinstance(layout, tuple) or self.module.entry not in self.module.graphs:
            return isinstance(layout, str)
        entry = self.module.main()
        if entry.root is not None and entry.root.loc >= 0 and not entry.root.origin:
            return True  # as it was read
        params, result = layout
        return (entry.root is not None and len(params) == len(entry.params) and compatible(result, entry.root.type)
                and all(compatible(t, p.type) for t, p in zip(params, entry.params, strict=True)))

    def _graph(self, graph: Graph) -> Iterator[str]:
        names = self._node_names(graph)
        head = "ENTRY " if graph.name == self.module.entry else ""
        signature = ""
        if self.signature and graph.root is not None:
            params = ", ".join(f"{names[p.index]}: {spell_type(p.type, layouts=False)}" for p in graph.params)
            signature = f"({params}) -> {spell_type(graph.root.type, layouts=False)} "
        yield f"{head}{self.sign}{self.graph_names[id(graph)]} {signature}{{"
        for node in graph.nodes:
            if self._is_written(node):
                root = "ROOT " if node is graph.root else ""
                yield f"  {root}{self.sign}{names[node.index]} = {self._right_side(node, names)}"
        thread = graph.notes.get("execution_thread")
        yield "}" + (f", execution_thread={spell('string', thread)}" if thread is not None else "")

    def _node_names(self, graph: Graph) -> list[str]:
        """Legal names, by index; ``%t#0`` is kept where the style writes it."""
        names = names_of(graph.nodes, self.percent)
        return [n.name if self.compact and n.synthetic and "#" in n.name else names[id(n)] for n in graph.nodes]

    def _is_written(self, node: Node) -> bool:
        return node.op.name != "undefined" and not (node.synthetic and self.compact and "#" in node.name)

    def _right_side(self, node: Node, names: list[str]) -> str:
        opcode = node.op.name.removesuffix(SPOILT)
        spelled, bodies, attrs = opcode, node.bodies, dict(node.attrs)
        if opcode.startswith("async-"):
            start = start_of(node)
            if start is not None and start.bodies and id(start.bodies[0]) in self.sugared:
                spelled = f"{wrapped_opcode(start)}-{opcode[6:]}"
                if node is start and start.bodies[0].root is not None:
                    inner = start.bodies[0].root
                    opcode, bodies, attrs = inner.op.name, inner.bodies, {**inner.attrs, **attrs}
        if opcode == "parameter":
            inside = str(attrs.pop("number", 0))
        elif opcode == "constant":
            literal = attrs.pop("literal", None)
            inside = spell_literal(literal) if literal is not None else "{...}"
        else:
            inside = ", ".join(self._operand(o, names) for o in node.operands)
        parts = [f"{spell_type(node.type)} {spelled}({inside})", *self._attributes(node, opcode, attrs, bodies)]
        return ", ".join(parts)

    def _operand(self, node: Node, names: list[str]) -> str:
        name = self.sign + names[node.index]
        return f"{spell_type(node.type)} {name}" if self.operand_types else name

    def _attributes(self, node: Node, opcode: str, attrs: dict[str, Any], bodies: tuple[Graph, ...]) -> Iterator[str]:
        spec = OPCODES.get(opcode)
        kinds = {
            **(spec.attributes if spec is not None else {}),
            "async_execution_thread": "string",
            "output_to_operand_aliasing": "aliasing",
        }
        for name, kind in kinds.items():
            if name in attrs:
                yield f"{name}={spell(kind, attrs[name])}"
        yield from self._called(node, opcode, bodies)
        written, raw = self._raw(node)
        if spec is None:  # an unknown opcode: print everything as it was written
            yield from (f"{name}={value}" for name, value in raw.items() if name not in COMMON)
        predecessors = attrs.get("control_predecessors")
        if predecessors:
            yield "control-predecessors={" + ", ".join(self.sign + name for name in predecessors) + "}"
        same = written in (node.op.name, opcode) or (node.op.name.startswith("async-") and written.endswith(node.op.name[5:]))
        for name in [*RAW_ORDER, *(n for n in raw if n not in COMMON and spec is not None)]:
            if name in raw and (same or name in CARRIED):
                yield f"{name}={raw[name]}"

    def _called(self, node: Node, opcode: str, bodies: tuple[Graph, ...]) -> Iterator[str]:
        if not bodies:
            return
        called = [self.sign + self.graph_names.get(id(g), g.name) for g in bodies]
        if opcode == "conditional":
            first = node.operands[0].type if node.operands else None
            if isinstance(first, TensorType) and first.dtype.name == "pred" and len(called) == 2:
                yield f"true_computation={called[0]}"
                yield f"false_computation={called[1]}"
            else:
                yield "branch_computations={" + ", ".join(called) + "}"
        elif opcode == "custom-call":
            yield "called_computations={" + ", ".join(called) + "}"
        else:
            yield from (f"{name}={text}" for name, text in zip(BODY_NAMES.get(opcode, ("to_apply",)), called, strict=False))

    def _raw(self, node: Node) -> tuple[str, dict[str, str]]:
        """The opcode at the node's place in the text, and the attributes that were left there as text."""
        if self.provenance is None or node.loc < 0:
            return "", {}
        written, texts = self.provenance.written(node.loc)
        found = dict(still_true(node, texts))
        if node.op.name not in OPCODES:
            return written, found
        return written, {n: v for n, v in found.items() if n in RAW_ORDER or n not in KNOWN_ATTRIBUTES}
