"""Symbolic sizes of a program's inputs: inputs that share a symbol agree on it, and sizes lie within the ranges that the program states."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from irscope.graph import Dim, DynamicDim, Module, TensorType
from irscope.ops.module_attributes import Interface
from irscope.source import UserError

LEAST_CHECKED = 2
"""torch states this or a higher least size for all sizes, and lets a run have less up to here (torch/_export/utils.py)."""


def check_sizes(module: Module, shapes: Mapping[str, Sequence[Dim]]) -> None:
    """Raise UserError where the shapes that inputs are given, by name, contradict the symbols of the program, or leave their ranges."""
    ranges = Interface.of(module).ranges
    known: dict[str, tuple[int, str]] = {}
    for param in module.main().params:
        shape = shapes.get(param.name)
        if shape is None or not isinstance(param.type, TensorType) or len(shape) != len(param.type.shape):
            continue
        for d, (stated, size) in enumerate(zip(param.type.shape, shape, strict=True)):
            if not isinstance(stated, DynamicDim) or not isinstance(size, int) or not stated.name:
                continue
            if stated.name in ranges:
                _check_range(stated.name, ranges[stated.name], size, f"dimension {d} of input {param.name}")
            before, where = known.setdefault(stated.name, (size, param.name))
            if before != size and stated.name.isidentifier():  # "?" and "*" are no symbols
                raise UserError(f"{stated.name} is {before} in input {where}, and {size} in dimension {d} of input {param.name}",
                                f"the program was made for inputs that agree on {stated.name}")


def _check_range(symbol: str, limits: tuple[str, str], size: int, where: str) -> None:
    low, high = limits
    if (_is_number(low) and int(low) > LEAST_CHECKED and size < int(low)) or (_is_number(high) and size > int(high)):
        most = f" to {high}" if _is_number(high) else " or more"
        raise UserError(f"{where} is {size}, outside of the range of {symbol}: {low}{most}",
                        "the program was made for sizes in this range; dynamic_shapes of torch.export.export states another")


def _is_number(text: str) -> bool:
    return text.isdecimal()
