"""Evaluates TorchScript's operators on plain Python values, and arithmetic on 0-dimensional tensors that are known numbers."""
from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from irscope.expand.torchscript.plain_sizes import require_int, require_plain
from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.torch import SCALAR_TYPES, promote_types
from irscope.graph import dtype_of
from irscope.graph.dtypes import F32, S64
from irscope.lazy import np
from irscope.ops.faults import TypeFault

UNKNOWN: Any = object()
"""No operator on plain values has this name or takes these values."""


def compute(name: str, values: Sequence[object]) -> object:
    """The result of an operator none of whose operands is a tensor, or UNKNOWN when it is an operator that makes tensors.

    Raises TypeFault where Python refuses the values.
    """
    function = VALUES.get(name)
    if function is None:
        return UNKNOWN
    require_plain(name, values)
    return require_int(_called(function, values))


def _called(function: Callable[..., Any], values: Sequence[object]) -> Any:
    """What a function of Python's returns for values of the program, UNKNOWN where it takes no such values. Raises TypeFault where Python
    refuses these: an index out of range, a missing key, a division by zero."""
    try:
        return function(*values)
    except (TypeError, AttributeError):  # the program passes values of other types
        return UNKNOWN
    except TypeFault:
        raise
    except KeyError as fault:
        raise TypeFault(f"the dict has no key {fault}") from None
    except (ValueError, IndexError, ArithmeticError) as fault:
        raise TypeFault(str(fault)) from None


def fold_known(name: str, values: Sequence[Any]) -> Any:
    """The result where every operand is a known number and the operator is arithmetic; None otherwise.

    The result of a tensor operand is a tensor (traces pass sizes as 0-dimensional Long tensors); reading one returns a Python number.
    """
    if not values or not isinstance(values[0], Tensor) or values[0].known is None:
        if not (len(values) > 1 and isinstance(values[1], Tensor) and values[1].known is not None and isinstance(values[0], int | float)):
            return None
    if any(isinstance(v, Tensor) and v.known is None for v in values):
        return None
    numbers = [v.known.item() if isinstance(v, Tensor) and v.known is not None else v for v in values]
    reading = READ.get(name)
    if reading is not None:
        read = _called(reading, numbers[:1])
        return None if read is UNKNOWN else read
    if name == "aten::to" and len(values) > 1:
        return _converted(values)
    if name == "aten::clone" and isinstance(values[0], Tensor):
        return _known(np.array(values[0].known))
    if name in SAME:
        return values[0]
    arithmetic = ARITHMETIC.get(name)
    if name in LOGICAL and all(isinstance(n, bool) for n in numbers):
        return None  # of bools these are logic, and Python's numbers are not
    if arithmetic is None or not all(isinstance(n, bool | int | float | str) or n is None for n in numbers):
        return None
    try:
        require_plain(name, numbers)
        result = require_int(_called(arithmetic, numbers))
    except TypeFault:
        return None  # tensors have a value where Python's numbers have none
    if not isinstance(result, bool | int | float):
        return None
    return _known(_cast(result, _type_of(result, values)))


def _converted(values: Sequence[Any]) -> Any:
    """``aten::to`` of a known number in one of its forms; None for an unknown form."""
    at = 2 if isinstance(values[1], str) and len(values) > 2 else 1
    wanted, copy = values[at], len(values) > at + 2 and values[at + 2] is True
    if not isinstance(values[0], Tensor) or values[0].known is None:
        return None
    if isinstance(wanted, bool) or wanted is None:
        return values[0]
    if isinstance(wanted, Tensor) and wanted.known is not None:
        dtype = wanted.known.dtype
    elif isinstance(wanted, int) and wanted in SCALAR_TYPES:
        dtype = SCALAR_TYPES[wanted].numpy()
    else:
        return None
    if dtype == values[0].known.dtype and not copy:
        return values[0]
    return _known(_cast(values[0].known, dtype))


def _cast(value: Any, dtype: Any) -> Any:
    """A number as an array of an element type. One out of its range becomes what numpy makes of it, as in torch, without a warning."""
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype)


def _known(array: Any) -> Tensor:
    return Tensor(known=array)


def _type_of(result: object, values: Sequence[object]) -> Any:
    """The element type of a result: that of the tensors of its kind; without one int64, or float32 as of a quotient of integers."""
    if isinstance(result, bool):
        return np.dtype(bool)
    whole = isinstance(result, int)
    tensors = [dtype_of(v.known.dtype) for v in values if isinstance(v, Tensor) and v.known is not None and not v.number]
    found = [dtype for dtype in tensors if (dtype.is_integer if whole else dtype.is_float)]
    return (reduce(promote_types, found) if found else S64 if whole else F32).numpy()


def _div(a: Any, b: Any, mode: str | None = None) -> object:
    if mode is None:
        return a / b
    if not isinstance(a, float) and not isinstance(b, float):
        return a // b if mode == "floor" else _to_zero(a, b)
    return float(math.floor(a / b)) if mode == "floor" else float(int(a / b))


def _to_zero(a: Any, b: Any) -> object:
    """The quotient rounded towards zero; that of ints exactly, where a float would have 53 bits."""
    if isinstance(a, float) or isinstance(b, float):
        return int(a / b)
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _pow(a: Any, b: Any) -> object:
    """A power; NaN where Python gives real numbers a complex one."""
    made = a ** b
    return math.nan if isinstance(made, complex) and not isinstance(a, complex) and not isinstance(b, complex) else made


def _scaled_add(a: Any, b: Any, alpha: Any = 1) -> object:
    return a + b * alpha if alpha != 1 else a + b


def _scaled_sub(a: Any, b: Any, alpha: Any = 1) -> object:
    return a - b * alpha


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "aten::add": _scaled_add, "aten::sub": _scaled_sub, "aten::rsub": lambda a, b, alpha=1: b - a * alpha, "aten::mul": operator.mul,
    "aten::div": _div, "aten::floor_divide": operator.floordiv, "aten::remainder": operator.mod, "aten::pow": _pow,
    "aten::neg": operator.neg,
    "aten::eq": operator.eq, "aten::ne": operator.ne, "aten::lt": operator.lt, "aten::le": operator.le, "aten::gt": operator.gt,
    "aten::ge": operator.ge, "aten::ceil": lambda a: float(math.ceil(a)) if isinstance(a, float) else a,
    "aten::floor": lambda a: float(math.floor(a)) if isinstance(a, float) else a, "aten::abs": abs, "aten::max": max, "aten::min": min,
    "aten::maximum": max, "aten::minimum": min, "aten::logical_and": lambda a, b: bool(a) and bool(b),
    "aten::logical_or": lambda a, b: bool(a) or bool(b), "aten::logical_not": operator.not_, "aten::clamp_min": max,
}
"""Arithmetic on sizes in 0-dimensional tensors."""

LOGICAL = frozenset(("aten::add", "aten::sub", "aten::rsub", "aten::mul", "aten::abs", "aten::neg"))
"""Those that have another result for bools than for numbers, or none."""

READ: dict[str, Callable[[Any], Any]] = {
    "aten::Int": int, "aten::Float": float, "aten::Bool": bool, "aten::ScalarImplicit": lambda v: v, "aten::IntImplicit": int,
    "aten::FloatImplicit": float, "aten::item": lambda v: v, "aten::Number": lambda v: v, "aten::_local_scalar_dense": lambda v: v,
    "aten::is_nonzero": bool,
}
SAME = frozenset(("aten::detach", "aten::contiguous", "aten::to", "aten::cpu", "aten::alias", "aten::lift_fresh"))


def _changing(method: Callable[..., object]) -> Callable[..., Any]:
    """A function that changes a container by ``method`` and returns the container."""
    def change(container: Any, *values: object) -> Any:
        method(container, *values)
        return container
    return change


def _pop_item(values: dict[object, object]) -> object:
    """torch removes the first entry."""
    if not values:
        raise TypeFault("the dict is empty")
    key = next(iter(values))
    return key, values.pop(key)


def _sort(values: list[object], reverse: bool = False) -> None:
    values.sort(reverse=reverse)


def _format(template: str, *values: object) -> str:
    """Each ``{}`` is a value, as in torch; everything else in braces is text. Not str.format, whose fields may access attributes."""
    first, *rest = template.split("{}")
    if len(rest) > len(values):
        raise TypeFault(f"too few values for the {len(rest)} places in {template!r}")
    return first + "".join(f"{value}{part}" for value, part in zip(values, rest, strict=False))


def _is(a: object, b: object) -> bool:
    return a is b or (a is None and b is None)


def _copy_list(values: object) -> object:
    return list(values) if isinstance(values, list) else dict(values) if isinstance(values, dict) else values


def _named(owner: object, names: str) -> dict[str, Callable[..., Any]]:
    """Operators that are functions of Python under the same name."""
    return {f"aten::{name}": getattr(owner, name) for name in names.split()}


VALUES: dict[str, Callable[..., object]] = {
    **_named(operator, "mul neg floordiv eq ne lt le gt ge __and__ __or__ __xor__ __not__ __lshift__ __rshift__ __getitem__ "
                       "__contains__"),
    **_named(math, "floor ceil sqrt exp log sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh log2 log10 log1p expm1 erf "
                   "erfc lgamma gamma fabs fmod gcd ldexp isnan isinf isfinite degrees radians "
                   "copysign factorial"),
    **_named(str, "startswith endswith lower upper strip split replace find rfind isdigit isalpha isalnum isupper islower isspace title "
                  "capitalize lstrip rstrip splitlines rjust ljust center zfill rsplit partition"),
    **_named(builtins, "str ord chr hex bin oct len abs max min sum any all sorted dict"),
    "aten::add": _scaled_add, "aten::sub": _scaled_sub, "aten::div": _div, "aten::floor_divide": operator.floordiv,
    "aten::remainder": operator.mod, "aten::__is__": _is, "aten::__isnot__": lambda a, b: not _is(a, b),
    "aten::__round_to_zero_floordiv": _to_zero, "aten::pow": _pow, "aten::round": lambda v: float(round(v)),
    "aten::divmod": lambda a, b: list(divmod(a, b)), "aten::mathremainder": math.remainder, "aten::modf": lambda v: list(math.modf(v)),
    "aten::frexp": lambda v: list(math.frexp(v)), "aten::real": lambda v: v.real, "aten::imag": lambda v: v.imag,
    "prim::abs": abs, "prim::min": min, "prim::max": max, "prim::type": str, "prim::index": lambda d: 0,
    "aten::Int": int, "aten::Float": float, "aten::Bool": bool, "aten::Complex": complex, "aten::ScalarType": int, "aten::Size": list,
    "aten::ScalarImplicit": lambda v: v, "aten::is_scripting": lambda: True, "aten::device": lambda name, *_: name,
    "aten::format": _format, "aten::percentFormat": lambda f, *v: f % v, "aten::join": lambda s, v: s.join(v),
    "aten::__range_length": lambda low, high, step: len(range(low, high, step)),
    "aten::__derive_index": lambda index, start, step: start + index * step,
    "aten::slice": lambda values, start=None, end=None, step=1: values[start:end:step], "aten::list": lambda v: list(v),
    "aten::_set_item": _changing(operator.setitem), "aten::append": _changing(list.append), "aten::extend": _changing(list.extend),
    "aten::add_": _changing(list.extend), "aten::insert": _changing(list.insert),
    "aten::pop": lambda container, *at: container.pop(*at), "aten::clear": lambda v: v.clear(), "aten::reverse": lambda v: v.reverse(),
    "aten::copy": _copy_list, "aten::sort": _sort, "aten::remove": lambda v, x: v.remove(x), "aten::index": lambda v, x: v.index(x),
    "aten::count": lambda v, x: v.count(x), "aten::keys": lambda d: list(d.keys()), "aten::values": lambda d: list(d.values()),
    "aten::items": lambda d: [tuple(kv) for kv in d.items()], "aten::get": lambda d, k, *default: d.get(k, *default),
    "aten::Delete": operator.delitem, "aten::setdefault": dict.setdefault, "aten::update": dict.update, "aten::popitem": _pop_item,
}
"""Operators whose operands are plain values; those of lists accept any items."""

CONTAINERS = frozenset((
    "aten::len", "aten::__getitem__", "aten::append", "aten::extend", "aten::insert", "aten::pop", "aten::clear", "aten::reverse",
    "aten::copy", "aten::list", "aten::slice", "aten::keys", "aten::values", "aten::items", "aten::get", "aten::_set_item", "aten::add",
    "aten::__contains__", "aten::mul", "aten::add_", "aten::Delete", "aten::setdefault", "aten::update", "aten::popitem",
))
"""Those that take lists and dicts of tensors as well."""
