"""MEM002: a result could reuse the buffer of a parameter, but no donation is declared."""

from __future__ import annotations

from collections import Counter

from irscope.analysis.values import size
from irscope.graph import Node, TensorType, Type
from irscope.lint import Context, Findings, Fixture, Note, Rule, Severity, human_bytes
from irscope.ops import hlo
from irscope.ops.module_attributes import HloModule
from irscope.source.plural import plural

WORTH_BYTES = 64 * 1024
LISTED = 5


class NoDonation(Rule):
    """Parameters and results have the same types, and the module declares no result to alias a parameter (no donation).

    ## What it does
    Pairs the parameters of 64 KiB and more with computed results of the same type, if the module declares no `input_output_alias` and no
    buffer donor. One finding per module, if the pairs are at least half of the results by bytes: a step that computes the next state from
    the current one.

    ## Why is this bad?
    The old and the new state are live at the same time, which takes twice the memory.

    ## Use instead
    `jax.jit(step, donate_argnums=0)`.

    ## Known false positives
    Parameters that are used again after the call; a layer whose input happens to have the shape of its output.
    """

    code, name, severity, default = "MEM002", "no-donation", Severity.INFO, False
    bad = (
        Fixture.hlo(
            """
            ENTRY e {
              w = f32[256,256] parameter(0)
              g = f32[256,256] parameter(1)
              ROOT n = f32[256,256] subtract(w, g)
            }
        """,
            "n",
        ),
        Fixture.hlo(
            """
            ENTRY e {
              w = f32[256,256] parameter(0)
              m = f32[512,64] parameter(1)
              a = f32[256,256] negate(w)
              b = f32[512,64] exponential(m)
              ROOT t = (f32[256,256], f32[512,64]) tuple(a, b)
            }
        """,
            "t",
        ),
    )
    good = (
        Fixture(
            "hlo",
            "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n\nENTRY e {\n  w = f32[256,256] parameter(0)\n"
            "  ROOT n = f32[256,256] negate(w)\n}\n",
        ),
        Fixture.hlo("""
            ENTRY e {
              w = f32[256,256] parameter(0)
              v = f32[256,32] parameter(1)
              ROOT n = f32[256,32] dot(w, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
            }
        """),
    )

    def check(self, context: Context) -> Findings:
        header, main = HloModule.of(context.module), context.module.main()
        if not context.module.dialect.primitive or header.input_output_alias or header.buffer_donor or main.root is None:
            return
        free = Counter(_key(p.type) for p in main.params)
        results = main.root.operands if main.root.op is hlo.tuple else (main.root,)
        pairs: list[Node] = []
        for result in results:
            key = _key(result.type)
            if result.op is not hlo.parameter and size(result) >= WORTH_BYTES and free[key] > 0:
                free[key] -= 1
                pairs.append(result)
        shared, everything = sum(map(size, pairs)), sum(map(size, results))
        if not pairs or 2 * shared < everything:
            return
        yield self.finding(
            context, main.root,
            f"{plural(len(pairs), 'result has', 'results have')} the type of a parameter ({human_bytes(shared)}), and none aliases it",
            notes=tuple(Note(f"%{n.name} is {n.type}", n.loc) for n in pairs[:LISTED] if n is not main.root),
            help="donate the parameters that are not used after the call: jax.jit(step, donate_argnums=...)",
        )


def _key(type: Type) -> object:
    return (type.dtype, type.shape) if isinstance(type, TensorType) else type
