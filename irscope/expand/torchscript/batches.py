"""``vmap`` before dispatch: between two functions, tensors have dimensions that the operators do not see.

    _add_batch_dim(x, 0, 1)                a row for each element of dimension 0; what follows works on rows
    mul = aten.mul(row, other_row)         once for all rows where it is elementwise, else once a row
    _remove_batch_dim(mul, 1, 4, 0)        the rows as dimension 0
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from irscope.expand.torchscript import aliases
from irscope.expand.torchscript.higher_order import row
from irscope.expand.torchscript.program import Handlers, TorchProgram
from irscope.formats.torchscript.abstract import Tensor, tensor
from irscope.formats.torchscript.higher_order import BATCHES
from irscope.graph import Node, TensorType
from irscope.graph.walk import leaves_of
from irscope.ops.faults import TypeFault


@dataclass(frozen=True, slots=True, eq=False)
class BatchedRow:
    """A tensor as the operators of a ``vmap`` see it: a row. The first dimensions of ``whole`` are those of the levels, in order."""

    whole: Tensor
    levels: tuple[int, ...]


STEPS_OF_A_ROW = 16
"""What the nodes that an operator makes of one row cost, in runs of a node."""
NODES = Handlers()
"""The functions of ``vmap``, by their targets."""


@NODES.taking(f"{BATCHES}_add_batch_dim", kinds="any int int")
def add_batch_dim(program: TorchProgram, node: Node, values: list[Any]) -> BatchedRow:
    """``(x, dimension, level)``"""
    t, (x, dimension, level) = program.t, values
    levels = x.levels if isinstance(x, BatchedRow) else ()
    whole = tensor(x.whole if isinstance(x, BatchedRow) else x).get()
    depth = len(levels)
    d = depth + t.dim(t.rank(whole) - depth, dimension)
    order = [*range(depth), d, *(i for i in range(depth, t.rank(whole)) if i != d)]
    return BatchedRow(Tensor(t.here(t.transpose(whole, order))), (*levels, level))


@NODES.taking(f"{BATCHES}_remove_batch_dim", kinds="any int int int")
def remove_batch_dim(program: TorchProgram, node: Node, values: list[Any]) -> object:
    """``(x, level, rows, dimension)``"""
    t, (x, level, count, out) = program.t, values
    levels = x.levels if isinstance(x, BatchedRow) else ()
    whole = tensor(x.whole if isinstance(x, BatchedRow) else x).get()
    if level not in levels:  # no operator read a row: it is the same for all
        whole = t.broadcast_to(t.unsqueeze(whole, 0), (count, *t.shape(whole)))
        levels = (level, *levels)
    at, depth = levels.index(level), len(levels) - 1
    order = [d for d in range(t.rank(whole)) if d != at]
    order.insert(depth + t.dim(t.rank(whole) - depth, out), at)
    made = Tensor(t.here(t.transpose(whole, order)))
    rest = tuple(other for other in levels if other != level)
    return BatchedRow(made, rest) if rest else made


@NODES.taking(*(BATCHES + name for name in ("lazy_load_decompositions", "_vmap_increment_nesting", "_vmap_decrement_nesting")))
def nothing(program: TorchProgram, node: Node, values: list[object]) -> None:
    """The beginning or the end of a ``vmap``."""


def has_rows(values: Sequence[object]) -> bool:
    """Whether an operand is a row."""
    stack, seen = list(values), set[int]()  # lists may contain the same list many times, and nest
    while stack:
        top = stack.pop()
        if isinstance(top, BatchedRow):
            return True
        if isinstance(top, list) and id(top) not in seen:
            seen.add(id(top))
            stack += top
    return False


def apply(program: TorchProgram, node: Node, name: str, values: list[object]) -> object:
    """An operator on rows: all of them at once where it is elementwise, else one after the other."""
    if name.endswith("_") and not name.endswith("__"):
        return _in_place(program, node, name, values)
    found = _rows_in(values)
    levels = tuple(sorted({level for v in found for level in v.levels}))
    if node.op.work == "elementwise" and not any(isinstance(v, list) for v in values):
        made = program.operator(node, name, _aligned(program, values, levels))
        if isinstance(made, Tensor):
            return BatchedRow(made, levels)
    sizes = {level: program.t.shape(v.whole.get())[i] for v in found for i, level in enumerate(v.levels)}
    counts = tuple(sizes[level] for level in levels)
    flat = [_flattened(program, v, levels, counts) for v in values]
    results = []
    for number in range(prod(counts)):
        program.step(node, STEPS_OF_A_ROW)
        results.append(program.operator(node, name, _at(program, flat, number)))
    return _stacked(program, node, results, levels, counts)


def _in_place(program: TorchProgram, node: Node, name: str, values: list[object]) -> Any:
    """Writes all rows of the first operand."""
    target, made = values[0], apply(program, node, name[:-1], values)
    if not isinstance(target, BatchedRow) or not isinstance(made, BatchedRow) or made.levels != target.levels:
        raise TypeFault("a vmap writes to a tensor that is the same for all rows, which torch refuses as well")
    aliases.write_result(program, target.whole, made.whole.get())
    return target


def _rows_in(values: list[object]) -> list[BatchedRow]:
    leaves = leaves_of(values, lambda value: value if isinstance(value, list) else None)
    return [leaf for leaf in leaves if isinstance(leaf, BatchedRow)]


def _spread(program: TorchProgram, value: BatchedRow, levels: tuple[int, ...], rank: int) -> Node:
    """The whole with a dimension for each level, of size 1 where it lacks one, and then ``rank`` dimensions."""
    t, whole = program.t, value.whole.get()
    shape = t.shape(whole)
    depth = len(value.levels)
    first = tuple(shape[value.levels.index(level)] if level in value.levels else 1 for level in levels)
    own = shape[depth:]
    return t.reshape(whole, (*first, *(1,) * (rank - len(own)), *own))


def _aligned(program: TorchProgram, values: Sequence[object], levels: tuple[int, ...]) -> list[object]:
    """The operands. A row becomes its whole, with the dimensions of all levels first, then as many as the operand of the highest rank."""
    t = program.t
    rank = max(t.rank(v.get()) if isinstance(v, Tensor) else t.rank(v.whole.get()) - len(v.levels)
               for v in values if isinstance(v, Tensor | BatchedRow))
    return [Tensor(t.here(_spread(program, v, levels, rank))) if isinstance(v, BatchedRow) else v for v in values]


def _flattened(program: TorchProgram, value: object, levels: tuple[int, ...], counts: tuple[int, ...]) -> object:
    """An operand with one dimension for all levels."""
    if isinstance(value, list):
        return [_flattened(program, part, levels, counts) for part in value]
    if not isinstance(value, BatchedRow):
        return value
    t = program.t
    own = t.shape(value.whole.get())[len(value.levels):]
    full = t.broadcast_to(_spread(program, value, levels, len(own)), (*counts, *own))
    return BatchedRow(Tensor(t.here(t.reshape(full, (prod(counts), *own)))), levels[:1])


def _at(program: TorchProgram, values: Sequence[object], number: int) -> list[object]:
    """The operands of one row."""
    return [row(program, v.whole, number) if isinstance(v, BatchedRow) else _at(program, v, number) if isinstance(v, list) else v
            for v in values]


def _stacked(program: TorchProgram, node: Node, results: list[Any], levels: tuple[int, ...], counts: tuple[int, ...]) -> object:
    """The results of all rows."""
    t = program.t
    if not results:
        if not isinstance(node.type, TensorType) or not node.type.is_static:
            raise TypeFault("a vmap over no rows makes something whose type the text does not say")
        return BatchedRow(Tensor(t.full((*counts, *node.type.dims()), 0, node.type.dtype)), levels)
    if isinstance(results[0], list):
        return [_stacked(program, node, [made[i] for made in results], levels, counts) for i in range(len(results[0]))]
    if not isinstance(results[0], Tensor):
        return results[0]
    whole = t.concat([t.unsqueeze(t.here(made.get()), 0) for made in results], 0)
    return BatchedRow(Tensor(t.here(t.reshape(whole, (*counts, *t.shape(whole)[1:])))), levels)
