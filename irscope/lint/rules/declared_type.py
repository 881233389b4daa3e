"""SHP006: the declared type differs from the type that the operator produces."""

from __future__ import annotations

from collections.abc import Iterator

from irscope.analysis.verify.faults import finding
from irscope.graph import TensorType, Type, Typing
from irscope.lint import Context, Fix, Fixture, Rule
from irscope.ops.faults import TypeFault
from irscope.ops.infer import plain
from irscope.source import Finding, Severity, UserError


class DeclaredType(Rule):
    """The declared type is not the operator's result type, or its operands and attributes do not fit together.

    ## What it does
    Infers the type of every node from its operands, attributes and called computations, and compares it with the declared type. Also makes
    the checks of XLA's verifier beyond shapes: signatures of called computations, layouts that must agree, groups and pairs of collectives.

    ## Why is this bad?
    The compiler rejects such a module, or an edit by hand computes something other than it declares.

    ## Use instead
    Declare the inferred type, or correct the operands: the message contains both types.

    ## Known false positives
    None known: a wrong finding is a defect of irscope or of the text.
    """

    code, name, severity = "SHP006", "declared-type", Severity.ERROR
    fix = Fix.NONE
    timed = False
    judges_types = True
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[2] parameter(0)
              ROOT s = f32[3] add(x, x)
            }
        """,
            "s",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[2,3] parameter(0)
              ROOT t = f32[2,3] transpose(x), dimensions={1,0}
            }
        """,
            "t",
        ),
        Fixture(
            "relay",
            """def @main(%x: Tensor[(1, 128), float32], %w: Tensor[(64, 127), float32]) {
  %0 = nn.dense(%x, %w, units=64);
  return %0;
}
""",
            ("0",),
        ),
        Fixture(
            "relay",
            """def @main(%x: Tensor[(4), float32]) {
  %0 = nn.relu(%x) /* ty=Tensor[(5), float32] */;
  return %0;
}
""",
            ("0",),
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4, 8)):
              %y : Float(4, 9) = aten::relu(%x)
              return (%y)
        """,
            "y",
        ),
    )
    good = (
        Fixture(
            "relay",
            """def @main(%x: Tensor[(?, 128), float32], %w) {
  %0 = nn.dense(%x, %w, units=64) /* ty=Tensor[(?, 64), float32] */;
  return %0;
}
""",
        ),
        Fixture.hlo("""
            ENTRY e {
              x = f32[2] parameter(0)
              ROOT s = f32[2]{0} add(x, x)
            }
        """),
        Fixture.hlo("""
            ENTRY e {
              a = bf16[2,3] parameter(0)
              b = bf16[3,4] parameter(1)
              ROOT d = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
        Fixture.torchscript("""
            graph(%x : Float(4, 8)):
              %y : Float(4, 8) = aten::relu(%x)
              return (%y)
        """),
    )

    def check(self, context: Context) -> Iterator[Finding]:
        for graph, fault in sorted(context.soundness.faults, key=lambda f: f[1].node.loc if f[1].node is not None else f[0].loc):
            declared = finding(context.module, graph, fault)
            declared.code, declared.name = self.code, self.name
            yield declared
        if context.module.dialect.typing is Typing.EXECUTED:
            yield from self._run(context)

    def _run(self, context: Context) -> Iterator[Finding]:
        """Infers the types of TorchScript's operators by running the program on the types of its inputs."""
        try:
            types = context.view.types_of_run
        except (UserError, TypeFault):
            return  # operators that do not run here, or unknown shapes
        graph = context.module.main()
        for node in graph.nodes:
            declared, given = node.type, types.get(node)
            if given is None or not (_is_known(declared) and _is_known(given)) or str(plain(declared)) == str(plain(given)):
                continue
            if all(_is_known(o.type) for o in node.operands if _is_tensor(o.type)):
                message = f"%{node.name} is declared {plain(declared)}, but {node.op.name} gives {plain(given)}"
                help = "print the graph again: it was changed after its types were recorded"
                yield self.finding(context, node, message, help=help)
            # The shape of a weight that the text omits is solved from its users, or guessed; then what follows does not fit either.
            return


def _is_tensor(type: Type) -> bool:
    return isinstance(type, TensorType) or str(type) == "Tensor"


def _is_known(type: Type) -> bool:
    return isinstance(type, TensorType) and type.is_static
