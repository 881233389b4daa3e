"""What the names of torch's operators say: ``aten::relu_`` is ``aten::relu`` in place."""
from __future__ import annotations

from irscope.graph import Op
from irscope.ops.registry import lookup


def is_in_place(op: Op) -> bool:
    """Whether it is the form of an operator that writes into its first operand."""
    return op.name.startswith("aten::") and op.name.endswith("_") and not op.name.endswith("__")


def functional(op: Op) -> Op:
    """The operator that gives a new value: ``aten::relu`` for ``aten::relu_``; ``op`` itself where there is none."""
    return (lookup(op.name.rstrip("_"), op.dialect) or op) if is_in_place(op) else op


def is_library_call(op: Op) -> bool:
    """Whether Python calls torch's library for it; what the interpreter does itself is ``prim::``."""
    return op.name.startswith(("aten::", "quantized::"))


def is_python(op: Op) -> bool:
    """Whether it calls a function of Python, which torch writes as ``^Function`` or as a ``prim::PythonOp``."""
    return op.name.startswith("^") or op.name == "prim::PythonOp"
