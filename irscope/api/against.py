"""The nodes of a dump that another dump of the same program does not have, for colours: added, changed; and how many were removed."""
from __future__ import annotations

from dataclasses import dataclass, field

from irscope.api.loading import Source, read_source
from irscope.diff import compare
from irscope.graph import Module, Node
from irscope.render.units import plural
from irscope.source import UserError


@dataclass(frozen=True, slots=True)
class Changes:
    """The changed nodes of a module with ``added`` or ``changed``, and what the comparison says in words."""

    of: dict[Node, str] = field(default_factory=dict)
    words: str = ""


def changes_against(before: Source, source_format: str | None, after: Module) -> Changes:
    """What changed in ``after`` since the first module of another dump. Raises UserError where that has none."""
    reading = read_source(before, source_format)
    if not reading.modules:
        raise UserError(f"{reading.source.name}: no module in it")
    comparison = compare(reading.modules[0], after)
    mine = {node for graph in after.graphs.values() for node in graph.nodes}
    of: dict[Node, str] = {}
    removed = 0
    for pair in comparison.pairs:
        if pair.before is None and pair.after is not None:
            of.update(dict.fromkeys(pair.after.nodes, "added"))
        elif pair.after is None and pair.before is not None:
            removed += len(pair.before.nodes)
        for change in pair.changes:
            if change.after is None or change.kind == "merged":
                removed += 1
            else:
                of[change.after] = "added" if change.kind in ("added", "duplicated") else "changed"
    of = {node: word for node, word in of.items() if node in mine}
    counts = [f"{sum(word == name for word in of.values())} {name}" for name in ("added", "changed")]
    words = f"{', '.join(counts)}, {plural(removed, 'node')} removed" if of or removed else "no node changed"
    return Changes(of, f"against {reading.source.name}: {words}")
