"""Reads the arguments of an archive's nodes, objects with one key for the kind of the value, and the metadata of tensors."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from irscope.formats.export.making import Argument, Plain
from irscope.formats.export.records import BadRecord, Record
from irscope.formats.export.symbols import Unreadable, spelled
from irscope.formats.export.types import SHORT, tensor_type
from irscope.formats.export.values import EXPORTED, EXPORTED_FORMATS, EXPORTED_LAYOUTS, NamedConstant
from irscope.formats.torchscript.torch import SCALAR_TYPES
from irscope.formats.torchscript.types import TorchTensorType
from irscope.graph import DTYPES, Dim, DType, DynamicDim, Node
from irscope.source import did_you_mean

NUMBERS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
DEEPEST = 40
RARE: dict[int, str] = {25: "f8e5m2fnuz", 26: "f8e4m3fnuz", 44: "f8e8m0fnu"}
"""Element types that torch has no operators for, by their numbers in c10."""


class Arguments:
    """Reads arguments among the values of one graph."""

    def __init__(self, names: Mapping[str, Node]) -> None:
        self.names = names

    def name(self, record: Record) -> str:
        """The name of the value that an argument refers to; empty for a constant."""
        kind = record.only()
        if kind in ("as_tensor", "as_custom_obj", "as_token"):
            return record.record(kind).text("name")
        if kind in ("as_sym_int", "as_sym_bool", "as_sym_float") and record.record(kind).only() == "as_name":
            return record.record(kind).text("as_name")
        return ""

    def read(self, record: Record, depth: int = 0) -> Argument:
        """Read an argument. Raises BadRecord for an unknown kind, and for a value that no earlier node defines."""
        kind = record.only()
        if depth > DEEPEST:
            raise BadRecord(f"{record.path[:80]}...: arguments are nested more than {DEEPEST} deep")
        rule = RULES.get(kind)
        if rule is not None:
            return rule(self, record, kind)
        if kind == "as_string_to_argument":
            inner = record.record(kind)
            return {key: self.read(inner.record(key), depth + 1) for key in inner.values}
        raise BadRecord(f"{record.path}: irscope knows no argument of the kind {kind!r:.60}")

    def value(self, name: str, path: str) -> Node:
        """The value of a name."""
        found = self.names.get(name)
        if found is None:
            near = did_you_mean(name, self.names)
            raise BadRecord(f"{path}: {name} is not defined before this place" + (f" ({near})" if near else ""))
        return found

    def named(self, record: Record, kind: str) -> Argument:
        return self.value(record.record(kind).text("name"), record.path)

    def names_of(self, record: Record, kind: str) -> Argument:
        return [self.value(each.text("name"), each.path) for each in record.records(kind)]

    def nested_names(self, record: Record, kind: str) -> Argument:
        return [[self.value(each.text("name"), each.path) for each in Record({"list": items}, record.path).records("list")]
                for items in record.items(kind)]

    def optional(self, record: Record, kind: str) -> Argument:
        return [self._tensor_or_none(each) for each in record.records(kind)]

    def one_optional(self, record: Record, kind: str) -> Argument:
        return self._tensor_or_none(record.record(kind))

    def _tensor_or_none(self, record: Record) -> Argument:
        kind = record.only()
        if kind not in ("as_tensor", "as_none"):
            raise BadRecord(f"{record.path[:80]}: an optional tensor is as_tensor or as_none, but here is {kind!r:.60}")
        return self.named(record, kind) if kind == "as_tensor" else None

    def symbol(self, record: Record, kind: str) -> Argument:
        inner = record.record(kind)
        key = inner.only()
        return self.value(inner.text(key), record.path) if key == "as_name" else self.plain(inner, key)

    def symbols(self, record: Record, kind: str) -> Argument:
        return [self.symbol(Record({"one": each.values}, each.path), "one") for each in record.records(kind)]

    def plain(self, record: Record, kind: str) -> Argument:
        value: Any = record.values[kind]
        wanted = PLAIN.get(kind.removesuffix("s"), (int, float, bool, str))
        if kind == "as_float":
            return _float(value, record, kind)
        if not isinstance(value, wanted) or (isinstance(value, bool) and bool not in wanted):
            raise record.fault(kind, f"the value is of another kind: {value!r:.40}")
        return cast(Plain, value)

    def plain_list(self, record: Record, kind: str) -> Argument:
        one = kind.removesuffix("s")
        return [self.plain(Record({one: each}, record.at(kind)), one) for each in record.items(kind)]

    def plain_lists(self, record: Record, kind: str) -> Argument:
        one = kind.removesuffix("_lists")
        return [self.plain_list(Record({one + "s": each}, record.at(kind)), one + "s") for each in record.items(kind)]

    def nothing(self, record: Record, kind: str) -> Argument:
        return None

    def number_of(self, record: Record, kind: str) -> Argument:
        table, type = ENUMERATIONS[kind]
        number = record.number(kind)
        if number not in table:
            raise record.fault(kind, f"torch has no {type} {number}")
        return NamedConstant(table[number], type)

    def device(self, record: Record, kind: str) -> Argument:
        inner = record.record(kind)
        index = f":{inner.number('index')}" if inner.has("index") else ""
        return NamedConstant(inner.text("type") + index, "Device")

    def complex(self, record: Record, kind: str) -> Argument:
        inner = record.record(kind)
        return complex(*[_float(inner.values.get(part), inner, part) for part in ("real", "imag")])


PLAIN: dict[str, tuple[type, ...]] = {"as_int": (int,), "as_float": (float, int, str), "as_bool": (bool,), "as_string": (str,),
                                      "as_operator": (str,)}
ENUMERATIONS = {"as_scalar_type": (EXPORTED, "ScalarType"), "as_layout": (EXPORTED_LAYOUTS, "Layout"),
                "as_memory_format": (EXPORTED_FORMATS, "MemoryFormat")}
Rule = Callable[[Arguments, Record, str], Argument]
RULES: dict[str, Rule] = {
    **dict.fromkeys(("as_tensor", "as_custom_obj", "as_token"), Arguments.named),
    **dict.fromkeys(("as_int", "as_float", "as_bool", "as_string", "as_operator"), Arguments.plain),
    **dict.fromkeys(("as_ints", "as_floats", "as_bools", "as_strings"), Arguments.plain_list),
    **dict.fromkeys(("as_int_lists", "as_float_lists"), Arguments.plain_lists),
    **dict.fromkeys(("as_sym_int", "as_sym_bool", "as_sym_float"), Arguments.symbol),
    **dict.fromkeys(("as_sym_ints", "as_sym_bools", "as_sym_floats"), Arguments.symbols),
    **dict.fromkeys(ENUMERATIONS, Arguments.number_of),
    "as_tensors": Arguments.names_of, "as_nested_tensors": Arguments.nested_names, "as_optional_tensors": Arguments.optional,
    "as_optional_tensor": Arguments.one_optional, "as_none": Arguments.nothing, "as_device": Arguments.device,
    "as_complex": Arguments.complex,
}


def _float(value: object, record: Record, key: str) -> float:
    if isinstance(value, str) and value in NUMBERS:
        return NUMBERS[value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise record.fault(key, f"a number is expected, but here is {value!r:.40}")
    try:
        return float(value)
    except OverflowError:
        raise record.fault(key, "the number is too large") from None


def dtype_of(record: Record) -> DType:
    """The element type of a tensor. Raises BadRecord for one that torch does not have."""
    number = record.number("dtype")
    code = EXPORTED.get(number, -1)
    found = SCALAR_TYPES.get(code) or (DTYPES[RARE[code]] if code in RARE else None)
    if found is None:
        raise record.fault("dtype", f"torch has no element type with the number {number}")
    return found


def tensor_meta(record: Record) -> TorchTensorType:
    """The type of a tensor: ``{"dtype": 7, "sizes": [{"as_int": 3}], "strides": ..., "device": ...}``."""
    dims = [_size(each) for each in record.records("sizes")]
    strides = [_size(each) for each in record.records("strides")] if record.has("strides") else []
    known = tuple(s for s in strides if isinstance(s, int))
    device = record.record("device") if record.has("device") else None
    place = "" if device is None else device.text("type") + (f":{device.number('index')}" if device.has("index") else "")
    return tensor_type(SHORT[dtype_of(record).name], dims, known if len(known) == len(dims) else None, place, record.flag("requires_grad"))


def _size(record: Record) -> Dim:
    kind = record.only()
    if kind == "as_int":
        number = record.number(kind)
        if not 0 <= number < 1 << 63:  # torch has no negative strides: they would lead out of a storage
            raise record.fault(kind, "a size or a stride is a number from 0 to 2^63 - 1")
        return number
    if kind != "as_expr":
        raise BadRecord(f"{record.path}: a size is as_int or as_expr, but here is {kind!r:.40}")
    text = record.record(kind).text("expr_str")
    try:
        return plain_dim(spelled(text))
    except Unreadable as error:
        raise BadRecord(f"{record.path}: {error}") from None


def plain_dim(text: str) -> Dim:
    """A size: a number, or an open dimension with the text as its name."""
    return int(text) if text.isdecimal() and len(text) < 20 else DynamicDim(text)


