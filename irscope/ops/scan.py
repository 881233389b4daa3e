"""scan: a loop along one dimension that carries values from slice to slice and stacks its outputs."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.graph import Builder, Dim, DType, Graph, Node, Op, TensorType, TupleType, Type, copy_node
from irscope.graph.dtypes import S32, S64
from irscope.graph.node import ArrayView, Emitter, Run
from irscope.lazy import Array, np
from irscope.ops import attributes, hlo, infer
from irscope.ops.bodies import scalar_results
from irscope.ops.costs import body_flops
from irscope.ops.faults import TypeFault
from irscope.ops.registry import declare
from irscope.ops.shapes import fits, size
from irscope.ops.tensors import Tensors


@dataclass(frozen=True, slots=True)
class ScanParts:
    """The parts of a scan: it iterates over the first operands along ``dimension``; the rest are initial values of the carries."""

    body: Graph
    dimension: int
    inputs: tuple[TensorType, ...]
    inits: tuple[TensorType, ...]
    outputs: tuple[TensorType, ...]
    length: Dim
    reverse: bool

    @staticmethod
    def of(node: Node) -> ScanParts:
        """Checks all constraints between the parts."""
        body, carries = infer.body(node, 0, "step"), infer.attr(node, attributes.Scan.num_carries)
        dimensions = infer.attr(node, attributes.Scan.dimensions)
        if len(dimensions) != 1:
            raise TypeFault(f"scan walks along one dimension, but names {len(dimensions)}")
        d, count = dimensions[0], len(node.operands) - carries
        if carries < 0 or count < 1:
            raise TypeFault(f"scan has {len(node.operands)} operands and num_carries={carries}: at least one operand must be walked over")
        types = infer.arrays(node)
        inputs, inits = tuple(types[:count]), tuple(types[count:])
        for t in inputs:
            infer.dimension(node, d, t.rank, "dimension")
            infer.equal_dims(node, inputs[0].shape[d], t.shape[d], f"dimension {d} of {infer.plain(inputs[0])} and of {infer.plain(t)}")
        slices = [TensorType(t.dtype, t.shape[:d] + t.shape[d + 1:]) for t in inputs]
        infer.passes(node, body, [*slices, *inits])
        results = infer.results(body)
        if len(results) < carries or not all(isinstance(t, TensorType) for t in results):
            raise TypeFault(f"the step {body.name} of scan must give arrays, the last {carries} of them the new carries, "
                            f"but gives {infer.plain(body.result().type)}")
        made = [t for t in results if isinstance(t, TensorType)]
        outputs, carried = made[:len(made) - carries], made[len(made) - carries:]
        for i, (new, init) in enumerate(zip(carried, inits, strict=True)):
            if not fits(new, init):
                raise TypeFault(f"carry {i} of scan begins as {infer.plain(init)}, but the step {body.name} gives {infer.plain(new)}")
        for t in outputs:
            infer.dimension(node, d, t.rank + 1, "dimension")
        return ScanParts(body, d, inputs, inits, tuple(outputs), inputs[0].shape[d], attributes.Scan.of(node).is_reverse)

    def stacked(self) -> list[TensorType]:
        """The types of the stacked outputs."""
        d = self.dimension
        return [TensorType(t.dtype, (*t.shape[:d], self.length, *t.shape[d:])) for t in self.outputs]


def _scan_type(node: Node) -> Type:
    scan_ = ScanParts.of(node)
    results = [*scan_.stacked(), *(TensorType(t.dtype, t.shape) for t in scan_.inits)]
    return TupleType(tuple(results)) if isinstance(scan_.body.result().type, TupleType) else results[0]


def _scan_reference(run: Run, node: Node, *arrays: Array) -> Any:
    scan_ = ScanParts.of(node)
    inputs, carries = arrays[:len(scan_.inputs)], list(arrays[len(scan_.inputs):])
    outs = [np.empty(t.dims(), t.dtype.numpy()) for t in scan_.stacked()]
    steps = range(inputs[0].shape[scan_.dimension])
    for i in reversed(steps) if scan_.reverse else steps:
        made = scalar_results(node, run(scan_.body, [*(np.take(a, i, scan_.dimension) for a in inputs), *carries]))
        for out, value in zip(outs, made, strict=False):
            out[(slice(None),) * scan_.dimension + (i,)] = value
        carries = list(made[len(outs):])
    results = [*outs, *carries]
    return tuple(results) if isinstance(node.type, TupleType) else results[0]


def _is_scalar(scan_: ScanParts) -> bool:
    """Whether every step works on scalars."""
    return all(t.rank == 1 for t in scan_.inputs) and all(t.rank == 0 for t in (*scan_.inits, *scan_.outputs))


def _scan_nest(k: Emitter, node: Node, ins: Sequence[ArrayView], outs: Sequence[ArrayView]) -> None:
    scan_ = ScanParts.of(node)
    n, count = len(scan_.inputs), len(scan_.outputs)
    carries = [k.reg(view.dtype, view.load(())) for view in ins[n:]]
    length = ins[0].shape[0]
    with k.loop(0, length) as step:
        here = (length - 1) - step if scan_.reverse else step
        made = k.inline(scan_.body, [*(view.load([here]) for view in ins[:n]), *(c.get() for c in carries)])
        for view, value in zip(outs[:count], made, strict=False):
            view.store([here], value)
        for register, value in zip(carries, made[count:], strict=True):
            register.set(value)
    for view, register in zip(outs[count:], carries, strict=True):
        view.store((), register.get())


def _scan_expand(builder: Builder, node: Node, operands: Sequence[Node], raw: Mapping[str, str]) -> Node | None:
    """Expand a scan of arrays to a loop; a scan of scalars stays."""
    scan_ = ScanParts.of(node)
    if _is_scalar(scan_):
        return None
    t = Tensors(builder)
    zeros = [t.emit("broadcast", (t.array(0, type.dtype),), {"dimensions": ()}, type=type) for type in scan_.stacked()]
    n = len(scan_.inputs)
    state = t.emit("tuple", [t.array(0, _counter(scan_)), *zeros, *operands[n:], *operands[:n]])
    loop = builder.add(hlo.while_, (state,), {}, state.type, (_condition(scan_, state.type), _step(scan_, state.type)), node.name)
    results = [t.part(loop, 1 + i) for i in range(len(zeros) + len(scan_.inits))]
    return t.emit("tuple", results) if isinstance(node.type, TupleType) else results[0]


def _counter(scan_: ScanParts) -> DType:
    """The element type that counts the steps."""
    return S32 if (size(scan_.length) or 0) <= S32.highest else S64


def _body(name: str, state: Type) -> tuple[Tensors, Node]:
    """The algebra of a new body, and the parameter of that body."""
    t = Tensors(Builder(Graph(name)))
    return t, t.builder.param(hlo.parameter, state, "state")


def _condition(scan_: ScanParts, state: Type) -> Graph:
    t, whole = _body(scan_.body.name + ".condition", state)
    t.builder.graph.root = t.compare("LT", t.part(whole, 0), t.array(size(scan_.length) or 0, _counter(scan_)))
    return t.builder.graph


def _step(scan_: ScanParts, state: Type) -> Graph:
    t, whole = _body(scan_.body.name + ".step", state)
    count, n = len(scan_.outputs), len(scan_.inputs)
    parts = [t.part(whole, i) for i in range(1 + count + len(scan_.inits) + n)]
    counter, outs, carries, inputs = parts[0], parts[1:1 + count], parts[1 + count:-n], parts[-n:]
    here = t.sub(t.array((size(scan_.length) or 1) - 1, _counter(scan_)), counter) if scan_.reverse else counter
    zero, one = (t.array(i, _counter(scan_)) for i in (0, 1))
    d = scan_.dimension

    def starts(rank: int) -> list[Node]:
        return [here if i == d else zero for i in range(rank)]
    slices = []
    for x, type in zip(inputs, scan_.inputs, strict=True):
        dims = type.dims()
        part = t.dynamic_slice(x, starts(type.rank), (*dims[:d], 1, *dims[d + 1:]))
        slices.append(t.emit("reshape", (part,), type=TensorType(type.dtype, type.shape[:d] + type.shape[d + 1:])))
    made = _inlined(t, scan_.body, [*slices, *carries])
    stacked = []
    for out, value, type in zip(outs, made, scan_.stacked(), strict=False):
        update = t.emit("reshape", (value,), type=TensorType(type.dtype, (*type.shape[:d], 1, *type.shape[d + 1:])))
        stacked.append(t.emit("dynamic-update-slice", (out, update, *starts(type.rank)), type=type))
    after = t.add(counter, one)
    t.builder.graph.root = t.emit("tuple", [after, *stacked, *made[count:], *inputs], type=state)
    return t.builder.graph


def _inlined(t: Tensors, body: Graph, arguments: Sequence[Node]) -> list[Node]:
    """A copy of the body's nodes over the arguments; the leaves of its result."""
    became = {p.index: argument for p, argument in zip(body.params, arguments, strict=True)}
    for node in body.nodes:
        if node.index not in became:
            became[node.index] = copy_node(t.builder, node, [became[o.index] for o in node.operands])
    root = body.result()
    if root.op is hlo.tuple:
        return [became[o.index] for o in root.operands]
    whole = became[root.index]
    return [t.part(whole, i) for i in range(len(root.type.elements))] if isinstance(root.type, TupleType) else [whole]


def _scan_cost(node: Node) -> float:
    length = size(infer.array(node, 0).shape[attributes.Scan.of(node).dimensions[0]]) or 1
    return length * body_flops(node.bodies[0])


scan = declare(Op(
    "scan", work="reduction", infer=_scan_type, reference=_scan_reference, nest=_scan_nest, expand=_scan_expand, cost=_scan_cost,
    doc="Steps along a dimension: the body gets a slice of each operand and the carries, and gives slices to stack and new carries."))
