"""How long values live and how much lives at once, against a slow count."""
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from irscope.graph import Graph
from tests.analysis.texts import LOOP, node, survey


def slow_peak(graph: Graph) -> int:
    """For straight lines of elementwise operations: at each step, what was made and is still needed."""
    peak = 0
    for now, at in enumerate(graph.nodes):
        size = 0
        for before in graph.nodes[:now + 1]:
            if before.op.name in ("parameter", "constant"):
                continue
            last = max([n.index for n in graph.nodes if before in n.operands] + [before.index])
            if graph.root is before or last >= now:
                size += before.type.bytes  # type: ignore[attr-defined]
        if at.op.name not in ("parameter", "constant"):
            reused = [o for o in at.operands if o.op.name not in ("parameter", "constant") and o is not graph.root
                      and max(n.index for n in graph.nodes if o in n.operands) == now]
            size -= at.type.bytes if reused else 0  # type: ignore[attr-defined]
        peak = max(peak, size)
    return peak


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=14))
def test_the_peak_is_that_of_counting_step_by_step(picks: list[tuple[int, int]]) -> None:
    lines = ["HloModule m", "ENTRY main {", "  v0 = f32[8] parameter(0)"]
    for i, (a, b) in enumerate(picks, 1):
        root = "ROOT " if i == len(picks) else ""
        lines.append(f"  {root}v{i} = f32[8] add(v{a % i}, v{b % i})")
    facts = survey("\n".join([*lines, "}"]))
    graph = facts.module.main()
    assert facts.memory.graphs[graph].peak == slow_peak(graph)


def test_tuples_and_loops_hold_no_memory_of_their_own() -> None:
    facts = survey(LOOP)
    main = facts.memory.graphs[facts.module.graphs["main"]]
    assert all(size == 0 for size in main.size)


def test_a_call_needs_what_its_body_needs() -> None:
    text = """HloModule m
inner { p = f32[64] parameter(0)
  a = f32[64] negate(p)
  b = f32[64] reverse(a), dimensions={0}
  c = f32[64] reverse(b), dimensions={0}
  ROOT d = f32[64] add(a, c) }
ENTRY main { x = f32[64] parameter(0)
  ROOT y = f32[64] call(x), to_apply=inner }
"""
    facts = survey(text)
    # a lives until the end; beside it c is made from b.
    assert facts.memory.graphs[facts.module.graphs["inner"]].peak == 3 * 256
    assert facts.memory.graphs[facts.module.graphs["main"]].peak == 3 * 256
    assert [n.name for n in facts.memory.live_at(facts.module.graphs["inner"], node(facts, "b").index)] == ["a", "b"]
