"""What DTY005 says, under the policy of XLA's GPU compiler, of weights that are converted inside or outside of a product's kernel."""

from __future__ import annotations

import irscope
from irscope.lint import find_rule, lint_module
from irscope.lint.findings import RuleFinding
from irscope.lint.settings import Settings

TAKEN = """HloModule m
ENTRY e {
  x = bf16[64,512]{1,0} parameter(0)
  q = s8[512,512]{1,0} parameter(1)
  w = bf16[512,512]{1,0} convert(q)
  s = bf16[512]{0} parameter(2)
  b = bf16[512,512]{1,0} broadcast(s), dimensions={1}
  m = bf16[512,512]{1,0} multiply(w, b)
  ROOT d = bf16[64,512]{1,0} dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def told(text: str, policy: str = "xla-gpu") -> list[RuleFinding]:
    findings = lint_module(irscope.load(text).module(), [find_rule("DTY005")], Settings(policy=policy))
    return [f for f in findings if isinstance(f, RuleFinding)]


def test_weights_that_the_kernel_converts_are_no_finding() -> None:
    assert told(TAKEN) == []
    assert len(told(TAKEN, "xla-cpu")) == 1


def test_weights_that_stay_outside_say_why() -> None:
    [finding] = told(TAKEN.replace("s8[", "u8["))
    assert [note.text for note in finding.notes if "GemmFusion" in note.text] == [
        "XLA's GemmFusion, which runs before this pass, leaves %w outside of the Triton kernel of %d: \"Unsupported input data type.\": a "
        "product's kernel reads nothing of type u8 here"]
    assert finding.help.endswith("or have XLA convert inside the product's kernel: convert from f32, bf16, f16, s4, s8, s16 or s32")
