"""The conventions in the names of torch's operators: ``aten::relu_`` is ``aten::relu`` in place."""
from __future__ import annotations

from irscope.graph import Op
from irscope.ops.faults import TypeFault
from irscope.ops.registry import lookup


def is_in_place(op: Op) -> bool:
    """Whether it is the in-place form of an operator, which writes into its first operand."""
    return op.name.startswith("aten::") and op.name.endswith("_") and not op.name.endswith("__")


def functional(op: Op) -> Op:
    """The functional form: ``aten::relu`` for ``aten::relu_``; ``op`` itself where there is none."""
    return (lookup(op.name.rstrip("_"), op.dialect) or op) if is_in_place(op) else op


def is_library_call(op: Op) -> bool:
    """Whether the operator is in torch's library; the interpreter executes ``prim::`` itself."""
    return op.name.startswith(("aten::", "quantized::"))


def is_python(op: Op) -> bool:
    """Whether it calls a Python function, which torch writes as ``^Function`` or ``prim::PythonOp``."""
    return op.name.startswith("^") or op.name == "prim::PythonOp"


def qualified(target: str) -> tuple[str, str]:
    """The name and the overload of the operator that a target of FX names: ``torch.ops.aten.add.Tensor``. Raises TypeFault for others."""
    parts = target.removeprefix("torch.ops.").split(".")
    if len(parts) not in (2, 3):
        raise TypeFault(f"{target} is no operator of torch.ops")
    return f"{parts[0]}::{parts[1]}", "" if len(parts) < 3 or parts[2] == "default" else parts[2]
