"""How far a text is understood, and which uses that permits: the only module that decides it.

    ROOT s = f32[2] frobnicate(    ->    Degree.PARTS: it can be shown, and no rule, policy or pass reads it
    s = f32[3] add(x, y)           ->    Degree.WHOLE: rules read a copy in which the operator of %s is called add?
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

from irscope.analysis.types import faults_of
from irscope.analysis.verify.faults import GraphFault, finding
from irscope.graph import NO_ATTRS, UNKNOWN, Builder, Effect, Graph, Module, Node, Op, Reading, Typing
from irscope.graph.rewrite import rewrite_module
from irscope.graph.walk import callees_first
from irscope.source import Finding, Severity, UserError


class Degree(IntEnum):
    """How far a text is understood; each degree includes those below it."""

    NOTHING = 0
    """No graph that runs was read."""
    PARTS = 1
    """The parser of the format would refuse the text: statements, operands or attributes are missing."""
    WHOLE = 2
    """The parser accepts it, but operators do not fit their operands, attributes or declared types."""
    TYPED = 3
    """All known types are consistent: open shapes and operators without a declaration are not faults."""


class Use(Enum):
    """A use of a text by a command, and the least degree that it requires. ``docs/reliability.md`` has the same table.

    Rules and audits read a text that is whole but not well typed in the form of :func:`held_together`, which is well typed.
    """

    STATS = "stats", Degree.NOTHING
    SHOW = "show", Degree.PARTS
    RULES = "rules", Degree.WHOLE
    AUDITS = "audits", Degree.WHOLE
    DIFF = "diff", Degree.WHOLE
    POLICIES = "fusion policies and gates", Degree.TYPED
    GROUPING = "passes that group operators", Degree.WHOLE
    PASSES = "passes", Degree.TYPED
    RUN = "compiled code", Degree.TYPED

    def __init__(self, title: str, needs: Degree) -> None:
        self.title = title
        self.needs = needs


@dataclass(frozen=True, slots=True)
class Soundness:
    """The degree of one module, and the faults in its types, with the graphs that they are in."""

    module: Module
    degree: Degree
    faults: Sequence[tuple[Graph, GraphFault]] = ()

    def allows(self, use: Use) -> bool:
        """Whether the text is sound enough for the use."""
        return self.degree >= use.needs

    def refusal(self, use: Use) -> str:
        """The reason, as one sentence, why the text is not sound enough for ``use``."""
        why = {Degree.NOTHING: "it has no graph that runs", Degree.PARTS: "it was only partly read, as the errors show",
               Degree.WHOLE: "its types are not sound, as the errors show"}
        return f"{use.title} did not look at {self.module.source.name.rpartition('/')[2] or self.module.name}: {why[self.degree]}"

    def errors(self) -> list[Finding]:
        """The type errors, in the order of the text."""
        return sorted((finding(self.module, graph, fault) for graph, fault in self.faults if fault.severity is Severity.ERROR),
                      key=lambda f: f.offset)


def soundness(module: Module, whole: bool = True) -> Soundness:
    """The soundness of a module. ``whole``: the parser of its format accepts the text (``Reading.ok``)."""
    main = module.graphs.get(module.entry)
    if main is None:
        return Soundness(module, Degree.NOTHING if module.cut is None or not module.graphs else Degree.PARTS)
    graphs = callees_first(module)
    if not whole or any(graph.root is None for graph in graphs):
        return Soundness(module, Degree.NOTHING if main.root is None and not main.nodes else Degree.PARTS)
    faults = faults_of(module)
    bad = any(fault.severity is Severity.ERROR for _, fault in faults)
    return Soundness(module, Degree.WHOLE if bad or (module.dialect.typing is Typing.STATED and _holes(graphs)) else Degree.TYPED, faults)


def require(reading: Reading, module: Module, use: Use) -> None:
    """Raise UserError, with the findings of the reader and the type checks, where a module is not sound enough for ``use``."""
    found = soundness(module, reading.ok)
    if not found.allows(use):
        errors = [f for f in reading.findings if f.severity is Severity.ERROR] if found.degree < Degree.WHOLE else found.errors()
        raise UserError(found.refusal(use), findings=errors)


def unsound(module: Module, faults: Sequence[tuple[Graph, GraphFault]] | None = None) -> set[Node]:
    """The nodes that do not fit their operands and, where a text states all types, those with operands of unknown type."""
    found = {fault.node for _, fault in (faults_of(module) if faults is None else faults)
             if fault.node is not None and fault.severity is Severity.ERROR}
    return found | _holes(callees_first(module)) if module.dialect.typing is Typing.STATED else found


def _holes(graphs: Sequence[Graph]) -> set[Node]:
    """The nodes that read a value of unknown type."""
    return {node for graph in graphs for node in graph.nodes for operand in node.operands if operand.type is UNKNOWN}


def held_together(module: Module, faults: Sequence[tuple[Graph, GraphFault]] | None = None) -> Module:
    """The module itself where all types are sound, else a copy in which the unsound nodes are opaque, without attributes and bodies."""
    loose = unsound(module, faults)
    if not loose:
        return module
    ops: dict[str, Op] = {}

    def opaque(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
        if node not in loose:
            return None
        name = node.op.name.removesuffix("?") + "?"
        op = ops.setdefault(name, Op(name, node.op.dialect, effect=Effect.CONTROL))
        made = builder.add(op, operands, NO_ATTRS, node.type, (), node.name)
        made.loc, made.synthetic = node.loc, node.synthetic
        return made
    return rewrite_module(module, opaque, keep_dead=True)
