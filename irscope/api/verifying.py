"""Whether graphs compute the same results: ``irscope.verify``, ``opt --verify`` and ``--bisect``."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from irscope.analysis.rounding import coarsest_types
from irscope.analysis.soundness import Use, require
from irscope.api.loading import Source, first_module, whole
from irscope.api.verification import RTOL, Verification
from irscope.api.watching import SILENT, Watcher
from irscope.backends.arguments import draw, drawn
from irscope.backends.comparison import tolerance
from irscope.backends.executable import Port
from irscope.backends.model import PASSES, compile_module, ports_of, require_sound
from irscope.backends.opening import Bindings, needs_opening, opened
from irscope.backends.varying import reference_results
from irscope.expand import expand
from irscope.expand.bind import elided_constants
from irscope.expand.specialise import has_open_sizes, specialised
from irscope.graph import Builder, Graph, Module, Node, TensorType, callees_first, rewrite
from irscope.graph.rewrite import copy_node
from irscope.lazy import Array, np
from irscope.lower.kernels import flops_of_node
from irscope.lower.options import Options
from irscope.ops.attributes import Constant
from irscope.ops.attrs import Literal
from irscope.ops.module_attributes import Prepared
from irscope.source import UserError
from irscope.source.cores import available_threads

MAX_REFERENCE = 2e8
"""The most operations for which the numpy interpreter is fast enough to verify with: about a second."""

FIRST_CONSTANT = 1_000_000
"""Inputs are drawn by their number; constants by numbers from here on."""


def verify(before: Source, after: Source, *, rtol: float | None = None, seed: int = 0, watch: Watcher = SILENT) -> Verification:
    """Run two graphs on the same random inputs (drawn from ``seed``) and compare their results.

    ``rtol`` is relative to the largest value of a result. By default it is :data:`RTOL`, and for results that were rounded to narrower
    types than f32 the tolerance of those types. Raises :class:`irscope.UserError` if one cannot be read or run, and for a negative seed or
    tolerance.

    >>> double = "ENTRY main {{ p = f32[8] parameter(0)\\n ROOT n = f32[8] {}(p, p) }}"
    >>> verify(double.format("add"), double.format("subtract")).same
    False
    """
    if seed < 0 or not (rtol is None or rtol >= 0):
        raise UserError(f"seed is {seed}, and rtol {rtol}", "they are numbers from 0")
    readings = whole(before), whole(after)
    first, second = (first_module(reading, watch) for reading in readings)
    require(readings[0], first, Use.RUN)
    require(readings[1], second, Use.RUN)
    return Verifier(first, (), seed, rtol, watch).compare(first, second)


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a graph, and how far two ways to compute it may differ, relative to its largest value."""

    value: Array
    tolerance: float


class Verifier:
    """Runs graphs on the same random inputs. Elided constants are drawn too, once, and are the same in all graphs.

    The compiler itself runs some of the passes: ``passes`` names those to be verified, and if the compiler could have the same defect, the
    numpy interpreter runs the graphs instead, unless they are too large for it.
    """

    def __init__(self, first: Module, passes: Sequence[str], seed: int, rtol: float | None = None, watch: Watcher = SILENT) -> None:
        self.seed, self.rtol, self.watch = seed, rtol, watch
        self.first = first
        self.passes = passes
        self._note = ""
        self._drawn: dict[int, Literal] = {}
        self._inputs: dict[str, Array] | None = None
        self._by_reference: bool | None = None
        self._last: tuple[Module, list[Result]] | None = None

    def compare(self, before: Module, after: Module) -> Verification:
        """The difference between the results of two graphs."""
        wanted, got = self._results(before), self._results(after)
        self._last = after, got
        if len(wanted) != len(got):
            return Verification(fault=f"{len(wanted)} results before, {len(got)} after", rtol=self.rtol or RTOL, note=self._note)
        allowed = [self.rtol if self.rtol is not None else max(RTOL, a.tolerance, b.tolerance) for a, b in zip(wanted, got, strict=True)]
        exact = self.rtol is None or self.rtol <= RTOL
        return replace(_difference([a.value for a in wanted], [b.value for b in got], allowed, exact), note=self._note)

    def _results(self, module: Module) -> list[Result]:
        if self._last is not None and self._last[0] is module:
            return self._last[1]
        self._prepare()
        made = _primitive(self._filled(module))
        return [Result(array, tolerance(array.dtype.name, way) if array.dtype.kind not in "biu" else 0.0)
                for array, way in zip(self._outputs(made), coarsest_types(made), strict=True)]

    def _outputs(self, made: Module) -> list[Array]:
        if self._by_reference:
            require_sound(made)
            with self.watch.stage("interpreting"):
                return reference_results(made, [self._input(port) for port in ports_of(made)[0]])
        with self.watch.stage("compiling"):
            model = compile_module(made, options=Options(threads=available_threads()))
        with self.watch.stage("running"):
            return list(model(*[self._input(port) for port in model.inputs]))

    def _prepare(self) -> None:
        """Draw the inputs, once, for the first graph."""
        if self._inputs is not None:
            return
        made = _primitive(self._filled(self.first))
        ports = ports_of(made)[0]
        arrays = drawn(ports, range(len(ports)), self.seed, Prepared.of(made).weights)
        self._inputs = {port.name: arrays[i] for i, port in enumerate(ports)}
        shared = sorted(set(PASSES) & set(self.passes))
        small = sum(flops_of_node(n) for g in callees_first(made, made.main()) for n in g.nodes) <= MAX_REFERENCE
        self._by_reference = bool(shared) and small
        if shared and not small:
            self._note = f"the compiler runs {', '.join(shared)} too, on both graphs: a fault in it would not show"

    def _input(self, port: Port) -> Array:
        assert self._inputs is not None
        if port.name not in self._inputs:
            raise UserError(f"the graph after the passes takes %{port.name}, which the graph before does not")
        array = self._inputs[port.name]
        if not port.takes(array.shape) or array.dtype != port.dtype.numpy():
            types = f"{port.dtype}{list(port.shape)} in one graph, and {array.dtype}{list(array.shape)} in the other"
            raise UserError(f"%{port.name} is {types}")
        return array

    def _filled(self, module: Module) -> Module:
        """The module with a value for every elided constant."""
        elided = set(elided_constants(module))
        if not elided:
            return module
        for graph in (order := callees_first(module)):
            for node in graph.nodes:
                if node in elided:
                    self._draw(node)
        became: dict[Graph, Graph] = {}

        def rule(builder: Builder, node: Node, operands: Sequence[Node]) -> Node | None:
            if node not in elided:
                return None
            made = copy_node(builder, node, operands)
            made.attrs = {"literal": self._drawn[id(Constant.of(node).literal)]}
            return made
        for graph in order:
            became[graph] = rewrite(graph, rule, became, keep_dead=True)
        made = module.derived()
        made.graphs = {name: became[graph] for name, graph in module.graphs.items()}
        return made

    def _draw(self, node: Node) -> None:
        """Draw the value of a constant, if its literal has none yet."""
        literal, type = Constant.of(node).literal, node.type
        if id(literal) in self._drawn:
            return
        if not isinstance(type, TensorType):
            raise UserError(f"the text does not say the type of the constant %{node.name}, so no value can be drawn for it")
        port = Port(node.name, type.dtype, type.dims())
        self._drawn[id(literal)] = Literal.of(draw(port, self.seed, FIRST_CONSTANT + len(self._drawn)), type)


def _primitive(module: Module) -> Module:
    """The module as a graph of tensors; programs are run with the types that they declare, and sizes that follow from others are set."""
    made = expand(opened(module, Bindings()) if needs_opening(module) else module)
    return specialised(made, {}) if has_open_sizes(made) else made


BLOCK = 1 << 20
"""Elements that are compared at a time: results may be large, and are widened to compare them."""


def _difference(wanted: list[Array], got: list[Array], allowed: Sequence[float], exact: bool) -> Verification:
    """The difference of results, each of which may differ by its part of ``allowed``.

    ``exact``: integers that differ are a fault too, however large they are.
    """
    squared = size = 0.0
    worst = -1.0, 0.0, RTOL  # the error by its tolerance, the error, the tolerance
    fault = ""
    for number, (a, b) in enumerate(zip(wanted, got, strict=True)):
        if a.shape != b.shape:
            fault = f"result {number} has the shape {list(a.shape)} before and {list(b.shape)} after"
            return Verification(fault=fault, rtol=allowed[number])
        wide = np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64
        scale = furthest = 0.0
        unequal = 0
        for at in range(0, a.size, BLOCK):
            here, there = (array.reshape(-1)[at:at + BLOCK] for array in (a, b))
            x, y = (np.asarray(array, wide) for array in (here, there))
            with np.errstate(invalid="ignore", over="ignore"):
                away = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0.0, np.abs(x - y))
                away = np.where(np.isnan(away), np.inf, away)
                squared += float(np.sum(away * away))
            if exact and {a.dtype.kind, b.dtype.kind} <= set("biu"):
                unequal += int(np.count_nonzero(here != there))  # f64 does not tell large integers apart
            scale = max(scale, float(np.max(np.abs(x[np.isfinite(x)]), initial=0.0)))
            furthest = max(furthest, float(np.max(away, initial=0.0)))
        if unequal and not fault:
            fault = f"{unequal} of {a.size} integers of result {number} differ"
        size += a.size
        error = furthest / max(scale, 1e-30) if furthest else 0.0
        worst = max(worst, (error / allowed[number] if allowed[number] else inf if error else 0.0, error, allowed[number]))
    return Verification(squared / max(size, 1), worst[1], fault, worst[2])
