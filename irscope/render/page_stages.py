"""The stages of a compilation on one page: the module before and after each pass, each in a block that is unpacked when it is shown."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.analysis.survey import Survey
from irscope.graph import Graph, Module
from irscope.render.page_data import page_data

MAX_NODES = 200_000
"""Nodes of all stages of a page; of longer compilations, the stages in the middle are left out."""


@dataclass(frozen=True, slots=True)
class PageStage:
    """The module at one point of its compilation; ``words`` name the pass after which it is."""

    words: str
    module: Module


def stage_data(stages: Sequence[PageStage]) -> tuple[list[list[object]], list[dict[str, Any]], int]:
    """Rows of (words, block), the blocks, and how many stages are left out. The last stage is the module of the page: its block is -1.

    A stage that changed nothing has the block of the one before.
    """
    kept = [stages[i] for i in ends_that_fit([_size(stage.module) for stage in stages], MAX_NODES)]
    rows: list[list[object]] = []
    blocks: list[dict[str, Any]] = []
    before: tuple[object, ...] = ()
    for stage in kept:
        key = tuple(_key(graph) for graph in stage.module.graphs.values())
        if stage is kept[-1]:
            if rows and key == before:
                rows[-1][1] = -1
            rows.append([stage.words, -1])
            continue
        if key != before:
            blocks.append(page_data(Survey(stage.module)))
        rows.append([stage.words, len(blocks) - 1])
        before = key
    if rows and [row[1] for row in rows].count(-1) > 1:
        last = len(blocks) - 1  # equal to the last stage: shown from its data
        rows = [[words, -1 if block == last else block] for words, block in rows]
        blocks = blocks[:-1]
    return rows, blocks, len(stages) - len(kept)


def ends_that_fit(sizes: Sequence[int], most: int) -> list[int]:
    """The indices of the stages to keep: the first, the last, and as many directly before the last as fit into ``most`` in all."""
    if not sizes:
        return []
    room, begin = most - sizes[0] - sizes[-1], len(sizes) - 1
    while begin > 1 and (room := room - sizes[begin - 1]) >= 0:
        begin -= 1
    return [0, *range(max(1, begin), len(sizes))]


def _size(module: Module) -> int:
    return sum(len(graph.nodes) for graph in module.graphs.values())


def _key(graph: Graph) -> tuple[object, ...]:
    """Equal for graphs of the same text, layouts and attributes included."""
    root = graph.root.index if graph.root is not None else -1
    nodes = tuple((node.name, node.op.name, str(node.type), tuple(o.index for o in node.operands), str(node.attrs),
                   tuple(body.name for body in node.bodies)) for node in graph.nodes)
    return graph.name, root, nodes
