"""Rewriting: which instructions are erased, on the worklist, and named; copies of graphs, traversal orders, users."""
from __future__ import annotations

from typing import Any

import pytest

from irscope.formats.hlo import read
from irscope.formats.hlo.dialect import HLO
from irscope.graph import (
    Builder,
    Effect,
    Graph,
    Module,
    Node,
    Op,
    bodies_of,
    callees_first,
    kept,
    live,
    reachable,
    rewrite,
    rewrite_module,
    see_through,
    tensor,
)
from irscope.graph.attributes import Attributes, attribute
from irscope.graph.effects import pure
from irscope.graph.rewrite import keep_order
from irscope.graph.rewriter import Rewriter, RewrittenNode
from irscope.graph.trace import Trace, to_text
from irscope.graph.users import FEW, Users
from irscope.graph.walk import behind, callees_first_of, leaves_of, post_order
from irscope.ops import hlo
from irscope.source import SourceText
from irscope.source.budget import BudgetExceeded

F2 = tensor("f32", 2)
PRINT = Op("print", effect=Effect.WRITES)
SEND = Op("send", effect=Effect.CONTROL)
READ = Op("read", effect=Effect.READS)


def computation(*lines: str, root: str = "") -> tuple[Rewriter[RewrittenNode], dict[str, RewrittenNode]]:
    """A computation of lines ``name op operand...``, its worklist empty; the last instruction is the root."""
    made: Rewriter[RewrittenNode] = Rewriter("c")
    names: dict[str, RewrittenNode] = {}
    ops = {"print": PRINT, "send": SEND, "read": READ}
    for line in lines:
        name, op, *operands = line.split()
        names[name] = made.add(RewrittenNode(ops.get(op) or _op(op), F2, [names[o] for o in operands]))
        names[name].label = name
        if op == "parameter":
            made.params.append(names[name])
    made.root = names[root or name]
    made.worklist.clear()
    return made, names


def _op(name: str) -> Op:
    (found,) = hlo.named(name)
    return found


def labels(instructions: Any) -> str:
    return " ".join(i.label for i in instructions)


def test_an_instruction_that_is_added_is_on_the_worklist() -> None:
    made: Rewriter[RewrittenNode] = Rewriter("c")
    x = made.add(RewrittenNode(hlo.parameter, F2))
    assert list(made.worklist) == list(made.instructions) == [x] and made.loc == -1 and made.name == "c"


def test_users_read_the_replacement_and_what_only_the_old_one_read_is_erased() -> None:
    made, by = computation("x parameter", "y parameter", "a negate x", "b exponential a", "c add b y", "d add b x", "r tuple c d")
    assert made.replace(by["b"], by["y"])
    assert labels(made.instructions) == "x y c d r" and labels(made.worklist) == "c d y x"
    assert by["c"].operands == [by["y"], by["y"]] and by["d"].operands == [by["y"], by["x"]]
    assert by["b"].erased and by["a"].erased and by["b"].replacement is by["y"] and by["a"].replacement is None
    assert labels(by["x"].users) == "d" and labels(by["y"].users) == "c d" and not by["b"].users
    assert by["y"].label == "y" and by["b"].label == "b", "the new one has a name already"


def test_a_new_root_takes_the_name_and_the_origins() -> None:
    made, by = computation("x parameter", "a negate x")
    first, second = Node(hlo.negate, "first", F2), Node(hlo.negate, "second", F2)
    by["a"].origin = (first,)
    new = made.add(RewrittenNode(hlo.exponential, F2, [by["x"]], origin=(second,)))
    made.replace(by["a"], new)
    assert made.root is new and new.label == "a" and by["a"].label == "" and new.origin == (first, second)
    again = made.add(RewrittenNode(hlo.sine, F2, [by["x"]], origin=(first,)))
    made.replace(new, again)
    assert again.origin == (first,), "one of the same origin keeps its own"
    assert labels(made.instructions) == "x a" and again.bodies == ()


def test_parameters_stay_when_they_are_replaced() -> None:
    made, by = computation("x parameter", "y parameter", "a negate x")
    made.replace(by["x"], by["y"])
    assert labels(made.instructions) == "x y a" and not by["x"].erased and by["a"].operands == [by["y"]]
    assert made.is_parameter(by["x"]) and not made.is_parameter(by["a"])


def test_dead_instructions_are_erased_but_effects_parameters_and_the_root() -> None:
    made, by = computation("x parameter", "a negate x", "b add a a", "p print a", "s send x", "l read x", "r negate x", "u parameter")
    made.root = by["r"]
    assert made.erase_all_dead()
    assert labels(made.instructions) == "x a p s r u", "a read is no reason to stay"
    assert not made.erase_all_dead() and labels(by["a"].users) == "p"
    assert [made.has_effect(by[name]) for name in "psla"] == [True, True, False, False]


def test_erasing_puts_operands_on_the_worklist_alone() -> None:
    made, by = computation("x parameter", "a negate x", "b negate a")
    made.worklist[by["b"]] = None
    made.erase(by["b"])
    assert labels(made.worklist) == "a" and labels(made.instructions) == "x a" and by["b"].erased and not by["a"].users
    made.erase_dead(by["x"])
    assert labels(made.instructions) == "x a"


def test_a_chain_of_dead_instructions_is_erased_from_its_end() -> None:
    made, by = computation("x parameter", "a negate x", "b negate a", "c add b a", "r negate x")
    made.erase_dead(by["a"])
    assert labels(made.instructions) == "x a b c r", "it still has users"
    made.erase_dead(by["c"])
    assert labels(made.instructions) == "x r" and labels(by["x"].users) == "r"


def test_computations_are_listed_callees_first() -> None:
    inner, _ = computation("x parameter")
    middle, by = computation("x parameter", "a negate x")
    by["a"].calls = (inner,)
    outer, by = computation("x parameter", "a negate x", "b negate a")
    other, _ = computation("y parameter")
    by["a"].calls, by["b"].calls = (middle,), (other,)
    assert outer.computations() == [inner, other, middle, outer]


def test_post_order_begins_at_instructions_without_users() -> None:
    made, _ = computation("x parameter", "y parameter", "b negate y", "a negate x", "d add a b", "c add b a")
    assert labels(made.post_order()) == "x a y b d c"


@pytest.mark.parametrize(("starts", "edges", "order"), [
    ("d", {"d": "bc", "b": "a", "c": "a"}, "abcd"), ("da", {"d": "cb", "b": "a", "c": "b"}, "abcd"), ("ab", {"b": "a"}, "ab"),
    ("aa", {}, "a"), ("c", {"c": "aab", "a": "b"}, "bac"), ("e", {"e": "abcd", "b": "d"}, "adbce"),
])
def test_post_order(starts: str, edges: dict[str, str], order: str) -> None:
    assert "".join(post_order(starts, lambda name: edges.get(name, ""))) == order


def test_leaves_of_nested_values(monkeypatch: pytest.MonkeyPatch) -> None:
    def parts(value: object) -> list[object] | None:
        return value if isinstance(value, list) else None
    assert leaves_of([1, [2, [], [3]], 4], parts) == [1, 2, 3, 4] and leaves_of(5, parts) == [5]
    twice: list[object] = [1]
    for _ in range(60):
        twice = [twice, twice]
    with pytest.raises(BudgetExceeded):
        leaves_of(twice, parts)


TEXT = """HloModule m
g { p = f32[2] parameter(0)
 ROOT n = f32[2] negate(p) }
f { p = f32[2] parameter(0)
 ROOT c = f32[2] call(p), to_apply=g }
ENTRY e { x = f32[2] parameter(0)
 u = f32[2] parameter(1)
 a = f32[2] negate(x)
 dead = f32[2] exponential(a)
 c = f32[2] call(a), to_apply=f
 d = f32[2] call(c), to_apply=g
 ROOT r = f32[2] add(d, a), metadata={op_name="r"} }
"""


def module() -> Module:
    return read(SourceText("m.hlo", TEXT)).module()


def names(graph: Graph) -> str:
    return " ".join(node.name for node in graph.nodes)


def test_what_is_live_and_reachable() -> None:
    graph = module().main()
    by = {node.name: node for node in graph.nodes}

    def marked(found: list[bool]) -> str:
        return " ".join(node.name for node, is_found in zip(graph.nodes, found, strict=True) if is_found)
    assert marked(live(graph)) == "x u a c d r"
    assert marked(live(graph, [by["d"]])) == "x u a d r", "d counts as if it had no operands"
    assert marked(reachable(graph, [by["dead"]])) == "x a dead" and marked(reachable(graph, [by["c"]], [by["a"]])) == "a c"
    graph.root = None
    assert marked(live(graph)) == "x u"
    graph.add(Node(PRINT, "p", F2, (by["dead"],)))
    assert marked(live(graph)) == "x u a dead p"


def test_callees_come_first() -> None:
    made = module()
    assert [g.name for g in callees_first(made)] == ["g", "f", "e"] and [g.name for g in bodies_of(made.main())] == ["f", "g"]
    assert [g.name for g in callees_first(made, made.graphs["f"])] == ["g", "f"]
    made.graphs = {name: made.graphs[name] for name in ("e", "f", "g")}
    assert [g.name for g in callees_first(made)] == ["g", "f", "e"]


def test_the_first_instruction_behind_others() -> None:
    graph = module().main()
    by = {node.name: node for node in graph.nodes}
    assert behind(by["dead"], hlo.named("exponential negate")) is by["x"] and behind(by["dead"], hlo.named("negate")) is by["dead"]
    assert behind(by["x"], hlo.named("parameter")) is by["x"]


def test_rewriting_copies_live_nodes_with_their_places() -> None:
    graph = module().main()
    graph.notes["k"] = 1
    made = rewrite(graph, lambda builder, node, operands: None)
    assert names(made) == "x u a c d r" and [p.name for p in made.params] == ["x", "u"] and made.result().name == "r"
    assert (made.name, made.loc, made.notes) == (graph.name, graph.loc, {"k": 1}) and made.notes is not graph.notes
    for node in made.nodes:
        (origin,) = node.origin
        assert origin.name == node.name and node.loc == origin.loc >= 0 and made.nodes[node.index] is node and node.bodies == origin.bodies
    assert names(rewrite(graph, lambda builder, node, operands: None, keep_dead=True)) == "x u a dead c d r"
    graph.root = None
    assert rewrite(graph, lambda builder, node, operands: None).root is None


def test_rules_replace_nodes_and_see_new_operands() -> None:
    graph = module().main()

    def rule(builder: Builder, node: Node, operands: list[Node]) -> Node | None:
        assert node.op is not hlo.parameter
        if node.name == "d":
            return builder.add(hlo.sine, operands)
        return operands[0] if node.name == "a" else None
    made = rewrite(graph, rule)  # type: ignore[arg-type]
    by = {node.name: node for node in made.nodes}
    assert names(made) == "x u c sine r" and by["r"].operands == (by["sine"], by["x"]) and by["c"].operands == (by["x"],)
    assert by["sine"].origin == (graph.nodes[5],) and by["sine"].loc == graph.nodes[5].loc
    read_: list[int] = []

    def ends(builder: Builder, node: Node, operands: list[Node]) -> Node | None:
        if node.name == "d":
            read_.append(len(operands))
            return builder.add(hlo.parameter, (), {"number": 2}, F2)
        return None
    assert names(rewrite(graph, ends, ends=[graph.nodes[5]])) == "x u a parameter r" and read_ == [0]  # type: ignore[arg-type]


def followed(*lines: str) -> dict[str, tuple[str, ...]]:
    """What each instruction that a copy of some lines keeps must follow, where it must follow any."""
    text = "ENTRY e { x = f32[2] parameter(0)\n" + "".join(f" {line}\n" for line in lines) + "}\n"
    made = rewrite(read(SourceText("m.hlo", text)).module().main(), lambda builder, node, operands: None)
    return {node.name: node.attrs["control_predecessors"] for node in made.nodes if "control_predecessors" in node.attrs}


def test_what_follows_a_removed_instruction_follows_what_that_one_followed() -> None:
    assert followed("p = f32[2] negate(x)", "q = f32[2] abs(x)", "a = f32[2] sine(x), control-predecessors={p}",
                    "b = f32[2] sine(a), control-predecessors={a, q}", "c = f32[2] cosine(x), control-predecessors={q, b}",
                    "ROOT r = (f32[2], f32[2], f32[2]) tuple(p, q, c)") == {"c": ("q", "p")}, "through several, each once"
    assert followed("p = f32[2] negate(x)", "a = f32[2] sine(x)", "b = f32[2] sine(x), control-predecessors={p, a}",
                    "c = f32[2] abs(x), control-predecessors={a}", "ROOT r = f32[2] add(b, c)") == {}, "it followed nothing"
    assert followed("p = f32[2] negate(x)", "q = f32[2] negate(p), control-predecessors={p}",
                    "ROOT r = f32[2] negate(q), control-predecessors={q, p}") == {"q": ("p",), "r": ("q", "p")}, "all are left"


def test_no_instruction_follows_itself_or_a_later_one() -> None:
    before = read(SourceText("m.hlo", """ENTRY e { x = f32[2] parameter(0)
 p = f32[2] negate(x)
 a = f32[2] sine(x), control-predecessors={p}
 b = f32[2] abs(x), control-predecessors={a}, metadata={op_name="b"}
 ROOT r = (f32[2], f32[2]) tuple(a, b) }
""")).module().main()
    x, p, a, b, r = before.nodes
    made = Graph("e", [x, p, b, a, r], [x], r)
    for index, node in enumerate(made.nodes):
        node.index = index
    attrs = dict(b.attrs)
    keep_order(made, before.nodes)
    assert b.attrs == {**attrs, "control_predecessors": ("p",)} and a.attrs["control_predecessors"] == ("p",)
    b.attrs = {**attrs, "control_predecessors": ("b",)}
    keep_order(made, [])
    assert b.attrs == {name: value for name, value in attrs.items() if name != "control_predecessors"}


def test_a_module_is_rewritten_with_its_shared_graphs() -> None:
    before = module()
    made = rewrite_module(before, lambda builder, node, operands: None)
    assert list(made.graphs) == ["g", "f", "e"] and made.entry == "e" and made.graphs["g"] is not before.graphs["g"]
    calls = [node.bodies for graph in made.graphs.values() for node in graph.nodes if node.bodies]
    assert calls == [(made.graphs["g"],), (made.graphs["f"],), (made.graphs["g"],)]
    assert names(made.main()) == "x u a c d r" and names(rewrite_module(before, lambda b, n, o: None, True).main()) == "x u a dead c d r"


def test_origins_of_a_chain_of_passes_lead_to_the_first_graph() -> None:
    first = module().main()
    second = rewrite(first, lambda builder, node, operands: None)
    third = see_through(rewrite(second, lambda builder, node, operands: None), second)
    assert [node.origin for node in third.nodes] == [(node,) for node in first.nodes if node.name != "dead"]
    both = Node(hlo.add, "both", F2, index=0, origin=(second.nodes[2], second.nodes[3], second.nodes[2], first.nodes[3]))
    graph = Graph("g", [both])
    see_through(graph, second)
    assert both.origin == (first.nodes[2], first.nodes[4], first.nodes[3]), "each once; nodes of other graphs stay"
    no_origin, only = Node(hlo.add, "n", F2, index=0), Node(hlo.add, "n", F2, index=0, origin=(Node(hlo.add, "o", F2, index=0),))
    kept = only.origin
    see_through(Graph("g", [no_origin, only]), second)
    assert no_origin.origin == () and only.origin == kept
    assert to_text(third.nodes[:2] + third.nodes[:1] + [no_origin]) == [first.nodes[0], first.nodes[1]]
    trace = Trace({first.nodes[0]: second.nodes[0]})
    assert trace.result(first.nodes[0]) is second.nodes[0] and trace.result(first.nodes[1]) is None


@pytest.mark.parametrize("count", [3, FEW, FEW + 1, 20])
def test_users_are_an_ordered_set_whose_last_one_fills_gaps(count: int) -> None:
    users: Users[int] = Users()
    for number in (*range(count), 0, count - 1):
        users.add(number)
    assert list(users) == list(range(count)) and len(users) == count and (users.places is None) is (count <= FEW)
    users.discard(count + 5)
    users.discard(1)
    order = [0, count - 1, *range(2, count - 1)]
    assert list(users) == order and 1 not in users and all(number in users for number in order)
    users.discard(order[-1])
    users.add(1)
    users.discard(0)
    assert list(users) == [1, *order[1:-1]] and len(users) == count - 2
    users.discard(1)
    assert 1 not in users and sorted(users) == sorted(order[1:-1])
    users.clear()
    assert not list(users) and users.places is None and len(users) == 0
    users.add(3)
    assert list(users) == [3]


def test_eight_users_are_searched_one_by_one() -> None:
    assert FEW == 8


class Record(Attributes):
    """Attributes of a test."""

    dims = attribute[tuple[int, ...]]()
    stable = attribute[bool](False)
    kind = attribute[str]("none", key="type")


def test_attributes_are_typed_views() -> None:
    node = Node(hlo.sort, "s", F2, attrs={"dims": (1,), "type": "up"})
    record = Record.of(node)
    assert (record.dims, record.stable, record.kind, record.attrs) == ((1,), False, "up", node.attrs)
    assert Record.dims.given(node) == (1,) and Record.stable.given(node) is None and Record.kind.key == "type" and Record.dims.key == "dims"
    with pytest.raises(KeyError, match="dims"):
        Record({}).dims  # noqa: B018
    assert Record({}).kind == "none" and Record({"stable": True}).stable


def nested(depth: int) -> Graph:
    """A graph that calls another, ``depth`` times below each other; nothing uses the results."""
    inner = Graph("f")
    for level in range(depth):
        builder = Builder(made := Graph(f"f{level}"))
        x = builder.param(hlo.parameter, F2, "x")
        builder.add(hlo.call, [x], type=F2, bodies=[inner])
        made.root = x
        inner = made
    return inner


def test_what_calls_do_is_looked_at_once_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nested calls without users each would otherwise visit all those below."""
    looked: list[Graph] = []

    def noted(*given: Any) -> list[Graph]:
        found = callees_first_of(*given)
        looked.extend(found)
        return found
    monkeypatch.setattr("irscope.graph.effects.callees_first_of", noted)
    module = Module("m", HLO, {"f": nested(50)}, "f")
    made = rewrite_module(module, lambda builder, node, operands: None)
    assert len(looked) <= 51 and [len(graph.nodes) for graph in callees_first(made)] == [1]


def test_functions_that_call_each_other_share_their_effects() -> None:
    first, second = Graph("first"), Graph("second")
    for graph, other in ((first, second), (second, first)):
        builder = Builder(graph)
        graph.root = builder.param(hlo.parameter, F2, "x")
        builder.add(hlo.call, [graph.root], type=F2, bodies=[other])
    first.add(Node(PRINT, "p", F2, (first.nodes[0],)))
    lasting: dict[Graph, bool] = {}
    for graph in (first, second):
        builder = Builder(caller := Graph("caller"))
        caller.root = builder.param(hlo.parameter, F2, "x")
        builder.add(hlo.call, [caller.root], type=F2, bodies=[graph])
        assert all(kept(caller, lasting=lasting))


def test_an_attribute_states_an_effect() -> None:
    """A call that its text says to have a side effect is kept, and so is what calls it; it is no candidate for sharing."""
    graph = read(SourceText("m.hlo", """HloModule m
logs { p = f32[2] parameter(0)
 c = f32[2] custom-call(p), custom_call_target="log", custom_call_has_side_effect=true
 ROOT n = f32[2] negate(p) }
quiet { p = f32[2] parameter(0)
 c = f32[2] custom-call(p), custom_call_target="log"
 ROOT n = f32[2] negate(p) }
ENTRY e { x = f32[2] parameter(0)
 stated = f32[2] custom-call(x), custom_call_target="log", custom_call_has_side_effect=true
 denied = f32[2] custom-call(x), custom_call_target="log", custom_call_has_side_effect=false
 outer = f32[2] call(x), to_apply=logs
 inner = f32[2] call(x), to_apply=quiet
 zero = f32[] constant(0)
 drawn = f32[2] rng(zero, zero), distribution=rng_uniform
 ROOT r = f32[2] negate(x) }
""")).module().main()
    assert [node.name for node, stays in zip(graph.nodes, kept(graph), strict=True) if not stays] == ["denied", "inner"], "drawing a number changes the state of the generator"
    assert [node.name for node, is_pure in zip(graph.nodes, pure(graph), strict=True) if not is_pure] == ["stated", "outer", "drawn"]
