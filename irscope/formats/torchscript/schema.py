"""Parses operator schemas as torch writes them, and resolves overloads."""
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from irscope.formats.torchscript.abstract import ModuleRef, Scalar, Tensor
from irscope.formats.torchscript.types import split_commas
from irscope.ops.checked import Items
from irscope.ops.faults import TypeFault

ARGUMENT = re.compile(
    r"(?P<type>[\w.]+)(?P<list>\[\d*\])?(?P<optional>\?)?(?P<list2>\[\d*\])?(?P<optional2>\?)? (?P<name>\w+)(?:=(?P<default>.*))?$",
)
ALIAS = re.compile(r"\([a-z]!?(?: -> \*)?\)")
FITS = {"int": ("int",), "SymInt": ("int",), "float": ("float", "int"), "bool": ("bool",), "Scalar": ("int", "float", "bool", "complex")}
"""Which kinds of numbers that depend on data an argument takes."""
ANYTHING = frozenset(("Device", "Layout", "MemoryFormat", "Generator", "Stream", "Storage", "Dimname", "t", "Any", "QScheme"))
NO_CONTAINERS = ANYTHING - {"t", "Any"}
"""Types of enumerations and names, which texts write as numbers or words."""


@dataclass(frozen=True, slots=True)
class SchemaArgument:
    """One argument: its type (``int``), whether a list (``int[2]``: one int stands for two), whether it may be None, and its default."""

    name: str
    type: str
    is_list: bool
    size: int
    optional: bool
    default: Any
    has_default: bool
    optional_items: bool = False


@dataclass(frozen=True, slots=True)
class Schema:
    """``add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)``."""

    name: str
    overload: str
    arguments: tuple[SchemaArgument, ...]
    text: str


@dataclass(slots=True, eq=False)
class Overload:
    """A schema and its implementation.

    ``style``: ``pure`` takes and returns nodes; ``view`` returns a View, ``alias`` a Decision by the layout of its first argument;
    ``raw`` takes unconverted values (handles, lists) and the running program.
    """

    schema: Schema
    function: Callable[..., Any]
    style: str = "pure"


@dataclass(slots=True)
class Overloads:
    """All overloads of one name, in the order in which they are tried."""

    name: str
    choices: list[Overload] = field(default_factory=list)

    def match(self, values: Sequence[object], overload: str | None = None) -> tuple[Overload, list[Any]] | None:
        """The first overload that takes the values, and the arguments with defaults filled in; None when none does.

        The one that the text names is tried first. A text without types prints bools as ints: they match bools only where nothing else
        fits.
        """
        for choice in self.choices if overload is not None else ():
            if choice.schema.overload == overload and (arguments := bind(choice.schema, values)) is not None:
                return choice, arguments
        for loose in (False, True):
            for choice in self.choices:
                arguments = bind(choice.schema, values, loose)
                if arguments is not None:
                    return choice, arguments
        return None


@lru_cache(maxsize=4096)
def parse_schema(text: str) -> Schema:
    """The schema of a text. Raises ValueError for an invalid one, which is a bug of irscope."""
    head, _, rest = text.partition("(")
    inside = ALIAS.sub("", rest[:rest.rindex(")")])
    name, _, overload = head.partition(".")
    arguments = []
    for part in split_commas(inside):
        part = part.strip()
        if part == "*":
            continue
        found = ARGUMENT.match(part)
        if found is None:
            raise ValueError(f"{part!r} in {text!r} is not an argument")
        brackets = found["list"] or found["list2"]
        optional_items = bool(found["optional"]) and bool(found["list2"])
        size = int(brackets[1:-1] or 0) if brackets else 0
        written = found["default"]
        optional = bool(found["optional2"]) or (bool(found["optional"]) and not found["list2"])
        default = _default(written)
        if size and default is not None and not isinstance(default, list):
            default = [default] * size
        arguments.append(SchemaArgument(found["name"], found["type"], brackets is not None, size, optional, default,
                                  written is not None, optional_items))
    return Schema(name, overload, tuple(arguments), text)


def bind(schema: Schema, values: Sequence[object], loose: bool = True) -> list[object] | None:
    """The arguments of a call: values in order, defaults for the rest; None when they do not fit."""
    if len(values) > len(schema.arguments):
        return None
    bound: list[object] = []
    for i, argument in enumerate(schema.arguments):
        if i < len(values):
            if not loose and (argument.type, type(values[i])) in (("bool", int), ("int", bool)):
                return None
            value = _accept(argument, values[i])
            if value is _REFUSED:
                return None
            bound.append(value)
        elif argument.has_default:
            bound.append(Items(argument.default) if isinstance(argument.default, list) else argument.default)
        elif argument.optional:
            bound.append(None)
        else:
            return None
    return bound


def in_order(choices: Sequence[Overload], overload: str | None, values: Sequence[object], keywords: Sequence[str]) -> list[object]:
    """The arguments of a call in the order of the schema, the last of them passed by these keywords; defaults stand between them.

    Raises TypeFault where no schema has the keywords.
    """
    count = len(values) - len(keywords)
    if count < 0:
        raise TypeFault(f"it passes {len(keywords)} operands by keyword, but has {len(values)}")
    named = dict(zip(keywords, values[count:], strict=True))
    for choice in sorted(choices, key=lambda choice: choice.schema.overload != overload):
        arguments = choice.schema.arguments
        if named.keys() <= {argument.name for argument in arguments[count:]}:
            last = max(i for i, argument in enumerate(arguments) if argument.name in named)
            return [*values[:count], *(named.get(argument.name, argument.default) for argument in arguments[count:last + 1])]
    known = "; ".join(choice.schema.text for choice in choices)
    raise TypeFault(f"no overload has the {'keyword' if len(named) == 1 else 'keywords'} {', '.join(named)}: known are {known}")


_REFUSED = object()


def _accept(argument: SchemaArgument, value: object) -> object:
    if value is None:
        return None if argument.optional or argument.type in ANYTHING else _REFUSED
    if argument.is_list:
        if isinstance(value, list | tuple):
            items = [None if v is None and argument.optional_items else _one(argument.type, v) for v in value]
            # One number stands for several; pools take no stride for that of the kernel.
            fits = argument.size < 2 or len(items) in (0, 1, argument.size)
            return Items(items) if fits and not any(v is _REFUSED for v in items) else _REFUSED
        if argument.size:
            one = _one(argument.type, value)
            return _REFUSED if one is _REFUSED else Items([one] * argument.size)
        return _REFUSED
    return _one(argument.type, value)


def _one(type: str, value: object) -> object:
    if type == "Tensor":
        return value if isinstance(value, Tensor) else _REFUSED
    if type in ANYTHING:
        return _REFUSED if type in NO_CONTAINERS and isinstance(value, list | tuple | dict | Tensor) else value
    if isinstance(value, Tensor):
        known = value.known
        if known is not None and type in ("int", "SymInt", "float", "Scalar", "bool", "number"):
            return _one(type, known.item())
        return _REFUSED
    if isinstance(value, Scalar):
        return value if value.kind in FITS.get(type, ()) else _REFUSED
    match type:
        case "int" | "SymInt" | "ScalarType":
            return int(value) if isinstance(value, int) else _REFUSED
        case "float":
            return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else _REFUSED
        case "bool":
            return bool(value) if isinstance(value, bool | int) else _REFUSED
        case "Scalar" | "number":
            return value if isinstance(value, int | float | complex) else _REFUSED
        case "str":
            return value if isinstance(value, str) else _REFUSED
    return value if isinstance(value, ModuleRef) else _REFUSED


def _default(text: str | None) -> object:
    if text is None or text == "None":
        return None
    words = {"True": True, "False": False, "[]": [], "contiguous_format": 0, "Mean": 1, "inf": float("inf"), "-inf": float("-inf")}
    if text in words:
        return words[text]
    if text.startswith("["):
        return [_default(part.strip()) for part in text[1:-1].split(",")]
    if text[0] in "\"'":
        return text[1:-1]
    try:
        return int(text)
    except ValueError:
        return float(text)
