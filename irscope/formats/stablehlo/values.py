"""Reads the values of attributes, in every spelling."""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from irscope.formats.faults import Refused
from irscope.formats.stablehlo.attributes import UNIT, Array, Attribute, Number, Record, Symbol, Text, Word
from irscope.formats.stablehlo.faults import ATTRIBUTE_VALUE, DUPLICATE_NAME, UNKNOWN_ALIAS
from irscope.formats.stablehlo.lexer import Cursor
from irscope.formats.stablehlo.literals import read_dense, read_resource
from irscope.formats.stablehlo.types import ELEMENTS, TypeTable
from irscope.graph import DTYPES, NamedType, Type
from irscope.lazy import np
from irscope.source import did_you_mean

WORDS: dict[str, tuple[str, ...]] = {
    "comparison_direction": ("EQ", "NE", "GE", "GT", "LE", "LT"),
    "comparison_type": ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"),
    "precision": ("DEFAULT", "HIGH", "HIGHEST", "PACKED_NIBBLE"),
    "fft_type": ("FFT", "IFFT", "RFFT", "IRFFT"),
    "rng_algorithm": ("DEFAULT", "THREE_FRY", "PHILOX"),
    "rng_distribution": ("UNIFORM", "NORMAL"),
    "transpose": ("TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"),
    "result_accuracy_mode": ("DEFAULT", "HIGHEST", "TOLERANCE"),
}
"""The enumerations of StableHLO that pretty forms write as a bare word."""
RECORDS = frozenset(("dot", "gather", "scatter", "conv", "channel_handle", "dot_algorithm", "output_operand_alias",
                     "replica_group_mesh_axes", "axis_ref", "result_accuracy"))
ENUMERATION = re.compile(r'<\s*"?(\w+) (\w+)"?\s*>')
INTS = re.compile(r"\[(-?\d{1,18}(?:, ?-?\d{1,18})*)?\]", re.ASCII)
TEXT = re.compile(r'\{([A-Za-z_][\w$.]*+) = "([^"\\\n]*+)"\}', re.ASCII)
"""A dictionary of one string, which most results of functions have."""
ARRAY = re.compile(r"array<(i64|i32)(?:: (-?\d{1,18}(?:, -?\d{1,18})*))?>", re.ASCII)
I64, F64, I1 = NamedType("i64"), NamedType("f64"), NamedType("i1")
OPAQUE_WORDS = ("affine_map", "affine_set", "sparse", "distinct", "strided", "loc")


class Values:
    """Reads values of attributes; ``types``, ``alias`` and ``resources`` are those of the text."""

    def __init__(self, types: TypeTable, alias: Callable[[str], int | None], resources: dict[str, tuple[int, int]]) -> None:
        self.types, self.alias, self.resources = types, alias, resources
        self.aliases: dict[str, Attribute] = {}

    def dictionary(self, cursor: Cursor) -> dict[str, Attribute]:
        """Step over ``{name = value, name}``."""
        m = TEXT.match(cursor.text, cursor.at, cursor.end)
        if m is not None:
            cursor.goto(m.end())
            return {m[1]: m[2]}
        found: dict[str, Attribute] = {}
        for _ in cursor.items("{}", "the attributes"):
            at = cursor.at
            if cursor.kind == "string":
                name = cursor.string()
            else:
                name = cursor.word("bare identifier or keyword: the name of an attribute")
            if name in found:
                raise Refused(DUPLICATE_NAME, f"the attribute {name} is given twice", at, len(name))
            found[name] = self.read(cursor) if cursor.eat("=") else UNIT
        return found

    def read(self, cursor: Cursor) -> Attribute:
        """Step over a value."""
        kind = cursor.kind
        if kind == "word":
            return self._word(cursor)
        if kind in ("int", "hex", "float", "minus"):
            return self.number(cursor)
        if kind == "string":
            value = cursor.string()
            if cursor.eat(":"):
                self.types.read(cursor)
            return value
        if kind == "symbol":
            return Symbol(cursor.symbol())
        if kind == "attribute":
            return self._hash(cursor)
        if cursor.sees("["):
            cursor.nest(4)
            elements = tuple([self.read(cursor) for _ in cursor.items("[]", "the elements", ATTRIBUTE_VALUE)])
            cursor.depth -= 4
            return elements
        if cursor.sees("{"):
            cursor.nest(4)
            values = self.dictionary(cursor)
            cursor.depth -= 4
            return values
        if kind == "type" or cursor.sees("("):
            return self.types.read(cursor)
        cursor.missing("expected attribute value", ATTRIBUTE_VALUE)

    def _word(self, cursor: Cursor) -> Attribute:
        word = cursor.value
        if word in ("true", "false"):
            cursor.next()
            if cursor.eat(":"):
                self.types.read(cursor)
            return word == "true"
        if word == "dense":
            return read_dense(cursor, self.types)
        if word == "dense_resource":
            return read_resource(cursor, self.types, self.resources)
        if word == "array":
            return self._array(cursor)
        if word == "unit":
            cursor.next()
            return UNIT
        if word in OPAQUE_WORDS:
            begin = cursor.at
            cursor.next()
            cursor.balanced()
            text = cursor.text[begin:cursor.at].rstrip()
            if word == "sparse" and cursor.eat(":"):
                self.types.read(cursor)
            return Text(text)
        if word in ("inf", "nan"):
            cursor.refuse("expected attribute value: MLIR writes infinities and NaN as hexadecimal bits", ATTRIBUTE_VALUE, sees=False)
        try:
            return self.types.read(cursor)
        except Refused as refused:
            if refused.offset == cursor.at and not refused.help:
                cursor.refuse("expected attribute value", ATTRIBUTE_VALUE)
            raise

    def number(self, cursor: Cursor) -> Number | bool:
        """Step over ``3``, ``3 : i32``, ``2.5 : f32`` or ``0x7F800000 : f32``."""
        begin, kind, text = cursor.at, cursor.kind, cursor.value
        if kind == "minus":
            cursor.next()
            kind, text = cursor.kind, "-" + cursor.value
            if kind not in ("int", "hex", "float"):
                cursor.refuse("expected a number after '-'", ATTRIBUTE_VALUE)
        if len(text) > 400:
            raise Refused(ATTRIBUTE_VALUE, f"a number of {len(text)} characters", begin, 40)
        cursor.next()
        type: Type = F64 if kind == "float" else I64
        if cursor.eat(":"):
            type = self.types.read(cursor)
        name = type.name if isinstance(type, NamedType) else ""
        dtype = ELEMENTS.get(name)
        if kind == "float":
            if dtype is not None and not dtype.is_float:
                raise Refused(ATTRIBUTE_VALUE, f"floating point value not valid for type {name}", begin, len(text))
            return Number(float(text), type)
        value = int(text, 16) if "x" in text else int(text)
        if dtype is not None and dtype.is_float:
            if kind != "hex":
                raise Refused(ATTRIBUTE_VALUE, f"integer value not valid for type {name}", begin, len(text), f"write {text}.0")
            return Number(float_of_bits(value, name), type)
        if dtype is not None and not -(1 << (dtype.bits - 1)) <= value < 1 << dtype.bits:
            raise Refused(ATTRIBUTE_VALUE, f"integer constant out of range for type {name}", begin, len(text))
        return Number(value, type)

    def ints(self, cursor: Cursor) -> Array:
        """Step over ``[1, 2]`` of a pretty form, or ``array<i64: 1, 2>``."""
        listed = _plain_ints(cursor)
        if listed is not None:
            return listed
        if cursor.sees_word("array"):
            return self._array(cursor)
        numbers = []
        for _ in cursor.items("[]", "the integers", ATTRIBUTE_VALUE):
            begin, text = cursor.at, cursor.value
            numbers.append(cursor.integer("an integer of the list", ATTRIBUTE_VALUE))
            if numbers[-1] >= 1 << 63:
                raise Refused(ATTRIBUTE_VALUE, "integer constant out of range for type i64", begin, len(text))
        return Array(DTYPES["s64"], tuple(numbers))

    def enumeration(self, cursor: Cursor, kind: str) -> Word:
        """Step over the bare word of an enumeration."""
        words = WORDS[kind]
        if cursor.kind != "word" or cursor.value not in words:
            cursor.refuse(f"expected one of {', '.join(words)}", ATTRIBUTE_VALUE, did_you_mean(cursor.value, words))
        return Word("stablehlo", kind, cursor.take())

    def _array(self, cursor: Cursor) -> Array:
        m = ARRAY.match(cursor.text, cursor.at, cursor.end)
        if m is not None:
            cursor.goto(m.end())
            return Array(ELEMENTS[m[1]], tuple(map(int, m[2].split(","))) if m[2] else ())
        cursor.next()
        cursor.expect("<", "after array", ATTRIBUTE_VALUE)
        name = cursor.value
        dtype = ELEMENTS.get(name)
        if cursor.kind != "word" or dtype is None or not (dtype.is_integer or dtype.is_float or dtype.kind == "pred"):
            cursor.refuse("expected the element type of an array", ATTRIBUTE_VALUE)
        cursor.next()
        values: list[float] = []
        if cursor.eat(":"):
            values = [self._element(cursor, dtype.is_float, name) for _ in cursor.elements()]
        cursor.expect(">", "after the elements of an array", ATTRIBUTE_VALUE)
        return Array(dtype, tuple(values))

    def _element(self, cursor: Cursor, is_float: bool, name: str) -> float:
        if cursor.kind == "word" and cursor.value in ("true", "false") and name == "i1":
            return cursor.boolean(ATTRIBUTE_VALUE)
        if is_float and cursor.kind == "float":
            return float(cursor.take())
        number = cursor.integer("an element of the array", ATTRIBUTE_VALUE)
        return float_of_bits(number, name) if is_float else number

    def _hash(self, cursor: Cursor) -> Attribute:
        """An alias, or an attribute of a dialect."""
        name, begin = cursor.value, cursor.at
        touches = cursor.text.startswith("<", cursor.after)
        if "." not in name and not touches:
            return self._alias(cursor, name)
        if not touches:
            cursor.next()
            return Text("#" + name)
        m = ENUMERATION.match(cursor.text, cursor.after, cursor.end)
        if m is not None and "." not in name:
            cursor.goto(m.end())
            return Word(name, m[1], m[2])
        dialect, _, short = name.partition(".")
        cursor.next()
        if dialect in ("stablehlo", "mhlo", "chlo") and short in RECORDS:
            cursor.nest(4)
            found = Record(dialect, short, self._convolution(cursor) if short == "conv" else self.fields(cursor))
            cursor.depth -= 4
            return found
        cursor.balanced()
        return Text(cursor.text[begin:cursor.at].rstrip())

    def _alias(self, cursor: Cursor, name: str) -> Attribute:
        at = self.alias("#" + name)
        if at is None:
            cursor.refuse(f"undefined symbol alias id '{name}'", UNKNOWN_ALIAS, sees=False)
        if name not in self.aliases:
            inner = Cursor(cursor.text, at)
            inner.depth = cursor.depth
            inner.nest(8)  # an alias may name itself
            self.aliases[name] = self.read(inner)
        cursor.next()
        return self.aliases[name]

    def fields(self, cursor: Cursor) -> Mapping[str, Attribute]:
        """Step over ``<name = value, name = [1, 2]>``."""
        found: dict[str, Attribute] = {}
        for _ in cursor.items("<>", "the fields", ATTRIBUTE_VALUE):
            if cursor.kind == "word":
                at = cursor.at
                name = cursor.word("the name of a field", ATTRIBUTE_VALUE)
                if name in found:
                    raise Refused(DUPLICATE_NAME, f"the field {name} is given twice", at, len(name))
                cursor.expect("=", f"after the field {name}", ATTRIBUTE_VALUE)
                found[name] = self._field(cursor)
            else:
                cursor.refuse("expected the name of a field", ATTRIBUTE_VALUE)
        return found

    def _field(self, cursor: Cursor) -> Attribute:
        listed = _plain_ints(cursor)
        if listed is not None:
            return listed
        if cursor.sees("<"):
            cursor.nest(4)
            inner = self.fields(cursor)
            cursor.depth -= 4
            return dict(inner)
        if cursor.kind == "attribute" and "." not in cursor.value:
            return self._hash(cursor)
        return self.read(cursor)

    def _convolution(self, cursor: Cursor) -> Mapping[str, Attribute]:
        cursor.expect("<", "before the dimension numbers", ATTRIBUTE_VALUE)
        fields = self.convolution_dimensions(cursor)
        cursor.expect(">", "after the dimension numbers", ATTRIBUTE_VALUE)
        return fields

    def convolution_dimensions(self, cursor: Cursor) -> Mapping[str, Attribute]:
        """Step over ``[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]``."""
        found: dict[str, Attribute] = {}
        for name in ("input", "kernel", "output"):
            labels: list[str] = []
            for _ in cursor.items("[]", f"the dimensions of the {name}", ATTRIBUTE_VALUE):
                if cursor.kind not in ("word", "int") and not cursor.sees("?"):
                    cursor.refuse("expected a dimension: b, f, i, o or a number", ATTRIBUTE_VALUE)
                labels.append(cursor.take())
            found[name] = tuple(labels)
            if name == "input":
                cursor.expect_word("x")
            elif name == "kernel":
                cursor.expect("->", "before the dimensions of the output", ATTRIBUTE_VALUE)
        return found


def _plain_ints(cursor: Cursor) -> Array | None:
    """Step over ``[1, 2]`` as compilers print it; None where the cursor has to read it."""
    m = INTS.match(cursor.text, cursor.at, cursor.end)
    if m is None:
        return None
    cursor.goto(m.end())
    return ints_of(m)


def ints_of(m: re.Match[str]) -> Array:
    """The integers in a match of :data:`INTS`."""
    return Array(DTYPES["s64"], tuple(map(int, m[1].split(","))) if m[1] else ())


def float_of_bits(bits: int, name: str) -> float:
    """The float that hexadecimal digits stand for."""
    dtype = ELEMENTS[name]
    raw = np.array([bits & ((1 << dtype.bits) - 1)], dtype=f"uint{8 * dtype.storage}")
    return float(raw.view(dtype.numpy())[0])
