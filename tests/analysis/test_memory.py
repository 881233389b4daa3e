"""How long values live and how much lives at once, against a slow count."""
from __future__ import annotations

import pytest
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


@pytest.mark.parametrize("call", ["call(x), to_apply=inner", "conditional(c, x, x), true_computation=inner, false_computation=inner"])
def test_the_result_of_a_call_lives_until_its_last_use(call: str) -> None:
    facts = survey(f"""HloModule m
inner {{ p = f32[64] parameter(0)
  ROOT d = f32[64] reverse(p), dimensions={{0}} }}
ENTRY main {{ x = f32[64] parameter(0)
  c = pred[] parameter(1)
  y = f32[64] {call}
  z = f32[64] reverse(x), dimensions={{0}}
  w = f32[64] reverse(z), dimensions={{0}}
  ROOT r = f32[64] add(y, w) }}
""")
    main = facts.module.graphs["main"]
    assert facts.memory.graphs[main].live[node(facts, "y").index:] == [256, 512, 768, 512]
    assert [n.name for n in facts.memory.live_at(main, node(facts, "w").index)] == ["y", "z", "w"]


def test_what_a_list_gathers_lives_until_the_list_is_read() -> None:
    facts = survey("""graph(%x : Float(4, 16, strides=[16, 1], requires_grad=0, device=cpu)):
  %one : int = prim::Constant[value=1]()
  %a : Float(4, 16, strides=[16, 1], requires_grad=0, device=cpu) = aten::relu(%x)
  %b : Float(4, 16, strides=[16, 1], requires_grad=0, device=cpu) = aten::tanh(%x)
  %both : Tensor[] = prim::ListConstruct(%a, %b)
  %c : Float(4, 32, strides=[32, 1], requires_grad=0, device=cpu) = aten::cat(%both, %one)
  return (%c)
""")
    entry = facts.module.main()
    assert facts.memory.graphs[entry].live[node(facts, "a").index:][:4] == [256, 512, 512, 1024]
