"""What torch.compile recorded in a folder, as lines of a terminal and as json."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from irscope.api.loading import load
from irscope.fleet import compile_folder
from irscope.fleet.compile_record import CompileRecord
from irscope.fleet.dump_folder import DumpedModule
from irscope.graph import bytes_of
from irscope.render.compilation import compilation_lines, kernel_lines, refusal_lines, saved_lines
from irscope.render.paint import Paint
from irscope.source import UserError


def record_lines(record: CompileRecord, chosen: DumpedModule, paint: Paint) -> Iterator[str]:
    """The kernels of the chosen graph, what was not fused, saved tensors, and the compilations."""
    graph = record.graphs.get(chosen.name) or next((g for g in record.graphs.values() if g.name == chosen.name), None)
    parts: list[Iterable[str]] = [kernel_lines(graph.name, graph.kernels, _source_lines(chosen), paint)] if graph is not None else []
    parts.append(refusal_lines([d.reason or "" for d in record.refusals], paint))
    for each in record.graphs.values():
        own = sorted(((t.name, bytes_of(t.type)) for t in each.saved if not t.is_input), key=lambda pair: -pair[1])
        parts += [saved_lines(own, paint), [paint(f"{each.name}: {fault}", "red") for fault in each.faults]]
    parts.append(compilation_lines(record.compilations, paint))
    for lines in map(list, parts):
        yield from ["", *lines] if lines else []


def record_json(record: CompileRecord) -> dict[str, Any]:
    """The keys that ``show FOLDER --format json`` adds."""
    kernels = [{"graph": graph.name, "name": k.call.kernel, "kind": k.kind, "ops": list(dict.fromkeys(k.ops)),
                "buffers": list(dict.fromkeys(k.buffers)), "nodes": list(k.nodes),
                "launch": str(k.source) if k.source is not None else None}
               for graph in record.graphs.values() for k in graph.kernels]
    saved = [{"graph": graph.name, "name": t.name, "type": str(t.type), "bytes": bytes_of(t.type), "input": t.is_input}
             for graph in record.graphs.values() for t in graph.saved]
    compilations = [{
        "id": c.compile_id, "rank": c.rank, "function": c.function, "place": c.place, "seconds": c.seconds,
        "stages": [s.name for s in c.stages],
        "breaks": [{"reason": b.reason, "place": b.place, "hint": b.hint} for b in c.breaks],
        "recompiles": [list(r.reasons) for r in c.recompiles], "guards": list(c.guards), "failure": c.failure or None,
    } for c in record.compilations]
    groups = {graph.name: [list(node.ops()) for node in graph.after] for graph in record.graphs.values()}
    return {"kernels": kernels, "groups": groups,
            "refusals": [{"a": d.a, "b": d.b, "reason": d.reason} for d in record.refusals], "saved": saved, "compilations": compilations}


def _source_lines(dumped: DumpedModule) -> Mapping[str, str]:
    """The line of the user's program for each node of the graph after the post-grad passes, by name; empty if there is no readable text."""
    stage = next((s for s in dumped.stages if s.name == compile_folder.AFTER and not s.text), None)
    if stage is None:
        return {}
    try:
        modules = load(stage.path).modules
    except UserError:
        return {}
    nodes = ((module, node) for module in modules for graph in module.graphs.values() for node in graph.nodes)
    return {node.name: str(stack[0]) for module, node in nodes if (stack := module.call_stack(node))}
