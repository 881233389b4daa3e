"""Operations with sizes as operands. Where the sizes of the result are known, some become the static operation."""
from __future__ import annotations

from irscope.formats.stablehlo.building.contraction import check_kernel, conv_dims, conv_window, group_counts, precision
from irscope.formats.stablehlo.building.indexing import gather_attrs
from irscope.formats.stablehlo.building.movement import check_broadcast, iota, without_stretched
from irscope.formats.stablehlo.building.work import Work, builds, primitive
from irscope.formats.stablehlo.composites import dynamic
from irscope.ops import hlo


@builds("dynamic_reshape")
def _dynamic_reshape(work: Work) -> None:
    work.count(2)
    if work.result_array().is_static:
        work.emit(hlo.reshape, {}, work.operands[:1])
    else:
        work.emit(dynamic.RESHAPE)


@builds("dynamic_broadcast_in_dim")
def _dynamic_broadcast_in_dim(work: Work) -> None:
    work.count(2)
    dimensions, operand, result = work.fields.ints("broadcast_dimensions"), work.array(), work.result_array()
    if operand.is_static and result.is_static:
        check_broadcast(work, operand, result, dimensions)
        x, kept = without_stretched(work, work.operands[0], result, dimensions)
        work.emit(hlo.broadcast, {"dimensions": kept}, [x])
    else:
        work.emit(dynamic.BROADCAST, {"dimensions": dimensions})


@builds("dynamic_iota")
def _dynamic_iota(work: Work) -> None:
    work.count(1)
    if work.result_array().is_static:
        iota(work)
    else:
        work.emit(dynamic.IOTA, {"iota_dimension": work.fields.integer("iota_dimension")})


primitive("real_dynamic_slice", dynamic.SLICE, None, 4)
primitive("dynamic_pad", dynamic.PAD, None, 5)
primitive("dynamic_gather", dynamic.GATHER, lambda fields: gather_attrs(fields, ()), 3)


@builds("dynamic_conv")
def _dynamic_conv(work: Work) -> None:
    work.count(3)
    fields = work.fields
    dims = conv_dims(fields.record("dimension_numbers"))
    check_kernel(fields, dims, work.array(1))
    size = tuple(s if isinstance(s, int) else 1 for s in (work.array(1).shape[i] for i in dims.rhs_spatial))
    work.emit(dynamic.CONVOLUTION, {"dim_labels": dims, "window": conv_window(fields, size), **precision(fields), **group_counts(fields)})
