"""Loops and branches: what they carry lives in one place from the first round to the last, and bodies write it there."""
from __future__ import annotations

from typing import TYPE_CHECKING

from irscope.analysis.trips import trip_count
from irscope.fusion.views import stored
from irscope.graph import Graph, Node, TensorType
from irscope.lower.program import Loop, Step, Switch
from irscope.lower.storage import Storage
from irscope.lower.values import Parts, Path, leaf_paths, leaves, tensor_of
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement

if TYPE_CHECKING:
    from irscope.lower.buffer_assignment import BufferAssignment
    from irscope.lower.lowering import GraphLowering


def reserve(assignment: BufferAssignment, node: Node, number: int) -> None:
    """Assign buffers to the results of a loop or a branch (group ``number``), and let a loop's first values be written there where only it
    reads them."""
    if node.op is hlo.conditional:
        for path, _ in leaf_paths(node.type):
            for part in assignment.parts.at(node, path):
                assignment.ensure(part)
        return
    first = dict(zip((path for path, _ in leaf_paths(node.type)), leaves(node.operands[0])))
    for path, type in leaf_paths(node.type):
        if is_invariant(node, path):
            continue
        readers = assignment.parts.at(node, path)
        begin = first[path]
        times = sum(stored(value) is stored(begin) for value in first.values())
        asked = [(r, assignment.wanted[r]) for r in readers if r in assignment.wanted]
        wanted = next((s for r, s in asked if assignment.may_carry(r, begin, s.slot, times)), None)
        storage = wanted or assignment.lowering.temp(f"{node.name}.{'.'.join(map(str, path))}", type)
        for reader in readers:
            assignment.known[reader] = storage
        assignment.carried[node, path] = storage
        if assignment.sole_reader(begin) is not None and times == 1:
            assignment.claim(begin, storage, number)


def loop(graph: GraphLowering, node: Node) -> None:
    """Append a while loop."""
    condition, body = node.bodies
    paths = leaf_paths(node.type)
    first = dict(zip((path for path, _ in paths), leaves(node.operands[0])))
    state: dict[Path, Storage] = {}
    for path, _ in paths:
        begin = graph.storage_of(first[path])
        if is_invariant(node, path):
            state[path] = begin
            for reader in graph.assignment.parts.at(node, path):
                graph.assignment.known[reader] = begin
        else:
            state[path] = graph.assignment.carried[node, path]
            graph.lowering.copy(graph.steps, begin, state[path])
    memory = graph.lowering.memory
    started = memory.tick()
    for storage in state.values():
        memory.touch(storage.slot)
    flag = graph.lowering.temp(f"{node.name}.condition", tensor_of(condition.result()))
    condition_steps = _into(graph, condition, _state_of(condition, state), {condition.result(): flag})
    memory.touch(flag.slot)
    body_steps = _round(graph, body, state)
    memory.tick()
    memory.close_loop(started)
    graph.steps.append(Loop(condition_steps, flag.slot, body_steps, trip_count(graph.lowering.module, node, noted=False)))


def switch(graph: GraphLowering, node: Node) -> None:
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
        for reader in readers[1:]:
            graph.assignment.known[reader] = targets[-1]
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


def is_invariant(node: Node, path: Path) -> bool:
    """Whether a loop hands a part of its state on unchanged."""
    leaf = dict(zip((p for p, _ in leaf_paths(node.type)), leaves(node.bodies[1].result())))[path]
    return _path_of(leaf, node.bodies[1]) == path


def _path_of(leaf: Node, body: Graph) -> Path | None:
    """The way to a node that is a part of the body's parameter, or None."""
    path: Path = ()
    while leaf.op is hlo.get_tuple_element:
        path = (GetTupleElement.of(leaf).index, *path)
        leaf = leaf.operands[0]
    return path if body.params and leaf is body.params[0] else None


def _state_of(graph: Graph, state: dict[Path, Storage]) -> dict[Node, Storage]:
    """The storage of a body's parameter, part by part."""
    if not graph.params:
        return {}
    parts = Parts(graph)
    return {part: storage for path, storage in state.items() for part in parts.at(graph.params[0], path)
            if isinstance(part.type, TensorType)}


def _into(graph: GraphLowering, body: Graph, params: dict[Node, Storage], wanted: dict[Node, Storage]) -> list[Step]:
    """The steps of a body with its results where they are wanted."""
    steps, found = graph.lowering.graph(body, params, wanted)
    for leaf, target in wanted.items():
        graph.lowering.copy(steps, found[leaf], target)
    return steps


def _round(graph: GraphLowering, body: Graph, state: dict[Path, Storage]) -> list[Step]:
    """One round of a loop: the body, then whatever new state was not written in its place already.

    New state that is a part of the old state (a swap) is set aside before any of it is overwritten.
    """
    results = dict(zip((path for path, _ in leaf_paths(body.result().type)), leaves(body.result())))
    wanted: dict[Node, Storage] = {}
    for path, leaf in results.items():
        if _path_of(leaf, body) is None:
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
