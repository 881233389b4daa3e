"""What --why-not-fused tells of an edge beside the verdict: its cost, its place in the user's program, and how many are like it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

import irscope
from irscope.cli.main import main
from irscope.fusion.plan import EdgeVerdict
from irscope.graph import Node
from irscope.lint.context import Context
from irscope.lint.edges import Edge, edges_of, folded
from irscope.lint.settings import Settings
from irscope.lint.verdicts import verdicts_of

LAYERS = 3


def layers(trips: int | None = None) -> str:
    """Equal layers, each a softmax-like sum that its division reads; in a loop of ``trips`` where that is given."""
    lines, value = [], "x"
    for i in range(LAYERS):
        def where(name: str, line: int, layer: int = i) -> str:
            return f'metadata={{op_name="jit(f)/layer_{layer}/{name}" source_file="net.py" source_line={line}}}'

        lines += [f"e{i} = f32[256,512]{{1,0}} exponential({value}), " + where("exp", 7),
                  f"t{i} = f32[256]{{0}} reduce(e{i}, zero), dimensions={{1}}, to_apply=sum, " + where("sum", 8),
                  f"b{i} = f32[256,512]{{1,0}} broadcast(t{i}), dimensions={{0}}, " + where("div", 9),
                  f"d{i} = f32[256,512]{{1,0}} divide(e{i}, b{i}), " + where("div", 9)]
        value = f"d{i}"
    body = "\n".join("  " + line for line in lines)
    zero = "  zero = f32[] constant(0)\n"
    head = "HloModule m\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
    if trips is None:
        return f"{head}ENTRY e {{\n  x = f32[256,512]{{1,0}} parameter(0)\n{zero}{body}\n  ROOT r = f32[256,512]{{1,0}} negate({value})\n}}\n"
    state = "(s32[], f32[256,512]{1,0})"
    return f"""{head}
body {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[256,512]{{1,0}} get-tuple-element(p), index=1
{zero}{body}
  r = f32[256,512]{{1,0}} negate({value})
  ROOT t = {state} tuple(next, r)
}}
cond {{
  p = {state} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant({trips})
  ROOT l = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = f32[256,512]{{1,0}} parameter(0)
  z = s32[] constant(0)
  t = {state} tuple(z, x)
  w = {state} while(t), condition=cond, body=body, backend_config={{"known_trip_count":{{"n":"{trips}"}}}}
  ROOT r = f32[256,512]{{1,0}} get-tuple-element(w), index=1
}}
"""


def policy_edges(text: str, policy: str = "xla-cpu") -> list[Edge]:
    """The edges of a module under a policy."""
    module = irscope.load(text).module()
    return edges_of(Context(module, Settings(policy=policy)), verdicts_of(module, policy))


def printed(capsys: pytest.CaptureFixture[str], path: Path, *more: str) -> str:
    """What the command prints for a file."""
    assert main(["lint", str(path), "--why-not-fused", "--policy", "xla-cpu", "--exit-zero", *more]) == 0
    return capsys.readouterr().out


def between(edges: list[Edge], producer: str, consumer: str) -> Edge:
    """The edge between two nodes."""
    return next(e for e in edges if e.verdict.names == (producer, consumer))


def test_an_edge_tells_what_goes_over_it_and_where_both_ends_come_from() -> None:
    edge = between(policy_edges(layers()), "t1", "b1")
    assert (edge.carries, edge.ops, edge.sources) == ("f32[256]", ("reduce", "broadcast"), ("net.py:8", "net.py:9"))
    assert edge.place is not None and layers().splitlines()[edge.place.line - 1].strip().startswith("b1 =")


def test_the_only_reader_pays_for_the_write_and_for_a_launch() -> None:
    machine = Settings(policy="xla-cpu").table()
    edge = between(policy_edges(layers()), "t1", "b1")
    assert edge.verdict.fused == "none" and edge.bytes == 2 * 256 * 4
    assert edge.us == pytest.approx(machine.move_us(1024, 1024) + machine.launch("xla-cpu"), abs=1e-3)


def test_one_reader_of_several_pays_for_what_it_reads_alone() -> None:
    text = """HloModule m
ENTRY e {
  x = f32[64,64]{1,0} parameter(0)
  s = f32[64,64]{1,0} sort(x), dimensions={1}, to_apply=lt
  a = f32[64,64]{1,0} negate(s)
  b = f32[64,64]{1,0} dot(s, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(a, b)
}
""".replace("ENTRY", "lt { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT l = pred[] compare(p, q), direction=LT }\nENTRY")
    edge = between(policy_edges(text), "s", "a")
    machine = Settings(policy="xla-cpu").table()
    assert edge.bytes == 64 * 64 * 4 and edge.us == pytest.approx(machine.move_us(edge.bytes, 0), abs=1e-3)


def test_an_edge_inside_a_loop_counts_once_a_trip() -> None:
    once, often = between(policy_edges(layers()), "t1", "b1"), between(policy_edges(layers(trips=10)), "t1", "b1")
    assert often.bytes == 10 * once.bytes and often.us == pytest.approx(10 * once.us, rel=0.01)


def test_edges_of_equal_layers_are_one_kind_and_the_costliest_comes_first() -> None:
    groups = folded(policy_edges(layers()))
    assert [edge.verdict.producer.name for edge in next(g for g in groups if g[0].verdict.producer.name == "t0")] == [f"t{i}" for i in range(LAYERS)]
    costs = [sum(edge.us for edge in group) for group in groups]
    assert costs == sorted(costs, reverse=True)
    assert sum(len(group) for group in groups) == sum(edge.is_apart for edge in policy_edges(layers()))


def test_fused_edges_and_nodes_that_the_text_does_not_have_cost_nothing() -> None:
    module = irscope.load(layers()).module()
    graph = module.main()
    nodes = {node.name: node for node in graph.nodes}
    other = Node(nodes["b1"].op, "not-in-the-text", nodes["b1"].type)
    made = edges_of(Context(module), [EdgeVerdict(graph, nodes["b1"], nodes["d1"], "all"), EdgeVerdict(graph, other, nodes["d1"], "none")])
    assert [(edge.us, edge.bytes) for edge in made] == [(0.0, 0.0)] * 2
    assert [edge.sources for edge in made] == [("", ""), ("", "net.py:9")]  # an end that the text has keeps its line
    assert made[0].ops == ("broadcast", "divide") and made[1].ops == ("", "divide")


def test_the_report_names_one_of_each_kind_and_all_shows_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.hlo"
    path.write_text(layers())
    said = printed(capsys, path)
    assert "reduce in layer_0 at net.py:8 -> broadcast in layer_0 at net.py:9; f32[256], costs at most" in said
    assert f"{LAYERS} times: also %t1 -> %b1, %t2 -> %b2" in said and "%t1 -> %b1  fused" not in said
    many = "\n".join(f"  y{i} = f32[{i + 8}]{{0}} sort(x{i}), dimensions={{0}}, to_apply=lt\n  n{i} = f32[{i + 8}]{{0}} negate(y{i})" for i in range(40))
    inputs = "\n".join(f"  x{i} = f32[{i + 8}]{{0}} parameter({i})" for i in range(40))
    types, values = ", ".join(f"f32[{i + 8}]{{0}}" for i in range(40)), ", ".join(f"n{i}" for i in range(40))
    less = "lt { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT l = pred[] compare(p, q), direction=LT }"
    path.write_text(f"HloModule m\n{less}\nENTRY e {{\n{inputs}\n{many}\n  ROOT t = ({types}) tuple({values})\n}}\n")
    few, everything = printed(capsys, path), printed(capsys, path, "--all")
    assert "and 20 more edges, which cost less" in few and "%y0 -> %n0" not in few and "%y39 -> %n39" in few
    assert "more edges" not in everything and "%y0 -> %n0" in everything


def test_json_has_the_cost_the_sources_and_the_place_of_every_edge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.hlo"
    path.write_text(layers())
    rows = json.loads(printed(capsys, path, "--format", "json"))["files"][0]["edges"]
    row = next(r for r in rows if (r["producer"], r["consumer"]) == ("t0", "b0"))
    assert (row["type"], row["bytes"], row["sources"], row["column"]) == ("f32[256]", 2048.0, ["net.py:8", "net.py:9"], 3)
    assert row["us"] > 0
