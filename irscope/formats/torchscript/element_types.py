"""The element types for which aten has no kernel, by operator: of the first operand, whatever the others are."""
from __future__ import annotations

from irscope.graph import DType
from irscope.graph.dtypes import PRED
from irscope.ops.faults import TypeFault

NO_BOOLS = frozenset(f"aten::{name}" for name in (
    "sub", "subtract", "rsub", "relu", "abs", "round", "floor", "ceil", "trunc", "argmax", "argmin", "topk", "kthvalue", "trace",
    "positive"))
NO_INTEGERS = frozenset(f"aten::{name}" for name in ("frac", "lerp", "var_mean", "std_mean"))
ONLY_INTEGERS = frozenset(f"aten::{name}" for name in ("gcd", "lcm"))
NO_COMPLEX = frozenset(f"aten::{name}" for name in (
    "sign", "round", "floor", "ceil", "trunc", "frac", "atan2", "hypot", "xlogy", "nansum", "logit", "isneginf", "isposinf"))


def check_element_type(name: str, dtype: DType) -> None:
    """Raise TypeFault where aten refuses a tensor of this type as the first operand."""
    refused = (
        (dtype is PRED and name in NO_BOOLS) or (dtype.is_complex and name in NO_COMPLEX)
        or ((dtype.is_integer or dtype is PRED) and name in NO_INTEGERS)
        or ((dtype.is_float or dtype.is_complex) and name in ONLY_INTEGERS)
    )
    if refused:
        raise TypeFault(f"aten computes no {name.removeprefix('aten::')} of {dtype.name}")
