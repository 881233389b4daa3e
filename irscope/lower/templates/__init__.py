"""Kernel templates: each lowers the groups that it supports to loops; the first that accepts a group builds it.

A template is a module in this folder with a ``TEMPLATE``, a :class:`Template`, and a row in ``TEMPLATES``. ``generic`` is the
last row and accepts everything, so a template may refuse whatever it does not do well.

The steps of lowering a group:

1. ``layout_constraints(group)``: before buffers are assigned, a template requests layouts of its inputs and outputs (order of
   dimensions, halo, pitch). Constraints that agree are met where irscope owns the memory; the program's inputs and outputs stay row-major.
   A template must check the Storage that it gets, and do without its constraint (or refuse in ``match``) when that is not met.
2. ``match(problem)``: now each input and output has a Storage. The template returns its own description of the work, or None to refuse.
3. ``schedule(problem, match)``: the choices, as data: a plain dict that can be printed and stored. A tuner, where there is one, also
   measures the template's ``alternatives`` and those of its rival (``RIVALS``), and takes the fastest.
4. ``build(problem, match, schedule)``: the kernels. Usually one stage; a template that needs several kernels returns several, with
   slots of its own as private memory between them. Weights in another order are passed as :class:`Packed`.

A kernel reads and writes through *operands*: a :class:`KernelOperand` describes the value at one operand position of one kernel (memory,
offset, strides, bounds). A value that a kernel reads twice has an operand for each position: a convolution may read its image from a copy
with room for the padding, and its kernel, or a value added to the result, from the value's own storage. Only
:class:`irscope.lower.call.KernelOperands` turns operands into buffers.

Kernels are shared: two groups of the same structure (operators, attributes, types, strides; not names, not offsets) get one kernel. So a
kernel must depend on nothing but what :func:`irscope.lower.kernels.key_of` covers.

In every template, :class:`irscope.lower.pull.Pull` emits the pointwise part of a group: it returns the value of any node of the group at an
index, and stores outputs; a template with an anchor first passes it the anchor's value at that index (``pull.give``).
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Generic, TypeVar

from irscope.fusion import Group
from irscope.graph import DType, Node
from irscope.lazy import Array
from irscope.lower.schedule import AVX512, VectorMachine
from irscope.lower.storage import LayoutConstraint, Storage
from irscope.lower.tile import Kernel, Schedule

TEMPLATES: tuple[str, ...] = (
    "attention", "winograd", "depthwise", "convolution", "contraction", "window",
    "rows", "reduction", "update", "transposition", "triangular", "cholesky", "map", "generic",
)
"""In order of precedence."""


@dataclass(slots=True, eq=False)
class Problem:
    """A group whose inputs and outputs have storage.

    ``ins`` holds the Storage of each input (``group.inputs``, and views of their sources), ``outs`` that of each output.
    ``constants`` has the arrays of the inputs that are known before the program runs. ``machine`` is the processor,
    ``threads`` says how many may work. ``in_place``: an output shares the memory of an input that is read element by
    element, so each element must be read before it is written, and computed once. ``stream``: outputs so large that they should be
    written with non-temporal stores, since nothing reads them soon. ``precision`` (exact, default, fast) is how close
    results must be to the definition. ``apart``: outputs that are written into private memory of the template, from which another
    stage copies them.
    """

    group: Group
    ins: dict[Node, Storage]
    outs: dict[Node, Storage]
    constants: dict[Node, Array] = field(default_factory=dict)
    name: str = "kernel"
    machine: VectorMachine = AVX512
    threads: int = 1
    in_place: bool = False
    stream: frozenset[Node] = frozenset()
    precision: str = "default"
    apart: frozenset[Node] = frozenset()

    @property
    def lanes(self) -> int:
        """The number of f32 in a vector of the machine."""
        return self.machine.words

    def operand(self, node: Node) -> KernelOperand:
        """The operand for an input or output in its own storage."""
        if node in self.apart:
            return KernelOperand(self.outs[node])
        return KernelOperand(self.outs[node] if node in self.outs else self.ins[node], node)


@dataclass(frozen=True, slots=True, eq=False)
class KernelOperand:
    """The location of the value at one operand position of one kernel, read or written.

    ``node`` is the input or output of the problem that ``storage`` belongs to; None where the template created the memory: a slot of scope
    ``temp`` that the stages of one group share and that lives as long as the group runs. ``around``: the zeros around the value
    (``Storage.room``) are read too.

    The kernel's buffer is a window of the slot: ``elements`` elements from ``begin`` on, which the launch passes. Element 0 of the value is
    element ``first`` of the buffer.
    """

    storage: Storage
    node: Node | None = None
    around: bool = False

    @property
    def begin(self) -> int:
        """The first element of the slot that the kernel may touch."""
        return self.storage.base - (self.storage.lead if self.around else 0)

    @property
    def elements(self) -> int:
        """The number of elements from there on that the kernel may access."""
        return self.storage.span_with_room if self.around else self.storage.span

    @property
    def first(self) -> int:
        """The place of element 0 of the value, counted from ``begin``."""
        return self.storage.offset - self.begin


@dataclass(frozen=True, slots=True, eq=False)
class Packed:
    """A constant input in another order, packed once before the first run: ``make`` gets the array (logical order) and returns a flat one,
    whose elements are ``dtype`` (the type of the computation, which may be wider than the input's).

    Two requests with equal ``key`` for the same constant share one copy.
    """

    node: Node
    dtype: DType
    key: tuple[object, ...]
    make: Callable[[Array], Array]


Arg = KernelOperand | Packed


@dataclass(slots=True, eq=False)
class LaunchStage:
    """One launch: the kernel, and its arguments in the order of ``kernel.params()``."""

    kernel: Kernel
    args: list[Arg]


@dataclass(slots=True, eq=False)
class Built:
    """The launches of a group, in order."""

    stages: list[LaunchStage]


M = TypeVar("M")


class Template(ABC, Generic[M]):
    """The interface of the ``TEMPLATE`` in each module of this folder. ``M`` describes the work: ``match`` returns it."""

    @property
    def name(self) -> str:
        """The name of the template's module."""
        return type(self).__module__.rpartition(".")[2]

    def layout_constraints(self, group: Group) -> dict[Node, LayoutConstraint]:
        """The layouts that the template requests for inputs and outputs; empty when any layout will do."""
        return {}

    @abstractmethod
    def match(self, problem: Problem) -> M | None:
        """The template's own description of the work, or None when it refuses the group."""

    def schedule(self, problem: Problem, match: M) -> Schedule:
        """The choices by rule."""
        return {}

    def alternatives(self, problem: Problem, match: M, schedule: Schedule) -> list[Schedule]:
        """Schedules that may be faster than the one by rule, the most promising first."""
        return []

    @abstractmethod
    def build(self, problem: Problem, match: M, schedule: Schedule) -> Built:
        """The kernels."""


RIVALS = {"winograd": "convolution"}
"""Templates that do the same work in another way: where the first accepts a group, a tuner tries the second too."""


@cache
def templates() -> tuple[Template[object], ...]:
    """The templates in order of precedence."""
    return tuple(import_module(f"{__name__}.{name}").TEMPLATE for name in TEMPLATES)
