"""Which module, graph and nodes a user means; snapshots of a log of passes; every column, node by node; numbers with units."""
from __future__ import annotations

import pytest

import irscope
from irscope.graph import Graph, Module, Reading
from irscope.query import COLUMNS, parse
from irscope.query.choose import Wanted, choose, choose_modules
from irscope.query.snapshots import find, picked, snapshots
from irscope.source import SourceText, UserError
from tests.analysis.texts import FUSED, survey

TEXT = """HloModule m
f { p = f32[2] parameter(0)
 n = f32[2] negate(p)
 ROOT s = f32[2] negate(n) }
ENTRY e { x = f32[2] parameter(0)
 y = f32[2] parameter(1)
 a = f32[2] negate(x)
 b = f32[2] call(a), to_apply=f
 c = f32[2] add(b, y)
 ROOT r = f32[2] exponential(c) }
"""
MODULE = irscope.load(TEXT).module()


def chosen(wanted: Wanted, several: bool = False) -> tuple[str, str | None]:
    found = choose(MODULE, wanted, several)
    return found.graph.name, None if found.picked is None else " ".join(sorted(node.name for node in found.picked))


@pytest.mark.parametrize(("wanted", "graph", "nodes", "what"), [
    (Wanted(), "e", None, ""), (Wanted(graph="f"), "f", None, ""),
    (Wanted(around="b"), "e", "a b c r x y", "within 2 of %b"), (Wanted(around="b", radius=1), "e", "a b c", "within 1 of %b"),
    (Wanted(around="n", graph="f", radius=1), "f", "n p s", "within 1 of %n"), (Wanted(around="f/n", radius=0), "f", "n", "within 0 of %n"),
    (Wanted(between=("x", "c")), "e", "a b c x", "between %x and %c"), (Wanted(where="op=add"), "e", "c", "where op=add"),
    (Wanted(where="negate"), "f", "n s", "where negate"), (Wanted(where="negate", graph="e"), "e", "a", "where negate"),
], ids=str)
def test_nodes_that_a_user_means(wanted: Wanted, graph: str, nodes: str | None, what: str) -> None:
    assert chosen(wanted) == (graph, nodes) and choose(MODULE, wanted, False).what == what
    assert wanted.picks is (nodes is not None)


def test_a_neighbourhood_says_where_it_stops_and_how_to_go_on() -> None:
    text = "ENTRY e { x = f32[2] parameter(0)\n a = f32[2] negate(x)\n b = f32[2] tanh(x)\n ROOT t = (f32[2], f32[2]) tuple(a, b) }"
    module = irscope.load(text + "\n").module()
    assert choose(module, Wanted(around="a", radius=2), False).what == "within 2 of %a"
    text = text.replace("tanh(x)", "constant({1, 2})")
    module = irscope.load(text + "\n").module()
    assert choose(module, Wanted(around="a"), False).what == "within 2 of %a, not through %t (--through tuples)"
    found = choose(module, Wanted(around="a", through=("tuples",)), False)
    assert found.what == "within 2 of %a" and found.picked is not None and {node.name for node in found.picked} == {"x", "a", "b", "t"}


def test_a_query_over_several_graphs_keeps_the_nodes_of_all() -> None:
    assert chosen(Wanted(where="negate"), several=True) == ("f", "a n s")
    centre = choose(MODULE, Wanted(around="b"), False).centre
    assert centre is not None and centre.name == "b" and choose(MODULE, Wanted(), False).centre is None


@pytest.mark.parametrize(("wanted", "message"), [
    (Wanted(where="op=dot"), "no node matches 'op=dot'"), (Wanted(between=("x", "n")), "%x stands in e, %n in f"),
    (Wanted(between=("x", "y")), "there is no path between %x and %y"), (Wanted(graph="g"), "g"), (Wanted(around="zz"), "zz"),
])
def test_what_is_not_there(wanted: Wanted, message: str) -> None:
    with pytest.raises(UserError, match=message):
        choose(MODULE, wanted, False)


def test_modules_by_name_and_by_graph() -> None:
    a, b = Module("a", MODULE.dialect), Module("b", MODULE.dialect, {"g": Graph("g")}, "g")
    reading = Reading(SourceText("t", ""), "hlo", [a, b])
    assert choose_modules(reading, Wanted()) == [a, b] and choose_modules(reading, Wanted(where="dot")) == [a]
    assert choose_modules(reading, Wanted(module="b", where="dot")) == [b]
    assert choose_modules(reading, Wanted(graph="g")) == [b] and choose_modules(reading, Wanted(graph="h")) == [a]
    with pytest.raises(UserError, match="t holds no module c") as error:
        choose_modules(reading, Wanted(module="c"))
    assert error.value.help == "it holds a, b"
    assert choose(Module("empty", MODULE.dialect), Wanted(), False).graph.name == "empty"
    cut = Module("cut", MODULE.dialect, {"f": MODULE.graphs["f"], "g": Graph("g")})
    assert choose(cut, Wanted(), False).graph.name == "g", "the last one, without an entry"


COLUMN_ROWS = {
    "op": "parameter parameter constant dot fusion reduce", "name": "x w zero dot biased total", "rank": "2 2 0 2 2 1",
    "entry": "1 1 1 1 1 1", "fused": "0 0 0 0 0 0", "root": "0 0 0 0 0 1", "scalar": "0 0 1 0 0 0", "known": "1 1 1 1 1 1",
}


@pytest.mark.parametrize("column", COLUMN_ROWS)
def test_columns_of_the_entry(column: str) -> None:
    facts = survey(FUSED)
    graph = facts.module.main()
    wanted = dict(zip(COLUMN_ROWS["name"].split(), COLUMN_ROWS[column].split(), strict=True))
    answers = {node.name: COLUMNS[column].ask(facts, graph, node) for node in graph.nodes if node.name in wanted}
    shown = {name: str(int(a)) if isinstance(a, bool | float) else a for name, a in answers.items()}
    assert shown == wanted


PLAIN = """HloModule m
ENTRY e {
 x = f32[4,8] parameter(0)
 w = f32[8,2] parameter(1)
 d = f32[4,2] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
 ROOT t = (f32[4,2], s8[3]{0}, token[]) custom-call(d, d), custom_call_target="f"
}
"""


@pytest.mark.parametrize(("column", "values"), [
    ("shape", ["4,8", "8,2", "4,2", "4,2"]), ("dtype", ["f32", "f32", "f32", "f32"]), ("elements", [32, 16, 8, 11]),
    ("bytes", [128, 64, 32, 35]), ("users", [1, 1, 1, 0]), ("operands", [0, 0, 2, 2]), ("level", [0, 0, 1, 2]), ("line", [3, 4, 5, 6]),
    ("times", [1, 1, 1, 1]), ("graph", ["e"] * 4), ("calls", [""] * 4), ("flops", [0, 0, 128, None]), ("traffic", [None, None, 224, None]),
    ("intensity", [0, 0, 128 / 224, None]), ("scope", [""] * 4), ("source", [""] * 4), ("type", ["f32[4,8]", "f32[8,2]", "f32[4,2]", None]),
])
def test_columns_of_plain_nodes(column: str, values: list[object]) -> None:
    facts = survey(PLAIN)
    graph = facts.module.main()
    found = [COLUMNS[column].ask(facts, graph, node) for node in graph.nodes]
    assert [a for a, b in zip(found, values, strict=True) if b is not None] == [b for b in values if b is not None]


def test_a_result_without_arrays_has_no_shape() -> None:
    facts = survey("HloModule m\nENTRY e {\n ROOT t = token[] after-all()\n}\n")
    graph = facts.module.main()
    (node,) = graph.nodes
    assert [COLUMNS[c].ask(facts, graph, node) for c in ("dtype", "shape", "rank", "elements", "scalar")] == ["token[]", "", 0.0, 0.0, False]


@pytest.mark.parametrize(("query", "names"), [
    ("elements>=1k", ""), ("bytes=1MB", ""), ("bytes>1e2", "x"), ("bytes<64B", "d t"), ("bytes<=64", "w d t"), ("bytes>64B", "x"),
    ("bytes>=64", "x w"), ("bytes==32", "d"), ("bytes!=32", "x w t"), ("bytes<0.1k", "w d t"), ("bytes<0.0625ki", "d t"), ("bytes<=0.0625KiB", "w d t"),
    ("flops<1m and flops>0", "d"), ("flops<1G and flops>0", "d"), ("flops<1Ti and flops>0", "d"), ("flops>=0.000128M and flops>0", "d"),
    ("flops<=0.000128m and flops>0", "d"), ("flops=0.000000128g", "d"), ("bytes=0.00003051757812500Mi", "d"), ("bytes<0.000001gi", "x w d t"),
    ("name!~^d", "x w t"), ("name~D|t", "t"), ("op!=parameter", "d t"), ("not not dot", "d"), ("! dot", "x w t"), ("users>1", ""),
    ("root=false", "x w d"), ("root=true", "t"), ("root=no", "x w d"), ("root", "t"), ("%d", "d"), ("name=%d", "d"), ('name="d"', "d"),
    ("name=?", "x w d t"), ("near(d, 1)", "x w d t"), ("near(d,0)", "d"), ("near(t)", "x w d t"), ("deps(d)", "x w d"), ("uses(x)", "x d t"),
    ("path(x,t)", "x d t"), ("path(w, d)", "w d"), ("between(x,t)", "x d t"), ("dominators(t)", "d t"), ("dominators(x, t)", "x d t"),
    ("postdominators(w)", "w d t"), ("near(d, 1, tuples)", "x w d t"), ("near(d,1,tuples,fan-out)", "x w d t"),
])
def test_values_and_functions_of_queries(query: str, names: str) -> None:
    assert " ".join(node.name for _, node in parse(query).select(survey(PLAIN))) == names


LOG = """{}
def @main(%x: float32) -> float32 {{ add(%x, %x) }}
{}
def @main(%x: float32) -> float32 {{ multiply(%x, add(%x, %x)) }}
{}
def @main(%x: float32) -> float32 {{ %x }}
"""


def log(*marks: str) -> Reading:
    return irscope.load(LOG.format(*(f"# Print IR {mark}" for mark in marks)))


def test_snapshots_of_a_log() -> None:
    found = snapshots(log("before: a", "after: a", "after: b"))
    assert [(s.number, s.words, dict(s.came), dict(s.went)) for s in found] == [
        (1, "before a", {}, {}), (2, "after a", {"multiply": 1}, {}), (3, "after b", {}, {"add": 1, "multiply": 1})]
    assert snapshots(irscope.load(TEXT)) == []


@pytest.mark.parametrize(("marks", "wanted", "numbers"), [
    (("before: a", "after: a", "after: b"), "a", (1, 2)), (("before: a", "after: a", "after: b"), "before a", (None, 1)),
    (("before: a", "after: a", "after: b"), "b", (2, 3)), (("before: a", "after: a", "after: b"), "3", (2, 3)),
    (("before: a", "after: a", "after: b"), "1", (None, 1)), (("before: a", "after: b", "after: a"), "a", (1, 3)),
    (("before: a", "before: b", "before: c"), "a", (1, 2)), (("before: a", "before: b", "before: c"), "c", (2, 3)),
    (("before: a", "before: b", "before: c"), "before a", (None, 1)), (("after: a", "after: b", "after: a"), "3", (2, 3)),
])
def test_what_a_pass_got_and_gave(marks: tuple[str, ...], wanted: str, numbers: tuple[int | None, int]) -> None:
    base, shown = find(snapshots(log(*marks)), wanted)
    assert (base.number if base else None, shown.number) == numbers
    assert picked(log(*marks), wanted).graphs.keys() == shown.module.graphs.keys()


@pytest.mark.parametrize(("wanted", "message", "help"), [
    ("4", "there is no snapshot 4", "they are 1 to 3"), ("0", "there is no snapshot 0", "they are 1 to 3"),
    ("²", "there is no snapshot of the pass ²", "there are a, b"), ("9" * 5000, "there is no snapshot of the pass 9", "there are a, b"),
    ("zzz", "there is no snapshot of the pass zzz", "there are a, b"),
])
def test_snapshots_that_are_not_there(wanted: str, message: str, help: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        find(snapshots(log("before: a", "after: a", "after: b")), wanted)
    assert error.value.help == help
    with pytest.raises(UserError) as none:
        find([], wanted)
    assert none.value.help == "the text is no log of passes"


def test_without_a_name_the_first_module_is_meant() -> None:
    reading = log("before: a", "after: a", "after: b")
    assert picked(reading, None) is reading.modules[0] and picked(reading, "2") is reading.modules[1]
