"""The text form of a proto: ``name: value`` and ``name { ... }``, as ``--xla_dump_hlo_as_proto`` readers, protoc and Python print it."""
from __future__ import annotations

import re
from codecs import escape_decode
from collections.abc import Iterator

from irscope.formats.hlo_pb.record import DEEPEST, Malformed, Record, Value
from irscope.formats.hlo_pb.schema import Field, Message, enum, message
from irscope.source.budget import tick

TOKEN = re.compile(r"""(?:[\s,;]|\#[^\n]*)*+(?:
      (?P<word>[A-Za-z_][\w.]*+)
    | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFuU]?+)
    | (?P<string>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+')
    | (?P<mark>[{}<>:\[\]/-])
    | (?P<end>\Z))""", re.VERBOSE | re.ASCII)
Token = tuple[str, str, int]


def decode_text(text: str, kind: Message) -> Record:
    """A message of a kind. Fields that the schema does not have are stepped over. Raises Malformed."""
    return _Decoder(text).run(kind)


class _Decoder:
    """Reads tokens, with a stack of the messages that are open: None for one that is stepped over."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._token: Token = ("end", "", 0)
        self._stack: list[tuple[Record | None, str]] = []

    def run(self, kind: Message) -> Record:
        """Read the whole text as the fields of one message."""
        whole = Record(kind)
        self._stack.append((whole, ""))
        self._next()
        while self._stack:
            record, close = self._stack[-1]
            sort, text, at = self._token
            if sort == "end":
                if close:
                    raise Malformed(f"the text ends early, before a {close!r}", at)
                break
            if sort == "mark" and text == close:
                self._stack.pop()
                self._next()
            else:
                self._field(record)
        return whole

    def _next(self) -> None:
        self._token = next(self._tokens)

    def _field(self, record: Record | None) -> None:
        sort, name, at = self._token
        if sort == "mark" and name == "[":  # an extension
            while self._token[:2] != ("mark", "]"):
                self._no_end()
                self._next()
        elif sort not in ("word", "number"):
            raise Malformed(f"expected the name of a field instead of {name[:20]!r}", at)
        field = record.message.names.get(name) if record is not None else None
        self._next()
        if self._token[:2] == ("mark", ":"):
            self._next()
        self._value(record, field)

    def _value(self, record: Record | None, field: Field | None) -> None:
        """Read the value of a field, or the list of its values."""
        sort, text, _ = self._token
        if sort == "mark" and text in "{<":
            self._open(record, field)
        elif sort == "mark" and text == "[":
            self._next()
            while self._token[:2] != ("mark", "]"):
                self._no_end()
                if self._token[0] == "mark" and self._token[1] in "{<":
                    self._open(record, field)
                    self._finish()
                else:
                    self._scalar(record, field)
            self._next()
        else:
            self._scalar(record, field)

    def _open(self, record: Record | None, field: Field | None) -> None:
        """Begin a message."""
        at = self._token[2]
        if len(self._stack) > DEEPEST:
            raise Malformed(f"messages are nested more than {DEEPEST} deep", at)
        made = None
        if record is not None and field is not None and field.kind == "message":
            made = Record(message(field.type))
            record.values.setdefault(field.name, []).append(made)
        self._stack.append((made, "}" if self._token[1] == "{" else ">"))
        self._next()

    def _finish(self) -> None:
        """Read the message that was just begun to its end, for lists of messages."""
        depth = len(self._stack)
        while len(self._stack) >= depth:
            record, close = self._stack[-1]
            self._no_end()
            if self._token[:2] == ("mark", close):
                self._stack.pop()
                self._next()
            else:
                self._field(record)

    def _scalar(self, record: Record | None, field: Field | None) -> None:
        sort, text, at = self._token
        negative = sort == "mark" and text == "-"
        if negative:
            self._next()
            sort, text, at = self._token
        if sort not in ("word", "number", "string"):
            raise Malformed(f"expected a value instead of {text[:20]!r}", at)
        value: Value | None
        if sort == "string":
            pieces = []
            while self._token[0] == "string":
                pieces.append(_unescaped(self._token[1], self._token[2]))
                self._next()
            value = b"".join(pieces) if field is not None and field.kind in ("string", "bytes") else None
        else:
            self._next()
            value = _number(("-" if negative else "") + text, field)
        if record is not None and field is not None and value is not None:
            record.values.setdefault(field.name, []).append(value)

    def _no_end(self) -> None:
        if self._token[0] == "end":
            raise Malformed("the text ends early", self._token[2])


def _tokens(text: str) -> Iterator[Token]:
    at = count = 0
    while True:
        m = TOKEN.match(text, at)
        if m is None or m.lastgroup is None:
            begin = at + len(text[at:]) - len(text[at:].lstrip()) if at < len(text) else at
            raise Malformed(f"a proto has no {text[begin:begin + 1]!r} here", begin)
        count += 1
        if not count & 1023:
            tick(32)
        at = m.end()
        yield m.lastgroup, m[m.lastgroup], m.start(m.lastgroup)


def _unescaped(quoted: str, at: int) -> bytes:
    """The bytes of a string with C's escapes."""
    try:
        data, _ = escape_decode(quoted[1:-1].encode("utf-8", "surrogateescape"))
    except ValueError as error:
        raise Malformed(f"a string has a wrong escape: {error}", at) from None
    return bytes(data)


def _number(text: str, field: Field | None) -> Value | None:
    """The value of a word or a number; None where it does not fit the field."""
    if field is None:
        return None
    if field.kind == "enum":
        found = next((number for number, word in enum(field.type).items() if word == text), None)
        return found if found is not None else _integer(text)
    if field.kind == "bool":
        return {"true": 1, "t": 1, "True": 1, "1": 1}.get(text, 0)
    if field.kind in ("float", "double"):
        try:
            return float(text.rstrip("fF") if not text.lower().lstrip("-").startswith("inf") else text)
        except ValueError:
            return None
    if field.kind not in ("int", "uint"):
        return None
    value = _integer(text)
    low, high = (0, 1 << 64) if field.kind == "uint" else (-(1 << 63), 1 << 63)
    return value if value is not None and low <= value < high else None


def _integer(text: str) -> int | None:
    try:
        value = int(text[:40].rstrip("uU"), 0) if not re.fullmatch(r"-?0\d+", text[:40]) else int(text[:40], 8)
    except ValueError:
        return None
    return value if -(1 << 63) <= value < 1 << 64 else None
