"""Signatures of operators: the number and classes of operands, and the values of attributes.

    take(data, indices: int; batch_dims=0, axis=None, mode='clip')

An operand is a tensor, unless a class follows its name. An attribute's kind follows from its default, or from its name where the
default is None or missing. Only this file compares a call with its declaration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irscope.formats.relay.cursor import Raw
from irscope.formats.relay.types import NAMES, dtype_named, type_text
from irscope.graph import UNKNOWN, DType, NamedType, TensorType, TupleType, Type
from irscope.graph.dtypes import PRED
from irscope.ops.faults import TypeFault
from irscope.source import did_you_mean
from irscope.source.data_text import python_literal

COMPARE = "compare it with something, such as greater(%x, 0f)"
CLASSES: dict[str, tuple[str, Callable[[DType], bool], str]] = {
    "int": ("integers", lambda dtype: dtype.is_integer, 'insert cast(..., dtype="int32")'),
    "bool": ("bool", lambda dtype: dtype is PRED, COMPARE),
    "mask": ("bool or integers", lambda dtype: dtype.is_integer or dtype is PRED, COMPARE),
    "bits": ("integers or bool", lambda dtype: dtype.is_integer or dtype is PRED, 'insert cast(..., dtype="int32")'),
    "float": ("floats", lambda dtype: dtype.is_float, 'insert cast(..., dtype="float32")'),
}
"""Element types that an operand may have: how they are called in messages, the test, and what to do about others."""
SHAPES = ("tensor", "tuple", "filled", "any")
"""What else an operand may be: ``tuple`` is one of tensors, ``filled`` one that is not empty, ``any`` a value of any type."""
RANK = re.compile(r"(\d)(?:-(\d))?d(\+?)$")
"""``4d``, ``2-3d``, ``1d+``: how many dimensions."""

MANY = 1 << 30


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_int, value))


def _from(least: int) -> Callable[[Any], bool]:
    return lambda value: _is_int(value) and value >= least


def _list(item: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(item, value))


KINDS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "int": ("a whole number", _is_int),
    "size": ("a whole number from 1", _from(1)),
    "number": ("a number", _is_number),
    "bool": ("True or False", lambda value: isinstance(value, bool) or value in (0, 1)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "dtype": ("an element type", lambda value: isinstance(value, str)),
    "ints": ("a list of whole numbers", _list(_is_int)),
    "sizes": ("a list of whole numbers from 1", _list(_from(1))),
    "shape": ("a list of whole numbers from 0", _list(_from(0))),
    "places": ("a list of whole numbers", _list(lambda value: value is None or _is_int(value))),
    "axes": ("a whole number, or a list of them", lambda value: _is_int(value) or _list(_is_int)(value)),
    "numbers": ("a list of numbers", _list(_is_number)),
    "pairs": ("a list of pairs of whole numbers", _list(_is_pair)),
    "any": ("a value", lambda value: True),
}
"""What an attribute may be: how it is called in messages, and the test."""
LISTS = ("ints", "sizes", "shape", "places", "numbers")
"""Kinds for which one number is short for a list."""
NUMERIC = ("int", "size", "number", "axes", "pairs", *LISTS)

NAMED = {
    "int": "depth ignore_index index_rank k lhs_end max_detections max_detections_per_class multiplier num_classes rhs_end shift units",
    "size": "activation_bits bits block_size channels data_bits deformable_groups groups stride stride1 stride2 tile_K tile_N tile_size "
    "weight_bits",
    "number": "a_max a_min eps iou_threshold scale_d scale_h scale_w score_threshold spatial_scale start step stop",
    "string": "dst_layout equation src_layout",
    "dtype": "dtype out_dtype pack_dtype pack_type compute_dtype",
    "ints": "axes newshape",
    "sizes": "block_shape dilation dilations kernel_size output_size pool_size pooled_size strides target_shape window_shape",
    "shape": "assert_shape const_shape crop_size out_shape output_shape reps shape size",
    "places": "begin end",
    "axes": "axis indices_or_sections",
    "numbers": "roi",
    "pairs": "crops pad_width paddings",
    "any": "compiler convolution_algorithm debug_func device_id device_type dst_dev_type dst_virtual_device funcid index_map is_fixed "
    "metadata src_dev_type src_virtual_device virtual_device",
}
"""The kinds of attributes whose default does not determine them, by name: Relay uses each name for one kind."""
KIND_OF = {name: kind for kind, names in NAMED.items() for name in names.split()}


def _is_open(value: object) -> bool:
    """Whether a value, or a part of it, is a placeholder: ``?``, an object in the metadata table."""
    return isinstance(value, Raw) or (isinstance(value, list) and any(map(_is_open, value)))


@dataclass(frozen=True, slots=True)
class DeclaredOperand:
    """An operand by name, with its class of ``CLASSES`` or ``SHAPES``, and its minimal and maximal rank."""

    name: str
    optional: bool
    takes: str
    ranks: tuple[int, int] | None = None

    @classmethod
    def of(cls, text: str, default: str) -> DeclaredOperand:
        """``indices: int 1d``, ``stop?``, of class ``default`` where none is named. Raises ValueError for an unknown class."""
        name, _, words = (part.strip() for part in text.partition(":"))
        takes, ranks = default, None
        for word in words.split():
            found = RANK.match(word)
            if found is not None:
                least = int(found[1])
                ranks = (least, int(found[2]) if found[2] else MANY if found[3] else least)
            elif word in CLASSES or word in SHAPES:
                takes = word
            else:
                raise ValueError(f"{text!r}: there is no class {word!r}")
        return cls(name.rstrip("?"), name.endswith("?"), takes, ranks)


@dataclass(frozen=True, slots=True)
class DeclaredAttribute:
    """A named attribute; ``needed`` ones have no default."""

    name: str
    needed: bool
    default: Any
    kind: str

    @classmethod
    def of(cls, text: str) -> DeclaredAttribute:
        """``axis=-1``, ``units!``, ``axis: int=None``. Raises KeyError for a name of unknown kind."""
        head, equals, written = (part.strip() for part in text.partition("="))
        name, _, kind = (part.strip() for part in head.rstrip("!").partition(":"))
        default = python_literal(written) if equals else None
        return cls(name, not equals, default, kind or _kind(name, default))


def _kind(name: str, default: object) -> str:
    match default:
        case bool():
            return "bool"
        case int():
            return "size" if KIND_OF.get(name) == "size" else "int"
        case float():
            return "number"
        case str():
            return "dtype" if KIND_OF.get(name) == "dtype" else "string"
        case list() if any(isinstance(v, float) for v in default):
            return "numbers"
        case list():
            return KIND_OF.get(name, "ints")
    return KIND_OF[name]


def check_operands(name: str, operands: Sequence[DeclaredOperand], types: Sequence[Type]) -> None:
    """Raise TypeFault for a wrong number of operands, and for one of another class. Unknown types fit."""
    least = sum(not o.optional for o in operands)
    if not least <= len(types) <= len(operands):
        wanted = str(least) if least == len(operands) else f"{least} to {len(operands)}"
        names = ", ".join(o.name for o in operands)
        said = f"{name} takes {wanted} operand{'' if wanted == '1' else 's'}{f' ({names})' if names else ''}, got {len(types)}"
        one_tuple = len(operands) == 1 and operands[0].takes in ("tuple", "filled")
        raise TypeFault(said, f"put them in a tuple: {name}((%a, %b), ...)" if one_tuple else "")
    for operand, type in zip(operands, types, strict=False):
        _check_operand(name, operand, type)


def _check_operand(name: str, operand: DeclaredOperand, type: Type) -> None:
    if operand.takes == "any" or type is UNKNOWN or isinstance(type, NamedType):
        return  # a name is a type variable, or a type that only the frontend knows
    if operand.takes in ("tuple", "filled"):
        if not isinstance(type, TupleType):
            raise TypeFault(f"{name} takes a tuple of tensors as {operand.name}, got {type_text(type)}",
                            f"put them in a tuple: {name}((%a, %b), ...)")
        if operand.takes == "filled" and not type.elements:
            raise TypeFault(f"{name} takes at least one tensor as {operand.name}, got an empty tuple")
        nested = next((i for i, part in enumerate(type.elements) if isinstance(part, TupleType)), None)
        if nested is not None:
            raise TypeFault(f"{name} takes a tuple of tensors as {operand.name}, but its field {nested} is a tuple: {type_text(type)}",
                            "take its fields one by one")
        return
    if isinstance(type, TupleType):
        fields = len(type.elements)
        raise TypeFault(f"{name} takes a tensor as {operand.name}, got a tuple of {fields}: {type_text(type)}",
                        "take one of its fields: .0" if fields else "")
    if not isinstance(type, TensorType):
        raise TypeFault(f"{name} takes a tensor as {operand.name}, got {type_text(type)}")
    if operand.ranks is not None and not operand.ranks[0] <= type.rank <= operand.ranks[1]:
        raise TypeFault(f"{name} takes {_dimensions(*operand.ranks)} as {operand.name}, got {type_text(type)}")
    if operand.takes in CLASSES:
        wanted, fits, how = CLASSES[operand.takes]
        if not fits(type.dtype):
            raise TypeFault(f"{name} takes {wanted} as {operand.name}, got {type_text(type)}", how)


def _dimensions(least: int, most: int) -> str:
    if most == MANY:
        return f"{least} dimension{'s' if least != 1 else ''} or more"
    return f"{least} dimension{'s' if least != 1 else ''}" if least == most else f"{least} to {most} dimensions"


def bind_attributes(attributes: Sequence[DeclaredAttribute], given: Mapping[str, object]) -> dict[str, object]:
    """Values by name, with defaults. A string without a name is the next attribute that takes a word."""
    values = {a.name: a.default for a in attributes}
    kinds = {a.name: a.kind for a in attributes}
    words = iter([name for name, kind in kinds.items() if kind in ("string", "dtype")])
    for key, value in given.items():
        name = next(words, key) if key.startswith("positional") else key
        if kinds.get(name) in LISTS and (_is_number(value) or (isinstance(value, Raw) and kinds[name] != "any")):
            value = [value]
        values[name] = _plain(value)
    return values


def _plain(value: object) -> object:
    """Lists for tuples, inside too: a text may write either."""
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value


def check_attributes(name: str, attributes: Sequence[DeclaredAttribute], values: Mapping[str, object]) -> None:
    """Raise TypeFault for an attribute that is missing or not of its kind."""
    for attribute in attributes:
        value = values[attribute.name]
        wanted, fits = KINDS[attribute.kind]
        if value is None:
            if attribute.needed:
                raise TypeFault(f"{name} needs the attribute {attribute.name}, {wanted}")
            if attribute.default is None or attribute.kind in ("string", "dtype", "any"):
                continue
        if attribute.kind in NUMERIC and _is_open(value):
            raise TypeFault(f"{attribute.name} of {name} is left open: {_told(value)}")
        if not fits(value):
            raise TypeFault(f"{attribute.name} of {name} is {wanted}, got {_told(value)}")
        if attribute.kind == "dtype" and value not in ("", "None") and dtype_named(str(value)) is None:
            raise TypeFault(f"{attribute.name} of {name} is an element type, got {_told(str(value))}", did_you_mean(str(value), NAMES))


def _told(value: object) -> str:
    """An attribute's value as text."""
    match value:
        case Raw():
            return str(value)
        case str():
            return f'"{value}"'
        case list():
            return f"[{', '.join(map(_told, value))}]"
    return str(value)
