"""Arrays that the user gives for values that a text omits."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.graph import DType, TensorType, Type, dtype_of
from irscope.lazy import Array, np
from irscope.source import UserError


def given_constant(arrays: Mapping[str, Array], name: str, declared: Type) -> Array:
    """The array that the user gives for a constant. It may have any element type that a tensor can have.

    Where numpy lacks the declared element type (bf16 and others), unsigned integers and raw bytes of its width are read as its bits.
    Raises UserError where no tensor has the element type of the array, or where the text declares another shape.
    """
    array = np.asarray(arrays[name])
    if isinstance(declared, TensorType):
        wanted = declared.dtype.numpy()
        if wanted.isbuiltin != 1 and array.dtype.isbuiltin != 2 and array.dtype.kind in "uV" and array.dtype.itemsize == wanted.itemsize:
            array = np.ascontiguousarray(array).view(wanted).reshape(array.shape)
        if declared.is_static and array.shape != declared.dims():
            raise UserError(f"the array given for the constant {name} has the shape {list(array.shape)}, but the text declares {declared}")
    element_type(array, f"the array given for the constant {name}")
    return array


def element_type(array: Array, what: str) -> DType:
    """The element type of an array. Raises UserError where no tensor has it; ``what`` names the array in the message."""
    try:
        return dtype_of(array.dtype)
    except KeyError:
        raise UserError(f"{what} has the type {array.dtype}, which is not supported for tensors",
                        "convert it to float32 or int64") from None
