"""The properties of a format's operators. Later packages query a dialect for a capability, never for its name."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from irscope.graph.builder import Builder
from irscope.graph.node import Graph, Node


class Typing(Enum):
    """Where the types of a text come from."""

    STATED = "stated"        # each value states its type, and the reader checks it
    INFERRED = "inferred"    # inferred from the types of the inputs, operator by operator
    EXECUTED = "executed"    # found by running the program over abstract values


class Program(Protocol):
    """What a dialect can query of a module."""

    graphs: dict[str, Graph]
    attrs: dict[str, Any]

    def raw(self, node: Node) -> Mapping[str, str]:
        """The attributes of a node that were kept as text."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """The operators that a format writes. Each format declares one, in its ``dialect.py``.

    ``primitive``: its operators are the primitives, so nothing needs to be expanded.
    ``writes_in_place``: operators may write into the memory of their operands; the order of the text is then part of its meaning.
    ``broadcasts``: elementwise operators broadcast their operands to one shape.
    ``flushes_denormals``: the format's own compiler flushes denormal floats to zeros of their sign.
    ``default_policy`` is the fusion policy of the format's own compiler; "irscope" where irscope has no policy of it. ``gpu_policy`` is
    that of its compiler for GPUs, and ``gpu_sign(module)`` says what in a module shows that it was compiled for one (empty: nothing);
    both are empty where one compiler is for all devices. ``scope_separator`` separates the parts of a scope;
    ``scope_ends_with_operator`` says that its last part names the operation itself.
    ``instruction``, ``computation`` and ``module`` are the format's terms for a node, a graph and a whole text.
    ``translate(builder, node, operands)`` appends what the format's own compiler makes of a node when it translates a text to HLO, and
    returns the node that has its value, or None where it makes the same primitive; None where texts are not translated.
    ``scopes_vary``: some forms of a text state scopes and others do not; findings then do not depend on them.
    ``named_results``: each result of a node with several has a name of its own, under which machine output lists it.
    ``whole_text`` says how to get a text that elides nothing. ``styles`` are those that ``print_module(module, style, types)`` of the
    format writes; empty where it has one. ``no_program``: its texts record what a compiler made and cannot be run; this names what can.
    """

    name: str
    typing: Typing = Typing.STATED
    primitive: bool = False
    writes_in_place: bool = False
    broadcasts: bool = True
    flushes_denormals: bool = False
    default_policy: str = "irscope"
    gpu_policy: str = ""
    gpu_sign: Callable[[Program], str] | None = None
    scope_separator: str = "/"
    scope_ends_with_operator: bool = False
    scopes_vary: bool = False
    instruction: str = "node"
    computation: str = "graph"
    module: str = "module"
    named_results: bool = False
    whole_text: str = ""
    translate: Callable[[Builder, Node, Sequence[Node]], Node | None] | None = None
    styles: tuple[str, ...] = ()
    no_program: str = ""

    def __repr__(self) -> str:
        return self.name
