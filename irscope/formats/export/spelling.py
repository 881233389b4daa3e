"""Calls, constants and types as FX writes them."""
from __future__ import annotations

import json
import math
from collections.abc import Mapping
from keyword import iskeyword

from irscope.formats.export.expressions import parse
from irscope.formats.export.targets import METHOD, SUBMODULE
from irscope.formats.export.types import SHORT, SymbolType
from irscope.formats.export.values import NAMES
from irscope.formats.syntax import SyntaxFault
from irscope.formats.torchscript.attributes import Call, Constant, Subgraph
from irscope.formats.torchscript.types import TorchTensorType
from irscope.graph import Node, TensorType, Type
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement

SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@", "lshift": "<<",
         "rshift": ">>", "and_": "&", "or_": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
"""Functions of Python's module ``operator`` that FX writes as operators of two operands."""
UNARY = {"neg": "-", "pos": "+", "invert": "~"}


def annotation(type: Type) -> str:
    """``: "f32[8, s77]"``; nothing for a value that is neither a tensor nor a symbolic number."""
    if isinstance(type, SymbolType):
        return f': "Sym({type.expression})"' if type.expression else ""
    if isinstance(type, TorchTensorType) and type.text and "[" in type.text:
        return f': "{type.text}"'
    if isinstance(type, TensorType) and type.dtype.name in SHORT:
        return f': "{SHORT[type.dtype.name]}[{", ".join(map(str, type.shape))}]"'
    return ""


def call_text(node: Node, names: Mapping[Node, str]) -> str:
    """The right side of a statement."""
    if node.op is hlo.get_tuple_element:
        return f"{operand_text(node.operands[0], names)}[{GetTupleElement.of(node).index}]"
    if node.op.name == "fx::get_attr":
        return _attribute(Subgraph.of(node).name or Subgraph.of(node).callee)
    call = Call.of(node)
    operands = [operand_text(operand, names) for operand in node.operands]
    target = call.target or target_of(node)
    written = _operator_text(target, operands) if not call.keywords else ""
    if written:
        return written
    count = len(operands) - len(call.keywords)
    arguments = [*operands[:count], *(f"{word} = {text}" for word, text in zip(call.keywords, operands[count:], strict=True))]
    if target.startswith(METHOD) and arguments:
        return f"{arguments[0]}.{target.removeprefix(METHOD)}({', '.join(arguments[1:])})"
    if target.startswith(SUBMODULE):
        return f"{_attribute(target.removeprefix(SUBMODULE))}({', '.join(arguments)})"
    return f"{target.replace('<', '_').replace('>', '_')}({', '.join(arguments)})"


def _attribute(path: str) -> str:
    """``self.layers.up``, and ``getattr(self.layers, "0").up`` for a part that is no identifier."""
    text = "self"
    for part in path.split("."):
        text = f"{text}.{part}" if part.isidentifier() and not iskeyword(part) else f"getattr({text}, {json.dumps(part)})"
    return text


def target_of(node: Node) -> str:
    """The target of a node that no FX text wrote: the default overload of torch's operator."""
    namespace, colons, name = node.op.name.partition("::")
    if not colons:
        return namespace.replace("-", "_")
    return f"torch.ops.{namespace}.{name}" + ("" if namespace == "higher_order" else ".default")


def _operator_text(target: str, operands: list[str]) -> str:
    """Python's operators, and attributes of values; empty for a plain call."""
    name = target.removeprefix("_operator.")
    if target == "builtins.getattr" and len(operands) == 2:
        return f"{operands[0]}.{operands[1].strip(chr(39))}"
    if name == target:
        return ""
    if name in SIGNS and len(operands) == 2:
        return f"{operands[0]} {SIGNS[name]} {operands[1]}"
    if name in UNARY and len(operands) == 1:
        return f"{UNARY[name]}{operands[0]}"
    return f"{operands[0]}[{operands[1]}]" if name == "getitem" and len(operands) == 2 else ""


def operand_text(node: Node, names: Mapping[Node, str]) -> str:
    """An operand: the name of a value, or what a synthetic node stands for. Lists are few levels deep: the readers bound it."""
    if node in names:
        return names[node]
    if node.op.name == "prim::ListConstruct":
        return "[" + ", ".join(operand_text(part, names) for part in node.operands) + "]"
    if node.op.name == "prim::DictConstruct":
        parts = [operand_text(part, names) for part in node.operands]
        if parts and parts[0] == "'slice'" and len(parts) == 2:
            return f"slice({parts[1][1:-1]})"
        return "{" + ", ".join(f"{key}: {value}" for key, value in zip(parts[::2], parts[1::2], strict=True)) + "}"
    return constant_text(Constant.of(node).value, str(node.type))


def _is_expression(text: str) -> bool:
    """Whether Python parses a text, which it does of those that are read from a class."""
    try:
        parse(f"({text})", 0)
    except SyntaxFault:
        return False
    return True


def constant_text(value: object, type: str = "") -> str:
    """A constant; ``type`` says what the numbers and texts of torch's own constants mean."""
    if type in NAMES and isinstance(value, int):
        return f"torch.{NAMES[type][value]}" if value in NAMES[type] else str(value)
    if type == "Device" and isinstance(value, str):
        kind, colon, index = value.partition(":")
        return f"device(type='{kind}'{f', index={index}' if colon else ''})"
    if type == "object":
        return str(value) if _is_expression(str(value)) else repr(value)
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(constant_text, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if value != value else "inf" if value > 0 else "-inf"
    return repr(value)
