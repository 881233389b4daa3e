"""The context of the expression reader: names in the surrounding text, and the findings."""

from __future__ import annotations

from collections.abc import Mapping

from irscope.formats.relay import declarations
from irscope.formats.relay.cursor import TokenCursor
from irscope.formats.relay.dialect import RELAY
from irscope.formats.syntax import SyntaxFault
from irscope.graph import Graph, Module, Node, Reading, Type
from irscope.ops import all_ops
from irscope.ops.attrs import Literal
from irscope.source import Finding, Severity, SourceText, did_you_mean

Fault = tuple[str, str, Severity]
"""Code, name and severity of a finding."""
SYNTAX: Fault = ("RLY001", "syntax", Severity.ERROR)
UNKNOWN_OPERATOR: Fault = ("RLY020", "unknown-operator", Severity.WARNING)
UNKNOWN_ATTRIBUTE: Fault = ("RLY021", "unknown-attribute", Severity.WARNING)
SHORT_OPERATOR_NAME: Fault = ("RLY022", "short-operator-name", Severity.INFO)

MAX_ERRORS = 20
NAMESPACES = ("nn", "image", "vision", "random")
"""A name without a namespace means the operator of the first of these that has one: ``relu`` is ``nn.relu``."""
SYNONYMS = {"mul": "multiply", "sub": "subtract", "div": "divide", "neg": "negative", "pow": "power", "reduce_sum": "sum",
            "reduce_mean": "mean", "reduce_max": "max", "reduce_min": "min"}
"""Short names of lessons and of other languages, for operators that mean the same."""
NEIGHBOURS = {"dot": "nn.dense", "conv": "nn.conv2d", "convolution": "nn.conv2d", "linear": "nn.dense"}
"""What other languages call operators that are like Relay's, and not the same."""


class ReadingContext:
    """A text that is being read, or a part of it: its names, what its expressions have used, and the findings.

    ``calls`` and ``bodies`` are resolved by functions further down in the text.
    """

    parser: TokenCursor

    def __init__(self, source: SourceText, reading: Reading, name: str, begin: int, end: int) -> None:
        self.source, self.reading = source, reading
        self.text, self.begin, self.end = source.text, begin, end
        self.module = Module(name or source.name.rpartition("/")[2] or "relay", RELAY, source=source)
        self.graphs: list[Graph] = []
        self.constructors: dict[str, int] = {}
        self.calls: list[Node] = []
        self.bodies: list[tuple[Node, list[str]]] = []
        self.note_types: dict[str, Type] = {}
        self.loose = False
        """Whether bindings outside functions are being read."""
        self.constants: dict[str, Literal] = {}
        """Values of the metadata table."""
        self._fresh: dict[str, int] = {}
        self._told: set[str] = set()
        self._attributes: dict[str, frozenset[str]] = {}
        self._names: frozenset[str] | None = None

    def line(self, offset: int) -> int:
        return self.source.place(offset).line

    def place(self, offset: int) -> str:
        return str(self.source.place(offset))

    def fresh(self, name: str) -> str:
        """A free graph name; the last number of each is stored, because thousands of functions have no name."""
        wanted, n = name, self._fresh.get(name, 0)
        while wanted in self._fresh:
            n += 1
            wanted = f"{name}.{n}"
        self._fresh[name] = n
        self._fresh.setdefault(wanted, 0)
        return wanted

    def may_go_on(self) -> bool:
        """Whether another fault may be reported."""
        return sum(f.severity is Severity.ERROR for f in self.reading.findings) < MAX_ERRORS - 1

    def faulty(self, token: int) -> bool:
        """Whether a fault was reported after a token."""
        begin = self.parser.offsets[token]
        return any(f.severity is Severity.ERROR and f.offset >= begin for f in self.reading.findings)

    def operator_names(self) -> frozenset[str]:
        if self._names is None:
            self._names = frozenset((*declarations.names(), *(op.name for op in all_ops("relay"))))
        return self._names

    def meant(self, name: str) -> str:
        """The operator that a name without a namespace stands for; the name itself where it stands for none."""
        known = self.operator_names()
        if name in known:
            return name
        return next((full for space in NAMESPACES if (full := f"{space}.{name}") in known), SYNONYMS.get(name, name))

    def operator(self, name: str, offset: int) -> str:
        """The operator of a name; reports a short or unknown name once."""
        known, meant = self.operator_names(), self.meant(name)
        if name in known or name in self._told:
            return meant
        self._told.add(name)
        if meant != name:
            self.tell(SHORT_OPERATOR_NAME, offset, len(name), f"`{name}` is read as `{meant}`")
            return meant
        near = next((k for k in sorted(known) if k.endswith("." + name)), "") or NEIGHBOURS.get(name.rpartition("::")[2], "")
        near = f"did you mean {near}?" if near else did_you_mean(name, known)
        self.tell(UNKNOWN_OPERATOR, offset, len(name), f"unknown operator `{name}`", near)
        return name

    def attributes(self, name: str, attrs: Mapping[str, object], places: Mapping[str, int]) -> None:
        """Warn about each attribute that an operator does not have."""
        known = self._attributes.get(name)
        if known is None:
            found = declarations.declared(name)
            known = self._attributes[name] = frozenset(found.names) if found is not None else frozenset(attrs)
        for key in attrs:
            if key not in known and key in places:
                near = did_you_mean(key, known)
                has = f"it has {', '.join(sorted(known)) or 'none'}"
                near = near.replace("did you mean ", "did you mean `").replace("?", "`?") if near else has
                self.tell(UNKNOWN_ATTRIBUTE, places[key], len(key), f"`{name}` has no attribute `{key}`", near)

    def constant(self, key: str, type: Type) -> Literal:
        """The value of a reference into the metadata table; elided where the text has no table."""
        found = self.constants.get(key)
        if found is not None:
            return found
        return Literal(type, key, True)

    # ------------------------------------------------------------------ findings

    def error(self, fault: SyntaxFault) -> None:
        self.reading.ok = False
        self.tell(SYNTAX, fault.offset, fault.length, fault.message, fault.help)

    def tell(self, fault: Fault, offset: int, length: int, message: str, help: str = "") -> None:
        self.reading.findings.append(Finding(*fault, message, self.source, offset, length, help=help))
