"""What FUS016 says, under the policy of XLA's GPU compiler, of softmaxes and normalisations that its rewriter takes or not."""

from __future__ import annotations

from pathlib import Path

import pytest

import irscope
from irscope.lint import find_rule, lint_module
from irscope.lint.findings import RuleFinding
from irscope.lint.fusion import remarks
from irscope.lint.settings import Settings
from irscope.source import Severity

SAMPLES = Path(__file__).parents[2] / "samples"
FOLDER = Path(__file__).parent / "patterns"
"""Small programs of our own, as jax 0.10.2 printed them before XLA's rewriting."""
NORMALISED = """HloModule m
max { p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT s = f32[] maximum(p, q) }
sum { p = f32[] parameter(0)
 q = f32[] parameter(1)
 ROOT s = f32[] add(p, q) }
ENTRY e {
 x = f32[64,64] parameter(0)
 z = f32[] constant(0)
 i = f32[] constant(-inf)
 m = f32[64] reduce(x, i), dimensions={MAXIMUM}, to_apply=max
 n = f32[64,64] broadcast(m), dimensions={KEPT}
 d = f32[64,64] subtract(x, n)
 y = f32[64,64] exponential(d)
 t = f32[64] reduce(y, z), dimensions={1}, to_apply=sum
 b = f32[64,64] broadcast(t), dimensions={0}
 ROOT q = f32[64,64] divide(y, b)
}
"""
SOFTMAX = NORMALISED.replace("MAXIMUM", "1").replace("KEPT", "0")


def told(text: str, policy: str = "xla-gpu", device: str | None = None) -> list[RuleFinding]:
    findings = lint_module(irscope.load(text).module(), [find_rule("FUS016")], Settings(policy=policy, device=device))
    return [f for f in findings if isinstance(f, RuleFinding)]


@pytest.mark.parametrize("name", ["softmax", "attention", "layernorm", "rmsnorm"])
def test_what_jax_prints_is_taken(name: str) -> None:
    """Rewritten first: JAX's variance has a function, a division and a selection of its own."""
    assert told((FOLDER / f"{name}.hlo").read_text()) == []


def test_the_two_diamonds_of_a_layer_normalisation_are_a_chain() -> None:
    module = irscope.load((FOLDER / "layernorm.hlo").read_text()).module()
    (remark,) = (r for r in remarks(module, "xla-gpu") if "SoftmaxRewriterTriton" in r)
    assert "takes 2 of 2" in remark and "%reduce_sum.23 to %sub.17 then %reduce_sum.22 to %mul.11" in remark


@pytest.mark.parametrize(("before", "after", "node", "words"), [
    ("ROOT q = f32[64,64] divide(y, b)", "q = f32[64,64] divide(y, b)\n ROOT k = (f32[64,64], f32[64]) tuple(q, t)", "t",
     "More than one use of broadcast or reduce."),
    ("reduce(x, i)", "reduce(x, v)", "m", "Reduction identity is not a constant or a supported convert of a constant."),
    ("64,64", "64,32768", "x", "Run time estimate for without applying the custom normalization rewrite is faster."),
])
def test_what_is_not_taken_names_the_odd_node(before: str, after: str, node: str, words: str) -> None:
    text = SOFTMAX.replace(" z =", " v = f32[] parameter(1)\n z =")
    assert told(text) == []
    (found,) = told(text.replace(before, after))
    assert (found.node, found.severity) == (node, Severity.INFO)
    assert found.message.startswith(f'XLA\'s softmax rewriter does not make one kernel of this softmax: "{words}"') and found.help
    assert told(text.replace(before, after), "xla-cpu") == told(text.replace(before, after), "xla-gpu@jaxlib-0.4.38") == []


def test_a_near_miss_says_what_becomes_of_it() -> None:
    """The maximum is taken along the columns: XLA reduces rows."""
    text = NORMALISED.replace("MAXIMUM", "0").replace("KEPT", "1")
    (found,) = told(text)
    assert found.node == "m" and "its maximum over axis 0" in found.message
    assert any("does not take %m" in note.text and "that dimension must be the last dimension" in note.text for note in found.notes)
    (elsewhere,) = told(text, "xla-cpu")
    assert len(elsewhere.notes) == len(found.notes) - 1


def test_reductions_of_early_texts_stay_whole() -> None:
    """XLA's CPU compiler cuts long rows into tiles before it fuses; its GPU compiler does not, and takes every normalisation of a transformer."""
    (note,) = [line for line in remarks(irscope.load(SAMPLES / "transformer.pre.hlo").module(), "xla-gpu") if "softmax rewriter" in line]
    assert "takes 18 of 18 reductions that are broadcast back" in note
