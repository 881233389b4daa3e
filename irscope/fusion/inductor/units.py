"""Inductor's input: the primitives of a graph grouped into the operators that torch.compile lowers.

PyTorch's decompositions stop earlier than irscope's expansions: a linear layer with its bias, attention, a recurrent net and a sort are
one library call each, and the mean and the variance of a normalisation come from one operator. A *unit* is what Inductor lowers at once:
one primitive, or all primitives of such a call.
"""
from __future__ import annotations

from irscope.fusion.inductor import operators
from irscope.fusion.inductor.attention import written_out
from irscope.fusion.inductor.group_norm import group_norms
from irscope.fusion.inductor.program import Program, Unit, is_number, seen_through
from irscope.fusion.inductor.releases import Release
from irscope.fusion.inductor.strides import asks_for_copy, row_major_already, seen_strides, shape_of, traced_strides, viewed
from irscope.fusion.inductor.training import is_for_training
from irscope.fusion.views import VIEWS
from irscope.graph import Graph, Node, TensorType, live
from irscope.ops import hlo
from irscope.ops.attributes import Concatenate, Dot, Gather, Reduce

WIDE = 1000
"""The argument order of calls with more operands than this is not determined."""
OPAQUE = hlo.named(
    "dot convolution sort fft while conditional call custom-call triangular-solve cholesky rng rng-bit-generator select-and-scatter "
    "infeed outfeed send recv all-reduce all-gather all-to-all reduce-scatter collective-permute map topk scan")
"""Primitives that are always separate kernels."""
STRUCTURE = hlo.named("parameter constant tuple get-tuple-element after-all")


def program_of(graph: Graph, release: Release) -> Program:
    """Everything about a graph that the lowering of a release needs."""
    alive = live(graph)
    nodes = [node for node in graph.nodes if alive[node.index]]
    program = Program(graph, release, strides=traced_strides(graph), users=graph.users())
    attention = written_out(program, nodes, alive)
    if attention:
        program.strides = traced_strides(graph, {unit.nodes[-1]: unit.nodes[0].operands[0] for unit in attention})
        program.home.update((node, unit) for unit in attention for node in unit.nodes)
    if graph.root is not None:
        program.given.update(graph.root.operands if graph.root.op is hlo.tuple else (graph.root,))
        if graph.root.op is hlo.tuple and is_for_training(graph):
            program.saved.update(graph.root.operands[1:])  # the first result is the user's
    _group(program, nodes)
    _add_to_products(program, nodes, alive)
    place = _places(program, nodes)
    program.units = sorted(set(program.home.values()), key=lambda u: (place[u.nodes[-1]], u.nodes[-1].index))
    kept = _kept_clones(program, nodes)
    for node in nodes:
        readers = [user for user in program.users[node.index] if alive[user.index]]
        if node.op is hlo.concatenate and node not in program.given and readers and all(_indexes(node, user) for user in readers):
            program.tuples.add(node)
        if node.op in VIEWS and not program.home[node].call:
            given = node.operands[0]
            strides = program.strides[given.index]
            lacking = node.op is hlo.reverse or (node.op is hlo.reshape and viewed(shape_of(given), strides, shape_of(node)) is None)
            lies = row_major_already(shape_of(node), seen_strides(node, [strides]))
            if lacking or node in kept or (asks_for_copy(node) and not lies):
                program.copied.add(node)
    _find_moments(program, nodes)
    program.norms = group_norms(program, nodes)
    program.pixels = _around_convolutions(program, nodes)
    _count_uses(program, nodes)
    if not is_for_training(graph):
        program.units = near_readers(program)
    return program


def _places(program: Program, nodes: list[Node]) -> dict[Node, int]:
    """The place of each node: in training graphs that of its operator in the text, where a view that is a result is realized; else its own,
    for views follow where they are read."""
    if not is_for_training(program.graph):
        return {node: node.index for node in nodes}
    found: dict[Node, int] = {}
    for node in nodes:
        own = node.origin[0].index if node.origin else 0
        found[node] = max(own, *(found[o] for o in node.operands)) if node.operands else own
    return found


def _kept_clones(program: Program, nodes: list[Node]) -> set[Node]:
    """Views that a training graph clones: a clone has no primitive, so the view is copied in its place.

    PyTorch removes a clone of what is row-major already, unless two results would share memory then, or a result and an input
    (``remove_noop_ops`` of fx_passes/post_grad.py).
    """
    cloned = _cloned(nodes) if is_for_training(program.graph) else set()
    memory: dict[Node, Node] = {}
    for node in nodes if cloned else ():
        memory[node] = memory[node.operands[0]] if node.op in VIEWS and node not in cloned else node
    results = {memory[node] for node in program.given if node in memory}
    shared = results | {node for node in memory if node.op is hlo.parameter}
    return {node for node in cloned if not row_major_already(shape_of(node), program.strides[node.index])
            or (node in results and memory[node.operands[0]] in shared)}


def _cloned(nodes: list[Node]) -> set[Node]:
    """The views that only clones read, by the operators that the primitives come from."""
    origins = list({id(node.origin[0]): node.origin[0] for node in nodes if node.origin}.values())
    values = {id(node.origin[0]): node for node in nodes if node.origin}
    read = {id(operand) for origin in origins for operand in origin.operands}
    sources = {id(o.operands[0]) for origin in origins for o in origin.operands if o.op in operators.CLONES}
    return {values[source] for source in sources - read if source in values and values[source].op in VIEWS}


def _group(program: Program, nodes: list[Node]) -> None:
    """A unit for each node; the nodes of one library call share a unit, up to those that something else reads."""
    open_: dict[int, Unit] = {}
    closed: set[Unit] = set()
    turned: set[int] = set()
    for node in nodes:
        if node in program.home:
            closed.update(home for o in node.operands if (home := program.home[o]) is not program.home[node])
            continue
        unit: Unit | None = None
        if node.op is hlo.dot and _is_turned_linear(program, node):
            turned.add(id(node.origin[0]))
        if _is_lowered_whole(node, program.release) and not (node.origin and id(node.origin[0]) in turned):
            unit = open_.get(id(node.origin[0]))
            if unit in closed:
                unit = None
            if node.op in VIEWS and not any(program.home[o] is unit for o in node.operands):
                unit = None  # an earlier view, recorded where it is read
            elif unit is None:
                unit = open_[id(node.origin[0])] = Unit([], True, operators.is_of(node, operators.ATTENTION))
        if unit is None:
            unit = Unit([], node.op in OPAQUE)
        unit.nodes.append(node)
        program.home[node] = unit
        closed.update(home for o in node.operands if (home := program.home[o]) is not unit)


def _is_lowered_whole(node: Node, release: Release) -> bool:
    """Whether a node is lowered with the others of its operator. Operators on complex numbers are library calls, too
    (``unsupported_input_tensor`` of lowering.py)."""
    if node.op in STRUCTURE:
        return False
    types = [value.type for value in (node, *node.operands)]
    if operators.is_of(node, operators.TOGETHER) or operators.is_of(node, release.fallbacks):
        return True
    return any(isinstance(type, TensorType) and type.dtype.is_complex for type in types)


def _is_turned_linear(program: Program, dot: Node) -> bool:
    """Whether a linear layer is over non-contiguous rows: PyTorch makes a product, and adds the bias afterwards."""
    rows = dot.operands[0]
    shape = shape_of(rows)
    return operators.is_of(dot, operators.LINEAR) and len(shape) > 2 and not row_major_already(shape, program.strides[rows.index])


def _add_to_products(program: Program, nodes: list[Node], alive: list[bool]) -> None:
    """Merge a product of two matrices and an addition that is its only user into one call (``addmm`` of fx_passes/post_grad.py)."""
    for node in nodes:
        if node.op is not hlo.add or len(shape_of(node)) != 2 or len(program.home[node].nodes) > 1 or program.home[node].call:
            continue
        for dot, other in (tuple(reversed(node.operands)), node.operands):  # of two products the first is added to the second
            unit = program.home[dot]
            if unit.nodes != [dot] or not _is_matrix_product(dot) or dot in program.given:
                continue
            if [user for user in program.users[dot.index] if alive[user.index]] != [node]:
                continue
            if dot is other or is_number(other):
                continue
            if _implicit(other) and program.home[other].nodes == [other] and program.users[other.index] == [node]:
                unit.nodes.append(other)
            unit.nodes.append(node)
            program.home.update(dict.fromkeys(unit.nodes, unit))
            break


def _is_matrix_product(node: Node) -> bool:
    """Whether a node is a product of two matrices that keeps the element type."""
    if node.op is not hlo.dot or Dot.of(node).lhs_batch_dims or any(len(shape_of(o)) != 2 for o in node.operands):
        return False
    return len({type.dtype for o in (node, *node.operands) if isinstance(type := o.type, TensorType)}) == 1


def is_view(program: Program, node: Node) -> bool:
    """Whether a node moves nothing: its value is the operand's memory (or expression) under other indices."""
    return node.op in VIEWS and node not in program.copied and not program.home[node].call


def _count_uses(program: Program, nodes: list[Node]) -> None:
    """Count how many operators read each value, as ``len(node.users)`` of the traced program, as far as it matters.

    An implicit broadcast is no operator; any other view is one, and its users count as the value's own.
    """
    graph = program.graph
    enough = max(2, program.release.many_users + 1)
    readers: list[set[object]] = [set() for _ in graph.nodes]
    root = graph.root
    for node in reversed(nodes):
        mine = readers[node.index]
        if node is root:
            mine.add("result")
        unit = program.home[node]
        view = is_view(program, node)
        for operand in dict.fromkeys(node.operands):
            if (program.home[operand] is unit and unit.call) or node in program.squares:
                continue
            theirs = readers[operand.index]
            if len(theirs) < enough:
                if node.op in (hlo.tuple, hlo.get_tuple_element) or (view and _implicit(node)):
                    theirs.update(mine)
                elif view:
                    theirs.update((node, reader) for reader in mine)
                else:
                    theirs.add(unit)
                    if operators.elements_read(node) > 1:
                        theirs.add((unit, "again"))
            stored = operators.is_of(node, operators.AS_STRIDED)
            called = stored or (unit.call and not is_mask(unit, operand) and not operators.elements_read(node))
            if called or (view and node in program.called and len(mine) > 1):
                program.called.add(operand)
    program.uses = [len(found) for found in readers]


def is_mask(unit: Unit, operand: Node) -> bool:
    """Whether attention reads a boolean mask: PyTorch converts it to numbers for each call."""
    type = operand.type
    return unit.attention and isinstance(type, TensorType) and type.dtype.kind == "pred"


def _indexes(node: Node, user: Node) -> bool:
    """Whether a user takes this concatenation as the indices of its elements."""
    if user.op not in (hlo.gather, hlo.scatter) or Concatenate.of(node).axis != Gather.of(user).index_vector_dim:
        return False
    place = 1 if user.op is hlo.gather else (len(user.operands) - 1) // 2
    return user.operands[place] is node and sum(o is node for o in user.operands) == 1


def _implicit(node: Node) -> bool:
    """Whether a node is a broadcast, or only adds or drops dimensions of size one: operators imply these for operands of lower rank."""
    if node.op is hlo.broadcast:
        return True
    return node.op is hlo.reshape and [s for s in shape_of(node) if s != 1] == [s for s in shape_of(node.operands[0]) if s != 1]


def _find_moments(program: Program, nodes: list[Node]) -> None:
    """Find pairs of sums over the same elements, of ``x`` and of ``(x - mean)**2``, that one ``var_mean`` of PyTorch computes."""
    for node in nodes:
        if node.op is not hlo.reduce or not operators.is_of(node, operators.MOMENTS):
            continue
        square = seen_through(node.operands[0])
        if square.op is not hlo.multiply or square.operands[0] is not square.operands[1]:
            continue
        centred = square.operands[0]
        if centred.op is not hlo.subtract:
            continue
        mean = seen_through(centred.operands[1])
        if mean.op not in (hlo.divide, hlo.multiply):
            continue
        first = seen_through(mean.operands[0])
        if first.op is hlo.reduce and Reduce.of(first).dimensions == Reduce.of(node).dimensions:
            program.second[node] = first
            program.means[mean] = first
            program.squares.add(square)


def _around_convolutions(program: Program, nodes: list[Node]) -> set[Node]:
    """The values before or after convolutions, up to the last convolution (``find_nodes_prefer_channels_last`` of graph.py)."""
    found: set[Node] = set()
    last: Node | None = None
    for node in reversed(nodes):
        if node.op is hlo.convolution and not operators.is_of(node, operators.CONVOLUTION_GRADIENTS):
            last = last or node
            found.add(node)
        elif not _is_batched(node) and any(user in found for user in program.users[node.index]):
            found.add(node)
    for node in nodes:
        if node is last:
            break
        if node in found:
            found.update(user for user in program.users[node.index] if not _is_batched(user))
    return found


def _is_batched(node: Node) -> bool:
    return node.op is hlo.dot and bool(Dot.of(node).lhs_batch_dims)


def near_readers(program: Program) -> list[Unit]:
    """The units, each moved as close before its first user as possible (``reorder_for_locality`` of fx_passes/post_grad.py, for
    inference alone).

    Inputs, and results that are extracted from operators with several, keep their position.
    """
    units = [*program.units]
    place = {unit: i + 1 for i, unit in enumerate(units)}
    before, after = list(range(-1, len(units) + 1)), list(range(1, len(units) + 3))
    unread = [0] * (len(units) + 1)
    operands: list[list[Unit]] = [[]]
    for unit in units:
        found = dict.fromkeys(home for o in read_in_order(unit) if (home := program.home[o]) is not unit)
        operands.append(list(found))
        for home in found:
            unread[place[home]] += 1
    end = len(units) + 1
    at = before[end]
    while at > 0:
        for operand in operands[at]:
            i = place[operand]
            unread[i] -= 1
            if unread[i] == 0 and before[at] != i and not _keeps_place(program, operand.nodes[-1]):
                after[before[i]], before[after[i]] = after[i], before[i]
                after[before[at]], before[i], after[i], before[at] = i, before[at], at, i
        at = before[at]
    order: list[Unit] = []
    at = after[0]
    while at != end:
        order.append(units[at - 1])
        at = after[at]
    return order


def read_in_order(unit: Unit) -> list[Node]:
    """The operands of a unit in the argument order of the call: the operands of products before the summands."""
    if len(unit.nodes) == 1:
        return list(unit.nodes[0].operands)
    inside = set(unit.nodes)
    if unit.attention:
        dots = [node for node in unit.nodes if node.op is hlo.dot]
        matrices = [o for dot in dots for o in dot.operands if o not in inside]  # queries, keys and values before the mask
        return list(dict.fromkeys((*matrices, *(o for node in unit.nodes for o in node.operands))))
    found: dict[Node, None] = {}
    for dot in (node for node in unit.nodes if node.op in (hlo.dot, hlo.convolution)):
        stack = list(reversed(dot.operands))
        while stack:
            node = stack.pop()
            if node not in found:
                found[node] = None
                stack.extend(reversed(node.operands) if node in inside and node.op is not hlo.dot and len(found) < WIDE else ())
    return [*found, *(o for node in unit.nodes for o in node.operands if o not in found)]


def _keeps_place(program: Program, node: Node) -> bool:
    if node.op in (hlo.parameter, hlo.get_tuple_element) or program.home[node].attention:
        return True
    if node in program.means or node in program.second:
        return not operators.is_of(node, operators.DEVIATIONS)
    return operators.is_of(node, operators.SPLITS if node.op in VIEWS else operators.PARTED)
