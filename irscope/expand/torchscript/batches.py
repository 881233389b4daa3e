"""``vmap`` before dispatch: between two functions, tensors have a dimension that the operators do not see.

    _add_batch_dim(x, 0, 1)                a row for each element of dimension 0; what follows works on rows
    mul = aten.mul(row, other_row)         once for all rows where it is elementwise, else once a row
    _remove_batch_dim(mul, 1, 4, 0)        the rows as dimension 0
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.expand.torchscript.higher_order import row
from irscope.expand.torchscript.program import Program
from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.higher_order import BATCHES
from irscope.graph import Node, TensorType

Handler = Callable[[Program, Node, list[Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A tensor as the operators of a ``vmap`` see it: a row; all of them are the rows of ``whole``."""

    whole: Tensor


def add_batch_dim(program: Program, node: Node, values: list[Any]) -> Rows:
    """``(x, dimension, level)``"""
    t, x = program.t, values[0]
    if isinstance(x, Rows):
        raise ValueError("a vmap within a vmap is not supported: run ep.run_decompositions() before the program is saved")
    whole = x.get()
    d = t.dim(whole, values[1])
    return Rows(Tensor(t.here(t.transpose(whole, [d, *(i for i in range(t.rank(whole)) if i != d)]))))


def remove_batch_dim(program: Program, node: Node, values: list[Any]) -> Tensor:
    """``(x, level, rows, dimension)``"""
    t, x, (_, count, out) = program.t, values[0], values[1:4]
    if not isinstance(x, Rows):  # no operator read a row: it is the same for all
        value = t.unsqueeze(x.get(), 0)
        x = Rows(Tensor(t.here(t.broadcast_to(value, (count, *t.shape(value)[1:])))))
    whole = x.whole.get()
    order = list(range(1, t.rank(whole)))
    order.insert(t.dim(whole, out), 0)
    return Tensor(t.here(t.transpose(whole, order)))


def nothing(program: Program, node: Node, values: list[Any]) -> None:
    """The beginning or the end of a ``vmap``."""


NODES: dict[str, Handler] = {
    f"{BATCHES}_add_batch_dim": add_batch_dim, f"{BATCHES}_remove_batch_dim": remove_batch_dim,
    f"{BATCHES}lazy_load_decompositions": nothing, f"{BATCHES}_vmap_increment_nesting": nothing,
    f"{BATCHES}_vmap_decrement_nesting": nothing,
}
"""The functions of ``vmap``, by their targets."""


def has_rows(values: Sequence[Any]) -> bool:
    """Whether an operand is a row."""
    return any(isinstance(v, Rows) or (isinstance(v, list) and has_rows(v)) for v in values)


def apply(program: Program, node: Node, name: str, values: list[Any]) -> Any:
    """An operator on rows: all of them at once where it is elementwise, else one after the other."""
    plain = [v for v in values if isinstance(v, Tensor | Rows)]
    if node.op.work == "elementwise" and not any(isinstance(v, list) for v in values):
        made = program.operator(node, name, _aligned(program, plain, values))
        if isinstance(made, Tensor):
            return Rows(made)
    counts = {program.t.shape(v.whole.get())[0] for v in _rows_in(values)}
    if len(counts) != 1:
        raise ValueError(f"rows of {sorted(counts)} elements meet in one vmap")
    count = counts.pop()
    results = [program.operator(node, name, _at(program, values, number)) for number in range(count)]
    return _stacked(program, node, results)


def _rows_in(values: Sequence[Any]) -> list[Rows]:
    return [found for v in values for found in ([v] if isinstance(v, Rows) else _rows_in(v) if isinstance(v, list) else [])]


def _aligned(program: Program, plain: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The operands with as many dimensions each, those of the rows first."""
    t = program.t
    rank = max(t.rank(v.get()) if isinstance(v, Tensor) else t.rank(v.whole.get()) - 1 for v in plain)

    def aligned(value: Any) -> Any:
        if not isinstance(value, Rows):
            return value
        whole = value.whole.get()
        count, *sizes = t.shape(whole)
        return Tensor(t.here(t.reshape(whole, (count, *(1,) * (rank - len(sizes)), *sizes))))
    return [aligned(v) for v in values]


def _at(program: Program, values: Sequence[Any], number: int) -> list[Any]:
    """The operands of one row."""
    return [row(program, v.whole, number) if isinstance(v, Rows) else _at(program, v, number) if isinstance(v, list) else v for v in values]


def _stacked(program: Program, node: Node, results: list[Any]) -> Any:
    """The results of all rows."""
    t = program.t
    if not results:
        if not isinstance(node.type, TensorType) or not node.type.is_static:
            raise ValueError("a vmap over no rows makes something whose type the text does not say")
        return Rows(Tensor(t.full((0, *node.type.dims()), 0, node.type.dtype)))
    if isinstance(results[0], list):
        return [_stacked(program, node, [made[i] for made in results]) for i in range(len(results[0]))]
    if not isinstance(results[0], Tensor):
        return results[0]
    return Rows(Tensor(t.here(t.concat([t.unsqueeze(t.here(made.get()), 0) for made in results], 0))))
