"""Islands of another element type: how they are looked at."""

from __future__ import annotations

import irscope
from irscope.graph import Node
from irscope.lint.context import Context
from irscope.lint.islands import is_accumulator, is_odd, islands_of

WIDE = """HloModule m

ENTRY e {
  x = f16[32,64] parameter(0)
  w = f16[64,64] parameter(1)
  d = f32[32,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[32,64] tanh(d)
  ROOT r = f16[32,64] convert(t)
}
"""


class Searched(list[Node]):
    """A list that counts how often a node is looked for in it: that takes as long as the list."""

    times = 0

    def __contains__(self, node: object) -> bool:
        self.times += 1
        return super().__contains__(node)


def test_an_island_is_not_searched_for_each_of_its_nodes() -> None:
    module = irscope.load(WIDE).module()
    graph = module.main()
    (island,) = (Searched(found) for found in islands_of([node for node in graph.nodes if is_odd(node, "f16")]))
    assert not is_accumulator(island, graph, "f16", Context(module))
    assert island.times == 0
