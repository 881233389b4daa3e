"""The signature of an exported program: what its inputs and outputs are to the user.

    # inputs
    p_l_weight: PARAMETER target='l.weight'
    x: USER_INPUT
    # outputs
    add: BUFFER_MUTATION target='steps'
    linear: USER_OUTPUT
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from irscope.graph import Module
from irscope.graph.attributes import Attributes, attribute

USER_INPUT, USER_OUTPUT = "USER_INPUT", "USER_OUTPUT"
STATE = frozenset(("PARAMETER", "BUFFER", "CONSTANT_TENSOR"))
"""The inputs that the program itself holds."""
RESULTS = frozenset(("USER_OUTPUT", "LOSS_OUTPUT", "GRADIENT_TO_PARAMETER", "GRADIENT_TO_USER_INPUT"))
"""The outputs that a user gets: no mutations and no tokens."""

LINE = re.compile(r"[ \t]*(?P<name>[\w.]*): (?P<kind>[A-Z_]+)(?: target='(?P<target>[^'\n]*)')?(?: persistent=(?P<persistent>\w+))?[ \t]*$")
SPEC = re.compile(r"(?P<way>Input|Output)Spec\(kind=<(?:Input|Output)Kind\.(?P<kind>[A-Z_]+): \d+>, arg=(?P<class>\w+)\((?P<arg>[^()]*)\), "
                  r"target=(?:'(?P<target>[^'\n]*)'|None)(?:, persistent=(?P<persistent>\w+))?\)")
NAME = re.compile(r"\bname='([^']*)'")
RANGE = re.compile(r"(?:\{|\], )([^][:{}\n]+): (?:VR|ValueRanges)\[(-?\w+), (?=(-?\w+)\])")


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output: its kind in torch's words, its name in the graph (of a constant output: empty), and the path of its state."""

    kind: str
    name: str
    target: str = ""
    persistent: bool = True


@dataclass(slots=True)
class Signature:
    """The inputs and outputs of a program, in the order of the graph."""

    inputs: list[Port] = field(default_factory=list)
    outputs: list[Port] = field(default_factory=list)

    def __str__(self) -> str:
        """How many ports of each kind, for a summary."""
        counts = Counter(port.kind for port in [*self.inputs, *self.outputs])
        return ", ".join(f"{n} {kind.lower()}" for kind, n in counts.items())

    @property
    def state(self) -> frozenset[str]:
        """The names of the inputs that the program itself holds."""
        return frozenset(port.name for port in self.inputs if port.kind in STATE)

    def results(self) -> list[int]:
        """Which of the outputs a user gets."""
        return [i for i, port in enumerate(self.outputs) if port.kind in RESULTS]


class Exported(Attributes):
    """What an exported program has beyond its graphs and its interface (:class:`irscope.ops.module_attributes.Interface`)."""

    __slots__ = ()
    signature = attribute[Signature | None](None)


def sign(module: Module, signature: Signature) -> None:
    """Keep the signature of a module, and say which inputs are its state and which results a run gives."""
    module.attrs |= {"signature": signature, "weights": signature.state}
    if module.entry and signature.outputs:
        module.main().notes["results"] = signature.results()


def parse_signature(lines: Iterable[str]) -> Signature:
    """The signature that ``print(ep)`` writes after "Graph signature:", a line for each port, or as a repr (torch 2.1 to 2.5)."""
    signature = Signature()
    ports = signature.inputs
    for line in lines:
        if line.strip() == "# outputs":
            ports = signature.outputs
        found = LINE.match(line)
        if found is not None:
            ports.append(Port(found["kind"], found["name"], found["target"] or "", found["persistent"] != "False"))
            continue
        for spec in SPEC.finditer(line):
            name = NAME.search(spec["arg"])
            port = Port(spec["kind"], name[1] if name else "", spec["target"] or "", spec["persistent"] != "False")
            (signature.inputs if spec["way"] == "Input" else signature.outputs).append(port)
    return signature


def parse_ranges(text: str) -> dict[str, tuple[str, str]]:
    """``{s77: VR[2, int_oo]}``: the smallest and the largest value of each symbol, as torch writes them."""
    return {symbol: (low, high) for symbol, low, high in RANGE.findall(text)}
