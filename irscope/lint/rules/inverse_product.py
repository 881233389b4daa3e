"""ALG012: a matrix is inverted only to be multiplied."""

from __future__ import annotations

from irscope.analysis.diagonal import Uniform, is_identity
from irscope.analysis.values import CASTS_AND_MOVES, MOVES, dims
from irscope.graph import Graph, Node
from irscope.graph.walk import behind
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity
from irscope.ops import hlo
from irscope.ops.attributes import CustomCall

SOLVERS = ("trsm", "triangularsolve")
"""What the targets of calls that solve triangular systems contain, in lower case: LAPACK's, cuBLAS's."""
PASSED = MOVES | hlo.named("gather broadcast get-tuple-element")
"""What stands between the identity and the solve: LU decomposition swaps rows."""
STEPS = 16
FEWEST = 16
"""Smaller matrices, as poses of cameras have, cost next to nothing."""

_SOLVED = """
    ENTRY e {{
      a = f32[256,256] parameter(0)
      b = f32[256,16] parameter(1)
      i = s32[256,256] iota(), iota_dimension=0
      j = s32[256,256] iota(), iota_dimension=1
      c = pred[256,256] compare(i, j), direction=EQ
      o = f32[256,256] convert(c)
      l = f32[256,256] cholesky(a), lower=true
      s = f32[256,{0}] triangular-solve({1}), left_side=true, lower=true, transpose_a=NO_TRANSPOSE
      t = f32[256,{0}] triangular-solve(l, s), left_side=true, lower=true, transpose_a=TRANSPOSE
      ROOT y = {2}
    }}
"""
_MADE = """
            graph(%a : Float(256, 256), %b : Float(256, 16)):
              %i : Float(256, 256) = aten::{0}(%a)
              %y : Float(256, 16) = aten::matmul(%i, %b)
              return (%y)
        """


class InverseProduct(Rule):
    """A matrix is inverted only to be multiplied by another one.

    ## What it does
    Finds matrix products where one operand is the inverse of a matrix: triangular systems are solved for all columns of the identity.
    Matrices of fewer than 16 rows are not reported, nor an inverse that something else than products reads.

    ## Why is this bad?
    The inverse takes three times as many operations as the decomposition that solves the system (measured, 256 x 256 and one column:
    10.7 ms and 1.3 ms), and loses digits where `a` is close to singular.

    ## Use instead
    `jnp.linalg.solve(a, b)`, `torch.linalg.solve(a, b)`; for a positive definite matrix `cho_solve`, `torch.cholesky_solve`.

    ## Known false positives
    An inverse that is kept by the caller and used for many products.
    """

    code, name, severity = "ALG012", "inverse-product", Severity.WARNING
    structural = inside = True
    timed = False
    bad = (
        Fixture.hlo(_SOLVED.format("256", "l, o", "f32[256,16] dot(t, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"), "y"),
        Fixture.torchscript(_MADE.format("linalg_inv"), "y"),
        Fixture.torchscript(_MADE.format("inverse"), "y"),
    )
    good = (
        Fixture.hlo(_SOLVED.format("16", "l, b", "f32[256,16] negate(t)")),
        Fixture.hlo(_SOLVED.format("256", "l, o", "f32[256,256] negate(t)")),
        Fixture.torchscript("""
            graph(%a : Float(256, 256), %b : Float(256, 16)):
              %t : bool = prim::Constant[value=1]()
              %y : Float(256, 16) = aten::linalg_solve(%a, %b, %t)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Findings:
        for node, graph in context.view.primitives(hlo.dot):
            for operand in node.operands[:2]:
                inverse = behind(operand, CASTS_AND_MOVES)
                if graph in context.view.inlined or not _is_inverse(inverse, context.view.uniform(graph)):
                    continue
                if max(dims(inverse), default=0) < FEWEST or not _only_multiplied(context, graph, inverse):
                    continue
                yield self.finding(
                    context, node,
                    f"%{inverse.name} is the inverse of a matrix, {inverse.type}, and is only multiplied",
                    notes=(Note(f"%{inverse.name} solves for every column of the identity", inverse.loc),),
                    help="solve the system instead: linalg.solve(a, b)",
                )
                break


def _is_inverse(node: Node, uniform: Uniform) -> bool:
    """Whether a node solves a triangular system for the columns of an identity, also through other solves and swaps of rows."""
    solved = 0
    for _ in range(STEPS):
        if _is_solve(node):
            matrices = [operand for operand in node.operands if len(dims(operand)) >= 2]
            if len(matrices) != 2:
                return False
            node, solved = matrices[1], solved + 1
        elif is_identity(node, uniform):
            return solved > 0
        elif node.op in PASSED and node.operands:
            node = node.operands[0]
        else:
            return False
    return False


def _is_solve(node: Node) -> bool:
    if node.op is hlo.custom_call:
        target = CustomCall.of(node).custom_call_target.lower()
        return any(solver in target for solver in SOLVERS)
    return node.op is hlo.triangular_solve


def _only_multiplied(context: Context, graph: Graph, inverse: Node) -> bool:
    """Whether products are all that reads a value, past moves and casts."""
    todo = [inverse]
    for at in todo:
        for user in context.view.users(at, graph):
            if user.op in CASTS_AND_MOVES and len(todo) < STEPS:
                todo.append(user)
            elif user.op is not hlo.dot:
                return False
        if at is graph.root:
            return False
    return True
