"""The user's arrays for what a text leaves open."""
from __future__ import annotations

from collections.abc import Mapping

from irscope.graph import DType, TensorType, Type, dtype_of
from irscope.lazy import Array, np
from irscope.source import UserError


def given_constant(arrays: Mapping[str, Array], name: str, declared: Type) -> Array:
    """The array of a constant, of any element type that a tensor can have; bits of a type that numpy lacks get the declared type.

    Raises UserError where no tensor has its element type, or where the text declares another shape.
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
    """The element type of an array. Raises UserError where no tensor has it."""
    try:
        return dtype_of(array.dtype)
    except KeyError:
        raise UserError(f"{what} has the type {array.dtype}, which no tensor has", "convert it to float32 or int64") from None
