"""What a stretch of a graph computes, in a few words: ``matmul 768x3072 + tanh``. For sections that the text does not name."""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from math import prod

from irscope.analysis.calls import BodyUse, body_use
from irscope.graph import Graph, Kind, Node, Op, TensorType
from irscope.graph.numbering import plain
from irscope.graph.walk import callees_first_of, post_order
from irscope.ops import attributes, hlo, sets

MAX_WORDS = 3
_PLAIN = sets.hlo("add subtract multiply divide negate maximum minimum select compare and or not reshape convert copy "
                  "transpose slice concatenate pad clamp abs sign reduce")
"""Operators that say little: a name holds them only where there is nothing else."""
_SILENT = sets.hlo("broadcast bitcast tuple get-tuple-element parameter constant iota fusion call")
"""Operators that say nothing."""
_IDIOMS: tuple[tuple[str, Op, frozenset[Op]], ...] = (
    ("softmax", hlo.exponential, hlo.named("reduce subtract divide")),
    ("norm", hlo.rsqrt, hlo.named("reduce multiply")),
)
"""Composites: the operator that stands for one, and those that must occur beside it. Their parts are often in several kernels."""
_CUBIC = re.compile(r"0\.0447\d*$|0\.0446\d*$")
"""The weight of the cube in the approximation of GELU by tanh, 0.044715, in every float type that models use."""


@dataclass(slots=True)
class _Work:
    """The operators of some nodes by name: contractions with their sizes, other operators that characterise them, and the rest."""

    contractions: Counter[str] = field(default_factory=Counter)
    special: Counter[Op] = field(default_factory=Counter)
    rest: Counter[Op] = field(default_factory=Counter)
    is_gelu: bool = False
    """Whether a constant of GELU occurs."""

    def add(self, node: Node) -> None:
        """Count one node, without its bodies."""
        op = node.op
        if op is hlo.dot:
            self.contractions[_product(node)] += 1
        elif op is hlo.convolution:
            self.contractions[_convolution(node)] += 1
        elif op in _PLAIN:
            self.rest[op] += 1
        elif op is hlo.constant:
            literal = attributes.Constant.literal.given(node)
            self.is_gelu |= literal is not None and literal.text is not None and _CUBIC.match(literal.text) is not None
        elif op.kind is not Kind.LEAF and op not in _SILENT and op.work not in ("constant", "free"):
            if op.work == "contraction":
                self.contractions[op.name] += 1
            else:
                self.special[op] += 1

    def update(self, other: _Work) -> None:
        """Count what is counted in ``other``."""
        self.contractions.update(other.contractions)
        self.special.update(other.special)
        self.rest.update(other.rest)
        self.is_gelu |= other.is_gelu

    def words(self) -> Counter[str]:
        """The operators that characterise the nodes by name; those that stand for a composite by its name."""
        occurring = {*self.special, *self.rest}
        names = {op: word for word, op, beside in _IDIOMS if beside <= occurring}
        if self.is_gelu:
            names[hlo.tanh] = "gelu"
        return Counter({names.get(op, op.name): n for op, n in self.special.items()})


class Naming:
    """Names stretches of graphs by their work; remembers the work of the bodies it has looked into."""

    def __init__(self) -> None:
        self._bodies: dict[Graph, _Work] = {}
        self._own: dict[Graph, _Work] = {}
        self._inner: dict[Graph, tuple[Graph, ...]] = {}
        self._n_callers: Counter[Graph] = Counter()
        self._trees: set[Graph] = set()
        """Graphs below which every graph has one caller."""

    def work_of(self, nodes: Iterable[Node]) -> str:
        """The contractions among nodes with their sizes, then the most frequent of the operators that characterise them.

        Looks into fusions and calls. The empty text where there is no work.
        """
        work = self._work(nodes)
        words = [f"{name} x{n}" if n > 1 else name for name, n in _frequent(work.contractions, MAX_WORDS - 1)]
        words += [name for name, _ in _frequent(work.words(), MAX_WORDS - len(words))]
        return " + ".join(words or [name for name, _ in _frequent(Counter({op.name: n for op, n in work.rest.items()}), MAX_WORDS - 1)])

    def kinds(self, graph: Graph, classes: list[int]) -> list[int]:
        """For each node of a graph a number that equal and similar nodes share, from the numbers (``classes``) that equal ones share.

        Two calls or fusions are similar when their results have one type and their bodies the same contractions and characteristic
        operators: a compiler repeats a residual sum in the fusions of one layer and not of the next.
        """
        numbers: dict[object, int] = {}
        known: dict[int, int] = {}
        found: list[int] = []
        for node, number in zip(graph.nodes, classes, strict=True):
            kind = known.get(number)
            if kind is None:
                key: object = number
                if node.bodies and body_use(node) is BodyUse.ONCE:
                    work = self._work((node,))
                    key = node.op.name, plain(node.type), frozenset(work.contractions), frozenset(work.special)
                kind = known[number] = numbers.setdefault(key, len(numbers))
            found.append(kind)
        return found

    def contractions_of(self, node: Node) -> Hashable | None:
        """A key that is equal for nodes with the same contractions of the same sizes; None for a node without contractions."""
        if not node.bodies and node.op.work != "contraction":
            return None
        found = self._work((node,)).contractions
        return (frozenset(found.items()), plain(node.type)) if found else None

    def _work(self, nodes: Iterable[Node]) -> _Work:
        work = _Work()
        for node in nodes:
            work.add(node)
            if node.bodies and body_use(node) is not BodyUse.ELEMENT:
                for body in node.bodies:
                    work.update(self._bodies.get(body) or self._look_into(body))
        return work

    def _look_into(self, body: Graph) -> _Work:
        """The work of a body and of all that it calls; each graph counts once."""
        order = callees_first_of([body], self._own)
        for graph in order:
            self._count(graph)
        for graph in order:
            self._total(graph)
        return self._bodies[body]

    def _count(self, graph: Graph) -> None:
        """Count the work of a graph alone, and the graphs that it calls."""
        work, inner = _Work(), dict[Graph, None]()
        for node in graph.nodes:
            work.add(node)
            if node.bodies and body_use(node) is not BodyUse.ELEMENT:
                inner.update(dict.fromkeys(node.bodies))
        self._own[graph], self._inner[graph] = work, tuple(inner)
        self._n_callers.update(inner.keys())

    def _total(self, graph: Graph) -> None:
        """Add up the work of a graph and of those below it.

        Where no graph below has two callers, these are the sums of the graphs that it calls: each level of nested calls then costs the
        same. Otherwise, and where a graph calls itself, all below it are collected, so that each counts once.
        """
        total = self._bodies[graph] = _Work()
        inner = self._inner[graph]
        if all(called in self._trees and self._n_callers[called] == 1 for called in inner):
            self._trees.add(graph)
            parts = [self._own[graph], *(self._bodies[called] for called in inner)]
        else:
            parts = [self._own[below] for below in post_order([graph], self._inner.__getitem__)]
        for part in parts:
            total.update(part)


def _frequent(counted: Counter[str], n: int) -> list[tuple[str, int]]:
    return sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:n]


def _product(node: Node) -> str:
    """The name of a matrix product: its contracted extent, and the extent that its right operand adds."""
    right = node.operands[1].type if len(node.operands) > 1 else None
    dims = attributes.Dot.of(node)
    if not isinstance(right, TensorType) or not right.is_static:
        return "matmul"
    shape = right.dims()
    inner = prod(shape[i] for i in dims.rhs_contracting_dims if i < len(shape))
    outer = prod(n for i, n in enumerate(shape) if i not in dims.rhs_contracting_dims and i not in dims.rhs_batch_dims)
    return f"matmul {inner}x{outer}"


def _convolution(node: Node) -> str:
    window = attributes.Windowed.of(node).window
    return "conv " + "x".join(map(str, window.size)) if window is not None and window.size else "conv"
