"""Nodes by name, around a node, between two nodes."""
from __future__ import annotations

import pytest

from irscope.analysis.neighbourhood import around, between, find_node, needed_by, needing, stops
from irscope.graph import Node
from irscope.source import UserError
from tests.analysis.test_levels import DIAMOND
from tests.analysis.texts import LOOP, survey


def names(nodes: set[Node]) -> str:
    return " ".join(sorted(n.name for n in nodes))


def test_around_goes_up_and_down() -> None:
    facts = survey(DIAMOND)
    graph, c = find_node(facts, "%c")
    assert names(around(facts, graph, c, 0)) == "c"
    assert names(around(facts, graph, c, 1)) == "a c d"
    assert names(around(facts, graph, c, 2)) == "a b c d e x"


def test_crowds_of_users_are_not_followed() -> None:
    lines = ["HloModule m", "ENTRY main {", "  x = f32[4] parameter(0)", "  hub = f32[4] negate(x)"]
    lines += [f"  u{i} = f32[4] tanh(hub)" for i in range(30)] + ["  ROOT r = f32[4] add(u0, u1)", "}"]
    facts = survey("\n".join(lines))
    graph, first = find_node(facts, "u0")
    assert names(around(facts, graph, first, 2)) == "hub r u0 u1 x"


def test_tuples_are_not_followed_but_from_themselves() -> None:
    facts = survey("ENTRY main {\n x = f32[4] parameter(0)\n a = f32[4] negate(x)\n b = f32[4] tanh(x)\n"
                   " ROOT t = (f32[4], f32[4]) tuple(a, b)\n}\n")
    graph, a = find_node(facts, "a")
    _, whole = find_node(facts, "t")
    assert names(around(facts, graph, a, 2)) == "a b t x"
    assert names(around(facts, graph, a, 1)) == "a t x"
    assert names(around(facts, graph, whole, 1)) == "a b t"


def test_a_neighbourhood_goes_on_where_that_is_requested_and_says_where_it_stops() -> None:
    lines = ["HloModule m", "ENTRY main {", "  x = f32[4] parameter(0)", "  hub = f32[4] negate(x)"]
    lines += [f"  u{i} = f32[4] tanh(hub)" for i in range(17)] + ["  ROOT t = (f32[4], f32[4]) tuple(u0, u1)", "}"]
    facts = survey("\n".join(lines))
    graph, first = find_node(facts, "u0")
    users = " ".join(sorted(f"u{i}" for i in range(17)))
    assert names(around(facts, graph, first, 2)) == "hub t u0 x"
    assert names(around(facts, graph, first, 2, ["tuples"])) == "hub t u0 u1 x"
    assert names(around(facts, graph, first, 2, ["fan-out"])) == f"hub t {users} x"
    assert [node.name for node in stops(facts, graph, first, 2)] == ["hub", "t"]
    assert [node.name for node in stops(facts, graph, first, 1)] == []
    assert [node.name for node in stops(facts, graph, first, 2, ["fan-out"])] == [], "what it holds is there by another way"
    assert [node.name for node in stops(facts, graph, first, 2, ["tuples"])] == ["hub"]


def test_between_is_what_lies_on_paths() -> None:
    facts = survey(DIAMOND)
    graph, a = find_node(facts, "a")
    _, d = find_node(facts, "d")
    _, b = find_node(facts, "b")
    assert names(between(facts, graph, a, d)) == names(between(facts, graph, d, a)) == "a c d"
    assert between(facts, graph, b, d) == set()
    assert names(needed_by(graph, b)) == "a b x"
    assert names(needing(facts, graph, d)) == "d e"


def test_names_are_searched_in_the_entry_first_and_near_ones_offered() -> None:
    facts = survey(LOOP)
    assert find_node(facts, "x")[0].name == "main"
    assert find_node(facts, "body/x")[0].name == "body"
    with pytest.raises(UserError, match="no node %nxet") as error:
        find_node(facts, "nxet")
    assert error.value.help == "did you mean next?"
    with pytest.raises(UserError, match="is in 2 graphs"):
        find_node(facts, "i")
