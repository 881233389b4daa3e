"""Operators, nodes and graphs, which refer to each other, and the interfaces through which an operator defines what it computes."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Any, Protocol

from irscope.graph.dtypes import DType
from irscope.graph.types import Type
from irscope.lazy import Array
from irscope.source.budget import tick
from irscope.source.errors import UserError
from irscope.source.notebook import Viewable

PRIMITIVE = "hlo"
"""The dialect of the primitives."""


class Effect(Enum):
    """The side effect of a node. Dead-code elimination, CSE and scheduling read this alone."""

    PURE = "pure"
    READS = "reads"        # depends on state: must not move over a write
    WRITES = "writes"      # changes state: must stay, in order
    CONTROL = "control"    # raises, sends, receives: must stay, in order


class Kind(IntEnum):
    """How an operator takes part in fusion, from free to never (after TVM's OpPatternKind, plus windows and movement)."""

    ELEMENTWISE = 0    # result element i needs operand elements i
    BROADCAST = 1      # result element i needs one operand element, in order (broadcast)
    INJECTIVE = 2      # result element i needs one operand element, anywhere (transpose, slice, gather, pad)
    REDUCTION = 3      # several operand elements make one
    CONTRACTION = 4    # dot, convolution: an epilogue may follow
    TUPLE = 5          # tuple, get: no work
    LEAF = 6           # parameter, constant
    OPAQUE = 7         # never fuses


WORK = {Kind.ELEMENTWISE: "elementwise", Kind.BROADCAST: "movement", Kind.INJECTIVE: "movement", Kind.REDUCTION: "reduction",
        Kind.CONTRACTION: "contraction", Kind.TUPLE: "free", Kind.LEAF: "constant", Kind.OPAQUE: "custom"}
"""The class of work of operators that declare no other; :mod:`irscope.analysis.classes` has all classes."""


@dataclass(frozen=True, slots=True, eq=False)
class Op:
    """One declaration of an operator: everything irscope knows of it.

    ``dialect`` is ``hlo`` (the primitives, and what expands to them), ``torchscript`` or ``relay``.
    ``infer(node)`` returns the result type from operands, attributes and bodies (``node.type`` is the declared type, which ops
    whose result cannot be inferred keep) and raises :class:`irscope.ops.TypeFault`.
    ``reference(run, node, *arrays)`` computes it with numpy; ``run(graph, arrays)`` evaluates a body.
    ``scalar``, ``element`` and ``nest`` are its meaning for code generation, see :class:`Emitter`: at least one for a
    primitive, none where ``expand`` is given. Where both ``element`` and ``nest`` are given, ``whole(node)`` says for which nodes
    the nest is the one to take (a running sum written as a window over everything).
    ``expand(builder, node, operands, raw)`` appends the expansion and returns the node that has its value, or None where
    this node stays as it is; ``raw`` holds the attributes that the format kept as text (``module.raw(node)``).
    ``cost(node)`` gives FLOPs (default: none for movement, one an element otherwise). ``weight`` says how many additions one of them takes
    as long as: 4 for a division or a root, 12 for a polynomial of degree 5 to 7 with its range reduction (fusion weighs repeated work by
    it, estimates multiply by it).
    ``work`` is the class of work (default: that of its ``kind``; "unknown" for what is not ``known``). ``traits`` are further promises:
    ``commutative associative idempotent involution``; ``view`` (the result shows the memory of operand 0), ``dense-view`` (a view where
    the elements of operand 0 lie one after another), ``cast``, ``dropout``, ``reads-values`` (the type depends on operands' values).
    ``acts(node)`` is whether a node of a pure operator has an effect by its attributes: a custom call may state one.
    """

    name: str
    dialect: str = PRIMITIVE
    doc: str = ""
    kind: Kind = Kind.OPAQUE
    effect: Effect = Effect.PURE
    infer: Callable[[Node], Type] | None = None
    reference: Reference | None = None
    scalar: ScalarMeaning | None = None
    element: ElementMeaning | None = None
    nest: NestMeaning | None = None
    whole: Callable[[Node], bool] | None = None
    expand: Callable[..., object] | None = None
    cost: Callable[[Node], float] | None = None
    known: bool = True
    traits: frozenset[str] = frozenset()
    weight: int = 1
    work: str = ""
    acts: Callable[[Node], bool] | None = None

    def __post_init__(self) -> None:
        if not self.work:
            object.__setattr__(self, "work", WORK[self.kind] if self.known else "unknown")

    @property
    def is_primitive(self) -> bool:
        """Whether it is one of the primitives, to which all other operators expand."""
        return self.dialect == PRIMITIVE

    def __repr__(self) -> str:
        return self.name


def unknown_op(name: str, dialect: str, work: str = "unknown") -> Op:
    """An operator that irscope has no declaration for: opaque, kept and shown. Create one per name and module, and share it."""
    return Op(name, dialect, known=False, effect=Effect.CONTROL, work=work)


NO_ATTRS: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Node:
    """One operation and its result.

    ``operands`` are the nodes whose values it reads; ``attrs`` its parsed attributes, shared between nodes and never changed
    in place; ``bodies`` the graphs it calls; ``loc`` the offset of its text in the module's source (-1: none);
    ``index`` its place in ``graph.nodes``; ``origin`` the nodes of the earlier graph that it stands for.
    ``synthetic`` marks a node that the text does not write (a ``get`` of a multi-result operator): neither shown nor counted.
    """

    op: Op
    name: str
    type: Type
    operands: tuple[Node, ...] = ()
    attrs: Mapping[str, Any] = field(default_factory=lambda: NO_ATTRS)
    bodies: tuple[Graph, ...] = ()
    loc: int = -1
    index: int = -1
    origin: tuple[Node, ...] = ()
    synthetic: bool = False

    def __repr__(self) -> str:
        return f"%{self.name} = {self.type} {self.op.name}({', '.join('%' + o.name for o in self.operands)})"


@dataclass(slots=True, eq=False)
class Graph(Viewable):
    """Nodes in definition order (operands before users), the parameters, and the node whose value is the result.

    Bodies are closed: a graph refers to its own nodes only. ``params[i]`` is the parameter of number i.
    ``root`` is None only in a graph whose text is truncated. ``loc`` is where its text begins.
    ``notes`` holds what a format keeps for itself (execution_thread, signature).
    """

    name: str
    nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)
    root: Node | None = None
    loc: int = -1
    notes: dict[str, Any] = field(default_factory=dict)

    def result(self) -> Node:
        """The root. Raises UserError where the text has none: it is cut off, or its return cannot be read."""
        if self.root is None:
            raise UserError(f"{self.name} has no result", "the text may be cut off, or an error precedes its return")
        return self.root

    def add(self, node: Node) -> Node:
        """Append a node and number it. Raises BudgetExceeded where the file exceeds its budget."""
        tick()
        node.index = len(self.nodes)
        self.nodes.append(node)
        return node

    def hold(self, nodes: list[Node]) -> None:
        """Replace the nodes of the graph by these, in this order, and number them."""
        self.nodes = nodes
        for index, node in enumerate(nodes):
            node.index = index

    def users(self) -> list[list[Node]]:
        """For each node, by index, the nodes that read its value, each once, in order."""
        users: list[list[Node]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for operand in node.operands:
                mine = users[operand.index]
                if not mine or mine[-1] is not node:
                    mine.append(node)
        return users

    def shown(self) -> Iterator[Node]:
        """The nodes that the text writes."""
        return (n for n in self.nodes if not n.synthetic)

    def __repr__(self) -> str:
        return f"<graph {self.name}: {len(self.nodes)} nodes>"


Number = complex
"""A number of Python: bool and int and float are ones too."""
Own = Any
"""A value of the emitter's own making: an emitter takes no others, so that it need not say more than Value of what it gives."""


class Value(Protocol):
    """A value during code generation. ``+ - *`` work on integer (index) values and Python ints, with folding.

    ``//`` and ``%`` are by positive ints.
    """

    @property
    def dtype(self) -> DType: ...
    @property
    def lanes(self) -> int: ...
    def __add__(self, other: Value | int) -> Value: ...
    def __radd__(self, other: Value | int) -> Value: ...
    def __sub__(self, other: Value | int) -> Value: ...
    def __rsub__(self, other: Value | int) -> Value: ...
    def __mul__(self, other: Value | int) -> Value: ...
    def __rmul__(self, other: Value | int) -> Value: ...
    def __floordiv__(self, other: Value | int) -> Value: ...
    def __mod__(self, other: Value | int) -> Value: ...


class RegisterHandle(Protocol):
    """A variable of the generated code."""

    def get(self) -> Value: ...
    def set(self, value: Own) -> None: ...


class ArrayView(Protocol):
    """An array that a nest reads or writes, by logical index whatever its layout."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> DType: ...
    def load(self, index: Sequence[Value | int]) -> Value: ...
    def store(self, index: Sequence[Value | int], value: Own) -> None: ...


class Emitter(Protocol):
    """What an operator means to code generation is written for this interface; :mod:`irscope.lower.build` implements it.

    An operator declares at least one of three, from the most to the least fusible:

    ``scalar(k, *operands)``
        Elementwise: one result element (or a vector of them) from one element of each operand. Attributes come by ``node``:
        ``scalar`` is called as ``op.scalar(k, node, *values)``.
    ``element(k, node, index, read)``
        Pull: the result element at ``index`` (one integer value per dimension). ``read(i, index)`` returns an element of operand ``i``;
        every index passed to ``read`` must be in bounds, even where the value is not used in the end (clamp, then select).
        Loops and registers are allowed (reductions, contractions, gathers). An operator with several results returns a list.
    ``nest(k, node, ins, outs)``
        Whole: loops that read the views ``ins`` and write the views ``outs`` (sort, scatter, fft): for what is no function of one index.

    ``scratch`` and ``table`` return views: memory private to the kernel, and constant data (a numpy array) that is stored with the kernel.

    ``par`` is a loop whose iterations are independent: they may run on any thread, each with scratch memory of its own.

    Values carry an element type and a number of lanes; an operation on one lane and many splats the one.
    Float arithmetic narrower than 32 bits is computed in f32 and rounded once per call, by the emitter itself.
    Names of ``unary`` and ``binary`` and their exact semantics: :mod:`irscope.ops.vocabulary`.
    """


    def const(self, value: Number, dtype: DType) -> Value: ...
    def index(self, value: int) -> Value: ...
    def unary(self, name: str, x: Own) -> Value: ...
    def binary(self, name: str, x: Own, y: Own) -> Value: ...
    def fma(self, x: Own, y: Own, z: Own) -> Value: ...
    def compare(self, direction: str, x: Own, y: Own) -> Value: ...
    def select(self, condition: Own, x: Own, y: Own) -> Value: ...
    def convert(self, x: Own, dtype: DType) -> Value: ...
    def bitcast(self, x: Own, dtype: DType) -> Value: ...
    def complex(self, re: Own, im: Own) -> Value: ...
    def loop(self, low: Value | int, high: Value | int, step: int = 1) -> AbstractContextManager[Value]: ...
    def par(self, low: Value | int, high: Value | int, step: int = 1) -> AbstractContextManager[Value]: ...
    def while_(self, condition: Callable[[], Own]) -> AbstractContextManager[None]: ...
    def when(self, condition: Own) -> AbstractContextManager[None]: ...
    def reg(self, dtype: DType, init: Own) -> RegisterHandle: ...
    def scratch(self, dtype: DType, shape: Sequence[int]) -> ArrayView: ...
    def table(self, values: Array, dtype: DType) -> ArrayView: ...
    def inline(self, graph: Graph, args: Sequence[Own]) -> Sequence[Value]: ...


Index = Value | int
"""An index while code is made: ints are folded."""
Read = Callable[[int, Sequence[Index]], Value]
"""An element of an operand, by its number and an index."""
ScalarMeaning = Callable[..., Value]
"""Takes an emitter, the node, and a value for each operand."""
ElementMeaning = Callable[[Emitter, Node, Sequence[Value], Read], Value | list[Value]]
NestMeaning = Callable[[Emitter, Node, Sequence[ArrayView], Sequence[ArrayView]], None]
Run = Callable[[Graph, Sequence[Array]], Any]
"""Evaluates a body on arrays: an array, or a tuple of such results."""
Reference = Callable[..., object]
"""Takes a Run, the node, and a result for each operand; gives an array, a tuple of results, None for a token, or the steps to one."""
