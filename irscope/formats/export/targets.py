"""What FX calls, as operators: torch's own, Python's on numbers, functions and methods of torch, and anything else as opaque.

    torch.ops.aten.add.Tensor       aten::add        a + b            aten::add
    torch.sym_max                   prim::max        x.relu()         aten::relu
    torch.ops.lab.two.default       lab::two, opaque
"""
from __future__ import annotations

import re

from irscope.formats.torchscript import operators
from irscope.graph import Op, unknown_op
from irscope.ops import lookup

PYTHON = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floordiv", "mod": "remainder", "pow": "pow", "neg": "neg",
    "eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "and_": "__and__", "or_": "__or__", "xor": "__xor__",
    "not_": "__not__", "lshift": "__lshift__", "rshift": "__rshift__", "getitem": "__getitem__", "abs": "abs", "invert": "bitwise_not",
    "matmul": "matmul", "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "div_", "ifloordiv": "floor_divide_",
    "imod": "remainder_", "ipow": "pow_", "iand": "__iand__", "ior": "__ior__", "ixor": "__ixor__", "ilshift": "__ilshift__",
    "irshift": "__irshift__", "is_": "__is__", "is_not": "__isnot__", "contains": "__contains__", "setitem": "_set_item",
}
"""Python's operators (the module ``operator``), and torch's of the same meaning."""
SYMBOLIC = {
    "torch.sym_max": "prim::max", "torch.sym_min": "prim::min", "torch.sym_float": "aten::Float", "torch.sym_int": "aten::Int",
    "torch.sym_not": "aten::__not__", "torch.sym_sqrt": "aten::sqrt", "torch._sym_sqrt": "aten::sqrt", "math.trunc": "aten::Int",
    "math.ceil": "aten::ceil", "math.floor": "aten::floor", "math.sqrt": "aten::sqrt", "math.log2": "aten::log2", "math.exp": "aten::exp",
    "math.log": "aten::log", "math.cos": "aten::cos", "math.sin": "aten::sin", "math.tanh": "aten::tanh", "builtins.round": "aten::round",
    "round": "aten::round", "builtins.max": "prim::max", "builtins.min": "prim::min", "max": "prim::max", "min": "prim::min",
    "builtins.abs": "prim::abs", "abs": "prim::abs", "builtins.len": "aten::len", "len": "aten::len", "builtins.int": "aten::Int",
    "builtins.float": "aten::Float", "builtins.bool": "aten::Bool", "int": "aten::Int", "float": "aten::Float", "bool": "aten::Bool",
}
"""Functions of Python numbers."""
MODULES = ("torch.nn.functional.", "torch._C._nn.", "torch._C._linalg.", "torch._C._fft.", "torch._C._special.", "torch.Tensor.",
           "torch.functional.", "torch.linalg.", "torch.fft.", "torch.special.", "torch.")
"""Where torch keeps functions that are operators under their own names."""
PREFIXES = {"torch._C._linalg.": "", "torch.linalg.": "linalg_", "torch.fft.": "fft_", "torch.special.": "special_"}
METHOD = "method "
"""What the target of a method call begins with: ``method view``."""
SUBMODULE = "module "
"""What the target of a call of a submodule begins with: ``module encoder.layer``."""
OVERLOAD = re.compile(r"torch\.ops\.(\w+)\.(\w+)(?:\.(\w+))?$")
HIGHER_ORDER = "torch.ops.higher_order."
SPELLED = re.compile(r"[\w.<>]+$")
"""How a target is spelled: names and dots; ``<lambda>`` is a function without a name."""
GET_ITEM = "_operator.getitem"


class Targets:
    """The operators of one reading: an unknown one is the same object for all of its calls."""

    def __init__(self) -> None:
        self._ops: dict[str, Op] = {}

    def op(self, target: str) -> Op:
        """The operator that a target names."""
        found = self._ops.get(target)
        if found is None:
            operators.load()
            name = operator_name(target)
            found = self._named(name) if name != target else self._ops.setdefault(target, unknown_op(name, "torchscript"))
            self._ops[target] = found
        return found

    def _named(self, name: str) -> Op:
        found = self._ops.get(name) or lookup(name, "torchscript")
        if found is None:
            plain = lookup(name.removesuffix("_"), "torchscript")  # an operator in place works as the one that is not
            found = unknown_op(name, "torchscript", plain.work if plain is not None else "unknown")
        self._ops[name] = found
        return found


def canonical(target: str) -> str:
    """One spelling for the modules that FX writes in several ways."""
    if target.startswith("operator."):
        return "_" + target
    if target.startswith("_operator_"):
        return target.replace("_", ".", 2).replace(".", "_", 1)
    return target


def overload(target: str) -> str:
    """The overload that a target names, empty for the default one."""
    found = OVERLOAD.match(target)
    return "" if found is None or found[3] in (None, "default") else found[3]


def operator_name(target: str) -> str:
    """The name of the operator: ``aten::add`` for ``torch.ops.aten.add.Tensor``; of what is no operator, the target itself."""
    found = OVERLOAD.match(target)
    if found is not None:
        return f"{found[1]}::{found[2]}"
    if target.startswith("_operator."):
        name = PYTHON.get(target.removeprefix("_operator."))
        return f"aten::{name}" if name else target
    if target in SYMBOLIC:
        return SYMBOLIC[target]
    if target.startswith(METHOD):
        return _known(target.removeprefix(METHOD)) or target
    for module in MODULES:
        name = target.removeprefix(module)
        if name != target and name.isidentifier():
            return _known(PREFIXES.get(module, "") + name) or target
    return target


def _known(name: str) -> str:
    """The operator of this name, if there is one in place or not."""
    operators.load()
    plain = name.removesuffix("_") if not name.endswith("__") else name
    return f"aten::{name}" if lookup(f"aten::{name}", "torchscript") or lookup(f"aten::{plain}", "torchscript") else ""


def is_higher_order(target: str) -> bool:
    """Whether the target takes graphs."""
    return target.startswith(HIGHER_ORDER) and not target.endswith(".flat_apply")
