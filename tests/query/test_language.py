"""The query language: what it picks, and how it says that it does not understand."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irscope.query import COLUMNS, parse
from irscope.source import UserError
from tests.analysis.texts import FUSED, LOOP, survey

FACTS = survey(FUSED)


def picked(query: str) -> str:
    return " ".join(node.name for _, node in parse(query).select(FACTS))


@pytest.mark.parametrize(("query", "names"), [
    ("op=dot", "dot"), ("dot", "dot"), ("op=d*", "dot"), ("name~^b", "b bias biased"), ("/^tot/", "total"),
    ("fused", "p0 p1 wide sum"), ("fused and not op=parameter", "wide sum"), ("fused & !(op=parameter)", "wide sum"),
    ("op=dot or op=reduce", "dot total"), ("op=dot | op=reduce & fused", "dot"), ("(op=dot | op=reduce) & fused", ""),
    ("shape=8,*", "p0 wide sum x dot biased"), ("shape=[8,16]", "p0 wide sum dot biased"), ("shape=8x16 and op=add", "sum"),
    ("flops>1k", "dot"), ("bytes>=512 and class=contraction", "dot"), ("rank=0", "a b s zero"), ("scalar and entry", "zero"),
    ("scope=jit(f)/pool/*", "total"), ("calls=fused_computation", "biased"), ("users=0 and entry", "total"), ("root and not entry", "s sum"),
    ("near(dot,1)", "x w dot biased"), ("deps(biased) and not op=parameter", "dot biased"), ("path(dot, total)", "dot biased total"),
    ("uses(bias)", "bias biased total"), ("/^b$/", "b"), ("/^s$/", "s"), ('name~"^b$"', "b"), ('name~"^s$"', "s"),
    ('op="dot"', "dot"), ("dtype=f32 and op!=parameter and entry", "dot biased zero total"),
])
def test_queries_pick(query: str, names: str) -> None:
    assert picked(query) == names


@given(st.sampled_from(["fused", "op=dot", "rank>0", "entry", "bytes<100"]), st.sampled_from(["scalar", "op=add", "users>1"]))
def test_the_words_mean_what_they_mean_elsewhere(a: str, b: str) -> None:
    both = set(parse(f"{a} and {b}").select(FACTS))
    either = set(parse(f"{a} or {b}").select(FACTS))
    assert both == set(parse(a).select(FACTS)) & set(parse(b).select(FACTS))
    assert either == set(parse(a).select(FACTS)) | set(parse(b).select(FACTS))
    assert set(parse(f"not ({a} or {b})").select(FACTS)) == set(parse(f"not {a} and not {b}").select(FACTS))


@pytest.mark.parametrize(("query", "place", "words"), [
    ("byts>1", "1:1", "there is no column byts"), ("op=", "1:4", "expected a value"), ("(op=dot", "1:8", "not closed"),
    ("flops<abc", "1:7", "abc is none"), ("fused and", "1:10", "ends too early"), ("op<3", "1:3", "op is text"), ("op~[", "1:4", ""),
    ("fused=maybe", "1:7", "true or false"), ("near(", "1:6", "not closed"), ("path(a)", "1:1", "two nodes"), ("between(a)", "1:1", "two nodes"),
    ("dominators(a, b, c)", "1:1", "one or two nodes"), ("near(a, 2, hubs)", "1:1", "what it goes through"),
    ("near(a, ²)", "1:1", "a node"), ("near(a, " + "9" * 5000 + ")", "1:1", "a node"),
    ("bytes", "1:1", "comparison"),
    ("op=dot dot", "1:8", "unexpected"), ("(" * 200 + "dot", "1:102", "more than 100"), ("op=~3", "1:4", "expected a value"),
])
def test_faults_are_pointed_at(query: str, place: str, words: str) -> None:
    with pytest.raises(UserError) as error:
        parse(query)
    finding = error.value.findings[0]
    assert str(finding.place()) == place
    assert words in finding.message


@given(st.text(alphabet="opdt=<>~!()&|/,'\" 1kMB*[]", max_size=20))
def test_no_text_raises_anything_else(text: str) -> None:
    try:
        query = parse(text)
    except UserError:
        return
    assert query.text == text


def test_every_column_answers_for_every_node() -> None:
    kinds = {"text": str, "number": float, "flag": bool}
    for facts in (FACTS, survey(LOOP)):
        for column in COLUMNS.values():
            for graph in facts.module.graphs.values():
                for node in graph.nodes:
                    assert isinstance(column.ask(facts, graph, node), kinds[column.kind]), column.name
