"""``print(graph)``: one node a line, without types and without the subgraphs.

    graph():
        %x : [num_users=1] = placeholder[target=x]
        %gelu : [num_users=1] = call_function[target=torch.ops.aten.gelu.default](args = (%x,), kwargs = {approximate: tanh})
        return (gelu,)

FX writes texts among the arguments without quotes: what is neither a value, a number nor a name of torch's is a text.
"""
from __future__ import annotations

import re
from collections.abc import Callable

from irscope.formats.export.making import UNTYPED, Argument, GraphMaker, Invocation
from irscope.formats.export.targets import METHOD, SPELLED, SUBMODULE, canonical
from irscope.formats.export.values import NamedConstant, named
from irscope.formats.syntax import SyntaxFault
from irscope.graph import UNKNOWN, Node

HEADER = re.compile(r"graph\([^()\n]*\):$")
NODE = re.compile(r"%(?P<name>\w[\w.]*) : (?P<type>[^\n]*?)\[(?P<users>[^\[\]\n]*)\] = (?P<opcode>\w+)\[target=(?P<target>[^\n\]]*)\]"
                  r"(?P<rest>\([^\n]*)?$")
USERS = re.compile(r"(?:num_|#)users=\d+$")
ARGUMENTS = re.compile(r"\(args = (.*), kwargs = (\{.*\})\)$", re.DOTALL)
RETURN = re.compile(r"return (?P<value>.*)$", re.DOTALL)
OPCODES = ("placeholder", "call_function", "call_method", "call_module", "get_attr", "output")
DEEPEST = 60
WORDS: dict[str, Argument] = {"None": None, "True": True, "False": False, "inf": float("inf"), "nan": float("nan"), "-inf": float("-inf")}
VALUE = re.compile(r"%([\w.]+)")
COMPLEX = re.compile(r"-?[\d.]+(?:e[+-]?\d+)?[+-][\d.]+(?:e[+-]?\d+)?j|-?[\d.]+(?:e[+-]?\d+)?j")


class Listing:
    """Reads the lines of one listing into its maker."""

    def __init__(self, maker: GraphMaker) -> None:
        self.maker = maker
        self.returned = False

    def read(self, text: str, at: int) -> None:
        """Read one line. Raises SyntaxFault for a line that no listing has."""
        if text.startswith("return"):
            found = RETURN.match(text)
            inside = found["value"] if found is not None else "None"
            self.maker.result(_Arguments(inside, at + 7, self._value, True).whole(), at)
            self.returned = True
            return
        found = NODE.match(text)
        if found is None:
            raise SyntaxFault(at, "syntax: '%name : [num_users=1] = call_function[target=...](args = (...), kwargs = {...})' is expected")
        if not USERS.match(found["users"]):
            raise SyntaxFault(at + found.start("users"), f"num_users=NUMBER is expected, but here is {found['users'][:40]!r}")
        opcode = found["opcode"]
        if opcode not in OPCODES:
            known = f"its opcodes are {', '.join(OPCODES)}"
            raise SyntaxFault(at + found.start("opcode"), f"FX has no opcode {opcode!r}", known, len(opcode))
        self._node(found, opcode, at)

    def _node(self, found: re.Match[str], opcode: str, at: int) -> None:
        name, target, rest = found["name"], found["target"], found["rest"]
        if name in self.maker.names:
            raise SyntaxFault(at, f"%{name} is assigned twice", length=len(name) + 1)
        if not SPELLED.match(target):
            raise SyntaxFault(at + found.start("target"), f"syntax: the target {target[:40]!r} is no name", length=len(target))
        if opcode == "placeholder":
            self.maker.placeholder(name, UNTYPED, at)
            return
        if opcode == "get_attr":
            self.maker.attribute(name, target, UNKNOWN, None, at)
            return
        given = ARGUMENTS.match(rest) if rest and rest.endswith("})") else None
        if given is None:
            raise SyntaxFault(at, "syntax: '(args = (...), kwargs = {...})' is expected after the target")
        begin = at + found.start("rest")
        arguments = _Arguments(given[1], begin + given.start(1), self._value).whole()
        keywords = _Arguments(given[2], begin + given.start(2), self._value).whole()
        if not isinstance(arguments, list) or not isinstance(keywords, dict):
            raise SyntaxFault(begin, "syntax: the arguments of a call are a tuple and a dictionary")
        odd = next((word for word in keywords if not word.isidentifier()), None)
        if odd is not None:
            raise SyntaxFault(begin, f"syntax: {odd[:40]!r} is not the name of a keyword argument")
        if "einsum" in target:
            arguments = _equation(arguments)
        if "device" in keywords and isinstance(keywords["device"], str):
            keywords["device"] = NamedConstant(keywords["device"], "Device")
        called = METHOD + target if opcode == "call_method" else SUBMODULE + target if opcode == "call_module" else canonical(target)
        self.maker.call(name, Invocation(called, arguments, keywords), UNKNOWN, at)

    def _value(self, name: str, at: int) -> Node:
        found = self.maker.names.get(name)
        if found is None:
            raise SyntaxFault(at, f"%{name} is not defined here: no line above assigns it", length=len(name) + 1)
        return found


class _Arguments:
    """Parses what FX writes between the parentheses of a call. ``value`` looks up a name; with ``names_are_bare``, names have no ``%``."""

    def __init__(self, text: str, offset: int, value: Callable[[str, int], Node], names_are_bare: bool = False) -> None:
        self.text, self.offset, self.value, self.at, self.names_are_bare = text, offset, value, 0, names_are_bare

    def whole(self) -> Argument:
        """The argument that the whole text stands for."""
        found = self._argument(0)
        if self.at < len(self.text):
            raise self._fault(f"the end of the argument is expected, but here is {self.text[self.at:self.at + 20]!r}")
        return found

    def _fault(self, message: str) -> SyntaxFault:
        return SyntaxFault(self.offset + self.at, f"syntax: {message}")

    def _argument(self, depth: int) -> Argument:
        if depth > DEEPEST:
            raise self._fault(f"brackets are nested more than {DEEPEST} deep")
        first = self.text[self.at:self.at + 1]
        if first == "%":
            found = VALUE.match(self.text, self.at)
            if found is None:
                raise self._fault("the name of a value is expected after %")
            place, self.at = self.offset + self.at, found.end()
            return self.value(found[1], place)
        if first in ("(", "["):
            return self._list(")" if first == "(" else "]", depth)
        if first == "{":
            return self._dict(depth)
        return self._bare()

    def _list(self, closing: str, depth: int) -> Argument:
        self.at += 1
        found = COMPLEX.match(self.text, self.at)
        if closing == ")" and found is not None and self.text.startswith(")", found.end()):
            try:
                number = complex(found[0])
            except ValueError:
                raise self._fault(f"a complex number is expected, but here is {found[0][:40]!r}") from None
            self.at = found.end() + 1
            return number
        items: list[Argument] = []
        while not self._closes(closing):
            items.append(self._argument(depth + 1))
            if not self._comma():
                self._expect(closing)
                break
        return items

    def _dict(self, depth: int) -> dict[str, Argument]:
        self.at += 1
        made: dict[str, Argument] = {}
        while not self._closes("}"):
            key = re.compile(r"([^:{}]*): ?").match(self.text, self.at)
            if key is None:
                raise self._fault("'key: value' is expected in braces")
            self.at = key.end()
            made[key[1]] = self._argument(depth + 1)
            if not self._comma():
                self._expect("}")
                break
        return made

    def _closes(self, closing: str) -> bool:
        if self.text.startswith(closing, self.at):
            self.at += 1
            return True
        return False

    def _comma(self) -> bool:
        if self.text.startswith(",", self.at):
            self.at += 2 if self.text.startswith(", ", self.at) else 1
            return True
        return False

    def _expect(self, closing: str) -> None:
        if not self._closes(closing):
            raise self._fault(f"{closing!r} is expected, but here is {self.text[self.at:self.at + 20]!r}")

    def _bare(self) -> Argument:
        """A word up to the next comma and blank, or the closing bracket around it; brackets within it belong to it."""
        text, begin, depth = self.text, self.at, 0
        while self.at < len(text):
            c = text[self.at]
            if c in "([{":
                depth += 1
            elif c in ")]}":
                if depth == 0:
                    break
                depth -= 1
            elif c == "," and depth == 0 and text[self.at + 1:self.at + 2] in (" ", ")", "]", ""):
                break
            self.at += 1
        word = text[begin:self.at]
        if self.names_are_bare and word not in WORDS and word.isidentifier():
            return self.value(word, self.offset + begin)
        return constant(word)


def constant(word: str) -> Argument:
    """The constant that a word stands for: a number, a name from torch, else a string."""
    if word in WORDS:
        return WORDS[word]
    head, _, last = word.rpartition(".")
    if head == "torch":
        return named(last) or NamedConstant(word, "object")
    if word[:1] in "-+.0123456789":
        for kind in (int, float, complex):
            try:
                return kind(word)
            except ValueError:
                continue
    if word.startswith(("slice(", "torch.", "<")):
        return NamedConstant(word, "object")
    return word


def _equation(arguments: list[Argument]) -> list[Argument]:
    """The arguments of einsum, with the equation joined again: its commas split it into several strings."""
    texts = 0
    while texts < len(arguments) and isinstance(arguments[texts], str):
        texts += 1
    return [", ".join(str(part) for part in arguments[:texts]), *arguments[texts:]] if texts > 1 else arguments
