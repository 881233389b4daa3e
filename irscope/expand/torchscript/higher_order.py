"""Higher-order operators of FX: the graphs that they take are run, as branches and loops are.

    cond(pred, true_graph, false_graph, (x, y))         a conditional
    while_loop(cond_graph, body_graph, (i, x), (y,))    a while loop
    scan(graph, [carry], [xs], ())                      a loop over rows, unrolled where they are few
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from irscope.expand.torchscript import autocast
from irscope.expand.torchscript.control import MAX_UNROLLED, NO_LIMIT, chosen, repeated
from irscope.expand.torchscript.loops import RolledLoop
from irscope.expand.torchscript.program import Handlers, TorchProgram
from irscope.formats.torchscript import higher_order as ops
from irscope.formats.torchscript.abstract import FunctionRef, Scalar, Tensor, tensors
from irscope.formats.torchscript.operators.slices import wrapped_place
from irscope.graph import Graph, Node, TensorType, TupleType
from irscope.graph.dtypes import S64
from irscope.ops.faults import TypeFault
from irscope.source import UserError

NODES = Handlers()


def graph_of(program: TorchProgram, value: object) -> Graph:
    """The graph that an operand names. Raises TypeFault where the text does not have it."""
    found = program.module.graphs.get(value.name) if isinstance(value, FunctionRef) else None
    if found is None:
        name = f" ({value.name})" if isinstance(value, FunctionRef) else ""
        raise TypeFault(f"it takes a graph that is not in the text{name}: print_readable() or the archive has the inner graphs")
    return found


def results(node: Node, values: Sequence[Any]) -> Any:
    """The value of a node: the results of a graph as a list, or the only result where the text declares the node a tensor."""
    return values[0] if len(values) == 1 and isinstance(node.type, TensorType) else list(values)


@NODES.taking(ops.COND.name, kinds="any any any list|tuple?")
def cond(program: TorchProgram, node: Node, values: list[Any]) -> object:
    condition, first, second, *rest = values
    given = list(rest[0]) if rest else []
    bodies = [partial(program.call, graph_of(program, body), given) for body in (first, second)]
    return results(node, chosen(program, node, condition, bodies, given))


@NODES.taking(ops.WHILE_LOOP.name, kinds="any any list|tuple list|tuple?")
def while_loop(program: TorchProgram, node: Node, values: list[Any]) -> object:
    test, body = graph_of(program, values[0]), graph_of(program, values[1])
    carried, extra = list(values[2]), list(values[3]) if len(values) > 3 else []

    def step(number: object, state: list[Any]) -> list[Any]:
        following = program.call(body, [*state, *extra])
        return [*program.call(test, [*following, *extra])[:1], *following]
    tested = program.call(test, [*carried, *extra])
    if not tested:
        raise TypeFault("its condition returns nothing")
    condition = tested[0]
    return results(node, repeated(program, RolledLoop(node, step, NO_LIMIT, condition, carried, extra)))


# ---------------------------------------------------------------------- rows


def row(program: TorchProgram, x: Tensor, number: Any) -> Tensor:
    """A row of a tensor; ``number`` is an int, or a Scalar that a loop counts."""
    t, whole = program.t, x.get()
    shape = t.shape(whole)
    if isinstance(number, Scalar):
        starts = [wrapped_place(t, number.node, shape[0]), *[t.array(0, S64)] * (len(shape) - 1)]
        part = t.dynamic_slice(whole, starts, (1, *shape[1:]))
    else:
        part = t.slice_dim(whole, 0, number, number + 1)
    return Tensor(t.here(t.reshape(part, shape[1:])))


def _rows(program: TorchProgram, node: Node, xs: Sequence[Tensor], carried: list[Any], step: Any) -> list[Any]:
    """Run ``step(carried, rows)`` for each row of tensors. It returns as many values to pass on, then rows of results: they are stacked."""
    t = program.t
    count = t.shape(xs[0].get())[0] if xs else 0
    if count > MAX_UNROLLED:
        return _rolled(program, node, xs, carried, step)
    made: list[list[object]] = []
    for number in range(count):
        after = step(carried, [row(program, x, number) for x in xs])
        carried, own = list(after[:len(carried)]), after[len(carried):]
        made.append(own)
    if not count:
        return [*carried, *_no_rows(program, node, len(carried))]
    stacked = [t.concat([t.unsqueeze(t.here(y.get()), 0) for y in tensors(column)], 0) for column in zip(*made, strict=True)]
    return [*carried, *(Tensor(t.here(y)) for y in stacked)]


def _no_rows(program: TorchProgram, node: Node, skipped: int) -> list[Tensor]:
    """The results for no rows, of which only the text says the types."""
    types = node.type.elements if isinstance(node.type, TupleType) else [node.type]
    if any(not isinstance(type, TensorType) or not type.is_static for type in types[skipped:]):
        raise TypeFault("it runs over no rows, and the text does not say what a row becomes")
    return [Tensor(program.t.full(type.dims(), 0, type.dtype)) for type in types[skipped:] if isinstance(type, TensorType)]


def _rolled(program: TorchProgram, node: Node, xs: Sequence[Tensor], carried: list[Any], step: Any) -> list[Any]:
    """The same as a loop: results are written into tensors that it carries. The first row is run before the loop for their types."""
    t, kept = program.t, len(carried)
    count = t.shape(xs[0].get())[0]
    first = step(carried, [row(program, x, 0) for x in xs])
    tables = []
    for y in tensors(first[kept:]):
        value = y.get()
        table = t.full((count, *t.shape(value)), 0, t.dtype(value))
        tables.append(Tensor(t.update_slice(table, t.unsqueeze(value, 0), [t.array(0, S64)] * (t.rank(value) + 1))))

    def trip(number: Any, state: list[Any]) -> list[Any]:
        at = Scalar(t.plus(number.node, 1), "int") if isinstance(number, Scalar) else number + 1
        after = step(state[:kept], [row(program, x, at) for x in xs])
        written = []
        for y, table in zip(tensors(after[kept:]), state[kept:], strict=True):
            value = y.get()
            place = at.node if isinstance(at, Scalar) else t.array(at, S64)
            starts = [place, *[t.array(0, S64)] * t.rank(value)]
            written.append(Tensor(t.here(t.update_slice(table.get(), t.unsqueeze(value, 0), starts))))
        return [True, *after[:kept], *written]
    return repeated(program, RolledLoop(node, trip, count - 1, True, [*first[:kept], *tables], xs))


@NODES.taking(ops.MAP_IMPL.name, kinds="any list|tuple list|tuple?")
def map_rows(program: TorchProgram, node: Node, values: list[Any]) -> object:
    body, xs, extra = graph_of(program, values[0]), list(values[1]), list(values[2]) if len(values) > 2 else []
    return results(node, _rows(program, node, tensors(xs), [], lambda carried, rows: program.call(body, [*rows, *extra])))


@NODES.taking(ops.SCAN.name, kinds="any list|tuple list|tuple any*")
def scan(program: TorchProgram, node: Node, values: list[Any]) -> object:
    """Older releases write the dimension and whether to begin at the end before the other values."""
    body, carried, xs = graph_of(program, values[0]), list(values[1]), tensors(values[2])
    rest = values[3:]
    extra = list(rest[-1]) if rest and isinstance(rest[-1], list | tuple) else []
    if len(rest) > 1 and any(rest[:-1]):
        raise TypeFault("scan along another dimension than the first, or from the end, is not supported: move the dimension before it")
    return results(node, _rows(program, node, xs, carried, lambda state, rows: program.call(body, [*state, *rows, *extra])))


@NODES.taking(ops.ASSOCIATIVE_SCAN.name, kinds="any list|tuple any*")
def associative_scan(program: TorchProgram, node: Node, values: list[Any]) -> Any:
    """The rows one after the other: the order of an associative operator is free."""
    t, body, xs = program.t, graph_of(program, values[0]), tensors(values[1])
    extra = list(values[2]) if len(values) > 2 and isinstance(values[2], list | tuple) else []
    if not xs:
        raise TypeFault("it takes at least one tensor")
    count = t.shape(xs[0].get())[0]
    if count < 2:
        return results(node, xs)

    def step(state: list[Any], rows: list[Any]) -> list[Any]:
        after = program.call(body, [*state, *rows, *extra])
        if len(after) != len(xs):
            raise TypeFault(f"its graph returns {len(after)} values for {len(xs)}")
        return [*after, *after]
    later = [Tensor(t.slice_dim(x.get(), 0, 1, count)) for x in xs]
    made = _rows(program, node, later, [row(program, x, 0) for x in xs], step)[len(xs):]
    whole = [t.concat([t.slice_dim(x.get(), 0, 0, 1), t.here(y.get())], 0) for x, y in zip(xs, made, strict=True)]
    return results(node, [Tensor(t.here(y)) for y in whole])


# ---------------------------------------------------------------------- wrappers


def _first_graph(values: Sequence[object]) -> int:
    """The place of the graph among the operands. Raises TypeFault where there is none."""
    for place, value in enumerate(values):
        if isinstance(value, FunctionRef):
            return place
    raise TypeFault("it takes a graph that is not in the text: print_readable() or the archive has the inner graphs")


WRAPPED = ("wrap", "wrap_with_set_grad_enabled", "tag_activation_checkpoint", "wrap_activation_checkpoint")


@NODES.taking(*(ops.WRAPPERS[name].name for name in WRAPPED))
def wrapped(program: TorchProgram, node: Node, values: list[object]) -> object:
    """A graph, run with what follows it."""
    at = _first_graph(values)
    given = values[at + 1:]
    body = graph_of(program, values[at])
    if len(given) == 1 and isinstance(given[0], list | tuple) and len(body.params) != 1:
        given = list(given[0])
    return results(node, program.call(body, given[:len(body.params)]))


@NODES.taking(*(ops.WRAPPERS[name].name for name in ("strict_mode", "hints_wrapper", "run_const_graph")), kinds="any list|tuple? any*")
def wrapped_tuple(program: TorchProgram, node: Node, values: list[Any]) -> object:
    """A graph, and the tuple of its operands."""
    return results(node, program.call(graph_of(program, values[0]), list(values[1]) if len(values) > 1 else []))


@NODES.taking(ops.WRAPPERS["invoke_subgraph"].name, kinds="any any*")
def invoke_subgraph(program: TorchProgram, node: Node, values: list[object]) -> object:
    """A graph, the name of it, and its operands; in older releases a tuple of them."""
    given = values[2:]
    if len(given) == 1 and isinstance(given[0], list | tuple):
        given = list(given[0])
    return results(node, program.call(graph_of(program, values[0]), given))


@NODES.taking(ops.WRAPPERS["wrap_with_autocast"].name, kinds="any int|none any any any any*")
def wrap_with_autocast(program: TorchProgram, node: Node, values: list[Any]) -> object:
    """``(device, dtype, enabled, cache, graph, operands...)``"""
    device, dtype, enabled, _, body, *given = values
    with autocast.region(program, str(device), dtype, bool(enabled)):
        return results(node, program.call(graph_of(program, body), given))


NODES.taking(ops.WRAPPERS["_export_tracepoint"].name)(lambda program, node, values: list(values))


@NODES.taking(ops.WITH_EFFECTS.name, kinds="any any any*")
def with_effects(program: TorchProgram, node: Node, values: list[object]) -> object:
    """``(token, operator, operands...)``: the token, then the results."""
    token, name, *given = values
    if not isinstance(name, str):
        raise UserError(f"%{node.name} calls an operator that the text does not name{program.where(node)}")
    made = program.named(node, name, given)
    return [token, *(made if isinstance(made, list) else [] if made is None else [made])]


@NODES.taking(ops.FLAT_APPLY.name)
def flat_apply(program: TorchProgram, node: Node, values: list[object]) -> object:
    """A function of Python that the text names, of which the one that indexes a tensor is supported."""
    for place, value in enumerate(values):
        if isinstance(value, str) and value.endswith(".ModIndex") and place + 1 < len(values):
            return program.operator(node, "aten::index", [values[place + 1], list(values[place + 2:])])
    raise TypeFault("it calls a function of Python whose body is not in the text")


@NODES.taking(ops.OUT_DTYPE.name, kinds="any int|none any*")
def out_dtype(program: TorchProgram, node: Node, values: list[Any]) -> object:
    """``(operator, dtype, operands...)``: computed in the wider type."""
    name, dtype, *given = values
    if not isinstance(name, str):
        raise TypeFault(f"out_dtype takes the name of an operator, not a value of type {type(name).__name__}")
    kind = program.t.dtype_number(dtype, S64)
    wide = [Tensor(program.t.convert(v.get(), kind)) if isinstance(v, Tensor) else v for v in given]
    return program.named(node, name, wide)
