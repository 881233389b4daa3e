"""What passes are written with: looking, rebuilding, and patterns."""
from __future__ import annotations

from collections.abc import Sequence

import irscope
from irscope.graph import Builder, Graph, Node, TupleType
from irscope.ops import get
from irscope.passes.pattern import DataflowPattern, Match, anything, constant, op, parameter
from irscope.passes.visitor import GraphMutator, GraphVisitor
from tests.effort import within
from tests.passes.relay_runs import outputs

TEXT = """def @main(%x: Tensor[(2, 4), float32], %w: Tensor[(8, 4), float32], %b: Tensor[(8), float32]) {
  %0 = nn.dense(%x, %w, units=8);
  %1 = nn.bias_add(%0, %b);
  %2 = nn.relu(%1);
  %3 = multiply(%2, 2f);
  add(%3, %2)
}
"""


def graph_of(text: str = TEXT) -> Graph:
    return irscope.load(text).module().main()


def named(graph: Graph, name: str) -> Node:
    return next(n for n in graph.nodes if n.name == name)


def test_a_visitor_sees_every_node_and_finds_methods_by_operator() -> None:
    class Counts(GraphVisitor):
        relus = others = users_of_relu = 0

        def visit_nn_relu(self, node: Node) -> None:
            self.relus += 1
            self.users_of_relu = len(self.users[node.index])

        def visit(self, node: Node) -> None:
            self.others += 1
    counts = Counts()
    counts.run(irscope.load(TEXT).module())
    assert (counts.relus, counts.others, counts.users_of_relu) == (1, 8, 2)


def test_a_mutator_replaces_and_leaves_out_what_nobody_reads() -> None:
    class Clip(GraphMutator):
        def visit_nn_relu(self, node: Node, operands: Sequence[Node]) -> Node | None:
            return self.add("clip", [self.new(node.operands[0].operands[0])], a_min=0.0, a_max=1.0)
    module = irscope.load(TEXT).module()
    made = Clip().run(module)
    assert [n.op.name for n in made.main().nodes if n.op.name not in ("parameter", "constant")] == ["nn.dense", "clip", "multiply", "add"]
    assert str(named(made.main(), "2").type) == "f32[2,8]"
    assert [n.op.name for n in module.main().nodes].count("nn.relu") == 1
    assert outputs(made)[0].max() <= 3


def test_a_mutator_knows_who_else_needs_a_value() -> None:
    told: dict[str, list[str]] = {}

    class Asks(GraphMutator):
        def visit(self, node: Node, operands: Sequence[Node]) -> Node | None:
            for operand in node.operands:
                told[f"{operand.name} by {node.name}"] = self.needed_elsewhere(operand, node)
            return None
    Asks().run(irscope.load(TEXT).module())
    assert told["1 by 2"] == []
    assert told["2 by 3"] == [f"%{graph_of().result().name}"]


def test_what_a_match_holds_and_who_else_reads_it() -> None:
    graph = graph_of()
    core, biased, whole = dense()
    found = whole.match(named(graph, "2"))
    assert found is not None and all(pattern in found for pattern in (core, biased, whole)) and anything() not in found
    assert [node.name for node in found.inputs()] == ["x", "w", "b"] and found[core] is named(graph, "0")
    assert found.escapes(graph, graph.users()) is None, "others may read the root"
    graph.root = named(graph, "1")
    assert found.escapes(graph, graph.users()) == (named(graph, "1"), "the result of the function")
    graph = graph_of(TEXT.replace("add(%3, %2)", "add(%3, %1)"))
    found = whole.match(named(graph, "2"))
    assert found is not None and found.escapes(graph, graph.users()) == (named(graph, "1"), f"%{graph.result().name}")


def dense() -> tuple[DataflowPattern, DataflowPattern, DataflowPattern]:
    core = op("nn.dense")(anything(), anything())
    biased = core.optional(lambda x: op("nn.bias_add")(x, anything()))
    return core, biased, op("nn.relu", "tanh")(biased)


def test_patterns_find_nodes_and_what_comes_in() -> None:
    core, biased, act = dense()
    graph = graph_of()
    found = act.match(named(graph, "2"))
    assert found is not None
    assert [n.name for n in found.inside] == ["2", "1", "0"]
    assert found[core].name == "0" and found[biased].name == "1"
    assert [n.name for n in found.inputs()] == ["x", "w", "b"]
    assert act.match(named(graph, "3")) is None


def test_what_is_optional_may_be_missing() -> None:
    core, biased, act = dense()
    graph = graph_of(TEXT.replace("  %2 = nn.relu(%1)", "  %2 = nn.relu(%0)"))
    found = act.match(named(graph, "2"))
    assert found is not None and found[core] is found[biased]


def test_a_match_that_others_read_into_is_told() -> None:
    graph = graph_of(TEXT.replace("add(%3, %2)", "add(%3, %1)"))
    found = dense()[2].match(named(graph, "2"))
    assert found is not None
    node, who = found.escapes(graph, graph.users()) or (graph.result(), "")
    assert (node.name, who) == ("1", f"%{graph.result().name}")
    whole = graph_of()
    again = dense()[2].match(named(whole, "2"))
    assert isinstance(again, Match) and again.escapes(whole, whole.users()) is None


def test_attributes_conditions_and_kinds_of_operands() -> None:
    graph = graph_of()
    root = named(graph, "3")
    assert op("multiply")(anything(), constant()).match(root) is not None
    assert op("multiply")(anything(), parameter()).match(root) is None
    assert op("nn.dense").with_attrs(units=8).match(named(graph, "0")) is not None
    assert op("nn.dense").with_attrs(units=9).match(named(graph, "0")) is None
    assert op("nn.dense").of_rank(3).match(named(graph, "0")) is None
    same = anything()
    assert op("add")(same, same).match(graph.result()) is None
    assert op("add")(op("multiply")(same, constant()), same).match(graph.result()) is not None


def test_a_condition_on_a_choice_holds_for_each_of_its_ways() -> None:
    graph = graph_of()
    either = (op("multiply")(anything(), anything()) | op("add")(anything(), anything())).where(lambda node: node.name == "3")
    assert either.match(named(graph, "3")) is not None
    assert either.match(graph.result()) is None


def test_a_value_with_very_many_users_is_judged_as_quickly_as_any() -> None:
    lines = [f"  %{n} = nn.relu(%c);" for n in range(1, 20_001)]
    text = "\n".join(["def @main(%x: Tensor[(4), float32]) {", "  let %c = exp(%x);", *lines, "  add(%1, %20000)", "}", ""])
    graph = graph_of(text)
    users = graph.users()
    pattern = op("nn.relu")(op("exp")(anything()))

    class Asks(GraphMutator):
        asked = 0

        def visit_nn_relu(self, node: Node, operands: Sequence[Node]) -> Node | None:
            self.asked += 1
            self.said = self.needed_elsewhere(node.operands[0], node)
            return None

    with within(5):  # a look at all users for each of them takes minutes
        for node in graph.nodes[2:]:
            found = pattern.match(node)
            assert found is None or found.escapes(graph, users)
        asks = Asks()
        module = irscope.load(text).module()
        module.main().root = Builder(module.main()).add(get("tuple"), module.main().nodes[2:], type=TupleType(()))
        asks.run(module)
    assert asks.asked == 20_000 and asks.said[:2] == ["%1", "%2"] and asks.said[8:] == ["19991 more"]
