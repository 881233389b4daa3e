"""Infers shapes for a TorchScript text that leaves them open, by running the program over the shapes of its inputs.

    graph(%x : Tensor):                             --shape x=2,8        graph(%x : Float(2, 8)):
      %y : Tensor = aten::linear(%x, %w, %b)                               %y : Float(2, 4) = aten::linear(%x, %w, %b)
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from irscope.expand.frames import NotAround
from irscope.expand.torchscript.inputs import bound_symbols
from irscope.expand.torchscript.interpreter import TorchInterpreter
from irscope.expand.torchscript.program import Given, Misfit
from irscope.expand.torchscript.weights import UnsolvedWeight
from irscope.formats.torchscript.abstract import Tensor
from irscope.formats.torchscript.types import plain_type
from irscope.graph import DTYPES, Module, NamedType, Node, TensorType, Type, rewrite_module
from irscope.graph.dtypes import F32
from irscope.ops import TypeFault
from irscope.source import UserError, did_you_mean


def with_shapes(module: Module, shapes: Mapping[str, tuple[int, ...]], dtypes: Mapping[str, str]) -> Module:
    """The module with the shapes of inputs and of all values that depend on them, as far as the program can be run.

    Inputs are named as in the text or ``argN``, objects not counted; the element type defaults to float32.
    Raises UserError for a name that is not an input, and where an operator does not take the shapes.
    """
    params = [p for p in module.main().params if not (isinstance(p.type, NamedType) and "__torch__" in p.type.name)]
    names = {p.name: p for p in params} | {f"arg{i}": p for i, p in enumerate(params)}
    given: dict[str, Any] = {}
    for name in dict.fromkeys([*shapes, *dtypes]):
        if name not in names:
            known = ", ".join(p.name for p in params)
            raise UserError(f"there is no input {name!r}", did_you_mean(name, names) or f"the inputs are {known}")
        param = names[name]
        own = param.type if isinstance(param.type, TensorType) else None
        shape = shapes.get(name, own.shape if own is not None else None)
        if shape is None or not all(isinstance(d, int) for d in shape):
            raise UserError(f"the text does not say the shape of input {name}, whose element type is given", f"add --shape {name}=...")
        given[param.name] = TensorType(DTYPES[dtypes[name]] if name in dtypes else own.dtype if own is not None else F32, shape)
    made = _retyped(module, types_of_run(module, Given(given)))
    made.attrs["symbols"] = bound_symbols(params, given)
    return made


def types_of_run(module: Module, given: Given) -> dict[Node, Type]:
    """The types of nodes in a run of the program, for those whose text has another type or none.

    Raises UserError where an operator does not take the shapes.
    """
    seen = TypesSeen()
    try:
        TorchInterpreter(module, given, seen.at_once).run()
    except Misfit:
        raise
    except UserError:
        pass  # the types found so far are valid; an operator that does not run keeps the type of the text
    types = seen.types()
    assert types is not None, "nothing was left for later"
    return types


class TypesSeen:
    """Records the types of values during a run: :class:`TorchInterpreter` calls :meth:`at_once` or :meth:`later`."""

    def __init__(self) -> None:
        self._found: dict[Node, TensorType | None] = {}
        self._weights: dict[Node, UnsolvedWeight] = {}
        self._open: list[tuple[Node, Tensor, object]] = []

    def at_once(self, node: Node, value: object) -> None:
        """Record the value of a node. Builds a view or a deferred value in order to know its type."""
        if isinstance(value, UnsolvedWeight) and not value.solved:
            self._weights[node] = value
        elif isinstance(value, Tensor):
            self._note(node, value)

    def later(self, node: Node, value: object) -> None:
        """Record the value of a node for a run whose graph is kept: views and deferred values are built at the end."""
        if isinstance(value, Tensor) and not isinstance(value, UnsolvedWeight) and not value.built:
            self._open.append((node, value, value.state))
        else:
            self.at_once(node, value)

    def types(self) -> dict[Node, Type] | None:
        """The types that the text does not have; None where a recorded view was written to later, so its type then is unknown."""
        for node, value, state in self._open:
            if value.state != state:
                return None
            with suppress(NotAround, TypeFault):  # a value of a loop body that is complete, or an invalid view that no operator reads
                self._note(node, value)
        for node, weight in self._weights.items():
            if weight.solved:
                type = weight.get().type
                self._found[node] = type if isinstance(type, TensorType) else None
        return {node: plain_type(type) for node, type in self._found.items() if type is not None and not _says(node.type, type)}

    def _note(self, node: Node, value: Tensor) -> None:
        type = value.get().type
        assert isinstance(type, TensorType)
        # A node that runs several times with different shapes has no type to record.
        self._found[node] = type if node not in self._found or self._found[node] == type else None


def _says(text: Type, type: TensorType) -> bool:
    """Whether the text already has the type."""
    return isinstance(text, TensorType) and text.dtype is type.dtype and text.shape == type.shape


def _retyped(module: Module, types: Mapping[Node, Type]) -> Module:
    made = rewrite_module(module, lambda builder, node, operands: None, keep_dead=True)
    for graph in made.graphs.values():
        for node in graph.nodes:
            node.type = types.get(node.origin[0], node.type)
    return made
