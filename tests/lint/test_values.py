"""What rules ask of values: numbers behind broadcasts, axes along which nothing changes, composites by structure."""

from __future__ import annotations

import irscope
from irscope.analysis.values import number, uniform_axes
from irscope.graph import Graph
from irscope.lint import Context, find_rule
from irscope.lint.rules.pattern_near_miss import composites


def graph_of(text: str) -> Graph:
    return irscope.load("HloModule m\n\nENTRY e {\n" + text + "}\n", format="hlo").module().main()


def test_numbers_are_seen_through_broadcasts_and_conversions() -> None:
    graph = graph_of("""  a = s32[] constant(3)
  b = f32[] convert(a)
  c = f32[4] broadcast(b), dimensions={}
  d = pred[] constant(true)
  ROOT e_ = f32[4] negate(c)
""")
    assert [number(n) for n in graph.nodes] == [3.0, 3.0, 3.0, 1.0, None]


def test_uniform_axes_meet_where_operands_join() -> None:
    graph = graph_of("""  x = f32[8] parameter(0)
  y = f32[] parameter(1)
  a = f32[4,8] broadcast(x), dimensions={1}
  b = f32[4,8] broadcast(y), dimensions={}
  c = f32[4,8] add(a, b)
  ROOT d = f32[4,8] multiply(b, b)
""")
    assert [set(axes) for axes in uniform_axes(graph)] == [set(), set(), {0}, {0, 1}, {0}, {0, 1}]


def test_composites_are_recognised() -> None:
    """The good fixtures in HLO of the rule on near misses hold softmaxes and a GELU; a softmax of weights is part of no attention."""
    rule = find_rule("FUS016")
    contexts = [Context(irscope.load(f.text, format=f.format).module()) for f in rule.good if f.format == "hlo"]
    told = [[found.what for found, _ in composites(c.view)] for c in contexts]
    assert told == [["softmax", "attention"], ["softmax"], ["GELU"], ["softmax"], ["softmax"]]


def test_a_normalisation_with_its_epsilon_is_whole() -> None:
    text = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  x = f32[4,8] parameter(0)
  z = f32[] constant(0)
  n = f32[] constant(8)
  eps = f32[] constant(1e-5)
  nb = f32[4] broadcast(n), dimensions={}
  eb = f32[4] broadcast(eps), dimensions={}
  t = f32[4] reduce(x, z), dimensions={1}, to_apply=sum
  m = f32[4] divide(t, nb)
  mb = f32[4,8] broadcast(m), dimensions={0}
  d = f32[4,8] subtract(x, mb)
  q = f32[4,8] multiply(d, d)
  v = f32[4] reduce(q, z), dimensions={1}, to_apply=sum
  w = f32[4] divide(v, nb)
  e_ = f32[4] add(w, eb)
  r = f32[4] rsqrt(e_)
  rb = f32[4,8] broadcast(r), dimensions={0}
  ROOT y = f32[4,8] multiply(d, rb)
}
"""
    context = Context(irscope.load(text, format="hlo").module())
    assert [(found.what, found.nodes[0].name, found.odd) for found, _ in composites(context.view)] == [("layer normalisation", "r", None)]
    rule = find_rule("FUS016")
    assert list(rule().check(context)) == []
    bare = Context(irscope.load(text.replace("rsqrt(e_)", "rsqrt(w)"), format="hlo").module())
    assert [f.node for f in rule().check(bare)] == ["r"]
