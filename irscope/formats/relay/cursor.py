"""A position among the tokens, and parsers of everything but expressions: types, attribute values, metadata references."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from irscope.formats.relay.lexer import Tokens
from irscope.formats.relay.types import LANES, NAMES, dtype_named
from irscope.formats.syntax import SyntaxFault
from irscope.graph import Dim, DynamicDim, FunctionType, NamedType, TensorType, TupleType, Type
from irscope.source import did_you_mean

NUMBER = re.compile(r"((?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?)([fiu]?)(\d*)$")
OPEN, CLOSE = {"(": ")", "[": "]", "{": "}"}, (")", "]", "}")
MAX_DEPTH = 200
"""The maximal nesting of brackets; no program is deeper."""


class Raw(str):
    """An attribute value that is kept as text: a device, an object in the metadata table."""

    __slots__ = ()


class TokenCursor:
    """Reads tokens; every method steps over what it takes, or raises SyntaxFault."""

    def __init__(self, tokens: Tokens, text: str) -> None:
        self.kinds, self.texts, self.offsets = tokens.kinds, tokens.texts, tokens.offsets
        self.notes = tokens.notes
        self.text = text
        self.at = 0
        self.depth = 0
        self.typevars: list[set[str]] = []

    # ------------------------------------------------------------------ tokens

    @property
    def word(self) -> str:
        return self.texts[self.at]

    @property
    def kind(self) -> str:
        return self.kinds[self.at]

    @property
    def offset(self) -> int:
        return self.offsets[self.at]

    def take(self, word: str) -> bool:
        """Step over ``word`` if it is here."""
        if self.texts[self.at] == word and self.kinds[self.at] != "string":
            self.at += 1
            return True
        return False

    def expect(self, word: str, message: str = "") -> None:
        """Step over ``word``, which must be here."""
        if not self.take(word):
            raise self.fault(message or f"expected `{word}`, but here is {self.shown()}")

    def listed(self, close: str, comma: bool = False) -> Iterator[None]:
        """Step over items between commas, up to and including ``close``: the body of the loop steps over each item.

        A trailing comma is allowed. With ``comma``, the message for a missing ``close`` also names the comma.
        """
        while not self.take(close):
            yield
            if not self.take(","):
                self.expect(close, f"expected `,` or `{close}`, but here is {self.shown()}" if comma else "")
                return

    def shown(self) -> str:
        return "the end of the text" if self.kind == "end" else f"`{self.word}`"

    def fault(self, message: str, help: str = "") -> SyntaxFault:
        """A fault at this token. An elision or the end of the text has its own message."""
        if self.word == "...":
            return SyntaxFault(self.offset, "`...`: this dump was shortened by hand; paste the full text", length=3)
        return SyntaxFault(self.offset, message, help, max(1, len(self.word)))

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.fault(f"brackets are nested more than {MAX_DEPTH} deep")

    # ------------------------------------------------------------------ types

    def type(self) -> Type:
        """A type of any form."""
        self.deeper()
        try:
            return self._type()
        finally:
            self.depth -= 1

    def _type(self) -> Type:
        word, kind = self.word, self.kind
        if kind == "ident":
            if word == "Tensor":
                self.at += 1
                return self._tensor()
            if word == "fn":
                self.at += 1
                return self._function()
            if word == "meta":
                return NamedType(str(self.meta()))
            if word == "Tuple" and self.texts[self.at + 1] == "[":
                self.at += 2
                return TupleType(tuple(self._types("]")))
            self.at += 1
            dtype = dtype_named(word)
            if dtype is not None:
                return TensorType(dtype, ())
            if self.take("["):
                return NamedType(f"{word}[{', '.join(str(t) for t in self._types(']'))}]")
            if self.take("("):
                return NamedType(f"{word}({', '.join(str(t) for t in self._types(')'))})")
            return NamedType(word)
        if word == "(":
            self.at += 1
            return TupleType(tuple(self._types(")")))
        if word == "_":
            self.at += 1
            return NamedType("_")
        raise self.fault(f"a type is expected, but here is {self.shown()}")

    def _types(self, close: str) -> list[Type]:
        return [self.type() for _ in self.listed(close)]

    def _tensor(self) -> Type:
        self.expect("[", "expected `[(shape), dtype]` after Tensor")
        if self.word != "(":
            if self.word == "meta" or self.kind == "ident":
                shape_name = str(self.meta()) if self.word == "meta" else self._any_ident()
                self.expect(",", "expected `, dtype`")
                return NamedType(f"Tensor[{shape_name}, {self._dtype_or_raw(close='}')}]")
            raise self.fault("expected a shape like `(4)`")
        self.at += 1
        dims = [self._dim() for _ in self.listed(")")]
        self.expect(",", "expected `, dtype`")
        dtype = self._dtype_or_raw("]")
        if isinstance(dtype, str):
            return NamedType(f"Tensor[({', '.join(map(str, dims))}), {dtype}]")
        return TensorType(dtype, tuple(dims))

    def _any_ident(self) -> str:
        if self.kind == "end":
            raise self.fault("the text ends here")
        self.at += 1
        return self.texts[self.at - 1]

    def _dim(self) -> Dim:
        if self.word == "-":
            raise self.fault("a dimension may not be negative")
        if self.take("?"):
            return DynamicDim("")
        if self.word == "meta":
            return DynamicDim(str(self.meta()))
        if self.kind == "number":
            found = NUMBER.match(self.word)
            if found is None or not found[1].isdigit() or len(found[1]) > 18:
                raise self.fault("a dimension is a whole number")
            self.at += 1
            return int(found[1])
        if self.kind in ("ident", "local"):
            return DynamicDim(self._any_ident())
        raise self.fault(f"a dimension is expected, but here is {self.shown()}")

    def _dtype_or_raw(self, close: str) -> Any:
        word = self.word
        if self.kind != "ident":
            raise self.fault(f"an element type such as float32 is expected, but here is {self.shown()}")
        dtype = dtype_named(word)
        if dtype is None and not (LANES.match(word) or self.texts[self.at + 1] in ("[", ",") or any(word in v for v in self.typevars)):
            raise self.fault(f"unknown dtype `{word}`" + (f"; {_near(word)}" if _near(word) else ""))
        self.at += 1
        raw = word
        if dtype is None and word != "custom" and self.word != "]":
            raise self.fault(f"expected `]` after the element type, but here is {self.shown()}")
        while not self.take("]"):
            if self.kind == "end" or (dtype is not None and word != "custom"):
                raise self.fault("expected `]` after the element type")
            raw += self.word
            self.at += 1
        return dtype if dtype is not None and raw == word else raw

    def _function(self) -> Type:
        self.generics()
        self.expect("(")
        params = self._types(")")
        self.expect("->")
        return FunctionType(tuple(params), self.type())

    def generics(self) -> list[str]:
        """``[A, B]`` after fn or a global name."""
        names: list[str] = []
        if self.take("["):
            for _ in self.listed("]"):
                names.append(self._any_ident())
                if self.take(":"):
                    self.type()
        return names

    # ------------------------------------------------------------------ attribute values

    def meta(self) -> Raw:
        """``meta[relay.Constant][0]``."""
        self.expect("meta")
        self.expect("[")
        key = self._any_ident()
        self.expect("]")
        self.expect("[")
        number = self._any_ident()
        self.expect("]")
        return Raw(f"meta[{key}][{number}]")

    def value(self) -> Any:
        """An attribute's value: a number, string, bool, None, list, tuple, dict, or other text, kept opaque."""
        self.deeper()
        try:
            return self._value()
        finally:
            self.depth -= 1

    def _value(self) -> Any:
        word, kind = self.word, self.kind
        if word == "-" and (self.kinds[self.at + 1] == "number" or self.texts[self.at + 1].startswith(("inf", "nan"))):
            self.at += 1
            positive = self._value()
            if isinstance(positive, str):
                raise SyntaxFault(self.offsets[self.at - 1], f"`-{positive}` is not a number", length=len(self.texts[self.at - 1]))
            return -positive
        if kind == "number":
            self.at += 1
            return plain_number(word, self.offsets[self.at - 1])
        if kind == "string":
            self.at += 1
            return unquoted(word)
        if word in ("[", "("):
            return self._sequence()
        if word == "{":
            return self._dict()
        if word == "?":
            self.at += 1
            return Raw("?")
        if kind == "global":
            self.at += 1
            return Raw(word)
        if word == "meta" and self.texts[self.at + 1] == "[":
            return self.meta()
        if kind == "ident":
            return self._ident_value(word)
        raise self.fault(f"an attribute's value is expected, but here is {self.shown()}")

    def _ident_value(self, word: str) -> Any:
        self.at += 1
        words = {"True": True, "False": False, "None": None, "nullptr": None}
        if word in words:
            return words[word]
        if re.fullmatch(r"inff?\d*|nanf?\d*", word):
            return float(word[:3])
        if self.word in OPEN and self.word != "[":
            begin = self.offsets[self.at - 1]
            self.skip_balanced()
            return Raw(self.text[begin : self.offsets[self.at - 1] + 1])
        return Raw(word)

    def _sequence(self) -> Any:
        close = OPEN[self.word]
        items: list[object] = []
        begin = self.at
        self.at += 1
        if close == ")" and self.kind == "ident" and self.texts[self.at + 1] == ")" and self.kinds[self.at + 2] in ("number", "ident"):
            self.at += 2  # (bool)0
            return self.value()
        while not self.take(close):
            items.append(self.value())
            if not self.take(","):
                if self.word != close:
                    self.at = begin
                    return self.opaque()
                self.at += 1
                break
        return tuple(items) if close == ")" else items

    def opaque(self) -> Raw:
        """A bracketed text."""
        begin = self.offset
        self.skip_balanced()
        return Raw(self.text[begin : self.offsets[self.at - 1] + 1])

    def _dict(self) -> Any:
        begin = self.at
        self.at += 1
        found: dict[object, object] = {}
        for _ in self.listed("}"):
            key = unquoted(self._any_ident())
            if not (self.take("=") or self.take(":")):
                self.at = begin
                return self.opaque()
            found[key] = self.value()
        return found

    def skip_balanced(self) -> None:
        """Step over a bracket and its content."""
        opener, depth = self.at, 0
        while True:
            word = self.word
            if self.kind == "end":
                raise SyntaxFault(self.offsets[opener], f"this `{self.texts[opener]}` is never closed")
            if self.kind != "string":
                depth += (word in OPEN) - (word in CLOSE)
            self.at += 1
            if depth == 0:
                return


def _near(word: str) -> str:
    return did_you_mean(word, NAMES).rstrip("?").replace("did you mean ", "did you mean `") + "`?" if did_you_mean(word, NAMES) else ""


def plain_number(word: str, offset: int) -> int | float:
    """A number without its suffix; floats have a point, an exponent, or an f."""
    found = NUMBER.match(word)
    if found is None:
        raise SyntaxFault(offset, f"`{word}` is not a number", length=len(word))
    if found[2] == "f" or any(c in found[1] for c in ".eE"):
        return float(found[1])
    if int(found[1]) >= 1 << 64:
        raise SyntaxFault(offset, f"`{word}` does not fit into 64 bits", length=len(word))
    return int(found[1])


def unquoted(word: str) -> str:
    """A string without its quotes and escapes."""
    if len(word) > 1 and word[0] in "\"'" and word[-1] == word[0]:
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    return word
