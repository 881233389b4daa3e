"""SHP005: the graph computes sizes that are known statically."""

from __future__ import annotations

from irscope.graph import Graph, Node, TensorType
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.ops.sets import relay, torchscript

ARITHMETIC = torchscript("prim::NumToTensor Int mul floor_divide add sub remainder floordiv div")
SIZE = torchscript("size")
ASKS = relay("shape_of vm.shape_of ndarray_size")


class ShapeArithmetic(Rule):
    """The graph computes sizes that its types already state.

    ## What it does
    Finds `aten::size` of tensors of known shape whose value goes through arithmetic (`NumToTensor`, `floor_divide`, `Int`) into a shape;
    in Relay, `shape_of` of such tensors. One finding a graph.

    ## Why is this bad?
    Every run computes them again, in one-element tensors, and shape-specialising compilers may treat the shapes as unknown.

    ## Use instead
    -1 for the dimension that varies: `x.reshape(batch, -1)`; sizes of the configuration in place of `x.size(i)`; or torch.jit.freeze.

    ## Known false positives
    A graph for several shapes must compute them; irscope binds them before code generation.
    """

    code, name, severity = "SHP005", "shape-arithmetic", Severity.INFO
    bad = (
        Fixture.torchscript(
            """
            graph(%x : Float(4, 8), %zero : int, %two : int):
              %3 : int = aten::size(%x, %zero)
              %4 : Long() = prim::NumToTensor(%3)
              %5 : Long() = aten::floor_divide(%4, %two)
              %6 : int = aten::Int(%5)
              %7 : int[] = prim::ListConstruct(%6, %6, %two)
              %8 : Float(2, 2, 8) = aten::view(%x, %7)
              return (%8)
        """,
            "3",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4, 8), %zero : int, %two : int):
              %3 : int = aten::size(%x, %zero)
              %5 : int = aten::floordiv(%3, %two)
              %7 : int[] = prim::ListConstruct(%5, %5, %two)
              %8 : Float(2, 2, 8) = aten::view(%x, %7)
              return (%8)
        """,
            "3",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4, 8), float32], %y: Tensor[(2, 16), float32]) {
              %0 = shape_of(%y, dtype="int64");
              %1 = dyn.reshape(%x, %0, newshape=[]);
              %1
            }
        """,
            "0",
        ),
    )
    good = (
        Fixture.torchscript("""
            graph(%x : Tensor, %zero : int, %two : int):
              %3 : int = aten::size(%x, %zero)
              %5 : int = aten::floordiv(%3, %two)
              %7 : int[] = prim::ListConstruct(%5, %two)
              %8 : Tensor = aten::view(%x, %7)
              return (%8)
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, 8), %two : int, %rest : int):
              %7 : int[] = prim::ListConstruct(%two, %two, %rest)
              %8 : Float(2, 2, 8) = aten::view(%x, %7)
              return (%8)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(4, 8), float32]) {
              reshape(%x, newshape=[2, 16])
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        for graph in context.view.graphs if not context.module.is_primitive else ():
            yield from self._shape_reads(context, graph)
            starts = [node for node in context.view.with_op(SIZE, graph) if _is_known(node)]
            chains = [(node, steps) for node in starts if (steps := _steps(context, graph, node))]
            if chains:
                first, total = chains[0][0], sum(steps for _, steps in chains)
                yield self.finding(
                    context, first,
                    f"the graph computes sizes that are known statically: {len(chains)} of them, by {total} operators",
                    help="-1 in view or reshape, or the sizes of the configuration",
                )

    def _shape_reads(self, context: Context, graph: Graph) -> Findings:
        """Relay's `shape_of`, whose result is a tensor that other operators take apart."""
        reads = [node for node in context.view.with_op(ASKS, graph) if _is_known(node) and context.view.users(node, graph)]
        if reads:
            said = f"the program computes {len(reads)} shapes that are known statically"
            yield self.finding(context, reads[0], said, help="write the shape: reshape(x, newshape=[...])")


def _is_known(node: Node) -> bool:
    """Whether the types already state the size that the node queries."""
    source = node.operands[0].type if node.operands else None
    return isinstance(source, TensorType) and source.is_static


def _steps(context: Context, graph: Graph, start: Node) -> int:
    """How many arithmetic operators the size goes through."""
    seen: set[Node] = set()
    stack = [start]
    while stack:
        for user in context.view.users(stack.pop(), graph):
            small = not (isinstance(user.type, TensorType) and user.type.rank)
            if user.op in ARITHMETIC and small and user not in seen:
                seen.add(user)
                stack.append(user)
    return len(seen)
