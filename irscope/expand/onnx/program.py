"""State shared by the constructs of an ONNX model during a run: graph under construction, attributes of the enclosing function."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from irscope.expand.frames import Framed, FramedProgram
from irscope.formats.onnx.algebra import Onnx
from irscope.graph import Graph, Module, Node
from irscope.ops.faults import TypeFault
from irscope.source import UserError

Values = list[Any]
"""Values of a run: nodes, lists of values (sequences), and None for optional values that are omitted."""
Measure = Callable[[Graph], int]
MAX_DEPTH = 100
"""Functions and bodies nested deeper than this are refused."""


class FramedOnnx(Framed, Onnx):
    """ONNX's algebra in the innermost frame."""

    def adopt(self, made: Any) -> Any:
        if isinstance(made, Node):
            return made if made in self._owner else self.own(made)
        return type(made)(self.adopt(part) for part in made) if isinstance(made, list | tuple) else made

    def is_outermost(self, node: Node) -> bool:
        """Whether a node is in the main graph, whose inputs the user gives."""
        owner = self._owner.get(node)
        return owner is None or owner.outer is None


class OnnxProgram(FramedProgram[FramedOnnx]):
    """The state of a run. Bodies are run by :meth:`call`."""

    def __init__(self, module: Module, measure: Measure | None) -> None:
        super().__init__(module, FramedOnnx)
        if measure is not None:
            self.t.measure = partial(self._measured, measure)
        self.scope: Mapping[str, Any] = {}
        """The attributes of the function that runs."""

    @abstractmethod
    def call(self, graph: Graph, arguments: Sequence[Any]) -> Values:
        """Run a graph; its captures follow its own parameters. The results are those that it returns."""

    def _measured(self, measure: Measure, node: Node) -> int:
        """The value of an integer scalar for the given inputs. Raises TypeFault inside a loop or a branch."""
        if self.t.frame.outer is not None or not self.t.is_outermost(node):
            raise TypeFault("it depends on data inside of a loop or a branch")
        return self.size_from_inputs(node, measure)

    @contextmanager
    def within(self, scope: Mapping[str, Any]) -> Iterator[None]:
        """Run a function with these attributes."""
        before, self.scope = self.scope, scope
        try:
            yield
        finally:
            self.scope = before

    def fault(self, node: Node, message: str, help: str = "") -> UserError:
        """The error of a node, with its name."""
        return UserError(f"%{node.name} = {node.op.name}: {message.removeprefix(node.op.name + ': ')}", help)
