"""The form of an array: its sizes, and the order of its dimensions in memory. A bitcast gives the same bytes another form."""
from __future__ import annotations

from dataclasses import dataclass

from irscope.fusion.xla.instructions import Instruction
from irscope.graph import Layout, TensorType
from irscope.ops import hlo


@dataclass(frozen=True, slots=True)
class ArrayForm:
    """Sizes, and the dimensions in memory order, the minor one first."""

    dims: tuple[int, ...]
    minor: tuple[int, ...]

    @property
    def in_memory(self) -> tuple[int, ...]:
        """Sizes, the minor one first."""
        return tuple(self.dims[d] for d in self.minor)


def form_of(instruction: Instruction) -> ArrayForm:
    """The form of an array."""
    return ArrayForm(instruction.dims, instruction.minor)


def reform(instruction: Instruction, form: ArrayForm) -> Instruction:
    """Set the form of an array; its element type stays."""
    assert isinstance(instruction.type, TensorType)
    instruction.set_type(TensorType(instruction.type.dtype, form.dims, Layout(form.minor)))
    return instruction


def bitcast_of(source: Instruction, form: ArrayForm) -> Instruction:
    """A bitcast of ``source`` to another form."""
    return reform(Instruction(hlo.bitcast, source.type, (source,)), form)
