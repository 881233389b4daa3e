"""FUS011: an in-place update and a read of the same buffer use different indices."""

from __future__ import annotations

from irscope.analysis.values import number
from irscope.lint import Context, Findings, Fixture, Rule, Severity
from irscope.lint.unfused import findings_by_producer

_UPDATE = """
            ENTRY e {{
              p = f32[256,256]{{1,0}} parameter(0)
              s = f32[64,64]{{1,0}} slice(p), slice={{[{0}:{1}], [2:66]}}
              n = f32[64,64]{{1,0}} tanh(s)
              two = s32[] constant(2)
              ROOT d = f32[256,256]{{1,0}} dynamic-update-slice(p, n, two, two)
            }}
        """


class InplaceUpdateMismatch(Rule):
    """The slice that is read and the update that is written have different indices, so XLA does not fuse the update.

    ## What it does
    Under `--policy xla-cpu` and `xla-gpu`, finds producers that XLA does not fuse into a `dynamic-update-slice` or `scatter` because the
    kernel would write elements that it still has to read: "DUS and slice index mismatch" and its like.

    ## Why is this bad?
    A separate kernel first copies out the slice, though one kernel could read and write the elements that change.

    ## Use instead
    Read and write the same indices, or read from an explicit copy.

    ## Known false positives
    A shift (each row from the one above) has to read elements that it does not write; then a new array is right.
    """

    code, name, severity = "FUS011", "inplace-update-mismatch", Severity.WARNING
    structural = True
    policies = ("xla-cpu", "xla-gpu")
    bad = (
        Fixture.hlo(_UPDATE.format(1, 65), "s", policy="xla-cpu"),
        Fixture.hlo(_UPDATE.format(3, 67), "s", policy="xla-cpu"),
    )
    good = (
        Fixture.hlo(_UPDATE.format(2, 66), policy="xla-cpu"),
        Fixture.hlo(_UPDATE.format(1, 65).replace("dynamic-update-slice(p,", "dynamic-update-slice(o,").replace(
            "s = f32", "o = f32[256,256]{1,0} parameter(1)\n              s = f32", 1), policy="xla-cpu"),
        Fixture.hlo(
            """
            add {
              a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT s = f32[] add(a, b)
            }
            ENTRY e {
              i = s32[512,1]{1,0} parameter(0)
              u = f32[512,64]{1,0} parameter(1)
              z = f32[] constant(0)
              t = f32[4096,64]{1,0} broadcast(z), dimensions={}
              ROOT r = f32[4096,64]{1,0} scatter(t, i, u), update_window_dims={1}, inserted_window_dims={0},
                scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
            }
        """,
            policy="xla-gpu",
        ),
    )

    def check(self, context: Context) -> Findings:
        rules = ("in-place", "scatter-buffer", "scatter-shared")
        for finding in findings_by_producer(context, self, rules, "is written out before {consumer} ({op})"):
            if finding.at is None or number(finding.at[1]) is None:  # the updated operand begins as a fill, and must be in memory
                yield finding
