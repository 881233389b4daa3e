"""Whether a module's text ends before the module does, and what of it is complete.

A compiler prints ENTRY last, so most texts that were cut off have none. XLA's parser takes the last computation of a text without ENTRY as
the entry. Of a text that was cut between two computations that would be a fragment, and so it is the entry only where nothing speaks
against it: see :func:`_lacks_entry`.
"""
from __future__ import annotations

from irscope.formats.hlo.assembly import Assembly
from irscope.formats.hlo.faults import TRUNCATED
from irscope.formats.hlo.types import compatible
from irscope.graph import Cut, Graph, Type

HELP = "the whole dump is needed: CI systems, pagers and terminals shorten long texts; what follows is by computation"


def mark_cut(assembly: Assembly, end: int) -> None:
    """Set ``module.cut`` where the text of a module, which ends at an offset, is not all of it; reports it first of all its findings."""
    module = assembly.module
    empty = not module.graphs and assembly.faults.ok
    if not (assembly.ends_early or empty or _lacks_entry(assembly)):
        return
    named = [graph for graph in module.graphs.values() if "inline" not in graph.notes]
    complete = frozenset(graph.name for graph in named) - assembly.unfinished
    text = assembly.text[:end].rstrip()
    module.cut = Cut(complete, assembly.entry or None, text.count("\n") + 1)
    module.entry = ""
    assembly.faults.cut_off(TRUNCATED, assembly.first_finding, str(module.cut), max(0, len(text) - 1), HELP)


def _lacks_entry(assembly: Assembly) -> bool:
    """Whether a text without ENTRY was printed with one.

    The layout of the entry is an attribute that compilers print; a computation is not the entry where its types are others, and where its
    header is in the form that compilers print: they would have written ENTRY before it.
    """
    module = assembly.module
    layout = module.attrs.get("entry_computation_layout")
    if assembly.entry or not isinstance(layout, tuple) or not module.graphs:
        return False
    last = module.main()
    header = assembly.text[last.loc:assembly.text.find("\n", last.loc)]
    return "->" in header or not _fits(last, layout)


def _fits(graph: Graph, layout: tuple[object, ...]) -> bool:
    parameters, result = layout
    types = [node.type for node in graph.params]
    if not isinstance(parameters, tuple) or len(types) != len(parameters) or graph.root is None:
        return False
    return all(map(compatible, parameters, types)) and isinstance(result, Type) and compatible(result, graph.root.type)
