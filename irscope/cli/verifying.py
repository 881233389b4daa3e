"""Whether graphs give the same numbers: ``irscope opt --verify`` and ``--bisect``."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from irscope.cli.progress import Progress
from irscope.graph import Graph, Module, Node, callees_first, rewrite
from irscope.graph.rewrite import copy_node
from irscope.lazy import Array, np
from irscope.ops.attrs import Literal
from irscope.source import UserError

MAX_REFERENCE = 2e8
"""Operations up to which the plain numpy reading is quick enough to verify with: a second or so."""

FIRST_CONSTANT = 1_000_000
"""Inputs are drawn by their number; constants by numbers from here on."""


@dataclass(frozen=True, slots=True)
class Difference:
    """How far results are from those before: ``fault`` says why they cannot be compared; ``largest`` is relative to the largest value."""

    squared: float = 0.0
    largest: float = 0.0
    fault: str = ""

    def within(self, rtol: float) -> bool:
        return not self.fault and self.largest <= rtol

    def told(self, rtol: float) -> str:
        """One line for the user."""
        verdict = "the same" if self.within(rtol) else "NOT the same"
        if self.fault:
            return f"verify: {self.fault}: {verdict}"
        return f"verify: mean squared error {self.squared:.3g}, largest {self.largest:.3g} of the largest value: {verdict}"


class Verifier:
    """Runs graphs on the same random inputs. Constants that the text leaves out are drawn too, once, and are the same in all graphs.

    The compiler itself runs some of the passes: ``passes`` names those to be verified, and where it would share their fault, the plain
    numpy reading runs the graphs instead, unless they are too large for it.
    """

    def __init__(self, first: Module, passes: Sequence[str], seed: int) -> None:
        self.seed = seed
        self.first = first
        self.passes = passes
        self.note = ""
        self._drawn: dict[int, Literal] = {}
        self._inputs: dict[str, Array] | None = None
        self._by_reference: bool | None = None
        self._last: tuple[Module, list[Array]] | None = None

    def difference(self, before: Module, after: Module) -> Difference:
        """How far the results of two graphs are apart."""
        wanted, got = self._outputs(before), self._outputs(after)
        self._last = after, got
        if len(wanted) != len(got):
            return Difference(fault=f"{len(wanted)} results before, {len(got)} after")
        return _difference(wanted, got)

    def _outputs(self, module: Module) -> list[Array]:
        if self._last is not None and self._last[0] is module:
            return self._last[1]
        self._prepare()
        made = _primitive(self._filled(module))
        if self._by_reference:
            return self._reference(made)
        from irscope.backends.model import compile_module
        from irscope.backends.pool import available_threads
        from irscope.lower.options import Options

        with Progress("compiling"):
            model = compile_module(made, options=Options(threads=available_threads()))
        with Progress("running"):
            return list(model(*[self._input(port.name) for port in model.inputs]))

    def _prepare(self) -> None:
        """Draw the inputs, once, for the first graph."""
        if self._inputs is not None:
            return
        from irscope.backends.arguments import drawn
        from irscope.backends.model import PASSES, ports_of
        from irscope.lower.kernels import flops_of_node

        made = _primitive(self._filled(self.first))
        ports = ports_of(made)[0]
        arrays = drawn(ports, range(len(ports)), self.seed, made.attrs.get("weights", ()))
        self._inputs = {port.name: arrays[i] for i, port in enumerate(ports)}
        shared = sorted(set(PASSES) & set(self.passes))
        small = sum(flops_of_node(n) for g in callees_first(made, made.main()) for n in g.nodes) <= MAX_REFERENCE
        self._by_reference = bool(shared) and small
        if shared and not small:
            self.note = f"the compiler runs {', '.join(shared)} too, on both graphs: a fault in it would not show"

    def _input(self, name: str) -> Array:
        assert self._inputs is not None
        if name not in self._inputs:
            raise UserError(f"the graph after the passes takes %{name}, which the graph before does not")
        return self._inputs[name]

    def _reference(self, made: Module) -> list[Array]:
        from irscope.backends.model import ports_of, require_sound
        from irscope.backends.varying import reference_results

        require_sound(made)
        with Progress("interpreting"):
            return reference_results(made, [self._input(port.name) for port in ports_of(made)[0]])

    def _filled(self, module: Module) -> Module:
        """The module with a value for every constant that the text leaves out."""
        order = callees_first(module)
        elided = [n for g in order for n in g.nodes if n.op.name == "constant" and n.attrs["literal"].elided]
        if not elided:
            return module
        from irscope.backends.arguments import draw
        from irscope.backends.executable import Port
        from irscope.graph import TensorType

        for node in elided:
            literal, type = node.attrs["literal"], node.type
            if id(literal) not in self._drawn:
                if not isinstance(type, TensorType):
                    raise UserError(f"the text does not say the type of the constant %{node.name}, so no value can be drawn for it")
                port = Port(node.name, type.dtype, type.dims())
                self._drawn[id(literal)] = Literal.of(draw(port, self.seed, FIRST_CONSTANT + len(self._drawn)), type)
        became: dict[Graph, Graph] = {}

        def rule(builder: Any, node: Node, operands: Sequence[Node]) -> Node | None:
            if node.op.name != "constant" or not node.attrs["literal"].elided:
                return None
            made = copy_node(builder, node, operands)
            made.attrs = {"literal": self._drawn[id(node.attrs["literal"])]}
            return made
        for graph in order:
            became[graph] = rewrite(graph, rule, became, keep_dead=True)
        made = module.derived()
        made.graphs = {name: became[graph] for name, graph in module.graphs.items()}
        return made


def _primitive(module: Module) -> Module:
    """The module as a graph of tensors; programs are run with the types that they say."""
    from irscope.backends.opening import needs_opening, opened
    from irscope.expand import expand

    return expand(opened(module, {}, {}, {}, {}, {}, None) if needs_opening(module) else module)


def _difference(wanted: list[Array], got: list[Array]) -> Difference:
    """The mean squared error over all results, and the largest error, relative to the largest value of its result."""
    squared = largest = size = 0.0
    for number, (a, b) in enumerate(zip(wanted, got, strict=True)):
        if a.shape != b.shape:
            return Difference(fault=f"result {number} has the shape {list(a.shape)} before and {list(b.shape)} after")
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        x, y = np.asarray(a, wide), np.asarray(b, wide)
        with np.errstate(invalid="ignore"):
            away = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
        away = np.where(np.isnan(away), np.inf, away)
        squared += float(np.sum(away * away))
        size += x.size
        scale = float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0))
        largest = max(largest, float(np.max(away, initial=0.0)) / max(scale, 1e-30) if np.any(away) else 0.0)
    return Difference(squared / max(size, 1), largest)
