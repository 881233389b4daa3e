"""CTL001: a branch of the program that its trace does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from irscope.formats.torchscript.origin import is_function, origin
from irscope.graph import Graph, Node, TensorType
from irscope.lint.context import Context
from irscope.lint.findings import RuleFinding
from irscope.lint.rule import Fixture, Rule
from irscope.lint.torch_nodes import READS, is_torchscript, written
from irscope.source import Severity

NUMBER = re.compile("[0-9]{1,9}")
COMPARISONS = frozenset(("aten::gt", "aten::lt", "aten::ge", "aten::le", "aten::eq", "aten::ne", "aten::all", "aten::any"))


class TracedAwayBranch(Rule):
    """A trace shows that Python looked at a value, and what it decided then is fixed in the graph.

    ## What it does
    Says of a dump that it is traced, where there is evidence that the program decided something by a value: numbers that are missing in
    the trace of a function (the nodes that led to the decision were removed as unused), or a value that is read as a Python number or
    compared, and used by nothing.

    ## Why is this bad?
    torch.jit.trace runs the program once. An `if` on a tensor or an `.item()` leaves no mark: the graph has the way that the example took,
    and takes it for every input.

    ## Example
    ```
    def f(x): return x * 2 if x.sum() > 0 else x - 1      # traced with a positive x: always x * 2
    ```

    ## Use instead
    `torch.jit.script`, which keeps both ways; or `torch.where`, which computes both.

    ## Known false positives
    A value that is printed or logged is read in the same way.
    """

    code, name, severity = "CTL001", "traced-away-branch", Severity.WARNING
    timed = False
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
    )

    def check(self, context: Context) -> Iterator[RuleFinding]:
        if not is_torchscript(context.module) or origin(context.module) != "traced":
            return
        main = context.module.main()
        if is_function(main) and not any(context.module.scope(node) for node in written(main)):
            for node, missing in _gaps(main):
                what = f"{missing} values are" if missing > 1 else "a value is"
                yield self._finding(context, node, main, f"{what} missing before %{node.name}: they decided something in Python")
        for graph in context.graphs:
            for node in written(graph):
                if _looked_at(node) and not context.users(node, graph) and node is not graph.root:
                    yield self._finding(context, node, graph, f"%{node.name} was looked at by Python, and nothing in the graph uses it")

    def _finding(self, context: Context, node: Node, graph: Graph, evidence: str) -> RuleFinding:
        return context.finding(
            self,
            node,
            graph,
            f"this graph is traced, not scripted: {evidence}; the way that was taken then is taken for every input",
            help="torch.jit.script keeps both ways of an if; torch.where computes both",
        )


def _gaps(graph: Graph) -> Iterator[tuple[Node, int]]:
    """Nodes before which numbers are missing. Torch numbers every value in order, those that have a name too."""
    expected = sum(1 for _ in graph.params)
    for node in graph.nodes:
        if node in graph.params or (node.op.name == "tuple" and node.synthetic):
            continue
        if node.name.startswith("("):
            continue  # a statement of several values: each is a node of its own
        if NUMBER.fullmatch(node.name):
            number = int(node.name)
            if number > expected:
                yield node, number - expected
            expected = max(expected, number)
        expected += 1


def _looked_at(node: Node) -> bool:
    if node.op.name in READS:
        return True
    return node.op.name in COMPARISONS and isinstance(node.type, TensorType) and node.type.dtype.name == "pred"
