"""Primitives as Relay text: any graph can be printed, and read back as the same graph.

    %2 = hlo.dot(%0, %1, lhs_contracting_dims=[1], rhs_contracting_dims=[0]) /* ty=Tensor[(2, 4), float32] */;
    %3 = hlo.reduce(%2, 0f, dimensions=[1], bodies=[@add]) /* ty=Tensor[(2), float32] */;

Dashes in names are underscores here. Called computations are functions of the module, named by ``bodies``. Constants that are not plain
scalars are ``hlo.constant(value=[...])``, or ``data=`` with the bytes in base64 where they are many or have no plain spelling.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from irscope.formats.faults import Refused
from irscope.formats.hlo.devices import ReplicaGroups
from irscope.formats.hlo.lexer import Cursor
from irscope.formats.hlo.opcodes import WORDS, opcode_named
from irscope.formats.hlo.types import TypeTable
from irscope.formats.hlo.values import read_value
from irscope.formats.relay.cursor import Raw
from irscope.graph import DType, Graph, Node, Op, TensorType, Type
from irscope.graph.walk import callees_first_of
from irscope.lazy import Array, np
from irscope.ops import lookup
from irscope.ops.attrs import NUMPY_RANK, ConvDims, Literal, Window
from irscope.ops.checked import LARGEST

DIALECTS = ("hlo", "library")
"""The dialects of primitives; the name of a primitive begins with that of its dialect."""
FEW = 32
"""A constant with no more elements than this is written in numbers."""
LEFT_OUT = frozenset(("number", "control_predecessors", "operand_layout_constraints", "literal"))
PLAIN_SCALARS = frozenset(("pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"))
WINDOW = ("size", "stride", "pad_low", "pad_high", "lhs_dilate", "rhs_dilate", "rhs_reversal")


def spelled(op: Op) -> str:
    """``hlo.reduce_window``."""
    return f"{op.dialect}.{op.name.replace('-', '_')}"


def primitive_named(word: str) -> Op | None:
    """The primitive of a name in the text, or None."""
    dialect, _, name = word.partition(".")
    return lookup(name, dialect) or lookup(name.replace("_", "-"), dialect)


def is_primitive(word: str) -> bool:
    """Whether a name is in the namespace of primitives."""
    return word.partition(".")[0] in DIALECTS


# ---------------------------------------------------------------------- writing


def written(node: Node) -> dict[str, Any]:
    """The attributes of a primitive in Relay's form."""
    if node.op.name == "constant":
        return _constant(node)
    return {key: _plain(value) for key, value in node.attrs.items() if key not in LEFT_OUT}


def _plain(value: object) -> object:
    if isinstance(value, Window):
        return {name: list(getattr(value, name)) for name in WINDOW}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def _constant(node: Node) -> dict[str, object]:
    literal = node.attrs["literal"]
    if literal.elided:
        return {"elided": True}
    array = np.ascontiguousarray(literal.value())
    assert isinstance(node.type, TensorType)
    if array.size <= FEW and node.type.dtype.name in PLAIN_SCALARS and (array.dtype.kind != "f" or bool(np.isfinite(array).all())):
        return {"value": array.tolist()}
    return {"data": base64.b64encode(array.tobytes()).decode()}


# ---------------------------------------------------------------------- reading


def read_attributes(op: Op, attrs: Mapping[str, object], type: Type) -> dict[str, object]:
    """The attributes of a text in the graph's form. Raises ValueError for one that cannot be read, and for one that is missing."""
    if not isinstance(attrs.get("bodies", ()), list | tuple):
        raise ValueError("bodies is a list of functions")
    if op.name == "constant":
        return {"literal": _literal(attrs, type)}
    grammar = opcode_named(op.name) if op.dialect == "hlo" else None
    kinds = grammar.attributes if grammar is not None else {}
    made: dict[str, Any] = {key: _parsed(key, kinds.get(key, ""), value) for key, value in attrs.items() if key != "bodies"}
    computations = 0
    for key in grammar.required if grammar is not None else ():
        if kinds[key] == "computation":
            computations += 1
        elif made.get(key) is None and key not in DEFAULTED:
            raise ValueError(f"it needs the attribute {key}")
    if op.name == "get-tuple-element" and made["index"] < 0:
        raise ValueError("the index of a field is not negative")
    if len(body_names(attrs)) < computations:
        raise ValueError(f"it needs {computations} function{'s' * (computations > 1)}: bodies=[@f]")
    return made


def check_operands(op: Op, operands: Sequence[Node]) -> None:
    """Raise ValueError for fewer or more operands than the primitive takes."""
    grammar = opcode_named(op.name) if op.dialect == "hlo" else None
    count, least = grammar.operands if grammar is not None else None, LEAST.get(op.name, 0)
    if count is not None and count != len(operands):
        raise ValueError(f"it takes {count} operand{'s' * (count != 1)}, but has {len(operands)}")
    if len(operands) < least:
        raise ValueError(f"it takes {least} operand{'s' * (least != 1)} or more, but has {len(operands)}")


def body_names(attrs: Mapping[str, Any]) -> list[str]:
    """The functions that ``bodies=[@f, @g]`` names."""
    return [str(name)[1:].strip('"') for name in attrs.get("bodies", ()) if isinstance(name, Raw)]


def recursive(graphs: Iterable[Graph]) -> list[Node]:
    """The primitives with a body that calls the primitive's own function again, directly or through others."""
    order = callees_first_of(graphs)
    places = {graph: place for place, graph in enumerate(order)}
    return [node for graph in order for node in graph.nodes
            if node.op.dialect in DIALECTS and any(places[body] >= places[graph] for body in node.bodies)]


def _parsed(key: str, kind: str, value: object) -> object:
    """The value of an attribute of this kind (see ``formats/hlo/opcodes.py``). Raises ValueError for one that does not have its form."""
    if value is None:
        return None
    words = WORDS.get(kind)
    if words is not None:
        fits, made = isinstance(value, str) and value in words | {""}, value
    elif kind in SPELLED and isinstance(value, str):
        return _spelled_value(key, kind, value)
    elif kind in FORMS:
        fits, made = FORMS[kind](value), _tuples(value)
    elif key == "window" or kind == "window":
        return _window(value)
    else:
        fits, made = kind not in SPELLED, _tuples(value)
    if not fits:
        raise ValueError(f"{key}={str(value)[:40]} is {MEANT.get(kind, 'not of the form that it has in HLO')}")
    return float(made) if kind == "float" and isinstance(made, int) else made


def _spelled_value(key: str, kind: str, text: str) -> object:
    """A value that is a string in Relay and has HLO's spelling in it."""
    if kind == "dim_labels" and "?" in text:
        return text  # dimensions without a role, which GPU custom-calls have
    if kind == "dim_labels":
        return ConvDims.parse(text)
    cursor = Cursor(text)
    try:
        made = read_value(kind, cursor, TypeTable())
        if cursor.kind != "end":
            cursor.refuse("expected the value to end")
    except Refused as fault:
        raise ValueError(f"{key}: {fault.message}") from None
    if isinstance(made, ReplicaGroups) and not made.fits:
        raise ValueError(f"{key} has another number of devices than its groups")
    return made


def _window(value: object) -> Window:
    if not isinstance(value, dict) or not all(isinstance(value.get(name), list | tuple) for name in WINDOW):
        raise ValueError(f"a window has the lists {', '.join(WINDOW)}")
    parts = {name: tuple(value[name]) for name in WINDOW}
    if len({len(part) for part in parts.values()}) > 1:
        raise ValueError("the lists of a window have equal lengths")
    if not all(_is_int(n) for name in WINDOW[:-1] for n in parts[name]):
        raise ValueError("the lists of a window contain integers of 64 bits")
    return Window(**parts | {"rhs_reversal": tuple(bool(n) for n in parts["rhs_reversal"])})


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(1 << 63) <= value < 1 << 63


def _are_ints(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_int, value))


def _are_lists(value: object, length: int = 0) -> bool:
    return isinstance(value, list | tuple) and all(_are_ints(v) and len(v) == (length or len(v)) for v in value)


def _are_aliases(value: object) -> bool:
    """``[[[output index], [operand, [operand index]]]]``."""
    return isinstance(value, list | tuple) and all(
        isinstance(pair, list | tuple) and len(pair) == 2 and _are_ints(pair[0]) and isinstance(pair[1], list | tuple)
        and len(pair[1]) == 2 and _is_int(pair[1][0]) and _are_ints(pair[1][1]) for pair in value)


SPELLED = frozenset(("groups", "result_accuracy", "dim_labels", "type", "domain"))
"""Kinds of attributes that Relay's text has as a string in HLO's spelling."""
FORMS: Mapping[str, Callable[[object], bool]] = {
    "int": _is_int, "int32": _is_int, "bool": lambda value: isinstance(value, bool), "string": lambda value: isinstance(value, str),
    "float": lambda value: isinstance(value, float) or _is_int(value), "ints": _are_ints, "intlists": _are_lists,
    "slices": lambda value: _are_lists(value, 3), "padding": lambda value: _are_lists(value, 3), "aliasing": _are_aliases,
    "precisions": lambda value: isinstance(value, list | tuple)
    and all(isinstance(v, str) and v.lower() in WORDS["precision"] for v in value),
}
"""Whether a value has the form of its kind."""
MEANT = {
    "int": "no integer of 64 bits", "int32": "no integer", "bool": "neither True nor False", "string": "no string", "float": "no number",
    "ints": "no list of integers", "intlists": "no list of lists of integers", "slices": "no list of [start, limit, stride]",
    "padding": "no list of [low, high, interior]",
}
DEFAULTED = frozenset("kind custom_call_target distribution algorithm delta source_target_pairs domain".split())
"""Attributes that HLO's text requires, but that have a default in ``ops/attributes.py``."""
LEAST = {
    "concatenate": 1, "dynamic-slice": 1, "dynamic-update-slice": 2, "dynamic-reshape": 1, "reduce": 2, "reduce-window": 2, "scatter": 3,
    "sort": 1, "map": 1, "scan": 1, "conditional": 1, "all-gather": 1, "all-reduce": 1, "reduce-scatter": 1, "all-to-all": 1,
    "ragged-all-to-all": 6, "collective-broadcast": 1, "collective-permute": 1, "all-gather-start": 1, "all-reduce-start": 1,
    "collective-permute-start": 1, "async-update": 1, "async-done": 1, "rng-bit-generator": 1, "rng": 2,
}
"""The fewest operands of the primitives that take any number of them."""


def _tuples(value: object) -> object:
    return tuple(_tuples(v) for v in value) if isinstance(value, list | tuple) else value


def _literal(attrs: Mapping[str, object], type: Type) -> Literal:
    if not isinstance(type, TensorType) or "elided" in attrs:
        return Literal(type, None, True)
    if not type.is_static:
        raise ValueError(f"a constant has a static shape, not that of {type}")
    array = _array(attrs, type.dtype, type.dims())
    return Literal(type, None, False, lambda literal: array)


def _array(attrs: Mapping[str, Any], dtype: DType, shape: tuple[int, ...]) -> Array:
    """The value of a constant. Raises ValueError for text that is no value of its type."""
    if len(shape) > NUMPY_RANK:
        raise ValueError(f"a constant has at most {NUMPY_RANK} dimensions")
    data = attrs.get("data")
    if data is not None:
        if not isinstance(data, str):
            raise ValueError("data is a string in base64")
        held = base64.b64decode(data, validate=True)
        if len(held) != prod(shape) * np.dtype(dtype.numpy()).itemsize:
            raise ValueError(f"its data has {len(held)} bytes, which are not those of {dtype}{list(shape)}")
        return np.frombuffer(held, dtype.numpy()).reshape(shape)
    if "value" not in attrs:
        raise ValueError("a constant needs value=, data= or elided=True")
    numbers: list[Any] = []
    stack: list[Any] = [attrs["value"]]
    while stack:
        top = stack.pop()
        if isinstance(top, list | tuple):
            stack.extend(reversed(top))
        else:
            numbers.append(top)
    if not all(isinstance(n, int | float) for n in numbers):
        raise ValueError("the value of a constant contains numbers, in lists")
    if len(numbers) != prod(shape):
        raise ValueError(f"its value has {len(numbers)} elements, which are not those of {dtype}{list(shape)}")
    for n in numbers:
        if dtype.is_integer and not (isinstance(n, int) and dtype.lowest <= n <= dtype.highest):
            raise ValueError(f"{n} does not fit {dtype}")
        if isinstance(n, int) and abs(n) > LARGEST:
            raise ValueError(f"an integer of its value does not fit {dtype}")
    with np.errstate(over="ignore"):  # a number beyond the type becomes an infinity, as in the program
        return np.asarray(numbers, dtype.numpy()).reshape(shape)
