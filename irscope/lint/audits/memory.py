"""The peak of live memory, the values that are live there, and their live ranges."""

from __future__ import annotations

from collections import Counter

from irscope.analysis.memory_savings import MemorySaving, memory_savings
from irscope.analysis.summary import describe_type, source_line
from irscope.analysis.survey import Survey
from irscope.graph import Module, TensorType, bytes_of
from irscope.lint.audits.table import Table
from irscope.lint.audits.timeline import Timeline
from irscope.lint.savings import human_bytes
from irscope.ops.module_attributes import HloModule
from irscope.source.plural import plural

MAX_ROWS = 25
PROPOSED = 5
"""The largest number of changes that lower the peak and are listed."""


def audit(module: Module) -> Table:
    """One row per value that is live at the peak of the entry, largest first, with its live range."""
    survey = Survey(module)
    entry = survey.entry
    table = Table("memory", "no values live", ("value", "type", "bytes", "share", "lives", "scope", "source"))
    life = survey.memory.graphs.get(entry) if entry is not None else None
    if entry is None or life is None or life.peak_at < 0:
        return table
    at = entry.nodes[life.peak_at]
    table.timeline = Timeline.of(life.live, [node.name for node in entry.nodes])
    params = sum(bytes_of(p.type) for p in entry.params)
    least = "at least " if survey.memory.unsized() is not None else ""
    table.title = f"{least}{human_bytes(life.peak)} at the peak, %{at.name}; parameters hold {human_bytes(params)} besides"
    alive = survey.memory.live_at(entry, life.peak_at)
    scopes = survey.scopes(entry)
    for node in alive[:MAX_ROWS]:
        size, last = life.size[node.index], life.last[node.index]
        end = "end" if last >= len(entry.nodes) else str(last)
        share = f"{size / life.peak * 100:.0f} %" if life.peak else None
        what = f"%{node.name}", describe_type(node.type), human_bytes(size), share
        table.rows.append((*what, f"{node.index}..{end}", "/".join(scopes[node.index]), source_line(survey.module, node)))
    if len(alive) > MAX_ROWS:
        rest = sum(life.size[node.index] for node in alive[MAX_ROWS:])
        left = len(alive) - MAX_ROWS
        table.notes.append(f"{plural(left, 'smaller value')} {'holds' if left == 1 else 'hold'} {human_bytes(rest)}")
    inner = life.peak - sum(life.size[node.index] for node in alive)
    if inner > 0:
        table.notes.append(f"{human_bytes(inner)} live inside what %{at.name} calls")
    elif inner < 0:
        table.notes.append(f"%{at.name} writes over an operand: {human_bytes(-inner)} of these are one and the same")
    by_scope: Counter[str] = Counter()
    for node in alive:
        by_scope["/".join(scopes[node.index][:3]) or "(no scope)"] += life.size[node.index]
    if len(by_scope) > 1:
        table.notes.append("by scope: " + ", ".join(f"{name} {human_bytes(n)}" for name, n in by_scope.most_common(6)))
    spaces = _spaces(module)
    if len(spaces) > 1:
        table.notes.append("by memory space: " + ", ".join(f"S({space}) {human_bytes(n)}" for space, n in sorted(spaces.items())))
    unsized = survey.memory.unsized()
    if unsized is not None:
        table.notes.append(f"the size of %{unsized[1].name} is not known, and counts as 0 bytes")
    table.notes += [_proposal(saving, survey) for saving in memory_savings(survey, entry)[:PROPOSED]]
    order = "the compiler's own" if HloModule.of(module).is_scheduled else "that of the text: the compiler may choose a better one"
    table.notes.append(f"the order is {order}")
    return table


def _proposal(saving: MemorySaving, survey: Survey) -> str:
    """A change that lowers the peak, and the peak with it alone."""
    names = " ".join(f"%{node.name}" for node in saving.nodes[:4]) + (f" and {len(saving.nodes) - 4} more" if len(saving.nodes) > 4 else "")
    if saving.kind == "donate":
        change = f"donating {names} (donate_argnums in jax)"
    else:
        where = source_line(survey.module, saving.nodes[0])
        work = f", {saving.flops:,.0f} FLOP more" if saving.kind == "recompute" else ""
        user = f"%{saving.user.name}" if saving.user is not None else ""
        verb = "computing again" if saving.kind == "recompute" else "computing later"
        change = f"{verb} {names}{f' ({where})' if where else ''}, for {user}{work},"
    return f"{change} lowers the peak to {human_bytes(saving.peak)}"


def _spaces(module: Module) -> Counter[int]:
    """Bytes of all values by the memory space that their layout names."""
    found: Counter[int] = Counter()
    for graph in module.graphs.values():
        for node in graph.nodes:
            if isinstance(node.type, TensorType):
                found[int(getattr(getattr(node.type, "layout", None), "memory_space", 0) or 0)] += node.type.bytes
    return found
