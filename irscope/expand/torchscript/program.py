"""State shared by the constructs of a TorchScript program during an abstract run: what is given, built, assigned and missing."""
from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from irscope.expand.frames import FramedProgram
from irscope.expand.torchscript.frames import FramedTorch
from irscope.expand.torchscript.kinds import Kinds
from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.strides import preserved
from irscope.graph import DType, Graph, Module, Node, TensorType
from irscope.lazy import Array
from irscope.ops import hlo
from irscope.ops.sets import torchscript
from irscope.source import UserError
from irscope.source.budget import NODES

RECURRENT_OPERATORS = torchscript("lstm gru rnn_tanh rnn_relu")
"""Operators that read the parameters of a module as a list."""


@dataclass(slots=True)
class Given:
    """What the user passes: input types or numbers by name, weights by state-dict path, values of elided constants by value name.

    ``measure`` runs a graph whose result is one integer over the actual inputs: sizes that depend on data are computed by it.
    ``limit`` bounds the number of operators of the unrolled program. ``outline``: a constant whose value the text elides is a
    parameter of its type, for callers that do not run the program.
    """

    inputs: Mapping[str, TensorType | int | float | bool | str | None] = field(default_factory=dict)
    weights: Mapping[str, TensorType] = field(default_factory=dict)
    constants: Mapping[str, Array] = field(default_factory=dict)
    measure: Callable[[Graph], int] | None = None
    limit: int = NODES
    outline: bool = False


class Misfit(UserError):
    """An operator does not accept its arguments."""


class TorchProgram(FramedProgram[FramedTorch]):
    """The state of a run: the module, the graph under construction, and objects. Branches, loops and calls run graphs by :meth:`call`.

    ``attributes`` maps paths to values of objects, ``assigned`` has the paths that the program set. ``weights`` are parameters of the main
    graph by state-dict path; ``has_unsolved``: the shape of one of them was unknown at its first use. ``missing`` are nodes whose
    operator is unknown, by its name. ``autocast`` is the innermost region of :mod:`~irscope.expand.torchscript.autocast`, or None.
    """

    def __init__(self, module: Module, given: Given) -> None:
        super().__init__(module, FramedTorch)
        self.given = given
        if given.measure is not None:
            self.t.measure = partial(self.size_from_inputs, measure=given.measure)
        self.attributes: dict[str, object] = {}
        self.assigned: set[str] = set()
        self.missing: dict[str, list[Node]] = {}
        self.runs: Counter[Node] = Counter()
        self.steps = 0
        self.weights: dict[str, Tensor] = {}
        self.has_unsolved = False
        self.autocast: object = None
        self._recurrent: dict[Node, str] | None = None

    @abstractmethod
    def call(self, graph: Graph, arguments: Sequence[object]) -> list[Any]:
        """Run a graph; the results are those of its ``return``."""

    @abstractmethod
    def operator(self, node: Node, name: str, values: list[Any]) -> Any:
        """Apply an operator of torch to values."""

    @abstractmethod
    def step(self, node: Node, count: int = 1) -> None:
        """Count the run of a node, or work like that of several. Raises BudgetExceeded after too many."""

    @abstractmethod
    def named(self, node: Node, target: str, values: list[Any]) -> Any:
        """Apply the operator of a target to the operands of a node, the last of them by the keywords of the node."""

    def cast(self, value: Tensor, kind: DType) -> Tensor:
        """A copy of a tensor in another element type."""
        layout = value.layout
        return Tensor(self.t.here(self.t.convert(value.get(), kind)), layout=preserved(layout) if layout is not None else None)

    def parameter(self, type: TensorType, node: Node, name: str = "") -> Node:
        """A parameter of the main graph, whichever frame is under construction."""
        frame = self.t.frame
        while frame.outer is not None:
            frame = frame.outer
        made = frame.builder.param(hlo.parameter, type, name or node.name)
        made.loc, made.origin = node.loc, (node,)
        self.t._owner[made] = frame
        return made

    def recurrent_module(self, weights: Node) -> str | None:
        """The path of the module whose recurrent operator reads a list of weights, as the scope of the operator has it: empty for the
        root, None where no such operator reads the list."""
        if self._recurrent is None:
            nodes = (node for graph in self.module.graphs.values() for node in graph.nodes if node.op in RECURRENT_OPERATORS)
            self._recurrent = {operand: self.module.scope(node).replace("/", ".") for node in nodes for operand in node.operands}
        return self._recurrent.get(weights)

    def where(self, node: Node) -> str:
        """`` (file.py:4)``, where the text has it."""
        stack = self.module.call_stack(node)
        return f" ({stack[0]})" if stack else ""

    def fault(self, node: Node, message: str, help: str = "") -> Misfit:
        """The error of a node, with its place."""
        place = self.module.source.place(node.loc) if node.loc >= 0 else None
        at = f"{self.module.source.name}:{place}: " if place else ""
        return Misfit(f"{at}%{node.name} = {node.op.name}: {message}{self.where(node)}", help)


Handler = Callable[[TorchProgram, Node, list[Any]], object]
"""Runs a node on the values of its operands."""


class Handlers(dict[str, Handler]):
    """The functions that run nodes, by the names of their operators."""

    def taking(self, *names: str, kinds: str = "any*") -> Callable[[Handler], Handler]:
        """Declare the function that runs nodes of these names; ``kinds`` of their operands as for ``Kinds``."""
        wanted = Kinds(kinds)

        def enter(function: Handler) -> Handler:
            def checked(program: TorchProgram, node: Node, values: list[Any]) -> object:
                wanted.check(values)
                return function(program, node, values)
            self.update(dict.fromkeys(names, checked))
            return function
        return enter
