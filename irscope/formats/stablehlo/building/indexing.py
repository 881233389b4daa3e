"""Gather, scatter and their forms."""
from __future__ import annotations

from typing import Any

from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.work import Work, builds, primitive
from irscope.graph import Node
from irscope.ops import hlo
from irscope.ops.faults import TypeFault


def gather_attrs(fields: Fields, slice_sizes: tuple[int, ...]) -> dict[str, Any]:
    """The attributes of a gather in HLO, which omits batching dimensions where there are none."""
    numbers = fields.record("dimension_numbers")
    return {
        **_lists(numbers, "offset_dims", "collapsed_slice_dims", "start_index_map"),
        "index_vector_dim": numbers.integer("index_vector_dim", 0), "slice_sizes": slice_sizes,
        **numbers.nonempty("operand_batching_dims", "start_indices_batching_dims"), **fields.true_flags("indices_are_sorted")}


def _lists(numbers: Fields, *names: str) -> dict[str, tuple[int, ...]]:
    return {name: numbers.ints(name, ()) for name in names}


primitive("gather", hlo.gather, lambda fields: gather_attrs(fields, fields.ints("slice_sizes")), 2,
          "dimension_numbers slice_sizes indices_are_sorted")


@builds("scatter")
def _scatter(work: Work) -> None:
    fields = work.fields
    numbers = fields.record("scatter_dimension_numbers")
    attrs = {
        **_lists(numbers, "update_window_dims", "inserted_window_dims", "scatter_dims_to_operand_dims"),
        "index_vector_dim": numbers.integer("index_vector_dim", 0),
        **numbers.nonempty("input_batching_dims", "scatter_indices_batching_dims"),
        **fields.true_flags("indices_are_sorted", "unique_indices")}
    work.emit(hlo.scatter, attrs, None, [work.region()])


@builds("torch_index_select")
def _torch_index_select(work: Work) -> None:
    """The slices of an operand along ``dim``, by index, the first ``batch_dims`` dimensions together."""
    work.count(2)
    dim, batch = work.fields.integer("dim"), work.fields.integer("batch_dims", 0)
    operand, index = work.sized(), work.sized(1)
    if not 0 <= batch <= dim < operand.rank or batch > index.rank:
        raise TypeFault(f"dim {dim} and batch_dims {batch} of '{work.operation.name}' do not fit {operand} and {index}")
    picked: Node = work.operands[1]
    vector = index.rank
    if batch:  # the batch dimensions are a part of each index
        shape = (*index.dims(), 1)
        one = index.with_shape(shape)
        parts = [work.step(hlo.iota, [], one, {"iota_dimension": d}) for d in range(batch)]
        parts.append(work.step(hlo.reshape, [picked], one))
        whole = index.with_shape((*index.dims(), len(parts)))
        picked = work.step(hlo.concatenate, parts, whole, {"dimensions": (index.rank,)})
    sizes = tuple(1 if d == dim or d < batch else size for d, size in enumerate(operand.dims()))
    collapsed = (*range(batch), dim)
    before = tuple(range(batch, dim))
    after = tuple(range(dim + index.rank - batch, work.result_array().rank))
    attrs = {"offset_dims": before + after, "collapsed_slice_dims": collapsed, "start_index_map": collapsed, "index_vector_dim": vector,
             "slice_sizes": sizes}
    work.emit(hlo.gather, attrs, [work.operands[0], picked])
