"""XLA's GPU compiler merges adjacent reduced dimensions: ``f32[2,63,768]`` over 0, 1 becomes ``f32[126,768]`` over 0.

XLA's ``ReductionDimensionGrouper``, which runs after the rewriters of dots and normalisations.
"""
from __future__ import annotations

from irscope.fusion.xla.instructions import Computation, Instruction
from irscope.graph import Layout, TensorType
from irscope.ops import hlo
from irscope.ops.attributes import Reduce


def group_reductions(computation: Computation) -> None:
    """Merge adjacent reduced dimensions of every reduction of one array, through a bitcast of its operand."""
    for reduce in [i for i in computation.instructions if i.op is hlo.reduce and i.is_array and len(i.operands) == 2]:
        source = reduce.operands[0]
        if source.minor != tuple(range(len(source.dims) - 1, -1, -1)):
            continue
        reduced = set(Reduce.of(reduce).dimensions)
        sizes: list[int] = []
        kinds: list[bool] = []
        for d, size in enumerate(source.dims):
            if d in reduced and kinds and kinds[-1]:
                sizes[-1] *= size
            else:
                sizes.append(size)
                kinds.append(d in reduced)
        if len(sizes) == len(source.dims):
            continue
        assert isinstance(source.type, TensorType)
        type = TensorType(source.type.dtype, tuple(sizes), Layout(tuple(range(len(sizes) - 1, -1, -1))))
        bitcast = computation.add(Instruction(hlo.bitcast, type, (source,)))
        attrs = {**reduce.attrs, "dimensions": tuple(n for n, is_reduced in enumerate(kinds) if is_reduced)}
        grouped = computation.add(Instruction(hlo.reduce, reduce.type, (bitcast, reduce.operands[1]), reduce.node, attrs))
        computation.replace_uses(reduce, grouped)
        computation.remove(reduce)
