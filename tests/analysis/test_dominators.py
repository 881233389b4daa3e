"""Dominators against their definition: without one of them, there is no path left."""
from __future__ import annotations

from collections.abc import Callable, Iterable

from hypothesis import given
from hypothesis import strategies as st

from irscope.analysis.dominators import dominators, dominators_between, postdominators
from irscope.graph import Node
from tests.analysis.texts import survey
from tests.effort import within

TEXT = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  one = f32[4] constant({1, 1, 1, 1})
  a = f32[4] add(x, one)
  b = f32[4] negate(a)
  c = f32[4] tanh(a)
  d = f32[4] add(b, c)
  w = f32[4] parameter(1)
  dead = f32[4] negate(d)
  ROOT r = f32[4] multiply(d, w)
}"""


def names(nodes: Iterable[Node]) -> str:
    return " ".join(node.name for node in sorted(nodes, key=lambda node: node.index))


def test_dominators_of_a_small_graph() -> None:
    facts = survey(TEXT)
    graph = facts.module.main()
    place = {node.name: node for node in graph.nodes}
    assert names(dominators(graph, place["d"])) == "x a d"
    assert names(dominators(graph, place["r"])) == "r", "w is a parameter of its own"
    assert names(dominators(graph, place["one"])) == "one"
    assert names(postdominators(facts, graph, place["x"])) == "x a d r"
    assert names(postdominators(facts, graph, place["dead"])) == "dead"
    assert names(dominators_between(facts, graph, place["x"], place["r"])) == "x a d r"
    assert names(dominators_between(facts, graph, place["d"], place["x"])) == "x a d"
    assert dominators_between(facts, graph, place["b"], place["c"]) == set()


def reaches(starts: Iterable[Node], end: Node, near: Callable[[Node], Iterable[Node]], without: Node) -> bool:
    stack, seen = [node for node in starts if node is not without], set[Node]()
    while stack:
        node = stack.pop()
        if node is end:
            return True
        new = [other for other in near(node) if other is not without and other not in seen]
        seen.update(new)
        stack += new
    return False


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=12), st.integers(0, 30), st.integers(0, 30))
def test_they_are_the_nodes_without_which_there_is_no_path(steps: list[tuple[int, int]], i: int, j: int) -> None:
    lines = ["HloModule m", "ENTRY e {", "  v0 = f32[2] parameter(0)", "  v1 = f32[2] parameter(1)", "  v2 = f32[2] constant({1, 2})"]
    for k, (a, b) in enumerate(steps, start=3):
        lines.append(f"  {'ROOT ' if k == len(steps) + 2 else ''}v{k} = f32[2] add(v{a % k}, v{b % k})")
    facts = survey("\n".join([*lines, "}"]))
    graph = facts.module.main()
    users = facts.users(graph)
    first, end = graph.nodes[i % len(graph.nodes)], graph.nodes[j % len(graph.nodes)]
    assert graph.root is not None

    def after(node: Node) -> Iterable[Node]:
        return users[node.index]

    if any(reaches([param], end, after, graph.nodes[2]) for param in graph.params):
        expected = {node for node in graph.nodes if node is end or not reaches(graph.params, end, after, node)}
        assert dominators(graph, end) == expected
    lower, upper = sorted((first, end), key=lambda node: node.index)
    path = reaches([lower], upper, after, Node.__new__(Node))
    expected = {node for node in graph.nodes if node in (lower, upper) or not reaches([lower], upper, after, node)} if path else set()
    assert dominators_between(facts, graph, first, end) == expected
    if reaches([first], graph.root, after, Node.__new__(Node)):
        expected = {node for node in graph.nodes if node in (first, graph.root) or not reaches([first], graph.root, after, node)}
        assert postdominators(facts, graph, first) == expected


def test_a_long_chain_that_meets_its_start_again_and_again_takes_little_time() -> None:
    """Each add reads the end of the chain and the parameter: a walk up the tree for each of them would take 10,000 times 10,000 steps."""
    n = 10_000
    lines = ["HloModule m", "ENTRY e {", "  x = f32[2] parameter(0)", "  c0 = f32[2] negate(x)"]
    lines += [f"  c{i} = f32[2] negate(c{i - 1})" for i in range(1, n)]
    lines += [f"  s0 = f32[2] add(c{n - 1}, c0)", *(f"  s{i} = f32[2] add(c{n - 1}, c{i % 7})" for i in range(1, n))]
    lines += [f"  ROOT t = ({', '.join(['f32[2]'] * n)}) tuple({', '.join(f's{i}' for i in range(n))})", "}"]
    graph = survey("\n".join(lines)).module.main()
    assert graph.root is not None
    with within(5):
        assert names(dominators(graph, graph.root)) == "x c0 t"
