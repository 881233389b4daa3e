"""VEC001: irscope's compiler emits a kernel without vector instructions."""

from __future__ import annotations

from irscope.lint import Context, Findings, Fix, Fixture, Note, Rule, Severity

FEWEST_STEPS = 1024
"""Below this number of steps a loop takes less than a microsecond, vectorised or not."""
LISTED = 3

_ROWS = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,3}"


class LoopNotVectorised(Rule):
    """A kernel of irscope's own compiler computes one element at a time.

    ## What it does
    Lowers the module as `compile-and-run` does, and reports each kernel of 1024 or more steps without a vector operation. irscope emits
    vectors itself and does not run LLVM's vectoriser, so this is the counterpart of LLVM's remark "loop not vectorized", reported at the
    operator that the user wrote.

    ## Why is this bad?
    A vector unit computes 8 or 16 elements at once; such a kernel uses one lane of it.

    ## Use instead
    `lax.top_k` for the largest few, a mask instead of a scatter, an associative scan, or the same work over a longer last axis.

    ## Known false positives
    Sequential work (a sort, a scan, a search) cannot be vectorised; then the finding only shows where the time goes.
    """

    code, name, severity, default = "VEC001", "loop-not-vectorised", Severity.INFO, False
    fix = Fix.NONE
    policies = ("irscope",)
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096] parameter(0)
              y = f32[4096] negate(x)
              ROOT s = f32[4096] sort(y), dimensions={0}, to_apply=less
            }
        """,
            "s",
            policy="irscope",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[4096,3] parameter(0)
              i = s32[2048,1] parameter(1)
              ROOT g = f32[2048,3] gather(x, i), LIST
            }
        """.replace("LIST", _ROWS),
            "g",
            policy="irscope",
        ),
        Fixture.torchscript(
            """
            graph(%x : Float(4096)):
              %d : int = prim::Constant[value=0]()
              %no : bool = prim::Constant[value=0]()
              %i : Long(4096) = aten::argsort(%x, %d, %no)
              return (%i)
        """,
            "i",
            policy="irscope",
        ),
        Fixture.relay(
            """
            def @main(%x: Tensor[(4096), float32]) -> Tensor[(4096), int32] {
              %0 = argsort(%x, axis=0, dtype="int32");
              %0
            }
        """,
            "0",
            policy="irscope",
        ),
    )
    good = (
        Fixture.hlo("""
            ENTRY e {
              x = f32[4096] parameter(0)
              ROOT y = f32[4096] tanh(x)
            }
        """),
        Fixture.hlo(
            """
            ENTRY e {
              x = f32[8] parameter(0)
              ROOT s = f32[8] sort(x), dimensions={0}, to_apply=less
            }
        """
        ),
        Fixture.torchscript("""
            graph(%x : Float(4096)):
              %y : Float(4096) = aten::tanh(%x)
              return (%y)
        """),
        Fixture.relay("""
            def @main(%x: Tensor[(4096), float32]) -> Tensor[(4096), float32] {
              tanh(%x)
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        if context.settings.loops is None:
            return
        named = {node.name: (node, graph) for graph in context.view.array_graphs for node in graph.nodes}
        for kernel, names, steps, waits in context.settings.loops(context.module):
            known = [named[name] for name in names if name in named]
            if steps < FEWEST_STEPS or not known:
                continue
            node = known[-1][0]
            end = ", and its end depends on data" if waits else ""
            yield self.finding(
                context, node,
                f"the kernel {kernel} of %{node.name} ({node.op.name}) works element by element: {steps} scalar steps{end}",
                notes=tuple(Note(f"%{other.name} ({other.op.name}) is in it", other.loc) for other, _ in known[:-1][:LISTED]),
                help="compile-and-run --emit loops prints it",
            )
