"""CTL001: a branch of the program that is missing from its trace."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator

from irscope.analysis.values import in_library
from irscope.formats.torchscript.dialect import TORCHSCRIPT
from irscope.formats.torchscript.origin import is_function, origin
from irscope.graph import Graph, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, RuleFinding, Severity
from irscope.lint.torch_nodes import CONSTANT, READS
from irscope.ops import hlo
from irscope.ops.attributes import GetTupleElement
from irscope.ops.sets import torchscript

NUMBER = re.compile("[0-9]{1,9}")
COMPARISONS = torchscript("gt lt ge le eq ne all any")
SHAPES = READS | COMPARISONS | torchscript("floor_divide div mul add sub rsub remainder neg ceil floor to prim::NumToTensor")
"""What torch computes on sizes while it traces."""
SIZE, PACK, UNPACK = torchscript("size"), torchscript("prim::TupleConstruct"), torchscript("prim::TupleUnpack")
INDEXING = torchscript("slice select index narrow")
FEWEST = 2
"""Values that a decision leaves behind, at least: what is compared, and the comparison."""
FAR = 32
"""Operators between a number and the sizes that it is worked out of, at most."""


class TracedAwayBranch(Rule):
    """A trace shows that Python read a value, and the decision it made is fixed in the graph.

    ## What it does
    Finds evidence in a traced dump that the program made a decision by a value: missing value numbers in the trace of a function, before a
    line of the user's code (the nodes that led to the decision were removed as unused), or a value that is read as a Python number or
    compared, and has no user. A decision by sizes alone is information, because it holds for every input of that shape; so is a gap in a
    program that reads sizes.

    ## Why is this bad?
    torch.jit.trace runs the program once. An `if` on a tensor or an `.item()` leaves no node: the graph contains the branch that the
    example took, and takes it for every input.

    ## Use instead
    `torch.jit.script`, which keeps both branches; or `torch.where`, which computes both.

    ## Known false positives
    A value that is printed or logged is read in the same way; sizes that the user's code checks leave the same gap.
    """

    code, name, severity = "CTL001", "traced-away-branch", Severity.WARNING
    timed = False
    dialect = TORCHSCRIPT
    bad = (
        Fixture.torchscript(
            """
            graph(%x : Float(4, strides=[1], requires_grad=0, device=cpu)):
              %5 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]() # f.py:4:0
              %6 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::mul(%x, %5) # f.py:4:0
              return (%6)
        """,
            "5",
        ),
        Fixture.torchscript(
            """
            graph(%self : __torch__.Net,
                  %x : Float(4, strides=[1], requires_grad=0, device=cpu)):
              %2 : int = prim::Constant[value=0]()
              %3 : Bool(4, strides=[1], requires_grad=0, device=cpu) = aten::gt(%x, %2) # f.py:4:0
              %4 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::neg(%x) # f.py:5:0
              return (%4)
        """,
            "3",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%0: Float(64, 56, strides=[56, 1], requires_grad=0, device=cpu),
                  %1: Float(64, 56, strides=[56, 1], requires_grad=0, device=cpu)):
              %10 : int = prim::Constant[value=0]()
              %11 : Tensor[] = prim::ListConstruct(%0, %1)
              %12 : Float(128, 56, strides=[56, 1], requires_grad=0, device=cpu) = aten::cat(%11, %10)
              return (%12)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, strides=[1], requires_grad=0, device=cpu)):
              %1 : Long(requires_grad=0, device=cpu) = prim::Constant[value={2}]() # f.py:4:0
              %y : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::mul(%x, %1) # f.py:4:0
              %3 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::neg(%y) # f.py:4:0
              return (%3)
        """),
        Fixture.torchscript("""
            graph(%x.1 : Tensor):
              %2 : NoneType = prim::Constant()
              %4 : int = prim::Constant[value=0]() # f.py:4:30
              %3 : Tensor = aten::sum(%x.1, %2) # f.py:4:20
              %5 : Tensor = aten::gt(%3, %4) # f.py:4:20
              %7 : bool = aten::Bool(%5) # f.py:4:20
              %15 : Tensor = prim::If(%7) # f.py:4:11
                block0():
                  -> (%x.1)
                block1():
                  -> (%3)
              return (%15)
        """),
        Fixture.torchscript("""
            graph(%x : Float(2, 6, strides=[6, 1], requires_grad=0, device=cpu)):
              %1 : int = prim::Constant[value=0]() # f.py:4:0
              %2 : int = aten::size(%x, %1) # f.py:4:0
              %3 : Long(device=cpu) = prim::NumToTensor(%2)
              %6 : int = aten::Int(%3)
              %4 : int = prim::Constant[value=-1]() # f.py:5:0
              %5 : Float(2, 6, strides=[6, 1], requires_grad=0, device=cpu) = aten::neg(%x) # f.py:5:0
              %7 : int[] = prim::ListConstruct(%6, %4)
              %8 : Float(2, 6, strides=[6, 1], requires_grad=0, device=cpu) = aten::view(%5, %7) # f.py:6:0
              return (%8)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, strides=[1], requires_grad=0, device=cpu)):
              %5 : int = prim::Constant[value=1]() # /opt/site-packages/torch/f.py:1:0
              %6 : Float(4, strides=[1], requires_grad=0, device=cpu) = aten::cumsum(%x, %5, %5) # /opt/site-packages/torch/f.py:1:0
              return (%6)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu),
                  %1 : Long(3, strides=[1], requires_grad=0, device=cpu)):
              %6 : int = prim::Constant[value=0]() # f.py:155:0
              %7 : int = prim::Constant[value=5]() # f.py:155:0
              %8 : int = prim::Constant[value=1]() # f.py:155:0
              %9 : Float(4, 6, strides=[6, 1], requires_grad=0, device=cpu) = aten::slice(%x, %6, %6, %7, %8) # f.py:155:0
              return (%9)
        """),
        Fixture.torchscript("""
            graph(%1 : Float(2, 3),
                  %2 : Float(2, 3)):
              %3 : int = prim::Constant[value=1]()
              %4 : Float(2, 3) = aten::add(%1, %2, %3)
              return (%4)
        """),
    )

    def check(self, context: Context) -> Findings:
        if origin(context.module) != "traced":
            return
        main = context.module.main()
        if is_function(main) and not any(context.module.scope(node) for node in main.shown()):
            reads_sizes = any(node.op in SIZE for node in main.nodes)
            for node, missing in _gaps(main):
                line = _line(context, main, node)
                if not line or in_library(line) or _indexes(main, node):
                    continue  # hand-written graphs may use any numbers; libraries that check shapes leave gaps, as indexing does
                what = f"{missing} values are" if missing > 1 else "a value is"
                evidence = f"{what} missing before %{node.name}: Python used them for a decision"
                yield self._finding(context, node, evidence, Severity.INFO if reads_sizes else None)
        for graph in context.view.graphs:
            for node in graph.shown():
                if _looked_at(node) and not context.view.users(node, graph) and node is not graph.root:
                    evidence = f"%{node.name} was read by Python, and nothing in the graph uses it"
                    yield self._finding(context, node, evidence, Severity.INFO if _of_shapes(node) else None)

    def _finding(self, context: Context, node: Node, evidence: str, severity: Severity | None = None) -> RuleFinding:
        return self.finding(
            context, node,
            f"this graph is traced, not scripted: {evidence}; the branch that was taken then is fixed for every input",
            help="torch.jit.script keeps both branches of an if; torch.where computes both",
        ).with_severity(severity)


def _gaps(graph: Graph) -> Iterator[tuple[Node, int]]:
    """Nodes before which numbers are missing. Torch numbers every value in order, including named ones.

    A Python number is numbered when it is read, but placed where its value is known: `aten::Int` of a size. Such nodes prove nothing.
    """
    params = set(graph.params)
    counted = [n for n in graph.nodes if n not in params and not n.name.startswith("(") and not (n.op is hlo.tuple and n.synthetic)]
    numbers = [int(n.name) if NUMBER.fullmatch(n.name) else None for n in counted]
    ahead = []
    least = 10**9
    for number in reversed(numbers):
        ahead.append(number is not None and number > least)
        least = min(least, least if number is None else number)
    ahead.reverse()
    early = sorted(number for number, moved in zip(numbers, ahead, strict=True) if moved and number is not None)
    given = [int(p.name) for p in graph.params if NUMBER.fullmatch(p.name)]
    expected = max(len(graph.params), *(n + 1 for n in given)) if given else len(graph.params)
    for node, number, moved in zip(counted, numbers, ahead, strict=True):
        if moved:
            continue
        if number is not None and number > expected:
            missing = number - expected - (bisect_left(early, number) - bisect_left(early, expected))
            if missing >= FEWEST:
                yield node, missing
            expected = number
        expected += 1


def _line(context: Context, graph: Graph, node: Node) -> str:
    """The source line of a node, or of the next one that has one: numbers from sizes have none."""
    for at in graph.nodes[node.index :]:
        if stack := context.module.call_stack(at):
            return str(stack[0])
    return ""


def _indexes(graph: Graph, node: Node) -> bool:
    """Whether the next operator indexes a tensor: torch queries lengths for it and then drops them."""
    following = (n for n in graph.nodes[node.index :] if n.op not in CONSTANT)
    return (first := next(following, None)) is not None and first.op in INDEXING


def _looked_at(node: Node) -> bool:
    if node.op in READS:
        return True
    return node.op in COMPARISONS and isinstance(node.type, TensorType) and node.type.dtype.name == "pred"


def _of_shapes(node: Node) -> bool:
    """Whether a number depends on sizes alone, so that it is the same for every input of the traced shape."""
    todo, sizes = [node], False
    for given in todo:
        at = _unpacked(given)
        if at.op in SIZE:
            sizes = True
        elif at.op in SHAPES and len(todo) < FAR:
            todo += [operand for operand in at.operands if operand not in todo]
        elif at.op not in CONSTANT:
            return False
    return sizes


def _unpacked(node: Node) -> Node:
    """The value behind a tuple element: the operand from which the tuple was constructed."""
    while node.op is hlo.get_tuple_element and node.operands[0].op in UNPACK and node.operands[0].operands:
        pack = node.operands[0].operands[0]
        index = GetTupleElement.of(node).index
        if pack.op not in PACK or index >= len(pack.operands):
            break
        node = pack.operands[index]
    return node
