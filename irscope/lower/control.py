"""Loops and branches: a loop's state stays in one buffer for all iterations, and bodies write their results in place."""
from __future__ import annotations

from irscope.analysis.trips import trip_count
from irscope.graph import Graph, Node, TensorType
from irscope.lower.graph_lowering import GraphLowering
from irscope.lower.program import Loop, Step, Switch
from irscope.lower.storage import Storage
from irscope.lower.values import Path, TupleParts, is_invariant, leaf_paths, leaves, state_path, tensor_of


def loop(graph: GraphLowering, node: Node) -> bool:
    """Append a while loop."""
    condition, body = node.bodies
    paths = leaf_paths(node.type)
    first = dict(zip((path for path, _ in paths), leaves(node.operands[0])))
    state: dict[Path, Storage] = {}
    for path, _ in paths:
        begin = graph.storage_of(first[path])
        if is_invariant(node, path):
            state[path] = begin
            graph.assignment.known.update(dict.fromkeys(graph.assignment.parts.at(node, path), begin))
        else:
            state[path] = graph.assignment.carried[node, path]
            graph.lowering.copy(graph.steps, begin, state[path])
    memory = graph.lowering.memory
    started = memory.tick()
    for storage in state.values():
        memory.touch(storage.slot)
    flag = graph.lowering.temp(f"{node.name}.condition", tensor_of(condition.result()))
    condition_steps, found = graph.lowering.graph(condition, _state_of(condition, state), {condition.result(): flag})
    graph.lowering.copy(condition_steps, found[condition.result()], flag)
    memory.touch(flag.slot)
    body_steps = _round(graph, body, state)
    memory.tick()
    memory.close_loop(started)
    graph.steps.append(Loop(condition_steps, flag.slot, body_steps, trip_count(graph.lowering.module, node, noted=False)))
    return True


def switch(graph: GraphLowering, node: Node) -> bool:
    """Append a branch."""
    selector = graph.storage_of(node.operands[0])
    memory = graph.lowering.memory
    if selector.offset:
        moved = graph.lowering.temp(f"{node.name}.selector", tensor_of(node.operands[0]))
        graph.lowering.copy(graph.steps, selector, moved)
        selector = moved
    memory.tick()
    memory.touch(selector.slot)
    started = memory.time
    targets: list[Storage] = []
    for path, type in leaf_paths(node.type):
        readers = graph.assignment.parts.at(node, path)
        targets.append(graph.assignment.known[readers[0]] if readers else graph.lowering.temp(node.name, type))
        graph.assignment.known.update(dict.fromkeys(readers[1:], targets[-1]))
    branches: list[list[Step]] = []
    arguments = [[graph.storage_of(leaf) for leaf in leaves(operand)] for operand in node.operands[1:]]
    for branch, values in zip(node.bodies, arguments):
        state = dict(zip((path for path, _ in leaf_paths(branch.params[0].type)), values)) if branch.params else {}
        for storage in values:
            memory.touch(storage.slot)
        wanted: dict[Node, Storage] = {}
        for leaf, target in zip(leaves(branch.result()), targets):
            memory.touch(target.slot)
            wanted.setdefault(leaf, target)
        steps, found = graph.lowering.graph(branch, _state_of(branch, state), wanted)
        for leaf, target in zip(leaves(branch.result()), targets):
            graph.lowering.copy(steps, found[leaf], target)
        branches.append(steps)
    memory.tick()
    memory.close_loop(started)
    for storage in targets:
        memory.touch(storage.slot)
    graph.steps.append(Switch(selector.slot, branches))
    return True


def _state_of(graph: Graph, state: dict[Path, Storage]) -> dict[Node, Storage]:
    """The storage of a body's parameter, part by part."""
    if not graph.params:
        return {}
    parts = TupleParts(graph)
    return {part: storage for path, storage in state.items() for part in parts.at(graph.params[0], path)
            if isinstance(part.type, TensorType)}


def _round(graph: GraphLowering, body: Graph, state: dict[Path, Storage]) -> list[Step]:
    """One iteration of a loop: the body, then copies of the new state that was not written in place.

    New state that is a part of the old state (a swap) is saved before any of it is overwritten.
    """
    results = dict(zip((path for path, _ in leaf_paths(body.result().type)), leaves(body.result())))
    wanted: dict[Node, Storage] = {}
    for path, leaf in results.items():
        if state_path(leaf, body) is None:
            wanted.setdefault(leaf, state[path])
    steps, found = graph.lowering.graph(body, _state_of(body, state), wanted)
    slots = {storage.slot for storage in state.values()}
    late: list[tuple[Storage, Storage]] = []
    for path, leaf in results.items():
        source, target = found[leaf], state[path]
        if source == target:
            continue
        if source.slot in slots:
            aside = graph.lowering.temp(leaf.name, tensor_of(leaf))
            graph.lowering.copy(steps, source, aside)
            source = aside
        late.append((source, target))
    for source, target in late:
        graph.lowering.copy(steps, source, target)
    return steps
