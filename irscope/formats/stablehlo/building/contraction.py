"""Dots and convolutions, and what is defined by them: einsum."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irscope.formats.stablehlo.attributes import Number, Record
from irscope.formats.stablehlo.building.direct import Direct, Made, alone, directly, inferred
from irscope.formats.stablehlo.building.fields import Fields
from irscope.formats.stablehlo.building.reduction import window_of
from irscope.formats.stablehlo.building.work import Work, builds, primitive
from irscope.graph import NO_ATTRS, Node, TensorType, Type
from irscope.lazy import np
from irscope.ops import hlo
from irscope.ops.attrs import ConvDims, Literal, Window
from irscope.ops.building import combiner_body
from irscope.ops.faults import TypeFault


def precision(fields: Fields) -> dict[str, Any]:
    """``operand_precision`` of HLO, which omits it where all are the default."""
    words = tuple(word.lower() for word in fields.words("precision_config"))
    return {"operand_precision": words} if any(word != "default" for word in words) else {}


DOT_DIMENSIONS = {"lhs_batch_dims": "lhs_batching_dimensions", "lhs_contracting_dims": "lhs_contracting_dimensions",
                  "rhs_batch_dims": "rhs_batching_dimensions", "rhs_contracting_dims": "rhs_contracting_dimensions"}
"""HLO's attributes for the dimensions of a dot, and StableHLO's names for them."""
primitive("dot_general", hlo.dot, lambda fields: {
    **_dimensions(fields.record("dot_dimension_numbers")), **precision(fields), **_algorithm(fields)}, 2)


def _dimensions(numbers: Fields) -> dict[str, tuple[int, ...]]:
    found = {name: numbers.ints(written, ()) for name, written in DOT_DIMENSIONS.items()}
    return {name: dims for name, dims in found.items() if dims or "contracting" in name}


def _algorithm(fields: Fields) -> dict[str, str]:
    """``algorithm=dot_bf16_bf16_f32_x3``, from the element types and the number of products of the algorithm."""
    if not isinstance(fields.values.get("algorithm"), Record):
        return {}
    given = fields.record("algorithm")
    parts = [_type_name(given, f"{side}_type") for side in ("lhs_precision", "rhs_precision", "accumulation")]
    parts = [("any_f8" if part.startswith("f8") and i < 2 else part) for i, part in enumerate(parts)]
    name = "dot_" + "_".join(parts)
    products = given.integer("num_primitive_operations", 1)
    fast = given.flag("allow_imprecise_accumulation")
    return {"algorithm": name + (f"_x{products}" if products > 1 else "") + ("_fast_accum" if fast else "")}


def _type_name(fields: Fields, name: str) -> str:
    value = fields.values.get(name)
    if isinstance(value, TensorType):
        return value.dtype.name
    if isinstance(value, Type | str | Number):
        return str(value)
    raise fields.fault(name, "an element type")


def _direct_dot(fields: Fields, applied: str) -> Direct:
    dims = _dimensions(fields.record("dot_dimension_numbers"))
    attrs = {**dims, **precision(fields)}
    is_general = inferred(hlo.dot, attrs)
    batch = dims.get("lhs_batch_dims", ()), dims.get("rhs_batch_dims", ())
    (left, right) = (batch[0] + dims["lhs_contracting_dims"], batch[1] + dims["rhs_contracting_dims"])
    is_plain = len(batch[0]) == len(batch[1]) and len(left) == len(right) and all(
        len(set(used)) == len(used) and min(used, default=0) >= 0 for used in (left, right))

    def fits(types: Sequence[TensorType], result: TensorType) -> bool:
        if not is_plain or len(types) != 2 or not types[0].dtype is types[1].dtype is result.dtype:
            return is_general(types, result)
        x, y = types[0].shape, types[1].shape
        if max(left, default=-1) >= len(x) or max(right, default=-1) >= len(y):
            return False
        free = [size for i, size in enumerate(x) if i not in left] + [size for i, size in enumerate(y) if i not in right]
        return [x[i] for i in left] == [y[i] for i in right] and result.shape == (*[x[i] for i in batch[0]], *free)
    return alone(hlo.dot, attrs, fits)


directly("dot_general", "dot_dimension_numbers precision_config", _direct_dot)


@builds("dot")
def _dot(work: Work) -> None:
    """The old form: the last dimension of the left operand, the first of the right one."""
    work.count(2)
    left = work.array()
    work.emit(hlo.dot, {"lhs_contracting_dims": (left.rank - 1,), "rhs_contracting_dims": (0,), **precision(work.fields)})


@builds("convolution")
def _convolution(work: Work) -> None:
    work.count(2)
    work.emit(hlo.convolution, _conv_attrs(work.fields, work.sized(1)))


def _conv_attrs(fields: Fields, kernel: TensorType) -> dict[str, Any]:
    """The attributes of a convolution in HLO. Raises TypeFault where they do not fit the kernel."""
    dims = conv_dims(fields.record("dimension_numbers"))
    check_kernel(fields, dims, kernel)
    sizes = kernel.dims()
    window = conv_window(fields, tuple(sizes[i] for i in dims.rhs_spatial))
    return {"dim_labels": dims, **precision(fields), **({"window": window} if window.size else {}), **group_counts(fields)}


def check_kernel(fields: Fields, dims: ConvDims, kernel: TensorType) -> None:
    """Raise TypeFault where a kernel lacks a dimension that a convolution names."""
    if dims.rhs_spatial and max(*dims.rhs_spatial, dims.rhs_input, dims.rhs_output) >= kernel.rank:
        raise TypeFault(f"dimension_numbers of '{fields.owner}' do not fit the kernel {kernel}")


def group_counts(fields: Fields) -> dict[str, int]:
    """The group counts of a convolution; HLO omits those that are 1."""
    return {name: count for name in ("feature_group_count", "batch_group_count") if (count := fields.integer(name, 1)) != 1}


def _direct_convolution(fields: Fields, applied: str) -> Direct:
    """A convolution, whose window has the sizes of the kernel."""
    def over(types: Sequence[TensorType], result: TensorType) -> Made | None:
        if len(types) != 2:
            return None
        try:
            attrs = _conv_attrs(fields, types[1])
        except TypeFault:
            return None
        return Made(hlo.convolution, attrs) if inferred(hlo.convolution, attrs)(types, result) else None
    return Direct(Made(hlo.convolution, NO_ATTRS), lambda types, result: False, over)


directly("convolution", "dimension_numbers window_strides padding lhs_dilation rhs_dilation window_reversal feature_group_count "
         "batch_group_count precision_config", _direct_convolution)


def conv_window(fields: Fields, size: tuple[int, ...]) -> Window:
    """The window of a convolution with a kernel of this size."""
    return window_of(fields, size, ("lhs_dilation", "rhs_dilation"), fields.flags("window_reversal", len(size)))


def conv_dims(numbers: Fields) -> ConvDims:
    """The roles of dimensions, of ``#stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>`` or of a record with their numbers."""
    if "input" in numbers:
        sides = []
        for name in ("input", "kernel", "output"):
            value = numbers.values[name]
            if not isinstance(value, tuple):
                raise numbers.fault(name, "a list of labels")
            sides.append("".join(str(part) for part in value))
        try:
            return ConvDims.parse(f"{sides[0]}_{sides[1]}->{sides[2]}")
        except ValueError as wrong:
            raise TypeFault(f"dimension_numbers of '{numbers.owner}': {wrong}") from None
    names = ("input_batch", "input_feature", "kernel_input_feature", "kernel_output_feature", "output_batch", "output_feature")
    ib, if_, ki, ko, ob, of = (numbers.integer(f"{name}_dimension", 0) for name in names)
    spatial = [numbers.ints(f"{side}_spatial_dimensions", ()) for side in ("input", "kernel", "output")]
    return ConvDims(ib, if_, spatial[0], ki, ko, spatial[1], ob, of, spatial[2])


@builds("einsum")
def _einsum(work: Work) -> None:
    """``ab,bc->ac`` as a dot, and a transpose where the dot has its dimensions in another order."""
    work.count(2)
    config = work.fields.text("einsum_config")
    inputs, arrow, out = config.replace(" ", "").partition("->")
    left, comma, right = inputs.partition(",")
    if not arrow or not comma or len(left) != work.array().rank or len(right) != work.array(1).rank or "." in config:
        raise TypeFault(f"einsum_config {config!r} of '{work.operation.name}' does not fit the operands")
    batch = [c for c in left if c in right and c in out]
    summed = [c for c in left if c in right and c not in out]
    given = batch + [c for c in left if c not in batch and c not in summed] + [c for c in right if c not in batch and c not in summed]
    if sorted(given) != sorted(out):
        raise TypeFault(f"einsum_config {config!r} of '{work.operation.name}' is not supported: it sums a dimension of one operand")
    attrs = {"lhs_contracting_dims": tuple(map(left.index, summed)), "rhs_contracting_dims": tuple(map(right.index, summed))}
    if batch:
        attrs |= {"lhs_batch_dims": tuple(map(left.index, batch)), "rhs_batch_dims": tuple(map(right.index, batch))}
    transpose_last(work, {**attrs, **precision(work.fields)}, given, out)


def transpose_last(work: Work, attrs: dict[str, Any], given: list[str], out: str) -> None:
    """A dot whose dimensions are ``given``, transposed to ``out``."""
    if "".join(given) == out:
        work.emit(hlo.dot, attrs)
        return
    node: Node = work.step(hlo.dot, work.operands, None, attrs)
    if isinstance(node.type, TensorType):
        node.type = node.type.with_dtype(work.result_array().dtype)
    work.emit(hlo.transpose, {"dimensions": tuple(map(given.index, out))}, [node])


@builds("unary_einsum")
def _unary_einsum(work: Work) -> None:
    """A transpose of the operand, after a sum over the dimensions that the result does not have."""
    work.count(1)
    config = work.fields.text("einsum_config").replace(" ", "")
    given, _, out = config.partition("->")
    if len(given) != work.array().rank or len(set(given)) != len(given) or not set(out) <= set(given):
        raise TypeFault(f"einsum_config {config!r} of '{work.operation.name}' is not supported")
    x, left = work.operands[0], [c for c in given if c in out]
    summed = tuple(i for i, c in enumerate(given) if c not in out)
    if summed:
        dtype = work.array().dtype
        zero = Literal.of(np.zeros((), dtype.numpy()), TensorType(dtype, ()))
        init = work.step(hlo.constant, (), zero.type, {"literal": zero})
        x = work.step(hlo.reduce, (x, init), None, {"dimensions": summed}, (work.program.adopt(combiner_body("add", dtype)),))
    work.emit(hlo.transpose, {"dimensions": tuple(map(left.index, out))}, [x])
