"""Spells parsed values as HLO text: attributes, types, literals, names."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irscope.formats.hlo.arrays import text_of
from irscope.formats.hlo.lexer import RESERVED_TYPES
from irscope.graph import Graph, Node, TensorType, TupleType, Type
from irscope.ops.attrs import Literal, Window

LEGAL = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*", re.ASCII)
KEYWORDS = frozenset((
    "true false inf nan HloModule ENTRY ROOT FileNames FunctionNames FileLocations StackFrames maximal replicated manual unreduced "
    "last_tile_dim_replicate shard_as shard_like unknown").split())
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def spell_type(type: Type, layouts: bool = True) -> str:
    """A type as text; without layouts, as in signatures."""
    if layouts:
        return str(type)
    if isinstance(type, TupleType):
        return "(" + ", ".join(spell_type(t, layouts=False) for t in type.elements) + ")"
    return f"{type.dtype.name}[{','.join(map(str, type.shape))}]" if isinstance(type, TensorType) else str(type)


def spell_literal(literal: Literal) -> str:
    """The value of a constant: as it was written, or from its array; ``{...}`` where it is elided."""
    text = literal.text
    if text is None:
        return text_of(literal.value(), literal.type)
    if "\n" in text or "/" in text:
        text = " ".join(COMMENT.sub(" ", text).split())
    return text


def spell(kind: str, value: Any) -> str:
    """The value of an attribute of a kind (see ``opcodes``)."""
    return SPELLINGS.get(kind, str)(value)


def spell_module_attribute(name: str, value: object) -> str:
    """The value of an attribute of the module."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if name == "entry_computation_layout" and isinstance(value, tuple):
        params, result = value
        return "{(" + ", ".join(map(str, params)) + f")->{result}" + "}"
    if name == "input_output_alias" and isinstance(value, tuple):
        return "{ " + ", ".join(f"{ints_text(out, ', ')}: ({n}, {ints_text(index, ', ')}, {kind})"
                                for out, (n, index, kind) in value) + " }"
    if name == "buffer_donor" and isinstance(value, tuple):
        return "{ " + ", ".join(f"({n}, {ints_text(index, ', ')})" for n, index in value) + " }"
    if isinstance(value, tuple):
        return "{" + ",".join("true" if v else "false" for v in value) + "}"
    return str(value)


def quoted(text: str) -> str:
    """A string in quotes, with C's escapes."""
    return '"' + "".join(_ESCAPES.get(c, c) for c in text) + '"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\000"}


def names_of(things: Sequence[Node] | Sequence[Graph], percent: bool = True) -> dict[int, str]:
    """A legal name for each node or graph, by ``id``, all distinct; legal names are kept. After ``%``, keywords are names too."""
    names: dict[int, str] = {}
    taken: set[str] = set() if percent else set(KEYWORDS)
    for thing in things:
        if _is_legal(thing.name) and thing.name not in taken:
            names[id(thing)] = thing.name
            taken.add(thing.name)
    for thing in things:
        if id(thing) not in names:
            names[id(thing)] = _free(thing.name, taken)
    return names


def _is_legal(name: str) -> bool:
    return LEGAL.fullmatch(name) is not None and name not in RESERVED_TYPES and (not name.startswith("__") or name.startswith("__xla_"))


def _free(wanted: str, taken: set[str]) -> str:
    name = re.sub(r"[^A-Za-z0-9_.\-]", "_", wanted)
    if not _is_legal(name):
        name = "v_" + name.lstrip("_")
    free, n = name, 0
    while free in taken:
        n += 1
        free = f"{name}.{n}"
    taken.add(free)
    return free


def ints_text(values: Iterable[int], between: str = ",") -> str:
    """Integers in braces: ``{0,1}``."""
    return "{" + between.join(map(str, values)) + "}"


def _typed_literal(literal: Literal) -> str:
    """A literal with an explicit type."""
    text, type = spell_literal(literal), literal.type
    if isinstance(type, TensorType) and type.layout is None and type.shape:  # else the braces would be read as a layout
        return f"{type}{ints_text(reversed(range(type.rank)))} {text}"
    return text if isinstance(type, TupleType) else f"{type} {text}"


def braced(texts: Iterable[str], between: str = ",") -> str:
    """Texts in braces: ``{a,b}``."""
    return "{" + between.join(texts) + "}"


SPELLINGS: dict[str, Callable[[Any], str]] = {
    "bool": lambda value: "true" if value else "false",
    "string": lambda value: quoted(str(value)),
    "float": lambda value: repr(float(value)),
    "ints": lambda values: ints_text(values),
    "intlists": lambda lists: braced(map(ints_text, lists)),
    "slices": lambda ranges: braced((f"[{a}:{b}:{c}]" if c != 1 else f"[{a}:{b}]" for a, b, c in ranges), ", "),
    "padding": lambda value: "x".join(f"{low}_{high}_{inner}" if inner else f"{low}_{high}" for low, high, inner in value),
    "window": lambda value: _window(value),
    "precisions": lambda words: braced(words),
    "aliasing": lambda pairs: braced((f"{ints_text(out, ', ')}: ({operand}, {ints_text(index, ', ')})"
                                      for out, (operand, index) in pairs), ", "),
    "types": lambda types: braced(map(str, types), ", "),
    "literal": _typed_literal,
}
"""How the values of a kind are written; those of the other kinds are their text."""


def _window(window: Window) -> str:
    if not window.size:
        return "{}"
    pads = [f"{a}_{b}" for a, b in zip(window.pad_low, window.pad_high, strict=True)]
    parts = {"size": window.size, "stride": window.stride, "pad": pads, "lhs_dilate": window.lhs_dilate, "rhs_dilate": window.rhs_dilate,
             "rhs_reversal": [int(r) for r in window.rhs_reversal]}
    plain = {"stride": 1, "pad": "0_0", "lhs_dilate": 1, "rhs_dilate": 1, "rhs_reversal": 0}
    return "{" + " ".join(f"{name}={'x'.join(map(str, values))}" for name, values in parts.items()
                          if any(value != plain.get(name) for value in values)) + "}"
