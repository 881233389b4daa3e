"""What the page knows of memory: live bytes along the schedule of each graph, live ranges, and what would lower the peak.

It has a block of its own, which the page unpacks when the pane or the colours of liveness are wanted.
"""
from __future__ import annotations

from collections.abc import Mapping

from irscope.analysis.memory import Lifetimes
from irscope.analysis.memory_savings import MemorySaving, memory_savings
from irscope.analysis.memory_timeline import highest
from irscope.analysis.summary import source_line
from irscope.analysis.survey import Survey
from irscope.graph import Graph
from irscope.ops.module_attributes import HloModule

PROPOSED = 8
"""How many changes that lower the peak are listed."""


def memory_data(survey: Survey, oom: Mapping[str, object] | None = None) -> dict[str, object]:
    """The data of ``page/memory.js``: a record for each graph that has temporaries, by name.

    ``oom`` has the buffers of an out-of-memory error: its ``title``, ``notes``, and ``rows`` of bytes, value, type, how the value was
    found, scope and source.
    """
    graphs = {graph.name: _graph(survey, graph, life) for graph, life in survey.memory.graphs.items() if life.peak_at >= 0}
    return {"graphs": graphs, "scheduled": HloModule.of(survey.module).is_scheduled, "parameters": survey.parameter_bytes(), "oom": oom}


def _graph(survey: Survey, graph: Graph, life: Lifetimes) -> dict[str, object]:
    """``own`` has a 1 for each node with a buffer of its own, whose bytes are those of its type; ``last`` the distance to the last use of
    each of these, -1 for those that live to the end. ``places`` and ``live`` are the points of the timeline."""
    places = highest(life.live)
    end = len(graph.nodes)
    savings = memory_savings(survey, graph)[:PROPOSED] if graph is survey.entry else []
    return {
        "peak": life.peak, "at": life.peak_at, "steps": end, "places": places, "live": [life.live[i] for i in places],
        "unsized": life.unsized.name if life.unsized is not None else "",
        "own": "".join("1" if size else "0" for size in life.size),
        "last": [last - i if last < end else -1 for i, (size, last) in enumerate(zip(life.size, life.last, strict=True)) if size],
        "savings": [_saving(survey, saving) for saving in savings],
    }


def _saving(survey: Survey, saving: MemorySaving) -> list[object]:
    """Kind, nodes, the user for which they are computed again or later, the peak with the change, FLOPs, and the line of the program."""
    user = saving.user.index if saving.user is not None else -1
    source = source_line(survey.module, saving.nodes[0]) if saving.nodes else ""
    return [saving.kind, [node.index for node in saving.nodes], user, saving.peak, round(saving.flops), source]
