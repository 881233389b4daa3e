"""Levels, longest chains, and what could run side by side."""
from __future__ import annotations

from irscope.analysis.levels import critical_path, levels
from tests.analysis.texts import survey

DIAMOND = """HloModule diamond
ENTRY main {
  x = f32[8] parameter(0)
  a = f32[8] negate(x)
  b = f32[8] tanh(a)
  c = f32[8] cosine(a)
  d = f32[8] sine(c)
  ROOT e = f32[8] add(b, d)
}
"""


def test_levels_follow_the_longest_chain() -> None:
    graph = survey(DIAMOND).module.main()
    found = levels(graph)
    assert found.level == [0, 1, 2, 2, 3, 4]
    assert (found.depth, found.width) == (4, 2)
    assert [[n.name for n in level] for level in found.independent()] == [["a"], ["b", "c"], ["d"], ["e"]]


def test_the_critical_path_takes_the_heavier_side() -> None:
    graph = survey(DIAMOND).module.main()
    assert [n.name for n in critical_path(graph)] == ["x", "a", "c", "d", "e"]
    weights = [1.0 if n.name != "b" else 100.0 for n in graph.nodes]
    assert [n.name for n in critical_path(graph, weights)] == ["x", "a", "b", "e"]
